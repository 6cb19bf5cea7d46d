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
    result = run("score", "rows.csv", "--model", "m.hush", "--id", "id", "--top", 20,
                 "-o", "top.csv", *options)  # fmt: skip
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
    assert "1 row is known by your rules, and not listed." in result.out
    assert "Rows are scored by the rules in m.rules.toml" in result.err


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
    rows["pulse"] = np.maximum(rows["pulse"], median)
    np.testing.assert_allclose(pd.read_csv("s.csv")["score"], detector.score_samples(rows))


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

    first = reviewed("f", "k", "i", "i nobody", "q")
    assert first.code == 0, first.err
    text = (here / "m.rules.toml").read_text()
    assert "[[known]]" in text
    assert "only = " in text
    assert "i nobody: needs a column whose value is high or low here" in first.out
    # The log of the session before the rules is that of the same rows.
    again = reviewed("q")
    assert again.code == 0, again.err
    assert "Going on from log.csv: 1 answer." in again.out


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
