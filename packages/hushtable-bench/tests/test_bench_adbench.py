"""``hushtable bench adbench``: on made-up sets, and its statistics."""

import csv
import json
import math
import sys

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest

from hushtable.cli import main
from hushtable.errors import DataError
from hushtable_bench import adbench
from hushtable_bench.data import LabelledSet, auc_and_ap, load, load_split
from hushtable_bench.results import Results


def made_up(seed, rows):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(rows, 3)), np.zeros(rows)
    X[:10], y[:10] = rng.uniform(3, 5, size=(10, 3)), 1
    return X, y


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "sets"
    folder.mkdir()
    for seed, rows in enumerate((120, 150, 200)):
        X, y = made_up(seed, rows)
        np.savez(folder / f"set{seed}.npz", X=X, y=y)
    return folder


@pytest.fixture
def odd_folder(tmp_path):
    """Missing values and categories; one outlier alone; more columns than MCD takes."""
    folder = tmp_path / "odd"
    folder.mkdir()
    X, y = made_up(0, 120)
    X[20:40, 1] = np.nan
    X[:, 2] = np.random.default_rng(1).integers(0, 4, 120)
    X[5, 2] = 9
    np.savez(folder / "45_wine.npz", X=X, y=y, categorical=np.array([False, False, True]))
    X, y = made_up(1, 100)
    np.savez(folder / "lone.npz", X=X, y=np.arange(100) == 3)
    X = np.random.default_rng(2).normal(size=(100, adbench.MOST_COLUMNS["MCD"] + 1))
    X[:10] += 2.0
    np.savez(folder / "wide.npz", X=X, y=y)
    return folder


CONTESTANTS = adbench.contestants


