"""Words of many languages: of dates, clocks and money by the Unicode CLDR, and lists of our own.

Among these are yes and no, as people write them in one column in several spellings.

``tools/cldr_words.py`` writes ``cldr_words.json``. In ``words.json``, words are in small letters:
answers in one column, whose letters count only if a full word also occurs or as a pair of one
language; words within a date that have no meaning; and names of columns of identifiers, with what a
number or nothing may follow, of times of day, and of labels that state which rows are outliers.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from hushtable.data.labels import fold, key


@dataclass(frozen=True)
class Words:
    """Words in small letters, without the full stop of an abbreviation."""

    #: By language, the number of the month for each word.
    months: Mapping[str, Mapping[str, int]]
    weekdays: frozenset[str]
    #: "am" or "pm" by the word for it.
    halves: Mapping[str, str]
    #: Codes of currencies that are in use.
    currencies: tuple[str, ...]

    def month(self, word: str, language: str = "") -> int:
        """Return the month that a word names, in a language or else in the first; 0 if none."""
        known = (self.months.get(language, {}), *self.months.values())
        return next((names[word] for names in known if word in names), 0)

    def languages(self, months: Iterable[str]) -> dict[tuple[int, ...], str]:
        """Return a language for each reading of the words as numbers of months."""
        months = list(months)
        readings: dict[tuple[int, ...], str] = {}
        for language, names in self.months.items():
            if all(word in names for word in months):
                readings.setdefault(tuple(names[word] for word in months), language)
        return readings


@cache
def words() -> Words:
    """Return the words, read once."""
    file = files("hushtable.data.texts") / "cldr_words.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    months = {
        language: {word: k for k, names in enumerate(all_names, 1) for word in names}
        for language, all_names in content["months"].items()
    }
    weekdays, currencies = frozenset(content["weekdays"]), tuple(content["currencies"])
    return Words(months, weekdays, content["halves"], currencies)


@cache
def lists() -> Mapping[str, tuple[str, ...]]:
    """Return the lists of the other file, read once."""
    file = files("hushtable.data.texts") / "words.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    return {name: tuple(words.split()) for name, words in content.items()}


# --- yes and no -----------------------------------------------------------------------------------

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
    """Return whether a text means yes; None if it means neither yes nor no."""
    text = fold(text)
    return (_letters() | _DIGITS).get(text.casefold(), _words().get(key(text)))


def are_answers(texts: Mapping[str, int], n_digits: int = 0) -> bool:
    """Return whether all texts of a column mean yes or no, in more than two spellings.

    Given the number of rows with each text, and with 1 or 0 besides. Digits count as answers if
    most rows hold words.
    """
    words = [text for text in texts if text not in _DIGITS]
    if len(texts) + (n_digits > 0) < 3 or any(side(text) is None for text in words):
        return False
    if {side(text) for text in words} != {True, False}:
        return False
    folded = {fold(text).casefold() for text in texts} - _DIGITS.keys()
    pairs = [{*pair} for pair in lists()["letter_pairs"]]
    if folded <= _letters().keys() and folded not in pairs:
        return False
    digits = n_digits + sum(rows for text, rows in texts.items() if text in _DIGITS)
    return 2 * digits < n_digits + sum(texts.values())


def answers(texts: Mapping[str, int]) -> list[str]:
    """Return the most frequent spelling of each side, words before digits, sorted."""
    often = sorted(texts, key=lambda text: (text in _DIGITS, -texts[text], text))
    return sorted({side(text): text for text in reversed(often)}.values())
