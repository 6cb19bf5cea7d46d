"""Accounting: what a release costs the person behind a row, and the noise that a budget buys.

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
privacy (zCDP: Bun and Steinke, 2016; discrete Gaussian: Canonne, Kamath and Steinke, 2020,
theorem 4). Laplace noise of scale b costs epsilon = L1 / b of pure differential privacy, and,
because each table by itself is (L1 / m b)-differentially private and so costs half the square
of that in zCDP, rho = (L1 / b)^2 / (2 m).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hushtable.arguments import whole
from hushtable.errors import PlanError, PrivacyError, UsageError

__all__ = [
    "MAX_DELTA",
    "MAX_EPSILON",
    "MAX_SCALE",
    "Adjacency",
    "Cost",
    "Mechanism",
    "Sensitivity",
    "Spent",
    "calibrated_scale",
    "check_delta",
    "check_epsilon",
    "check_mechanism",
    "check_public_delta",
    "check_pure",
    "check_share",
    "epsilon_from_rho",
    "part_scale",
    "rho_from_epsilon",
]

Mechanism = Literal["discrete-gaussian", "discrete-laplace", "laplace-per-table"]
Adjacency = Literal["add-remove", "replace-one"]

#: Above it, a guarantee says nothing: e^20 is half a thousand million.
MAX_EPSILON = 20.0
#: Delta at most where no public number of rows sets the bound.
MAX_DELTA = 1e-5
#: Scale of noise beyond which a count in 64 bits might not hold it.
MAX_SCALE = 2.0**40

Floats = NDArray[np.float64]


# --- zCDP to (epsilon, delta) and back ----------------------------------------------------------


def epsilon_from_rho(rho: float, delta: float) -> float:
    """Return the epsilon at which rho-zCDP is (epsilon, delta)-differentially private.

    The tight conversion: the minimum over alpha > 1 of rho alpha + ln(1 - 1/alpha)
    - ln(alpha delta) / (alpha - 1) (Canonne, Kamath and Steinke, 2020, corollary 13).

    Parameters
    ----------
    rho : float
        Cost in zCDP; 0 or more, or infinity.
    delta : float
        Probability in (0, 1).

    Returns
    -------
    float
        0 or more.
    """
    if math.isinf(rho) or rho == 0.0:
        return rho

    def bound(order: Floats) -> Floats:
        return rho * order + np.log1p(-1.0 / order) - np.log(order * delta) / (order - 1.0)

    return max(0.0, float(_least(bound)))


def rho_from_epsilon(epsilon: float, delta: float) -> float:
    """Return the largest rho for which rho-zCDP is (epsilon, delta)-differentially private.

    The inverse of `epsilon_from_rho`, from the same formula solved for rho: the maximum over
    alpha > 1 of (epsilon - ln(1 - 1/alpha) + ln(alpha delta) / (alpha - 1)) / alpha.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        Probability in (0, 1).

    Returns
    -------
    float
        0 or more; 0 where rounding leaves nothing of it.
    """

    def minus_rho(order: Floats) -> Floats:
        left = epsilon - np.log1p(-1.0 / order) + np.log(order * delta) / (order - 1.0)
        return -left / order

    return max(0.0, -float(_least(minus_rho)))


def _least(bound: Any) -> float:
    """Minimum over alpha > 1 of a function with one valley, by refining a grid of ln(alpha - 1).

    Any alpha gives a valid bound: an error of the search costs a little noise, never privacy.
    """
    low, high = -15.0, 35.0
    least = math.inf
    for _ in range(7):
        exponents = np.linspace(low, high, 101)
        with np.errstate(over="ignore"):  # what is beyond all numbers is not the least
            values = bound(1.0 + np.exp(exponents))
        best = int(values.argmin())
        least = min(least, float(values[best]))
        low, high = exponents[max(best - 1, 0)], exponents[min(best + 1, 100)]
    return least


# --- what one release does ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """By how much the counts of neighbouring data differ.

    Attributes
    ----------
    tables : int
        Tables in which a row is counted, m.
    adjacency : {"add-remove", "replace-one"}
        Whether neighbouring data have a person's rows more or less, or other values in them.
    rows_per_person : int
        Rows of one person at most, g: the unit that is protected.
    sampled : bool
        Whether each table counts a sample of fixed size: a row more then pushes another out,
        so that two cells of a table change under either adjacency.
    """

    tables: int
    adjacency: Adjacency = "add-remove"
    rows_per_person: int = 1
    sampled: bool = False

    def __post_init__(self) -> None:
        if self.adjacency not in get_args(Adjacency):
            raise UsageError(
                f"adjacency={self.adjacency!r}: needs 'add-remove' (neighbouring data have one "
                "person more or less) or 'replace-one' (one person's values differ)"
            )
        whole("tables", self.tables)
        # JSON knows no NumPy integer.
        rows = whole("rows_per_person", self.rows_per_person)
        object.__setattr__(self, "rows_per_person", rows)

    @property
    def _cells(self) -> int:
        """Cells of one table that change."""
        return 2 if self.sampled or self.adjacency == "replace-one" else 1

    @property
    def l1(self) -> int:
        """L1 sensitivity of the vector of all counts."""
        return self.rows_per_person * self._cells * self.tables

    @property
    def l2_squared(self) -> int:
        """Square of the L2 sensitivity of the vector of all counts."""
        return self.rows_per_person**2 * self._cells * self.tables

    def cost(self, mechanism: Mechanism, scale: float) -> "Cost":
        """Return what noise of this scale on every cell costs one person."""
        if mechanism == "discrete-gaussian":
            return Cost(rho=self.l2_squared / (2.0 * scale**2))
        epsilon = self.l1 / scale
        return Cost(rho=epsilon**2 / (2.0 * self.tables), pure=epsilon)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one or several releases cost one person, in two currencies at once.

    Attributes
    ----------
    rho : float
        Zero-concentrated differential privacy.
    pure : float
        Pure epsilon (delta = 0); infinite where Gaussian noise has a part.
    """

    rho: float
    pure: float = math.inf

    def __add__(self, other: "Cost") -> "Cost":
        """Both releases tell of the same rows: costs add up."""
        return Cost(self.rho + other.rho, self.pure + other.pure)

    @classmethod
    def total(cls, costs: Iterable["Cost"]) -> "Cost":
        """Return the cost of all releases on the same rows; nothing costs nothing."""
        return sum(costs, start=cls(0.0, 0.0))

    @classmethod
    def largest(cls, costs: Iterable["Cost"]) -> "Cost":
        """Return the cost to a person whose rows are behind one of the releases only."""
        costs = list(costs)
        return cls(max(c.rho for c in costs), max(c.pure for c in costs))

    def at_sites(self, sites: int, *, together: bool = False) -> "Cost":
        """Return the cost to a person whose rows are at several sites, each of which releases.

        Parameters
        ----------
        sites : int
            How many.
        together : bool
            Whether they release one sum under one noise, of which that person's rows then
            change more: zCDP grows with the square of it.
        """
        return Cost(self.rho * (sites**2 if together else sites), self.pure * sites)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon that holds at ``delta`` (which may be 0)."""
        if delta == 0.0:
            return self.pure
        return min(self.pure, epsilon_from_rho(self.rho, delta))


@dataclass(frozen=True, slots=True)
class Spent:
    """An earlier release that tells of the same rows, and what it cost.

    Attributes
    ----------
    release : str
        Its id.
    what : str
        What it held: ``"ranges"``, ``"marginals"``, ``"ranks"`` or a detector's tables.
    cost : Cost
        Its cost alone, without what came before it.
    adjacency, rows_per_person
        What that cost refers to, as in `Sensitivity`.
    """

    release: str
    what: str
    cost: Cost
    adjacency: Adjacency
    rows_per_person: int

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as JSON carries it."""
        return {
            "release": self.release,
            "what": self.what,
            "rho": self.cost.rho,
            "pure_epsilon": None if math.isinf(self.cost.pure) else self.cost.pure,
            "adjacency": self.adjacency,
            "rows_per_person": self.rows_per_person,
        }

    @classmethod
    def from_dict(cls, content: Any) -> "Spent":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        keys = {"release", "what", "rho", "pure_epsilon", "adjacency", "rows_per_person"}
        if not isinstance(content, dict) or set(content) != keys:
            raise PlanError(f"an earlier release needs the entries {sorted(keys)}")
        pure = math.inf if content["pure_epsilon"] is None else content["pure_epsilon"]
        numbers = (content["rho"], pure)
        if (
            not all(isinstance(content[key], str) for key in ("release", "what"))
            or not all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers)
            or not all(n > 0.0 for n in numbers)
        ):
            raise PlanError("an earlier release needs texts, and costs above 0")
        rows, adjacency = content["rows_per_person"], content["adjacency"]
        try:
            Sensitivity(1, adjacency, rows)
        except UsageError as error:
            raise PlanError(f"an earlier release: {error}") from None
        cost = Cost(float(content["rho"]), float(pure))
        return cls(content["release"], content["what"], cost, adjacency, rows)