def few(protocol="unsupervised", names=(adbench.DEFAULT, adbench.MANY, "iForest", "KNN", "MCD")):
    return [c for c in CONTESTANTS(protocol) if c.name in names]


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["unsupervised", "novelty"])
def test_the_whole_way(protocol, folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(adbench, "contestants", few)  # each by itself is run below
    output = tmp_path / "out"
    arguments = ["bench", "adbench", "--seeds", "2", "--data", str(folder), "-o", str(output)]
    arguments += ["--protocol", protocol]
    assert main([*arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    field = adbench.contestants(protocol)
    assert (facts["targets"], facts["left_out"]) == ([], {})  # promises are for the docs' sets
    assert {row[0] for row in facts["tables"][2][1:]} == {"set0", "set1", "set2"}
    suffix = "" if protocol == "unsupervised" else "-novelty"
    found = Results(output / "adbench.parquet").select(f"adbench{suffix}")
    fixed = protocol == "unsupervised"
    assert len(found) == 3 * sum(1 if c.fixed and fixed else 2 for c in field)
    header, *rows = csv.reader((output / f"adbench{suffix}.csv").read_text("utf-8").splitlines())
    assert header[:3] == ["detector", "ROC-AUC", "AP"]
    assert {row[0] for row in rows} == {c.name for c in field}
    # Called again, nothing is run.
    monkeypatch.setattr(adbench, "_run", lambda *_: pytest.fail("run again"))
    assert main(arguments) == 0
    page = (output / f"adbench{suffix}.md").read_text().rstrip("\n")
    assert capsys.readouterr().out.startswith(page)


@pytest.mark.slow
def test_bad_sets_are_named_and_the_others_run(folder, tmp_path, capsys, monkeypatch):
    (folder / "broken.npz").write_bytes(b"PK\x03\x04")
    np.savez(folder / "one.npz", X=np.zeros((4, 2)), y=np.ones(4))
    np.savez(folder / "rare.npz", X=np.zeros((5000, 2)), y=np.arange(5000) == 0)
    monkeypatch.setattr(adbench, "contestants", few)
    arguments = ["bench", "adbench", "--seeds", "1", "--data", str(folder), "--max-rows", "200"]
    assert main([*arguments, "-o", str(tmp_path / "out")]) == 1
    out = capsys.readouterr().out
    assert "Left out: broken." in out
    assert "Left out: one." in out
    assert "200 of its rows hold one label only" in out
    assert "## Means over 3 sets" in out
    assert (tmp_path / "out" / "adbench-200.md").exists()  # beside the page of all rows
    for file in folder.glob("set*.npz"):
        file.unlink()
    assert main([*arguments, "-o", str(tmp_path / "none")]) == 1
    assert "no set could be read" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["unsupervised", "novelty"])
def test_a_failure_is_said_and_left_out(protocol, odd_folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(adbench, "contestants", few)
    output = tmp_path / "out"
    arguments = ["bench", "adbench", "--seeds", "1", "--data", str(odd_folder), "-o", str(output)]
    arguments += ["--protocol", protocol]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "- MCD on wide: 65 columns; it takes minutes for more than 64\n" in out
    assert " (2) " in next(line for line in out.splitlines() if line.startswith("| MCD"))
    name = adbench.experiment(protocol, adbench.MAX_ROWS)
    names = [c.name for c in few(protocol)]
    sets = ("45_wine", "lone", "wide")
    found = adbench.SystemComparison.of(
        Results(output / "adbench.parquet"), "auc", sets, names, name
    )
    assert np.isfinite(found.values).sum() == found.values.size - 1
    # A mean over fewer sets alone.
    mcd = names.index("MCD")
    assert found.means()[mcd] == pytest.approx(found.values[:2, mcd].mean())


def test_a_peer_may_raise_anything_and_ours_only_our_own_errors(folder):
    class Broken:
        def fit(self, X):
            raise self.error

    data, broken = load(folder / "set0.npz"), Broken()
    for error, reason in (
        (IndexError("no\nsuch"), "no"),
        (ZeroDivisionError(), "ZeroDivisionError"),
    ):
        broken.error = error
        peer = adbench.Contestant("peer", lambda seed: broken)
        (row,) = adbench._run(peer, data, 0, "novelty")
        assert row["note"] == reason
        assert math.isnan(row["auc"])
        with pytest.raises(type(error)):
            adbench._run(
                adbench.Contestant("our", lambda seed: broken, ours=True), data, 0, "novelty"
            )


def test_a_missing_pyod_names_the_extra(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyod.models.copod", None)
    assert main(["bench", "adbench", "--data", str(folder), "-o", str(tmp_path / "o")]) == 1
    assert "pip install 'hushtable[bench]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("contestant", "protocol"),
    [
        # Every day each by one protocol, in turn.
        pytest.param(
            one, protocol, id=f"{one.name}-{protocol}", marks=[pytest.mark.slow] * ((at + i) % 2)
        )
        for at, one in enumerate(adbench.contestants())
        for i, protocol in enumerate(("unsupervised", "novelty"))
    ],
)
def test_a_seed_fixes_the_scores_and_high_is_abnormal(contestant, protocol, folder):
    data = load(folder / "set2.npz")
    train = adbench.training_half(data, 1) if protocol == "novelty" else None
    y = data.y if train is None else data.y[~train]
    a, flagged = contestant.outlying(data, 1, train)
    b, _ = contestant.outlying(data, 1, train)
    np.testing.assert_array_equal(a, b)
    assert len(a) == len(y)
    assert 0 <= flagged <= 0.5
    if contestant.name != "ACE":  # angles do not tell these outliers
        assert a[y].mean() > a[~y].mean()
    if contestant.fixed:
        np.testing.assert_array_equal(a, contestant.outlying(data, 2, train)[0])


def test_peers_get_medians_and_scales_of_the_training_rows():
    seen = {}

    class Peer:
        offset_ = 0.0

        def fit(self, X):
            seen["fit"] = X
            return self

        def score_samples(self, X):
            seen["judged"] = X
            return np.zeros(len(X))

    X = np.array([[0.0, 5.0], [2.0, 5.0], [4.0, 5.0], [np.nan, 5.0], [8.0, np.nan]])
    data, train = LabelledSet("", X, np.arange(5) == 4), np.array([1, 1, 1, 0, 0], bool)
    adbench.Contestant("p", lambda seed: Peer(), scale=adbench.MinMaxScaler).outlying(
        data, 0, train
    )
    assert seen["fit"].tolist() == [[0.0, 0.0], [0.5, 0.0], [1.0, 0.0]]
    assert seen["judged"].tolist() == [[0.5, 0.0], [2.0, 0.0]]
    adbench.Contestant("p", lambda seed: Peer()).outlying(data, 0, train)
    assert seen["judged"].tolist() == [[2.0, 5.0], [8.0, 5.0]]


# --- statistics -------------------------------------------------------------------------------


def comparison(values):
    values = np.asarray(values, float)
    sets, systems = values.shape
    names = tuple("abcdefghijklmnop"[:systems])
    return adbench.SystemComparison(tuple(map(str, range(sets))), names, values)


def test_a_figure_that_is_missing_is_left_out_of_means_and_tests():
    nan = math.nan
    found = comparison([[0.9, 0.8, nan], [0.7, 0.9, nan], [0.6, nan, nan], [0.5, nan, 0.5]])
    np.testing.assert_allclose(found.means(), [0.675, 0.85, 0.5])
    assert found.done().tolist() == [4, 2, 1]
    b, c = found.intervals("a").values()
    assert b[0] == pytest.approx(0.05)
    assert c[0] == 0
    assert math.isnan(c[1])  # of one set
    never = comparison([[0.9, nan], [0.8, nan]])
    assert math.isnan(never.means()[1])
    assert all(map(math.isnan, never.intervals("a")["b"]))


# --- published figures and promises -----------------------------------------------------------

DATA, ODD = (adbench.KNOWN["collections"][key]["sets"] for key in ("data", "data-odd"))


def test_published_means_are_for_the_collections_they_are_of():
    assert adbench.published("unsupervised", ["a", "b"]) is None
    assert adbench.published("novelty", DATA)["means"]["KCM"] == [0.875, 0.715]
    assert adbench.published("published", ["odd_a"])["means"]["TaskBridge"] == [0.8024, 0.5043]
    assert adbench.published("published", ["odd_a", "ovr_b"]) is None


def judged(protocol, sets, auc, ap):
    """Judge the same figures on every set; by system."""

    def made(values):
        tiled = np.tile(list(values.values()), (len(sets), 1))
        return adbench.SystemComparison(tuple(sets), tuple(values), tiled)

    return [target.met for target in adbench.targets(protocol, made(auc), made(ap))]


def test_promises_are_for_the_collections_of_the_docs():
    names = (adbench.DEFAULT, adbench.MANY, "iForest", "KNN", "KNN, min-max")
    auc, ap = dict.fromkeys(names, 0.8), dict.fromkeys(names, 0.4)
    for protocol in ("unsupervised", "novelty"):
        assert judged(protocol, DATA[:28], auc, ap) == []
        assert judged(protocol, [*ODD, "more"], auc, ap) == []
    # Not ahead by enough, or at all.
    good = {adbench.DEFAULT: 0.81, adbench.MANY: 0.79, "iForest": 0.81}
    assert judged("unsupervised", DATA, good, good) == [True, False, False, True, True, False]
    assert judged("unsupervised", ODD, good | {"iForest": 0.801}, good | {"iForest": 0.795}) == [
        True, True, True, False
    ]  # fmt: skip


def test_promises_of_novelty_are_against_the_better_neighbours():
    ours = {adbench.NOVELTY: 0.865, "KNN": 0.85, "KNN, min-max": 0.87}
    # Level is no more than chance.
    assert judged("novelty", DATA, ours, ours | {"KNN, min-max": 0.8}) == [True, False, True, True]
    assert judged("novelty", ODD, ours, ours) == [True, False]
    assert judged("novelty", ODD, ours | {"KNN": 0.876}, ours | {"KNN, min-max": 0.8}) == [
        False, True
    ]  # fmt: skip


def test_the_first_contestant_is_what_others_are_compared_with():
    assert adbench.contestants()[0].name == adbench.DEFAULT
    first, second = adbench.contestants("novelty")[:2]
    assert (first.name, second.name) == (adbench.NOVELTY, adbench.DEFAULT)
    assert first.make(3).get_params()["novelty"]
    assert not second.make(3).get_params()["novelty"]


# --- published splits ---------------------------------------------------------------------------

INLIERS = 60


def made_up_split(seed, rows=2 * INLIERS, outliers=6):
    """Return rows of which the first half is for training, with outliers at the end."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    X[rows - outliers :] += 4.0
    return X, np.arange(rows) >= rows - outliers, np.arange(rows) < rows // 2


def save_published(path, seed, **changed):
    """Save a set as the repository has it, among facts that need pickle."""
    X, y, train = made_up_split(seed)
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
    X, y, train = made_up_split(seed)
    arrays = {"X": X, "y": y.astype(np.int8), "train": train} | changed
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def published(folder, output, *more):
    arguments = ["bench", "adbench", "--protocol", "published", "--seeds", "1", *more]
    return main([*arguments, "--data", str(folder), "-o", str(output)])


def test_a_published_split_is_fitted_and_judged_beside_published_means(tmp_path, capsys):
    folder = tmp_path / "oddbench"
    save_published(folder / "Fresh.npz", 0)
    save_published(folder / "VoteResult.npz", 1)  # that settings were judged on
    save_own(folder / "odd_Other.npz", 3)
    assert published(folder, tmp_path / "out", "--json") == 0
    tables = json.loads(capsys.readouterr().out)["tables"]
    assert [row[0] for row in tables[2][1:]] == ["odd_Fresh", "odd_Other"]
    assert tables[-1][1][:2] == ["TaskBridge", "0.8024"]
    data = load_split(folder / "Fresh.npz", 5_000)
    forest = IsolationForest(random_state=0).fit(data.X[data.train])
    figures = auc_and_ap(data.y[~data.train], forest.score_samples(data.X[~data.train]))
    results = Results(tmp_path / "out" / "adbench.parquet")
    (found,) = results.values("adbench-published", "auc", data="odd_Fresh", system="iForest")
    assert found == pytest.approx(figures["auc"])
    # If there are no others, those that settings were judged on count.
    seen = [folder / "VoteResult.npz"]
    assert adbench.unseen(seen) == seen


def test_the_same_rows_are_the_same_set_in_both_formats(tmp_path):
    save_published(tmp_path / "oddbench" / "One.npz", 5)
    save_own(tmp_path / "odd_One.npz", 5)
    one, other = (load_split(tmp_path / p, 40) for p in ("oddbench/One.npz", "odd_One.npz"))
    assert (one.name, one.train.sum(), len(one.y)) == (other.name, 40, 80)
    for name in ("X", "y", "train"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


BAD = {
    "few outliers": (save_published, {"test_labels": np.arange(INLIERS) == 3},
                     "1 of its 60 test rows are outliers; needs 2"),
    "no test rows": (save_published, {"test": None}, "needs arrays train, test and test_labels"),
    "no labels": (save_published, {"test_labels": None}, "test_labels is not a file"),
    "labels of fewer rows": (save_published, {"test_labels": np.ones(5, int)}, "needs X (n, d)"),
    "other columns": (save_published, {"test": np.ones((INLIERS, 2))}, "of the same columns"),
    "texts": (save_published, {"train": np.full((INLIERS, 3), "a")}, "could not convert"),
    "objects": (save_published, {"train": np.full((INLIERS, 3), None)}, "allow_pickle"),
    "infinity": (save_published, {"train": np.full((INLIERS, 3), np.inf)}, "holds infinity"),
    "no split": (save_own, {"train": None}, "names no training rows; needs train"),
    "split by numbers": (save_own, {"train": np.ones(2 * INLIERS)}, "needs train, bool (n,)"),
    "outliers by their labels": (save_published, {"train_labels": np.arange(INLIERS) == 3},
                                 "1 of its 60 training rows are outliers"),
    "nothing to train on": (save_own, {"train": np.zeros(2 * INLIERS, bool)}, "0 of its 0"),
    "outliers to train on": (save_own, {"train": np.ones(2 * INLIERS, bool)}, "6 of its 120"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_split_is_named_with_a_reason(case, tmp_path):
    save, changed, reason = BAD[case]
    save(tmp_path / "Bad.npz", 9, **changed)
    with pytest.raises(DataError) as refused:
        load_split(tmp_path / "Bad.npz", 5_000)
    assert str(refused.value).startswith(f"{tmp_path / 'Bad.npz'}: ")
    assert reason in str(refused.value)
