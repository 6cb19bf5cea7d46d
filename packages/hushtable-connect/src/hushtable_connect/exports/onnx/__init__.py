"""Models as ONNX graphs, which score to the same bits.

The graph does what the library does: a subtraction and a product in float64 give each number's
level, exact texts each category's; from there on all is whole numbers, until values are looked up
and summed. `docs/onnx.md` says what goes in, and what comes out.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from hushtable import kernels
from hushtable_connect.exports._model import Model
from hushtable_connect.exports.onnx._cells import totals
from hushtable_connect.exports.onnx._codes import Codes, encode
from hushtable_connect.exports.onnx._graph import Graph, Tensor

if TYPE_CHECKING:
    from onnx import ModelProto

#: The name of the one input, where the columns have no names and hold numbers only.
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
        What scores: tables of `HushTable`, `LSHiTables` or `RSHash`.
    missing : str, default=""
        The text that stands for a missing category. A missing number is NaN.

    Returns
    -------
    onnx.ModelProto
        Of opset 18. Its inputs have n rows each: one of shape (n, 1) for each feature, by its
        name, float64 for numbers and texts for categories; or, where the columns have no names and
        hold numbers only, ``X`` of shape (n, n_features), float64. Its outputs are ``score`` (n,)
        float64, the same as `score_samples`, and ``label`` (n,) int64, the same as `predict`. An
        output whose name a feature has ends in an underscore. Without a threshold there are no
        labels. A row with an infinity, which the library refuses, has the score NaN.

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


def scores(graph: Graph, model: Model, codes: Codes) -> str:
    """Add the scores (n,) of encoded rows: the arithmetic of `hushtable.plans.families.Scoring`."""
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
    """Return what the file says of the model, for people."""
    return {
        "hushtable.detector": model.plan.detector,
        "hushtable.missing": missing,
        "hushtable.plan_id": model.plan.plan_id,
        "hushtable.threshold": repr(model.threshold),
        "hushtable.unit": model.plan.score.unit,
    }
