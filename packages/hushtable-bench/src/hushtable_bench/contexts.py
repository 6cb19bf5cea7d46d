"""Measure what contexts and relations find that a row's columns do not show.

Anomalies are planted, and every method judges the rows that it was fitted to.

tables      fifteen real tables with natural contexts, at most 2,000 rows of each; 3% of the rows
            (ten at least) are changed. Swap: two rows with different contexts exchange their
            behaviour. Song: a row takes the behaviour of the farthest of 50 random rows (Song et
            al., *Conditional anomaly detection*, 2007). Contexts differ if their categories or the
            quarters of their numbers differ.
groups      120 wards of 5 to 640 rows with different means and spreads; 3% of the rows have the
            behaviour of a row of another ward; ROC-AUC within wards of each size
relations   6,000 rows of 14 and of 16 columns that follow from three factors; in 1% of the rows,
            two columns have the values of other rows

The method *residual* judges, by HushTable, the difference of each column from a regression on the
context, divided by the usual size of such differences in the context. It, IsolationForest, and
nearest neighbours get contexts as numbers, with one column for each category. Groups with fewer
than 20 rows are pooled. All scores are low for outliers.
"""

import itertools
import statistics
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import NearestNeighbors

from hushtable import HushTable
from hushtable.cli.result import CommandResult
from hushtable.errors import DataError
from hushtable_bench.data import auc, auc_and_ap, fetch
from hushtable_bench.results import ResultTable
from hushtable_bench.runner import FOLDER, CaseRun, progress

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# --- tables ---------------------------------------------------------------------------------------

#: Collections: the address that they are fetched from, and the digest of each file.
COLLECTIONS = tomllib.loads(Path(__file__).with_name("contexts.toml").read_text("utf-8"))
#: Share of the rows that anomalies are planted into, and how many they are at least.
SHARE, LEAST = 0.03, 10
#: Random rows; Song's anomalies take the farthest of them.
CANDIDATES = 50
#: Up to this number of distinct numbers, each is a context; of more, the quarters are.
DISTINCT = 8


@dataclass(frozen=True)
class PublicFiles:
    """Public files, in a folder or fetched once to the user's cache."""

    folder: Path | None = None

    def path(self, collection: str, name: str) -> Path:
        """Return the path of a file: below ``FOLDER/collection`` if it is there."""
        if self.folder is not None and (near := self.folder / collection / name).is_file():
            return near
        which = COLLECTIONS[collection]
        return fetch(which["url"] + name, which["files"][name])

    def seaborn(self, name: str, **options: Any) -> pd.DataFrame:
        return pd.read_csv(self.path("seaborn-data", f"{name}.csv"), **options)


@dataclass(frozen=True)
class ContextTable:
    """Rows whose columns say what a row is compared with, or how it behaves there."""

    name: str
    frame: pd.DataFrame
    context: list[str]
    behaviour: list[str]

    @property
    def standardized(self) -> Floats:
        """Behaviour with mean 0 and standard deviation 1."""
        values = self.frame[self.behaviour].to_numpy(float)
        return (values - values.mean(axis=0)) / (values.std(axis=0) + 1e-12)

    def groups(self) -> NDArray[np.int64]:
        """Return the number of each row's context (n,)."""
        names = pd.Series("", index=self.frame.index)
        for column in self.context:
            values = self.frame[column]
            if is_number(values) and values.nunique() > DISTINCT:
                values = pd.qcut(values.rank(method="first"), 4, labels=False)
            names = names + "|" + values.astype(str)
        return pd.factorize(names)[0].astype(np.int64)

    def with_behaviour(self, values: Floats) -> "ContextTable":
        frame = self.frame.copy()
        frame[self.behaviour] = values
        return replace(self, frame=frame)


def is_number(values: "pd.Series[Any]") -> bool:
    return bool(values.dtype.kind in "if")


def _mpg(files: PublicFiles) -> pd.DataFrame:
    frame = files.seaborn("mpg")
    return frame.assign(cylinders=frame["cylinders"].astype(str))


