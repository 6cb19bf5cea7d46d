"""What was removed is refused with what to do instead."""

import importlib

import pytest

from hushtable.cli import main


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [
        ("hushtable", "EnsembleKNN", "NeighbourEnsemble"),
        ("hushtable", "PyODAdapter", r"hushtable\[pyod\].*hushtable_connect.pyod"),
        ("hushtable.detectors", "PyODAdapter", "hushtable_connect.pyod"),
        ("hushtable_connect.engines", "sketch_of", "sketch_data"),
        ("hushtable_connect.engines.dask", "score_files", "hushtable score"),
        ("hushtable_connect.engines.spark", "register_score", "score_data"),
    ],
)
def test_a_removed_name_is_refused(module, name, words):
    with pytest.raises(ImportError, match=f"{module}.{name} was removed: .*{words}"):
        exec(f"from {module} import {name}")
    with pytest.raises(ImportError, match=f"{module}.{name} was removed"):
        getattr(importlib.import_module(module), name)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("hushtable.detectors.pyod", "hushtable_connect.pyod"),
        ("hushtable_connect.joins", "query of DuckDB or PostgreSQL"),
        ("hushtable.audit", "hushtable_bench.systems"),
        ("hushtable.scores.candidates", "Finding"),
        ("hushtable_connect.serving.mlflow", "recipe for MLflow"),
        ("hushtable_connect.engines.duckdb", "hushtable export"),
        ("hushtable_connect.exports.skl2onnx", "to_onnx"),
    ],
)
def test_a_removed_module_is_refused(module, words):
    with pytest.raises(ImportError, match=f"was removed: .*{words}"):
        importlib.import_module(module)


@pytest.mark.parametrize("module", ["hushtable.none", "hushtable_connect.none"])
def test_a_module_that_never_was_is_not_found(module):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(module)


def test_the_option_join_is_refused(capsys):
    asked = ["score", "patients.csv", "--join", "visits.csv on patient: count", "-o", "s.csv"]
    assert main(asked) == 2
    assert "score --join was removed: join the tables in a query" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["rows.rds", "rows.RData"])
def test_a_file_of_r_is_refused(tmp_path, capsys, name):
    path = tmp_path / name
    path.write_bytes(b"X\n\0\0\0\3")
    assert main(["check", str(path)]) == 1
    assert "R data file, which is not read: in R, save" in " ".join(capsys.readouterr().err.split())
