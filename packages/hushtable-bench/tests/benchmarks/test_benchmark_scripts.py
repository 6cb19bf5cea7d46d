"""The benchmark scripts run through on tiny made-up data; no figure is judged here."""

import argparse
import json

import numpy as np
import pytest

import engines
import explain
import exports
import exports_sql
import families
import folder
import load
import ranks
import rows
import secure_sum
import streams
from common import Rows
from hushtable.errors import DataError


@pytest.mark.slow
def test_families_are_timed_beside_their_peers():
    timings = families.time_all([Rows.normal(300, 3)], repeats=1)
    assert [t.detector for t in timings] == [make.__name__ for make in families.DETECTORS]
    assert [t.product > 0 for t in timings] == [False, False, True, True]
    assert "normal 3e2 x 3" in families.table(timings)
    made_up = [
        families.Timing("c", "LSHiTables", 1.0, 1.0, 1.0, 0.0),
        families.Timing("c", "RSHash", 3.0, 1.0, 5.0, 0.0),
        families.Timing("c", "ACE", 9.0, 1.0, 3.0, 2.0),
    ]
    assert [t.measured for t in families.targets(made_up)] == pytest.approx([4.0, 1.5])


@pytest.mark.slow
def test_exports_are_timed_and_give_the_same_scores():
    timings = exports.time_all(rows=20, repeats=1, n_fitted=300)
    of_javascript = [t.detector for t in timings if t.runtime == "JavaScript"]
    assert of_javascript in ([], list(exports.DETECTORS))
    assert [t.runtime for t in timings].count("hushtable") == len(exports.DETECTORS)
    assert all(t.many > 0 and t.one > 0 for t in timings)
    assert "HushTable, two passes | hushtable" in exports.table(timings)
    assert all(t.met for t in exports.targets(timings))
    made_up = [exports.Timing("c", "JavaScript", 1.0, 1.0, 1e-9)]
    assert not exports.targets(made_up)[0].met


@pytest.mark.slow
def test_statements_are_timed_and_give_the_same_scores():
    ours, *engines_ = exports_sql.time_one("LSHiTables", 3, 20)
    assert (ours.engine, ours.megabytes) == ("hushtable", 0.0)
    assert {t.engine for t in engines_} <= set(exports_sql.ENGINES)
    assert all(t.apart == 0 and t.megabytes > 0 and t.ready > 0 for t in engines_)


@pytest.mark.slow
def test_secure_sums_are_timed_and_exact():
    timings = secure_sum.time_all(sites=[4], tables=2)
    assert [(t.form, t.lost) for t in timings] == [
        ("files", 0), ("online", 0), ("online", 0), ("online", 1),
    ]  # fmt: skip
    assert all(t.exact and t.site > 0 and t.coordinator > 0 for t in timings)
    assert "equals the plain sum" in secure_sum.table(timings)
    verdicts = [t.met for t in secure_sum.targets(timings) if "equals" in t.claim]
    assert verdicts == [True] * 4
    timings[0].exact = False
    assert not secure_sum.targets(timings)[3].met


@pytest.mark.slow
def test_rounds_in_a_folder_are_timed_and_exact():
    timings = folder.time_all(sites=4, tables=2)
    assert [(t.lost, t.visits) for t in timings] == [(0, 2), (1, 3)]
    assert all(t.exact and t.site > 0 and t.sent > t.masked and t.read > 0 for t in timings)
    assert "equals the plain sum" in folder.table(timings)
    timings[1].visits = 4
    met = [t.met for t in folder.targets(timings) if "visits" in t.claim]
    assert met == [True, False]


def test_windows_of_two_lengths_are_timed():
    timings = [streams.time_window(panes, rows=50, steps=3) for panes in (2, 5)]
    assert [t.panes for t in timings] == [2, 5]
    assert "new pane, ms" in streams.table(timings)
    slow = streams.Timing(9, 3 * timings[0].roll, 3 * timings[0].add, 3 * timings[0].score)
    (target,) = streams.targets([timings[0], slow])
    assert target.measured == pytest.approx(3.0)
    assert not target.met


@pytest.mark.slow
def test_guilty_features_are_judged_and_timed():
    guilty = np.zeros((3, explain.COLUMNS), bool)
    guilty[0, 0] = guilty[1, :2] = guilty[2, :3] = True
    blame = np.tile(-np.arange(explain.COLUMNS, dtype=float), (3, 1))
    blame[1, 1] = -99.0  # one of two is missed
    found = explain.judge("far", explain.OURS, guilty, blame)
    assert (found.on_top, found.by_k) == (pytest.approx(2 / 3), (1.0, 0.0, 1.0))
    assert found.precision == pytest.approx(2.5 / 3)
    planted = explain.plant("impossible", seed=0, rows=2000)
    assert planted.guilty.sum(axis=1).min() >= 1
    assert planted.guilty.sum(axis=1).max() <= 3
    ours = {name: explain.METHODS[name] for name in (explain.OURS, explain.PRIVATE)}
    everything = explain.find_guilty(ours, seeds=1, rows=2000)
    assert len(everything) == 2 * len(explain.VARIANTS)
    assert "impossible" in explain.table_of_found(everything)
    timings = [explain.Timing(explain.OURS, 1.0, 6.0, 6.0)]
    assert [target.met for target in explain.targets(everything, timings)][2] is False
    assert "6.0" in explain.table_of_times(timings)


