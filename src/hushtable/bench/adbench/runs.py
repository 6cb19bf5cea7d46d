"""The detectors compared, and their runs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest

from hushtable.bench.data import LabelledSet, auc_and_ap
from hushtable.bench.results import Results, Row, Step
from hushtable.detectors import ACE, HushTable, LSHiTables, RotatedRSHash, RSHash
from hushtable.errors import MissingExtraError

#: Rows taken of a set at most: a random subset, the same for all detectors.
MAX_ROWS = 20_000

#: PyOD's detectors that draw nothing.
FIXED = ("ECOD", "COPOD", "HBOS", "KNN", "LOF")
ONE_PASS, TWO_PASSES = "HushTable", "HushTable, m=400, 2 passes"


@dataclass(frozen=True)
class Contestant:
    """A detector by its name in tables; ``fixed`` if no seed changes its scores."""

    name: str
    make: Callable[[int], Any]
    fixed: bool = False

    def outlying(self, X: NDArray[np.float64], seed: int) -> tuple[NDArray[np.float64], float]:
        """Return how outlying each row is (high: abnormal), and the share that is flagged."""
        model = self.make(seed).fit(X)
        if hasattr(model, "decision_scores_"):  # PyOD
            scores = model.decision_scores_
            # A score that is not finite ranks highest, beside any other such.
            scores = np.where(np.isfinite(scores), scores, np.finfo(np.float64).max)
            return scores, float((model.labels_ == 1).mean())
        scores = model.score_samples(X)
        return -scores, float((scores < model.offset_).mean())


def contestants() -> list[Contestant]:
    """Return our detectors and their peers, each as its library sets it by default, but PCA."""
    INNE, PCA, LODA = (_of_pyod(name) for name in ("INNE", "PCA", "LODA"))
    return [
        Contestant(ONE_PASS, lambda seed: HushTable(random_state=seed)),
        Contestant(TWO_PASSES, lambda s: HushTable(n_tables=400, passes=2, random_state=s)),
        Contestant("LSHiTables", lambda seed: LSHiTables(random_state=seed)),
        Contestant("RSHash", lambda seed: RSHash(random_state=seed)),
        Contestant("RotatedRSHash", lambda seed: RotatedRSHash(random_state=seed)),
        Contestant("ACE", lambda seed: ACE(random_state=seed)),
        Contestant("iForest", lambda seed: IsolationForest(random_state=seed)),
        Contestant("INNE", lambda seed: INNE(random_state=seed)),
        *(Contestant(name, partial(_unseeded, _of_pyod(name)), fixed=True) for name in FIXED),
        # All components but those without variance, by which it would divide.
        Contestant("PCA", lambda seed: PCA(n_components=1 - 1e-9, random_state=0), fixed=True),
        Contestant("LODA", partial(_seeded, LODA)),
    ]


def _of_pyod(name: str) -> Callable[..., Any]:
    try:
        detector: Callable[..., Any] = getattr(import_module(f"pyod.models.{name.lower()}"), name)
    except ImportError:
        raise MissingExtraError("the comparison", "PyOD", "bench") from None
    return detector


def _unseeded(detector: Callable[[], Any], seed: int) -> Any:
    return detector()


def _seeded(detector: Callable[[], Any], seed: int) -> Any:
    """Make a detector that draws from NumPy's global generator."""
    np.random.seed(seed)  # noqa: NPY002 (PyOD's LODA takes no seed of its own)
    return detector()


def runs(
    data: LabelledSet, field: list[Contestant], seeds: int, results: Results
) -> Iterator[None]:
    """Run every detector and seed that is not done on one set; yield after each."""
    for contestant in field:
        for seed in range(1 if contestant.fixed else seeds):
            do = partial(_run, contestant, data, seed)
            Step("adbench", data.name, contestant.name, seed, do).run(results)
            yield


def _run(contestant: Contestant, data: LabelledSet, seed: int) -> list[Row]:
    outlying, flagged = contestant.outlying(data.X, seed)
    return [{"system": contestant.name, "setting": flagged, **auc_and_ap(data.y, -outlying)}]
