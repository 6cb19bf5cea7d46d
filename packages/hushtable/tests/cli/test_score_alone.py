"""``hushtable score`` without a model: one command from a file to a list."""

import csv

import pytest

from cli_helpers import contents


@pytest.fixture
def named(site, tmp_path):
    """Rows with a column of identifiers, which is in doubt unless an option leaves it out."""
    first, *lines = (site / "rows.csv").read_text().splitlines()
    rows = [f"case,{first}", *(f"C{i:04},{line}" for i, line in enumerate(lines))]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("options", [(), ("--top", 5), ("--explain",), ("--contamination", 7)])
def test_the_scores_are_those_of_fit_and_score(run, site, tmp_path, options):
    rows, model = site / "rows.csv", tmp_path / "m.hush"
    assert run("fit", rows, "--seed", 0, "-o", model).code == 0
    two = run("score", rows, "--model", model, *options, "-o", tmp_path / "two.csv")
    one = run("score", rows, *options, "-o", tmp_path / "one.csv")
    assert (two.code, one.code) == (0, 0), one.err
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    assert set(contents(tmp_path)) == {"m.hush", "one.csv", "two.csv"}  # no model is kept


def test_it_says_that_it_fitted(run, site, tmp_path):
    done = run("score", site / "rows.csv", "--top", 3, "-o", tmp_path / "top.csv", "--json")
    assert "No --model: fitted HushTable to these 400 rows" in done.err
    assert done.json["fitted"] == {
        "rows": 400, "features": 3, "plan_id": done.json["fitted"]["plan_id"],
    }  # fmt: skip
    with_model = run(
        "score",
        site / "rows.csv",
        "--model",
        site / "model.hush",
        "-o",
        tmp_path / "s.csv",
        "--json",
    )
    assert "fitted" not in with_model.json
    assert "No --model" not in with_model.err


@pytest.mark.parametrize("options", [("--id", "case"), ("--id", "case", "--drop", "case")])
def test_the_column_of_id_is_no_feature(run, named, site, tmp_path, options):
    done = run("score", named, *options, "--top", 5, "-o", tmp_path / "top.csv", "--json")
    assert done.code == 0, done.err
    plain = run("score", site / "rows.csv", "--top", 5, "-o", tmp_path / "plain.csv", "--json")
    assert done.json["fitted"] == plain.json["fitted"]
    with (tmp_path / "top.csv").open() as file:
        found = list(csv.DictReader(file))
    assert [one["case"] for one in found] == [f"C{int(one['row']):04}" for one in found]


def test_a_name_of_id_may_hold_commas_and_quotes(run, named, tmp_path):
    text = named.read_text()
    named.write_text('"case ""a"", b"' + text.removeprefix("case"))
    done = run("score", named, "--id", '"case ""a"", b"', "--top", 2, "-o", tmp_path / "t.csv")
    assert done.code == 1  # --id takes the name as it is
    done = run("score", named, "--id", 'case "a", b', "--top", 2, "-o", tmp_path / "t.csv")
    assert done.code == 0, done.err


def test_what_fit_asks_is_asked_here(refused, named, tmp_path):
    said = refused("score", named, "--top", 3, "-o", tmp_path / "top.csv")
    assert said == refused("fit", named, "-o", tmp_path / "m.hush")
    assert "--drop case" in said


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--ranks", "r.hush", "-o", "s.csv"), "--ranks needs --model: fit a model first"),
        (("-o", "scores"), "-o scores: scores in a folder need --model"),
    ],
)
def test_options_that_need_a_model_are_refused(refused, site, options, says):
    refused("score", site / "rows.csv", *options, code=2, says=says)


def test_standard_input_is_refused_without_a_model(refused, tmp_path):
    refused("score", "-", "--top", 3, "-o", tmp_path / "t.csv", code=2, says="read only once")


def test_a_note_on_rows_that_are_read_twice_is_printed_once(run, site, tmp_path):
    lines = (site / "rows.csv").read_text()
    (tmp_path / "export.csv").write_text("Export of the ward\n\n" + lines)
    done = run("score", tmp_path / "export.csv", "--top", 2, "-o", tmp_path / "t.csv")
    assert done.code == 0, done.err
    printed = done.err.splitlines()
    assert len(printed) == len(set(printed)) > 1
