"""Private release on the command line: two rounds at two sites, and what is refused."""

import pytest

from cli_helpers import SCHEMA, do, write_rows
from hushtable import Plan, Schema

TERMS = ("--epsilon", 1, "--expected-rows", 20_000)


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """Two sites after two rounds: every file that they and the coordinator have."""
    here = tmp_path_factory.mktemp("sites")
    schema = here / "schema.toml"
    schema.write_text(SCHEMA)
    first = Plan.marginals(Schema.from_toml(schema), epsilon=1.0, expected_rows=20_000)
    first.save(here / "first.plan.hush")
    for seed, name in enumerate(("north", "south")):
        rows = write_rows(here / f"{name}.csv", 9_000, seed)
        first = here / f"{name}.first.sketch.hush"
        do("sketch", rows, "--plan", here / "first.plan.hush", "-o", first)
        do("release", first, "--epsilon", 1, "-o", here / f"{name}.first.hush")
    firsts = [here / "north.first.hush", here / "south.first.hush"]
    do("merge", *firsts, "-o", here / "marginals.hush")
    marginals = ("--marginals", here / "marginals.hush")
    do("plan", "draw", schema, *marginals, *TERMS, "--seed", 1, "-o", here / "plan.hush")
    for name in ("north", "south"):
        sketch = here / f"{name}.sketch.hush"
        do("sketch", here / f"{name}.csv", "--plan", here / "plan.hush", "-o", sketch)
        do("release", sketch, "--epsilon", 1, "-o", here / f"{name}.hush")
    do("merge", here / "north.hush", here / "south.hush", "-o", here / "all.hush")
    return here


# --- two rounds, end to end ---------------------------------------------------------------------


def test_a_sketch_may_not_leave(run, sites):
    out = run("inspect", sites / "north.sketch.hush").out
    assert "no: it holds exact counts" in " ".join(out.split())


def test_a_detector_made_from_a_release_may_not_leave(run, sites, tmp_path):
    from hushtable import HushTable, load

    HushTable.from_counts(load(sites / "all.hush")).save(tmp_path / "d.hush")
    out = " ".join(run("inspect", tmp_path / "d.hush").out.split())
    assert "May leave no: its threshold may come from local rows" in out
    assert "Privacy cost of this release for one person" in out


def test_rows_score_against_the_merged_release(run, sites, tmp_path):
    facts = run(
        "score", sites / "north.csv", "--model", sites / "all.hush",
        "-o", tmp_path / "s.csv", "--json",
    ).json  # fmt: skip
    assert facts["lowest"][0]["row"] == 7
    assert 0 < facts["outliers"] < 2_000
    out = run(
        "score", sites / "north.csv", "--model", sites / "all.hush", "-o", tmp_path / "s.csv"
    ).out
    assert "the privacy of the model does not cover them" in out


def test_earlier_releases_count(run, sites, tmp_path):
    sketch = sites / "north.sketch.hush"
    do("release", sketch, "--epsilon", 0.5, "-o", tmp_path / "a.hush")
    after = ("--after", tmp_path / "a.hush")
    facts = run("release", sketch, "--epsilon", 1, *after, "-o", tmp_path / "b.hush", "--json").json
    assert 0.9999 < facts["epsilon"] <= 1.0
    assert "hushtable" in run("inspect", tmp_path / "b.hush").out


# --- refusals -----------------------------------------------------------------------------------


def test_an_epsilon_that_is_no_number_is_wrong_usage(refused, sites, old):
    sketch = sites / "north.sketch.hush"
    refused("release", sketch, "--epsilon", "one", "-o", old, code=2, says="valid number")
    refused("release", sketch, "-o", old, code=2, says="--epsilon")


def test_a_release_is_not_released_again(refused, sites, old):
    refused("release", sites / "north.hush", "--epsilon", 1, "-o", old, says="is already a release")


def test_a_release_can_be_signed(run, sites):
    out = run("inspect", sites / "all.hush").out
    folded = " ".join(out.split())
    assert (
        "Adding or removing one record changes the probability of anything that this file shows by "
        "at most a factor e^1.0, plus 1e-06." in folded
    )
    assert "That is the total over all 200 tables and the earlier releases" in folded
    assert "for one at 2 sites the factor is e^1.4" in folded
    assert "May leave yes" in folded
    assert "opendp" in folded
    assert max(map(len, out.splitlines())) <= 100


def test_release_says_what_may_leave(run, sites, tmp_path):
    out = run("release", sites / "north.sketch.hush", "--epsilon", 2, "-o", tmp_path / "r.hush").out
    assert "this file may leave the site" in out
    assert "north.sketch.hush may not" in out
    assert "e^2.0" in out
    facts = run(
        "release", sites / "north.sketch.hush", "--epsilon", 2, "-o", tmp_path / "r.hush", "--json"
    ).json
    assert 1.999 < facts["epsilon"] <= 2.0
    assert facts["cells"] == 12_800