def _taxis(files: PublicFiles) -> pd.DataFrame:
    frame = files.seaborn("taxis", parse_dates=["pickup", "dropoff"])
    minutes = (frame["dropoff"] - frame["pickup"]).dt.total_seconds() / 60
    return frame.assign(minutes=minutes, hour=frame["pickup"].dt.hour)


def _fmri(files: PublicFiles) -> pd.DataFrame:
    frame = files.seaborn("fmri").astype({"timepoint": float})
    index = ["subject", "timepoint", "event"]
    return frame.pivot_table(index=index, columns="region", values="signal").reset_index()


def _nyc_taxi(files: PublicFiles) -> pd.DataFrame:
    """Return counts by half an hour, and their differences from the last and the fourth last."""
    path = files.path("NAB", "data/realKnownCause/nyc_taxi.csv")
    frame = pd.read_csv(path, parse_dates=["timestamp"])
    at, value = frame["timestamp"].dt, frame["value"]
    return frame.assign(
        hour=at.hour + at.minute / 60, day=at.day_name(), change=value.diff(), change4=value.diff(4)
    )


def _of_statsmodels(name: str) -> pd.DataFrame:
    import statsmodels.api as sm

    return getattr(sm.datasets, name).load_pandas().data


def _elnino(_: PublicFiles) -> pd.DataFrame:
    frame = _of_statsmodels("elnino").melt("YEAR", var_name="month", value_name="temperature")
    return frame.assign(last_year=frame.groupby("month", sort=False)["temperature"].shift(1))


def _modechoice(_: PublicFiles) -> pd.DataFrame:
    frame = _of_statsmodels("modechoice")
    return frame.assign(mode="m" + frame["mode"].astype(int).astype(str))


def _of_sklearn(name: str, columns: slice = slice(None)) -> pd.DataFrame:
    """Return features x0, x1, ..., and the class, which is the context."""
    import sklearn.datasets

    bunch = getattr(sklearn.datasets, f"load_{name}")()
    X = bunch.data[:, columns]
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    return frame.assign(kind="k" + pd.Series(bunch.target).astype(str))


def _diabetes(_: PublicFiles) -> pd.DataFrame:
    import sklearn.datasets

    frame = sklearn.datasets.load_diabetes(as_frame=True).data
    return frame.assign(sex=np.where(frame["sex"] > 0, "a", "b"))


@dataclass(frozen=True)
class TableSource:
    """Where a table comes from, and its columns, separated by blanks."""

    read: Callable[[PublicFiles], pd.DataFrame]
    context: str
    behaviour: str

    def load(self, name: str, files: PublicFiles, rows: int) -> ContextTable:
        """Read the complete rows: a random subset if there are more than ``rows``."""
        context, behaviour = self.context.split(), self.behaviour.split()
        frame = self.read(files)[context + behaviour].dropna().reset_index(drop=True)
        if len(frame) > rows:
            frame = frame.sample(rows, random_state=0).reset_index(drop=True)
        texts = [column for column in context if not is_number(frame[column])]
        kinds = dict.fromkeys(behaviour, float) | dict.fromkeys(texts, str)
        return ContextTable(name, frame.astype(kinds), context, behaviour)


def _features(number: int) -> str:
    return " ".join(f"x{j}" for j in range(number))


