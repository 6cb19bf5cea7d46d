"""Rules of the owner, beside a model: in score, watch and review, and nowhere else."""

import json
import re

import pandas as pd
import pytest

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
    assert table["words"].tolist()[0].startswith("weight 0.0: impossible by your rules")
    assert "P007" in before["id"].tolist()
    assert "P007" not in table["id"].tolist()
    assert len(table) == 20
    assert "1 row is known by your rules and not listed." in result.out
    assert "Rows are scored with the rules in m.rules.toml" in result.err


@pytest.mark.parametrize(("dropped", "way"), [
    ('only = "high"', "raise lower values to"), ("ignore_within = 99", "to the nearer of these"),
])  # fmt: skip
def test_the_way_without_a_dropped_rule_takes_the_row_off_the_list(run, here, dropped, way):
    before, _ = listed(run)
    assert "P008" in before["id"].tolist()
    rule(here, f'[[column]]\nname = "pulse"\n{dropped}\n')
    refused = run("score", "rows.csv", "--model", "m.hush", "--top", 20, "-o", "top.csv")
    assert refused.code == 2
    assert "is no longer read: delete this line" in refused.err
    assert way in refused.err
    # Do as it says.
    (here / "m.rules.toml").unlink()
    rows = pd.read_csv("rows.csv")
    numbers = re.findall(r"(?<=to |nd )\d+(?:\.\d+)?", refused.err.replace("\n", " "))
    rows["pulse"] = rows["pulse"].clip(*map(float, numbers[-2:]))
    rows.to_csv("rows.csv", index=False)
    after, _ = listed(run)
    assert "P008" not in after["id"].tolist()


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

    first = reviewed("f", "k", "i", "l", "q")
    assert first.code == 0, first.err
    assert "[[known]]" in (here / "m.rules.toml").read_text()
    assert "no longer exists: answer f (fine)" in first.out
    assert "no longer exists: hushtable score --top lists rows" in first.out
    # The log of the session before the rules is that of the same rows.
    again = reviewed("q")
    assert again.code == 0, again.err
    assert "Continuing from log.csv: 1 answer." in again.out


def test_broken_rules_are_refused_by_name_and_nothing_is_written(run, here):
    for text, says in (
        ("[[column]\n", "m.rules.toml"),
        ('[[column]]\nname = "puls"\nimpossible = [0]\n', "pulse"),
        ('[[column]]\nname = "<script>"\nimpossible = [0]\n', "<script>"),
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
