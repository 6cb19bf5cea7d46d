"""Accuracy on collections of labelled sets, such as ADBench, OddBench, and OvRBench.

`ComparisonRuns` compare detectors on a folder of sets under three protocols: fitted to all rows;
under *novelty*, to half of the normal rows; and *published*, to the training rows that the files
name, which are all inliers (github.com/psorus/Outformer, ``benchmarks/oddbench`` and
``benchmarks/ovrbench``).
"""

import math
import tomllib
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap
from sklearn.ensemble import IsolationForest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from hushtable.detectors import HushTable, LSHiTables
from hushtable.errors import DataError, HushTableError, MissingExtraError
from hushtable_bench.data import PREFIXES, LabelledSet, auc_and_ap, named
from hushtable_bench.results import Page, Promise, Results, ResultTable, Row, Step, cell
from hushtable_bench.systems import ACE, RotatedRSHash, RSHash

Protocol = Literal["unsupervised", "novelty", "published"]
Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]

#: Rows taken of a set at most: a random subset, the same for all detectors.
MAX_ROWS = 20_000
#: OCSVM is quadratic in the rows that it trains on, MCD cubic in the columns.
MOST_ROWS, MOST_COLUMNS = {"OCSVM": 3_000}, {"MCD": 64}

DEFAULT, NOVELTY, MANY = "HushTable", "HushTable, novelty", "HushTable, m=400"
#: HushTable's settings by protocol; the others are compared with the first one.
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "unsupervised": {
        DEFAULT: {},
        "HushTable, one pass": {"passes": 1},
        MANY: {"n_tables": 400, "passes": 2},
    },
    "novelty": {NOVELTY: {"novelty": True}, DEFAULT: {}},
    "published": {NOVELTY: {"novelty": True}},
}
#: The detectors of the paper; unsupervised only.
PAPERS: dict[str, Callable[..., Any]] = {
    "LSHiTables": LSHiTables,
    "RSHash": RSHash,
    "RotatedRSHash": RotatedRSHash,
    "ACE": ACE,
}
#: The scale of peers that compare distances over columns; by PyOD's name and ours.
SCALED = (
    ("KNN", "KNN", StandardScaler), ("KNN", "KNN, min-max", MinMaxScaler),
    ("LOF", "LOF", StandardScaler), ("OCSVM", "OCSVM", StandardScaler),
    ("CBLOF", "CBLOF", StandardScaler), ("MCD", "MCD", StandardScaler),
)  # fmt: skip


