"""Measure what contexts, times, relations, and history find that a row's columns do not show.

There are nine measurements, each compared with the results of a method without these options. All
anomalies except those of NAB's series are planted, and every method judges the rows that it was
fitted to.

tables      fifteen real tables with natural contexts, two kinds of planted anomalies, at most
            2,000 rows of a table (see `contexts_tables`, and `contexts_peers` for the methods)
groups      120 wards of 5 to 640 rows with different means and spreads; 3% of the rows have the
            behaviour of a row of another ward; ROC-AUC within wards of each size
many        300 groups of 33 rows and six columns; in 1% of the rows, two columns have the level of
            another group
small       four panels of 181 to 595 groups with 7 to 9 rows, swapped as the tables are
noise       diamonds, 50,000 rows, 1% of them swapped: exact counts, and their release at epsilon 1,
            delta 1e-6, under a plan that was drawn for the release, either without knowing the rows
            or by marginals that were released before within that epsilon
night       8,000 visits by day, 1% of them between one and four at night; time= against the
            timestamp as a number
relations   6,000 rows of 14 and of 16 columns that follow from three factors; in 1% of the rows,
            two columns have the values of other rows. Named: the column that `explain` blames most
            is one of the two, in planted rows among the 60 lowest. Released: marginals, pairs of
            columns, and tables, together at epsilon 1, delta 1e-6
speed       100,000 rows of 11 columns: time of fit and of scores, as multiples of the times of one
            pass without a context
panels      readings over time (see `contexts_panels` for them and for the columns)
"""

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.errors import DataError
from hushtable_bench.cases import contexts_panels as panels
from hushtable_bench.cases.contexts_peers import (
    DEFAULT,
    METHODS,
    OURS,
    RESIDUAL,
    ContextMethod,
    available_methods,
    hushtable_scores,
)
from hushtable_bench.cases.contexts_tables import (
    INJECTIONS,
    PANELS,
    SOURCES,
    ContextTable,
    PublicFiles,
    is_number,
    load_tables,
    swap,
)
from hushtable_bench.data import auc, auc_and_ap
from hushtable_bench.results import ResultTable
from hushtable_bench.runner import CaseRun, progress

#: Rows of a table at most.
ROWS, QUICK_ROWS = 2_000, 300
#: The first seed of tables: the settings of contexts were chosen on other draws.
FIRST_SEED = 20
QUICK_TABLES = ("wine", "diabetes")
#: Wards by number of rows; more seeds than elsewhere, because small wards have few planted rows.
MORE_SEEDS = 2
WARDS = {5: 40, 10: 30, 20: 20, 40: 12, 80: 8, 160: 5, 320: 3, 640: 2}
NEAR_GROUP = "nearest neighbours per group"
NOISY_ROWS, EPSILON, DELTA = 50_000, 1.0, 1e-6
RELEASED = f"released at epsilon {EPSILON:g}"
NO_MARGINALS, MARGINALS = "plan for a release", "the same, by released marginals"

#: Least mean ROC-AUC and average precision, for tables by injection and for the other parts.
TABLE_TARGETS = {"swap": (0.90, 0.58), "Song": (0.99, 0.91)}
SMALL_TARGET = (0.90, 0.50)
SIZE_TARGET, MANY_TARGET, NOISE_TARGET = 0.95, 0.80, 0.01
NIGHT_TARGET, RELATIONS_TARGET, NAMED_TARGET = (0.99, 0.45), (0.97, 0.85), 0.90
#: Most times of fit and scores, as multiples of those without a context, and the timed contexts.
FIT_TARGET, SCORE_TARGET = 1.3, 1.2
TIMED = {"categories": ["kind"], "a number": ["c0"], "both, and a number": ["kind", "c0", "c1"]}
#: By panel: HushTable's columns, and ROC-AUC and average precision. The columns for the series were
#: chosen on the series themselves.
PANEL_TARGETS = {
    "synthetic": ("entity=", 0.88, 0.30),
    "tweets": ("entity=", 0.84, 0.25),
    "series of NAB": ("entity=, mean of 12", 0.60, 0.19),
}

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class ContextFigure:
    """Accuracy of a method on some rows; means over seeds."""

    data: str
    method: str
    auc: float
    ap: float


