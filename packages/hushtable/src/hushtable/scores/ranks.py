"""Ranks of rows among all counted rows, from a sum of histograms."""

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Counts
from hushtable.errors import PlanError, UsageError
from hushtable.plans.families import ScoreHistogram
from hushtable.plans.plan import Plan
from hushtable.scores.scorer import Scorer

#: A score lies within so many standard errors of what more tables would give, 19 times of 20.
WITHIN = 1.96

Floats = NDArray[np.float64]


class Ranks:
    """Turns a model's scores into ranks among the rows of all sites.

    Parameters
    ----------
    counts : Sketch or Release
        Merged counts under ``Plan.ranks`` of the model.
    scorer : Scorer
        Of the model.

    Attributes
    ----------
    shares : ndarray of shape (bins,), float64
        Share of the counted rows with a score in a cell or below. Under noise it is estimated:
        the rising sequence nearest to the sums of the noised counts (isotonic regression).

    Raises
    ------
    PlanError
        If the counts are not of this model's scores.
    UsageError
        If no rows were counted.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import HushTable, Plan, Sketch
    >>> from hushtable.scores import Ranks, Scorer
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> model = HushTable(random_state=0).fit(X).sketch_
    >>> scorer = Scorer(model)
    >>> ranks = Ranks(Sketch.from_data(Plan.ranks(model), X), scorer)
    >>> bool(ranks.of(scorer.score(X)).max() == 1.0)
    True
    """

    def __init__(self, counts: Counts, scorer: Scorer) -> None:
        family = counts.plan.family
        if not counts.adds or not isinstance(family, ScoreHistogram):
            raise PlanError(
                f"these are counts of a {counts.plan.detector!r} plan: ranks need counts under "
                "Plan.ranks(model), merged from all sites"
            )
        model = scorer.sketch
        if not model.adds:
            raise UsageError(
                "a local model scores a site's own rows by its exact counts, which no other site "
                "has: ranks are of the released model"
            )
        if counts.plan.plan_id != Plan.ranks(model).plan_id:
            raise PlanError(
                "these ranks are of another model: count again under Plan.ranks of this one"
            )
        self._family = family
        running = np.cumsum(counts.counts).astype(np.float64)
        self._error = np.zeros(len(running))
        if counts.noise_sd > 0.0:
            # Loads slowly, and is seldom needed.
            from scipy.optimize import isotonic_regression

            self._error = counts.noise_sd * np.sqrt(np.arange(1, len(running) + 1))
            running = np.maximum(isotonic_regression(running).x, 0.0)
        if running[-1] <= 0.0:
            raise UsageError("no rows were counted: add the sites' counts first")
        self.shares: Floats = running / running[-1]
        self._error /= running[-1]

    def of(self, scores: Floats) -> Floats:
        """Return the share of the counted rows that score as low, or lower.

        Parameters
        ----------
        scores : ndarray of shape (n,), float64
            As the model gives them.

        Returns
        -------
        ndarray of shape (n,), float64
            From 0 to 1; low is abnormal. Rows in the score's own cell count too.
        """
        return np.asarray(self.shares[self._family.cells(scores)], np.float64)

    def between(self, scores: Floats, errors: Floats) -> Floats:
        """Return the ranks between which a row's lies, 19 times of 20.

        Parameters
        ----------
        scores, errors : ndarray of shape (n,), float64
            Scores, and their standard errors.

        Returns
        -------
        ndarray of shape (n, 2), float64
            The ranks 1.96 standard errors below and above each score; under noise also 1.96
            standard errors of the histogram itself.
        """
        ends = []
        for side in (-WITHIN, WITHIN):
            cells = self._family.cells(scores + side * errors)
            ends.append(self.shares[cells] + side * self._error[cells])
        return np.clip(np.column_stack(ends), 0.0, 1.0)

    def threshold(self, share: float) -> float:
        """Return the highest score below which at most this share of the counted rows lies."""
        below = np.concatenate([[0.0], self.shares])
        return float(self._family.edges[np.searchsorted(below, share, side="right") - 1])
