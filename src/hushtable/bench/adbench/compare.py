"""Means, ranks and tests over the sets, and the promises made of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, studentized_range, wilcoxon

from hushtable.bench.adbench.runs import ONE_PASS, TWO_PASSES
from hushtable.bench.data import LabelledSet
from hushtable.bench.results import Results
from hushtable.bench.tables import Target, markdown_table

Floats = NDArray[np.float64]

#: Mean ROC-AUC and mean average precision that the project promises on the 29 sets of the docs.
PROMISED = {ONE_PASS: (0.79, 0.43), TWO_PASSES: (0.80, 0.45)}
#: How many sets the promises are made for.
PROMISED_SETS = 29
PEER = "iForest"


@dataclass(frozen=True)
class Comparison:
    """One metric of several systems on several sets."""

    sets: tuple[str, ...]
    systems: tuple[str, ...]
    values: Floats  # (n_sets, n_systems), mean over the seeds
    spread: Floats  # (n_systems,), standard deviation over the seeds of the mean over the sets

    @classmethod
    def of(cls, results: Results, metric: str, sets: Sequence[str]) -> "Comparison":
        """Gather a metric, ``"auc"`` or ``"ap"``, from results."""
        rows = results.select("adbench")
        systems = tuple(dict.fromkeys(row["system"] for row in rows))
        seeds: dict[tuple[str, str], list[float]] = {}
        for row in sorted(rows, key=lambda row: int(row["seed"])):
            seeds.setdefault((row["data"], row["system"]), []).append(row[metric])
        # For each system, sets by seeds.
        tables = [np.array([seeds[data, system] for data in sets]) for system in systems]
        values = np.column_stack([table.mean(axis=1) for table in tables])
        spread = np.array([table.mean(axis=0).std() for table in tables])
        return cls(tuple(sets), systems, values, spread)

    def means(self) -> Floats:
        """Return the mean over the sets (n_systems,)."""
        return np.asarray(self.values.mean(axis=0))

    def ranks(self) -> Floats:
        """Return the mean rank over the sets (n_systems,), 1 for the best."""
        return np.asarray(rankdata(-self.values, axis=1).mean(axis=0))

    def critical_difference(self, alpha: float = 0.05) -> float:
        """Return how far mean ranks must lie apart to differ (Nemenyi; Demsar, 2006, eq. 2)."""
        k, n = len(self.systems), len(self.sets)
        q = float(studentized_range.ppf(1 - alpha, k, math.inf)) / math.sqrt(2)
        return q * math.sqrt(k * (k + 1) / (6 * n))

    def p_values(self, system: str) -> dict[str, float]:
        """Return Wilcoxon's signed-rank test of ``system`` against each other one.

        Two-sided over the sets, corrected for their number by Holm's method; NaN where the two
        are equal on every set.
        """
        ours = self.values[:, self.systems.index(system)]
        raw = {}
        for at, other in enumerate(self.systems):
            difference = ours - self.values[:, at]
            if other != system:
                raw[other] = float(wilcoxon(difference).pvalue) if difference.any() else math.nan
        corrected, largest = {}, 0.0
        for place, other in enumerate(sorted(raw, key=lambda name: raw[name])):
            largest = max(largest, min(1.0, raw[other] * (len(raw) - place)))
            corrected[other] = math.nan if math.isnan(raw[other]) else largest
        return corrected


def sets_table(comparison: Comparison, sets: Sequence[LabelledSet]) -> str:
    """Lay out one metric in percent: a row a set."""
    shapes = {data.name: data for data in sets}
    rows = []
    for name, values in zip(comparison.sets, comparison.values, strict=True):
        figures = (f"{100 * value:.1f}" for value in (shapes[name].y.mean(), *values))
        rows.append((name, *shapes[name].X.shape, *figures))
    header = ("set", "rows", "columns", "outliers %", *comparison.systems)
    return markdown_table(header, rows)


def means_table(auc: Comparison, ap: Comparison) -> str:
    """Lay out means ± spread over the seeds, mean ranks, and tests against `ONE_PASS`."""
    tests = (auc.p_values(ONE_PASS), ap.p_values(ONE_PASS))
    rows = []
    for at in np.argsort(auc.ranks()):
        name = auc.systems[at]
        row = [name]
        for metric, p in zip((auc, ap), tests, strict=True):
            row += [
                f"{metric.means()[at]:.4f} ± {metric.spread[at]:.4f}",
                f"{metric.ranks()[at]:.1f}",
                f"{p[name]:.2g}" if name in p else "",
            ]
        rows.append(row)
    header = ("system", "ROC-AUC", "rank", "p", "AP", "rank", "p")
    return markdown_table(header, rows)


def flagged_table(results: Results) -> str:
    """Lay out the shares of rows that the detectors flag by themselves, over sets and seeds."""
    rows = []
    found = results.select("adbench")
    for system in dict.fromkeys(row["system"] for row in found):
        shares = 100 * np.array([row["setting"] for row in found if row["system"] == system])
        figures = (shares.mean(), np.median(shares), shares.min(), shares.max())
        rows.append((system, *(f"{figure:.1f}" for figure in figures)))
    return markdown_table(("rows flagged, %", "mean", "median", "least", "most"), rows)


def targets(auc: Comparison, ap: Comparison) -> list[Target]:
    """Hold HushTable to its promises, and to a place ahead of isolation forest.

    They are made for the sets of the docs: there are none for another folder.
    """
    found: list[Target] = []
    if len(auc.sets) != PROMISED_SETS:
        return found
    for system, promised in PROMISED.items():
        for metric, label, bound in ((auc, "ROC-AUC", promised[0]), (ap, "AP", promised[1])):
            means = dict(zip(metric.systems, metric.means().tolist(), strict=True))
            claim = f"{system}: mean {label}"
            against = f"{claim}, against {PEER}'s"
            found.append(Target(claim, means[system], ">=", bound, ".5f"))
            found.append(Target(against, means[system], ">", means[PEER], ".5f"))
    return found