@dataclass(frozen=True)
class Contestant:
    """A detector by its name in tables.

    Attributes
    ----------
    make : callable
        Takes a seed, returns the detector.
    fixed : bool
        No seed changes its scores.
    ours : bool
        Takes missing values and categories as they are.
    scale : callable, optional
        Makes the scaler of the columns.
    """

    name: str
    make: Callable[[int], Any]
    fixed: bool = False
    ours: bool = False
    scale: Callable[[], Any] | None = None

    def outlying(
        self, data: LabelledSet, seed: int, train: Mask | None = None
    ) -> tuple[Floats, float]:
        """Return how outlying each row is (high: abnormal), and the share that is flagged.

        With ``train`` (n,), fitted on those rows, and the others are judged; else on all rows.
        """
        fitted = data if train is None else data.take(train)
        judged = data if train is None else data.take(~train)
        if self.ours:
            model = self.make(seed).fit(fitted.rows())
            return _of_sklearn(model, judged.rows())
        if data.X.shape[1] > (most := MOST_COLUMNS.get(self.name, data.X.shape[1])):
            raise DataError(f"{data.X.shape[1]} columns; it takes minutes for more than {most}")
        medians = SimpleImputer(strategy="median", keep_empty_features=True)
        prepare = make_pipeline(medians, self.scale() if self.scale else "passthrough")
        prepare.fit(fitted.X)
        rows = fitted.at_most(MOST_ROWS.get(self.name, len(fitted.X)), seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a peer's, on a set that does not suit it
            model = self.make(seed).fit(prepare.transform(rows.X))
            if not hasattr(model, "decision_scores_"):
                return _of_sklearn(model, prepare.transform(judged.X))
            # PyOD's scores of the rows that it was fitted on are not always those of new rows.
            fitted_rows = rows is judged
            scores = (
                model.decision_scores_
                if fitted_rows
                else model.decision_function(prepare.transform(judged.X))
            )
        flagged = float((scores > model.threshold_).mean())
        if not np.isfinite(scores).any():
            raise DataError("none of its scores is a number")
        # A score that is not finite ranks highest, beside any other such.
        return np.where(np.isfinite(scores), scores, np.finfo(np.float64).max), flagged


def _of_sklearn(model: Any, rows: Any) -> tuple[Floats, float]:
    scores = model.score_samples(rows)
    return -scores, float((scores < model.offset_).mean())


def contestants(protocol: Protocol = "unsupervised") -> list[Contestant]:
    """Return our detectors and their peers; the others are compared with the first."""
    if protocol == "published":  # hundreds of sets: the peers that others published, too
        mean = partial(_of_pyod("KNN"), method="mean")
        return [
            *_ours(protocol),
            Contestant("iForest", lambda seed: IsolationForest(random_state=seed)),
            _peer("KNN", "KNN", StandardScaler),
            Contestant("KNN, mean", partial(_unseeded, mean), fixed=True, scale=StandardScaler),
        ]
    INNE, PCA, LODA = (_of_pyod(name) for name in ("INNE", "PCA", "LODA"))
    return [
        *_ours(protocol),
        Contestant("iForest", lambda seed: IsolationForest(random_state=seed)),
        Contestant("INNE", lambda seed: INNE(random_state=seed)),
        *(_peer(name, name, None) for name in ("ECOD", "COPOD", "HBOS")),
        *(_peer(*entry) for entry in SCALED),
        # All components but those without variance, by which it would divide.
        Contestant("PCA", lambda seed: PCA(n_components=1 - 1e-9, random_state=0), fixed=True),
        Contestant("LODA", partial(_seeded, LODA)),
    ]


def _ours(protocol: Protocol) -> Iterator[Contestant]:
    for name, settings in SETTINGS[protocol].items():
        make = partial(_of_seed, partial(HushTable, **settings))
        yield Contestant(name, make, ours=True)
    if protocol == "unsupervised":
        for name, detector in PAPERS.items():
            yield Contestant(name, partial(_of_seed, detector), ours=True)


def _peer(pyod: str, name: str, scale: Callable[[], Any] | None) -> Contestant:
    detector, seeded = _of_pyod(pyod), pyod in ("CBLOF", "MCD")
    make = partial(_of_seed if seeded else _unseeded, detector)
    # OCSVM draws the rows that it trains on.
    return Contestant(name, make, fixed=not (seeded or pyod == "OCSVM"), scale=scale)


def _of_pyod(name: str) -> Callable[..., Any]:
    try:
        detector: Callable[..., Any] = getattr(import_module(f"pyod.models.{name.lower()}"), name)
    except ImportError:
        raise MissingExtraError("the comparison", "PyOD", "bench") from None
    return detector


def _of_seed(detector: Callable[..., Any], seed: int) -> Any:
    return detector(random_state=seed)


def _unseeded(detector: Callable[[], Any], seed: int) -> Any:
    return detector()


def _seeded(detector: Callable[[], Any], seed: int) -> Any:
    """Make a detector that draws from NumPy's global generator."""
    np.random.seed(seed)  # noqa: NPY002 (PyOD's LODA takes no seed of its own)
    return detector()


def training_half(data: LabelledSet, seed: int) -> Mask:
    """Draw which rows novelty trains on (n,): half of the normal ones."""
    normal = np.flatnonzero(~data.y)
    np.random.default_rng(seed).shuffle(normal)
    train = np.zeros(len(data.y), bool)
    train[normal[: len(normal) // 2]] = True
    return train


def experiment(protocol: Protocol, max_rows: int) -> str:
    """Name the experiment: results of other protocols and sizes lie beside it, and its files."""
    parts = ["adbench"]
    if protocol != "unsupervised":
        parts.append(protocol)
    if max_rows != MAX_ROWS:
        parts.append(str(max_rows))
    return "-".join(parts)


@dataclass(frozen=True)
class ComparisonRuns:
    """All runs of one comparison: detectors, sets and seeds."""

    field: list[Contestant]
    sets: list[LabelledSet]
    seeds: int
    protocol: Protocol = "unsupervised"
    max_rows: int = MAX_ROWS

    @property
    def name(self) -> str:
        """The experiment's name in results."""
        return experiment(self.protocol, self.max_rows)

    def steps(self) -> Iterator[Step]:
        """Yield a step for each set, detector and seed; under novelty, a seed draws the half."""
        for data in self.sets:
            for system in self.field:
                fixed = system.fixed and self.protocol != "novelty"
                for seed in range(1 if fixed else self.seeds):
                    do = partial(_run, system, data, seed, self.protocol)
                    yield Step(self.name, data.name, system.name, seed, do)


def _run(contestant: Contestant, data: LabelledSet, seed: int, protocol: Protocol) -> list[Row]:
    train = training_half(data, seed) if protocol == "novelty" else data.train
    row: Row = {"system": contestant.name}
    # A peer may raise anything on a set that does not suit it, and the others go on.
    caught: type[Exception] = HushTableError if contestant.ours else Exception
    try:
        scores, flagged = contestant.outlying(data, seed, train)
    except caught as error:
        reason = str(error).strip().split("\n")[0][:200] or type(error).__name__
        return [row | dict.fromkeys(("setting", "auc", "ap"), np.nan) | {"note": reason}]
    labels = data.y if train is None else data.y[~train]
    return [row | {"setting": flagged, **auc_and_ap(labels, -scores)}]


# --- comparison over the sets ---------------------------------------------------------------------

#: Resamples of the sets for an interval.
RESAMPLES = 9_999


@dataclass(frozen=True)
class SystemComparison:
    """One metric of several systems on several sets; NaN where a system failed."""

    sets: tuple[str, ...]
    systems: tuple[str, ...]
    values: Floats  # (n_sets, n_systems), mean over the seeds

    @classmethod
    def of(
        cls,
        results: Results,
        metric: str,
        sets: Sequence[str],
        systems: Sequence[str],
        experiment: str = "adbench",
    ) -> "SystemComparison":
        """Gather a metric, ``"auc"`` or ``"ap"``, from results."""
        seeds: dict[tuple[str, str], list[float]] = {}
        for row in sorted(results.select(experiment), key=lambda row: int(row["seed"])):
            seeds.setdefault((row["data"], row["system"]), []).append(row[metric])
        # For each system, sets by seeds; those of a run with fewer seeds count as far as they go.
        tables = []
        for system in systems:
            rows = [seeds[data, system] for data in sets]
            tables.append(np.array([row[: min(map(len, rows))] for row in rows]))
        values = np.column_stack([table.mean(axis=1) for table in tables])
        return cls(tuple(sets), tuple(systems), values)

    def of_system(self, system: str) -> Floats:
        """Return one system's figures (n_sets,)."""
        return np.asarray(self.values[:, self.systems.index(system)])

    def done(self) -> NDArray[np.int64]:
        """Count the sets that each system could do (n_systems,)."""
        return np.asarray(np.isfinite(self.values).sum(axis=0))

    def means(self) -> Floats:
        """Return means over the sets that a system could do (n_systems,), NaN if there are none."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of a system that could do none
            return np.asarray(np.nanmean(self.values, axis=0))

    def differences(self, reference: str) -> dict[str, Floats]:
        """Return the others' figures minus those of ``reference``, on the sets of both."""
        differences = self.values - self.of_system(reference)[:, None]
        return {
            other: column[np.isfinite(column)]
            for other, column in zip(self.systems, differences.T, strict=True)
            if other != reference
        }

    def intervals(self, reference: str) -> dict[str, tuple[float, float, float]]:
        """Return mean differences from ``reference``, each with its 95% interval.

        By bootstrap over the sets (percentiles, seed 0); NaN for the ends of fewer than two sets.
        """
        intervals = {}
        for other, difference in self.differences(reference).items():
            low = high = math.nan
            if len(difference) > 1:
                sample = bootstrap(
                    (difference,), np.mean, n_resamples=RESAMPLES, method="percentile",
                    random_state=np.random.default_rng(0),
                )  # fmt: skip
                low, high = map(float, sample.confidence_interval)
            mean = float(difference.mean()) if len(difference) else math.nan
            intervals[other] = (mean, low, high)
        return intervals


KNOWN = tomllib.loads(Path(__file__).with_name("known.toml").read_text("utf-8"))


def published(protocol: str, sets: Collection[str]) -> dict[str, Any] | None:
    """Return means that others published for such sets: source, over which sets, by system."""
    odd = "oddbench" if all(name.startswith(PREFIXES["oddbench"]) for name in sets) else ""
    known: dict[str, Any] | None = KNOWN["published"].get(f"{collection(sets) or odd}, {protocol}")
    return known


#: Sets of OddBench and OvRBench that settings of HushTable were judged on.
SEEN = frozenset(KNOWN["collections"]["data-odd"]["sets"])


def unseen(files: Sequence[Path]) -> list[Path]:
    """Leave out sets that settings were judged on, unless there are no others."""
    return [path for path in files if named(path) not in SEEN] or list(files)


def collection(sets: Collection[str]) -> str | None:
    """Return the collection that consists of exactly these sets."""
    names = (key for key, entry in KNOWN["collections"].items() if set(entry["sets"]) == set(sets))
    return next(names, None)


# --- promises -------------------------------------------------------------------------------------

#: Mean ROC-AUC and mean average precision at least, by protocol and collection.
LEAST = {
    ("unsupervised", "data"): {DEFAULT: (0.808, 0.447), MANY: (0.80, 0.45)},
    ("unsupervised", "data-odd"): {DEFAULT: (0.758, 0.283)},
    ("novelty", "data"): {NOVELTY: (0.864, 0.685)},
}
_KNN = ("KNN", "KNN, min-max")
#: How far ahead of the best of some peers, in ROC-AUC and AP.
AHEAD = {
    ("unsupervised", "data"): (("iForest",), (0.0, 0.0)),
    ("unsupervised", "data-odd"): (("iForest",), (0.008, 0.02)),
    ("novelty", "data-odd"): (_KNN, (-0.01, 0.0)),
}
#: Where no peer of these may be better by more than chance.
LEVEL = {("novelty", "data"): _KNN}
_LABELS = ("mean ROC-AUC", "mean AP")


def targets(protocol: str, auc: SystemComparison, ap: SystemComparison) -> list[Promise]:
    """Hold HushTable to its promises; there are none for other sets."""
    case = (protocol, collection(auc.sets) or "")
    promises = []
    for at, (metric, label) in enumerate(zip((auc, ap), _LABELS, strict=True)):
        means = dict(zip(metric.systems, metric.means().tolist(), strict=True))
        for system, least in LEAST.get(case, {}).items():
            measured = means.get(system, math.nan)  # a detector that is not there keeps no promise
            promises.append(Promise(f"{system}: {label}", measured, ">=", least[at], ".5f"))
        ours = metric.systems[0]
        if case in AHEAD:
            peers, margins = AHEAD[case]
            claim, best = f"{ours}: {label} beyond {{}}'s", _best(means, peers)
            beyond, needs = means[ours] - means[best], ">" if margins[at] == 0 else ">="
            promises.append(Promise(claim.format(best), beyond, needs, margins[at], ".5f"))
        if case in LEVEL:
            best = _best(means, LEVEL[case])
            low = metric.intervals(ours)[best][1]
            claim = f"{best} beyond {ours}, {label}: lower end of the 95% interval"
            promises.append(Promise(claim, low, "<=", 0.0, ".5f"))
    return promises


def _best(means: dict[str, float], peers: Sequence[str]) -> str:
    return max(peers, key=lambda name: means[name])


# --- page -----------------------------------------------------------------------------------------

_METRICS = ("ROC-AUC", "AP")
_PROTOCOLS = {
    "unsupervised": "Each detector is fitted on all rows without their labels, and judges them.",
    "novelty": "Each detector is fitted on half of the normal rows, drawn by the seed (a split "
    "that a file names is not used), and judges the other half and all outliers.",
    "published": "Each detector is fitted on the training rows that the file names, and judges its "
    "test rows.",
}


def page(
    runs: ComparisonRuns, results: Results, auc: SystemComparison, ap: SystemComparison
) -> Page:
    """Lay out all tables of a comparison; other systems are compared with its first one."""
    ours = auc.systems[0]
    seeds = f"{runs.seeds} {'seeds' if runs.seeds > 1 else 'seed'}"
    parts: Page = [
        _PROTOCOLS[runs.protocol],
        f"\n## Means over {len(runs.sets)} sets\n",
        f"{_handling(runs.max_rows)} Each detector's figure less {ours}'s has a 95% interval by "
        f"bootstrap over the sets ({RESAMPLES:,} resamples).\n",
        *failures(results, runs),
        differences_table(auc, ap),
        "\n## Rows flagged\n",
        flagged_table(results, runs),
    ]
    for metric, title in ((auc, "ROC-AUC"), (ap, "Average precision")):
        parts += [f"\n## {title} x 100, mean of {seeds}\n", sets_table(metric, runs.sets)]
    if known := published(runs.protocol, auc.sets):
        rows = [
            (name, *(cell(x, ".4f") for x in means), known["over"], known["source"])
            for name, means in known["means"].items()
        ]
        parts += [
            "\n## Published means\n",
            "Others' figures, on rows, scales and settings of their own, not run here.\n",
            ResultTable(("system", "ROC-AUC", "AP", "over", "source"), rows),
        ]
    return parts


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


def sets_table(comparison: SystemComparison, sets: Sequence[LabelledSet]) -> ResultTable:
    """Lay out one metric in percent: a row a set, a dash for what failed."""
    shapes = {data.name: data for data in sets}
    rows = []
    for name, values in zip(comparison.sets, comparison.values, strict=True):
        figures = (cell(100 * value, ".1f") for value in (shapes[name].y.mean(), *values))
        rows.append((name, *shapes[name].X.shape, *figures))
    header = ("set", "rows", "columns", "outliers %", *comparison.systems)
    return ResultTable(header, rows)


def differences_table(auc: SystemComparison, ap: SystemComparison) -> ResultTable:
    """Lay out means, and mean differences from the first system with their intervals.

    A number in brackets is that of the sets that a system could do, if it failed on some.
    """
    ours = auc.systems[0]
    intervals = [metric.intervals(ours) for metric in (auc, ap)]
    rows = []
    for at in np.argsort(-np.nan_to_num(auc.means(), nan=-1.0), kind="stable"):
        name = auc.systems[at]
        differences = (
            f"{cell(mean, '+.4f')} ({cell(low, '+.4f')} to {cell(high, '+.4f')})"
            for mean, low, high in (interval[name] for interval in intervals if name in interval)
        )
        done = int(auc.done()[at])
        of = "" if done == len(auc.sets) else f" ({done})"
        both = f"{cell(auc.means()[at], '.4f')}{of}", cell(ap.means()[at], ".4f")
        rows.append([name, *both, *(differences if name != ours else ("", ""))])
    header = ("detector", "ROC-AUC", "AP", *(f"{m}, less {ours}'s" for m in _METRICS))
    return ResultTable(header, rows)


def failures(results: Results, runs: ComparisonRuns) -> Iterator[str]:
    """Say which detectors failed on which sets, and why."""
    names = {data.name for data in runs.sets}
    reasons: dict[tuple[str, str], str] = {}
    for row in results.select(runs.name):
        if row["note"] and row["data"] in names:
            reasons.setdefault((row["system"], row["data"]), row["note"])
    if reasons:
        yield (
            "These have no figure (-): the detector ranks last on these sets, and its mean is over "
            "the other sets, whose number follows it.\n"
        )
        yield (
            "\n".join(f"- {system} on {data}: {why}" for (system, data), why in reasons.items())
            + "\n"
        )


def flagged_table(results: Results, runs: ComparisonRuns) -> ResultTable:
    """Lay out the shares of rows that the detectors flag by themselves, over sets and seeds."""
    rows, kept = [], results.select(runs.name)
    for system in (run.name for run in runs.field):
        shares = 100 * np.array([row["setting"] for row in kept if row["system"] == system])
        if (shares := shares[np.isfinite(shares)]).size:
            figures = (shares.mean(), np.median(shares), shares.min(), shares.max())
            rows.append((system, *(f"{figure:.1f}" for figure in figures)))
    return ResultTable(("rows flagged, %", "mean", "median", "least", "most"), rows)
