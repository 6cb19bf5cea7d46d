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
from hushtable.data.differences import with_differences
from hushtable.data.few import few_rows
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
from hushtable.data.readers.reader import slices
from hushtable.data.schema import DATE, Feature, Schema
from hushtable.data.texts import dates, numbers
from hushtable.data.texts.reading import (
    ColumnReading,
    Reading,
    plain_texts,
)
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
    """Open rows under a schema.

    Parameters
    ----------
    X : array, data frame, Arrow object, path or Reader
        Rows, as `hushtable.data.readers.as_reader` takes them.
    schema : Schema
        Features that the rows must have as columns: by name, in any order, or by position if either
        of the two has no names. Further columns are left out.
    reading : Reading, optional
        How texts become values, unless the rows have their own reading.
    keep : sequence of str
        Further columns to be kept as they are, after the features.
    attended : bool
        Whether to ask a person about a value that cannot be read, by raising an error. Otherwise,
        it is missing, whatever the other rows are, and `Reader.unasked` notes it.
    history : History, optional
        Readings before these rows, if the reading names an entity: see `with_history`.

    Returns
    -------
    Reader
        Its columns are the features, in order, and the kept columns.

    Raises
    ------
    DataError
        If a column is missing; the message names it.
    """
    if isinstance(X, Reader) and history is None and X.is_open(schema, keep, attended):
        return X
    have = X.differences if isinstance(X, Reader) else None
    if schema.differences is not None and have != schema.differences:
        rows = open_rows(X, schema.of_rows, reading, keep, attended=attended, history=history)
        rows = with_differences(rows, schema.differences, schema.of_rows.features)
        return replace(rows, opened=schema)
    reading = reading or Reading()
    needed = () if attended or not schema.named else sources([*schema.names, *keep], reading)
    unasked = None if attended else Unasked(needed)
    if isinstance(X, Reader):
        reader = X if attended or X.unasked is not None else replace(X, unasked=unasked)
    else:
        texts, layout = schema.categorical_names, FileLayout(unasked=unasked)
        reader = as_reader(X, text_columns=texts, layout=layout, kept=reading.layout)
    reading = reading.updated(reader.reading)
    values = values_behind(schema.names) if reading.entity else ()
    reader = with_history(reader, reading, values, keep, history)
    reader = with_calendar(reader, reading, keep, schema.names)
    in_order = not (reader.names and schema.named) or [*reader.names] == schema.names
    in_order &= reader.n_columns == len(schema)
    plain = reader.unasked is None and not keep and not reading.missing
    if plain and in_order and reader.numeric:
        return reader
    keep = tuple(keep) or reader.keep

    def whole() -> Reader:
        return replace(typed(matched(reader, schema, keep), schema, reading), opened=schema)

    few = plain and not keep and few_rows(reader, schema, reading, lambda: whole().read())
    return few or whole()


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
    there = {*(names or needed[: len(wanted)])}
    if lacking := [name for name in needed if found_name(name, there) not in there]:
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
    if reader.files:
        keep, unasked = reader.keep, reader.unasked
        parts = [replace(file, keep=keep, unasked=unasked) for file in reader.files]
        files = [typed(part, schema, reading) for part in parts]
        return replace(reader.with_parts(files), reading=None)
    names = tuple(reader.names or (f"x{j}" for j in range(reader.n_columns)))
    # By position, because a matrix has no names.
    n_features, folds = len(names) - len(reader.keep), schema is None or schema.labels > 0
    readings = [reading.columns.get(name) for name in names[:n_features]]
    categories: list[Sequence[str]] = [()] * n_features
    for j, feature in enumerate([] if schema is None else schema.features[:n_features]):
        categories[j] = feature.categories
        if feature.kind == "numeric":
            readings[j] = reading.column(feature.name, feature.unit)
        else:
            readings[j] = _of_categories(reading, feature, reader, folds=folds)

    def texts(column: Any, one: ColumnReading, j: int) -> Any:
        return one.texts(column, categories[j]) if folds else _trimmed(column)

    if schema is not None and reader.unasked is not None:
        return replace(reader, read=partial(_each, reader, schema, reading), project=None)

    def read() -> Iterator[Batch]:
        start, settled = 0, list(readings)
        unsettled = {
            j
            for j, one in enumerate(readings)
            if one is not None and _unsettled(one, names[j], reading)
        }
        for batch in reader.read():
            yield _values(batch, names, settled, unsettled, reading, _place(reader, start), texts)
            start += len(batch)

    return replace(reader, read=read, project=None, reading=None)


