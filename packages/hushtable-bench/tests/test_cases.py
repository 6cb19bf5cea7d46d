"""The cases run through on tiny made-up data, by their commands; and what judges their figures."""

import json
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hushtable_bench import figures, runner
from hushtable_bench.cases import costs, joining, reasons, speed, workloads
from hushtable_bench.cases.workloads import Absent, Task, faster, within
from hushtable_bench.results import Promise
from hushtable_bench.runner import CaseRun

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
    assert "| a   |\n| --- |\n| 1.0 |\n| 2.0 |" in out
    assert out.count("Measured with") == 1
    kept = json.loads((tmp_path / "o" / "speed.json").read_text())
    assert kept["target"]["claim"] == "kept"
    assert (tmp_path / "o" / "speed.csv").read_text() == "a\n1.0\n2.0\n"
    assert {"processor", "python", "numpy", "scikit-learn"} <= set(kept["environment"])
    assert runner.main([]) == 0
    assert "joining_released" in capsys.readouterr().out
    with pytest.raises(SystemExit) as wrong:
        runner.main(["nonsense"])
    assert wrong.value.code == 2


def test_bad_data_is_a_message_and_an_exit_code(capsys, tmp_path):
    with pytest.raises(SystemExit) as exit_of:
        runner.main(["rows", "--data", str(tmp_path / "gone")])
    assert exit_of.value.code == 2
    assert "gone is not a folder" in capsys.readouterr().err


def test_a_run_holds_what_it_is_given():
    run = CaseRun("x")
    run.hold("claim", 1.0, "<=", 2.0, ".1f")
    assert run.targets == [Promise("claim", 1.0, "<=", 2.0, ".1f")]


# --- all cases on tiny data -----------------------------------------------------------------------


