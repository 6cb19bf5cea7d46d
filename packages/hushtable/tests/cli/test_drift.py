"""The command drift: the library's figures, a code for schedulers, and clear refusals."""

import json

import numpy as np
import pytest

import hushtable
from cli_helpers import do, write_rows
from hushtable import Sketch, drift


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """Rows of which most have another ward than the site's."""
    path = write_rows(tmp_path_factory.mktemp("moved") / "moved.csv", 300, seed=5)
    path.write_text(path.read_text().replace("north", "south"))
    return path


def test_counts_are_compared_as_the_library_does(run, site):
    a, b = site / "a.sketch.hush", site / "b.sketch.hush"
    facts = run("drift", a, b, "--json").json
    found = drift(hushtable.load(a), hushtable.load(b))
    assert (facts["drift"], facts["level"], facts["rows"]) == (
        found.overall,
        found.level,
        [400, 300],
    )
    assert {n: one["drift"] for n, one in facts["features"].items()} == found.features
    assert {n: one["level"] for n, one in facts["features"].items()} == found.feature_levels
    assert (facts["beyond_chance"], facts["above"]) == (found.beyond_chance, False)


@pytest.mark.parametrize("order", [1, -1])
def test_rows_are_counted_under_the_plan_of_the_other(run, site, moved, order):
    model = hushtable.load(site / "model.hush")
    first = model.sketch_.first_pass()
    found = drift(first, Sketch.from_data(first.plan, moved))
    result = run("drift", *(site / "model.hush", moved)[::order], "--json")
    assert (result.code, result.err) == (0, "")
    assert np.isclose(result.json["drift"], found.overall)
    assert result.json["level"] < found.level  # rows show how far chance goes
    assert result.json["beyond_chance"][0] == "ward"
    assert result.json["rows"] == [400, 300][::order]


def test_rows_with_rows_need_a_model(run, refused, site, moved):
    refused("drift", site / "rows.csv", moved, code=2, says="fit a model to one of them")
    result = run("drift", site / "model.hush", moved)
    assert result.code == 0
    assert "Compared 300 new rows with 400 old ones." in result.out
    assert "beyond what chance explains" in result.out
    assert "Columns that drifted by more than chance: ward" in result.out.replace("\n", " ")
    assert "─\nward " in result.out  # the column that drifted most comes first
    assert result.out.endswith("This output describes your rows: keep it where the rows are.\n")


@pytest.mark.parametrize(
    ("limit", "code"), [("chance", 3), ("0.001", 3), ("0.9", 0), ("0", 3), (None, 0)]
)
def test_drift_above_the_limit_has_a_code_of_its_own(run, site, moved, limit, code):
    options = [] if limit is None else ["--fail-above", limit]
    result = run("drift", site / "model.hush", moved, *options)
    assert result.code == code
    assert (f"The drift is above --fail-above {limit}: exit code 3." in result.out) == (code == 3)


def test_what_chance_explains_is_quiet(run, site):
    command = ("drift", site / "model.hush", site / "more.csv", "--fail-above", "chance")
    result = run(*command)
    assert result.code == 0
    assert "within what chance explains" in result.out
    assert json.loads(run(*command, "--json").out)["above"] is False


def test_what_does_not_compare_is_refused(refused, site, moved, tmp_path):
    a, other = site / "a.sketch.hush", site / "other.sketch.hush"
    refused("drift", a, other, says=["under a different plan than", "count the rows of both under"])
    refused("drift", a, a, "--model", site / "plan.hush", code=2, says="--model was removed")
    refused("drift", a, site / "plan.hush", says="holds a plan")
    refused("drift", a, tmp_path / "none.csv", says="no such file")
    refused("drift", a, tmp_path / "none.hush", says="check the path")
    for limit in ("2", "-1", "nan", "often"):
        refused("drift", a, a, "--fail-above", limit, code=2, says="needs a number from 0 to 1")
    lines = (site / "rows.csv").read_text().splitlines()
    for rows in (1, 2):
        (tmp_path / "few.csv").write_text("\n".join(lines[: rows + 1]) + "\n")
        command = ("drift", a, tmp_path / "few.csv")
        if rows == 1:
            refused(*command, says="too few")


def test_two_or_three_rows_are_compared_by_counts_alone(run, site, tmp_path):
    lines = (site / "rows.csv").read_text().splitlines()
    (tmp_path / "few.csv").write_text("\n".join(lines[:4]) + "\n")
    result = run("drift", site / "model.hush", tmp_path / "few.csv", "--fail-above", "chance")
    assert result.code == 0, result.err


def test_releases_are_compared_and_may_be_shown(run, site, tmp_path):
    pytest.importorskip("opendp")
    made = []
    for name in ("a", "b"):
        made.append(tmp_path / f"{name}.hush")
        do("release", site / f"{name}.sketch.hush", "--epsilon", 20, "-o", made[-1])
    result = run("drift", *made)
    assert result.code == 0, result.err
    assert "keep it where they are" not in result.out
