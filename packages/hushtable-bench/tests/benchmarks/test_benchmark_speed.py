"""The scripts of speed run through on tiny made-up data; no figure is judged here."""

import argparse
import dataclasses
import json
import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import contestants
import first_use
import floor
import latency
import memory
import passes
import review
import scaling
import serving
import speed
import threads
from common import Rows
from contestants import CONTESTANTS, PEER, Contestant
from floor import Machine
from hushtable import HushTable, LSHiTables
from hushtable.data.readers import as_reader
from hushtable.plans.families.random_feature import JoinedTables

RACING, ABSENT = contestants.installed()
MACHINE = Machine(copying=4e10, clock=1e9, lanes=32)

# --- the race -------------------------------------------------------------------------------


@pytest.mark.serial
@pytest.mark.slow
def test_everyone_is_timed_in_one_run():
    cases = [Rows.normal(400, 2), Rows.normal(800, 2)]
    timings = speed.time_all(cases, RACING, rounds=lambda _: 2)
    assert len(timings) == len(cases) * len(RACING)
    assert all(t.fit > 0 and t.score > 0 and t.rounds == 2 for t in timings)
    table = speed.table_of_times(timings)
    assert table.count("normal 4e2 x 2") == len(RACING)
    assert "~" not in table
    assert speed.notes(timings).count("\n") == 0


def test_a_contestant_that_used_up_its_time_leaves_the_race():
    racing = [c for c in RACING if c.name in ("HushTable", PEER)]
    timings = speed.time_all([Rows.normal(400, 2)], racing, rounds=lambda _: 3, budget=0.0)
    assert [t.rounds for t in timings] == [1] * len(racing)


def test_a_peer_that_takes_too_long_is_extrapolated_and_marked(monkeypatch):
    monkeypatch.setattr(speed, "PATIENCE", 0.0)
    few, more = Rows.normal(400, 2), Rows.normal(800, 2)
    racing = [c for c in RACING if c.name in ("HushTable", PEER)]
    timings = speed.time_all([few, more], racing, rounds=lambda _: 1)
    before, after = (speed.find(timings, data.name, PEER) for data in (few, more))
    assert (before.rounds, after.rounds) == (1, 0)
    assert after.score == pytest.approx(2 * before.score)
    assert speed.find(timings, more.name, "HushTable").rounds == 1
    assert "IsolationForest on normal 8e2 x 2 was not run" in speed.notes(timings)
    assert f"~{after.score:.4f}" in speed.table_of_times(timings)


def test_a_peer_that_is_not_installed_is_left_out_with_a_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "coniferest.isoforest", None)
    present, absent = contestants.installed()
    assert "coniferest" not in {c.name for c in present}
    assert {c.name for c in CONTESTANTS if not c.is_peer} <= {c.name for c in present}
    assert any(line.startswith("coniferest: skipped, ") for line in absent)


def test_rows_reach_a_contestant_in_the_type_that_it_reads():
    seen = []

    class Reads:
        def fit(self, X):
            seen.append(X.dtype)

        def score_samples(self, X):
            return np.zeros(len(X))

    racing = [Contestant(str(dtype), Reads, dtype=dtype) for dtype in (np.float32, np.float64)]
    speed.time_all([Rows.normal(50, 2)], racing, rounds=lambda _: 1)
    assert seen == [np.float32, np.float64] * 2  # once to warm up


def test_targets_on_cover_compare_the_right_figures():
    def timing(detector, m, fit, score):
        return speed.Timing("cover", 286_048, detector, m, fit, score, 3)

    timings = [
        timing("LSHiTables", 100, 0.01, 0.01), timing("LSHiTables", 400, 0.04, 0.04),
        timing("HushTable", 100, 0.05, 0.02), timing(PEER, 100, 0.2, 0.5),
        timing("HBOS", 0, 0.06, 0.04),
    ]  # fmt: skip
    peaks = [memory.Peak("large", "HushTable", 2, 90_000_000, 80_000_000)]
    found = {target.claim: target.measured for target in speed.targets(timings, peaks)}
    assert found == pytest.approx({
        f"LSHiTables, cover, one thread: score, times {PEER}": 50.0,
        "LSHiTables, cover, one thread: score, times HBOS": 4.0,
        f"LSHiTables, cover, one thread: fit, times {PEER}": 20.0,
        f"HushTable, cover, one thread: score, times {PEER}": 25.0,
        "memory beyond the input, at most (MB; HushTable on large)": 90.0,
        "the same without the returned scores, at most (MB; HushTable on large)": 10.0,
    })  # fmt: skip


