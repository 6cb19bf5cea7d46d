"""``hushtable bench verdicts``: both protocols by hand, and the whole way on made-up sets."""

import json
import math
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest

from hushtable.cli import main
from hushtable.errors import HushTableError
from hushtable_bench import cases, verdicts
from hushtable_bench.adbench import KNOWN
from hushtable_bench.data import LabelledSet
from hushtable_bench.results import Results

OURS, ALONE, NONE = verdicts.DEFAULT, verdicts.FOREST, verdicts.NO_FEEDBACK


def made_up(seed, rows, outliers=10):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(rows, 3)), np.arange(rows) < outliers
    X[:outliers] += 2.0
    X[outliers : 2 * outliers] -= 3.0  # odd, and fine
    return LabelledSet(f"set{seed}", X, y)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "sets"
    folder.mkdir()
    for seed, rows in enumerate((80, 120)):
        data = made_up(seed, rows)
        np.savez(folder / f"{data.name}.npz", X=data.X, y=data.y)
    return folder


def bench(folder, output, *more):
    return main(["bench", "verdicts", "--data", str(folder), "-o", str(output), *more])


# --- protocols --------------------------------------------------------------------------------


# --- systems ----------------------------------------------------------------------------------


def named(name):
    return next(one for one in verdicts.systems() if one.name == name)


def conifer(name, monkeypatch):
    """Put a stand-in for a forest of coniferest in its place; return what it is told."""
    told = []

    class Forest:
        def __init__(self, random_seed, n_jobs):
            told.append(random_seed)

        def fit(self, X):
            assert not np.isnan(X).any()
            self.middle = X.mean(axis=0)
            return self

        def fit_known(self, X, known, signs):
            told.append((len(known), signs.tolist()))

        def score_samples(self, X):
            return -np.square(X - self.middle).sum(axis=1)

    for path, made in (("coniferest", {}), (f"coniferest.{name.lower()}", {name: Forest})):
        module = ModuleType(path)
        module.__spec__ = ModuleSpec(path, None)
        vars(module).update(made)
        monkeypatch.setitem(sys.modules, path, module)
    return told


def test_a_conifer_gets_all_verdicts_with_its_signs_and_no_missing_value(monkeypatch):
    told = conifer("AADForest", monkeypatch)
    data = made_up(0, 60)
    data.X[3, 1] = np.nan
    system = named("AADForest")
    learner = system.make(data, 7)
    list(verdicts.looked_at(learner, data.y, [3]))
    signs = told[-1][1]
    assert [told[0], *(n for n, _ in told[1:])] == [7, 1, 2, 3]
    assert set(signs) <= {1, -1}
    # -1 for an outlier.
    learner = system.make(data, 7)
    learner.learn(np.array([0, 59]), data.y[[0, 59]])
    assert told[-1] == (2, [-1, 1])


@pytest.mark.parametrize("name", [OURS, pytest.param(ALONE, marks=pytest.mark.slow), NONE])
def test_a_seed_fixes_what_is_found_and_low_is_abnormal(name):
    data = verdicts.subset(made_up(2, 150), 150, 0)
    system = named(name)
    # A forest of verdicts alone takes a tenth of a second a verdict.
    found = [
        [o.found for o in verdicts.looked_at(system.make(data, 1), data.y, [4, 8])] for _ in "ab"
    ]
    assert found[0] == found[1]
    first = system.make(data, 1).scores()
    assert first[data.y].mean() < first[~data.y].mean()
    np.testing.assert_array_equal(first, verdicts.without_feedback(data, 1))


def test_a_library_that_is_missing_leaves_its_systems_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "coniferest", None)
    assert [one.name for one in verdicts.systems()] == [OURS, ALONE, NONE]
    monkeypatch.undo()
    conifer("AADForest", monkeypatch)
    assert [one.name for one in verdicts.systems()] == [OURS, *verdicts.CONIFERS, ALONE, NONE]


# --- runs and figures -------------------------------------------------------------------------


