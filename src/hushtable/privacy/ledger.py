"""The ledger: what a release cost, in a form that travels with it and can be checked."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.privacy.budget import (
    MAX_SCALE,
    Adjacency,
    Cost,
    Mechanism,
    Sensitivity,
    Spent,
    check_mechanism,
    check_pure,
)
from hushtable.privacy.mechanism import noise_sd

__all__ = ["Ledger", "Pool", "Share", "rounded_up"]

#: Scales of noise, in counts, between which costs are finite numbers. Real ones lie well within.
_SCALES = (1e-6, MAX_SCALE)


@dataclass(frozen=True, slots=True)
class Share:
    """One site's part in a release: its noise, and what the site had released before.

    Attributes
    ----------
    release : str
        Random id, drawn when the noise was.
    scale : float
        Scale of the noise that the site added to each cell, in counts.
    library : str
        Name and version of the sampler's library.
    earlier : tuple of Spent
        Earlier releases of the site on the same rows, besides those behind the plan.
    """

    release: str
    scale: float
    library: str
    earlier: tuple[Spent, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the share as JSON carries it."""
        return {
            "release": self.release,
            "scale": self.scale,
            "library": self.library,
            "earlier": [spent.to_dict() for spent in self.earlier],
        }

    @classmethod
    def from_dict(cls, content: Any) -> "Share":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        if (
            not isinstance(content, dict)
            or set(content) != {"release", "scale", "library", "earlier"}
            or not all(isinstance(content[key], str) for key in ("release", "library"))
            or not isinstance(content["earlier"], list)
        ):
            raise PlanError("ledger: each share needs a release, scale, library and earlier")
        scale = content["scale"]
        numeric = isinstance(scale, int | float) and not isinstance(scale, bool)
        if not numeric or not _SCALES[0] <= scale <= _SCALES[1]:
            raise PlanError(f"ledger: scale {scale!r} is no scale of noise")
        earlier = tuple(Spent.from_dict(entry) for entry in content["earlier"])
        return cls(content["release"], float(scale), content["library"], earlier)


@dataclass(frozen=True, slots=True)
class Pool:
    """A round whose sites share the noise: each adds a part, and only the sum is ever seen.

    A site knows its own part, and may tell it to others. The bound therefore counts on fewer
    parts than are in the sum: with k sites of which c may collude with the reader, on
    ``k - 1 - c``.

    Attributes
    ----------
    round : str
        Id of the round.
    least : int
        Parts that the sum has at least.
    counted : int
        Parts that the bound counts on, k_min.
    """

    round: str
    least: int
    counted: int

    def __post_init__(self) -> None:
        if not 1 <= self.counted < self.least:
            raise UsageError(
                f"k_min={self.counted} with {self.least} sites: the bound has to count on the "
                "noise of 1 site or more, and cannot count on that of the site that reads the sum: "
                f"needs 1 to {self.least - 1}"
            )

    @property
    def colluders(self) -> int:
        """Sites besides the reader that may tell their noise without breaking the bound, c."""
        return self.least - 1 - self.counted

    def to_dict(self) -> dict[str, Any]:
        """Return the pool as JSON carries it."""
        return {"round": self.round, "least": self.least, "counted": self.counted}

    @classmethod
    def from_dict(cls, content: Any) -> "Pool":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        if (
            not isinstance(content, dict)
            or set(content) != {"round", "least", "counted"}
            or not isinstance(content["round"], str)
            or not all(type(content[key]) is int for key in ("least", "counted"))
        ):
            raise PlanError("ledger: a pool needs a round, least and counted")
        return cls(content["round"], content["least"], content["counted"])


