"""Rounds for plausible ranges: thresholds of several hospitals."""

import contextlib
import json
import time

import numpy as np
import pyarrow as pa
import pytest

import dqd
from cli_helpers import do
from hushtable import Feature, Plan, Schema, Sketch
from hushtable.cli import main
from hushtable_connect.omop import ConceptSet, Recipe
from range_rounds import (
    GLUCOSE,
    MMOL,
    multiplied,
    open_for_ranges,
    play,
    set_up,
    three_hospitals,
)

pytest.importorskip("duckdb")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(capsys, *command):
    """Run a command that must succeed; return its facts."""
    capsys.readouterr()
    do(*command, "--json")
    return json.loads(capsys.readouterr().out)


def refused(capsys, *command, code=1):
    """Run a command that must fail; return what it says."""
    capsys.readouterr()
    assert main([str(one) for one in command]) == code, command
    return " ".join(capsys.readouterr().err.split())


def values_of(here, sites, concepts="set.toml"):
    """Return all values of each column, exactly, from all sites."""
    recipe = Recipe("person", ConceptSet.from_toml(concepts), "cdm")
    tables = [
        pa.Table.from_batches(recipe.open(f"duckdb:///{here / site}.duckdb").read())
        for site in sites
    ]
    pooled = pa.concat_tables(tables)
    return {name: pooled[name].drop_null().to_numpy() for name in pooled.column_names}


@pytest.mark.serial
@pytest.mark.slow
def test_three_hospitals_find_thresholds_and_a_wrong_unit(here, capsys):
    persons, rng = 100_000, np.random.default_rng(9)
    hospitals = three_hospitals(persons)
    # Values in mg/dL under mmol/L, beyond the public range; and in umol/L under mg/dL, within it.
    hospitals["south"] = multiplied(hospitals["south"], GLUCOSE, MMOL, 18.0, 0.1, rng)
    hospitals["south"] = multiplied(hospitals["south"], 3024128, 8840, 17.1, 0.08, rng)
    set_up(here, hospitals)
    do(*open_for_ranges(3 * persons))
    began = time.perf_counter()
    result = play(here)
    seconds = time.perf_counter() - began
    common = ("round", "ranges", result, "--read", "omop=person", "--read", "concepts=set.toml")
    facts = asked(capsys, *common, "-o", "thresholds.csv")
    assert facts["epsilon"] <= 1.0
    worst, relative, usual = _positions(facts, values_of(here, hospitals))
    with capsys.disabled():
        print(
            f"\n3 x {persons:,} persons, epsilon 1, round {seconds:.0f} s: positions off by at most"
            f" {worst:.4f}, in shares of the tail {relative:.2f}, usually {usual:.2f}"
        )
    assert worst < 0.01
    _check_by_dqd(here)


def _positions(facts, pooled):
    """Return by how much positions are off: at worst, and in shares of the tail; their median."""
    off, shares = [], []
    for one in facts["ranges"]:
        assert len(one["limits"]) == 2, one
        for limit, side in zip(one["limits"], ("low", "high"), strict=True):
            values, tail = pooled[one["name"]], min(limit["quantile"], 1 - limit["quantile"])
            beyond = values < limit["value"] if side == "low" else values > limit["value"]
            # A limit at the end of the public range cannot follow the values beyond it.
            wrong = one["name"] == "glucose_mmol" and side == "high"
            assert limit["at_end"] or not wrong
            if not wrong:
                off.append(abs(beyond.mean() - tail))
                shares.append(off[-1] / tail)
    return max(off), max(shares), float(np.median(shares))


