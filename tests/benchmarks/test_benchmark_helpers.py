"""The parts that the benchmark scripts share, on made-up data."""

import argparse
import json

import common
import numpy as np
import pytest
from common import LabelledSet, Rows, Target

from hushtable.bench.data import find_sets
from hushtable.errors import DataError


@pytest.fixture
def labelled(rng):
    X = rng.normal(size=(300, 3))
    X[:6] += 9.0
    return LabelledSet("made-up", X, np.arange(300) < 6)


@pytest.fixture
def folder(labelled, tmp_path):
    np.savez(tmp_path / "made-up.npz", X=labelled.X, y=labelled.y.astype(int))
    return tmp_path


def test_distinct_keeps_the_first_of_equal_rows_in_order():
    X = np.array([[2.0], [1.0], [2.0], [1.0], [1.0]])
    once = LabelledSet("", X, np.array([0, 0, 0, 0, 1], bool)).distinct()
    assert once.X.tolist() == [[2.0], [1.0], [1.0]]
    assert once.y.tolist() == [False, False, True]


def test_at_most_is_a_subset_that_the_seed_fixes(labelled):
    some = labelled.at_most(50)
    assert some.X.shape == (50, 3)
    assert set(map(tuple, some.X)) <= set(map(tuple, labelled.X))
    np.testing.assert_array_equal(some.X, labelled.at_most(50).X)
    assert not np.array_equal(some.X, labelled.at_most(50, seed=1).X)
    assert labelled.at_most(300) is labelled


def test_load_reads_what_was_saved(folder, labelled):
    (path,) = find_sets(folder)
    loaded = common.load(path)
    assert loaded.name == "made-up"
    np.testing.assert_array_equal(loaded.X, labelled.X)
    np.testing.assert_array_equal(loaded.y, labelled.y)


def test_a_folder_that_is_not_there_is_named(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"nowhere is not a folder.*HUSHTABLE_DATA"):
        common.data_folder(tmp_path / "nowhere")
    monkeypatch.setenv("HUSHTABLE_DATA", str(tmp_path / "unset"))
    with pytest.raises(DataError, match="unset is not a folder"):
        common.data_folder()
    with pytest.raises(DataError, match=r"holds no \.npz file"):
        find_sets(tmp_path)


@pytest.mark.parametrize(
    ("arrays", "complaint"),
    [
        ({"X": np.zeros((3, 2))}, "needs arrays X and y"),
        ({"X": np.zeros((3, 2)), "y": np.zeros(3)}, "both labels"),
        ({"X": np.zeros((3, 2)), "y": np.arange(4)}, "both labels"),
        ({"X": np.array([["a"], ["b"]]), "y": np.arange(2)}, "needs arrays X and y of numbers"),
    ],
)
def test_an_unusable_file_is_named(arrays, complaint, tmp_path):
    np.savez(tmp_path / "odd.npz", **arrays)
    with pytest.raises(DataError, match=rf"odd\.npz: .*{complaint}"):
        common.load(tmp_path / "odd.npz")


@pytest.mark.parametrize("keep", [0, 30, 400])
def test_a_truncated_file_is_named(keep, folder):
    path = folder / "made-up.npz"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match=r"made-up\.npz: needs arrays"):
        common.load(path)


def test_a_flipped_byte_is_named(folder):
    path = folder / "made-up.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 255
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"made-up\.npz: needs arrays"):
        common.load(path)


def test_a_file_that_is_no_npz_is_named(tmp_path):
    (tmp_path / "text.npz").write_text("nothing")
    with pytest.raises(DataError, match=r"text\.npz: needs arrays"):
        common.load(tmp_path / "text.npz")
    with pytest.raises(DataError, match=r"gone\.npz is missing"):
        common.load(tmp_path / "gone.npz")


def test_run_turns_bad_data_into_a_message_and_an_exit_code(capsys, monkeypatch):
    def fails(arguments):
        raise DataError("no such folder")

    monkeypatch.setattr("sys.argv", ["bench"])
    with pytest.raises(SystemExit) as exit_of:
        common.run(argparse.ArgumentParser("bench"), fails)
    assert exit_of.value.code == 2
    assert capsys.readouterr().err == "bench: no such folder\n"


def test_normal_rows_are_drawn_in_place_and_repeatable():
    data = Rows.normal(5000, 3)
    X = data.load()
    assert (data.name, X.shape, X.dtype) == ("normal 5e3 x 3", (5000, 3), np.float32)
    assert X.flags.c_contiguous
    assert abs(X.mean()) < 0.05
    assert 0.95 < X.std() < 1.05
    np.testing.assert_array_equal(X, data.load())


def test_rows_of_a_file(folder, labelled):
    data = Rows.of_file(folder / "made-up.npz")
    assert (data.rows, data.columns) == labelled.X.shape
    np.testing.assert_array_equal(data.load(), labelled.X.astype(np.float32))


def test_markdown_table_lines_up():
    table = common.markdown_table(("set", "rows"), [("a", 10), ("long name", 7)])
    assert table.splitlines() == [
        "| set       | rows |",
        "| --------- | ---: |",
        "| a         |   10 |",
        "| long name |    7 |",
    ]


@pytest.mark.parametrize(
    ("measured", "needs", "bound", "met"),
    [
        (0.43, ">=", 0.43, True),
        (0.42999, ">=", 0.43, False),
        (0.43, ">", 0.43, False),
        (1.0, "<=", 1.0, True),
        (1.001, "<=", 1.0, False),
        (float("nan"), ">=", 0.0, False),
    ],
)
def test_a_target_is_judged_unrounded(measured, needs, bound, met):
    assert Target("", measured, needs, bound).met is met


def test_print_targets_tells_a_miss_by_its_exit_code(capsys):
    kept, missed = Target("kept", 2.0, ">=", 1.0, ".1f"), Target("missed", 0.5, ">=", 1.0, ".1f")
    assert common.print_targets([kept]) == 0
    assert common.print_targets([kept, missed]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any("missed" in line and "0.5" in line and "FAIL" in line for line in lines)
    assert any("kept" in line and "pass" in line for line in lines)


def test_results_carry_the_environment(tmp_path, monkeypatch):
    monkeypatch.setattr(common, "RESULTS", tmp_path / "results")
    common.write_results("trial", {"figure": 1.5})
    content = json.loads((tmp_path / "results" / "trial.json").read_text())
    assert content["figure"] == 1.5
    assert {"processor", "python", "numpy", "scikit-learn"} <= set(content["environment"])
