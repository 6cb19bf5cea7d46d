"""The paper's tables from results, beside its own figures, and the promises for them."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from hushtable_bench.data import LabelledSet
from hushtable_bench.figures import FLAG, ROWS, THIRD, draw_curve, panels, save
from hushtable_bench.paper.experiments import (
    EPSILON_OF_PARTICIPANTS,
    EPSILONS,
    LOCAL_SETS,
    NOISE_SETS,
    OURS,
    PARTICIPANT_SETS,
    PARTICIPANTS,
)
from hushtable_bench.paper.sets import PUBLISHED, SETS, SYSTEMS_OF_THE_PAPER, PaperSet
from hushtable_bench.results import Page, Promise, Results, ResultTable, spread, write_page

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


def data_table(sets: Sequence[tuple[PaperSet, LabelledSet, int]]) -> ResultTable:
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
    return ResultTable(header, rows)


def accuracy_table(results: Results) -> ResultTable:
    """Lay out Table 2: mean ROC-AUC ± spread over the seeds (what the paper prints in brackets).

    The paper prints its mean and its mean rank for all its sets together.
    """
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
    for label, figures in (("mean", ours), ("mean rank", rankdata(-ours, axis=1))):
        means = [f"{mean:.1f}" for mean in figures.mean(axis=0)]
        if len(sets) == len(SETS):
            printed = PUBLISHED[label.replace(" ", "_")]
            means = [f"{mean} ({papers})" for mean, papers in zip(means, printed, strict=True)]
        rows.append((label, *means))
    return ResultTable(("ROC-AUC x 100", *SYSTEMS_OF_THE_PAPER), rows)


def ours_table(results: Results) -> ResultTable:
    """Lay out the same for systems that the paper does not have, beside LSH iTables."""
    names = ("LSH iTables", *(system.name for system in OURS))
    rows = [
        (w.name, *(_cell(results, "central", data=w.name, system=name) for name in names))
        for w in present(results, "central")
    ]
    return ResultTable(("ROC-AUC x 100", *names), rows)


# --- time ---------------------------------------------------------------------------------------


def seconds(results: Results, data: str) -> dict[str, float]:
    """Return each system's median seconds to fit and score a set with one thread."""
    by_system = {}
    for name in SYSTEMS_OF_THE_PAPER:
        values = results.values("central", "seconds", data=data, system=name)
        if len(values):
            by_system[name] = float(np.median(values))
    return by_system


def time_table(results: Results) -> ResultTable:
    """Lay out Table 3 as ratios to LSH iTables in the same run (the paper's in brackets)."""
    rows = []
    for data, papers in PAPERS_SECONDS.items():
        times = seconds(results, data)
        if times:
            base = times["LSH iTables"]
            ratios = [
                f"{times[name] / base:,.1f} ({paper / papers[0]:,.1f})"
                for name, paper in zip(SYSTEMS_OF_THE_PAPER, papers, strict=True)
            ]
            rows.append((data, f"{1000 * base:.0f} ms ({papers[0]:g} s)", *ratios[1:]))
    return ResultTable(("set", *SYSTEMS_OF_THE_PAPER), rows)


# --- decentralised ------------------------------------------------------------------------------


def true_total(results: Results, data: str, system: str) -> float:
    """Return a row's true total in the paper's epsilons (Figure 2); 0 if nothing has run."""
    rows = results.select("epsilon", data=data, system=system)
    times = (row["total_epsilon"] / row["setting"] for row in rows if row["setting"] < math.inf)
    return max(times, default=0.0)


def epsilon_table(results: Results) -> ResultTable:
    """Lay out Figure 2's figures, with every epsilon as in the paper and as the true total."""
    rows = []
    for data in NOISE_SETS:
        for system in ("LSH iTables", "RS-H", "ACE"):
            curve, total = results.curve("epsilon", data, system), true_total(results, data, system)
            if total:
                cells = (spread(curve.get(epsilon, ())) for epsilon in EPSILONS)
                rows.append((data, system, f"{total:.0f} ε", *cells))
    names = [f"ε = {epsilon:g}" for epsilon in EPSILONS[:-1]]
    return ResultTable(("set", "system", "really", *names, "no noise"), rows, text=2)