def mean_figure(data: str, method: str, judged: Iterable[Mapping[str, float]]) -> ContextFigure:
    """Average the figures of `auc_and_ap`."""
    found = list(judged)
    auc_of, ap_of = (statistics.fmean(one[key] for one in found) for key in ("auc", "ap"))
    return ContextFigure(data, method, auc_of, ap_of)


def say_figures(run: CaseRun, title: str, figures: Sequence[ContextFigure]) -> None:
    run.say(title)
    columns = {"data": "{t.data}", "method": "{t.method}"}
    run.table(
        columns | {"ROC-AUC": "{t.auc:.3f}", "AP": "{t.ap:.3f}"}, figures, text=2
    )  # fmt: skip


def hold_both(
    run: CaseRun, claim: str, figure: ContextFigure | panels.PanelFigure, least: Sequence[float]
) -> None:
    """Compare ROC-AUC and average precision with their targets."""
    run.hold(f"{claim}: ROC-AUC", figure.auc, ">=", least[0])
    run.hold(f"{claim}: average precision", figure.ap, ">=", least[1])


# --- tables ---------------------------------------------------------------------------------------


def judge_tables(
    tables: Sequence[ContextTable],
    kind: str,
    methods: Mapping[str, ContextMethod],
    seeds: Iterable[int],
) -> list[ContextFigure]:
    """Judge each method on each table with one kind of anomalies."""
    found = []
    for table in tables:
        progress(f"{kind}: {table.name}")
        planted = [(seed, *INJECTIONS[kind](table, seed)) for seed in seeds]
        for name, method in methods.items():
            judged = [auc_and_ap(y, method(rows, seed)) for seed, rows, y in planted]
            found.append(mean_figure(table.name, name, judged))
    return found


def means_by_method(figures: Sequence[ContextFigure]) -> list[ContextFigure]:
    """Average over the tables."""
    found = []
    for name in dict.fromkeys(figure.method for figure in figures):
        ours = [vars(figure) for figure in figures if figure.method == name]
        found.append(mean_figure(f"{len(ours)} tables", name, ours))
    return found


def table_of_tables(figures: Sequence[ContextFigure]) -> ResultTable:
    """Lay out a row for each method and a column for each table: ROC-AUC / AP."""
    names = list(dict.fromkeys(figure.data for figure in figures))
    cells = {(f.method, f.data): f"{f.auc:.2f} / {f.ap:.2f}" for f in figures}
    lines = [
        (method, *(cells[method, name] for name in names))
        for method in dict.fromkeys(figure.method for figure in figures)
    ]
    return ResultTable(("ROC-AUC / AP", *names), lines)


def measure_tables(run: CaseRun, files: PublicFiles, seeds: int, quick: bool) -> None:
    names, rows = (QUICK_TABLES, QUICK_ROWS) if quick else (tuple(SOURCES), ROWS)
    tables = load_tables(files, rows, names)
    for kind, least in TABLE_TARGETS.items():
        figures = judge_tables(
            tables, kind, available_methods(), range(FIRST_SEED, FIRST_SEED + seeds)
        )
        means = means_by_method(figures)
        say_figures(run, f"Tables with contexts, {kind}: means over {len(tables)} tables.", means)
        run.say(table_of_tables(figures))
        run.figures[f"tables, {kind}"] = figures
        ours = next(figure for figure in means if figure.method == OURS)
        if not quick:
            hold_both(run, f"{len(tables)} tables, {kind}, {OURS}", ours, least)


# --- groups ---------------------------------------------------------------------------------------


def wards(seed: int) -> tuple[ContextTable, NDArray[np.int64]]:
    """Draw rows of wards, and the size of each row's ward."""
    rng, columns = np.random.default_rng(seed), 6
    sizes = np.repeat(list(WARDS), list(WARDS.values()))
    factors, parts = rng.normal(size=(columns, 3)), []
    for size in sizes:
        mean, spread = rng.normal(size=columns) * 1.5, np.exp(rng.normal(size=columns) * 0.4)
        common, own = rng.normal(size=(size, 3)), rng.normal(size=(size, columns))
        parts.append(mean + spread * (0.6 * common @ factors.T + 0.5 * own))
    frame = pd.DataFrame(np.vstack(parts), columns=[f"b{j}" for j in range(columns)])
    behaviour = list(frame.columns)
    frame["ward"] = [f"w{i}" for i in np.repeat(np.arange(len(sizes)), sizes)]
    return ContextTable("wards", frame, ["ward"], behaviour), np.repeat(sizes, sizes)


