"""A site's own rows beside the counts of all others: unusual here, and unusual elsewhere.

A result that all sites share answers whether a row is unusual among all rows. A site can ask two
questions at home, at no cost in epsilon: whether it is unusual among the site's own rows, which are
there as they are; and whether it is among those of all others, whose counts are the result without
the site's own part. The answers differ, and each pair of answers means something else.
"""

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable import files
from hushtable.arguments import whole
from hushtable.counts.base import Counts
from hushtable.counts.kinds import counts_from_file
from hushtable.data.columns import texts_column
from hushtable.data.readers import Reader
from hushtable.data.typed import open_rows
from hushtable.detectors.hushtable import HushTable
from hushtable.display import Displayed
from hushtable.errors import DataError, PlanError, UsageError
from hushtable.scores.explain import Explainer

Floats = NDArray[np.float64]

#: What a row is, by both answers, and what to say of it.
ORDINARY, VISITOR, SYSTEMATIC, OUTLIER = "ordinary", "visitor", "systematic", "outlier"
WORDS = {
    ORDINARY: "usual here and elsewhere",
    VISITOR: "rare here, usual elsewhere",
    SYSTEMATIC: "common here, rare elsewhere",
    OUTLIER: "rare here and elsewhere",
}
_KINDS = (ORDINARY, VISITOR, SYSTEMATIC, OUTLIER)
#: Own rows without which the site's own model says nothing.
LEAST_ROWS = 10
#: How rare a row is elsewhere: from a typical score (0) to the threshold (1). About exp(-2.75b)
#: of the others' rows are at b or beyond: a seventh at .7, a fifteenth at 1. Measured: see
#: docs/benchmarks.md.
_SLOPE, _PLACE = 2.75, 0.7
#: Share of the own rows at that place up to which the others have no weight.
_TENTH = 0.1
#: How many times as many own rows as others' rows are about as rare elsewhere, and how many at
#: least, for these to be systematic; and how near the others of these are.
_EXCESS, _FEW, _NEAR = 3.0, 5, 0.25
#: Quantiles that are kept of how rare the own rows are elsewhere.
_QUANTILES = 2_001


@dataclass(frozen=True)
class HomeScores:
    """Rows by a site's own model, and by the counts of all others.

    Attributes
    ----------
    here, elsewhere : ndarray of shape (n,), float64
        Scores in bits, each of its own scale; low is abnormal.
    share_here : ndarray of shape (n,), float64
        Share of the site's own rows that are as rare here.
    beyond : ndarray of shape (n,), float64
        How rare a row is elsewhere, on the way from a typical score (0) to the threshold (1); with
        noise, one standard error less. 0 where the noise leaves no threshold.
    score : ndarray of shape (n,), float64
        One ranking of both; low is abnormal.
    rare_here : ndarray of shape (n,), bool
        Whether a row is below the threshold of the site's own model.
    systematic : ndarray of shape (n,), bool
        Whether a row is rare elsewhere, and many more of the own rows are as rare elsewhere than of
        the others'.
    """

    here: Floats
    elsewhere: Floats
    share_here: Floats
    beyond: Floats
    score: Floats
    rare_here: NDArray[np.bool_]
    systematic: NDArray[np.bool_]

    @cached_property
    def kinds(self) -> list[str]:
        """Kind of each row: ordinary, visitor, systematic or outlier."""
        rare = np.where(self.beyond < _PLACE, 1, 3)
        places = np.where(self.systematic, 2, np.where(self.rare_here, rare, 0))
        return [_KINDS[place] for place in places.tolist()]

    def table(self) -> pa.Table:
        """Return ``score``, ``here``, ``elsewhere`` and ``kind`` of each row."""
        columns = {"score": self.score, "here": self.here, "elsewhere": self.elsewhere}
        return pa.table({**columns, "kind": texts_column(self.kinds)})


@dataclass(frozen=True)
class SystematicRows:
    """Rows of a site that are common there and rare elsewhere, by the same column.

    Attributes
    ----------
    column : str
        Column that makes most of these rows rare elsewhere.
    rows : ndarray of shape (k,), int64
        Their numbers, rising.
    share : float
        Share of all rows that were scored.
    """

    column: str
    rows: NDArray[np.int64]
    share: float

    @property
    def words(self) -> str:
        """Sentence about the rows."""
        return (
            f"{len(self.rows):,} rows ({self.share:.1%}) are common here and rare elsewhere by "
            f"{self.column}: a device, a unit, a coding habit, or a speciality?"
        )


