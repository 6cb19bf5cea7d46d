"""Well-known columns: public ranges and categories by name, for a person to confirm.

The entries are in ``known_columns.toml``, whose header explains how to add to it. They never depend
on anyone's rows.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import product, takewhile
from typing import Any


@dataclass(frozen=True)
class Range:
    """A public range of a well-known column, in one unit; numbers are as the file writes them."""

    low: float
    high: float
    unit: str
    what: str = ""
    only_if_named: bool = False


@dataclass(frozen=True)
class KnownColumn:
    """Public knowledge about a column with a well-known name: a table of the file, as written."""

    what: str
    names: Sequence[str]
    ranges: Sequence[Range] = ()
    codes: Sequence[Sequence[str]] = ()
    texts: Sequence[Sequence[str]] = ()
    first_words: Sequence[str] = ()
    last_words: Sequence[str] = ()
    note: str = ""


@cache
def known_columns() -> tuple[KnownColumn, ...]:
    """Return all well-known columns, in the order of the file."""
    return tuple(
        KnownColumn(**entry | {"ranges": [Range(**one) for one in entry.get("ranges", ())]})
        for entry in _content()["column"]
    )


def known_column(name: str) -> KnownColumn | None:
    """Return public knowledge about a column with this name; None if there is none.

    The name is as the data has it: ``"hr"``, ``"HeartRate"``, ``"glucose_mmol"``, ``"Temp (F)"``.
    Only the ranges remain whose units the name allows.
    """
    words = _words(name)
    for candidate in _candidates(words):
        for cut in range(len(candidate), 0, -1):
            column = _by_name().get("".join(candidate[:cut]))
            unit = "".join(candidate[cut:])
            if column is None:
                continue
            if unit:
                ranges = [one for one in column.ranges if unit in _spellings().get(one.unit, ())]
            else:
                ranges = [one for one in column.ranges if not one.only_if_named]
            # Codes and texts have no unit: a name with further words means something else.
            if ranges or not unit:
                return replace(column, ranges=ranges)
    for column in known_columns():
        if len(words) > 1 and (words[0] in column.first_words or words[-1] in column.last_words):
            return column
    return None


#: Between small letter and capital, before the last capital of several, and around digits.
_INNER_BOUNDARY = re.compile(
    r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=\d)(?=[^\W\d_])|(?<=[^\W\d_])(?=\d)"
)


def _words(name: str) -> list[str]:
    name = unicodedata.normalize("NFKC", name).replace("%", " percent ")
    return re.findall(r"[^\W_]+", _INNER_BOUNDARY.sub(" ", name).casefold())


def _candidates(words: list[str]) -> Iterator[list[str]]:
    """Yield the words, then fewer: without words such as max, and the digit of a repeat (hr_2)."""
    qualifiers = _content()["qualifiers"]
    numbered = len(words) > 1 and len(words[-1]) == 1 and words[-1].isdecimal()
    for rest in (words, words[:-1]) if numbered else (words,):
        before = len(list(takewhile(qualifiers.__contains__, rest)))
        after = len(list(takewhile(qualifiers.__contains__, reversed(rest))))
        for first, last in product(range(before + 1), range(after + 1)):
            yield rest[first : len(rest) - last]


@cache
def _content() -> dict[str, Any]:
    file = resources.files("hushtable.data") / "known_columns.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


@cache
def _by_name() -> dict[str, KnownColumn]:
    return {"".join(_words(name)): column for column in known_columns() for name in column.names}


@cache
def _spellings() -> dict[str, frozenset[str]]:
    return {
        unit: frozenset("".join(_words(spelling)) for spelling in spellings)
        for unit, spellings in _content()["units"].items()
    }
