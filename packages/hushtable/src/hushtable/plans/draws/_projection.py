"""The draws of random projections: ACE, and RS-Hash over random rotations."""

import math

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.arguments import whole
from hushtable.data.schema import Schema
from hushtable.plans.draws._common import Floats
from hushtable.plans.draws._papers import count_min, papers_depths
from hushtable.plans.families import RandomProjection, SimHash, n_dimensions


def draw_rotated_rs_hash(
    schema: Schema, rng: np.random.Generator, *, n_tables: int = 100, max_samples: int = 1000
) -> RandomProjection:
    """Draw RS-Hash's grids over random rotations: p-stable LSH of widths f R (section 3.1).

    A row stands in the unit cube, each feature on its range; normal weights a rotate it.
    R = sqrt(sum_j a_j^2) takes the place of the projected rows' range, which is not known
    before rows are: it is the range itself for one feature, and 3.5 standard deviations of the
    sum of many. Everything else is as in `draw_rs_hash`.
    """
    m = whole("n_tables", n_tables, 1, 10_000)
    s = whole("max_samples", max_samples, 1, 1 << 16)
    f, depth = papers_depths(rng, m, s)
    functions = int(depth.sum())
    varying = np.array([0.0 if feature.constant else 1.0 for feature in schema.features])
    normal = _normal(rng, functions, schema)
    weight, _ = _whole_weights(normal * np.repeat(varying, n_dimensions(schema)))
    # A coordinate's extent: a range of levels, or an edge of the cube of categories.
    edges = [kernels.LEVELS if f.kind == "numeric" else kernels.CORNER for f in schema.features]
    extent = 2.0 * np.repeat(np.array(edges), n_dimensions(schema))
    projected = np.sqrt(((weight * extent) ** 2).sum(axis=1))
    width = np.maximum(1, np.rint(np.repeat(f, depth) * projected)).astype(np.int64)
    reach = np.abs(weight.astype(np.int64)).sum(axis=1) * kernels.LEVELS
    shift = (rng.random(functions) * width).astype(np.int64)
    return RandomProjection(
        schema=schema,
        depth=depth,
        weight=weight,
        salt=_salt(rng, schema),
        shift=shift - (-reach // width) * width,
        width=width,
        **count_min(rng, functions, m),
    )


def draw_ace(
    schema: Schema, rng: np.random.Generator, *, n_tables: int = 100, n_bits: int = 15
) -> SimHash:
    """Draw as ACE does: signs of products with normal vectors, 2**n_bits cells a table.

    Rows are taken as they are, in their own units and from their own origin. Categories, which
    have neither, stand 1 apart in the mean.
    """
    m = whole("n_tables", n_tables, 1, 10_000)
    bits = whole("n_bits", n_bits, 1, 16)
    dimensions = n_dimensions(schema)
    numeric = np.array([feature.kind == "numeric" for feature in schema.features])
    low = np.array([feature.low for feature in schema.features])
    extent = np.where(numeric, np.array([f.high for f in schema.features]) - low, 1.0)
    # In units of the widest feature: no product of a weight and a range overflows then.
    widest = extent.max() or 1.0
    with np.errstate(over="ignore"):
        middle = np.where(numeric, low / widest + 0.5 * extent / widest, 0.0).clip(-1e300, 1e300)
    normal = _normal(rng, m * bits, schema)
    # Two units of a row's vector are one level of a feature's range.
    per_unit = np.repeat(0.5 * extent / widest / kernels.LEVELS, dimensions)
    weight, scale = _whole_weights(normal * per_unit)
    # Not with @: BLAS adds in an order that depends on the processor.
    origin = -scale * (normal * np.repeat(middle, dimensions)).sum(axis=1)
    return SimHash(
        schema=schema,
        depth=np.full(m, bits, np.uint8),
        weight=weight,
        salt=_salt(rng, schema),
        cut=np.ceil(origin.clip(-(2.0**53), 2.0**53)).astype(np.int64),
    )


def _normal(rng: np.random.Generator, functions: int, schema: Schema) -> Floats:
    """Draw standard normal vectors (functions, n_dimensions), by inversion."""
    from scipy.special import ndtri  # takes a while to import

    uniform = rng.random((functions, int(n_dimensions(schema).sum())))
    normal: Floats = ndtri(uniform.clip(2.0**-54, 1.0 - 2.0**-53))
    return normal


def _whole_weights(weights: Floats) -> tuple[NDArray[np.int32], Floats]:
    """Round each function's weights to whole numbers of as many bits as products leave room for.

    Returns them, and how many of each function's units make one.
    """
    bits = min(30, 34 - math.ceil(math.log2(weights.shape[1])))
    largest = np.abs(weights).max(axis=1)
    scale = 2.0**bits / np.where(largest > 0.0, largest, 1.0)
    return np.rint(weights * scale[:, np.newaxis]).astype(np.int32), scale


def _salt(rng: np.random.Generator, schema: Schema) -> NDArray[np.uint32]:
    """Draw what is mixed into each feature's categories."""
    return (rng.random(len(schema)) * 2.0**32).astype(np.uint32)
