"""OddBench and OvRBench: both file formats, what is left out and why, and the table."""

import json

import numpy as np
import pytest

from hushtable_bench import runner
from hushtable_bench.cases import oddbench
from hushtable_bench.data import auc_and_ap

INLIERS = 60


def made_up(seed, rows=2 * INLIERS, outliers=6):
    """Return rows of which the first half is for training, with outliers at the end."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    X[rows - outliers :] += 4.0
    return X, np.arange(rows) >= rows - outliers, np.arange(rows) < rows // 2


def save_published(path, seed, **changed):
    """Save a set as the repository has it, among facts that need pickle."""
    X, y, train = made_up(seed)
    arrays = {
        "train": X[train], "train_labels": y[train].astype(int),
        "test": X[~train], "test_labels": y[~train].astype(int),
        "meta_info": np.array({"a": 1}, object),
    }  # fmt: skip
    arrays |= changed
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def save_own(path, seed, **changed):
    """Save a set as X, y and train."""
    X, y, train = made_up(seed)
    arrays = {"X": X.astype(np.float32), "y": y.astype(np.int8), "train": train} | changed
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


@pytest.fixture
def folder(tmp_path):
    """Two sets of each benchmark, one of each format, and one that settings were judged on."""
    folder = tmp_path / "sets"
    save_published(folder / "oddbench" / "Fresh.npz", 0)
    save_published(folder / "oddbench" / "VoteResult.npz", 1)
    save_published(folder / "OvRBench" / "fresh.npz", 2)
    save_own(folder / "odd_Other.npz", 3)
    save_own(folder / "ovr_other.npz", 4)
    return folder


@pytest.fixture
def one_set(tmp_path):
    save_own(tmp_path / "sets" / "odd_Other.npz", 3)
    return tmp_path / "sets"


def run(folder, output, *arguments):
    return runner.main(["oddbench", "--data", str(folder), "--output", str(output), *arguments])


def refused(folder, tmp_path, capsys):
    with pytest.raises(SystemExit) as exit_of:
        run(folder, tmp_path / "out")
    assert exit_of.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


def read_figures(output):
    """Return the figures of a run, and the rows of its table by their first three cells."""
    figures = json.loads((output / "oddbench.json").read_text())
    rows = {", ".join([*row.values()][:3]): row for row in figures["table"]}
    assert len(rows) == len(figures["table"])
    return figures, rows


def test_both_regimes_are_measured_beside_published_means(folder, tmp_path, capsys):
    assert run(folder, tmp_path / "out", "--seeds", "2") == 0
    out = capsys.readouterr().out
    assert "5 files, 2 sets of OddBench and 2 sets of OvRBench counted" in out
    assert "Left out: 1 set that settings of HushTable were judged on" in out
    figures, rows = read_figures(tmp_path / "out")
    peer = rows["OddBench, inliers, IsolationForest"]
    assert (peer["sets"], peer["ROC-AUC, published"]) == ("2", "0.7126")
    assert peer["published in"].startswith("arXiv 2609.36968, Table 4")
    assert float(peer["ROC-AUC"]) > 0.9
    assert " ± " in peer["AP, less HushTable's"]
    ours = rows["OddBench, inliers, HushTable"]
    assert not any(ours[key] for key in ("AP, less HushTable's", "AP, published", "published in"))
    # What others published alone has no figure of ours; the other cases have none published.
    assert rows["OddBench, inliers, TaskBridge"]["ROC-AUC"] == ""
    for other in ("OddBench, all rows", "OvRBench, inliers", "OvRBench, all rows"):
        assert rows[f"{other}, HushTable"]["ROC-AUC"] != ""
        assert f"{other}, TaskBridge" not in rows
        assert rows[f"{other}, IsolationForest"]["ROC-AUC, published"] == ""
    assert "| OvRBench  | all rows  | 5 nearest neighbours, mean |" in out
    assert set(figures["sets"]) == {"odd_Fresh", "odd_Other", "ovr_fresh", "ovr_other"}


def test_sets_that_were_seen_are_counted_if_asked_and_the_table_says_it(folder, tmp_path, capsys):
    assert run(folder, tmp_path / "out", "--seen") == 0
    out = capsys.readouterr().out
    assert "3 sets of OddBench and 2 sets of OvRBench counted" in out
    assert "were judged on 1 of the counted sets, which flatters it" in out
    assert "Left out" not in out


def test_the_same_rows_give_the_same_figures_in_both_formats(tmp_path):
    save_published(tmp_path / "oddbench" / "One.npz", 5)
    save_own(tmp_path / "ovr_one.npz", 5, X=made_up(5)[0])
    one, other = (
        oddbench.judge(*oddbench.load_split(tmp_path / name, 5_000), 1)
        for name in ("oddbench/One.npz", "ovr_one.npz")
    )
    np.testing.assert_array_equal(one, other)


def test_the_regimes_fit_what_they_say_and_judge_the_test_rows(tmp_path):
    save_own(tmp_path / "odd_one.npz", 6)
    data, train = oddbench.load_split(tmp_path / "odd_one.npz", 5_000)
    found = oddbench.judge(data, train, 1)
    from sklearn.ensemble import IsolationForest

    for at, fitted in enumerate((data.X[train], data.X)):
        forest = IsolationForest(random_state=0).fit(fitted)
        figures = auc_and_ap(data.y[~train], forest.score_samples(data.X[~train]))
        np.testing.assert_allclose(found[at, :, 1], [*figures.values()])


def test_training_and_test_rows_are_limited_apart(tmp_path):
    save_own(tmp_path / "odd_one.npz", 7)
    data, train = oddbench.load_split(tmp_path / "odd_one.npz", 40)
    assert (train.sum(), (~train).sum()) == (40, 40)
    assert not data.y[train].any()


BAD = {
    "few outliers": (save_published, {"test_labels": np.arange(INLIERS) == 3},
                     "1 of the 60 test rows are outliers; needs 2"),
    "no test rows": (save_published, {"test": None}, "needs arrays train, test and test_labels"),
    "no labels": (save_published, {"test_labels": None}, "test_labels is not a file"),
    "labels of fewer rows": (save_published, {"test_labels": np.ones(5, int)}, "needs X (n, d)"),
    "other columns": (save_published, {"test": np.ones((INLIERS, 2))}, "of the same columns"),
    "texts": (save_published, {"train": np.full((INLIERS, 3), "a")}, "could not convert"),
    "objects": (save_published, {"train": np.full((INLIERS, 3), None)}, "allow_pickle"),
    "infinity": (save_published, {"train": np.full((INLIERS, 3), np.inf)}, "holds infinity"),
    "no split": (save_own, {"train": None}, "the published split is missing: needs train"),
    "split by numbers": (save_own, {"train": np.ones(2 * INLIERS)}, "needs train, bool (n,)"),
    "outliers by their labels": (save_published, {"train_labels": np.arange(INLIERS) == 3},
                                 "1 of its 60 training rows are outliers"),
    "nothing to train on": (save_own, {"train": np.zeros(2 * INLIERS, bool)}, "0 training rows"),
    "outliers to train on": (save_own, {"train": np.ones(2 * INLIERS, bool)}, "6 of its 120"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_set_is_named_with_a_reason_and_not_counted(case, one_set, tmp_path, capsys):
    save, changed, reason = BAD[case]
    save(one_set / "oddbench" / "Bad.npz", 9, **changed)
    assert run(one_set, tmp_path / "out") == 0
    out = capsys.readouterr().out
    line = next(line for line in out.splitlines() if line.startswith("Left out: "))
    assert line.startswith("Left out: oddbench/Bad.npz: ")
    assert reason in line
    assert str(tmp_path) not in line
    assert "1 set of OddBench counted" in out


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ovr_torn.npz", "not a .npz file"),
        ("elsewhere/Set.npz", "neither OddBench nor OvRBench"),
        ("oddbench/Other.npz", "the same set in another file is counted"),
    ],
)
def test_other_files_are_named_with_a_reason(name, reason, one_set, tmp_path, capsys):
    if "torn" in name:
        whole = (one_set / "odd_Other.npz").read_bytes()
        (one_set / name).write_bytes(whole[: len(whole) // 2])
    else:
        save_own(one_set / name, 10)
    assert run(one_set, tmp_path / "out") == 0
    line = next(one for one in capsys.readouterr().out.splitlines() if one.startswith("Left out"))
    assert line.startswith(f"Left out: {name}: {reason}")


def test_an_array_that_is_no_archive_is_named(one_set, tmp_path, capsys):
    with (one_set / "odd_single.npz").open("wb") as file:
        np.save(file, np.ones(3))
    assert run(one_set, tmp_path / "out") == 0
    assert "Left out: odd_single.npz: not a .npz file" in capsys.readouterr().out


def test_no_folder_an_empty_one_and_one_without_a_set_to_count_are_refused(tmp_path, capsys):
    assert "gone is not a folder" in refused(tmp_path / "gone", tmp_path, capsys)
    (tmp_path / "empty").mkdir()
    assert "empty holds no .npz file: needs those of" in refused(
        tmp_path / "empty", tmp_path, capsys
    )
    save_own(tmp_path / "bad" / "odd_a.npz", 1, train=None)
    message = refused(tmp_path / "bad", tmp_path, capsys)
    assert "no set is left to count" in message
    assert "odd_a.npz: the published split is missing" in message
    save_own(tmp_path / "seen" / "odd_VoteResult.npz", 1)
    assert "--seen counts them" in refused(tmp_path / "seen", tmp_path, capsys)


def test_a_single_set_has_no_standard_error(tmp_path, capsys):
    save_own(tmp_path / "sets" / "odd_a.npz", 1)
    assert run(tmp_path / "sets", tmp_path / "out") == 0
    _, rows = read_figures(tmp_path / "out")
    assert "nan" not in str(rows)
    assert rows["OddBench, inliers, IsolationForest"]["AP, less HushTable's"].endswith("± ?")
