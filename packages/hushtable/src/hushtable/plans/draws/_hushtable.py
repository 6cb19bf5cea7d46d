"""HushTable's draw: refined random features, from marginals where there are some."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.arguments import whole
from hushtable.data.schema import Schema
from hushtable.plans.draws._common import Floats, random_feature
from hushtable.plans.draws._profile import FIRST, FOR_NOVELTY, REFINED, Marginals, Profile
from hushtable.plans.families import RandomFeature

#: Ranges beyond its range at which a number takes half of what its row can lose; and what is added
#: to it, divided by the rows counted: new rows pass the ends of few rows by more. Measured: see the
#: docs.
MARGIN, MARGIN_OF_FEW_ROWS = 0.03, 10.0


def draw_hushtable(
    schema: Schema,
    rng: np.random.Generator,
    *,
    marginals: Marginals | None = None,
    n_tables: int = 100,
    n_cells: int | None = None,
    min_depth: int | None = None,
    max_depth: int | None = None,
    novelty: bool = False,
    tails: bool = True,
) -> RandomFeature:
    """Draw the refined tables: deep codes folded into few cells, and stratified draws.

    Depths are uniform on ``min_depth..max_depth``, 8 to 24 by default, and there are 256 cells a
    table; for ``novelty``, 24 to 32 and 1,024. All (feature, cut) pairs are drawn at once,
    systematically over the features by weight and stratified over the cuts of each feature,
    then shuffled and dealt to the tables. With ``marginals``, features weigh log(4 + kurtosis),
    and .3 of the cuts follow the quantiles; of a feature of which one cell holds more than a fifth
    of the rows, .15 follow the quantiles and .15 the tails (see `Profile`). For novelty, all
    features weigh alike, as they do without marginals; then cuts are uniform on the range. Half of
    the functions on a categorical feature tell rare categories from frequent ones. Noise
    in the marginals is taken out first, and what it leaves of the weights is drawn towards their
    mean. The margin is larger the fewer rows they counted.

    Without ``tails``, and under noise, weights are log(1 + kurtosis), a quarter of the cuts follow
    the quantiles, and none the tails.
    """
    m = whole("n_tables", n_tables, 1, 10_000)
    defaults = (24, 32, 1024) if novelty else (8, 24, 256)
    low, high, cells = (
        default if given is None else given
        for given, default in zip((min_depth, max_depth, n_cells), defaults, strict=True)
    )
    low = whole("min_depth", low, 1, 32)
    high = whole("max_depth", high, low, 32)
    cells = whole("n_cells", cells, 2, 1 << 16)
    depth = (low + np.floor(rng.random(m) * (high - low + 1))).clip(low, high).astype(np.uint8)
    noisy = marginals is not None and marginals.noise_sd > 0.0
    by = FOR_NOVELTY if novelty else REFINED if tails and not noisy else FIRST
    profile = Profile(schema, marginals, by)
    feature, cut = _stratified(profile.weights, int(depth.sum()), rng)
    position = profile.positions(feature, cut)
    family = random_feature(schema, rng, depth, feature, position, cells, profile.places)
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
