"""Reading tables as their owners mean them: the kind of each column, and how its texts are read."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from queue import SimpleQueue
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.calendar import calendar_features
from hushtable.data.columns import (
    InfiniteError,
    as_numbers,
    as_texts,
    infinite,
    is_text,
    nan_as_null,
)
from hushtable.data.encoding import naming_places
from hushtable.data.history import check_named, history_names, history_unit
from hushtable.data.readers import (
    Batch,
    Reader,
    in_memory,
    no_rows,
)
from hushtable.data.readers.reader import arrow_columns
from hushtable.data.readers.stored import StoredRows
from hushtable.data.remedies import limited, names_in_rows
from hushtable.data.row_cache import KeptBatches
from hushtable.data.schema import DATE, MAX_FEATURES, Feature, Schema
from hushtable.data.sentinels import CODES, DAYS, codes_in, without_codes
from hushtable.data.texts.decisions import Decider, NumbersSeen
from hushtable.data.texts.doubts import with_codes
from hushtable.data.texts.reading import (
    ColumnReading,
    ColumnUnderstanding,
    Form,
    Kind,
    Reading,
    joined_options,
    named_numbers,
)
from hushtable.data.texts.seen import TextsSeen, add_different, n_different
from hushtable.data.typed import typed, with_calendar, with_history
from hushtable.data.weights import Numbered, Weights, numbered
from hushtable.errors import DataError, PlanError
from hushtable.language import N_, _
from hushtable.threads import FEW_ROWS, FEW_TO_COUNT, for_each, n_threads

#: Largest number of bytes per value for which rows in memory are kept after reading, so that
#: repeated texts are not looked up again.
_SMALL = 4


class _Found:
    """Ranges and texts seen in some of the batches."""

    def __init__(self, names: list[str], reading: Reading) -> None:
        self.names, self.reading = names, reading
        #: Number of rows, and of those in the first batch.
        self.n_rows = self.n_first = 0
        self.low = np.full(len(names), np.inf)
        self.high = np.full(len(names), -np.inf)
        #: Texts, by number of the column.
        self.texts: dict[int, TextsSeen] = {}
        #: Columns for which `add` returned numbers in place of texts.
        self.parsed: set[int] = set()
        #: Contents other than plain numbers, by number of the column.
        self.forms: dict[int, Form] = {}
        #: How many of the first numbers are whole and all different, by number of the column.
        self.different: dict[int, int] = {}
        #: Range of the first numbers without codes such as -9999, by number of the column.
        self.inner: dict[int, tuple[float, float]] = {}
        #: Rows of the first values that may be codes for missing ones, by number of the column.
        self.codes: dict[int, dict[str, int]] = {}
        #: Row of the first ``inf`` and ``-inf``, by number of the column.
        self.infinite: dict[int, dict[str, int]] = {}

    def add(self, batch: Batch, start: int) -> Batch:
        """Process a batch; return it with numbers in place of texts that can mean nothing else.

        Texts that repeat are then dictionary-encoded. If some texts are codes for missing values,
        texts stay, because their reading may depend on the column's decimal separator.
        """
        self.n_rows += len(batch)
        self.n_first = self.n_first if start else len(batch)
        if isinstance(batch, StoredRows):
            batch.fold_ranges(self.low, self.high)
            return batch
        named = {"category", "label"} & {*self.reading.kinds.values()}
        if isinstance(batch, np.ndarray) and named:
            batch = pa.RecordBatch.from_arrays(arrow_columns(batch), self.names)
        if isinstance(batch, np.ndarray):
            self._add_numbers(self.reading.without_numbers(batch, self.names), start, slice(None))
            return batch
        made, texts = list(batch.columns), []
        for j, column in enumerate(batch.columns):
            column, declared = _as_declared(self.reading.without_missing(column, self.names[j]))
            if self.reading.kinds.get(self.names[j]) in ("category", "label"):
                declared = True
                column = column if is_text(column.type) else as_texts(column, self.names[j])
            if is_text(column.type):
                seen = self._seen(j)
                seen.declared |= declared
                texts.append(seen)
                values = seen.look(column, start)
                if values is not None and not self.reading.missing:
                    made[j] = nan_as_null(values)
                    self.parsed.add(j)
                elif seen.different is not None and not self.reading.missing:
                    made[j] = seen.different.column
                continue
            if (form := _form(column.type)) != "number":
                self.forms[j] = form
            numbers = self._add_column(as_numbers(column, self.names[j], start), start, j)
            if start == 0:
                self.inner[j] = without_codes(numbers)
                self.different[j] = n_different(numbers)
                usual = DAYS if form == "date" else CODES
                found = codes_in(numbers, usual) if form in ("date", "number") else {}
                self.codes[j] = {_code_text(code, form): rows for code, rows in found.items()}
        add_different(texts, start)
        return pa.RecordBatch.from_arrays(made, batch.schema.names)

    def _seen(self, j: int) -> TextsSeen:
        """Return the findings in the texts of a column."""
        if j not in self.texts:
            as_number = self.reading.kinds.get(self.names[j]) == "number"
            absent = named_numbers(self.reading.codes(self.names[j]), ".")
            self.texts[j] = TextsSeen(absent, as_number)
        return self.texts[j]

    def _add_column(self, numbers: NDArray[Any], start: int, j: int) -> NDArray[Any]:
        """Process the numbers of a column; return them with NaN in place of infinities."""
        try:
            self._add_numbers(numbers[:, np.newaxis], start, slice(j, j + 1))
        except InfiniteError:
            for text in ("inf", "-inf"):
                if len(rows := np.flatnonzero(numbers == float(text))):
                    self._note_infinite(j, {text: start + int(rows[0])})
            numbers = np.where(np.isinf(numbers), np.nan, numbers)
            self._add_numbers(numbers[:, np.newaxis], start, slice(j, j + 1))
        return numbers

    def _note_infinite(self, j: int, first: Mapping[str, int]) -> None:
        mine = self.infinite.setdefault(j, {})
        mine |= {text: min(row, mine.get(text, row)) for text, row in first.items()}

    def _add_numbers(self, X: NDArray[Any], start: int, columns: slice) -> None:
        row, column = kernels.column_ranges(X, self.low[columns], self.high[columns])
        if row >= 0:
            raise infinite(self.names[columns][column], start + row)

    def merge(self, other: "_Found") -> None:
        self.n_rows += other.n_rows
        self.n_first = max(self.n_first, other.n_first)
        self.parsed |= other.parsed
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)
        self.forms |= other.forms
        self.different |= other.different
        self.inner |= other.inner
        self.codes |= other.codes
        for j, first in other.infinite.items():
            self._note_infinite(j, first)
        for j, texts in other.texts.items():
            self._seen(j).merge(texts)

    def numbers(self, j: int) -> NumbersSeen:
        """Return what was seen of the numbers of a column that is not text."""
        ends, inner = (
            (float(self.low[j]), float(self.high[j])),
            self.inner.get(j, (np.inf, -np.inf)),
        )
        more = self.n_rows > self.n_first
        return NumbersSeen(*ends, self.different.get(j, 0), inner, more)

    def mixed(self, j: int) -> bool:
        """Return whether a column holds text in some files and numbers in others."""
        return j in self.texts and bool(self.texts[j].n and self.low[j] <= self.high[j])


def _as_declared(column: pa.Array) -> tuple[pa.Array, bool]:
    """Return a column, whole numbers of a dictionary as texts; and whether it has such numbers.

    Frames call a dictionary a category: its type says that numbers are labels.
    """
    if not pa.types.is_dictionary(column.type):
        return column, False
    values = column.dictionary
    if is_text(column.type):
        return column, bool(pc.all(pc.match_substring_regex(values, r"^[+-]?\d+$")).as_py())
    whole = pa.types.is_integer(values.type)
    if pa.types.is_floating(values.type):  # a frame turns whole numbers with gaps into floats
        whole = not pc.any(pc.not_equal(values, pc.round(values))).as_py()
    return (as_texts(column, ""), True) if whole else (column, False)


def _code_text(code: float, form: Form) -> str:
    """Return a value as the option names it: a number with all digits, a day in ISO 8601."""
    return f"{code:.10g}" if form == "number" else str(np.datetime64(int(code), "s"))[:10]


def _check_mixed(one: ColumnUnderstanding, found: _Found, j: int) -> None:
    """Raise `DataError` for words in one file and numbers in another."""
    if found.mixed(j) and (one.reading is None or one.reading.is_category):
        raise DataError(
            f"column {one.name!r} holds numbers in some rows and text in others: make it one or "
            "the other"
        )


_FORMS = {
    "number": N_("holds numbers"), "date": N_("holds dates"), "time": N_("holds times"),
    "boolean": N_("holds true and false"),
}  # fmt: skip


def _form(kind: pa.DataType) -> Form:
    """Return the contents of a column whose Arrow type is not text."""
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "date"
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return "time"
    return "boolean" if pa.types.is_boolean(kind) else "number"


@dataclass(frozen=True)
class Inferred:
    """A schema derived from rows, and how the rows were read."""

    schema: Schema
    n_rows: int
    #: How texts became values, for later files.
    reading: Reading
    columns: tuple[ColumnUnderstanding, ...]
    #: The rows, which are read from memory if all of them are kept; and their bytes there.
    rows: Reader
    n_bytes: int = 0


def understood(
    reader: Reader,
    weights: Weights | None = None,
    n_jobs: int | None = None,
    take: Callable[[int, Batch, Batch], None] | None = None,
) -> tuple[tuple[ColumnUnderstanding, ...], Reading, "_Found"]:
    """Read all rows once, and decide on the kind of each column.

    ``take`` is called with the number of each batch's first row, the batch, and the batch with
    numbers parsed; from any thread. Raises `DataError` on an infinity, a mixture of types, or if
    there are no rows, but not for a doubt.
    """
    names = list(reader.names or (f"x{j}" for j in range(reader.n_columns)))
    if len(names) > MAX_FEATURES:  # before each is processed
        raise PlanError(f"{len(names):,} features: a schema takes at most {MAX_FEATURES:,}")
    reading = reader.reading or Reading()
    _check_names(reading, names, reader)
    threads = n_threads(n_jobs, reader.n_rows, few=FEW_TO_COUNT)
    idle: SimpleQueue[_Found] = SimpleQueue()
    for _thread in range(threads):
        idle.put(_Found(names, reading))

    def look(item: Numbered) -> None:
        start, batch, _ = item
        found = idle.get()
        try:
            parsed = found.add(batch, start)
            if take is not None:
                take(start, batch, parsed)
        finally:
            idle.put(found)

    with naming_places(reader):
        for_each(look, numbered(reader, weights, stored=not reading.missing), threads)
    total = idle.get()
    while not idle.empty():
        total.merge(idle.get())
    if total.n_rows == 0:
        raise no_rows(reader)
    decide = _decider(reader, reading, total)
    whose = ColumnUnderstanding(reading.entity, "id", 1.0, _("identifies the entity of a reading"))
    plain = _of_matrix(total) if reader.numeric and reader.names is None else {}
    found = [whose if n == whose.name else plain.get(j) or decide(j) for j, n in enumerate(names)]
    columns = names_in_rows(found, total.texts, reader)
    read = {one.name: one.reading for one in columns if one.reading is not None}
    return columns, replace(reading, columns={**reading.columns, **read}), total


def _of_matrix(found: _Found) -> dict[int, ColumnUnderstanding]:
    """Return the columns of a matrix that have values, by their numbers.

    Like `_decider`, but faster, because there are no names or texts to judge.
    """
    form = _FORMS["number"]
    holds, ends = _(form), np.stack([found.low, found.high], axis=1)
    return {
        j: ColumnUnderstanding(found.names[j], "number" if low < high else "constant", 1.0, holds)
        for j, (low, high) in enumerate(ends.tolist())
        if low <= high
    }


def _check_names(reading: Reading, names: Sequence[str], reader: Reader) -> None:
    known = {*names, *reading.dropped}
    unknown = [name for name in reading.kinds if name not in known]
    if unknown:
        raise DataError(f"{reader.source} has no column {unknown} (--as): its columns are {names}")


def _decider(
    reader: Reader, reading: Reading, found: _Found
) -> Callable[[int], ColumnUnderstanding]:
    """Return a function that decides on a column, by its number."""
    seen = {found.names[j]: texts for j, texts in found.texts.items()}
    decider = Decider(reading, seen, reader.where, reader.delimiter)

    def decide(j: int) -> ColumnUnderstanding:
        return limited(decided(j), found)

    def decided(j: int) -> ColumnUnderstanding:
        name, texts = found.names[j], found.texts.get(j)
        asks = name not in reading.kinds
        if texts is not None and (texts.n or found.low[j] > found.high[j]):
            one = decider.noting_total(decider.decide(name), texts)
            _check_mixed(one, found, j)
            if one.kind not in ("number", "date") or one.refused or found.mixed(j):
                return one
            if texts.codes and asks:
                return with_codes(one, texts.codes)
            if one.kind == "date" or one.doubt:
                return one
            more = texts.n > texts.n_different
            numbers = NumbersSeen(texts.low, texts.high, texts.n_different, texts.inner, more)
        else:
            form = found.forms.get(j, "number")
            kind: Kind = "date" if form == "date" else "number"
            read = None if form == "number" else ColumnReading(form)
            one = ColumnUnderstanding(name, kind, 1.0, _(_FORMS[form]), reading=read)
            if j in found.infinite:
                return decider.with_infinities(one, found.infinite[j])
            if found.low[j] > found.high[j]:
                doubt, drop = _("all its values are missing"), (("--drop", name),)
                return ColumnUnderstanding(name, "empty", 1.0, doubt, doubt, drop, refused=True)
            coded = kind in ("number", "date") and asks and found.low[j] < found.high[j]
            if coded and (codes := found.codes.get(j)):
                return with_codes(one, codes)
            numbers = found.numbers(j)
        return numbers.judged(one, asks=asks and reader.names is not None)

    return decide


def schema_from_data(
    reader: Reader,
    weights: Weights | None = None,
    n_jobs: int | None = None,
    n_bytes: int = 0,
) -> Inferred:
    """Derive a schema from the data, without the rows of weight 0.

    At most ``n_bytes`` of the rows are kept for the following passes: rows of files as numbers and
    texts, and rows in memory if this takes only a fraction of it.

    The schema is not public: every range is the minimum and maximum of the data. Raises `DataError`
    on an infinity, a column without any value, ambiguous texts, too many categories, or if there
    are no rows.
    """
    small = in_memory(reader)
    keeps = not small or ((reader.n_rows or 0) > FEW_ROWS and not reader.numeric)
    keeps = keeps and n_bytes > 0 and weights is None
    kept = KeptBatches(n_bytes, _SMALL * reader.n_columns if small else np.inf)

    def keep(start: int, _batch: Batch, parsed: Batch) -> None:
        kept.add(start, parsed)

    columns, reading, found = understood(reader, weights, n_jobs, keep if keeps else None)
    refuse(columns, reading, reader.source)
    # Kept numbers are useless for a column whose texts turn out to be other than plain numbers,
    # such as the date 20260515.
    plain = (reading.columns.get(found.names[j]) for j in found.parsed)
    if all(one is not None and one.takes_plain_numbers for one in plain):
        reader = kept.rows(reader, found.n_rows) or reader
    else:
        kept.clear()
    if reading.entity:
        inferred = _inferred_of_history(reader, reading, columns, weights, n_jobs)
        return replace(inferred, reading=reading, columns=columns, rows=reader)
    parts, columns = _calendar(reader, reading, columns)
    features: list[Feature | None] = [_feature(one, j, found) for j, one in enumerate(columns)]
    others = [j for j, one in enumerate(columns) if one.name != reading.time]
    again = [j for j in others if features[j] is None]
    if again:
        doubtful = [columns[j] for j in again]
        some = _second_look(reader, reading, again, weights, doubtful)
        for j, found_again in zip(again, some, strict=True):
            features[j] = found_again
    left = [feature for j in others if (feature := features[j]) is not None]
    schema = Schema((*left, *parts), public=False, named=reader.names is not None)
    return Inferred(schema, found.n_rows, reading, columns, reader, kept.n_bytes)


def _inferred_of_history(
    reader: Reader,
    reading: Reading,
    columns: Sequence[ColumnUnderstanding],
    weights: Weights | None,
    n_jobs: int | None,
) -> Inferred:
    """Derive a schema from the rows, with the history of all numbers in place of the numbers."""
    check_named(reader, {"entity": reading.entity, "time": reading.time})
    names = {one.name: one.kind for one in columns}
    values = [name for name, kind in names.items() if kind == "number" and name != reading.time]
    if not values:
        raise DataError(
            f"{reader.source} has no column of varying numbers besides the entity and the time: "
            f"history needs at least one; its columns are {names}"
        )
    rows = with_history(reader, reading, values)
    kinds = {name: kind for name, kind in reading.kinds.items() if name in (rows.names or ())}
    own = replace(reading, entity="", kinds=kinds)
    inferred = schema_from_data(replace(rows, reading=own), weights, n_jobs)
    derived = history_names(values)
    features = (
        replace(f, unit=history_unit(f.name), neutral=True) if f.name in derived else f
        for f in inferred.schema.features
    )
    return replace(inferred, schema=replace(inferred.schema, features=tuple(features)))


def _calendar(
    reader: Reader, reading: Reading, columns: Sequence[ColumnUnderstanding]
) -> tuple[list[Feature], tuple[ColumnUnderstanding, ...]]:
    """Return the features of the time column's parts, without the hour if no row states one.

    The column's doubt then reports this.
    """
    rows = with_calendar(reader, reading)
    if not reading.time:
        return [], tuple(columns)
    [one] = (one for one in columns if one.name == reading.time)
    if one.kind != "date":
        raise DataError(
            f"time={one.name!r}: {one.evidence}, but needs points in time, such as 2026-02-28 14:30"
        )
    seen = (set(pc.unique(pa.table(batch)["hour"]).to_pylist()) for batch in rows.read())
    if any(hours - {"0", None} for hours in seen):
        return calendar_features(), tuple(columns)
    doubt = "it has no hours, only days: the hour is not a feature"
    warnings.warn(f"{one.name}: {doubt}", UserWarning, stacklevel=7)
    noted = tuple(replace(c, doubt=doubt) if c is one else c for c in columns)
    return [feature for feature in calendar_features() if feature.name != "hour"], noted


def _feature(one: ColumnUnderstanding, j: int, found: _Found) -> Feature | None:
    """Return the feature of a column; None if its texts have to be read again."""
    texts = found.texts.get(j)
    if texts is None or not texts.n:
        unit = DATE if found.forms.get(j) == "date" else ""
        return _numeric(one.name, found.low[j], found.high[j], unit)
    if one.reading is None or texts.n_plain not in (0, texts.n) or found.mixed(j):
        return None
    if one.reading.is_category and not texts.n_plain:
        return Feature.categorical(one.name, one.reading.categories(texts.texts))
    if one.reading.kind == "number" and texts.n_plain and one.reading.decimal == ".":
        return _numeric(one.name, texts.low, texts.high, one.reading.unit)
    return None


def _numeric(name: str, low: float, high: float, unit: str) -> Feature:
    try:
        return Feature.numeric(name, low=low, high=high, unit=unit)
    except ValueError as error:
        raise DataError(str(error)) from None


def _second_look(
    reader: Reader,
    reading: Reading,
    places: Sequence[int],
    weights: Weights | None,
    columns: Sequence[ColumnUnderstanding],
) -> Iterator[Feature]:
    """Yield the features of columns whose texts had to be analysed before they became values."""
    if reader.names is not None:
        reader = reader.select([reader.names[j] for j in places])
        places = range(len(places))
    low, high = np.full((2, reader.n_columns), np.inf) * [[1.0], [-1.0]]
    texts: dict[int, Counter[str]] = {}
    for source in numbered(typed(reader, None, reading), weights):
        for start, batch, _weights in source:
            for j in places:
                column: Any = batch.column(j) if isinstance(batch, pa.RecordBatch) else batch[:, j]
                if is_text(column.type):
                    rows = pc.value_counts(as_texts(column, str(j)).drop_null()).flatten()
                    found = dict(zip(*(one.to_pylist() for one in rows), strict=True))
                    texts.setdefault(j, Counter()).update(found)
                else:
                    X = as_numbers(column, str(j), start)[:, np.newaxis]
                    kernels.column_ranges(X, low[j : j + 1], high[j : j + 1])
    for j, one in zip(places, columns, strict=True):
        assert one.reading is not None
        if j in texts:
            yield Feature.categorical(one.name, one.reading.categories(texts[j]))
        else:
            unit = DATE if one.reading.kind == "date" else one.reading.unit
            yield _numeric(one.name, low[j], high[j], unit)


def refuse(
    columns: Sequence[ColumnUnderstanding], reading: Reading, source: str, *, personal: bool = False
) -> None:
    """Raise `DataError` for the columns in doubt, with the options that resolve it.

    With ``personal``, columns that are ``asked`` about are enough to raise.
    """
    doubtful = [one for one in columns if one.refused or (one.asked and one.doubt)]
    if not any(one.refused or personal for one in doubtful):
        return
    lines = [f"  {one.name}: {one.doubt}" for one in doubtful]
    options = joined_options((o for one in doubtful for o in one.options), reading)
    what = "a column is" if len(doubtful) == 1 else f"{len(doubtful):,} columns are"
    raise DataError(
        f"{source}: {what} in doubt; correct the values, or specify how to read them.\n"
        + "\n".join(lines)
        + (f"\nAdd: {options}" if options else "")
    )


HEADERS = ("column", "kind", "confidence", "evidence", "doubt")


def row(one: ColumnUnderstanding) -> tuple[str, ...]:
    """Return a column as a row of the table."""
    sure = f"{int(100 * one.confidence)}%"
    return one.name, one.kind, sure, one.evidence, "" if one.doubt == one.evidence else one.doubt


@dataclass(frozen=True)
class Understanding:
    """Columns of a table as they were read: iterable, and a table when printed.

    Attributes
    ----------
    columns : tuple of ColumnUnderstanding
        One for each column, in order.
    found : tuple of str
        Facts detected about the file, such as its encoding, if they are unusual.
    reading : Reading
        How the texts of the columns become values.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable.data import understand
    >>> table = pa.table({"TSH": ["1.2", "0.9", "ERR"], "ward": ["a", "b", "a"]})
    >>> [(one.name, one.kind, one.option) for one in understand(table)]
    [('TSH', 'number', '--missing ERR'), ('ward', 'category', '')]
    """

    columns: tuple[ColumnUnderstanding, ...]
    found: tuple[str, ...]
    reading: Reading

    def __iter__(self) -> Iterator[ColumnUnderstanding]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def doubts(self) -> tuple[ColumnUnderstanding, ...]:
        """Columns that a person should check."""
        return tuple(one for one in self.columns if one.doubt)

    @property
    def refused(self) -> tuple[ColumnUnderstanding, ...]:
        """Columns that `fit` refuses until their doubts are resolved."""
        return tuple(one for one in self.columns if one.refused)

    @property
    def options(self) -> str:
        """The options that resolve the refused columns, as they are typed in a shell."""
        return joined_options((o for one in self.refused for o in one.options), self.reading)

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """A table row for each column."""
        return [row(one) for one in self.columns]

    def __str__(self) -> str:
        rows = [HEADERS, *self.rows]
        widths = [max(len(row[j]) for row in rows) for j in range(len(HEADERS) - 1)]
        lines = [
            "  ".join(
                [*(c.ljust(w) for c, w in zip(row[:-1], widths, strict=True)), row[-1]]
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, *self.found])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(header)}</th>" for header in HEADERS)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
