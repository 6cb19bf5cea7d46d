"""The layout of a CSV file: found in its first lines, or refused with the option that states it."""

import contextlib
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hushtable.data.labels import fold, fold_names
from hushtable.data.readers.encoding import (
    blank_words,
    codec,
    first_lines,
    footer_begins,
)
from hushtable.data.readers.reader import FileLayout, Unasked
from hushtable.data.readers.totals import (
    FirstRows,
    has_letters,
    is_number,
    left_out_words,
    shape,
    starts_with_summary,
)
from hushtable.errors import DataError, UsageError
from hushtable.language import N_, _, ngettext

#: Blanks that fill the fields of columns of fixed width.
_PADDED = re.compile(r"\S {2,}\S")
#: Possible delimiters; the rare ones only if they are given.
_DELIMITERS, _RARE = ",;\t|", ":^~"
#: Lines of these characters are not rows; the last marked the end of files in the past.
_RULE = frozenset(" \t-=_+|\x1a")


@dataclass(frozen=True)
class Record:
    """Fields between two line ends that are not quoted."""

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


def is_rule(text: str) -> bool:
    """Return whether a line has only dashes or blanks, so that it is not a row."""
    return _RULE.issuperset(text.strip())


def records(lines: Iterable[str], delimiter: str, first: int = 0) -> Iterator[Record]:
    """Split lines, numbered from ``first``, into records; leave out blank ones."""
    reader = csv.reader(lines, delimiter=delimiter)
    begin = first
    for fields in reader:
        end = first + reader.line_num
        if fields:
            yield Record(begin, end, fields)
        begin = end


def rows_of(lines: Sequence[str], delimiter: str, first: int) -> list[Record]:
    """Return the records of the first lines; the last of them may be truncated."""
    found: list[Record] = []
    with contextlib.suppress(csv.Error):  # a field beyond the library's limit
        found.extend(records(lines, delimiter, first))
    return [r for r in found if len(r.fields) > 1 or not is_rule("".join(r.fields) or " ")]


def width_of(rows: Sequence[Record]) -> tuple[int, int]:
    """Return the most frequent number of fields, and how many records have it."""
    counts = Counter(len(row.fields) for row in rows)
    width = max(counts, key=lambda w: (counts[w], w), default=1)
    return width, counts[width]


def find_delimiter(lines: Sequence[str], source: str) -> str:
    """Return the delimiter that gives most records the same number of fields."""
    ranks = {}
    for delimiter in _DELIMITERS + _RARE:
        rows = rows_of(lines, delimiter, 0) if any(delimiter in one for one in lines) else []
        width, times = width_of(rows)
        if width > 1 and (delimiter in _DELIMITERS or times == len(rows) > 1):
            fields = [field for row in rows if len(row.fields) == width for field in row.fields]
            ranks[delimiter] = (times / len(rows), sum(map(is_number, fields)) / len(fields))
    if not ranks:
        fields = [row.fields[0] for row in rows_of(lines, ",", 0) if len(row.fields) == 1]
        for delimiter in _DELIMITERS:
            each = {field.count(delimiter) for field in fields}
            if len(fields) > 1 and len(each) == 1 and each != {0} and lines[0].startswith('"'):
                raise DataError(
                    f"{source}: whole lines are in quotation marks, each with {delimiter!r} "
                    f"{each.pop()} times: export without quotation marks, or add --read "
                    f"delimiter=; if "
                    "each line is a single column"
                )
        if sum(_PADDED.search(line) is not None for line in lines) > len(lines) / 2:
            raise DataError(
                f"{source}: has no delimiter, but columns of fixed width, which are not read: "
                "export with a delimiter, or convert it with the widths of the columns, for "
                "example in Excel (Text to Columns) or with pandas.read_fwf(widths=[...])"
            )
        blanks = {len(line.split()) for line in lines if line.strip()}
        if len(lines) > 1 and len(blanks) == 1 and blanks != {1}:
            split = [row.fields for row in rows_of(lines, " ", 0)]
            one_each = len({len(fields) for fields in split}) == 1 and all(map(all, split))
            raise DataError(
                f"{source}: blanks seem to be the delimiter: export with a different delimiter, or "
                "add --read 'delimiter= ' if it is always one blank, or --read delimiter=, if "
                "each line is "
                "one field" + "\nAdd: --read 'delimiter= '" * one_each
            )
        return ","
    best = sorted(ranks, key=ranks.__getitem__, reverse=True)
    if len(best) > 1 and ranks[best[0]] == ranks[best[1]]:
        raise DataError(
            f"{source}: the delimiter may be {best[0]!r} or {best[1]!r}: add "
            f"--read 'delimiter={best[0]}' or --read 'delimiter={best[1]}'"
        )
    if best[0] in _RARE:
        raise DataError(
            f"{source}: each line contains {best[0]!r} equally often: if it is the delimiter, add "
            f"--read 'delimiter={best[0]}'; if not, give the delimiter"
        )
    return best[0]


