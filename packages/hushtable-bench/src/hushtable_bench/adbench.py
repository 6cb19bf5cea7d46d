"""Accuracy on collections of labelled sets: ADBench's, and OddBench and OvRBench.

`ComparisonRuns` compare detectors on a folder of sets under two protocols. `oddbench` takes the
files of github.com/psorus/Outformer (``benchmarks/oddbench`` and ``benchmarks/ovrbench``), or the
same sets as X, y and train in files ``odd_*.npz`` and ``ovr_*.npz``. Every detector scores the
published test rows: fitted to the training rows, which are all inliers, and fitted to training and
test rows together without labels. Sets that settings of HushTable were judged on are left out,
unless --seen counts them.
"""

import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyod.models.knn import KNN
from sklearn.ensemble import IsolationForest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from hushtable.detectors import HushTable, LSHiTables
from hushtable.errors import DataError, HushTableError, MissingExtraError
from hushtable_bench.comparison import (
    KNOWN,
    RESAMPLES,
    SystemComparison,
    collection,
    published,
    sets_published,
)
from hushtable_bench.data import (
    LabelledSet,
    array_names,
    auc_and_ap,
    data_folder,
    labelled_set,
    read_arrays,
)
from hushtable_bench.results import Page, Promise, Results, ResultTable, Row, Step, cell
from hushtable_bench.runner import CaseRun, progress
from hushtable_bench.systems import ACE, RotatedRSHash, RSHash

