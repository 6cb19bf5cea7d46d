"""The profile of features that a draw reads off marginals: weights, and where cuts fall."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.schema import Feature, Schema
from hushtable.privacy.layout import onto_simplex

Floats = NDArray[np.float64]

#: Cells of a numeric feature's marginal histogram.
MARGINAL_BINS = 64
#: Shares of the cuts that follow the quantiles and the tails of a feature with tails; how far out
#: the tails are followed, in bits.
_QUANTILES, _TAILS, _BITS = 0.15, 0.15, 12.0


@dataclass(frozen=True)
class Refinement:
    """How a draw follows the marginals. Measured: see the docs.

    A feature weighs log(``added`` + kurtosis); all have equal weights if ``added`` is None. The
    share ``quantiles`` of its cuts follows its quantiles. If one cell holds more than ``full`` of
    its values, some of its cuts follow its tails. With ``rarity``, cuts on categories follow how
    rare they are.
    """

    added: float | None
    quantiles: float
    full: float = 1.0
    rarity: bool = True


#: The profile of version 0.1, and of marginals with noise, which drowns tails.
FIRST = Refinement(1.0, 0.25, rarity=False)
REFINED = Refinement(4.0, 0.3, 0.2)
FOR_NOVELTY = Refinement(None, 0.25)


#: Histograms read at once: they fit in the second-level cache.
_AT_ONCE = 512
#: Share of the values in the first or last bin of a histogram below which the next has few.
_NEXT = 0.125
#: Distance between the quartiles of a normal distribution, in standard deviations.
_QUARTILES = 1.349


class Marginals(NamedTuple):
    """One histogram per feature (an EquiWidth family's), and the noise in it.

    ``counts`` (n_cells,) int64 are all histograms end to end, divided by ``offsets``; ``noise_sd``
    is the standard deviation of the noise on each count, 0 for exact counts.
    """

    counts: NDArray[np.int64]
    offsets: NDArray[np.int64]
    noise_sd: float


class Profile:
    """The weight of each feature, where its cuts fall, and the number of rows, from marginals.

    Cuts are uniform in z = q F + (1 - q) u, where u is the place on the range, F the piecewise
    linear distribution function of the marginal, and q the refinement's share. If cuts follow the
    tails, z = .15 F + .70 u + .15 T instead; T is the place in the tails on a scale of bits,
    (12 + log2 max(F, 2^-12)) / 22 for F < 1/2, and symmetric from the other end.

    ``places`` has the places of features' categories on a scale of rarity: their information,
    -log2(n / N), from 0 for the most frequent to 1 for the rarest. ``frequent`` has the number of
    the most frequent category of a feature, and ``lacking`` (d,) the share of rows that lack each
    feature; 0 if unknown.
    """

    def __init__(self, schema: Schema, marginals: Marginals | None, by: Refinement) -> None:
        self._cumulative: dict[int, Floats] = {}
        self._tailed: list[int] = []
        self.places: dict[int, Floats] = {}
        self.frequent: dict[int, int] = {}
        self.lacking = np.zeros(len(schema))
        self._by = by
        self.n_rows = math.inf  # not known
        # What is constant distinguishes no rows; with equal weights, a new category does.
        unseen = "categorical" if by.added is None else ""
        varying = [not feature.constant or feature.kind == unseen for feature in schema.features]
        self.weights = np.array(varying, np.float64)
        if marginals is not None:
            self._read(schema, marginals)
        if not self.weights.any():
            self.weights[:] = 1.0

    def _read(self, schema: Schema, marginals: Marginals) -> None:
        varying = self.weights > 0.0
        counts, offsets, noise_sd = marginals
        # All histograms count all rows: together they give the best estimate of the number.
        n_rows = self.n_rows = max(1.0, float(counts.sum()) / len(schema))
        self.lacking = counts[offsets[1:] - 1] / n_rows
        numeric = np.array([feature.kind == "numeric" for feature in schema.features])
        for j in np.flatnonzero(~numeric).tolist():
            present = counts[offsets[j] : offsets[j + 1] - 1].astype(np.float64)
            if noise_sd > 0.0:
                present = onto_simplex(present, n_rows)
            self._read_categories(j, schema.features[j], present)
        which = np.flatnonzero(numeric)
        bins = int(offsets[which[0] + 1] - offsets[which[0]]) - 1 if len(which) else 0
        for at in range(0, len(which), _AT_ONCE):
            places = which[at : at + _AT_ONCE]
            present = counts[offsets[places, np.newaxis] + np.arange(bins)].astype(np.float64)
            if noise_sd > 0.0:
                present = np.array([onto_simplex(histogram, n_rows) for histogram in present])
            # Rows of one bin are spread over its width, so that noise does not make them a point.
            self._read_numbers(places, present, narrowest=1.0 / 12.0 if noise_sd > 0.0 else 0.0)
        if noise_sd > 0.0 and varying.any() and self._by.added is not None:
            mean = self.weights[varying].mean()
            trust = 1.0 / (1.0 + (0.1 * bins * noise_sd / n_rows) ** 2)
            drawn = mean + trust * (self.weights[varying] - mean)
            self.weights[varying] = np.maximum(1e-6, drawn)

    def _read_categories(self, j: int, feature: Feature, present: Floats) -> None:
        listed = present[:-1]  # without unseen categories
        if listed.any():
            self.frequent[j] = int(listed.argmax())
        if self._by.rarity and len(listed) and np.ptp(listed) > 0.0:
            rarity = -np.log2(np.maximum(listed, 1.0))
            self.places[j] = (rarity - rarity.min()) / max(np.ptp(rarity), 1e-9)
        if self._by.added is not None:
            self.weights[j] *= math.log(self._by.added + _kurtosis_of_categories(present))
            if feature.cyclic:
                # How far they are from an even distribution, in bits (divergence).
                shares = listed[listed > 0.0] / max(listed.sum(), 1.0)
                bits = math.log2(max(len(listed), 1)) + float(np.sum(shares * np.log2(shares)))
                self.weights[j] *= max(_EVEN, min(1.0, bits))

    def _read_numbers(self, which: NDArray[np.int64], present: Floats, narrowest: float) -> None:
        total = present.sum(axis=1, keepdims=True)
        counted = total[:, 0] > 0.0
        steps = np.zeros((len(which), present.shape[1] + 1))
        np.cumsum(present, axis=1, out=steps[:, 1:])
        steps[counted] /= total[counted]
        self._cumulative.update(zip(which[counted].tolist(), steps[counted], strict=True))
        full = present.max(axis=1) > self._by.full * total[:, 0]
        self._tailed += which[counted & full].tolist()
        if self._by.added is not None:
            mass = np.divide(present, total, out=present, where=total > 0.0)
            kurtoses = _kurtoses(mass, narrowest)
            self.weights[which] *= [math.log(self._by.added + kurtosis) for kurtosis in kurtoses]

    def weights_of(self, columns: NDArray[np.bool_]) -> Floats:
        """Return the weights of some columns, or equal weights if these are all constant."""
        weights = np.where(columns, self.weights, 0.0)
        return weights if weights.any() else columns.astype(np.float64)

    @cached_property
    def medians(self) -> Floats:
        """Places of the medians on their features' ranges (d,); the middle if unknown.

        If the bin of the median is the first or last of a histogram, and few values are in the
        next, the median is taken as the end of the range: probably the one value of so many rows.
        """
        medians = np.full(len(self.weights), 0.5)
        if not self._cumulative:
            return medians
        steps = np.array(list(self._cumulative.values()))
        bins, row = steps.shape[1] - 1, np.arange(len(steps))
        at = (steps[:, 1:] >= 0.5).argmax(axis=1)
        below, above = steps[row, at], steps[row, at + 1]
        places = (at + (0.5 - below) / (above - below)) / bins
        shares = np.diff(steps)
        few_above = shares[:, 1] < _NEXT * shares[:, 0]
        few_below = shares[:, -2] < _NEXT * shares[:, -1]
        places[(at == 0) & few_above] = 0.0
        places[(at == bins - 1) & few_below] = 1.0
        medians[list(self._cumulative)] = places
        return medians

    @property
    def spreads(self) -> Floats:
        """Standard deviations from the quartiles, in widths of the ranges (d,); at least a bin."""
        spreads = np.full(len(self.weights), 1.0 / math.sqrt(12.0))
        for j, steps in self._cumulative.items():
            low, high = np.interp([0.25, 0.75], steps, np.linspace(0.0, 1.0, len(steps)))
            least = 1.0 / (len(steps) - 1) / math.sqrt(12.0)
            spreads[j] = max((high - low) / _QUARTILES, least)
        return spreads

    def positions(self, feature: NDArray[np.int64], cut: Floats) -> Floats:
        """Map uniform cuts through the inverse of z to positions u in [0, 1)."""
        position = cut.copy()
        known = np.zeros(len(self.weights), np.bool_)
        known[list(self._cumulative)] = True
        mine = np.flatnonzero(known[feature])
        if len(mine):
            used, row = np.unique(feature[mine], return_inverse=True)
            steps = np.array([self._cumulative[j] for j in used.tolist()])
            edges = np.linspace(0.0, 1.0, steps.shape[1])
            z = self._by.quantiles * steps + (1.0 - self._by.quantiles) * edges
            position[mine] = _interpolated(cut[mine], z, row, edges)
        if self._tailed and (tailed := np.isin(feature, self._tailed)).any():
            position[tailed] = self._tail_positions(feature[tailed], cut[tailed])
        return position

    def _tail_positions(self, feature: NDArray[np.int64], cut: Floats) -> Floats:
        """Find, by bisection, where z of a feature with tails reaches each cut."""
        used, row = np.unique(feature, return_inverse=True)
        steps = np.array([self._cumulative[j] for j in used.tolist()])
        bins = steps.shape[1] - 1
        low, width = np.zeros(len(cut)), 1.0
        while width * kernels.LEVELS > 0.5:
            width /= 2.0
            middle = low + width
            at = np.minimum((middle * bins).astype(np.int64), bins - 1)
            below, above = steps[row, at], steps[row, at + 1]
            F = below + (middle * bins - at) * (above - below)
            bits = _BITS + np.log2(np.maximum(np.minimum(F, 1.0 - F), 2.0**-_BITS))
            place = bits / (2.0 * (_BITS - 1.0))
            tail = np.where(F < 0.5, place, 1.0 - place)
            z = _QUANTILES * F + (1.0 - _QUANTILES - _TAILS) * middle + _TAILS * tail
            low = np.where(z <= cut, middle, low)
        return low


#: In so many of ten tables, a missing value has sides of its own; in all of them if so large a
#: share of the rows lacks the feature that a gap is as usual as a value. Measured: see the docs.
OWN_SIDES, OFTEN = 3, 0.2


def usual_codes(schema: Schema, profile: Profile | None) -> Floats:
    """Return the code (d,) of the usual number of each feature; 0 if it is unknown.

    It is the number that the schema gives, the median of the marginals, or the middle of the range.
    Without a profile, only numbers that the schema gives, or says that there are, are known.
    """
    features = schema.features
    numeric = np.array([f.kind == "numeric" for f in features])
    known = numeric if profile is not None else numeric & _declared(schema)
    level = np.full(len(features), 0.5) if profile is None else profile.medians
    level = level * kernels.LEVELS
    # A column with a relation is a residual, about which the schema's number says nothing.
    residuals = () if schema.relations is None else schema.relations.columns
    for j, f in enumerate(features):
        if isinstance(f.usual, float) and j not in residuals and not f.constant:
            # Like `Encoder`, bit-identically.
            level[j] = (f.usual - f.low) * (kernels.LEVELS / (f.high - f.low))
    return np.where(known, 1 + np.minimum(np.floor(level), kernels.LEVELS - 1), 0.0)


def _declared(schema: Schema) -> NDArray[np.bool_]:
    return np.array([feature.neutral or feature.usual is not None for feature in schema.features])


def own_side(
    schema: Schema,
    profile: Profile | None,
    table: NDArray[np.int64],
    feature: NDArray[np.int64],
    own_sides: int,
) -> NDArray[np.bool_]:
    """Return which hash functions (n_functions,) give a missing value a side of its own.

    The others have the side of the usual value. ``table`` and ``feature`` are those of each
    function, ``own_sides`` is in how many of ten tables. A gap says little by itself: with sides of
    its own in all tables, a row that lacks a value would be rarer than one with a gross error; with
    none, the information in gaps would be lost.
    """
    chosen: NDArray[np.bool_] = own_sides * (table + feature) % 10 < own_sides
    if profile is not None:
        chosen |= (profile.lacking >= OFTEN)[feature]
    return chosen & ~_declared(schema)[feature]


#: Weight of a circle with evenly spread rows, such as days of the month. Visits at night (see
#: ``tests/test_calendar.py``) have an average precision of .77, .81, .76, .26 at .1, .25, .5, 1.
_EVEN = 0.25


def stratified(
    weights: Floats, pairs: int, rng: "np.random.Generator"
) -> tuple[NDArray[np.int64], Floats]:
    """Draw (feature, cut) pairs: each feature by its weight, to within one, with spread cuts."""
    bounds = np.cumsum(weights) / weights.sum()
    feature = np.searchsorted(bounds, (np.arange(pairs) + rng.random()) / pairs, side="right")
    feature = np.minimum(feature, np.flatnonzero(weights)[-1])
    size = np.bincount(feature, minlength=len(weights))
    rank = np.arange(pairs) - (np.cumsum(size) - size)[feature]
    cut = (rank + rng.random(pairs)) / size[feature]
    order = stable_order(rng.random(pairs))
    return feature[order], cut[order]


def stable_order(numbers: Floats) -> NDArray[np.int64]:
    """Return ``np.argsort(numbers, kind="stable")`` (n,), in a tenth of the time if all differ."""
    order = np.argsort(numbers)
    rising = numbers[order]
    if (rising[1:] > rising[:-1]).all():
        return order
    return np.argsort(numbers, kind="stable")


def _interpolated(x: Floats, z: Floats, row: NDArray[np.int64], edges: Floats) -> Floats:
    """Return ``np.interp(x[i], z[row[i]], edges)`` (n,), where each row of z (k, b) rises.

    ``b - 1``, the number of cells of a histogram, is a power of two.
    """
    last, first, flat = len(edges) - 1, row * len(edges), z.ravel()
    step, at = last, first  # a power of two; the edge below, by bisection
    while step := step >> 1:
        at = at + step * (flat[at + step] <= x)
    left, place = flat[at], at - first
    slope = (edges[place + 1] - edges[place]) / (flat[at + 1] - left)
    inside = slope * (x - left) + edges[place]
    above, below = flat[first + last] <= x, flat[first] > x
    inside = np.where(above, edges[last], np.where(below, edges[0], inside))
    return np.asarray(inside, np.float64)


def _kurtoses(mass: Floats, narrowest: float) -> list[float]:
    """Return the fourth standardised moment, at least 1, of numeric histograms (k, b) of shares.

    It is 1 where there are no rows. ``narrowest`` is the smallest variance used, in squares of a
    bin's width.
    """
    place = np.arange(mass.shape[1], dtype=np.float64)
    deviation = place - (mass * place).sum(axis=1, keepdims=True)
    variance = np.maximum(narrowest, (mass * deviation**2).sum(axis=1))
    # Powers are slow, and most cells of a sparse column are empty.
    full = np.flatnonzero(mass)
    fourths = np.zeros(mass.size)
    fourths[full] = mass.ravel()[full] * deviation.ravel()[full] ** 4
    fourth = fourths.reshape(mass.shape).sum(axis=1)
    usable = mass.any(axis=1) & (variance > 0.0)
    moments = zip(fourth.tolist(), variance.tolist(), usable.tolist(), strict=True)
    return [max(1.0, f / v**2) if s else 1.0 for f, v, s in moments]


def _kurtosis_of_categories(present: Floats) -> float:
    """Return the fourth standardised moment, at least 1, of the categories' information content.

    Categories have no places on a line: their places are log2(N / count), so that a feature with
    rare categories has a similar weight to one with far tails.
    """
    total = present.sum()
    if total == 0:
        return 1.0
    mass = present / total
    place = -np.log2(mass, out=np.zeros_like(mass), where=mass > 0)
    deviation = place - (mass * place).sum()
    variance = float((mass * deviation**2).sum())
    if variance <= 0.0:
        return 1.0
    return max(1.0, float((mass * deviation**4).sum()) / variance**2)
