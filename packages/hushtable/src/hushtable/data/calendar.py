"""A point in time as its hour, weekday, day of the month and month: categories that go round."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import as_numbers, is_text
from hushtable.data.readers import Batch, Reader
from hushtable.data.schema import DATE, Feature
from hushtable.data.texts import dates
from hushtable.data.texts.reading import Reading, plain_texts
from hushtable.errors import DataError

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
#: The last days of a month stand for themselves, whether it has 28 days or 31.
_ENDS = ("3rd last", "2nd last", "last")
#: The parts of a point in time, each with its categories in their order around the circle.
PARTS: dict[str, tuple[str, ...]] = {
    "hour": tuple(map(str, range(24))),
    "weekday": _WEEKDAYS,
    "day": (*map(str, range(1, 29)), *_ENDS),
    "month": _MONTHS,
}
_DAY = 86_400


def calendar_features() -> list[Feature]:
    """Return the features of the parts: they are the calendar's, and so public."""
    return [Feature.categorical(name, texts, cyclic=True) for name, texts in PARTS.items()]


def sources(names: Sequence[str], reading: Reading) -> list[str]:
    """Return the columns that rows need to have for the named ones to follow from them."""
    if not reading.time:
        return list(names)
    return list(dict.fromkeys(reading.time if name in PARTS else name for name in names))


def with_calendar(reader: Reader, reading: Reading, keep: Sequence[str] = ()) -> Reader:
    """Return rows with the parts of the column ``reading.time`` in its place, behind the others.

    The column itself stays if it is one to keep. Rows that have the parts already stay as they are.

    Raises
    ------
    DataError
        If the column is not there, or one has the name of a part; while rows are read, if it holds
        no points in time, or if their zone is in doubt.
    """
    names = reader.names or ()
    if not reading.time or set(PARTS) <= set(names):
        return reader
    if reading.time not in names:
        raise DataError(
            f"{reader.source} has no column {reading.time!r} (time): its columns are {list(names)}"
        )
    if clash := [name for name in names if name in PARTS]:
        raise DataError(
            f"{reader.source} has a column {clash[0]!r} already, which time={reading.time!r} would "
            "add: rename it, or leave it out"
        )
    if reader.files:
        return reader.with_parts([with_calendar(file, reading, keep) for file in reader.files])
    kept = [name for name in names if name in {*reader.keep, *keep}]
    others = [name for name in names if name not in {*kept, reading.time}]

    def read() -> Iterator[Batch]:
        for batch in reader.read():
            yield _derived(batch, names, others, kept, reading)

    derived = (*others, *PARTS, *kept)
    return replace(
        reader, names=derived, n_columns=len(derived), read=read, project=None, numeric=False
    )


def _derived(
    batch: Batch, names: Sequence[str], others: list[str], kept: list[str], reading: Reading
) -> pa.RecordBatch:
    columns: list[Any] = list(batch.T if isinstance(batch, np.ndarray) else batch.columns)
    columns = [pa.array(c) if isinstance(c, np.ndarray) else c for c in columns]
    by_name = dict(zip(names, columns, strict=True))
    found = parts_of(_wall_seconds(by_name[reading.time], reading))
    arrays = [*(by_name[n] for n in others), *found.values(), *(by_name[n] for n in kept)]
    return pa.RecordBatch.from_arrays(arrays, [*others, *found, *kept])


def parts_of(seconds: NDArray[np.float64]) -> dict[str, pa.Array]:
    """Return the parts of points in time, by name, each an array of n texts.

    Parameters
    ----------
    seconds : ndarray of shape (n,), float64
        Since 1970-01-01, by the clock of the place; NaN where missing.
    """
    missing = ~np.isfinite(seconds)
    whole = np.floor(np.where(missing, 0.0, seconds)).astype(np.int64)
    days = whole // _DAY
    date = days.astype("datetime64[D]")
    month = date.astype("datetime64[M]")
    first = month.astype("datetime64[D]")
    length = ((month + 1).astype("datetime64[D]") - first).astype(np.int64)
    day = (date - first).astype(np.int64)
    left = length - 1 - day
    places = {
        "hour": whole % _DAY // 3600,
        "weekday": (days + 3) % 7,  # the first of January 1970 was a Thursday
        "day": np.where(left < len(_ENDS), 30 - left, day),
        "month": month.astype(np.int64) % 12,
    }
    return {
        name: pa.array(PARTS[name]).take(pa.array(place, mask=missing))
        for name, place in places.items()
    }


def _wall_seconds(column: Any, reading: Reading) -> NDArray[np.float64]:
    """Return the seconds (n,) since 1970 by the clock of the place; raises `DataError`."""
    name, zone = reading.time, reading.zone
    column = reading.without_missing(column)
    if is_text(column.type):
        texts = plain_texts(column)
        values = reading.column(name, DATE).values(texts)
        zoned = _says_zone(texts) & np.isfinite(values)
        if zoned.any() and (not zone or not zoned[np.isfinite(values)].all()):
            raise _doubt(name, bool(zone))
        _check_zone(zone, bool(zoned.any()) or not np.isfinite(values).any(), name)
        return _in_zone(values, zone) if zoned.any() else values
    kind = column.type
    if pa.types.is_timestamp(kind):
        _check_zone(zone, kind.tz is not None, name)
        return _in_zone(as_numbers(column, name), zone or kind.tz or "")
    if not (pa.types.is_date(kind) or pa.types.is_null(kind)):
        raise DataError(
            f"time={name!r}: the column holds {kind}, needs points in time: dates with hours"
        )
    _check_zone(zone, False, name)
    return np.asarray(as_numbers(column, name), np.float64)


def _check_zone(zone: str, zoned: bool, name: str) -> None:
    if zone and not zoned:
        raise DataError(
            f"zone={zone!r}: the times in {name!r} have no zone, so they are taken as its clock "
            "showed them: leave the zone out"
        )


def _doubt(name: str, mixed: bool) -> DataError:
    if mixed:
        return DataError(
            f"time={name!r}: some times say their zone and others do not: write all in one way"
        )
    return DataError(
        f"time={name!r}: its times say their zone, so an hour depends on the place: name the place "
        "whose clock counts, such as zone='Europe/Berlin' (--zone Europe/Berlin)"
    )


def _says_zone(texts: pa.Array) -> NDArray[np.bool_]:
    found = pc.fill_null(pc.match_substring_regex(texts, dates.ZONE), False)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


def _in_zone(seconds: NDArray[Any], zone: str) -> NDArray[np.float64]:
    """Return seconds by a place's clock for those of UTC."""
    if not zone:
        return np.asarray(seconds, np.float64)
    valid = np.isfinite(seconds)
    whole = np.floor(np.where(valid, seconds, 0.0)).astype(np.int64)
    stamps = pa.array(whole, pa.int64()).cast(pa.timestamp("s", "UTC"))
    local = pc.local_timestamp(stamps.cast(pa.timestamp("s", zone))).cast(pa.int64())
    return np.where(valid, local.to_numpy(zero_copy_only=False), np.nan)
