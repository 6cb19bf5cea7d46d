"""The benchmarks read and print in one way: labelled sets, results, tables, targets."""

import numpy as np
import pytest

from hushtable.errors import DataError
from hushtable_bench.data import LabelledSet, load


@pytest.fixture
def labelled(rng):
    X = rng.normal(size=(300, 3))
    X[:6] += 9.0
    return LabelledSet("made-up", X, np.arange(300) < 6)


@pytest.fixture
def folder(labelled, tmp_path):
    np.savez(tmp_path / "made-up.npz", X=labelled.X, y=labelled.y.astype(int))
    return tmp_path


def test_missing_values_and_categories_are_kept(tmp_path):
    X = np.array([[0.5, 3.0], [np.nan, 12.0], [2.5, np.nan], [1.0, 3.0]])
    mask = np.array([False, True])
    np.savez(tmp_path / "odd.npz", X=X, y=np.arange(4) == 3, categorical=mask)
    data = load(tmp_path / "odd.npz")
    assert data.rows().to_pydict() == {
        "x0": [0.5, None, 2.5, 1.0], "x1": ["code 3", "code 12", None, "code 3"]
    }  # fmt: skip
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


def test_a_file_that_is_no_npz_is_named(tmp_path):
    (tmp_path / "text.npz").write_text("nothing")
    with pytest.raises(DataError, match=r"text\.npz: needs arrays"):
        load(tmp_path / "text.npz")
    with pytest.raises(DataError, match=r"gone\.npz is missing"):
        load(tmp_path / "gone.npz")
