"""``plan ranks`` and ``score --ranks``, and the ways to draw the line."""

import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

import hushtable
from cli_helpers import do, hold, visit, write_rows


@pytest.fixture(scope="module")
def ranked(site, tmp_path_factory):
    """Folder with ranks under the site's merged sketch, of the rows of both files."""
    here = tmp_path_factory.mktemp("ranked")
    do("merge", site / "a.sketch.hush", site / "b.sketch.hush", "-o", here / "all.hush")
    do("plan", "ranks", here / "all.hush", "-o", here / "ranks.plan.hush")
    for name in ("rows", "more"):
        out = here / f"{name}.hush"
        do("sketch", site / f"{name}.csv", "--plan", here / "ranks.plan.hush", "-o", out)
    do("merge", here / "rows.hush", here / "more.hush", "-o", here / "ranks.hush")
    return here


@pytest.fixture
def score(run, site, ranked, tmp_path):
    """Score the site's rows with ranks; return the result and the table."""

    def score(*options, ranks=True):
        out = tmp_path / "scores.parquet"
        options = [*options, *(["--ranks", ranked / "ranks.hush"] if ranks else [])]
        result = run(
            "score", site / "rows.csv", "--model", ranked / "all.hush", "-o", out, *options
        )
        assert result.code == 0, result.err
        return result, pq.read_table(out)

    return score


def test_columns_are_the_librarys_ranks(score, site, ranked):
    _, table = score()
    assert table.schema.names == [
        "row", "score", "outlier", "outside", "rank", "rank_low", "rank_high",
    ]  # fmt: skip
    detector = hushtable.HushTable.from_counts(hushtable.load(ranked / "all.hush"))
    detector.set_ranks(hushtable.load(ranked / "ranks.hush"))
    ranks, between = detector.rank_samples(site / "rows.csv", return_interval=True)
    np.testing.assert_array_equal(table["rank"], ranks)
    np.testing.assert_array_equal(table["rank_low"], between[:, 0])
    np.testing.assert_array_equal(table["rank_high"], between[:, 1])


def test_the_lowest_rows_come_with_their_ranks(score):
    first = score("--json")[0].json["lowest"][0]
    assert first["row"] == 7
    low, high = first["between"]
    assert 0 <= low <= first["rank"] <= high < 0.05
    out = score()[0].out
    assert "among the rows that the ranks count" in " ".join(out.split())
    assert "rank, rank_low, rank_high" in out
    both = score("--explain", "--json")[0].json["lowest"][0]
    assert both["rank"] == first["rank"]
    assert both["reasons"]


def test_a_share_is_of_the_rows_of_all_sites(score, site, ranked):
    offset = score("--contamination", 0.1, "--json")[0].json["offset"]
    detector = hushtable.HushTable.from_counts(hushtable.load(ranked / "all.hush"))
    scores = [detector.score_samples(site / name) for name in ("rows.csv", "more.csv")]
    assert 0.08 < (np.concatenate(scores) < offset).mean() <= 0.1


def test_the_line_is_where_it_is_asked_for(score):
    _, table = score("--contamination", 3, ranks=False)
    assert sum(table["outlier"].to_pylist()) == 3


def test_files_in_a_folder_get_ranks_and_reasons(run, ranked, tmp_path, refused):
    lake, out = tmp_path / "lake", tmp_path / "scores"
    lake.mkdir()
    for name in ("a", "b"):
        write_rows(lake / f"{name}.csv", 60)
    model = ("--model", ranked / "all.hush", "-o", out)
    ranks = ("--ranks", ranked / "ranks.hush")
    result = run("score", lake, *model, *ranks, "--explain", "--contamination", 0.1, "--json")
    assert result.code == 0, result.err
    assert [(row["row"], len(row["reasons"]) > 0) for row in result.json["lowest"][:2]] == [
        (7, True), (7, True),
    ]  # fmt: skip
    names = pq.read_schema(out / "a.scores.parquet").names
    assert names[4:8] == ["rank", "rank_low", "rank_high", "reason_1"]
    text = run("score", lake, *model, *ranks, "--explain", "--contamination", 0.1).out
    assert "Already scored" in text
    refused("score", lake, *model, *ranks, code=2, says="other columns")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--threshold", 1.0), "--threshold was removed"),
        (("--contamination", 400), "400 rows; give fewer"),
        (("--contamination", 1.5), "at most 0.5"),
        (("--contamination", 0.6), "at most 0.5"),
    ],
)
def test_lines_that_cannot_be_drawn_are_refused(refused, site, tmp_path, options, says):
    out = tmp_path / "s.csv"
    model = ("--model", site / "model.hush", "-o", out)
    refused("score", site / "rows.csv", *model, *options, code=2, says=says)