def _check_by_dqd(here):
    """Have the DataQualityDashboard's SQL and rule judge all measurements of all sites."""
    for site in ("north", "south", "west"):
        found = dqd.checked(here / f"{site}.duckdb", "thresholds.csv")
        failed = {(name, side) for (name, _, side), (_, fails) in found.items() if fails}
        assert failed == ({("glucose_mmol", "High")} if site == "south" else set())


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Three hospitals of 3,000 persons, and the result of a round about four columns."""
    here = tmp_path_factory.mktemp("hospitals")
    with contextlib.chdir(here):
        set_up(here, three_hospitals(3_000))
        blocks = (here / "ranges.toml").read_text().split("\n\n")
        kept = ("sodium", "creatinine", '"glucose"', "glucose_mmol")
        text = "\n\n".join(b for b in blocks if any(k in b for k in kept))
        (here / "ranges.toml").write_text(text)
        do(*open_for_ranges(9_000))
        play(here)
    return here


@pytest.fixture
def small(played, monkeypatch):
    monkeypatch.chdir(played)
    return played


def test_units_of_a_concept_are_columns_and_lacking_persons_are_named(small, capsys):
    result = "result.hush"
    facts = asked(
        capsys, "round", "ranges", result, "--read", "omop=person", "--read", "concepts=set.toml",
        "--quantiles", "0.05,0.95", "-o", "thresholds.csv",
    )  # fmt: skip
    assert {one["name"] for one in facts["ranges"]} == {
        "sodium", "creatinine", "glucose", "glucose_mmol"
    }  # fmt: skip
    table = dqd.read("thresholds.csv")
    glucose = table[table["conceptId"] == GLUCOSE]
    assert set(glucose["unitConceptName"]) == {"mg/dL", "mmol/L"}
    assert (table["plausibleValueLow"] < table["plausibleValueHigh"]).all()
    assert table["plausibleValueLowNotes"].str.contains("quantile 0.05, .* by noise").all()
    assert table["plausibleValueLowNotes"].str.contains("3 sites, epsilon 1").all()
    lacking = asked(capsys, "round", "ranges", result, "-o", "ranges.csv")
    assert all(not one["limits"] for one in lacking["ranges"])
    for one in lacking["ranges"]:
        assert one["needed"] > one["values"]
    do("round", "ranges", result, "-o", "ranges.csv")
    out = " ".join(capsys.readouterr().out.split())
    assert f"{lacking['ranges'][0]['needed']:,}" in out
    assert "Left out" in out
    # A schema for a later round, which counts what this one cost.
    do("round", "ranges", result, "--quantiles", "0.05,0.95", "-o", "later.toml")
    later = Schema.from_toml("later.toml")
    assert later.features[0].high < 225
    assert [spent.what for spent in later.paid] == ["marginals"]
    draw = ("plan", "draw", "later.toml", "--epsilon", 1, "--expected-rows", 9_000)
    do(*draw, "-o", "plan.hush")
    assert main([str(one) for one in (
        "sketch", "duckdb:///north.duckdb", "--read", "omop=person", "--read", "cdm=cdm",
        "--read", "concepts=set.toml", "--plan", "plan.hush", "-o", "sketch.hush",
    )]) == 0  # fmt: skip
    said = refused(capsys, "release", "sketch.hush", "--epsilon", 1, "-o", "spent.hush")
    assert "epsilon" in said
    assert not (small / "spent.hush").exists()
    plan = Plan.draw(later, epsilon=2.0, expected_rows=9_000, random_state=0)
    assert [spent.what for spent in plan.behind] == ["marginals"]


def test_a_report_draws_the_histograms_and_there_is_no_dry_run(small, capsys):
    read = ("round", "ranges", "result.hush")
    assert "hushtable report result.hush" in refused(capsys, *read, "-o", "all.html", code=2)
    do("report", "result.hush", "-o", "all.html")
    assert (small / "all.html").read_text().count("<svg") >= 3
    dry = (*read, "--site", "north.toml", "-o", "x.csv")
    assert "was removed: draw a plan" in refused(capsys, *dry, code=2)


@pytest.mark.parametrize("cut", [False, True])
def test_a_history_that_was_cut_stands_beside_the_cost(small, capsys, cut):
    """The coordinator's file of ranges, without the costs of the round that found them."""
    do("round", "ranges", "result.hush", "--quantiles", "0.05,0.95", "-o", "later.toml")
    text, _, _ = (small / "later.toml").read_text().partition("\n[[paid]]")
    if cut:
        (small / "later.toml").write_text(text)
    do("plan", "draw", "later.toml", "--epsilon", 2, "--expected-rows", 9_000, "-o", "plan.hush")
    cards = [f"{name}.card" for name in ("north", "south", "west")]
    do("round", "open", "plan.hush", *cards, "--key", "lead.key", "--epsilon", 2,
       "-o", "later.hush")  # fmt: skip
    show = ("round", "show", "later.hush", "--key", "north.key")
    words, total = asked(capsys, *show)["beside_cost"], "with all, epsilon 2."
    do(*show)
    _, _, beside = capsys.readouterr().out.partition("Cost  ")
    if cut:
        assert "1 earlier answer of this site about 'all rows' that the plan does not" in words
        assert total in words
        assert words in beside.splitlines()[1]
    else:
        assert words == ""
        assert total not in beside
    assert asked(capsys, "round", "show", "later.hush")["beside_cost"] == ""


