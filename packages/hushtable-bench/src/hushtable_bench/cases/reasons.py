"""Measure whether reasons and explanations name what is unusual, and what explanations cost.

`reasons` judges the reasons of lists. *Faithful*: the 20 lowest rows of six public tables. A reason
has to state what is unusual: the direction, the small share of rows, or the other column. The
strongest column of a row is the one whose value lies farthest from its mean in standard deviations;
for a text or a missing value, a column counts that is 1 in rows with it and 0 in others. A value
within one standard deviation must not be the first reason. Rows have to leave the list when the
named columns are repaired, by the median or the most frequent value of the table.

*Combinations*: values that are usual separately, but not together, planted into nine tables of
numbers: whether a pair is named, and whether it is right, which means that it has the changed
column and a column related to it. Strict: only pairs that are eight times rarer than expected
count.

Public tables are CSV files in FOLDER; a table whose file is absent is left out: diamonds and
midwest of ggplot2, birthwt of MASS, Hdma of Ecdat (R), cars and weather (seattle-weather) of
vega-datasets, mpg, penguins and taxis of seaborn-data, nyc_taxi of NAB. The other tables are
scikit-learn's and synthetic.

`explain` has 10,000 simulated rows of 20 features from three Gaussian clusters, so that the guilty
features are known. In one row in a hundred, 1, 2, or 3 features move: *far*, 5 to 8 standard
deviations of all rows from their mean; *near*, 4 to 5; *impossible*, 4 to 5 standard deviations of
its own cluster from that cluster's centre, often a common value in another cluster. "All on top":
the guilty features are those that the method blames most. "Precision": the share of guilty features
among as many.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn import datasets
from sklearn.ensemble import IsolationForest

from hushtable import HushTable, LSHiTables
from hushtable.scores.explain import Explainer
from hushtable.scores.reasons import CALM, RowPairs
from hushtable_bench.cases.speed import in_turns
from hushtable_bench.cases.workloads import normal_rows
from hushtable_bench.data import LabelledSet
from hushtable_bench.privacy import private_scorer
from hushtable_bench.results import ResultTable
from hushtable_bench.runner import CaseRun, data_folder, progress

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

# --- tables ---------------------------------------------------------------------------------------

#: Tables with texts, dates, and missing values; columns that are left out, and dates.
READ = ("diamonds", "cars", "weather", "Hdma", "midwest", "birthwt")
DROPPED, DATES = {"cars": ["Name"], "midwest": ["PID", "county"]}, ("Year", "date")
#: Tables of numbers in files of a folder, and columns of them.
NUMBERS = {
    "diamonds": ["depth", "table", "price", "x", "y", "z", "carat"],
    "mpg": ["mpg", "displacement", "horsepower", "weight", "acceleration", "model_year"],
    "penguins": ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"],
    "taxis": ["fare", "tip", "tolls", "minutes", "distance", "hour"],
    "nyc_taxi": ["value", "diff", "diff2", "hour"],
}
#: Rows of a table of numbers at most.
MOST = 3_000


def table_path(folder: Path | None, name: str) -> Path | None:
    """Return the file of a table, if it is in the folder."""
    path = None if folder is None else folder / f"{name}.csv"
    return path if path is not None and path.is_file() else None


def complete_tables(folder: Path | None) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield tables of all kinds of columns; scikit-learn's if there is no folder."""
    if folder is None:
        yield from shipped_tables()
    for name in READ:
        if (path := table_path(folder, name)) is not None:
            dates = [date for date in DATES if date in pd.read_csv(path, nrows=0)]
            frame = pd.read_csv(path, parse_dates=dates)
            yield name, frame.drop(columns=DROPPED.get(name, []))


def number_tables(folder: Path | None) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield tables of numbers without missing values, 3,000 rows at most of each."""
    for name, columns in NUMBERS.items():
        if (path := table_path(folder, name)) is not None:
            yield name, _few(_derived(name, pd.read_csv(path))[columns])
    for name, frame in shipped_tables():
        yield name, _few(frame)
    rng = np.random.default_rng(0)
    factors = np.repeat(rng.normal(size=(MOST, 4)), 3, axis=1)
    values = factors + 0.35 * rng.normal(size=factors.shape)
    yield "synthetic", pd.DataFrame(values, None, [f"s{j}" for j in range(factors.shape[1])])


def _derived(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Add the columns of times and differences."""
    if name == "taxis":
        pickup, dropoff = (pd.to_datetime(frame[which]) for which in ("pickup", "dropoff"))
        minutes = (dropoff - pickup).dt.total_seconds() / 60
        return frame.assign(minutes=minutes, hour=pickup.dt.hour)
    if name == "nyc_taxi":
        at, value = pd.to_datetime(frame["timestamp"]), frame["value"]
        hour = at.dt.hour + at.dt.minute / 60
        return frame.assign(hour=hour, diff=value.diff(), diff2=value.diff(4))
    return frame


