"""Post-processing of noised histograms: counts without the noise, and where the rows lie.

Everything here is post-processing: it costs no privacy.
"""

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import PrivacyError

Floats = NDArray[np.float64]


def onto_simplex(noisy: Floats, total: float) -> Floats:
    """Return the closest counts of 0 or more that add up to ``total``: max(noisy - tau, 0).

    Projection onto the simplex (Duchi et al., 2008): small cells, mostly noise, become 0.
    ``noisy`` (n_cells,) are the counts of one table with noise; ``total`` above 0 is the number
    of rows that they are known, or estimated, to hold.
    """
    falling = np.sort(noisy)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(noisy) + 1)
    tau = excess[np.flatnonzero(falling > excess)[-1]]
    projected: Floats = np.maximum(noisy - tau, 0.0)
    return projected


def span(noisy: Floats, total: float, noise_sd: float) -> tuple[float, float]:
    """Return the part of a range, as shares of it from 0 to 1, in which the rows lie.

    Bins whose count stands out of the noise (5 standard deviations) are marked; neighbours are
    joined in pairs until the marked bins hold half of the rows; the span of the marked bins is
    widened by its own width on each side.
    ``noisy`` (n_bins,) has a power of two of bins, ``total`` is the estimate of its rows, and
    ``noise_sd`` the standard deviation of the noise on a bin.

    Raises `PrivacyError` if nothing stands out of the noise.
    """
    while True:
        marked = np.flatnonzero(noisy > 5.0 * noise_sd)
        if noisy[marked].sum() >= total / 2.0 and len(marked):
            break
        if len(noisy) <= 2:
            raise PrivacyError(
                f"about {max(total, 0.0):,.0f} rows do not stand out of noise of "
                f"{noise_sd:,.0f} counts a bin: too few to find a range privately; give public "
                "ranges in the schema"
            )
        noisy = noisy.reshape(-1, 2).sum(axis=1)
        noise_sd *= np.sqrt(2.0)
    low, high = marked[0] / len(noisy), (marked[-1] + 1) / len(noisy)
    width = high - low
    return float(max(0.0, low - width)), float(min(1.0, high + width))
