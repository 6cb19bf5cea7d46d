"""Periods on the command line: what a site keeps, what leaves, what is decoded, what is refused."""

import multiprocessing
import shutil

import numpy as np
import pytest

from cli_helpers import do, write_rows
from hushtable import Release, files, load

pytest.importorskip("opendp")

SCHEMA = """
[[feature]]
name = "age"
kind = "numeric"
low = 0
high = 120

[[feature]]
name = "income"
kind = "numeric"
low = 0
high = 200_000
"""
TERMS = ("--epsilon", 1, "--expected-rows", 4_000, "--tables", 8, "--seed", 1)
MONTHS = range(1, 4)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Two sites after three of four months, north from the first on, south from the second."""
    here = tmp_path_factory.mktemp("periods")
    (here / "schema.toml").write_text(SCHEMA)
    plan = here / "plan.hush"
    do("plan", "draw", here / "schema.toml", *TERMS, "--horizon", 4, "-o", plan)
    other = ("--horizon", 5, "-o", here / "other.plan.hush")
    do("plan", "draw", here / "schema.toml", *TERMS, *other)
    for seed, name in enumerate(("north", "south")):
        for month in range(1, 5):
            rows = write_rows(here / f"{name}-{month}.csv", 600, 10 * month + seed)
            sketch = here / f"{name}-{month}.sketch.hush"
            do("sketch", rows, "--plan", plan, "-o", sketch)
            start = ("--start", 2) if name == "south" else ()
            if month in MONTHS and (name, month) != ("south", 1):
                periods = ("--periods", here / f"{name}.periods.hush", "--epsilon", 1)
                do("release", sketch, *periods, *start, "-o", here / f"{name}-{month}.hush")
    do("sketch", here / "north-1.csv", "--plan", here / "other.plan.hush",
       "-o", here / "other.sketch.hush")  # fmt: skip
    do("release", here / "other.sketch.hush", "--periods", here / "other.periods.hush",
       "--epsilon", 1, "-o", here / "other.hush")  # fmt: skip
    return here


@pytest.fixture
def here(kept, tmp_path):
    """A copy, to be written to."""
    return shutil.copytree(kept, tmp_path / "here")


def sent(kept, *but):
    names = ["north-1", "north-2", "north-3", "south-2", "south-3"]
    return [kept / f"{name}.hush" for name in names if name not in but]


# --- what is done -------------------------------------------------------------------------------


def test_a_plan_says_how_noisy_the_last_sum_is(run, kept, tmp_path):
    command = ("plan", "draw", kept / "schema.toml", *TERMS, "-o", tmp_path / "plan.hush")
    out = " ".join(run(*command, "--horizon", "24,2,12").out.split())
    assert (
        "It is for 24 periods at one total budget, for a person who is in at most 2 of them." in out
    )
    assert "times the noise of one release of all rows at once" in out
    assert "--periods site.periods.hush --epsilon 1" in out
    horizon = load(tmp_path / "plan.hush").horizon
    assert (horizon.periods, horizon.participations, horizon.apart) == (24, 2, 12)


def test_the_noise_that_a_plan_says_is_that_of_the_sum(run, kept, tmp_path):
    out = run("plan", "draw", kept / "schema.toml", *TERMS, "--horizon", 3,
              "-o", tmp_path / "plan.hush").out  # fmt: skip
    made = []
    for month in range(1, 4):
        do("sketch", kept / f"north-{month}.csv", "--plan", tmp_path / "plan.hush",
           "-o", tmp_path / "sketch.hush")  # fmt: skip
        made.append(tmp_path / f"{month}.hush")
        do("release", tmp_path / "sketch.hush", "--periods", tmp_path / "kept.hush",
           "--epsilon", 1, "-o", made[-1])  # fmt: skip
    noise_sd = run("decode", *made, "-o", tmp_path / "sum.hush", "--json").json["noise_sd"]
    assert f"is {noise_sd:,.0f} (standard" in " ".join(out.split())


def test_what_leaves_is_decoded_and_scores(run, kept, tmp_path):
    model, rows = tmp_path / "model.hush", kept / "north-1.csv"
    facts = run("decode", *sent(kept), "-o", model, "--json").json
    assert (facts["period"], facts["window"], facts["horizon"]) == (3, 3, 4)
    assert abs(facts["rows"] - 3_000) < 1_000
    assert facts["epsilon"] <= 1.0
    assert isinstance(load(model), Release)
    flagged = ("--contamination", 0.05)
    assert run("score", rows, "--model", model, *flagged, "-o", tmp_path / "s.csv").code == 0
    assert run("report", model, rows, "-o", tmp_path / "r.html").code == 0
    page = (tmp_path / "r.html").read_text()
    assert "the files of all 4 periods show together" in page
    assert "for each of 3 periods" in page
    last = run("decode", *sent(kept), "--window", 1, "-o", tmp_path / "last.hush", "--json").json
    assert (last["period"], last["window"]) == (3, 1)
    assert last["epsilon"] == facts["epsilon"]


def test_drift_of_a_window_with_what_came_before(run, kept, tmp_path):
    before, last = tmp_path / "before.hush", tmp_path / "last.hush"
    do("decode", *sent(kept), "--period", 2, "-o", before)
    do("decode", *sent(kept), "--window", 1, "-o", last)
    result = run("drift", before, last, "--fail-above", "chance", "--json")
    drift, level = result.json["drift"], result.json["level"]
    # The noise is new at each run, and one in 20 is beyond the level; none is far beyond it.
    assert result.code == (3 if drift > level else 0)
    assert drift < 3 * level
    do("decode", *sent(kept), "-o", last)
    result = run("drift", before, last)
    assert result.code == 2
    assert "a period is in both" in result.err


def test_merge_adds_one_period(run, kept, tmp_path):
    both, model = tmp_path / "both.hush", tmp_path / "model.hush"
    facts = run("merge", kept / "north-2.hush", kept / "south-2.hush", "-o", both, "--json").json
    assert facts["period"] == 2
    assert "rows" not in facts
    assert "period" in run("merge", kept / "north-3.hush", kept / "south-3.hush",
                           "-o", tmp_path / "third.hush").out  # fmt: skip
    do("decode", kept / "north-1.hush", both, tmp_path / "third.hush", "-o", model)
    do("decode", *sent(kept), "-o", tmp_path / "same.hush")
    np.testing.assert_array_equal(load(model).counts, load(tmp_path / "same.hush").counts)


def test_a_period_is_written_again_bit_for_bit(run, here, tmp_path):
    periods, again = here / "north.periods.hush", tmp_path / "again.hush"
    was = periods.read_bytes()
    command = ("release", here / "north-4.sketch.hush", "--periods", periods)
    assert run(*command, "--period", 2, "-o", again).code == 0
    assert again.read_bytes() == (here / "north-2.hush").read_bytes()
    assert periods.read_bytes() == was


def test_a_crash_before_the_increment_spends_nothing_twice(run, here, monkeypatch):
    periods, out = here / "north.periods.hush", here / "north-4.hush"
    command = ("release", here / "north-4.sketch.hush", "--periods", periods, "-o", out)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("hushtable.counts.periods.Increment.save", full)
        assert run(*command).code == 1
    assert not out.exists()
    assert len(load(periods)) == 4  # it was kept first
    result = run(*command)  # the same rows would be in two periods
    assert result.code == 2
    assert "exactly the counts of period 4" in result.err
    assert run(*command, "--period", 4).code == 0
    np.testing.assert_array_equal(load(out).counts, load(periods).increment(4).counts)


def test_only_increments_travel(kept):
    assert (kept / "north.periods.hush").stat().st_mode & 0o077 == 0
    assert (kept / "north-1.hush").stat().st_mode & 0o044
    assert files.travels("increment")
    assert not files.travels("periods")


@pytest.mark.parametrize("name", ["plan", "north-2", "south.periods", "sum"])
def test_inspect_says_what_the_cost_covers(run, kept, tmp_path, name):
    file = kept / f"{name}.hush"
    if name == "sum":
        file = tmp_path / "sum.hush"
        do("decode", *sent(kept), "--window", 2, "-o", file)
    facts, out = run("inspect", file, "--json").json, " ".join(run("inspect", file).out.split())
    assert "4 periods" in out
    if name == "plan":
        assert facts["design"]["horizon"]["factor"] == [32, 16, 12, 10]
        return
    assert "anything that the files of all 4 periods show together" in facts["words"][0]
    assert facts["words"][0].split()[-1] in out
    says = {
        "north-2": "This file holds the increment of period 2 of 4",
        "south.periods": "3 of 4 released, from period 2 on",
        "sum": "This file holds the decoded sum of periods 2 to 3 of 4",
    }
    assert says[name] in out
    assert ("Rows, estimated" in out) == (name == "sum")  # an increment mixes rows
    if name == "south.periods":
        assert facts["rows"] == [600, 600]
        assert "May leave no: it holds exact counts" in out


# --- what is refused ----------------------------------------------------------------------------


def test_increments_that_make_no_sum(refused, kept, tmp_path):
    shutil.copy(kept / "north-1.hush", tmp_path / "copy.hush")
    out = ("-o", tmp_path / "model.hush")
    for given, says in (
        ([*sent(kept), tmp_path / "copy.hush"], ["copy.hush", "counted twice"]),
        (sent(kept, "north-2", "south-2"), "needs each from 1 to 3 once"),
        (sent(kept, "south-3"), ["is in period 2", "not in period 3", "start a new plan"]),
        ([kept / "north-1.hush", kept / "other.hush"], ["other.hush", "a different plan"]),
        ([kept / "north-1.sketch.hush"], "holds a sketch"),
        ([kept / "north.periods.hush"], "holds periods"),
    ):
        refused("decode", *given, *out, says=says)
    first = kept / "north-1.hush"
    refused("decode", first, first, *out, code=2, says="given twice")
    refused(
        "decode", first, "--period", 2, *out, code=2, says="no increment belongs to that period"
    )
    refused("decode", first, "--window", 2, *out, code=2, says="window=2")
    refused("merge", first, kept / "south-2.hush", *out, says="hushtable decode")
    refused("merge", first, kept / "north-1.sketch.hush", *out, says="hushtable decode")
    for command in (("score", kept / "north-1.csv", "--model", first), ("report", first)):
        end = tmp_path / ("s.csv" if command[0] == "score" else "r.html")
        refused(*command, "-o", end, says=["holds an increment", "hushtable decode"])
    refused("drift", first, kept / "north-2.hush", says="hushtable decode")


def test_periods_out_of_order(refused, run, here, tmp_path):
    fourth, out = here / "north-4.sketch.hush", ("-o", tmp_path / "x.hush")
    north = ("release", fourth, "--periods", here / "north.periods.hush", *out)
    refused(*north, "--period", 5, code=2, says=["4 periods", "draw a new plan"])
    refused("release", fourth, "--periods", here / "new.hush", "--epsilon", 1, "--period", 2,
            *out, code=2, says="next one is 1")  # fmt: skip
    assert not (here / "new.hush").exists()
    south = ("release", here / "south-4.sketch.hush", "--periods", here / "south.periods.hush")
    refused(*south, *out, "--period", 1, code=2, says="from 2 to 3")
    refused(*south, *out, "--start", 3, code=2, says="began with period 2")
    assert run(*north).code == 0
    more = write_rows(tmp_path / "more.csv", 90, 77)
    do("sketch", more, "--plan", here / "plan.hush", "-o", tmp_path / "more.hush")
    refused(
        "release",
        tmp_path / "more.hush",
        *north[2:],
        code=2,
        says="period 5: the plan is for 4 periods",
    )


def test_files_and_terms_that_do_not_go_together(refused, here, tmp_path):
    sketch, out = here / "north-4.sketch.hush", ("-o", tmp_path / "x.hush")
    north = here / "north.periods.hush"
    refused("release", here / "other.sketch.hush", "--periods", north, *out, says="another plan")
    refused("release", sketch, "--periods", here / "south-2.hush", *out, says="holds an increment")
    refused(
        "release", sketch, "--periods", north, "--epsilon", 2, *out, code=2, says="created with"
    )
    refused("release", sketch, "--periods", here / "new.hush", *out, code=2, says="give epsilon")
    refused("release", sketch, "--epsilon", 1, *out, says="--periods site.periods.hush")
    refused("release", sketch, "--periods", north, "--share", 0.5, *out, code=2, says="was removed")
    refused("release", sketch, "--periods", north, "--rows-per-person", 2, *out,
            code=2, says="--epsilon")  # fmt: skip
    refused("release", sketch, "--periods", north, "-o", north, code=2, says="both read and")
    refused("plan", "draw", here / "schema.toml", *TERMS, "--horizon", "24,0", *out,
            code=2, says="--horizon 24,0: needs one to three whole numbers")  # fmt: skip
    damaged = bytearray(north.read_bytes())
    damaged[-100] ^= 1
    (tmp_path / "damaged.hush").write_bytes(damaged)
    refused("release", sketch, "--periods", tmp_path / "damaged.hush", *out, says="get it again")
    (tmp_path / "short.hush").write_bytes(damaged[:5000])
    refused("release", sketch, "--periods", tmp_path / "short.hush", *out, says="truncated")


def test_what_came_before_a_stream_is_named_with_its_first_period(run, refused, here, tmp_path):
    """A stream could not name it: its total then left out what the same people had paid before."""
    plan, before = tmp_path / "once.plan.hush", tmp_path / "before.hush"
    do("plan", "draw", here / "schema.toml", *TERMS, "-o", plan)
    do("sketch", here / "north-1.csv", "--plan", plan, "-o", tmp_path / "once.hush")
    do("release", tmp_path / "once.hush", "--epsilon", 0.5, "-o", before)
    periods, out = here / "new.periods.hush", tmp_path / "x.hush"
    asked = ("release", here / "north-1.sketch.hush", "--periods", periods, "--after", before)
    refused(*asked, "--epsilon", 0.5, "-o", out, says="is exhausted")
    assert not periods.exists()
    said = run(*asked, "--epsilon", 1, "-o", out)
    assert said.code == 0, said.err
    told = " ".join(said.out.split())
    assert "of all 4 periods and the earlier releases on the same rows (hushtable " in told
    assert 0.99 < load(out).ledger.epsilon <= 1.0
    more = ("release", here / "north-2.sketch.hush", "--periods", periods)
    do(*more, "--after", before, "-o", tmp_path / "second.hush")  # the same again
    assert load(tmp_path / "second.hush").ledger.shares == load(out).ledger.shares
    third = ("release", here / "north-3.sketch.hush", "--periods", periods)
    other = tmp_path / "other.hush"
    do("release", tmp_path / "once.hush", "--epsilon", 0.1, "-o", other)
    refused(*third, "--after", other, "-o", tmp_path / "y.hush", code=2, says="names the stream")
    refused(*third, "--after", here / "north-1.hush", "-o", tmp_path / "y.hush", says="increment")
    assert len(load(periods)) == 2


def _release(sketch, periods, out, ready, results):
    from hushtable.cli import main

    ready.wait()
    results.put(main(["release", str(sketch), "--periods", str(periods), "-o", str(out)]))


@pytest.mark.slow
def test_two_processes_release_one_noise(here, tmp_path):
    """Of the same rows at once: the second is refused, or finds the period released."""
    periods = here / "north.periods.hush"
    context = multiprocessing.get_context("spawn")
    ready, results = context.Barrier(2), context.Queue()
    outs = [tmp_path / f"{n}.hush" for n in range(2)]
    given = [(here / "north-4.sketch.hush", periods, out, ready, results) for out in outs]
    workers = [context.Process(target=_release, args=one) for one in given]
    for worker in workers:
        worker.start()
    codes = sorted(results.get(timeout=60) for _ in workers)
    for worker in workers:
        worker.join()
    assert codes[0] == 0
    assert all(codes[1:])
    written = [out for out in outs if out.exists()]
    assert len(written) == 1
    np.testing.assert_array_equal(load(written[0]).counts, load(periods).increment(4).counts)


def test_a_lock_is_held_while_a_period_is_released(refused, here, tmp_path):
    periods = here / "north.periods.hush"
    command = ("release", here / "north-4.sketch.hush", "--periods", periods)
    with files.locked(periods):
        refused(*command, "-o", tmp_path / "x.hush", says="another process is working on it")
    do(*command, "-o", tmp_path / "x.hush")
