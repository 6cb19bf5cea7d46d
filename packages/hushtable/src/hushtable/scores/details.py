"""Findings about rows besides their scores: standard errors, ranks, and reasons."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import as_column, texts_column
from hushtable.data.encoding import Codes
from hushtable.data.readers import Batch, joined, taken
from hushtable.data.schema import DATE
from hushtable.data.weights import Numbered
from hushtable.errors import DataTypeError, UsageError
from hushtable.language import _, numerals, percents
from hushtable.scores.explain import Explained
from hushtable.scores.reasons import ContextRows, Reason, Reasons, RowReasons, Top
from hushtable.scores.rules import Rules
from hushtable.scores.scorer import Ranks, Scorer
from hushtable.scores.typical import cell, describe_cell
from hushtable.scores.usual import FARTHEST, Usual

Floats = NDArray[np.float64]
T = TypeVar("T")

#: How far the keys of rows with a value far outside everything are below their scores, for each
#: multiple of the limit; and those of rows with an impossible value, below all others.
FAR_FIRST = float(1 << 20)
IMPOSSIBLE_FIRST = 2.0 * FARTHEST * FAR_FIRST
#: The year 9999 in milliseconds since 1970: calendars end there.
_LAST_DATE = 253402300799999.0


@dataclass(frozen=True)
class Detail:
    """Findings about one row besides its score; None if they were not requested."""

    #: Standard error of the score.
    error: float | None = None
    #: Share of the rows of all sites that are at least as rare, and the interval that contains it.
    ranks: list[float] | None = None
    #: The row's values, and the share of each feature in the score (d,), from which `explained`
    #: finds the reasons; None if they were not requested.
    row: Any = field(default=None, repr=False)
    shares: Floats | None = field(default=None, repr=False)
    #: The reasons, once `explained` has found them.
    why: RowReasons | None = None
    #: How far outside everything a value is: see `Usual.far`; 0 if no value is.
    far: float = 0.0
    #: The value that is impossible by the owner's rules, in words; empty if there is none.
    rule: str = ""
    #: Names of the columns with a value outside the plan's range or categories.
    outside: tuple[str, ...] = ()
    #: How many more similar rows a typical row has than this one, in words; empty if unknown.
    crowding: str = ""
    #: A note that few rows of the row's context were counted, in words; empty if many were.
    context: str = ""
    #: For each column to keep, the row's value as an array of one.
    kept: tuple[pa.Array, ...] = ()
    #: Bits that verdicts on rows subtracted from the score; negative if they added some, and 0 if
    #: it is less than the ordinary spread of scores.
    moved: float = 0.0

    @property
    def reasons(self) -> list[Reason] | None:
        """The reasons in their order; None if they were not requested."""
        return None if self.why is None else self.why.reasons

    @property
    def likeness(self) -> str:
        """The effect of verdicts on the score, in words; empty if it is small."""
        if not self.moved:
            return ""
        bits = numerals(f"{abs(self.moved):.1f}")
        if self.moved > 0.0:
            return _("like rows that were confirmed as outliers (%(bits)s bits)", bits=bits)
        return _("like rows that were judged fine (%(bits)s bits)", bits=bits)

    @property
    def rank_words(self) -> list[str]:
        """The rank and its interval, for a table; empty if unknown."""
        if self.ranks is None:
            return []
        own, low, high = (percents(f"{100.0 * one:.2f}") for one in self.ranks)
        return [own, _("%(low)s and %(high)s", low=low, high=high)]

    def facts(self) -> dict[str, Any]:
        """Return ranks, reasons and columns outside the plan in machine-readable form."""
        ranks = self.ranks
        return {
            **({} if ranks is None else {"rank": ranks[0], "between": ranks[1:]}),
            **({} if self.why is None else self.why.facts()),
            **({"outside": list(self.outside)} if self.outside else {}),
            **({"far": True} if self.far else {}),
            **({"rule": self.rule} if self.rule else {}),
            **({"moved": self.moved} if self.likeness else {}),
        }


@dataclass(frozen=True)
class Scored:
    """A batch of n scored rows."""

    #: (n,): low is abnormal; NaN for rows that are not judged.
    scores: Floats
    #: (d, 2): numbers of missing and of outside values of each feature.
    tally: NDArray[np.int64]
    #: (n,): the keys that order the list: the scores, but far below all others if a value is far
    #: outside everything.
    keys: Floats
    #: Numbers in the batch of the rows with the lowest keys, lowest first.
    lowest: NDArray[np.int64]
    #: (n, 3): the rank of each row, and the interval that contains it.
    ranks: Floats | None
    #: As returned by `Reasons.top`; empty if reasons of all rows were not requested.
    top: Top
    #: (n,): names of the columns with outside values, joined by commas; null if there are none.
    outside: pa.Array
    #: Details of rows, by their positions in ``lowest``.
    detail: Callable[[int], Detail]
    #: The columns to keep, of all rows.
    kept: list[pa.Array] = field(default_factory=list)
    #: What the owner's rules state about the rows.
    ruled: "Ruled | None" = None


@dataclass(frozen=True)
class Ruled:
    """Rows that are impossible or known by their owner's rules."""

    #: (n,): number of the first feature with an impossible value, or -1.
    impossible: NDArray[np.int64]
    #: (n,): whether a row is known, so that it is not listed.
    known: NDArray[np.bool_]

    @classmethod
    def of(cls, rules: Rules, rows: Batch) -> "Ruled":
        """Apply the rules to rows as they were read."""
        return cls(rules.impossible(rows), rules.known(rows))

    def keys(self, keys: Floats) -> Floats:
        """Return the keys that order the list: impossible rows first, known rows never.

        ``keys`` are the keys without the rules.
        """
        found = keys - IMPOSSIBLE_FIRST * (self.impossible >= 0)
        return np.where(self.known, np.inf, found)

    def flagged(self, outliers: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which rows are outliers: impossible ones always are, known ones never."""
        return (outliers | (self.impossible >= 0)) & ~self.known

    def column(self, names: Sequence[str]) -> pa.Array:
        """Return words about each row, given the columns' names; null if there are none."""
        words = texts_column([*(f"{name} is impossible" for name in names), "known"])
        index = np.where(self.known, len(names), self.impossible)
        return words.take(as_column(index, index >= 0))


@dataclass(frozen=True)
class RowDetails:
    """Scores rows, and finds the other results that are requested."""

    scorer: Scorer
    #: Number of lowest rows in each batch whose details may be requested.
    most: int = 0
    #: Whether to find the ranks of all rows instead of only the lowest.
    every_rank: bool = False
    #: Whether to find standard errors.
    errors: bool = False
    ranks: Ranks | None = None
    reasons: Reasons | None = None
    #: Whether the features with the largest shares are requested for all rows.
    every_top: bool = False
    #: What is usual among the counted rows: rows with a value far outside it come first.
    usual: Usual | None = None
    #: Columns whose values are kept with the scores: features, or others that the rows have.
    keep: Sequence[str] = ()
    #: Whether to leave out rows if few rows of their context were counted.
    only_counted: bool = False

    def __post_init__(self) -> None:
        if self.only_counted and self._contexts is None:
            why = "its counts have noise" if self.scorer.plan.context else "it has no context"
            raise UsageError(
                "only_counted (--only-counted) leaves out rows of contexts with few counted "
                f"rows, which this model does not know, because {why}: leave it out"
            )

    @cached_property
    def _contexts(self) -> ContextRows | None:
        compared = self.scorer.plan.context and not self.scorer.row_noise
        return ContextRows(self.scorer) if compared else None

    @cached_property
    def _dates(self) -> set[str]:
        """The names of the features that are points in time."""
        return {f.name for f in self.scorer.plan.schema.features if f.unit == DATE}

    @property
    def columns(self) -> list[str]:
        """Columns that are read after the features: those to keep, and those of rules."""
        rules = [] if self.scorer.rules is None else self.scorer.rules.columns
        return list(dict.fromkeys([*self.keep, *rules]))

    def batches(
        self, X: Any, reduce: Callable[[Scored], T], *, n_jobs: int | None = None
    ) -> Iterator[T]:
        """Yield ``reduce`` of each batch, in order; the threads call it."""
        if (reasons := self.reasons) is None:

            def scored(item: Numbered) -> T:
                return reduce(self._scored(item[1], *self.scorer.scored(item)))

            return self.scorer.mapped(X, scored, n_jobs, self.columns)

        def explained(batch: Explained) -> T:
            return reduce(self._scored(batch.rows, batch.codes, batch.scores, batch.shares))

        return reasons.explainer.batches(X, explained, n_jobs=n_jobs, keep=self.columns)

    def _ranked(self, codes: Codes, scores: Floats) -> Floats:
        """Return the ranks (n, 3) of scores (n,): the rank, and the interval that contains it."""
        assert self.ranks is not None
        ends = self.ranks.between(scores, self.scorer.errors(codes, scores))
        return np.column_stack([self.ranks.of(scores), ends])

    def _scored(
        self, rows: Any, codes: Codes, scores: Floats, shares: Floats | None = None
    ) -> Scored:
        if self.only_counted and self._contexts is not None:
            scores = np.where(self._contexts.few(codes), np.nan, scores)
        far, rules = far_outside(self.scorer, self.usual, rows), self.scorer.rules
        ruled = None if rules is None else Ruled.of(rules, rows)
        keys = scores - FAR_FIRST * far if ruled is None else ruled.keys(scores - FAR_FIRST * far)
        # Only the codes of the lowest rows are kept while other batches are scored.
        lowest = lowest_rows(keys, self.most)
        few, names = codes.take(lowest), self.scorer.plan.schema.names
        kept = [_plain(rows.column(name), name, name in self._dates) for name in self.keep]
        kept_few = taken(pa.RecordBatch.from_arrays(kept, list(self.keep)), lowest) if kept else ()
        values = None if shares is None else taken(_features(rows, len(names)), lowest)
        shares_few = None if shares is None else shares[lowest]

        def detail(k: int) -> Detail:
            one, score = few.take(np.array([k])), scores[lowest[[k]]]
            error = float(self.scorer.errors(one, score)[0]) if self.errors else None
            ranks = None if self.ranks is None else self._ranked(one, score)[0].tolist()
            return Detail(
                error,
                ranks,
                None if values is None else taken(values, np.array([k])),
                None if shares_few is None else shares_few[k],
                None,
                float(far[lowest[k]]),
                self._rule_words(ruled, rows, int(lowest[k])),
                outside_words(one, 0, names),
                "" if self.reasons is None else self.reasons.crowding(one),
                "" if self._contexts is None else self._contexts.words(rows, int(lowest[k]), one),
                tuple(one.slice(k, 1) for one in kept_few),
                float(self.scorer.moved(one, score)[0]),
            )

        ranks = self._ranked(codes, scores) if self.every_rank and self.ranks else None
        top, words = self._top(shares), outside_column(codes, names)
        return Scored(scores, codes.tally, keys, lowest, ranks, top, words, detail, kept, ruled)

    def _top(self, shares: Floats | None) -> Top:
        """Return the features with the largest shares of all rows, if requested."""
        if not self.every_top or self.reasons is None or shares is None:
            return []
        return self.reasons.top(shares)

    def _rule_words(self, ruled: "Ruled | None", rows: Any, i: int) -> str:
        """Return words about an impossible value of row i; empty if there is none."""
        rules = self.scorer.rules
        if rules is None or ruled is None or ruled.impossible[i] < 0:
            return ""
        j = int(ruled.impossible[i])
        phrase = describe_cell(self.scorer.plan.schema.features[j], cell(rows, j, i), None)
        return rules.words(j, phrase.text)


def far_outside(scorer: Scorer, usual: Usual | None, rows: Batch) -> Floats:
    """Return how far outside everything a number of each row (n,) is: see `Usual.far`."""
    if usual is None:
        return np.zeros(len(rows))
    return usual.far(scorer.plan.schema.features, rows)


def _features(rows: Batch, n: int) -> Batch:
    """Return the first n columns of some rows."""
    return rows if isinstance(rows, np.ndarray) else rows.select(range(n))


def explained(details: Sequence[Detail], reasons: Reasons, bar: float | None) -> list[Detail]:
    """Return details of rows with their reasons: see `Reasons.of`."""
    rows = [one.row for one in details if one.row is not None]
    if not rows:
        return list(details)
    shares = np.stack([one.shares for one in details if one.shares is not None])
    numeric = {one.name for one in reasons.features if one.kind == "numeric"}
    found = reasons.of(joined(rows, numeric), shares, bar)
    return [replace(one, why=why) for one, why in zip(details, found, strict=True)]


def _plain(column: pa.Array, name: str, dates: bool) -> pa.Array:
    """Return a column without views or a dictionary, which differs from batch to batch.

    ``dates`` means that it is a feature of points in time, which count as seconds since 1970.
    """
    if pa.types.is_nested(column.type):
        raise DataTypeError(
            f"column {name!r} has type {column.type}: needs single values to list with scores: "
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

    NaN scores come last.
    """
    if 0 < most < len(scores):
        few = np.flatnonzero(scores <= np.partition(scores, most - 1)[most - 1])
        return few[np.argsort(scores[few], kind="stable")[:most]]
    return np.argsort(scores, kind="stable")[:most]
