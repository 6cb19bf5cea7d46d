"""Scoring into a folder: a file for each, resumable, nothing lost."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import hushtable
from cli_helpers import contents, write_rows


@pytest.fixture
def lake(tmp_path):
    """Return a folder of three files of rows, one of them deeper, Parquet and CSV."""
    (tmp_path / "lake" / "deep").mkdir(parents=True)
    for name, n_rows in (("a", 120), ("deep/a", 80), ("b", 50)):
        rows = write_rows(tmp_path / "lake" / f"{name}.csv", n_rows, seed=n_rows)
        if name != "b":
            pq.write_table(csv.read_csv(rows), rows.with_suffix(".parquet"))
            rows.unlink()
    return tmp_path / "lake"


@pytest.fixture
def score(run, site, lake):
    def score(*options, model="model.hush", rows=lake, out=lake.parent / "scores"):
        return run("score", rows, "--model", site / model, "-o", out, *options)

    return score


def changed(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}


def test_every_file_has_its_scores(score, site, lake, tmp_path):
    result = score()
    assert (result.code, result.err) == (0, "")
    assert "Scored 250 rows" in result.out
    assert f"Wrote 3 files in {tmp_path / 'scores'}" in result.out
    model = hushtable.load(site / "model.hush")
    names = {"a.parquet": "a", "deep/a.parquet": "deep/a", "b.csv": "b"}
    assert set(contents(tmp_path / "scores")) == {f"{n}.scores.parquet" for n in names.values()}
    lowest = []
    for source, name in names.items():
        table = pq.read_table(tmp_path / "scores" / f"{name}.scores.parquet")
        scores = model.score_samples(lake / source)
        np.testing.assert_array_equal(table["score"], scores)
        np.testing.assert_array_equal(table["row"], np.arange(len(scores)))
        np.testing.assert_array_equal(table["outlier"], scores < model.offset_)
        lowest += [(score, str(lake / source), row) for row, score in enumerate(scores)]
    facts = json.loads(score("--json", out=tmp_path / "again").out)
    assert (facts["rows"], facts["files_kept"]) == (250, 0)
    found = [(line["score"], line["file"], line["row"]) for line in facts["lowest"]]
    assert found == sorted(lowest)[:5]


def test_what_is_done_is_not_done_again(score, lake, tmp_path):
    assert score().code == 0
    before = changed(tmp_path / "scores")
    result = score()
    assert result.code == 0
    assert "left as they are: 3 files" in result.out
    assert "There are no other rows to score" in result.out
    (tmp_path / "scores" / "deep" / "a.scores.parquet").unlink()
    write_rows(lake / "b.csv", 60, seed=9)  # its scores are out of date
    facts = json.loads(score("--json").out)
    assert (facts["rows"], facts["files_kept"]) == (140, 1)
    after = changed(tmp_path / "scores")
    assert after["a.scores.parquet"] != before["a.scores.parquet"]  # the deeper one has its name
    assert after["b.scores.parquet"] > before["b.scores.parquet"]
    assert len(pq.read_table(tmp_path / "scores" / "b.scores.parquet")) == 60


def test_a_file_without_rows_has_no_scores_and_is_not_counted(score, lake, tmp_path):
    (lake / "empty.csv").write_text("age,income,ward\n")
    assert f"Wrote 3 files in {tmp_path / 'scores'}" in score().out
    assert "empty.scores.parquet" not in contents(tmp_path / "scores")
    assert json.loads(score("--json").out)["files_kept"] == 3


def test_a_failure_keeps_whole_files_and_the_next_call_goes_on(score, lake, tmp_path):
    good = (lake / "b.csv").read_bytes()
    (lake / "b.csv").write_text("age,income,ward\n40,inf,north\n")
    result = score()
    assert result.code == 1
    assert "'inf' in line 2 of" in result.err
    assert set(contents(tmp_path / "scores")) == {"a.scores.parquet"}  # and nothing half written
    (lake / "b.csv").write_bytes(good)
    facts = json.loads(score("--json").out)
    assert (facts["rows"], facts["files_kept"]) == (130, 1)


def test_nothing_of_others_is_lost(score, lake, tmp_path):
    assert score().code == 0
    before = contents(tmp_path / "scores")
    for options, more in (((), {"model": "a.sketch.hush"}), (("--explain",), {})):
        result = score(*options, **more)
        assert result.code == 2
        assert "scores by another model or threshold, or other columns" in result.err
        assert contents(tmp_path / "scores") == before
    for content in (b"precious", (lake / "a.parquet").read_bytes()):
        (tmp_path / "scores" / "b.scores.parquet").write_bytes(content)
        result = score()
        assert result.code == 2
        assert "is not a file of scores" in result.err
        assert (tmp_path / "scores" / "b.scores.parquet").read_bytes() == content


def test_what_is_refused(score, lake, tmp_path):
    before = contents(tmp_path)
    for options, message, code in (
        ({"out": lake}, "from which rows are read", 2),
        ({"out": lake / "deep"}, "from which rows are read", 2),
        ({"out": tmp_path / "no" / "scores"}, "make it first", 1),
        (
            {"out": tmp_path / "scores.txt"},
            "must end in .parquet or .csv, or be that of a folder",
            2,
        ),
    ):
        result = score(**options)
        assert (result.code, message in result.err) == (code, True), result.err
    result = score("--contamination", "0.1")
    assert result.code == 2
    assert "--contamination needs all scores" in result.err
    write_rows(lake / "a.csv", 30)  # beside a.parquet
    result = score()
    assert result.code == 2
    assert "same name" in result.err
    (lake / "a.csv").unlink()
    assert contents(tmp_path) == before
