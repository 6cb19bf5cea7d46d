"""Costs of releases to a person, and how several costs add up: the algebra, in one place.

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
differential privacy. Because each table on its own is (L1 / m b)-differentially private, and this
costs half of its square in zCDP, it also costs rho = (L1 / b)^2 / (2 m).

Costs of several releases compose by four rules:

1. Costs of releases of the same rows add up, in either currency.
2. Sites hold different people: of releases of different rows, the most expensive counts (parallel
   composition: McSherry, 2009).
3. A person with rows at t sites that each add their own noise pays at every site: the costs add
   up.
4. If t sites share one noise, only their sum is visible, and that person's rows change it at all
   of them at once: the L2 sensitivities add up, so that rho is (sum of sqrt(rho_i))^2, which is
   t^2 rho for sites of equal cost.

The cost of a site's release counts once: a site leaves out of its own history what the
history of a plan is proved to contain (`split_history`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from itertools import combinations
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from hushtable.arguments import JsonObject, entries, is_text, translate_errors
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.language import _, ngettext, numerals
from hushtable.privacy.accounting import (
    Horizon,
    rho_bound,
    rho_from_epsilon,
    rounded_up,
)
from hushtable.privacy.mechanisms import (
    DEFAULT,
    MAX_SCALE,
    Adjacency,
    Cost,
    Mechanism,
    Sensitivity,
    named,
)

#: Largest number of sets of sites to examine one by one; for more, a bound over all is used.
_SETS = 20_000
#: Name of the noise of releases in files that do not state whether sites shared it.
_UNKNOWN = ""


class Charge(NamedTuple):
    """Cost of one release to a person at one site, and its noise.

    ``noise`` is the name of the noise that several sites share; None if it is the site's own.
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
        Cost of this release alone to a person at one site, without earlier releases.
    adjacency, rows_per_person
        The terms of that cost, as in `Sensitivity`.
    pool : str or None
        Id of the round whose sites shared the noise; None if each added its own. For several
        merged rounds, their ids separated by blanks, all accounted as one noise, which is more
        expensive.
    parts : tuple of str
        Ids of the shares in it, or its own id if it belongs to one site. Empty in older files,
        which do not state this, nor whether the noise was shared.
    tables : int
        Number of tables that hold a row; 1 if it is unknown, as before 0.2, which with Gaussian
        noise costs a little more.
    horizon : Horizon or None
        For a release by periods: the horizon for which it has this cost.

    Examples
    --------
    >>> from hushtable.privacy.mechanisms import Cost
    >>> from hushtable.privacy.budget import Spent
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
        # A release without pure epsilon is Gaussian (`hushtable.privacy.mechanisms.register`).
        if math.isinf(self.cost.pure):
            rows, horizon = self.rows_per_person, self.horizon
            changed = Sensitivity(self.tables, self.adjacency, rows, horizon=horizon)
            object.__setattr__(self, "cost", changed.gaussian_cost(self.cost.rho))

    @property
    def charge(self) -> Charge:
        """Its cost to a person at one site, and its noise."""
        if self.pool is not None:
            return Charge(self.cost, self.pool)
        # Laplace noise is never shared; with Gaussian noise, the more expensive case is assumed.
        is_own = bool(self.parts) or math.isfinite(self.cost.pure)
        return Charge(self.cost, None if is_own else _UNKNOWN)

    def contains(self, others: "Sequence[Spent]") -> bool:
        """Return whether its cost covers all of these, under the same terms and noise."""
        total = Cost.total(spent.cost for spent in others)
        terms = {(spent.adjacency, spent.rows_per_person) for spent in others}
        # Noise shared by several sites costs a person there more than separate noises do.
        noises = {None} if self.pool is None else {None, self.pool, *self.pool.split()}
        return (
            total.rho <= self.cost.rho
            and total.pure <= self.cost.pure
            and total.spread <= self.cost.spread
            and terms <= {(self.adjacency, self.rows_per_person)}
            and {spent.pool for spent in others} <= noises
        )

    def to_dict(self) -> dict[str, object]:
        """Return the entry in the form stored in JSON."""
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
    def from_dict(cls, content: JsonObject) -> "Spent":
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
        with translate_errors(PlanError, "an earlier release"):
            tables = Sensitivity(content.get("tables", 1), adjacency, rows).tables
        return cls(
            release=content["release"],
            what=content["what"],
            cost=Cost(float(content["rho"]), float(pure)),
            adjacency=adjacency,
            rows_per_person=rows,
            pool=pool,
            parts=tuple(parts),
            tables=tables,
            horizon=Horizon.from_dict(content["horizon"]) if "horizon" in content else None,
        )


