"""Accuracy on a folder of labelled sets: ROC-AUC and average precision beside IsolationForest.

At most 20,000 rows of each set (a random subset, the same for all); the seed varies the detector.
"""

import argparse
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import common
import numpy as np
from common import LabelledSet, Outcome, Target
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest

from hushtable import HushTable, LSHiTables

MAX_ROWS = 20_000

ONE_PASS = "HushTable, m=100"
TWO_PASSES = "HushTable, m=400, passes=2"
PEER = "IsolationForest"

DETECTORS: common.Detectors = {
    "LSHiTables": lambda seed: LSHiTables(random_state=seed),
    ONE_PASS: lambda seed: HushTable(random_state=seed),
    "HushTable, m=400": lambda seed: HushTable(n_tables=400, random_state=seed),
    TWO_PASSES: lambda seed: HushTable(n_tables=400, passes=2, random_state=seed),
    PEER: lambda seed: IsolationForest(random_state=seed),
}

#: Mean ROC-AUC and mean average precision that the project promises.
PROMISED = {ONE_PASS: (0.79, 0.43), TWO_PASSES: (0.80, 0.45)}

Metric = Literal["auc", "ap"]


def load_sets(folder: Path) -> Iterator[LabelledSet]:
    """Load every set of a folder, large ones in part."""
    return (common.load(path).at_most(MAX_ROWS) for path in common.find_sets(folder))


def by_seed(outcomes: Sequence[Outcome], detector: str, metric: Metric) -> NDArray[np.float64]:
    """Return the mean over the sets for each seed."""
    return np.mean([getattr(o, metric)[detector] for o in outcomes], axis=0)


def targets(outcomes: Sequence[Outcome]) -> list[Target]:
    """Hold HushTable to its promises, and to a place ahead of IsolationForest."""
    found = []
    metrics: tuple[tuple[Metric, str], ...] = (("auc", "ROC-AUC"), ("ap", "AP"))
    for detector, promised in PROMISED.items():
        for (metric, label), bound in zip(metrics, promised, strict=True):
            mean = float(by_seed(outcomes, detector, metric).mean())
            peer = float(by_seed(outcomes, PEER, metric).mean())
            claim = f"{detector}: mean {label}"
            found.append(Target(claim, mean, ">=", bound, ".5f"))
            found.append(Target(f"{claim}, against {PEER}'s", mean, ">", peer, ".5f"))
    return found


def table_of_sets(outcomes: Sequence[Outcome], metric: Metric) -> str:
    """Lay out one metric in percent: a row a set, the mean over the seeds."""
    detectors = list(outcomes[0].auc)
    rows = [
        (
            o.name, o.rows, o.columns, f"{100 * o.outliers / o.rows:.1f}",
            *(f"{100 * np.mean(getattr(o, metric)[d]):.1f}" for d in detectors),
        )
        for o in outcomes
    ]  # fmt: skip
    return common.markdown_table(("set", "rows", "columns", "outliers %", *detectors), rows)


def table_of_means(outcomes: Sequence[Outcome]) -> str:
    """Lay out the means over sets and seeds, with their standard errors over the seeds."""
    rows = []
    for detector in outcomes[0].auc:
        auc, ap = (by_seed(outcomes, detector, metric) for metric in ("auc", "ap"))
        rows.append((detector, f"{auc.mean():.4f}", _error(auc), f"{ap.mean():.4f}", _error(ap)))
    return common.markdown_table(("detector", "mean ROC-AUC", "±", "mean AP", "±"), rows)


def table_of_thresholds(outcomes: Sequence[Outcome]) -> str:
    """Lay out the shares of rows that the detectors flag by themselves, over sets and seeds."""
    rows = []
    for detector in outcomes[0].flagged:
        shares = 100 * np.array([outcome.flagged[detector] for outcome in outcomes])
        figures = (shares.mean(), np.median(shares), shares.min(), shares.max())
        rows.append((detector, *(f"{figure:.1f}" for figure in figures)))
    header = ("rows flagged, %", "mean", "median", "least", "most")
    return common.markdown_table(header, rows)


def _error(values: NDArray[np.float64]) -> str:
    if len(values) < 2:
        return "n/a"
    return f"{values.std(ddof=1) / np.sqrt(len(values)):.4f}"


def main(arguments: argparse.Namespace) -> int:
    sets = load_sets(common.data_folder(arguments.data))
    outcomes = common.evaluate(DETECTORS, sets, range(arguments.seeds))
    for metric, title in (("auc", "ROC-AUC"), ("ap", "Average precision")):
        print(f"{title} x 100, mean of {arguments.seeds} seeds:\n")
        print(table_of_sets(outcomes, metric) + "\n")
    print(f"Means over {len(outcomes)} sets; ±: standard error over the seeds.\n")
    print(table_of_means(outcomes) + "\n")
    print(table_of_thresholds(outcomes))
    results = [dataclasses.asdict(outcome) for outcome in outcomes]
    common.write_results("adbench", {"seeds": arguments.seeds, "sets": results})
    common.print_environment()
    return common.print_targets(targets(outcomes))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    common.add_accuracy_options(parser, seeds=3)
    common.run(parser, main)
