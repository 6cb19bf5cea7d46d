"""The paper's other hash families, and how their functions are drawn.

Random projections in whole numbers with exact products, signs of them, and grids on random
subspaces. The entry point ``hushtable.draws`` of this package names this module: importing it
registers them, and the core does so when it meets an unknown name.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable.arguments import whole
from hushtable.data.encoding import Codes
from hushtable.data.schema import Schema
from hushtable.errors import PlanError
from hushtable.kernels import LEVELS
from hushtable.plans.draws import Draw, register
from hushtable.plans.families import MAX_CELLS, drawn, whole_number
from hushtable.plans.families.family import Concatenated, Floats
from hushtable.plans.families.random_feature import papers_depths
from hushtable.plans.score_rule import ScoreRule
from hushtable_bench.systems import kernels
from hushtable_bench.systems.kernels import CORNER, CORNER_BITS

#: Whole numbers below this, and their sums, are exact in float64.
EXACT = 1 << 53
#: Most hash functions that one table of SimHash may concatenate: a cell's number has 16 bits.
MAX_BITS = 16


def n_dimensions(schema: Schema) -> NDArray[np.int64]:
    """Return how many dimensions of a row's vector each feature has: 1, or a corner's bits."""
    kinds = [CORNER_BITS if f.kind == "categorical" else 1 for f in schema.features]
    return np.array(kinds, np.int64)


@dataclass(frozen=True, eq=False)
class CountMin(Concatenated):
    """Tables whose vectors of places are counted in CountMin sketches: the smallest cell counts.

    A row's key in a table adds up each function's place times its odd ``multiplier``. ``seed``
    (R per table) mixes the key into one cell in each of R = ``sketch_rows`` histograms of ``cells``
    cells (Cormode and Muthukrishnan, 2005). The smallest of a row's R values is its table's value.
    """

    _kernels: ClassVar[Any] = kernels

    multiplier: NDArray[np.uint32] = drawn(np.uint32, "n_functions")
    seed: NDArray[np.uint32] = drawn(np.uint32, "n_histograms")
    sketch_rows: int = whole_number(1, 16)
    cells: int = whole_number(2, MAX_CELLS)

    @property
    def n_histograms(self) -> int:
        return self.n_tables * self.sketch_rows

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        return np.arange(self.n_histograms + 1, dtype=np.int64) * self.cells

    def _check(self) -> None:
        super()._check()
        if not (self.multiplier & 1).all():
            raise PlanError("hash functions: a multiplier is even: needs an odd number")

    @property
    def _sketches(self) -> tuple[Any, ...]:
        return self.multiplier, self.seed.reshape(-1, self.sketch_rows), self.cells


@dataclass(frozen=True, eq=False)
class Projection(Concatenated):
    """Hash functions of the product of weights and a row's vector.

    A number's coordinate is twice the distance of its level from the middle of its feature's range,
    in levels; a missing value's is 0. A category's coordinates are 16 numbers, each plus or minus
    `hushtable_bench.systems.kernels.CORNER`: the bits of MurmurHash3's fmix32 of its code and the
    feature's ``salt``, combined by exclusive or. All are whole numbers, as the weights are, and
    every product is below 2**53, so it is exact in float64 in any order of addition.
    """

    _kernels: ClassVar[Any] = kernels

    weight: NDArray[np.int32] = drawn(np.int32, "n_functions", "n_dimensions")
    salt: NDArray[np.uint32] = drawn(np.uint32, "n_features")

    def _check(self) -> None:
        super()._check()
        if int(self._reach.max()) >= EXACT // 2:
            raise PlanError("hash functions: the weights are too large for exact products")

    @property
    def n_dimensions(self) -> int:
        """Number of dimensions of a row's vector."""
        return int(n_dimensions(self.schema).sum())

    @cached_property
    def _reach(self) -> NDArray[np.int64]:
        """Bound on the absolute value of every function's product."""
        reach: NDArray[np.int64] = np.abs(self.weight.astype(np.int64)).sum(axis=1)
        return reach * LEVELS

    @cached_property
    def _vectors(self) -> tuple[Any, ...]:
        """How kernels make vectors of rows, and the weights by which they multiply them."""
        first = np.concatenate([[0], np.cumsum(n_dimensions(self.schema))])
        categorical = np.array([f.kind == "categorical" for f in self.schema.features])
        return (first, categorical, self.salt), self.weight.astype(np.float64)


