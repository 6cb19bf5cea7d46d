"""Measure whether reasons in lists of rows are true, and what they cost.

faithful        For the 20 lowest rows of six public tables: whether reasons describe the unusual
                value, whether they name the column that is farthest from its mean, and whether rows
                leave the list when the named columns are repaired; and the same for SHAP's shares
                of an isolation forest (pip install shap). The rules are in
                `hushtable_bench.cases.reasons_faithful`.
combinations    For values that are usual separately, but not together, planted into nine tables of
                numbers: whether a pair is named, and whether it is right, which means that it has
                the changed column and a column related to it, with a rank correlation of half or
                more. Strict: only pairs that are eight times rarer than expected count. Also for
                ordinary rows, and rows with one far value. Means over the tables.
gross           The 24 known errors of diamonds: a length of 0 or above 20 mm, or a table of 95%;
                four of them are gross. Also the effect, on labelled sets of at most 300 columns, of
                listing rows with a value far outside everything first: ROC-AUC and average
                precision of the list's order minus those of the scores. Sets whose names begin with
                odd_ or ovr_ are summarised separately.
cost            Seconds with one thread: explaining all rows beside scoring them, a list of 20 rows
                with reasons, and its page with pictures beside its table as CSV.
released pairs  The noise on counts of pairs of columns if they were released, and the number of
                rows from which on a pair would be visible. This is computed, not measured.

Public tables are CSV files in FOLDER; `hushtable_bench.cases.reasons_tables` lists them and their
sources. A table whose file is absent is left out. Labelled sets are those in FOLDER and below.
"""

import contextlib
import io
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hushtable import HushTable
from hushtable.privacy import Sensitivity
from hushtable.privacy.budget import calibrated_scale
from hushtable.privacy.mechanisms import named
from hushtable.report.lists import LISTS
from hushtable.scores.details import RowDetails
from hushtable.scores.reasons import CALM, RowPairs
from hushtable_bench.cases.reasons_faithful import (
    LISTED,
    FaithfulTable,
    PeerTable,
    look_through,
    look_through_peer,
)
from hushtable_bench.cases.reasons_tables import PLANTED, PlantedReasons, ReasonTables
from hushtable_bench.data import LabelledSet, auc_and_ap, load
from hushtable_bench.runner import CaseRun, RowSource, data_folder, in_turns, progress

#: Least rank correlation of the columns of a right pair.
RELATED = 0.5
#: Lengths of lists to search for errors of diamonds; and the length that must hold the gross ones.
DEPTHS, GROSS_WITHIN = (20, 40, 100), 20
#: Columns of a labelled set at most, and the beginnings of the names that are summed up apart.
MOST_COLUMNS, ODD = 300, ("odd_", "ovr_")
#: Rows to explain, and rows to list, with their columns; rows with --quick; and runs.
EXPLAINED, SEARCHED, TIMED_COLUMNS, QUICK_ROWS, REPEATS = 100_000, 1_000_000, 20, 5_000, 5
#: The budget of one person in all, the part of it for pairs, and columns whose pairs are counted.
EPSILON, PAIRS_SHARE, DELTA, PAIRED_COLUMNS = 1.0, 0.3, 1e-6, 20
#: Expected shares of all rows in a cell: for two columns of eight equal cells each, and the least
#: share that a model can judge by its sample of the rows.
CELLS = {"1/64": 1 / 64, "5/8192": 5 / 8_192}
#: How many times rarer than expected a pair is, and by how many standard deviations it has to stand
#: out. With 3.5, 4% of ordinary rows have a false pair among their 190; with 2, each row has four.
RARER, STANDS_OUT = 4.0, (2.0, 3.5)
RELEASED_ROWS = (10_000, 100_000, 1_000_000)

Floats = NDArray[np.float64]


def reasons(run: CaseRun, *, data: Path | None = None, seeds: int = 5, quick: bool = False) -> None:
    """Judge reasons on FOLDER's files: one minute; --quick, scikit-learn's tables, no targets."""
    folder = None if quick else data_folder(data)
    tables = ReasonTables(folder)
    if folder is not None and (absent := tables.absent()):
        run.say(f"Left out, because their files are not in the folder: {', '.join(absent)}.")
    judging = Judging(run, not quick)
    report_faithful(judging, tables)
    report_combinations(judging, tables, 1 if quick else 3)
    if folder is not None:
        report_diamonds(judging, tables, seeds)
        report_order(judging, folder)
    report_cost(judging, (QUICK_ROWS, QUICK_ROWS) if quick else (EXPLAINED, SEARCHED))
    report_released(run)


