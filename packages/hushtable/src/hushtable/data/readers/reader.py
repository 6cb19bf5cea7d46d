"""A reader: rows as batches, as often as needed, and code that readers of files share."""

import contextlib
import datetime as dt
import os
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable.data.columns import as_column, as_numbers, as_texts, decoded
from hushtable.data.labels import fold, fold_names, key
from hushtable.errors import DataError, UsageError
from hushtable.language import _
from hushtable.threads import FEW_ROWS
from hushtable.words.refusals import refused

if TYPE_CHECKING:
    from hushtable.data.schema import Schema
    from hushtable.data.texts.reading import Reading


class Unasked:
    """The columns that rows must have, and notes on values that could not be read.

    Others see whether a site answers, so no value may decide that: a value that a person would be
    asked about counts as missing, or its row is left out, whatever the other rows are. This class
    notes it for the site's own log and screen. The names of the columns alone, and no row,
    determine the header line of a file and its delimiter; without names, the first line holds them.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._lock = threading.Lock()
        self._found: dict[str, tuple[int, str]] = {}

    def is_header(self, fields: Sequence[str]) -> bool:
        """Return whether a line with these fields holds the names of the columns."""
        return bool(fields) and {*map(fold, self.names)} <= {*map(fold, fields)}

    def note(self, what: str, times: int, place: Callable[[], str]) -> None:
        """Note how many times something was found, and where first."""
        with self._lock:
            before, first = self._found.get(what, (0, ""))
            self._found[what] = before + times, first or place()

    @property
    def words(self) -> tuple[str, ...]:
        """Sentences about what could not be read."""
        with self._lock:
            noted = sorted(self._found.items())
        return tuple(f"{what}: {times:,}, the first in {first}." for what, (times, first) in noted)


@dataclass(frozen=True)
class FileLayout:
    """Layout of a file or similar source, as far as given; the reader detects the rest."""

    #: As Python names it, such as ``"cp1252"``.
    encoding: str | None = None
    #: One character between two fields.
    delimiter: str | None = None
    #: False: there is no header line, and columns are called ``column 1``, ``column 2``, ...
    header: bool | None = None
    #: Number of lines above the header line, or above the first row if there is none.
    skip_lines: int | None = None
    #: Number of lines below the header line that are not rows, such as one of units.
    skip_below: int | None = None
    #: Number of last lines, or rows of a sheet, that are not part of the table, but not blank.
    skip_footer: int | None = None
    #: Name of a sheet.
    sheet: str | None = None
    #: SQL query for a database.
    query: str | None = None
    #: Name of the part of a file that holds the rows: a file in an archive, a table of a database.
    member: str | None = None
    #: Whether each row of a query depends on the records of one person only, as a person states.
    independent: bool | None = None
    #: If no person can be asked: the columns of a public schema.
    unasked: Unasked | None = None

    def __post_init__(self) -> None:
        for where, n in (("", self.skip_lines), (" at the end", self.skip_footer)):
            if n is not None and n < 0:
                raise UsageError(f"{n} lines to skip{where}: needs 0 or more")

    def check_used(self, used: Collection[str], source: str) -> None:
        """Raise `UsageError` if an entry is given that a source cannot use."""
        entries = vars(self) | {"unasked": None}  # of use to all
        given = [name for name, value in entries.items() if value is not None]
        given = ["no_header" if name == "header" else name for name in given if name not in used]
        if unused := [f"--read {name}=..." for name in given]:
            raise UsageError(f"{source} cannot use {', '.join(unused)}: leave it out")

    @property
    def kept(self) -> dict[str, str | int | bool]:
        """Entries that a model keeps for later files."""
        return {name: value for name in KEPT if (value := getattr(self, name)) is not None}


#: Entries that a model keeps, and their types.
KEPT = {
    "encoding": str, "delimiter": str, "header": bool, "skip_lines": int, "skip_below": int,
    "skip_footer": int, "sheet": str, "member": str,
}  # fmt: skip


def near_names(names: Iterable[str], others: Sequence[str], do: str = "rename the column") -> str:
    """Return words on names that differ only slightly from others; empty if none do.

    These are differences in blanks and zero-width marks, or in case, accents and look-alike
    letters. The words state what to ``do``, in which ``{}`` is the name that is there.
    """
    words: list[str] = []
    for how, sort in (
        ("blanks or invisible marks", _visible),
        ("case, accents or look-alike letters", lambda name: key(_visible(name))),
    ):
        known = {sort(text): text for text in reversed(others)}
        for name in names:
            same = known.get(sort(name), name)
            if same != name and not any(f" {name!a} " in text for text in words):
                words.append(f"{same!a} differs from {name!a} only in {how}: {do.format(same)}")
    return "".join(f"; {text}" for text in words)


def _visible(name: str) -> str:
    kept = (c for c in name if not c.isspace() and unicodedata.category(c) != "Cf")
    return fold("".join(kept))


def found_name(name: str, names: Collection[str]) -> str:
    """Return the column name that a name refers to: itself, or its folded form."""
    return name if name in names else fold(name)


#: Number of rows, and of values, in a batch in memory: few enough for the cache, and many enough
#: that the cost of a batch in Python, which threads do not share, is small.
BATCH_ROWS, BATCH_VALUES = 16_384, 1 << 21
#: Number of rows, and of values, read at a time from files: memory stays flat at no cost in time.
FILE_ROWS, FILE_VALUES = 65_536, 1 << 21
#: Texts that mean a missing value in CSV files, as Arrow reads them.
MISSING_WORDS = frozenset(("N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"))

Batch: TypeAlias = "np.ndarray | pa.RecordBatch"
Read: TypeAlias = Callable[[], Iterator[Batch]]
#: Takes a part of the rows and its batches at the beginning of a pass; yields what is read instead.
Step: TypeAlias = Callable[["Reader", Iterator[Batch]], Iterator[Batch]]


@dataclass(frozen=True)
class Coupling:
    """A reason why the features of a row depend on other rows, or on records that rows share.

    If all records with one key belong to one person, they change only that person's rows.
    """

    #: What it is, for messages.
    how: str
    #: How to avoid it, for messages.
    remedy: str
    #: The column of the rows that holds the key; empty if no column does.
    key: str = ""


@dataclass(frozen=True, eq=False)
class Source:
    """Where rows come from: one file, or an object in memory."""

    #: Starts a pass.
    read: Read
    #: If it is known without reading the rows.
    n_rows: int | None = None
    #: Starts a pass over only the named columns, if the others can be skipped.
    project: Callable[[list[str]], Iterator[Batch]] | None = None
    #: For messages.
    name: str = "the data"
    #: Size of the file, and number of bytes read in this pass.
    n_bytes: int | None = None
    bytes_read: Callable[[], int] = lambda: 0
    #: Returns where a row, numbered from 0, is: ``line 19`` of a file. For messages; may be slow.
    place: Callable[[int], str] = lambda row: _("row %(n)s", n=row)
    #: Returns the values (n, d) of a frame with few rows, if all are numbers of NumPy's types.
    matrix: Callable[[], np.ndarray] | None = None

    def of(self, columns: list[str]) -> "Source":
        """Return a source of some columns, if the others can be skipped."""
        assert self.project is not None
        return replace(self, read=partial(self.project, columns))

    def through(
        self, change: Callable[[Read], Iterator[Batch]], was: Mapping[str, str] | None = None
    ) -> "Source":
        """Return a source whose passes a function changes; ``was`` holds names from before."""
        project, before = self.project, was or {}

        def some(columns: list[str]) -> Iterator[Batch]:
            assert project is not None
            names = [before.get(name, name) for name in columns]
            return change(lambda: project(names))

        return replace(self, read=lambda: change(self.read), project=project and some)


@dataclass(frozen=True)
class Reader:
    """Rows: sources that are read one after the other, and the steps that their batches take."""

    #: Names of the columns; None for a matrix without names.
    names: tuple[str, ...] | None
    n_columns: int
    sources: tuple[Source, ...]
    steps: tuple[Step, ...] = ()
    #: For messages.
    source: str = "the data"
    #: Whether only one pass is possible.
    one_shot: bool = False
    #: Whether all batches are arrays of numbers.
    numeric: bool = False
    #: Short notes on what a reader detected about its source, if it is unusual.
    found: tuple[str, ...] = ()
    #: The delimiter of a CSV file: an indication of how its numbers are written.
    delimiter: str = ""
    #: How texts become values, if the person who opened the rows specified it.
    reading: "Reading | None" = None
    #: Columns after the features that are kept as they are.
    keep: tuple[str, ...] = ()
    #: What makes rows depend on other rows, so that few counts of them can be released.
    coupled: tuple[Coupling, ...] = ()
    #: If no person can be asked: notes values that cannot be read.
    unasked: Unasked | None = None
    #: The schema under which the rows were opened; the columns are its features already.
    opened: "Schema | None" = None

    @classmethod
    def of(
        cls,
        names: Sequence[str] | None,
        n_columns: int,
        *sources: Source,
        numeric: bool = False,
    ) -> "Reader":
        """Return a reader of sources with the same columns; the first names it."""
        named = None if names is None else tuple(names)
        return cls(named, n_columns, sources, source=sources[0].name, numeric=numeric)

    def read(self) -> Iterator[Batch]:
        """Start a pass."""
        for part, source in zip(self.parts, self.sources, strict=True):
            batches = source.read()
            for step in self.steps:
                batches = step(part, batches)
            yield from batches

    @property
    def parts(self) -> tuple["Reader", ...]:
        """Readers of one source each, which can be read at the same time."""
        if len(self.sources) == 1:
            return (self,)
        return tuple(replace(self, sources=(s,), source=s.name) for s in self.sources)

    @property
    def n_rows(self) -> int | None:
        """Number of rows, if it is known without reading them."""
        if len(self.sources) == 1:
            return self.sources[0].n_rows
        counts = [source.n_rows for source in self.sources if source.n_rows is not None]
        return sum(counts) if len(counts) == len(self.sources) else None

    @property
    def n_bytes(self) -> int | None:
        """Size of the files; None if there are none."""
        sizes = [source.n_bytes for source in self.sources if source.n_bytes is not None]
        return sum(sizes) if sizes else None

    def bytes_read(self) -> int:
        """Return the number of bytes read in this pass."""
        return sum(source.bytes_read() for source in self.sources)

    def place(self, row: int) -> str:
        """Return where a row, numbered from 0, is; with several files, also in which."""
        if len(self.sources) == 1:
            return self.sources[0].place(row)
        *parts, last = self.parts
        for part in parts:
            n_rows = sum(map(len, part.read())) if part.n_rows is None else part.n_rows
            if row < n_rows:
                return part.where(row)
            row -= n_rows
        return last.where(row)

    def where(self, row: int) -> str:
        """Return where a row, numbered from 0, is, with the file that it is in: for messages."""
        place = self.place(row)
        if in_memory(self) or len(self.sources) > 1:  # with several files, a place names its own
            return place
        return _("%(place)s of %(file)s", place=place, file=self.source)

    def watched(self, step: Step) -> "Reader":
        """Return the same rows, whose batches also take a step that does not change them."""
        return replace(self, steps=(*self.steps, step))

    def mapped(self, step: Step, names: Sequence[str] | None) -> "Reader":
        """Return rows with these columns, to which a step changes the batches."""
        n = self.n_columns if names is None else len(names)
        named = None if names is None else tuple(names)
        return replace(self.watched(step), names=named, n_columns=n, opened=None)

    def select(self, names: Sequence[str]) -> "Reader":
        """Return a reader of only the named columns, in that order, and under these names."""
        known = set(self.names or ())
        chosen = [found_name(name, known) for name in names]
        if lacking := [name for name, s in zip(names, chosen, strict=True) if s not in known]:
            raise DataError(
                f"{self.source} has no column {lacking}: its columns are {list(self.names or ())}"
            )
        if not self.steps and all(s.project is not None for s in self.sources):
            sources = tuple(s.of(chosen) for s in self.sources)
            selected = replace(self, names=tuple(chosen), n_columns=len(chosen), sources=sources)
            return replace(selected, opened=None).renamed(names)
        places = [(self.names or ()).index(name) for name in chosen]

        def select(_part: Reader, batches: Iterator[Batch]) -> Iterator[Batch]:
            for batch in batches:
                if isinstance(batch, np.ndarray):
                    yield np.take(batch, places, axis=1)
                else:
                    yield batch.select(chosen)

        return self.mapped(select, chosen).renamed(names)

    def renamed(self, names: Sequence[str]) -> "Reader":
        """Return a reader of the same columns under other names."""
        if self.names is None or [*names] == [*self.names]:
            return self
        new = dict(zip(self.names, names, strict=True))

        def rename(batches: Iterator[Batch]) -> Iterator[Batch]:
            for batch in batches:
                if not isinstance(batch, np.ndarray):
                    now = [new[name] for name in batch.schema.names]
                    batch = pa.RecordBatch.from_arrays(batch.columns, now)
                yield batch

        if self.steps:
            return self.mapped(lambda _part, batches: rename(batches), names)
        was = dict(zip(names, self.names, strict=True))
        sources = [source.through(lambda read: rename(read()), was) for source in self.sources]
        return replace(self, names=tuple(names), sources=tuple(sources), opened=None)

    def folded(self) -> "Reader":
        """Return a reader with folded column names; raises `DataError` if two become equal."""
        return self if self.names is None else self.renamed(fold_names(self.names, self.source))

    def of_batches(
        self, read: Read, n_rows: int | None, place: Callable[[int], str] | None = None
    ) -> "Reader":
        """Return a reader of the same columns as one source, whose rows ``read`` reads."""
        size, at = self.n_bytes, place or self.place
        source = Source(read, n_rows, None, self.source, size, self.bytes_read, at)
        return replace(self, sources=(source,), steps=(), one_shot=False)

    def in_sequence(self) -> "Reader":
        """Return the same rows as one part, which no two threads read."""
        return self if len(self.sources) == 1 else self.of_batches(self.read, self.n_rows)

    def take(self, rows: NDArray[np.int64]) -> "Reader":
        """Return a reader of some of the rows, by rising row numbers; a pass still reads all."""

        def read() -> Iterator[Batch]:
            first = 0
            for batch in self.read():
                here = slice(*np.searchsorted(rows, [first, first + len(batch)]))
                if here.stop > here.start:
                    yield taken(batch, rows[here] - first)
                first += len(batch)

        gathered = partial(_gathered, read) if self.numeric else read
        return self.of_batches(gathered, len(rows), lambda row: self.place(int(rows[row])))

    def repeatable(self) -> "Reader":
        """Return a reader that allows several passes; a one-shot stream is read into memory."""
        if not self.one_shot:
            return self
        batches = list(self.read())
        return self.of_batches(lambda: iter(batches), sum(map(len, batches)))


def _gathered(read: Read) -> Iterator[Batch]:
    """Yield numbers in batches of the usual size: each costs a call of every kernel."""
    waiting: list[np.ndarray] = []
    for batch in read():
        waiting.append(batch)
        n_rows = sum(map(len, waiting))
        if n_rows >= BATCH_ROWS or n_rows * batch.shape[1] >= BATCH_VALUES:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


def one_after_other(files: Sequence[Reader], source: str) -> Reader:
    """Read files with the same columns as one source."""
    parts = [item.of_batches(item.read, item.n_rows) if item.steps else item for item in files]
    return replace(
        files[0],
        sources=tuple(item for part in parts for item in part.sources),
        steps=(),
        source=source,
        found=tuple(dict.fromkeys(words for file in files for words in file.found)),
        coupled=tuple(dict.fromkeys(item for file in files for item in file.coupled)),
    )


def of_file(
    path: Path,
    names: tuple[str, ...],
    batches: Callable[[list[str] | None], Iterator[tuple[int, Batch]]],
    n_rows: int | None = None,
    place: Callable[[int], str] | None = None,
) -> Reader:
    """Read a file; ``batches`` yields the bytes read so far, and rows of the requested columns."""
    position, then = [0], path.stat()

    def project(columns: list[str] | None) -> Iterator[Batch]:
        with unchanged(path, then):
            for position[0], batch in batches(columns):
                yield batch

    size = then.st_size
    source = Source(lambda: project(None), n_rows, project, str(path), size, lambda: position[0])
    source = source if place is None else replace(source, place=place)
    return Reader(names, len(names), (source,), source=source.name)


@contextlib.contextmanager
def unchanged(path: Path, then: os.stat_result | None = None) -> Iterator[None]:
    """Refuse a file that changes while it is read in the body, or since ``then``.

    Arrow's messages about rows that it cannot read get the file's name.
    """
    then, error = then or path.stat(), None
    try:
        yield
    except DataError as data_error:
        error = data_error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as arrow_error:
        if isinstance(arrow_error, OSError) and arrow_error.errno is not None:
            raise
        error = DataError(f"{path}: {arrow_error}")  # for example, a damaged archive
    now = path.stat()
    if (now.st_size, now.st_mtime_ns) != (then.st_size, then.st_mtime_ns):
        raise refused("changed", source=path) from None
    if error is not None:
        raise error from None


def library_of(data: object) -> str:
    """Return the name of the library that an object's type is from."""
    return type(data).__module__.partition(".")[0]