def delimiter_of_names(lines: Sequence[str], unasked: Unasked) -> str:
    """Return the delimiter with which the column names are found first; a comma if none."""
    found = {}
    for delimiter in _DELIMITERS + _RARE:
        if not any(delimiter in line for line in lines):
            continue
        rows = rows_of(lines, delimiter, 0)
        at = next((row for row in rows if unasked.is_header(row.fields)), None)
        if at is not None:
            found[delimiter] = at.first, -len(at.fields)
    return min(found, key=found.__getitem__, default=",")


T = TypeVar("T", bound=Sequence[str])

_DELIMITER_WORDS = {"\\t": "\t", "tab": "\t"}
_OTHER_FORMAT = re.compile(r"\s*(<(!doctype|html|table|\?xml|!--)|\[?\s*\{\s*\")", re.IGNORECASE)
#: Units below names, and those that are nothing else.
_UNIT = re.compile(
    r"%|°[CF]?|[µnmkcdMG]?(?:g|l|L|m|s|A|V|W|Hz|Pa|mol|Eq|U|IU|J)[23²³]?|mmHg|bpm|h|min|a|years?|"
    r"days?|Jahre|[\w°%µ]{1,6}/[\w²³.]{1,6}|°\w"
)
_SURE_UNIT = re.compile(r"[/%°µ]|^(?:mm|cm|kg|mg|mmHg|Jahre|years)$")
_NOTHING = frozenset({"na", "n/a", "nan", "null", "none", "-", "--", "?", "."})


@dataclass(frozen=True)
class Dialect:
    """Layout of a CSV file."""

    encoding: str
    delimiter: str
    #: Names of all columns, in the file's order; those in ``left_out`` have neither a name nor
    #: values.
    names: tuple[str, ...]
    left_out: tuple[str, ...]
    #: The fields of the line of names, as they are in the file.
    written: tuple[str, ...]
    #: Number of lines above the first row, and their size as UTF-8 without a byte order mark.
    lines: int
    size: int
    #: Whether the names come from the file.
    named: bool
    first: FirstRows
    #: Number of lines to leave out at the end; blank lines are not counted.
    footer: int
    #: Whether lines that begin with # and have a different number of fields are comments.
    remarks: bool
    found: tuple[str, ...]


def is_remark(text: str) -> bool:
    """Return whether a line is a comment, if its number of fields differs from the names."""
    return text.lstrip().startswith("#")


def find_dialect(path: Path, layout: FileLayout) -> Dialect:
    """Find the layout of a file in its first lines.

    Raises
    ------
    DataError
        If the file is not text, or its layout is in doubt.
    UsageError
        If the given entries of the layout are impossible.
    """
    check_named(layout, str(path))
    source, given, footer = str(path), _given_delimiter(layout), layout.footer
    said = layout.encoding and codec(layout.encoding)
    encoding, lines = first_lines(
        path, said, asked=layout.unasked is None, footer=footer, given=given or _DELIMITERS
    )
    if (start := layout.skip_lines or 0) < 0:
        raise UsageError(f"{start} lines to skip: needs 0 or more")
    if excel := re.fullmatch(r'"?sep=(.)"?\s*', lines[0] if lines else "", re.IGNORECASE):
        given, start = given or excel[1], max(1, start)
    if _OTHER_FORMAT.match(lines[0] if lines else ""):
        raise DataError(
            f"{source}: begins like HTML, XML or JSON, not like CSV: export it as CSV, or rename "
            "the file to the ending of its format"
        )
    if not any(line.strip() for line in lines[start:]):
        where = f" after line {start}" * bool(start)
        where += f" above the last {footer:,} (--read skip_footer=N)" * bool(footer)
        raise DataError(f"{source}: the file holds no lines{where}")
    delimiter = given or _delimiter(lines[start:], layout, source)
    found = _Head(source, delimiter, layout, start, rows_of(lines[start:], delimiter, start))
    names, left_out, body = found.names()
    remarks = found.has_remarks(body, len(names))
    return Dialect(
        encoding,
        delimiter,
        names,
        left_out,
        found.written,
        body,
        len("".join(lines[:body]).encode()),
        layout.header is not False,
        found.first_rows(body, len(names)),
        footer,
        remarks,
        (*_described(path, encoding, delimiter, layout), *found.words),
    )