def with_other_behaviour(table: ContextTable, seed: int) -> tuple[ContextTable, Flags]:
    """Give 3% of the rows the behaviour of a row of another group."""
    rng, groups = np.random.default_rng(seed + 9), table.groups()
    old = table.frame[table.behaviour].to_numpy(float)
    new, n = old.copy(), len(old)
    rows = rng.choice(n, n * 3 // 100, replace=False)
    for row in rows:
        new[row] = old[rng.choice(np.flatnonzero(groups != groups[row]))]
    return table.with_behaviour(new), np.isin(np.arange(n), rows)


def judge_sizes(method: ContextMethod, seeds: int) -> dict[str, float]:
    """Return ROC-AUC within wards of each size, and of all: means over seeds that have some."""
    found: dict[str, list[float]] = {name: [] for name in (*map(str, WARDS), "all")}
    for seed in range(seeds):
        table, sizes = wards(seed)
        rows, planted = with_other_behaviour(table, seed)
        scores = method(rows, seed)
        for size in WARDS:
            if planted[sizes == size].any():
                found[str(size)].append(auc(planted[sizes == size], scores[sizes == size]))
        found["all"].append(auc(planted, scores))
    return {size: statistics.fmean(figures) for size, figures in found.items() if figures}


def measure_groups(run: CaseRun, seeds: int, quick: bool) -> None:
    names = (OURS, DEFAULT) if quick else (OURS, DEFAULT, RESIDUAL, NEAR_GROUP)
    found = {}
    for name in names:
        progress(f"groups: {name}")
        found[name] = judge_sizes(METHODS[name], seeds)
    run.say("Wards of 5 to 640 rows: ROC-AUC within wards of a size.")
    header = ("method", *found[OURS])
    lines = [(name, *(f"{x:.3f}" for x in sizes.values())) for name, sizes in found.items()]
    run.say(ResultTable(header, lines))
    run.figures["groups"] = found
    if not quick:
        least, size = min((figure, size) for size, figure in found[OURS].items() if size != "all")
        claim = f"groups, {OURS}: ROC-AUC at the worst size ({size})"
        run.hold(claim, least, ">=", SIZE_TARGET, ".3f")


def many_groups(seed: int, groups: int = 300, each: int = 33) -> tuple[ContextTable, Flags]:
    """Draw groups with levels of their own; two columns of 1% of the rows have another's."""
    rng, columns = np.random.default_rng(seed), 6
    levels, n = rng.normal(size=(groups, columns)), groups * each
    group = np.repeat(np.arange(groups), each)
    X = levels[group] + rng.normal(0, 0.15, (n, columns))
    rows = rng.choice(n, n // 100, replace=False)
    for row in rows:
        other = (group[row] + rng.integers(1, groups)) % groups
        for j in rng.choice(columns, 2, replace=False):
            X[row, j] = levels[other, j] + rng.normal(0, 0.15)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(columns)])
    behaviour = list(frame.columns)
    frame["ward"] = [f"w{i}" for i in group]
    return ContextTable("groups", frame, ["ward"], behaviour), np.isin(np.arange(n), rows)


def measure_many(run: CaseRun, seeds: int, quick: bool) -> None:
    sizes = (30, 33) if quick else (300, 33)
    data = f"{sizes[0]} groups of {sizes[1]} rows"
    drawn = [many_groups(seed, *sizes) for seed in range(seeds)]
    figures = []
    for name in (OURS, DEFAULT, RESIDUAL, NEAR_GROUP):
        progress(f"{data}: {name}")
        judged = [auc_and_ap(y, METHODS[name](table, 0)) for table, y in drawn]
        figures.append(mean_figure(data, name, judged))
    say_figures(run, "Many small groups.", figures)
    run.figures["many"] = figures
    if not quick:
        run.hold(f"{data}, {OURS}: average precision", figures[0].ap, ">=", MANY_TARGET, ".3f")