def taken(batch: Batch, rows: NDArray[np.int64]) -> Batch:
    """Return some rows of a batch, by their numbers."""
    if isinstance(batch, np.ndarray):
        return batch[rows]
    if not isinstance(batch, pa.RecordBatch):  # rows that are encoded
        return batch.take(rows)
    # Arrow cannot take rows of string views, which is how Polars holds text.
    plain = {"string_view": pa.string(), "binary_view": pa.binary()}
    columns = [
        column.cast(plain[str(column.type)]) if str(column.type) in plain else column
        for column in batch.columns
    ]
    # Not pa.array(rows), which imports pandas to see whether rows are a series.
    places = pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(rows.copy())])
    return pa.RecordBatch.from_arrays(columns, batch.schema.names).take(places)


def joined(batches: Sequence[Any], numeric: Collection[str] = ()) -> Batch:
    """Return batches of the same columns as one batch.

    If types differ, ``numeric`` columns become points in time or numbers, and all others become
    texts.
    """
    if len(batches) == 1:
        return batches[0]
    if isinstance(batches[0], np.ndarray):
        return np.concatenate(batches)
    names = batches[0].schema.names
    columns = [
        _joined_column([batch.column(j) for batch in batches], name, name in numeric)
        for j, name in enumerate(names)
    ]
    return pa.RecordBatch.from_arrays(columns, names)


