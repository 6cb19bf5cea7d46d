"""Write the words of dates, clocks, and currencies for reading tables.

    python packages/hushtable/tools/cldr_words.py

The words are those of the Unicode CLDR in Babel, in the languages below. A new language needs only
its code. ``hushtable.data.texts.words`` reads the file.
"""

import json
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

from babel.core import get_global
from babel.localedata import Alias, load
from babel.numbers import get_territory_currencies

FILE = Path(__file__).parents[1] / "src/hushtable/data/texts/cldr_words.json"
#: The first language that knows all words of a column is used, so common ones come first.
_CODES = (
    "en de fr es pt it nl pl ru tr sv da no fi cs sk hu ro bg el uk hr sl sr sr_Latn bs mk sq et "
    "lv lt is ga cy eu ca gl mt af sw zu am ar he fa ur hi bn mr gu ta te kn ml pa ne si th lo my "
    "km vi id ms fil ja zh zh_Hant ko mn kk uz ky az ka hy be tg tk"
)
LANGUAGES = _CODES.split()
MORE_MONTHS = {"de": {"mrz": 3}, "en": {"sept": 9}, "es": {"set": 9}, "pt": {"marc": 3}}


def plain(word: str) -> str:
    """Return a word in lower case, without the full stop of an abbreviation."""
    return word.lower().strip().rstrip(".")


def without_marks(word: str) -> str:
    """Return a word without accents, as typed on many keyboards."""
    parts = unicodedata.normalize("NFKD", word)
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


def words(names: Any, widths: tuple[str, ...]) -> Iterator[tuple[Any, str]]:
    """Yield key and word of names in two contexts and several widths."""
    for context in ("format", "stand-alone"):
        for width in widths:
            some = names.get(context, {}).get(width, {})
            if not isinstance(some, Alias):
                yield from some.items()


def months(code: str, locale: Any) -> list[list[str]]:
    """Return the words for each month, from January on."""
    found: list[list[str]] = [[] for _ in range(12)]
    used = list(words(locale.get("months", {}), ("wide", "abbreviated")))
    used += [(month, word) for word, month in MORE_MONTHS.get(code, {}).items()]
    for month, name in used:
        for word in (plain(name), without_marks(plain(name))):
            if word[0].isalpha() and word not in found[month - 1]:
                found[month - 1].append(word)
    return found


def weekdays(locale: Any) -> Iterator[str]:
    """Yield the words for the days of the week."""
    for _, name in words(locale.get("days", {}), ("wide", "abbreviated", "short")):
        yield plain(name)


def halves(locale: Any) -> Iterator[tuple[str, str]]:
    """Yield the words for before and after noon, without blanks and full stops."""
    for half, word in words(locale.get("day_periods", {}), ("wide", "abbreviated")):
        if half in ("am", "pm"):
            yield "".join(letter for letter in word.lower() if letter not in ". \xa0\u202f"), half


def clear(pairs: Iterator[tuple[Any, Any]] | list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return the words that mean the same in all languages."""
    meanings = defaultdict(set)
    for word, meaning in pairs:
        meanings[word].add(meaning)
    return {word: found.pop() for word, found in sorted(meanings.items()) if len(found) == 1}


def main() -> None:
    """Write the file."""
    # Leaves out inherited words, which are English or numbers.
    locales: dict[str, Any] = {code: load(code, merge_inherited=False) for code in LANGUAGES}
    used = [("am", "am"), ("pm", "pm"), *(pair for one in locales.values() for pair in halves(one))]
    today = date.today()
    codes = {
        code
        for territory in get_global("territory_languages")
        for code in get_territory_currencies(territory, today, today, non_tender=False)
    }
    content = {
        "months": {
            code: months(code, one) for code, one in locales.items() if all(months(code, one))
        },
        "weekdays": sorted(
            {
                word
                for one in locales.values()
                for word in weekdays(one)
                if len(word) > 1 or not word.isascii()
            }
        ),
        "halves": clear(used),
        "currencies": sorted(codes),
    }
    lines = [f"{json.dumps(key)}: {_lines(part)}" for key, part in content.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _lines(part: Any) -> str:
    """Return JSON with a line for each language."""
    if not isinstance(part, dict) or not all(isinstance(one, list) for one in part.values()):
        return json.dumps(part, ensure_ascii=False)
    said = [f"{json.dumps(k)}: {json.dumps(one, ensure_ascii=False)}" for k, one in part.items()]
    return "{\n" + ",\n".join(said) + "\n}"


if __name__ == "__main__":
    main()
