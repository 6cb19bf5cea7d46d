"""``hushtable bench privacy``: the whole way on small sets, and its pieces."""

import sys

import numpy as np
import pytest

from hushtable.cli import main
from hushtable_bench import outside
from hushtable_bench import privacy as bench
from hushtable_bench.data import LabelledSet


def labelled(name, rows, seed=0):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(rows, 3)), np.zeros(rows)
    X[:20], y[:20] = rng.uniform(6, 9, size=(20, 3)), 1
    return LabelledSet(name, X, y.astype(bool))


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "sets"
    folder.mkdir()
    for name, rows in (("4_breastw", 600), ("6_cardio", 1200)):
        data = labelled(name, rows)
        np.savez(folder / f"{name}.npz", X=data.X, y=data.y)
    return folder


@pytest.mark.slow  # half a minute
def test_the_whole_way(folder, tmp_path, capsys):
    output = tmp_path / "out"
    arguments = ["bench", "privacy", "--quick", "--data", str(folder), "-o", str(output)]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    for heading in ("# Accuracy", "# Audits", "Must show"):
        assert heading in out
    assert "FAIL" not in out
    csv = (output / "privacy.csv").read_text("utf-8")
    assert csv.startswith("total epsilon,HushTable: ROC-AUC")
    assert [line.split(",")[0] for line in csv.splitlines()[1:]] == ["0.1", "1", "no noise"]
    published = (output / "privacy-2.csv").read_text()
    assert all(name.split(",")[0] in published for name in outside.CASES)
    for kind, first in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        content = (output / f"privacy.{kind}").read_bytes()
        assert content.startswith(first)
        assert len(content) > 10_000


def test_a_missing_matplotlib_names_the_extra(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    arguments = ["bench", "privacy", "--data", str(folder), "-o", str(tmp_path / "o")]
    assert main(arguments) == 1
    assert "pip install 'hushtable[bench]'" in capsys.readouterr().err


def test_the_paper_is_given_its_count_of_a_row():
    """A total of 1 is .01 for each of 100 tables; the ledger counts the pushed-out row too."""
    data = labelled("one", 1500)
    scorer = bench.papers_scorer(data.X, data.schema(), 1.0, seed=0)
    ledger = scorer.sketch.ledger
    assert ledger.mechanism == "laplace-per-table"
    assert ledger.shares[0].scale == pytest.approx(100.0)
    assert ledger.epsilon == pytest.approx(2.0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_private_detector_keeps_its_total(epsilon):
    data = labelled("one", 1500)
    ledger = bench.private_scorer(data.X, data.schema(), epsilon, seed=0).sketch.ledger
    assert ledger.epsilon <= epsilon
    assert bool(ledger.behind_plan) == (epsilon == 1.0)  # a first round where it pays


def test_targets_judge_what_was_measured():
    def run(system, epsilon, auc, data="a", rows=2000, seed=0):
        return bench.AccuracyRun(data, rows, 3, system, epsilon, seed, auc, 0.5)

    systems = [(bench.OURS, 0.0, 0.9), (bench.PRIVATE, 1.0, 0.89), (bench.PAPERS, 1.0, 0.7)]
    systems += [(bench.PRIVATE, 0.1, 0.88), (bench.PAPERS, 0.1, 0.84)]
    runs = [run(*system) for system in systems]
    # A set of fewer rows does not count in the means, but is one of the paper's.
    runs += [run(system, e, a, "4_breastw", 500) for system, e, a in systems[:3]]
    runs += [run(bench.PRIVATE, 0.1, 0.5, "4_breastw", 500)]
    runs += [run(bench.PAPERS, 0.1, 0.6, "4_breastw", 500)]
    verdicts = {t.claim: (round(t.measured, 6), t.met) for t in bench.accuracy_targets(runs)}
    assert list(verdicts.values()) == [(1.0, False), (2.0, True), (4.0, False), (-10.0, False)]
