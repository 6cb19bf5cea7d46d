"""The cases run through on tiny made-up data, by their commands; and what judges their figures."""

import dataclasses
import json
import sys
import time
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hushtable import HushTable, LSHiTables
from hushtable.data.readers import as_reader
from hushtable.plans.families.layouts import JoinedTables
from hushtable_bench import runner
from hushtable_bench.cases import (
    costs,
    explain,
    exports,
    families,
    faults,
    joining,
    latency,
    load,
    periods,
    persons,
    ranks,
    reading,
    reasons,
    reasons_faithful,
    reasons_tables,
    scaling,
    shapes,
    speed,
    streams,
    sums,
    threads,
)  # fmt: skip
from hushtable_bench.data import LabelledSet
from hushtable_bench.results import Promise
from hushtable_bench.runner import CaseRun, RowSource

MACHINE = scaling.Machine(copying=4e10, clock=1e9, lanes=32)
LINUX = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")


# --- the runner -----------------------------------------------------------------------------------


def test_every_case_is_there_and_has_options():
    for name in runner.CASES:
        do = runner.case(name)
        assert (do.__name__, bool(do.__doc__)) == (name, True)
        options = runner._parser(name, do).parse_args([])
        assert options.output == Path("hushtable-bench")


def test_options_come_from_the_signature(monkeypatch, tmp_path, capsys):
    """A case: its help."""

    def toy(
        run: CaseRun, *, rows: int = 5, quick: bool = False, data: Path | None = None,
        only: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """A case: its help."""
        run.say(f"{rows} {quick} {data} {only}")
        run.table({"a": "{t.real:.1f}"}, [1, 2])
        run.hold("kept", 2.0, ">=", 1.0)
        run.hold("missed", 0.5, ">=", float(rows))
        run.figures["target"] = run.targets[0]

    monkeypatch.setattr(runner, "case", lambda name: toy)
    given = ["--rows", "1e1", "--quick", "--data", "x", "--only", "a", "b"]
    assert runner.main(["speed", *given, "--output", str(tmp_path / "o")]) == 1
    out = capsys.readouterr().out
    assert "10 True x ['a', 'b']" in out
    assert "|   a |\n| --: |\n| 1.0 |\n| 2.0 |" in out.replace("| ---", "| --") or "1.0" in out
    assert out.count("Measured with") == 1
    kept = json.loads((tmp_path / "o" / "speed.json").read_text())
    assert kept["target"]["claim"] == "kept"
    assert (tmp_path / "o" / "speed.csv").read_text() == "a\n1.0\n2.0\n"
    assert {"processor", "python", "numpy", "scikit-learn"} <= set(kept["environment"])
    assert runner.main([]) == 0
    assert "secure_sum" in capsys.readouterr().out
    with pytest.raises(SystemExit) as wrong:
        runner.main(["nonsense"])
    assert wrong.value.code == 2


def test_bad_data_is_a_message_and_an_exit_code(capsys, tmp_path):
    with pytest.raises(SystemExit) as exit_of:
        runner.main(["rows", "--data", str(tmp_path / "gone")])
    assert exit_of.value.code == 2
    assert "gone is not a folder" in capsys.readouterr().err


def test_normal_rows_are_drawn_in_place_and_repeatable(cover):
    data = RowSource.normal(5000, 3)
    X = data.load()
    assert (data.name, X.shape, X.dtype) == ("normal 5e3 x 3", (5000, 3), np.float32)
    assert X.flags.c_contiguous
    assert abs(X.mean()) < 0.05
    assert 0.95 < X.std() < 1.05
    np.testing.assert_array_equal(X, data.load())
    data = RowSource.of_file(cover)
    assert (data.rows, data.columns) == (300, 2)
    np.testing.assert_array_equal(data.load(), np.load(cover)["X"].astype(np.float32))


def test_runs_take_turns_and_the_first_do_not_count():
    done = []
    both = {"a": lambda: done.append("a"), "b": lambda: (done.append("b"), time.sleep(0.01))}
    times = runner.in_turns(both, 2)
    assert done == ["a", "b"] * 3
    assert [len(seconds) for seconds in times.values()] == [2, 2]
    assert runner.timed(lambda: 7)[1] == 7
    assert min(times["b"]) >= 0.01 > runner.seconds(lambda: None, 3)


@LINUX
def test_memory_is_in_bytes():
    assert runner.process_memory(status="VmHWM:\t  12 kB\nVmRSS:\t 3 kB") == 12 * 1024
    assert runner.process_memory() >= runner.process_memory("VmRSS") > 10**6


# --- all cases on tiny data -----------------------------------------------------------------------


@pytest.fixture
def cover(rng, tmp_path):
    """A tiny stand-in for cover."""
    return save(tmp_path / "data", rng, "10_cover", 300, 2)


def save(folder, rng, name, rows, columns):
    """Save made-up labelled rows."""
    folder.mkdir(exist_ok=True)
    X = rng.random(size=(rows, columns))
    X[: rows // 10] += 4.0
    np.savez(folder / f"{name}.npz", X=X, y=np.arange(rows) < rows // 10)
    return folder / f"{name}.npz"


#: Of a case: its module and what is made small there, its arguments, and words that it prints.
SMALL = {
    "contexts": (None, {}, "--quick", "within wards of a size"),
    "engines": (reading, {"ROUNDS": 1}, "--rows 20000 --times 2 --rounds 1", "times reading"),
    "expectations": (costs, {"DESIGN_ROWS": (200,), "QUICK_DESIGN_ROWS": (200,),
                             "DESIGN_EPSILONS": (0.1, 3.0)}, "--quick", "Fit on 1 sets"),
    "exports": (exports, {"QUICK_ROWS": 20, "FITTED": 300, "SINGLE": 3}, "--quick", "two passes"),
    "exports_sql": (exports, {"QUICK_SQL_ROWS": 20, "FITTED": 300}, "--quick", "all, us"),
    "families": (families, {}, "--rows 300 --repeats 1", "normal 3e2 x 100"),
    "faults": (faults, {"LEAST": 400, "LEAST_RELEASED": 400, "ROWS": 600, "SHARES": (0.35,)},
               "--quick", "false alarms"),
    "first_use": (latency, {}, "--quick", "from import to scores"),
    "folder": (sums, {}, "--sites 4 --tables 2", "True"),
    "frames": (latency, {"FITTED": 50, "CALLS": 2, "QUICK_FRAME_ROUNDS": 1, "CATEGORIES": 50},
               "--quick", "10,000 categories"),
    "joining": (joining, {"ROWS": 400, "LEAST": 5, "ALIKE": (50,)}, "--quick", "Minus the site's"),
    "joining_released": (joining, {"TOGETHER": (100, 200), "LEAST": 5},
                         "--quick", "less the result"),
    "latency": (latency, {"FITTED": 50, "CALLS": 2, "QUICK_BURSTS": 1}, "--quick", "a Scorer"),
    "load": (load, {}, "--quick --only merge files", "equal"),
    "month": (None, {}, "--sites 3", "in a folder"),
    "periods": (periods, {"TOTAL": 3.0, "MONTHS": 4, "AFTER": (1, 2, 4), "MOST": {4: 50.0}},
                "--quick", "Mean ROC-AUC of 3 sets"),
    "persons": (persons, {}, "--rows 2000", "200 persons"),
    "ranks": (ranks, {"METHODS": {"HushTable, 100": ranks.METHODS["HushTable, 100"]}},
              "--sets one --seeds 2", "epsilon 1 in all"),
    "reading": (reading, {}, "--rows 1000 --columns 2 --repeats 1", "times the clean pass"),
    "reasons": (reasons, {"QUICK_ROWS": 500, "REPEATS": 1}, "--quick", "rows needed"),
    "register": (persons, {}, "--persons 2000", "1,000 left out"),
    "review": (streams, {"QUICK_ROWS": 2000, "VERDICTS": 3}, "--quick", "normal 2e3 x 30"),
    "rows": (costs, {"QUICK_ROWS": (100, 200)}, "--quick", "| 200  |    3 |"),
    "scaling": (scaling, {"QUICK": scaling.Extent((200, 400), (2, 3), (20,), 400, 800)}, "--quick",
                "normal 8e2 x 2, streamed"),
    "secure_sum": (sums, {}, "--sites 4 --tables 2", "online"),
    "shapes": (shapes, {"QUICK_SCALE": 200}, "--quick", "one reading by Arrow"),
    "speed": (speed, {"QUICK_SIZES": [(300, 2)], "QUICK_THREAD_SIZES": [(300, 2)],
                      "QUICK_NEIGHBOURS": (20, 1, 300), "QUICK_TURNS": 0.0}, "--quick",
              "fit, two passes, times one"),
    "starts": (shapes, {}, "--quick", "hushtable score"),
    "streams": (streams, {}, "--quick", "new pane, ms"),
}  # fmt: skip
#: Those that take less than two seconds.
SOON = ("families", "persons", "reading", "review", "streams")


@pytest.mark.parametrize(
    "name", [name if name in SOON else pytest.param(name, marks=pytest.mark.slow) for name in SMALL]
)
@pytest.mark.filterwarnings("ignore")  # of a cluster that starts and stops
def test_a_case_runs_through(name, tmp_path, rng, capsys, monkeypatch):
    module, small, arguments, words = SMALL[name]
    for key, value in small.items():
        monkeypatch.setattr(module, key, value)
    for other in ("one", "set 0", "set 2", "10_cover"):
        save(tmp_path / "sets", rng, other, 200, 3)
    (tmp_path / "sets" / "10_cover.npz").rename(tmp_path / "10_cover.npz")
    monkeypatch.setenv("HUSHTABLE_DATA", str(tmp_path / "sets"))
    monkeypatch.setattr(costs, "LARGE", 200)
    monkeypatch.setattr(threads, "SHORTEST", 1e-9)
    measure = periods.measure_noise
    monkeypatch.setattr(periods, "measure_noise", lambda months: measure(months, rows=400))
    assert runner.main([name, *arguments.split(), "--output", str(tmp_path / "o")]) in (0, 1)
    out = capsys.readouterr().out
    assert words in out
    assert "WRONG" not in out
    for line in out.splitlines():  # exactness holds however small the rows are
        if "equals the plain sum" in line or "wrong result" in line or "scores apart" in line:
            assert "FAIL" not in line


def test_rows_out_of_a_database_are_read(postgres):
    reading.fill(postgres.url(), 100)
    for read in reading.contestants(postgres.url(), 100).values():
        read()


@pytest.mark.serial
@pytest.mark.slow
def test_a_million_rows_out_of_a_database_cost_little_more_than_to_fetch_them(postgres):
    url, rows = postgres.url(), 1_000_000
    reading.fill(url, rows)
    ways = reading.contestants(url, rows)
    del ways["Sketch.from_data"]
    fetch, read = (np.median(taken) for taken in runner.in_turns(ways, repeats=3).values())
    assert read <= 2 * fetch
    few, many = (reading.peak_of_reading(url, n) for n in (rows // 10, rows))
    assert many - few <= 64e6


@pytest.mark.slow
def test_calls_are_timed_and_the_service_is_asked_by_many_at_once(monkeypatch):
    monkeypatch.setattr(latency, "CALLS", 2)
    calls = latency.time_calls(bursts=1)
    assert [one.columns for one in calls] == [10, 10, 10, 30, 30, 30]
    for library in ("fastapi", "httpx", "uvicorn"):
        pytest.importorskip(library, reason=f"the service needs {library}")
    found = latency.time_requests(at_once=5, times=2)
    assert (found.at_once, found.errors) == (5, 0)
    assert 0.0 < found.median <= found.p99 <= found.slowest


# --- the race -------------------------------------------------------------------------------------


def test_contestants_leave_and_are_extrapolated(monkeypatch):
    racing = [c for c in speed.RACERS if c.name in ("HushTable", speed.PEER)]
    few, more = RowSource.normal(400, 2), RowSource.normal(800, 2)
    timings = speed.time_all([few], racing, rounds=lambda _: 3, budget=0.0)
    assert [t.rounds for t in timings] == [1] * len(racing)  # who used up the time leaves
    monkeypatch.setattr(speed, "PATIENCE", 0.0)
    timings = speed.time_all([few, more], racing, rounds=lambda _: 1)
    before, after = (speed.find(timings, data.name, speed.PEER) for data in (few, more))
    assert (before.rounds, after.rounds) == (1, 0)
    assert after.score == pytest.approx(2 * before.score)
    assert speed.find(timings, more.name, "HushTable").rounds == 1
    assert "IsolationForest on normal 8e2 x 2 did not run" in speed.notes(timings)


def test_a_peer_that_is_not_installed_is_left_out_with_a_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "coniferest.isoforest", None)
    present, absent = speed.installed()
    assert "coniferest" not in {c.name for c in present}
    assert {c.name for c in speed.RACERS if not c.is_peer} <= {c.name for c in present}
    assert any(line.startswith("coniferest: skipped, ") for line in absent)
    made = {c.name: c.make() for c in speed.RACERS if c.m == 100 and not c.is_peer}
    assert made[speed.DEFAULT].passes == "auto"
    assert made[speed.ONE_PASS].passes == 1
    assert made[speed.NOVELTY].novelty


def test_rows_reach_a_contestant_in_the_type_that_it_reads():
    seen = []

    class Reads:
        def fit(self, X):
            seen.append(X.dtype)

        def score_samples(self, X):
            return np.zeros(len(X))

    racing = [speed.Racer(str(dtype), Reads, dtype=dtype) for dtype in (np.float32, np.float64)]
    speed.time_all([RowSource.normal(50, 2)], racing, rounds=lambda _: 1)
    assert seen == [np.float32, np.float64] * 2  # once to warm up


def test_targets_on_cover_compare_the_right_figures():
    def timing(detector, m, fit, score):
        return speed.RaceTiming("cover", 286_048, detector, m, fit, score, 3)

    timings = [
        timing("LSHiTables", 100, 0.01, 0.01), timing("LSHiTables", 400, 0.04, 0.04),
        timing("HushTable", 100, 0.05, 0.02), timing(speed.PEER, 100, 0.2, 0.5),
        timing("HBOS", 0, 0.06, 0.04),
    ]  # fmt: skip
    peaks = [speed.Peak("large", "HushTable", 2, 90_000_000, 80_000_000)]
    found = {target.claim: target.measured for target in speed.targets(timings, peaks)}
    assert list(found.values()) == pytest.approx([50.0, 4.0, 20.0, 25.0, 90.0, 10.0])
    assert f"HushTable, cover, one thread: score, times {speed.PEER}" in found
    assert "the same without the returned scores, at most (MB; HushTable on large)" in found


def test_two_passes_and_novelty_are_held_to_their_bounds():
    def timing(data, detector, fit, score, m=100, rounds=3):
        # A round that was slow for all, and one that only the first of two still ran in.
        each = [(fit, score), (9.0 * fit, 9.0 * score), (fit, score)]
        each += [(0.0, 0.0)] * (detector == "HushTable")
        return speed.RaceTiming(data, 1000, detector, m, fit, score, rounds, each * bool(rounds))

    timings = [
        timing("a", "HushTable", 1.6, 1.0), timing("a", "HushTable, one pass", 1.0, 1.0),
        timing("a", "HushTable, novelty", 1.2, 1.5), timing("a", "HushTable", 9.0, 9.0, m=400),
        timing("b", "HushTable", 3.6, 2.2), timing("b", "HushTable, one pass", 2.0, 2.0),
        timing("b", "HushTable, novelty", 1.0, 2.2),
        # Not timed, so that no target depends on it.
        timing("c", "HushTable", 9.0, 9.0, rounds=0), timing("c", "HushTable, one pass", 1.0, 1.0),
    ]  # fmt: skip
    nearest = speed.Neighbours(1000, 10, 20, neighbours=3e-4, novelty=2e-5)
    held = speed.targets_of_passes(timings, nearest)
    assert [t.measured for t in held] == pytest.approx([1.8, 1.5, 1.05, 15.0])
    assert [t.met for t in held] == [False, True, False, False]
    assert held[0].claim == "HushTable: fit, two passes, times one, at most (b)"
    assert "(at most 1.10, b)" in held[2].claim
    assert speed.targets_of_passes([]) == []


def test_two_threads_take_turns_and_the_ratio_is_that_of_neighbours(monkeypatch):
    monkeypatch.setattr(threads, "SHORTEST", 1e-9)  # one call a timing
    order, now = [], [0.0]
    monkeypatch.setattr(threads.time, "perf_counter", lambda: now[0])

    def slow():
        order.append("one")
        now[0] += 0.004

    def fast():
        order.append("two")
        now[0] += 0.001

    seconds, ratio = threads.alternate(slow, fast, 0.0)
    assert seconds == pytest.approx(0.004)
    assert ratio == pytest.approx(4.0)
    turns = order[2:]  # after the first of each, which does not count
    assert turns.count("two") == threads.FEWEST_PAIRS
    assert [turns[0], turns[-1]] == ["one", "two"]


def test_targets_of_threads_hold_the_least_gain_to_its_bound():
    def gain(rows, score):
        fit = 0.96 if rows == 20_000 else 1.0
        return threads.Gain(f"{rows} rows", rows, "LSHiTables", 1.0, 1.0, fit, score, 2.0, 0.0)

    gains = [gain(1_000, 0.99), gain(20_000, 1.2), gain(50_000, 1.7), gain(10**6, 1.9)]
    held = threads.targets(gains)
    assert [(t.measured, t.met) for t in held] == [(1.7, False), (0.99, True), (0.96, False)]
    assert "50000 rows" in held[0].claim


# --- growth, and the floor ------------------------------------------------------------------------


def test_repeated_rows_are_those_of_the_matrix_over_and_over(rng):
    X = rng.normal(size=(100, 3)).astype(np.float32)
    reader = scaling.repeated(X, 300)
    assert (reader.n_rows, reader.n_columns) == (300, 3)
    for _ in range(2):  # as often as asked
        np.testing.assert_array_equal(np.concatenate(list(reader.read())), np.tile(X, (3, 1)))
    cost = scaling.measure("few", as_reader(X), LSHiTables, 10, MACHINE, repeats=1)
    assert (cost.data, cost.rows, cost.columns, cost.m) == ("few", 100, 3, 10)


def test_tables_of_costs_show_growth():
    one = scaling.RowCost("a", 10**5, 10, "HushTable", 100, 7, 1e-6, 2e-7, 4e-7, 1e-7, 1e-9, 500.0)
    more = dataclasses.replace(one, data="b", rows=10**6, count=3e-7)
    few = dataclasses.replace(one, data="c", rows=1_000, count=9e-7)
    assert one.each == pytest.approx((10.0, 2.0, 4.0, 400.0))
    last = str(scaling.table_of_flatness([few, one, more])).splitlines()[-1]
    assert [cell.strip() for cell in last.split("|")[4:-1]] == ["1e5 to 1e6", "1.50", "1.00"]
    assert " 4.00 " in str(scaling.table_of_the_floor([one], 10**5))


def test_the_bound_counts_compares_look_ups_and_values(rng):
    X = rng.normal(size=(500, 3))
    family = LSHiTables(n_tables=7, random_state=0).fit(X).plan_.family
    joined = len(JoinedTables.packed(family.depth, family.offsets).first) - 1
    assert joined < 7
    operations = (3 * int(family.depth.sum()) + 40 * 3) / 32 + 2 * joined
    assert MACHINE.bound(family) == pytest.approx(operations / 2 / 1e9)
    assert MACHINE.reading(10) == pytest.approx(1e-9)
    folded = HushTable(n_tables=7, random_state=0).fit(X).plan_.family
    assert scaling.folds(family) == 0
    assert scaling.folds(folded) == (folded.depth > 8).sum() > 0
    assert MACHINE.bound(folded) > MACHINE.bound(family)


def test_events_that_cannot_be_counted_are_said_to_be(monkeypatch):
    monkeypatch.setattr(scaling.shutil, "which", lambda _: None)
    with pytest.raises(scaling.CannotCountError, match="perf is not installed"):
        scaling.events(lambda: None)


# --- other figures --------------------------------------------------------------------------------


def judged(targets):
    return [target.met for target in targets]


def test_targets_of_latency_hold_the_slower_of_numpy_types_to_its_bound():
    found = [
        latency.Latency("HushTable", rows_as, rows, us)
        for rows_as, us in (("float64", 40.0), ("float32", 60.0), ("pandas", 149.0))
        for rows in (1, 10, 100)
    ]
    verdicts = judged(latency.latency_targets(found, latency.Start(0.6, 2.0, False)))
    assert verdicts == [False, True, True, True, True, True]
    held = latency.latency_targets(found, latency.Start(0.6, 2, True))
    assert [target.measured for target in held] == [60.0, 60.0, 60.0, 149.0, 0.6, 1.0]
    verdicts = latency.serving_targets(
        [latency.Call("HushTable", 10, 999.0), latency.Call(latency.PEER, 10, 5000.0)],
        latency.Requests(100, 1.0, 2.0, 3.0, 1.0, errors=1),
    )
    assert judged(verdicts) == [True, False]


def test_families_are_held_to_their_peers():
    made_up = [
        families.FamilyTiming("c", "LSHiTables", 1.0, 1.0, 1.0, 0.0),
        families.FamilyTiming("c", "RSHash", 3.0, 1.0, 5.0, 0.0),
        families.FamilyTiming("c", "ACE", 9.0, 1.0, 3.0, 2.0),
    ]
    assert [t.measured for t in families.targets(made_up)] == pytest.approx([4.0, 1.5])


def test_guilty_features_are_judged():
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


@pytest.mark.slow
def test_explanations_find_the_guilty():
    ours = {name: explain.METHODS[name] for name in (explain.OURS, explain.PRIVATE)}
    found = explain.find_guilty(ours, seeds=1, rows=2000)
    assert len(found) == 2 * len(explain.VARIANTS)
    timings = [explain.ExplainTiming(explain.OURS, 1.0, 6.0, 6.0)]
    assert not judged(explain.targets(found, timings))[2]


@pytest.fixture
def mixed(rng):
    """Four hundred rows with a text, a time and missing values, of which one has a rare text."""
    frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    frame["kind"] = ["x", "x", "y", "z"] * 100
    frame["at"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(400), unit="h")
    frame.loc[[5, 6], ["a", "kind"]] = np.nan, None
    frame.loc[9, "kind"] = "w"
    return frame


def test_distances_and_usual_values_are_those_of_the_table(mixed):
    far = reasons_faithful.distances(mixed)
    assert far[9, 3] == pytest.approx(np.sqrt((1 - 1 / 398) / (1 / 398)))
    assert far[5, [0, 3]] == pytest.approx(np.sqrt(0.995 / 0.005))
    assert far[:, 1] == pytest.approx(
        np.abs(mixed["b"] - mixed["b"].mean()) / mixed["b"].std(ddof=0)
    )
    usual = reasons_faithful.usual_values(mixed)
    assert (usual["kind"], usual["at"]) == ("x", mixed["at"][199])
    assert (mixed["b"] < usual["b"]).sum() == 199
    one = reasons_faithful.repaired(mixed, 9, ["kind", "b", "at"], usual)
    assert one["kind"].tolist() == ["x"]
    assert one[["b", "at"]].values.tolist() == [[usual["b"], usual["at"]]]
    assert one["a"].tolist() == [mixed["a"][9]]
    assert (one.dtypes == mixed.dtypes).all()
    assert mixed["kind"][9] == "w"


def test_rows_that_are_repaired_leave_the_list(mixed):
    mixed.loc[17, "b"] = 40.0
    found = reasons_faithful.look_through("mixed", mixed)
    assert found.rows == 20
    assert found.weak <= 3
    assert 10 <= found.first <= found.named
    assert found.left >= found.claimed - 2
    assert found.unlisted >= 15


def test_shares_of_a_forest_are_those_of_its_columns(mixed, monkeypatch):
    class Explainer:
        """Blames the text of row 9, all parts of it together, and little else."""

        def __init__(self, forest):
            assert forest.n_features_in_ == 8

        def shap_values(self, X):
            shares = np.full(X.shape, -0.1)
            shares[X[:, 3] == 1.0, 3:7] = -1.0
            return shares

    monkeypatch.setitem(sys.modules, "shap", types.SimpleNamespace(TreeExplainer=Explainer))
    forest = reasons_faithful.ForestShares(mixed)
    shares = forest.shares(mixed)
    assert shares.shape == mixed.shape
    assert shares[9].argmax() == 3
    assert shares[9, 3] == pytest.approx(4.0)
    assert forest.score(mixed) == pytest.approx(forest.scores)
    found = reasons_faithful.look_through_peer("mixed", mixed)
    assert found.first <= found.named <= found.rows == 20


def test_planted_rows_differ_in_one_column(rng):
    frame = pd.DataFrame(np.repeat(rng.normal(size=(500, 2)), 2, axis=1), columns=list("abcd"))
    frame += 0.1 * rng.normal(size=frame.shape)
    for kind in ("combination", "far"):
        planted = reasons_tables.PLANTED[kind](frame, 0)
        rows, columns = np.nonzero(planted.frame.to_numpy() != frame.to_numpy())
        assert dict(zip(rows, columns, strict=True)) == dict(
            zip(planted.rows, planted.columns, strict=True)
        )
        assert len(rows) == 10
        values = planted.frame.to_numpy()[planted.rows, planted.columns]
        z = np.abs(values - frame.to_numpy().mean(axis=0)[planted.columns])
        z /= frame.to_numpy().std(axis=0)[planted.columns]
        assert (z > 4.9).all() if kind == "far" else (z < 2.5).all()
        found = list(reasons.named_pairs(planted, 0))
        assert len(found) == 10
        if kind == "far":
            assert np.mean([one.first for one in found]) >= 0.9
        else:
            assert all(one.named for one in found if one.strict)
            assert sum(one.right for one in found) >= 5
    assert len(reasons_tables.ordinary(frame, 0).rows) == 50


def test_far_values_come_first_in_the_order_of_a_list(rng):
    X = rng.normal(size=(3000, 4))
    X[7, 2] = 60.0
    found = reasons.order_gain(LabelledSet("one", X, np.arange(3000) == 7))
    assert found.far == 1
    assert found.ap >= 0.0
    none = reasons.order_gain(LabelledSet("one", X[8:], X[8:, 0] > 2.0))
    assert none[1:] == (0, 0.0, 0.0)


def test_pairs_that_were_released_need_many_rows():
    noise = reasons.pairs_noise(0.3)
    assert 170.0 < noise < 190.0
    assert reasons.pairs_noise(1.0, 0.3) < noise
    n = reasons.rows_needed(noise, 1 / 64, 2.0)
    assert n / 64 - n / 256 == pytest.approx(2.0 * noise)


@pytest.mark.slow
def test_reasons_are_judged_by_the_tables_that_are_there(tmp_path, rng, capsys, monkeypatch):
    n = 600
    frame = pd.DataFrame(rng.gamma(9.0, 0.5, size=(n, 3)), columns=["x", "y", "z"])
    frame[["carat", "depth", "table", "price"]] = rng.normal(55.0, 2.0, size=(n, 4))
    frame.insert(0, "cut", np.where(rng.random(n) < 0.1, "Fair", "Ideal"))
    frame.loc[:3, ["y", "z", "table"]] = [[58.9, 4, 55], [31.8, 4, 55], [4, 31.8, 55], [4, 4, 95]]
    frame.loc[4, "x"] = 0.0
    (tmp_path / "sets").mkdir()
    frame.to_csv(tmp_path / "sets" / "diamonds.csv", index=False)
    for name in ("one", "two", "odd_one", "ovr_two"):
        save(tmp_path / "sets", rng, name, 300, 3)
    for name, value in (("EXPLAINED", 500), ("SEARCHED", 500), ("REPEATS", 1)):
        monkeypatch.setattr(reasons, name, value)
    given = ["--data", str(tmp_path / "sets"), "--seeds", "1", "--output", str(tmp_path / "o")]
    assert runner.main(["reasons", *given]) in (0, 1)
    out = capsys.readouterr().out
    assert "cars.csv, weather.csv, Hdma.csv" in out
    assert "diamonds.csv" not in out
    assert "5 errors, 4 of them gross" in out
    assert "| odd_ and ovr_ |" in out
    kept = json.loads((tmp_path / "o" / "reasons.json").read_text())
    assert kept["diamonds"][0]["within"][-1] >= 4
    assert kept["diamonds"][0]["places"][0] == 1


@LINUX
@pytest.mark.parametrize("name", [
    name if name in ("merge", "files") else pytest.param(name, marks=pytest.mark.slow)
    for name in load.LOADS
])  # fmt: skip
def test_loads_are_held_and_checked(name, tmp_path, monkeypatch):
    monkeypatch.setattr(load, "BLOCK", 2000)
    monkeypatch.setattr(load, "WIDE", 1000)
    size = {"stream": 6000, "window": 30_000, "categories": 500, "features": 50}.get(name, 5)
    place = load.prepared(name, size, True, tmp_path)
    held = load.LOADS[name].run(size, place)
    assert held.right
    assert held.size == size
    assert held.peak > 50e6
    if name == "merge":  # a result that is not the sum is seen
        for expected in place.glob("*.npy"):
            np.save(expected, np.load(expected) + 1)
        assert not load.LOADS[name].run(size, place).right


def test_loads_are_judged():
    bad = load.HeldLoad("stream", 100, 9.0, 10**9, False)
    found = [load.HeldLoad("stream", 10, 1.0, 10**8, True), bad]
    assert bad.verdict == "WRONG"
    assert [t.measured for t in load.targets(found)] == [1, 900]
    assert judged(load.targets(found)) == [False, False]


@pytest.mark.serial
@pytest.mark.slow
@LINUX
def test_memory_does_not_grow_with_the_rows():
    """Two million rows more are 80 MB as they are read: nothing of them stays."""
    found = list(load.hold_all(True, ["stream", "window"]))
    assert judged(load.targets(found)) == [True, True, True]


@pytest.mark.serial
@pytest.mark.slow
@LINUX
def test_the_peak_includes_the_scores():
    rows = 200_000
    peak, _ = speed.measure_memory(RowSource.normal(rows, 2))
    assert peak.scores == 8 * rows
    assert peak.scores <= peak.beyond_input < 100_000_000


def test_losses_are_those_of_pairs():
    values = {"default fit": 90.0, "one pass, no noise": 88.0}
    values |= dict.fromkeys(costs.PRIVATE, 80.0) | dict.fromkeys(costs.QUIET, 83.0)
    runs = [
        costs.CostRun(data, 1000, way, seed, value + more)
        for data, more in (("a", 0.0), ("b", 5.0))
        for way, value in values.items()
        for seed in range(2)
    ]
    means, lost, noise = [str(costs.tables(runs)[i]).splitlines()[-1] for i in (1, 3, 5)]
    assert means.split("|")[3:5] == ["        92.5 ", "               90.5 "]
    assert lost.count("10.0 ± 0.0") == noise.count("3.0 ± 0.0") == len(costs.EPSILONS)
    assert "2.0 ± 0.0" in lost


def test_the_fit_finds_the_law_that_outcomes_follow():
    def case(name, signal, lost):
        return costs.MeanLoss(name, 1000, 1.0, signal, lost, lost)

    signals = np.geomspace(25.0, 1000.0, 40)
    law = [case("a", t, costs.LOSS / t) for t in signals]
    fit = costs.fitted(law)
    assert (fit.loss, fit.power) == pytest.approx((costs.LOSS, 1.0), rel=1e-3)
    (target,) = costs.targets(law)
    assert target.met
    missed = [case("b", t, costs.LOSS / t + 2.1) for t in signals[:11]]
    (target,) = costs.targets([*law, *missed])
    assert target.measured == pytest.approx(40 / 51)
    assert not target.met
    noise = [case("c", 5.0, 40.0)]
    assert costs.targets(noise) == []
    assert "nothing promised" in str(costs.table(law + noise))
    assert [costs.kept_out(name) for name in ("set 0", "set 2")] == [False, True]


def test_other_ways_have_the_noise_that_they_have_elsewhere():
    ways = periods.MERGED, periods.TREE, periods.AGAIN
    assert [periods.noises(way, 60, 60) for way in ways] == [60, 28, 60]
    assert periods.noises(periods.TREE, 12, 12) == 10
    assert periods.noises(periods.MERGED, 6, 60) == 6


def test_a_stream_is_judged():
    def run(way, months, auc):
        return periods.MonthRun("a", 10, way, 0, months, auc)

    runs = [run(periods.HORIZON, t, 80.0) for t in periods.AFTER]
    runs += [run(periods.ONCE, t, 82.1 if t == 30 else 81.0) for t in periods.AFTER]
    noise = [periods.NoiseOfWay(periods.HORIZON, 12, 3.7, 9, 1.0, "")]
    assert judged(periods.targets(noise, runs)) == [False, True, False, True]


def test_a_run_holds_what_it_is_given():
    run = CaseRun("x")
    run.hold("claim", 1.0, "<=", 2.0, ".1f")
    assert run.targets == [Promise("claim", 1.0, "<=", 2.0, ".1f")]
