"""``hushtable check``: columns, findings, the options that resolve doubts, and the exit code."""

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
    assert "'north' (" in result.out
    assert result.out.count("'North' (1) differ only by case") == 1
    assert "may be the same label" not in result.out  # once is enough
    last = result.out.strip().splitlines()[-1]
    assert last == "To resolve the doubts, add: --drop id --as ward=label --missing -999"
    said = ("--missing", "-999", "--drop", "id", "--as", "ward=label")
    found = json.loads(run("check", "rows.csv", *said, "--json").out)
    assert (found["doubts"], found["findings"], found["options"]) == (0, [], "")
    apart = json.loads(run("check", "rows.csv", *said[:-1], "ward=category", "--json").out)
    assert (apart["findings"], apart["options"]) == ([], "")  # the question is answered
    do("fit", "rows.csv", *said, "-o", "m.hush")


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
    assert "the name must end in .html" in wrong.err


def test_columns_in_doubt_are_no_failure_and_files_that_cannot_be_read_are(run, here):
    pd.DataFrame({"seen": ["05/11/2026", "01/02/2026"] * 10}).to_csv("dates.csv", index=False)
    result = run("check", "dates.csv")
    assert result.code == 3
    assert "--dates dmy/mdy" in result.out
    (here / "empty.csv").write_text("a,b\n")
    assert run("check", "empty.csv").code == 1
    assert run("check", "nothing.csv").code == 1


def test_few_rows_and_tables_that_do_not_vary(run, here):
    rows = pd.read_csv("clean.csv")
    rows.head(5).to_csv("five.csv", index=False)
    says = "5 rows are too few to determine what is unusual"
    result = run("check", "five.csv")
    assert (result.code, says in result.out) == (3, True)
    assert f"five.csv: {says}" in run("fit", "five.csv", "-o", "m.hush").err
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 60)).round(3))
    wide.add_prefix("gene ").to_csv("wide.csv", index=False)
    says = "50 rows are few for 60 columns"
    assert says in run("check", "wide.csv").out
    assert says in run("fit", "wide.csv", "-o", "m.hush").err
    pd.DataFrame({"a": [1] * 30, "b": ["x"] * 30}).to_csv("same.csv", index=False)
    result = run("check", "same.csv")
    assert "No column varies, so no row can be unusual." in result.out
    assert result.code == 3
    assert "no column varies" in run("fit", "same.csv", "-o", "m.hush").err
    assert run("fit", "clean.csv", "-o", "m.hush").err == ""


def test_ranges_and_what_was_found_of_the_file(run, here):
    rows = pd.read_csv("clean.csv").assign(
        seen=pd.date_range("2026-01-01 08:30", periods=300, freq="h").strftime("%Y-%m-%d %H:%M")
    )
    rows.to_csv("rows.csv", index=False)
    (here / "titled.csv").write_text("Report\n\n" + (here / "rows.csv").read_text())
    result = run("check", "titled.csv", "-o", "c.html")
    low, high = rows["pulse"].min(), rows["pulse"].max()
    assert f"{low:.6g} to {high:.6g}" in result.out
    assert "2026-01-01 08:30 to 2026-01-13 19:30" in " ".join(result.out.split())
    assert "The file: 2 lines above the header." in result.out
    assert "above the header" not in result.err
    page = (here / "c.html").read_text()
    assert f"{low:.6g} to {high:.6g}" in page
    assert "The file: 2 lines above the header." in page
    found = run("check", "titled.csv", "--json").json
    assert found["found"] == ["2 lines above the header"]
    assert found["columns"][1]["range"] == [low, high]
    assert found["columns"][0]["range"] is None


def test_what_fit_notes_is_a_doubt_and_what_it_refuses_is_refused_with_the_same_options(run, here):
    rows = pd.read_csv("clean.csv")
    rows.assign(zip="0" + (1000 + rows.index % 7).astype(str)).to_csv("codes.csv", index=False)
    noted, checked = run("fit", "codes.csv", "-o", "m.hush"), run("check", "codes.csv")
    words = "codes (leading zeros"
    assert words in noted.err
    assert words in checked.out
    assert checked.code == 3
    assert run("check", "codes.csv", "--as", "zip=category").code == 0
    decimals = rows["pulse"].map("{:.4f}".format).str.replace(".", ",")
    rows.assign(pulse=decimals).fillna("").to_csv("comma.csv", index=False, sep=";")
    assert run("check", "comma.csv").code == 0
    total = (here / "clean.csv").read_text() + f"Total,{rows['pulse'].sum():.4f}\n"
    (here / "total.csv").write_text(total)
    refused, checked = run("fit", "total.csv", "-o", "m.hush"), run("check", "total.csv")
    assert refused.err == checked.err
    assert checked.err.endswith("Add: --read skip_footer=1\n")
    assert run("check", "total.csv", "--read", "skip_footer=1").code == 0
    do("fit", "total.csv", "--read", "skip_footer=1", "-o", "m.hush")
    # The model reads later files in the same way, and says so.
    result = run("score", "total.csv", "--model", "m.hush", "-o", "s.csv", "--json")
    assert result.json["rows"] == 300
    assert (
        "the last is left out, from 'Total,"
        in run("score", "total.csv", "--model", "m.hush", "-o", "s.csv").err
    )


def test_many_columns_are_cut_short_on_a_terminal(run, here):
    pd.DataFrame(np.arange(200).reshape(2, 100) % 7).to_csv("wide.csv", index=False)
    assert "... and 40 more columns" in run("check", "wide.csv").out