def split_history(
    behind: Sequence[Spent], mine: Sequence[Spent]
) -> tuple[tuple[Spent, ...], tuple[str, ...]]:
    """Split a site's own history by what the history of a plan provably contains.

    An entry of the plan contains releases of the site if it names them and states at least the
    cost that the site knows, with the same noise. Anything else in it proves nothing: the site's
    own entries then count instead of that one.

    The arguments are the releases ``behind`` the plan, as the plan states them, and ``mine``, the
    site's releases about the same rows, as the site knows them. Returns the entries of ``mine``
    that no entry of the plan contains, and the ids of entries that contain nothing of ``mine``.
    """
    counted: set[str] = set()
    apart = []
    for entry in behind:
        itself = [spent for spent in mine if spent.release == entry.release]
        parts = [spent for spent in mine if spent.release in entry.parts and spent not in itself]
        held = [those for those in (itself, parts) if those and entry.contains(those)]
        counted.update(spent.release for those in held for spent in those)
        if not held:
            apart.append(entry.release)
    return tuple(spent for spent in mine if spent.release not in counted), tuple(apart)


def at_sites(histories: Sequence[Sequence[Charge]], sites: int) -> Cost:
    """Return the cost to the person with rows at this many sites, 1 or more, who pays most.

    ``histories`` are, for each site, the charges of its releases to a person there. The cost is
    the largest in each currency: the maximum over all sets of sites if there are few, otherwise a
    bound on it that is exact for sites with the same history.
    """
    totals = [Cost.total(charge.cost for charge in history) for history in histories]
    if sites == 1:
        return Cost.largest(totals)
    sites = min(sites, len(histories))
    pure = math.fsum(sorted(total.pure for total in totals)[-sites:])
    return Cost(_dearest(histories, sites, "rho"), pure, _dearest(histories, sites, "spread"))


def _dearest(histories: Sequence[Sequence[Charge]], sites: int, currency: str) -> float:
    """Return the cost to the person at this many sites who pays most, in rho or spread.

    Both grow with the square of what a person's rows change.
    """
    names = {c.noise: 0 for history in histories for c in history if c.noise is not None}
    # It is unknown in which of several merged rounds a site was: all count as one noise.
    several = any(" " in name for name in names)
    columns = {name: 0 if several else column for column, name in enumerate(names)}
    own, shared = np.zeros(len(histories)), np.zeros((len(histories), len(columns)))
    for site, history in enumerate(histories):
        for cost, noise in history:
            if noise is None:
                own[site] += getattr(cost, currency)
            else:
                shared[site, columns[noise]] += getattr(cost, currency)
    shifts = np.sqrt(shared)  # that person's change of the sum, in units of its noise
    if math.comb(len(histories), sites) <= _SETS:
        chosen = map(list, combinations(range(len(histories)), sites))
        return max(float(own[s].sum() + (shifts[s].sum(axis=0) ** 2).sum()) for s in chosen)
    dearest = np.sort(shifts, axis=0)[-sites:]
    return float(np.sort(own)[-sites:].sum() + (dearest.sum(axis=0) ** 2).sum())


#: Above it, a guarantee is meaningless: e^20 is half a thousand million.
MAX_EPSILON = 20.0
#: Largest delta if no public number of rows gives a bound.
MAX_DELTA = 1e-5