def test_cover_is_skipped_where_it_is_not(tmp_path, monkeypatch, cover):
    monkeypatch.setenv("HUSHTABLE_DATA", str(tmp_path / "nowhere"))
    assert speed.find_cover(None) is None
    monkeypatch.setenv("HUSHTABLE_DATA", str(cover.parent))
    assert speed.find_cover(None) == cover
    assert speed.find_cover(tmp_path / "mine.npz") == tmp_path / "mine.npz"


@pytest.mark.serial
@pytest.mark.slow
def test_the_whole_race_prints_its_tables_and_keeps_its_figures(
    capsys, monkeypatch, cover, results
):
    monkeypatch.setattr(speed, "QUICK_SIZES", [(300, 2)])
    monkeypatch.setattr(speed, "QUICK_THREAD_SIZES", [(300, 2)])
    monkeypatch.setattr(speed, "QUICK_NEIGHBOURS", (20, 1, 300))
    monkeypatch.setattr(speed, "QUICK_TURNS", 0.0)
    monkeypatch.setattr(threads, "SHORTEST", 1e-9)
    assert speed.main(argparse.Namespace(quick=True, cover=cover)) in (0, 1)
    printed = capsys.readouterr().out
    assert "LSHiTables, cover, one thread: score, times HBOS" in printed
    assert "score: two threads, times one" in printed
    assert "fit, two passes, times one" in printed
    assert "After 300 rows of 10" in printed
    assert all(line in printed for line in ABSENT)
    kept = json.loads((results / "speed.json").read_text())
    assert {t["data"] for t in kept["timings"]} == {"cover", "normal 3e2 x 2"}
    assert len(kept["threads"]) == 4
    assert kept["neighbours"]["rows"] == 300


# --- passes ---------------------------------------------------------------------------------


def test_names_and_tables_together_tell_contestants_apart():
    keys = [(c.name, c.m) for c in CONTESTANTS]
    assert len(set(keys)) == len(keys)
    made = {c.name: c.make() for c in CONTESTANTS if c.m == 100 and not c.is_peer}
    assert made[contestants.DEFAULT].passes == "auto"
    assert made[contestants.ONE_PASS].passes == 1
    assert made[contestants.NOVELTY].novelty


def test_two_passes_and_novelty_are_held_to_their_bounds():
    def timing(data, detector, fit, score, m=100, rounds=3):
        # A round that was slow for all, and one that only the first of two still ran in.
        each = [(fit, score), (9.0 * fit, 9.0 * score), (fit, score)]
        each += [(0.0, 0.0)] * (detector == "HushTable")
        each = each if rounds else []
        return speed.Timing(data, 1000, detector, m, fit, score, rounds, each)

    timings = [
        timing("a", "HushTable", 1.6, 1.0), timing("a", "HushTable, one pass", 1.0, 1.0),
        timing("a", "HushTable, novelty", 1.2, 1.5), timing("a", "HushTable", 9.0, 9.0, m=400),
        timing("b", "HushTable", 3.6, 2.2), timing("b", "HushTable, one pass", 2.0, 2.0),
        timing("b", "HushTable, novelty", 1.0, 2.2),
        # Not timed, so that no target depends on it.
        timing("c", "HushTable", 9.0, 9.0, rounds=0), timing("c", "HushTable, one pass", 1.0, 1.0),
    ]  # fmt: skip
    nearest = passes.Neighbours(1000, 10, 20, neighbours=3e-4, novelty=2e-5)
    fit, novelty, score, neighbours = passes.targets(timings, nearest)
    assert fit.claim == "HushTable: fit, two passes, times one, at most (b)"
    assert (fit.measured, fit.met) == (pytest.approx(1.8), False)
    assert novelty.claim.endswith("at most (a)")
    assert (novelty.measured, novelty.met) == (pytest.approx(1.5), True)
    assert "(at most 1.10, b)" in score.claim
    assert (score.measured, score.met) == (pytest.approx(1.05), False)
    assert (neighbours.measured, neighbours.met) == (pytest.approx(15.0), False)
    assert [line.split("|")[1].strip() for line in passes.table(timings).splitlines()[2:]] == [
        "a", "b",
    ]  # fmt: skip
    assert passes.targets([]) == []


