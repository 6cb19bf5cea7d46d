"""Lines below the table of a CSV file, and lines in the table that are not rows."""

import contextlib
import csv
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from hushtable.data.readers.dialect import Dialect, Record, records
from hushtable.data.readers.encoding import is_blank
from hushtable.data.readers.totals import (
    TOTAL,
    FirstRows,
    has_letters,
    is_footer_text,
    is_number,
    starts_with_total,
)

#: Number of lines in the table to check; of gaps between lines; of columns with words.
_MOST_ROWS, _MOST_GAPS, _LABELS = 10_000, 1_000, 2


@dataclass(frozen=True)
class Below:
    """Lines from one that is not a row to the end of the file."""

    #: Number of lines that are not blank.
    n_lines: int
    #: Description of the lines; empty if they may be rows, or the rest of one.
    what: str

    @classmethod
    def of(cls, lines: Iterable[str], line: int, delimiter: str, first: FirstRows) -> "Below":
        """Check a file's lines from one on, numbered from 1."""
        every = iter(lines)
        blank = False
        for _ in range(line - 1):
            blank = not next(every).strip()
        counted = _FilledLines(every, f"{delimiter} \t")
        found = _RecordsBelow(first, blank)
        with contextlib.suppress(csv.Error):  # a field beyond the limit of the csv library
            for record in records(counted, delimiter):
                found.add(record)
        for _ in counted:
            pass
        return cls(counted.n, found.what)


@dataclass
class _FilledLines:
    """Lines, with the number of lines so far that are not blank."""

    lines: Iterator[str]
    #: Signs of a line without values.
    signs: str
    n: int = 0

    def __iter__(self) -> Iterator[str]:
        for line in self.lines:
            self.n += not is_blank(line, self.signs)
            yield line


@dataclass
class _RecordsBelow:
    """Records below the table of the first rows; ``blank``: a blank line is above them."""

    first: FirstRows
    blank: bool
    records: list[Record] = field(default_factory=list)
    n: int = 0
    #: Whether a row of the table follows.
    goes_on: bool = False
    names: bool = False

    def add(self, record: Record) -> None:
        self.n += 1
        if len(self.records) < 3:
            self.records.append(record)
        width = len(self.first.rows[0]) if self.first.rows else 0
        if len(record.fields) != width or self.names or not record.filled:
            return
        if self.first.is_names(record.fields):
            self.names = True
        elif not starts_with_total(record.fields):
            self.goes_on = True

    @property
    def what(self) -> str:
        if self.goes_on or not self.records:
            return ""
        one = self.records[0]
        text = next((f for f in one.fields if f.strip()), "")
        if one.filled <= 1:
            if not has_letters(text):
                return ""
            cut_off = self.n == 1 and not self.blank and self.first.is_cut_off(text)
            if cut_off and not is_footer_text(text):
                return ""
            return "a total" if TOTAL.match(text) and self.n == 1 else self._footer()
        if starts_with_total(one.fields):
            return "totals"
        follows = [len(other.fields) == len(one.fields) for other in self.records[1:]]
        words = one.filled == len(one.fields) and not any(map(is_number, one.fields))
        if self.blank or (words and follows and all(follows)):
            return "a second table"
        return ""

    def _footer(self) -> str:
        several = sum(record.filled > 1 for record in self.records) > 1
        return "a second table" if several else "a footer"


def second_table(lines: Iterable[str], dialect: Dialect) -> int:
    """Return the number, from 1, of a second header line below a blank line; 0 if none."""
    every, width = iter(lines), len(dialect.names)
    for _ in itertools.islice(every, dialect.lines):
        pass
    gaps, end = 0, dialect.lines
    with contextlib.suppress(csv.Error):
        for record in records(every, dialect.delimiter, dialect.lines):
            if record.first > end:
                gaps += 1
                if len(record.fields) == width and dialect.first.is_names(record.fields):
                    return record.first + 1
                if gaps > _MOST_GAPS:
                    break
            end = record.end
    return 0


class MiddleRows:
    """Rows with fields that only they leave empty, if all are empty or a total is stated."""

    def __init__(self, names: Sequence[str], first: FirstRows) -> None:
        self.names, self.first = list(names), first
        #: Number and texts of each row.
        self.rows: list[tuple[int, list[str]]] = []
        self._off = False

    def further(self, columns: Sequence[str]) -> list[str]:
        """Return the columns to read in addition: those with labels, and one that is filled."""
        width = len(self.names) if self.first.rows else 0
        words = [j for j in range(width) if j not in self.first.numeric][:_LABELS]
        others = [j for j in self.first.always if j not in words][:1]
        return [name for j in sorted({*words, *others}) if (name := self.names[j]) not in columns]

    def add(self, batch: pa.RecordBatch, start: int) -> None:
        """Check the rows of a batch; the first row has this number."""
        there = [j for j, name in enumerate(self.names) if name in batch.schema.names]
        columns = {j: batch.column(self.names[j]) for j in there}
        filled = [j for j in self.first.always if j in columns]
        gaps = [columns[j] for j in filled if 0 < columns[j].null_count <= len(batch) // 3]
        if not gaps or self._off:
            return
        empty = pc.is_null(gaps[0])
        for column in gaps[1:]:
            empty = pc.or_(empty, pc.is_null(column))
        places = pc.indices_nonzero(empty)
        labels = pc.coalesce(*(column.take(places) for column in columns.values()))
        words = {one for one in pc.unique(labels).to_pylist() if one is None or TOTAL.match(one)}
        chosen = [
            row + more
            for row, label in zip(places.to_pylist(), labels.to_pylist(), strict=True)
            if label in words
            for more in ((0, 1) if label is None else (0,))
            if row + more < len(batch)
        ]
        self._off = len(self.rows) + len(chosen) > _MOST_ROWS
        if self._off:
            self.rows = []
            return
        for row in dict.fromkeys(chosen):
            texts = {j: column[row].as_py() or "" for j, column in columns.items()}
            self.rows.append((start + row, [texts.get(j, "") for j in range(len(self.names))]))

    def second_table(self) -> int | None:
        """Return the number of a second header row below an empty row."""
        for (before, empty), (row, fields) in itertools.pairwise(self.rows):
            if row == before + 1 and not any(empty) and self.first.is_names(fields):
                return row
        return None