@pytest.mark.slow
def test_the_whole_way(folder, tmp_path, capsys, monkeypatch):
    output = tmp_path / "out"
    few = [named(OURS), named(NONE)]
    monkeypatch.setattr(verdicts, "systems", lambda: few)
    arguments = ("--seeds", "2", "--max-rows", "100")
    monkeypatch.setattr(cases, "_BUDGET", 12)
    assert bench(folder, output, *arguments, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["targets"], facts["left_out"]) == ([], {})  # promises are for the docs' sets
    header, ours, none = facts["tables"][0]
    assert (header[:4], ours[0], none[0]) == (
        ["system", "found in 2", "found in 6", "found in 12"], OURS, NONE
    )  # fmt: skip
    found = [float(cell.split(" ")[0]) for cell in ours[1:4]]
    assert 0 < found[0] <= found[1] <= found[2] <= 10
    assert none[4].startswith("+0.0 ± 0.0")
    kept = Results(output / "verdicts.parquet")
    assert len(kept.select("verdicts-100-12")) == 2 * 2 * 2 * 3  # sets, seeds, systems, budgets
    assert len(kept.select("verdicts-100-given")) == 2 * 2 * 2 * 2
    assert (output / "verdicts-100-12.csv").read_text("utf-8").startswith("system,found in 2,")
    # Called again, nothing is run.
    monkeypatch.setattr(verdicts, "_caught", lambda *_: pytest.fail("run again"))
    assert bench(folder, output, *arguments) == 0
    text = capsys.readouterr().out
    assert text.startswith((output / "verdicts-100-12.md").read_text("utf-8").rstrip("\n"))
    assert "| system " in text
    assert "scikit-learn" in text


def test_a_peer_may_raise_anything_and_ours_only_our_own_errors(tmp_path):
    def fails(data, seed):
        raise error

    data = made_up(0, 60)
    for error, reason in ((IndexError("no\nsuch"), "no"), (ZeroDivisionError(), "ZeroDivisionErr")):
        peer, ours = (verdicts.LearningSystem("it", fails, ours=ours) for ours in (False, True))
        results = Results(tmp_path / f"{reason}.parquet")
        one = verdicts.VerdictRuns([named(OURS), peer], [data], 1, 60, 6)
        for step in one.steps():
            step.run(results)
        assert verdicts.failures(results, one)["it on set0"].startswith(reason)
        figures = one.figures(results)
        assert np.isnan(verdicts.found(one, figures, 6)).tolist() == [[False, True]]
        assert f"- it on set0: {reason}" in str(verdicts.page(one, results, figures)[-1])
        with pytest.raises(type(error)):
            next(verdicts.VerdictRuns([ours], [data], 1, 60, 6).steps()).do()
    error = HushTableError("said")
    assert verdicts._caught(ours, lambda: fails(data, 0)) == [{"system": "it", "note": "said"}]


def test_means_are_over_seeds_then_sets_with_their_standard_error(tmp_path):
    one = verdicts.VerdictRuns(
        [named(OURS), named(NONE)], [made_up(s, 50) for s in range(3)], 2, 50, 6
    )
    results = Results(tmp_path / "r.parquet")
    for seed, of_sets in enumerate(([1, 4, 6], [3, None, 8])):
        for data, value in enumerate(of_sets):
            name = {"experiment": one.looks, "data": f"set{data}", "step": OURS, "seed": seed}
            results.add(name, [{"system": OURS, "setting": 6.0, "found": value}])
    values = verdicts.found(one, one.figures(results), 6)
    np.testing.assert_array_equal(values[:, 0], [2, 4, 7])
    assert np.isnan(values[:, 1]).all()
    assert verdicts.mean(values)[0] == pytest.approx(13 / 3)
    assert verdicts.error(values)[0] == pytest.approx(np.std([2, 4, 7], ddof=1) / math.sqrt(3))
    assert math.isnan(verdicts.error(values)[1])
    assert math.isnan(verdicts.error(values[:1])[0])


def test_promises_are_for_the_sets_of_the_docs_and_the_protocols_settings():
    names = [name for entry in KNOWN["collections"].values() for name in entry["sets"]]
    sets = [LabelledSet(name, np.zeros((2, 1)), np.array([True, False])) for name in names]
    systems = [named(OURS), named(NONE)]
    standard = verdicts.VerdictRuns(systems, sets)
    shape = len(sets), len(systems)
    figures = {
        (standard.looks, b, "found"): np.full(shape, least) for b, least in verdicts.FOUND.items()
    }
    figures[standard.looks, 60, "ap"] = np.full(shape, 0.141)
    figures[standard.looks, 60, "auc"] = np.full(shape, 0.05)
    figures[standard.looks, 60, "auc"][:4] = -0.021
    figures[standard.gifts, 20, "ap"] = np.full(shape, 0.57)
    met = [target.met for target in verdicts.targets(standard, figures)]
    assert met == [True, True, True, True, True, False, False]
    figures[standard.looks, 60, "auc"][3] = -0.019
    figures[standard.gifts, 20, "ap"][:] = 0.581
    assert all(target.met for target in verdicts.targets(standard, figures))
    assert verdicts.targets(verdicts.VerdictRuns(systems, sets, budget=30), figures) == []
    assert verdicts.targets(verdicts.VerdictRuns(systems, sets[1:]), figures) == []
