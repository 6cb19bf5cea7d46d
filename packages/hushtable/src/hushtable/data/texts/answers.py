"""Yes and no as people write them, in one column in several spellings."""

from collections.abc import Mapping
from functools import cache

from hushtable.data.labels import fold, key
from hushtable.data.texts.words import lists

_DIGITS = {"1": True, "0": False}


@cache
def _words() -> dict[str, bool]:
    yes, no = (map(key, lists()[kind]) for kind in ("yes", "no"))
    return dict.fromkeys(yes, True) | dict.fromkeys(no, False)


@cache
def _letters() -> dict[str, bool]:
    yes, no = (lists()[f"{kind}_letters"] for kind in ("yes", "no"))
    return dict.fromkeys(yes, True) | dict.fromkeys(no, False)


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
    return (_letters() | _DIGITS).get(text.casefold(), _words().get(key(text)))


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
    if len(texts) + (n_digits > 0) < 3 or any(side(text) is None for text in words):
        return False
    if {side(text) for text in words} != {True, False}:
        return False
    said = {fold(text).casefold() for text in texts} - _DIGITS.keys()
    pairs = [{*pair} for pair in lists()["letter_pairs"]]
    if said <= _letters().keys() and said not in pairs:
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
