"""The benchmarks read and print in one way: labelled sets, results, tables, targets."""

import numpy as np
import pytest

from hushtable.bench.data import LabelledSet, data_folder, find_sets, load
from hushtable.bench.results import Results
from hushtable.bench.tables import Target, markdown_table, print_targets, spread
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
    loaded = load(path)
    assert loaded.name == "made-up"
    np.testing.assert_array_equal(loaded.X, labelled.X)
    np.testing.assert_array_equal(loaded.y, labelled.y)


def test_a_folder_is_given_or_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HUSHTABLE_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    assert data_folder(tmp_path.parent) == tmp_path.parent


def test_a_folder_that_is_not_there_is_named(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"nowhere is not a folder.*HUSHTABLE_DATA"):
        data_folder(tmp_path / "nowhere")
    monkeypatch.setenv("HUSHTABLE_DATA", str(tmp_path / "unset"))
    with pytest.raises(DataError, match="unset is not a folder"):
        data_folder()
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
        load(tmp_path / "odd.npz")


@pytest.mark.parametrize("keep", [0, 30, 400])
def test_a_truncated_file_is_named(keep, folder):
    path = folder / "made-up.npz"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match=r"made-up\.npz: needs arrays"):
        load(path)


def test_a_flipped_byte_is_named(folder):
    path = folder / "made-up.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 255
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"made-up\.npz: needs arrays"):
        load(path)


def test_a_file_that_is_no_npz_is_named(tmp_path):
    (tmp_path / "text.npz").write_text("nothing")
    with pytest.raises(DataError, match=r"text\.npz: needs arrays"):
        load(tmp_path / "text.npz")
    with pytest.raises(DataError, match=r"gone\.npz is missing"):
        load(tmp_path / "gone.npz")


def test_markdown_table_lines_up():
    table = markdown_table(("set", "rows"), [("a", 10), ("long name", 7)])
    assert table.splitlines() == [
        "| set       | rows |",
        "| --------- | ---: |",
        "| a         |   10 |",
        "| long name |    7 |",
    ]
    # Narrow columns have a rule that Markdown knows.
    assert markdown_table(("a", "p"), [("x", "1")]).splitlines()[1] == "| --- | --: |"


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
    assert print_targets([kept]) == 0
    assert print_targets([kept, missed]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any("missed" in line and "0.5" in line and "FAIL" in line for line in lines)
    assert any("kept" in line and "pass" in line for line in lines)


def test_results_are_kept_and_read_as_curves(tmp_path):
    results = Results(tmp_path / "r.parquet")
    for seed, auc in ((1, 0.25), (0, 0.75)):
        name = {"experiment": "e", "data": "d", "step": "s", "seed": seed}
        rows = [{"system": "a", "setting": x, "auc": auc + x / 100} for x in (10.0, 2.0)]
        results.add(name, rows)
    again = Results(tmp_path / "r.parquet")
    assert again.done(name)
    assert not again.done(name | {"seed": 7})
    assert again.values("e", "auc", setting=2.0).tolist() == [0.77, 0.27]  # by seed
    curve = again.curve("e", "d", "a")
    assert list(curve) == [2.0, 10.0]
    assert curve[10.0].tolist() == pytest.approx([85.0, 35.0])
    assert again.curve("e", "d", "b") == {}


def test_a_spread_is_a_mean_and_a_deviation():
    assert spread([1.0, 3.0]) == "2.0 ± 1.0"
    assert spread([]) == "-"
