"""Rows in a CSV file, with each field as text; its meaning is decided elsewhere."""

import csv
import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from hushtable.data.readers.dialect import Header, find_dialect, is_rule, records
from hushtable.data.readers.encoding import RAW, Text, opened_bytes, opened_lines
from hushtable.data.readers.reader import Batch, FileLayout, Reader, of_file, split
from hushtable.data.readers.totals import (
    MOST_BELOW,
    MOST_LISTED,
    BelowError,
    FirstRows,
    below_error,
    below_words,
    left_out_words,
    repeated_words,
    totals_error,
)
from hushtable.errors import DataError
from hushtable.language import _
from hushtable.words.refusals import refusal, refused

#: Bytes that are parsed at a time: 8,000 rows of 20 long numbers, which are then not cut again.
_BLOCK = 3 << 20
#: Number of lines that an option may leave out at the end.
_MOST_BELOW = 100_000
_BREAK = re.compile(r"\r\n?|\n")


def csv_file(path: Path, layout: FileLayout) -> Reader:
    """Read a CSV file, some rows at a time."""
    encoding, delimiter, header, above, first = find_dialect(path, layout)
    file = _File(path, layout, encoding, delimiter, header, above, first, first)
    notes = [*header.notes]
    if layout.unasked is None:
        lines = file.lines
        if layout.skip_footer:
            notes.append(left_out_words(layout.skip_footer, lines.footer))
        if lines.repeated:
            notes.append(repeated_words(lines.repeated))
    kept = tuple(name for name in header.names if name not in header.left_out)
    rows = of_file(path, kept, lambda columns: file.batches(columns or [*kept]), place=file.place)
    return replace(rows, found=tuple(notes), delimiter=delimiter)


@dataclass
class _Survey:
    """Facts on all lines of a file."""

    #: Numbers of the lines that repeat the line of names.
    repeated: list[int]
    #: The first line that is left out at the end.
    footer: str
    #: Number of other lines below the names; whether there are quotation marks, and gaps.
    n: int
    quoted: bool
    gaps: bool


