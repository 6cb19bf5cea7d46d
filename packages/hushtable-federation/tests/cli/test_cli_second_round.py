"""``plan gate`` and ``plan second``: a second round of two sites, exact and private."""

import pytest

import hushtable
from cli_helpers import SCHEMA, do, write_rows
from hushtable import Sketch

TERMS = ("--epsilon", 3, "--expected-rows", 6_000)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    here = tmp_path_factory.mktemp("rounds")
    (here / "schema.toml").write_text(SCHEMA)
    for seed, name in enumerate(("north", "south")):
        write_rows(here / f"{name}.csv", 3_000, seed)
    return here


def counted(here, plan, out, release=()):
    """Count under a plan at both sites, release if need be, and merge; return the file."""
    parts = []
    for name in ("north", "south"):
        parts.append(here / f"{name}.{out}")
        sketch = here / f"{name}.sketch.{out}" if release else parts[-1]
        do("sketch", here / f"{name}.csv", "--plan", plan, "-o", sketch)
        if release:
            do("release", sketch, *release, "-o", parts[-1])
    do("merge", *parts, "-o", here / out)
    return here / out


def test_an_exact_second_round(run, refused, here):
    plan, gate_plan, second = here / "p.hush", here / "g.hush", here / "s.hush"
    drawn = run("plan", "draw", here / "schema.toml", "--seed", 1, "--tables", 20, "-o", plan)
    assert "hushtable plan gate, then hushtable plan second" in " ".join(drawn.out.split())
    first = counted(here, plan, "first.hush")
    made = run("plan", "gate", first, "-o", gate_plan)
    assert "It depends on rows without noise" in made.out
    gate = counted(here, gate_plan, "gate.hush")
    facts = run("plan", "second", first, "--gate", gate, "-o", second, "--json").json
    assert (facts["command"], facts["passes"], facts["novelty"]) == ("plan second", 2, False)
    assert facts["data_dependent"]
    model = counted(here, second, "all.hush")
    shown = run("inspect", model)
    assert "hushtable, second pass behind a gate" in shown.out
    assert "in the second pass, 6,000 in the first" in shown.out
    assert run("inspect", model, "--json").json["passes"] == 2
    assert "gate of a second pass" in run("inspect", gate).out
    # ... is what one site counts of all rows.
    rows = [hushtable.data.read(here / f"{name}.csv") for name in ("north", "south")]
    last = hushtable.load(model)
    assert last == sum(
        (Sketch.from_data(last.plan, part) for part in rows), start=Sketch.zero(last.plan)
    )
    out = here / "scores.csv"
    assert run("score", here / "north.csv", "--model", model, "-o", out).code == 0
    refused("score", here / "north.csv", "--model", gate, "-o", out, says="plan second FIRST")
    refused("release", model, "--epsilon", 1, "-o", out, says="depends on exact counts")
    refused("plan", "second", first, "--gate", first, "-o", out, says="another plan than the gate")
    refused("plan", "gate", model, "-o", out, code=2, says="a third gains nothing")


def test_a_private_second_round_costs_the_total(run, here):
    pytest.importorskip("opendp")
    plan, gate_plan, second = here / "pp.hush", here / "pg.hush", here / "ps.hush"
    asked = ("plan", "draw", here / "schema.toml", "--seed", 1, *TERMS, "-o", plan)
    assert "draw this plan with --passes 2" in " ".join(run(*asked).out.split())
    said = run(*asked, "--passes", 2)
    assert "leaves budget for a second round" in " ".join(said.out.split())
    release = ("--epsilon", 3)
    first = counted(here, plan, "pfirst.hush", release)
    assert run("plan", "gate", first, "-o", gate_plan, "--json").json["design"]["passes"] == 2
    gate = counted(here, gate_plan, "pgate.hush", release)
    made = run("plan", "second", first, "--gate", gate, "-o", second)
    assert "only through private releases" in " ".join(made.out.split())
    model = counted(here, second, "pall.hush", release)
    facts = run("inspect", model, "--json").json
    assert 2.999 < facts["ledger"]["epsilon"] <= 3.0
    assert [spent["what"] for spent in facts["ledger"]["behind_plan"]] == ["hushtable", "gate"]
    assert (facts["passes"], facts["data_dependent"]) == (2, False)
    assert facts["rows_first_pass_estimated"] == pytest.approx(6_000, rel=0.05)
    scored = run("score", here / "north.csv", "--model", model, "-o", here / "s.csv", "--json")
    assert 0 <= scored.json["outliers"] < 300


def test_few_rows_have_no_private_second_round(run, refused, here):
    few = ("plan", "draw", here / "schema.toml", "--epsilon", 1, "--expected-rows", 800)
    assert "would not be worthwhile" in run(*few, "-o", here / "few.hush").out
    refused(*few, "--passes", 2, "-o", here / "f.hush", says="a second pass is not worthwhile")


def test_a_plan_for_novelty(run, refused, here):
    plan = here / "n.hush"
    drawn = run("plan", "draw", here / "schema.toml", "--novelty", "-o", plan, "--json")
    assert drawn.json["novelty"]
    assert "hushtable, for novelty detection" in run("inspect", plan).out
    assert (
        "second round" not in run("plan", "draw", here / "schema.toml", "--novelty", "-o", plan).out
    )
    counts = counted(here, plan, "novelty.hush")
    assert run("inspect", counts, "--json").json["novelty"]
    refused("plan", "gate", counts, "-o", here / "x.hush", code=2, says="clean")
    asked = ("plan", "draw", here / "schema.toml", *TERMS, "--novelty", "--passes", 2)
    refused(*asked, "-o", here / "x.hush", code=2, says="passes=2 with novelty=True")
