"""Models as ONNX graphs, whose scores are bit-identical to the library's.

The graph does the same as the library: a subtraction and a product in float64 give each number's
level, and exact texts give each category's. From there on it computes with whole numbers, until it
looks up values and adds them. `docs/how-to/export.md` describes the inputs and outputs.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.encoding import FARTHEST, Encoder
from hushtable.data.schema import Feature, Schema
from hushtable.errors import MissingExtraError, UsageError
from hushtable.plans.families import HashFamily, RandomFeature
from hushtable_connect.exports import Format, Model

if TYPE_CHECKING:
    from onnx import ModelProto

#: The first opset with BitwiseXor; the opset that maps texts to numbers; the format of both.
OPSET, ML_OPSET, IR_VERSION = 18, 2, 8
_ML = "ai.onnx.ml"
#: ONNX's names of types, by NumPy's names.
_TYPES = {
    "bool": "BOOL", "float32": "FLOAT", "float64": "DOUBLE", "int64": "INT64",
    "object": "STRING", "uint64": "UINT64",
}  # fmt: skip
#: Nodes that onnxruntime 1.32 drops if a constant of one element is 0 or 1 after it is rounded to
#: float32, although the tensor is of float64.
_DROPPED = {"Add", "Div", "Mul", "Sub"}


class Tensor(NamedTuple):
    """An input or output: its name, NumPy's name of its type (object for texts), its shape."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


def library() -> Any:
    """Return the onnx package; raises `MissingExtraError`, or `UsageError` if it is too old."""
    try:
        import onnx
    except ImportError:
        raise MissingExtraError("an ONNX model", "onnx", "onnx") from None
    newest = onnx.defs.onnx_opset_version()
    if newest < OPSET:
        raise UsageError(
            f"onnx {onnx.__version__} writes opset {newest} at most: needs {OPSET}; run "
            "pip install --upgrade onnx"
        )
    return onnx


