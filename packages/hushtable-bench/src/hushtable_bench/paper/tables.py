"""The paper's tables from results, beside the paper's own figures."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import rankdata

from hushtable_bench.data import LabelledSet
from hushtable_bench.paper.experiments import EPSILONS, LOCAL_SETS, NOISE_SETS, PARTICIPANTS
from hushtable_bench.paper.sets import PUBLISHED, SETS, SYSTEMS_OF_THE_PAPER, PaperSet
from hushtable_bench.paper.systems import OURS
from hushtable_bench.results import Results
from hushtable_bench.tables import markdown_table, spread

#: Table 3, by set.
PAPERS_SECONDS: dict[str, list[float]] = PUBLISHED["seconds"]
#: Table 4, by set and system.
PAPERS_PARTICIPANTS: dict[tuple[str, str], list[float]] = {
    (data, system): figures
    for data, systems in PUBLISHED["participants"].items()
    for system, figures in systems.items()
}


def mean_auc(results: Results, data: str, system: str) -> float:
    """Return a system's mean ROC-AUC on a set in percent; NaN if it has not run."""
    values = results.values("central", "auc", data=data, system=system)
    return 100 * float(values.mean()) if len(values) else math.nan


def present(results: Results, experiment: str) -> list[PaperSet]:
    """Return the sets for which an experiment has results."""
    return [which for which in SETS if results.select(experiment, data=which.name)]


def _cell(results: Results, experiment: str, **equal: object) -> str:
    return spread(100 * results.values(experiment, "auc", **equal))


def data_table(sets: Sequence[tuple[PaperSet, LabelledSet, int]]) -> str:
    """Lay out Table 1: rows, columns and outliers beside the paper's."""
    rows = [
        (
            which.name, f"{with_duplicates:,}", f"{len(data.X):,}", f"{which.rows:,}",
            data.X.shape[1], which.columns, f"{int(data.y.sum()):,}", f"{which.outliers:,}",
        )
        for which, data, with_duplicates in sets
    ]  # fmt: skip
    header = (
        "set", "rows", "distinct", "paper's n", "columns", "paper's d", "outliers", "paper's o",
    )  # fmt: skip
    remarks = [f"- {which.name}: {which.remark}" for which, _, _ in sets if which.remark]
    return markdown_table(header, rows) + ("\n\n" + "\n".join(remarks) if remarks else "")


def accuracy_table(results: Results) -> str:
    """Lay out Table 2: mean ROC-AUC ± spread over the seeds (the paper's in brackets)."""
    sets = present(results, "central")
    rows = []
    for which in sets:
        cells = [
            f"{_cell(results, 'central', data=which.name, system=name)} ({published})"
            for name, published in which.published.items()
        ]
        rows.append((which.name, *cells))
    ours = np.array(
        [[mean_auc(results, s.name, name) for name in SYSTEMS_OF_THE_PAPER] for s in sets]
    )
    papers = np.array([which.auc for which in sets])
    ranked = (rankdata(-auc, axis=1) for auc in (ours, papers))
    for label, both in (("mean", (ours, papers)), ("mean rank", ranked)):
        pairs = zip(*(figures.mean(axis=0) for figures in both), strict=True)
        rows.append((label, *(f"{a:.1f} ({b:.1f})" for a, b in pairs)))
    return markdown_table(("ROC-AUC x 100", *SYSTEMS_OF_THE_PAPER), rows)


def ours_table(results: Results) -> str:
    """Lay out the same for what the paper does not have, beside LSH iTables."""
    names = ("LSH iTables", *(system.name for system in OURS))
    rows = [
        (w.name, *(_cell(results, "central", data=w.name, system=name) for name in names))
        for w in present(results, "central")
    ]
    return markdown_table(("ROC-AUC x 100", *names), rows)


# --- time ---------------------------------------------------------------------------------------


def seconds(results: Results, data: str) -> dict[str, float]:
    """Return each system's median seconds to fit and score a set with one thread."""
    found = {}
    for name in SYSTEMS_OF_THE_PAPER:
        values = results.values("central", "seconds", data=data, system=name)
        if len(values):
            found[name] = float(np.median(values))
    return found


def time_table(results: Results) -> str:
    """Lay out Table 3 as ratios to LSH iTables in the same run (the paper's in brackets)."""
    rows = []
    for data, papers in PAPERS_SECONDS.items():
        found = seconds(results, data)
        if found:
            base = found["LSH iTables"]
            ratios = [
                f"{found[name] / base:,.1f} ({paper / papers[0]:,.1f})"
                for name, paper in zip(SYSTEMS_OF_THE_PAPER, papers, strict=True)
            ]
            rows.append((data, f"{1000 * base:.0f} ms ({papers[0]:g} s)", *ratios[1:]))
    return markdown_table(("set", *SYSTEMS_OF_THE_PAPER), rows)


# --- decentralised ------------------------------------------------------------------------------


def local_table(results: Results) -> str:
    """Lay out Figure 1's figures: ROC-AUC against the rows of the participant."""
    rows = []
    for data in LOCAL_SETS:
        curves = [results.curve("local", data, name) for name in ("iForest", "LODA", "LSH iTables")]
        rows += [(data, f"{n:.0f}", *(spread(curve[n]) for curve in curves)) for n in curves[0]]
    header = ("set", "local rows", "iForest, local", "LODA, local", "LSH iTables, merged")
    return markdown_table(header, rows)


def true_total(results: Results, data: str, system: str) -> float:
    """Return a row's true total in the paper's epsilons (Figure 2); 0 if nothing has run."""
    rows = results.select("epsilon", data=data, system=system)
    times = (row["total_epsilon"] / row["setting"] for row in rows if row["setting"] < math.inf)
    return max(times, default=0.0)


def epsilon_table(results: Results) -> str:
    """Lay out Figure 2's figures, every epsilon as the paper counts it and as it really is."""
    rows = []
    for data in NOISE_SETS:
        for system in ("LSH iTables", "RS-H", "ACE"):
            curve, total = results.curve("epsilon", data, system), true_total(results, data, system)
            if total:
                cells = (spread(curve.get(epsilon, ())) for epsilon in EPSILONS)
                rows.append((data, system, f"{total:.0f} ε", *cells))
    names = [f"ε = {epsilon:g}" for epsilon in EPSILONS[:-1]]
    return markdown_table(("set", "system", "really", *names, "no noise"), rows, text=2)


def participants_table(results: Results) -> str:
    """Lay out Table 4 (the paper's in brackets)."""
    rows = []
    for (data, system), papers in PAPERS_PARTICIPANTS.items():
        curve = results.curve("participants", data, system)
        if curve:
            found = results.values("participants", "total_epsilon", data=data, system=system)
            cells = (
                f"{spread(curve.get(k, ()))} ({paper})"
                for k, paper in zip(PARTICIPANTS, papers, strict=True)
            )
            rows.append((data, system, f"{found.max():g}", *cells))
    header = ("set", "system", "really", *(f"{k} participants" for k in PARTICIPANTS))
    return markdown_table(header, rows, text=2)


def by_setting(results: Results, experiment: str, data: str) -> Mapping[str, dict[float, float]]:
    """Return mean ROC-AUC in percent by system and setting."""
    return {
        system: {setting: float(values.mean()) for setting, values in curve.items()}
        for system in ("LSH iTables", "RS-H", "ACE")
        if (curve := results.curve(experiment, data, system))
    }
