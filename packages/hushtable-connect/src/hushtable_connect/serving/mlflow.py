"""MLflow flavour: a model in a registry, and the same results from ``mlflow.pyfunc``.

The registry keeps the .hush file, which is not a pickle: nothing in it is executed. A detector's
file holds exact counts, so protect a registry that holds one like the rows. The file of a release
may be passed on.
"""

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hushtable.data.schema import Schema
from hushtable.errors import MissingExtraError, UsageError
from hushtable_connect.engines.work import counts_of
from hushtable_connect.serving.served import Served

__all__ = ["FLAVOR_NAME", "load_model", "log_model", "save_model"]

FLAVOR_NAME = "hushtable"
#: The model's file, in the folder that MLflow keeps.
_FILE = "model.hush"


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    mlflow_model: Any = None,
    signature: Any = None,
    metadata: dict[str, Any] | None = None,
    pip_requirements: list[str] | None = None,
) -> None:
    """Write a model as a folder that MLflow loads.

    Parameters
    ----------
    model : detector, Sketch or Release
        A fitted detector, or merged counts to score by.
    path : path
        The folder, which must be empty or not exist.
    mlflow_model : mlflow.models.Model, optional
        The model to add the flavour to; MLflow passes it.
    signature : mlflow.models.ModelSignature, optional
        Default: the model's columns, if they have names; each is required and may hold nulls.
    metadata : dict, optional
        Entries for the model's description.
    pip_requirements : list of str, optional
        Default: this version of hushtable, with the extra ``mlflow``.

    Raises
    ------
    UsageError
        If this is no model, or the folder holds something.
    MissingExtraError
        If MLflow is not installed.

    Examples
    --------
    >>> import mlflow.pyfunc, pandas
    >>> from hushtable import HushTable
    >>> from hushtable_connect.serving.mlflow import save_model
    >>> rows = pandas.DataFrame({"pulse": [60.0 + i % 40 for i in range(200)]})
    >>> save_model(HushTable(random_state=0).fit(rows), "model")
    >>> odd = pandas.DataFrame({"pulse": [190.0]})
    >>> mlflow.pyfunc.load_model("model").predict(odd)["reasons"][0]
    'pulse 190, usually 61 to 97: beyond the range of 60 to 99'
    """
    mlflow, folder = _mlflow(), Path(path)
    counts = counts_of(model)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} already exists: give a folder that is empty or does not exist")
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / _FILE)
    about = mlflow.models.Model() if mlflow_model is None else mlflow_model
    about.signature = signature or _signature(mlflow, counts.plan.schema) or about.signature
    if metadata is not None:
        about.metadata = metadata
    mlflow.pyfunc.add_to_model(
        about, loader_module=__name__, data=_FILE, python_env="python_env.yaml"
    )
    kept = {"data": _FILE, "plan_id": counts.plan_id, "exact_counts": not counts.may_leave}
    about.add_flavor(FLAVOR_NAME, hushtable_version=version("hushtable"), **kept)
    about.save(str(folder / "MLmodel"))
    needed = pip_requirements or [f"hushtable[mlflow]=={version('hushtable')}"]
    (folder / "requirements.txt").write_text("\n".join(needed) + "\n")
    mlflow.utils.environment._PythonEnv.current().to_yaml(str(folder / "python_env.yaml"))


def log_model(model: Any, name: str, **options: Any) -> Any:
    """Write a model to the tracking server of the active MLflow run.

    Parameters
    ----------
    model : detector, Sketch or Release
        A fitted detector, or merged counts to score by.
    name : str
        The model's name in the run.
    **options
        Options of `save_model` and of ``mlflow.models.Model.log``, such as
        ``registered_model_name``.

    Returns
    -------
    mlflow.models.model.ModelInfo

    Raises
    ------
    UsageError
        If this is not a model, or if ``input_example`` is given, which would put rows in the
        registry.
    MissingExtraError
        If MLflow is not installed.
    """
    if "input_example" in options:
        raise UsageError("input_example would put rows of data in the registry: leave it out")
    counts_of(model)
    flavor = sys.modules[__name__]
    return _mlflow().models.Model.log(
        artifact_path=None, flavor=flavor, name=name, model=model, **options
    )


def load_model(model_uri: str, dst_path: str | None = None) -> Any:
    """Read the model itself, as `hushtable.load` returns it.

    Parameters
    ----------
    model_uri : str
        A folder, or a URI of MLflow: ``runs:/...``, ``models:/...``.
    dst_path : str, optional
        The folder for a copy.

    Returns
    -------
    fitted detector
        For merged counts, the detector that scores by them.

    Raises
    ------
    FileError
        If the file in the folder is not intact.
    MissingExtraError
        If MLflow is not installed.

    Examples
    --------
    >>> import pandas
    >>> from hushtable import HushTable
    >>> from hushtable_connect.serving.mlflow import load_model, save_model
    >>> rows = pandas.DataFrame({"pulse": [60.0 + i % 40 for i in range(200)]})
    >>> save_model(HushTable(random_state=0).fit(rows), "model")
    >>> type(load_model("model")).__name__
    'HushTable'
    """
    folder = _mlflow().artifacts.download_artifacts(artifact_uri=model_uri, dst_path=dst_path)
    return Served.load(Path(folder) / _FILE).detector


class _Answering:
    """A model in the form that ``mlflow.pyfunc`` calls."""

    def __init__(self, served: Served) -> None:
        self.served = served

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """Return the data frame of `Served.judge`; for an array, a data frame of pandas."""
        found = self.served.judge(model_input)
        return found.to_pandas() if hasattr(found, "to_pylist") else found

    def get_raw_model(self) -> Any:
        """Return the detector."""
        return self.served.detector


def _load_pyfunc(path: str) -> _Answering:
    return _Answering(Served.load(path))


def _signature(mlflow: Any, schema: Schema) -> Any:
    """Return the columns that a model takes and returns, if they have names."""
    if not schema.named:
        return None
    types = mlflow.types.schema
    # Any type: the library checks values itself, and MLflow would refuse int64 for a double.
    inputs = [types.ColSpec(types.AnyType(), name) for name in schema.of_rows.names]
    kinds = {"row": "long", "severity": "double", "outlier": "boolean", "score": "double"}
    kinds |= {"reasons": "string", "outside": "string"}
    outputs = [types.ColSpec(kind, name, required=False) for name, kind in kinds.items()]
    return mlflow.models.ModelSignature(types.Schema(inputs), types.Schema(outputs))


def _mlflow() -> Any:
    try:
        import mlflow
        import mlflow.models
        import mlflow.pyfunc
        import mlflow.types.schema
        import mlflow.utils.environment
    except ImportError:
        raise MissingExtraError("this flavour", "MLflow", "mlflow") from None
    return mlflow
