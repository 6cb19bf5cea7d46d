"""Plausible ranges: quantiles of a number's values, read off histograms with noise.

Everything here is post-processing of noisy counts under `Plan.marginals`, and costs no privacy. A
quantile is searched from its own end of the range: the sum of the first k cells has the noise of k
cells and no other. Since a distribution function never falls, these sums are fitted by isotonic
regression, each weighted by its variance, and between the edges of cells by a monotone cubic
(Fritsch and Carlson). If one cell holds more than the share beyond the quantile, positions inside
that cell are unknown, and its outer edge is used: the position is then off by at most that share,
plus the noise.

A round for ranges is about the marginals like others, but gets the whole budget.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Counts, Noised
from hushtable.data.layout_file import in_toml
from hushtable.data.schema import Feature
from hushtable.errors import PrivacyError, UsageError
from hushtable.language import numerals
from hushtable.plans.draws import Purpose
from hushtable.plans.families import EquiWidth
from hushtable.privacy.accounting import rounded_up
from hushtable.privacy.layout import Design
from hushtable_federation.language import _
from hushtable_federation.refusals import raise_first
from hushtable_federation.round import Round

Floats = NDArray[np.float64]

#: Quantiles of a plausible range.
QUANTILES = (0.005, 0.995)
#: Standard deviations of noise within which a position is stated: 95 of 100 are closer.
SURE = 2.0
#: Cells of a number's histogram, the fewest first; the share of the expected rows that has to be
#: enough for a range, so that a column for which half of the rows have values gets a range.
_CELLS, _COLUMN = (32, 64, 128, 256), 0.5
#: Parts of a cell to which a threshold is rounded.
_PARTS = 50.0
#: Percentage of values that a site may have beyond a threshold: the DataQualityDashboard's default.
TOLERATED = 5.0
#: The largest share of values below a quantile that still defines a range.
_LARGEST_TAIL = 0.25


def values_needed(noise_sd: float, cells: int, tail: float) -> int:
    """Return how many values a range needs so that the noise on a tail is at most half of it.

    It follows from public numbers alone: from the noise of all cells together, which is the largest
    noise that any sum of them can have.

    Parameters
    ----------
    noise_sd : float
        Standard deviation of the noise on a cell of the sum.
    cells : int
        Number of cells of a number's range.
    tail : float
        Share of the values beyond the quantile, such as .005.
    """
    return math.ceil(SURE * noise_sd * math.sqrt(cells) / tail)


def cells_for(design: Design, n_features: int) -> int:
    """Return the number of cells for ranges, given how many rows are expected."""
    noise_sd = math.sqrt(n_features * design.sites / (2.0 * design.rho))
    enough = _COLUMN * design.expected_rows
    fit = [n for n in _CELLS if values_needed(noise_sd, n, QUANTILES[0]) <= enough]
    return max(fit, default=_CELLS[0])


def check_quantiles(quantiles: Sequence[float]) -> tuple[float, float]:
    """Return a low and a high quantile; raise `UsageError` unless they leave both tails."""
    if len(quantiles) != 2 or not 0.0 < quantiles[0] < 0.5 < quantiles[1] < 1.0:
        stated = ", ".join(f"{quantile:g}" for quantile in quantiles)
        raise UsageError(
            f"quantiles {stated}: needs one above 0 and below 0.5, and one above 0.5 and below 1, "
            "such as 0.005,0.995"
        )
    return float(quantiles[0]), float(quantiles[1])


@dataclass(frozen=True)
class RangeLimit:
    """One end of a plausible range.

    Attributes
    ----------
    value : float
        In the feature's unit, rounded away from the values.
    quantile : float
        Share of the values that should be below it.
    off : float
        Possible difference of that share because of noise: two standard deviations.
    interval : tuple of float
        The same in the feature's unit: whole cells, so that it holds for any values inside them.
    at_end : bool
        Whether this is the end of the public range, because its last cell holds so many values
        that a closer limit is impossible.
    """

    value: float
    quantile: float
    off: float
    interval: tuple[float, float]
    at_end: bool

    def words(self, unit: str) -> str:
        """Return the limit and its precision, for a note."""
        low, high = (f"{limit:.10g}" for limit in self.interval)
        words = f"quantile {self.quantile:g}, +/- {self.off:.2g} by noise: {low} to {high} {unit}"
        return f"{words.strip()}; end of the public range" if self.at_end else words.strip()


@dataclass(frozen=True)
class PlausibleRange:
    """The plausible range of a number, or the reason why there is none.

    Attributes
    ----------
    feature : Feature
        With its public range and unit.
    values : int
        Approximate number of rows with a value, according to the noisy counts.
    needed : int
        Number of values that a range needs.
    limits : tuple of RangeLimit
        The low and the high limit; empty if there are too few values.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import Feature, Plan, Schema, Sketch
    >>> from hushtable_federation.ranges import histograms
    >>> schema = Schema([Feature.numeric("pulse", low=0, high=350, unit="/min")])
    >>> plan = Plan.marginals(schema, epsilon=1.0, expected_rows=50_000, cells=128)
    >>> X = np.random.default_rng(0).normal(75, 9, (50_000, 1))
    >>> release = Sketch.from_data(plan, X).release(1.0, share=1.0)
    >>> [found] = [one.range() for one in histograms(release)]
    >>> bool(50 < found.limits[0].value < 53), bool(97 < found.limits[1].value < 100)
    (True, True)
    """

    feature: Feature
    values: int
    needed: int
    limits: tuple[RangeLimit, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the range in the form stored in JSON."""
        return {
            "name": self.feature.name, "unit": self.feature.unit, "values": self.values,
            "needed": self.needed, "limits": [asdict(limit) for limit in self.limits],
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class ValueHistogram:
    """The values of a number over its public range, as counts with noise.

    Attributes
    ----------
    feature : Feature
        With its range and unit.
    counts : ndarray of shape (n,), float64
        Numbers of values in equal parts of the range; those beyond it count in the outer parts.
    values : float
        Approximate number of rows with a value.
    noise_sd : float
        Standard deviation of the noise on a count.
    """

    feature: Feature
    counts: Floats
    values: float
    noise_sd: float

    @property
    def width(self) -> float:
        """Width of a cell, in the feature's unit."""
        return (self.feature.high - self.feature.low) / len(self.counts)

    def merged(self, others: "Sequence[ValueHistogram]", name: str) -> "ValueHistogram":
        """Return the histogram of the values of several histograms without common values.

        Parameters
        ----------
        others : sequence of ValueHistogram
            Histograms over the same range, such as those of men beside one of women.
        name : str
            Name of the feature of all of them.
        """
        parts = self, *others
        counts = reduce(np.add, (part.counts for part in parts))
        noise_sd = math.hypot(*(part.noise_sd for part in parts))
        values = sum(part.values for part in parts)
        return ValueHistogram(replace(self.feature, name=name), counts, values, noise_sd)

    def range(self, quantiles: Sequence[float] = QUANTILES) -> PlausibleRange:
        """Return the plausible range between two quantiles."""
        low, high = check_quantiles(quantiles)
        tails = low, round(1.0 - high, 12)
        needed = values_needed(self.noise_sd, len(self.counts), min(tails))
        limits: tuple[RangeLimit, ...] = ()
        if self.values >= needed:
            limits = (self._limit(tails[0], +1), self._limit(tails[1], -1))
        return PlausibleRange(self.feature, max(0, round(self.values)), needed, limits)

    def mean(self) -> tuple[float, float] | None:
        """Return the mean, and how far off it can be; None if most of the counts are noise.

        Values beyond the range count as in its outer parts. The second number is half of the width
        of a part, plus two standard deviations of what noise adds.
        """
        if not self._is_clear:
            return None
        places = self.feature.low + self.width * (np.arange(len(self.counts)) + 0.5)
        total = float(self.counts.sum())
        mean = float(self.counts @ places) / total
        noise = self.noise_sd * float(np.linalg.norm(places - mean)) / total
        return mean, self.width / 2.0 + SURE * noise

    def median(self) -> RangeLimit | None:
        """Return the median, with its interval; None if most of the counts are noise."""
        return self._limit(0.5, +1) if self._is_clear else None

    @property
    def _is_clear(self) -> bool:
        noise = SURE * self.noise_sd * math.sqrt(len(self.counts))
        return noise <= 0.1 * min(self.values, float(self.counts.sum()))

    def _limit(self, tail: float, inwards: int) -> RangeLimit:
        sums = _Sums(self.counts[::inwards] / self.values)
        n_summed = sums.cell(tail) + 1
        off = SURE * self.noise_sd * math.sqrt(n_summed) / self.values
        within = sums.cell(tail - off), sums.cell(tail + off) + 1
        place = sums.place(tail)
        low, high = sorted(self._value(float(position), inwards) for position in within)
        return RangeLimit(
            self._rounded(self._value(place, inwards), inwards),
            tail if inwards > 0 else round(1.0 - tail, 12),
            off,
            (self._rounded(low, +1), self._rounded(high, -1)),
            place == 0.0,
        )

    def _value(self, place: float, inwards: int) -> float:
        feature = self.feature
        return (feature.low if inwards > 0 else feature.high) + inwards * place * self.width

    def _rounded(self, value: float, inwards: int) -> float:
        decimals = max(0, math.ceil(-math.log10(self.width / _PARTS)))
        scale = 10.0**decimals
        # A value such as 3.1 stays unchanged, although 3.1 * 10 is not a whole number.
        scaled = round(value * scale, 6)
        away = math.floor(scaled) if inwards > 0 else math.ceil(scaled)
        return float(min(max(away / scale, self.feature.low), self.feature.high))


class _Sums:
    def __init__(self, shares: Floats) -> None:
        from scipy.optimize import isotonic_regression

        sums = np.cumsum(shares)
        # The sum of k cells has k times the variance of one.
        fitted = isotonic_regression(sums, weights=1.0 / np.arange(1, len(sums) + 1)).x
        self._steps = np.concatenate([[0.0], np.clip(fitted, 0.0, 1.0)])

    def cell(self, share: float) -> int:
        cell = int(np.searchsorted(self._steps, max(share, 0.0), side="right")) - 1
        return min(cell, len(self._steps) - 2)

    def place(self, share: float) -> float:
        # In a cell that holds more than that share, the position is the outer edge.
        cell = self.cell(share)
        before, after = self._steps[cell : cell + 2]
        if after - before > share or after <= share:
            return float(cell)
        from scipy.interpolate import PchipInterpolator
        from scipy.optimize import brentq

        curve = PchipInterpolator(np.arange(len(self._steps)), self._steps)
        return float(brentq(lambda x: float(curve(x)) - share, cell, cell + 1))


def category_counts(counts: Counts) -> dict[str, dict[str, int]]:
    """Return the noisy number of rows with each category, by column; not those of gaps."""
    plan, by_feature = counts.plan, dict[str, dict[str, int]]()
    for j, feature in enumerate(plan.schema.features):
        if feature.kind == "categorical":
            start = plan.family.offsets[j]
            cells = counts.counts[start : start + len(feature.categories)].tolist()
            by_feature[feature.name] = {
                name: max(0, round(n)) for name, n in zip(feature.categories, cells, strict=True)
            }
    return by_feature


def histograms(counts: Counts) -> list[ValueHistogram]:
    """Return the histograms of all numbers, from counts with noise under `Plan.marginals`.

    Raises `UsageError` if the counts are of any other kind.
    """
    plan, noise_sd = counts.plan, counts.noise_sd
    faults = {
        f"these counts are of a {plan.detector!r} plan, but ranges are read off histograms of "
        "columns: give the result of a round about the marginals (hushtable round open --ranges)": (
            plan.purpose is not Purpose.MARGINALS
        ),
        "these histograms count residuals of relations, not values": (
            plan.schema.relations is not None
        ),
        "these counts have no noise: release them first (hushtable release), or run a round": (
            not noise_sd > 0.0
        ),
    }
    raise_first(UsageError, faults)
    offsets, drawn = plan.family.offsets, []
    # All histograms count all rows: together they give the best estimate of the number.
    n_rows = float(counts.counts.sum()) / len(plan.schema)
    for j, feature in enumerate(plan.schema.features):
        if feature.kind != "numeric" or feature.constant:
            continue
        *cells, missing = counts.counts[offsets[j] : offsets[j + 1]].astype(np.float64).tolist()
        drawn.append(ValueHistogram(feature, np.array(cells), n_rows - missing, noise_sd))
    return drawn


def is_for_ranges(round_: Round) -> bool:
    """Return whether a round is about histograms alone, which then get the whole budget."""
    return round_.plan.purpose is Purpose.MARGINALS and round_.terms.share == 1.0


def range_words(round_: Round) -> list[str]:
    """Return how many values a range needs under a round's noise, from its public terms alone.

    Empty for rounds that are not for ranges.
    """
    plan = round_.plan
    if not is_for_ranges(round_) or not isinstance(plan.family, EquiWidth):
        return []
    cells, noise_sd = plan.family.bins, round_.noise_sd
    needed = values_needed(noise_sd, cells, QUANTILES[0])
    words = _(
        "The round is for plausible ranges: a range from the quantile %(low)s to %(high)s needs "
        "about %(n)s rows with a value in the column, at all sites together; columns with fewer "
        "rows get no range.",
        low=numerals(f"{QUANTILES[0]:g}"), high=numerals(f"{QUANTILES[1]:g}"),
        n=numerals(f"{needed:,}"),
    )  # fmt: skip
    expected = plan.expected_rows
    if expected is None or expected >= needed:
        return [words]
    tail = rounded_up(_reached(noise_sd, cells, expected), 2)
    fewer = _(
        "The %(n)s expected rows are fewer: they are enough for the quantiles %(low)s and %(high)s "
        "(--quantiles).",
        n=numerals(f"{expected:,}"), low=numerals(f"{tail:g}"),
        high=numerals(f"{1.0 - tail:.10g}"),
    )  # fmt: skip
    return [f"{words} {fewer}"]


def check_expected(round_: Round) -> None:
    """Raise `PrivacyError` if the expected rows are too few for any range."""
    plan = round_.plan
    if plan.expected_rows is None or not is_for_ranges(round_):
        return
    assert isinstance(plan.family, EquiWidth)
    if _reached(round_.noise_sd, plan.family.bins, plan.expected_rows) > _LARGEST_TAIL:
        needed = values_needed(round_.noise_sd, plan.family.bins, QUANTILES[0])
        raise PrivacyError(
            f"{plan.expected_rows:,} rows are expected, but at this epsilon a plausible range "
            f"needs {needed:,} rows with a value: no round was opened. Use fewer columns, more "
            "sites, or a larger epsilon"
        )


def _reached(noise_sd: float, cells: int, rows: int) -> float:
    return SURE * noise_sd * float(np.sqrt(cells)) / rows


def schema_text(result: Noised, ranges: Sequence[PlausibleRange]) -> str:
    """Return a schema with these ranges as TOML, which states what they cost.

    Columns without a new range keep the public one.
    """
    by_name = {range_.feature.name: range_ for range_ in ranges}
    sites = len(result.ledger.shares)
    lines = [
        f"# Plausible ranges from {sites} sites, from a private release: a round under this",
        "# schema includes the cost of that ([[paid]]) in its epsilon.",
    ]
    for feature in result.plan.schema.features:
        range_ = by_name.get(feature.name)
        if range_ is not None and range_.limits and range_.limits[0].value < range_.limits[1].value:
            low, high = range_.limits
            lines += ["", *(f"# {limit.words(feature.unit)}" for limit in range_.limits)]
            feature = replace(feature, low=low.value, high=high.value)
        else:
            lines += ["", "# unchanged: no range was found for this column"]
        lines += ["[[feature]]", *_entries(feature.to_dict())]
    for spent in result.spent():
        lines += ["", "[[paid]]", *_entries(spent.to_dict())]
    return "\n".join(lines) + "\n"


def _entries(record: dict[str, Any]) -> list[str]:
    return [f"{key} = {_toml(value)}" for key, value in record.items() if value is not None]


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{key} = {_toml(one)}" for key, one in value.items() if one is not None)
        return f"{{ {inner} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return in_toml(value)
