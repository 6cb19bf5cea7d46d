"""Detectors in scikit-learn pipelines, converted by skl2onnx."""

import numpy as np
import pytest

pytest.importorskip("skl2onnx", reason="converts pipelines")
pytest.importorskip("onnxruntime", reason="runs ONNX models")

import skl2onnx
from skl2onnx.common.data_types import DoubleTensorType, StringTensorType
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import scored
from hushtable import HushTable, LSHiTables
from hushtable.errors import UsageError
from onnx_runs import fed, session

# Some of the hostile categories are words for a missing value.
pytestmark = pytest.mark.filterwarnings("ignore:(?s).*mean that the value is missing")


@pytest.mark.parametrize("make", [HushTable, LSHiTables])
def test_a_pipeline_scores_as_in_scikit_learn(rng, make):
    X = rng.normal(50.0, 20.0, size=(500, 5))
    pipeline = make_pipeline(StandardScaler(), make(random_state=0)).fit(X)
    model = skl2onnx.to_onnx(pipeline, X[:1])
    label, scores = session(model).run(["label", "scores"], {"X": X})
    assert label.shape == scores.shape == (500, 1)
    assert (scores[:, 0] == pipeline.decision_function(X)).all()
    assert (label[:, 0] == pipeline.predict(X)).all()


def test_columns_of_numbers_and_texts_are_taken_one_by_one():
    case = scored.mixed("two passes")
    schema = case.detector.plan_.schema
    kinds = {"numeric": DoubleTensorType, "categorical": StringTensorType}
    types = [(f.name, kinds[f.kind]([None, 1])) for f in schema.features]
    model = skl2onnx.to_onnx(case.detector, initial_types=types)
    rows = dict(
        zip([one.name for one in model.graph.input], fed(schema, case.rows).values(), strict=True)
    )
    scores = session(model).run(["scores"], rows)[0]
    assert (scores[:, 0] == case.scores - case.detector.offset_).all()


def test_single_precision_is_taken_as_it_comes(rng):
    X = rng.normal(size=(200, 3)).astype(np.float32)
    detector = HushTable(random_state=0).fit(X)
    scores = session(skl2onnx.to_onnx(detector, X[:1])).run(["scores"], {"X": X})[0]
    assert (scores[:, 0] == detector.decision_function(X)).all()


def test_what_cannot_be_converted_is_said(rng):
    X = rng.normal(size=(200, 3))
    detector = HushTable(random_state=0).fit(X)
    with pytest.raises(UsageError, match="target_opset=15: needs 18 or more"):
        skl2onnx.to_onnx(detector, X[:1], target_opset=15)
    with pytest.raises(UsageError, match="inputs of 2 columns: needs 3, the features of the model"):
        skl2onnx.to_onnx(detector, X[:1, :2])
    with pytest.raises(UsageError, match=r"holds .*: needs separate inputs for numbers"):
        skl2onnx.to_onnx(detector, initial_types=[("X", StringTensorType([None, 3]))])
    with pytest.raises(UsageError, match="with a known number of columns"):
        skl2onnx.to_onnx(detector, initial_types=[("X", DoubleTensorType([None, None]))])
    detector.offset_ = float("nan")
    with pytest.raises(UsageError, match="call set_threshold first"):
        skl2onnx.to_onnx(detector, X[:1])
