"""ONNX models in onnxruntime."""

import numpy as np
import onnxruntime

from hushtable.data.labels import fold


def session(model):
    """Return a session of a model, given as a graph or as the path of its file."""
    content = model if isinstance(model, str) else model.SerializeToString()
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


def fed(schema, rows, missing="", *, folds=True):
    """Return Arrow rows as inputs, by the names of the columns; texts are folded, if asked."""
    found = {}
    for feature in schema.features:
        values = rows[feature.name].to_pylist()
        if feature.kind == "numeric":
            column = np.array([np.nan if x is None else x for x in values], np.float64)
        else:
            sort = fold if folds else str
            column = np.array([missing if x is None else sort(x) for x in values], object)
        found[feature.name] = column[:, np.newaxis]
    return found
