"""Rows in a CSV file, with each field as text; its meaning is decided elsewhere."""

import contextlib
import csv
import io
import itertools
import re
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from hushtable.data.columns import texts_column
from hushtable.data.labels import fold, fold_texts
from hushtable.data.readers.below import Below, MiddleRows, second_table
from hushtable.data.readers.dialect import Dialect, find_dialect, is_remark, is_rule, records
from hushtable.data.readers.encoding import Text, decompressed, is_blank, opened_lines, opened_text
from hushtable.data.readers.reader import Batch, FileLayout, Reader, Unasked, of_file, split
from hushtable.data.readers.totals import (
    MOST_SUMMARIES,
    TOTAL,
    n_summaries,
    skipping,
    subtotals,
    subtotals_refused,
    total_refused,
)
from hushtable.errors import DataError
from hushtable.language import _, ngettext

_BLOCK = 1 << 22
#: Number of lines to list in a message.
_LISTED = 8
_BREAK = re.compile(r"\r\n?|\n")


def csv_file(path: Path, layout: FileLayout) -> Reader:
    """Read a CSV file, some rows at a time."""
    return _File(path, find_dialect(path, layout), layout).reader()


@dataclass
class _File:
    path: Path
    dialect: Dialect
    layout: FileLayout
    #: Whether Arrow left out lines of dashes.
    skipped: bool = False
    #: Whether a whole pass has been made; and whether it showed that each row is one line.
    passed: bool = False
    row_by_line: bool = False
    #: The error at which Arrow gave up.
    odd: arrow_csv.InvalidRow | None = None
    #: Whether this only tests how many lines to leave out at the end; and how many are needed.
    trial: bool = False
    needed: int = 0
    #: Numbers of the lines below that repeat the line of names exactly; they are left out.
    again: tuple[int, ...] = ()

    @property
    def unasked(self) -> Unasked | None:
        """Collects notes on lines that are not rows, if no person can be asked."""
        return self.layout.unasked

    def reader(self) -> Reader:
        left_out = self.dialect.left_out
        kept = tuple(name for name in self.dialect.names if name not in left_out)

        def batches(columns: list[str] | None) -> Iterator[tuple[int, Batch]]:
            return self._checked(list(kept if columns is None else columns))

        dialect, words = self.dialect, self.dialect.found
        if self.unasked is None and len(dialect.written) == len(dialect.names) > 1:
            self.again = repeats(self.path, dialect)
            self.skipped = bool(self.again)
        if self.again:
            more = ", ..." if len(self.again) > _LISTED else ""
            listed = f"{', '.join(map(str, self.again[:_LISTED]))}{more}"
            words = (*words, ngettext(
                "line %(lines)s repeats the names, and is left out",
                "lines %(lines)s repeat the names, and are left out",
                len(self.again), lines=listed,
            ))  # fmt: skip
        found = of_file(self.path, kept, batches)
        return replace(found, place=self.place, found=words, delimiter=dialect.delimiter)

    def _checked(self, columns: list[str]) -> Iterator[tuple[int, Batch]]:
        """Yield bytes read and rows; at the end, refuse accepted lines that are not rows."""
        dialect, rows, asked = self.dialect, 0, self.unasked is None
        counting = not self.passed
        middle = MiddleRows(dialect.names, dialect.first) if counting and asked else None
        further = [] if middle is None else middle.further([*columns, *dialect.left_out])
        with self._opened(counting=counting) as (raw, text):
            for batch in self._rows(text, [*columns, *dialect.left_out, *further]):
                if dialect.left_out:
                    self._check_left_out(batch, rows)
                if middle is not None:
                    self._check_names_again(batch.select(columns), rows)
                    middle.add(batch, rows)
                for part in split(iter([batch.select(columns)])):
                    yield raw.tell(), part
                rows += len(batch)
        if asked and rows:
            self._check_end(text, rows, middle)
        if counting:
            lines = text.ends - dialect.lines + (not text.tail.endswith(b"\n"))
            self.row_by_line = lines == rows and not self.again
            if asked and not self.row_by_line:
                self._check_second_table()
            if text.quoted and not self.row_by_line:
                (self._check_breaks if asked else self._check_quotes)()
            self.passed = True

    def _opened(self, *, counting: bool = False) -> AbstractContextManager[tuple[Any, Text]]:
        return opened_text(
            self.path,
            self.dialect.encoding,
            counting=counting,
            asked=self.unasked is None,
            footer=self.dialect.footer,
            delimiter=self.dialect.delimiter,
        )

    @contextlib.contextmanager
    def _opened_lines(self) -> Iterator[Iterator[str]]:
        """Open the file's lines, without the skipped lines at the end."""
        with self._opened() as (_, text):
            yield io.TextIOWrapper(io.BufferedReader(text), "utf-8", newline="")

    def _rows(self, text: Text, columns: list[str]) -> Iterator[pa.RecordBatch]:
        names = self.dialect.names
        wanted, columns = columns, list(names) if self.again else columns
        reading = arrow_csv.ReadOptions(block_size=_BLOCK, use_threads=False, column_names=names)
        parsing = arrow_csv.ParseOptions(
            delimiter=self.dialect.delimiter,
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
            text.skip(self.dialect.size)
            with arrow_csv.open_csv(pa.PythonFile(text, "r"), reading, parsing, converting) as file:
                for batch in file:
                    batch = self._without_names(batch).select(wanted) if self.again else batch
                    done += len(batch)
                    yield batch
        except pa.ArrowInvalid as error:
            if str(error) != "Empty CSV file":
                raise DataError(f"{self.path}: {self._explained(str(error), done)}") from None

    def _without_names(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows without those that hold the name of each column."""
        fits = [
            pc.equal(pc.fill_null(column, ""), texts_column([name])[0])
            for name, column in zip(self.dialect.written, batch.columns, strict=True)
        ]
        return batch.filter(pc.invert(reduce(pc.and_, fits)))

    def _on_odd_row(self, row: arrow_csv.InvalidRow) -> str:
        if self._is_skipped(row.text):
            self.skipped = True
            return "skip"
        if self.unasked is not None:
            if not self.passed:
                what = f"{self.path}: lines with more or fewer fields than names, left out"
                self.unasked.note(what, 1, lambda: f"the line that begins {row.text[:20]!r}")
            self.skipped = True
            return "skip"
        self.odd = row
        return "error"

    def _is_skipped(self, text: str) -> bool:
        """Return whether a line whose number of fields differs from the names is not a row."""
        return is_rule(text) or (self.dialect.remarks and is_remark(text))

    def _explained(self, error: str, done: int) -> str:
        """Explain an error of Arrow after ``done`` rows: what is wrong, where, and what to do."""
        if self.odd is not None:
            return self._odd_words(self.odd)
        if "invalid UTF8" in error:
            with opened_lines(self.path, "utf-8") as lines:
                line = next((i for i, text in enumerate(lines, 1) if "\ufffd" in text), 0)
            return (
                f"line {line} is not UTF-8, unlike the lines above it: give the encoding, such as "
                "--read encoding=cp1252"
            )
        if "straddling" in error:
            return (
                f"a field in or below {self.place(done)} is longer than {_BLOCK >> 20} MB, so a "
                "quotation mark may be unclosed: correct the line, or export again"
            )
        return error

    def _odd_words(self, row: arrow_csv.InvalidRow) -> str:
        want, got, delimiter = row.expected_columns, row.actual_columns, self.dialect.delimiter
        line = self._lines(row.number - 1, every=True)[0]
        words = (
            f"line {line} has {got} field{'s' * (got != 1)}, but needs {want} (delimiter "
            f"{delimiter!r}): it begins {row.text[:40]!r}. "
        )
        swallowed = _BREAK.search(row.text) and delimiter in row.text
        if not swallowed and (below := self._below(line)):
            return words + below
        if TOTAL.match(row.text):
            return words + "If it is a total: delete it, or export without totals"
        if _BREAK.search(row.text):
            return words + "A quotation mark in it may be unclosed: correct the line"
        above = (
            f"; if the table begins below it, add --read skip_lines={line}"
            if row.number < 3
            else ""
        )
        if got > want:
            return words + (
                f"Export with quotation marks around texts that hold {delimiter!r}, or with "
                f"another delimiter{above}"
            )
        return words + f"Correct or delete it; if the file was truncated, export it again{above}"

    def _check_left_out(self, batch: pa.RecordBatch, done: int) -> None:
        """Raise `DataError` if a column without a name has a value."""
        for name in self.dialect.left_out:
            if batch.column(name).null_count < len(batch):
                row = pc.index(pc.is_valid(batch.column(name)), True).as_py()
                j = self.dialect.names.index(name) + 1
                raise DataError(
                    f"{self.path}: {self.place(done + row)} has "
                    f"{batch.column(name)[row].as_py()!r} in column {j}, which has no name and was "
                    "empty so far: correct the line, or give the column a name"
                )

    def _check_names_again(self, batch: pa.RecordBatch, done: int) -> None:
        """Raise `DataError` if a row repeats the names, as in concatenated exports."""
        if not self.dialect.named or batch.num_columns == 1:
            return
        names = batch.schema.names
        # Not pc.index(..., names[0]): converting Python texts to Arrow imports pandas first.
        text = names[0].encode()
        ends, data = pa.py_buffer(struct.pack("=ii", 0, len(text))), pa.py_buffer(text)
        first = pa.StringArray.from_buffers(1, ends, data)[0]
        row = pc.index(fold_texts(batch.column(0)), first).as_py()
        fields = batch.slice(row, 1).to_pylist()[0].values() if row >= 0 else ()
        if fields and [fold(field or "") for field in fields] == names:
            raise DataError(
                f"{self.path}: {self.place(done + row)} repeats the names of the columns: delete "
                "it, or export into separate files"
            )

    def _below(self, line: int, *, names: bool = False) -> str:
        """Return what to do with lines from this one on, below the table; empty if they are rows.

        ``names``: the line holds the names of a second table.
        """
        dialect = self.dialect
        with opened_lines(self.path, dialect.encoding) as lines:
            below = Below.of(lines, line, dialect.delimiter, dialect.first)
        what = "a second table" if names else below.what
        if not what:
            return ""
        n = self.needed = below.n_lines
        if self.trial:
            return what
        while trial := self._tried(n):
            if trial <= n:
                more = " and the totals above it" * (n > below.n_lines)
                return (
                    f"It seems to begin {what} below the table: delete the lines from there on"
                    f"{more}, or leave them out{skipping(n)}"
                )
            n = trial
        return ""

    def _tried(self, n: int) -> int:
        """Return how many lines to leave out: n, more if these are too few, 0 if unknown."""
        layout = replace(self.layout, skip_footer=n)
        try:
            trial = _File(self.path, find_dialect(self.path, layout), layout, trial=True)
        except DataError:
            return 0
        try:
            for _ in trial.reader().read():
                pass
        except DataError:
            return trial.needed if trial.needed > n else 0
        return n

    def _check_subtotals(self, middle: MiddleRows, end: int) -> None:
        """Raise `DataError` if rows before ``end`` sum up others."""
        rows = subtotals(middle.rows, self.dialect.first, lambda j: self._above(j, None))
        if rows and rows[0] < end:
            begins = self.dialect.delimiter.join(dict(middle.rows)[rows[0]])
            lines = [self._lines(row)[0] for row in rows[:100]]
            lines += [0] * (len(rows) - len(lines))  # which are only counted
            raise subtotals_refused(str(self.path), "lines", lines, begins)

    def _check_second_table(self) -> None:
        """Raise `DataError` if the names of a second table follow a blank line."""
        with self._opened_lines() as lines:
            line = second_table(lines, self.dialect)
        if line:
            self._refuse_second_table(line)

    def _refuse_second_table(self, line: int) -> None:
        words = self._below(line, names=True) or "Export it into a separate file"
        raise DataError(
            f"{self.path}: line {line}, below an empty line, is not a row: it holds words where "
            f"there are numbers above. {words}"
        )

    def _check_end(self, text: Text, rows: int, middle: MiddleRows | None) -> None:
        """Raise `DataError` if lines, the last or others, sum up those above them."""
        if middle is not None and (row := middle.second_table()) is not None:
            self._refuse_second_table(self._lines(row)[0])
        lines = text.tail.decode(errors="replace").splitlines(keepends=True)[-4 * MOST_SUMMARIES :]
        last = []
        with contextlib.suppress(ValueError, csv.Error):
            last = [*records(lines, self.dialect.delimiter)]
        width = len(self.dialect.names)
        odd = [i for i, one in enumerate(last) if len(one.fields) != width]
        last = last[odd[-1] + 1 :] if odd else last
        fields = [one.fields for one in last][-rows:]
        n = n_summaries(fields, self.dialect.first, rows, self._above)
        if middle is not None:
            self._check_subtotals(middle, rows - n)
        if n:
            first, signs = last[-n].first, f"{self.dialect.delimiter} \t"
            self.needed = self.dialect.footer + sum(
                not is_blank(one, signs) for one in lines[first:]
            )
            above, end = self._lines(rows - n)[0], self._lines(rows - 1)[1]
            where = f"line {above}" if above == end else f"lines {above} to {end}"
            begins = lines[first][:40].rstrip()
            raise total_refused(f"{self.path}: {where}", begins, self.needed, several=n > 1)

    def _above(self, j: int, n_rows: int | None) -> pa.Array:
        """Return the texts of a column in the first rows."""
        name = self.dialect.names[j]
        with self._opened() as (_, text):
            table = pa.Table.from_batches(self._rows(text, [name]))
        return table.column(name).combine_chunks().slice(0, n_rows)

    def _check_breaks(self) -> None:
        """Raise `DataError` if a field has swallowed rows because a quotation mark is missing."""
        rows, further = 0, len(self.dialect.names) - 1
        with self._opened() as (_, text):
            for batch in self._rows(text, list(self.dialect.names)):
                for column in batch.columns:
                    broken = pc.match_substring_regex(column, "[\r\n]")
                    for row in pc.indices_nonzero(broken).to_pylist():
                        value = column[row].as_py()
                        lines, fields = _BREAK.split(value), value.count(self.dialect.delimiter)
                        if fields in {further * (len(lines) - 1), further * (len(lines) - 2)} - {0}:
                            line = self._lines(rows + row)[0]
                            raise DataError(
                                f"{self.path}: line {line} opens a quotation mark, and its field "
                                f"runs over {len(lines)} lines that look like rows: close or "
                                "delete the mark, or export again"
                            )
                rows += len(batch)

    def _check_quotes(self) -> None:
        """Raise `DataError` if the quotation marks in any line do not follow CSV.

        Only the form is checked: a quoted text may hold anything, including line breaks.
        """
        with self._opened_lines() as lines:
            for _ in itertools.islice(lines, self.dialect.lines):
                pass
            rows = csv.reader(lines, delimiter=self.dialect.delimiter, strict=True)
            try:
                for _ in rows:
                    pass
            except csv.Error as error:
                if "limit" not in str(error):  # a long text is not an error
                    raise DataError(
                        f"{self.path}: line {self.dialect.lines + rows.line_num} is not valid CSV "
                        f"({error}), so a quotation mark may be unclosed: export the file again"
                    ) from None

    def place(self, row: int) -> str:
        """Return ``line 19``, or ``lines 19 to 21``, for a row that is numbered from 0."""
        first, last = self._lines(row)
        if first == last:
            return _("line %(n)s", n=first)
        return _("lines %(first)s to %(last)s", first=first, last=last)

    def _lines(self, row: int, *, every: bool = False) -> tuple[int, int]:
        """Return the first and last line, from 1, of a row; ``every``: lines of dashes count."""
        dialect, done, before = self.dialect, 0, b"\n"
        by_row = dialect.lines + row + 1, dialect.lines + row + 1
        if self.row_by_line:
            return by_row
        with self._opened() as (_, text):
            text.skip(dialect.size)
            # Lines are rows, unless there are quotation marks, blank lines or unusual line ends.
            while not self.skipped and (block := text.read(_BLOCK)):
                if _not_plain(before + block):
                    break
                done, before = done + block.count(b"\n"), block[-1:]
                if done > row:
                    return by_row
            else:
                if done == row and not self.skipped:  # the last line, without an end
                    return by_row
        return self._lines_slowly(row, every=every)

    def _lines_slowly(self, row: int, *, every: bool) -> tuple[int, int]:
        dialect, end = self.dialect, self.dialect.lines
        with opened_lines(self.path, dialect.encoding) as lines:
            for _ in itertools.islice(lines, dialect.lines):
                pass
            with contextlib.suppress(csv.Error):  # a field beyond the limit of the csv library
                for record in records(lines, dialect.delimiter, end):
                    odd = len(record.fields) != len(dialect.names)
                    if record.first + 1 in self.again and not every:
                        end = record.end
                        continue
                    if every or not (
                        odd and self._is_skipped(dialect.delimiter.join(record.fields))
                    ):
                        row -= 1
                    if row < 0:
                        return record.first + 1, record.end
                    end = record.end
        return end + 1, end + 1


def repeats(path: Path, dialect: Dialect) -> tuple[int, ...]:
    """Return the numbers of the lines below the names that are the line of names again."""
    with opened_lines(path, dialect.encoding) as lines:
        first = list(itertools.islice(lines, dialect.lines))
    written, found = list(dialect.written), ""
    for one in first:
        if next(csv.reader([one], delimiter=dialect.delimiter), []) == written:
            found = one
    line = found.lstrip("\ufeff").rstrip("\r\n")
    if not line or not _holds(path, line.encode(dialect.encoding.replace("utf-8-sig", "utf-8"))):
        return ()
    with opened_lines(path, dialect.encoding) as lines:
        return tuple(
            n for n, text in enumerate(lines, 1)
            if n > dialect.lines and text.lstrip("\ufeff").rstrip("\r\n") == line
        )  # fmt: skip


def _holds(path: Path, line: bytes) -> bool:
    """Return whether a file, decompressed, holds some bytes twice."""
    times, end = 0, b""
    with pa.OSFile(str(path)) as raw, decompressed(raw) as plain:
        while block := plain.read(_BLOCK):
            whole = end + block
            times += whole.count(line)
            end = whole[len(whole) - len(line) + 1 :] if len(line) > 1 else b""
    return times > 1


def _not_plain(block: bytes) -> bool:
    """Return whether lines may not be rows: quotation marks, blank lines, ends of old Macs."""
    if any(mark in block for mark in (b'"', b"\n\n", b"\n\r\n")):
        return True
    return block.count(b"\r") - block.endswith(b"\r") != block.count(b"\r\n")