def save(folder, rng, name, rows, columns):
    """Save made-up labelled rows."""
    folder.mkdir(exist_ok=True)
    X = rng.random(size=(rows, columns))
    X[: rows // 10] += 4.0
    np.savez(folder / f"{name}.npz", X=X, y=np.arange(rows) < rows // 10)
    return folder / f"{name}.npz"


#: Of a case: its module and what is made small there, its arguments, and words that it prints.
SMALL = {
    "advice": (joining, {"ROUND_ROWS": (150, 190), "FEWEST": 5}, "--rounds 3", "rounds within two"),
    "beyond": (costs, {"BEYOND_SETS": ("one",) * 4, "SEEDS": 1}, "--quick", "above the end"),
    "contexts": (None, {}, "--quick", "within wards of a size"),
    "expectations": (costs, {"QUICK_DESIGN_ROWS": (200,), "DESIGN_ROWS": (200,),
                             "DESIGN_EPSILONS": (0.1, 3.0)}, "--quick", "2 sets kept out"),
    "explain": (reasons, {"ROWS": 2000}, "--quick", "HushTable explains, times it scores"),
    "faults": (joining, {"FEWEST_ROWS": 100, "FEWEST_RELEASED": 10**6, "SHARES": (0.35,)},
               "--quick", "false alarms"),
    "gaps": (None, {}, "--seeds 1 --sides 0 10 --gaps {gaps}", "errors: AP kept"),
    "joining": (joining, {"LEAST": 5, "ALIKE": (50,)}, "--quick", "Minus the site's"),
    "joining_released": (joining, {"TOGETHER": (100, 200), "LEAST": 5},
                         "--quick", "less the result"),
    "oddbench": (None, {}, "--seeds 1", "OddBench"),
    "ranks": (costs, {"METHODS": {"HushTable, 100": costs.METHODS["HushTable, 100"]}},
              "--sets one --seeds 2", "Share of the lowest 1%"),
    "reasons": (None, {}, "--quick", "of right pairs among pairs"),
    "rows": (costs, {"QUICK_ROWS": (100, 200)}, "--quick", "| 200  |    3 |"),
    "speed": (speed, {"QUICK_SCALE": 1000}, "--quick --only small merge", "ECOD, fit / HushTable"),
}  # fmt: skip
#: Those that take less than two seconds.
SOON = ("ranks", "rows", "speed")


def test_every_case_is_tried():
    assert set(SMALL) == set(runner.CASES)


@pytest.mark.parametrize(
    "name", [name if name in SOON else pytest.param(name, marks=pytest.mark.slow) for name in SMALL]
)
@pytest.mark.filterwarnings("ignore")  # of a peer's library, and of small rows
def test_a_case_runs_through(name, tmp_path, rng, capsys, monkeypatch):
    module, small, arguments, words = SMALL[name]
    for key, value in small.items():
        monkeypatch.setattr(module, key, value)
    for other in ("one", "set 0", "set 2"):
        save(tmp_path / "sets", rng, other, 200, 3)
    save(tmp_path / "gaps", rng, "own", 100, 3)
    X = rng.normal(size=(60, 3))
    odd = {"X": X, "y": np.arange(60) > 50, "train": np.arange(60) < 30}
    np.savez(tmp_path / "sets" / "odd_new.npz", **odd) if name == "oddbench" else None
    monkeypatch.setenv("HUSHTABLE_DATA", str(tmp_path / "sets"))
    monkeypatch.setattr(costs, "LARGE", 200)
    monkeypatch.setattr(speed, "GROWTH", {})
    given = arguments.format(gaps=tmp_path / "gaps").split()
    assert runner.main([name, *given, "--output", str(tmp_path / "o")]) in (0, 1)
    out = capsys.readouterr().out
    assert words in out
    assert (tmp_path / "o" / f"{name}.csv").exists()


# --- speed ----------------------------------------------------------------------------------------


def entry(calls, *bounds, **settings):
    """Return an entry that calls these."""
    return Task("made up", lambda scale, stack: calls, bounds, **settings)


def test_contestants_take_turns_and_the_first_round_does_not_count():
    done = []
    calls = {"a": lambda: done.append("a"), "b": lambda: float(len(done))}
    found = speed.in_turns(calls, 2, times=3)
    assert done == ["a"] * 9
    assert found["b"] == 7.5  # what it returned in the second round and in the third
    assert 0.0 <= found["a"] < 0.01


def test_cpu_seconds_include_those_of_children():
    before = speed.cpu_seconds()
    workloads.python("-c", "sum(range(3_000_000))")
    assert speed.cpu_seconds() - before > 0.02


def test_an_entry_that_has_taken_long_has_fewer_rounds(monkeypatch):
    monkeypatch.setattr(speed, "PATIENCE", -1.0)
    done = []
    speed.in_turns({"a": lambda: done.append(1)}, 9)
    assert len(done) == 2


def test_ratios_are_judged_by_their_direction_and_figures_by_their_unit():
    calls = {"ours": lambda: 2e-6, "fast": lambda: 1e-6, "slow": lambda: 8e-6}
    bounds = (
        within("ours", "fast", 1.5), faster("ours", "slow", 3.0), within("ours", None, 1.0),
        within("ours", "fast"), faster("ours", "not installed", 2.0),
    )  # fmt: skip
    found = list(speed.compared(entry(calls, *bounds, unit="µs"), 1))
    assert [one.judged for one in found] == pytest.approx([2.0, 4.0, 2.0, 2.0])
    assert [one.name for one in found][:2] == ["made up: ours / fast", "made up: slow / ours"]
    assert found[1].cells() == ("made up: slow / ours", "2 µs", "8 µs", "4", ">= 3")
    assert found[2].cells()[2:] == ("", "", "<= 1")
    held = [one.bound.limit is not None for one in found]
    assert held == [True, True, True, False]


def test_targets_of_a_full_run_can_fail_and_what_is_absent_is_said(tmp_path, monkeypatch, capsys):
    def absent(scale, stack):
        raise Absent("no server")

    good = entry({"a": lambda: 1.0, "b": lambda: 3.0}, within("a", "b", 0.5), faster("a", "b", 9.0))
    monkeypatch.setattr(speed, "ENTRIES", [good, Task("database", absent, ())])
    monkeypatch.setattr(speed, "GROWTH", {"rows": ((2, 4, 8), lambda n: {
        "fit": lambda: float(n), "score": lambda: float(n * n),
    })})  # fmt: skip
    run = CaseRun("speed", tmp_path)
    speed.speed(run)
    assert [target.met for target in run.targets] == [True, False, True, False, True, False]
    assert "Left out: database: no server." in capsys.readouterr().out
    assert (tmp_path / "growth.svg").exists()
    quick = CaseRun("speed", tmp_path)
    speed.speed(quick, quick=True)
    assert quick.targets == []


def test_entries_have_names_and_bounds_of_their_own():
    names = [one.name for one in workloads.ENTRIES]
    assert len({*names}) == len(names)
    for one in workloads.ENTRIES:
        assert len({*one.bounds}) == len(one.bounds) > 0
        assert one.unit in speed.UNITS


@pytest.mark.slow
@pytest.mark.parametrize("one", workloads.ENTRIES, ids=lambda one: one.name)
@pytest.mark.filterwarnings("ignore")
def test_every_entry_is_measured_on_small_sizes(one, monkeypatch, cover_folder):
    monkeypatch.setenv("HUSHTABLE_DATA", str(cover_folder))
    with ExitStack() as stack:
        try:
            calls = one.set_up(500, stack)
        except Absent as error:
            pytest.skip(str(error))
        for bound in one.bounds:
            assert bound.ours in calls
            if bound.other is not None:
                assert bound.other in calls or bound.other.startswith(("coniferest", "isotree"))
        for call in calls.values():
            call()


@pytest.fixture
def cover_folder(rng, tmp_path):
    """A tiny stand-in for cover."""
    save(tmp_path / "data", rng, "10_cover", 2000, 3)
    return tmp_path / "data"


def test_a_peer_that_is_not_installed_is_left_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "coniferest.isoforest", None)
    assert "coniferest" not in workloads.peers()
    made = {name: make() for name, make in workloads.OWN.items()}
    assert (made["HushTable"].passes, made["one pass"].passes) == ("auto", 1)
    assert made["novelty"].novelty


def test_new_rows_are_not_those_that_were_fitted():
    X, new = workloads.normal_rows(50, 2), workloads.normal_rows(50, 2, 1)
    assert not set(map(tuple, X)) & set(map(tuple, new))
    calls = workloads.detectors(X, new, ("HushTable", "IsolationForest"))
    assert (calls["HushTable, score"]() != calls["HushTable, score fitted rows"]()).any()
    assert calls["IsolationForest, score"]().shape == (50,)


@LINUX
@pytest.mark.parametrize("load", ["stream", pytest.param("window", marks=pytest.mark.slow)])
def test_the_peak_of_a_load_is_that_of_its_process(load, monkeypatch, capsys):
    assert workloads.process_memory(status="VmHWM:\t  12 kB\nVmRSS:\t 3 kB") == 12 * 1024
    assert workloads.peak_of(load, 3_000) > 50.0
    monkeypatch.setattr(workloads.Sketch, "__eq__", lambda *_: False)
    with pytest.raises(AssertionError, match="wrong"):
        workloads.report(exact=False)


@pytest.mark.serial
@pytest.mark.slow
@LINUX
@pytest.mark.parametrize("load", ["stream", "window"])
def test_memory_does_not_grow_with_the_rows(load):
    """Two million rows more are 80 MB as they are read: nothing of them stays."""
    few, many = (workloads.peak_of(load, size) for size in (2_000_000, 4_000_000))
    assert many - few <= 40.0


def test_the_figure_of_growth_has_a_panel_for_each_size(tmp_path):
    times = [{"fit": 1.0, "score": 0.5}, {"fit": 2.0, "score": 1.0}]
    curves = {"rows": ((10, 20), times), "tables": ((1, 2), times)}
    files = figures.growth_figure(curves, tmp_path)
    assert [file.name for file in files] == ["growth.svg", "growth.png"]
    assert "by tables" in files[0].read_text() or files[0].stat().st_size > 1000


# --- other figures --------------------------------------------------------------------------------


def test_guilty_features_are_judged():
    guilty = np.zeros((3, reasons.COLUMNS), bool)
    guilty[0, 0] = guilty[1, :2] = guilty[2, :3] = True
    blame = np.tile(-np.arange(reasons.COLUMNS, dtype=float), (3, 1))
    blame[1, 1] = -99.0  # one of two is missed
    found = reasons.judge("far", reasons.OURS, guilty, blame)
    assert (found.on_top, found.by_k) == (pytest.approx(2 / 3), (1.0, 0.0, 1.0))
    assert found.precision == pytest.approx(2.5 / 3)
    planted = reasons.plant_guilty("impossible", seed=0, rows=2000)
    assert planted.guilty.sum(axis=1).min() >= 1
    assert planted.guilty.sum(axis=1).max() <= 3


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
    far = reasons.distances(mixed)
    assert far[9, 3] == pytest.approx(np.sqrt((1 - 1 / 398) / (1 / 398)))
    assert far[5, [0, 3]] == pytest.approx(np.sqrt(0.995 / 0.005))
    assert far[:, 1] == pytest.approx(
        np.abs(mixed["b"] - mixed["b"].mean()) / mixed["b"].std(ddof=0)
    )
    usual = reasons.usual_values(mixed)
    assert (usual["kind"], usual["at"]) == ("x", mixed["at"][199])
    assert (mixed["b"] < usual["b"]).sum() == 199
    one = reasons.repaired(mixed, 9, ["kind", "b", "at"], usual)
    assert one["kind"].tolist() == ["x"]
    assert one[["b", "at"]].values.tolist() == [[usual["b"], usual["at"]]]
    assert one["a"].tolist() == [mixed["a"][9]]
    assert (one.dtypes == mixed.dtypes).all()
    assert mixed["kind"][9] == "w"


def test_rows_that_are_repaired_leave_the_list(mixed):
    mixed.loc[17, "b"] = 40.0
    found = reasons.look_through("mixed", mixed)
    assert found.rows == 20
    assert found.weak <= 3
    assert 10 <= found.first <= found.named
    assert found.left >= found.claimed - 2
    assert found.unlisted >= 15


def test_planted_rows_differ_in_one_column(rng):
    frame = pd.DataFrame(np.repeat(rng.normal(size=(500, 2)), 2, axis=1), columns=list("abcd"))
    frame += 0.1 * rng.normal(size=frame.shape)
    for kind in ("combination", "far"):
        planted = reasons.PLANTED[kind](frame, 0)
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
    assert len(reasons.ordinary(frame, 0).rows) == 50


def test_promised_losses_are_judged_on_their_share():
    signals = np.geomspace(costs.PROMISED, 1000.0, 40)
    law = [costs.MeanLoss(1000, 1.0, t, costs.Expectation(t).loss) for t in signals]
    missed = [costs.MeanLoss(1000, 1.0, t, costs.Expectation(t).loss + 2.1) for t in signals[:11]]
    assert costs.within(law) == 1.0
    assert costs.within([*law, *missed]) == pytest.approx(40 / 51)
    assert not costs.MeanLoss(1000, 1.0, 5.0, 40.0).promised
    assert [costs.kept_out(name) for name in ("set 0", "set 2")] == [False, True]
    assert costs.with_error(np.array([1.0, 3.0])) == "2.0 ± 1.0"
