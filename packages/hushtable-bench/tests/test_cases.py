"""The cases run through on tiny made-up data, by their commands; and what judges their figures."""

import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from hushtable.cli import main
from hushtable_bench import (
    explanations,
    figures,
    gaps,
    joining,
    privacy,
    speed,
    workloads,
)
from hushtable_bench.results import Promise
from hushtable_bench.runner import CASES, CaseRun
from hushtable_bench.workloads import Absent, Task, faster, within

LINUX = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")


# --- the runner -----------------------------------------------------------------------------------


def test_a_run_collects_its_page_and_its_targets_can_fail(tmp_path, capsys):
    run = CaseRun("toy", tmp_path / "o")
    run.say("Words.")
    run.table({"a": "{t.real:.1f}"}, [1, 2])
    run.hold("kept", 2.0, ">=", 1.0)
    assert run.targets == [Promise("kept", 2.0, ">=", 1.0, ".4f")]
    assert run.finish().code == 0
    run.hold("missed", 0.5, ">=", 10.0)
    done = run.finish()
    assert (done.code, done.facts["targets"][1]["met"]) == (1, False)
    assert (tmp_path / "o" / "toy.csv").read_text() == "a\n1.0\n2.0\n"
    done.write()
    out = capsys.readouterr().out
    assert "Words.\n\n| a   |\n| --- |\n| 1.0 |\n| 2.0 |" in out
    assert out.count("Measured with") == 1
    assert "FAIL" in out
    left_out = CaseRun("toy", tmp_path, left_out={"set": "broken"}).finish()
    assert (left_out.code, left_out.blocks[-2]) == (1, "\nLeft out: set. broken")


def test_bad_data_is_a_message_and_an_exit_code(capsys, tmp_path):
    assert main(["bench", "rows", "--data", str(tmp_path / "gone")]) == 1
    assert "gone is not a folder" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["advice", "beyond", "faults", "oddbench", "ranks", "sites"])
def test_a_case_that_is_gone_is_refused_with_the_way_on(name, capsys):
    assert main(["bench", name, "--data", "x"]) == 2
    assert f"bench {name} was removed: " in capsys.readouterr().err


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
    "contexts": (None, {}, "--quick", "within wards of a size"),
    "explain": (explanations, {"ROWS": 2000}, "--quick", "all guilty features on top"),
    "gaps": (gaps, {"SIDES": (0, 10)}, "--seeds 1 --gaps {gaps}", "errors: AP kept"),
    "joining": (joining, {"LEAST": 5, "ALIKE": (50,)}, "--quick", "Minus the site's"),
    "rows": (privacy, {"QUICK_SIZES": (100, 200)}, "--quick", "| 200  |    3 |"),
    "speed": (speed, {"QUICK_SCALE": 1000}, "--quick --only new", "score of fitted rows"),
}
#: Those that take less than two seconds.
SOON = ("rows", "speed")
#: Those with tests of their own.
ELSEWHERE = {"adbench", "attacks", "paper", "privacy", "verdicts"}


def test_every_case_is_tried():
    assert set(SMALL) | ELSEWHERE == set(CASES)


def test_a_case_takes_its_own_options_alone(capsys):
    assert main(["bench"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [*CASES]
    for words, says in {
        "speed --seeds 2": "bench speed takes no --seeds: it takes --quick, --only\n",
        "explain --max-rows 99": "bench explain takes no --max-rows: it takes --quick\n",
        "privacy --attacks": "hushtable bench attacks is a case of its own",
        "verdicts --budget 9": "it is fixed",
        "everything": "bench everything: needs one of adbench, attacks, contexts, ",
    }.items():
        assert main(["bench", *words.split()]) == 2
        assert says in capsys.readouterr().err


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
    monkeypatch.setenv("HUSHTABLE_DATA", str(tmp_path / "sets"))
    monkeypatch.setattr(privacy, "LARGE", 200)
    monkeypatch.setattr(speed, "GROWTH", {})
    given = arguments.format(gaps=tmp_path / "gaps").split()
    assert main(["bench", name, *given, "--output", str(tmp_path / "o")]) in (0, 1)
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


def test_targets_of_a_full_run_can_fail_and_what_is_absent_is_said(tmp_path, monkeypatch):
    def absent(scale, stack):
        raise Absent("no server")

    good = entry({"a": lambda: 1.0, "b": lambda: 3.0}, within("a", "b", 0.5), faster("a", "b", 9.0))
    monkeypatch.setattr(speed, "ENTRIES", [good, Task("database", absent, ())])
    monkeypatch.setattr(speed, "GROWTH", {"rows": ((2, 4, 8), lambda n: {
        "fit": lambda: float(n), "score": lambda: float(n * n),
    })})  # fmt: skip
    full = speed.speed(output=tmp_path)
    met = [target["met"] for target in full.facts["targets"]]
    assert met == [True, False, True, False, True, False]
    assert "Left out: database: no server." in full.blocks
    assert (tmp_path / "growth.svg").exists()
    assert speed.speed(quick=True, output=tmp_path).facts["targets"] == []


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
def test_the_peak_of_a_load_is_that_of_its_process():
    assert workloads.process_memory(status="VmHWM:\t  12 kB\nVmRSS:\t 3 kB") == 12 * 1024
    assert workloads.peak_of("stream", 3_000) > 50.0
    with pytest.raises(AssertionError, match="wrong"):
        workloads.report(exact=False)


@pytest.mark.serial
@pytest.mark.slow
@LINUX
def test_memory_does_not_grow_with_the_rows():
    """Two million rows more are 80 MB as they are read: nothing of them stays."""
    few, many = (workloads.peak_of("stream", size) for size in (2_000_000, 4_000_000))
    assert many - few <= 40.0


def test_the_figure_of_growth_has_a_panel_for_each_size(tmp_path):
    times = [{"fit": 1.0, "score": 0.5}, {"fit": 2.0, "score": 1.0}]
    curves = {"rows": ((10, 20), times), "tables": ((1, 2), times)}
    files = figures.growth_figure(curves, tmp_path)
    assert [file.name for file in files] == ["growth.svg", "growth.png"]
    assert "by tables" in files[0].read_text() or files[0].stat().st_size > 1000


# --- other figures --------------------------------------------------------------------------------


def test_guilty_features_are_judged():
    guilty = np.zeros((3, explanations.COLUMNS), bool)
    guilty[0, 0] = guilty[1, :2] = guilty[2, :3] = True
    blame = np.tile(-np.arange(explanations.COLUMNS, dtype=float), (3, 1))
    blame[1, 1] = -99.0  # one of two is missed
    found = explanations.judge("far", explanations.OURS, guilty, blame)
    assert (found.on_top, found.by_k) == (pytest.approx(2 / 3), (1.0, 0.0, 1.0))
    assert found.precision == pytest.approx(2.5 / 3)
    planted = explanations.plant_guilty("impossible", seed=0, rows=2000)
    assert planted.guilty.sum(axis=1).min() >= 1
    assert planted.guilty.sum(axis=1).max() <= 3
