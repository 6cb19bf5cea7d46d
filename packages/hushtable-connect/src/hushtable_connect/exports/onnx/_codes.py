"""Inputs of an ONNX graph to codes: those that `hushtable.kernels` defines."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.encoding import FARTHEST, Encoder
from hushtable.data.schema import Feature, Schema
from hushtable.errors import UsageError
from hushtable_connect.exports.onnx._graph import Graph, Tensor


class Numbers(NamedTuple):
    """Numbers of n rows: codes (d, n) float32, with missing values low, and with them high.

    ``beyond`` (n,) float64 is the sum of what `Outside` says of them; ``infinite`` (n,) bool.
    """

    low: str
    high: str
    beyond: str
    infinite: str


@dataclass(frozen=True)
class Codes:
    """Names of tensors of a graph: the codes of n rows.

    ``numeric`` says which features are, ``place`` has each one's place among the numeric ones, or
    among the categorical ones, of which ``categories`` has the codes (n,) int64.
    """

    numbers: Numbers | None
    categories: list[str]
    numeric: NDArray[np.bool_]
    place: NDArray[np.int64]


def encode(graph: Graph, schema: Schema, inputs: list[Tensor], missing: str) -> Codes:
    """Add the encoding of inputs of shape (n, k), which hold the features in order.

    The text ``missing`` stands for a missing category. Raises `UsageError` if inputs do not fit.
    """
    widths = [int(tensor.shape[1]) for tensor in inputs]
    if sum(widths) != len(schema):
        raise UsageError(f"inputs of {sum(widths)} columns: the model has {len(schema)} features")
    numbers, categories, first = [], [], 0
    for tensor, width in zip(inputs, widths, strict=True):
        features = schema.features[first : first + width]
        first += width
        if any((f.kind == "numeric") == (tensor.dtype == "object") for f in features):
            names = [f.name for f in features]
            raise UsageError(
                f"input {tensor.name!r} ({'texts' if tensor.dtype == 'object' else tensor.dtype}) "
                f"holds {names}: numbers and categories need inputs of their own"
            )
        if tensor.dtype != "object":
            columns = graph.add("Transpose", tensor.name, perm=[1, 0])
            numbers.append(graph.cast(columns, "float64"))
            continue
        for k, feature in enumerate(features):
            # Of each column alone: onnxruntime 1.32 loses texts that it transposes first.
            texts = graph.add("Gather", tensor.name, np.array(k), axis=1)
            categories.append(_category(graph, feature, texts, missing))
    numeric = np.array([f.kind == "numeric" for f in schema.features])
    place = np.where(numeric, np.cumsum(numeric), np.cumsum(~numeric)) - 1
    if not numbers:
        return Codes(None, categories, numeric, place)
    values = graph.add("Concat", *numbers, axis=0)
    found = _numbers(graph, values, Encoder(schema), numeric)
    return Codes(found, categories, numeric, place)


def _numbers(graph: Graph, x: str, encoder: Encoder, which: NDArray[np.bool_]) -> Numbers:
    """Add the codes of the numbers ``x`` (d, n): the arithmetic of `hushtable.kernels.encode`."""
    low, high, scale, unit = (
        part[which, np.newaxis] for part in (encoder.low, encoder.high, encoder.scale, encoder.unit)
    )
    missing = graph.add("IsNaN", x)
    level = graph.add("Mul", graph.add("Sub", x, low), scale)
    # NaN, of a range of one point and an infinite difference, is the lowest level, as below 0.
    above = graph.add("GreaterOrEqual", level, 0.0)
    level = graph.add("Where", above, graph.add("Min", level, kernels.LEVELS - 1.0), 0.0)
    # float32 holds all codes, and takes half of the memory.
    code = graph.cast(graph.add("Add", graph.add("Floor", level), 1.0), "float32")
    ends = np.float32(kernels.MISSING_LOW), np.float32(kernels.MISSING_HIGH)
    lowest, highest = (graph.add("Where", missing, np.asarray(end), code) for end in ends)
    past = graph.add("Max", graph.add("Sub", low, x), graph.add("Sub", x, high), 0.0)
    beyond = graph.add("Min", graph.add("Div", past, unit), FARTHEST)
    beyond = graph.add("Where", missing, 0.0, beyond)
    # Added in the order of the features, as the library does: the order of a reduction is open.
    sums = graph.add("CumSum", beyond, np.array(0))
    infinite = graph.cast(graph.add("IsInf", x), "float32")
    infinite = graph.add("ReduceMax", infinite, np.array([0]), keepdims=0)
    return Numbers(
        lowest,
        highest,
        graph.add("Gather", sums, np.array(-1), axis=0),
        graph.cast(infinite, "bool"),
    )


def _category(graph: Graph, feature: Feature, texts: str, missing: str) -> str:
    """Add the codes (n,) of the texts of a categorical feature."""
    if missing in feature.categories:
        raise UsageError(
            f"the text {missing!r} is to stand for a missing value, but is a category of "
            f"{feature.name!r}: choose another, missing=..."
        )
    keys = [missing, *feature.categories]
    attributes: dict[str, Any] = {
        "keys_strings": keys, "values_int64s": range(len(keys)), "default_int64": len(keys)
    }  # fmt: skip
    return graph.add("LabelEncoder", texts, **attributes)