def shipped_tables() -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the tables of numbers that scikit-learn has."""
    diabetes = datasets.load_diabetes(as_frame=True, scaled=False).data
    yield "diabetes", diabetes.drop(columns="sex")
    pixels = datasets.load_digits().data[:, 1::4]
    yield "digits", pd.DataFrame(pixels, columns=[f"p{j}" for j in range(pixels.shape[1])])
    cells = datasets.load_breast_cancer().data[:, :20]
    yield "breast cancer", pd.DataFrame(cells, columns=[f"w{j}" for j in range(cells.shape[1])])


def _few(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows without missing values, a random part of them if they are many."""
    frame = frame.dropna().reset_index(drop=True).astype(float)
    if len(frame) <= MOST:
        return frame
    return frame.sample(MOST, random_state=0).reset_index(drop=True)


# --- planted rows ---------------------------------------------------------------------------------

#: Least rank correlation of related columns; pairs to choose from if none are related; the middle
#: of a column; and random rows, where the farthest one gives its value.
RELATED, STRONGEST, MIDDLE, CANDIDATES = 0.6, 6, (0.05, 0.95), 60
#: Least and greatest distance of a far value in standard deviations; rows that stay as they are.
FAR, ORDINARY = (5.0, 8.0), 50


class PlantedReasons(NamedTuple):
    """A table, some rows, the changed column of each, and how columns are related (d, d)."""

    frame: pd.DataFrame
    rows: Rows
    columns: Rows
    related: Floats


def combinations(frame: pd.DataFrame, seed: int) -> PlantedReasons:
    """Give a column of some rows a usual value that does not fit another column."""
    X, rng, rows = _chosen(frame, seed)
    before, ranks, related = X.copy(), frame.rank(pct=True).to_numpy(), relations(X)
    strongest = np.argsort(related.ravel())[-STRONGEST:]
    columns = np.zeros(len(rows), np.intp)
    for k, i in enumerate(rows):
        a = int(rng.integers(X.shape[1]))
        b = int(related[a].argmax())
        if related[a, b] < RELATED:
            a, b = (int(j) for j in np.unravel_index(rng.choice(strongest), related.shape))
        usual = np.flatnonzero((ranks[:, b] > MIDDLE[0]) & (ranks[:, b] < MIDDLE[1]))
        others = usual[rng.permutation(len(usual))[:CANDIDATES]]
        farthest = others[np.argmax(np.abs(ranks[others, a] - ranks[i, a]))]
        X[i, b], columns[k] = before[farthest, b], b
    changed = X[rows, columns] != before[rows, columns]
    planted = pd.DataFrame(X, columns=frame.columns)
    return PlantedReasons(planted, rows[changed], columns[changed], related)


def far_values(frame: pd.DataFrame, seed: int) -> PlantedReasons:
    """Give a column of some rows a value far from its mean."""
    X, rng, rows = _chosen(frame, seed)
    mean, sd, columns = X.mean(axis=0), X.std(axis=0), np.zeros(len(rows), np.intp)
    for k, i in enumerate(rows):
        j = int(rng.choice(X.shape[1], 1, replace=False)[0])
        X[i, j] = mean[j] + rng.choice([-1, 1], 1)[0] * rng.uniform(*FAR, 1)[0] * sd[j]
        columns[k] = j
    planted = pd.DataFrame(X, columns=frame.columns)
    return PlantedReasons(planted, rows, columns, relations(frame.to_numpy(float)))


def ordinary(frame: pd.DataFrame, seed: int) -> PlantedReasons:
    """Choose rows that do not change."""
    rng, most = np.random.default_rng(seed), min(ORDINARY, len(frame))
    rows = rng.choice(len(frame), most, replace=False)
    return PlantedReasons(frame, rows, np.zeros(most, np.intp), relations(frame.to_numpy(float)))


#: The function that plants each kind of rows.
PLANTED: dict[str, Callable[[pd.DataFrame, int], PlantedReasons]] = {
    "combination": combinations,
    "far": far_values,
    "ordinary": ordinary,
}