def check_named(layout: FileLayout, source: str) -> None:
    """Raise `UsageError` if there are no column names, and no person can be asked."""
    if layout.header is False and layout.unasked is not None:
        raise UsageError(
            f"{source}: without column names, the number of columns could only be guessed from "
            "values, which is not allowed when no person can be asked: add a header line"
        )


def _given_delimiter(layout: FileLayout) -> str | None:
    """Return the delimiter that was given; raises `UsageError` if it is impossible."""
    given = layout.delimiter and _DELIMITER_WORDS.get(layout.delimiter, layout.delimiter)
    if given is not None and (len(given) != 1 or ord(given) > 126 or given in '"\r\n\0'):
        raise UsageError(f"delimiter {given!r}: needs one character, such as ';' or tab")
    return given


def _delimiter(lines: Sequence[str], layout: FileLayout, source: str) -> str:
    if layout.unasked is None:
        return find_delimiter(lines, source)
    return delimiter_of_names(lines, layout.unasked)


def _described(path: Path, encoding: str, delimiter: str, layout: FileLayout) -> Iterator[str]:
    """Yield what was found and is not the default: signs, and lines at the end left out."""
    if encoding != "utf-8" and not layout.encoding:
        yield _("encoding %(name)s", name=encoding)
    if delimiter not in ",;\t" and not layout.delimiter:
        yield _("delimiter %(sign)s", sign=repr(delimiter))
    if layout.footer:
        begins = footer_begins(path, encoding, layout.footer, delimiter)
        yield left_out_words(layout.footer, begins)
    if layout.unasked is None:
        yield from blank_words(path, encoding, delimiter)


def filled_in(row: Record, j: int) -> bool:
    """Return whether a row has a value in its j-th field."""
    return j < len(row.fields) and bool(row.fields[j].strip())