SOURCES = {
    "diamonds": TableSource(
        lambda files: files.seaborn("diamonds"), "carat cut color clarity",
        "depth table price x y z",
    ),
    "mpg": TableSource(
        _mpg, "cylinders origin model_year", "mpg displacement horsepower weight acceleration"
    ),
    "penguins": TableSource(
        lambda files: files.seaborn("penguins"), "species sex",
        "bill_length_mm bill_depth_mm flipper_length_mm body_mass_g",
    ),
    "taxis": TableSource(
        _taxis, "distance pickup_borough dropoff_borough payment hour", "fare tip tolls minutes"
    ),
    "healthexp": TableSource(
        lambda files: files.seaborn("healthexp"), "Year Country", "Spending_USD Life_Expectancy"
    ),
    "fmri": TableSource(_fmri, "timepoint event", "frontal parietal"),
    "nyc_taxi": TableSource(_nyc_taxi, "hour day", "value change change4"),
    "elnino": TableSource(_elnino, "month", "temperature last_year"),
    "grunfeld": TableSource(lambda _: _of_statsmodels("grunfeld"), "firm", "invest value capital"),
    "fair": TableSource(
        lambda _: _of_statsmodels("fair"), "age educ",
        "yrs_married children religious occupation rate_marriage",
    ),
    "modechoice": TableSource(_modechoice, "mode", "ttme invc invt gc"),
    "diabetes": TableSource(_diabetes, "age sex bmi", "bp s1 s2 s3 s4 s5 s6"),
    "digits": TableSource(
        lambda _: _of_sklearn("digits", slice(1, None, 4)), "kind", _features(16)
    ),
    "wine": TableSource(lambda _: _of_sklearn("wine"), "kind", _features(13)),
    "breast": TableSource(
        lambda _: _of_sklearn("breast_cancer", slice(20)), "kind", _features(20)
    ),
}  # fmt: skip


def load_tables(
    files: PublicFiles, rows: int, names: Collection[str] = tuple(SOURCES)
) -> list[ContextTable]:
    """Load tables, the smallest first; print which are left out because something is missing."""
    tables = []
    for name in names:
        try:
            tables.append(SOURCES[name].load(name, files, rows))
        except (DataError, ImportError) as error:
            progress(f"without {name}: {error}")
    return sorted(tables, key=lambda table: len(table.frame))


def swap(table: ContextTable, seed: int, share: float = SHARE) -> tuple[ContextTable, Flags]:
    """Exchange the behaviour of pairs of rows with different contexts."""
    rng, n = np.random.default_rng(seed), len(table.frame)
    groups, planted = table.groups(), np.zeros(n, bool)
    old = table.frame[table.behaviour].to_numpy(float)
    new, wanted = old.copy(), max(LEAST, int(share * n))
    left = list(rng.permutation(n)[: 2 * wanted])
    while len(left) > 1 and planted.sum() < wanted:
        row = left.pop()
        others = np.flatnonzero(groups[left] != groups[row])
        if not len(others):
            break
        other = left.pop(int(rng.choice(others)))
        new[row], new[other] = old[other], old[row]
        planted[[row, other]] = True
    return table.with_behaviour(new), planted


