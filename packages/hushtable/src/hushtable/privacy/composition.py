"""Costs of releases to a person, and how those of several add up: the algebra, in one place.

A row falls into one cell of each of m tables. Adding or removing it changes m cells by one;
replacing it changes up to 2m cells by one. A person with g rows changes them by up to g. Over
the vector of *all* cells the sensitivities are therefore

=====================  ==================  ======================
neighbouring data      L1                  L2
=====================  ==================  ======================
add or remove g rows   g m                 g sqrt(m)
replace g rows         2 g m               g sqrt(2 m)
=====================  ==================  ======================

Gaussian noise of scale sigma costs rho = L2^2 / (2 sigma^2) of zero-concentrated differential
privacy (zCDP: Bun and Steinke, 2016). Laplace noise of scale b costs epsilon = L1 / b of pure
differential privacy, and, because each table by itself is (L1 / m b)-differentially private and
so costs half the square of that in zCDP, rho = (L1 / b)^2 / (2 m).

Costs of several releases compose by four rules:

1. Releases of the same rows add up, in either currency.
2. Sites hold different people: of releases of different rows, the dearest counts (parallel
   composition: McSherry, 2009).
3. A person with rows at t sites, each of which adds noise of its own, pays at every one: the
   costs add up.
4. Where t sites share one noise, only their sum is seen, and that person's rows change it at all
   of them at once: the L2 sensitivities add up, so that rho is (sum of sqrt(rho_i))^2, which is
   t^2 rho for sites of equal cost.

What a release cost its site once is counted once: a site leaves out of its own history what the
history of a plan is proved to contain (`split_history`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from hushtable.arguments import is_text
from hushtable.entries import entries
from hushtable.errors import PlanError, UsageError
from hushtable.privacy.horizon import Horizon
from hushtable.privacy.mechanisms import Adjacency, Cost, Sensitivity

#: Sets of sites that are looked at one by one; of more, a bound over all of them is taken.
_SETS = 20_000
#: Stands for the noise of releases in files that do not say whether sites shared it.
_UNKNOWN = ""


class Charge(NamedTuple):
    """Cost of one release to a person at one site, and the noise that it has.

    ``noise`` is what the sites that share it name it by; None where it is the site's own.
    """

    cost: Cost
    noise: str | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """An earlier release about the same rows, and what it cost.

    Attributes
    ----------
    release : str
        Its id.
    what : str
        What it held: ``"ranges"``, ``"marginals"``, ``"ranks"`` or a detector's tables.
    cost : Cost
        Its cost alone to a person at one site, without what came before it.
    adjacency, rows_per_person
        What that cost refers to, as in `Sensitivity`.
    pool : str or None
        Id of the round whose sites shared the noise; None where each added its own. Of several
        rounds that were merged, their ids with blanks between: all as of one noise, which is
        dearer.
    parts : tuple of str
        Ids of the shares that it consists of, its own id where it is one site's. Empty in older
        files, which do not say, nor whether the noise was shared.
    tables : int
        Tables that hold a row; 1 where nobody says, as before 0.2, which with Gaussian noise
        costs a little more.
    horizon : Horizon or None
        Of a release that goes on: for how many periods it cost that.

    Examples
    --------
    >>> from hushtable.privacy.budget import Cost, Spent
    >>> spent = Spent("5f3c", "marginals", Cost(0.01), "add-remove", rows_per_person=1)
    >>> Spent.from_dict(spent.to_dict()) == spent
    True
    """

    release: str
    what: str
    cost: Cost
    adjacency: Adjacency
    rows_per_person: int
    pool: str | None = None
    parts: tuple[str, ...] = ()
    tables: int = 1
    horizon: Horizon | None = None

    def __post_init__(self) -> None:
        # What has no pure epsilon is Gaussian (`hushtable.privacy.mechanisms.register`).
        if math.isinf(self.cost.pure):
            rows, horizon = self.rows_per_person, self.horizon
            changed = Sensitivity(self.tables, self.adjacency, rows, horizon=horizon)
            object.__setattr__(self, "cost", changed.gaussian_cost(self.cost.rho))

    @property
    def charge(self) -> Charge:
        """Its cost to a person at one site, and the noise that it came through."""
        if self.pool is not None:
            return Charge(self.cost, self.pool)
        # Laplace noise is never shared; of Gaussian noise, what is dearer is taken.
        own = bool(self.parts) or math.isfinite(self.cost.pure)
        return Charge(self.cost, None if own else _UNKNOWN)

    def contains(self, others: "Sequence[Spent]") -> bool:
        """Return whether its cost counts all of these, under the same terms and noise."""
        total = Cost.total(one.cost for one in others)
        terms = {(one.adjacency, one.rows_per_person) for one in others}
        # What several sites share costs a person at these more than what each adds itself.
        noises = {None} if self.pool is None else {None, self.pool, *self.pool.split()}
        return (
            total.rho <= self.cost.rho
            and total.pure <= self.cost.pure
            and total.spread <= self.cost.spread
            and terms <= {(self.adjacency, self.rows_per_person)}
            and {one.pool for one in others} <= noises
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as JSON carries it."""
        return {
            "release": self.release,
            "what": self.what,
            "rho": self.cost.rho,
            "pure_epsilon": None if math.isinf(self.cost.pure) else self.cost.pure,
            "adjacency": self.adjacency,
            "rows_per_person": self.rows_per_person,
            **({} if self.pool is None else {"pool": self.pool}),
            **({"parts": list(self.parts)} if self.parts else {}),
            **({"tables": self.tables} if self.tables > 1 else {}),
            **({} if self.horizon is None else {"horizon": self.horizon.to_dict()}),
        }

    @classmethod
    def from_dict(cls, content: Any) -> "Spent":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        kinds: dict[str, Any] = {
            "release": str, "what": str, "rho": float, "pure_epsilon": float | None,
            "adjacency": object, "rows_per_person": object,
        }  # fmt: skip
        optional = {"pool": str | None, "parts": list[str], "tables": int, "horizon": object}
        entries(content, "an earlier release", kinds, optional)
        pure = math.inf if content["pure_epsilon"] is None else content["pure_epsilon"]
        if not (content["rho"] > 0.0 and pure > 0.0):
            raise PlanError("an earlier release needs costs above 0")
        pool, parts = content.get("pool"), content.get("parts", [])
        if pool == "" or not all(map(is_text, [*parts, pool or "-"])):
            raise PlanError("an earlier release: pool needs an id, and parts a list of ids")
        rows, adjacency = content["rows_per_person"], content["adjacency"]
        try:
            tables = Sensitivity(content.get("tables", 1), adjacency, rows).tables
        except UsageError as error:
            raise PlanError(f"an earlier release: {error}") from None
        cost = Cost(float(content["rho"]), float(pure))
        release, what = content["release"], content["what"]
        horizon = Horizon.from_dict(content["horizon"]) if "horizon" in content else None
        about = release, what, cost, adjacency, rows
        return cls(*about, pool, tuple(parts), tables, horizon)


