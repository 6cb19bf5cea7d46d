"""Mechanisms: the kinds of noise, their registry, and the exact samplers that draw them.

A call of `register`, here or anywhere else, adds a mechanism; no other code knows one by name.
No seed can be given. Floating-point samplers of Laplace and Gaussian noise can be attacked
(Mironov, 2012); OpenDP's samplers draw integers exactly, from the system's secure random numbers.

"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hushtable.arguments import whole
from hushtable.errors import MissingExtraError, PrivacyError, UsageError
from hushtable.privacy.accounting import (
    Horizon,
    epsilon_bound,
    epsilon_from_rho,
    rho_bound,
    spread_of,
)
from hushtable.threads import for_each, n_threads

Adjacency = Literal["add-remove", "replace-one"]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Scale of noise beyond which a count in 64 bits might overflow.
MAX_SCALE = 2.0**40


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Largest difference between the counts of neighbouring data.

    Attributes
    ----------
    tables : int
        Tables in which a row is counted, m.
    adjacency : {"add-remove", "replace-one"}
        Whether neighbouring data differ by adding or removing a person's rows, or by their values.
    rows_per_person : int
        Largest number of rows of one person, g: the unit that is protected.
    sampled : bool
        Whether each table counts a sample of fixed size: an additional row then pushes another
        out, so that two cells of a table change under either adjacency.
    horizon : Horizon or None
        If rows of one period are also in the following releases: the horizon.

    Examples
    --------
    >>> from hushtable.privacy.mechanisms import Sensitivity
    >>> Sensitivity(100, rows_per_person=2).l1
    200
    """

    tables: int
    adjacency: Adjacency = "add-remove"
    rows_per_person: int = 1
    sampled: bool = False
    horizon: Horizon | None = None

    def __post_init__(self) -> None:
        if self.adjacency not in get_args(Adjacency):
            raise UsageError(
                f"adjacency={self.adjacency!r}: needs 'add-remove' (neighbouring data have one "
                "person more or less) or 'replace-one' (one person's values differ)"
            )
        whole("tables", self.tables)
        # JSON cannot hold NumPy integers.
        rows = whole("rows_per_person", self.rows_per_person)
        object.__setattr__(self, "rows_per_person", rows)

    @property
    def _cells(self) -> int:
        return 2 if self.sampled or self.adjacency == "replace-one" else 1

    @property
    def l1(self) -> int:
        """L1 sensitivity of the vector of all counts of all periods."""
        each = 1 if self.horizon is None else int(self.horizon.columns.sum())
        return self.rows_per_person * self._cells * self.tables * each

    @property
    def l2_squared(self) -> int:
        """Square of the L2 sensitivity of the vector of all counts of all periods."""
        each = 1 if self.horizon is None else self.horizon.sensitivity_squared
        return self.rows_per_person**2 * self._cells * self.tables * each

    def cost(self, mechanism: str, scale: float) -> "Cost":
        """Return the cost to one person of noise of this scale on every cell."""
        return named(mechanism).cost(self, scale)

    def gaussian_cost(self, rho: float) -> "Cost":
        """Return the cost of discrete Gaussian noise of this rho on every cell."""
        most, periods = self.rows_per_person, 1
        if self.horizon is not None:
            most, periods = most * self.horizon.most, self.horizon.periods
        return Cost(rho, spread=periods * spread_of(rho, most, self.l2_squared))


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one or several releases to one person, in several currencies at once.

    Attributes
    ----------
    rho : float
        Zero-concentrated differential privacy.
    pure : float
        Pure epsilon (delta = 0); infinite if some noise needs a delta.
    spread : float
        If all noise is Gaussian, what its discreteness adds to the variance of the privacy loss
        (`hushtable.privacy.accounting`); infinite if some is not, so that only zCDP applies.

    Examples
    --------
    >>> from hushtable.privacy.mechanisms import Cost
    >>> twice = Cost(rho=0.01) + Cost(rho=0.01)
    >>> f"{twice.epsilon(delta=1e-6):.2f}"
    '0.90'
    """

    rho: float
    pure: float = math.inf
    spread: float = math.inf

    def __add__(self, other: "Cost") -> "Cost":
        """Add the costs of releases of the same rows."""
        return Cost(self.rho + other.rho, self.pure + other.pure, self.spread + other.spread)

    @classmethod
    def total(cls, costs: Iterable["Cost"]) -> "Cost":
        """Return the cost of all releases on the same rows; no releases cost nothing."""
        return sum(costs, start=cls(0.0, 0.0, 0.0))

    @classmethod
    def largest(cls, costs: Iterable["Cost"]) -> "Cost":
        """Return the cost to a person whose rows are behind only one of the releases."""
        costs = list(costs)
        return cls(*(max(getattr(c, name) for c in costs) for name in ("rho", "pure", "spread")))

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon that holds at ``delta`` (which may be 0)."""
        if delta == 0.0:
            return self.pure
        if math.isinf(self.spread):
            return min(self.pure, epsilon_from_rho(self.rho, delta))
        return min(self.pure, epsilon_bound(self.rho, self.spread, delta))

    def by_zcdp(self) -> "Cost":
        """Return the same cost with an epsilon that follows from zCDP, as before 0.2."""
        return replace(self, spread=math.inf)


