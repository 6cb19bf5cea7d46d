"""Files that are rewritten once in a format that can be read fast: XML, and fixed-width columns."""

import csv
import io
import itertools
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO, TypeAlias
from xml.parsers import expat

import pyarrow as pa

from hushtable.data.readers.csv import csv_file
from hushtable.data.readers.dialect import is_rule
from hushtable.data.readers.encoding import codec, decompressed, find_encoding, opened_lines
from hushtable.data.readers.json_lines import lines_file
from hushtable.data.readers.reader import Copy, FileLayout, Reader, unchanged
from hushtable.errors import DataError, UsageError
from hushtable.language import N_, _

#: Elements within elements.
_DEEPEST = 64

# --- XML ------------------------------------------------------------------------------------------

_Path: TypeAlias = tuple[str, ...]
#: Largest number of different elements in a regular file.
_KINDS = 10_000


def xml_file(path: Path, layout: FileLayout) -> Reader:
    """Read the repeated element: each occurrence is a row, and holds its values."""
    if layout.unasked is not None:
        raise UsageError(
            f"{path}: in XML, rows are the elements that repeat, so one row would decide which "
            "these are, which is not allowed when no person can be asked: export it as CSV"
        )
    with unchanged(path):
        kind = _row_of(path, layout.member)
        copy = Copy.of(str(path), ".jsonl")
        with copy.path.open("w", encoding="utf-8", newline="\n") as file:
            _parse(path, _Rows(path, kind, file))
    rows = copy.reader(lambda lines: lines_file(lines, layout, N_("element")))
    return replace(rows, found=(_("rows are the elements %(name)s", name=repr(kind[-1])),))


def _row_of(path: Path, wanted: str | None) -> _Path:
    """Return the tags that lead to the elements that are rows."""
    kinds = _Kinds(path)
    _parse(path, kinds)
    again = {tags for tags, times in kinds.times.items() if times > 1}
    outer = {
        "/".join(tags): tags
        for tags in sorted(again & kinds.with_values)
        if not any(tags[:n] in again for n in range(1, len(tags)))
    }
    if wanted is not None:
        found = [tags for name, tags in outer.items() if wanted in (name, tags[-1])]
        if len(found) != 1:
            raise DataError(
                f"{path}: has no row element {wanted!r}: its row elements are {[*outer]}"
            )
        return found[0]
    if not outer:
        raise DataError(
            f"{path}: no element repeats and holds values, as table rows do: export it as CSV"
        )
    if len(outer) > 1:
        most = max(outer, key=lambda name: kinds.times[outer[name]])
        raise DataError(
            f"{path}: several elements may be rows, {list(outer)[:10]}: choose one with --member "
            f"NAME\nAdd: --member {shlex.quote(most)}"
        )
    return next(iter(outer.values()))


def _parse(path: Path, elements: "_Kinds | _Rows") -> None:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = elements.start
    parser.EndElementHandler = elements.end
    parser.CharacterDataHandler = elements.text
    parser.StartDoctypeDeclHandler = elements.doctype
    try:
        with pa.OSFile(str(path)) as raw, decompressed(raw) as plain:
            parser.ParseFile(io.BufferedReader(plain))
    except expat.ExpatError as error:
        raise DataError(
            f"{path}: line {error.lineno} is not valid XML ({expat.ErrorString(error.code)}): was "
            "the file truncated? Export it again"
        ) from None


