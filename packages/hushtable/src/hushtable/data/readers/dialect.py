"""The layout of a table in texts: found in its first lines, or refused with the option for it.

The header rule is the same for the lines of a CSV file and the rows of a sheet.
"""

import contextlib
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushtable.data.labels import fold, fold_names
from hushtable.data.readers.encoding import codec, first_lines
from hushtable.data.readers.reader import FileLayout, Unasked
from hushtable.data.readers.totals import FirstRows, is_number, shape
from hushtable.errors import DataError, UsageError
from hushtable.language import N_, _, ngettext
from hushtable.words.refusals import refusal, refused

#: Blanks that fill the fields of columns of fixed width.
_PADDED = re.compile(r"\S {2,}\S")
#: Possible delimiters; the rare ones only if they are given.
_DELIMITERS, _RARE = ",;\t|", ":^~"
_DELIMITER_WORDS = {"\\t": "\t", "tab": "\t"}
#: Lines of these characters are not rows; the last marked the end of files in the past.
_RULE = frozenset(" \t-=_+|\x1a")
_YEAR = re.compile(r"(1[5-9]|20)\d\d")
_OTHER_FORMAT = re.compile(r"\s*(<(!doctype|html|table|\?xml|!--)|\[?\s*\{\s*\")", re.IGNORECASE)
#: Units below names, and those that are nothing else.
_UNIT = re.compile(
    r"%|°[CF]?|[µnmkcdMG]?(?:g|l|L|m|s|A|V|W|Hz|Pa|mol|Eq|U|IU|J)[23²³]?|mmHg|bpm|h|min|a|years?|"
    r"days?|Jahre|[\w°%µ]{1,6}/[\w²³.]{1,6}|°\w"
)
_DASHES, _UNITS = N_("dashes"), N_("units")
_SURE_UNIT = re.compile(r"[/%°µ]|^(?:mm|cm|kg|mg|mmHg|Jahre|years)$")
#: Largest number of columns, which is that of a schema's features; and of those that are checked.
_MOST_COLUMNS, _MOST_CHECKED = 65_535, 1_000
_NOTHING = frozenset({"na", "n/a", "nan", "null", "none", "-", "--", "?", "."})


@dataclass(frozen=True)
class Record:
    """Fields between two line ends that are not quoted, or the cells of a row of a sheet."""

    #: From 0, in the file: its first line, and the line after its last.
    first: int
    end: int
    fields: list[str]

    @property
    def filled(self) -> int:
        """Number of fields that are not empty."""
        return sum(1 for field in self.fields if field.strip())

    @property
    def bare(self) -> list[str]:
        """Fields, without an empty one after a trailing delimiter."""
        return self.fields if self.fields[-1].strip() else self.fields[:-1]

    def has(self, j: int) -> bool:
        """Return whether there is a value in the j-th field."""
        return j < len(self.fields) and bool(self.fields[j].strip())


def is_rule(text: str) -> bool:
    """Return whether a line has only dashes or blanks, so that it is not a row."""
    return _RULE.issuperset(text.strip())


def records(lines: Iterable[str], delimiter: str, first: int = 0) -> Iterator[Record]:
    """Split lines, numbered from ``first``, into records; leave out blank ones."""
    reader = csv.reader(lines, delimiter=delimiter)
    begin = first
    with contextlib.suppress(csv.Error):  # a field beyond the library's limit
        for fields in reader:
            end = first + reader.line_num
            if fields:
                yield Record(begin, end, fields)
            begin = end


def _rows(lines: Sequence[str], delimiter: str, first: int) -> list[Record]:
    every = records(lines, delimiter, first)
    return [r for r in every if len(r.fields) > 1 or not is_rule("".join(r.fields) or " ")]


def _width(rows: Sequence[Record]) -> tuple[int, int]:
    counts = Counter(len(row.fields) for row in rows)
    width = max(counts, key=lambda w: (counts[w], w), default=1)
    return width, counts[width]


