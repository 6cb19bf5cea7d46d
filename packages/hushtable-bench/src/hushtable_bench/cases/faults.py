"""Measure which faults of one column at one site the site finds with the counts of others.

Each labelled set with 2,500 rows or more (at most 10,000 are used) and 3 to 60 columns is divided
into a site, with a fifth of the rows, and all others. In a tenth to six tenths of the site's rows,
one column has a fault:

unit        x 1.8 + 32
device      plus two standard deviations (computed from the quartiles)
default     the column's largest value
codes       two codes swapped, the most frequent and another, of a column with 2 to 12 values

A fault is found if its column is named as systematic. A swap that moves the shares of the codes by
less than chance cannot be seen in a column's values, so such swaps are counted separately. Honest
sites are random rows (a fifth, a tenth, or a twentieth of the set), and half of one of its 2, 3, or
5 clusters (another mix of cases). The others' counts are exact; for sets of 5,000 rows or more,
they are also released at a total epsilon of 1, histograms and tables together, with one noise for
all.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from hushtable import HomeModel, Plan, Sketch
from hushtable.counts.base import Counts
from hushtable_bench.data import LabelledSet, load
from hushtable_bench.results import ResultTable
from hushtable_bench.runner import CaseRun, data_folder, progress

ROWS, LEAST, LEAST_RELEASED, COLUMNS, QUICK_SETS = 10_000, 2_500, 5_000, (3, 60), 2
SHARES = (0.1, 0.2, 0.35, 0.6)
FAULTS, HONEST, HIDDEN = ("unit", "device", "default", "codes"), ("alike", "case mix"), "hidden"
EPSILON, SITES = 1.0, 5
#: Least shares of named faults without noise and with it, and most false alarms.
NAMED, FALSE = {False: 0.9, True: 0.8}, 0.05

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


class TrialSite(NamedTuple):
    """A site's rows, the other rows of the set, and the site's fault, if it has one."""

    kind: str
    rows: Floats
    rest: Rows
    column: int | None = None
    share: float = 0.0


def honest(X: Floats, rng: np.random.Generator) -> Iterator[TrialSite]:
    """Yield sites without a fault."""
    everyone = np.arange(len(X))
    for part in (5, 5, 10, 20):
        own = rng.permutation(len(X))[: len(X) // part]
        yield TrialSite("alike", X[own], np.setdiff1d(everyone, own))
    Z = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    for clusters in (2, 3, 5):
        of = KMeans(clusters, n_init=2, random_state=0).fit_predict(Z)
        for cluster in range(clusters):
            mine = np.flatnonzero(of == cluster)
            own = mine[: len(mine) // 2]
            if len(own) >= 100:
                yield TrialSite("case mix", X[own], np.setdiff1d(everyone, own))


def faulty(X: Floats, rng: np.random.Generator) -> Iterator[TrialSite]:
    """Yield sites of a fifth of the rows with each fault in each share of them, twice."""
    own, rest = np.split(np.arange(len(X)), [len(X) // SITES])
    values = [len(np.unique(x)) for x in X.T]
    numbers = [j for j, k in enumerate(values) if k > 20]
    codes = [j for j, k in enumerate(values) if 2 <= k <= 12]
    columns = dict(zip(FAULTS, (numbers, numbers, numbers + codes, codes), strict=True))
    for fault, of in columns.items():
        for share in SHARES if of else ():
            for _ in range(2):
                j, rows = int(rng.choice(of)), X[own].copy()
                wrong = rng.choice(len(own), int(share * len(own)), replace=False)
                rows[wrong, j] = _wrong(fault, rows[wrong, j], X[:, j], rng)
                kind = HIDDEN if fault == "codes" and _hidden(X[own, j], rows[:, j]) else fault
                yield TrialSite(kind, rows, rest, j, share)


def _wrong(fault: str, x: Floats, column: Floats, rng: np.random.Generator) -> Floats:
    """Return values with a fault."""
    if fault == "unit":
        return x * 1.8 + 32.0
    if fault == "device":
        low, high = np.quantile(column, [0.25, 0.75])
        return x + 2.0 * ((high - low) / 1.349 or column.std())
    if fault == "default":
        return np.full(len(x), column.max())
    codes, counts = np.unique(column, return_counts=True)
    first, *others = codes[np.argsort(-counts, kind="stable")]
    other = rng.choice(others)
    return np.where(x == first, other, np.where(x == other, first, x))


def _hidden(before: Floats, after: Floats) -> bool:
    """Whether no code's share differs more than chance allows, at a level of 1 in 20."""
    moved = max(abs(float((before == code).mean() - (after == code).mean())) for code in before)
    return moved < 1.36 / np.sqrt(len(before))


