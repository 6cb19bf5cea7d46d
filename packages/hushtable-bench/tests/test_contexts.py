"""The case `contexts`: its tables, what is planted into them, and its methods, on small rows."""

import hashlib
import sys

import numpy as np
import pandas as pd
import pytest

from hushtable_bench import contexts
from hushtable_bench.contexts import ContextTable, PublicFiles
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


@pytest.mark.parametrize("name", contexts.METHODS)
def test_methods_give_each_row_a_score_and_ours_low_ones_where_planted(name, wards):
    rows, planted = contexts.swap(wards, seed=2)
    scores = contexts.METHODS[name](rows, 0)
    assert scores.shape == (252,)
    needed = 0.9 if name in (contexts.OURS, contexts.RESIDUAL) else 0.0
    assert auc(planted, scores) > needed


def test_a_missing_library_leaves_its_tables_out(monkeypatch, capsys):
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
    PublicFiles(tmp_path).path("NAB", "data/realKnownCause/nyc_taxi.csv")
    ((url, digest),) = asked
    assert url.startswith("https://raw.githubusercontent.com/numenta/NAB/")
    assert url.endswith("/data/realKnownCause/nyc_taxi.csv")
    assert len(digest) == len(hashlib.sha256().hexdigest())


def test_targets_are_held_only_by_full_runs(monkeypatch, tmp_path):
    found = {"5": 0.99, "10": 0.94, "all": 0.97}
    monkeypatch.setattr(contexts, "judge_sizes", lambda method, seeds: found)
    run = CaseRun("contexts", tmp_path)
    contexts.measure_groups(run, 1, quick=True)
    assert run.targets == []
    contexts.measure_groups(run, 1, quick=False)
    (target,) = run.targets
    assert (target.measured, target.met) == (0.94, False)
    assert "worst size (10)" in target.claim
    assert "| 0.940 |" in str(run.page[-2])