_NOTHING = Cost(0.0, 0.0, 0.0)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def check_epsilon(epsilon: float) -> float:
    """Return epsilon if it gives protection; raise `PrivacyError` otherwise."""
    if not _is_number(epsilon):
        raise PrivacyError(f"epsilon={epsilon!r}: needs a number above 0, such as 1.0")
    if not 0.0 < epsilon <= MAX_EPSILON:
        raise PrivacyError(
            f"epsilon={epsilon}: needs a number above 0 and at most {MAX_EPSILON:g} (0.1 to 1 is "
            "strong protection; above the maximum, a factor of e^epsilon protects no one)"
        )
    return float(epsilon)


def check_delta(delta: float) -> float:
    """Return delta if it is a probability in (0, 1); raise `PrivacyError` otherwise."""
    if not _is_number(delta):
        raise PrivacyError(f"delta={delta!r}: needs a number above 0, such as 1e-6")
    if not 0.0 < delta < 1.0:
        raise PrivacyError(f"delta={delta}: needs a probability above 0 and below 1, such as 1e-6")
    return float(delta)


def check_public_delta(delta: float, expected_rows: int | None) -> float:
    """Return delta if it is small enough by public numbers; raise `PrivacyError` otherwise.

    A delta above 1/n would allow publishing a row unchanged. This n is never the number of rows
    counted, which differs between neighbouring data, so that a refusal would distinguish them. It
    is the public guess for which the plan was laid out; if that is None, `MAX_DELTA` is the bound.
    """
    number = check_delta(delta)
    if expected_rows is None:
        if number > MAX_DELTA:
            raise PrivacyError(
                f"delta={number:g} is above {MAX_DELTA:g}, the maximum under a plan that was laid "
                "out without a number of rows: give a smaller one, such as 1e-6, or draw the plan "
                "with epsilon and expected_rows"
            )
    elif number * expected_rows > 1.0:
        raise PrivacyError(
            f"delta={number:g} is above 1/n for the {expected_rows:,} expected rows: with it, "
            "publishing a row unchanged would count as private; needs a smaller one, such as "
            "1e-6 or below"
        )
    return number


def check_share(share: float | None) -> float | None:
    """Return a share of a budget, None for all that is left; raise `UsageError` otherwise."""
    if share is None:
        return None
    if not _is_number(share) or not 0.0 < share <= 1.0:
        raise UsageError(f"share={share!r}: needs a share of the budget above 0 and at most 1")
    return float(share)


def check_pure(cost: Cost, delta: float) -> None:
    """Raise `PrivacyError` if a delta of 0 is claimed although some noise needs a delta."""
    if delta == 0.0 and math.isinf(cost.pure):
        raise PrivacyError(
            "a pure epsilon cannot follow a release with Gaussian noise, which has a delta: use "
            f"mechanism={DEFAULT!r}"
        )


def calibrated_scale(
    mechanism: str,
    sensitivity: Sensitivity,
    *,
    epsilon: float,
    delta: float = 0.0,
    before: Cost = _NOTHING,
    share: float | None = None,
) -> float:
    """Return the scale, rounded up to six digits, for a total of at most (epsilon, delta).

    The total covers this release and those ``before`` it on the same rows; delta is 0 for Laplace
    noise. ``share``, in (0, 1], is the part of the total that this release may cost; None means
    all that is left. Raises `PrivacyError` if the budget is exhausted, or so small that no noise
    is large enough.
    """
    noise = named(mechanism)
    if (fixed := noise.fixed_scale(epsilon)) is not None:
        return fixed
    wanted = _wanted(noise, sensitivity, epsilon, delta, before, share)
    exact = noise.scale(sensitivity, wanted) if wanted > 0.0 else math.inf
    if exact <= MAX_SCALE:
        scale = _least_scale(
            lambda scale: (before + noise.cost(sensitivity, scale)).epsilon(delta) <= epsilon,
            _rounded_up(exact),
        )
        if scale <= MAX_SCALE:
            return scale
    raise PrivacyError(
        f"epsilon={epsilon:g}"
        + (f" with share={share:g}" if share else "")
        + f" and rows_per_person={sensitivity.rows_per_person} needs noise beyond 2^40 on every "
        "count, which would hide everything: raise epsilon"
    )