def counted(plan: Plan, rows: Floats, released: bool) -> Counts:
    """Return the counts of rows, exact or released."""
    counts = Sketch.from_data(plan, rows)
    return counts.release(EPSILON, 1e-6) if released else counts


def named(data: LabelledSet, released: bool) -> Iterator[tuple[TrialSite, str | None]]:
    """Yield sites of a set, and the column that each finds to be systematic."""
    X, schema, rng = data.X, data.schema(), np.random.default_rng(0)
    terms = {"epsilon": EPSILON, "expected_rows": len(X), "sites": SITES} if released else {}
    histograms = Plan.marginals(schema, **terms)
    plan = Plan.draw(schema, marginals=counted(histograms, X, released), random_state=0, **terms)
    for trials in (honest(X, rng), faulty(X, rng)):
        for site in trials:
            others, columns = (counted(one, X[site.rest], released) for one in (plan, histograms))
            home = HomeModel.fit(site.rows, others, marginals=columns, random_state=0)
            found = home.column_differences(site.rows).systematic
            yield site, None if found is None else found.name


def faults(run: CaseRun, *, data: Path | None = None, quick: bool = False) -> None:
    """Use all sets below the FOLDER of --data: ten minutes; --quick, two sets."""
    for released in (False, True):
        sets, found = 0, dict[tuple[str, float], list[bool]]()
        for complete in _sets(data, LEAST_RELEASED if released else LEAST):
            if quick and sets == QUICK_SETS:
                break
            sets += 1
            for site, name in named(complete, released):
                right = name is not None if site.column is None else name == f"x{site.column}"
                found.setdefault((site.kind, site.share), []).append(right)
        how = f"released at epsilon {EPSILON:g}" if released else "exact"
        _report(run, found, f"{sets} sets, {how}", NAMED[released])
        run.figures |= {f"{how}, {kind}, {share}": right for (kind, share), right in found.items()}


def _sets(data: Path | None, least: int) -> Iterator[LabelledSet]:
    """Yield the sets that are large enough, each with its first rows in a random order."""
    for path in sorted(data_folder(data).rglob("*.npz")):
        found = load(path)
        n, d = found.X.shape
        if n >= least and COLUMNS[0] <= d <= COLUMNS[1]:
            progress(path.stem)
            rows = np.random.default_rng(0).permutation(n)[:ROWS]
            yield LabelledSet(found.name, np.nan_to_num(found.X[rows]), found.y[rows])


def _report(
    run: CaseRun, found: dict[tuple[str, float], list[bool]], how: str, least: float
) -> None:
    """Print the share of each fault that was found, and the false alarms, and judge them."""
    lines = []
    for kind in (*FAULTS, HIDDEN):
        some = [found.get((kind, share), []) for share in SHARES]
        cells = [f"{np.mean(one):.2f} of {len(one)}" if one else "" for one in some]
        mean = float(np.mean([np.mean(one) for one in some if one])) if any(some) else np.nan
        lines.append((kind, *cells, f"{mean:.3f}"))
        if kind != HIDDEN and any(some):
            run.hold(f"{how}: {kind}, named", mean, ">=", least)
    run.say(ResultTable((how, *(f"{share:.0%} of rows" for share in SHARES), "mean"), lines))
    for kind in HONEST:
        alarms = found.get((kind, 0.0), [])
        share = float(np.mean(alarms)) if alarms else np.nan
        run.hold(f"{how}: {kind}, {len(alarms)} sites, false alarms", share, "<=", FALSE)