Protocol = Literal["unsupervised", "novelty"]
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
        some = fitted.at_most(MOST_ROWS.get(self.name, len(fitted.X)), seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a peer's, on a set that does not suit it
            model = self.make(seed).fit(prepare.transform(some.X))
            if not hasattr(model, "decision_scores_"):
                return _of_sklearn(model, prepare.transform(judged.X))
            # PyOD's scores of the rows that it was fitted on are not always those of new rows.
            own = some is judged
            scores = (
                model.decision_scores_
                if own
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
            for one in self.field:
                fixed = one.fixed and self.protocol == "unsupervised"
                for seed in range(1 if fixed else self.seeds):
                    do = partial(_run, one, data, seed, self.protocol)
                    yield Step(self.name, data.name, one.name, seed, do)


def _run(contestant: Contestant, data: LabelledSet, seed: int, protocol: Protocol) -> list[Row]:
    train = training_half(data, seed) if protocol == "novelty" else None
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


#: Mean ROC-AUC and mean average precision at least, by protocol and collection.
LEAST = {
    ("unsupervised", "data"): {DEFAULT: (0.808, 0.447), MANY: (0.80, 0.45)},
    ("unsupervised", "data-odd"): {DEFAULT: (0.758, 0.283)},
    ("novelty", "data"): {NOVELTY: (0.860, 0.685)},
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
    """Hold HushTable to its promises; there are none for other sets.

    Under novelty, sets of the first collection without published figures do not count.
    """
    case = (protocol, collection(auc.sets) or "")
    if case == ("novelty", "data"):
        auc, ap = (one.only(sets_published(one.sets)) for one in (auc, ap))
    found = []
    for at, (metric, label) in enumerate(zip((auc, ap), _LABELS, strict=True)):
        means = dict(zip(metric.systems, metric.means().tolist(), strict=True))
        for system, least in LEAST.get(case, {}).items():
            measured = means.get(system, math.nan)  # a detector that is not there keeps no promise
            found.append(Promise(f"{system}: {label}", measured, ">=", least[at], ".5f"))
        ours = metric.systems[0]
        if case in AHEAD:
            peers, margins = AHEAD[case]
            claim, best = f"{ours}: {label} beyond {{}}'s", _best(means, peers)
            beyond, needs = means[ours] - means[best], ">" if margins[at] == 0 else ">="
            found.append(Promise(claim.format(best), beyond, needs, margins[at], ".5f"))
        if case in LEVEL:
            best = _best(means, LEVEL[case])
            low = metric.intervals(ours)[best][1]
            claim = f"{best} beyond {ours}, {label}: lower end of the 95% interval"
            found.append(Promise(claim, low, "<=", 0.0, ".5f"))
    return found


def _best(means: dict[str, float], peers: Sequence[str]) -> str:
    return max(peers, key=lambda name: means[name])


# --- page -----------------------------------------------------------------------------------------

_METRICS = ("ROC-AUC", "AP")
_PROTOCOLS = {
    "unsupervised": "Each detector is fitted on all rows without their labels, and judges them.",
    "novelty": "Each detector is fitted on half of the normal rows, drawn by the seed (a split "
    "that a file names is not used), and judges the other half and all outliers.",
}


def page(
    runs: ComparisonRuns, results: Results, auc: SystemComparison, ap: SystemComparison
) -> Page:
    """Lay out all tables of a comparison; other systems are compared with its first one."""
    ours = auc.systems[0]
    parts: Page = [_PROTOCOLS[runs.protocol]]
    for comparison, title in ((auc, "ROC-AUC"), (ap, "Average precision")):
        seeds = f"{runs.seeds} {'seeds' if runs.seeds > 1 else 'seed'}"
        parts += [f"\n## {title} x 100, mean of {seeds}\n", sets_table(comparison, runs.sets)]
    parts += [
        f"\n## Means over {len(runs.sets)} sets\n",
        f"Mean ranks that are less than {auc.critical_difference():.1f} apart do not differ "
        "(Nemenyi's test at 5%).\n",
        _handling(runs.max_rows) + "\n",
        *failures(results, runs),
        f"## Differences from {ours}\n",
        f"Means over the sets, and each detector's figure less {ours}'s, with 95% intervals by "
        f"bootstrap over the sets ({RESAMPLES:,} resamples).\n",
        differences_table(auc, ap),
        *_published(runs.protocol, auc, ap),
        "\n## Rows flagged\n",
        flagged_table(results, runs),
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
    found = [metric.intervals(ours) for metric in (auc, ap)]
    rows = []
    for at in np.argsort(-np.nan_to_num(auc.means(), nan=-1.0), kind="stable"):
        name = auc.systems[at]
        differences = (
            f"{cell(mean, '+.4f')} ({cell(low, '+.4f')} to {cell(high, '+.4f')})"
            for mean, low, high in (one[name] for one in found if name in one)
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
    seen: dict[tuple[str, str], str] = {}
    for row in results.select(runs.name):
        if row["note"] and row["data"] in names:
            seen.setdefault((row["system"], row["data"]), row["note"])
    if seen:
        yield (
            "These have no figure (-): the detector ranks last on these sets, and its mean is over "
            "the other sets, whose number follows it.\n"
        )
        yield "\n".join(f"- {one} on {data}: {why}" for (one, data), why in seen.items()) + "\n"


def _published(protocol: str, auc: SystemComparison, ap: SystemComparison) -> Page:
    """Lay out means that others published, beside ours of this run on the same sets."""
    known = sets_published(auc.sets)
    found = published(protocol, auc.sets)
    if not found:
        return []
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
    header = ("system", "ROC-AUC, published", "AP, published", "ROC-AUC, run here",
              "AP, run here", "published over", "source")  # fmt: skip
    cells = [[cell(x, ".3f") if isinstance(x, float) else x for x in row] for row in rows]
    return [
        "\n## Published means\n",
        "Published, not run here: others' figures, on rows, scales and settings of their own. "
        f"Run here: means over the {len(known)} of these sets that ADBench has.\n",
        ResultTable(header, cells),
    ]


def flagged_table(results: Results, runs: ComparisonRuns) -> ResultTable:
    """Lay out the shares of rows that the detectors flag by themselves, over sets and seeds."""
    rows, found = [], results.select(runs.name)
    for system in (one.name for one in runs.field):
        shares = 100 * np.array([row["setting"] for row in found if row["system"] == system])
        if (shares := shares[np.isfinite(shares)]).size:
            figures = (shares.mean(), np.median(shares), shares.min(), shares.max())
            rows.append((system, *(f"{figure:.1f}" for figure in figures)))
    return ResultTable(("rows flagged, %", "mean", "median", "least", "most"), rows)


# --- OddBench and OvRBench ------------------------------------------------------------------------

#: How the names of a benchmark's files begin where their folder does not name it.
PREFIXES = {"OddBench": "odd_", "OvRBench": "ovr_"}
SEEN = frozenset(KNOWN["collections"]["data-odd"]["sets"])
INLIERS, ALL_ROWS = "inliers", "all rows"
METRICS = {"ROC-AUC": "auc", "AP": "ap"}
#: Outliers that a figure needs.
FEWEST = 2


def split_contestants(regime: str) -> list[Contestant]:
    """Return HushTable as each regime asks for it, and its peers."""
    novelty = regime == INLIERS
    return [
        Contestant(
            "HushTable", lambda seed: HushTable(novelty=novelty, random_state=seed), ours=True
        ),
        Contestant("IsolationForest", lambda seed: IsolationForest(random_state=seed)),
        # By the distance to the fifth neighbour, as PyOD has it; and by the mean of all five.
        Contestant("5 nearest neighbours", lambda seed: KNN(), fixed=True, scale=StandardScaler),
        Contestant(
            "5 nearest neighbours, mean", lambda seed: KNN(method="mean"), fixed=True,
            scale=StandardScaler,
        ),
    ]  # fmt: skip


FIELDS = {regime: split_contestants(regime) for regime in (INLIERS, ALL_ROWS)}
SYSTEMS = tuple(one.name for one in FIELDS[INLIERS])


def identify(path: Path) -> tuple[str, str]:
    """Return the benchmark of a file, and the set's name, which begins with the prefix."""
    for benchmark, prefix in PREFIXES.items():
        if path.name.startswith(prefix):
            return benchmark, path.stem
        if path.absolute().parent.name.lower() == benchmark.lower():
            return benchmark, prefix + path.stem
    raise DataError("neither OddBench nor OvRBench, by the name of the file or of its folder")


def load_split(path: Path, rows: int) -> tuple[LabelledSet, Mask]:
    """Read a set of ``rows`` training and test rows at most, and which ones are for training."""
    if "X" in array_names(path):
        X, y, mask = read_arrays(path, ("X", "y"), optional="train")
        if mask is None or mask.dtype != np.bool_ or mask.shape != y.shape:
            raise DataError("the published split is missing: needs train, bool (n,)")
    else:
        needed = ("train", "test", "test_labels")
        train, test, labels, own = read_arrays(path, needed, optional="train_labels")
        if not train.ndim == test.ndim == 2 or train.shape[1] != test.shape[1]:
            raise DataError("needs train (n, d) and test (k, d) of the same columns")
        X, mask = np.vstack([train, test]), np.arange(len(train) + len(test)) < len(train)
        own = np.zeros(len(train)) if own is None else own
        y = np.concatenate([own.ravel(), labels.ravel()])
    data = labelled_set(path, X, y)
    if data.y[mask].any() or not mask.any():
        raise DataError(f"{data.y[mask].sum()} of its {mask.sum()} training rows are outliers")
    # With seeds of their own, so that all systems and all runs have the same rows.
    fitted, judged = data.take(mask).at_most(rows, 0), data.take(~mask).at_most(rows, 1)
    if judged.y.sum() < FEWEST or judged.y.all():
        raise DataError(
            f"{judged.y.sum()} of the {len(judged.y)} test rows are outliers; needs {FEWEST}, and "
            "an inlier"
        )
    both = LabelledSet(
        data.name, np.vstack([fitted.X, judged.X]), np.concatenate([fitted.y, judged.y])
    )
    return both, np.arange(len(both.y)) < len(fitted.y)


def judge(data: LabelledSet, train: Mask, seeds: int) -> Floats:
    """Return the figures of one set, mean over the seeds: (regimes, metrics, systems)."""
    return np.array([
        np.transpose([
            np.mean([
                [*auc_and_ap(data.y[~train], -scores).values()]
                for scores in _scores(one, data, train, regime, seeds)
            ], axis=0)
            for one in field
        ])
        for regime, field in FIELDS.items()
    ])  # fmt: skip


def _scores(
    one: Contestant, data: LabelledSet, train: Mask, regime: str, seeds: int
) -> Iterator[Floats]:
    """Yield how outlying each test row is, seed by seed."""
    for seed in range(1 if one.fixed else seeds):
        if regime == INLIERS:
            yield one.outlying(data, seed, train)[0]
        else:
            yield one.outlying(data, seed)[0][~train]


def table_rows(benchmark: str, sets: Sequence[str], values: Floats) -> list[dict[str, str]]:
    """Return the table of one benchmark; ``values`` are (sets, regimes, metrics, systems)."""
    rows = []
    for at, regime in enumerate(FIELDS):
        known = KNOWN["oddbench"].get(benchmark, {}) if regime == INLIERS else {}
        published = {known["ours"].get(k, k): v for k, v in known["means"].items()} if known else {}
        metrics = {
            name: SystemComparison(tuple(sets), SYSTEMS, values[:, at, m])
            for m, name in enumerate(METRICS)
        }
        for system in [*SYSTEMS, *(name for name in published if name not in SYSTEMS)]:
            row = {
                "benchmark": benchmark, "fitted to": regime, "detector": system,
                "sets": str(len(sets)) if system in SYSTEMS else "",
            }  # fmt: skip
            for name, metric in metrics.items():
                mine = float(metric.of_system(system).mean()) if system in SYSTEMS else math.nan
                row[name] = _figure(mine)
            for name, metric in metrics.items():
                row[f"{name}, less HushTable's"] = _difference(metric, system)
            for m, name in enumerate(METRICS):
                row[f"{name}, published"] = _figure(published.get(system, (math.nan,) * 2)[m])
            row["published in"] = (
                f"{known['source']}, {known['over']}" if system in published else ""
            )
            rows.append(row)
    return rows


def _figure(value: float, sign: str = "") -> str:
    return "" if math.isnan(value) else f"{value:{sign}.4f}"


def _difference(metric: SystemComparison, system: str) -> str:
    """Write the mean difference from HushTable over the sets, ± its standard error."""
    found = metric.differences(SYSTEMS[0]).get(system)
    if found is None:
        return ""
    error = found.std(ddof=1) / math.sqrt(len(found)) if len(found) > 1 else math.nan
    return f"{_figure(float(found.mean()), '+')} ± {_figure(float(error)) or '?'}"


def oddbench(
    run: CaseRun, *, data: Path | None = None, seeds: int = 1, rows: int = 5_000, seen: bool = False
) -> None:
    """--rows training rows and as many test rows of each set at most."""
    folder = data_folder(data)
    files = sorted(folder.rglob("*.npz"))
    if not files:
        raise DataError(
            f"{folder} holds no .npz file: needs those of OddBench or OvRBench "
            "(github.com/psorus/Outformer, benchmarks)"
        )
    found, left_out, judged_before = _judged(files, folder, seeds, rows, seen)
    sets = {benchmark: [*by_name] for benchmark, by_name in found.items()}
    run.say(_account(sets, len(files), judged_before, rows, seeds))
    for name, why in left_out.items():
        run.say(f"Left out: {name}: {why}.")
    table = [
        row
        for benchmark, by_name in found.items()
        for row in table_rows(benchmark, sets[benchmark], np.array([*by_name.values()]))
    ]
    run.say(ResultTable([*table[0]], [[cell or "-" for cell in row.values()] for row in table], 3))
    run.figures |= {
        "seeds": seeds, "rows": rows, "left_out": left_out, "table": table,
        "axes": {"regime": [*FIELDS], "metric": [*METRICS], "detector": SYSTEMS},
        "sets": {
            name: values.round(5).tolist()
            for by_name in found.values() for name, values in by_name.items()
        },
    }  # fmt: skip


def _judged(
    files: Sequence[Path], folder: Path, seeds: int, rows: int, seen: bool
) -> tuple[dict[str, dict[str, Floats]], dict[str, str], int]:
    """Return figures by benchmark and set, why other files do not count, and how many were seen."""
    found: dict[str, dict[str, Floats]] = defaultdict(dict)
    left_out: dict[str, str] = {}
    judged_before = 0
    for number, path in enumerate(files, 1):
        progress(f"{number} of {len(files)}: {path.stem}")
        try:
            benchmark, name = identify(path)
            if name in found[benchmark]:
                raise DataError("the same set in another file is counted")
            if name in SEEN and not seen:
                judged_before += 1
                continue
            found[benchmark][name] = judge(*load_split(path, rows), seeds)
        except (HushTableError, ValueError) as error:
            reason = str(error).removeprefix(f"{path}: ").splitlines()[0]
            left_out[str(path.relative_to(folder))] = reason
    found = {benchmark: found[benchmark] for benchmark in PREFIXES if found[benchmark]}
    if not found:
        reasons = "".join(f"{name}: {why}. " for name, why in left_out.items())
        if judged_before:
            reasons += f"Settings were judged on {_sets(judged_before)}: --seen counts them"
        raise DataError(f"{folder}: no set is left to count. {reasons}")
    return found, left_out, judged_before


def _account(
    sets: dict[str, list[str]], files: int, judged_before: int, rows: int, seeds: int
) -> str:
    """Say what was read and counted, and what was seen before."""
    counted = " and ".join(f"{_sets(len(names))} of {key}" for key, names in sets.items())
    again = sum(name in SEEN for names in sets.values() for name in names)
    parts = [
        f"{files} files, {counted} counted; at most {rows:,} training and {rows:,} test rows of a "
        f"set, {seeds} {'seeds' if seeds > 1 else 'seed'}; ± is the standard error over the sets."
    ]
    if judged_before:
        parts.append(
            f"Left out: {_sets(judged_before)} that settings of HushTable were judged on (--seen "
            "counts them)."
        )
    if again:
        parts.append(
            f"Settings of HushTable were judged on {again} of the counted sets, which flatters it."
        )
    return " ".join(parts)


def _sets(number: int) -> str:
    return f"{number} {'set' if number == 1 else 'sets'}"
