"""Who races: our detectors, and those of other packages, the latter where they are installed.

All have their defaults, but for the number of trees (100 everywhere), seeds and threads (one);
HushTable, which makes two passes then, takes part with one and for novelty detection as well.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from pyod.models.ecod import ECOD
from pyod.models.hbos import HBOS
from pyod.models.loda import LODA
from sklearn.ensemble import IsolationForest

from hushtable import HushTable, LSHiTables

#: Whose times the others' are multiples of.
PEER = "IsolationForest"
#: Two passes, and what they are held to; then novelty detection.
DEFAULT, ONE_PASS, NOVELTY = "HushTable", "HushTable, one pass", "HushTable, novelty"
DECISION = "decision_function"


@dataclass(frozen=True)
class Contestant:
    """A detector that can be fitted and timed.

    ``m`` is its number of tables, trees or projections, 0 without any. ``score`` is the method
    that scores rows. Rows come as ``dtype``, which it reads without converting them first.
    ``bytes_a_value`` is what it holds for each value, besides the value as float32.
    """

    name: str
    make: Callable[[], Any]
    m: int = 100
    score: str = "score_samples"
    is_peer: bool = True
    dtype: type[np.floating[Any]] = np.float32
    bytes_a_value: int = 0


def _ours(
    detector: type[LSHiTables] | type[HushTable], m: int, how: str = "", **settings: Any
) -> Contestant:
    make = partial(detector, n_tables=m, random_state=0, n_jobs=1, **settings)
    return Contestant(detector.__name__ + how, make, m, is_peer=False)


def _coniferest() -> Any:
    from coniferest.isoforest import IsolationForest

    return IsolationForest(n_trees=100, random_seed=0, n_jobs=1)


def _isotree() -> Any:
    import isotree

    # As many rows a tree as the other forests draw: with its own default, up to 10,000, it takes
    # seven times as long.
    return isotree.IsolationForest(ntrees=100, sample_size=256, random_seed=1, nthreads=1)


CONTESTANTS = [
    _ours(LSHiTables, 100),
    _ours(LSHiTables, 400),
    _ours(HushTable, 100),
    # Right after the default, so that what else the machine does meets them alike.
    _ours(HushTable, 100, ", one pass", passes=1),
    _ours(HushTable, 100, ", novelty", novelty=True),
    _ours(HushTable, 400),
    Contestant(PEER, partial(IsolationForest, random_state=0, n_jobs=1)),
    Contestant("coniferest", _coniferest, dtype=np.float64, bytes_a_value=8),
    # isotree works on columns: every call puts the rows into a copy.
    Contestant("isotree", _isotree, score=DECISION, dtype=np.float64, bytes_a_value=16),
    # HBOS works out a float64 for every value before it adds them up.
    Contestant("HBOS", HBOS, 0, DECISION, bytes_a_value=8),
    Contestant("LODA", partial(LODA, random_state=0), 100, DECISION, True, np.float64, 8),
    # ECOD scores the rows of its fit again, and holds about ten float64 for each value of both.
    Contestant("ECOD", partial(ECOD, n_jobs=1), 0, DECISION, bytes_a_value=150),
]


def installed(
    contestants: Iterable[Contestant] = CONTESTANTS,
) -> tuple[list[Contestant], list[str]]:
    """Return those that can run here, and for each of the others a line that says why not."""
    present, absent = [], []
    for contestant in contestants:
        try:
            contestant.make()
        except ImportError as error:
            absent.append(f"{contestant.name}: skipped, {error}.")
        else:
            present.append(contestant)
    return present, absent
