"""Counts beside their noise."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Counts
from hushtable.plots._display import Display, legend

#: Points that a curve of all cells is drawn with.
_POINTS = 400


class NoiseDisplay(Display):
    """Counts of a release beside the noise that is in each of them.

    Make one with `from_release`.

    Parameters
    ----------
    counts : ndarray of shape (n_cells,), int64
        With noise; in any order.
    noise_sd : float
        Standard deviation of the noise on a cell, in counts.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where the counts are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable.plots import NoiseDisplay
    >>> NoiseDisplay(np.array([3, 250, -4, 120]), noise_sd=10.0).plot().standing_out
    0.5
    """

    def __init__(self, counts: NDArray[np.int64], noise_sd: float) -> None:
        self.counts, self.noise_sd = np.sort(counts)[::-1], noise_sd

    @classmethod
    def from_release(cls, release: Counts, *, ax: Any = None) -> Self:
        """Draw the counts of a release.

        Parameters
        ----------
        release : Release or LocalModel
            One site's, or a sum.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        NoiseDisplay
        """
        return cls(release.counts, release.noise_sd).plot(ax)

    @property
    def standing_out(self) -> float:
        """Share of the cells whose count is above twice the noise's standard deviation.

        By noise alone it would be 2.3% of them.
        """
        return float(np.mean(self.counts > 2.0 * self.noise_sd))

    def _draw(self, ax: Any) -> None:
        last = len(self.counts) - 1
        # Closer together at both ends, where the curve is steep.
        places = np.sin(np.linspace(0.0, np.pi / 2, min(_POINTS, last + 1))) ** 2
        points = np.unique(np.rint(places * last).astype(np.int64))
        ax.plot(100.0 * points / max(1, last), self.counts[points], color="C0", label="counts")
        noise = 2.0 * self.noise_sd
        ax.axhspan(-noise, noise, color="C1", alpha=0.25, lw=0, label="noise, 2 sd")
        ax.set_yscale("symlog", linthresh=max(noise, 1.0))
        ax.yaxis.set_major_formatter("{x:,.0f}")
        ax.set_xlim(0.0, 100.0)
        ax.set(xlabel="cells from the largest count, %", ylabel="rows in the cell, with noise")
        legend(ax)
