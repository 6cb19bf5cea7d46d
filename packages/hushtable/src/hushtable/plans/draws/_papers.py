"""The draws of the paper's detectors: LSH iTables, and RS-Hash, whose depths are the same."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.arguments import whole
from hushtable.data.schema import Schema
from hushtable.plans.draws._common import Floats, random_feature
from hushtable.plans.families import RandomFeature, SubspaceGrid

#: Histograms of a CountMin sketch, and cells of each (paper, section 4).
SKETCH_ROWS, SKETCH_CELLS = 4, 1000


def draw_lsh_itables(
    schema: Schema, rng: np.random.Generator, *, n_tables: int = 100, max_samples: int = 1000
) -> RandomFeature:
    """Draw as the paper does: uniform features, uniform cuts, the depths of section 3.3.

    For each table, f ~ U(1/sqrt(s), 1 - 1/sqrt(s)) and l ~ U(1 + 0.5 log_b(s), log_b(s)) with
    b = max(2, 1/f) and s = ``max_samples``, rounded to nearest (mean 6.2 at s = 1000). Features
    are drawn with replacement; 2**l cells a table.
    """
    m = whole("n_tables", n_tables, 1, 10_000)
    # At s = 65,536 a table may have 2**16 cells, as many as one can have.
    s = whole("max_samples", max_samples, 1, 1 << 16)
    _, depth = papers_depths(rng, m, s)
    functions = int(depth.sum())
    feature = np.minimum((rng.random(functions) * len(schema)).astype(np.int64), len(schema) - 1)
    return random_feature(schema, rng, depth, feature, rng.random(functions), 1 << 16)


def papers_depths(
    rng: np.random.Generator, tables: int, s: int
) -> tuple[Floats, NDArray[np.uint8]]:
    """Draw f ~ U(1/sqrt(s), 1 - 1/sqrt(s)) and l ~ U(1 + 0.5 log_b(s), log_b(s)), b = max(2, 1/f).

    l is rounded to nearest, and at least 1.
    """
    edge = 1.0 / math.sqrt(s)
    f = edge + rng.random(tables) * max(0.0, 1.0 - 2.0 * edge)
    longest = np.log(s) / np.log(np.maximum(2.0, 1.0 / f))
    shortest = 1.0 + 0.5 * longest
    # Below s = 16 the interval may run backwards; its ends still bound the depth.
    depth = np.rint(shortest + rng.random(tables) * (longest - shortest))
    return f, np.maximum(depth, 1).astype(np.uint8)


def draw_rs_hash(
    schema: Schema, rng: np.random.Generator, *, n_tables: int = 100, max_samples: int = 1000
) -> SubspaceGrid:
    """Draw as RS-Hash does: a grid of side f, shifted by U(0, f), on l distinct features.

    Counted in CountMin sketches of 4 x 1000 cells (paper, section 4). Constant features are
    left out while others remain; a table has at most as many features as the data.
    """
    m = whole("n_tables", n_tables, 1, 10_000)
    s = whole("max_samples", max_samples, 1, 1 << 16)
    f, depth = papers_depths(rng, m, s)
    usable = np.array([j for j, x in enumerate(schema.features) if not x.constant], np.int64)
    if not len(usable):
        usable = np.arange(len(schema))
    depth = np.minimum(depth, min(len(usable), 255)).astype(np.uint8)
    feature = np.concatenate(
        [usable[np.argsort(rng.random(len(usable)), kind="stable")[:length]] for length in depth]
    )
    functions = len(feature)
    width = np.maximum(2, np.rint(np.repeat(f, depth) * kernels.LEVELS)).astype(np.uint32)
    shift = (rng.random(functions) * width).astype(np.uint32)
    return SubspaceGrid(
        schema=schema,
        depth=depth,
        feature=feature.astype(np.uint16),
        width=width,
        shift=np.minimum(shift, width - 1),
        **count_min(rng, functions, m),
    )


def count_min(rng: np.random.Generator, functions: int, tables: int) -> dict[str, Any]:
    """Draw what hashes places into CountMin sketches."""
    return {
        "multiplier": 2 * (rng.random(functions) * 2.0**31).astype(np.uint32) + 1,
        "seed": (rng.random(SKETCH_ROWS * tables) * 2.0**32).astype(np.uint32),
        "sketch_rows": SKETCH_ROWS,
        "cells": SKETCH_CELLS,
    }
