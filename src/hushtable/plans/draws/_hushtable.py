"""HushTable's draw: refined random features, from marginals where there are some."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.arguments import whole
from hushtable.data.schema import Schema
from hushtable.plans.draws._common import Floats, random_feature
from hushtable.plans.families import RandomFeature
from hushtable.privacy.denoise import onto_simplex

#: Cells of a numeric feature's marginal histogram.
MARGINAL_BINS = 64
#: Fraction of the cuts that follow the marginal quantiles; the rest is uniform on the range.
QUANTILE_FRACTION = 0.25
#: Ranges beyond its range at which a number takes half of what its row can lose; and what is added
#: to it, divided by the rows counted: new rows pass the ends of few rows by more. Measured: see the
#: docs.
MARGIN, MARGIN_OF_FEW_ROWS = 0.03, 10.0


class Marginals(NamedTuple):
    """One histogram a feature (an EquiWidth family's), and the noise in it.

    ``counts`` (n_cells,) int64, all histograms end to end as ``offsets`` says; ``noise_sd`` is
    the standard deviation of the noise on each, 0 for exact counts.
    """

    counts: NDArray[np.int64]
    offsets: NDArray[np.int64]
    noise_sd: float


def draw_hushtable(
    schema: Schema,
    rng: np.random.Generator,
    *,
    marginals: Marginals | None = None,
    n_tables: int = 100,
    n_cells: int = 256,
    min_depth: int = 8,
    max_depth: int = 24,
) -> RandomFeature:
    """Draw the refined tables: deep codes folded into few cells, and stratified draws.

    Depths are uniform on ``min_depth..max_depth``. All (feature, cut) pairs are drawn at once,
    systematically over the features by weight and stratified over the cuts of each feature,
    then shuffled and dealt to the tables. With ``marginals``, features weigh log(1 + kurtosis)
    and a quarter of the cuts follow the quantiles; without, all weigh alike and cuts are
    uniform on the range. Noise in the marginals is taken out first, and what it leaves of the
    weights is drawn towards their mean. The margin is larger the fewer rows they counted.
    """
    m = whole("n_tables", n_tables, 1, 10_000)
    low = whole("min_depth", min_depth, 1, 32)
    high = whole("max_depth", max_depth, low, 32)
    cells = whole("n_cells", n_cells, 2, 1 << 16)
    depth = (low + np.floor(rng.random(m) * (high - low + 1))).clip(low, high).astype(np.uint8)
    profile = _Profile(schema, marginals)
    feature, cut = _stratified(profile.weights, int(depth.sum()), rng)
    position = profile.positions(feature, cut)
    family = random_feature(schema, rng, depth, feature, position, cells)
    margin = min(1.0, MARGIN + MARGIN_OF_FEW_ROWS / profile.n_rows)
    return replace(family, margin=round(margin * kernels.LEVELS))


def _stratified(
    weights: Floats, pairs: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], Floats]:
    """Draw (feature, cut) pairs: each feature by its weight, to within one, its cuts spread."""
    bounds = np.cumsum(weights) / weights.sum()
    feature = np.searchsorted(bounds, (np.arange(pairs) + rng.random()) / pairs, side="right")
    feature = np.minimum(feature, np.flatnonzero(weights)[-1])
    size = np.bincount(feature, minlength=len(weights))
    rank = np.arange(pairs) - (np.cumsum(size) - size)[feature]
    cut = (rank + rng.random(pairs)) / size[feature]
    order = np.argsort(rng.random(pairs), kind="stable")
    return feature[order], cut[order]


class _Profile:
    """The weight of each feature, where its cuts fall, and the rows counted, by the marginals."""

    def __init__(self, schema: Schema, marginals: Marginals | None) -> None:
        self._cumulative: dict[int, Floats] = {}
        self.n_rows = math.inf  # not known
        self.weights = np.array([0.0 if f.constant else 1.0 for f in schema.features])
        if marginals is not None:
            self._read(schema, marginals)
        if not self.weights.any():
            self.weights[:] = 1.0

    def _read(self, schema: Schema, marginals: Marginals) -> None:
        varying = self.weights > 0.0
        offsets, noise_sd = marginals.offsets, marginals.noise_sd
        # All histograms count all rows: together they estimate the number best.
        n_rows = self.n_rows = max(1.0, float(marginals.counts.sum()) / len(schema))
        bins = 0
        for j, feature in enumerate(schema.features):
            present = marginals.counts[offsets[j] : offsets[j + 1] - 1].astype(np.float64)
            if noise_sd > 0.0:
                present = onto_simplex(present, n_rows)
            numeric = feature.kind == "numeric"
            if numeric:
                bins = len(present)
            if numeric and present.sum() > 0:
                steps = np.concatenate([[0.0], np.cumsum(present)]) / present.sum()
                self._cumulative[j] = steps
            # Rows in one bin spread over its width: noise must not make them a point.
            narrowest = 1.0 / 12.0 if numeric and noise_sd > 0.0 else 0.0
            kurtosis = _kurtosis(present, categorical=not numeric, narrowest=narrowest)
            self.weights[j] *= math.log(1.0 + kurtosis)
        if noise_sd > 0.0 and varying.any():
            mean = self.weights[varying].mean()
            trust = 1.0 / (1.0 + (0.1 * bins * noise_sd / n_rows) ** 2)
            drawn = mean + trust * (self.weights[varying] - mean)
            self.weights[varying] = np.maximum(1e-6, drawn)

    def positions(self, feature: NDArray[np.int64], cut: Floats) -> Floats:
        """Map uniform cuts through the inverse of z = F / 4 + 3 u / 4 to positions u in [0, 1)."""
        position = cut.copy()
        for j, steps in self._cumulative.items():
            mine = feature == j
            edges = np.linspace(0.0, 1.0, len(steps))
            z = QUANTILE_FRACTION * steps + (1.0 - QUANTILE_FRACTION) * edges
            position[mine] = np.interp(cut[mine], z, edges)
        return position


def _kurtosis(present: Floats, *, categorical: bool, narrowest: float = 0.0) -> float:
    """Fourth standardised moment of a histogram, at least 1.

    Categories have no places on a line: they stand at their information content,
    log2(N / count), so that a feature with rare categories weighs like one with far tails.
    ``narrowest`` is the least variance taken, in squares of a bin's width.
    """
    total = present.sum()
    if total == 0:
        return 1.0
    mass = present / total
    if categorical:
        place = -np.log2(mass, out=np.zeros_like(mass), where=mass > 0)
    else:
        place = np.arange(len(present), dtype=np.float64)
    deviation = place - (mass * place).sum()
    variance = max(narrowest, float((mass * deviation**2).sum()))
    if variance <= 0.0:
        return 1.0
    return max(1.0, float((mass * deviation**4).sum()) / variance**2)
