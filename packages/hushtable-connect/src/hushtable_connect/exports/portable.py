"""JSON that holds everything that determines a row's score, for readers in other languages.

The page on the file format describes it; ``docs/hushtable-model-2.schema.json`` is its
JSON Schema. ``examples/hushtable.mjs`` reads it.
"""

import base64
import hashlib
import math
from importlib.metadata import version
from typing import Any

import numpy as np
import rfc8785
from numpy.typing import NDArray

from hushtable.errors import UsageError
from hushtable_connect.exports import Format, Model

NAME = "hushtable-model"
#: Version of the format. Raise it if a reader of the old version would score wrongly; let
#: ``examples/hushtable.mjs`` read both; publish the new JSON Schema beside the old one. Models
#: whose texts are not folded (see `hushtable.data.labels`) are still written in version 1.
PROTOCOL = 2
#: The families whose rules the format describes, by name: some are of other packages.
FAMILIES = ("RandomFeature", "RandomProjection", "SimHash", "SubspaceGrid")


def written(model: Model) -> bytes:
    """Return a model as canonical JSON (RFC 8785), in UTF-8.

    Numbers are the shortest that give the same float64 again. Arrays are written as their
    little-endian bytes in base64, with dtype and shape.

    Parameters
    ----------
    model : Model
        The model that scores.

    Returns
    -------
    bytes
        Equal models give equal bytes.

    Raises
    ------
    UsageError
        If the tables are of a family that the format does not describe.
    """
    content = _content(model)
    digest = hashlib.sha256(rfc8785.dumps(content)).hexdigest()
    about = {"digest": digest, "writer": {"hushtable": version("hushtable")}}
    return rfc8785.dumps(content | about)


def _content(model: Model) -> dict[str, Any]:
    """Return everything that determines scores."""
    plan, family = model.plan, model.plan.family
    if family.name not in FAMILIES:
        raise UsageError(
            f"the model's tables are of the family {family.name!r}, which {NAME} {PROTOCOL} does "
            f"not describe (it describes {', '.join(FAMILIES)}): score with hushtable itself"
        )
    folds = plan.schema.labels if plan.schema.categorical_names else 0
    return {
        "format": NAME,
        "protocol": PROTOCOL if folds else 1,
        **({"labels": folds} if folds else {}),
        "plan_id": plan.plan_id,
        "detector": plan.detector,
        "features": [feature.to_dict() for feature in plan.schema.features],
        "family": {"name": family.name, **family.parameters()},
        "arrays": {name: _packed(array) for name, array in family.arrays().items()},
        "offsets": _packed(family.offsets),
        "values": _packed(model.scorer.values),
        "unit": plan.score.unit,
        "threshold": None if math.isnan(model.threshold) else model.threshold,
        "exact_counts": not model.scorer.sketch.may_leave,
    }


def _packed(array: NDArray[Any]) -> dict[str, Any]:
    """Return an array in the form that JSON holds."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "base64": base64.b64encode(little.tobytes()).decode(),
    }


FORMAT = Format(
    "JSON",
    "hushtable.mjs scores rows with it in a browser or Node, and other readers can, too",
    written,
)
