"""Labels that differ in little, at the command: asked about once, and read so ever after."""

import pandas as pd
import pytest

from cli_helpers import do

NAMES = ["north", "North", "NORTH", "south"]


@pytest.fixture
def wards(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    ward = rng.choice(NAMES, 300, p=[0.4, 0.1, 0.1, 0.4])
    rows = pd.DataFrame({"ward": ward, "pulse": rng.normal(75, 8, 300).round(3)})
    rows.to_csv("rows.csv", index=False)
    rows.assign(ward=rows["ward"].str.lower()).to_csv("clean.csv", index=False)
    rows.assign(ward=rows["ward"].str.title() + "\u00a0").to_csv("later.csv", index=False)
    return rows


def test_fit_asks_once_and_both_answers_are_kept(run, wards):
    refused = run("fit", "rows.csv", "-o", "m.hush")
    assert refused.code == 1
    counts = wards["ward"].value_counts()
    assert f"'north' ({counts['north']} rows)" in refused.err
    assert "differ only by case" in refused.err
    assert "--as ward=category" in refused.err
    assert refused.err.rstrip().endswith("Add: --as ward=label")
    do("fit", "rows.csv", "--as", "ward=label", "--seed", "0", "-o", "label.hush")
    do("fit", "rows.csv", "--as", "ward=category", "--seed", "0", "-o", "apart.hush")
    do("fit", "clean.csv", "--seed", "0", "-o", "clean.hush")
    for model, table in (
        ("label", "rows"),
        ("label", "later"),
        ("clean", "clean"),
        ("apart", "rows"),
    ):
        do("score", f"{table}.csv", "--model", f"{model}.hush", "-o", f"{model}-{table}.csv")
    found = {name: pd.read_csv(f"{name}.csv")["score"].tolist()
             for name in ("label-rows", "label-later", "clean-clean", "apart-rows")}  # fmt: skip
    assert found["label-rows"] == found["label-later"] == found["clean-clean"]
    assert found["apart-rows"] != found["clean-clean"]
