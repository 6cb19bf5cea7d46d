"""Hash functions that several draws make."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.schema import Schema
from hushtable.plans.families import RandomFeature

Floats = NDArray[np.float64]


def random_feature(
    schema: Schema,
    rng: np.random.Generator,
    depth: NDArray[np.uint8],
    feature: NDArray[np.int64],
    position: Floats,
    max_cells: int,
    places: Mapping[int, Floats] | None = None,
) -> RandomFeature:
    """Fix cuts at their codes, draw the sides of missing values and the sets of categories.

    ``places`` has, for categorical features that have them, the places of the categories from 0
    to 1: half of the hash functions on such a feature then cut them as if they were numbers, at
    ``position``, with an unseen category above all.
    """
    # A cut lies between two levels: P(h(x) = h(q)) is 1 - |x - q| / range (equation 1), exactly
    # in levels.
    cut = 2 + np.minimum((position * (kernels.LEVELS - 1)).astype(np.int64), kernels.LEVELS - 2)
    missing = (rng.random(len(feature)) < 0.5).astype(np.uint8)
    subsets = []
    categorical = np.array([f.kind == "categorical" for f in schema.features])[feature]
    cut[categorical] = 0
    for h in np.flatnonzero(categorical):
        where = None if places is None else places.get(int(feature[h]))
        if where is not None and rng.random() < 0.5:
            sides = np.concatenate([[missing[h]], where >= position[h], [1]])
            subsets.append(sides.astype(np.uint8))
            continue
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
