"""The case `contexts`: its tables, what is planted into them, and its methods, on small rows."""

import hashlib
import sys

import numpy as np
import pandas as pd
import pytest

from hushtable_bench.cases import contexts
from hushtable_bench.cases.contexts import ContextTable, PublicFiles
from hushtable_bench.data import auc
from hushtable_bench.runner import CaseRun


@pytest.fixture
def wards():
    """Three wards that are apart, and one of twelve rows, in which columns move together."""
    rng = np.random.default_rng(0)
    ward = np.repeat(["a", "b", "c", "d"], [80, 80, 80, 12])
    level = pd.Series(ward).map({"a": 0.0, "b": 5.0, "c": 10.0, "d": 15.0}).to_numpy()
    frame = pd.DataFrame({f"x{j}": level + rng.normal(0, 0.3, len(ward)) for j in range(3)})
    return ContextTable("wards", frame.assign(ward=ward), ["ward"], ["x0", "x1", "x2"])


def test_swapped_rows_have_the_behaviour_of_another_context(wards):
    rows, planted = contexts.swap(wards, seed=1)
    assert planted.sum() == 10
    before, after = (table.frame[["x0", "x1", "x2"]].to_numpy() for table in (wards, rows))
    np.testing.assert_array_equal(before[~planted], after[~planted])
    np.testing.assert_array_equal(np.sort(before, axis=0), np.sort(after, axis=0))
    assert (np.abs(after - before)[planted] > 2.0).all()
    assert (rows.frame["ward"] == wards.frame["ward"]).all()


def test_farthest_behaviour_is_that_of_a_row(wards):
    rows, planted = contexts.song(wards, seed=1)
    assert planted.sum() == 10
    before, after = (table.frame["x0"].to_numpy() for table in (wards, rows))
    np.testing.assert_array_equal(before[~planted], after[~planted])
    assert (np.abs(after - before)[planted] > 3.0).all()
    assert set(after) <= set(before)


@pytest.mark.parametrize("name", [name for name in contexts.METHODS if name != "QCAD-like"])
def test_methods_give_each_row_a_score_and_ours_low_ones_where_planted(name, wards):
    rows, planted = contexts.swap(wards, seed=2)
    scores = contexts.METHODS[name](rows, 0)
    assert scores.shape == (252,)
    needed = 0.9 if name in (contexts.OURS, contexts.RESIDUAL) else 0.0
    assert auc(planted, scores) > needed


def test_a_missing_library_leaves_its_method_out(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "quantile_forest", None)
    assert set(contexts.METHODS) - set(contexts.available_methods()) == {"QCAD-like"}
    assert "pip install quantile-forest" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    monkeypatch.setitem(sys.modules, "statsmodels.api", None)
    (wine,) = contexts.load_tables(PublicFiles(), 100, ["grunfeld", "wine"])
    assert (wine.name, wine.frame.shape, wine.behaviour[-1]) == ("wine", (100, 14), "x12")
    assert "without grunfeld" in capsys.readouterr().err


def test_files_come_from_the_folder_or_are_fetched(tmp_path, monkeypatch):
    (tmp_path / "seaborn-data").mkdir()
    near = tmp_path / "seaborn-data" / "penguins.csv"
    near.write_text(
        "species,sex,bill_length_mm,bill_depth_mm,flipper_length_mm,body_mass_g\n"
        "Adelie,MALE,39.1,18.7,181,3750\nAdelie,,39.5,17.4,186,3800\n"
    )
    (table,) = contexts.load_tables(PublicFiles(tmp_path), 100, ["penguins"])
    assert table.frame["body_mass_g"].tolist() == [3750.0]
    asked = []
    monkeypatch.setattr(contexts, "fetch", lambda *given: asked.append(given) or near)
    PublicFiles(tmp_path).path("NAB", "labels/combined_windows.json")
    ((url, digest),) = asked
    assert url.startswith("https://raw.githubusercontent.com/numenta/NAB/")
    assert url.endswith("/labels/combined_windows.json")
    assert len(digest) == len(hashlib.sha256().hexdigest())


def test_anomalies_in_panels_are_apart_and_of_six_kinds():
    panel = contexts.synthetic_panel(0, entities=6)
    injection = contexts.PanelInjection(panel, 0)
    planted = injection.planted(often=3, long=2)
    kinds = dict(zip(*np.unique(planted.kind[planted.unusual], return_counts=True), strict=True))
    assert kinds == {
        "gap": 3, "other entity": 3, "shift": 16, "spike": 3, "stuck": 16, "wrong hour": 3,
    }  # fmt: skip
    assert len(planted.frame) == len(panel) - 3 * 4
    history = contexts.with_history(planted.frame)
    assert (history["since"].diff().abs()[planted.kind == "gap"] > 1.0).all()
    stuck = planted.frame["v"][planted.kind == "stuck"].to_numpy().reshape(2, 8)
    assert (np.ptp(stuck, axis=1) == 0.0).all()


def test_windows_of_a_series_are_its_anomalies(tmp_path):
    (tmp_path / "NAB" / "labels").mkdir(parents=True)
    (tmp_path / "NAB" / "data").mkdir()
    at = pd.date_range("2026-01-01", periods=60, freq="h")
    frame = pd.DataFrame({"timestamp": at, "value": np.arange(60)})
    frame.to_csv(tmp_path / "NAB" / "data" / "a.csv", index=False)
    (tmp_path / "NAB" / "labels" / "combined_windows.json").write_text(
        '{"a.csv": [["2026-01-01 03:00:00.000000", "2026-01-01 06:00:00.000000"]], "b.csv": []}'
    )
    ((name, series),) = contexts.windowed_series(PublicFiles(tmp_path))
    assert name == "a.csv"
    assert np.flatnonzero(series.unusual).tolist() == [3, 4, 5, 6]
    history = contexts.with_history(series.frame)
    assert contexts.panel_scores(history, "columns of history", 0).shape == (60,)


def test_targets_are_held_only_by_full_runs(monkeypatch, capsys):
    found = {"5": 0.99, "10": 0.94, "all": 0.97}
    monkeypatch.setattr(contexts, "judge_sizes", lambda method, seeds: found)
    run = CaseRun("contexts")
    contexts.measure_groups(run, 1, quick=True)
    assert run.targets == []
    contexts.measure_groups(run, 1, quick=False)
    (target,) = run.targets
    assert (target.measured, target.met) == (0.94, False)
    assert "worst size (10)" in target.claim
    assert "| 0.940 |" in capsys.readouterr().out