def participants_table(results: Results) -> ResultTable:
    """Lay out Table 4 (the paper's in brackets)."""
    rows = []
    for (data, system), papers in PAPERS_PARTICIPANTS.items():
        curve = results.curve("participants", data, system)
        if curve:
            epsilons = results.values("participants", "total_epsilon", data=data, system=system)
            cells = (
                f"{spread(curve.get(k, ()))} ({paper})"
                for k, paper in zip(PARTICIPANTS, papers, strict=True)
            )
            rows.append((data, system, f"{epsilons.max():g}", *cells))
    header = ("set", "system", "really", *(f"{k} participants" for k in PARTICIPANTS))
    return ResultTable(header, rows, text=2)


def by_setting(results: Results, experiment: str, data: str) -> Mapping[str, dict[float, float]]:
    """Return mean ROC-AUC in percent by system and setting."""
    return {
        system: {setting: float(values.mean()) for setting, values in curve.items()}
        for system in ("LSH iTables", "RS-H", "ACE")
        if (curve := results.curve(experiment, data, system))
    }


#: Difference from the paper's ROC-AUC, in points, from which on a system needs an explanation.
TOLERANCE = 2.5

#: Largest distance of the mean rank of LSH iTables from that of the first system. In the paper,
#: LSH iTables are first; here, RS-H is.
BEHIND = 1.0
#: Explanations of larger differences on comparable sets, from trials that no command repeats.
EXPLAINED: dict[tuple[str, str], str] = {
    (system, data): why
    for system, sets in PUBLISHED["explained"].items()
    for data, why in sets.items()
}


def explanations(results: Results) -> ResultTable:
    """List every figure that differs from the paper's by more than the tolerance, and why."""
    rows = []
    for which, name, ours in _comparable(results):
        distance = ours - which.published[name]
        if abs(distance) > TOLERANCE:
            why = EXPLAINED.get((name, which.name), "not explained")
            rows.append((name, which.name, f"{which.published[name]}", f"{ours:.1f}", why))
    header = ("system", "set", "paper", "here", "why, by trials that no command repeats")
    return ResultTable(header, rows, text=2)


def _comparable(results: Results) -> list[tuple[PaperSet, str, float]]:
    return [
        (which, name, mean_auc(results, which.name, name))
        for which in present(results, "central")
        if which.comparable
        for name in SYSTEMS_OF_THE_PAPER
    ]


def targets(results: Results) -> list[Promise]:
    """Compare the results with the promises: the paper's figures, orders, and shapes."""
    promises = []
    ours = {w.name: auc for w, name, auc in _comparable(results) if name == "LSH iTables"}
    if ours:
        papers = np.mean([w.published["LSH iTables"] for w in SETS if w.name in ours])
        distance = abs(float(np.mean(list(ours.values())) - papers))
        claim = f"LSH iTables: mean of {len(ours)} sets off the paper by"
        promises.append(Promise(claim, distance, "<=", 1.0, ".2f"))
    for system in SYSTEMS_OF_THE_PAPER:
        distances = {
            which.name: abs(ours - which.published[name])
            for which, name, ours in _comparable(results)
            if name == system and (name, which.name) not in EXPLAINED
        }
        if distances:
            furthest = max(distances, key=lambda name: distances[name])
            claim = f"{system}: off the paper where not explained, at most ({furthest})"
            promises.append(Promise(claim, distances[furthest], "<=", TOLERANCE, ".2f"))
    promises += _rank_targets(results)
    return promises + _time_targets(results) + _shape_targets(results)


def _rank_targets(results: Results) -> list[Promise]:
    """Compare the ranking with the paper's, in which LSH iTables are first."""
    sets = present(results, "central")
    ours = [[mean_auc(results, s.name, name) for name in SYSTEMS_OF_THE_PAPER] for s in sets]
    if not sets or np.isnan(ours).any():
        return []
    ranks = rankdata(-np.array(ours), axis=1).mean(axis=0)
    first, own = int(np.argmin(ranks)), SYSTEMS_OF_THE_PAPER.index("LSH iTables")
    claim = f"LSH iTables: mean rank behind the first ({SYSTEMS_OF_THE_PAPER[first]})"
    return [Promise(claim, float(ranks[own] - ranks[first]), "<=", BEHIND, ".2f")]


