"""The value of verdicts on rows, on any folder of labelled sets, beside other learners."""

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer

from hushtable.detectors import HushTable
from hushtable.errors import HushTableError
from hushtable_bench.adbench import KNOWN
from hushtable_bench.data import LabelledSet, auc_and_ap
from hushtable_bench.results import Page, Promise, Results, ResultTable, Row, Step, cell

Bools: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

DEFAULT, NO_FEEDBACK, FOREST = "HushTable", "no feedback", "random forest"
#: Systems of coniferest, by the names of their classes; each is in a module of that name.
CONIFERS = ("AADForest", "PineForest")


class Learner(Protocol):
    """Ranks the rows of a set."""

    def scores(self) -> Floats:
        """Return a score for each row (n,), low for outliers, from the verdicts so far."""

    def learn(self, rows: Ints, outliers: Bools) -> None:
        """Learn which of some rows, given by their places, are outliers."""


def without_feedback(data: LabelledSet, seed: int) -> Floats:
    """Return HushTable's scores of all rows (n,), without verdicts."""
    rows = data.rows()
    return HushTable(random_state=seed).fit(rows).score_samples(rows)


class _NoFeedback:
    """HushTable as it was fitted, which ignores verdicts."""

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
    """Learns from all verdicts so far at once; replaces missing values with medians."""

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
class LearningSystem:
    """A learner by its name in tables: ``make`` takes a set and a seed."""

    name: str
    make: Callable[[LabelledSet, int], Learner]
    ours: bool = False


def systems() -> list[LearningSystem]:
    """Return our system, and the others whose library is installed."""
    conifers = CONIFERS if find_spec("coniferest") is not None else ()
    return [
        LearningSystem(DEFAULT, _Ours, ours=True),
        *(LearningSystem(name, partial(_Conifer, name)) for name in conifers),
        LearningSystem(FOREST, _VerdictsAlone),
        LearningSystem(NO_FEEDBACK, _NoFeedback, ours=True),
    ]


class VerdictOutcome(NamedTuple):
    """The outcome of a number of verdicts.

    ``found`` is the number of outliers among the rows with a verdict; ``auc`` and ``ap`` are for
    the rows without one, NaN if those have only one label. ``rest`` (n,) marks these rows.
    """

    n_verdicts: int
    found: int
    auc: float
    ap: float
    rest: Bools


def looked_at(learner: Learner, y: Bools, budgets: Sequence[int]) -> Iterator[VerdictOutcome]:
    """Give a verdict on the row with the lowest score, let the learner learn, and repeat.

    Parameters
    ----------
    learner : Learner
        Ranks the rows.
    y : ndarray of shape (n,), bool
        Which rows are outliers.
    budgets : sequence of int
        Numbers of rows that get a verdict, ascending. If a number exceeds n, all rows get one.

    Yields
    ------
    Outcome
        For each budget.
    """
    rest, scores = np.ones(len(y), bool), learner.scores()
    for budget in budgets:
        while rest.any() and (~rest).sum() < budget:
            row = np.argmin(np.where(rest, scores, np.inf), keepdims=True)
            rest[row] = False
            learner.learn(row, y[row])
            scores = learner.scores()
        yield _outcome(budget, y, scores, rest.copy())


def given(learner: Learner, y: Bools, k: int, rng: np.random.Generator) -> VerdictOutcome:
    """Give verdicts on k random outliers and k other random rows, at most half of either kind."""
    rows = np.concatenate([_drawn(np.flatnonzero(kind), k, rng) for kind in (y, ~y)])
    rest = np.ones(len(y), bool)
    rest[rows] = False
    if len(rows):
        learner.learn(rows, y[rows])
    return _outcome(k, y, learner.scores(), rest)


def of_rest(y: Bools, scores: Floats, rest: Bools) -> tuple[float, float]:
    """Return ROC-AUC and average precision of some rows; NaN if they have only one label."""
    if y[rest].all() or not y[rest].any():
        return math.nan, math.nan
    figures = auc_and_ap(y[rest], scores[rest])
    return figures["auc"], figures["ap"]