class HomeModel(Displayed):
    """A site's own model beside the counts of all other sites; it never leaves the site.

    Make one with `HomeModel.fit`.

    Attributes
    ----------
    here : HushTable
        Fitted to the site's own rows.
    elsewhere : Counts
        The others' counts, under the plan of the round.
    own_beyond : ndarray of shape (k,), float64
        Quantiles of how rare the site's own rows are elsewhere, rising: see `HomeScores`.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import Feature, HomeModel, Plan, Schema, Sketch
    >>> rng = np.random.default_rng(0)
    >>> mine, theirs = rng.normal(37, 0.4, (400, 1)), rng.normal(37, 0.4, (4000, 1))
    >>> mine[:120] = mine[:120] * 1.8 + 32  # Fahrenheit
    >>> schema = Schema([Feature.numeric("temperature", low=30, high=110)])
    >>> others = Sketch.from_data(Plan.draw(schema, random_state=0), theirs)
    >>> home = HomeModel.fit(mine, others, random_state=0)
    >>> home.scores(mine).kinds[:120].count("systematic") > 90
    True
    """

    def __init__(self, here: HushTable, elsewhere: Counts, own_beyond: Floats) -> None:
        self.here, self.elsewhere, self.own_beyond = here, elsewhere, own_beyond
        self._others = HushTable.from_counts(elsewhere)
        scorer = self._others._scorer
        self._typical = float(scorer.histogram_means().mean())
        self._threshold = scorer.auto_offset()

    @classmethod
    def fit(
        cls, X: Any, elsewhere: Counts, *, random_state: Any = None, n_jobs: int | None = None
    ) -> Self:
        """Fit the site's own model to its rows, and weigh the others' counts.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            The site's own rows, with the columns of the plan.
        elsewhere : Sketch or LocalModel
            Counts of all others under the plan of the round: of exact counts, ``result - own``; of
            a release, `LocalModel.of` with zeros in place of the site's exact counts.
        random_state, n_jobs
            As in `HushTable`.

        Raises
        ------
        DataError
            If there are fewer than 10 rows, or a column is missing.
        UsageError
            If the counts are of no rows, or hidden.
        """
        if elsewhere.hidden:
            raise UsageError(
                "the hash functions of these counts are hidden: open the result with the sites' "
                "plan first (hushtable round model --plan)"
            )
        plan = elsewhere.plan
        reader = open_rows(X, plan.schema).repeatable()
        options: dict[str, Any] = {"context": plan.context or None}
        options |= {"relations": plan.schema.relations is not None}
        here = HushTable(random_state=random_state, n_jobs=n_jobs, **options).fit(reader)
        model = cls(here, elsewhere, np.zeros(1))
        if model.n_rows < LEAST_ROWS:
            raise DataError(
                f"{reader.source} has {model.n_rows} rows: a model of its own needs "
                f"{LEAST_ROWS} at least; score with the result alone"
            )
        _, beyond = model._elsewhere(reader)
        model.own_beyond = np.quantile(beyond, np.linspace(0.0, 1.0, min(len(beyond), _QUANTILES)))
        return model

    @property
    def n_rows(self) -> int:
        """Number of the site's own rows."""
        plan = self.here.plan_
        return self.here.sketch_.n_rows if plan.first_counts is None else plan.first_rows

    @property
    def weight(self) -> float:
        """Weight of ``elsewhere`` in the one ranking, from 0 to 1.

        It is 0 if at most a tenth of the site's rows are as rare elsewhere as a seventh of the
        others' rows, and 1 if a fifth are.
        """
        share = float(self._share(np.array([_PLACE]))[0])
        return min(max(share / _TENTH - 1.0, 0.0), 1.0)

    def _share(self, beyond: Floats) -> Floats:
        """Return the share of the own rows that are as rare elsewhere, or rarer."""
        below = np.searchsorted(self.own_beyond, beyond, side="left")
        return np.asarray(1.0 - below / len(self.own_beyond), np.float64)

    def _elsewhere(self, reader: Reader) -> tuple[Floats, Floats]:
        """Return the scores of rows among the others' rows, and how far these are beyond."""
        scorer, n_jobs = self._others._scorer, self.here.n_jobs
        if scorer.row_noise > 0.0:
            scores, errors = scorer.score_with_errors(reader, n_jobs=n_jobs)
        else:
            scores, errors = scorer.score(reader, n_jobs=n_jobs), np.zeros(())
        width = self._typical - self._threshold
        if not width > 0.0:  # or unknown, under noise
            return scores, np.zeros(len(scores))
        return scores, (self._typical - scores - errors) / width

    def scores(self, X: Any) -> HomeScores:
        """Score rows by both: see `HomeScores`.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns of the plan.
        """
        reader = open_rows(X, self.elsewhere.plan.schema).repeatable()
        here = self.here._scores(reader)
        elsewhere, beyond = self._elsewhere(reader)
        usual = self.here._usual_values()
        assert usual is not None
        share = np.maximum(usual.as_rare(here), 0.5 / max(1, self.n_rows))
        score = -np.maximum(-np.log(share), _SLOPE * self.weight * beyond)
        systematic = beyond >= 1.0
        far = beyond[systematic]
        own, others = (
            share_of(far - _NEAR) - share_of(far + _NEAR)
            for share_of in (self._share, _share_of_others)
        )
        systematic[systematic] = (own >= _EXCESS * others) & (own * self.n_rows >= _FEW)
        rare_here = here < self.here.offset_
        return HomeScores(here, elsewhere, share, beyond, score, rare_here, systematic)

    def systematic(self, X: Any, scores: HomeScores | None = None) -> list[SystematicRows]:
        """Group the rows that are common here and rare elsewhere by the column that makes them so.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns of the plan.
        scores : HomeScores, optional
            Of these rows, if they are known already.

        Returns
        -------
        list of SystematicRows
            The most rows first; groups of fewer than five are left out.
        """
        reader = open_rows(X, self.elsewhere.plan.schema).repeatable()
        found = (scores or self.scores(reader)).systematic
        rows = np.flatnonzero(found)
        if not len(rows):
            return []
        explainer = Explainer(self._others._scorer)
        blamed = explainer.explain(reader.take(rows), n_jobs=self.here.n_jobs).argmax(axis=1)
        names = self.elsewhere.plan.schema.of_rows.names
        groups = [
            SystematicRows(name, mine, len(mine) / len(found))
            for j, name in enumerate(names)
            if len(mine := rows[blamed == j]) >= _FEW
        ]
        return sorted(groups, key=lambda group: -len(group.rows))

    def outliers(self, X: Any, n: int = 10, scores: HomeScores | None = None) -> pa.Table:
        """List the rows with the lowest scores, with their kind and the reasons.

        Reasons are those of the question that makes the row unusual: of the site's own model, or,
        for what is systematic here, of the others' counts.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows, with the columns of the plan.
        n : int, default=10
            Rows to list at most.
        scores : HomeScores, optional
            Of these rows, if they are known already.

        Returns
        -------
        pyarrow.Table
            ``row`` (from 0), ``score``, ``here``, ``elsewhere``, ``kind`` and ``words``.
        """
        whole("n", n, 1)
        reader = open_rows(X, self.elsewhere.plan.schema).repeatable()
        found = scores or self.scores(reader)
        lowest = np.argsort(found.score, kind="stable")[:n]
        rows = np.sort(lowest)
        words = [self._reasons(model, reader.take(rows)) for model in (self.here, self._others)]
        kinds = [found.kinds[row] for row in lowest.tolist()]
        lines = []
        for row, kind in zip(lowest.tolist(), kinds, strict=True):
            reasons = words[kind == SYSTEMATIC][int(np.searchsorted(rows, row))]
            lines.append(f"{WORDS[kind]}: {reasons}" if reasons else WORDS[kind])
        table = found.table().take(pa.array(lowest))
        table = table.add_column(0, "row", pa.array(lowest))
        return table.append_column("words", texts_column(lines))

    def _reasons(self, model: HushTable, reader: Reader) -> list[str]:
        """Return the reasons of rows in words, in the order of the rows."""
        listed = model._lowest(reader, reader.n_rows or 0).table()
        order = np.argsort(listed["row"].to_numpy())
        return [str(words) for words in listed["words"].take(pa.array(order)).to_pylist()]

    def __repr__(self) -> str:
        return (
            f"HomeModel({self.n_rows:,} rows here, about "
            f"{self.elsewhere.n_rows:,} elsewhere, weight={self.weight:.2f})"
        )

    # --- files --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a .hush file, atomically: for this site alone, like its rows."""
        here, arrays = self.here._entries()
        counts, others = self.elsewhere.entries()
        entries = {
            "here": here,
            "elsewhere": {"kind": self.elsewhere.kind, **counts},
        }
        found = {f"here.{name}": array for name, array in arrays.items()}
        found |= {f"elsewhere.{name}": array for name, array in others.items()}
        found["own_beyond"] = self.own_beyond
        files.write(path, "home", entries, found)

    @classmethod
    def from_file(cls, content: files.Content) -> Self:
        """Build the model that a file carries; raises `PlanError` if it does not fit."""
        said = content.said("home model", {"here": dict, "elsewhere": dict})
        kind, own = said["elsewhere"].get("kind"), content.array("own_beyond")
        rising = (
            own.dtype == np.float64 and own.ndim == 1 and len(own) > 0 and np.isfinite(own).all()
        )
        if kind not in ("sketch", "local") or not rising or (np.diff(own) < 0.0).any():
            raise PlanError("home model: needs counts of others, and numbers that rise")
        here = HushTable.from_file(content.part("here", "detector"))
        return cls(here, counts_from_file(content.part("elsewhere", kind)), own)


def _share_of_others(beyond: Floats) -> Floats:
    """Return about what share of the others' rows is as rare, or rarer."""
    return np.asarray(np.exp(-_SLOPE * np.maximum(beyond, 0.0)), np.float64)