def _of_categories(
    reading: Reading, feature: Feature, reader: Reader, *, folds: bool
) -> ColumnReading | None:
    """Return how texts of a column of categories are read; None if they stay as they are.

    They stay as they are under plans that do not fold texts: for texts in memory, and if blanks
    belong to categories.
    """
    if folds:
        return reading.category(feature.name)
    odd = any(text != text.strip() or not text for text in feature.categories)
    one = None if odd else reading.columns.get(feature.name)
    return None if one is not None and one.is_category and reader.n_bytes is None else one


def _trimmed(column: Any) -> Any:
    """Return texts without surrounding blanks, null if there is nothing else, and not folded."""
    if not is_text(column.type):
        return column
    texts = pc.utf8_trim_whitespace(plain_texts(column))
    return pc.if_else(pc.equal(texts, scalar("")), null(texts.type), texts)


def _unsettled(one: ColumnReading, name: str, reading: Reading) -> bool:
    """Return whether it is open if the texts of a column are numbers: they may be dates."""
    return one.kind == "number" and not (one.lenient or name in reading.columns)


def _place(reader: Reader, start: int) -> Callable[[int], str]:
    source = "" if reader.source == "the data" else f" of {reader.source}"
    return lambda row: reader.place(start + row) + source


def _values(
    batch: Batch,
    names: Sequence[str],
    readings: list[ColumnReading | None],
    unsettled: set[int],
    reading: Reading,
    place: Callable[[int], str],
    texts_of: Callable[[Any, ColumnReading, int], Any],
) -> Batch:
    """Return a batch in which texts of columns with a reading are numbers, or categories.

    The first texts of an ``unsettled`` column determine how it is read: in ``readings``.
    """
    if isinstance(batch, np.ndarray):
        return reading.without_numbers(batch, names)
    columns = list(batch.columns)
    for j, one in enumerate(readings):
        sign = one.decimal if one is not None and one.kind == "number" else None
        column = reading.without_missing(columns[j], names[j], sign)
        if one is not None and one.is_category:
            columns[j] = texts_of(column, one, j)
            continue
        if one is not None and is_text(column.type):
            texts = plain_texts(column)
            values = one.values(texts)
            if j in unsettled and texts.null_count < len(texts):
                unsettled.remove(j)
                if np.isnan(values).all():
                    one = readings[j] = _clear(texts, one)
                    values = one.values(texts)
            if not one.lenient:
                _check(names[j], texts, values, one, place)
            if one.kind == "number" and (np.abs(values) >= 2**53).any():
                _check_whole(names[j], texts, values)
            column = nan_as_null(values)
        columns[j] = column
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


# --- points in time -------------------------------------------------------------------------------


def with_calendar(
    reader: Reader,
    reading: Reading,
    keep: Sequence[str] = (),
    wanted: Sequence[str] = tuple(PARTS),
) -> Reader:
    """Return rows with the parts of the column ``reading.time`` instead of it, after the others.

    Only the ``wanted`` parts are added. The column itself stays if it is one to keep. Rows that
    have the parts already stay as they are. If no person can be asked, a doubtful time is missing,
    whatever the other rows are.

    Raises
    ------
    DataError
        If the column does not exist, or another has the name of a part; while rows are read, if a
        value is not a point in time, or its zone is in doubt.
    """
    names, parts = reader.names or (), [one for one in PARTS if reading.time and one in wanted]
    if not reading.time or (set(parts) <= set(names) and (parts or reading.time not in names)):
        return reader
    check_named(reader, {"time": reading.time})
    if clash := [name for name in names if name in parts]:
        raise DataError(
            f"{reader.source} already has a column {clash[0]!r}, which time={reading.time!r} would "
            "add: rename it, or leave it out"
        )
    if reader.files:
        files = [replace(f, keep=reader.keep, unasked=reader.unasked) for f in reader.files]
        return reader.with_parts([with_calendar(one, reading, keep, wanted) for one in files])
    # Columns kept next to the features stay at the end; a kept feature stays in its place.
    kept = list(reader.keep) or [reading.time] * (reading.time in keep)
    others = [name for name in names if name not in {*kept, reading.time}]

    def read() -> Iterator[Batch]:
        start = 0
        for batch in reader.read():
            there = dict(zip(names, _columns(batch), strict=True))
            times = there[reading.time]
            _, clock = _times(times, reading, reader.unasked, _place(reader, start))
            found = parts_of(clock)
            before, behind = ([there[n] for n in some] for some in (others, kept))
            columns = [*before, *map(found.get, parts), *behind]
            yield pa.RecordBatch.from_arrays(columns, derived)
            start += len(batch)

    derived = (*others, *parts, *kept)
    again = replace(reader, names=derived, n_columns=len(derived), read=read, project=None)
    return replace(again, numeric=False)