def song(table: ContextTable, seed: int, share: float = SHARE) -> tuple[ContextTable, Flags]:
    """Give rows the behaviour of the farthest of some random rows."""
    rng, n = np.random.default_rng(seed), len(table.frame)
    old, places = table.frame[table.behaviour].to_numpy(float), table.standardized
    new = old.copy()
    rows = rng.choice(n, max(LEAST, int(share * n)), replace=False)
    for row in rows:
        others = rng.choice(n, min(CANDIDATES, n // 4), replace=False)
        distances = ((places[others] - places[row]) ** 2).sum(axis=1)
        new[row] = old[others[distances.argmax()]]
    return table.with_behaviour(new), np.isin(np.arange(n), rows)


INJECTIONS = {"swap": swap, "Song": song}


# --- methods --------------------------------------------------------------------------------------

DEFAULT = "HushTable, all columns"
OURS, RESIDUAL = "HushTable(context=)", "residual, then HushTable"
#: Least rows of a group that is judged alone, and of a group that is judged at all.
ALONE, JUDGED = 20, 8
NEIGHBOURS = 6  # the row itself is one of them
#: From a table and a seed to scores that are low for outliers (n,).
ContextMethod = Callable[[ContextTable, int], Floats]


def coded(table: ContextTable) -> Floats:
    """Return the context as numbers: standardized, and 0 or 1 for each category."""
    blocks = []
    for column in table.context:
        values = table.frame[column]
        if is_number(values):
            numbers = values.to_numpy(float)[:, np.newaxis]
            blocks.append((numbers - numbers.mean()) / (numbers.std() + 1e-12))
        else:
            blocks.append(pd.get_dummies(values).to_numpy(float))
    return np.hstack(blocks)


def all_numbers(table: ContextTable) -> Floats:
    return np.hstack([table.standardized, coded(table)])


def hushtable_scores(rows: Any, seed: int, **options: Any) -> Floats:
    return HushTable(random_state=seed, **options).fit(rows).score_samples(rows)


def with_context(table: ContextTable, seed: int) -> Floats:
    return hushtable_scores(table.frame, seed, context=table.context)


def all_columns(table: ContextTable, seed: int) -> Floats:
    return hushtable_scores(table.frame, seed)


def by_group(table: ContextTable, judge: Callable[[NDArray[np.intp]], Floats]) -> Floats:
    """Judge the rows of each group alone, and the rows of all small groups together."""
    groups, scores = table.groups(), np.zeros(len(table.frame))
    pooled = np.where(np.bincount(groups)[groups] < ALONE, -1, groups)
    for group in np.unique(pooled):
        rows = np.flatnonzero(pooled == group)
        if len(rows) >= JUDGED:
            scores[rows] = judge(rows)
    return scores


def hats(values: Floats, knots: int = 8) -> Floats:
    """Return functions that are linear between quantiles: 1 at one of them, 0 at the others."""
    places = np.unique(np.quantile(values, np.linspace(0.0, 1.0, knots)))
    return np.column_stack([np.interp(values, places, unit) for unit in np.eye(len(places))])


def basis(table: ContextTable, most: int = 60) -> Floats:
    """Return a constant, functions of each context column, and products of two if these are few."""
    blocks = [
        hats(table.frame[column].to_numpy(float))
        if is_number(table.frame[column]) and table.frame[column].nunique() > 2
        else pd.get_dummies(table.frame[column].astype(str)).to_numpy(float)
        for column in table.context
    ]
    constant, n = np.ones((len(table.frame), 1)), len(table.frame)
    products = []
    if 1 + sum(block.shape[1] for block in blocks) < most:
        products = [
            (one[:, :, np.newaxis] * other[:, np.newaxis]).reshape(n, -1)
            for one, other in itertools.combinations(blocks, 2)
        ]
    return np.hstack([constant, *blocks, *products])


def ridge(M: Floats, Y: Floats, penalty: float, weights: Floats | None = None) -> Floats:
    """Predict Y by M; the first column of M, a constant, is not penalized."""
    weighted = M.T if weights is None else M.T * weights
    penalties = np.full(M.shape[1], penalty)
    penalties[0] = 1e-9
    predicted: Floats = M @ np.linalg.solve(weighted @ M + np.diag(penalties), weighted @ Y)
    return predicted


def differences(table: ContextTable) -> Floats:
    """Return behaviour minus its prediction, divided by the usual size of this difference (n, d).

    The usual size depends on the context. The second prediction leaves out the tenth of the rows
    that are farthest from the first one.
    """
    M, Y = basis(table), table.standardized
    first = np.abs(Y - ridge(M, Y, 5.0))
    worst = (first / (np.median(first, axis=0) + 1e-9)).max(axis=1)
    weights = (worst < np.quantile(worst, 0.9)).astype(float)
    left = Y - ridge(M, Y, 5.0, weights)
    sizes = np.minimum(np.abs(left), np.quantile(np.abs(left), 0.95, axis=0))
    usual = np.maximum(ridge(M, sizes, 20.0, weights), 0.1 * sizes.mean(axis=0))
    return left / usual


def residual(table: ContextTable, seed: int) -> Floats:
    return hushtable_scores(differences(table), seed)


def farthest_neighbour(X: Floats) -> Floats:
    nearest = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(X))).fit(X)
    return -nearest.kneighbors(X)[0][:, -1]


def neighbours(table: ContextTable, seed: int) -> Floats:
    return farthest_neighbour(all_numbers(table))


def neighbours_per_group(table: ContextTable, seed: int) -> Floats:
    behaviour = table.standardized
    return by_group(table, lambda rows: farthest_neighbour(behaviour[rows]))


