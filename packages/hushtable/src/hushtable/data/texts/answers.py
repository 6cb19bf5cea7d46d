"""Yes and no as people write them, in one column in several spellings."""

from collections.abc import Mapping

from hushtable.data.labels import fold, key

_YES = (
    "yes true ja wahr oui vrai sí verdadero sim verdadeiro sì vero waar tak prawda да истина evet "
    "doğru sant ano pravda はい 是 نعم ✓ ✔ ☑ ✅"
)
_NO = (
    "no false nein falsch non faux falso não nee onwaar nie fałsz нет ложь hayır yanlış nej falskt "
    "ne nepravda いいえ 否 لا ✗ ✘ ☒ ❌"
)
_WORDS = {key(w): True for w in _YES.split()} | {key(w): False for w in _NO.split()}
#: Abbreviations: they count only if a full word also occurs, or as a pair of one language.
_LETTERS = dict.fromkeys("yjostvд", True) | dict.fromkeys("nfн", False)
_PAIRS = ({"y", "n"}, {"j", "n"}, {"t", "f"})
_DIGITS = {"1": True, "0": False}


def side(text: str) -> bool | None:
    """Return whether a text means yes; None if it means neither yes nor no.

    Parameters
    ----------
    text : str
        Of a cell: a word, its first letter, a check mark, 1 or 0.

    Examples
    --------
    >>> from hushtable.data.texts.answers import side
    >>> side("Oui"), side("N"), side("perhaps")
    (True, False, None)
    """
    text = fold(text)
    return {**_LETTERS, **_DIGITS}.get(text.casefold(), _WORDS.get(key(text)))


def are_answers(texts: Mapping[str, int], n_digits: int = 0) -> bool:
    """Return whether all texts of a column mean yes or no, in more than two spellings.

    Parameters
    ----------
    texts : mapping of str to int
        Number of rows with each text.
    n_digits : int, default=0
        Further rows with 1 or 0. Digits count as answers if most rows hold words.

    Returns
    -------
    bool
    """
    words = [text for text in texts if text not in _DIGITS]
    # Most columns of texts have none: the first word of another kind settles it.
    if len(texts) + (n_digits > 0) < 3 or any(side(text) is None for text in words):
        return False
    if {*map(side, words)} != {True, False}:
        return False
    said = {fold(text).casefold() for text in texts} - _DIGITS.keys()
    if said <= _LETTERS.keys() and said not in _PAIRS:
        return False
    digits = n_digits + sum(rows for text, rows in texts.items() if text in _DIGITS)
    return 2 * digits < n_digits + sum(texts.values())


def answers(texts: Mapping[str, int]) -> list[str]:
    """Return the most frequent spelling of each side, words before digits, sorted.

    Parameters
    ----------
    texts : mapping of str to int
        Number of rows with each text; each text means yes or no.

    Returns
    -------
    list of str
        One or two.
    """
    often = sorted(texts, key=lambda text: (text in _DIGITS, -texts[text], text))
    return sorted({side(text): text for text in reversed(often)}.values())
