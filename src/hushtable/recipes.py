"""The draws: which hash functions each detector takes, given a schema (and marginals)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.errors import UsageError
from hushtable.hashing import RandomFeature
from hushtable.privacy.denoise import onto_simplex
from hushtable.schema import Schema
from hushtable.scoring import ScoreRule

__all__ = ["MARGINAL_BINS", "RECIPES", "Marginals", "Recipe", "recipe"]

Floats = NDArray[np.float64]

#: Cells of a numeric feature's marginal histogram.
MARGINAL_BINS = 64
#: Share of the cuts that follow the marginal quantiles; the rest is uniform on the range.
QUANTILE_SHARE = 0.25


class Marginals(NamedTuple):
    """One histogram a feature (an EquiWidth family's), and the noise in it.

    ``counts`` (n_cells,) int64, all histograms end to end as ``offsets`` says; ``noise_sd`` is
    the standard deviation of the noise on each, 0 for exact counts.
    """

    counts: NDArray[np.int64]
    offsets: NDArray[np.int64]
    noise_sd: float


@dataclass(frozen=True)
class Recipe:
    """A detector's draw of hash functions and its score."""

    draw: Callable[..., RandomFeature]
    score: ScoreRule
    takes_marginals: bool


def recipe(detector: str) -> Recipe:
    """Return the recipe of a detector by its name in plans."""
    if detector not in RECIPES:
        raise UsageError(f"detector {detector!r} is unknown: needs one of {sorted(RECIPES)}")
    return RECIPES[detector]


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | np.integer)
        or not (low <= value <= high)
    ):
        raise UsageError(f"{name}={value!r}: needs a whole number from {low:,} to {high:,}")
    return int(value)


