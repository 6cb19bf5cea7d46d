"""Rows under a schema: columns matched by name, and texts read as values."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.calendar import PARTS, by_clock, parts_of, sources, zone_doubt
from hushtable.data.columns import (
    as_column,
    as_numbers,
    integer_too_large,
    is_text,
    nan_as_null,
    null,
    scalar,
)
from hushtable.data.history import (
    History,
    check_named,
    compared_within,
    finite,
    history_names,
    hours_of,
    values_behind,
)
from hushtable.data.readers import (
    Batch,
    FileLayout,
    Reader,
    Unasked,
    as_reader,
    found_name,
    in_memory,
    near_names,
)
from hushtable.data.readers.reader import BATCH_VALUES, Source, arrow_columns, as_table, slices
from hushtable.data.schema import DATE, Feature, Schema
from hushtable.data.texts import dates, numbers
from hushtable.data.texts.reading import ColumnReading, Reading, plain_texts
from hushtable.errors import DataError, MissingColumnError, UsageError
from hushtable.words.options import Option, way


def open_rows(
    X: Any,
    schema: Schema,
    reading: Reading | None = None,
    keep: Sequence[str] = (),
    *,
    attended: bool = True,
    history: History | None = None,
) -> Reader:
    """Open rows under a schema, as a reader of its features, in order, and of columns to keep.

    Columns are matched by name, in any order, or by position if either of the two has no names;
    further columns are left out. ``reading`` determines how texts become values, unless the rows
    have their own. If the rows are not ``attended``, a value that cannot be read does not raise an
    error, but is missing, whatever the other rows are, and `Reader.unasked` notes it. ``history``
    holds the readings before these rows: see `with_history`. Raises `DataError` if a column is
    missing; the message names it.
    """
    before = X.opened if isinstance(X, Reader) else None
    same = before is schema and X.keep == tuple(keep) and (attended or X.unasked is not None)
    if same and history is None:  # opening them again changes nothing
        return X  # type: ignore[no-any-return]
    if schema.differences is not None and (
        before is None or before.differences != schema.differences
    ):
        rows = open_rows(X, schema.of_rows, reading, keep, attended=attended, history=history)
        return replace(_with_differences(rows, schema), opened=schema)
    reading = reading or Reading()
    needed = () if attended or not schema.named else sources([*schema.names, *keep], reading)
    unasked = None if attended else Unasked(needed)
    if isinstance(X, Reader):
        reader = X if attended or X.unasked is not None else replace(X, unasked=unasked)
    else:
        texts, layout = schema.categorical_names, FileLayout(unasked=unasked)
        reader = as_reader(X, text_columns=texts, layout=layout, kept=reading.layout)
    reading = reading.updated(reader.reading)
    reader = with_derived(reader, reading, schema.names, keep, history)
    in_order = not (reader.names and schema.named) or [*reader.names] == schema.names
    in_order &= reader.n_columns == len(schema)
    plain = reader.unasked is None and not keep and not reading.missing
    if plain and in_order and reader.numeric:
        return reader
    keep = tuple(keep) or reader.keep
    if plain and not keep and (few := few_numbers(reader, schema)) is not None:
        return few
    return replace(typed(matched(reader, schema, keep), schema, reading), opened=schema)


def few_numbers(reader: Reader, schema: Schema) -> Reader | None:
    """Return a small frame of numbers as one block; None if it is another, or to be refused.

    Making Arrow columns takes ten times as long as scoring. They name the column in a refusal.
    """
    n, matrix = reader.n_rows or 0, reader.sources[0].matrix
    names, wanted = reader.names, schema.names
    by_name = names is not None and schema.named and [*names] != wanted
    columns = {name: j for j, name in enumerate(names or ())}
    places = [columns.get(found_name(name, columns), -1) for name in wanted] if by_name else []
    right = -1 not in places if by_name else reader.n_columns == len(wanted)
    small = 0 < n * reader.n_columns <= BATCH_VALUES
    if matrix is None or reader.steps or schema.categorical_names or not (right and small):
        return None
    values = matrix()
    values = np.take(values, places, axis=1) if by_name else values
    # A copy in row order: kernels are compiled for each layout, and for read-only arrays.
    block = np.array(values, np.float32 if values.dtype == np.float32 else np.float64, order="C")
    if (np.abs(block) >= 2**53).any():  # an infinity, or a whole number that may be rounded
        return None
    source = Source(lambda: iter((block,)), n)
    return Reader.of(wanted if by_name else names, len(schema), source, numeric=True)


def with_derived(
    reader: Reader,
    reading: Reading,
    names: Sequence[str],
    keep: Sequence[str] = (),
    history: History | None = None,
) -> Reader:
    """Return rows with the named columns that a history or a point in time gives."""
    values = values_behind(names) if reading.entity else ()
    reader = with_history(reader, reading, values, keep, history)
    return with_calendar(reader, reading, keep, names)


def matched(reader: Reader, schema: Schema, keep: Sequence[str] = ()) -> Reader:
    """Return a reader of the schema's features, in order, and of the columns to keep."""
    wanted, names = tuple(schema.names), reader.names
    keep = tuple(name for name in keep if name not in wanted)
    if names is not None and schema.named:
        needed = (*wanted, *keep)
    else:  # by place
        features = [name for name in names or () if name not in keep]
        n_features = reader.n_columns if names is None else len(features)
        if n_features != len(wanted):
            raise DataError(
                f"{reader.source} has {n_features} columns, but the plan has {len(wanted)} "
                "features: give the plan's columns in the plan's order"
            )
        needed = (*features, *keep)
    known = {*(names or needed[: len(wanted)])}
    if lacking := [name for name in needed if found_name(name, known) not in known]:
        left = [name for name in names or () if name not in needed]
        raise MissingColumnError(
            f"{reader.source} has no column {lacking}; its other columns are {left[:10]}: columns "
            f"are matched by name, in any order{near_names(lacking, left)}",
            lacking,
        )
    if names is not None and names != needed:
        reader = reader.select(needed)
    return replace(reader, keep=keep)


