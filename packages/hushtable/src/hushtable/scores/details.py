"""Findings of rows besides their scores: standard errors, ranks, and reasons."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import as_column, texts_column
from hushtable.data.encoding import Codes
from hushtable.data.readers import taken
from hushtable.data.schema import DATE
from hushtable.data.weights import Numbered
from hushtable.errors import DataTypeError, UsageError
from hushtable.scores.distributions import Distributions
from hushtable.scores.explain import Explained
from hushtable.scores.reasons import ContextRows, Reason, Reasons, Top
from hushtable.scores.scorer import Ranks, Scorer

Floats = NDArray[np.float64]
T = TypeVar("T")

#: The year 9999 in milliseconds since 1970: no calendar goes further.
_LAST_DATE = 253402300799999.0


@dataclass(frozen=True)
class Detail:
    """Findings of one row besides its score; None where they were not asked for."""

    #: Standard error of the score.
    error: float | None = None
    #: Proportion of the rows of all sites that is at least as rare, and two between which it lies.
    ranks: list[float] | None = None
    #: The strongest first.
    reasons: list[Reason] | None = None
    #: Names of the columns whose value is outside the plan's range or categories.
    outside: tuple[str, ...] = ()
    #: How many similar rows a typical row has beside this one, in words; empty if not known.
    crowding: str = ""
    #: That few rows of the row's context were counted, in words; empty if that is not so.
    context: str = ""
    #: Of each column that is kept, the row's value: an array of one.
    kept: tuple[pa.Array, ...] = ()
    #: Bits that verdicts on rows took off the score; below 0 where they added some, and 0 where it
    #: is less than scores spread anyway.
    moved: float = 0.0

    @property
    def likeness(self) -> str:
        """Verdicts that moved the score by much, in words; empty if none did."""
        if not self.moved:
            return ""
        verdict = "confirmed as outliers" if self.moved > 0.0 else "found fine"
        return f"like rows that were {verdict} ({abs(self.moved):.1f} bits)"

    @property
    def rank_words(self) -> list[str]:
        """The rank, and the two that it lies between, for a table; empty where none is known."""
        if self.ranks is None:
            return []
        rank, low, high = self.ranks
        return [f"{rank:.2%}", f"{low:.2%} and {high:.2%}"]

    def facts(self) -> dict[str, Any]:
        """Return ranks, reasons and columns outside, for machines."""
        ranks, reasons = self.ranks, self.reasons
        return {
            **({} if ranks is None else {"rank": ranks[0], "between": ranks[1:]}),
            **({} if reasons is None else {"reasons": [reason.facts() for reason in reasons]}),
            **({"outside": list(self.outside)} if self.outside else {}),
            **({"moved": self.moved} if self.likeness else {}),
        }


@dataclass(frozen=True)
class Scored:
    """A batch of n rows, scored."""

    #: (n,): low is abnormal; NaN of rows that are not judged.
    scores: Floats
    #: (d, 2): missing and outside values of each feature.
    tally: NDArray[np.int64]
    #: Numbers in the batch of the lowest rows, lowest first.
    lowest: NDArray[np.int64]
    #: (n, 3): the rank of each row, and two between which it lies.
    ranks: Floats | None
    #: As `Reasons.of` returns them; empty if no reasons were asked for.
    top: Top
    #: (n,): names of the columns whose value is outside, joined by commas; null if none is.
    outside: pa.Array
    #: From a place in ``lowest`` to the row's details.
    detail: Callable[[int], Detail]
    #: The columns that are kept, of all rows.
    kept: list[pa.Array] = field(default_factory=list)


@dataclass(frozen=True)
class RowDetails:
    """Scores rows, and finds what else is asked for."""

    scorer: Scorer
    #: Rows of each batch, the lowest, whose details may be asked for.
    most: int = 0
    #: Whether to find the ranks of all rows, and not of the lowest alone.
    every_rank: bool = False
    #: Whether to find standard errors.
    errors: bool = False
    ranks: Ranks | None = None
    reasons: Reasons | None = None
    #: Takes in the values of all rows, where they are to be shown.
    distributions: Distributions | None = None
    #: Columns whose values stay beside the scores: features, or others that the rows have.
    keep: Sequence[str] = ()
    #: Whether rows are not judged of whose context few rows were counted.
    only_counted: bool = False

    def __post_init__(self) -> None:
        if self.only_counted and self._contexts is None:
            why = "its counts have noise" if self.scorer.plan.context else "it has no context"
            raise UsageError(
                "only_counted (--only-counted) leaves rows out of whose context few rows were "
                f"counted; the model cannot tell: {why}"
            )

    @cached_property
    def _contexts(self) -> ContextRows | None:
        compared = self.scorer.plan.context and not self.scorer.row_noise
        return ContextRows(self.scorer) if compared else None

    @cached_property
    def _dates(self) -> set[str]:
        """The names of features that are points in time."""
        return {f.name for f in self.scorer.plan.schema.features if f.unit == DATE}

    def batches(
        self, X: Any, reduce: Callable[[Scored], T], *, n_jobs: int | None = None
    ) -> Iterator[T]:
        """Yield ``reduce`` of each batch, in order; it is called by the threads."""
        if (reasons := self.reasons) is None:

            def scored(item: Numbered) -> T:
                return reduce(self._scored(item[1], *self.scorer.scored(item)))

            return self.scorer.mapped(X, scored, n_jobs, self.keep)

        def explained(batch: Explained) -> T:
            top, words = reasons.of(batch, lowest_rows(batch.scores, self.most))
            return reduce(self._scored(batch.rows, batch.codes, batch.scores, top, words))

        return reasons.explainer.batches(X, explained, n_jobs=n_jobs, keep=self.keep)

    def _ranked(self, codes: Codes, scores: Floats) -> Floats:
        """Return the ranks (n, 3) of scores (n,): the rank, and two between which it lies."""
        assert self.ranks is not None
        ends = self.ranks.between(scores, self.scorer.errors(codes, scores))
        return np.column_stack([self.ranks.of(scores), ends])

    def _scored(
        self,
        rows: Any,
        codes: Codes,
        scores: Floats,
        top: Top | None = None,
        reasons: Callable[[int], list[Reason] | None] = lambda _: None,
    ) -> Scored:
        if self.distributions is not None:
            self.distributions.add(codes)
        if self.only_counted and self._contexts is not None:
            scores = np.where(self._contexts.few(codes), np.nan, scores)
        # Of the codes, what is kept while others are scored is that of the lowest rows alone.
        lowest = lowest_rows(scores, self.most)
        few, names = codes.take(lowest), self.scorer.plan.schema.names
        kept = [_plain(rows.column(name), name, name in self._dates) for name in self.keep]
        kept_few = taken(pa.RecordBatch.from_arrays(kept, list(self.keep)), lowest) if kept else ()

        def detail(k: int) -> Detail:
            one, score = few.take(np.array([k])), scores[lowest[[k]]]
            error = float(self.scorer.errors(one, score)[0]) if self.errors else None
            ranks = None if self.ranks is None else self._ranked(one, score)[0].tolist()
            return Detail(
                error,
                ranks,
                reasons(k),
                outside_words(one, 0, names),
                "" if self.reasons is None else self.reasons.crowding(one),
                "" if self._contexts is None else self._contexts.words(rows, int(lowest[k]), one),
                tuple(one.slice(k, 1) for one in kept_few),
                float(self.scorer.moved(one, score)[0]),
            )

        ranks = self._ranked(codes, scores) if self.every_rank and self.ranks else None
        words = outside_column(codes, names)
        return Scored(scores, codes.tally, lowest, ranks, top or [], words, detail, kept)


def _plain(column: pa.Array, name: str, dates: bool) -> pa.Array:
    """Return a column without a dictionary, which differs from batch to batch, and no views.

    ``dates`` says that it is a feature of points in time, which are counted as seconds since 1970.
    """
    if pa.types.is_nested(column.type):
        raise DataTypeError(
            f"column {name!r} has type {column.type}: needs single values to stand beside scores; "
            "leave it out of those to keep"
        )
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if dates and pa.types.is_floating(column.type):
        milliseconds = pc.round(pc.multiply(column, 1000.0))
        in_calendar = pc.less_equal(pc.abs(milliseconds), _LAST_DATE)
        dated = pc.if_else(in_calendar, milliseconds, None)
        return dated.cast(pa.int64()).cast(pa.timestamp("ms"))
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column


def outside_words(codes: Codes, row: int, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns in which a row's value is outside, in the plan's order."""
    outside = codes.outside
    return tuple(names[j] for j in outside.features[outside.rows == row].tolist())


def outside_column(codes: Codes, names: Sequence[str]) -> pa.Array:
    """Return, for each row, `outside_words` joined by commas; null for rows without any."""
    outside = codes.outside
    if not len(outside):
        return pa.nulls(codes.n_rows, pa.string())
    order = np.argsort(outside.rows, kind="stable")
    rows, first = np.unique(outside.rows[order], return_index=True)
    found = [[names[j] for j in f.tolist()] for f in np.split(outside.features[order], first[1:])]
    index = np.full(codes.n_rows, -1)
    index[rows] = np.arange(len(rows))
    texts = texts_column([", ".join(some) for some in found])
    return texts.take(as_column(index, index >= 0))


def lowest_rows(scores: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Return the numbers of the lowest scores, lowest first; of equal ones, the earlier first.

    Those that are NaN come last.
    """
    if 0 < most < len(scores):
        few = np.flatnonzero(scores <= np.partition(scores, most - 1)[most - 1])
        return few[np.argsort(scores[few], kind="stable")[:most]]
    return np.argsort(scores, kind="stable")[:most]