class Graph:
    """Nodes and constants so far; tensors have names, and no name is among ``taken``."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._onnx = library()
        self._taken = set(taken)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def add(
        self, op: str, *inputs: str | NDArray[Any] | float, out: str = "", **attributes: Any
    ) -> str:
        """Add a node; return the name of its output, which is new unless it is given.

        Inputs are names of tensors, arrays, or numbers, which become arrays as NumPy makes them.
        An input that is added to an array, or multiplied by one, has the array's rank; with a
        fraction, it has rank 1.
        """
        if op in _DROPPED and any(not isinstance(x, str) and _is_nearly(x) for x in inputs):
            # No runtime drops a node because of a constant of two elements.
            twice = (x if isinstance(x, str) else np.stack([np.atleast_1d(x)] * 2) for x in inputs)
            return self.add("Gather", self.add(op, *twice), np.array(0), out=out, axis=0)
        names = [x if isinstance(x, str) else self._constant(np.asarray(x)) for x in inputs]
        out = out or self._new(op)
        domain = _ML if op == "LabelEncoder" else ""
        self._nodes.append(
            self._onnx.helper.make_node(op, names, [out], out, domain=domain, **attributes)
        )
        return out

    def cast(self, tensor: str, dtype: str) -> str:
        """Add a conversion to the type with this NumPy name."""
        return self.add("Cast", tensor, to=self._type(dtype))

    def model(
        self, inputs: list[Tensor], outputs: list[Tensor], facts: dict[str, str]
    ) -> "ModelProto":
        """Return the model, with a description for people."""
        helper = self._onnx.helper
        ends = (
            [helper.make_tensor_value_info(x.name, self._type(x.dtype), x.shape) for x in side]
            for side in (inputs, outputs)
        )
        graph = helper.make_graph(self._nodes, "hushtable", *ends, self._constants)
        versions = [helper.make_opsetid("", OPSET), helper.make_opsetid(_ML, ML_OPSET)]
        model: ModelProto = helper.make_model(
            graph, opset_imports=versions, ir_version=IR_VERSION, producer_name="hushtable"
        )
        helper.set_model_props(model, facts)
        return model

    def _type(self, dtype: str) -> int:
        return int(getattr(self._onnx.TensorProto, _TYPES[dtype]))

    def _constant(self, array: NDArray[Any]) -> str:
        name = self._new("c")
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def _new(self, what: str) -> str:
        name = next(
            name
            for i in range(len(self._taken), 2 * len(self._taken) + 2)
            if (name := f"{what}_{i}") not in self._taken
        )
        self._taken.add(name)
        return name


def _is_nearly(constant: NDArray[Any] | float) -> bool:
    array = np.asarray(constant)
    if array.size != 1:
        return False
    number = float(array.item())
    return 0.0 < min(abs(number), abs(number - 1.0)) < 1e-3


class Numbers(NamedTuple):
    """Numbers of n rows: codes (d, n) float32, once with missing values low, and once high.

    ``beyond`` (n,) float64 is the sum of the values of `Outside`; ``infinite`` is (n,) bool.
    """

    low: str
    high: str
    beyond: str
    infinite: str


@dataclass(frozen=True)
class OnnxCodes:
    """Names of a graph's tensors with the codes of n rows.

    ``numeric`` marks the numeric features; ``place`` has each feature's place among the numeric or
    among the categorical ones; ``categories`` has the codes (n,) int64 of the categorical ones.
    """

    numbers: Numbers | None
    categories: list[str]
    numeric: NDArray[np.bool_]
    place: NDArray[np.int64]


def encode(graph: Graph, schema: Schema, inputs: list[Tensor], missing: str) -> OnnxCodes:
    """Add the encoding of inputs: one of shape (n, 1) for each feature, or a matrix of numbers.

    The text ``missing`` means a missing category.
    """
    numbers, categories = [], []
    features = {feature.name: feature for feature in schema.features}
    for tensor in inputs:
        if tensor.dtype == "object":
            texts = graph.add("Gather", tensor.name, np.array(0), axis=1)
            categories.append(_category(graph, features[tensor.name], texts, missing))
        else:
            columns = graph.add("Transpose", tensor.name, perm=[1, 0])
            numbers.append(graph.cast(columns, "float64"))
    numeric = np.array([f.kind == "numeric" for f in schema.features])
    place = np.where(numeric, np.cumsum(numeric), np.cumsum(~numeric)) - 1
    if not numbers:
        return OnnxCodes(None, categories, numeric, place)
    values = graph.add("Concat", *numbers, axis=0)
    codes = _numbers(graph, values, Encoder(schema), numeric)
    return OnnxCodes(codes, categories, numeric, place)


def _numbers(graph: Graph, x: str, encoder: Encoder, which: NDArray[np.bool_]) -> Numbers:
    low, high, scale, unit = (
        part[which, np.newaxis] for part in (encoder.low, encoder.high, encoder.scale, encoder.unit)
    )
    missing = graph.add("IsNaN", x)
    level = graph.add("Mul", graph.add("Sub", x, low), scale)
    # NaN (a range of one point and an infinite difference) is the lowest level, as below 0.
    above = graph.add("GreaterOrEqual", level, 0.0)
    level = graph.add("Where", above, graph.add("Min", level, kernels.LEVELS - 1.0), 0.0)
    # float32 holds all codes, and needs half of the memory.
    code = graph.cast(graph.add("Add", graph.add("Floor", level), 1.0), "float32")
    ends = np.float32(kernels.MISSING_LOW), np.float32(kernels.MISSING_HIGH)
    lowest, highest = (graph.add("Where", missing, np.asarray(end), code) for end in ends)
    excess = graph.add("Max", graph.add("Sub", low, x), graph.add("Sub", x, high), 0.0)
    beyond = graph.add("Min", graph.add("Div", excess, unit), FARTHEST)
    beyond = graph.add("Where", missing, 0.0, beyond)
    # Adds in the order of the features, as the library does: a reduction has no defined order.
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
    if missing in feature.categories:
        raise UsageError(
            f"the text {missing!r} would mean a missing value, but it is a category of "
            f"{feature.name!r}: choose another text with missing=..."
        )
    keys = [missing, *feature.categories]
    attributes: dict[str, Any] = {
        "keys_strings": keys, "values_int64s": range(len(keys)), "default_int64": len(keys)
    }  # fmt: skip
    return graph.add("LabelEncoder", texts, **attributes)


def _mixed(graph: Graph, key: str) -> str:
    key = _times(graph, _shifted(graph, key, 16), 0x85EBCA6B)
    key = _times(graph, _shifted(graph, key, 13), 0xC2B2AE35)
    return _shifted(graph, key, 16)


def _low_bits(graph: Graph, number: str, modulus: int) -> str:
    return graph.add("BitwiseAnd", number, np.array(modulus - 1))


def _high_bits(graph: Graph, number: str, bits: int) -> str:
    shift = np.array(bits, np.uint64)
    number = graph.add("BitShift", graph.cast(number, "uint64"), shift, direction="RIGHT")
    return graph.cast(number, "int64")


def _shifted(graph: Graph, number: str, bits: int) -> str:
    return graph.add("BitwiseXor", number, _high_bits(graph, number, bits))


def _times(graph: Graph, number: str, factor: int) -> str:
    # Add a product modulo 2**32, computed from halves, so that no value exceeds 2**49.
    low, high = _low_bits(graph, number, 1 << 16), _high_bits(graph, number, 16)
    upper = graph.add("Mul", high, np.array((factor << 16) & 0xFFFFFFFF))
    return _low_bits(
        graph, graph.add("Add", graph.add("Mul", low, np.array(factor)), upper), 1 << 32
    )


#: Answers of hash functions that one product of matrices combines: sums below 2**8 are exact in
#: any type of number in which a processor multiplies matrices.
_BITS = 8
#: A number above all codes.
_NEVER = 65_536.0


def totals(graph: Graph, family: HashFamily, codes: OnnxCodes, values: NDArray[np.float64]) -> str:
    """Add the sums (n,), over the tables, of the ``values`` (n_cells,) of rows' cells.

    Values are multiples of 2**-20 (see `hushtable.plans.score_rule`), so sums are exact in any
    order. Raises `UsageError` for a family without an exact export.
    """
    if not isinstance(family, RandomFeature):
        raise UsageError(
            f"{family.name} tables: ONNX needs HushTable or LSHiTables, whose hash functions "
            "compare one column with one number; export to JSON, or fit one of these"
        )
    looked_up = graph.add("Gather", values, _random_feature(graph, family, codes))
    return graph.add("ReduceSum", looked_up, np.array([0]), keepdims=0)


def _random_feature(graph: Graph, family: RandomFeature, codes: OnnxCodes) -> str:
    depth = family.depth.astype(np.int64)
    rows, row_of, cut_of = _compared(graph, family, codes)
    # Column t has the functions of table t, the last one in the last row; entries above are 0.
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
        short = _low_bits(graph, _mixed(graph, code), family.max_cells)
        code = graph.add("Where", folded[:, np.newaxis], short, code)
    return graph.add("Add", code, family.offsets[:-1, np.newaxis])


def _concatenated(graph: Graph, rows: str, row: Any, cut: Any) -> str:
    k, m = row.shape
    values = graph.add("Gather", rows, row.ravel(), axis=0)
    answers = graph.cast(graph.add("GreaterOrEqual", values, cut.reshape(-1, 1)), "float32")
    answers = graph.add("Reshape", answers, np.array([k, -1]))
    weights = (2.0 ** np.arange(k)[::-1]).astype(np.float32)
    places = graph.add("MatMul", weights[np.newaxis], answers)
    return graph.cast(graph.add("Reshape", places, np.array([m, -1])), "int64")


def _compared(graph: Graph, family: RandomFeature, codes: OnnxCodes) -> tuple[str, Any, Any]:
    # Add the rows (r, n) float32 that hash functions compare; return each function's row and cut.
    # Rows are numbers with missing values low, then high, then the sides, 0 or 1, of categories.
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
        # All functions of one feature have the same number of sides.
        first = (np.cumsum(sizes) - sizes)[functions, np.newaxis]
        sides = family.subsets[first + np.arange(sizes[functions[0]])]
        different, which = np.unique(sides, axis=0, return_inverse=True)
        row[functions] = n_rows + which.ravel()
        n_rows += len(different)
        category = codes.categories[codes.place[j]]
        level = graph.add("Gather", different.astype(np.bool_), category, axis=1)
        parts.append(graph.cast(level, "float32"))
    return graph.add("Concat", *parts, axis=0), row, cut


#: The name of the only input if the columns have no names and hold only numbers.
MATRIX = "X"


def written(model: Model, missing: str = "") -> bytes:
    """Return the model as the content of an ONNX file: see `to_onnx`."""
    content: bytes = onnx_model(model, missing).SerializeToString(deterministic=True)
    return content


def to_onnx(model: Any, *, missing: str = "") -> "ModelProto":
    """Return a model as an ONNX graph.

    Parameters
    ----------
    model : fitted detector, Sketch, Release, LocalModel, or path of a .hush file
        The model that scores, with tables of `HushTable` or `LSHiTables`.
    missing : str, default=""
        The text that means a missing category. A missing number is NaN.

    Returns
    -------
    onnx.ModelProto
        A model of opset 18. Its inputs have n rows each: one of shape (n, 1) for each feature, with
        the feature's name, float64 for numbers and texts for categories; or, if the columns have
        no names and hold only numbers, ``X`` of shape (n, n_features), float64. Its outputs are
        ``score`` (n,) float64, the same as `score_samples`, and ``label`` (n,) int64, the same as
        `predict`. If a feature has the name of an output, the output's name ends in an
        underscore. Without a threshold there are no labels. A row with an infinity, which the
        library refuses, has the score NaN.

    Raises
    ------
    UsageError
        If the export would not be exact, or ``missing`` is a category.
    MissingExtraError
        If onnx is not installed.

    Examples
    --------
    >>> from hushtable import HushTable
    >>> from hushtable_connect.exports.onnx import to_onnx
    >>> detector = HushTable(random_state=0).fit([[70, 1], [71, 2], [72, 3], [180, 4]])
    >>> [one.name for one in to_onnx(detector).graph.output]
    ['score', 'label']
    """
    return onnx_model(Model.of(model), missing)


def onnx_model(model: Model, missing: str = "") -> "ModelProto":
    """Return a model as an ONNX graph: see `to_onnx`."""
    schema = model.plan.schema
    if schema.named or schema.categorical_names:
        kinds = {"numeric": "float64", "categorical": "object"}
        inputs = [Tensor(f.name, kinds[f.kind], ("n", 1)) for f in schema.features]
    else:
        inputs = [Tensor(MATRIX, "float64", ("n", len(schema)))]
    names = {tensor.name for tensor in inputs}
    outputs = [Tensor(_free("score", names), "float64", ("n",))]
    graph = Graph(names | {outputs[0].name, label := _free("label", names)})
    score = scores(graph, model, encode(graph, schema, inputs, missing))
    graph.add("Identity", score, out=outputs[0].name)
    if not np.isnan(model.threshold):
        outputs.append(Tensor(label, "int64", ("n",)))
        labels(graph, model, score, outputs[1].name)
    return graph.model(inputs, outputs, _facts(model, missing))


def scores(graph: Graph, model: Model, codes: OnnxCodes) -> str:
    """Add the scores (n,) of encoded rows: the arithmetic of `hushtable.plans.families`."""
    family, values = model.plan.family, model.scorer.values
    score = graph.add("Div", totals(graph, family, codes, values), float(family.n_tables))
    if codes.numbers is None:
        return score
    if family.margin:
        margin = family.margin / kernels.LEVELS
        depth = family.least(values) / family.n_tables - 1.0
        either = graph.add("Add", margin, codes.numbers.beyond)
        near, far = (graph.add("Div", x, either) for x in (margin, codes.numbers.beyond))
        near, far = (graph.add("Mul", x, x) for x in (near, far))
        lost = graph.add("Div", far, graph.add("Add", near, far))
        lost = graph.add("Mul", lost, graph.add("Sub", score, depth))
        score = graph.add("Sub", score, lost)
    return graph.add("Where", codes.numbers.infinite, np.nan, score)


def labels(graph: Graph, model: Model, score: str, out: str) -> None:
    """Add the labels (n,) of scores: -1 for outliers, and for rows without a score."""
    inlier = graph.add("GreaterOrEqual", score, model.threshold)
    graph.add("Where", inlier, np.array(1), np.array(-1), out=out)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _facts(model: Model, missing: str) -> dict[str, str]:
    return {
        "hushtable.detector": model.plan.detector,
        "hushtable.missing": missing,
        "hushtable.plan_id": model.plan.plan_id,
        "hushtable.threshold": repr(model.threshold),
        "hushtable.unit": model.plan.score.unit,
    }


FORMAT = Format("ONNX", "ONNX Runtime scores rows with it", written, ("missing",))