@dataclass(frozen=True, eq=False)
class SimHash(Projection):
    """Signs of random projections (Charikar, 2002): the cosine similarity's hash functions.

    Hash function h tests whether a row's product with ``weight[h]`` is at or above ``cut[h]``,
    which represents the origin. Table t concatenates the next ``depth[t]`` functions into a
    code of l bits, which is its cell.
    """

    name: ClassVar[str] = "SimHash"
    _loops: ClassVar[str] = "sim_hash"

    depth: NDArray[np.uint8] = drawn(np.uint8, "n_tables", low=1, below=MAX_BITS + 1)
    cut: NDArray[np.int64] = drawn(np.int64, "n_functions", low=-EXACT, below=EXACT + 1)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(1 << self.depth.astype(np.int64))])

    @cached_property
    def _functions(self) -> tuple[Any, ...]:
        return self._first, self.cut.astype(np.float64), self.offsets

    def _arguments(self, codes: Codes) -> tuple[Any, ...]:
        return *self._vectors, self._functions


@dataclass(frozen=True, eq=False)
class RandomProjection(CountMin, Projection):
    """Random-projection LSH (Datar et al., 2004; paper, Definition 2): h(x) = (a.x + b) // w.

    Hash function h's place is (a row's product with ``weight[h]`` + ``shift[h]``) //
    ``width[h]``. These are the paper's a in whole numbers; its b, plus as many whole widths as are
    needed to keep sums from being negative; and its w. Normal weights make it sensitive to the l2
    distance, Cauchy weights to l1. Table t concatenates the next ``depth[t]`` functions (l in the
    paper); the vector of places is counted as described in `CountMin`.
    """

    name: ClassVar[str] = "RandomProjection"
    _loops: ClassVar[str] = "random_projection"

    shift: NDArray[np.int64] = drawn(np.int64, "n_functions", low=0, below=EXACT // 2)
    width: NDArray[np.int64] = drawn(np.int64, "n_functions", low=1)

    @cached_property
    def _functions(self) -> tuple[Any, ...]:
        grid = self._first, self.shift.astype(np.float64), self.width.astype(np.float64)
        return *grid, *self._sketches

    def _check(self) -> None:
        super()._check()
        if (self.shift < self._reach).any():
            raise PlanError("hash functions: a shift leaves sums below 0")
        if ((self.shift + self._reach) // self.width).max() >= 1 << 31:
            raise PlanError("hash functions: a width makes more than 2**31 places")

    def _arguments(self, codes: Codes) -> tuple[Any, ...]:
        return *self._vectors, self._functions


@dataclass(frozen=True, eq=False)
class SubspaceGrid(CountMin):
    """Grids on random subspaces (Sathe and Aggarwal, 2016; paper, section 3.1).

    Hash function h maps feature ``feature[h]`` to floor((u + alpha) / f), where u is the value's
    place on the feature's range from 0 to 1. In levels: (level + ``shift[h]``) // ``width[h]``,
    where ``width`` is f and ``shift`` is alpha, both times the number of levels. A category falls
    into one of as many places, chosen at random by ``shift[h]``; a missing value has its own place.
    Table t concatenates the next ``depth[t]`` functions (l dimensions in the paper); the vector of
    places is counted as described in `CountMin`.
    """

    name: ClassVar[str] = "SubspaceGrid"
    _loops: ClassVar[str] = "subspace_grid"

    feature: NDArray[np.uint16] = drawn(np.uint16, "n_functions", below="n_features")
    width: NDArray[np.uint32] = drawn(np.uint32, "n_functions", low=2, below=LEVELS + 1)
    shift: NDArray[np.uint32] = drawn(np.uint32, "n_functions")

    def _check(self) -> None:
        super()._check()
        if (self.shift >= self.width).any():
            raise PlanError("hash functions: a shift is beyond its width")

    @cached_property
    def _functions(self) -> tuple[Any, ...]:
        categorical = np.array([f.kind == "categorical" for f in self.schema.features], np.uint8)
        feature = self.feature.astype(np.int64)
        grid = self._first, feature, self.shift, self.width
        multiplier, *sketches = self._sketches
        return *grid, multiplier, categorical[feature], *sketches

    def _arguments(self, codes: Codes) -> tuple[Any, ...]:
        return (self._functions,)


#: Histograms of a CountMin sketch, and cells of each (paper, section 4).
SKETCH_ROWS, SKETCH_CELLS = 4, 1000


def draw_rs_hash(
    schema: Schema, rng: "np.random.Generator", *, n_tables: int = 100, max_samples: int = 1000
) -> SubspaceGrid:
    """Draw like RS-Hash: a grid of side f, shifted by U(0, f), on l distinct features.

    Rows are counted in CountMin sketches of 4 x 1000 cells (paper, section 4). Constant features
    are left out if there are others; a table uses at most as many features as the data has.
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
    width = np.maximum(2, np.rint(np.repeat(f, depth) * LEVELS)).astype(np.uint32)
    shift = (rng.random(functions) * width).astype(np.uint32)
    return SubspaceGrid(
        schema=schema,
        depth=depth,
        feature=feature.astype(np.uint16),
        width=width,
        shift=np.minimum(shift, width - 1),
        **count_min(rng, functions, m),
    )


def count_min(rng: "np.random.Generator", functions: int, tables: int) -> dict[str, Any]:
    """Draw the hash functions from places into CountMin sketches."""
    return {
        "multiplier": 2 * (rng.random(functions) * 2.0**31).astype(np.uint32) + 1,
        "seed": (rng.random(SKETCH_ROWS * tables) * 2.0**32).astype(np.uint32),
        "sketch_rows": SKETCH_ROWS,
        "cells": SKETCH_CELLS,
    }


def draw_rotated_rs_hash(
    schema: Schema, rng: "np.random.Generator", *, n_tables: int = 100, max_samples: int = 1000
) -> RandomProjection:
    """Draw RS-Hash's grids over random rotations: p-stable LSH of widths f R (section 3.1).

    Rows are points of the unit cube, each feature scaled to its range; normal weights a rotate
    them. R = sqrt(sum_j a_j^2) replaces the range of the projected rows, which is not known before
    the rows are: for a single feature it is the range itself, for many features it is 3.5 standard
    deviations of their sum. Everything else is as in `draw_rs_hash`.
    """
    m = whole("n_tables", n_tables, 1, 10_000)
    s = whole("max_samples", max_samples, 1, 1 << 16)
    f, depth = papers_depths(rng, m, s)
    functions = int(depth.sum())
    varying = np.array([0.0 if feature.constant else 1.0 for feature in schema.features])
    normal = _normal(rng, functions, schema)
    weight, _ = _whole_weights(normal * np.repeat(varying, n_dimensions(schema)))
    # A coordinate's extent: a range of levels, or an edge of the cube of categories.
    edges = [LEVELS if f.kind == "numeric" else CORNER for f in schema.features]
    extent = 2.0 * np.repeat(np.array(edges), n_dimensions(schema))
    projected = np.sqrt(((weight * extent) ** 2).sum(axis=1))
    width = np.maximum(1, np.rint(np.repeat(f, depth) * projected)).astype(np.int64)
    reach = np.abs(weight.astype(np.int64)).sum(axis=1) * LEVELS
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
    schema: Schema, rng: "np.random.Generator", *, n_tables: int = 100, n_bits: int = 15
) -> SimHash:
    """Draw like ACE: signs of products with normal vectors, 2**n_bits cells in a table.

    Rows are used unscaled, in their own units and from their own origin. Categories, which have
    neither, have a mean distance of 1.
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
    # Two units of a row's vector correspond to one level of a feature's range.
    per_unit = np.repeat(0.5 * extent / widest / LEVELS, dimensions)
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


def _normal(rng: "np.random.Generator", functions: int, schema: Schema) -> Floats:
    """Draw standard normal vectors (functions, n_dimensions), by inversion."""
    from scipy.special import ndtri  # takes a while to import

    uniform = rng.random((functions, int(n_dimensions(schema).sum())))
    normal: Floats = ndtri(uniform.clip(2.0**-54, 1.0 - 2.0**-53))
    return normal


def _whole_weights(weights: Floats) -> tuple[NDArray[np.int32], Floats]:
    """Round each function's weights to whole numbers with as many bits as the products allow.

    Returns them, and how many units of each function make one.
    """
    bits = min(30, 34 - math.ceil(math.log2(weights.shape[1])))
    largest = np.abs(weights).max(axis=1)
    scale = 2.0**bits / np.where(largest > 0.0, largest, 1.0)
    return np.rint(weights * scale[:, np.newaxis]).astype(np.int32), scale


def _salt(rng: "np.random.Generator", schema: Schema) -> NDArray[np.uint32]:
    """Draw the salt that is mixed into each feature's categories."""
    return (rng.random(len(schema)) * 2.0**32).astype(np.uint32)


_LOG2 = ScoreRule("log2")
_HOME = "hushtable_bench.systems.detectors:"
for _draw in (
    Draw("ace", SimHash, ScoreRule("count"), draw_ace, _HOME + "ACE"),
    Draw("rotated_rs_hash", RandomProjection, _LOG2, draw_rotated_rs_hash, _HOME + "RotatedRSHash"),
    Draw("rs_hash", SubspaceGrid, _LOG2, draw_rs_hash, _HOME + "RSHash"),
):
    register(_draw)
