"""Codes to the cells of tables, and the sums of their values, as nodes of an ONNX graph."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import UsageError
from hushtable.plans.families import HashFamily, RandomFeature, SubspaceGrid
from hushtable_connect.exports.onnx._codes import Codes
from hushtable_connect.exports.onnx._graph import Graph
from hushtable_connect.exports.onnx._grids import subspace_grid
from hushtable_connect.exports.onnx._integers import low_bits, mixed

#: Answers of hash functions that one product of matrices puts together: sums below 2**8 are exact
#: in any type of number that a processor multiplies matrices in.
_BITS = 8
#: No code is as high.
_NEVER = 65_536.0


def totals(graph: Graph, family: HashFamily, codes: Codes, values: NDArray[np.float64]) -> str:
    """Add the sums (n,), over the tables, of the ``values`` (n_cells,) of rows' cells.

    Values are multiples of 2**-20 (see `hushtable.plans.score_rule`): their sums are exact in any
    order. Raises `UsageError` for a family without an exact export.
    """
    if isinstance(family, RandomFeature):
        found = graph.add("Gather", values, _random_feature(graph, family, codes))
    elif isinstance(family, SubspaceGrid):
        found = graph.add("Gather", values, subspace_grid(graph, family, codes))
        found = graph.add("ReduceMin", found, np.array([1]), keepdims=0)
    else:
        raise UsageError(
            f"{family.name} tables have no exact export to ONNX: their cells follow from sums of "
            "products, and ONNX leaves open in which order they are added; export a HushTable, "
            "LSHiTables or RSHash"
        )
    return graph.add("ReduceSum", found, np.array([0]), keepdims=0)


def _random_feature(graph: Graph, family: RandomFeature, codes: Codes) -> str:
    """Add the cells (m, n) of rows in tables of random-feature LSH."""
    depth = family.depth.astype(np.int64)
    rows, row_of, cut_of = _compared(graph, family, codes)
    # Column t has the functions of table t, the last in the last row; what is above says no.
    from_end = np.arange(depth.max())[::-1, np.newaxis]
    function = np.cumsum(depth) - 1 - from_end
    lacking = from_end >= depth
    row = np.where(lacking, 0, row_of[np.where(lacking, 0, function)])
    cut = np.where(lacking, _NEVER, cut_of[np.where(lacking, 0, function)])
    code = ""
    for start in range(-(-len(row) % _BITS), len(row), _BITS):
        part = slice(max(start, 0), start + _BITS)
        bits = _concatenated(graph, rows, row[part], cut[part].astype(np.float32))
        before = graph.add("Mul", code, np.array(1 << _BITS)) if code else ""
        code = graph.add("Add", before, bits) if before else bits
    sizes = np.diff(family.offsets)
    folded = 1 << depth > sizes
    if folded.any():
        short = low_bits(graph, mixed(graph, code), family.max_cells)
        code = graph.add("Where", folded[:, np.newaxis], short, code)
    return graph.add("Add", code, family.offsets[:-1, np.newaxis])


def _concatenated(graph: Graph, rows: str, row: Any, cut: Any) -> str:
    """Add the numbers (m, n) int64 of which k answers of m tables (k, m) are the bits."""
    k, m = row.shape
    values = graph.add("Gather", rows, row.ravel(), axis=0)
    answers = graph.cast(graph.add("GreaterOrEqual", values, cut.reshape(-1, 1)), "float32")
    answers = graph.add("Reshape", answers, np.array([k, -1]))
    weights = (2.0 ** np.arange(k)[::-1]).astype(np.float32)
    found = graph.add("MatMul", weights[np.newaxis], answers)
    return graph.cast(graph.add("Reshape", found, np.array([m, -1])), "int64")


def _compared(graph: Graph, family: RandomFeature, codes: Codes) -> tuple[str, Any, Any]:
    """Add the rows (r, n) float32 that hash functions compare; return each one's row and cut.

    Rows are numbers with missing values low, then high, then the sides, 0 or 1, of categories.
    """
    parts, d = [], 0
    if codes.numbers:
        parts, d = [codes.numbers.low, codes.numbers.high], int(codes.numeric.sum())
    categorical = ~codes.numeric[family.feature]
    row = codes.place[family.feature] + d * (family.missing == 1)
    cut = np.where(categorical, 1, family.cut)
    sizes = family.subset_sizes
    n_rows = 2 * d
    for j in np.unique(family.feature[categorical]).tolist():
        functions = np.flatnonzero(family.feature == j)
        # All of one feature have as many sides.
        first = (np.cumsum(sizes) - sizes)[functions, np.newaxis]
        sides = family.subsets[first + np.arange(sizes[functions[0]])]
        different, which = np.unique(sides, axis=0, return_inverse=True)
        row[functions] = n_rows + which.ravel()
        n_rows += len(different)
        category = codes.categories[codes.place[j]]
        found = graph.add("Gather", different.astype(np.bool_), category, axis=1)
        parts.append(graph.cast(found, "float32"))
    return graph.add("Concat", *parts, axis=0), row, cut