@dataclass(frozen=True)
class Judging:
    """A run, and whether its figures are compared with their targets."""

    run: CaseRun
    held: bool

    def hold(self, claim: str, measured: float, needs: str, bound: float, form: str) -> None:
        if self.held:
            self.run.hold(claim, measured, needs, bound, form)


# --- faithful -------------------------------------------------------------------------------------


def report_faithful(judging: Judging, tables: ReasonTables) -> None:
    """Print figures on reasons for each table, and compare all tables with their targets."""
    run, ours, peers = judging.run, list[FaithfulTable](), list[PeerTable]()
    for name, frame in tables.read():
        progress(f"faithful: {name}")
        ours.append(look_through(name, frame))
        with contextlib.suppress(ImportError):
            peers.append(look_through_peer(name, frame))
    run.say(f"The {LISTED} lowest rows of each table, HushTable; all but reasons are rows.")
    run.table(
        {
            "table": "{t.table}", "reasons": "{t.reasons}", "plain reasons": "{t.plain}",
            "first reason usual": "{t.weak}", "no reason": "{t.silent}",
            "strongest first or in a pair": "{t.first}", "strongest named": "{t.named}",
            "leave by scores": "{t.left}", "leave the list": "{t.unlisted}",
            "claimed to": "{t.claimed}",
        }, ours,
    )  # fmt: skip
    if peers:
        run.say("The same for an isolation forest's lowest rows, by SHAP's three largest shares.")
        run.table(
            {
                "table": "{t.table}", "first reason usual": "{t.weak}",
                "strongest first": "{t.first}", "strongest of three": "{t.named}",
                "leave by scores": "{t.left}",
            }, peers,
        )  # fmt: skip
    else:
        run.say("Without SHAP of an isolation forest: shap is not installed (pip install shap).")
    run.figures |= {"faithful": ours, "SHAP": peers}
    for t in ours:
        plain = t.plain / max(t.reasons, 1)
        judging.hold(f"{t.table}: share of plain reasons", plain, "<=", 0.10, ".2f")
        judging.hold(f"{t.table}: rows, first reason usual", t.weak, "<=", 0, ".0f")
        strongest = LISTED * t.first / t.rows
        judging.hold(f"{t.table}: rows of 20, strongest first", strongest, ">=", 17, ".0f")
    if ours:
        left = sum(t.left for t in ours) / sum(t.rows for t in ours)
        judging.hold("all tables: rows that leave the list", left, ">=", 0.90, ".3f")


# --- combinations ---------------------------------------------------------------------------------


class NamedPair(NamedTuple):
    """A planted row: whether a pair is named and right, any or strict; and its first reason."""

    named: bool
    right: bool
    strict: bool
    strict_right: bool
    first: bool


class PairShares(NamedTuple):
    """Shares of a table's rows with a pair, and of right ones among these."""

    table: str
    rows: int
    named: float
    right: float
    strict: float
    strict_right: float
    ordinary: float
    strict_ordinary: float
    far: float
    far_first: float


def named_pairs(planted: PlantedReasons, seed: int) -> Iterator[NamedPair]:
    """Yield the named pair and reason for each planted row."""
    detector = HushTable(random_state=seed).fit(planted.frame)
    names, few = list(planted.frame), planted.frame.iloc[planted.rows]
    features, usual = detector.plan_.schema.of_rows.features, detector._usual_values()
    rarity = RowPairs(features, usual.pairs, few.to_numpy()) if usual.pairs else None
    for row in detector._lowest(few, len(few)).rows:
        found, column = row.detail.reasons or [], planted.columns[row.row]
        pairs = [tuple(map(names.index, one.columns)) for one in found if one.partner]
        strict = [(a, b) for a, b in pairs if rarity.rarer(row.row, a)[b] >= CALM]
        right = [
            bool(some) and column in some[0] and planted.related[some[0]] >= RELATED
            for some in (pairs, strict)
        ]
        first = bool(found) and names.index(found[0].feature) == column
        yield NamedPair(bool(pairs), right[0], bool(strict), right[1], first)