# --- threads --------------------------------------------------------------------------------


def test_two_take_turns_and_the_ratio_is_that_of_neighbours(monkeypatch):
    monkeypatch.setattr(threads, "SHORTEST", 1e-9)  # one call a timing
    order = []

    def slow():
        order.append("one")
        time.sleep(0.004)

    def fast():
        order.append("two")
        time.sleep(0.001)

    seconds, ratio = threads.in_turns(slow, fast, 0.0)
    assert seconds >= 0.004
    assert ratio > 1.0
    turns = order[2:]  # after the first of each, which does not count
    assert turns.count("two") == threads.FEWEST_PAIRS
    assert [turns[0], turns[-1]] == ["one", "two"]


def test_targets_of_threads_hold_the_least_gain_to_its_bound():
    def gain(rows, score):
        fit = 0.96 if rows == 20_000 else 1.0
        return threads.Gain(f"{rows} rows", rows, "LSHiTables", 1.0, 1.0, fit, score, 2.0, 0.0)

    gains = [gain(1_000, 0.99), gain(20_000, 1.2), gain(50_000, 1.7), gain(10**6, 1.9)]
    many, every, fit = threads.targets(gains)
    assert (many.measured, many.met) == (1.7, False)
    assert "50000 rows" in many.claim
    assert (every.measured, every.met) == (0.99, True)
    assert "1000 rows" in every.claim
    assert (fit.measured, fit.met) == (0.96, False)
    assert "20000 rows" in fit.claim


# --- growth, and the floor ------------------------------------------------------------------


def test_repeated_rows_are_those_of_the_matrix_over_and_over(rng):
    X = rng.normal(size=(100, 3)).astype(np.float32)
    reader = scaling.repeated(X, 300)
    assert (reader.n_rows, reader.n_columns) == (300, 3)
    for _ in range(2):  # as often as asked
        np.testing.assert_array_equal(np.concatenate(list(reader.read())), np.tile(X, (3, 1)))


@pytest.mark.serial
@pytest.mark.slow
def test_costs_are_measured_in_memory_and_streamed():
    extent = scaling.Extent((200, 400), (2, 3), (20,), 400, 800)
    streamed = scaling.measure_streamed(extent, MACHINE)
    costs = scaling.measure_all(extent, MACHINE, counting=False)
    assert [(c.rows, c.columns) for c in costs[::2]] == [(200, 2), (400, 2), (200, 3), (400, 3)]
    assert [c.data for c in streamed] == ["normal 8e2 x 2, streamed"] * 2
    assert all(min(c.fit, c.count, c.score, c.bound) > 0 for c in (*streamed, *costs))
    table = scaling.table_of_the_floor(costs, extent.floor_rows)
    assert table.count("normal 4e2") == 4
    assert "instructions" not in table
    if memory.can_measure():
        assert 0 <= scaling.two_passes(extent) < 10**8
        assert [t.met for t in scaling.targets(streamed, 10**9)] == [True, False]


def test_tables_of_costs_show_growth():
    one = scaling.Cost("a", 10**5, 10, "HushTable", 100, 7, 1e-6, 2e-7, 4e-7, 1e-7, 1e-9, 500.0)
    more = dataclasses.replace(one, data="b", rows=10**6, count=3e-7)
    few = dataclasses.replace(one, data="c", rows=1_000, count=9e-7)
    assert "10.000" in scaling.table_of_costs([one])
    last = scaling.table_of_flatness([few, one, more]).splitlines()[-1]
    assert [cell.strip() for cell in last.split("|")[4:-1]] == ["1e5 to 1e6", "1.50", "1.00"]
    assert " 4.00 " in scaling.table_of_the_floor([one], 10**5)
    assert " 500 " in scaling.table_of_the_floor([one], 10**5)


