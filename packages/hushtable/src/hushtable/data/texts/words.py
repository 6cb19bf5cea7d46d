"""Words of many languages: of dates, clocks and money by the Unicode CLDR, and lists of our own.

``tools/cldr_words.py`` writes ``cldr_words.json``. In ``words.json``, words are in small letters:
answers in one column, whose letters count only if a full word also occurs or as a pair of one
language; words within a date that have no meaning; and names of columns of identifiers, with what a
number or nothing may follow, of times of day, and of labels that state which rows are outliers.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any


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

    @cached_property
    def any_month(self) -> dict[str, int]:
        """The month that a word names in the first language that has it."""
        found: dict[str, int] = {}
        for names in self.months.values():
            found = {**names, **found}
        return found

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Words":
        """Return the words of the file."""
        months = {
            language: {word: k for k, names in enumerate(all_names, 1) for word in names}
            for language, all_names in content["months"].items()
        }
        return cls(
            months,
            frozenset(content["weekdays"]),
            content["halves"],
            tuple(content["currencies"]),
        )

    def month(self, word: str, language: str = "") -> int:
        """Return the month that a word names, in a language or else in the first; 0 if none."""
        own = self.months.get(language, {}).get(word, 0)
        return own or self.any_month.get(word, 0)

    def languages(self, months: Iterable[str]) -> dict[tuple[int, ...], str]:
        """Return a language for each reading of the words as numbers of months."""
        months = list(months)
        found: dict[tuple[int, ...], str] = {}
        for language, names in self.months.items():
            if all(word in names for word in months):
                found.setdefault(tuple(names[word] for word in months), language)
        return found


@cache
def words() -> Words:
    """Return the words, read once."""
    file = files("hushtable.data.texts") / "cldr_words.json"
    return Words.from_dict(json.loads(file.read_text(encoding="utf-8")))


@cache
def lists() -> Mapping[str, tuple[str, ...]]:
    """Return the lists of the other file, read once."""
    file = files("hushtable.data.texts") / "words.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    return {name: tuple(words.split()) for name, words in content.items()}
