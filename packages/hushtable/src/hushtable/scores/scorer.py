"""Scores of rows by merged counts, and ranks of scores among all counted rows."""

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from hushtable import files, progress
from hushtable.counts import rounds
from hushtable.counts.base import Counts
from hushtable.counts.kinds import counts_from_file
from hushtable.counts.verdicts import LearnedModel
from hushtable.data.encoding import Codes, Encoder, naming_places
from hushtable.data.passes import Numbered, numbered
from hushtable.data.readers import Reader
from hushtable.data.texts.reading import Reading
from hushtable.data.typed import open_rows
from hushtable.errors import PlanError, UsageError
from hushtable.plans.families import Contextual, ScoreHistogram
from hushtable.plans.score_rule import Summing, exact
from hushtable.threads import for_each, map_in_order, n_threads

if TYPE_CHECKING:
    from hushtable.scores.rules import Rules

Floats = NDArray[np.float64]
T = TypeVar("T")


class Scorer:
    """Scores rows against the counts of a (merged) sketch.

    Parameters
    ----------
    sketch : Sketch, Release or LocalModel
        The counts, and the plan that defines how they become scores.

    Attributes
    ----------
    values : ndarray of shape (n_cells,), float64
        Score of every cell, in bits.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import HushTable
    >>> from hushtable.scores import Scorer
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> detector = HushTable(random_state=0).fit(X)
    >>> bool((Scorer(detector.sketch_).score(X) == detector.score_samples(X)).all())
    True
    """

    def __init__(self, sketch: Counts) -> None:
        self.sketch = sketch
        self._reading = Reading()
        self.plan = sketch.plan
        self.values = sketch.cell_scores()
        self._encoder = Encoder(self.plan.schema)
        #: The rules of the rows' owner, which change no score: see `hushtable.scores.rules`.
        self.rules: Rules | None = None
        self.scoring = self.plan.family.scoring(self.values)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Scorer":
        """Read a scorer from the .hush file of a fitted detector, or of counts.

        Unlike `hushtable.load`, it also takes files of counts, and returns only a scorer.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Scorer
            It gives the detector's scores, and reads text as the detector does.

        Raises
        ------
        FileError
            If it is not an intact .hush file of counts of a protocol that this version reads.
        OSError
            If the file cannot be read.

        Examples
        --------
        >>> from hushtable import HushTable
        >>> from hushtable.scores import Scorer
        >>> detector = HushTable(random_state=0).fit([[70, 1], [71, 2], [72, 3], [180, 4]])
        >>> detector.save("model.hush")
        >>> int(Scorer.load("model.hush").score([[71, 2], [180, 1]]).argmin())
        1
        """
        content = files.read(path).expect("detector", "sketch", "release", "local")
        scorer = cls(content.build(counts_from_file))
        scorer._reading = content.build(Reading.from_file)
        return scorer

    def with_counts(self, sketch: Counts) -> "Scorer":
        """Return a scorer with other counts under the same plan, which reads rows the same way."""
        other = type(self)(sketch)
        other._reading, other._encoder = self._reading, self._encoder
        other.rules = self.rules
        return other

    def by_rules(self, rules: "Rules | None") -> "Scorer":
        """Return a scorer with the rules of the rows' owner, which lists apply."""
        other = copy(self)
        other.rules = rules
        return other

    def mapped(
        self,
        X: object,
        compute: Callable[[Numbered], T],
        n_jobs: int | None,
        keep: Sequence[str] = (),
    ) -> Iterator[T]:
        """Yield the threads' results for each numbered batch of rows, in order.

        Memory stays flat if a result keeps little of its batch.
        """
        reader = self.open(X, keep)
        items = itertools.chain.from_iterable(numbered(reader))
        with naming_places(reader):
            yield from map_in_order(compute, items, n_threads(n_jobs, reader.n_rows))

    def open(self, X: object, keep: Sequence[str] = ()) -> Reader:
        """Return a reader of rows with the plan's features as columns, then ``keep``."""
        return open_rows(X, self.plan.schema, self._reading, keep)

    def encode(self, item: Numbered) -> Codes:
        """Return the codes of a numbered batch."""
        start, batch, _ = item
        return self._encoder.encode(batch, start)

    def scored(self, item: Numbered) -> tuple[Codes, Floats]:
        """Return the codes of a numbered batch, and its scores."""
        codes = self.encode(item)
        return codes, self.scoring(codes)

    def score(self, X: object, *, n_jobs: int | None = None) -> Floats:
        """Return the mean over the tables of each row's cell scores, in bits; low = abnormal.

        If the plan has a margin (`HushTable`'s have), numbers beyond their feature's range lower
        the score: the further beyond, the more.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, in any form that `hushtable.data.readers.as_reader` takes.
        n_jobs : int, optional
            Threads: None means one, -1 every core. The scores do not depend on it.

        Returns
        -------
        ndarray of shape (n,), float64
        """
        return self.filled(X, lambda item: self.scored(item)[1], (), n_jobs)

    @progress.with_progress("Scoring")
    def filled(
        self,
        X: object,
        compute: Callable[[Numbered], Floats],
        shape: tuple[int, ...],
        n_jobs: int | None,
    ) -> Floats:
        """Return the results for all rows, ``(n, *shape)``, each batch in its place."""
        reader = self.open(X)
        if reader.n_rows is None:
            parts = list(self.mapped(reader, compute, n_jobs))
            return np.concatenate(parts) if parts else np.empty((0, *shape))
        result = np.empty((reader.n_rows, *shape))

        def fill(item: Numbered) -> None:
            scores = compute(item)
            result[item[0] : item[0] + len(scores)] = scores

        with naming_places(reader):
            for_each(fill, numbered(reader), n_threads(n_jobs, reader.n_rows))
        return result

    def errors(self, codes: Codes, scores: Floats) -> Floats:
        """Return the standard error (n,) of each score (n,): see `score_with_errors`."""
        m, centres = self.plan.family.n_tables, self._centres
        if len(codes.outside):
            scores = self.scoring.clipped(codes)
        if m < 2:
            raise UsageError("one table gives no standard error: needs 2 tables or more")
        squares, products = (summed(codes) for summed in self._moments)
        above = m * scores - centres.sum()
        spread = squares - 2.0 * products + (centres**2).sum() - above**2 / m
        # Rounding may make a spread of zero slightly negative.
        errors = np.sqrt(np.maximum(spread, 0.0) / ((m - 1) * m))
        return np.asarray(errors * self.scoring.share_kept(codes), np.float64)

    def moved(self, codes: Codes, scores: Floats) -> Floats:
        """Return how many bits verdicts took off each score (n,); negative if they added some.

        Values below the spread of the model's scores are set to 0.
        """
        if self._unlearned is None:
            return np.zeros(len(scores))
        before, spread = self._unlearned
        moved = before(codes) - scores
        return np.where(np.abs(moved) < spread, 0.0, moved)

    @cached_property
    def _unlearned(self) -> tuple[Summing, float] | None:
        """Scores as they were before verdicts, and their spread; None without verdicts."""
        if not isinstance(self.sketch, LearnedModel):
            return None
        values = self.sketch.model.cell_scores()
        return self.plan.family.scoring(values), self.sketch.spread(values)

    @progress.with_progress("Scoring")
    def score_with_errors(self, X: object, *, n_jobs: int | None = None) -> tuple[Floats, Floats]:
        """Return scores and their standard errors.

        The standard error states how much another draw of the hash functions, and of the noise,
        would move a row's score relative to those of other rows. It is the standard deviation, over
        the tables, of the difference between the score of the row's cell and the table's mean
        score, divided by the square root of the number of tables. It applies to tables drawn
        independently, as in the paper; evenly spread draws, as in `HushTable`, move scores less.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, in any form that `hushtable.data.readers.as_reader` takes.
        n_jobs : int, optional
            Threads: None means one, -1 every core. The results do not depend on it.

        Returns
        -------
        scores, errors : ndarray of shape (n,), float64
            In the unit of the plan's score rule.
        """

        def both(item: Numbered) -> Floats:
            codes, scores = self.scored(item)
            return np.stack([scores, self.errors(codes, scores)])

        parts = list(self.mapped(X, both, n_jobs))
        scores, errors = np.concatenate(parts, axis=1) if parts else np.empty((2, 0))
        return scores, errors

    @cached_property
    def _centres(self) -> Floats:
        """Mean score of the counted rows in each table, 0 or more."""
        means = self.histogram_means().reshape(self.plan.family.n_tables, -1).mean(axis=1)
        return np.asarray(np.maximum(means, 0.0), np.float64)

    @cached_property
    def _moments(self) -> tuple[Summing, Summing]:
        """Sums of the squares of cells' scores, and of their products with the table's centre.

        In a CountMin table, the least score has the least square and product: its scores are 0
        or more.
        """
        family = self.plan.family
        cells = np.diff(family.offsets).reshape(family.n_tables, -1).sum(axis=1)
        centre = np.repeat(self._centres, cells)
        squares, products = exact(self.values**2), exact(self.values * centre)
        return family.summing(squares), family.summing(products)

    @property
    def row_counts(self) -> NDArray[np.int64]:
        """Counts of all rows; under a plan of the second pass, those of the first pass."""
        first = self.plan.first_counts
        return self.sketch.counts if first is None else first

    def histogram_means(self) -> Floats:
        """Return the mean score of the counted rows in each histogram, from the counts alone.

        With noisy counts it is an estimate, unbiased for Gaussian noise: the rows' mean of f(score)
        is the cells' sum of true count times f, which by Stein's lemma is estimated from the noisy
        counts c as the sum of c f - sigma^2 df/dc. (A cell with a high count because of noise also
        has a high score: the plain sum of c f would count this as rows.)
        """
        sums = np.add.reduceat(self._row_sums(self.values), self.plan.family.offsets[:-1])
        return np.asarray(sums / self._n_rows)

    @property
    def row_noise(self) -> float:
        """Standard deviation of the noise on `row_counts`."""
        plan = self.plan
        return self.sketch.noise_sd if plan.first_counts is None else plan.first_noise_sd or 0.0

    def _row_sums(self, values: Floats) -> Floats:
        """Return, for each cell, the sum of its rows' ``values``: scores minus any constant.

        Under a plan of the second pass, the part of the score from the second counts shares no
        noise with the first counts, and needs no correction.
        """
        counts, noise_sd = self.row_counts, self.row_noise
        if noise_sd == 0.0:
            return counts * values
        rule, family = self.plan.score, self.plan.family
        if isinstance(family, Contextual):
            slopes = family.slopes(rule, counts, noise_sd)
        else:
            slopes = rule.noisy_slopes(counts, noise_sd)
        return counts * values - noise_sd**2 * slopes

    @property
    def _n_rows(self) -> int:
        if self.plan.first_counts is not None:
            return self.plan.first_rows
        if self.row_noise == 0.0:
            return self.plan.rows_counted(self.row_counts)
        return max(1, self.sketch.n_rows)

    def auto_offset(self) -> float:
        """Return a threshold computed from the counts alone.

        In each table, take the mean score of the rarer half of the counted rows (after a gate and
        for novelty, of the rarer third, because scores fall further there); return the mean over
        the tables, in bits. A mean over the worst of the rows is a coherent measure of risk
        (expected shortfall: Acerbi and Tasche, 2002), so the mean over the tables is at most that
        of the rarer half of the rows themselves: at most half of the counted rows are below it. For
        novelty, the contribution of a row's own count is subtracted, because new rows were not
        counted. With noisy counts the same is estimated; NaN if noise makes it too uncertain.
        """
        if self.row_noise > 0.0:
            return self._noisy_offset()
        counts, offsets = self.row_counts, self.plan.family.offsets
        deep = self.plan.gate_cell is not None or self.plan.score.name == "pseudocount_log2"
        rarer, sizes = (1.0 / 3.0 if deep else 0.5), np.diff(offsets)
        shortfalls = np.empty(len(sizes))
        for size in np.unique(sizes).tolist():  # many tables of the same size at once
            of_size = np.flatnonzero(sizes == size)
            for at in range(0, len(of_size), step := max(1, _AT_ONCE // size)):
                places = of_size[at : at + step]
                shortfalls[places] = _shortfalls(self.values, counts, offsets[places], size, rarer)
        offset, rule = float(np.mean(shortfalls)), self.plan.score
        if rule.name == "pseudocount_log2":  # for novelty: what a row adds to its own score
            added = counts * (rule.values(counts, 0) - rule.values(np.maximum(counts - 1, 0), 0))
            offset -= float(added.sum() / self._n_rows / self.plan.family.n_histograms)
        return offset

    def _noisy_offset(self) -> float:
        """Estimate the threshold from noisy counts.

        The mean replaces the median: q + 2 E min(score - q, 0), where q is the mean score, is at
        most the mean of the rarer half. For Laplace noise, `histogram_means` and this are
        approximate.
        """
        family, means = self.plan.family, self.histogram_means()
        mean = np.repeat(means, np.diff(family.offsets))
        rarer = np.where(self.values < mean, self._row_sums(self.values - mean), 0.0)
        offsets = means + 2.0 * np.add.reduceat(rarer, family.offsets[:-1]) / self._n_rows
        error = offsets.std() / np.sqrt(family.n_histograms)
        return float(offsets.mean()) if 3.0 * error < (means - offsets).mean() else float("nan")


#: Number of cells whose scores are sorted at once: they fit in the second-level cache.
_AT_ONCE = 16_384


def _shortfalls(
    values: Floats, counts: NDArray[np.int64], first: NDArray[np.int64], size: int, rarer: float
) -> Floats:
    """Return the mean score of the rarer rows in each of k tables of a size, by its first cell."""
    first = first[:, np.newaxis]
    cells = _order(values.take(first + np.arange(size)))
    cells += first
    share = np.cumsum(counts.take(cells), axis=1, dtype=np.float64)
    worst = share[:, -1:] * rarer
    np.minimum(share, worst, out=share)
    share[:, 1:] -= share[:, :-1]
    share /= worst
    share *= values.take(cells)
    # Not with @: BLAS adds in an order that depends on the processor.
    return np.asarray(share.sum(axis=1), np.float64)


def _order(values: Floats) -> NDArray[np.int64]:
    """Return ``np.argsort(values, kind="stable")`` of each row (k, size) of cells' scores.

    It takes a third of the time: as whole numbers (`exact`) with the cell's number in the lowest
    bits, no two are equal, so that any sort is stable.
    """
    if abs(values).max() >= 2.0**27:  # here the counts are the scores
        return np.argsort(values, axis=1, kind="stable")
    keys = np.rint(values * 2.0**36).astype(np.int64)
    keys += np.arange(values.shape[1])  # less than 2**16
    keys.sort(axis=1)
    keys &= (1 << 16) - 1
    return keys


#: Standard errors within which a score is of its value with many more tables, 19 times out of 20.
WITHIN = 1.96


class Ranks:
    """Turns a model's scores into ranks among the rows of all sites.

    Parameters
    ----------
    counts : Sketch or Release
        Merged counts under `hushtable.counts.rounds.ranks` of the model.
    scorer : Scorer
        Scorer of the model.

    Attributes
    ----------
    shares : ndarray of shape (bins,), float64
        Share of the counted rows with a score in a cell or below. Under noise it is estimated:
        the rising sequence closest to the sums of the noisy counts (isotonic regression).

    Raises
    ------
    PlanError
        If the counts do not belong to this model's scores.
    UsageError
        If no rows were counted.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import HushTable, Sketch
    >>> from hushtable.counts import rounds
    >>> from hushtable.scores import Ranks, Scorer
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> model = HushTable(random_state=0).fit(X).sketch_
    >>> scorer = Scorer(model)
    >>> ranks = Ranks(Sketch.from_data(rounds.ranks(model), X), scorer)
    >>> bool(ranks.of(scorer.score(X)).max() == 1.0)
    True
    """

    def __init__(self, counts: Counts, scorer: Scorer) -> None:
        family = counts.plan.family
        if not counts.adds or not isinstance(family, ScoreHistogram):
            raise PlanError(
                f"these are counts of a {counts.plan.detector!r} plan: ranks need counts under "
                "hushtable.counts.rounds.ranks(model), merged from all sites"
            )
        model = scorer.sketch
        if not model.adds:
            raise UsageError(
                "a local model scores a site's own rows by its exact counts, which no other site "
                "has: ranks need the released model"
            )
        if counts.plan.plan_id != rounds.ranks(model).plan_id:
            raise PlanError(
                "these ranks belong to another model: count again under the ranks of this one"
            )
        self._family = family
        running = np.cumsum(counts.counts).astype(np.float64)
        self._error = np.zeros(len(running))
        if counts.noise_sd > 0.0:
            # It loads slowly, and is seldom needed.
            from scipy.optimize import isotonic_regression

            self._error = counts.noise_sd * np.sqrt(np.arange(1, len(running) + 1))
            running = np.maximum(isotonic_regression(running).x, 0.0)
        if running[-1] <= 0.0:
            raise UsageError("no rows were counted: add the sites' counts first")
        self.shares: Floats = running / running[-1]
        self._error /= running[-1]

    def of(self, scores: Floats) -> Floats:
        """Return the share of the counted rows that have the same score or a lower one.

        Parameters
        ----------
        scores : ndarray of shape (n,), float64
            Scores given by the model.

        Returns
        -------
        ndarray of shape (n,), float64
            From 0 to 1; low is abnormal. Rows in the score's own cell count too.
        """
        return np.asarray(self.shares[self._family.cells(scores)], np.float64)

    def between(self, scores: Floats, errors: Floats) -> Floats:
        """Return the interval that contains a row's rank, 19 times out of 20.

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
