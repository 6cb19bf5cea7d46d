"""The systems compared: each ranks the rows of one set, and learns from verdicts on some."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer

from hushtable.detectors import HushTable
from hushtable.errors import UsageError
from hushtable_bench.data import LabelledSet

Bools: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

DEFAULT, NO_FEEDBACK, FOREST = "HushTable", "no feedback", "random forest"
#: Of coniferest, by the names of their classes; each in a module of its name.
CONIFERS = ("AADForest", "PineForest")


class Learner(Protocol):
    """Ranks the rows of a set."""

    def scores(self) -> Floats:
        """Return a score for each row (n,), low for outliers, by the verdicts so far."""

    def learn(self, rows: Ints, outliers: Bools) -> None:
        """Learn which of some rows, given by their places, are outliers."""


def without_feedback(data: LabelledSet, seed: int) -> Floats:
    """Return HushTable's scores of all rows (n,), without verdicts."""
    rows = data.rows()
    return HushTable(random_state=seed).fit(rows).score_samples(rows)


class _NoFeedback:
    """HushTable as it was fitted: verdicts change nothing."""

    def __init__(self, data: LabelledSet, seed: int) -> None:
        self._scores = without_feedback(data, seed)

    def scores(self) -> Floats:
        return self._scores

    def learn(self, rows: Ints, outliers: Bools) -> None:
        pass


class _Ours:
    """HushTable through its public calls: `learn`, then `score_samples` of all rows."""

    def __init__(self, data: LabelledSet, seed: int) -> None:
        self._data, self._rows = data, data.rows()
        self._detector = HushTable(random_state=seed).fit(self._rows)

    def scores(self) -> Floats:
        return self._detector.score_samples(self._rows)

    def learn(self, rows: Ints, outliers: Bools) -> None:
        self._detector.learn(self._data.take(rows).rows(), outliers.astype(np.int64))


class _Keeps:
    """Learns from all verdicts so far at once; takes medians for missing values."""

    def __init__(self, data: LabelledSet) -> None:
        self._X = SimpleImputer(strategy="median", keep_empty_features=True).fit_transform(data.X)
        self._known, self._outliers = np.empty(0, np.int64), np.empty(0, bool)

    def learn(self, rows: Ints, outliers: Bools) -> None:
        self._known = np.append(self._known, rows)
        self._outliers = np.append(self._outliers, outliers)


class _Conifer(_Keeps):
    """A forest of coniferest, with the library's defaults; its trees are fitted again each time."""

    def __init__(self, name: str, data: LabelledSet, seed: int) -> None:
        super().__init__(data)
        module = import_module(f"coniferest.{name.lower()}")
        self._forest = getattr(module, name)(random_seed=seed, n_jobs=1).fit(self._X)

    def scores(self) -> Floats:
        return np.asarray(self._forest.score_samples(self._X), np.float64)

    def learn(self, rows: Ints, outliers: Bools) -> None:
        super().learn(rows, outliers)
        signs = np.where(self._outliers, -1, 1)
        self._forest.fit_known(self._X, self._X[self._known], signs)


class _VerdictsAlone(_Keeps):
    """A random forest on the verdicts; HushTable's scores until there are both kinds."""

    def __init__(self, data: LabelledSet, seed: int) -> None:
        super().__init__(data)
        self._seed, self._before = seed, without_feedback(data, seed)

    def scores(self) -> Floats:
        if self._outliers.all() or not self._outliers.any():
            return self._before
        forest = RandomForestClassifier(random_state=self._seed)
        forest.fit(self._X[self._known], self._outliers)
        return -np.asarray(forest.predict_proba(self._X)[:, 1], np.float64)


@dataclass(frozen=True)
class System:
    """A learner by its name in tables: ``make`` takes a set and a seed."""

    name: str
    make: Callable[[LabelledSet, int], Learner]
    ours: bool = False


def systems(names: Sequence[str] = ()) -> list[System]:
    """Return ours and the systems named; all that are installed if none is named.

    Raises
    ------
    UsageError
        If a name is unknown, or its library is not installed.
    """
    known = [
        System(DEFAULT, _Ours, ours=True),
        *(System(name, partial(_Conifer, name)) for name in CONIFERS),
        System(FOREST, _VerdictsAlone),
        System(NO_FEEDBACK, _NoFeedback, ours=True),
    ]
    all_names = [one.name for one in known]
    for name in names:
        if name not in all_names:
            raise UsageError(f"system {name!r} is unknown: needs some of {', '.join(all_names)}")
        if name in CONIFERS and not installed():
            raise UsageError(
                f"{name} needs coniferest, which is not installed: pip install coniferest, or name "
                "other systems"
            )
    chosen = names or [name for name in all_names if name not in CONIFERS or installed()]
    return [one for one in known if one.name in chosen or one.name == DEFAULT]


def installed() -> bool:
    """Whether coniferest is there."""
    return find_spec("coniferest") is not None


def library_versions(chosen: Sequence[System]) -> tuple[str, ...]:
    """Return the packages whose versions the figures depend on."""
    more = ("coniferest",) if any(one.name in CONIFERS for one in chosen) else ()
    return ("numba", "numpy", "scikit-learn", *more)