def measure_small(run: CaseRun, files: PublicFiles, seeds: int, quick: bool) -> None:
    tables = [] if quick else load_tables(files, 10_000, tuple(PANELS), PANELS)
    if not tables:
        return
    methods = {name: METHODS[name] for name in (OURS, DEFAULT, RESIDUAL, NEAR_GROUP)}
    figures = judge_tables(tables, "swap", methods, range(FIRST_SEED, FIRST_SEED + seeds))
    means = means_by_method(figures)
    say_figures(run, f"Panels of small groups: means over {len(tables)} panels.", means)
    run.say(table_of_tables(figures))
    run.figures["small"] = figures
    ours = next(figure for figure in means if figure.method == OURS)
    hold_both(run, f"{len(tables)} panels of small groups, {OURS}", ours, SMALL_TARGET)


# --- noise ----------------------------------------------------------------------------------------


def public_schema(table: ContextTable) -> Schema:
    """Return the schema with the data's own ranges, as if they were public."""
    features = []
    for column in table.frame.columns:
        values = table.frame[column]
        if is_number(values):
            limits = float(values.min()), float(values.max())
            features.append(Feature.numeric(column, low=limits[0], high=limits[1]))
        else:
            features.append(Feature.categorical(column, sorted(values.unique())))
    return Schema(tuple(features))


def models_of_counts(table: ContextTable, seed: int) -> dict[str, HushTable]:
    """Fit a model as usual, and make models of counts under two plans, exact and released."""
    schema = public_schema(table)
    terms: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "expected_rows": len(table.frame)}
    first = Sketch.from_data(Plan.marginals(schema, **terms), table.frame).release(EPSILON, DELTA)
    models = {OURS: HushTable(context=table.context, random_state=seed).fit(table.frame)}
    for title, marginals in ((NO_MARGINALS, None), (MARGINALS, first)):
        plan = Plan.draw(
            schema, context=table.context, marginals=marginals, random_state=seed, **terms
        )
        exact = Sketch.from_data(plan, table.frame)
        models[f"{title}, exact"] = HushTable.from_counts(exact)
        models[f"{title}, {RELEASED}"] = HushTable.from_counts(exact.release(EPSILON, DELTA))
    return models


def measure_noise(run: CaseRun, files: PublicFiles, seeds: int, quick: bool) -> None:
    tables = [wards(0)[0]] if quick else load_tables(files, NOISY_ROWS, ["diamonds"])
    if not tables:
        return
    (table,) = tables
    judged: dict[str, list[dict[str, float]]] = {}
    for seed in range(seeds):
        progress(f"noise: seed {seed}")
        planted, y = swap(table, seed, share=0.01)
        for title, model in models_of_counts(planted, seed).items():
            scores = model.score_samples(planted.frame)
            judged.setdefault(title, []).append(auc_and_ap(y, scores))
    data = f"{table.name}, {len(table.frame):,} rows"
    figures = {title: mean_figure(data, title, found) for title, found in judged.items()}
    say_figures(run, "Counts with contexts, and their releases.", list(figures.values()))
    run.figures["noise"] = judged
    if not quick:
        for plan in (NO_MARGINALS, MARGINALS):
            lost = figures[f"{plan}, exact"].auc - figures[f"{plan}, {RELEASED}"].auc
            run.hold(f"noise, {plan}: ROC-AUC lost by the release", lost, "<=", NOISE_TARGET)


# --- times and relations --------------------------------------------------------------------------