def split_history(
    behind: Sequence[Spent], mine: Sequence[Spent]
) -> tuple[tuple[Spent, ...], tuple[str, ...]]:
    """Split a site's own history by what the history of a plan is proved to contain.

    An entry of the plan contains releases of the site if it names them, and states at least what
    the site knows that they cost, through the same noise. Whatever else it says proves nothing:
    the site's own entries then count, and not that one.

    Of the releases ``behind`` the plan, as the plan says, and ``mine``, those of the site about
    the same rows, as it knows itself, it returns those of ``mine`` that no entry of the plan
    contains, and the ids of the entries that contain nothing of ``mine``.
    """
    counted: set[str] = set()
    apart = []
    for entry in behind:
        itself = [one for one in mine if one.release == entry.release]
        parts = [one for one in mine if one.release in entry.parts and one not in itself]
        held = [those for those in (itself, parts) if those and entry.contains(those)]
        counted.update(one.release for those in held for one in those)
        if not held:
            apart.append(entry.release)
    return tuple(one for one in mine if one.release not in counted), tuple(apart)


def at_sites(histories: Sequence[Sequence[Charge]], sites: int) -> Cost:
    """Return the cost to the person with rows at so many sites, 1 or more, who pays most.

    ``histories`` are, for each site, the charges of its releases to a person there. The cost is
    the largest in each currency: over all sets of sites where they are few, and otherwise a bound
    on it, which is exact for sites of the same history.
    """
    totals = [Cost.total(charge.cost for charge in history) for history in histories]
    if sites == 1:
        return Cost.largest(totals)
    sites = min(sites, len(histories))
    pure = sum(sorted(total.pure for total in totals)[-sites:])
    return Cost(_dearest(histories, sites, "rho"), pure, _dearest(histories, sites, "spread"))


def _dearest(histories: Sequence[Sequence[Charge]], sites: int, currency: str) -> float:
    """Return the cost to the person at so many sites who pays most, in rho or spread.

    Both grow with the square of what a person's rows change.
    """
    names = {c.noise: 0 for history in histories for c in history if c.noise is not None}
    # Of merged rounds nobody knows in which of them a site was: all is taken for one noise.
    several = any(" " in name for name in names)
    columns = {name: 0 if several else column for column, name in enumerate(names)}
    own, shared = np.zeros(len(histories)), np.zeros((len(histories), len(columns)))
    for site, history in enumerate(histories):
        for cost, noise in history:
            if noise is None:
                own[site] += getattr(cost, currency)
            else:
                shared[site, columns[noise]] += getattr(cost, currency)
    shifts = np.sqrt(shared)  # what that person's rows change in the sum, in units of its noise
    if math.comb(len(histories), sites) <= _SETS:
        chosen = map(list, combinations(range(len(histories)), sites))
        return max(float(own[s].sum() + (shifts[s].sum(axis=0) ** 2).sum()) for s in chosen)
    dearest = np.sort(shifts, axis=0)[-sites:]
    return float(np.sort(own)[-sites:].sum() + (dearest.sum(axis=0) ** 2).sum())