def forest(table: ContextTable, seed: int) -> Floats:
    X = all_numbers(table)
    return IsolationForest(random_state=seed).fit(X).score_samples(X)


METHODS: dict[str, ContextMethod] = {
    OURS: with_context,
    DEFAULT: all_columns,
    RESIDUAL: residual,
    "IsolationForest, all columns": forest,
    "nearest neighbours, all columns": neighbours,
    "nearest neighbours per group": neighbours_per_group,
}


# --- measures -------------------------------------------------------------------------------------

#: Rows of a table at most.
ROWS, QUICK_ROWS = 2_000, 300
#: The first seed of tables: the settings of contexts were chosen on other draws.
FIRST_SEED = 20
QUICK_TABLES = ("wine", "diabetes")
#: Wards by number of rows; more seeds than elsewhere, because small wards have few planted rows.
MORE_SEEDS = 2
WARDS = {5: 40, 10: 30, 20: 20, 40: 12, 80: 8, 160: 5, 320: 3, 640: 2}


#: Least mean ROC-AUC and average precision, for tables by injection and for the other parts.
TABLE_TARGETS = {"swap": (0.90, 0.58), "Song": (0.99, 0.91)}
SIZE_TARGET = 0.95
RELATIONS_TARGET = (0.97, 0.85)


@dataclass(frozen=True)
class ContextFigure:
    """Accuracy of a method on some rows; means over seeds."""

    data: str
    method: str
    auc: float
    ap: float


def mean_figure(data: str, method: str, judged: Iterable[Mapping[str, float]]) -> ContextFigure:
    """Average the figures of `auc_and_ap`."""
    figures = list(judged)
    auc_of, ap_of = (statistics.fmean(figure[key] for figure in figures) for key in ("auc", "ap"))
    return ContextFigure(data, method, auc_of, ap_of)


def say_figures(run: CaseRun, title: str, figures: Sequence[ContextFigure]) -> None:
    run.say(title)
    columns = {"data": "{t.data}", "method": "{t.method}"}
    run.table(
        columns | {"ROC-AUC": "{t.auc:.3f}", "AP": "{t.ap:.3f}"}, figures, text=2
    )  # fmt: skip


def hold_both(run: CaseRun, claim: str, figure: ContextFigure, least: Sequence[float]) -> None:
    """Compare ROC-AUC and average precision with their targets."""
    run.hold(f"{claim}: ROC-AUC", figure.auc, ">=", least[0])
    run.hold(f"{claim}: average precision", figure.ap, ">=", least[1])


def judge_tables(
    tables: Sequence[ContextTable],
    kind: str,
    methods: Mapping[str, ContextMethod],
    seeds: Iterable[int],
) -> list[ContextFigure]:
    """Judge each method on each table with one kind of anomalies."""
    figures = []
    for table in tables:
        progress(f"{kind}: {table.name}")
        planted = [(seed, *INJECTIONS[kind](table, seed)) for seed in seeds]
        for name, method in methods.items():
            judged = [auc_and_ap(y, method(rows, seed)) for seed, rows, y in planted]
            figures.append(mean_figure(table.name, name, judged))
    return figures


def means_by_method(figures: Sequence[ContextFigure]) -> list[ContextFigure]:
    """Average over the tables."""
    means = []
    for name in dict.fromkeys(figure.method for figure in figures):
        ours = [vars(figure) for figure in figures if figure.method == name]
        means.append(mean_figure(f"{len(ours)} tables", name, ours))
    return means


def measure_tables(run: CaseRun, files: PublicFiles, seeds: int, quick: bool) -> None:
    names, rows = (QUICK_TABLES, QUICK_ROWS) if quick else (tuple(SOURCES), ROWS)
    tables = load_tables(files, rows, names)
    for kind, least in TABLE_TARGETS.items():
        figures = judge_tables(tables, kind, METHODS, range(FIRST_SEED, FIRST_SEED + seeds))
        means = means_by_method(figures)
        say_figures(run, f"Tables with contexts, {kind}: means over {len(tables)} tables.", means)
        ours = next(figure for figure in means if figure.method == OURS)
        if not quick:
            hold_both(run, f"{len(tables)} tables, {kind}, {OURS}", ours, least)


