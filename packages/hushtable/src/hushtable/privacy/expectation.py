"""Accuracy that noise costs: as measured on labelled sets, by T alone.

The points of ROC-AUC that releases lose, against the same tables without noise, fall as 1/T (of
the numbers of columns and rows, neither tells more). The numbers below were fitted by
``python -m hushtable_bench expectations``, which holds them to sets kept out of the fit.
"""

from dataclasses import dataclass
from typing import Any

#: Points of ROC-AUC (of 100) lost on average, times T. (Two seeds gave these; three give 57, 169
#: and 0.5.)
LOSS = 60.0
#: Points that one labelled set in ten lost, or more: the first over T, plus the second.
ONE_IN_TEN = 180.0, 0.5
#: T from which accuracy is promised: below, one set in ten loses more than nine points.
PROMISED = 20.0
#: Both at most: what the same tables have above chance without noise, on average and in a tenth.
_ALL = 30.0, 40.0
#: T below which a site that has some rows scores about as well by these alone.
_OWN_ROWS = 100.0
#: T from which labelled sets were measured.
_MEASURED = 4.0
#: Points of loss that may be borne, for which rows and epsilons are proposed.
BEARABLE = 2.0


@dataclass(frozen=True, slots=True)
class Expectation:
    """The cost of a release's noise, in points of ROC-AUC (of 100).

    Attributes
    ----------
    signal : float
        T: expected rows over the noise on a row's mean count.
    """

    signal: float

    @property
    def loss(self) -> float:
        """Points that labelled sets lost on average, against the same tables without noise."""
        return min(LOSS / self.signal, _ALL[0])

    @property
    def one_in_ten(self) -> float:
        """Points that one labelled set in ten lost, or more."""
        return min(ONE_IN_TEN[0] / self.signal + ONE_IN_TEN[1], _ALL[1])

    @property
    def mostly_noise(self) -> bool:
        """Whether no accuracy is promised."""
        return self.signal < PROMISED

    @property
    def own_rows_suffice(self) -> bool:
        """Whether a model of a site's own rows, without noise, is likely to be as accurate."""
        return self.signal < _OWN_ROWS

    @property
    def measured(self) -> bool:
        """Whether labelled sets were measured under as much noise."""
        return self.signal >= _MEASURED

    @property
    def lacking(self) -> float:
        """By what to multiply T, that a bearable loss is expected; 1 where it is."""
        return max(1.0, LOSS / BEARABLE / self.signal)

    def to_dict(self) -> dict[str, Any]:
        """Return the expectation as JSON carries it."""
        return {
            "loss": round(self.loss, 2), "one_in_ten": round(self.one_in_ten, 2),
            "mostly_noise": self.mostly_noise,
        }  # fmt: skip


def about(points: float) -> str:
    """Write points of ROC-AUC as far as they are known."""
    if points < 0.05:
        return "less than 0.1"
    return f"about {points:.1f}" if points < 2.95 else f"about {points:.0f}"
