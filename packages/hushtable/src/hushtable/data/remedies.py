"""Options that resolve doubts: none changes what another column holds, or turns names into rows."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hushtable.data.readers import Reader
from hushtable.data.texts.reading import ColumnUnderstanding
from hushtable.data.texts.seen import Exceptions, TextsSeen
from hushtable.language import _

#: Rows that may hold names below a title.
_MOST_NAMES = 5


def limited(one: ColumnUnderstanding, found: Any) -> ColumnUnderstanding:
    """Return a column whose ``--missing`` options name it, if they would change other columns.

    ``found`` has the ranges and texts of all columns: see `hushtable.data.understanding`.
    """
    options = []
    for flag, value in one.options:
        own = flag == "--missing" and _is_elsewhere(one.name, value, found)
        options.append((flag, f"{one.name}:{value}" if own else value))
    return replace(one, options=tuple(options))


def _is_elsewhere(name: str, text: str, found: Any) -> bool:
    """Return whether another column holds a text as a value."""
    number = float(text) if re.fullmatch(r"-?\d+(\.\d+)?", text) else None
    for j, other in enumerate(found.names):
        seen: TextsSeen | None = found.texts.get(j)
        if other == name:
            continue
        low, high = (found.low[j], found.high[j]) if seen is None else (seen.low, seen.high)
        if number is not None and low <= number <= high:
            return True
        if seen is not None and seen.texts[text] and not _is_no_value(seen, text):
            return True
    return False


def _is_no_value(seen: TextsSeen, text: str) -> bool:
    """Return whether a text stands among numbers or dates, and is none."""
    others = seen.exceptions.get("other", Exceptions())
    values = seen.n - others.n
    return text in others.rows and (2 * values >= seen.n or (values > 0 and len(others.rows) == 1))


def names_in_rows(
    columns: Sequence[ColumnUnderstanding], texts: Mapping[int, TextsSeen], reader: Reader
) -> tuple[ColumnUnderstanding, ...]:
    """Return columns, with the option for names in a lower line if the first rows hold names.

    Each column of numbers or dates then holds another word in the same first rows.
    """
    values = [j for j, one in enumerate(columns) if one.kind in ("number", "date")]
    odd = [texts[j].exceptions.get("other", Exceptions()) for j in values if j in texts]
    rows = {tuple(sorted(one.first.values())) for one in odd}
    if len(values) < 2 or len(odd) < len(values) or len(rows) != 1:
        return tuple(columns)
    [first] = rows
    names = {max(one.first, key=one.first.__getitem__) for one in odd if one.first}
    whole = not any(seen.n_missing for seen in texts.values())
    if not 0 < len(first) <= _MOST_NAMES or first != tuple(range(len(first))):
        return tuple(columns)
    line = re.search(r"\d+", reader.place(len(first) - 1))
    if line is None or not whole or len(names) < len(odd):
        return tuple(columns)
    doubt = _(
        "each column of numbers holds a word in %(where)s: are these the names?",
        where=reader.place(len(first) - 1),
    )  # fmt: skip
    option = (("--read", f"skip_lines={int(line[0]) - 1}"),)
    return tuple(
        replace(one, doubt=f"{one.doubt}; {doubt}", options=option) if j in values else one
        for j, one in enumerate(columns)
    )