def test_the_bound_counts_compares_look_ups_and_values(rng):
    X = rng.normal(size=(500, 3))
    family = LSHiTables(n_tables=7, random_state=0).fit(X).plan_.family
    joined = len(JoinedTables.packed(family.depth, family.offsets).first) - 1
    assert joined < 7
    operations = (3 * int(family.depth.sum()) + 40 * 3) / 32 + 2 * joined
    assert MACHINE.bound(family) == pytest.approx(operations / 2 / 1e9)
    assert MACHINE.reading(10) == pytest.approx(1e-9)
    folded = HushTable(n_tables=7, random_state=0).fit(X).plan_.family
    assert floor.folds(family) == 0
    assert floor.folds(folded) == (folded.depth > 8).sum() > 0
    assert MACHINE.bound(folded) > MACHINE.bound(family)


def test_the_machine_is_measured(monkeypatch):
    monkeypatch.setattr(floor, "COPIED", 1 << 16)
    monkeypatch.setattr(floor, "CHAIN", 10_000)
    machine = Machine.measured()
    assert machine.copying > 0
    assert machine.clock > 0
    assert machine.lanes in (8, 16, 32)
    assert "GHz" in machine.describe()


def test_events_that_cannot_be_counted_are_said_to_be(monkeypatch):
    monkeypatch.setattr(floor.shutil, "which", lambda _: None)
    with pytest.raises(floor.CannotCountError, match="perf is not installed"):
        floor.events(lambda: None)


@pytest.mark.skipif(not floor.shutil.which("perf"), reason="needs perf")
def test_perf_is_asked_and_understood():
    try:
        milliseconds = floor.events(lambda: sum(range(10**6)), "task-clock")
    except floor.CannotCountError as error:
        pytest.skip(str(error))
    assert milliseconds > 0
    with pytest.raises(floor.CannotCountError, match="no-such-event"):
        floor.events(lambda: None, "no-such-event")


def test_rows_of_any_kind_of_reader_are_measured():
    X = np.random.default_rng(0).random((300, 2), dtype=np.float32)
    cost = scaling.measure("few", as_reader(X), LSHiTables, 10, MACHINE, repeats=1)
    assert (cost.data, cost.rows, cost.columns, cost.m) == ("few", 300, 2, 10)


# --- memory ---------------------------------------------------------------------------------


@pytest.mark.serial
@pytest.mark.slow
@pytest.mark.skipif(not memory.can_measure(), reason="needs /proc/self/clear_refs")
def test_the_peak_includes_the_scores(cover):
    rows = 200_000
    peak = memory.in_fresh_process(Rows.normal(rows, 2), "LSHiTables", threads=2)
    assert peak.scores == 8 * rows
    assert peak.scores <= peak.beyond_input < 100_000_000
    data = dataclasses.replace(Rows.of_file(cover), name="cover")
    assert memory.in_fresh_process(data, "HushTable", threads=1).data == "cover"


# --- latency ----------------------------------------------------------------------------------


@pytest.mark.serial
@pytest.mark.slow
def test_latency_is_timed_for_all_that_rows_come_as(capsys, monkeypatch, results):
    monkeypatch.setattr(latency, "FITTED", 50)
    monkeypatch.setattr(latency, "CALLS", 2)
    monkeypatch.setattr(latency, "QUICK_BURSTS", 1)
    started = latency.Start(0.8, 1.2, sklearn=True)
    monkeypatch.setattr(latency, "time_starts", lambda starts: started)
    assert latency.main(argparse.Namespace(quick=True)) == 1
    printed = capsys.readouterr().out
    assert all(printed.count(f"| {name} ") == 3 for name in ("LSHiTables", "Scorer", PEER))
    assert "a Scorer after 0.80 s" in printed
    kept = json.loads((results / "latency.json").read_text())
    assert len(kept["latencies"]) == 4 * 3 * len(latency.SIZES)
    assert all(one["microseconds"] > 0 for one in kept["latencies"])


