"""Measure noise and ROC-AUC of a model that stays current for 60 months.

Labelled sets with 20,000 rows and more, 10,000 rows of each, arrive in random order, a sixtieth per
month, at a total epsilon of .1 for all months. After some months, the model of all rows so far
scores all rows: from a plan with a horizon, and under the noise of merged monthly releases, of a
binary tree of releases, of releasing everything again each month, and of a single release in that
month. Each way has tables for its own noise, without a round for marginals. The single release is
also measured under the horizon's tables, where only the noise differs. Seeds draw the order and the
plans, but no noise.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hushtable import Feature, HushTable, Periods, Plan, Release, Schema, Sketch, decoded
from hushtable.describe import describe_ledger
from hushtable_bench.cases.costs import large_sets
from hushtable_bench.data import LabelledSet, auc
from hushtable_bench.results import Page, Promise, ResultTable
from hushtable_bench.runner import CaseRun, data_folder, progress

TOTAL, MONTHS = 0.1, 60
AFTER = (6, 12, 30, 60)
ROWS, QUICK_ROWS = 10_000, 5_000
HORIZON, MERGED, TREE = "horizon", "increments merged", "binary tree"
AGAIN, ONCE = "everything again", "one release at that month"
#: With other noise than the horizon's, but the same tables.
SAME = "one release, under the horizon's tables"
WAYS = (AGAIN, MERGED, TREE, HORIZON, SAME, ONCE)
#: Most variance of the last running sum, in variances of one release; points behind one release.
MOST, BEHIND = {12: 3.6, 60: 6.0}, 2.0

Months: TypeAlias = Sequence[NDArray[np.float64]]


def _plan(schema: Schema, months: Months, seed: int, **terms: int) -> Plan:
    rows = sum(map(len, months))
    return Plan.draw(schema, epsilon=TOTAL, expected_rows=rows, random_state=seed, **terms)


# --- ways to stay current -----------------------------------------------------------------------


def by_horizon(
    schema: Schema, months: Months, seed: int, after: Sequence[int]
) -> Iterator[Release]:
    """Release each month once, as a mix of the months so far; decode."""
    plan = _plan(schema, months, seed, horizon=len(months))
    site = Periods(plan, TOTAL)
    increments = [site.release(Sketch.from_data(plan, one)) for one in months[: max(after)]]
    for t in after:
        yield decoded(increments[:t])


def noises(way: str, t: int, months: int) -> int:
    """Return the variance of the sum of t months, in variances of one release at the total.

    If monthly releases are merged, each month adds one. In a tree, a row is in a node of each
    level, which share the total, and the sum is that of the nodes that cover the months. If
    everything is released again each month, a row is in as many releases as there are months.
    """
    levels = math.ceil(math.log2(months)) + 1
    return {MERGED: t, TREE: levels * t.bit_count(), AGAIN: months}[way]


def by_share(
    way: str, schema: Schema, months: Months, seed: int, after: Sequence[int]
) -> Iterator[Release]:
    """Release the sums of months with the noise of another way, drawn at once, not in parts."""
    most = max(noises(way, t, len(months)) for t in after)
    plan = _plan(schema, months, seed, sites=most)
    for t in after:
        so_far = Sketch.from_data(plan, np.concatenate(months[:t]))
        yield so_far.release(TOTAL, share=1 / noises(way, t, len(months)))


def once(
    schema: Schema, months: Months, seed: int, after: Sequence[int], **parameters: int
) -> Iterator[Release]:
    """Release the sum of the months so far once, with the whole budget."""
    for t in after:
        plan = _plan(schema, months[:t], seed, **parameters)
        yield Sketch.from_data(plan, np.concatenate(months[:t])).release(TOTAL)


def models(
    way: str, schema: Schema, months: Months, seed: int, after: Sequence[int]
) -> Iterator[Release]:
    """Yield a way's model after each of some months."""
    if way == SAME:
        design = _plan(schema, months, seed, horizon=len(months)).design
        assert design is not None
        return once(schema, months, seed, after, **design.parameters())
    if way in (HORIZON, ONCE):
        return (by_horizon if way == HORIZON else once)(schema, months, seed, after)
    return by_share(way, schema, months, seed, after)


# --- noise --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoiseOfWay:
    """Variance of the noise on a sum of all months, measured over its cells.

    Attributes
    ----------
    variance : float
        In variances of one release at the total, for as many tables.
    scale : float
        Of the noise that each release added to a cell, in counts.
    """

    way: str
    months: int
    variance: float
    tables: int
    scale: float
    words: str


