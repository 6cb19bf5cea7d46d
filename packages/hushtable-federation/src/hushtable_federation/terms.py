"""The terms of a round, and the calendar of a stream's periods."""

import datetime
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Required, TypedDict, get_args

from hushtable.arguments import entries, is_digest, translate_errors, whole
from hushtable.errors import NO_MAX_ROWS, PlanError, UsageError
from hushtable.language import N_
from hushtable.privacy.accounting import GAUSSIAN, ZCDP, Horizon, check_accounting
from hushtable.privacy.budget import ReleaseTerms
from hushtable.privacy.ledger import Pool
from hushtable.privacy.mechanisms import DEFAULT, Adjacency, Cost, Sensitivity
from hushtable_federation.language import _
from hushtable_federation.refusals import raise_first

MAX_SITES = 1000
#: The most sites of a masked round: so many were tried. Shares of n sites have n^2 rows.
MAX_MASKED_SITES = 300
#: Version of the protocol of masked rounds; 1 is that of 1.0.0rc1, whose rounds state none.
PROTOCOL = 2


class TermOptions(TypedDict, total=False):
    """Terms as `Round.open` takes them; see there."""

    epsilon: Required[float]
    delta: float
    adjacency: Adjacency
    rows_per_person: int
    share: float | None
    masked: bool
    least: int | None
    colluders: int