def _wanted(
    noise: Mechanism,
    sensitivity: Sensitivity,
    epsilon: float,
    delta: float,
    before: Cost,
    share: float | None,
) -> float:
    """Return what a release may cost, in its currency; raise `PrivacyError` if nothing is left."""
    check_pure(before, delta)
    total, most = _budget(noise, sensitivity, epsilon, delta, before)
    spent = noise.spent(before)
    left = total - spent
    wanted = left if share is None else share * most
    # A remainder from rounding scales does not suffice for a release, and exceeding a share by
    # rounding is no reason to refuse one: the loop in `calibrated_scale` decides.
    rounding = 1e-4 * total
    if spent > 0.0 and (left <= rounding or wanted > left + rounding + max(0.0, most - total)):
        at = "" if noise.pure else f" (delta={delta:g})"
        this = f", and this one should cost {share:.1%} of the budget" if share else ""
        raise PrivacyError(
            f"the budget of epsilon={epsilon:g}{at} is exhausted: earlier releases on these rows "
            f"add up to epsilon {rounded_up(before.epsilon(delta)):g}{this}: raise epsilon, or "
            "do not release anything more about these rows"
        )
    return min(wanted, left)


def _budget(
    noise: Mechanism, sensitivity: Sensitivity, epsilon: float, delta: float, before: Cost
) -> tuple[float, float]:
    """Return the budget after earlier releases, and the budget if nothing had been spent.

    They differ if earlier Gaussian noise, being discrete, cost more than its rho.
    """
    if noise.pure:
        return epsilon, epsilon
    by_zcdp, most = rho_from_epsilon(epsilon, delta), rho_bound(epsilon, 0.0, delta)
    if not noise.gaussian or math.isinf(before.spread):
        return by_zcdp, by_zcdp
    # If the whole would be too coarse to be Gaussian, later shares may have to use zCDP.
    coarse = most > 0.0 and math.isinf(sensitivity.gaussian_cost(most).spread)
    return rho_bound(epsilon, before.spread, delta), by_zcdp if coarse else most


def _least_scale(fits: Callable[[float], bool], scale: float) -> float:
    """Return the smallest scale from this one on that fits, or one above `MAX_SCALE`.

    It is rounded up to six digits. A scale that is too small by a rounding error needs one step; if
    discrete noise costs more than its rho, a bisection finds the scale approximately.
    """
    if not fits(scale) and not fits(_rounded_up(scale * (1.0 + 1e-6))):
        low, high = scale, 2.0 * scale
        while not fits(high) and high <= MAX_SCALE:
            low, high = high, 2.0 * high
        while high > low * (1.0 + 1e-7):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if fits(middle) else (middle, high)
        scale = _rounded_up(high)
    while not fits(scale) and scale <= MAX_SCALE:
        scale = _rounded_up(scale * (1.0 + 1e-6))
    return scale


def part_scale(scale: float, parts: int) -> float:
    """Return the scale of each site's noise if several sites share a noise.

    ``scale`` is that of the Gaussian noise that the bound needs; the bound counts on ``parts``
    sites. The result is at least 2, because only from there on is a sum of discrete Gaussians a
    discrete Gaussian to all significant digits.
    """
    return max(2.0, _rounded_up(scale / math.sqrt(parts)))


def _rounded_up(x: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(x)) - 5)
    return float(f"{math.ceil(x / unit) * unit:.6g}")