def test_too_few_persons_are_said_before_anything_is_spent(small, capsys):
    do(*open_for_ranges(3_000, output="few.hush"))
    words = "needs about", "The 3,000 expected rows are fewer: they are enough for the quantiles"
    out = " ".join(capsys.readouterr().out.split())
    assert all(one in out for one in words)
    do("round", "show", "few.hush")  # what a site sees before it answers
    out = " ".join(capsys.readouterr().out.split())
    assert all(one in out for one in words)
    assert "no round was opened" in refused(capsys, *open_for_ranges(50, output="none.hush"))
    assert not (small / "none.hush").exists()


def test_what_is_no_result_for_ranges_is_refused(here, capsys):
    schema = Schema([Feature.numeric("sodium", low=50, high=225, unit="mmol/L")])
    rows = np.random.default_rng(0).normal(140, 3, (4_000, 1))
    tables = Plan.draw(schema, epsilon=1.0, expected_rows=4_000, random_state=0)
    Sketch.from_data(tables, rows).release(1.0).save("tables.hush")
    assert "--ranges" in refused(
        capsys, "round", "ranges", "tables.hush", "-o", "x.csv", code=2
    )  # fmt: skip
    marginals = Plan.marginals(schema, epsilon=1.0, expected_rows=4_000)
    sketch = Sketch.from_data(marginals, rows)
    sketch.save("exact.hush")
    refused(capsys, "round", "ranges", "exact.hush", "-o", "x.csv")
    sketch.release(1.0, share=1.0).save("release.hush")
    do("round", "ranges", "release.hush", "-o", "x.csv")
    for options, words, code in (
        (("-o", "x.txt"), ".csv or .toml", 2),
        (("-o", "x.csv", "--quantiles", "0.9,0.1"), "0.005,0.995", 2),
        (("-o", "x.csv", "--quantiles", "low"), "two numbers", 2),
        (("-o", "x.csv", "--read", "omop=person"), "50 to 225", 2),
    ):
        if "omop=person" in options:  # the set has the same range: another one is refused
            other = Schema([Feature.numeric("sodium", low=100, high=200, unit="mmol/L")])
            plan = Plan.marginals(other, epsilon=1.0, expected_rows=4_000)
            Sketch.from_data(plan, rows).release(1.0, share=1.0).save("other.hush")
            said = refused(capsys, "round", "ranges", "other.hush", *options, code=code)
        else:
            said = refused(capsys, "round", "ranges", "release.hush", *options, code=code)
        assert words in said, said


def test_names_from_a_coordinator_become_no_formula(here):
    schema = Schema([Feature.numeric("=HYPERLINK(1)", low=0, high=9, unit="@SUM(1)")])
    plan = Plan.marginals(schema, epsilon=1.0, expected_rows=30_000, cells=32)
    rows = np.random.default_rng(0).normal(4, 1, (30_000, 1))
    Sketch.from_data(plan, rows).release(1.0, share=1.0).save("release.hush")
    do("round", "ranges", "release.hush", "-o", "x.csv")
    line = (here / "x.csv").read_text().splitlines()[1]
    assert line.startswith("'=HYPERLINK(1),'@SUM(1),")
    do("round", "ranges", "release.hush", "-o", "x.toml")
    assert Schema.from_toml("x.toml").names == ["=HYPERLINK(1)"]


def test_a_plan_of_other_columns_is_no_round_for_ranges(here, capsys):
    (here / "schema.toml").write_text(
        '[[feature]]\nname = "a"\nkind = "numeric"\nlow = 0\nhigh = 1\n'
    )
    do("plan", "draw", "schema.toml", "-o", "plan.hush")
    for name in ("lead", "north", "south"):
        do("round", "keygen", name, *(() if name == "lead" else ("--cap", 3, "--persons", 1)))
    command = open_for_ranges(9_000, sites=("north", "south"), schema="plan.hush")
    assert "--ranges goes with a schema" in refused(capsys, *command, code=2)
