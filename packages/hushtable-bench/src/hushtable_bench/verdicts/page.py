"""The page of one comparison, as Markdown, and the promises that it is held to."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hushtable_bench.adbench.known import KNOWN
from hushtable_bench.results import Results
from hushtable_bench.tables import Target, markdown_table
from hushtable_bench.verdicts.learners import DEFAULT, Floats
from hushtable_bench.verdicts.runs import GIVEN, Runs, error, failures, mean

#: Points of ROC-AUC that a set may lose on the rest, before it counts as worse.
WORSE = 2.0
#: What is promised of the sets of both collections, of three seeds or more.
FOUND = {10: 5.3, 30: 17.5, 60: 36.0}
#: The same, in 60, if a tenth of the verdicts is wrong.
WRONG, FOUND_BESIDE = 0.1, 33.0
REST, WORSE_SETS, WITH_20 = {"ap": 14.0, "auc": 4.0}, 3, 58.0

Figures = Mapping[tuple[str, float, str], Floats]


def points(runs: Runs, figures: Figures, what: str, of: float | None = None) -> Floats:
    """Return figures (n_sets, n_systems) in points: gains on the rest, or with ``of`` given."""
    key = (runs.looks, runs.budget, what) if of is None else (runs.gifts, of, what)
    return 100 * np.asarray(figures.get(key, _blank(runs)))


def found(runs: Runs, figures: Figures, budget: int) -> Floats:
    """Return the outliers found (n_sets, n_systems) among so many rows."""
    return np.asarray(figures.get((runs.looks, budget, "found"), _blank(runs)))


def page(runs: Runs, results: Results, figures: Figures) -> str:
    """Write all tables of a comparison."""
    wrong = f", wrongly in {runs.wrong:.0%} of them" if runs.wrong else ""
    parts = [
        f"Of each set, {runs.rows:,} rows at most. The row that scores lowest is shown, and whether"
        f" it is an outlier is told, {runs.budget} times{wrong}. "
        "*found*: outliers among the rows shown. *rest*: average precision (AP) and ROC-AUC of "
        "the rows that were not shown, less those "
        f"of {DEFAULT} without feedback on the same rows, in points. *k*: AP / ROC-AUC of the "
        "other rows, in percent, after k outliers and k other rows drawn at random were told "
        "(half of either kind at most). ± is the standard error over the sets.\n",
        f"## Means over {len(runs.sets)} sets; seeds: {runs.seeds}\n",
        systems_table(runs, figures) + "\n",
        f"## Differences from {DEFAULT}, paired by set\n",
        differences_table(runs, figures) + "\n",
        f"## Outliers found among {runs.budget} rows\n",
        sets_table(runs, figures),
    ]
    if failed := failures(results, runs):
        parts.append("\nThese have no figure:\n")
        parts += [f"- {one}: {why}" for one, why in failed.items()]
    return "\n".join(parts)


def systems_table(runs: Runs, figures: Figures) -> str:
    """Lay out a row a system: found, gains on the rest, with verdicts given, and time."""
    rest = {what: points(runs, figures, what) for what in ("ap", "auc")}
    seconds = mean(points(runs, figures, "seconds")) * 10
    rows = []
    for at, one in enumerate(runs.systems):
        row = [one.name]
        row += [_with_error(found(runs, figures, b)[:, at], ".1f") for b in runs.budgets]
        for values in rest.values():
            column = values[np.isfinite(values[:, at]), at]
            worst = f" ({column.min():.0f}; {(column < -WORSE).sum()})" if len(column) else ""
            row.append(_with_error(column, "+.1f") + worst)
        for k in GIVEN:
            both = (mean(points(runs, figures, what, k))[at] for what in ("ap", "auc"))
            row.append(" / ".join(_figure(value, ".1f") for value in both))
        rows.append([*row, _figure(seconds[at], ".0f")])
    worst = f"(worst set; sets below -{WORSE:.0f})"
    header = (
        "system", *(f"found in {b}" for b in runs.budgets), f"rest, AP {worst}",
        f"rest, ROC-AUC {worst}", *(f"k={k}" for k in GIVEN), "ms a verdict",
    )  # fmt: skip
    return markdown_table(header, rows)


def differences_table(runs: Runs, figures: Figures) -> str:
    """Lay out mean differences of the others from ours, with standard errors."""
    measured = {
        f"found in {runs.budget}": (found(runs, figures, runs.budget), "+.1f"),
        "rest, AP": (points(runs, figures, "ap"), "+.1f"),
        "rest, ROC-AUC": (points(runs, figures, "auc"), "+.1f"),
    }
    for k in GIVEN:
        measured[f"k={k}, AP"] = points(runs, figures, "ap", k), "+.1f"
    rows = [
        (one.name, *(_with_error(v[:, at] - v[:, 0], form) for v, form in measured.values()))
        for at, one in enumerate(runs.systems)
        if at
    ]
    return markdown_table((f"minus {DEFAULT}", *measured), rows)


def sets_table(runs: Runs, figures: Figures) -> str:
    """Lay out the outliers found with the whole budget: a row a set."""
    counts = found(runs, figures, runs.budget)
    rows = [
        (data.name, *data.X.shape, int(data.y.sum()), *(_figure(x, ".1f") for x in values))
        for data, values in zip(runs.sets, counts, strict=True)
    ]
    header = ("set", "rows", "columns", "outliers", *(one.name for one in runs.systems))
    return markdown_table(header, rows)


def facts(runs: Runs, results: Results, figures: Figures) -> dict[str, Any]:
    """Return all means and standard errors, for machines."""
    measured = {f"found in {b}": found(runs, figures, b) for b in runs.budgets}
    for what in ("ap", "auc"):
        measured[f"rest {what}"] = points(runs, figures, what)
        measured |= {f"k={k} {what}": points(runs, figures, what, k) for k in GIVEN}
    return {
        "command": "bench verdicts",
        "rows": runs.rows,
        "budget": runs.budget,
        "wrong": runs.wrong,
        "seeds": runs.seeds,
        "sets": [data.name for data in runs.sets],
        "systems": {
            one.name: {
                name: {"mean": float(mean(v)[at]), "error": float(error(v)[at])}
                for name, v in measured.items()
            }
            for at, one in enumerate(runs.systems)
        },
        "failed": failures(results, runs),
    }


def targets(runs: Runs, figures: Figures) -> list[Target]:
    """Hold HushTable to its promises; there are none for other sets, or other settings."""
    both = {name for entry in KNOWN["collections"].values() for name in entry["sets"]}
    standard = Runs([], []).rows, Runs([], []).budget
    if {data.name for data in runs.sets} != both or (runs.rows, runs.budget) != standard:
        return []
    if runs.wrong:
        most = float(mean(found(runs, figures, standard[1]))[0])
        claim = f"found in {standard[1]}, {WRONG:.0%} of the verdicts wrong"
        return [Target(claim, most, ">=", FOUND_BESIDE, ".2f")] if runs.wrong == WRONG else []
    held = [
        Target(f"found in {b}", float(mean(found(runs, figures, b))[0]), ">=", least, ".2f")
        for b, least in FOUND.items()
    ]
    for what, least in REST.items():
        value = float(mean(points(runs, figures, what))[0])
        held.append(Target(f"rest, {what.upper()}, points gained", value, ">=", least, ".2f"))
    worse = float((points(runs, figures, "auc")[:, 0] < -WORSE).sum())
    claim = f"sets whose rest loses more than {WORSE:.0f} points of ROC-AUC"
    held.append(Target(claim, worse, "<=", WORSE_SETS, ".0f"))
    with_20 = float(mean(points(runs, figures, "ap", GIVEN[-1]))[0])
    return [*held, Target(f"AP with {GIVEN[-1]} of each, percent", with_20, ">=", WITH_20, ".2f")]


def _blank(runs: Runs) -> Floats:
    return np.full((len(runs.sets), len(runs.systems)), np.nan)


def _with_error(values: Floats, form: str) -> str:
    """Write a mean and its standard error over the sets."""
    if not np.isfinite(values).any():
        return "-"
    spread = float(error(values))
    return f"{float(mean(values)):{form}}" + (f" ± {spread:.1f}" if np.isfinite(spread) else "")


def _figure(value: float, form: str) -> str:
    return f"{value:{form}}" if np.isfinite(value) else "-"
