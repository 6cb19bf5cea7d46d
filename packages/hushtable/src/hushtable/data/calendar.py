"""A point in time as its hour, weekday, day of the month and month: cyclic categories."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import as_column, texts_column
from hushtable.data.history import history_names, values_behind
from hushtable.data.schema import Feature, Schema
from hushtable.data.texts.reading import Reading

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
#: The last days of a month have their own categories, whether it has 28 days or 31.
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
    """Return the features of the parts, which come from the calendar and are therefore public."""
    return [Feature.categorical(name, texts, cyclic=True) for name, texts in PARTS.items()]


def without_parts(schema: Schema, keep: Sequence[str]) -> Schema:
    """Return a schema without the features of the parts, except for those to keep."""
    left = [f for f in schema.features if f.name not in PARTS or f.name in keep]
    return replace(schema, features=tuple(left))


def sources(names: Sequence[str], reading: Reading) -> list[str]:
    """Return the columns that rows must have to derive the named ones."""
    if not reading.time:
        return list(names)
    if reading.entity:
        values = values_behind(names)
        derived = history_names(values)
        needed = [name for name in names if name not in derived]
        names = [*needed, *values, reading.entity, reading.time]
    return list(dict.fromkeys(reading.time if name in PARTS else name for name in names))


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
    length = ((month + np.timedelta64(1, "M")).astype("datetime64[D]") - first).astype(np.int64)
    day = (date - first).astype(np.int64)
    left = length - 1 - day
    places = {
        "hour": whole % _DAY // 3600,
        "weekday": (days + 3) % 7,  # the first of January 1970 was a Thursday
        "day": np.where(left < len(_ENDS), 30 - left, day),
        "month": month.astype(np.int64) % 12,
    }
    return {
        name: texts_column(PARTS[name]).take(as_column(place, ~missing))
        for name, place in places.items()
    }


def zone_doubt(zoned: NDArray[np.bool_], there: NDArray[np.bool_], reading: Reading) -> str:
    """Return what is in doubt about the zone of times (n,), if anything.

    ``zoned`` marks times that state their zone, ``there`` those that are not missing.
    """
    name, zone = reading.time, reading.zone
    if zone and not zoned.any():
        return (
            f"zone={zone!r}: the times in {name!r} have no zone, so they are read as local times: "
            "leave the zone out"
        )
    if zoned.any() and zoned.sum() < there.sum():
        return (
            f"time={name!r}: some times state their zone and others do not: write them all in "
            "one way"
        )
    return (
        f"time={name!r}: its times state their zone, so the hour depends on the place: give the "
        "time zone that counts, such as zone='Europe/Berlin' (--read zone=Europe/Berlin)"
    )


def by_clock(seconds: NDArray[np.floating], zone: str) -> NDArray[np.float64]:
    """Return seconds (n,) since 1970 in local time, given those in UTC."""
    valid = np.isfinite(seconds)
    whole = np.floor(np.where(valid, seconds, 0.0)).astype(np.int64)
    stamps = as_column(whole).cast(pa.timestamp("s", "UTC"))
    local = pc.local_timestamp(stamps.cast(pa.timestamp("s", zone))).cast(pa.int64())
    return np.where(valid, local.to_numpy(zero_copy_only=False), np.nan)
