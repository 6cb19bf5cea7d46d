"""Whether counts are possible under a plan, as far as noise allows to see."""

import numpy as np
from numpy.typing import NDArray

from hushtable.language import numerals
from hushtable.plans.draws import Purpose
from hushtable.plans.plan import Plan
from hushtable_federation.language import _


def implausible(plan: Plan, counts: NDArray[np.int64], noise_sd: float) -> str | None:
    """Return why these cannot be honest counts with this noise; None if they can.

    All tables count the same rows, so their totals agree up to the noise; and no cell contains
    fewer than zero rows, or more than all rows. This also holds for rows of several periods
    that a horizon weights, because no weight is below 0. For verdicts, the first table counts
    normal rows and outliers, and all others count outliers minus normal rows. Chance exceeds a
    bound of 8 standard deviations once in 10^15 cells.

    Parameters
    ----------
    plan : Plan
        The plan that they are under.
    counts : ndarray of shape (n_cells,), int64
        Counts of one site or of all sites.
    noise_sd : float
        Standard deviation of the noise on a cell.
    """
    offsets = plan.family.offsets
    # Exact in whole numbers unless numbers are huge, which is checked first.
    if np.abs(counts, dtype=np.float64).max() > 2.0**52:
        return _("a count exceeds 2^52")
    rows = np.add.reduceat(counts, offsets[:-1]).astype(np.float64)
    signed = plan.purpose is Purpose.VERDICTS
    all_verdicts = float(rows[0])
    if signed:
        rows[0] = counts[1] - counts[0]
    spread = noise_sd * np.sqrt(np.diff(offsets))
    weights = 1.0 / spread**2
    mean = float(rows @ weights / weights.sum())
    off = np.abs(rows - mean) / spread
    worst = int(off.argmax())
    if off[worst] > 8.0:
        return _(
            "the tables hold different numbers of rows: table %(table)s about %(n)s, all "
            "tables on average %(mean)s: %(times)s times the noise apart",
            table=worst + 1, n=numerals(f"{rows[worst]:,.0f}"),
            mean=numerals(f"{mean:,.0f}"), times=f"{off[worst]:.0f}",
        )  # fmt: skip
    total = max(all_verdicts if signed else mean, 0.0)
    most = total + 8.0 * (noise_sd + spread.min())
    cell = int(counts.argmin())
    if counts[cell] < (-most if signed else -8.0 * noise_sd):
        return _("cell %(cell)s holds %(n)s: negative by more than noise explains", cell=cell,
                 n=numerals(f"{counts[cell]:,}"))  # fmt: skip
    cell = int(counts.argmax())
    if counts[cell] > most:
        return _("cell %(cell)s holds %(n)s, more than the %(total)s rows in total", cell=cell,
                 n=numerals(f"{counts[cell]:,}"), total=numerals(f"{total:,.0f}"))  # fmt: skip
    return None
