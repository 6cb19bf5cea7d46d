"""An ONNX graph that is written one node after the other."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from onnx import ModelProto

#: The first opset with BitwiseXor; that of texts to numbers; the format of both.
OPSET, ML_OPSET, IR_VERSION = 18, 2, 8
_ML = "ai.onnx.ml"
#: ONNX's names of types by NumPy's.
_TYPES = {
    "bool": "BOOL", "float32": "FLOAT", "float64": "DOUBLE", "int64": "INT64",
    "object": "STRING", "uint64": "UINT64",
}  # fmt: skip
#: Nodes that onnxruntime 1.32 drops, where a constant of one element is 0 or 1 once it is rounded
#: to float32, though the tensor is of float64.
_DROPPED = {"Add", "Div", "Mul", "Sub"}


class Tensor(NamedTuple):
    """An input or output: its name, NumPy's name of its type (texts are objects), its shape."""

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
            f"onnx {onnx.__version__} writes opset {newest} at most: needs {OPSET}; "
            "pip install --upgrade onnx"
        )
    return onnx


class Graph:
    """Nodes and constants so far; tensors go by names, none of which is among ``taken``."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._onnx = library()
        self._taken = set(taken)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def add(
        self, op: str, *inputs: str | NDArray[Any] | float, out: str = "", **attributes: Any
    ) -> str:
        """Add a node; return the name of its output, a new one unless it is given.

        Inputs are names of tensors, arrays, or numbers, which are taken as they are by NumPy. What
        is added to an array, or multiplied by one, has its rank; with a fraction, 1.
        """
        if op in _DROPPED and any(not isinstance(x, str) and _is_nearly(x) for x in inputs):
            # No runtime drops a node for a constant of two elements.
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
        """Add a conversion to the type that NumPy names so."""
        return self.add("Cast", tensor, to=self._type(dtype))

    def model(
        self, inputs: list[Tensor], outputs: list[Tensor], facts: dict[str, str]
    ) -> "ModelProto":
        """Return the model, with facts for people to read."""
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
    """Whether this is one number, nearly 0 or 1, and neither."""
    array = np.asarray(constant)
    if array.size != 1:
        return False
    number = float(array.item())
    return 0.0 < min(abs(number), abs(number - 1.0)) < 1e-3
