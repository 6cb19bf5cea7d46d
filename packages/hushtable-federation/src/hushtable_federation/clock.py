"""Times of rounds: UTC, in whole seconds."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

#: By how much the clocks of two machines may differ.
CLOCKS = timedelta(minutes=15)
#: Years that the times of a round may have; hours and days are added to its end.
YEARS = range(1970, 9000)
#: This machine's clock, in the only place where tests replace it.
read: Callable[[], datetime] = partial(datetime.now, UTC)


def now() -> datetime:
    """Return the time, UTC, in whole seconds."""
    return read().replace(microsecond=0)


def stamp(at: datetime) -> str:
    """Return a time as in files: ISO 8601, UTC, in whole seconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parsed(text: Any) -> datetime:
    """Read back what `stamp` wrote; raise `ValueError` on anything else."""
    try:
        at = datetime.fromisoformat(text)
        if stamp(at) == text and at.year in YEARS:
            return at
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(
        f"time {text!r}: needs the form 2027-03-31T12:00:00Z, with a year from {YEARS.start} to "
        f"{YEARS.stop - 1}"
    )


def goes_on(deadline: datetime) -> datetime:
    """Return when the waiting ends: later than the deadline, because a site's clock may be slow."""
    return deadline + CLOCKS


def keys_until(opened: datetime, deadline: datetime) -> datetime:
    """Return until when a round waits for sites without a key for it: half of its time."""
    return (opened + (deadline - opened) / 2).replace(microsecond=0)


def forgotten(deadline: datetime) -> datetime:
    """Return until when a site keeps the data of a round's steps, unless the round ends before.

    In a folder, sites may make their second visit long after the deadline.
    """
    return deadline + timedelta(days=60)


def shown_time(at: datetime) -> str:
    """Return a time as people read it."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