class _Head:
    """Finds the header line, and checks it, using the records of the first lines."""

    def __init__(
        self, source: str, delimiter: str, layout: FileLayout, start: int, rows: list[Record]
    ) -> None:
        self.source, self.layout, self.start, self.rows = source, layout, start, rows
        self.delimiter = delimiter
        self.width = width_of(rows)[0]
        self.words: list[str] = []
        self.written: tuple[str, ...] = ()

    def first_rows(self, line: int, width: int) -> FirstRows:
        """Return the rows from a line on, except the last, which may be a total or truncated."""
        rows = [row for row in self.rows if row.first >= line and row.filled][:-1]
        whole = [row for row in rows if len(row.fields) == width]
        plain = [row for row in whole if row.filled == width or not starts_with_summary(row.fields)]
        every = range(width) if len(plain) > 2 else ()
        always = [j for j in every if all(filled_in(row, j) for row in plain)]
        return FirstRows([row.fields for row in plain], always)

    def names(self) -> tuple[tuple[str, ...], tuple[str, ...], int]:
        """Return the names of all columns, those left out, and the line number of the first row."""
        if not self.rows:
            raise DataError(
                f"{self.source}: no line could be split into fields by {self.delimiter!r}"
            )
        if self.layout.header is False:
            return tuple(f"column {j + 1}" for j in range(self.width)), (), self.start
        if self.layout.unasked is not None:
            at = self._known_line(self.layout.unasked)
        else:
            at = 0 if self.layout.skip_lines is not None else self._line_of_names()
        self.written = tuple(self.rows[at].fields)
        head, below, body = self.rows[at], self.rows[at + 1 :], self.rows[at].end
        if below and (what := self._no_row(below[0])):
            known = {"n": below[0].first + 1, "what": _(what)}
            self.words.append(_("line %(n)s (%(what)s) left out", **known))
            body, below = below[0].end, below[1:]
        written = [name.strip() for name in head.fields if fold(name)]
        if len(set(written)) == len(written):  # others are visibly listed twice
            fold_names(written, f"{self.source}: line {head.first + 1}")
        names = [fold(name) for name in head.fields]
        width = width_of(below)[0] if below else len(names)
        if len(names) == width + 1 and not names[-1]:
            names.pop()  # only the header line ends in a delimiter
        if len(names) == width - 1 and all(len(row.bare) < width for row in below):
            names.append("")  # only the rows do
        if self.layout.unasked is not None:
            made = (name or f"column {j + 1}" for j, name in enumerate(names))
            return _each_once(tuple(made), self.source, head.first + 1), (), body
        self._check_rows(names, at)
        if len(names) != width and width_of(below)[1] > max(1, len(below) / 2):
            raise DataError(
                f"{self.source}: line {head.first + 1} has {len(names)} names, but most lines "
                f"below it have {width} fields (delimiter {self.delimiter!r}): write a name for "
                f"each column, or add --read no_header=true and --read skip_lines={head.end}; if "
                f"the delimiter "
                "also occurs within numbers or texts, export with a different delimiter, or with "
                "quotation marks"
            )
        if self.layout.skip_lines is None and head.first > self.start:
            self._note_above(head.first - self.start)
        return *self._named(names, head, [row for row in below if len(row.fields) > 1]), body

    def _note_above(self, lines: int) -> None:
        self.words.append(
            ngettext("%(n)s line above the header", "%(n)s lines above the header", lines)
        )

    def has_remarks(self, line: int, width: int) -> bool:
        """Return whether lines below this one that begin with # are comments, and note it."""
        odd = [row for row in self.rows if row.first >= line and len(row.fields) != width]
        found = any(is_remark(row.fields[0]) for row in odd)
        self.words += [_("lines that begin with # left out")] * found
        return found

    def _no_row(self, row: Record) -> str:
        """Describe a line below the names that is not a row: dashes, or units in brackets."""
        if self.layout.unasked is not None:
            return ""  # if no person is asked, a row counts wherever it is
        fields = [field.strip() for field in row.fields if field.strip()]
        for what, pattern in ((N_("dashes"), ":?-+:?"), (N_("units"), r"\[.*\]|\(.*\)")):
            if fields and all(re.fullmatch(pattern, field) for field in fields):
                return "" if what == "units" and any(map(is_number, fields)) else what
        if fields and all(map(_UNIT.fullmatch, fields)) and any(map(_SURE_UNIT.search, fields)):
            return N_("units")
        return ""

    def _known_line(self, unasked: Unasked) -> int:
        """Return which record holds the names of a schema."""
        rows = self.rows[:1] if self.layout.skip_lines is not None else self.rows
        at = next((i for i, row in enumerate(rows) if unasked.is_header(row.fields)), None)
        if at is None:
            raise DataError(
                f"{self.source}: none of its first lines contains all required column names, "
                f"{list(unasked.names)[:5]}: add a header line above the rows"
            )
        return at

    def _line_of_names(self) -> int:
        """Return which record holds the names: the first with as many fields as most."""
        at = next(
            (i for i, row in enumerate(self.rows) if self._as_wide(row)),
            next(i for i, row in enumerate(self.rows) if len(row.fields) == self.width),
        )
        if at > 0 and self.width == 2 and self._is_above_index(at - 1):
            hits, misses = self._numbers(self.rows[at].fields, self.rows[at + 1 :])
            at -= hits > 0 or misses == 0
        above, half = self.rows[:at], self.width / 2
        if self.layout.header is None and not self._stands_out(at):
            wide = next((row for row in above if row.filled > half), None)
            if wide is not None:
                raise DataError(
                    f"{self.source}: line {wide.first + 1} has {len(wide.fields)} fields, but most "
                    f"lines have {self.width}: which line holds the names? Add "
                    f"--read skip_lines={wide.first} if it is this one, or --read "
                    f"skip_lines={self.rows[at].first} if it "
                    f"is line {self.rows[at].first + 1}"
                )
        return at

    def _as_wide(self, row: Record) -> bool:
        wide = len(row.fields) == self.width or len(row.bare) == self.width
        # Each row may end in a delimiter even if the names do not.
        bare = len(row.fields) == self.width - 1 and all(
            len(r.bare) < self.width for r in self.rows if r.first > row.first
        )
        return (wide or bare) and 2 * row.filled > self.width

    def _stands_out(self, at: int) -> bool:
        hits, misses = self._numbers(self.rows[at].fields, self.rows[at + 1 :])
        return misses > 0 and misses >= 3 * hits

    def _numbers(self, names: Sequence[str], below: Sequence[Record]) -> tuple[int, int]:
        """Count numeric columns whose name is also a number, and those whose name is not."""
        hits = misses = 0
        for j, name in enumerate(names):
            values = [row.fields[j] for row in below if filled_in(row, j)]
            own = shape(name)
            if values and "9" in own and _is_alike(name, values):
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
        below = [row for row in self.rows[at + 1 :] if len(row.fields) == self.width]
        return bool(
            not first.strip()
            and others
            and len(others) == self.width - 1
            and all(name.strip() for name in others)
            and below
            and all(filled_in(row, 0) for row in below[:-1] or below)
        )

    def _check_rows(self, names: list[str], at: int) -> None:
        """Raise `DataError` if the header line looks like a row."""
        if self.layout.header or self.layout.skip_lines is not None:
            return
        index = self._is_above_index(at)
        of_matrix = names[1:] if index else names
        if len(names) > 2 and of_matrix in (
            [str(j + k) for j in range(len(of_matrix))] for k in (0, 1)
        ):
            return  # the column numbers of a matrix
        hits, misses = self._numbers(names, self.rows[at + 1 :])
        again = 0 if index and misses else self._n_again(names, at)
        if hits + again > misses / 3:
            first = self.rows[at].first
            sure = index or (misses > 0 and not again and self._are_names(names, at))
            skipped = f" --read skip_lines={first}" if first or sure else ""
            ways = f"\nAdd:{'' if sure else ' --read no_header=true'}{skipped}"
            shown = "".join(
                f"\n  {self.delimiter.join(row.fields)[:70]}" for row in self.rows[at : at + 3]
            )
            raise DataError(
                f"{self.source}: line {first + 1} looks like a row, not like column names: confirm "
                f"that it is a row (--read no_header=true), or that it holds names (--read "
                f"skip_lines={first})"
                + (
                    f", or give a different delimiter (--read delimiter=SIGN) if "
                    f"{self.delimiter!r} does not separate "
                    "fields"
                )
                * (at > 0)
                # Names must not become a row, nor a row names: in doubt, a person decides.
                + (ways if sure or again >= misses else shown)
            )

    def _are_names(self, names: Sequence[str], at: int) -> bool:
        """Return whether a column of texts that repeat does not hold its name."""
        for j, name in enumerate(names):
            values = [row.fields[j] for row in self.rows[at + 1 :] if filled_in(row, j)]
            texts = {fold(value) for value in values}
            repeat = values and 2 * len(texts) <= len(values) and not any(map(is_number, texts))
            if repeat and has_letters(name) and name not in texts:
                return True
        return False

    def _n_again(self, names: Sequence[str], at: int) -> int:
        """Return how many names a row below holds in their columns, without header lines."""
        whole = [row.fields for row in self.rows[at + 1 :] if len(row.fields) == len(names)]
        table, found = FirstRows(whole, ()), set()
        for fields in whole:
            again = {j for j, name in enumerate(names) if name and name == fold(fields[j])}
            if again and fields != self.rows[at].fields and not table.is_names(fields):
                found |= again
        return len(found)

    def _named(
        self, names: list[str], head: Record, below: Sequence[Record]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return names, with made-up ones for columns without, and which of these to leave out."""
        line, left_out = head.first + 1, []
        by_number = f"add --read no_header=true and --read skip_lines={head.end} to call them "
        "column 1, column 2, ..."
        nameless = [j for j, name in enumerate(names) if not name]
        for j in nameless:
            names[j] = f"column {j + 1}"
            if not any(filled_in(row, j) for row in below):
                left_out.append(names[j])
            elif j == 0 and len(names) > 1 and len([k for k in nameless if k]) == len(left_out):
                self.words.append(_("column 1 has no name: called %(name)s", name=repr(names[0])))
            else:
                raise DataError(
                    f"{self.source}: line {line} has no name for column {j + 1}: write one there, "
                    f"or {by_number}; if the names are in the next line, add "
                    f"--read skip_lines={head.end}"
                )
        _each_once(names, self.source, line, f", or {by_number}")
        if len(left_out) == len(names):
            raise DataError(f"{self.source}: line {line} has no column names: needs at least 1")
        self.words += [
            _("%(name)s without name and values left out", name=name) for name in left_out
        ]
        return tuple(names), tuple(left_out)


def _is_alike(name: str, values: Sequence[str]) -> bool:
    """Return whether a name looks like the values below it, letters included."""
    own, every = shape(name), [re.sub(r"\d+", "9", value) for value in values]
    if any(shape(value) != own for value in values):
        return False
    # With few different letters, a name has them if it is a value.
    return 2 * len(set(every)) > len(every) or re.sub(r"\d+", "9", name) in every


def _each_once(names: T, source: str, line: int, otherwise: str = "") -> T:
    """Return names of columns; raises `DataError` if one occurs twice."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise DataError(
            f"{source}: column {twice[0]!r} is listed twice in line {line}: rename one of the two"
            + otherwise
        )
    return names
