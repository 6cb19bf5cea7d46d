"""The detectors compared, both protocols, and the runs."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from hushtable.detectors import ACE, HushTable, LSHiTables, RotatedRSHash, RSHash
from hushtable.errors import DataError, HushTableError, MissingExtraError
from hushtable_bench.data import LabelledSet, auc_and_ap
from hushtable_bench.results import Results, Row, Step

Protocol = Literal["unsupervised", "novelty"]
Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]

#: Rows taken of a set at most: a random subset, the same for all detectors.
MAX_ROWS = 20_000
#: OCSVM is quadratic in the rows that it trains on, MCD cubic in the columns.
MOST_ROWS, MOST_COLUMNS = {"OCSVM": 3_000}, {"MCD": 64}

DEFAULT, NOVELTY, MANY = "HushTable", "HushTable, novelty", "HushTable, m=400"
#: HushTable's settings by protocol; the first one is what the others are held against.
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
    """Return our detectors and their peers; the others are held against the first."""
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
class Runs:
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

    def run(self, results: Results) -> Iterator[None]:
        """Do what is not done; yield after each step."""
        for step in self.steps():
            step.run(results)
            yield


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