@dataclass(frozen=True)
class Terms(ReleaseTerms):
    """Terms that all sites of a round agree on.

    Attributes
    ----------
    epsilon, delta : float
        Total for one person over this round and the rounds that its plan was drawn from.
    adjacency, rows_per_person
        As in `Sketch.release`.
    share : float or None
        Share of the budget that this round takes; None for all that is left.
    masked : bool
        Whether the sites share the noise under masks; otherwise each adds the whole noise.
    least : int
        Number of sites needed for a result.
    k_min : int
        In a masked round: the number of noise parts that the bound relies on.
    accounting : str
        As in `hushtable.privacy.Ledger`: rounds before version 0.2 have no entry, which means zCDP.
    protocol : int
        In a masked round: the version of the steps in which the masks are made and removed.

    Examples
    --------
    >>> from hushtable_federation.terms import Terms
    >>> Terms.agreed(5, epsilon=1.0, colluders=1).k_min
    3
    """

    masked: bool = True
    least: int = 2
    k_min: int = 1
    accounting: str = ZCDP
    protocol: int = 1
    #: A round's file has no entry for it.
    mechanism: str = field(default=DEFAULT, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_accounting(self.accounting)
        if not isinstance(self.masked, bool):
            raise UsageError(f"masked={self.masked!r}: needs True or False")
        whole("protocol", self.protocol, 1)
        if self.masked:
            self.pool("")
        elif self.k_min != 1 or self.least < 1:
            raise UsageError(
                "in a round without masks, each site adds the whole noise: needs k_min=1, and at "
                "least 1 site"
            )

    @classmethod
    def agreed(
        cls,
        n_sites: int,
        *,
        masked: bool = True,
        least: int | None = None,
        colluders: int = 0,
        **others: Any,
    ) -> "Terms":
        """Return the terms for that many sites; see `Round.open` for the parameters."""
        faults = {
            NO_MAX_ROWS: "max_rows" in others,
            f"{n_sites} sites: a masked round can have {MAX_MASKED_SITES} at most. Open a round "
            "without masks (--no-masks), which can have more, or combine sites": (
                masked and n_sites > MAX_MASKED_SITES
            ),
        }
        raise_first(UsageError, faults)
        if least is None:
            least = n_sites if masked else min(2, n_sites)
        least = whole("least", least, 1, MAX_SITES)
        colluders = whole("colluders", colluders, 0, MAX_SITES)
        k_min = Pool.against(colluders, least).counted if masked else 1
        others = {"accounting": GAUSSIAN} | others
        protocol = PROTOCOL if masked else 1
        return cls(masked=masked, least=least, k_min=k_min, protocol=protocol, **others)

    def scale(self, sensitivity: Sensitivity, before: Cost) -> float:
        """Return the scale of the noise, given the costs of earlier releases."""
        return super().scale(
            sensitivity, before if self.accounting == GAUSSIAN else before.by_zcdp()
        )

    def pool(self, round_id: str) -> Pool | None:
        """Return how the sites of this round share the noise; None without masks."""
        return Pool(round_id, self.least, self.k_min) if self.masked else None

    @property
    def colluders(self) -> int:
        """Return how many sites besides the reader may leak their noise safely."""
        pool = self.pool("")
        return 0 if pool is None else pool.colluders

    def to_dict(self) -> dict[str, Any]:
        """Return the terms for JSON."""
        record = {name: getattr(self, name) for name in _NAMES}
        record |= {} if self.protocol == 1 else {"protocol": self.protocol}
        return record if self.accounting == ZCDP else record | {"accounting": self.accounting}

    @classmethod
    def from_dict(cls, content: Any) -> "Terms":
        """Read back what `to_dict` wrote; raise `PlanError` on anything else."""
        kinds = dict.fromkeys(_NAMES, object) | {"least": int, "k_min": int}
        optional = {"accounting": object, "protocol": int}
        if isinstance(content, dict) and "max_rows" in content:
            raise PlanError(f"terms: {NO_MAX_ROWS}")
        with translate_errors(PlanError, "terms"):
            return cls(**entries(content, "a round's terms", kinds, optional))


#: A round's file has entries for these only if they differ from those of the first version.
_EXTRA = ("accounting", "protocol")
_NAMES = [one.name for one in fields(Terms) if one.init and one.name not in _EXTRA]


Every = Literal["day", "week", "month", "quarter", "year"]

#: Additional entries of a round that is about a period.
ENTRIES = {"period": int, "stream": str, "every": str, "starts": str}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_CALENDAR = (
    N_("January"), N_("February"), N_("March"), N_("April"), N_("May"), N_("June"), N_("July"),
    N_("August"), N_("September"), N_("October"), N_("November"), N_("December"),
)  # fmt: skip
_DAYS = {"day": 1, "week": 7}


@dataclass(frozen=True)
class StreamPosition:
    """The period that a round is about. The calendar is only used in texts.

    Attributes
    ----------
    period : int
        Number of the period, from 1 to the last one of the plan's horizon.
    stream : str
        Id of the stream's first round; empty in that round itself.
    every : {"day", "week", "month", "quarter", "year"} or None
        Length of a period.
    starts : datetime.date or None
        A day in the first period, from which the names of all periods follow.
    """

    period: int
    stream: str = ""
    every: Every | None = None
    starts: datetime.date | None = None

    @classmethod
    def first(
        cls, horizon: Horizon | None, every: str | None, starts: Any, opened: datetime.datetime
    ) -> "StreamPosition | None":
        """Return the first place of a stream; None without a horizon.

        Raise `UsageError` if the calendar is not valid, or is given without a stream.
        """
        if every is None and starts is not None:
            raise UsageError("starts needs every, the length of a period: give both")
        if horizon is None:
            if every is not None:
                raise UsageError(
                    f"every={every!r}: the plan has no horizon; draw one for periods (horizon=, "
                    "or --horizon)"
                )
            return None
        if every is not None and starts is None:
            starts = opened.date()
        with translate_errors(UsageError):
            return cls._checked(1, "", every, starts, horizon)

    def following(self, horizon: Horizon, stream: str) -> "StreamPosition":
        """Return the next place; raise `UsageError` beyond the horizon."""
        if self.period == horizon.periods:
            raise UsageError(
                f"all {horizon.periods} periods of the horizon were opened: draw a new plan, with "
                "its own budget"
            )
        return replace(self, period=self.period + 1, stream=stream)

    # --- words ------------------------------------------------------------------------------

    def called(self, period: int) -> str:
        """Return the name of a period; raise `ValueError` if the calendar has no such day."""
        if self.every is None or self.starts is None:
            return _("period %(n)s", n=period)
        gone = period - 1
        if self.every in _DAYS:
            day = self.starts + datetime.timedelta(days=_DAYS[self.every] * gone)
            date = day.isoformat()
            return _("week of %(day)s", day=date) if self.every == "week" else date
        if self.every == "year":
            return f"{datetime.date(self.starts.year + gone, 1, 1):%Y}"
        months = 12 * self.starts.year + self.starts.month - 1 + _MONTHS[self.every] * gone
        parts = [divmod(m, 12) for m in (months, months + _MONTHS[self.every] - 1)]
        names = [
            f"{_(_CALENDAR[month])} {datetime.date(year, month + 1, 1).year}"
            for year, month in parts
        ]
        return _(" to ").join(dict.fromkeys(names))

    def words(self, horizon: Horizon) -> str:
        """Return the period with the total number: "period 3 of 60 (March 2027)"."""
        words = _("period %(n)s of %(periods)s", n=self.period, periods=horizon.periods)
        return words if self.every is None else f"{words} ({self.called(self.period)})"

    def end(self, horizon: Horizon) -> str:
        """Return the name of the last period."""
        return self.called(horizon.periods).rpartition(_(" to "))[2]

    # --- files ------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return its entries in a round."""
        starts = None if self.starts is None else self.starts.isoformat()
        record = vars(self) | {"stream": self.stream or None, "starts": starts}
        return {name: value for name, value in record.items() if value is not None}

    @classmethod
    def from_dict(cls, record: dict[str, Any], horizon: Horizon | None) -> "StreamPosition | None":
        """Return the place that a round's entries state; None without a horizon.

        Raise `PlanError` if there is one without the other, or it is not valid.
        """
        given = {name: record[name] for name in ENTRIES if name in record}
        if (horizon is None) != (not given):
            raise PlanError("a round states its period if, and only if, the plan has a horizon")
        if horizon is None:
            return None
        with translate_errors(PlanError, "a round's period"):
            starts, stream = given.get("starts"), given.get("stream", "")
            day = None if starts is None else datetime.date.fromisoformat(starts)
            if day is not None and day.isoformat() != starts:
                raise ValueError(f"starts {starts!r}: needs a day such as 2027-03-01")
            return cls._checked(given.get("period"), stream, given.get("every"), day, horizon)

    @classmethod
    def _checked(
        cls, period: Any, stream: str, every: Any, starts: Any, horizon: Horizon
    ) -> "StreamPosition":
        period = whole("period", period, 1, horizon.periods)
        faults = {
            f"stream {stream[:80]!r}: needs the id of the stream's first round": (
                (period > 1 and not stream) or (stream and not is_digest(stream))
            ),
            f"every={every!r}: needs one of {', '.join(get_args(Every))}": (
                every not in (None, *get_args(Every))
            ),
            f"starts={starts!r}: needs a date, with every": (every is None) != (starts is None)
            or type(starts) not in (datetime.date, type(None)),
        }
        raise_first(ValueError, faults)
        place = cls(period, stream, every, starts)
        try:
            place.called(horizon.periods)
        except (ValueError, OverflowError):
            raise ValueError(f"starts={starts}: the last period is beyond the calendar") from None
        return place