def _find_delimiter(lines: Sequence[str], source: str) -> str:
    ranks = {}
    for delimiter in _DELIMITERS + _RARE:
        rows = _rows(lines, delimiter, 0) if any(delimiter in line for line in lines) else []
        width, times = _width(rows)
        if width > 1 and (delimiter in _DELIMITERS or times == len(rows) > 1):
            fields = [field for row in rows if len(row.fields) == width for field in row.fields]
            ranks[delimiter] = (times / len(rows), sum(map(is_number, fields)) / len(fields))
    if not ranks:
        _check_one_column(lines, source)
        return ","
    best = sorted(ranks, key=ranks.__getitem__, reverse=True)
    if len(best) > 1 and ranks[best[0]] == ranks[best[1]]:
        raise refused("two_delimiters", source=source, one=best[0], other=best[1])
    if best[0] in _RARE:
        raise refused("rare_delimiter", source=source, one=best[0])
    return best[0]


def _check_one_column(lines: Sequence[str], source: str) -> None:
    fields = [row.fields[0] for row in _rows(lines, ",", 0) if len(row.fields) == 1]
    for delimiter in _DELIMITERS:
        each = {field.count(delimiter) for field in fields}
        if len(fields) > 1 and len(each) == 1 and each != {0} and lines[0].startswith('"'):
            raise refused("quoted_lines", source=source, one=delimiter, n=each.pop())
    if sum(_PADDED.search(line) is not None for line in lines) > len(lines) / 2:
        raise refused("fixed_width", source=source)
    blanks = {len(line.split()) for line in lines if line.strip()}
    if len(lines) > 1 and len(blanks) == 1 and blanks != {1}:
        split = [row.fields for row in _rows(lines, " ", 0)]
        one_each = len({len(fields) for fields in split}) == 1 and all(map(all, split))
        raise refused("blanks", add="--read 'delimiter= '" if one_each else "", source=source)


def _delimiter_of_names(lines: Sequence[str], unasked: Unasked) -> str:
    places = {}
    for delimiter in _DELIMITERS + _RARE:
        rows = _rows(lines, delimiter, 0) if any(delimiter in line for line in lines) else []
        at = next((row for row in rows if unasked.is_header(row.fields)), None)
        if at is not None:
            places[delimiter] = at.first, -len(at.fields)
    return min(places, key=places.__getitem__, default=",")


def find_dialect(path: Path, layout: FileLayout) -> tuple[str, str, "Header", list[str], FirstRows]:
    """Return the encoding and the delimiter of a file, its names, the lines above, and first rows.

    They follow from its first lines; raises an error in case of doubt.
    """
    source, start, footer = str(path), layout.skip_lines or 0, layout.skip_footer or 0
    given = layout.delimiter and _DELIMITER_WORDS.get(layout.delimiter, layout.delimiter)
    if given is not None and (len(given) != 1 or ord(given) > 126 or given in '"\r\n\0'):
        raise UsageError(f"delimiter {given!r}: needs one character, such as ';' or tab")
    encoding, lines = first_lines(
        path,
        layout.encoding and codec(layout.encoding),
        asked=layout.unasked is None,
        footer=footer,
        delimiter=given or _DELIMITERS,
    )
    if _OTHER_FORMAT.match(lines[0] if lines else ""):
        raise refused("other_format", source=source)
    if not any(line.strip() for line in lines[start:]):
        raise refused(
            "no_lines_left" if start or footer else "no_lines", source=source, line=start, n=footer
        )
    if given:
        delimiter = given
    elif layout.unasked is None:
        delimiter = _find_delimiter(lines[start:], source)
    else:
        delimiter = _delimiter_of_names(lines[start:], layout.unasked)
    rows = _rows(lines[start:], delimiter, start)
    if not rows:
        raise refused("no_fields", source=source, delimiter=delimiter)
    header = HeaderSearch(rows, layout, start, source, "line", delimiter).header()
    check_once(header, source, "line")
    body, width = [row for row in rows if row.first >= header.body], len(header.names)
    if encoding != "utf-8" and not layout.encoding:
        header.notes.append(_("encoding %(name)s", name=encoding))
    if delimiter not in ",;\t" and not layout.delimiter:
        header.notes.append(_("delimiter %(sign)s", sign=repr(delimiter)))
    first = FirstRows.of([row.fields for row in body if len(row.fields) == width], width)
    return encoding, delimiter, header, lines[: header.body], first