class Mechanism(ABC):
    """One kind of integer noise, drawn independently on every cell."""

    name: ClassVar[str]  # in calls, ledgers and files
    words: ClassVar[str]  # a short description for the help of the command line
    pure: ClassVar[bool]  # whether it is accounted in pure epsilon, without a delta; else in zCDP
    excess_kurtosis: ClassVar[float]  # upper bound: fourth cumulant over the squared variance
    #: Whether k parts of scale s add up to this noise with scale s sqrt(k), as Gaussian noise does:
    #: only then may sites share it.
    shareable: ClassVar[bool] = False
    takes_samples: ClassVar[bool] = False  # whether tables of random samples may have it
    gaussian: ClassVar[bool] = False  # whether audits and accounts may take it as Gaussian

    @abstractmethod
    def cost(self, sensitivity: Sensitivity, scale: float) -> Cost:
        """Return the cost to one person of noise of this scale on every cell."""

    @abstractmethod
    def scale(self, sensitivity: Sensitivity, budget: float) -> float:
        """Return the scale that costs this much: epsilon if `pure`, rho otherwise."""

    @abstractmethod
    def sampler(self, opendp: ModuleType, domain: object, scale: float) -> Any:
        """Return OpenDP's measurement that adds the noise to a vector of counts."""

    @abstractmethod
    def noise_sd(self, scale: float) -> float:
        """Return the standard deviation of the noise on one cell, in counts."""

    @abstractmethod
    def log_ratio(self, scale: float, x: Ints, added: Ints | np.int64) -> Floats:
        """Return ln(P[x | with the row] / P[x | without it]) for each cell.

        ``x`` is how much cells exceed their values without the row; ``added`` is what it adds.
        """

    def ideal_ratios(
        self, added: Ints, epsilon: float, delta: float, trials: int
    ) -> tuple[Floats, Floats] | None:
        """Return log likelihood ratios, without the row and with it, at exactly this epsilon.

        They are drawn from a fixed seed, for audits only; None if there is no such simulation.
        """
        return None

    def fixed_scale(self, epsilon: float) -> float | None:
        """Return the scale if it follows from epsilon alone, whatever was spent; else None."""
        return None

    def spent(self, cost: Cost) -> float:
        """Return a cost in the currency in which this mechanism is accounted."""
        return cost.pure if self.pure else cost.rho


#: All mechanisms, by name.
MECHANISMS: dict[str, Mechanism] = {}


def register(mechanism: Mechanism) -> None:
    """Add a mechanism; raises `UsageError` if there is already one with its name.

    A mechanism that is not accounted in pure epsilon has to be Gaussian, because a ledger holds
    only the costs of an earlier release.
    """
    if not (mechanism.pure or mechanism.gaussian):
        raise UsageError(f"mechanism {mechanism.name!r}: needs a pure epsilon, or Gaussian noise")
    if mechanism.name in MECHANISMS:
        raise UsageError(f"there is a mechanism {mechanism.name!r} already: choose another name")
    MECHANISMS[mechanism.name] = mechanism


def named(name: object) -> Mechanism:
    """Return the mechanism of this name; raise `UsageError` if there is none."""
    if not isinstance(name, str) or name not in MECHANISMS:
        raise UsageError(f"mechanism={name!r} is unknown: needs one of {', '.join(MECHANISMS)}")
    return MECHANISMS[name]


class DiscreteGaussian(Mechanism):
    """Costs rho = L2^2 / 2 scale^2 (Canonne, Kamath and Steinke, 2020), and is Gaussian."""

    name = "discrete-gaussian"
    words = "the least noise with about ten tables or more"
    pure = False
    shareable = True  # from a scale of 2 on: `hushtable.privacy.budget.part_scale`
    gaussian = True
    excess_kurtosis = 0.0

    def cost(self, sensitivity: Sensitivity, scale: float) -> Cost:
        return sensitivity.gaussian_cost(sensitivity.l2_squared / (2.0 * scale**2))

    def scale(self, sensitivity: Sensitivity, budget: float) -> float:
        return math.sqrt(sensitivity.l2_squared / (2.0 * budget))

    def sampler(self, opendp: ModuleType, domain: object, scale: float) -> Any:
        return opendp.m.make_gaussian(domain, opendp.l2_distance(T="f64"), scale=scale)

    def noise_sd(self, scale: float) -> float:
        """Return the scale: equal to within 1e-14 from 1.6 on, an upper bound below."""
        return scale

    def log_ratio(self, scale: float, x: Ints, added: Ints | np.int64) -> Floats:
        return np.asarray((2.0 * x - added) * added / (2.0 * scale**2), np.float64)

    def ideal_ratios(
        self, added: Ints, epsilon: float, delta: float, trials: int
    ) -> tuple[Floats, Floats]:
        rng, mu = np.random.default_rng(0), np.sqrt(2.0 * rho_bound(epsilon, 0.0, delta))
        absent, present = (mu * rng.normal(m, 1.0, trials) for m in (-mu / 2.0, mu / 2.0))
        return absent, present


