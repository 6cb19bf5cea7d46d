"""The ledger: the cost of a release, in a form that travels with it and can be checked."""

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from hushtable.arguments import JsonObject, Stored, always, entries, translate_errors
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.privacy.accounting import GAUSSIAN, ZCDP, Horizon, check_accounting, rounded_up
from hushtable.privacy.budget import Charge, Spent, at_sites, check_pure
from hushtable.privacy.mechanisms import MAX_SCALE, MECHANISMS, Cost, Sensitivity, named

#: Scales of noise, in counts, between which costs are finite. Real scales are well within them.
_SCALES = (1e-6, MAX_SCALE)


@dataclass(frozen=True, slots=True)
class Share(Stored):
    """One site's entry in a ledger: its noise, and the site's earlier releases.

    Attributes
    ----------
    release : str
        Random id, drawn together with the noise.
    scale : float
        Scale of the noise that the site added to each cell, in counts.
    library : str
        Name and version of the sampler's library.
    earlier : tuple of Spent
        Earlier releases of the site on the same rows, other than those behind the plan.
    apart : tuple of str
        Ids of the releases behind the plan that contain none of these rows.
    pool : Pool or None
        If rounds about different people are merged: the round whose sites share this noise. None
        if the noise is the site's own, or if the ledger names one pool for all.
    start : int
        With a horizon: the first period that the site sends.

    Examples
    --------
    >>> from hushtable.privacy import Share
    >>> Share("5f3c", scale=45.3, library="opendp 0.14.2").to_dict()["scale"]
    45.3
    """

    stored_as: ClassVar[str] = "ledger: each share"

    release: str
    scale: float
    library: str
    earlier: tuple[Spent, ...] = always(())
    apart: tuple[str, ...] = ()
    pool: "Pool | None" = None
    start: int = 1

    @classmethod
    def from_dict(cls, content: object) -> "Share":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        share = super(Share, cls).from_dict(content)
        if not _SCALES[0] <= share.scale <= _SCALES[1]:
            raise PlanError(f"ledger: scale {share.scale!r} is not a scale of noise")
        if share.start < 1:
            raise PlanError(f"ledger: a share begins with period {share.start}: needs 1 or more")
        return share


@dataclass(frozen=True, slots=True)
class Pool(Stored):
    """A round whose sites share the noise: each adds a part, and only the sum is ever visible.

    A site knows its own part, and may pass it on. The bound therefore counts on fewer parts than
    the sum contains: if c of k sites may collude with the reader, on ``k - 1 - c``.

    Attributes
    ----------
    round : str
        Id of the round.
    least : int
        Smallest number of parts in the sum.
    counted : int
        Number of parts on which the bound counts, k_min.
    opened : int
        Parts that pay for opening totals of single sites' tables.

    Examples
    --------
    >>> from hushtable.privacy import Pool
    >>> Pool.against(colluders=1, least=5, round="8e01").counted
    3
    """

    stored_as: ClassVar[str] = "ledger: a pool"

    round: str
    least: int
    counted: int
    opened: int = 0

    def __post_init__(self) -> None:
        if self.opened < 0 or not 1 <= self.counted < self.least - self.opened:
            raise UsageError(
                f"k_min={self.counted} with {self.least} sites: the bound has to count on the "
                "noise of 1 site or more, and cannot count on that of the site that reads the sum: "
                f"needs 1 to {self.least - 1 - max(self.opened, 0)}"
            )

    @classmethod
    def against(cls, colluders: int, least: int, round: str = "") -> "Pool":
        """Return the pool whose bound holds if this many sites besides the reader collude."""
        return cls(round, least, least - 1 - colluders)

    @property
    def colluders(self) -> int:
        """Sites besides the reader that may pass on their noise without breaking the bound, c."""
        return self.least - 1 - self.counted - self.opened


