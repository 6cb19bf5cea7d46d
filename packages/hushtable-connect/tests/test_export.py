"""``hushtable export``: what it says, writes and refuses."""

import json
import os

import pandas as pd
import pytest

import places
from cli_helpers import do
from hushtable import load, plugins
from hushtable_connect.exports import Model, portable

RELEASE = places.GOLDEN / "protocol-1" / "hushtable.release.hush"


def test_a_model_as_json(run, site, tmp_path):
    output = tmp_path / "m.json"
    result = run("export", site / "model.hush", "-o", output)
    assert result.code == 0
    said = " ".join(result.out.split())
    assert said.startswith(f"Wrote {output} (")
    assert "the model as JSON: hushtable.mjs scores rows with it in a browser or Node" in said
    assert "bits are outliers. It holds values of your rows: texts of ward (2), and the low" in said
    assert said.endswith("scores of cells, which reveal exact counts. Keep it where the rows are.")
    assert output.read_bytes() == portable.written(Model.of(load(site / "model.hush")))


def test_a_release_holds_no_exact_counts(run, tmp_path):
    result = run("export", RELEASE, "-o", tmp_path / "m.json")
    assert result.code == 0
    assert "Keep it" not in result.out
    assert json.loads((tmp_path / "m.json").read_text())["exact_counts"] is False


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["-o", "m.txt"], 2, "m.txt: needs a name that ends in .json, .onnx, .sql"),
        (["-o", "m.json", "--dialect", "duckdb"], 2, "dialect is for .sql files: leave it out"),
        (["-o", "m.onnx", "--table", "x"], 2, "table is for .sql files: leave it out for ONNX"),
        (["-o", "m.sql", "--dialect", "oracle"], 2, "'oracle' is not one of"),
        (["-o", "nowhere/m.json"], 1, "there is no folder nowhere: make it first"),
        ([], 2, "Missing option"),
    ],
)
def test_wrong_usage(refused, site, tmp_path, monkeypatch, options, code, words):
    monkeypatch.chdir(tmp_path)
    refused("export", site / "model.hush", *options, code=code, says=words)


def test_several_spellings_of_one_label_are_no_export(refused, tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    ward = rng.choice(["north", "North", "south"], 300, p=[0.5, 0.1, 0.4])
    rows = pd.DataFrame({"ward": ward, "pulse": rng.normal(75, 8, 300).round(3)})
    rows.to_csv("rows.csv", index=False)
    do("fit", "rows.csv", "--as", "ward=label", "-o", "label.hush")
    words = "several spellings as one label in ['ward']"
    refused("export", "label.hush", "-o", "label.json", code=2, says=words)


def test_what_cannot_be_written(refused, site, tmp_path, monkeypatch):
    model = tmp_path / "model.json"
    model.write_bytes((site / "model.hush").read_bytes())
    refused("export", model, "-o", model, code=2, says="is both read and written")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    refused("export", model, "-o", tmp_path / "m.json", says="is read-only: use another folder")


def test_a_format_of_another_package_is_one_entry_point(run, site, tmp_path, monkeypatch):
    home = tmp_path / "site"
    (home / "toys-1.dist-info").mkdir(parents=True)
    (home / "toys-1.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: toys\nVersion: 1\n"
    )
    points = "[hushtable.exports]\ntxt = toy_export:FORMAT\n"
    (home / "toys-1.dist-info/entry_points.txt").write_text(points)
    (home / "toy_export.py").write_text(
        "from hushtable_connect.exports import Format\n"
        "def write(model):\n    return model.plan.detector.encode()\n"
        'FORMAT = Format("a line", "for show", write)\n'
    )
    monkeypatch.syspath_prepend(str(home))
    plugins.points.cache_clear()
    try:
        assert run("export", site / "model.hush", "-o", tmp_path / "m.txt").code == 0
        said = run("export", site / "model.hush", "-o", tmp_path / "m.doc").err
    finally:
        monkeypatch.undo()
        plugins.points.cache_clear()
    assert (tmp_path / "m.txt").read_bytes() == b"hushtable"
    assert ".json, .onnx, .sql, .txt" in said