def test_files_that_are_no_ranks_are_refused(refused, site, ranked, tmp_path):
    rows, out = site / "rows.csv", tmp_path / "s.csv"
    scored = ("score", rows, "-o", out)
    refused(*scored, "--model", ranked / "ranks.hush", says="as --ranks")
    refused(
        *scored, "--model", ranked / "all.hush", "--ranks", site / "a.sketch.hush", says="ranks"
    )
    refused(
        *scored,
        "--model",
        site / "model.hush",
        "--ranks",
        ranked / "ranks.hush",
        says="another model",
    )
    plan = ("plan", "ranks", "-o", tmp_path / "p.hush")
    refused(*plan, site / "plan.hush", says="holds a plan")
    refused(*plan, site / "marginals.sketch.hush", code=2, says="do not score")


def test_private_ranks_add_to_what_the_model_cost(run, site, tmp_path):
    def put(*arguments):
        result = run(*arguments, "--json")
        assert result.code == 0, result.err
        return result.json

    released = tmp_path / "all.hush"
    put("release", site / "a.sketch.hush", "--epsilon", 1, "-o", released)
    plan, sketch, ranks = (tmp_path / f"{name}.hush" for name in ("plan", "sketch", "ranks"))
    assert len(put("plan", "ranks", released, "-o", plan)["behind"]) == 1
    put("sketch", site / "rows.csv", "--plan", plan, "-o", sketch)
    assert 1.0 < put("release", sketch, "--epsilon", 1.1, "-o", ranks)["epsilon"] <= 1.1
    scored = ("score", site / "rows.csv", "--model", released, "--ranks", ranks)
    assert put(*scored, "-o", tmp_path / "s.csv")["rows"] == 400
    text = run("inspect", ranks).out
    assert "behind the plan" in text
    assert "over its one table and the earlier releases" in " ".join(text.split())


def test_ranks_of_a_round(run, site, tmp_path):
    """A round carries ranks as it carries tables; the model counts twice, on the safe side."""

    def put(*arguments):
        result = run(*arguments)
        assert result.code == 0, result.err
        return result.out

    here = {name: tmp_path / f"{name}.hush" for name in ("plan", "first", "all", "ranks", "second")}
    for name in ("north", "south", "lead"):
        put(
            "round",
            "keygen",
            name,
            "--folder",
            tmp_path,
            *(() if name == "lead" else ("--cap", 3, "--persons", "1")),
        )
    cards = [tmp_path / f"{name}.card" for name in ("north", "south")]

    def play(plan, round_, epsilon, result):
        key = ("--key", tmp_path / "lead.key", "--epsilon", epsilon)
        put("round", "open", plan, *cards, *key, "-o", round_)
        shutil.move(hold(tmp_path, round_.name, "north", "south"), result)
        return put(*visit(tmp_path, tmp_path / f"{round_.stem}.box", "lead"))

    for name, rows in (("north", "rows.csv"), ("south", "more.csv")):
        shutil.copy(site / rows, tmp_path / f"{name}.csv")
    put("plan", "draw", site / "schema.toml", "--tables", 20, "--seed", 1, "-o", here["plan"])
    play(here["plan"], here["first"], 0.9, here["all"])
    put("plan", "ranks", here["all"], "-o", here["plan"])
    said = play(here["plan"], here["second"], 1.5, here["ranks"])
    assert "--model MODEL --ranks" in said
    # What the model cost is behind the plan, and counts once.
    assert 1.4999 < hushtable.load(here["ranks"]).ledger.epsilon <= 1.5
    scored = ("--model", here["all"], "--ranks", here["ranks"], "-o", tmp_path / "s.parquet")
    put("score", site / "rows.csv", *scored)
    assert pq.read_table(tmp_path / "s.parquet")["rank"].to_pylist()[7] < 0.2
