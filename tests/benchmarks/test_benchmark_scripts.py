"""The benchmark scripts run through on tiny made-up data; no figure is judged here."""

import dataclasses

import common
import engines
import explain
import families
import memory
import numpy as np
import pytest
import secure_sum
import speed
import streams
from common import Rows


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    """Keep the real results."""
    monkeypatch.setattr(common, "RESULTS", tmp_path / "results")
    return tmp_path / "results"


@pytest.fixture
def folder(rng, tmp_path):
    """A tiny stand-in for cover."""
    folder = tmp_path / "data"
    folder.mkdir()
    X = rng.normal(size=(60, 2))
    X[:3] += 5.0
    np.savez(folder / "10_cover.npz", X=X, y=np.arange(60) < 3)
    return folder


def test_speed_times_everyone_and_prints_tables():
    cases = [Rows.normal(400, 2), Rows.normal(800, 2)]
    timings = speed.time_all(cases, rounds=lambda _: 2)
    assert len(timings) == len(cases) * len(speed.CONTESTANTS)
    assert all(t.fit > 0 and t.score > 0 and t.rounds == 2 for t in timings)
    table = speed.table_of_times(timings)
    assert table.count("normal 4e2 x 2") == len(speed.CONTESTANTS)
    assert "~" not in table
    assert speed.table_of_threads(timings).count("HushTable") == 2
    claims = [target.claim for target in speed.targets(timings, [])]
    assert "LSHiTables scores normal 8e2 x 2: two threads, times one" in claims


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


def test_secure_sums_are_timed_and_exact():
    timings = secure_sum.time_all(sites=4, tables=2)
    assert [(t.form, t.lost) for t in timings] == [
        ("files", 0), ("online", 0), ("online", 0), ("online", 1),
    ]  # fmt: skip
    assert all(t.exact and t.site > 0 and t.coordinator > 0 for t in timings)
    assert "equals the plain sum" in secure_sum.table(timings)
    verdicts = [t.met for t in secure_sum.targets(timings) if "equals" in t.claim]
    assert verdicts == [True] * 4
    timings[0].exact = False
    assert not secure_sum.targets(timings)[2].met


def test_windows_of_two_lengths_are_timed():
    timings = [streams.time_window(panes, rows=50, steps=3) for panes in (2, 5)]
    assert [t.panes for t in timings] == [2, 5]
    assert "new pane, ms" in streams.table(timings)
    slow = streams.Timing(9, 3 * timings[0].roll, 3 * timings[0].add, 3 * timings[0].score)
    (target,) = streams.targets([timings[0], slow])
    assert target.measured == pytest.approx(3.0)
    assert not target.met


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


def test_a_peer_that_takes_too_long_is_extrapolated_and_marked(monkeypatch):
    monkeypatch.setattr(speed, "PATIENCE", 0.0)
    few, more = Rows.normal(400, 2), Rows.normal(800, 2)
    racing = [c for c in speed.CONTESTANTS if c.name in ("HushTable", speed.PEER)]
    timings = speed.time_all([few, more], racing, rounds=lambda _: 1)
    before, after = (speed.find(timings, data.name, speed.PEER) for data in (few, more))
    assert (before.rounds, after.rounds) == (1, 0)
    assert after.score == pytest.approx(2 * before.score)
    assert speed.find(timings, more.name, "HushTable").rounds == 1
    assert "IsolationForest on normal 8e2 x 2 was not run" in speed.notes(timings)
    assert f"~{after.score:.3f}" in speed.table_of_times(timings)


def test_targets_of_speed_compare_the_right_figures():
    def timing(data, rows, detector, threads, score):
        return speed.Timing(data, rows, detector, threads, 1.0, score, 3, 0.0)

    timings = [
        timing(data, rows, detector, threads, score / threads)
        for data, rows in (("cover", 286_048), ("large", 10**6), ("larger", 10**7))
        for detector, threads, score in (
            ("LSHiTables", 1, 0.1), ("LSHiTables", 2, 0.1), ("IsolationForest", 1, 3.0),
        )
    ]  # fmt: skip
    peaks = [memory.Peak("large", "HushTable", 2, 90_000_000, 80_000_000)]
    found = {target.claim: target.measured for target in speed.targets(timings, peaks)}
    assert found["LSHiTables scores cover with one thread, times IsolationForest"] == (
        pytest.approx(30.0)
    )
    assert found["LSHiTables scores all from 1,000,000 rows on: two threads, times one"] == (
        pytest.approx(2.0)
    )
    assert found["memory beyond the input, at most (MB; HushTable on large)"] == 90.0
    assert found["the same without the returned scores, at most (MB; HushTable on large)"] == 10.0


def test_cover_is_skipped_where_it_is_not(tmp_path, monkeypatch, folder):
    monkeypatch.setenv("HUSHTABLE_DATA", str(tmp_path / "nowhere"))
    assert speed.find_cover(None) is None
    monkeypatch.setenv("HUSHTABLE_DATA", str(folder))
    assert speed.find_cover(None) == folder / "10_cover.npz"
    assert speed.find_cover(tmp_path / "mine.npz") == tmp_path / "mine.npz"


@pytest.mark.slow
@pytest.mark.skipif(not memory.can_measure(), reason="needs /proc/self/clear_refs")
def test_the_peak_includes_the_scores(folder):
    rows = 200_000
    peak = memory.in_fresh_process(Rows.normal(rows, 2), "LSHiTables", threads=2)
    assert peak.scores == 8 * rows
    assert peak.scores <= peak.beyond_input < 100_000_000
    data = dataclasses.replace(Rows.of_file(folder / "10_cover.npz"), name="cover")
    assert memory.in_fresh_process(data, "HushTable", threads=1).data == "cover"
