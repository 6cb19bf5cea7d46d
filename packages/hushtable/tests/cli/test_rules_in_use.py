"""Rules of the owner, beside a model: in score, watch and review, and nowhere else."""

import json

import numpy as np
import pandas as pd
import pytest

import hushtable
from cli_helpers import do


@pytest.fixture
def here(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    rows = pd.DataFrame({
        "id": [f"P{i:03}" for i in range(500)],
        "pulse": rng.normal(75, 8, 500).round(1),
        "weight": rng.normal(70, 9, 500).round(1),
        "ward": rng.choice(["north", "south"], 500),
    })  # fmt: skip
    rows.loc[7, "pulse"], rows.loc[8, "pulse"], rows.loc[9, "weight"] = 150.0, 20.0, 0.0
    rows.to_csv("rows.csv", index=False)
    do("fit", "rows.csv", "--drop", "id", "--seed", 0, "-o", "m.hush")
    return tmp_path


def rule(here, text):
    (here / "m.rules.toml").write_text(text)


def listed(run, *options):
    return listed_rows(run, "--id", "id", *options)


def listed_rows(run, *options):
    result = run("score", "rows.csv", "--model", "m.hush", "--top", 20, "-o", "top.csv", *options)
    assert result.code == 0, result.err
    return pd.read_csv("top.csv"), result


IMPOSSIBLE = '[[column]]\nname = "weight"\nimpossible = [0]\n'


def test_impossible_values_come_first_and_known_rows_are_left_out(run, here):
    before, _ = listed(run)
    rule(here, IMPOSSIBLE + '[[known]]\nid = "P007"\n')
    table, result = listed(run)
    assert table["id"].tolist()[0] == "P009"
    assert table["words"].tolist()[0].startswith("weight 0: impossible by your rules")
    assert "P007" in before["id"].tolist()
    assert "P007" not in table["id"].tolist()
    assert len(table) == 20
    assert "1 row is known by your rules and not listed." in result.out
    assert "Rows are scored with the rules in m.rules.toml" in result.err


def test_values_of_no_interest_are_scored_as_usual_ones(run, here):
    before, _ = listed(run)
    rule(here, '[[column]]\nname = "pulse"\nonly = "high"\n')
    table, _ = listed(run, "--keep", "pulse")
    assert "P008" in before["id"].tolist()
    assert "P008" not in table["id"].tolist()
    assert table["pulse"].tolist()[table["id"].tolist().index("P007")] == 150.0
    score = run("score", "rows.csv", "--model", "m.hush", "--drop", "id", "-o", "s.csv")
    assert score.code == 0, score.err
    detector = hushtable.load("m.hush")
    rows = pd.read_csv("rows.csv").drop(columns="id")
    median = detector._usual_values().values[0].middle[1]
    usual = rows.assign(pulse=np.maximum(rows["pulse"], median))
    scores = np.maximum(detector.score_samples(rows), detector.score_samples(usual))
    np.testing.assert_allclose(pd.read_csv("s.csv")["score"], scores)


def test_scores_in_a_file_have_a_column_of_rules(run, here):
    rule(here, IMPOSSIBLE + "[[known]]\nid = 'P007'\n")
    result = run("score", "rows.csv", "--model", "m.hush", "--drop", "id", "-o", "s.csv")
    assert result.code == 0, result.err  # known rows are named by a column that is left out
    assert pd.read_csv("s.csv")["rule"].notna().sum() == 2
    result = run("score", "rows.csv", "--model", "m.hush", "--id", "id", "-o", "s.csv")
    assert result.code == 0, result.err
    table = pd.read_csv("s.csv").set_index("id")
    assert table.loc["P009", ["outlier", "rule"]].tolist() == [True, "weight is impossible"]
    assert table.loc["P007", ["outlier", "rule"]].tolist() == [False, "known"]
    assert table["rule"].notna().sum() == 2


def test_watch_follows_them(run, here):
    rule(here, IMPOSSIBLE + '[[known]]\nid = "P007"\n')
    (here / "in").mkdir()
    (here / "rows.csv").rename(here / "in" / "rows.csv")
    result = run("watch", "in", "--model", "m.hush", "--id", "id", "--settle", 0, "--json")
    assert result.code == 0, result.err
    table = pd.read_csv(here / "watched" / result.json["top"])
    assert table["id"].tolist()[0] == "P009"
    assert "P007" not in table["id"].tolist()


def test_a_review_writes_rules_and_goes_on(run, here, monkeypatch):
    def reviewed(*said):
        answers = iter(said)
        monkeypatch.setattr("builtins.input", lambda prompt: next(answers))
        return run("review", "rows.csv", "--model", "m.hush", "--id", "id", "--log", "log.csv")

    first = reviewed("f", "k", "i", "i no one", "q")
    assert first.code == 0, first.err
    text = (here / "m.rules.toml").read_text()
    assert "[[known]]" in text
    assert "only = " in text
    assert "no one: needs a column whose value is high or low here" in first.out
    # The log of the session before the rules is that of the same rows.
    again = reviewed("q")
    assert again.code == 0, again.err
    assert "Continuing from log.csv: 1 answer." in again.out


def test_broken_rules_are_refused_by_name_and_nothing_is_written(run, here):
    for text, says in (
        ("[[column]\n", "m.rules.toml"),
        ('[[column]]\nname = "puls"\nonly = "high"\n', "pulse"),
        ('[[column]]\nname = "pulse"\nonly = "high"\nimpossible_above = 70\n', "pulse"),
        ('[[column]]\nname = "<script>"\nonly = "high"\n', "<script>"),
    ):
        rule(here, text)
        result = run("score", "rows.csv", "--model", "m.hush", "--drop", "id", "-o", "s.csv")
        assert result.code in (1, 2)
        assert says in result.err
        assert not (here / "s.csv").exists()


def test_no_file_has_a_rule_in_it(run, here):
    """Rules stay where they are: neither counts, models nor reports of others have any of them."""
    rule(here, '[[column]]\nname = "weight"\nimpossible = [4711]\n')
    do("fit", "rows.csv", "--drop", "id", "--seed", 0, "-o", "again.hush")
    do("report", "m.hush", "-o", "report.html")
    facts = run("inspect", "m.hush", "--json")
    assert b"4711" not in json.dumps(facts.json).encode()
    for name in ("again.hush", "m.hush", "report.html"):
        assert b"4711" not in (here / name).read_bytes(), name


@pytest.fixture
def children(tmp_path, monkeypatch, rng):
    """Pulses of children and adults, compared within their age; some are too high or low for it."""
    monkeypatch.chdir(tmp_path)
    age = np.r_[rng.uniform(0, 3, 200), rng.uniform(20, 80, 800)].round(1)
    usual = np.where(age < 4, 130.0, 70.0)
    rows = pd.DataFrame({"age": age, "ward": rng.choice(["a", "b"], 1000)})
    rows["pulse"] = (usual + rng.normal(0, 6, 1000)).round(1)
    rows["weight"] = (usual / 2 + rng.normal(0, 4, 1000)).round(1)
    rows.loc[0, "pulse"], rows.loc[1, "pulse"], rows.loc[900, "pulse"] = 200.0, 75.0, 110.0
    rows.to_csv("rows.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("how", [["--context", "age,ward"], ["--context", "ward"], ["--relations"]])
@pytest.mark.parametrize("said", ['only = "low"', 'only = "high"', "ignore_within = 40"])
def test_no_rule_makes_a_row_more_unusual(children, how, said):
    """A usual value may be odd in a row's context, or beside its other values."""
    do("fit", "rows.csv", *how, "--seed", 0, "-o", "m.hush")
    do("score", "rows.csv", "--model", "m.hush", "-o", "plain.parquet")
    rule(children, f'[[column]]\nname = "pulse"\n{said}\n')
    do("score", "rows.csv", "--model", "m.hush", "-o", "ruled.parquet")
    gains = pd.read_parquet("ruled.parquet")["score"] - pd.read_parquet("plain.parquet")["score"]
    assert (gains >= 0.0).all(), gains[gains < 0.0]
    assert (gains > 0.0).any()


def test_what_is_high_for_its_context_is_of_no_interest_where_only_low_is(children, run):
    do("fit", "rows.csv", "--context", "age,ward", "--seed", 0, "-o", "m.hush")
    before, _ = listed_rows(run)
    assert {0, 1, 900} <= set(before["row"].tolist()[:6])
    rule(children, '[[column]]\nname = "pulse"\nonly = "low"\n')
    after, _ = listed_rows(run)
    assert after["row"].tolist()[0] == 1  # 75 is low for a child, though high for all rows
    assert not {0, 900} & set(after["row"].tolist()[:8])
