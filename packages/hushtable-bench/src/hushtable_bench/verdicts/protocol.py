"""Two protocols: rows are looked at one by one, or verdicts on rows drawn at random are given."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hushtable_bench.data import LabelledSet, auc_and_ap
from hushtable_bench.verdicts.learners import Bools, Floats, Ints, Learner


class Outcome(NamedTuple):
    """Outcome of some verdicts.

    ``found`` counts the outliers among the rows with a verdict; ``auc`` and ``ap`` are of the
    rows without one, NaN if those have one label only. ``rest`` (n,) says which these are.
    """

    n_verdicts: int
    found: int
    auc: float
    ap: float
    rest: Bools


def looked_at(learner: Learner, y: Bools, budgets: Sequence[int], told: Bools) -> Iterator[Outcome]:
    """Show the row that scores lowest, tell whether it is an outlier, and so on.

    Parameters
    ----------
    learner : Learner
        Ranks the rows.
    y : ndarray of shape (n,), bool
        Which rows are outliers.
    budgets : sequence of int
        Numbers of rows that are looked at, ascending. Beyond n, all are.
    told : ndarray of shape (n,), bool
        What is told of each row: ``y``, but for wrong verdicts.

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
            learner.learn(row, told[row])
            scores = learner.scores()
        yield _outcome(budget, y, scores, rest.copy())


def given(learner: Learner, y: Bools, k: int, rng: np.random.Generator) -> Outcome:
    """Tell of k outliers and k other rows, drawn at random: of half of either kind at most."""
    rows = np.concatenate([_drawn(np.flatnonzero(kind), k, rng) for kind in (y, ~y)])
    rest = np.ones(len(y), bool)
    rest[rows] = False
    if len(rows):
        learner.learn(rows, y[rows])
    return _outcome(k, y, learner.scores(), rest)


def of_rest(y: Bools, scores: Floats, rest: Bools) -> tuple[float, float]:
    """Return ROC-AUC and average precision of some rows; NaN if they have one label only."""
    if y[rest].all() or not y[rest].any():
        return math.nan, math.nan
    found = auc_and_ap(y[rest], scores[rest])
    return found["auc"], found["ap"]


def subset(data: LabelledSet, rows: int, seed: int) -> LabelledSet:
    """Draw rows at most, in random order, with the share of outliers that the set has.

    In random order, since a learner may score rows alike, and the first is then shown.
    """
    rng, n = np.random.default_rng(seed), len(data.y)
    chosen = np.arange(n)
    if n > rows:
        outliers = min(rows - 1, max(1, round(rows * data.y.mean())))
        kinds = ((data.y, outliers), (~data.y, rows - outliers))
        chosen = np.concatenate([_drawn(np.flatnonzero(y), k, rng, 1) for y, k in kinds])
    return data.take(rng.permutation(np.sort(chosen)))


def _outcome(n_verdicts: int, y: Bools, scores: Floats, rest: Bools) -> Outcome:
    return Outcome(n_verdicts, int(y[~rest].sum()), *of_rest(y, scores, rest), rest)


def _drawn(rows: Ints, k: int, rng: np.random.Generator, of: int = 2) -> Ints:
    return rng.choice(rows, min(k, len(rows) // of), replace=False)