class _Kinds:
    """Counts the elements of a file by the tags that lead to them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.times: Counter[_Path] = Counter()
        self.with_values: set[_Path] = set()
        self._tags: list[str] = []

    def doctype(self, *_: Any) -> None:
        """Refuse entity definitions, which may expand without limit or refer to other files."""
        raise DataError(
            f"{self._path}: has a DOCTYPE, which could define entities: delete it, or export the "
            "table as CSV"
        )

    def start(self, tag: str, values: dict[str, str]) -> None:
        """Note the start of an element."""
        self.with_values.add(tuple(self._tags))
        self._tags.append(_local(tag))
        tags = tuple(self._tags)
        self.times[tags] += 1
        if values:
            self.with_values.add(tags)
        if len(tags) > _DEEPEST or len(self.times) > _KINDS:
            raise DataError(
                f"{self._path}: its elements are nested more than {_DEEPEST} deep, or have more "
                f"than {_KINDS:,} kinds, so it is not a table: export it as CSV"
            )

    def end(self, _: str) -> None:
        """Note the end of an element."""
        self._tags.pop()

    def text(self, _: str) -> None:
        """Skip a text."""


class _Rows(_Kinds):
    """Writes elements of a kind as objects in JSON lines; nested values get dotted names."""

    def __init__(self, path: Path, kind: _Path, file: TextIO) -> None:
        super().__init__(path)
        self._kind, self._file = list(kind), file
        self._row: dict[str, Any] | None = None
        self._texts: list[str] = []

    def start(self, tag: str, values: dict[str, str]) -> None:
        """Begin a row, or a value in it."""
        self._tags.append(_local(tag))
        if self._tags == self._kind:
            self._row = {}
        if self._row is not None:
            self._texts = []
            for name, value in values.items():
                if not name.startswith(("xmlns", "xsi:")):
                    self._add((*self._within, _local(name)), value)

    def end(self, tag: str) -> None:
        """End a value in a row, or the row."""
        if self._row is not None:
            text = "".join(self._texts).strip()
            if text:
                self._add(self._within or (self._kind[-1],), text)
            self._texts = []
            if self._tags == self._kind:
                self._file.write(json.dumps(self._row, ensure_ascii=False) + "\n")
                self._row = None
        self._tags.pop()

    def text(self, text: str) -> None:
        """Note a part of a text."""
        if self._row is not None:
            self._texts.append(text)

    @property
    def _within(self) -> _Path:
        return tuple(self._tags[len(self._kind) :])

    def _add(self, keys: _Path, value: str) -> None:
        """Add a value; several with the same name become a list, which is refused if it is used."""
        assert self._row is not None
        name = ".".join(keys)
        known = self._row.get(name)
        if known is None:
            self._row[name] = value
        else:
            self._row[name] = [*(known if isinstance(known, list) else [known]), value]


def _local(name: str) -> str:
    """Return a name without its namespace."""
    return name.rpartition(":")[2]


# --- columns of fixed width -----------------------------------------------------------------------

#: Number of lines used to find columns.
_FIRST = 500
_GAP = re.compile(r"(\S*)( +)(\S*)")
_PADDED = re.compile(r"\S {2,}\S")
#: Delimiters; a comma between digits is a decimal comma.
_DELIMITED = re.compile(r"(?<!\d),|,(?!\d)|[;|\t]")


def text_file(path: Path, layout: FileLayout) -> Reader:
    """Read fields between delimiters, or fixed-width columns if there is no delimiter."""
    if layout.unasked is not None or layout.delimiter is not None:
        return csv_file(path, layout)
    with pa.OSFile(str(path)) as raw, decompressed(raw) as plain:
        sample = plain.read(1 << 16)
    if b"  " not in sample.replace(b"\0", b""):
        return csv_file(path, layout)
    encoding = codec(layout.encoding) if layout.encoding else find_encoding(sample, str(path))
    above = layout.skip_lines or 0
    with opened_lines(path, encoding) as lines:
        first = [line.rstrip("\r\n") for _, line in zip(range(above + _FIRST), lines, strict=False)]
    columns = _columns(first[above:], named=layout.header is not False)
    if len(columns) < 2:
        return csv_file(path, layout)
    copy = Copy.of(str(path), ".csv")
    with unchanged(path), opened_lines(path, encoding) as lines:
        _write_fields(path, lines, columns, above, copy)
    rows = copy.reader(
        lambda plain: csv_file(plain, replace(layout, delimiter=",", encoding="utf-8"))
    )
    places = [f"{a + 1}-{b}" for a, b in columns[:-1]]
    places.append(_("from %(place)s", place=columns[-1][0] + 1))
    shown = f"{', '.join(places[:8])}{', ...' * (len(places) > 8)}"
    words = _("fixed-width columns at %(places)s", places=shown)
    return replace(rows, found=(words, *rows.found))


def _columns(lines: Sequence[str], *, named: bool) -> list[tuple[int, int]]:
    """Return where columns begin and end, if blanks between them are aligned; otherwise none."""
    rows = [line for line in lines if not is_rule(line)]
    if len(rows) < 3 or _DELIMITED.search(rows[0]) or any("\t" in row for row in rows):
        return []
    if not any(map(_PADDED.search, rows)):
        return []
    width = max(map(len, rows))
    filled = [any(row[j : j + 1].strip() for row in rows) for j in range(width)]
    pairs = itertools.pairwise([False, *filled, False])
    edges = [j for j, (before, here) in enumerate(pairs) if before != here]
    columns = list(zip(edges[::2], edges[1::2], strict=True))
    if not named:
        return columns
    whole: list[tuple[int, int]] = []
    for begin, end in columns:
        here = rows[0][begin:end].strip()
        before = rows[0][slice(*whole[-1])].strip() if whole else ""
        # Numbers of rows have no name either: pandas writes them in front, and two blanks.
        index = here and [(begin, end)] == columns[1:2] and _has_index(rows[1:], columns)
        # A gap within texts, such as two words each: only one of its sides has a name.
        if whole and not index and not (here and before):
            begin = whole.pop()[0]
        whole.append((begin, end))
    # Names with a gap between them: columns that touch each other, and cannot be separated.
    touching = any(_PADDED.search(rows[0][begin:end]) for begin, end in whole)
    return [] if touching else whole


def _has_index(rows: Sequence[str], columns: Sequence[tuple[int, int]]) -> bool:
    """Return whether the first of several columns holds numbers, with two blanks behind them."""
    (begin, end), (after, _) = columns[:2]
    return after - end > 1 and all(row[begin:end].strip().isdigit() for row in rows)


def _write_fields(
    path: Path, lines: Iterator[str], columns: list[tuple[int, int]], above: int, copy: Copy
) -> None:
    """Write the fields of each line as a line of CSV; refuse a line that is not in columns."""
    gaps = [(0, columns[0][0])]
    gaps += [(end, begin) for (_, end), (begin, _) in itertools.pairwise(columns)]
    with copy.path.open("w", encoding="utf-8", newline="") as file:
        write = csv.writer(file, lineterminator="\n").writerow
        for number, text in enumerate(lines, 1):
            line = text.rstrip("\r\n")
            if number <= above or is_rule(line):
                write([line] if number <= above else [])
                continue
            for k, (end, begin) in enumerate(gaps):
                if line[end:begin].strip():
                    # A wider value narrows the gap, which was blank in all lines above.
                    here = _GAP.fullmatch(line[end:begin].ljust(begin - end))
                    if here is None or (k == 0 and here[1]):
                        raise DataError(
                            f"{path}: line {number} does not fit the fixed-width columns above it: "
                            f"it holds {line[max(0, end - 8) : begin + 8]!r} around position "
                            f"{end + 1}: widen the columns, or export with a delimiter"
                        )
                    gaps[k] = end + len(here[1]), begin - len(here[3])
            if "\ufffd" in line:
                raise DataError(
                    f"{path}: line {number} does not have the encoding of the lines above it: give "
                    "the encoding with --encoding NAME"
                )
            ends = [*(end for end, _ in gaps[1:]), None]
            write([line[b:e].strip() for (_, b), e in zip(gaps, ends, strict=True)])