def test_targets_of_latency_hold_the_slower_of_numpy_types_to_its_bound():
    found = [
        latency.Latency("HushTable", rows_as, rows, us)
        for rows_as, us in (("float64", 40.0), ("float32", 60.0), ("pandas", 149.0))
        for rows in (1, 10, 100)
    ]
    verdicts = [target.met for target in latency.targets(found, latency.Start(0.6, 2.0, False))]
    assert verdicts == [False, True, True, True, True, True]
    assert [target.measured for target in latency.targets(found, latency.Start(0.6, 2, True))] == [
        60.0, 60.0, 60.0, 149.0, 0.6, 1.0,
    ]  # fmt: skip


@pytest.mark.serial
@pytest.mark.slow
def test_starts_are_timed_in_new_processes():
    start = latency.time_starts(1)
    assert 0.0 < start.imported < start.scored
    assert not start.sklearn


# --- first use --------------------------------------------------------------------------------


def test_first_uses_take_turns_and_are_held_to_their_bounds(capsys, monkeypatch, results):
    seen = []

    def run(kind, cache):
        seen.append((kind, cache))
        return 1.0, 0.1 if kind == first_use.BUILT else 9.0, 0.5

    monkeypatch.setattr(first_use, "run", run)
    monkeypatch.setattr(first_use._built, "levels_at_hand", lambda: ["here"])
    monkeypatch.setattr(first_use._built, "path_of", lambda level: Path(__file__))
    assert first_use.main(argparse.Namespace(quick=True)) == 1  # compiling takes over 7 s
    assert [kind for kind, _ in seen[2:]] == [
        "built",
        "compiled",
        "compiled before",
        first_use.PEER,
    ]
    caches = dict(seen)
    assert caches["compiled"] != caches["compiled before"] == seen[0][1]
    out = capsys.readouterr().out
    assert re.search(r"\| built .* 1\.60 \|", out)
    kept = json.loads((results / "first_use.json").read_text())
    assert [one["whole"] for one in kept["uses"]] == [1.6, 10.5, 10.5, 10.5]


@pytest.mark.serial
@pytest.mark.slow
def test_a_first_use_is_measured_in_a_process_of_its_own(tmp_path):
    imported, fitted, scored = first_use.run(first_use.PEER, tmp_path)
    assert 0 < scored < fitted < imported


# --- reviews ----------------------------------------------------------------------------------


def test_the_next_row_of_a_review_is_timed(capsys, monkeypatch, results):
    monkeypatch.setattr(review, "QUICK_ROWS", 2_000)
    monkeypatch.setattr(review, "VERDICTS", 3)
    monkeypatch.setattr(review, "LIMIT", 1e6)
    assert review.main(argparse.Namespace(quick=True)) == 0
    assert "| normal 2e3 x 30 |" in capsys.readouterr().out
    kept = json.loads((results / "review.json").read_text())["waiting"]
    assert all(0 < one["median"] <= one["worst"] for one in kept)


# --- serving ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_calls_are_timed_and_the_service_is_asked_by_many_at_once(monkeypatch):
    monkeypatch.setattr(latency, "CALLS", 2)
    calls = serving.time_calls(bursts=1)
    assert [one.columns for one in calls] == [10, 10, 10, 30, 30, 30]
    assert serving.table(calls).count("\n") == 4
    for library in ("fastapi", "httpx", "uvicorn"):
        pytest.importorskip(library, reason=f"the service needs {library}")
    found = serving.time_requests(at_once=5, times=2)
    assert (found.at_once, found.errors) == (5, 0)
    assert 0.0 < found.median <= found.p99 <= found.slowest


def test_targets_of_serving_leave_the_peer_out():
    verdicts = serving.targets(
        [serving.Call("HushTable", 10, 999.0), serving.Call(PEER, 10, 5000.0)],
        serving.Requests(100, 1.0, 2.0, 3.0, 1.0, errors=1),
    )
    assert [one.met for one in verdicts] == [True, False]