def pair_shares(name: str, frame: pd.DataFrame, seeds: int) -> PairShares:
    """Return the named pairs and reasons for rows of each kind planted into a table."""
    found = {
        kind: np.array([
            one for seed in range(seeds) for one in named_pairs(plant(frame, seed), seed)
        ])
        for kind, plant in PLANTED.items()
    }  # fmt: skip
    pairs, (far, ordinary) = found["combination"], (found["far"], found["ordinary"])
    named, _, strict = pairs[:, :3].mean(axis=0)
    right, strict_right = (
        pairs[pairs[:, j], j + 1].mean() if pairs[:, j].any() else math.nan for j in (0, 2)
    )
    return PairShares(
        name, len(pairs), named, right, strict, strict_right,
        ordinary[:, 0].mean(), ordinary[:, 2].mean(), far[:, 0].mean(), far[:, 4].mean(),
    )  # fmt: skip


def report_combinations(judging: Judging, tables: ReasonTables, seeds: int) -> None:
    """Print shares of named pairs for each table, and compare their means with targets."""
    lines = []
    for name, frame in tables.numbers():
        progress(f"combinations: {name}")
        lines.append(pair_shares(name, frame, seeds))
    known = (
        [x for x in each if not np.isnan(x)] for each in zip(*(t[2:] for t in lines), strict=True)
    )
    means = [float(np.mean(some)) if some else math.nan for some in known]
    mean = PairShares("mean", sum(t.rows for t in lines), *means)
    judging.run.say(f"Planted rows, {seeds} seeds: shares of rows, and of right pairs among pairs.")
    judging.run.table(
        {
            "table": "{t.table}", "combinations": "{t.rows}", "pair named": "{t.named:.2f}",
            "right": "{t.right:.2f}", "ordinary rows": "{t.ordinary:.3f}",
            "strict": "{t.strict:.2f}", "right, strict": "{t.strict_right:.2f}",
            "ordinary, strict": "{t.strict_ordinary:.3f}", "far: pair": "{t.far:.3f}",
            "far: first": "{t.far_first:.3f}",
        }, [*lines, mean],
    )  # fmt: skip
    judging.run.figures |= {"combinations": [t._asdict() for t in lines]}
    judging.hold("combinations: pair named", mean.named, ">=", 0.55, ".3f")
    judging.hold("combinations: right pair when named", mean.right, ">=", 0.88, ".3f")
    judging.hold("ordinary rows with a pair", mean.ordinary, "<=", 0.04, ".3f")
    judging.hold("one far value: first reason right", mean.far_first, ">=", 0.97, ".3f")
    judging.hold("strict: pair named", mean.strict, ">=", 0.33, ".3f")
    judging.hold("strict: right pair when named", mean.strict_right, ">=", 0.91, ".3f")
    judging.hold("strict: ordinary rows with a pair", mean.strict_ordinary, "<=", 0.007, ".4f")


# --- gross values ---------------------------------------------------------------------------------


class FoundErrors(NamedTuple):
    """Errors among the first rows of a list, by its length, and the places of gross ones."""

    seed: int
    within: tuple[int, ...]
    places: list[float]