def wards(seed: int) -> tuple[ContextTable, NDArray[np.int64]]:
    """Draw rows of wards, and the size of each row's ward."""
    rng, columns = np.random.default_rng(seed), 6
    sizes = np.repeat(list(WARDS), list(WARDS.values()))
    factors, parts = rng.normal(size=(columns, 3)), []
    for size in sizes:
        mean, spread = rng.normal(size=columns) * 1.5, np.exp(rng.normal(size=columns) * 0.4)
        common, specific = rng.normal(size=(size, 3)), rng.normal(size=(size, columns))
        parts.append(mean + spread * (0.6 * common @ factors.T + 0.5 * specific))
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
    ranks: dict[str, list[float]] = {name: [] for name in (*map(str, WARDS), "all")}
    for seed in range(seeds):
        table, sizes = wards(seed)
        rows, planted = with_other_behaviour(table, seed)
        scores = method(rows, seed)
        for size in WARDS:
            if planted[sizes == size].any():
                ranks[str(size)].append(auc(planted[sizes == size], scores[sizes == size]))
        ranks["all"].append(auc(planted, scores))
    return {size: statistics.fmean(figures) for size, figures in ranks.items() if figures}


def measure_groups(run: CaseRun, seeds: int, quick: bool) -> None:
    names = (OURS, DEFAULT) if quick else (OURS, DEFAULT, RESIDUAL, "nearest neighbours per group")
    figures = {}
    for name in names:
        progress(f"groups: {name}")
        figures[name] = judge_sizes(METHODS[name], seeds)
    run.say("Wards of 5 to 640 rows: ROC-AUC within wards of a size.")
    header = ("method", *figures[OURS])
    lines = [(name, *(f"{x:.3f}" for x in sizes.values())) for name, sizes in figures.items()]
    run.say(ResultTable(header, lines))
    if not quick:
        least, size = min((figure, size) for size, figure in figures[OURS].items() if size != "all")
        claim = f"groups, {OURS}: ROC-AUC at the worst size ({size})"
        run.hold(claim, least, ">=", SIZE_TARGET, ".3f")


def bound_rows(n: int, columns: int, seed: int) -> tuple[Floats, Flags]:
    """Draw rows that follow from three factors, and plant rows with two changed columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, columns))
    X += 0.15 * rng.normal(size=(n, columns))
    rows = rng.choice(n, n // 100, replace=False)
    for row in rows:
        for j in rng.choice(columns, 2, replace=False):
            X[row, j] = X[rng.integers(n), j]
    return X, np.isin(np.arange(n), rows)


def measure_relations(run: CaseRun, seeds: int, quick: bool) -> None:
    n = 1_000 if quick else 6_000
    drawn = [bound_rows(n, columns, seed) for seed in range(seeds) for columns in (14, 16)]
    options: dict[str, dict[str, Any]] = {"relations=True": {"relations": True}, "": {}}
    figures = [
        mean_figure(
            f"{n:,} rows", f"HushTable({name})" if name else "HushTable",
            (auc_and_ap(y, hushtable_scores(X, 0, **given)) for X, y in drawn),
        )
        for name, given in options.items()
    ]  # fmt: skip
    say_figures(run, "Columns that depend on others.", figures)
    if not quick:
        hold_both(run, "relations, HushTable(relations=True)", figures[0], RELATIONS_TARGET)


def contexts(
    data: Path | None = None, seeds: int = 3, quick: bool = False, output: Path = FOLDER
) -> CommandResult:
    """Measure what contexts and relations find.

    Files of seaborn-data and NAB are fetched once if the folder lacks them. Tables whose library is
    not installed are left out. The whole takes five minutes.
    """
    run, files = CaseRun("contexts", output), PublicFiles(data)
    if quick:
        seeds = 1
    measure_tables(run, files, seeds, quick)
    measure_groups(run, 1 if quick else seeds + MORE_SEEDS, quick)
    measure_relations(run, seeds, quick)
    return run.finish()