def _time_targets(results: Results) -> list[Promise]:
    made = []
    for data in PAPERS_SECONDS:
        times = seconds(results, data)
        if len(times) < len(SYSTEMS_OF_THE_PAPER):
            continue
        base = times["LSH iTables"]
        others = {name: value / base for name, value in times.items() if name != "LSH iTables"}
        fastest = min(others, key=lambda name: others[name])
        claim = f"{data}: the fastest other system ({fastest}), times LSH iTables"
        made.append(Promise(claim, others[fastest], ">=", 1.0, ".1f"))
        made.append(Promise(f"{data}: RS-H, times LSH iTables", others["RS-H"], "<=", 4.0, ".1f"))
        neighbours = min(others["EnsKNNW"], others["EnsLOF"])
        claim = f"{data}: ensembles of neighbours, times LSH iTables"
        made.append(Promise(claim, neighbours, ">=", 100.0, ".0f"))
    return made


def _shape_targets(results: Results) -> list[Promise]:
    """Compare Table 4 and Figure 2 with the paper's shape, in the mean over their sets.

    On a single small set, one draw of the noise can reverse it.
    """
    promises = []
    participants = [by_setting(results, "participants", data) for data in PARTICIPANT_SETS]
    epsilon = [by_setting(results, "epsilon", data) for data in NOISE_SETS]
    for title, what, shapes, least, most in (
        # From the fewest participants to the most; from no noise to the smallest epsilon.
        ("Table 4", "participants", participants, min, max),
        ("Figure 2", "noise", epsilon, max, min),
    ):
        if all({"LSH iTables", "RS-H"} <= set(shape) for shape in shapes):
            leads = [
                shape["LSH iTables"][x] - auc
                for shape in shapes
                for x, auc in shape["RS-H"].items()
                if x < math.inf
            ]
            claim = f"{title}: LSH iTables ahead of RS-H by, in the mean"
            promises.append(Promise(claim, float(np.mean(leads)), ">", 0.0, ".1f"))
            for system in ("LSH iTables", "RS-H"):
                aucs = [shape[system] for shape in shapes]
                lost = float(np.mean([auc[least(auc)] - auc[most(auc)] for auc in aucs]))
                claim = f"{title}, {system}: lost to {what}, in the mean"
                promises.append(Promise(claim, lost, ">", 0.0, ".1f"))
    return promises


# The last two are Okabe and Ito's: distinct for colour-blind readers, and in grey.
_LOOKS = {
    "LSH iTables": (ROWS, "o"),
    "RS-H": (FLAG, "s"),
    "ACE": (THIRD, "^"),
    "iForest": ("#E69F00", "D"),
    "LODA": ("#CC79A7", "v"),
}


def local_figure(results: Results, folder: Path) -> list[Path]:
    """Draw Figure 1: local iForest and LODA, and merged LSH iTables; return the files."""
    sets = [name for name in LOCAL_SETS if results.select("local", data=name)]
    figure, found = panels(sets, 3.1, 3.0, sharey=True)
    for axes, data in zip(found, sets, strict=True):
        for system, where in (("LSH iTables", "merged"), ("iForest", "local"), ("LODA", "local")):
            curve = results.curve("local", data, system)
            label = f"{system}, {where}"
            draw_curve(axes, list(curve), list(curve.values()), _LOOKS[system], label)
        axes.set_xlabel("rows of the participant", fontsize=9)
        axes.axhline(50, color="0.4", ls="--", lw=0.8)
    found[0].set_ylabel("ROC-AUC, %", fontsize=9)
    found[0].legend(fontsize=7.5, frameon=False, loc="lower right")
    return save(figure, folder, "figure-1")