def subset(data: LabelledSet, rows: int, seed: int) -> LabelledSet:
    """Draw at most this number of rows, in random order, with the set's share of outliers.

    The order is random because a learner may give rows equal scores; then the first gets the
    verdict.
    """
    rng, n = np.random.default_rng(seed), len(data.y)
    chosen = np.arange(n)
    if n > rows:
        outliers = min(rows - 1, max(1, round(rows * data.y.mean())))
        kinds = ((data.y, outliers), (~data.y, rows - outliers))
        chosen = np.concatenate([_drawn(np.flatnonzero(y), k, rng, 1) for y, k in kinds])
    return data.take(rng.permutation(np.sort(chosen)))


def _outcome(n_verdicts: int, y: Bools, scores: Floats, rest: Bools) -> VerdictOutcome:
    return VerdictOutcome(n_verdicts, int(y[~rest].sum()), *of_rest(y, scores, rest), rest)


def _drawn(rows: Ints, k: int, rng: np.random.Generator, of: int = 2) -> Ints:
    return rng.choice(rows, min(k, len(rows) // of), replace=False)


#: Numbers of outliers, and of other rows, whose verdicts are given at once.
GIVEN = (5, 20)
#: What is measured of a system, by the names of the columns of `Results`.
FIGURES = ("found", "auc", "ap", "seconds")


@dataclass(frozen=True)
class VerdictRuns:
    """All runs: systems, sets, and seeds; rows of a set at most, and rows that get a verdict."""

    systems: list[LearningSystem]
    sets: list[LabelledSet]
    seeds: int = 3
    rows: int = 5_000
    budget: int = 60

    @property
    def budgets(self) -> list[int]:
        """Numbers of verdicts after which figures are reported: a sixth, a half, and all."""
        return sorted({max(1, self.budget // 6), max(1, self.budget // 2), self.budget})

    @property
    def looks(self) -> str:
        """The experiment's name in results if rows get verdicts in turn; auc and ap are gains."""
        return f"verdicts-{self.rows}-{self.budget}"

    @property
    def gifts(self) -> str:
        """The experiment's name in results if verdicts are given at once."""
        return f"verdicts-{self.rows}-given"

    def steps(self) -> Iterator[Step]:
        """Yield two steps for each set, system and seed."""
        for data in self.sets:
            for system in self.systems:
                for seed in range(self.seeds):
                    for name, do in ((self.looks, self._look), (self.gifts, self._give)):
                        run = partial(_caught, system, partial(do, system, data, seed))
                        yield Step(name, data.name, system.name, seed, run)

    def _look(self, system: LearningSystem, data: LabelledSet, seed: int) -> Iterator[Row]:
        data = subset(data, self.rows, seed)
        before = without_feedback(data, seed)
        learner, start = system.make(data, seed), time.perf_counter()
        for outcome in looked_at(learner, data.y, self.budgets):
            seconds = (time.perf_counter() - start) / outcome.n_verdicts
            auc, ap = of_rest(data.y, before, outcome.rest)
            yield {
                "setting": outcome.n_verdicts, "found": outcome.found, "seconds": seconds,
                "auc": outcome.auc - auc, "ap": outcome.ap - ap,
            }  # fmt: skip

    def _give(self, system: LearningSystem, data: LabelledSet, seed: int) -> Iterator[Row]:
        data = subset(data, self.rows, seed)
        for k in GIVEN:
            outcome = given(system.make(data, seed), data.y, k, np.random.default_rng((seed, k)))
            yield {"setting": k, "found": outcome.found, "auc": outcome.auc, "ap": outcome.ap}

    def figures(self, results: Results) -> dict[tuple[str, float, str], Floats]:
        """Return means over the seeds (n_sets, n_systems), NaN if there are none.

        They are by experiment, number of verdicts (in turn, or outliers given at once), and figure.
        """
        place = {system.name: at for at, system in enumerate(self.systems)}
        of_set = {data.name: at for at, data in enumerate(self.sets)}
        shape, means = (len(of_set), len(place), self.seeds), dict[tuple[str, float, str], Floats]()
        for name in (self.looks, self.gifts):
            for row in results.select(name):
                index = of_set.get(row["data"]), place.get(row["system"]), row["seed"]
                if None in index or row["seed"] >= self.seeds or row["setting"] is None:
                    continue
                for figure in FIGURES:
                    key = name, row["setting"], figure
                    value = row[figure]
                    means.setdefault(key, np.full(shape, np.nan))[index] = (
                        np.nan if value is None else value
                    )
        return {key: mean(values, -1) for key, values in means.items()}


def mean(values: Floats, axis: int = 0) -> Floats:
    """Return the mean of the existing values over an axis, NaN if there are none."""
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(axis=axis)
    count = known.sum(axis=axis)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def error(values: Floats) -> Floats:
    """Return the standard error of `mean` over the sets, NaN for fewer than two."""
    count = np.isfinite(values).sum(axis=0)
    square = mean((values - mean(values)) ** 2) / np.maximum(count - 1, 1)
    return np.asarray(np.where(count > 1, np.sqrt(square), np.nan))


def failures(results: Results, runs: VerdictRuns) -> dict[str, str]:
    """Return the systems that failed on sets, and the reasons."""
    names = [data.name for data in runs.sets], [system.name for system in runs.systems]
    rows: Sequence[Row] = [*results.select(runs.looks), *results.select(runs.gifts)]
    return {
        f"{row['system']} on {row['data']}": row["note"]
        for row in rows
        if row["note"] and row["data"] in names[0] and row["system"] in names[1]
    }


def _caught(system: LearningSystem, do: partial[Iterator[Row]]) -> list[Row]:
    """Return the rows of a step, or the reason why there are none: a peer may raise anything."""
    caught: type[Exception] = HushTableError if system.ours else Exception
    try:
        with warnings.catch_warnings():
            if not system.ours:
                warnings.simplefilter("ignore")  # a peer's error on a set that does not suit it
            return [{"system": system.name} | row for row in do()]
    except caught as error:
        reason = str(error).strip().split("\n")[0][:200] or type(error).__name__
        return [{"system": system.name, "note": reason}]


#: Points of ROC-AUC that a set may lose on the rest, before it counts as worse.
WORSE = 2.0
#: Promises for the sets of both collections, with three seeds or more.
FOUND = {10: 5.3, 30: 17.5, 60: 36.0}
REST, WORSE_SETS, WITH_20 = {"ap": 14.0, "auc": 4.0}, 3, 58.0

Figures = Mapping[tuple[str, float, str], Floats]


def points(runs: VerdictRuns, figures: Figures, what: str, of: float | None = None) -> Floats:
    """Return figures (n_sets, n_systems) in points: gains on the rest, or after ``of`` given."""
    key = (runs.looks, runs.budget, what) if of is None else (runs.gifts, of, what)
    return 100 * np.asarray(figures.get(key, _blank(runs)))


def found(runs: VerdictRuns, figures: Figures, budget: int) -> Floats:
    """Return the outliers found (n_sets, n_systems) among this number of rows."""
    return np.asarray(figures.get((runs.looks, budget, "found"), _blank(runs)))


def page(runs: VerdictRuns, results: Results, figures: Figures) -> Page:
    """Lay out all tables of a comparison."""
    parts: Page = [
        f"At most {runs.rows:,} rows of each set. {runs.budget} times, the system gets the label "
        f"of the row with the lowest score. "
        "*found*: outliers among these rows. *rest*: average precision (AP) and ROC-AUC of "
        "all other rows, minus those "
        f"of {DEFAULT} without feedback on the same rows, in points. *k*: AP / ROC-AUC of the "
        "other rows, in percent, after the system got the labels of k outliers and k other rows, "
        "drawn at random (at most half of either kind). ± is the standard error over the sets.\n",
        f"## Means over {len(runs.sets)} sets; seeds: {runs.seeds}\n",
        systems_table(runs, figures),
        f"\n## Differences from {DEFAULT}, paired by set\n",
        differences_table(runs, figures),
    ]
    if failed := failures(results, runs):
        parts.append("\nThese have no figure:\n")
        parts += [f"- {name}: {why}" for name, why in failed.items()]
    return parts


def systems_table(runs: VerdictRuns, figures: Figures) -> ResultTable:
    """Lay out one row per system: found, gains on the rest, figures after given verdicts, time."""
    rest = {what: points(runs, figures, what) for what in ("ap", "auc")}
    seconds = mean(points(runs, figures, "seconds")) * 10
    rows = []
    for at, system in enumerate(runs.systems):
        row = [system.name]
        row += [_with_error(found(runs, figures, b)[:, at], ".1f") for b in runs.budgets]
        for values in rest.values():
            column = values[np.isfinite(values[:, at]), at]
            worst = f" ({column.min():.0f}; {(column < -WORSE).sum()})" if len(column) else ""
            row.append(_with_error(column, "+.1f") + worst)
        for k in GIVEN:
            both = (mean(points(runs, figures, what, k))[at] for what in ("ap", "auc"))
            row.append(" / ".join(cell(value, ".1f") for value in both))
        rows.append([*row, cell(seconds[at], ".0f")])
    worst = f"(worst set; sets below -{WORSE:.0f})"
    header = (
        "system", *(f"found in {b}" for b in runs.budgets), f"rest, AP {worst}",
        f"rest, ROC-AUC {worst}", *(f"k={k}" for k in GIVEN), "ms a verdict",
    )  # fmt: skip
    return ResultTable(header, rows)


def differences_table(runs: VerdictRuns, figures: Figures) -> ResultTable:
    """Lay out mean differences of the other systems from ours, with standard errors."""
    measured = {
        f"found in {runs.budget}": (found(runs, figures, runs.budget), "+.1f"),
        "rest, AP": (points(runs, figures, "ap"), "+.1f"),
        "rest, ROC-AUC": (points(runs, figures, "auc"), "+.1f"),
    }
    for k in GIVEN:
        measured[f"k={k}, AP"] = points(runs, figures, "ap", k), "+.1f"
    rows = [
        (system.name, *(_with_error(v[:, at] - v[:, 0], form) for v, form in measured.values()))
        for at, system in enumerate(runs.systems)
        if at
    ]
    return ResultTable((f"minus {DEFAULT}", *measured), rows)


def targets(runs: VerdictRuns, figures: Figures) -> list[Promise]:
    """Compare HushTable with its promises; there are none for other sets or settings."""
    both = {name for entry in KNOWN["collections"].values() for name in entry["sets"]}
    standard = VerdictRuns([], []).rows, VerdictRuns([], []).budget
    if {data.name for data in runs.sets} != both or (runs.rows, runs.budget) != standard:
        return []
    held = [
        Promise(f"found in {b}", float(mean(found(runs, figures, b))[0]), ">=", least, ".2f")
        for b, least in FOUND.items()
    ]
    for what, least in REST.items():
        value = float(mean(points(runs, figures, what))[0])
        held.append(Promise(f"rest, {what.upper()}, points gained", value, ">=", least, ".2f"))
    worse = float((points(runs, figures, "auc")[:, 0] < -WORSE).sum())
    claim = f"sets whose rest loses more than {WORSE:.0f} points of ROC-AUC"
    held.append(Promise(claim, worse, "<=", WORSE_SETS, ".0f"))
    with_20 = float(mean(points(runs, figures, "ap", GIVEN[-1]))[0])
    return [*held, Promise(f"AP with {GIVEN[-1]} of each, percent", with_20, ">=", WITH_20, ".2f")]


def _blank(runs: VerdictRuns) -> Floats:
    return np.full((len(runs.sets), len(runs.systems)), np.nan)


def _with_error(values: Floats, form: str) -> str:
    """Write a mean and its standard error over the sets."""
    if not np.isfinite(values).any():
        return "-"
    spread = float(error(values))
    return f"{float(mean(values)):{form}}" + (f" ± {spread:.1f}" if np.isfinite(spread) else "")