@dataclass(frozen=True)
class Header:
    """Names of columns, and where the rows below them begin."""

    #: Names of all columns; those in ``left_out`` have neither a name nor values.
    names: tuple[str, ...]
    left_out: tuple[str, ...]
    #: Number of the first line below the names.
    body: int
    #: The names as they are written; None if there are none.
    at: Record | None
    #: Words on what is unusual.
    notes: list[str]


@dataclass(frozen=True)
class HeaderSearch:
    """The search for the names among the first rows, from the one numbered ``start`` on.

    Messages call a row ``line``, and columns by ``labels``; a sheet has no ``delimiter``.
    """

    rows: Sequence[Record]
    layout: FileLayout
    start: int
    source: str
    line: str
    delimiter: str = ""
    labels: Sequence[str] = ()

    def header(self) -> Header:
        """Return the names, and where the rows begin; raises `DataError` in case of doubt."""
        unasked, width = self.layout.unasked, _width(self.rows)[0]
        if width > _MOST_COLUMNS:
            raise refused("too_wide", source=self.source, n=width, n_most=_MOST_COLUMNS)
        if self.layout.header is False:
            if unasked is not None:
                raise UsageError(
                    f"{self.source}: without column names, the number of columns could only be "
                    "guessed from values, which is not allowed when no person can be asked: add a "
                    "header line"
                )
            return Header(tuple(f"column {j + 1}" for j in range(width)), (), self.start, None, [])
        if unasked is not None:
            return self._known(unasked)
        at = 0 if self.layout.skip_lines is not None else self._line_of_names()
        head, notes = self.rows[at], []
        if self.layout.skip_lines is None and head.first > self.start:
            n = head.first - self.start
            notes.append(ngettext("%(n)s line above the header", "%(n)s lines above the header", n))
        below, body = self._below(at, notes)
        if self.layout.skip_below is None and below and (what := _no_row(below[0])):
            notes.insert(0, _("line %(n)s (%(what)s) left out", n=body + 1, what=_(what)))
            below, body = below[1:], below[0].end
        names, width = self._names(at), _width(below)[0] if below else len(head.fields)
        self._check_rows(names, at)
        if self.delimiter and len(names) != width and _width(below)[1] > max(1, len(below) / 2):
            raise self._refused("names_of_fields", head, n=len(names), n_fields=width)
        left_out = self._name_columns(names, at, below, notes)
        return Header(tuple(names), tuple(left_out), body, head, notes)

    def _known(self, unasked: Unasked) -> Header:
        """Return the names of a schema, which no row may decide."""
        rows = self.rows[:1] if self.layout.skip_lines is not None else self.rows
        at = next((i for i, row in enumerate(rows) if unasked.is_header(row.fields)), None)
        if at is None:
            raise DataError(
                f"{self.source}: none of its first {self.line}s contains all required column "
                f"names, {list(unasked.names)[:5]}: add a header line above the rows"
            )
        names = [name or f"column {j + 1}" for j, name in enumerate(self._names(at))]
        return Header(tuple(names), (), self._below(at, [])[1], self.rows[at], [])

    def _below(self, at: int, notes: list[str]) -> tuple[Sequence[Record], int]:
        """Return the rows below the names, and where they begin, without those to skip."""
        below, n = self.rows[at + 1 :], self.layout.skip_below or 0
        if not 0 <= n <= len(below):
            raise UsageError(
                f"{self.source}: --read skip_below={n}: needs the number of {self.line}s below the "
                f"names that are not rows: 0 to {len(below)}"
            )
        if not n:
            return below, self.rows[at].end
        notes.append(
            ngettext(
                "%(n)s line below the names left out", "%(n)s lines below the names left out", n
            )
        )
        return below[n:], below[n - 1].end

    def _names(self, at: int) -> list[str]:
        head, below = self.rows[at], self.rows[at + 1 :]
        written = [name.strip() for name in head.fields if fold(name)]
        if len(set(written)) == len(written):  # others are visibly listed twice
            fold_names(written, f"{self.source}: {self.line} {head.first + 1}")
        names = [fold(name) for name in head.fields]
        width = _width(below)[0] if below else len(names)
        if len(names) == width - 1 and all(len(row.bare) < width for row in below):
            names.append("")  # only the rows do
        return names

    def _line_of_names(self) -> int:
        """Return which record holds the names: the first with as many fields as most."""
        width = _width(self.rows)[0] if self.delimiter else max(row.filled for row in self.rows)
        for at, row in enumerate(self.rows):
            # Each row may end in a delimiter even if the names do not.
            short = len(row.fields) == width - 1
            short = short and all(len(other.bare) < width for other in self.rows[at + 1 :])
            wide = not self.delimiter or short or width in (len(row.fields), len(row.bare))
            if wide and 2 * row.filled > width:  # otherwise, it is a title
                break
        else:
            at = next((i for i, row in enumerate(self.rows) if len(row.fields) == width), 0)
        if at > 0 and width == 2 and self._is_above_index(at - 1):
            hits, misses = self._numbers(self.rows[at].fields, at)
            at -= hits > 0 or misses == 0
        other = next((row for row in self.rows[:at] if 2 * row.filled > width), None)
        hits, misses = self._numbers(self.rows[at].fields, at)
        # A line with several numbers is a row, and no title.
        table = sum(sum(map(is_number, row.fields)) > 1 for row in self.rows[:at]) > 2
        sure = 0 < misses >= 3 * hits and not table
        if self.layout.header is None and other is not None and not sure:
            first = self.rows[at].first
            raise self._refused(
                "two_headers", other, n=len(other.fields), n_fields=width, other=first + 1,
                other_skipped=first,
            )  # fmt: skip
        return at

    def _refused(self, kind: str, at: Record, **facts: Any) -> DataError:
        """Return the error about the names in a line."""
        return refused(
            kind, source=self.source, word=self.line, number=at.first + 1, skipped=at.first,
            delimiter=self.delimiter, by_number=refusal("by_number", end=at.end), end=at.end,
            **facts,
        )  # fmt: skip

    def _numbers(self, names: Sequence[str], at: int) -> tuple[int, int]:
        """Count numeric columns whose name is also a number, and those whose name is not."""
        hits = misses = 0
        for j, name in enumerate(names[:_MOST_CHECKED]):
            values = [row.fields[j] for row in self.rows[at + 1 :] if row.has(j)]
            if values and re.search(r"\d", name) and _is_alike(name, values):
                hits += 1
            elif values and name and sum(map(is_number, values)) >= 0.8 * len(values):
                doubtful = is_number(name) or name.lower() in _NOTHING
                hits, misses = hits + doubtful, misses + (not doubtful)
        return hits, misses

    def _is_above_index(self, at: int) -> bool:
        """Return whether only the first field is empty, above a column without empty fields.

        So pandas and R write the index of a table.
        """
        first, *others = self.rows[at].fields
        below = [row for row in self.rows[at + 1 :] if len(row.fields) == len(others) + 1]
        return bool(
            not first.strip()
            and others
            and all(name.strip() for name in others)
            and below
            and all(row.has(0) for row in below[:-1] or below)
        )

    def _check_rows(self, names: list[str], at: int) -> None:
        """Raise `DataError` if the line of names looks like a row."""
        if self.layout.header or self.layout.skip_lines is not None:
            return
        index = self._is_above_index(at)
        of_matrix = names[1:] if index else names
        if len(names) > 2 and of_matrix in (
            [str(j + k) for j in range(len(of_matrix))] for k in (0, 1)
        ):
            return  # the column numbers of a matrix
        hits, misses = self._numbers(names, at)
        again = 0 if index and misses else self._n_again(names, at)
        if hits + again <= misses / 3:
            return
        first = self.rows[at].first
        sure = index or (misses > 0 and not again and self._are_names(names, at))
        skipped = f" --read skip_lines={first}" if first or sure else ""
        # Names must not become a row, nor a row names: in doubt, a person decides.
        years = sum(_YEAR.fullmatch(name) is not None for name in names) > 1
        sample = "".join(f"\n  {' | '.join(row.fields)[:70]}" for row in self.rows[at : at + 3])
        ways = f"\nAdd:{'' if sure else ' --read no_header=true'}{skipped}"
        split = at > 0 and bool(self.delimiter)
        other = refusal("or_delimiter", delimiter=self.delimiter) if split else ""
        below = f" --read skip_lines={first}" if first else ""
        words = str(self._refused("like_row", self.rows[at], below=below, otherwise=other))
        # A comma may be the decimal sign of a file with one column.
        cut = split and self.delimiter == ","
        likely = sure or (not cut and (again > misses or not (misses or years)))
        raise DataError(words + (ways if likely else sample))

    def _are_names(self, names: Sequence[str], at: int) -> bool:
        """Return whether a column of texts that repeat does not hold its name."""
        for j, name in enumerate(names):
            values = [row.fields[j] for row in self.rows[at + 1 :] if row.has(j)]
            texts = {fold(value) for value in values}
            repeat = values and 2 * len(texts) <= len(values) and not any(map(is_number, texts))
            if repeat and re.search(r"[^\W\d_]", name) and name not in texts:
                return True
        return False

    def _n_again(self, names: Sequence[str], at: int) -> int:
        """Return how many names a row below holds in their columns, without header lines."""
        whole = [row.fields for row in self.rows[at + 1 :] if len(row.fields) == len(names)]
        table, columns = FirstRows.of(whole, len(names)), set()
        for fields in whole:
            again = {j for j, name in enumerate(names) if name and name == fold(fields[j])}
            if again and fields != self.rows[at].fields and not table.is_names(fields):
                columns |= again
        return len(columns)

    def _name_columns(
        self, names: list[str], at: int, below: Sequence[Record], notes: list[str]
    ) -> list[str]:
        head, below = self.rows[at], [row for row in below if len(row.fields) > 1]
        left_out, nameless = [], [j for j, name in enumerate(names) if not name]
        filled = [j for j in nameless if any(row.has(j) for row in below)]
        for j in nameless:
            names[j] = f"column {j + 1}"
            if j not in filled:
                left_out.append(names[j])
        # A row with no other value is not one: pandas writes the names of an index there.
        if filled == [0] and len(names) > 1 and below[0].filled > 1:
            notes.append(_("column 1 has no name: called %(name)s", name=repr(names[0])))
        elif filled:
            label = self.labels[filled[0]] if self.labels else filled[0] + 1
            raise self._refused("no_name", head, column=label)
        if len(left_out) == len(names):
            raise self._refused("no_names", head)
        if self.delimiter:
            notes += [
                _("%(name)s without name and values left out", name=name) for name in left_out
            ]
        return left_out