@dataclass(frozen=True)
class ReleaseTerms:
    """Terms of a release: the budget of one person, the neighbouring data, and the noise.

    Attributes
    ----------
    epsilon : float
        Total for one person, whose presence changes the probability of anything that the
        releases reveal by at most a factor e^epsilon, plus delta.
    delta : float
        The probability that is added to that bound; under a mechanism of pure epsilon it is
        always 0.
    adjacency, rows_per_person
        Neighbouring data, as in `Sensitivity`.
    share : float or None
        Share of the budget that the release takes; None takes what suits the plan.
    mechanism : str
        Name of the noise, in `hushtable.privacy.mechanisms`.

    Examples
    --------
    >>> from hushtable.privacy import ReleaseTerms
    >>> ReleaseTerms(1.0, rows_per_person=4).words()
    "epsilon 1, delta 1e-06, if a person's rows are added or removed: at most 4 rows"
    """

    epsilon: float
    delta: float = 1e-6
    adjacency: Adjacency = "add-remove"
    rows_per_person: int = 1
    share: float | None = None
    mechanism: str = field(default=DEFAULT, kw_only=True)

    def __post_init__(self) -> None:
        pure = named(self.mechanism).pure
        checked = {
            "epsilon": check_epsilon(self.epsilon),
            "delta": 0.0 if pure else check_delta(self.delta),
            "rows_per_person": self.sensitivity(1).rows_per_person,
        }
        check_share(self.share)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def given(cls, epsilon: "float | ReleaseTerms", **others: Any) -> "ReleaseTerms":
        """Return the terms given to a call, as one object or one by one."""
        if not isinstance(epsilon, ReleaseTerms):
            return cls(epsilon, **others)
        defaults = {item.name: item.default for item in fields(ReleaseTerms)}
        if twice := [name for name, value in others.items() if value != defaults[name]]:
            raise UsageError(f"the terms contain {', '.join(twice)} already: give it only there")
        return epsilon

    def sensitivity(
        self, tables: int, sampled: bool = False, horizon: Horizon | None = None
    ) -> Sensitivity:
        """Return the largest change by one person in the counts of all tables and periods."""
        return Sensitivity(tables, self.adjacency, self.rows_per_person, sampled, horizon)

    def scale(self, sensitivity: Sensitivity, before: Cost) -> float:
        """Return the scale of the noise, given the cost of earlier releases."""
        return calibrated_scale(
            self.mechanism,
            sensitivity,
            epsilon=self.epsilon,
            delta=self.delta,
            before=before,
            share=self.share,
        )

    def words(self) -> str:
        """Describe the terms in a few words."""
        change = _("if a person's rows are added or removed")
        if self.adjacency == "replace-one":
            change = _("if a person's rows get other values")
        return ngettext(
            "epsilon %(epsilon)s, delta %(delta)s, %(change)s: at most %(n)s row",
            "epsilon %(epsilon)s, delta %(delta)s, %(change)s: at most %(n)s rows",
            self.rows_per_person,
            epsilon=numerals(f"{rounded_up(self.epsilon, 6):g}"),
            delta=numerals(f"{rounded_up(self.delta, 6):g}"),
            change=change,
        )


def suspicion(before: float, epsilon: float, delta: float = 0.0) -> float:
    """Return the largest suspicion about one person after a release, except with probability delta.

    The suspicion is that the person's record is among the rows; seeing the release makes it
    stronger. (epsilon, delta) bounds probabilities by a factor e^epsilon *plus* delta. This does
    not mean that the odds rise by at most e^epsilon except with probability delta: under Gaussian
    noise of exactly this cost, they rise by more with a probability of 20 delta at epsilon 1.
    Under such noise the logarithm of the factor is normal, with mean mu^2 / 2 and variance mu^2;
    this gives the factor that is not exceeded except with probability delta.

    Parameters
    ----------
    before : float
        The suspicion before the release, a probability in (0, 1).
    epsilon : float
        Total epsilon of the release, which has Gaussian noise if delta is above 0.
    delta : float, default=0.0
        Its delta. With 0, the odds rise by at most e^epsilon, without exception.

    Returns
    -------
    float
        The suspicion after the release, a probability.

    Raises
    ------
    UsageError
        If ``before`` is not a probability between 0 and 1.
    PrivacyError
        If no noise can have this epsilon and delta.

    Examples
    --------
    >>> from hushtable.privacy import suspicion
    >>> f"{suspicion(0.5, epsilon=1.0, delta=1e-6):.1%}"
    '76.0%'
    """
    if not 0.0 < before < 1.0:
        raise UsageError(f"before={before}: needs a probability above 0 and below 1, such as 0.5")
    factor = check_epsilon(epsilon)
    if delta:
        mu = math.sqrt(2.0 * rho_bound(factor, 0.0, check_delta(delta)))
        factor = 0.5 * mu**2 - mu * NormalDist().inv_cdf(delta)
    return before / (before + (1.0 - before) * math.exp(-factor))
