"""MLflow's flavour: the .hush file, and the answers of the library."""

import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.errors import DataError, FileError, UsageError
from hushtable_connect.serving import Served
from hushtable_connect.serving import mlflow as flavor

pytestmark = [
    pytest.mark.filterwarnings("ignore:::mlflow"),
    pytest.mark.skipif(find_spec("mlflow") is None, reason="MLflow is not installed"),
]


@pytest.fixture(scope="module", autouse=True)
def imported():
    """Import MLflow for the first test: it takes seconds that collecting can do without."""
    global mlflow
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow's own
        import mlflow.pyfunc


@pytest.fixture(autouse=True)
def in_a_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({
        "age": rng.integers(18, 90, 300), "pulse": rng.normal(70, 9, 300),
        "ward": rng.choice(["north", "south"], 300),
    })  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def detector(rows):
    return HushTable(n_tables=20, random_state=0).fit(rows)


def test_a_folder_holds_the_model_and_gives_the_library_s_answers(detector, rows, tmp_path):
    flavor.save_model(detector, "model")
    assert {path.name for path in (tmp_path / "model").iterdir()} == {
        "MLmodel", "model.hush", "python_env.yaml", "requirements.txt",
    }  # fmt: skip
    loaded = mlflow.pyfunc.load_model("model")
    pd.testing.assert_frame_equal(loaded.predict(rows), Served(detector).judge(rows))
    odd = pd.DataFrame({"age": [300, 30], "pulse": [70.0, np.nan], "ward": ["north", None]})
    found = loaded.predict(odd)
    pd.testing.assert_frame_equal(found, Served(detector).judge(odd))
    assert found["outlier"].tolist()[0]
    assert "age 300" in found["reasons"][0]
    own = flavor.load_model("model")
    np.testing.assert_array_equal(own.score_samples(rows), detector.score_samples(rows))
    assert loaded.get_raw_model().offset_ == detector.offset_
    with pytest.raises(mlflow.exceptions.MlflowException, match=r"missing inputs \['ward'\]"):
        loaded.predict(rows[["age", "pulse"]])
    with pytest.raises(DataError, match="'fast' in row 0 is not a number"):
        loaded.predict(odd.assign(pulse="fast"))


def test_merged_releases_are_a_model_and_the_description_says_so(rows):
    pytest.importorskip("opendp", reason="releases need OpenDP")
    schema = Schema([Feature.numeric("age", low=18, high=90)])
    counts = Sketch.from_data(Plan.draw(schema, n_tables=20, random_state=0), rows[["age"]])
    for folder, model in [("counts", counts), ("release", counts.release(epsilon=2.0))]:
        flavor.save_model(model, folder, metadata={"owner": "ward north"})
        loaded = mlflow.pyfunc.load_model(folder)
        assert loaded.metadata.metadata == {"owner": "ward north"}
        assert loaded.metadata.flavors["hushtable"]["exact_counts"] == (folder == "counts")
        found = loaded.predict(rows[["age"]])
        pd.testing.assert_frame_equal(found, Served(model).judge(rows[["age"]]))


def test_arrays_need_no_names():
    X = np.random.default_rng(0).normal(size=(200, 3))
    detector = HushTable(n_tables=20, random_state=0).fit(X)
    flavor.save_model(detector, "model")
    found = mlflow.pyfunc.load_model("model").predict(X)
    np.testing.assert_array_equal(found["score"], detector.score_samples(X))


def test_a_run_logs_the_model(detector, rows, tmp_path, monkeypatch):
    # A folder as the store: one in SQLite needs all of MLflow.
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())
    with mlflow.start_run():
        info = flavor.log_model(detector, "odd-patients")
    found = mlflow.pyfunc.load_model(info.model_uri).predict(rows)
    np.testing.assert_array_equal(found["score"], detector.score_samples(rows))
    own = flavor.load_model(info.model_uri)
    np.testing.assert_array_equal(own.score_samples(rows), detector.score_samples(rows))


def test_what_is_refused(detector, rows, tmp_path):
    with pytest.raises(UsageError, match="is not a model"):
        flavor.save_model(detector.plan_, "model")
    with pytest.raises(UsageError, match="would put rows of data in the registry"):
        flavor.log_model(detector, "model", input_example=rows.head(2))
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "notes.txt").write_text("kept")
    with pytest.raises(UsageError, match="already exists"):
        flavor.save_model(detector, "there")
    flavor.save_model(detector, "model")
    file = tmp_path / "model" / "model.hush"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(FileError):
        mlflow.pyfunc.load_model("model")
