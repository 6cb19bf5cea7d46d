"""Counts that grow for years at one cost: periods are mixed before noise is added.

In each of T periods new rows are counted: x_1, ..., x_T. Wanted are running sums, and sums of the
last periods. To release each x_t makes their sums noisy, for noise adds up; to release each running
sum is dear, for a row is in all that follow. In between: release C x plus noise of one scale, and
decode running sums as B (C x + noise), where B C is the lower triangular matrix of ones (Dwork et
al., 2010; Denisov et al., 2022). With the square root of that matrix, C = B, the noise on the last
of 60 sums is that of 2.4 releases (Fichtenberger, Henzinger and Upadhyay, 2023). Here C has whole
numbers, so that counts stay whole and can be masked.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.arguments import whole
from hushtable.entries import entries
from hushtable.errors import PlanError, UsageError

Floats = NDArray[np.float64]

#: Periods at most: ten years of weeks.
MAX_PERIODS = 520
#: The largest entry of C: with 32, rounding costs less than half a percent at 60 periods.
_UNIT = 32


@dataclass(frozen=True)
class Horizon:
    """How the counts of periods are mixed, and for how many periods.

    Attributes
    ----------
    factor : tuple of int
        Weights of a period's rows in its own release and in those that follow: the first column of
        C, a lower triangular Toeplitz matrix. One for each period, falling, the first above 0.
    participations : int
        Periods at most in which a person has rows.
    apart : int
        Periods at least from one of these to the next.

    Examples
    --------
    >>> from hushtable.privacy import Horizon
    >>> year = Horizon.of(12)
    >>> year.factor
    (32, 16, 12, 10, 9, 8, 7, 7, 6, 6, 6, 5)
    >>> round(year.variance(12), 2)  # of the sum of twelve months, in that of one release
    3.43
    """

    factor: tuple[int, ...]
    participations: int = 1
    apart: int = 1

    def __post_init__(self) -> None:
        periods = whole("periods", len(self.factor), 1, MAX_PERIODS)
        whole("participations", self.participations, 1, periods)
        whole("apart", self.apart, 1, MAX_PERIODS)
        if self.apart * (self.participations - 1) >= periods:
            raise UsageError(
                f"participations={self.participations} that are apart={self.apart} do not fit into "
                f"{periods} periods"
            )
        known = all(type(c) is int and 0 <= c <= _UNIT for c in self.factor)
        falling = known and all(a >= b for a, b in itertools.pairwise(self.factor))
        if not (falling and self.factor[0] > 0):
            raise UsageError(
                f"factor={self.factor}: needs whole numbers that fall, from {_UNIT} at most to 0"
            )

    @classmethod
    def of(cls, periods: int, participations: int = 1, apart: int = 1) -> "Horizon":
        """Return the horizon with the least noise on the sum of all periods.

        Parameters
        ----------
        periods : int
            How many there will be, 1 to 520.
        participations : int, default=1
            Periods at most in which a person has rows.
        apart : int, default=1
            Periods at least from one of these to the next.
        """
        periods = whole("periods", periods, 1, MAX_PERIODS)
        root = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, periods))])
        weights = np.rint(_UNIT * root).astype(int)

        def banded(band: int) -> "Horizon":
            kept = [*weights[:band].tolist(), *[0] * (periods - band)]
            return cls(tuple(kept), participations, apart)

        if participations == 1:
            return banded(periods)
        # In a band, what a person does in one period is over before the next: no sum of columns.
        bands = {periods, *range(apart, periods, apart)}
        return min((banded(band) for band in sorted(bands)), key=lambda one: one.variance(periods))

    @property
    def periods(self) -> int:
        """How many periods there are, T."""
        return len(self.factor)

    @property
    def columns(self) -> NDArray[np.int64]:
        """The most that a row in each of a person's periods adds to each release, (T,).

        Of a Toeplitz matrix whose entries fall, the columns that begin first and lie closest have
        the largest sum, in the sum of squares (Kalinin and Lampert, 2024, theorem 2).
        """
        weights, total = np.array(self.factor, np.int64), np.zeros(self.periods, np.int64)
        for start in range(0, self.participations * self.apart, self.apart):
            total[start:] += weights[: self.periods - start]
        return total

    @property
    def sensitivity_squared(self) -> int:
        """By how much a person changes a cell over all releases: the square of the L2 norm."""
        return int((self.columns**2).sum())

    @property
    def most(self) -> int:
        """By how much a person changes a cell of one release at most."""
        return int(self.columns.max())

    def mixed(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what the latest of these periods releases, before noise.

        Parameters
        ----------
        counts : ndarray of shape (t, cells), int64
            Of the periods 1 to t.
        """
        weights = np.array(self.factor[: len(counts)][::-1], np.int64)
        mixed: NDArray[np.int64] = weights @ counts
        return mixed

    def weights(self, period: int, window: int | None = None) -> Floats:
        """Return by what to multiply the releases of the periods so far, to get a sum of counts.

        Parameters
        ----------
        period : int
            The last period of the sum, t.
        window : int, optional
            How many periods it has; by default all.

        Returns
        -------
        ndarray of shape (t,), float64
        """
        period = whole("period", period, 1, self.periods)
        window = period if window is None else whole("window", window, 1, period)
        decoded = self._decoding
        found = decoded[:period][::-1].copy()
        found[: period - window] -= decoded[: period - window][::-1]
        return found

    def variance(self, period: int, window: int | None = None) -> float:
        """Return that of the noise on a decoded sum, in that of one release at the whole budget."""
        return self.sensitivity_squared * float((self.weights(period, window) ** 2).sum())

    @property
    def _decoding(self) -> Floats:
        """First column of B, (T,): running sums of the inverse series of the factor."""
        inverse = np.zeros(self.periods)
        inverse[0] = 1.0 / self.factor[0]
        for k in range(1, self.periods):
            inverse[k] = (
                -math.fsum(self.factor[i] * inverse[k - i] for i in range(1, k + 1))
                / self.factor[0]
            )
        return np.cumsum(inverse)

    def to_dict(self) -> dict[str, Any]:
        """Return the horizon as JSON carries it."""
        more = (
            {}
            if self.participations == 1
            else {"participations": self.participations, "apart": self.apart}
        )
        return {"factor": list(self.factor), **more}

    @classmethod
    def from_dict(cls, content: Any) -> "Horizon":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        optional = {"participations": int, "apart": int}
        said = dict(entries(content, "a horizon", {"factor": list[int]}, optional))
        try:
            return cls(tuple(said.pop("factor")), **said)
        except UsageError as error:
            raise PlanError(f"horizon: {error}") from None
