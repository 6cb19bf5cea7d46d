"""Detectors in scikit-learn pipelines that skl2onnx converts.

skl2onnx calls a detector's ``onnx_converter`` and ``onnx_shape_calculator``, so no registration is
needed.
"""

from typing import Any

import numpy as np

from hushtable.errors import UsageError
from hushtable_connect.exports.formats import Model
from hushtable_connect.exports.onnx import OPSET, Graph, Tensor, encode, labels, scores

#: NumPy's names of types by the names of skl2onnx's.
_TYPES = {
    "BooleanTensorType": "bool", "DoubleTensorType": "float64", "FloatTensorType": "float32",
    "Int64TensorType": "int64", "StringTensorType": "object",
}  # fmt: skip


def shape(operator: Any) -> None:
    """Set the types of a detector's outputs to those of skl2onnx's outlier detectors."""
    from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType

    n = operator.inputs[0].get_first_dimension()
    operator.outputs[0].type = Int64TensorType([n, 1])
    operator.outputs[1].type = DoubleTensorType([n, 1])


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Add a detector to a graph: ``label`` as `predict`, ``scores`` as `decision_function`."""
    from skl2onnx.helpers.integration import add_onnx_graph

    model = Model.of(operator.raw_operator)
    if np.isnan(model.threshold):
        raise UsageError("a detector without a threshold has no labels: call set_threshold first")
    if container.target_opset < OPSET:
        raise UsageError(f"target_opset={container.target_opset}: needs {OPSET} or more")
    inputs = [_tensor(variable) for variable in operator.inputs]
    outputs = [Tensor("label", "int64", ("n", 1)), Tensor("scores", "float64", ("n", 1))]
    graph = Graph({tensor.name for tensor in inputs + outputs})
    score = scores(graph, model, encode(graph, model.plan.schema, inputs, missing=""))
    column = graph.add("Reshape", score, np.array([-1, 1]))
    labels(graph, model, column, "label")
    graph.add("Sub", column, np.array([[model.threshold]]), out="scores")
    add_onnx_graph(scope, operator, container, graph.model(inputs, outputs, {}))


def _tensor(variable: Any) -> Tensor:
    kind, columns = type(variable.type).__name__, variable.type.shape[1]
    if kind not in _TYPES or not isinstance(columns, int):
        raise UsageError(
            f"input {variable.raw_name!r} is a {kind} of {columns} columns: needs numbers or texts "
            "with a known number of columns"
        )
    return Tensor(variable.onnx_name, _TYPES[kind], ("n", columns))