def visits(seed: int, n: int) -> tuple[pd.DataFrame, Flags]:
    """Draw visits by day, with 1% at night."""
    rng = np.random.default_rng(seed)
    days = np.datetime64("2026-01-01") + rng.integers(0, 300, n).astype("timedelta64[D]")
    hours = np.clip(rng.normal(13, 2.5, n), 6, 21)
    rows = rng.choice(n, n // 100, replace=False)
    hours[rows] = rng.uniform(1, 4, len(rows))
    at = days.astype("datetime64[s]") + (hours * 3600).astype("timedelta64[s]")
    amount, items = rng.lognormal(3, 0.5, n), rng.integers(1, 9, n)
    frame = pd.DataFrame({"at": at, "amount": amount, "items": items})
    return frame, np.isin(np.arange(n), rows)


def measure_night(run: CaseRun, seeds: int, quick: bool) -> None:
    n = 1_000 if quick else 8_000
    drawn = [visits(seed, n) for seed in range(seeds)]
    options: dict[str, dict[str, Any]] = {"HushTable(time=)": {"time": "at"}, "HushTable": {}}
    figures = [
        mean_figure(
            f"{n:,} visits", name,
            (auc_and_ap(y, hushtable_scores(frame, 0, **given)) for frame, y in drawn),
        )
        for name, given in options.items()
    ]  # fmt: skip
    say_figures(run, "Visits at night.", figures)
    run.figures["night"] = figures
    if not quick:
        hold_both(run, "night, HushTable(time=)", figures[0], NIGHT_TARGET)


def bound_rows(n: int, columns: int, seed: int) -> tuple[Floats, Flags, dict[int, set[int]]]:
    """Draw rows that follow from three factors, and the columns changed in each planted row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, columns))
    X += 0.15 * rng.normal(size=(n, columns))
    rows, changed = rng.choice(n, n // 100, replace=False), {}
    for row in rows:
        both = rng.choice(columns, 2, replace=False)
        changed[int(row)] = {int(j) for j in both}
        for j in both:
            X[row, j] = X[rng.integers(n), j]
    return X, np.isin(np.arange(n), rows), changed


def released_relations(X: Floats, epsilon: float) -> Floats:
    """Score rows by released tables, whose columns are judged by released relations."""
    features = [Feature.numeric(f"x{j}", low=-12, high=12) for j in range(X.shape[1])]
    schema = Schema(tuple(features), named=False)
    terms: dict[str, Any] = {"epsilon": epsilon, "expected_rows": 6_000}
    budget = epsilon, DELTA
    marginals = Sketch.from_data(Plan.marginals(schema, **terms), X).release(*budget)
    pairs = Sketch.from_data(Plan.relations(marginals), X).release(*budget)
    plan = Plan.draw(pairs.relations(marginals), random_state=0, **terms)
    return HushTable.from_counts(Sketch.from_data(plan, X).release(*budget)).score_samples(X)


def measure_relations(run: CaseRun, seeds: int, quick: bool) -> None:
    n, epsilon = (1_000, 10.0) if quick else (6_000, EPSILON)
    judged: list[dict[str, float]] = []
    without: list[dict[str, float]] = []
    released: list[dict[str, float]] = []
    named: list[bool] = []
    for seed in range(seeds):
        for columns in (14, 16):
            X, y, changed = bound_rows(n, columns, seed)
            model = HushTable(relations=True, random_state=0).fit(X)
            scores = model.score_samples(X)
            judged.append(auc_and_ap(y, scores))
            without.append(auc_and_ap(y, hushtable_scores(X, 0)))
            lowest = [int(row) for row in scores.argsort()[: y.sum()] if y[row]]
            blamed = model.explain(X[lowest]).argmax(axis=1)
            named += [int(j) in changed[row] for row, j in zip(lowest, blamed, strict=True)]
            released.append(auc_and_ap(y, released_relations(X, epsilon)))
    data, share = f"{n:,} rows", float(np.mean(named))
    figures = [
        mean_figure(data, "HushTable(relations=True)", judged),
        mean_figure(data, "HushTable", without),
        mean_figure(data, f"relations, released at epsilon {epsilon:g}", released),
    ]
    say_figures(run, "Columns that depend on others.", figures)
    run.say(f"A changed column is named first in {share:.1%} of {len(named)} planted rows.")
    run.figures["relations"] = {"figures": figures, "named": share}
    if not quick:
        hold_both(run, "relations, HushTable(relations=True)", figures[0], RELATIONS_TARGET)
        run.hold("relations: a changed column is named first", share, ">=", NAMED_TARGET, ".3f")


# --- speed ----------------------------------------------------------------------------------------


def timed(model: HushTable, frame: pd.DataFrame) -> tuple[float, float]:
    """Return the seconds of a fit and of scores."""
    before = time.perf_counter()
    model.fit(frame)
    between = time.perf_counter()
    model.score_samples(frame)
    return between - before, time.perf_counter() - between


def measure_speed(run: CaseRun, quick: bool) -> None:
    n, rng = 2_000 if quick else 100_000, np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 10)), columns=[f"c{j}" for j in range(10)])
    frame["kind"] = rng.choice(list("abcdefghij"), n)
    models = {name: HushTable(context=given, random_state=0) for name, given in TIMED.items()}
    plain, ratios = HushTable(passes=1, random_state=0), {}
    for name, model in models.items():
        timed(model, frame), timed(plain, frame)  # the first use compiles and loads
        pairs = [np.divide(timed(model, frame), timed(plain, frame)) for _ in range(9)]
        ratios[name] = np.median(pairs, axis=0).tolist()
    run.say(f"Times of {n:,} rows of 11 columns, as multiples of one pass without a context.")
    lines = [(name, f"{fit:.2f}", f"{score:.2f}") for name, (fit, score) in ratios.items()]
    run.say(ResultTable(("context", "fit", "score"), lines))
    run.figures["speed"] = ratios
    if not quick:
        for name, (fit, score) in ratios.items():
            run.hold(f"speed, {name}: fit", fit, "<=", FIT_TARGET)
            run.hold(f"speed, {name}: score", score, "<=", SCORE_TARGET)


# --- panels ---------------------------------------------------------------------------------------


def judge_series(files: PublicFiles) -> list[panels.PanelFigure]:
    """Judge each choice of columns by the mean over NAB's series, with a detector for each."""
    series = [panel for _, panel in panels.windowed_series(files)]
    return panels.judge_panels("series of NAB", series, panels.CHOICES)


def measure_panels(run: CaseRun, files: PublicFiles, seeds: int, quick: bool) -> None:
    def planted(make: Callable[[int], pd.DataFrame]) -> list[panels.PlantedPanel]:
        return [panels.PanelInjection(make(seed), seed).planted() for seed in range(seeds)]

    progress("panels: synthetic")
    found = panels.judge_panels("synthetic", planted(panels.synthetic_panel), panels.CHOICES)
    if not quick:
        try:
            progress("panels: tweets, and series of NAB")
            hourly = planted(lambda _: panels.tweets(files))
            found += panels.judge_panels("tweets", hourly, panels.CHOICES)
            found += judge_series(files)
        except DataError as error:
            progress(f"without tweets or series of NAB: {error}")
    run.say("Readings over time: ROC-AUC and AP of all, ROC-AUC by kind of anomaly.")
    columns = {"panel": "{t.panel}", "columns": "{t.columns}", "ROC-AUC": "{t.auc:.3f}"}
    columns |= {"AP": "{t.ap:.3f}", "by kind": "{t.kinds}"}
    run.table(columns, found, text=2)
    run.figures["panels"] = found
    for figure in found:
        chosen, *least = PANEL_TARGETS[figure.panel]
        if figure.columns == chosen and not quick:
            hold_both(run, f"{figure.panel}, {chosen}", figure, least)


def contexts(
    run: CaseRun, *, data: Path | None = None, seeds: int = 3, quick: bool = False
) -> None:
    """Find rows that are unusual for their context: ten minutes; --quick, small rows in seconds.

    Files of seaborn-data and NAB are read from FOLDER/seaborn-data and FOLDER/NAB of --data, and
    fetched once if they are missing; --quick needs none. Methods and tables whose library is not
    installed are left out.
    """
    files = PublicFiles(data)
    if quick:
        seeds = 1
    measure_tables(run, files, seeds, quick)
    measure_groups(run, 1 if quick else seeds + MORE_SEEDS, quick)
    measure_many(run, seeds, quick)
    measure_small(run, files, seeds, quick)
    measure_noise(run, files, seeds, quick)
    measure_night(run, seeds, quick)
    measure_relations(run, seeds, quick)
    measure_speed(run, quick)
    measure_panels(run, files, seeds, quick)
