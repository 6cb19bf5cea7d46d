"""The page of one comparison, as Markdown."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from hushtable_bench.adbench.compare import RESAMPLES, Comparison
from hushtable_bench.adbench.known import published, sets_published
from hushtable_bench.adbench.runs import MOST_COLUMNS, MOST_ROWS, SCALED, Runs
from hushtable_bench.data import LabelledSet
from hushtable_bench.results import Results
from hushtable_bench.tables import markdown_table

_METRICS = ("ROC-AUC", "AP")
_PROTOCOLS = {
    "unsupervised": "Each detector is fitted on all rows without their labels, and judges them.",
    "novelty": "Each detector is fitted on half of the normal rows, drawn by the seed (a split "
    "that a file names is not used), and judges the other half and all outliers.",
}


def page(runs: Runs, results: Results, auc: Comparison, ap: Comparison) -> str:
    """Write all tables of a comparison; others are held against its first system."""
    ours, parts = auc.systems[0], [_PROTOCOLS[runs.protocol] + "\n"]
    for comparison, title in ((auc, "ROC-AUC"), (ap, "Average precision")):
        parts.append(
            f"## {title} x 100, mean of {runs.seeds} {'seeds' if runs.seeds > 1 else 'seed'}\n"
        )
        parts.append(sets_table(comparison, runs.sets) + "\n")
    parts += [
        f"## Means over {len(runs.sets)} sets\n",
        "± is the standard deviation over the seeds; rank is the mean over the sets; p is "
        f"Wilcoxon's signed-rank test against {ours}, with Holm's correction.\n",
        means_table(auc, ap),
        f"\nMean ranks that are less than {auc.critical_difference():.1f} apart do not differ "
        "(Nemenyi's test at 5%).\n",
        _handling(runs.max_rows) + "\n",
        *failures(results, runs),
        f"## Differences from {ours}\n",
        f"Means over the sets of each detector's figure minus {ours}'s, with 95% intervals by "
        f"bootstrap over the sets ({RESAMPLES:,} resamples).\n",
        differences_table(auc, ap) + "\n",
        *_published(runs.protocol, auc, ap),
        "## Rows flagged\n",
        flagged_table(results, runs),
    ]
    return "\n".join(parts)


def _handling(max_rows: int) -> str:
    """Say how rows are prepared for peers."""
    scaled = [name for _, name, _ in SCALED if name not in ("KNN, min-max",)]
    return (
        f"At most {max_rows:,} rows of a set, drawn once. Peers get the column's median of the "
        "training rows for a missing value, and categories as the numbers that code them. "
        f"{', '.join(scaled)} get z-scores, and KNN, min-max columns from 0 to 1, by the training "
        f"rows. OCSVM trains on {MOST_ROWS['OCSVM']:,} rows at most, drawn by the seed; MCD takes "
        f"{MOST_COLUMNS['MCD']} columns at most. All else is as the library sets it."
    )


def sets_table(comparison: Comparison, sets: Sequence[LabelledSet]) -> str:
    """Lay out one metric in percent: a row a set, a dash for what failed."""
    shapes = {data.name: data for data in sets}
    rows = []
    for name, values in zip(comparison.sets, comparison.values, strict=True):
        figures = (_figure(100 * value, ".1f") for value in (shapes[name].y.mean(), *values))
        rows.append((name, *shapes[name].X.shape, *figures))
    header = ("set", "rows", "columns", "outliers %", *comparison.systems)
    return markdown_table(header, rows)


def _figure(value: float, form: str) -> str:
    return "-" if math.isnan(value) else f"{value:{form}}"


def means_table(auc: Comparison, ap: Comparison) -> str:
    """Lay out means ± spread over the seeds, mean ranks, and tests against the first system."""
    tests = (auc.p_values(auc.systems[0]), ap.p_values(ap.systems[0]))
    rows = []
    for at in np.argsort(auc.ranks(), kind="stable"):
        name = auc.systems[at]
        row = [name]
        for metric, p in zip((auc, ap), tests, strict=True):
            done = metric.done()[at]
            of = "" if done == len(metric.sets) else f" ({done} sets)"
            row += [
                f"{_figure(metric.means()[at], '.4f')} ± {_figure(metric.spread[at], '.4f')}{of}",
                f"{metric.ranks()[at]:.1f}",
                f"{p[name]:.2g}" if name in p else "",
            ]
        rows.append(row)
    header = ("system", "ROC-AUC", "rank", "p", "AP", "rank", "p")
    return markdown_table(header, rows)


def differences_table(auc: Comparison, ap: Comparison) -> str:
    """Lay out mean differences from the first system, each with its interval."""
    ours = auc.systems[0]
    found = [metric.intervals(ours) for metric in (auc, ap)]
    rows = []
    for name in sorted(found[0], key=lambda name: -np.nan_to_num(found[0][name][0], nan=-1.0)):
        row = [name]
        for mean, low, high in (intervals[name] for intervals in found):
            row += [_figure(mean, "+.4f"), f"{_figure(low, '+.4f')} to {_figure(high, '+.4f')}"]
        rows.append(row)
    header = (f"minus {ours}", "ROC-AUC", "95% interval", "AP", "95% interval")
    return markdown_table(header, rows)


def failures(results: Results, runs: Runs) -> Iterator[str]:
    """Say which detectors failed on which sets, and why."""
    names = {data.name for data in runs.sets}
    seen: dict[tuple[str, str], str] = {}
    for row in results.select(runs.name):
        if row["note"] and row["data"] in names:
            seen.setdefault((row["system"], row["data"]), row["note"])
    if seen:
        yield (
            "These have no figure (-): the detector ranks last there, and its mean is over the "
            "other sets, whose number stands beside it.\n"
        )
        yield "\n".join(f"- {one} on {data}: {why}" for (one, data), why in seen.items()) + "\n"


def _published(protocol: str, auc: Comparison, ap: Comparison) -> Iterator[str]:
    """Lay out means that others published, beside ours of this run on the same sets."""
    known = sets_published(auc.sets)
    found = published(protocol, auc.sets)
    if not found:
        return
    here = [metric.only(known) for metric in (auc, ap)]
    ran = {
        name: (float(a), float(b))
        for name, a, b in zip(auc.systems, *(metric.means() for metric in here), strict=True)
    }
    blank = (math.nan, math.nan)
    rows = [
        (one.system, one.auc, one.ap, *ran.get(one.system, blank), one.over, one.source)
        for one in found
    ]
    rows.insert(0, (auc.systems[0], *blank, *ran[auc.systems[0]], "", ""))
    yield "## Published means\n"
    yield (
        "Published, not run here: others' figures, on rows, scales and settings of their own. "
        f"Run here: means over the {len(known)} of these sets that ADBench has.\n"
    )
    header = ("system", "ROC-AUC, published", "AP, published", "ROC-AUC, run here",
              "AP, run here", "published over", "source")  # fmt: skip
    cells = ([_figure(x, ".3f") if isinstance(x, float) else x for x in row] for row in rows)
    yield markdown_table(header, cells) + "\n"


def flagged_table(results: Results, runs: Runs) -> str:
    """Lay out the shares of rows that the detectors flag by themselves, over sets and seeds."""
    rows, found = [], results.select(runs.name)
    for system in (one.name for one in runs.field):
        shares = 100 * np.array([row["setting"] for row in found if row["system"] == system])
        if (shares := shares[np.isfinite(shares)]).size:
            figures = (shares.mean(), np.median(shares), shares.min(), shares.max())
            rows.append((system, *(f"{figure:.1f}" for figure in figures)))
    return markdown_table(("rows flagged, %", "mean", "median", "least", "most"), rows)
