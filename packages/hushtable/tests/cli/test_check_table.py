"""``hushtable check``: columns, findings, the options that settle doubts, and the exit code."""

import json
import stat

import numpy as np
import pandas as pd
import pytest

from cli_helpers import do


@pytest.fixture
def here(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    rows = pd.DataFrame({
        "id": [f"P{i:03}" for i in range(300)],
        "ward": rng.choice(["north", "south"], 300),
        "pulse": rng.normal(75, 8, 300).round(4),
        "sodium": rng.normal(140, 3, 300).round(),
    })  # fmt: skip
    rows.loc[::60, "sodium"] = -999
    rows.loc[5, "ward"] = "North "
    rows.loc[7, "pulse"] = np.nan
    rows.to_csv("rows.csv", index=False)
    rows[["ward", "pulse"]].replace("North ", "north").to_csv("clean.csv", index=False)
    return tmp_path


def test_what_is_read_is_printed_with_the_options_that_settle_doubts(run, here):
    result = run("check", "rows.csv")
    assert result.code == 3, result.err
    assert result.out.startswith("300 rows, 4 columns.")
    assert '"north"' in result.out
    assert "may be the same label" in result.out
    last = result.out.strip().splitlines()[-1]
    assert last == "To settle the doubts, add: --drop id --missing -999"
    settled = run("check", "rows.csv", "--missing", "-999", "--drop", "id", "--json")
    found = json.loads(settled.out)
    assert [one["kind"] for one in found["findings"]] == ["labels"]
    assert found["options"] == ""
    do("fit", "rows.csv", "--missing", "-999", "--drop", "id", "-o", "m.hush")


def test_a_table_without_a_doubt_ends_with_0(run, here):
    result = run("check", "clean.csv")
    assert result.code == 0
    assert "Nothing is in doubt." in result.out
    found = json.loads(run("check", "clean.csv", "--json").out)
    assert (found["rows"], found["doubts"], found["findings"]) == (300, 0, [])
    pulse = found["columns"][1]
    assert (pulse["name"], pulse["kind"], pulse["missing"]) == ("pulse", "number", 1)
    assert len(pulse["examples"]) == 3


def test_a_page_of_it(run, here):
    pd.DataFrame({"<script>x</script>": ["<b>a", "b&"] * 20}).to_csv("evil.csv", index=False)
    result = run("check", "evil.csv", "-o", "check.html")
    assert "Wrote check.html" in result.out
    page = (here / "check.html").read_text()
    assert "<script>x" not in page
    assert "&lt;b&gt;a" in page
    assert stat.S_IMODE((here / "check.html").stat().st_mode) == 0o600
    wrong = run("check", "clean.csv", "-o", "check.pdf")
    assert wrong.code == 2
    assert "needs a name that ends in .html" in wrong.err


def test_columns_in_doubt_are_no_failure_and_files_that_cannot_be_read_are(run, here):
    pd.DataFrame({"seen": ["05/11/2026", "01/02/2026"] * 10}).to_csv("dates.csv", index=False)
    result = run("check", "dates.csv")
    assert result.code == 3
    assert "--dates dmy" in result.out
    (here / "empty.csv").write_text("a,b\n")
    assert run("check", "empty.csv").code == 1
    assert run("check", "nothing.csv").code == 1


def test_many_columns_are_cut_short_on_a_terminal(run, here):
    pd.DataFrame(np.arange(200).reshape(2, 100) % 7).to_csv("wide.csv", index=False)
    assert "... and 40 more columns" in run("check", "wide.csv").out