def _joined_column(parts: list[pa.Array], name: str, numeric: bool) -> pa.Array:
    parts = [*map(decoded, parts)]
    kinds = {part.type for part in parts if not pa.types.is_null(part.type)}
    if len(kinds) > 1:
        if not numeric:
            parts = [as_texts(part, name) for part in parts]
        elif all(pa.types.is_timestamp(kind) or pa.types.is_date(kind) for kind in kinds):
            parts = [part.cast(pa.timestamp("us"), safe=False) for part in parts]
        else:
            parts = [as_column(as_numbers(part, name).astype(np.float64)) for part in parts]
        kinds = {parts[0].type}
    kind = kinds.pop() if kinds else pa.null()
    return pa.concat_arrays([part if part.type == kind else part.cast(kind) for part in parts])


def arrow_columns(batch: Batch) -> list[pa.Array]:
    """Return the columns of a batch as Arrow's."""
    if isinstance(batch, np.ndarray):
        return [as_column(column) for column in batch.T]
    return list(batch.columns)


def as_table(reader: Reader) -> pa.Table:
    """Return all rows of a reader whose columns have names; types may differ between batches."""
    assert reader.names is not None
    names = list(reader.names)
    parts = [pa.Table.from_arrays(arrow_columns(batch), names) for batch in reader.read()]
    if not parts:
        return pa.table({name: pa.nulls(0) for name in names})
    return pa.concat_tables(parts, promote_options="permissive").combine_chunks()