class DiscreteLaplace(Mechanism):
    """Costs a pure epsilon of L1 / scale, and rho as in `hushtable.privacy.budget`."""

    name = "discrete-laplace"
    words = "a pure epsilon, no delta"
    pure = True
    excess_kurtosis = 3.0

    def cost(self, sensitivity: Sensitivity, scale: float) -> Cost:
        epsilon = sensitivity.l1 / scale
        return Cost(rho=epsilon**2 / (2.0 * sensitivity.tables), pure=epsilon)

    def scale(self, sensitivity: Sensitivity, budget: float) -> float:
        return sensitivity.l1 / budget

    def sampler(self, opendp: ModuleType, domain: object, scale: float) -> Any:
        return opendp.m.make_laplace(domain, opendp.l1_distance(T="i64"), scale=scale)

    def noise_sd(self, scale: float) -> float:
        """Return the root of 2 q / (1 - q)^2, with q = exp(-1 / scale)."""
        return math.sqrt(2.0 * math.exp(-1.0 / scale)) / -math.expm1(-1.0 / scale)

    def log_ratio(self, scale: float, x: Ints, added: Ints | np.int64) -> Floats:
        return np.asarray((np.abs(x) - np.abs(x - added)) / scale, np.float64)

    def ideal_ratios(
        self, added: Ints, epsilon: float, delta: float, trials: int
    ) -> tuple[Floats, Floats]:
        scale = float(np.abs(added).sum()) / epsilon
        # The difference of two geometric numbers is discrete Laplace noise.
        success, size = -np.expm1(-1.0 / scale), (2, 2, trials, len(added))
        more, less = np.random.default_rng(0).geometric(success, size)
        noise = more - less
        absent, present = (
            self.log_ratio(scale, noise[i] + i * added, added).sum(axis=1) for i in (0, 1)
        )
        return absent, present


class LaplacePerTable(DiscreteLaplace):
    """The paper's noise: calibrated to epsilon of one table; the cost is the total over all."""

    name = "laplace-per-table"
    words = "the paper's calibration, in which E is that of one table alone"
    takes_samples = True

    def fixed_scale(self, epsilon: float) -> float:
        return 1.0 / epsilon


for _one in (DiscreteGaussian(), DiscreteLaplace(), LaplacePerTable()):
    register(_one)

#: The default mechanism, and that of every round.
DEFAULT = DiscreteGaussian.name


#: Cells drawn in one call of OpenDP: progress is updated and Ctrl-C works between two calls.
_CHUNK = 4096
#: The first OpenDP without a division that biased the noise at some scales, such as 4.5 (#2638).
_UNBIASED = (0, 14, 2)


def _opendp() -> ModuleType:
    from importlib.metadata import version  # takes a while to import

    try:
        import opendp.prelude as opendp
    except ImportError:
        raise MissingExtraError("a private release", "OpenDP", "private") from None
    installed = version("opendp")
    if tuple(map(int, re.findall(r"\d+", installed)[:3])) < _UNBIASED:
        raise PrivacyError(
            f"OpenDP {installed} draws biased noise: needs 0.14.2 or newer; "
            "pip install --upgrade 'hushtable[private]'"
        )
    opendp.enable_features("contrib")
    return opendp


def library() -> str:
    """Return the name and version of the sampler's library, for the ledger."""
    from importlib.metadata import version

    _opendp()
    return f"opendp {version('opendp')}"


def _sampler(mechanism: str, scale: float, size: int) -> Any:
    opendp = _opendp()
    domain = opendp.vector_domain(opendp.atom_domain(T="i64"), size=size)
    return named(mechanism).sampler(opendp, domain, scale)


def add_noise(
    counts: NDArray[np.int64],
    mechanism: str,
    scale: float,
    *,
    progress: Callable[[int], None] | None = None,
) -> NDArray[np.int64]:
    """Return the counts (n_cells,) with independent, exactly drawn noise on every cell.

    The result may be negative. ``scale`` is in counts; ``progress`` is called after each chunk with
    the number of further cells done. Raises `MissingExtraError` if OpenDP is not installed.
    """
    if not 0.0 < scale <= MAX_SCALE:
        raise PrivacyError(f"noise of scale {scale:g}: needs a scale above 0 and at most 2^40")
    released = np.empty_like(counts)
    samplers = {
        size: _sampler(mechanism, scale, size)
        for size in {min(_CHUNK, len(counts)), len(counts) % _CHUNK} - {0}
    }

    def fill(start: int) -> None:
        chunk = counts[start : start + _CHUNK]
        released[start : start + len(chunk)] = samplers[len(chunk)](chunk.tolist())
        if progress is not None:
            progress(len(chunk))

    # OpenDP releases Python's lock while it draws.
    for_each(fill, [range(0, len(counts), _CHUNK)], n_threads(-1))
    return released