def left_out(reader: Reader, schema: Schema, keep: Sequence[str] = ()) -> list[str]:
    """Return the columns of a reader that a schema does not use."""
    known = {*schema.names, *keep}
    return [] if not schema.named else [n for n in reader.names or () if n not in known]


def typed(reader: Reader, schema: Schema | None, reading: Reading) -> Reader:
    """Return a reader whose texts become values by ``reading``, as for numeric features.

    Without a schema, all columns are read as they were recognised.
    """
    places = [f"x{j}" for j in range(reader.n_columns)]
    names = list(reader.names or (places if schema is None else schema.names))
    # By position, because a matrix has no names.
    readings = [reading.columns.get(name) for name in names[: len(names) - len(reader.keep)]]
    for j, feature in enumerate([] if schema is None else schema.features[: len(readings)]):
        if feature.kind == "numeric":
            readings[j] = reading.column(feature.name, feature.unit)
        else:
            readings[j] = _of_categories(reading, feature, schema, reader)

    def read_values(part: Reader, batches: Iterator[Batch]) -> Iterator[Batch]:
        values = _Values(reader.unasked, names, readings, schema, reading)
        for place, batch in _placed(part, batches):
            yield values.read(batch, place)

    return replace(reader.mapped(read_values, reader.names), reading=None)


def _of_categories(
    reading: Reading, feature: Feature, schema: Schema | None, reader: Reader
) -> ColumnReading | None:
    """Return how texts of a column of categories are read; None if they stay as they are.

    They stay as they are under plans that do not fold texts: for texts in memory, if blanks belong
    to categories, and if no person can be asked.
    """
    if schema is None or schema.labels:
        return reading.category(feature.name)
    odd = any(text != text.strip() or not text for text in feature.categories)
    how = None if odd or reader.unasked is not None else reading.columns.get(feature.name)
    return None if how is not None and how.is_category and reader.n_bytes is None else how


