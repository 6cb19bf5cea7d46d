"""A schema read off the data: kinds, ranges and categories. Never public."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.columns import as_numbers, as_texts, is_text
from hushtable.data.encoding import infinite, naming_places
from hushtable.data.readers import Reader, no_rows
from hushtable.data.schema import MAX_FEATURES, Feature, Schema
from hushtable.data.texts.columns import ColumnUnderstanding, Kind, joined_options
from hushtable.data.texts.decisions import Decider, numeric_identifier
from hushtable.data.texts.missing_values import named
from hushtable.data.texts.reading import ColumnReading, Form, Reading
from hushtable.data.texts.seen import (
    TextsSeen,
    n_different,
    stands_for_missing,
    without_nines,
)
from hushtable.data.typed import typed
from hushtable.data.values import DATE
from hushtable.data.weights import Numbered, Weights, numbered
from hushtable.errors import DataError, PlanError
from hushtable.threads import FEW_TO_COUNT, for_each, n_threads


class _Found:
    """Ranges and texts seen in some of the batches."""

    def __init__(self, names: list[str], reading: Reading, *, verbatim: bool) -> None:
        self.names, self.reading, self.verbatim = names, reading, verbatim
        self.absent = named(reading.missing, ".")
        self.n_rows = 0
        self.low = np.full(len(names), np.inf)
        self.high = np.full(len(names), -np.inf)
        #: By number of the column, its texts.
        self.texts: dict[int, TextsSeen] = {}
        #: By number of the column, what others hold besides plain numbers.
        self.forms: dict[int, Form] = {}
        #: By number of the column, how many of its first numbers are whole and all different.
        self.different: dict[int, int] = {}
        #: By number of the column, the range of its first numbers without such as -9999.
        self.inner: dict[int, tuple[float, float]] = {}

    def add(self, item: Numbered) -> None:
        start, batch, _ = item
        self.n_rows += len(batch)
        if isinstance(batch, np.ndarray):
            self._add_numbers(self.reading.without_numbers(batch), start, slice(None))
            return
        for j, column in enumerate(batch.columns):
            column = self.reading.without_missing(column)
            if is_text(column.type):
                self._seen(j).add(column, start)
                continue
            if (form := _form(column.type)) != "number":
                self.forms[j] = form
            numbers = as_numbers(column, self.names[j], start)
            self._add_numbers(numbers[:, np.newaxis], start, slice(j, j + 1))
            if start == 0:
                self.inner[j] = without_nines(numbers)
                self.different[j] = n_different(numbers)

    def _seen(self, j: int) -> TextsSeen:
        """Return what was seen in the texts of a column."""
        if j not in self.texts:
            as_number = self.reading.kinds.get(self.names[j]) == "number"
            self.texts[j] = TextsSeen(self.verbatim, self.absent, as_number)
        return self.texts[j]

    def _add_numbers(self, X: NDArray[Any], start: int, columns: slice) -> None:
        row, column = kernels.column_ranges(X, self.low[columns], self.high[columns])
        if row >= 0:
            raise infinite(self.names[columns][column], start + row)

    def merge(self, other: "_Found") -> None:
        self.n_rows += other.n_rows
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)
        self.forms |= other.forms
        self.different |= other.different
        self.inner |= other.inner
        for j, texts in other.texts.items():
            self._seen(j).merge(texts)

    def mixed(self, j: int) -> bool:
        """Whether a column holds text in some files and numbers in others."""
        return j in self.texts and bool(self.texts[j].n and self.low[j] <= self.high[j])


def _check_mixed(one: ColumnUnderstanding, found: _Found, j: int) -> None:
    """Raise `DataError` for words in one file beside numbers in another."""
    if found.mixed(j) and (one.reading is None or one.reading.kind == "category"):
        raise DataError(
            f"column {one.name!r} holds numbers in some rows and text in others: make it one or "
            "the other"
        )


_FORMS = {"number": "numbers", "date": "dates", "time": "times", "boolean": "true and false"}


def _form(kind: pa.DataType) -> Form:
    """Return what a column of an Arrow type holds that is no text."""
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "date"
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return "time"
    return "boolean" if pa.types.is_boolean(kind) else "number"


@dataclass(frozen=True)
class Inferred:
    """A schema read off rows, and how they were understood."""

    schema: Schema
    n_rows: int
    #: How texts became values: for later files.
    reading: Reading
    columns: tuple[ColumnUnderstanding, ...]


def understood(
    reader: Reader, weights: Weights | None = None, n_jobs: int | None = None
) -> tuple[tuple[ColumnUnderstanding, ...], Reading, "_Found"]:
    """Look at all rows once, and decide what each column is.

    Raises `DataError` on an infinity, a mixture of types, or no row at all; not for a doubt.
    """
    names = list(reader.names or (f"x{j}" for j in range(reader.n_columns)))
    if len(names) > MAX_FEATURES:  # before each is looked at
        raise PlanError(f"{len(names):,} features: a schema takes at most {MAX_FEATURES:,}")
    reading = reader.reading or Reading()
    _check_names(reading, names, reader)
    threads = n_threads(n_jobs, reader.n_rows, few=FEW_TO_COUNT)
    idle: SimpleQueue[_Found] = SimpleQueue()
    for _ in range(threads):
        idle.put(_Found(names, reading, verbatim=reader.n_bytes is None))

    def look(item: Numbered) -> None:
        found = idle.get()
        try:
            found.add(item)
        finally:
            idle.put(found)

    with naming_places(reader):
        for_each(look, numbered(reader, weights), threads)
    total = idle.get()
    while not idle.empty():
        total.merge(idle.get())
    if total.n_rows == 0:
        raise no_rows(reader)
    decide = _decider(reader, reading, total)
    columns = tuple(decide(j) for j in range(len(names)))
    read = {one.name: one.reading for one in columns if one.reading is not None}
    return columns, replace(reading, columns=read), total


def _check_names(reading: Reading, names: Sequence[str], reader: Reader) -> None:
    unknown = [name for name in reading.kinds if name not in names and name not in reading.dropped]
    if unknown:
        raise DataError(f"{reader.source} has no column {unknown} (--as): its columns are {names}")


def _decider(
    reader: Reader, reading: Reading, found: _Found
) -> Callable[[int], ColumnUnderstanding]:
    """Return what decides on a column, by its number."""
    # In several files, a place names its own.
    named = reader.source != "the data" and len(reader.files) < 2
    said = f" of {reader.source}" if named else ""
    seen = {found.names[j]: texts for j, texts in found.texts.items()}
    decider = Decider(reading, seen, lambda row: reader.place(row) + said, reader.delimiter)

    def decide(j: int) -> ColumnUnderstanding:
        name, low, high = found.names[j], found.low[j], found.high[j]
        if j in found.texts and (found.texts[j].n or low > high):
            one = decider.decide(name)
            _check_mixed(one, found, j)
            if one.kind != "number" or one.refused or one.doubt or found.mixed(j):
                return one
            low, high = found.texts[j].low, found.texts[j].high
            different, inner = found.texts[j].n_different, found.texts[j].inner
        else:
            form = found.forms.get(j, "number")
            kind: Kind = "date" if form == "date" else "number"
            read = None if form == "number" else ColumnReading(form)
            one = ColumnUnderstanding(name, kind, 1.0, f"holds {_FORMS[form]}", reading=read)
            different, inner = found.different.get(j, 0), found.inner.get(j, (np.inf, -np.inf))
        if low > high and j not in found.texts:
            doubt, options = "it is missing in every row", (("--drop", name),)
            return ColumnUnderstanding(name, "empty", 1.0, doubt, doubt, options, refused=True)
        if low == high:
            return replace(one, kind="constant")
        named = reader.names is not None and name not in reading.kinds
        why = numeric_identifier(name, low, high, different) if named else ""
        if why and one.kind == "number":
            return replace(one, kind="id", confidence=0.8, doubt=why, options=(("--drop", name),))
        if (odd := stands_for_missing(low, high, inner)) is not None and one.kind == "number":
            text = f"{odd:.10g}"  # all digits: it is what the option names
            doubt = f"{text} lies far from all others: does it stand for a missing value?"
            return replace(one, confidence=0.8, doubt=doubt, options=(("--missing", text),))
        return one

    return decide


def schema_from_data(
    reader: Reader, weights: Weights | None = None, n_jobs: int | None = None
) -> Inferred:
    """Read a schema off the data, without the rows of weight 0.

    It is not public: every range is the data's own minimum and maximum. Raises `DataError` on an
    infinity, a column without any value, texts whose meaning is in doubt, too many categories, or
    no row at all.
    """
    columns, reading, found = understood(reader, weights, n_jobs)
    refuse(columns, reading, reader.source)
    features: list[Feature | None] = [_feature(one, j, found) for j, one in enumerate(columns)]
    again = [j for j, feature in enumerate(features) if feature is None]
    if again:
        doubtful = [columns[j] for j in again]
        some = _second_look(reader, reading, again, weights, doubtful)
        for j, feature in zip(again, some, strict=True):
            features[j] = feature
    schema = Schema(
        tuple(f for f in features if f is not None), public=False, named=reader.names is not None
    )
    return Inferred(schema, found.n_rows, reading, columns)


def _feature(one: ColumnUnderstanding, j: int, found: _Found) -> Feature | None:
    """Return the feature that a column is; None if it takes another look at its texts."""
    texts = found.texts.get(j)
    if texts is None or not texts.n:
        unit = DATE if found.forms.get(j) == "date" else ""
        return _numeric(one.name, found.low[j], found.high[j], unit)
    if one.reading is None or texts.n_plain not in (0, texts.n) or found.mixed(j):
        return None
    if one.reading.kind == "category" and not texts.n_plain:
        return Feature.categorical(one.name, sorted(texts.texts))
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
    """Yield the features of columns whose texts had to be understood before they were values."""
    if reader.names is not None:
        reader = reader.select([reader.names[j] for j in places])
        places = range(len(places))
    low, high = np.full((2, reader.n_columns), np.inf) * [[1.0], [-1.0]]
    texts: dict[int, set[str]] = {}
    for source in numbered(typed(reader, None, reading), weights):
        for start, batch, _ in source:
            for j in places:
                column: Any = batch.column(j) if isinstance(batch, pa.RecordBatch) else batch[:, j]
                if is_text(column.type):
                    found = pc.unique(as_texts(column, str(j))).drop_null()
                    texts.setdefault(j, set()).update(found.to_pylist())
                else:
                    X = as_numbers(column, str(j), start)[:, np.newaxis]
                    kernels.column_ranges(X, low[j : j + 1], high[j : j + 1])
    for j, one in zip(places, columns, strict=True):
        if j in texts:
            yield Feature.categorical(one.name, sorted(texts[j]))
        else:
            assert one.reading is not None
            unit = DATE if one.reading.kind == "date" else one.reading.unit
            yield _numeric(one.name, low[j], high[j], unit)


def refuse(
    columns: Sequence[ColumnUnderstanding], reading: Reading, source: str, *, personal: bool = False
) -> None:
    """Raise `DataError` for the columns in doubt, with the options that resolve it.

    With ``personal``, those that may identify single rows are in doubt by themselves.
    """
    identifying = [one for one in columns if one.kind in ("id", "text") and one.doubt]
    doubtful = [one for one in columns if one.refused or one in identifying]
    if not any(one.refused for one in columns) and not (personal and identifying):
        return
    lines = [f"  {one.name}: {one.doubt}" for one in doubtful]
    options = joined_options((o for one in doubtful for o in one.options), reading)
    what = "a column is" if len(doubtful) == 1 else f"{len(doubtful):,} columns are"
    raise DataError(
        f"{source}: {what} in doubt; correct the values, or say how to read them (in Python, to "
        "hushtable.data.read).\n" + "\n".join(lines) + f"\nAdd: {options}"
    )