def slices(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Cut ``n_rows`` rows into equal batches, a multiple of four: 2 or 4 threads end together."""
    batches = -(-n_rows // max(1, min(BATCH_ROWS, BATCH_VALUES // n_columns)))
    if n_rows > FEW_ROWS:
        batches += -batches % (4 if n_rows > 4 * FEW_ROWS else 2)
    size = max(1, -(-n_rows // max(1, batches)))
    return (slice(at, min(at + size, n_rows)) for at in range(0, n_rows, size))


def rows_at_a_time(n_rows: int, n_columns: int) -> int:
    """Return how many rows to read at a time from a file.

    Few enough for flat memory; many enough that a batch costs little in Python; and, for a small
    file, few enough for several threads.
    """
    return min(FILE_ROWS, max(FEW_ROWS, min(n_rows // 16, FILE_VALUES // n_columns)))


def column_names(schema: pa.Schema) -> tuple[str, ...]:
    """Return the names of the columns; raises `DataError` if there are none, or one twice."""
    if len(schema.names) == 0:
        raise DataError("the data has no columns: a minimum of 1 is required")
    if twice := [name for name, times in Counter(schema.names).items() if times > 1]:
        raise DataError(f"column {twice[0]!r} is listed twice: rename one of the two")
    return tuple(schema.names)


def split(batches: Iterable[pa.RecordBatch]) -> Iterator[Batch]:
    """Cut large batches (without a copy), so that threads have equal work."""
    for batch in batches:
        for rows in slices(batch.num_rows, batch.num_columns):
            yield batch.slice(rows.start, rows.stop - rows.start)


def as_name(value: object) -> str:
    """Return a cell's value as text: a whole number without ``.0``, a date in ISO 8601."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)


def in_memory(reader: Reader) -> bool:
    """Return whether the rows came as an object, not from a file or server."""
    return reader.source == "the data"


def no_rows(reader: Reader) -> DataError:
    """Explain that there are no rows."""
    named = reader.n_bytes is not None and reader.names is not None
    return refused("no_rows_below" if named else "no_rows", source=reader.source)