# --- from a budget to a scale ---------------------------------------------------------------------


def check_mechanism(mechanism: Any) -> None:
    """Raise `UsageError` if there is no such mechanism."""
    if mechanism not in get_args(Mechanism):
        raise UsageError(
            f"mechanism={mechanism!r} is unknown: needs one of {', '.join(get_args(Mechanism))}"
        )


def check_epsilon(epsilon: Any) -> float:
    """Return epsilon if it is one that protects; raises `PrivacyError` otherwise."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | np.number):
        raise PrivacyError(f"epsilon={epsilon!r}: needs a number above 0, such as 1.0")
    if not 0.0 < epsilon <= MAX_EPSILON:
        raise PrivacyError(
            f"epsilon={epsilon}: needs a number above 0 and at most {MAX_EPSILON:g} (0.1 to 1 is "
            "strong protection; beyond, a factor of e^epsilon protects nobody)"
        )
    return float(epsilon)


def check_delta(delta: Any) -> float:
    """Return delta if it is a probability in (0, 1); raises `PrivacyError` otherwise."""
    if isinstance(delta, bool) or not isinstance(delta, int | float | np.number):
        raise PrivacyError(f"delta={delta!r}: needs a number above 0, such as 1e-6")
    if not 0.0 < delta < 1.0:
        raise PrivacyError(f"delta={delta}: needs a probability above 0 and below 1, such as 1e-6")
    return float(delta)


def check_public_delta(delta: Any, expected_rows: int | None) -> float:
    """Return delta if it is small enough by public numbers; raises `PrivacyError` otherwise.

    A delta above 1/n allows to publish a row as it is. The n is never that of the rows counted:
    neighbouring data differ in it, and a refusal would tell them apart.

    Parameters
    ----------
    delta : float
        In (0, 1).
    expected_rows : int or None
        Public guess of the rows that the plan was laid out for; None where there is none, and
        `MAX_DELTA` is the bound.
    """
    number = check_delta(delta)
    if expected_rows is None:
        if number > MAX_DELTA:
            raise PrivacyError(
                f"delta={number:g} is above {MAX_DELTA:g}, the most under a plan that was laid out "
                "for no number of rows: give a smaller one, such as 1e-6, or draw the plan with "
                "epsilon and expected_rows"
            )
    elif number * expected_rows > 1.0:
        raise PrivacyError(
            f"delta={number:g} is above 1/n for the {expected_rows:,} rows expected: with it, "
            "publishing some row as it is would count as private; needs a smaller one, such as "
            "1e-6 or below"
        )
    return number


def check_share(share: Any) -> float | None:
    """Return a share of a budget, None for all that is left; raises `UsageError` otherwise."""
    if share is None:
        return None
    number = isinstance(share, int | float | np.number) and not isinstance(share, bool)
    if not number or not 0.0 < share <= 1.0:
        raise UsageError(f"share={share!r}: needs a share of the budget above 0 and at most 1")
    return float(share)


def check_pure(cost: Cost, delta: float) -> None:
    """Raise `PrivacyError` if a delta of 0 is claimed where Gaussian noise has a part."""
    if delta == 0.0 and math.isinf(cost.pure):
        raise PrivacyError(
            "a pure epsilon cannot follow a release with Gaussian noise, which has a delta: use "
            "mechanism='discrete-gaussian'"
        )


def calibrated_scale(
    mechanism: Mechanism,
    sensitivity: Sensitivity,
    *,
    epsilon: float,
    delta: float = 0.0,
    before: Cost = Cost(0.0, 0.0),
    share: float | None = None,
) -> float:
    """Return the scale of noise with which everything together costs at most (epsilon, delta).

    Parameters
    ----------
    mechanism : {"discrete-gaussian", "discrete-laplace"}
        The noise.
    sensitivity : Sensitivity
        What neighbouring data are.
    epsilon, delta : float
        The total over this release and what came before; delta is 0 for Laplace noise.
    before : Cost
        What earlier releases on the same rows cost.
    share : float in (0, 1], optional
        Share of the total that this release may cost; None is all that is left.

    Returns
    -------
    float
        Rounded up to six digits.

    Raises
    ------
    PrivacyError
        If the budget is exhausted, or so small that no noise is large enough.
    """
    gaussian = mechanism == "discrete-gaussian"
    total = rho_from_epsilon(epsilon, delta) if gaussian else epsilon
    spent = before.rho if gaussian else before.pure
    check_pure(before, delta)
    left = total - spent
    wanted = left if share is None else share * total
    # What is left by the rounding of scales is nothing to release with, and what they exceed a
    # share by nothing to refuse over: the loop below has the last word on the total.
    rounding = 1e-4 * total
    if spent > 0.0 and (left <= rounding or wanted > left + rounding):
        raise PrivacyError(
            f"the budget of epsilon={epsilon:g}"
            + (f" (delta={delta:g})" if gaussian else "")
            + " is exhausted: earlier releases on these rows come to epsilon "
            + f"{before.epsilon(delta):.3g}"
            + (f", and this one is to cost {share:.1%} of the budget" if share else "")
            + ": raise epsilon, or release nothing more about these rows"
        )
    wanted = min(wanted, left)
    if wanted <= 0.0:
        exact = math.inf
    elif gaussian:
        exact = math.sqrt(sensitivity.l2_squared / (2.0 * wanted))
    else:
        exact = sensitivity.l1 / wanted
    if exact <= MAX_SCALE:
        scale = _rounded_up(exact)
        while (before + sensitivity.cost(mechanism, scale)).epsilon(delta) > epsilon:
            scale = _rounded_up(scale * (1.0 + 1e-6))
        if scale <= MAX_SCALE:
            return scale
    raise PrivacyError(
        f"epsilon={epsilon:g}"
        + (f" with share={share:g}" if share else "")
        + f" and rows_per_person={sensitivity.rows_per_person} needs noise beyond 2^40 on every "
        "count, and nothing would be seen through it: raise epsilon"
    )


def part_scale(scale: float, parts: int) -> float:
    """Return the scale of the noise of one of several sites that share a noise.

    Parameters
    ----------
    scale : float
        Of the Gaussian noise that the bound needs.
    parts : int
        Parts that the bound counts on.

    Returns
    -------
    float
        At least 2: only from there on is a sum of discrete Gaussians, to all digits that count,
        a discrete Gaussian.
    """
    return max(2.0, _rounded_up(scale / math.sqrt(parts)))


def _rounded_up(x: float) -> float:
    """Round up to six significant digits."""
    unit = 10.0 ** (math.floor(math.log10(x)) - 5)
    return float(f"{math.ceil(x / unit) * unit:.6g}")
