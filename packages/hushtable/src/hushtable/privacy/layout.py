"""The layout of tables under noise: from public numbers alone, before any row is seen.

With each row in every table, the noise on a row's mean count is 1 / sqrt(2 rho), for any number of
tables. The deciding number is therefore T = n sqrt(2 rho), the rows in units of that noise: few
cells per table if T is small, deep tables if it is large. The steps were measured on labelled data
(`docs/explanation/privacy.md`).

The points of ROC-AUC that releases lose, against the same tables without noise, fall as 1/T (the
numbers of columns and rows do not improve the prediction). They were fitted to releases of 42
labelled sets, and compared with those of 30 others. Everything done to noisy histograms here is
post-processing: it costs no privacy.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable.arguments import JsonObject, Stored, always, whole
from hushtable.errors import PrivacyError, UsageError
from hushtable.language import _, numeral, numerals
from hushtable.privacy.accounting import Horizon, epsilon_from_rho, rho_from_epsilon, rounded_up
from hushtable.privacy.budget import MAX_EPSILON, check_epsilon, check_public_delta

Floats = NDArray[np.float64]


def onto_simplex(noisy: Floats, total: float) -> Floats:
    """Return the closest counts of 0 or more that add up to ``total``: max(noisy - tau, 0).

    Projection onto the simplex (Duchi et al., 2008): small cells, which are mostly noise, become 0.
    ``noisy`` (n_cells,) are the counts of one table with noise; ``total``, above 0, is the known or
    estimated number of rows in them.
    """
    falling = np.sort(noisy)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(noisy) + 1)
    tau = excess[np.flatnonzero(falling > excess)[-1]]
    projected: Floats = np.maximum(noisy - tau, 0.0)
    return projected


def span(noisy: Floats, total: float, noise_sd: float) -> tuple[float, float]:
    """Return the part of a range, in shares of it from 0 to 1, that contains the rows.

    Bins whose count exceeds the noise by 5 standard deviations are marked; neighbours are
    joined in pairs until the marked bins hold half of the rows; the span of the marked bins is
    widened by its own width on each side.
    ``noisy`` (n_bins,) has a power of two of bins, ``total`` is the estimate of its rows, and
    ``noise_sd`` the standard deviation of the noise on a bin.

    Raises `PrivacyError` if no bin exceeds the noise.
    """
    while True:
        marked = np.flatnonzero(noisy > 5.0 * noise_sd)
        if noisy[marked].sum() >= total / 2.0 and len(marked):
            break
        if len(noisy) <= 2:
            raise PrivacyError(
                f"about {max(total, 0.0):,.0f} rows do not exceed noise of "
                f"{noise_sd:,.0f} counts a bin: too few to find a range privately; give public "
                "ranges in the schema"
            )
        noisy = noisy.reshape(-1, 2).sum(axis=1)
        noise_sd *= np.sqrt(2.0)
    low, high = marked[0] / len(noisy), (marked[-1] + 1) / len(noisy)
    width = high - low
    return float(max(0.0, low - width)), float(min(1.0, high + width))


#: Points of ROC-AUC (of 100) lost on average, times T. (Two seeds gave these; three give 57, 169
#: and 0.5.)
LOSS = 60.0
#: Points that one labelled data set in ten lost, or more: the first over T, plus the second.
ONE_IN_TEN = 180.0, 0.5
#: T from which accuracy is promised: below it, one set in ten loses more than nine points.
PROMISED = 20.0
#: Upper bounds of both: the gain of the same tables over chance without noise.
_ALL = 30.0, 40.0
#: T below which a site of 100 rows or more gains nothing from the result alone over its own rows.
_OWN_ROWS = 100.0
#: By the kind of site, the gain in ROC-AUC of a home model over the site's own rows alone, if
#: neither noise nor many own rows reduce it, and the deviation of single rounds: for a site like
#: the others; for one with many cases that are rare elsewhere, three in ten of its rows; and for
#: one with a narrow mix of cases. Fitted to 600 random rounds of labelled sets.
GAINS = {"alike": (0.034, 0.070), "many cases": (0.091, 0.116), "case mix": (-0.023, 0.098)}
#: T at which noise halves a gain.
HALF_GAIN = 80.0
#: Own rows that halve a gain, and the numbers between which it fades out.
HALF_ROWS, FADING = 50.0, (200.0, 300.0)
#: Smallest T at which labelled data sets were measured.
_MEASURED = 4.0
#: Acceptable loss in points, for which rows and epsilons are proposed.
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
        """Points that labelled data sets lost on average, against the same tables without noise."""
        return min(LOSS / self.signal, _ALL[0])

    @property
    def one_in_ten(self) -> float:
        """Points that one labelled data set in ten lost, or more."""
        return min(ONE_IN_TEN[0] / self.signal + ONE_IN_TEN[1], _ALL[1])

    @property
    def mostly_noise(self) -> bool:
        """Whether the noise is too large to promise any accuracy."""
        return self.signal < PROMISED

    def gain(self, rows: int, kind: str = "alike") -> tuple[float, float]:
        """Return the gain of a home model over a site's own rows alone, and its deviation.

        Parameters
        ----------
        rows : int
            Number of rows of the site.
        kind : {"alike", "many cases", "case mix"}
            How the site differs from the others: see `GAINS`.

        Returns
        -------
        tuple of float
            Gain in ROC-AUC, and the standard deviation of single rounds around it.
        """
        if kind not in GAINS:
            raise UsageError(f"kind={kind!r}: needs one of {', '.join(GAINS)}")
        most, spread = GAINS[kind]
        left = 1.0 / (1.0 + (HALF_GAIN / self.signal) ** 2)
        if kind != "many cases":
            fading = (FADING[1] - rows) / (FADING[1] - FADING[0])
            left *= min(max(fading, 0.0), 1.0) * HALF_ROWS / (HALF_ROWS + rows)
        return most * left, spread * (left + 0.02)

    @property
    def measured(self) -> bool:
        """Whether labelled data sets were measured under this much noise."""
        return self.signal >= _MEASURED

    @property
    def lacking(self) -> float:
        """Factor by which T must grow for an acceptable loss; 1 if the loss is acceptable."""
        return max(1.0, LOSS / BEARABLE / self.signal)

    def to_dict(self) -> JsonObject:
        """Return the expectation in the form stored in JSON."""
        return {
            "loss": round(self.loss, 2), "one_in_ten": round(self.one_in_ten, 2),
            "mostly_noise": self.mostly_noise,
        }  # fmt: skip


def _points(gain: float, spread: float) -> str:
    if gain < 0.0005:
        return _("almost nothing")
    return _(
        "about %(gain)s points (standard deviation %(spread)s)",
        gain=numerals(f"{100.0 * gain:.1f}"),
        spread=numerals(f"{100.0 * spread:.1f}"),
    )


def about(points: float) -> str:
    """Write points of ROC-AUC with the known precision."""
    if points < 0.05:
        return "less than 0.1"
    return f"about {points:.1f}" if points < 2.95 else f"about {points:.0f}"


#: Cells of a numeric feature's histogram, and share of the budget, in a first round under noise.
PRIVATE_MARGINAL_BINS, MARGINAL_SHARE = 32, 0.10
#: The same in the round before it that narrows loose ranges.
RANGE_BINS, RANGE_SHARE = 128, 0.05
#: With two passes, shares of what those rounds leave: the first pass, and the gate between them.
FIRST_PASS_SHARE, GATE_SHARE = 0.50, 0.05

#: T below which the row applies; depths, number of tables, largest number of cells in a table.
_STEPS = (
    (30.0, (1, 4), 400, 256),
    (100.0, (2, 8), 400, 256),
    (300.0, (4, 12), 200, 256),
    (math.inf, (8, 24), 200, 64),
)
#: T / sqrt(d) from which a first round for the marginals is worthwhile.
_TWO_ROUNDS = 30.0
#: T / sqrt(d) from which the ranges found are better than ones ten times too wide.
_RANGES_FOUND = 300.0
#: T from which a gate and a second pass are worthwhile.
_SECOND_PASS = 2000.0


@dataclass(frozen=True, slots=True)
class Design(Stored):
    """The public numbers for which a private plan is laid out, and what follows from them.

    Attributes
    ----------
    epsilon, delta : float
        Total budget of one person, over all rounds.
    expected_rows : int
        Approximate number of rows of all sites together; a public guess, never counted. If a
        person may have g rows, the number of people is the better guess.
    sites : int
        Releases that will be added up, each with the full noise; 1 if the sites share the noise
        under a secure sum.
    passes : int
        1 or 2.
    horizon : Horizon or None
        The periods in which the rows arrive; the budget is for all of them.

    Examples
    --------
    >>> from hushtable.privacy import Design
    >>> design = Design(epsilon=1.0, delta=1e-6, expected_rows=50_000)
    >>> design.parameters()["n_tables"], round(design.expected_loss, 2)
    (200, 0.01)
    """

    stored_as: ClassVar[str] = "a private plan's design"

    epsilon: float
    delta: float
    expected_rows: int
    sites: int = always(1)
    passes: int = 1
    horizon: Horizon | None = None

    def __post_init__(self) -> None:
        if type(self.passes) is not int or self.passes not in (1, 2):
            raise UsageError(f"passes={self.passes!r}: needs 1 or 2")
        check_epsilon(self.epsilon)
        for name in ("expected_rows", "sites"):
            object.__setattr__(self, name, whole(name, getattr(self, name)))
        check_public_delta(self.delta, self.expected_rows)

    @classmethod
    def given(
        cls,
        epsilon: float | None,
        delta: float,
        expected_rows: int | None,
        sites: int,
        passes: int = 1,
        horizon: Horizon | int | None = None,
    ) -> "Design | None":
        """Return the design that the arguments describe; None for a plan without noise."""
        if epsilon is None:
            _check_exact(expected_rows, passes, horizon)
            return None
        if expected_rows is None:
            raise UsageError(
                "epsilon needs expected_rows, a public guess of the rows of all sites together: "
                "the tables are laid out for it before any row is seen"
            )
        if not isinstance(horizon, Horizon | None):
            horizon = Horizon.of(horizon)
        if horizon is not None and passes != 1:
            raise UsageError(
                f"passes={passes} under a horizon: a second pass would count the rows of all "
                "periods again: draw it with one pass"
            )
        design = cls(epsilon, delta, expected_rows, sites, passes, horizon)
        if passes == 2 and not design.pays_second_pass():
            raise PrivacyError(
                f"a second pass is not worthwhile: {design.expected_rows:,} rows at epsilon "
                f"{design.epsilon:g} leave too much noise to find the rows in dense regions: draw "
                "it with one pass"
            )
        return design

    @property
    def rho(self) -> float:
        """The budget in zCDP, in which the steps were measured.

        If all noise is Gaussian, more may be spent: T is then larger by 5 to 10%.
        """
        return rho_from_epsilon(self.epsilon, self.delta)

    @property
    def signal(self) -> float:
        """T: expected rows over the noise on a row's mean count, at the end of a horizon."""
        return self._signal(None if self.horizon is None else self.horizon.periods)

    def _signal(self, period: int | None) -> float:
        share, releases = 1.0, 1.0
        if self.horizon is not None and period is not None:
            share = period / self.horizon.periods
            releases = self.horizon.variance(period)
        return share * self.expected_rows * math.sqrt(2.0 * self.rho / (self.sites * releases))

    def pays_marginals(self, n_features: int) -> bool:
        """Return whether a first round for the marginals is worthwhile."""
        return self.signal / math.sqrt(n_features) >= _TWO_ROUNDS

    def marginal_bins(self, n_features: int) -> int:
        """Return the cells of a feature's marginal; raise `PrivacyError` if not worthwhile."""
        if not self.pays_marginals(n_features):
            raise PrivacyError(
                f"a first round is not worthwhile: {self.expected_rows:,} rows and {n_features:,} "
                f"features at epsilon {self.epsilon:g} leave mostly noise in the marginals; "
                "draw the plan in one round, without them"
            )
        return PRIVATE_MARGINAL_BINS

    def range_bins(self, n_features: int) -> int:
        """Return the cells of a feature's range; raise `PrivacyError` if none can be found."""
        if self.signal / math.sqrt(n_features) < _RANGES_FOUND:
            raise PrivacyError(
                f"ranges cannot be found privately: {self.expected_rows:,} rows and "
                f"{n_features:,} features at epsilon {self.epsilon:g} do not exceed the "
                "noise: give public ranges in the schema"
            )
        return RANGE_BINS

    def pays_second_pass(self) -> bool:
        """Return whether a gate and a second pass are worthwhile."""
        return self.signal >= _SECOND_PASS

    def parameters(self) -> dict[str, int]:
        """Return how the tables are drawn: their number, depths and cells."""
        (low, high), tables, cells = next(step[1:] for step in _STEPS if self.signal < step[0])
        return {"n_tables": tables, "n_cells": cells, "min_depth": low, "max_depth": high}

    def expectation(self, period: int | None = None) -> Expectation:
        """Return the loss of accuracy to noise, as measured on labelled data sets.

        Parameters
        ----------
        period : int, optional
            A period of the horizon, with equally many rows in each; the last by default.
        """
        if period is None:
            return Expectation(self.signal)
        last = 1 if self.horizon is None else self.horizon.periods
        return Expectation(self._signal(whole("period", period, 1, last)))

    @property
    def expected_loss(self) -> float:
        """Points of ROC-AUC (of 100) that the noise costs on average.

        As measured on labelled data sets, against the same tables without noise; including a
        round for the marginals if `pays_marginals` recommends it. With a horizon, in its last
        period.
        """
        return self.expectation().loss

    def helps(self, signal: float = LOSS / BEARABLE) -> dict[str, float]:
        """Return what would bring T to a value, each on its own.

        Parameters
        ----------
        signal : float, default=30
            T; at 30, the expected loss is two points of ROC-AUC.

        Returns
        -------
        dict of str to float
            ``"rows"`` and ``"epsilon"``, rounded up, as far as they are allowed; empty if T is
            larger already.
        """
        lacking = signal / self.signal
        if lacking <= 1.0:
            return {}
        rows = rounded_up(lacking * self.expected_rows, 2)
        epsilon = rounded_up(epsilon_from_rho(lacking**2 * self.rho, self.delta), 2)
        return {
            **({"rows": int(rows)} if rows * self.delta <= 1.0 else {}),
            **({"epsilon": epsilon} if epsilon <= MAX_EPSILON else {}),
        }

    @property
    def early(self) -> int | None:
        """The period after a fifth of a horizon; None if there are not several periods."""
        if self.horizon is None or self.horizon.periods == 1:
            return None
        return max(1, round(self.horizon.periods / 5))

    def words(self) -> str:
        """Describe the expected accuracy; promise none if the result is mostly noise."""
        expected = self.expectation()
        plan = f"{self.expected_rows:,} rows at epsilon {self.epsilon:g}"
        if self.sites > 1:
            plan += f" with the noises of {self.sites} sites"
        lost = f"{about(expected.loss)} points of ROC-AUC (of 100)"
        tenth = f"one in ten lost more than {expected.one_in_ten:.1g}"
        if expected.one_in_ten >= 10.0:
            tenth = f"one in ten lost more than {expected.one_in_ten:.0f}"
        if expected.mostly_noise:
            words = f"Mostly noise: no accuracy is promised for {plan}."
            if expected.measured:
                words += f" Labelled data sets lost {lost} on average, and {tenth}."
        else:
            words = f"Noise is expected to cost {lost} for {plan}; of labelled data sets, {tenth}."
        return " ".join((words, *self._early_words(), *self._help_words(), *self._peer_words()))

    def _peer_words(self) -> list[str]:
        """Describe the baseline of the loss, and a site's expected gain over its own rows alone."""
        words = ["The loss is relative to the same tables without noise."]
        if self.horizon is not None:  # no home models are made with several periods
            return words
        expected = self.expectation()
        rows = int(HALF_ROWS)
        alike, many = (_points(*expected.gain(rows, kind)) for kind in ("alike", "many cases"))
        words.append(
            _(
                "A site of %(rows)s rows that scores with a home model (its own rows and the "
                "result) is expected to gain %(alike)s over its own rows alone if it is like the "
                "others, and %(many)s if three in ten of its rows are rare elsewhere.",
                rows=numeral(rows),
                alike=alike,
                many=many,
            )
        )
        if self.signal < _OWN_ROWS:
            words.append(_("With the result alone, it will probably do no better than without it."))
        if ways := self._ways(self.helps(HALF_GAIN)):
            words.append(_("Half of the possible gain needs %(ways)s.", ways=ways))
        return words

    @staticmethod
    def _ways(helps: dict[str, float]) -> str:
        ways = []
        for name, number in helps.items():
            if name == "rows":
                n = numerals(f"{number:,.0f}")
                ways.append(_("about %(n)s rows of all sites", n=n))
            else:
                ways.append(_("an epsilon of %(n)s", n=numerals(f"{number:g}")))
        return _(" or ").join(ways)

    def _early_words(self) -> list[str]:
        if self.horizon is None or self.early is None:
            return []
        expected = self.expectation(self.early)
        noise = ", which is mostly noise" if expected.mostly_noise else ""
        return [
            f"This is the loss after all {self.horizon.periods} periods; after {self.early}, "
            f"it is {about(expected.loss)} points{noise}."
        ]

    def _help_words(self) -> list[str]:
        words = []
        if self.expectation().lacking > 1.0:
            ways = self._ways(self.helps()) or "more rows, more sites or a larger epsilon"
            words = [f"A loss of about {BEARABLE:g} points needs {ways}."]
        if self.sites == 1:
            return [
                *words,
                "This applies to a single noise: that of one site, or of sites with masks.",
            ]
        masked = Expectation(self.signal * math.sqrt(self.sites))
        return [
            *words,
            f"With masks, sites share one noise, and the loss is {about(masked.loss)} points.",
        ]


def _check_exact(expected_rows: int | None, passes: int, horizon: object) -> None:
    if expected_rows is not None:
        raise UsageError("expected_rows is used to lay out a private plan: give epsilon with it")
    if passes != 1:
        raise UsageError(
            f"passes={passes!r} divides the budget of a private plan: give epsilon with it "
            "(exact counts need nothing for a second pass: hushtable.counts.rounds)"
        )
    if horizon is not None:
        raise UsageError(
            "a horizon is used to lay out a private plan: give epsilon and expected_rows too "
            "(exact counts of periods can simply be added)"
        )