def _times(
    column: Any, reading: Reading, unasked: Unasked | None, place: Callable[[int], str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points in time (n,) as seconds since 1970, in UTC and in local time; or NaN."""
    name, zone = reading.time, reading.zone
    column = reading.without_missing(column, name)
    missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_)
    values, doubt = np.full(len(column), np.nan), ""
    zoned = np.zeros(len(column), np.bool_)
    if is_text(kind := column.type):
        texts, one = plain_texts(column), reading.column(name, DATE)
        values, zoned = one.values(texts), dates.say_zones(texts)
        if unasked is None and not one.lenient:
            _check(name, texts, values, one, place)
    elif pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        values = np.asarray(as_numbers(column, name), np.float64)
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            zoned, zone = ~missing, zone or kind.tz
    else:
        doubt = f"time={name!r}: the column holds {kind}, but needs points in time"
    there = np.isfinite(values)
    in_doubt = there & (~zoned if zone else zoned)
    if in_doubt.any():
        doubt = zone_doubt(zoned & there, there, reading)
    if unasked is not None:
        odd = np.flatnonzero(in_doubt | (~there & ~missing))
        if len(odd):
            what = f"values of column {name!r} that are not clear points in time, read as missing"
            unasked.note(what, len(odd), partial(place, int(odd[0])))
        values = np.where(in_doubt, np.nan, values)
    elif doubt and not missing.all():
        raise DataError(doubt)
    return values, by_clock(values, zone) if zone else values


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
    includes these rows as its ``after``.

    Raises
    ------
    DataError
        If a column does not exist, or has the name of one to be added; while rows are read, if a
        value is not a number, or a reading is older than an earlier one.
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
    small = _is_small(reader)

    def read() -> Iterator[Batch]:
        start, own = 0, before.copy()
        for batch in _together(rows) if small else rows.read():
            there = dict(zip(names, _columns(batch), strict=True))
            new = _history(own, there, reading, values, _place(reader, start))
            there = {n: there[n] for n in others} | new | {n: there[n] for n in kept}
            whole = pa.RecordBatch.from_arrays(list(there.values()), list(there))
            for some in slices(len(batch), len(there)):
                yield whole.slice(some.start, some.stop - some.start)
            start += len(batch)
        before.after = own

    columns = (*others, *derived, *kept)
    return replace(
        reader, names=columns, n_columns=len(columns), read=_once(read) if small else read,
        project=None, files=(), numeric=False,
        coupled=(*reader.coupled, compared_within(reading.entity)),
    )  # fmt: skip


def _is_small(reader: Reader) -> bool:
    """Return whether all rows are processed together, once: rows of small files, and in memory."""
    return in_memory(reader) or (reader.n_bytes is not None and reader.n_bytes <= _AT_ONCE)


def _once(read: Callable[[], Iterator[Batch]]) -> Callable[[], Iterator[Batch]]:
    """Return a ``read`` that keeps the rows for the next passes."""
    kept: list[list[Batch]] = []

    def read_once() -> Iterator[Batch]:
        if not kept:
            kept.append(list(read()))
        return iter(kept[0])

    return read_once


def _history(
    own: History,
    there: dict[str, Any],
    reading: Reading,
    values: Sequence[str],
    place: Callable[[int], str],
) -> dict[str, pa.Array]:
    """Return the columns of a history for some rows, which then become part of it."""
    seconds, clock = _times(there[reading.time], reading, None, place)
    numbers = [finite(there[value], value, place) for value in values]
    found = own.advance(there[reading.entity], seconds, hours_of(clock), numbers, place)
    columns = (as_column(np.ascontiguousarray(x)) for x in found.T)
    return dict(zip(history_names(values), columns, strict=True))


def _check_history(reader: Reader, reading: Reading, values: Sequence[str]) -> None:
    """Raise `DataError` or `UsageError` unless rows have the columns that a history needs."""
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


def _together(reader: Reader) -> Iterator[Batch]:
    """Yield all rows as one batch."""
    assert reader.names is not None
    parts = [pa.Table.from_arrays(_columns(batch), list(reader.names)) for batch in reader.read()]
    if parts:
        table = pa.concat_tables(parts, promote_options="permissive").combine_chunks()
        yield from table.to_batches()


def _columns(batch: Batch) -> list[Any]:
    """Return the columns of a batch as Arrow's."""
    if isinstance(batch, np.ndarray):
        return [as_column(np.ascontiguousarray(column)) for column in batch.T]
    return list(batch.columns)


# --- where no one is here to be asked -------------------------------------------------------------


def _each(reader: Reader, schema: Schema, reading: Reading) -> Iterator[Batch]:
    """Yield batches with each value read on its own; unreadable ones are missing, and noted."""
    assert reader.unasked is not None
    names, start = schema.names, 0
    numeric = [j for j, feature in enumerate(schema.features) if feature.kind == "numeric"]
    for batch in reader.read():
        if isinstance(batch, np.ndarray):
            batch = reading.without_numbers(batch, names)
        columns = list(batch.T if isinstance(batch, np.ndarray) else batch.columns)
        for j, column in enumerate(columns[: len(names)]):
            found = column
            if not isinstance(batch, np.ndarray):
                one = reading.column(names[j], schema.features[j].unit)
                sign = one.decimal if j in numeric and one.kind == "number" else None
                found = reading.without_missing(column, names[j], sign)
                if j not in numeric and schema.labels:
                    listed = schema.features[j].categories
                    found = reading.category(names[j]).texts(found, listed)
                columns[j] = found
            if j in numeric:
                values, odd = _alone(found, names[j], schema.features[j].unit, reading)
                columns[j] = values if isinstance(batch, np.ndarray) else nan_as_null(values)
                if len(odd):
                    what = f"values of column {names[j]!r} that are not numbers, read as missing"
                    first = _place(reader, start)
                    reader.unasked.note(what, len(odd), partial(first, int(odd[0])))
        start += len(batch)
        if isinstance(batch, np.ndarray):
            yield np.stack(columns, axis=1)
        else:
            yield pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _alone(
    column: Any, name: str, unit: str, reading: Reading
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the values (n,) of a column, NaN where there is none, and rows it cannot read."""
    if isinstance(column, np.ndarray):
        values = column
    elif is_text(column.type):
        one, texts = reading.column(name, unit), plain_texts(column)
        values = one.values(texts)
        if _unsettled(one, name, reading):
            for kind in _CLEAR:
                if np.isnan(values).any():
                    values = np.where(np.isnan(values), kind.values(texts), values)
        values = np.where(np.isinf(values), np.nan, values)
        rows = [] if one.lenient else list(_without_value(texts, values))
        return values, np.array(rows, np.int64)
    else:
        # Whole numbers beyond 2^53 are rounded, because no range depends on distinguishing them.
        whole = pa.types.is_integer(column.type)
        values = as_numbers(column.cast(pa.float64(), safe=False) if whole else column, name)
    odd = np.flatnonzero(np.isinf(values))
    return (np.where(np.isinf(values), np.nan, values) if len(odd) else values), odd


def _without_value(texts: pa.Array, values: NDArray[Any]) -> Iterator[int]:
    """Yield the rows of texts that have no value, and do not mean a missing one."""
    if int(np.isnan(values).sum()) == texts.null_count:  # null is NaN, and so is "nan"
        return
    for row in np.flatnonzero(np.isnan(values)).tolist():
        text = texts[row].as_py()
        if text is not None and text.strip().lower() not in ("", "nan", "+nan", "-nan"):
            yield row


#: Readings of texts with only one meaning, if there are no numbers among them.
_CLEAR = (ColumnReading("date", dates="ymd"), ColumnReading("boolean"), ColumnReading("time"))


def _clear(texts: pa.Array, one: ColumnReading) -> ColumnReading:
    """Return how unseen texts are read: as the kind that fits all of them, if not numbers."""
    for kind in _CLEAR:
        if int(np.isnan(kind.values(texts)).sum()) == texts.null_count:
            return kind
    return one


def _check(
    name: str, texts: pa.Array, values: Any, one: ColumnReading, place: Callable[[int], str]
) -> None:
    """Raise `DataError` for the first text that has no value."""
    for row in _without_value(texts, values):
        text = texts[row].as_py()
        where = f"column {name!r}: {text[:80]!r} in {place(row)} is not {_NOUNS[one.kind]}"
        raise DataError(
            f"{where}: correct the value, or specify how to read it{way([_way(name, text, one)])}"
        )


def _check_whole(name: str, texts: pa.Array, values: Any) -> None:
    """Raise `DataError` for the first whole number that float64 cannot represent exactly."""
    for row in np.flatnonzero(np.abs(values) >= 2**53).tolist():
        if (text := texts[row].as_py().strip()).lstrip("+-").isdigit():
            raise integer_too_large(f"column {name!r}", text)


_NOUNS = {
    "number": "a number", "date": "a date", "time": "a time of day", "boolean": "true or false",
}  # fmt: skip


def _way(name: str, text: str, one: ColumnReading) -> Option:
    """Return the option with which a text would have a value, or be missing."""
    single = pa.RecordBatch.from_pylist([{"text": text}]).column(0)
    if one.kind == "number":
        other: numbers.Decimal = "," if one.decimal == "." else "."
        if not np.isnan(numbers.values(single, one.decimal)[0]):  # with a unit
            return "as", f"{name}=number"
        if not np.isnan(numbers.values(single, other)[0]):
            return "decimal", other
        if any(not np.isnan(dates.seconds(single, order)[0]) for order in dates.ORDERS):
            return "as", f"{name}=date"
    if one.kind == "date":
        others = [o for o in dates.ORDERS if not np.isnan(dates.seconds(single, o)[0])]
        if others:
            return "dates", others[0]
    return "missing", text.strip()