def relations(X: Floats) -> Floats:
    """Return the absolute rank correlation of each two columns (d, d), with 0 on the diagonal."""
    related = np.abs(np.nan_to_num(spearmanr(X).statistic))
    np.fill_diagonal(related, 0.0)
    return related


def _chosen(frame: pd.DataFrame, seed: int) -> tuple[Floats, np.random.Generator, Rows]:
    """Return the values, and the rows to change: 1% of them, ten at least."""
    rng, X = np.random.default_rng(seed), frame.to_numpy(float).copy()
    return X, rng, rng.choice(len(X), max(10, len(X) // 100), replace=False)


# --- faithful -------------------------------------------------------------------------------------

#: Rows of a list.
LISTED = 20
#: Up to this many distinct numbers, the most frequent one is usual, and not the median.
FEW_NUMBERS = 10
#: Share of the largest distance from which on a column counts as strongest, too.
TIED = 0.999


@dataclass(frozen=True)
class FaithfulTable:
    """Judges the reasons of a table's lowest rows: numbers of rows, and of reasons."""

    table: str
    rows: int
    reasons: int
    #: Reasons without a direction, a share of rows, or a partner.
    plain: int
    #: Rows whose first reason is a usual value, and rows without any reason.
    weak: int
    silent: int
    #: Rows whose strongest column is first or in a pair; and rows in which it is named at all.
    first: int
    named: int
    #: Rows that leave the list when repaired: by scores, by the list itself, and by the claim.
    left: int
    unlisted: int
    claimed: int


def numbers_of(column: "pd.Series[Any]") -> Floats | None:
    """Return a column as numbers, NaN for missing values; None for texts."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return np.where(column.isna(), np.nan, column.astype("int64").to_numpy(float))
    return column.to_numpy(float) if pd.api.types.is_numeric_dtype(column) else None


def distances(frame: pd.DataFrame) -> Floats:
    """Return how far each value is from its column's mean, in standard deviations (n, d)."""
    found = np.zeros(frame.shape)
    for j, name in enumerate(frame.columns):
        column = frame[name]
        if (numbers := numbers_of(column)) is None:
            found[:, j] = _of_share(column.map(column.value_counts(normalize=True)))
        else:
            found[:, j] = np.abs(numbers - np.nanmean(numbers)) / (np.nanstd(numbers) + 1e-30)
        missing = column.isna().to_numpy()
        found[missing, j] = _of_share(missing.mean())
    return found


def _of_share(share: Any) -> Any:
    """Return how many standard deviations from the mean a 1 is, in a column with so many ones."""
    return np.sqrt((1.0 - share) / np.maximum(share, 1e-9))


def usual_values(frame: pd.DataFrame) -> dict[str, object]:
    """Return the median of each column, or its most frequent value if it has few or texts."""
    found = dict[str, object]()
    for name in frame.columns:
        known = frame[name].dropna()
        if numbers_of(known) is None or known.nunique() <= FEW_NUMBERS:
            found[name] = known.value_counts().index[0]
        else:
            found[name] = known.sort_values().iloc[(len(known) - 1) // 2]
    return found


def repaired(
    frame: pd.DataFrame, row: int, columns: Iterable[str], usual: Mapping[str, object]
) -> pd.DataFrame:
    """Return one row with usual values in place of its own."""
    one = frame.iloc[[row]].copy()
    for name in columns:
        one[name] = pd.Series([usual[name]], one.index).astype(frame[name].dtype)
    return one


def look_through(name: str, frame: pd.DataFrame) -> FaithfulTable:
    """Judge the reasons of the rows with HushTable's lowest scores."""
    detector = HushTable(random_state=0).fit(frame)
    far, usual, names = distances(frame), usual_values(frame), list(frame)
    bar = np.sort(detector.score_samples(frame))[LISTED]
    rows = detector._lowest(frame, LISTED).rows
    sums = np.zeros(9, int)
    for row in rows:
        why, z = row.detail.why, far[row.row]
        strongest = {names[j] for j in np.flatnonzero(z >= TIED * z.max())}
        reasons, one = why.reasons, repaired(frame, row.row, why.repaired, usual)
        plain = [
            r
            for r in reasons
            if not (r.partner or r.phrase.direction or r.phrase.share is not None)
        ]
        weak = reasons and not reasons[0].partner and z[names.index(reasons[0].feature)] < 1.0
        heard = [r for k, r in enumerate(reasons) if k == 0 or r.partner]
        after = pd.concat([frame.iloc[: row.row], one, frame.iloc[row.row + 1 :]])
        listed = {other.row for other in detector._lowest(after, LISTED).rows}
        sums += (
            len(reasons), len(plain), bool(weak), not reasons,
            any(strongest.intersection(r.columns) for r in heard),
            any(strongest.intersection(r.columns) for r in reasons),
            detector.score_samples(one)[0] > bar, row.row not in listed, why.enough,
        )  # fmt: skip
    return FaithfulTable(name, len(rows), *sums.tolist())


# --- combinations ---------------------------------------------------------------------------------

#: Least rank correlation of the columns of a right pair.
RIGHT = 0.5


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
            bool(some) and column in some[0] and planted.related[some[0]] >= RIGHT
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
        pairs[pairs[:, j], j + 1].mean() if pairs[:, j].any() else np.nan for j in (0, 2)
    )
    return PairShares(
        name, len(pairs), named, right, strict, strict_right,
        ordinary[:, 0].mean(), ordinary[:, 2].mean(), far[:, 0].mean(), far[:, 4].mean(),
    )  # fmt: skip


# --- the case of reasons --------------------------------------------------------------------------


def reasons(run: CaseRun, *, data: Path | None = None, quick: bool = False) -> None:
    """Judge reasons on FOLDER's files: one minute; --quick, scikit-learn's tables, no targets."""
    folder = None if quick else data_folder(data)
    names = dict.fromkeys([*READ, *NUMBERS])
    absent = [f"{name}.csv" for name in names if table_path(folder, name) is None]
    if folder is not None and absent:
        run.say(f"Left out, because their files are not in the folder: {', '.join(absent)}.")
    report_faithful(run, folder, quick)
    report_combinations(run, folder, quick)


def report_faithful(run: CaseRun, folder: Path | None, quick: bool) -> None:
    """Print figures on reasons for each table, and compare all tables with their targets."""
    found = []
    for name, frame in complete_tables(folder):
        progress(f"faithful: {name}")
        found.append(look_through(name, frame))
    run.say(f"The {LISTED} lowest rows of each table, HushTable; all but reasons are rows.")
    run.table(
        {
            "table": "{t.table}", "reasons": "{t.reasons}", "plain reasons": "{t.plain}",
            "first reason usual": "{t.weak}", "no reason": "{t.silent}",
            "strongest first or in a pair": "{t.first}", "strongest named": "{t.named}",
            "leave by scores": "{t.left}", "leave the list": "{t.unlisted}",
            "claimed to": "{t.claimed}",
        }, found,
    )  # fmt: skip
    for t in () if quick else found:
        run.hold(f"{t.table}: share of plain reasons", t.plain / max(t.reasons, 1), "<=", 0.10)
        run.hold(f"{t.table}: rows, first reason usual", t.weak, "<=", 0, ".0f")
        strongest = LISTED * t.first / t.rows
        run.hold(f"{t.table}: rows of 20, strongest first", strongest, ">=", 17, ".0f")
    if found and not quick:
        left = sum(t.left for t in found) / sum(t.rows for t in found)
        run.hold("all tables: rows that leave the list", left, ">=", 0.90, ".3f")


def report_combinations(run: CaseRun, folder: Path | None, quick: bool) -> None:
    """Print shares of named pairs for each table, and compare their means with targets."""
    lines, seeds = [], 1 if quick else 3
    for name, frame in number_tables(folder):
        progress(f"combinations: {name}")
        lines.append(pair_shares(name, frame, seeds))
    # Tables without a named pair have no share of right ones.
    means = [float(np.nanmean(each)) for each in zip(*(t[2:] for t in lines), strict=True)]
    mean = PairShares("mean", sum(t.rows for t in lines), *means)
    run.say(f"Planted rows, {seeds} seeds: shares of rows, and of right pairs among pairs.")
    run.table(
        {
            "table": "{t.table}", "combinations": "{t.rows}", "pair named": "{t.named:.2f}",
            "right": "{t.right:.2f}", "ordinary rows": "{t.ordinary:.3f}",
            "strict": "{t.strict:.2f}", "right, strict": "{t.strict_right:.2f}",
            "ordinary, strict": "{t.strict_ordinary:.3f}", "far: pair": "{t.far:.3f}",
            "far: first": "{t.far_first:.3f}",
        }, [*lines, mean],
    )  # fmt: skip
    for claim, measured, needs, bound in () if quick else (
        ("combinations: pair named", mean.named, ">=", 0.55),
        ("combinations: right pair when named", mean.right, ">=", 0.88),
        ("ordinary rows with a pair", mean.ordinary, "<=", 0.04),
        ("one far value: first reason right", mean.far_first, ">=", 0.97),
        ("strict: pair named", mean.strict, ">=", 0.33),
        ("strict: right pair when named", mean.strict_right, ">=", 0.91),
        ("strict: ordinary rows with a pair", mean.strict_ordinary, "<=", 0.007),
    ):  # fmt: skip
        run.hold(claim, measured, needs, bound)


# --- explanations ---------------------------------------------------------------------------------

ROWS, COLUMNS, OUTLIERS = 10_000, 20, 100
#: Least and greatest distance of a guilty value.
VARIANTS = {"far": (5.0, 8.0), "near": (4.0, 5.0), "impossible": (4.0, 5.0)}
OURS, PRIVATE = "HushTable", "HushTable, total epsilon 1"
#: From all rows, the numbers of those to explain and a seed, to blame (n, d).
Method = Callable[[Floats, NDArray[np.int64], int], Floats]


@dataclass(frozen=True)
class GuiltyRows:
    """Rows; the numbers of the outliers among them; which features of each are guilty."""

    X: Floats
    outliers: NDArray[np.int64]
    guilty: NDArray[np.bool_]


def plant_guilty(variant: str, seed: int, rows: int = ROWS) -> GuiltyRows:
    """Draw rows, and move the guilty features of the outliers."""
    rng = np.random.default_rng(seed)
    cluster = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    centres = rng.normal(size=(3, COLUMNS))
    factors = rng.normal(size=(3, COLUMNS, 4))
    factors *= np.sqrt(0.7) / np.linalg.norm(factors, axis=2, keepdims=True)
    common_part = np.einsum("njf,nf->nj", factors[cluster], rng.normal(size=(rows, 4)))
    X = centres[cluster] + common_part + np.sqrt(0.3) * rng.normal(size=(rows, COLUMNS))
    mean, sd = X.mean(axis=0), X.std(axis=0)
    outliers = rng.choice(rows, OUTLIERS * rows // ROWS, replace=False)
    guilty = np.zeros((len(outliers), COLUMNS), bool)
    for row, mask in zip(outliers, guilty, strict=True):
        mask[rng.choice(COLUMNS, rng.integers(1, 4), replace=False)] = True
        k = mask.sum()
        distance = rng.choice([-1, 1], k) * rng.uniform(*VARIANTS[variant], k)
        if variant == "impossible":
            X[row, mask] = centres[cluster[row], mask] + distance
        else:
            X[row, mask] = mean[mask] + distance * sd[mask]
    return GuiltyRows(X, outliers, guilty)


def of_detector(make: Callable[..., Any], X: Floats, rows: NDArray[np.int64], seed: int) -> Floats:
    """Return the shares that one of our detectors gives the features."""
    return np.asarray(make(random_state=seed).fit(X).explain(X[rows]))


def private(X: Floats, rows: NDArray[np.int64], seed: int) -> Floats:
    """Explain from a release: the noise differs from run to run."""
    schema = LabelledSet("", X, np.zeros(len(X), bool)).schema()
    return Explainer(private_scorer(X, schema, 1.0, seed)).explain(X[rows])


def shap_values(X: Floats, rows: NDArray[np.int64], seed: int) -> Floats:
    """Return SHAP's shares in the scores of an isolation forest."""
    import shap

    forest = IsolationForest(random_state=seed, n_jobs=1).fit(X)
    return np.asarray(-shap.TreeExplainer(forest).shap_values(X[rows]))


def signatures(X: Floats, rows: NDArray[np.int64], seed: int) -> Floats:
    """Return coniferest's signatures."""
    from coniferest.isoforest import IsolationForest as Coniferest

    return np.asarray(-Coniferest(random_seed=seed, n_jobs=1).fit(X).feature_signature(X[rows]))


METHODS: dict[str, Method] = {
    OURS: partial(of_detector, HushTable),
    "LSHiTables": partial(of_detector, LSHiTables),
    PRIVATE: private,
    "SHAP of IsolationForest": shap_values,
    "coniferest's signatures": signatures,
}


@dataclass(frozen=True)
class Blamed:
    """Shares of the outliers: all guilty features on top; and precision at k."""

    variant: str
    method: str
    on_top: float
    by_k: tuple[float, ...]
    precision: float


def judge(variant: str, method: str, guilty: NDArray[np.bool_], blame: Floats) -> Blamed:
    """Compare the k features that are blamed most with the k guilty ones."""
    k = guilty.sum(axis=1)
    order = np.argsort(-blame, axis=1, kind="stable")
    hit = np.take_along_axis(guilty, order, axis=1) & (np.arange(COLUMNS) < k[:, np.newaxis])
    precision = hit.sum(axis=1) / k
    by_k = tuple(float((precision[k == number] == 1.0).mean()) for number in (1, 2, 3))
    return Blamed(variant, method, float((precision == 1.0).mean()), by_k, float(precision.mean()))


def find_guilty(seeds: int, rows: int = ROWS) -> list[Blamed]:
    """Judge each method whose library is installed on each variant."""
    found = []
    for variant in VARIANTS:
        sets = [plant_guilty(variant, seed, rows) for seed in range(seeds)]
        guilty = np.concatenate([planted.guilty for planted in sets])
        for name, blame in METHODS.items():
            progress(f"{variant}: {name}")
            try:
                blamed = [blame(p.X, p.outliers, seed) for seed, p in enumerate(sets)]
            except ImportError as error:
                progress(f"without {name}: {error}")
                continue
            found.append(judge(variant, name, guilty, np.concatenate(blamed)))
    return found


def explanation_times(quick: bool) -> dict[str, tuple[int, dict[str, float]]]:
    """Return, by method, the rows explained, and the CPU seconds to score and to explain them."""
    X = normal_rows(1_000 if quick else 100_000, COLUMNS)
    few = X[:1_000].astype(np.float64)
    calls: dict[str, tuple[int, dict[str, Callable[[], object]]]] = {}
    for make in (HushTable, LSHiTables):
        own = make(random_state=0, n_jobs=1).fit(X)
        both: dict[str, Callable[[], object]] = {
            "score": partial(own.score_samples, X),
            "explain": partial(own.explain, X),
        }
        calls[make.__name__] = len(X), both
    forest = IsolationForest(random_state=0, n_jobs=1).fit(X)
    try:
        import shap

        explainer = shap.TreeExplainer(forest)
        calls["SHAP of IsolationForest"] = (
            len(few),
            {
                "score": partial(forest.score_samples, few),
                "explain": partial(explainer.shap_values, few),
            },
        )
        from coniferest.isoforest import IsolationForest as Coniferest

        trees = Coniferest(random_seed=0, n_jobs=1).fit(X.astype(np.float64))
        calls["coniferest's signatures"] = (
            len(few),
            {
                "score": partial(trees.score_samples, few),
                "explain": partial(trees.feature_signature, few),
            },
        )
    except ImportError as error:
        progress(f"without a peer: {error}")
    return {name: (n, in_turns(both, 1 if quick else 9)) for name, (n, both) in calls.items()}


def explain(run: CaseRun, *, quick: bool = False) -> None:
    """Find guilty features: one minute; --quick, 2 sets of each kind in place of 10."""
    found, times = find_guilty(2 if quick else 10), explanation_times(quick)
    lines = [
        (f.variant, f.method, *(f"{100 * x:.1f}" for x in (f.on_top, *f.by_k, f.precision)))
        for f in found
    ]
    header = ("guilty values", "method", "all on top, %", "of 1", "of 2", "of 3", "precision, %")
    run.say(ResultTable(header, lines, text=2))
    ratios = {name: both["explain"] / both["score"] for name, (_, both) in times.items()}
    rows = [
        (name, *(f"{1e6 * both[what] / n:.3g}" for what in ("score", "explain")), f"{ratio:.1f}")
        for (name, (n, both)), ratio in zip(times.items(), ratios.values(), strict=True)
    ]
    costs = ("method", "score, µs a row", "explain, µs a row", "explain, times score")
    run.say(ResultTable(costs, rows))
    on_top = {f.method: 100 * f.on_top for f in found if f.variant == "far"}
    for method, least in ((OURS, 95.0), (PRIVATE, 85.0)):
        claim = f"{method}: rows with all guilty features on top, %"
        run.hold(claim, on_top[method], ">=", least, ".1f")
    run.hold("HushTable explains, times it scores", ratios[OURS], "<=", 5.0, ".1f")