def measure_noise(periods: int, rows: int = 120_000) -> Iterator[NoiseOfWay]:
    """Count normal rows in some months, and compare the last sums with the exact ones."""
    schema = Schema([Feature.numeric(f"x{j}", low=-6, high=6) for j in range(5)])
    rng = np.random.default_rng(0)
    months = np.array_split(rng.normal(size=(rows, 5)), periods)
    single = 1.0
    for way in reversed(WAYS):
        (release,) = models(way, schema, months, 0, [periods])
        exact = Sketch.from_data(release.plan, np.concatenate(months)).counts
        tables, ledger = release.plan.family.n_tables, release.ledger
        variance = float(((release.counts - exact) ** 2).mean()) / tables
        if way == ONCE:
            single = variance
        scale = ledger.shares[0].scale
        yield NoiseOfWay(
            way, periods, variance / single, tables, scale, " ".join(describe_ledger(ledger))
        )


def noise_page(found: Sequence[NoiseOfWay]) -> Page:
    """Lay out the variances and scales, one row per way and number of months."""
    rows = [
        (f"{n.way}, {n.months} of {n.months}", f"{n.variance:.2f}", n.tables, f"{n.scale:.1f}")
        for n in found
    ]
    table = ResultTable(("way, months", "variance", "tables", "scale"), rows)
    record = (f"- {n.way}, {n.months} months: {n.words}" for n in found if n.way == HORIZON)
    return [table, "\n".join(record)]


# --- accuracy -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class MonthRun:
    """ROC-AUC of one way on a set after some months, in points."""

    data: str
    rows: int
    way: str
    seed: int
    months: int
    auc: float


def measure(data: LabelledSet, seeds: Sequence[int]) -> Iterator[MonthRun]:
    """Stream a set's rows in random order, and score all of them after some months."""
    schema = data.schema()
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(data.X))
        months = np.array_split(data.X[order], MONTHS)
        for way in WAYS:
            progress(f"{data.name}, seed {seed}: {way}")
            for t, model in zip(AFTER, models(way, schema, months, seed, AFTER), strict=True):
                scores = HushTable.from_counts(model).score_samples(data.X)
                yield MonthRun(data.name, len(data.X), way, seed, t, 100 * auc(data.y, scores))


def _mean(runs: Sequence[MonthRun], way: str, months: int, name: str | None = None) -> float:
    found = [r.auc for r in runs if (r.way, r.months) == (way, months) and name in (None, r.data)]
    return float(np.mean(found))


def accuracy_page(runs: Sequence[MonthRun]) -> Page:
    """Lay out mean ROC-AUC by way and month, and by set after all months."""
    head = "way", *(f"{t} months" for t in AFTER)
    mean = [(way, *(f"{_mean(runs, way, t):.1f}" for t in AFTER)) for way in WAYS]
    sets = [
        (f"{name} ({rows:,} rows)",
         *(f"{_mean(runs, way, t, name):.1f}" for t in AFTER[1:] for way in (HORIZON, ONCE)))
        for name, rows in dict.fromkeys((r.data, r.rows) for r in runs)
    ]  # fmt: skip
    by_set = "set", *(f"{way[:7]} {t}" for t in AFTER[1:] for way in (HORIZON, "once"))
    return [ResultTable(head, mean), ResultTable(by_set, sets)]


def targets(noise: Sequence[NoiseOfWay], runs: Sequence[MonthRun]) -> list[Promise]:
    """Compare the horizon's noise, and its ROC-AUC from month 12 on, with the promises."""
    found = [
        Promise(f"variance after {n.months} of {n.months} months", n.variance, "<=", most, ".2f")
        for n in noise
        if n.way == HORIZON and (most := MOST.get(n.months))
    ]
    for t in AFTER[1:]:
        behind = _mean(runs, ONCE, t) - _mean(runs, HORIZON, t)
        claim = f"points of ROC-AUC behind one release, after {t} months"
        found.append(Promise(claim, behind, "<=", BEHIND, ".2f"))
    return found


def periods(
    run: CaseRun, *, data: Path | None = None, rows: int = ROWS, seeds: int = 3, quick: bool = False
) -> None:
    """Use 7 sets and 3 seeds: eight minutes; --quick, 5,000 rows of each set and 1 seed."""
    noise = [one for n in MOST for one in measure_noise(n)]
    run.say(f"Noise on the sum of all months, a total epsilon of {TOTAL:g}", *noise_page(noise))
    most, count = (QUICK_ROWS, 1) if quick else (rows, seeds)
    sets = [one.at_most(most) for one in large_sets(data_folder(data))]
    runs = [one for data in sets for one in measure(data, range(count))]
    run.say(f"Mean ROC-AUC of {len(sets)} sets, in points", *accuracy_page(runs))
    run.figures |= {"noise": noise, "runs": runs}
    run.targets += targets(noise, runs)