@dataclass(frozen=True)
class Ledger:
    """Cost of a release, its plan and all earlier releases to the person behind a row.

    Attributes
    ----------
    mechanism : str
        Name of the noise: ``"discrete-gaussian"``, ``"discrete-laplace"``, or
        ``"laplace-per-table"`` (the same noise, with a scale that the paper calibrates for one
        table).
    sensitivity : Sensitivity
        Tables, adjacency and rows of one person.
    delta : float
        Probability that is added to the bound e^epsilon; 0 for Laplace noise alone.
    shares : tuple of Share
        One for each merged release.
    behind_plan : tuple of Spent
        Releases from which the plan was drawn.
    pool : Pool or None
        If all shares have one noise: the round in which sites shared it. If rounds are merged,
        each share names its own, and this is None; see `pools`.
    accounting : str
        ``"gaussian"`` if epsilon is as exact as Gaussian noise allows, because all noise is
        Gaussian; ``"zcdp"``, as in files before 0.2, if it follows from zCDP.
    period : int or None
        With a horizon: the last period included. The cost is that of all periods.
    window : int or None
        For a decoded sum: the number of its periods; None for what a period released.

    Examples
    --------
    >>> from hushtable.privacy import Ledger, Sensitivity, Share
    >>> share = Share("5f3c", scale=42.3, library="opendp 0.14.2")
    >>> ledger = Ledger(
    ...     mechanism="discrete-gaussian",
    ...     sensitivity=Sensitivity(100),
    ...     delta=1e-6,
    ...     shares=(share,),
    ...     accounting="gaussian",
    ... )
    >>> f"{ledger.epsilon:.1f} at one site, noise of {ledger.noise_sd:.1f} on each count"
    '1.0 at one site, noise of 42.3 on each count'
    """

    mechanism: str
    sensitivity: Sensitivity
    delta: float
    shares: tuple[Share, ...]
    behind_plan: tuple[Spent, ...] = ()
    pool: Pool | None = None
    accounting: str = ZCDP
    period: int | None = None
    window: int | None = None

    def __repr__(self) -> str:
        cost = f"epsilon={rounded_up(self.epsilon, 4):g}, delta={self.delta:g}"
        return f"Ledger({self.mechanism!r}, {cost}, shares={len(self.shares)})"

    def __post_init__(self) -> None:
        check_accounting(self.accounting)
        self._check_period()
        if not named(self.mechanism).shareable and self.pools:
            raise PrivacyError(
                f"{self.mechanism} noise cannot be shared: a sum of such parts has another form; "
                f"needs {' or '.join(m.name for m in MECHANISMS.values() if m.shareable)}"
            )
        self._check_ids()
        if self.pool is not None and any(share.pool is not None for share in self.shares):
            raise PrivacyError("a share names a noise although all of them share one")
        if len({pool.round for pool in self.pools}) < len(self.pools):
            raise PrivacyError("two shares of one round differ in how its noise was shared")
        for spent in (*self.behind_plan, *self._earlier):
            same_unit = spent.rows_per_person == self.sensitivity.rows_per_person
            if spent.adjacency != self.sensitivity.adjacency or not same_unit:
                raise PrivacyError(
                    f"release {spent.release[:12]} ({spent.what}) came before with adjacency "
                    f"{spent.adjacency} and {spent.rows_per_person} rows per person; this one has "
                    f"{self.sensitivity.adjacency} and {self.sensitivity.rows_per_person}: their "
                    "costs do not add up; give the same terms"
                )
        if self.delta == 0.0:  # otherwise, the cost of a sum is computed only when needed
            check_pure(self.cost, self.delta)

    def _check_period(self) -> None:
        horizon = self.sensitivity.horizon
        if horizon is None:
            if self.period is not None or self.window is not None:
                raise UsageError("a period needs a horizon: draw the plan with one")
            return
        if not named(self.mechanism).gaussian:
            raise PrivacyError(
                f"{self.mechanism} noise is not supported under a horizon: leave mechanism out"
            )
        horizon.weights(0 if self.period is None else self.period, self.window)

    @property
    def pools(self) -> tuple[Pool, ...]:
        """Rounds whose sites shared their noise, in order; empty for rounds without masks."""
        return tuple(dict.fromkeys(pool for pool in map(self.pool_of, self.shares) if pool))

    def pool_of(self, share: Share) -> Pool | None:
        """Return the round whose sites shared the noise of a share of this ledger."""
        return self.pool or share.pool

    @property
    def _earlier(self) -> list[Spent]:
        return [spent for share in self.shares for spent in share.earlier]

    def _check_ids(self) -> None:
        ids = [share.release for share in self.shares]
        if not ids or len(set(ids)) < len(ids):
            twice = next((i for i in ids if ids.count(i) > 1), "")
            raise PrivacyError(
                f"release {twice[:12]} would be counted twice: merge each release once"
            )
        again = next((spent.release for spent in self._earlier if spent.release in ids), None)
        if again is not None:
            raise PrivacyError(
                f"release {again[:12]} came before another of these, about the same rows: merging "
                "both would count those rows twice, and their cost once; merge the later one only"
            )
        behind = {spent.release for spent in self.behind_plan}
        if len(behind) < len(self.behind_plan):
            raise PrivacyError(
                "a release is listed twice among those behind the plan: draw the plan again from "
                "its results"
            )
        missing = {name for share in self.shares for name in share.apart} - behind
        if missing:
            raise PrivacyError(
                f"release {min(missing)[:12]}, which a share lists as about other rows, is not "
                "behind the plan: get the release again from its source"
            )

    # --- totals ---------------------------------------------------------------------------------

    @cached_property
    def own(self) -> Cost:
        """Cost of these tables alone to a person at one of the sites (the most expensive)."""
        return Cost.largest(map(self.cost_of, self.shares))

    def cost_of(self, share: Share) -> Cost:
        """Cost of these tables alone to a person at the site of this share.

        Parts of pooled noise add up: from s = 2 on, the sum of k discrete Gaussians of scale s is,
        to within 1e-15, one of scale s sqrt(k) (Kairouz, Liu and Steinke, 2021).
        """
        pool = self.pool_of(share)
        parts = 1 if pool is None else pool.counted
        return self.sensitivity.cost(self.mechanism, share.scale * math.sqrt(parts))

    @cached_property
    def cost(self) -> Cost:
        """Cost of everything to a person at one site: tables, earlier releases, the plan."""
        return self._at(1)

    def _at(self, sites: int) -> Cost:
        cost = at_sites(self._histories, sites)
        return cost if self.accounting == GAUSSIAN else cost.by_zcdp()

    @cached_property
    def _histories(self) -> list[list[Charge]]:
        """Charges to a person at each site; then at sites that are only behind the plan."""
        histories = [
            [
                *(spent.charge for spent in self.behind_plan if spent.release not in share.apart),
                Charge(self.cost_of(share), pool.round if (pool := self.pool_of(share)) else None),
                *(spent.charge for spent in share.earlier),
            ]
            for share in self.shares
        ]
        # How many sites without a share here are behind each release behind the plan. It is unknown
        # which of them are the same in two releases, so as many as possible are assumed.
        others = {
            spent: max(1, len(spent.parts))
            - sum(spent.release not in share.apart for share in self.shares)
            for spent in self.behind_plan
        }
        return histories + [
            [spent.charge for spent, n in others.items() if site < n]
            for site in range(max(others.values(), default=0))
        ]

    @cached_property
    def rho(self) -> float:
        """Total cost in zCDP."""
        return self.cost.rho

    @cached_property
    def epsilon(self) -> float:
        """Total epsilon at `delta`, over everything that `cost` covers."""
        return self.cost.epsilon(self.delta)

    def epsilon_at(self, sites: int) -> float:
        """Return the total epsilon for a person whose rows are at several of the sites.

        Sites that are only behind the plan are among them.
        """
        if sites < 1:
            raise UsageError(f"sites={sites}: needs 1 or more")
        return self._at(sites).epsilon(self.delta)

    @cached_property
    def noise_sd(self) -> float:
        """Standard deviation of the noise on a cell of the sum, in counts."""
        noise_sd = named(self.mechanism).noise_sd
        added = math.hypot(*(noise_sd(share.scale) for share in self.shares))
        if self.window is None or self.sensitivity.horizon is None or self.period is None:
            return added
        return added * math.hypot(*self.sensitivity.horizon.weights(self.period, self.window))

    @property
    def release_id(self) -> str:
        """Id of the release: random, or, for a sum, the digest of the ids of its parts."""
        ids = sorted(share.release for share in self.shares)
        return ids[0] if len(ids) == 1 else hashlib.sha256(" ".join(ids).encode()).hexdigest()

    def as_spent(self, what: str, release: str) -> tuple[Spent, ...]:
        """Return the releases on which a plan drawn from this one depends.

        With several sites, it leaves out their own earlier releases, which each site counts for
        itself; with one site, it includes them.
        """
        earlier = self.shares[0].earlier if len(self.shares) == 1 else ()
        # Releases before 0.2 keep their names, so that plans drawn from them stay the same.
        tables = self.sensitivity.tables if self.accounting == GAUSSIAN else 1
        pool = " ".join(sorted(pool.round for pool in self.pools)) or None
        spent = Spent(
            release=release,
            what=what,
            cost=self.own,
            adjacency=self.sensitivity.adjacency,
            rows_per_person=self.sensitivity.rows_per_person,
            pool=pool,
            parts=tuple(sorted(share.release for share in self.shares)),
            tables=tables,
            horizon=self.sensitivity.horizon,
        )
        return (*self.behind_plan, *earlier, spent)

    # --- algebra ----------------------------------------------------------------------------

    def __add__(self, other: "Ledger") -> "Ledger":
        ours, others = self.sensitivity, other.sensitivity
        for name, mine, theirs in (
            ("mechanisms", self.mechanism, other.mechanism),
            ("adjacencies", ours.adjacency, others.adjacency),
            ("privacy units (rows_per_person)", ours.rows_per_person, others.rows_per_person),
            ("samplings", ours.sampled, others.sampled),
            ("horizons", ours.horizon, others.horizon),
            ("periods", self.period, other.period),
            ("windows", self.window, other.window),
        ):
            if mine != theirs:
                raise PrivacyError(
                    f"releases of different {name} do not merge ({mine} and {theirs}): release "
                    "again under the terms that all sites agreed on"
                )
        shares, pool = self.shares + other.shares, self.pool
        if pool != other.pool:  # in this case, each share names its own
            both, pool = (self, other), None
            shares = tuple(replace(s, pool=side.pool_of(s)) for side in both for s in side.shares)
        # The finer accounting holds for both, because the noise does not depend on accounting.
        accounting = GAUSSIAN if GAUSSIAN in (self.accounting, other.accounting) else ZCDP
        delta = max(self.delta, other.delta)
        return replace(self, delta=delta, shares=shares, pool=pool, accounting=accounting)

    # --- in files --------------------------------------------------------------------------

    def to_dict(self) -> JsonObject:
        """Return the ledger with its totals in the form stored in JSON."""
        horizon = self.sensitivity.horizon
        return {
            "mechanism": self.mechanism,
            "adjacency": self.sensitivity.adjacency,
            "rows_per_person": self.sensitivity.rows_per_person,
            "sampled": self.sensitivity.sampled,
            "tables": self.sensitivity.tables,
            "l1_sensitivity": self.sensitivity.l1,
            "l2_sensitivity": math.sqrt(self.sensitivity.l2_squared),
            "shares": [share.to_dict() for share in self.shares],
            "behind_plan": [spent.to_dict() for spent in self.behind_plan],
            **({} if self.pool is None else {"pool": self.pool.to_dict()}),
            **({} if self.accounting == ZCDP else {"accounting": self.accounting}),
            **({} if horizon is None else {"horizon": horizon.to_dict(), "period": self.period}),
            **({} if self.window is None else {"window": self.window}),
            "noise_sd": self.noise_sd,
            "rho": self.rho,
            "epsilon": self.epsilon,
            "delta": self.delta,
        }

    @classmethod
    def from_dict(cls, content: JsonObject) -> "Ledger":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else.

        Totals are computed again, and have to agree with those stated.
        """
        entries(content, "a ledger", _KINDS, _OPTIONAL)
        with translate_errors(PlanError, "ledger"):
            names = ("tables", "adjacency", "rows_per_person", "sampled")
            unit = {name: content[name] for name in names}
            horizon = Horizon.from_dict(content["horizon"]) if "horizon" in content else None
            sensitivity = Sensitivity(**unit, horizon=horizon)
            if not 0.0 <= content["delta"] < 1.0:
                raise PrivacyError(f"delta={content['delta']}: needs 0 or more, and below 1")
            ledger = cls(
                content["mechanism"],
                sensitivity,
                float(content["delta"]),
                tuple(Share.from_dict(share) for share in content["shares"]),
                tuple(Spent.from_dict(spent) for spent in content["behind_plan"]),
                Pool.from_dict(content["pool"]) if "pool" in content else None,
                content.get("accounting", ZCDP),
                content.get("period"),
                content.get("window"),
            )
        for key, value in ledger.to_dict().items():
            stated = content[key]
            number = isinstance(value, float) and isinstance(stated, int | float)
            # Another version's logarithms may differ in the last digits.
            if not (math.isclose(value, stated, rel_tol=1e-6) if number else value == stated):
                raise PlanError(
                    f"the ledger was edited: it states {key} {stated!r}, but its entries add up to "
                    f"{value!r}: get the release again from its source"
                )
        return ledger


#: Entries of a ledger in JSON; their classes check those of kind object.
_KINDS = {
    "mechanism": object, "adjacency": object, "rows_per_person": object, "sampled": bool,
    "tables": int, "l1_sensitivity": object, "l2_sensitivity": object, "shares": list[object],
    "behind_plan": list[object], "noise_sd": object, "rho": object, "epsilon": object,
    "delta": float,
}  # fmt: skip
_OPTIONAL = {
    "pool": object, "accounting": object, "horizon": object, "period": int, "window": int,
}  # fmt: skip


def check_parts(ledger: "Ledger") -> None:
    """Raise `PrivacyError` if a shared noise has fewer parts than its bound counts on."""
    for pool in ledger.pools:
        parts = sum(ledger.pool_of(share) == pool for share in ledger.shares)
        if parts < pool.least:
            raise PrivacyError(
                f"{parts} of at least {pool.least} parts of a shared noise: too little noise for "
                "a release"
            )
