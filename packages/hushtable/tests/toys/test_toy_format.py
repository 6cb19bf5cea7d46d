"""A toy input format: one file and one registration add it, wherever rows are taken.

JSON lines, as pyarrow reads them; and an object in memory, a dict of columns.
"""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import json as arrow_json

from hushtable import Feature, HushTable, Plan, Schema, Sketch, load
from hushtable.cli import main
from hushtable.data import register_format, register_source
from hushtable.data.readers import as_reader, registry
from hushtable.errors import DataError

SCHEMA = Schema([
    Feature.numeric("age", low=0, high=100), Feature.categorical("ward", ["a", "b"]),
])  # fmt: skip
PLAN = Plan.draw(SCHEMA, random_state=0, n_tables=8)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    registry.load_plugins()  # once in a process: not into the copies
    monkeypatch.setattr(registry, "FORMATS", registry.FORMATS.copy())
    monkeypatch.setattr(registry, "SOURCES", registry.SOURCES.copy())
    register_format("JSON lines", [".jsonl"], lambda path, texts: arrow_json.read_json(path))
    register_format("JSON stream", [".jsons"], lambda path, texts: arrow_json.open_json(path))
    register_source(lambda data: isinstance(data, dict), pa.table)


@pytest.fixture
def rows(rng):
    return {"age": rng.uniform(20, 60, 300), "ward": rng.choice(["a", "b"], 300)}


def write(path, rows):
    path.parent.mkdir(exist_ok=True)
    lines = zip(rows["age"].tolist(), rows["ward"].tolist(), strict=True)
    path.write_text("".join(json.dumps({"age": a, "ward": w}) + "\n" for a, w in lines))
    return str(path)


def test_counts_are_those_of_the_same_rows_in_memory(tmp_path, rows):
    expected = Sketch.from_data(PLAN, pa.table(rows)).counts
    half = [
        {name: column[part] for name, column in rows.items()}
        for part in (slice(100), slice(100, None))
    ]
    write(tmp_path / "rows" / "1.jsonl", half[0])
    write(tmp_path / "rows" / "2.jsons", half[1])
    for data in (
        rows,
        write(tmp_path / "all.jsonl", rows),
        tmp_path / "rows",
        str(tmp_path / "rows" / "*"),
    ):
        np.testing.assert_array_equal(Sketch.from_data(PLAN, data).counts, expected)


def test_detectors_read_a_stream_more_than_once(tmp_path, rows):
    of_file, of_memory = (
        HushTable(random_state=0, n_tables=8).fit(data)
        for data in (write(tmp_path / "all.jsons", rows), pa.table(rows))
    )
    np.testing.assert_array_equal(of_file.sketch_.counts, of_memory.sketch_.counts)


def test_the_command_line_reads_it(tmp_path, rows, capsys):
    data, model = write(tmp_path / "rows" / "all.jsonl", rows), str(tmp_path / "m.hush")
    assert main(["fit", data, "-o", model]) == 0
    capsys.readouterr()
    scores = str(tmp_path / "s.csv")
    assert main(["score", data, "--model", model, "-o", scores, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 300
    found = np.genfromtxt(scores, delimiter=",", skip_header=1, usecols=1)
    np.testing.assert_allclose(found, load(model).score_samples(rows))
    folder = str(tmp_path / "out")
    assert main(["score", str(tmp_path / "rows"), "--model", model, "-o", folder]) == 0
    assert (tmp_path / "out" / "all.scores.parquet").is_file()


@pytest.mark.parametrize("ending", [".jsonl", ".jsons"])
def test_what_is_not_of_the_format_is_refused(tmp_path, ending, capsys):
    path = tmp_path / f"bad{ending}"
    path.write_text('{"age": 1')
    with pytest.raises(DataError, match=rf"bad\{ending}: not a readable JSON \w+ file"):
        as_reader(path)
    path.write_text("")
    with pytest.raises(DataError, match="the file is empty"):
        as_reader(path)
    assert main(["fit", str(path), "-o", str(tmp_path / "m.hush")]) == 1
    assert "the file is empty" in capsys.readouterr().err
    path.write_text('{"age": 1}\n')
    with pytest.raises(DataError, match="ward"):
        Sketch.from_data(PLAN, path)


def test_messages_name_what_is_registered(tmp_path):
    (tmp_path / "rows.odd").write_text("1")
    with pytest.raises(DataError, match=r"ends in \.csv, .*\.jsonl"):
        as_reader(tmp_path / "rows.odd")
    with pytest.raises(DataError, match=r"no folder with CSV or Parquet or .* or JSON stream"):
        as_reader(tmp_path / "none")