def draw_lsh_itables(
    schema: Schema,
    rng: np.random.Generator,
    *,
    n_tables: int = 100,
    max_samples: int = 1000,
) -> RandomFeature:
    """Draw as the paper does: uniform features, uniform cuts, the depths of section 3.3.

    For each table, f ~ U(1/sqrt(s), 1 - 1/sqrt(s)) and l ~ U(1 + 0.5 log_b(s), log_b(s)) with
    b = max(2, 1/f) and s = ``max_samples``, rounded to nearest (mean 6.2 at s = 1000). Features
    are drawn with replacement; 2**l cells a table.
    """
    m = _whole("n_tables", n_tables, 1, 10_000)
    # At s = 65,536 a table may have 2**16 cells, as many as one can have.
    s = _whole("max_samples", max_samples, 1, 1 << 16)
    edge = 1.0 / math.sqrt(s)
    f = edge + rng.random(m) * max(0.0, 1.0 - 2.0 * edge)
    longest = np.log(s) / np.log(np.maximum(2.0, 1.0 / f))
    shortest = 1.0 + 0.5 * longest
    # Below s = 16 the interval may run backwards; its ends still bound the depth.
    depth = np.rint(shortest + rng.random(m) * (longest - shortest))
    depth = np.maximum(depth, 1).astype(np.uint8)
    functions = int(depth.sum())
    feature = np.minimum((rng.random(functions) * len(schema)).astype(np.int64), len(schema) - 1)
    return _random_feature(schema, rng, depth, feature, rng.random(functions), 1 << 16)


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
    weights is drawn towards their mean.
    """
    m = _whole("n_tables", n_tables, 1, 10_000)
    low = _whole("min_depth", min_depth, 1, 32)
    high = _whole("max_depth", max_depth, low, 32)
    cells = _whole("n_cells", n_cells, 2, 1 << 16)
    depth = (low + np.floor(rng.random(m) * (high - low + 1))).clip(low, high).astype(np.uint8)
    profile = _Profile(schema, marginals)
    feature, cut = _stratified(profile.weights, int(depth.sum()), rng)
    position = profile.positions(feature, cut)
    return _random_feature(schema, rng, depth, feature, position, cells)


def _stratified(
    weights: Floats, pairs: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], Floats]:
    """Draw (feature, cut) pairs: each feature gets its share to within one, its cuts spread out."""
    bounds = np.cumsum(weights) / weights.sum()
    feature = np.searchsorted(bounds, (np.arange(pairs) + rng.random()) / pairs, side="right")
    feature = np.minimum(feature, np.flatnonzero(weights)[-1])
    share = np.bincount(feature, minlength=len(weights))
    rank = np.arange(pairs) - (np.cumsum(share) - share)[feature]
    cut = (rank + rng.random(pairs)) / share[feature]
    order = np.argsort(rng.random(pairs), kind="stable")
    return feature[order], cut[order]


class _Profile:
    """What the marginals say of each feature: its weight, and where its cuts fall."""

    def __init__(self, schema: Schema, marginals: Marginals | None) -> None:
        self._cumulative: dict[int, Floats] = {}
        self.weights = np.array([0.0 if f.constant else 1.0 for f in schema.features])
        if marginals is not None:
            self._read(schema, marginals)
        if not self.weights.any():
            self.weights[:] = 1.0

    def _read(self, schema: Schema, marginals: Marginals) -> None:
        varying = self.weights > 0.0
        offsets, noise_sd = marginals.offsets, marginals.noise_sd
        # All histograms count all rows: together they tell the number best.
        n_rows = max(1.0, float(marginals.counts.sum()) / len(schema))
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
            z = QUANTILE_SHARE * steps + (1.0 - QUANTILE_SHARE) * edges
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
    share = present / total
    if categorical:
        place = -np.log2(share, out=np.zeros_like(share), where=share > 0)
    else:
        place = np.arange(len(present), dtype=np.float64)
    deviation = place - (share * place).sum()
    variance = max(narrowest, float((share * deviation**2).sum()))
    if variance <= 0.0:
        return 1.0
    return max(1.0, float((share * deviation**4).sum()) / variance**2)


def _random_feature(
    schema: Schema,
    rng: np.random.Generator,
    depth: NDArray[np.uint8],
    feature: NDArray[np.int64],
    position: Floats,
    max_cells: int,
) -> RandomFeature:
    """Fix cuts at their codes, draw the sides of missing values and the sets of categories."""
    # A cut lies between two levels: P(h(x) = h(q)) is 1 - |x - q| / range (equation 1), exactly
    # in levels.
    cut = 2 + np.minimum((position * (kernels.LEVELS - 1)).astype(np.int64), kernels.LEVELS - 2)
    missing = (rng.random(len(feature)) < 0.5).astype(np.uint8)
    subsets = []
    categorical = np.array([f.kind == "categorical" for f in schema.features])[feature]
    cut[categorical] = 0
    for h in np.flatnonzero(categorical):
        n_categories = len(schema.features[feature[h]].categories)
        subsets.append(_subset(n_categories, int(missing[h]), rng))
    return RandomFeature(
        schema=schema,
        depth=depth,
        feature=feature.astype(np.uint16),
        cut=cut.astype(np.uint16),
        missing=missing,
        subsets=np.concatenate(subsets) if subsets else np.empty(0, np.uint8),
        max_cells=max_cells,
    )


def _subset(n_categories: int, missing: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Sides of missing, each category, and unseen; both sides hold a category if there are two."""
    sides = (rng.random(n_categories + 2) < 0.5).astype(np.uint8)
    sides[0] = missing
    known = sides[1:-1]
    if n_categories > 1 and known.min() == known.max():
        # All on one side: move one, drawn at random, over.
        one = min(int(rng.random() * n_categories), n_categories - 1)
        known[one] = 1 - known[one]
    return sides


RECIPES: dict[str, Recipe] = {
    "hushtable": Recipe(draw_hushtable, ScoreRule("smoothed_log2", 0.05), takes_marginals=True),
    "lsh_itables": Recipe(draw_lsh_itables, ScoreRule("log2"), takes_marginals=False),
}
