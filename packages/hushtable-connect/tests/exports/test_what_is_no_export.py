"""Models that no export can hold are refused by the command."""

import numpy as np
import pandas as pd

from cli_helpers import do


def test_a_label_is_no_export(run, tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    ward = rng.choice(["north", "North", "south"], 300, p=[0.5, 0.1, 0.4])
    rows = pd.DataFrame({"ward": ward, "pulse": rng.normal(75, 8, 300).round(3)})
    rows.to_csv("rows.csv", index=False)
    do("fit", "rows.csv", "--as", "ward=label", "-o", "label.hush")
    refused = run("export", "label.hush", "-o", "label.json")
    assert refused.code == 2
    assert "several spellings as one label in ['ward']" in refused.err


def test_relations_are_no_export(run, tmp_path, rng):
    rows = rng.normal(size=(600, 3))
    rows = np.column_stack([rows, rows.sum(axis=1)])
    pd.DataFrame(rows, columns=list("abcd")).to_csv(tmp_path / "rows.csv", index=False)
    model = tmp_path / "model.hush"
    do("fit", tmp_path / "rows.csv", "--relations", "-o", model)
    assert run("export", model, "-o", tmp_path / "m.onnx").code == 2
