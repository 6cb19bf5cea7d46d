"""Rows of a sheet that are not part of its table: totals, footers, further tables."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa

from hushtable.data.readers.reader import FileLayout, as_name
from hushtable.data.readers.sheet_parts import letters
from hushtable.data.readers.totals import (
    MOST_SUMMARIES,
    FirstRows,
    has_letters,
    n_summaries,
    skipping,
    starts_with_summary,
    subtotals,
    subtotals_refused,
    total_refused,
)
from hushtable.errors import DataError

#: By row, then by column, from the first of the sheet on; "" is an empty cell.
Cells: TypeAlias = list[list[Any]]

#: Number of rows whose texts are checked.
_FIRST = 100
#: Largest share of the rows that a second table next to the first fills.
_SHORT = 0.8


def row_words(row: Sequence[Any]) -> str:
    """Return the cells of a row as one text."""
    return " | ".join(map(as_name, row))


class _FilledRows:
    """Rows of a sheet that are not empty, as texts."""

    def __init__(self, cells: Cells, places: Sequence[int], names: Mapping[int, str]) -> None:
        self.cells, self.places, self.used = cells, places, sorted(names)
        self.names = [names[j] for j in self.used]
        #: Numbers of the rows, except the last, that leave a column empty.
        empty = {j: [k for k, i in enumerate(places[:-1]) if cells[i][j] == ""] for j in self.used}
        few = {j: rows for j, rows in empty.items() if 3 * len(rows) <= len(places)}
        labelled = {k: starts_with_summary(self[k]) for k in {k for r in few.values() for k in r}}
        enough = len(places) > 3  # as in text files: fewer rows show too little
        always = [
            self.used.index(j) for j, r in few.items() if enough and all(labelled[k] for k in r)
        ]
        self.labelled = sorted(k for k, there in labelled.items() if there)
        plain = [self[k] for k in range(min(_FIRST, len(places) - 1)) if not labelled.get(k)]
        self.first = FirstRows(plain, always)

    def __getitem__(self, k: int) -> list[str]:
        row = self.cells[self.places[k]]
        return [as_name(row[j]) for j in self.used]

    def __len__(self) -> int:
        return len(self.places)

    def above(self, k: int, n_rows: int) -> pa.Array:
        """Return the texts of a column in the first rows."""
        j = self.used[k]
        texts = [as_name(self.cells[i][j]) or None for i in self.places[:n_rows]]
        return pa.array(texts, pa.string())

    def summaries(self, end: int) -> int:
        """Return how many of the rows just above one sum up the rows before them."""
        last = [self[k] for k in range(max(0, end - MOST_SUMMARIES), end)]
        return n_summaries(last, self.first, end, self.above)


def check_rows(
    cells: Cells, places: Sequence[int], names: Mapping[int, str], where: str, layout: FileLayout
) -> None:
    """Raise `DataError` if totals, a footer or another table are among the rows."""
    if not places or not names:
        return
    rows = _FilledRows(cells, places, names)
    for k in range(1, len(rows)):
        row = cells[places[k]]
        if row[rows.used[0]] == rows.names[0] and rows[k] == rows.names and len(names) > 1:
            raise DataError(
                f"{where}: row {places[k] + 1} repeats the names of the columns: delete it, or "
                "keep the tables in separate sheets"
            )
        if places[k] - places[k - 1] > 1:
            _check_table_below(rows, k, where, layout.footer)
    n = rows.summaries(len(rows))
    found = subtotals(
        [(k, rows[k]) for k in rows.labelled], rows.first, lambda j: rows.above(j, len(rows))
    )
    if found and found[0] < len(rows) - n:
        lines = [places[k] + 1 for k in found]
        raise subtotals_refused(where, "rows", lines, row_words(rows[found[0]]))
    if n:
        first, last = places[-n] + 1, places[-1] + 1
        line = f"row {last}" if n == 1 else f"rows {first} to {last}"
        begins = row_words(rows[len(rows) - n])[:40].rstrip()
        raise total_refused(f"{where}: {line}", begins, n + layout.footer, several=n > 1)


def _check_table_below(rows: _FilledRows, k: int, where: str, footer: int) -> None:
    """Raise `DataError` if the names or the title of a second table follow an empty row."""
    names = k
    while names < len(rows) - 1 and sum(map(bool, rows[names])) == 1:
        if not has_letters("".join(rows[names])):
            return
        names += 1
    if not rows.first.is_names(rows[names]):
        return
    totals = rows.summaries(k)
    more = " and the totals above it" if totals else ""
    raise DataError(
        f"{where}: another table seems to begin in row {rows.places[k] + 1}, below an empty row: "
        f"{row_words(rows[k])[:40]!r}. Keep it in a separate sheet, or leave it "
        f"out{more}{skipping(len(rows) - k + totals + footer)}"
    )


def check_side_by_side(
    cells: Cells, places: Sequence[int], names: Mapping[int, str], where: str, sheet: str
) -> None:
    """Raise `DataError` if two tables are side by side, with an empty column between them."""
    blocks: list[list[int]] = []
    for j in sorted(names):
        if not blocks or j - blocks[-1][-1] > 1:
            blocks.append([])
        blocks[-1].append(j)
    if len(blocks) < 2:
        return
    sets = [{names[j] for j in block} for block in blocks]
    twice = sorted(set.union(*(a & b for a in sets for b in sets if a is not b)))
    sizes = [_n_rows(cells, places, block) for block in blocks]
    short = any(
        0 < n <= _SHORT * len(places) and len(block) > 1 and _is_full(cells, places[:n], block)
        for n, block in zip(sizes, blocks, strict=True)
    )
    if twice or short:
        _refuse_side_by_side(blocks, sizes, twice, where, sheet)


def _n_rows(cells: Cells, places: Sequence[int], block: Sequence[int]) -> int:
    """Return how many rows there are down to the last in which a block is not empty."""
    filled = [k for k, i in enumerate(places, 1) if any(cells[i][j] != "" for j in block)]
    return max(filled, default=0)


def _is_full(cells: Cells, places: Sequence[int], block: Sequence[int]) -> bool:
    return all(cells[i][j] != "" for i in places for j in block)


def _refuse_side_by_side(
    blocks: Sequence[Sequence[int]],
    sizes: Sequence[int],
    twice: Sequence[str],
    where: str,
    sheet: str,
) -> NoReturn:
    spans = [f"{letters(block[0])}:{letters(block[-1])}" for block in blocks]
    parts = [f"{span} ({n:,} rows)" for span, n in zip(spans, sizes, strict=True)]
    largest = spans[max(range(len(spans)), key=lambda k: sizes[k] * len(blocks[k]))]
    again = f"; {twice[0]!r} names a column in two of them" if twice else ""
    raise DataError(
        f"{where}: there seem to be several tables side by side, in the columns "
        f"{', '.join(parts[:-1])} and {parts[-1]}{again}. With the sheet, give the columns of the "
        f"table to read\nAdd: --read {shlex.quote(f'sheet={sheet}!{largest}')}"
    )