def check_once(header: Header, source: str, line: str) -> None:
    """Raise `DataError` if two columns have the same name."""
    twice = [name for name, times in Counter(header.names).items() if times > 1]
    if twice and header.at is not None:
        raise refused(
            "twice", source=source, name=twice[0], word=line, number=header.at.first + 1,
            by_number=refusal("by_number", end=header.at.end),
        )  # fmt: skip


def is_unit(text: str) -> bool:
    """Return whether a text is a unit of numbers, also in brackets."""
    return _UNIT.fullmatch(text.strip(" []()")) is not None


def _no_row(row: Record) -> str:
    """Describe a line below the names that is not a row: dashes, or units."""
    fields = [field.strip() for field in row.fields if field.strip()]
    for what, pattern in ((_DASHES, ":?-+:?"), (_UNITS, r"\[.*\]|\(.*\)")):
        if fields and all(re.fullmatch(pattern, field) for field in fields):
            return "" if what == _UNITS and any(map(is_number, fields)) else what
    if fields and all(map(_UNIT.fullmatch, fields)) and any(map(_SURE_UNIT.search, fields)):
        return _UNITS
    return ""


def _is_alike(name: str, values: Sequence[str]) -> bool:
    """Return whether a name looks like the values below it, letters included."""
    form, every = shape(name), [re.sub(r"\d+", "9", value) for value in values]
    if any(shape(value) != form for value in values):
        return False
    # With few different letters, a name has them if it is a value.
    return 2 * len(set(every)) > len(every) or re.sub(r"\d+", "9", name) in every
