"""The benchmarks read and print in one way: labelled sets, results, tables, targets."""

import numpy as np
import pytest

from hushtable import HushTable
from hushtable.errors import DataError
from hushtable_bench.data import LabelledSet, data_folder, find_sets, load
from hushtable_bench.results import (
    Promise,
    Results,
    ResultTable,
    spread,
    write_page,
    write_tables,
)


@pytest.fixture
def labelled(rng):
    X = rng.normal(size=(300, 3))
    X[:6] += 9.0
    return LabelledSet("made-up", X, np.arange(300) < 6)


@pytest.fixture
def folder(labelled, tmp_path):
    np.savez(tmp_path / "made-up.npz", X=labelled.X, y=labelled.y.astype(int))
    return tmp_path


def test_a_folder_that_is_not_there_is_named(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"nowhere is not a folder.*HUSHTABLE_DATA"):
        data_folder(tmp_path / "nowhere")
    monkeypatch.setenv("HUSHTABLE_DATA", str(tmp_path / "unset"))
    with pytest.raises(DataError, match="unset is not a folder"):
        data_folder()
    with pytest.raises(DataError, match=r"holds no \.npz file"):
        find_sets(tmp_path)


def test_missing_values_and_categories_are_kept(tmp_path):
    X = np.array([[0.5, 3.0], [np.nan, 12.0], [2.5, np.nan], [1.0, 3.0]])
    mask = np.array([False, True])
    np.savez(tmp_path / "odd.npz", X=X, y=np.arange(4) == 3, categorical=mask)
    data = load(tmp_path / "odd.npz")
    np.testing.assert_array_equal(data.X, X)
    assert data.rows().to_pydict() == {
        "x0": [0.5, None, 2.5, 1.0], "x1": ["code 3", "code 12", None, "code 3"]
    }  # fmt: skip
    some = data.at_most(2)
    assert some.categorical.tolist() == [False, True]
    assert data.schema().features[0].high == 2.5
    # Read as one category each, though all are numbers.
    plan = HushTable(random_state=0).fit(data.rows()).plan_
    assert [feature.kind for feature in plan.schema.features] == ["numeric", "categorical"]
    np.savez(tmp_path / "odd.npz", X=X, y=np.arange(4) == 3, categorical=~mask & mask)
    assert load(tmp_path / "odd.npz").rows().shape == (4, 2)  # none: an array as before


OK = {"X": np.zeros((2, 2)), "y": np.arange(2)}


@pytest.mark.parametrize(
    ("arrays", "complaint"),
    [
        ({"X": np.zeros((3, 2))}, "needs arrays X and y"),
        ({"X": np.zeros((3, 2)), "y": np.zeros(3)}, "both labels"),
        ({"X": np.zeros((3, 2)), "y": np.arange(4)}, "both labels"),
        ({"X": np.array([["a"], ["b"]]), "y": np.arange(2)}, "needs arrays X and y of numbers"),
        ({"X": np.zeros(2), "y": np.arange(2)}, "both labels"),
        ({"X": np.zeros((2, 1)), "y": np.array([0, np.nan])}, "y holds NaN"),
        (
            {"X": np.array([[0, 1], [0, -np.inf]]), "y": np.arange(2)},
            "column 1 of X holds infinity",
        ),
        (
            {"X": np.array([[0, np.nan]] * 2), "y": np.arange(2)},
            "column 1 of X is missing in every",
        ),
        (
            OK | {"categorical": np.array([True])},
            r"bool of shape \(1,\); needs bool of shape \(2,\)",
        ),
        (OK | {"categorical": np.array([0, 1])}, r"int64 of shape \(2,\); needs bool"),
        (OK | {"categorical": np.array(["a", None])}, "needs arrays X and y"),
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


def test_a_file_that_is_no_npz_is_named(tmp_path):
    (tmp_path / "text.npz").write_text("nothing")
    with pytest.raises(DataError, match=r"text\.npz: needs arrays"):
        load(tmp_path / "text.npz")
    with pytest.raises(DataError, match=r"gone\.npz is missing"):
        load(tmp_path / "gone.npz")


def test_a_table_lines_up_in_markdown():
    table = ResultTable(("set", "rows"), [("a", 10), ("long name", 7)])
    assert str(table).splitlines() == [
        "| set       | rows |",
        "| --------- | ---: |",
        "| a         |   10 |",
        "| long name |    7 |",
    ]
    # Narrow columns have a rule that Markdown knows.
    assert str(ResultTable(("a", "p"), [("x", "1")])).splitlines()[1] == "| --- | --: |"


def test_tables_are_written_as_csv_with_one_key(tmp_path):
    one = ResultTable(("set", "system", "AUC"), [("a", "x, y", "0.5 ± 0.1"), ("b", "z", "-")], 2)
    two = ResultTable(("rows", "s"), [(10, "")])
    page, *files = write_page(tmp_path, "case", ["Words.\n", one, "\nMore | words.\n", two])
    assert page.read_text("utf-8") == f"Words.\n\n{one}\n\nMore | words.\n\n{two}\n"
    assert [file.name for file in files] == ["case.csv", "case-2.csv"]
    assert files[0].read_text("utf-8") == ('"set, system",AUC\n"a, x, y",0.5 ± 0.1\n"b, z",\n')
    assert files[1].read_text("utf-8") == "rows,s\n10,\n"
    assert write_tables(tmp_path, "none", ["No table."]) == []


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
    assert Promise("", measured, needs, bound).met is met


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
