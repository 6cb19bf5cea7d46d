"""Company of rows in words: how many more rows a typical row has around it than an odd one."""

import numpy as np

from hushtable.data.encoding import Codes
from hushtable.plans.score_rule import exact
from hushtable.scores.scorer import Scorer

#: Below how many times as much, and how to say it.
_WORDS = (
    (0.95, "less"),
    (1.05, "as much"),
    (1.2, "a tenth more"),
    (1.35, "a quarter more"),
    (1.75, "half again as much"),
    (2.5, "twice as much"),
)
_COUNTED = ("three", "four", "five", "six", "seven", "eight", "nine")


class Company:
    """Compares rows with a typical one by how many counted rows share their cells.

    The mean over the tables is that of the logarithm, as in scores; these are smoothed besides,
    and a gap between two of them says less. The counts must be exact: with noise, the small ones,
    which matter here, say little. Of tables that keep features apart, `HushTable`'s for one.
    """

    def __init__(self, scorer: Scorer) -> None:
        family, counts = scorer.plan.family, scorer.row_counts
        logarithms = exact(np.log2(np.maximum(counts, 1)))
        self._sum, self._n_tables = family.summing(logarithms), family.n_tables
        rows = np.add.reduceat(counts, family.offsets[:-1])
        sums = np.add.reduceat(counts * logarithms, family.offsets[:-1])
        #: Mean of the counted rows, in bits.
        self.typical = float((sums / np.maximum(rows, 1)).mean())

    def bits(self, codes: Codes) -> float:
        """Return how much less company a row, the only one of ``codes``, has than is typical."""
        return self.typical - float(self._sum(codes)[0]) / self._n_tables


def company_words(bits: float) -> str:
    """Return how much company a typical row has beside one with ``bits`` less."""
    times = 2.0 ** min(bits, 60.0)
    for below, words in _WORDS:
        if times < below:
            return f"{words} company"
    whole = round(times)
    if whole < 10:
        return f"{_COUNTED[whole - 3]} times as much company"
    # Two digits are all that tables tell.
    digits = 2 - len(str(whole))
    return f"{round(whole, min(digits, 0)):,} times as much company"