def known_errors(frame: pd.DataFrame) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which rows of diamonds are errors, and which are gross."""
    sides = frame[["x", "y", "z"]].to_numpy()
    gross = (sides[:, 1:] > 20).any(axis=1) | (frame["table"] == 95).to_numpy()
    return gross | (sides == 0).any(axis=1), gross


def found_errors(frame: pd.DataFrame, seed: int) -> FoundErrors:
    """Find the errors of diamonds in a list."""
    wrong, gross = known_errors(frame)
    detector = HushTable(random_state=seed).fit(frame)
    listed = [row.row for row in detector._lowest(frame, DEPTHS[-1]).rows]
    places = {row: place for place, row in enumerate(listed, 1)}
    of_gross = sorted(places.get(row, math.inf) for row in np.flatnonzero(gross).tolist())
    return FoundErrors(seed, tuple(int(wrong[listed[:k]].sum()) for k in DEPTHS), of_gross)


def report_diamonds(judging: Judging, tables: ReasonTables, seeds: int) -> None:
    """Print the places of the errors of diamonds, and compare all seeds with the targets."""
    if (frame := tables.complete("diamonds")) is None:
        return
    progress("gross: diamonds")
    found = [found_errors(frame, seed) for seed in range(seeds)]
    wrong, gross = known_errors(frame)
    judging.run.say(f"Diamonds: {wrong.sum()} errors, {gross.sum()} of them gross, by their place.")
    of_gross = {f"gross {k + 1}": f"{{t.places[{k}]:g}}" for k in range(int(gross.sum()))}
    in_first = {f"in the first {n}": f"{{t.within[{k}]}}" for k, n in enumerate(DEPTHS)}
    judging.run.table({"seed": "{t.seed}"} | in_first | of_gross, found)
    judging.run.figures |= {"diamonds": [t._asdict() for t in found]}
    mean = float(np.mean([t.within[-1] for t in found]))
    judging.hold(f"diamonds: errors in the first {DEPTHS[-1]}, mean", mean, ">=", 12, ".1f")
    last = max(max(t.places) for t in found)
    judging.hold("diamonds: last place of a gross value", last, "<=", GROSS_WITHIN, ".0f")


class OrderGain(NamedTuple):
    """Rows of a set with a value far outside everything, and the effect of listing them first."""

    name: str
    far: int
    ap: float
    auc: float


def order_gain(data: LabelledSet) -> OrderGain:
    """Return average precision and ROC-AUC of the list's order, minus those of the scores."""
    rows = data.rows()
    detector = HushTable(random_state=0).fit(rows)
    details = RowDetails(detector._scorer, usual=detector._usual_values())
    batches = details.batches(detector._open(rows), lambda one: (one.scores, one.keys))
    scores, keys = map(np.concatenate, zip(*batches, strict=True))
    listed, scored = auc_and_ap(data.y, keys), auc_and_ap(data.y, scores)
    gains = (listed[which] - scored[which] for which in ("ap", "auc"))
    return OrderGain(data.name, int((keys < scores).sum()), *gains)


def report_order(judging: Judging, folder: Path) -> None:
    """Print the effect of listing far values first, and compare both collections with targets."""
    found = dict[str, list[OrderGain]]()
    for path in sorted(folder.rglob("*.npz")):
        data = load(path)
        if data.X.shape[1] <= MOST_COLUMNS:
            progress(f"order: {data.name}")
            kind = "odd_ and ovr_" if path.stem.startswith(ODD) else "others"
            found.setdefault(kind, []).append(order_gain(data))
    lines = []
    for kind, gains in sorted(found.items()):
        values = np.array([(one.ap, one.auc) for one in gains])
        mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
        lines.append(
            {
                "kind": kind, "sets": len(gains), "changed": sum(one.far > 0 for one in gains),
                "far": sum(one.far for one in gains), "mean": mean, "error": error,
            }
        )  # fmt: skip
        for k, which in enumerate(("AP", "ROC-AUC")):
            claim = f"labelled sets, {kind}: {which}, list less scores, plus a standard error"
            judging.hold(claim, float(mean[k] + error[k]), ">=", 0.0, ".5f")
    if lines:
        judging.run.say("Labelled sets: the list's order minus that of the scores.")
        judging.run.table(
            {
                "sets": "{t[kind]}", "number": "{t[sets]}", "with far values": "{t[changed]}",
                "far rows": "{t[far]}", "AP": "{t[mean][0]:+.5f} +- {t[error][0]:.5f}",
                "ROC-AUC": "{t[mean][1]:+.5f} +- {t[error][1]:.5f}",
            }, lines,
        )  # fmt: skip
    judging.run.figures |= {"order": {k: [t._asdict() for t in v] for k, v in found.items()}}


# --- cost -----------------------------------------------------------------------------------------


