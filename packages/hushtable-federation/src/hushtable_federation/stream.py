"""A round's place in a stream: which period it is about, of how many, and what people call it."""

import datetime
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from hushtable.arguments import is_digest, whole
from hushtable.errors import PlanError, UsageError
from hushtable.privacy.accounting import Horizon

Every = Literal["day", "week", "month", "quarter", "year"]

#: Entries of a round that is about a period, besides those of every round.
ENTRIES = {"period": int, "stream": str, "every": str, "starts": str}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7}


@dataclass(frozen=True)
class Place:
    """The period that a round is about. The calendar is for words alone: nothing depends on it.

    Attributes
    ----------
    period : int
        From 1 to the last one of the plan's horizon.
    stream : str
        Id of the stream's first round; empty in that round itself.
    every : {"day", "week", "month", "quarter", "year"} or None
        How long a period is.
    starts : datetime.date or None
        A day in the first period, from which the names of all are reckoned.
    """

    period: int
    stream: str = ""
    every: Every | None = None
    starts: datetime.date | None = None

    @classmethod
    def first(
        cls, horizon: Horizon | None, every: str | None, starts: Any, opened: datetime.datetime
    ) -> "Place | None":
        """Return the first place of a stream; None without a horizon.

        Raises `UsageError` if a calendar is given that cannot be, or where there is no stream.
        """
        if every is None and starts is not None:
            raise UsageError("starts goes with every, which says how long a period is")
        if horizon is None:
            if every is not None:
                raise UsageError(
                    f"every={every!r}: the plan has no horizon; draw one for periods (horizon=, "
                    "or --horizon)"
                )
            return None
        if every is not None and starts is None:
            starts = opened.date()
        try:
            return cls._checked(1, "", every, starts, horizon)
        except ValueError as error:
            raise UsageError(str(error)) from None

    def following(self, horizon: Horizon, stream: str) -> "Place":
        """Return the next place; raises `UsageError` beyond the horizon."""
        if self.period == horizon.periods:
            raise UsageError(
                f"all {horizon.periods} periods of the horizon were opened: draw a new plan, at a "
                "budget of its own"
            )
        return replace(self, period=self.period + 1, stream=stream)

    # --- words ------------------------------------------------------------------------------

    def called(self, period: int) -> str:
        """Return what people call a period; raises `ValueError` if the calendar has no such day."""
        if self.every is None or self.starts is None:
            return f"period {period}"
        gone = period - 1
        if self.every in _DAYS:
            day = self.starts + datetime.timedelta(days=_DAYS[self.every] * gone)
            return f"{'week of ' if self.every == 'week' else ''}{day.isoformat()}"
        if self.every == "year":
            return f"{datetime.date(self.starts.year + gone, 1, 1):%Y}"
        months = 12 * self.starts.year + self.starts.month - 1 + _MONTHS[self.every] * gone
        names = [f"{_month(m):%B %Y}" for m in (months, months + _MONTHS[self.every] - 1)]
        return " to ".join(dict.fromkeys(names))

    def words(self, horizon: Horizon) -> str:
        """Return which period it is, of how many: "period 3 of 60 (March 2027)"."""
        name = "" if self.every is None else f" ({self.called(self.period)})"
        return f"period {self.period} of {horizon.periods}{name}"

    def end(self, horizon: Horizon) -> str:
        """Return what the last period is called."""
        return self.called(horizon.periods).rpartition(" to ")[2]

    # --- files ------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the entries that a round has of it."""
        starts = None if self.starts is None else self.starts.isoformat()
        said = vars(self) | {"stream": self.stream or None, "starts": starts}
        return {name: value for name, value in said.items() if value is not None}

    @classmethod
    def from_dict(cls, said: dict[str, Any], horizon: Horizon | None) -> "Place | None":
        """Return the place that a round's entries state; None in one without a horizon.

        Raises `PlanError` if there is one without the other, or it cannot be.
        """
        given = {name: said[name] for name in ENTRIES if name in said}
        if (horizon is None) != (not given):
            raise PlanError(
                "a round states its period if the plan has a horizon, and none otherwise"
            )
        if horizon is None:
            return None
        try:
            starts = given.get("starts")
            day = None if starts is None else datetime.date.fromisoformat(starts)
            if day is not None and day.isoformat() != starts:
                raise ValueError(f"starts {starts!r}: needs a day as 2027-03-01")
            stream = given.get("stream", "")
            return cls._checked(given["period"], stream, given.get("every"), day, horizon)
        except (KeyError, ValueError, UsageError) as error:
            raise PlanError(f"a round's period: {error}") from None

    @classmethod
    def _checked(
        cls, period: int, stream: str, every: Any, starts: Any, horizon: Horizon
    ) -> "Place":
        whole("period", period, 1, horizon.periods)
        if (period > 1 and not stream) or (stream and not is_digest(stream)):
            raise ValueError(f"stream {stream[:80]!r}: needs the id of the stream's first round")
        if every is not None and every not in get_args(Every):
            raise ValueError(f"every={every!r}: needs one of {', '.join(get_args(Every))}")
        if (every is None) != (starts is None) or type(starts) not in (datetime.date, type(None)):
            raise ValueError(f"starts={starts!r}: needs a date, with every")
        place = cls(period, stream, every, starts)
        try:
            place.called(horizon.periods)
        except (ValueError, OverflowError):
            raise ValueError(f"starts={starts}: the last period is beyond the calendar") from None
        return place


def _month(months: int) -> datetime.date:
    year, month = divmod(months, 12)
    return datetime.date(year, month + 1, 1)
