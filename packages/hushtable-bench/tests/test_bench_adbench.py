"""``hushtable bench adbench`` and the case ``oddbench``: on made-up sets, and their statistics."""

import csv
import json
import math
import sys

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest

from hushtable.cli import main
from hushtable_bench import adbench, runner
from hushtable_bench import comparison as stats
from hushtable_bench.data import LabelledSet, auc_and_ap, load
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
    assert {row[0] for row in facts["tables"][0][1:]} == {"set0", "set1", "set2"}
    suffix = "" if protocol == "unsupervised" else "-novelty"
    found = Results(output / "adbench.parquet").select(f"adbench{suffix}")
    fixed = protocol == "unsupervised"
    assert len(found) == 3 * sum(1 if c.fixed and fixed else 2 for c in field)
    for kind, first in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        assert (output / f"critical-difference{suffix}.{kind}").read_bytes().startswith(first)
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
def test_a_failure_is_said_and_ranks_last(protocol, odd_folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(adbench, "contestants", few)
    output = tmp_path / "out"
    arguments = ["bench", "adbench", "--seeds", "1", "--data", str(odd_folder), "-o", str(output)]
    arguments += ["--protocol", protocol]
    assert main([*arguments, "--json"]) == 0
    assert "ROC-AUC, published" in str(json.loads(capsys.readouterr().out)["tables"]) or (
        protocol == "unsupervised"
    )
    # From what was kept, too.
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "- MCD on wide: 65 columns; it takes minutes for more than 64\n" in out
    assert " (2) " in next(line for line in out.splitlines() if line.startswith("| MCD"))
    name = adbench.experiment(protocol, adbench.MAX_ROWS)
    names = [c.name for c in few(protocol)]
    sets = ("45_wine", "lone", "wide")
    found = stats.SystemComparison.of(Results(output / "adbench.parquet"), "auc", sets, names, name)
    assert np.isfinite(found.values).sum() == found.values.size - 1
    # A mean over fewer sets alone; last by rank where it failed.
    mcd = names.index("MCD")
    assert found.means()[mcd] == pytest.approx(found.values[:2, mcd].mean())
    assert found.only(["wide"]).ranks()[mcd] == len(names)


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
    return stats.SystemComparison(tuple(map(str, range(sets))), names, values)


@pytest.mark.parametrize(
    ("systems", "sets", "q"), [(4, 14, 2.569), (5, 30, 2.728), (10, 20, 3.164)]
)
def test_critical_differences_are_demsars(systems, sets, q):
    """Table 5 of Demsar (2006), at 5%."""
    found = comparison(np.random.default_rng(0).random((sets, systems)))
    expected = q * math.sqrt(systems * (systems + 1) / (6 * sets))
    assert found.critical_difference() == pytest.approx(expected, rel=1e-3)


def test_a_figure_that_is_missing_is_left_out_of_means_and_tests():
    nan = math.nan
    found = comparison([[0.9, 0.8, nan], [0.7, 0.9, nan], [0.6, nan, nan], [0.5, nan, 0.5]])
    np.testing.assert_allclose(found.means(), [0.675, 0.85, 0.5])
    assert found.done().tolist() == [4, 2, 1]
    assert found.ranks().tolist() == [5.5 / 4, 8.5 / 4, 10 / 4]
    b, c = found.intervals("a").values()
    assert b[0] == pytest.approx(0.05)
    assert c[0] == 0
    assert math.isnan(c[1])  # of one set
    never = comparison([[0.9, nan], [0.8, nan]])
    assert math.isnan(never.means()[1])
    assert all(map(math.isnan, never.intervals("a")["b"]))


# --- published figures and promises -----------------------------------------------------------

DATA, ODD = (stats.KNOWN["collections"][key]["sets"] for key in ("data", "data-odd"))


def test_published_means_are_for_known_names_only():
    assert stats.published("unsupervised", ["a", "b"]) == []
    assert stats.published("novelty", ["a", "b"]) == []
    (first, *_) = rows = stats.published("novelty", ["31_satimage-2", "made up"])
    assert len(rows) == 12
    assert first.over == "1 of these 2"
    assert first.auc == stats.KNOWN["novelty"]["auc"]["satimage-2"][1]
    # InternetAds has no figure of MCD.
    found = {one.system: one for one in stats.published("novelty", ["InternetAds", "45_wine"])}
    assert found["MCD"].over == "1 of these 2"
    assert found["KCM"].over == "2 of these 2"


def judged(protocol, sets, auc, ap):
    """Judge the same figures on every set; by system."""

    def made(values):
        tiled = np.tile(list(values.values()), (len(sets), 1))
        return stats.SystemComparison(tuple(sets), tuple(values), tiled)

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
    ours = {adbench.NOVELTY: 0.861, "KNN": 0.85, "KNN, min-max": 0.87}
    # Here one set has no published figures; level is no more than chance.
    assert judged("novelty", DATA, ours, ours | {"KNN, min-max": 0.8}) == [True, False, True, True]
    assert judged("novelty", ODD, ours, ours) == [True, False]
    assert judged("novelty", ODD, ours | {"KNN": 0.872}, ours | {"KNN, min-max": 0.8}) == [
        False, True
    ]  # fmt: skip


def test_the_first_contestant_is_what_others_are_compared_with():
    assert adbench.contestants()[0].name == adbench.DEFAULT
    first, second = adbench.contestants("novelty")[:2]
    assert (first.name, second.name) == (adbench.NOVELTY, adbench.DEFAULT)
    assert first.make(3).get_params()["novelty"]
    assert not second.make(3).get_params()["novelty"]


# --- OddBench and OvRBench ----------------------------------------------------------------------

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
    arrays = {"X": X.astype(np.float32), "y": y.astype(np.int8), "train": train} | changed
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


@pytest.fixture
def split_folder(tmp_path):
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


def test_both_regimes_are_measured_beside_published_means(split_folder, tmp_path, capsys):
    assert run(split_folder, tmp_path / "out", "--seeds", "2") == 0
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


def test_sets_that_were_seen_are_counted_if_asked_and_the_table_says_it(
    split_folder, tmp_path, capsys
):
    assert run(split_folder, tmp_path / "out", "--seen") == 0
    out = capsys.readouterr().out
    assert "3 sets of OddBench and 2 sets of OvRBench counted" in out
    assert "were judged on 1 of the counted sets, which flatters it" in out
    assert "Left out" not in out


def test_the_same_rows_give_the_same_figures_in_both_formats(tmp_path):
    save_published(tmp_path / "oddbench" / "One.npz", 5)
    save_own(tmp_path / "ovr_one.npz", 5, X=made_up_split(5)[0])
    one, other = (
        adbench.judge(*adbench.load_split(tmp_path / name, 5_000), 1)
        for name in ("oddbench/One.npz", "ovr_one.npz")
    )
    np.testing.assert_array_equal(one, other)


def test_the_regimes_fit_what_they_say_and_judge_the_test_rows(tmp_path):
    save_own(tmp_path / "odd_one.npz", 6)
    data, train = adbench.load_split(tmp_path / "odd_one.npz", 5_000)
    found = adbench.judge(data, train, 1)
    for at, fitted in enumerate((data.X[train], data.X)):
        forest = IsolationForest(random_state=0).fit(fitted)
        figures = auc_and_ap(data.y[~train], forest.score_samples(data.X[~train]))
        np.testing.assert_allclose(found[at, :, 1], [*figures.values()])


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