class _Values:
    """Reads the values of columns in a pass over a part of the rows.

    If a person can be asked about a value that cannot be read, an error does so; the first texts of
    a column without a reading determine how it is read. Otherwise, each value is read by itself,
    and counts as missing if that is not possible.
    """

    def __init__(
        self,
        unasked: Unasked | None,
        names: list[str],
        readings: list[ColumnReading | None],
        schema: Schema | None,
        reading: Reading,
    ) -> None:
        self._names, self._readings, self._reading = names, list(readings), reading
        self._schema = schema
        self._unasked = None if schema is None else unasked
        # Whose texts may be dates rather than numbers.
        self._unsettled = {
            j
            for j, column in enumerate(readings)
            if column is not None
            and column.kind == "number"
            and not (column.lenient or names[j] in reading.columns)
        }

    def read(self, batch: Batch, place: Callable[[int], str]) -> Batch:
        """Return a batch with values; ``place`` returns where a row is."""
        self._place = place
        if isinstance(batch, np.ndarray):
            batch = self._reading.without_numbers(batch, self._names)
            if self._unasked is None:
                return batch
            finite = list(batch.T)
            for j, how in enumerate(self._readings):
                if how is not None and not how.is_category:
                    finite[j] = self._finite(finite[j], j)
            return np.stack(finite, axis=1)
        columns = list(batch.columns)
        for j, how in enumerate(self._readings):
            sign = how.decimal if how is not None and how.kind == "number" else None
            column = self._reading.without_missing(columns[j], self._names[j], sign)
            if how is not None and how.is_category:
                column = self._category(column, how, j)
            elif how is not None and is_text(column.type):
                column = nan_as_null(self._numbers(plain_texts(column), j))
            elif self._unasked is not None and how is not None:
                if pa.types.is_integer(column.type):
                    # Beyond 2^53, it is rounded: no range depends on distinguishing such numbers.
                    column = column.cast(pa.float64(), safe=False)
                column = nan_as_null(self._finite(as_numbers(column, self._names[j]), j))
            columns[j] = column
        return pa.RecordBatch.from_arrays(columns, batch.schema.names)

    def _category(self, column: pa.Array, how: ColumnReading, j: int) -> pa.Array:
        if self._schema is None:
            return how.texts(column, ())
        if self._schema.labels:
            return how.texts(column, self._schema.features[j].categories)
        if not is_text(column.type):
            return column
        texts = pc.utf8_trim_whitespace(plain_texts(column))
        return pc.if_else(pc.equal(texts, scalar("")), null(texts.type), texts)

    def _numbers(self, texts: pa.Array, j: int) -> NDArray[np.floating]:
        how, name = self._readings[j], self._names[j]
        assert how is not None
        values = how.values(texts)
        if self._unasked is not None:
            for kind in _CLEAR if j in self._unsettled else ():
                if np.isnan(values).any():
                    values = np.where(np.isnan(values), kind.values(texts), values)
            values = np.where(np.isinf(values), np.nan, values)
        elif j in self._unsettled and texts.null_count < len(texts):
            self._unsettled.remove(j)
            if np.isnan(values).all():
                n = texts.null_count
                fits = (kind for kind in _CLEAR if np.isnan(kind.values(texts)).sum() == n)
                how = self._readings[j] = next(fits, how)
                values = how.values(texts)
        odd = [] if how.lenient else list(_without_value(texts, values))
        if self._unasked is not None:
            self._note(np.array(odd, np.int64), j)
            return values
        if odd:
            raise _no_value(name, texts[odd[0]].as_py(), how, self._place(odd[0]))
        for row in np.flatnonzero(np.abs(values) >= 2**53).tolist() if how.kind == "number" else ():
            if (text := texts[row].as_py().strip()).lstrip("+-").isdigit():
                raise integer_too_large(f"column {name!r}", text)
        return values

    def _finite(self, values: NDArray[np.floating], j: int) -> NDArray[np.floating]:
        odd = np.flatnonzero(np.isinf(values))
        self._note(odd, j)
        return np.where(np.isinf(values), np.nan, values) if len(odd) else values

    def _note(self, odd: NDArray[np.int64], j: int) -> None:
        if len(odd) and self._unasked is not None:
            what = f"values of column {self._names[j]!r} that are not numbers, read as missing"
            self._unasked.note(what, len(odd), partial(self._place, int(odd[0])))


def _placed(part: Reader, batches: Iterator[Batch]) -> Iterator[tuple[Callable[[int], str], Batch]]:
    """Yield what names the place of a row in a batch, and the batch."""
    start = 0
    for batch in batches:
        yield lambda row, start=start: part.where(start + row), batch  # type: ignore[misc]
        start += len(batch)


# --- points in time -------------------------------------------------------------------------------


