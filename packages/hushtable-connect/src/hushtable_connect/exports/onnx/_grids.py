"""Codes to cells of grids, counted in CountMin sketches, as nodes of an ONNX graph."""

import numpy as np

from hushtable.kernels import LEVELS
from hushtable.plans.families import SubspaceGrid
from hushtable_connect.exports.onnx._codes import Codes
from hushtable_connect.exports.onnx._graph import Graph
from hushtable_connect.exports.onnx._integers import high_bits, low_bits, mixed


def subspace_grid(graph: Graph, family: SubspaceGrid, codes: Codes) -> str:
    """Add the cells (m, R, n) of rows: the arithmetic of `hushtable.kernels._subspace_grid`."""
    seeds = family.seed.astype(np.int64).reshape(-1, family.sketch_rows)
    first = family.offsets[:-1].reshape(seeds.shape)
    key = graph.add("Unsqueeze", _keys(graph, family, codes), np.array([1]))
    # Two histograms share a mixing: its halves.
    mixes = mixed(graph, graph.add("BitwiseXor", key, seeds[:, ::2, np.newaxis]))
    parts = []
    for half, begin in ((low_bits(graph, mixes, 1 << 16), 0), (high_bits(graph, mixes, 16), 1)):
        at = first[:, begin::2, np.newaxis]
        if at.shape[1] == 0:
            continue
        used = graph.add("Gather", half, np.arange(at.shape[1]), axis=1)
        cells = high_bits(graph, graph.add("Mul", used, np.array(family.cells)), 16)
        parts.append(graph.add("Add", cells, at))
    return graph.add("Concat", *parts, axis=1)


def _keys(graph: Graph, family: SubspaceGrid, codes: Codes) -> str:
    """Add the keys (m, n) of rows in the tables."""
    depth = family.depth.astype(np.int64)
    # Column t has the functions of table t; what is below the last counts nothing.
    at = np.arange(depth.max())[:, np.newaxis]
    lacking = at >= depth
    function = np.where(lacking, 0, np.cumsum(depth) - depth + at)
    multiplier = np.where(lacking, 0, family.multiplier.astype(np.int64)[function])
    shift, width, feature = (
        values.astype(np.int64)[function].reshape(-1, 1)
        for values in (family.shift, family.width, family.feature)
    )
    code = graph.add("Gather", *_rows(graph, codes, feature.ravel()), axis=0)
    place = graph.add("Div", graph.add("Add", code, shift - 1), width)
    categorical = ~codes.numeric[feature]
    if categorical.any():
        any_of = mixed(graph, graph.add("BitwiseXor", code, shift))
        any_of = graph.add("Mod", any_of, LEVELS // width + 1)
        place = graph.add("Where", categorical, any_of, place)
    # The place of a missing value is 0.
    present = graph.add("Min", code, np.array(1))
    place = graph.add("Mul", graph.add("Add", place, np.array(1)), present)
    keys = graph.add("Mul", place, multiplier.reshape(-1, 1))
    keys = graph.add("Reshape", keys, np.array([*multiplier.shape, -1]))
    return low_bits(graph, graph.add("ReduceSum", keys, np.array([0]), keepdims=0), 1 << 32)


def _rows(graph: Graph, codes: Codes, feature: np.ndarray) -> tuple[str, np.ndarray]:
    """Add the codes of all features, int64; return them, and the row of each of some features."""
    parts = [graph.cast(codes.numbers.low, "int64")] if codes.numbers else []
    parts += [graph.add("Unsqueeze", one, np.array([0])) for one in codes.categories]
    n_numbers = int(codes.numeric.sum())
    row = codes.place[feature] + n_numbers * ~codes.numeric[feature]
    return graph.add("Concat", *parts, axis=0), row