@dataclass
class _File:
    path: Path
    layout: FileLayout
    encoding: str
    delimiter: str
    header: Header
    #: The lines above the first row.
    above: list[str]
    #: The first rows, also with only those of the columns that are never empty that are read.
    first: FirstRows
    read: FirstRows
    #: The line at which Arrow gave up.
    odd: arrow_csv.InvalidRow | None = None
    #: Whether a whole pass has been made, and showed that each row is one line.
    passed: bool = False
    by_line: bool = False
    #: The first texts of rows that may be totals, by their number; and the last rows.
    totals: dict[int, str] = field(default_factory=dict)
    last: list[list[str]] = field(default_factory=list)

    @cached_property
    def lines(self) -> _Survey:
        """The facts on all lines of the file, whose bytes are read once, but not parsed."""
        # Any value makes a line longer than its delimiters and end.
        shortest = len(self.header.names)
        quoted, gaps, n, end = False, False, 0, -1
        encoding = self.encoding
        plain = encoding if "\n,".encode(encoding) != b"\n," else RAW  # not to decode twice
        with self._opened(plain) as (_, text):
            while block := text.read():
                quoted = quoted or b'"' in block
                signs = np.frombuffer(block, np.uint8)
                ends = np.append(end, np.flatnonzero(signs == ord("\n")))  # faster than counting
                gaps = gaps or bool((np.diff(ends) <= shortest + (b"\r" in block)).any())
                n, end = n + len(ends) - 1, int(ends[-1]) - len(block)
        blanks = f"{self.delimiter} \t\x1a".encode()
        filled = [line for line in text.held.splitlines() if line.strip(blanks)]
        return _Survey(
            repeated=text.repeated,
            footer=filled[0].decode(encoding, "replace") if filled else "",
            n=n + (end != -1),
            quoted=quoted,
            gaps=gaps,
        )

    @contextmanager
    def _opened(
        self, encoding: str = "", *, again: bool = True
    ) -> Iterator[tuple[pa.OSFile, Text]]:
        """Open the text of the file at its first row."""
        codec, at = self.encoding if encoding == RAW else "utf-8", self.header.at
        asked, line = self.layout.unasked is None, ""
        if again and asked and len(self.header.names) > 1 and at is not None:
            line = self.above[at.first].rstrip("\r\n")
        with opened_bytes(self.path) as (raw, plain):
            text = Text(
                plain,
                encoding or self.encoding,
                str(self.path),
                asked=asked,
                footer=self.layout.skip_footer or 0,
                delimiter=self.delimiter,
                again=line.encode(codec),
            )
            above = len("".join(self.above).encode(codec))
            while above and (block := text.read(min(above, 1 << 16))):
                above -= len(block)
            yield raw, text

    def batches(self, columns: list[str]) -> Iterator[tuple[int, Batch]]:
        """Yield bytes read and rows; at the end of the first pass, check that all are rows."""
        checked = self.layout.unasked is None and not self.passed
        names, first, left_out = self.header.names, self.first, self.header.left_out
        wanted = [*columns, *left_out]
        if checked:  # columns that show totals
            words = [j for j in range(len(names)) if j not in first.numeric][:2]
            label = sorted({*words, *first.always[:1]})
            wanted = [*dict.fromkeys([*wanted, *(names[j] for j in label)])]
            read = set(wanted)
            self.read = replace(first, always=[j for j in first.always if names[j] in read])
        done = 0
        with self._opened() as (raw, text):
            for batch in self._parsed(text, wanted):
                if left_out:
                    self._check_left_out(batch, done)
                if checked:
                    self._note_totals(batch, done)
                for part in split([batch.select(columns)]):
                    yield raw.tell(), part
                done += len(batch)
        if not self.passed:
            self.by_line = done == self.lines.n and not self.lines.repeated
            if self.lines.quoted and not self.by_line:
                self._check_quotes()
        if checked and done and self.layout.skip_footer != 0:
            n, among = self.read.n_below(self.last, done), sorted(self.totals)
            if among and among[0] < done - n:
                lines = [self._numbers(row)[0] for row in among[:MOST_LISTED]]
                begins = self.totals[among[0]]
                raise totals_error(str(self.path), "line", lines, len(among), begins)
            if n:
                begin, end = self._numbers(done - n)[0], self._numbers(done - 1)[1]
                begins = self.delimiter.join(self.last[-n])
                raise self._below(begin, below_words(str(self.path), "line", begin, end, begins))
            if self.lines.gaps:
                self._check_gaps()
        self.passed = True

    def _parsed(self, text: Text, columns: list[str]) -> Iterator[pa.RecordBatch]:
        names = self.header.names
        reading = arrow_csv.ReadOptions(block_size=_BLOCK, use_threads=False, column_names=names)
        parsing = arrow_csv.ParseOptions(
            delimiter=self.delimiter,
            newlines_in_values=True,
            invalid_row_handler=self._on_odd_row,
        )
        converting = arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=True,
            include_columns=columns,
        )
        done = 0
        try:
            with arrow_csv.open_csv(pa.PythonFile(text, "r"), reading, parsing, converting) as file:
                for batch in file:
                    done += len(batch)
                    yield batch
        except pa.ArrowInvalid as error:
            if str(error) == "Empty CSV file":
                return
            if self.odd is not None:
                raise self._odd_line(self.odd) from None
            if "straddling" in str(error):
                place = self.place(done)
                raise refused("long_field", source=self.path, place=place, n=_BLOCK >> 20) from None
            raise DataError(f"{self.path}: {error}") from None

    def _on_odd_row(self, row: arrow_csv.InvalidRow) -> str:
        if is_rule(row.text):
            return "skip"
        if self.layout.unasked is not None:
            if not self.passed:
                what = f"{self.path}: lines with more or fewer fields than names, left out"
                self.layout.unasked.note(what, 1, lambda: f"the line that begins {row.text[:20]!r}")
            return "skip"
        self.odd = row
        return "error"

    def _odd_line(self, row: arrow_csv.InvalidRow) -> DataError:
        want, got, delimiter = row.expected_columns, row.actual_columns, self.delimiter
        line = self._numbers(row.number - 1, every=True)[0]
        above = refusal("begins_below", line=line) if row.number < 3 else ""
        swallowed = _BREAK.search(row.text) is not None
        split = swallowed and delimiter in row.text
        if swallowed and (split or got <= want):
            way = refusal("unclosed")
        elif got > want:
            way = refusal("more_fields", delimiter=delimiter, above=above)
        else:
            way = refusal("fewer_fields", above=above)
        words = refusal(
            "odd_line", source=self.path, line=line, n_names=want, delimiter=delimiter,
            fields=refusal("field" if got == 1 else "fields", n=got), text=row.text[:40], way=way,
        )  # fmt: skip
        return DataError(words) if split else self._below(line, words)

    def _below(self, line: int, words: str) -> BelowError:
        """Return an error about lines from one on, with the option to leave them out if it helps.

        It does not if rows of the table follow, or if the line may be a row that was cut off.
        """
        width, first = len(self.header.names), self.first
        with opened_lines(self.path, self.encoding) as file:
            lines = list(itertools.islice(file, line - 1, line - 1 + _MOST_BELOW))
        signs = f"{self.delimiter} \t\r\n\x1a"
        n = sum(bool(text.strip(signs)) for text in lines)
        below = list(records(lines, self.delimiter))
        cut = n == 1 and len(below[0].fields) != width and first.begins_like(below[0].fields)
        for record in below:
            if len(record.fields) == width and first.is_names(record.fields):
                break
            if len(record.fields) == width and not (
                first.is_total(record.fields) or first.gaps(record.fields)
            ):
                cut = True
        # A line break within quotation marks can leave the same line odd, whatever is left out.
        if cut or len(lines) == _MOST_BELOW or n <= (self.layout.skip_footer or 0):
            return BelowError(words, 0)

        def read_without(n: int) -> None:
            for _batch in csv_file(self.path, replace(self.layout, skip_footer=n)).read():
                pass

        return below_error(words, n, read_without)

    def _check_left_out(self, batch: pa.RecordBatch, done: int) -> None:
        for name in self.header.left_out:
            if batch.column(name).null_count < len(batch):
                row = pc.index(pc.is_valid(batch.column(name)), True).as_py()
                raise refused(
                    "nameless_value", source=self.path, place=self.place(done + row),
                    text=batch.column(name)[row].as_py(), column=self.header.names.index(name) + 1,
                )  # fmt: skip

    def _note_totals(self, batch: pa.RecordBatch, start: int) -> None:
        """Remember rows with a word for a total and a gap, and the last rows."""
        read = set(batch.schema.names)
        columns = {name: batch.column(name) for name in self.header.names if name in read}
        for j in self.read.always:
            column = columns[self.header.names[j]]
            if 0 < column.null_count <= len(batch) // 3:
                rows = pc.indices_nonzero(pc.is_null(column))
                labels = pc.coalesce(*(other.take(rows) for other in columns.values())).to_pylist()
                words = {label for label in {*labels} if label and self.read.is_total([label])}
                numbered = zip(rows.to_pylist(), labels, strict=True) if words else ()
                self.totals |= {start + row: label for row, label in numbered if label in words}
        tail = batch.slice(max(0, len(batch) - MOST_BELOW)).to_pylist()
        last = [[row.get(name) or "" for name in self.header.names] for row in tail]
        self.last = [*self.last, *last][-MOST_BELOW:]

    def _check_gaps(self) -> None:
        first, end = self.first, self.header.body
        with self._opened(again=False) as (_, text):
            for record in records(text.lines(), self.delimiter, end):
                line = record.first + 1
                other = first.is_names(record.fields) or first.is_bare(record.fields)
                if (
                    record.first > end
                    and record.filled
                    and len(record.fields) == len(self.header.names)
                    and line not in self.lines.repeated
                    and other
                ):
                    raise self._below(
                        line,
                        f"{self.path}: line {line}, below an empty line, is not a row: it holds "
                        "words where there are numbers above. Export it into a separate file, or "
                        "leave it out; if it is a row, add --read skip_footer=0",
                    )
                end = record.end if record.filled else end

    def _check_quotes(self) -> None:
        """Raise `DataError` if the quotation marks in any line do not follow CSV.

        Only the form is checked: a quoted text may hold anything, including line breaks.
        """
        with self._opened() as (_, text):
            rows, line = csv.reader(text.lines(), delimiter=self.delimiter, strict=True), 0
            try:
                for _row in rows:
                    line = rows.line_num
            except csv.Error as error:
                if "limit" not in str(error):  # a long text is not an error
                    raise refused(
                        "not_csv",
                        source=self.path,
                        line=self.header.body + line + 1,
                        error=error,
                    ) from None

    def place(self, row: int) -> str:
        """Return ``line 19``, or ``lines 19 to 21``, for a row that is numbered from 0."""
        first, last = self._numbers(row)
        if first == last:
            return _("line %(n)s", n=first)
        return _("lines %(first)s to %(last)s", first=first, last=last)

    def _numbers(self, row: int, *, every: bool = False) -> tuple[int, int]:
        """Return the first and last line, from 1, of a row; ``every``: lines of dashes count."""
        end = self.header.body
        if self.by_line:
            return end + row + 1, end + row + 1
        with opened_lines(self.path, self.encoding) as lines:
            below = itertools.islice(lines, end, None)
            for record in records(below, self.delimiter, end):
                odd = len(record.fields) != len(self.header.names)
                skipped = odd and is_rule(self.delimiter.join(record.fields))
                end = record.end
                if record.first + 1 not in self.lines.repeated and (every or not skipped):
                    row -= 1
                if row < 0:
                    return record.first + 1, record.end
        return end + 1, end + 1