def epsilon_figure(results: Results, folder: Path) -> list[Path]:
    """Draw Figure 2: accuracy against the paper's epsilon and the true total; return the files."""
    sets = [name for name in NOISE_SETS if results.select("epsilon", data=name)]
    figure, found = panels(sets, 2.7, 3.2)
    for axes, data in zip(found, sets, strict=True):
        _epsilon_panel(axes, results, data)
    found[0].set_ylabel("ROC-AUC, %", fontsize=9)
    return save(figure, folder, "figure-2")


def _epsilon_panel(axes: Any, results: Results, data: str) -> None:
    settings = sorted({row["setting"] for row in results.select("epsilon", data=data)})
    for system in ("LSH iTables", "RS-H", "ACE"):
        curve = results.curve("epsilon", data, system)
        if curve:
            places = [_place(epsilon) for epsilon in curve]
            draw_curve(axes, places, list(curve.values()), _LOOKS[system], system)
    names = [f"{s:g}".lstrip("0") if s < math.inf else "∞" for s in settings]
    axes.set_xticks([_place(setting) for setting in settings], names, fontsize=8)
    axes.set_xlabel("ε as the paper counts it,\nfor one table", fontsize=9)
    low, high = axes.get_ylim()
    axes.set_ylim(low - 0.25 * (high - low), high)  # room for the totals
    totals = {name: true_total(results, data, name) for name in ("ACE", "RS-H", "LSH iTables")}
    for row, system in enumerate(name for name, total in totals.items() if total):
        axes.annotate(
            f"{system}: total {totals[system]:.0f} ε", (0.97, 0.05 + 0.075 * row),
            xycoords="axes fraction", ha="right", fontsize=7, color=_LOOKS[system][0],
        )  # fmt: skip


def _place(epsilon: float) -> float:
    """Return the place of an epsilon on the axis; infinity is one step after the last."""
    return 1000 * epsilon if epsilon < math.inf else 5.0


Loaded = Sequence[tuple[PaperSet, LabelledSet, int]]

ACCURACY = "Mean ± standard deviation over the seeds, and the paper's in brackets."
_EXPLAINED = f"More than {TOLERANCE} from the paper, on sets that can be compared:"
TIME = (
    "Seconds to fit and score with one thread for LSH iTables, and ratios to these; the "
    "paper's in brackets."
)
#: The last two sections: experiment, title, what the table shows, table.
SECTIONS = (
    (
        "epsilon",
        "Figure 2: two participants with noise",
        "ε is the paper's, for one table. *Really* is the total of one row over "
        "everything that its participant releases.",
        epsilon_table,
    ),
    (
        "participants",
        "Table 4: two to ten participants",
        f"ε = {EPSILON_OF_PARTICIPANTS} is the paper's, for one table; *really* is the "
        "total of one row.",
        participants_table,
    ),
)


def page(results: Results, loaded: Loaded) -> Page:
    """Lay out the tables for which there are results, with the paper's figures in brackets."""
    parts: Page = ["# The paper's experiments\n", "## Table 1: data\n", data_table(loaded)]
    if remarks := [f"- {which.name}: {which.remark}" for which, _, _ in loaded if which.remark]:
        parts += ["", *remarks]
    if results.select("central"):
        parts += ["\n## Table 2: ROC-AUC\n", f"{ACCURACY}\n", accuracy_table(results)]
        parts += [f"\n{_EXPLAINED}\n", explanations(results)]
        parts += ["\nWhat the paper does not have:\n", ours_table(results)]
        times = time_table(results)
        if times.rows:
            parts += ["\n## Table 3: time\n", f"{TIME}\n", times]
    for experiment, title, text, table in SECTIONS:
        if results.select(experiment):
            parts += [f"\n## {title}\n", f"{text}\n", table(results)]
    return parts


def write(page: Page, results: Results, folder: Path) -> list[Path]:
    """Write the page and the figures; return the files."""
    files = write_page(folder, "paper", page)
    if results.select("local"):
        files += local_figure(results, folder)
    if results.select("epsilon"):
        files += epsilon_figure(results, folder)
    return files
