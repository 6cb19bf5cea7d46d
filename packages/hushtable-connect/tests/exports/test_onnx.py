"""Models as ONNX graphs, in onnxruntime, score as the library does."""

import sys

import numpy as np
import pytest

pytest.importorskip("onnx", reason="writes ONNX models")
pytest.importorskip("onnxruntime", reason="runs ONNX models")

import onnx
import pyarrow as pa

import scored
from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.errors import MissingExtraError, UsageError
from hushtable_connect.exports import Model
from hushtable_connect.exports.onnx import onnx_model, to_onnx
from onnx_runs import fed, session

# Some of the hostile categories are words for a missing value.
pytestmark = pytest.mark.filterwarnings("ignore:(?s).*mean that the value is missing")


def check_same(case):
    """Check that scores are the same bits, and labels the same, in one batch and row by row."""
    run = session(onnx_model(Model.of(case.detector)))
    rows = fed(case.detector.plan_.schema, case.rows)
    score, label = run.run(["score", "label"], rows)
    assert score.dtype == np.float64
    assert (score == case.scores).all()
    assert (label == case.detector.predict(case.rows)).all()
    for i in range(0, len(score), 97):
        one = {name: column[i : i + 1] for name, column in rows.items()}
        assert run.run(["score"], one)[0].tolist() == [case.scores[i]]


#: Detectors whose tables have an export.
EXPORTED = [*scored.DETECTORS, "novelty"]
SCHEMA = Schema((Feature.numeric("x", low=0, high=9), Feature.categorical("ward", ["a", ""])))


def counted(schema=SCHEMA, n=200):
    """Return a detector of counts under a plan that was drawn for a schema."""
    rng = np.random.default_rng(5)
    rows = {
        f.name: rng.uniform(f.low, f.high, n)
        if f.kind == "numeric"
        else rng.choice(f.categories, n)
        for f in schema.features
    }
    plan = Plan.draw(schema, random_state=7)
    return HushTable.from_counts(Sketch.from_data(plan, pa.table(rows)))


def test_a_missing_value_scores_as_the_usual_one():
    check_same(scored.usual())


@pytest.mark.parametrize("detector", EXPORTED)
def test_scores_of_numbers_and_categories_are_the_same_bits(detector):
    check_same(scored.mixed(detector))


@pytest.mark.parametrize("detector", scored.DETECTORS)
@pytest.mark.parametrize(
    ("name", "most"),
    [(name, 500) for name in scored.SETS[:2]]
    + [pytest.param(name, 5_000, marks=pytest.mark.slow) for name in scored.SETS],
)
def test_scores_of_labelled_sets_are_the_same_bits(data_dir, name, most, detector):
    check_same(scored.of_set(data_dir, name, detector, most))


def test_there_may_be_categories_only():
    model = counted(Schema([Feature.categorical(name, ["a", "b"]) for name in "pq"]))
    rows = pa.table({"p": ["a", "b", None, "c"], "q": ["b", "b", "a", None]})
    score = session(to_onnx(model)).run(["score"], fed(model.plan_.schema, rows))[0]
    assert (score == model.score_samples(rows)).all()


@pytest.mark.parametrize(("high", "step"), [(65280.001, 1.0), (1.000000001, 1e-5), (1e-47, 1e-52)])
def test_constants_that_are_one_or_zero_in_float32_count(high, step, rng):
    """Of one feature, they have one element: onnxruntime drops x * 1, x / 1 and x - 0."""
    x = pa.table({"x": rng.integers(-9_000, 150_000, 5_000) * step})
    schema = Schema([Feature.numeric("x", low=0, high=high)])
    for novelty in (False, True):
        detector = HushTable(passes=1, novelty=novelty, random_state=0).fit(x, schema=schema)
        score, label = session(to_onnx(detector)).run(None, fed(schema, x))
        assert (score == detector.score_samples(x)).all()
        assert (label == detector.predict(x)).all()


def test_verdicts_that_were_learned_count(rng):
    X = rng.normal(size=(300, 3))
    detector = HushTable(random_state=0).fit(X)
    before = detector.score_samples(X)
    detector.learn(X[:4], [1, 1, 0, 0])
    score = session(to_onnx(detector)).run(["score"], {"X": X})[0]
    assert (score == detector.score_samples(X)).all()
    assert (score != before).any()


def test_an_infinity_has_no_score_and_is_an_outlier(rng):
    X = rng.normal(size=(300, 2))
    detector = HushTable(random_state=0).fit(X)
    odd = np.array([[np.inf, 0.0], [0.0, -np.inf], X[0]])
    score, label = session(to_onnx(detector)).run(None, {"X": odd})
    assert np.isnan(score).tolist() == [True, True, False]
    assert label[:2].tolist() == [-1, -1]


def test_without_a_threshold_there_are_no_labels():
    model = onnx_model(Model(counted()._scorer, float("nan")), missing="?")
    assert [one.name for one in model.graph.output] == ["score"]


def test_features_may_have_the_names_of_outputs_and_of_nodes():
    names = ["score", "label", "Gather_9", "c_7", "X", "label_"]
    detector = counted(Schema([Feature.numeric(name, low=0, high=1) for name in names]))
    model = to_onnx(detector)
    assert [one.name for one in model.graph.output] == ["score_", "label__"]
    rows = pa.table(dict(zip(names, np.random.default_rng(0).random((6, 50)), strict=True)))
    score = session(model).run(["score_"], fed(detector.plan_.schema, rows))[0]
    assert (score == detector.score_samples(rows)).all()


def test_a_category_does_not_stand_for_a_missing_value():
    detector = counted()
    with pytest.raises(UsageError, match=r"'' .* category of 'ward'.* missing="):
        to_onnx(detector)
    rows = pa.table({"x": [1.0, 2.0, 3.0], "ward": ["", None, "?"]})
    run = session(to_onnx(detector.sketch_, missing="none"))
    score = run.run(["score"], fed(SCHEMA, rows, "none"))[0]
    assert (score == detector.score_samples(rows)).all()
    assert run.get_modelmeta().custom_metadata_map["hushtable.missing"] == "none"


@pytest.mark.parametrize("detector", ["rs_hash", "rotated_rs_hash", "ace"])
def test_other_families_are_refused(detector):
    with pytest.raises(UsageError, match=r"ONNX needs HushTable or LSHiTables.*export to JSON"):
        to_onnx(scored.mixed(detector).detector)


def test_an_onnx_package_that_is_too_old_is_named(monkeypatch):
    detector = counted(Schema([Feature.numeric("x", low=0, high=1)]))
    monkeypatch.setattr(onnx.defs, "onnx_opset_version", lambda: 17)
    with pytest.raises(
        UsageError, match=r"opset 17 at most: needs 18; run pip install --upgrade onnx"
    ):
        to_onnx(detector)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'hushtable\[onnx\]'"):
        to_onnx(detector)


def test_a_model_asks_for_opset_18_and_no_more(rng):
    model = to_onnx(HushTable(random_state=0).fit(rng.normal(size=(50, 2))))
    assert {one.domain: one.version for one in model.opset_import} == {"": 18, "ai.onnx.ml": 2}
    assert model.ir_version == 8