@pytest.mark.skipif(not load.can_measure(), reason="needs /proc/self/status")
@pytest.mark.parametrize("name", load.LOADS)
def test_loads_are_held_and_checked(name, tmp_path, monkeypatch):
    monkeypatch.setattr(load, "BLOCK", 2000)
    monkeypatch.setattr(load, "WIDE", 1000)
    size = {"stream": 6000, "window": 30_000, "categories": 500, "features": 50}.get(name, 5)
    place = load.prepared(name, size, True, tmp_path)
    held = load.LOADS[name].run(size, place)
    assert held.right
    assert held.size == size
    assert held.peak > 50e6
    if name in ("merge", "collect"):  # a result that is not the sum is seen
        for expected in place.glob("*.npy"):
            np.save(expected, np.load(expected) + 1)
        assert not load.LOADS[name].run(size, place).right


def test_loads_are_judged():
    found = [load.Held("stream", 10, 1.0, 10**8, True), load.Held("stream", 100, 9.0, 10**9, False)]
    assert "WRONG" in load.table(found)
    assert [t.measured for t in load.targets(found)] == [1, 900]
    assert [t.met for t in load.targets(found)] == [False, False]


@pytest.mark.slow
@pytest.mark.skipif(not load.can_measure(), reason="needs /proc/self/status")
def test_a_load_runs_in_a_fresh_process():
    found = list(load.hold_all(quick=True, names=("merge", "files")))
    assert [held.size for held in found] == [2, 4, 10, 20]
    assert all(held.right for held in found)
    assert all(target.met for target in load.targets(found))


@pytest.mark.serial
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of a cluster that starts and stops
def test_engines_are_timed_on_the_same_files(tmp_path):
    engines.write_files(tmp_path, rows=20_000)
    timings = engines.time_all(tmp_path, rounds=1)
    assert [t.name for t in timings] == ["reading", "1 thread", "2 threads", "Dask, 2 workers"]
    assert all(t.seconds > 0 for t in timings)
    assert [t.peak > 50e6 for t in timings] == [False, True, True, False]
    assert "times reading" in engines.table(timings, 20_000)
    assert len(engines.targets(timings)) == 3


@pytest.mark.slow
def test_ranks_and_standard_errors_are_judged():
    X = np.random.default_rng(0).normal(size=(300, 3))
    ratio, lowest, same = ranks.spread("HushTable, 100", X, seeds=3)
    assert 0.0 < ratio < 2.0
    assert 0.0 < lowest < 3.0
    assert 0.0 <= same <= 1.0
    exact, released = ranks.rank_errors("made up", X, seeds=1)
    assert (exact[1], released[1]) == ("no", "epsilon 1 in all")
    assert all(float(error.rstrip("%")) < 2.0 for error in exact[2:])


@pytest.mark.slow
def test_the_cost_of_privacy_is_paired_by_rows(tmp_path, results, capsys, monkeypatch, rng):
    X = rng.normal(size=(400, 3))
    X[:20] += 4.0
    for name, n in (("one", 400), ("other", 200), ("small", 100)):
        np.savez(tmp_path / f"{name}.npz", X=X[:n], y=np.arange(n) < 20)
    monkeypatch.setattr(rows, "LARGE", 200)
    monkeypatch.setattr(rows, "ROWS", (200, 400))
    for name in ("EPSILONS", "PRIVATE", "QUIET"):
        monkeypatch.setattr(rows, name, getattr(rows, name)[:1])
    assert rows.main(argparse.Namespace(data=tmp_path, seeds=1, quick=False)) == 0
    printed = capsys.readouterr().out
    assert printed.count("| 200  |    2 |") == printed.count("| 400  |    1 |") == 3
    assert "- Sets from 200 rows on: one, other\n- Sets from 400 rows on: one\n" in printed
    kept = json.loads((results / "rows.json").read_text())["runs"]
    assert len(kept) == 3 * 4
    assert all(0.0 <= run["auc"] <= 100.0 for run in kept)
    some = rows.some_rows(rows.common.load(tmp_path / "one.npz"), 40, seed=0)
    assert (len(some.X), some.y.sum()) == (40, 2)
    monkeypatch.setattr(rows, "LARGE", 401)
    with pytest.raises(DataError, match="no labelled set of 401 rows"):
        rows.main(argparse.Namespace(data=tmp_path, seeds=1, quick=False))


def test_losses_are_those_of_pairs():
    values = {"default fit": 90.0, "one pass, no noise": 88.0}
    values |= dict.fromkeys(rows.PRIVATE, 80.0) | dict.fromkeys(rows.QUIET, 83.0)
    runs = [
        rows.Run(data, 1000, way, seed, value + more)
        for data, more in (("a", 0.0), ("b", 5.0))
        for way, value in values.items()
        for seed in range(2)
    ]
    means, lost, noise = [rows.tables(runs).split("\n\n")[i].splitlines()[-1] for i in (1, 3, 5)]
    assert means.split("|")[3:5] == ["        92.5 ", "               90.5 "]
    assert lost.count("10.0 ± 0.0") == noise.count("3.0 ± 0.0") == len(rows.EPSILONS)
    assert "2.0 ± 0.0" in lost


@pytest.mark.serial
@pytest.mark.slow
@pytest.mark.skipif(not load.can_measure(), reason="needs /proc/self/status")
def test_memory_does_not_grow_with_the_rows():
    """Two million rows more are 80 MB as they are read: nothing of them stays."""
    found = list(load.hold_all(True, ["stream", "window"]))
    assert [target.met for target in load.targets(found)] == [True, True, True]