def report_cost(judging: Judging, rows: tuple[int, int]) -> None:
    """Print seconds of explanations, lists and pages beside those of scores and tables."""
    progress("cost")
    X = RowSource.normal(rows[0], TIMED_COLUMNS).load()
    detector = HushTable(random_state=0, n_jobs=1).fit(X)
    seconds = _medians(
        {"score_samples": lambda: detector.score_samples(X), "explain": lambda: detector.explain(X)}
    )
    lines = [(f"{len(X):,} x {TIMED_COLUMNS}, float32", *one) for one in seconds.items()]
    X = RowSource.normal(rows[1], TIMED_COLUMNS).load().astype(np.float64)
    detector = HushTable(random_state=0, n_jobs=1).fit(X)
    found = detector._lowest(X, LISTED)
    seconds = _medians(
        {
            "score_samples": lambda: detector.score_samples(X),
            f"outliers(n={LISTED})": lambda: detector.outliers(X, n=LISTED),
        }
    )
    lines += [(f"{len(X):,} x {TIMED_COLUMNS}, float64", *one) for one in seconds.items()]
    written = _medians(
        {
            f"its list as {ending}": lambda ending=ending: LISTS[ending](
                io.BytesIO(), found, "model.hush", "rows.csv", "bits"
            )
            for ending in (".csv", ".html")
        }
    )
    lines += [(f"{LISTED} rows", *one) for one in written.items()]
    judging.run.say(f"Seconds with one thread, medians of {REPEATS}.")
    judging.run.table({"rows": "{t[0]}", "what": "{t[1]}", "seconds": "{t[2]:.3g}"}, lines, text=2)
    judging.run.figures |= {"cost": lines}
    more = written["its list as .html"] - written["its list as .csv"]
    judging.hold("the page with pictures, seconds more than CSV", more, "<=", 1.0, ".3f")


def _medians(contestants: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median seconds of each, in turns."""
    times = in_turns(contestants, REPEATS)
    return {name: float(np.median(each)) for name, each in times.items()}


# --- released pairs -------------------------------------------------------------------------------


class PairsNoise(NamedTuple):
    """Noise on a cell of the counts of all pairs, and the rows that a rare pair needs."""

    budget: str
    noise: float
    #: Standard deviations by which a pair has to stand out.
    by: float
    #: Rows needed for each expected share of the rows in a cell.
    needed: tuple[float, ...]


def pairs_noise(epsilon: float, share: float | None = None) -> float:
    """Return the standard deviation of the noise on a cell of the counts of all pairs."""
    pairs = Sensitivity(PAIRED_COLUMNS * (PAIRED_COLUMNS - 1) // 2)
    gaussian = named("discrete-gaussian")
    return gaussian.noise_sd(
        calibrated_scale(gaussian.name, pairs, epsilon=epsilon, delta=DELTA, share=share)
    )


def rows_needed(noise: float, cell: float, by: float) -> float:
    """Return the rows from which on a pair stands out of the noise, by the share in its cell."""
    return by * noise / (cell * (1.0 - 1.0 / RARER))


def report_released(run: CaseRun) -> None:
    """Print the noise that pairs would have, and the number of rows that they would need."""
    budgets = {
        f"an epsilon of {PAIRS_SHARE:g}": pairs_noise(PAIRS_SHARE * EPSILON),
        f"{PAIRS_SHARE:g} of rho": pairs_noise(EPSILON, PAIRS_SHARE),
    }
    run.say(
        f"Counts of the pairs of {PAIRED_COLUMNS} columns, if they were released at a total "
        f"epsilon of {EPSILON:g} (delta {DELTA:g}): expected rows in a cell, rows of a pair that "
        f"is {RARER:g} times rarer, and the difference in standard deviations of the noise."
    )
    cells = [(part, cell, cell * (1.0 - 1.0 / RARER)) for part, cell in CELLS.items()]
    run.table(
        {"part of the rows": "{t[0]}", "rows": "{t[1]:,}", "expected": "{t[2]:,.1f}"}
        | {f"{RARER:g} times rarer": "{t[3]:,.1f}"}
        | {f"apart, {budget}": f"{{t[{k}]:.2f}}" for k, budget in enumerate(budgets, 4)},
        [
            (part, n, n * cell, n * cell / RARER, *(n * gap / noise for noise in budgets.values()))
            for part, cell, gap in cells
            for n in RELEASED_ROWS
        ],
    )
    found = [
        PairsNoise(budget, noise, by, tuple(rows_needed(noise, c, by) for c in CELLS.values()))
        for budget, noise in budgets.items()
        for by in STANDS_OUT
    ]
    needed = {
        f"rows needed, {part} of them": f"{{t.needed[{k}]:,.0f}}" for k, part in enumerate(CELLS)
    }
    run.table(
        {"pairs have": "{t.budget}", "noise on a cell, rows": "{t.noise:.0f}"}
        | {"standard deviations": "{t.by:g}"} | needed, found,
    )  # fmt: skip
    run.figures |= {"released pairs": [one._asdict() for one in found]}