@dataclass(frozen=True)
class Ledger:
    """What a release, its plan and all that came before cost the person behind a row.

    Attributes
    ----------
    mechanism : str
        ``"discrete-gaussian"``, ``"discrete-laplace"``, or ``"laplace-per-table"`` (the same
        noise, of a scale that the paper calibrates for one table).
    sensitivity : Sensitivity
        Tables, adjacency and rows of one person.
    delta : float
        Probability with which the bound may fail; 0 for Laplace noise alone.
    shares : tuple of Share
        One for each release that was merged.
    behind_plan : tuple of Spent
        Releases that the plan was drawn from.
    pool : Pool or None
        Where the sites share the noise: the round in which they did.
    """

    mechanism: Mechanism
    sensitivity: Sensitivity
    delta: float
    shares: tuple[Share, ...]
    behind_plan: tuple[Spent, ...] = ()
    pool: Pool | None = None

    def __post_init__(self) -> None:
        if self.pool is not None and self.mechanism != "discrete-gaussian":
            raise PrivacyError(
                f"{self.mechanism} noise cannot be shared: a sum of such parts is of another form; "
                "needs discrete-gaussian"
            )
        ids = [share.release for share in self.shares]
        if not ids or len(set(ids)) < len(ids):
            twice = next((i for i in ids if ids.count(i) > 1), "")
            raise PrivacyError(
                f"release {twice[:12]} would be counted twice: merge each release once"
            )
        earlier = [spent for share in self.shares for spent in share.earlier]
        again = next((spent.release for spent in earlier if spent.release in ids), None)
        if again is not None:
            raise PrivacyError(
                f"release {again[:12]} came before another of these, about the same rows: merging "
                "both would count those rows twice, and their cost once; merge the later one only"
            )
        for spent in (*self.behind_plan, *earlier):
            same_unit = spent.rows_per_person == self.sensitivity.rows_per_person
            if spent.adjacency != self.sensitivity.adjacency or not same_unit:
                raise PrivacyError(
                    f"release {spent.release[:12]} ({spent.what}) came before with adjacency "
                    f"{spent.adjacency} and {spent.rows_per_person} rows a person; this one has "
                    f"{self.sensitivity.adjacency} and {self.sensitivity.rows_per_person}: their "
                    "costs do not add up; give the same terms"
                )
        check_pure(self.cost, self.delta)

    # --- what it adds up to -----------------------------------------------------------------

    @cached_property
    def own(self) -> Cost:
        """Cost of these tables alone to a person at one of the sites (the dearest)."""
        return Cost.largest(map(self.cost_of, self.shares))

    def cost_of(self, share: Share) -> Cost:
        """Cost of these tables alone to a person at the site of this share.

        Parts of pooled noise add up: the sum of k discrete Gaussians of scale s is, to within
        1e-15 from s = 2 on, one of scale s sqrt(k) (Kairouz, Liu and Steinke, 2021).
        """
        parts = 1 if self.pool is None else self.pool.counted
        return self.sensitivity.cost(self.mechanism, share.scale * math.sqrt(parts))

    @cached_property
    def cost(self) -> Cost:
        """Cost of everything to a person at one site: tables, what came before, the plan.

        Sites hold different people, so that the dearest site counts, not the sum (parallel
        composition: McSherry, 2009).
        """
        return Cost.total(spent.cost for spent in self.behind_plan) + self._dearest

    @property
    def _dearest(self) -> Cost:
        """Cost at the dearest site, with what that site had released before."""
        return Cost.largest(
            self.cost_of(share) + Cost.total(spent.cost for spent in share.earlier)
            for share in self.shares
        )

    @cached_property
    def rho(self) -> float:
        """Total cost in zCDP."""
        return self.cost.rho

    @cached_property
    def epsilon(self) -> float:
        """Total epsilon at `delta`, over everything that `cost` covers."""
        return self.cost.epsilon(self.delta)

    def epsilon_at(self, sites: int) -> float:
        """Return the total epsilon for a person whose rows are at several of the sites."""
        if sites < 1:
            raise UsageError(f"sites={sites}: needs 1 or more")
        sites = min(sites, len(self.shares))
        # One noise over the rows of several sites: they change the sum together.
        return self.cost.at_sites(sites, together=self.pool is not None).epsilon(self.delta)

    @cached_property
    def noise_sd(self) -> float:
        """Standard deviation of the noise on a cell of the sum, in counts."""
        return math.hypot(*(noise_sd(self.mechanism, share.scale) for share in self.shares))

    def as_spent(self, what: str, release: str) -> tuple[Spent, ...]:
        """Return what a plan drawn from this release has behind it."""
        terms = (self.sensitivity.adjacency, self.sensitivity.rows_per_person)
        if len(self.shares) == 1:
            earlier = self.shares[0].earlier
            return (*self.behind_plan, *earlier, Spent(release, what, self.own, *terms))
        return (*self.behind_plan, Spent(release, what, self._dearest, *terms))

    # --- algebra ----------------------------------------------------------------------------

    def __add__(self, other: "Ledger") -> "Ledger":
        if self.pool != other.pool:
            raise PrivacyError(
                "a release whose noise several sites share stands for its whole round, and adds to "
                "no other: open a round with all sites"
            )
        for name, mine, theirs in (
            ("mechanisms", self.mechanism, other.mechanism),
            ("adjacencies", self.sensitivity.adjacency, other.sensitivity.adjacency),
            (
                "privacy units (rows_per_person)",
                self.sensitivity.rows_per_person,
                other.sensitivity.rows_per_person,
            ),
            ("samplings", self.sensitivity.sampled, other.sensitivity.sampled),
        ):
            if mine != theirs:
                raise PrivacyError(
                    f"releases of different {name} do not merge ({mine} and {theirs}): release "
                    "again under the terms that all sites agreed on"
                )
        return Ledger(
            self.mechanism,
            self.sensitivity,
            max(self.delta, other.delta),
            self.shares + other.shares,
            self.behind_plan,
            self.pool,
        )

    # --- in words and in files --------------------------------------------------------------

    def words(self) -> list[str]:
        """Return sentences that a privacy officer can sign."""
        exception = f", except with probability {self.delta:g}" if self.delta else ""
        lines = [
            f"{self._change()} changes the probability of anything that this file shows by at "
            f"most a factor e^{rounded_up(self.epsilon)}{exception}."
        ]
        tables = self.sensitivity.tables
        what = f"all {tables:,} tables" if tables > 1 else "its one table"
        counted = f"That is the total over {what}"
        earlier = {s.release: s for share in self.shares for s in share.earlier}
        before = [*self.behind_plan, *earlier.values()]
        if before:
            counted += " and the earlier releases on the same rows ("
            counted += ", ".join(f"{spent.what} {spent.release[:12]}" for spent in before) + ")"
        lines.append(counted + ".")
        if len(self.shares) > 1:
            k = len(self.shares)
            several = f"for one at 2 sites the factor is e^{rounded_up(self.epsilon_at(2))}"
            if k > 2:
                several += f", for one at all {k} e^{rounded_up(self.epsilon_at(k))}"
            merged = f"{k} releases are merged." if self.pool is None else self._pooled(self.pool)
            lines.append(f"{merged} It holds for a person at one site; {several}.")
        return lines

    def _pooled(self, pool: Pool) -> str:
        words = (
            f"{len(self.shares)} sites share the noise, and only their sum was to be seen. The "
            "bound holds against everybody, each of these sites included"
        )
        if pool.colluders:
            others = "another" if pool.colluders == 1 else f"{pool.colluders} others"
            words += f", also one that learns the noise of {others}"
        return words + "."

    def _change(self) -> str:
        rows = self.sensitivity.rows_per_person
        verb = "Adding or removing" if self.sensitivity.adjacency == "add-remove" else "Changing"
        what = "one record" if rows == 1 else f"all records of one person (up to {rows})"
        return f"{verb} {what}"

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as JSON carries it, with what it adds up to."""
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
            "noise_sd": self.noise_sd,
            "rho": self.rho,
            "epsilon": self.epsilon,
            "delta": self.delta,
        }

    @classmethod
    def from_dict(cls, content: Any) -> "Ledger":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else.

        What it adds up to is worked out again, and has to be what it says.
        """
        keys = {
            "mechanism", "adjacency", "rows_per_person", "sampled", "tables", "l1_sensitivity",
            "l2_sensitivity", "shares", "behind_plan", "noise_sd", "rho", "epsilon", "delta",
        }  # fmt: skip
        if not isinstance(content, dict) or set(content) - {"pool"} != keys:
            raise PlanError(f"a ledger needs the entries {sorted(keys)}")
        tables, delta = content["tables"], content["delta"]
        if (
            not all(isinstance(content[key], list) for key in ("shares", "behind_plan"))
            or not isinstance(content["sampled"], bool)
            or isinstance(tables, bool)
            or not isinstance(tables, int)
            or tables < 1
            or isinstance(delta, bool)
            or not isinstance(delta, int | float)
            or not 0.0 <= delta < 1.0
        ):
            raise PlanError("ledger: an entry is not of its kind")
        try:
            check_mechanism(content["mechanism"])
            ledger = cls(
                content["mechanism"],
                Sensitivity(
                    tables,
                    _adjacency(content["adjacency"]),
                    content["rows_per_person"],
                    content["sampled"],
                ),
                float(delta),
                tuple(Share.from_dict(share) for share in content["shares"]),
                tuple(Spent.from_dict(spent) for spent in content["behind_plan"]),
                Pool.from_dict(content["pool"]) if "pool" in content else None,
            )
        except (UsageError, PrivacyError) as error:
            raise PlanError(f"ledger: {error}") from None
        for key, value in ledger.to_dict().items():
            stated = content[key]
            if isinstance(value, float) and isinstance(stated, int | float):
                # Another version's logarithms may differ in the last digits.
                agrees = math.isclose(value, stated, rel_tol=1e-6)
            else:
                agrees = value == stated
            if not agrees:
                raise PlanError(
                    f"the ledger was edited: it states {key} {stated!r}, its entries add up to "
                    f"{value!r}; get the release again from its source"
                )
        return ledger


def _adjacency(content: Any) -> Adjacency:
    adjacency: Adjacency = content
    return adjacency


def rounded_up(epsilon: float, digits: int = 3) -> str:
    """Round up: what is signed must not be less than what is true."""
    if epsilon == 0.0:  # with a large delta
        return "0.0"
    unit = 10.0 ** (math.floor(math.log10(epsilon)) - digits + 1)
    # A billionth more is what adding up in floating point makes of 1.0.
    rounded = math.ceil(epsilon / unit - 1e-6) * unit
    text = f"{rounded:.{digits}g}"
    return text if any(c in text for c in ".e") else text + ".0"
