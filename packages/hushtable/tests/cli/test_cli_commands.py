"""Every command's way to success, for people and for machines."""

import contextlib
import os
import re
import subprocess
import sys
import tomllib

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import hushtable
from cli_helpers import contents
from hushtable import (
    HushTable,
    HushTableError,
    LSHiTables,
    Plan,
    Schema,
    files,
    progress,
)


def test_help(run):
    assert run("--help") == run()
    assert "\n  fit      Fit a detector" in run("-h").out
    assert "Example:\n    hushtable plan draft" in run("plan", "draft", "-h").out


def test_version(run):
    assert run("--version").out == f"hushtable {hushtable.__version__}\n"


# --- fit --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind", "parameters"),
    [
        ([], HushTable, {"n_tables": 100, "passes": "auto", "novelty": False}),
        (["--passes", 1], HushTable, {"passes": 1}),
        (["--novelty"], HushTable, {"passes": "auto", "novelty": True}),
        (["--passes", 2], HushTable, {"passes": 2}),
        (["--contamination", 0.05], HushTable, {"contamination": 0.05}),
        (["--detector", "lsh-itables"], LSHiTables, {"n_tables": 100, "max_samples": 1000}),
        (["--detector", "lsh-itables", "--contamination", 0.1], LSHiTables, {}),
        (["--columns", "income,age"], HushTable, {"n_jobs": -1}),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_fit_options(run, site, tmp_path, monkeypatch, options, kind, parameters, suffix):
    data = tmp_path / f"rows{suffix}"
    if suffix == ".parquet":
        pq.write_table(pyarrow.csv.read_csv(site / "rows.csv"), data)
    else:
        data.write_bytes((site / "rows.csv").read_bytes())
    watches = []

    class Kept(progress.Watch):
        def __init__(self, reader, bar):
            super().__init__(reader, bar)
            watches.append(self)

    monkeypatch.setattr(progress, "Watch", Kept)
    result = run("fit", data, *options, "-o", tmp_path / "m.hush", "--json")
    assert result.code == 0, result.err
    model = hushtable.load(tmp_path / "m.hush")
    assert type(model) is kind
    assert model.get_params().items() >= parameters.items()
    facts = result.json
    assert facts["rows"] == 400
    assert facts["features"] == model.n_features_in_
    assert facts["offset"] == model.offset_
    assert facts["plan_id"] == model.plan_.plan_id
    assert facts["tally"]["age"] == {"missing": 8, "outside": 0}
    # The file is read once; a share of its rows needs their scores.
    (watch,) = watches
    assert watch.passes == 1


# --- score ------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_score_writes_row_score_outlier(run, site, tmp_path, suffix):
    out = tmp_path / f"scores{suffix}"
    result = run("score", site / "rows.csv", "--model", site / "model.hush", "-o", out)
    assert result.code == 0
    table = pq.read_table(out) if suffix == ".parquet" else pyarrow.csv.read_csv(out)
    assert table.schema.names == ["row", "score", "outlier", "outside"]
    kind = "string" if suffix == ".parquet" else "null"  # of a CSV file, as nothing is outside
    assert [str(one) for one in table.schema.types] == ["int64", "double", "bool", kind]
    model = hushtable.load(site / "model.hush")
    scores = model.score_samples(site / "rows.csv")
    np.testing.assert_array_equal(table["row"], np.arange(400))
    np.testing.assert_array_equal(table["score"], scores)
    np.testing.assert_array_equal(table["outlier"], model.predict(site / "rows.csv") == -1)
    assert "Scored 400 rows." in result.out
    assert f"The column outlier marks {(scores < model.offset_).sum()} rows" in result.out
    assert re.search(r"\n1 +7 ", result.out), "the outlier is not the first row"


# --- plan -------------------------------------------------------------------------------------


def test_draft_holds_names_and_kinds_only(run, tmp_path):
    names = ['a "quoted" \\ name', "tab\tand\x7f", "größe 😀", "seen", "ward", "smokes"]
    columns = [
        pa.array([1.25, 77.125]),
        pa.array([3, 4]),
        pa.array([5.5, 6.5]),
        pa.array([0, 1], pa.timestamp("s")),
        pa.array(["secret", "words"]),
        pa.array([True, False]),
    ]
    pq.write_table(pa.table(columns, names=names), tmp_path / "rows.parquet")
    printed = run("plan", "draft", tmp_path / "rows.parquet")
    assert printed.code == 0
    features = tomllib.loads(printed.out)["feature"]
    assert [feature["name"] for feature in features] == names
    kinds = ["numeric"] * 4 + ["categorical", "numeric"]
    assert [feature["kind"] for feature in features] == kinds
    assert all(set(feature) == {"name", "kind"} for feature in features)
    assert not any(value in printed.out for value in ("77.125", "1.25", "secret", "words"))

    out = tmp_path / "schema.toml"
    assert run("plan", "draft", tmp_path / "rows.parquet", "-o", out).code == 0
    assert out.read_text(encoding="utf-8") == printed.out
    facts = run("plan", "draft", tmp_path / "rows.parquet", "--json").json
    assert facts["toml"] == printed.out
    assert facts["schema"] is None
    with pytest.raises(HushTableError, match="low and high not given"):
        Schema.from_toml(out)


def test_a_plan_of_marginals_is_drawn_and_depends_on_data(run, site, tmp_path):
    schema, marginals = site / "schema.toml", site / "marginals.sketch.hush"
    draw = ("plan", "draw", schema, "--seed", 5, "--marginals", marginals)
    expected = Plan.draw(
        Schema.from_toml(schema), marginals=hushtable.load(marginals), random_state=5
    )
    facts = run(*draw, "-o", tmp_path / "p.hush", "--json").json
    assert (facts["plan_id"], facts["data_dependent"]) == (expected.plan_id, True)
    text = run(*draw, "-o", tmp_path / "q.hush").out
    assert "It depends on data: the merged marginals of 400 rows." in " ".join(text.split())


# --- sketch, merge, inspect -------------------------------------------------------------------


def test_merged_parts_are_the_whole(run, site, tmp_path):
    head, *lines = (site / "rows.csv").read_text().splitlines(keepends=True)
    parts = [lines[:1], lines[1:150], lines[150:]]
    for i, part in enumerate(parts):
        (tmp_path / f"{i}.csv").write_text(head + "".join(part))
        plan = ["--plan", site / "plan.hush"]
        assert run("sketch", tmp_path / f"{i}.csv", *plan, "-o", tmp_path / f"{i}.hush").code == 0
    inputs = [tmp_path / f"{i}.hush" for i in (2, 0, 1)]
    result = run("merge", *inputs, "-o", tmp_path / "all.hush")
    assert result.code == 0
    assert ["sum", "400"] in [line.split() for line in result.out.splitlines()]
    whole = contents(site)["a.sketch.hush"]
    assert (tmp_path / "all.hush").read_bytes() == whole
    facts = run("merge", *inputs, "-o", tmp_path / "all.hush", "--json").json
    assert [line["rows"] for line in facts["inputs"]] == [250, 1, 149]
    assert facts["rows"] == 400
    assert facts["alike"] == []


def test_merge_points_out_equal_counts(run, site, tmp_path):
    copy = tmp_path / "copy.hush"
    copy.write_bytes((site / "a.sketch.hush").read_bytes())
    result = run("merge", site / "a.sketch.hush", copy, "-o", tmp_path / "all.hush")
    assert result.code == 0
    assert "are they the same rows?" in result.out


@pytest.mark.parametrize(
    ("name", "kind", "detector", "rows"),
    [
        ("plan.hush", "plan", "hushtable", None),
        ("marginals.hush", "plan", "marginals", None),
        ("a.sketch.hush", "sketch", "hushtable", 400),
        ("marginals.sketch.hush", "sketch", "marginals", 400),
        ("model.hush", "detector", "hushtable", 400),
    ],
)
def test_inspect(run, site, name, kind, detector, rows):
    facts = run("inspect", site / name, "--json").json
    counted = facts.get("rows_first_pass", facts.get("rows"))
    assert (facts["kind"], facts["detector"], counted) == (kind, detector, rows)
    assert facts["protocol"] == files.PROTOCOL
    assert facts["writer"] == {"hushtable": hushtable.__version__}
    assert [feature["name"] for feature in facts["features"]] == ["age", "income", "ward"]
    assert facts["data_dependent"] == (kind == "detector")
    text = run("inspect", site / name)
    assert text.code == 0
    assert facts["plan_id"] in text.out
    read_off = kind == "detector"
    assert ("2 categories read off rows" if read_off else "2 categories: north, south") in text.out
    assert ("Values of rows" in text.out) == read_off
    assert facts["texts"] == ({"ward": 2} if read_off else {})
    if rows:
        assert facts["features"][0]["missing"] == 8
        assert "Rows counted " in text.out
        assert f"{counted}{' in the first' * (kind == 'detector')}\n" in text.out
    if kind == "detector":
        assert facts["offset"] == hushtable.load(site / name).offset_


def test_inspect_caps_long_lists_and_shows_no_control_characters(run, tmp_path):
    names = [f"x{j}" for j in range(99)] + ["\x1b[31mred"]
    table = "".join(
        f'[[feature]]\nname = "{name}"\nkind = "numeric"\nlow = 0\nhigh = 1\n'
        for name in names[:-1]
    )
    table = '[[feature]]\nname = "\\u001b[31mred"\nkind = "numeric"\nlow = 0\nhigh = 1\n' + table
    (tmp_path / "s.toml").write_text(table)
    assert run("plan", "draw", tmp_path / "s.toml", "-o", tmp_path / "p.hush").code == 0
    text = run("inspect", tmp_path / "p.hush").out
    assert "and 60 more" in text
    assert "\x1b" not in text
    assert len(run("inspect", tmp_path / "p.hush", "--json").json["features"]) == 100


# --- progress ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "bar"), [([], True), (["--json"], False)])
def test_progress_bar_on_a_terminal(site, tmp_path, options, bar):
    import pty

    ours, theirs = pty.openpty()
    arguments = ["score", site / "rows.csv", "--model", site / "model.hush", *options]
    done = subprocess.run(
        [sys.executable, "-m", "hushtable.cli", *arguments, "-o", tmp_path / "s.csv"],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        check=True,
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # which is how a terminal says that it was closed
        while chunk := os.read(ours, 65_536):
            shown += chunk
    os.close(ours)
    assert (b"400 rows" in shown) == bar, shown
    assert b"400" in done.stdout
    if not bar:
        assert shown == b""