def with_calendar(
    reader: Reader, reading: Reading, keep: Sequence[str] = (), wanted: Sequence[str] = tuple(PARTS)
) -> Reader:
    """Return rows with the parts of the column ``reading.time`` instead of it, after the others.

    Only the ``wanted`` parts are added. The column itself stays if it is one to keep. Rows that
    have the parts already stay as they are. If no person can be asked, a doubtful time is missing,
    whatever the other rows are. Raises `DataError` if the column does not exist, or another has the
    name of a part; while rows are read, if a value is not a point in time, or its zone is in doubt.
    """
    names, parts = reader.names or (), [p for p in PARTS if reading.time and p in wanted]
    if not reading.time or (set(parts) <= set(names) and (parts or reading.time not in names)):
        return reader
    check_named(reader, {"time": reading.time})
    if clash := [name for name in names if name in parts]:
        raise DataError(
            f"{reader.source} already has a column {clash[0]!r}, which time={reading.time!r} would "
            "add: rename it, or leave it out"
        )
    # Columns kept next to the features stay at the end; a kept feature stays in its place.
    kept = list(reader.keep) or [reading.time] * (reading.time in keep)
    others = [name for name in names if name not in {*kept, reading.time}]

    def add_parts(part: Reader, batches: Iterator[Batch]) -> Iterator[Batch]:
        for place, batch in _placed(part, batches):
            columns = dict(zip(names, arrow_columns(batch), strict=True))
            _, clock = _times(columns[reading.time], reading, reader.unasked, place)
            derived = columns | parts_of(clock)
            arrays = [derived[name] for name in (*others, *parts)]
            arrays += [columns[name] for name in kept]
            yield pa.RecordBatch.from_arrays(arrays, [*others, *parts, *kept])

    return replace(reader.mapped(add_parts, [*others, *parts, *kept]), numeric=False)


def _times(
    column: pa.Array, reading: Reading, unasked: Unasked | None, place: Callable[[int], str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    name, zone = reading.time, reading.zone
    column = reading.without_missing(column, name)
    missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_)
    values, doubt = np.full(len(column), np.nan), ""
    zoned = np.zeros(len(column), np.bool_)
    if is_text(kind := column.type):
        texts, how = plain_texts(column), reading.column(name, DATE)
        values, zoned = how.values(texts), dates.say_zones(texts)
        if unasked is None and not how.lenient:
            for row in _without_value(texts, values):
                raise _no_value(name, texts[row].as_py(), how, place(row))
    elif pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        values = np.asarray(as_numbers(column, name), np.float64)
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            zoned, zone = ~missing, zone or kind.tz
    else:
        doubt = f"time={name!r}: the column holds {kind}, but needs points in time"
    exists = np.isfinite(values)
    in_doubt = exists & (~zoned if zone else zoned)
    if in_doubt.any():
        doubt = zone_doubt(zoned & exists, exists, reading)
    if unasked is not None:
        odd = np.flatnonzero(in_doubt | (~exists & ~missing))
        if len(odd):
            what = f"values of column {name!r} that are not clear points in time, read as missing"
            unasked.note(what, len(odd), partial(place, int(odd[0])))
        values = np.where(in_doubt, np.nan, values)
    elif doubt and not missing.all():
        raise DataError(doubt)
    return values, by_clock(values, zone) if zone else values


def _with_differences(reader: Reader, schema: Schema) -> Reader:
    differences, features = schema.differences, schema.of_rows.features
    assert differences is not None
    n, added = len(features), schema.names[len(features) :]

    def append(_part: Reader, batches: Iterator[Batch]) -> Iterator[Batch]:
        start = 0
        for batch in batches:
            residuals = differences.of(batch, features, start)
            start += len(batch)
            if isinstance(batch, np.ndarray):
                yield np.concatenate([batch, residuals.T], axis=1)
            else:
                columns, names = list(batch.columns), batch.schema.names
                columns[n:n] = map(as_column, residuals)
                yield pa.RecordBatch.from_arrays(columns, [*names[:n], *added, *names[n:]])

    names = reader.names
    rows = reader.mapped(append, names and [*names[:n], *added, *names[n:]])
    return replace(rows, n_columns=reader.n_columns + len(added))


# --- readings of entities ---------------------------------------------------------------------

#: Bytes of files whose readings may be in any order, because they are processed together.
_AT_ONCE = 1 << 26


def with_history(
    reader: Reader,
    reading: Reading,
    values: Sequence[str],
    keep: Sequence[str] = (),
    history: History | None = None,
) -> Reader:
    """Return rows with the columns of `history_columns` in place of the values and the entity.

    The values and the entity stay if they are to be kept. Rows that have the columns already stay
    as they are. Each pass over the rows begins with ``history``, and leaves the history that
    includes these rows as its ``after``. Raises `DataError` if a column does not exist, or has the
    name of one to be added; while rows are read, if a value is not a number, or a reading is older
    than an earlier one.
    """
    names, derived = reader.names or (), history_names(values)
    if not reading.entity or not values or set(derived) <= set(names):
        return reader
    _check_history(reader, reading, values)
    before = history or History(entity=reading.entity, time=reading.time, values=values)
    rows = typed(reader, None, replace(reading, columns={v: reading.column(v) for v in values}))
    gone = (*values, reading.entity)
    kept = list(reader.keep) or [name for name in gone if name in keep]
    others = [name for name in names if name not in {*kept, *gone}]
    # Rows of small files, and in memory, may be in any order: they are processed together, once.
    small = in_memory(reader) or (reader.n_bytes is not None and reader.n_bytes <= _AT_ONCE)
    once: list[Batch] = []

    def compare() -> Iterator[Batch]:
        after = before.copy()
        batches = iter(as_table(rows).to_batches()) if small else rows.read()
        for place, batch in _placed(reader, batches):
            arrays = dict(zip(names, arrow_columns(batch), strict=True))
            new = _history(after, arrays, reading, values, place)
            arrays = {n: arrays[n] for n in others} | new | {n: arrays[n] for n in kept}
            whole = pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))
            for part in slices(len(batch), len(arrays)):
                yield whole.slice(part.start, part.stop - part.start)
        before.after = after

    def read() -> Iterator[Batch]:
        if small and not once:
            once.extend(compare())
        return iter(once) if small else compare()

    columns = (*others, *derived, *kept)
    coupled = (*reader.coupled, compared_within(reading.entity))
    return replace(
        reader.of_batches(read, reader.n_rows), names=columns, n_columns=len(columns),
        numeric=False, coupled=coupled, opened=None,
    )  # fmt: skip


def _history(
    after: History,
    arrays: dict[str, Any],
    reading: Reading,
    values: Sequence[str],
    place: Callable[[int], str],
) -> dict[str, pa.Array]:
    seconds, clock = _times(arrays[reading.time], reading, None, place)
    numbers = [finite(arrays[value], value, place) for value in values]
    compared = after.advance(arrays[reading.entity], seconds, hours_of(clock), numbers, place)
    columns = (as_column(x) for x in compared.T)
    return dict(zip(history_names(values), columns, strict=True))


def _check_history(reader: Reader, reading: Reading, values: Sequence[str]) -> None:
    names = reader.names or ()
    if reader.unasked is not None:
        raise UsageError(
            f"entity={reading.entity!r}: a value that cannot be read changes what later readings "
            "are compared with, so a person has to be asked: omit attended=False"
        )
    check_named(reader, {"entity": reading.entity, "time": reading.time})
    if lacking := [name for name in values if name not in names]:
        raise DataError(
            f"{reader.source} has no column {lacking[0]!r}, whose history is a feature; its "
            f"columns are {list(names)}"
        )
    if clash := [name for name in names if name in history_names(values)]:
        raise DataError(
            f"{reader.source} already has a column {clash[0]!r}, which entity={reading.entity!r} "
            "would add: rename it, or leave it out"
        )


# --- texts without a value --------------------------------------------------------------------


def _without_value(texts: pa.Array, values: NDArray[np.floating]) -> Iterator[int]:
    """Yield the rows of texts that have no value, and do not mean a missing one."""
    if int(np.isnan(values).sum()) == texts.null_count:  # null is NaN, and so is "nan"
        return
    for row in np.flatnonzero(np.isnan(values)).tolist():
        text = texts[row].as_py()
        if text is not None and text.strip().lower() not in ("", "nan", "+nan", "-nan"):
            yield row


#: Readings of texts with only one meaning, if there are no numbers among them.
_CLEAR = (ColumnReading("date", dates="ymd"), ColumnReading("boolean"), ColumnReading("time"))


def _no_value(name: str, text: str, how: ColumnReading, place: str) -> DataError:
    where = f"column {name!r}: {text[:80]!r} in {place} is not {_NOUNS[how.kind]}"
    return DataError(
        f"{where}: correct the value, or specify how to read it{way([_way(name, text, how)])}"
    )


_NOUNS = {
    "number": "a number", "date": "a date", "time": "a time of day", "boolean": "true or false",
}  # fmt: skip


def _way(name: str, text: str, how: ColumnReading) -> Option:
    single = pa.RecordBatch.from_pylist([{"text": text}]).column(0)
    if how.kind == "number":
        other: numbers.Decimal = "," if how.decimal == "." else "."
        if not np.isnan(numbers.values(single, how.decimal)[0]):  # with a unit
            return "as", f"{name}=number"
        if not np.isnan(numbers.values(single, other)[0]):
            return "decimal", other
        if any(not np.isnan(dates.seconds(single, order)[0]) for order in dates.ORDERS):
            return "as", f"{name}=date"
    if how.kind == "date":
        others = [o for o in dates.ORDERS if not np.isnan(dates.seconds(single, o)[0])]
        if others:
            return "dates", others[0]
    return "missing", text.strip()
