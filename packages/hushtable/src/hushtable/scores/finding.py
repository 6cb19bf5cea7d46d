"""Findings: the facts about an unusual row, read off batches of scored rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.data.columns import as_column, texts_column
from hushtable.data.encoding import Codes
from hushtable.data.passes import Numbered
from hushtable.data.readers import Batch, joined, taken
from hushtable.data.schema import DATE
from hushtable.errors import DataTypeError
from hushtable.language import _, numerals
from hushtable.scores.reasons import ContextRows, Reason, Reasons, RowReasons, Top
from hushtable.scores.scorer import Ranks, Scorer
from hushtable.scores.typical import ValuePhrase, cell, describe_cell
from hushtable.scores.usual import FARTHEST, Usual

Floats = NDArray[np.float64]

#: How far the keys of rows with a value far outside everything are below their scores, for each
#: multiple of the limit; and those of rows with an impossible value, below all others.
FAR_FIRST = float(1 << 20)
IMPOSSIBLE_FIRST = 2.0 * FARTHEST * FAR_FIRST


@dataclass(frozen=True)
class Finding:
    """Facts about one unusual row, which lists, pages, and reviews put into words.

    What was not requested is None or empty.

    Attributes
    ----------
    row : int
        Number of the row in its file, from 0.
    score : float
        In the unit of the plan's score rule; low is abnormal.
    file : str
        File of the row; empty if there is only one file.
    why : RowReasons or None
        The reasons, and which values would make the row usual.
    error : float or None
        Standard error of the score.
    ranks : list of float or None
        Share of the rows of all sites that are at least as rare, and the interval that contains it.
    far : float
        How far outside everything a value is: see `Usual.far`; 0 if no value is.
    rule : str
        The value that is impossible by the owner's rules, in words.
    outside : tuple of str
        Names of the columns with a value outside the plan's range or categories.
    context : str
        A note that few rows of the row's context were counted, in words.
    moved : float
        Bits that verdicts on rows subtracted from the score; negative if they added some, and 0 if
        it is less than the ordinary spread of scores.
    kept_values : mapping of str to pyarrow.Array
        For each column to keep, the row's value as an array of one.
    evidence : tuple or None
        The row's values, and the share of each feature in the score (d,), from which the reasons
        are found.
    remarks : tuple of str
        Values that no score finds: the only negative number, or the only zero, of a column.
    severity : float
        100 times one minus the share of rows that are as rare or rarer; the list or the review
        states among which rows.
    values : mapping of str to ValuePhrase
        In a review, for each feature: the value in words, and what is usual. Reasons come first.
    """

    row: int
    score: float
    file: str = ""
    why: RowReasons | None = field(default=None, repr=False)
    error: float | None = None
    ranks: list[float] | None = None
    far: float = 0.0
    rule: str = ""
    outside: tuple[str, ...] = ()
    context: str = field(default="", repr=False)
    moved: float = 0.0
    kept_values: Mapping[str, pa.Array] = field(default_factory=dict, repr=False, compare=False)
    evidence: tuple[Batch, NDArray[np.float64]] | None = field(
        default=None, repr=False, compare=False
    )
    remarks: tuple[str, ...] = ()
    severity: float = 0.0
    values: Mapping[str, ValuePhrase] = field(default_factory=dict, repr=False, compare=False)

    @property
    def key(self) -> float:
        """The key that orders lists: the score, but far below all others if a value is far off."""
        return self.score - FAR_FIRST * self.far - IMPOSSIBLE_FIRST * bool(self.rule)

    @property
    def reasons(self) -> list[Reason]:
        """The reasons in their order; empty if they were not requested."""
        return [] if self.why is None else self.why.reasons

    @property
    def kept(self) -> dict[str, str]:
        """For each column to keep, the value as text; empty if it is missing."""
        return {name: as_text(value) for name, value in self.kept_values.items()}

    @property
    def words(self) -> str:
        """Why the row scores low, in a sentence without a full stop."""
        parts = [self.rule, *(reason.words for reason in self.reasons), *self.remarks]
        parts += [self.likeness, self.context]
        return "; ".join(filter(None, parts)) or _("no column stands out")

    @property
    def likeness(self) -> str:
        """The effect of verdicts on the score, in words; empty if it is small."""
        if not self.moved:
            return ""
        bits = numerals(f"{abs(self.moved):.1f}")
        if self.moved > 0.0:
            return _("like rows that were confirmed as outliers (%(bits)s bits)", bits=bits)
        return _("like rows that were judged fine (%(bits)s bits)", bits=bits)

    def facts(self) -> dict[str, object]:
        """Return the finding in machine-readable form."""
        ranks = self.ranks
        return {
            **({"file": self.file} if self.file else {}),
            "row": self.row,
            "score": self.score,
            **({} if ranks is None else {"rank": ranks[0], "between": ranks[1:]}),
            **({} if self.why is None else self.why.facts()),
            **({"outside": list(self.outside)} if self.outside else {}),
            **({"far": True} if self.far else {}),
            **({"rule": self.rule} if self.rule else {}),
            **({"moved": self.moved} if self.moved else {}),
        }

    def to_dict(self) -> dict[str, object]:
        """Return row, score, severity, words, kept columns, and the values by column."""
        values = {name: phrase.value for name, phrase in self.values.items()}
        facts = {"row": self.row, "score": self.score, "severity": self.severity}
        return facts | {"words": self.words} | self.kept | values


def as_text(value: pa.Array) -> str:
    """Return a value, given as an array of one, as text; empty if it is missing."""
    text = value.cast(pa.string())[0].as_py()
    return "" if text is None else str(text)


#: The year 9999 in milliseconds since 1970: calendars end there.
_LAST_DATE = 253402300799999.0


@dataclass(frozen=True)
class Scored:
    """A batch of n scored rows, with what `finding` needs of the lowest.

    ``tally`` (d, 2) has the numbers of missing and of outside values of each feature. ``keys`` (n,)
    order the list: they are the ``scores`` (n,), NaN for rows that are not judged, but far below
    all others if a value is far outside everything. ``lowest`` are the numbers in the batch of the
    rows with the lowest keys, lowest first.
    """

    scores: Floats
    tally: NDArray[np.int64]
    keys: Floats
    lowest: NDArray[np.int64]
    #: (n, 3): the rank of each row, and the interval that contains it.
    ranks: Floats | None
    #: As returned by `Reasons.top`; empty if reasons of all rows were not requested.
    top: Top
    #: (n,): names of the columns with outside values, joined by commas; null if there are none.
    outside: pa.Array
    #: The columns to keep, of all rows.
    kept: list[pa.Array]
    #: What the owner's rules state about the rows.
    ruled: "Ruled | None"
    details: "RowDetails"
    rows: Batch
    far: Floats
    #: Of the lowest rows, in their order: codes, shares (k, d), features, and columns to keep.
    codes: Codes
    shares: Floats | None
    features: "Batch | None"
    kept_values: "Batch | None"

    def finding(self, k: int, row: int, file: str = "") -> Finding:
        """Return what is known of the k-th of the lowest rows, without reasons.

        ``row`` is its number in the ``file``.
        """
        details, i = self.details, int(self.lowest[k])
        scorer, names = details.scorer, details.scorer.plan.schema.names
        at, score = np.array([k]), self.scores[[i]]
        codes, kept = self.codes.take(at), {}
        if isinstance(self.kept_values, pa.RecordBatch):
            values = self.kept_values.slice(k, 1)
            kept = dict(zip(details.keep, values.columns, strict=True))
        evidence = None
        if self.features is not None and self.shares is not None:
            evidence = taken(self.features, at), self.shares[k]
        contexts, rule = details.contexts, ""
        if scorer.rules is not None and self.ruled is not None and self.ruled.impossible[i] >= 0:
            j = int(self.ruled.impossible[i])
            phrase = describe_cell(scorer.plan.schema.features[j], cell(self.rows, j, i), None)
            rule = scorer.rules.words(j, phrase.text)
        return Finding(
            row,
            float(score[0]),
            file,
            error=float(scorer.errors(codes, score)[0]) if details.errors else None,
            ranks=details.ranked(codes, score)[0].tolist() if details.ranks else None,
            far=float(self.far[i]),
            rule=rule,
            outside=outside_words(codes, 0, names),
            context="" if contexts is None else contexts.words(self.rows, i, codes),
            moved=float(scorer.moved(codes, score)[0]),
            kept_values=kept,
            evidence=evidence,
        )


@dataclass(frozen=True)
class Ruled:
    """Rows that are impossible or known by their owner's rules."""

    #: (n,): number of the first feature with an impossible value, or -1.
    impossible: NDArray[np.int64]
    #: (n,): whether a row is known, so that it is not listed.
    known: NDArray[np.bool_]

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
    #: Whether ranks, and features with the largest shares, are requested for all rows.
    every: bool = False
    #: Whether to find standard errors.
    errors: bool = False
    ranks: Ranks | None = None
    reasons: Reasons | None = None
    #: What is usual among the counted rows: rows with a value far outside it come first.
    usual: Usual | None = None
    #: Columns whose values are kept with the scores: features, or others that the rows have.
    keep: Sequence[str] = ()

    @cached_property
    def contexts(self) -> ContextRows | None:
        """Reports how many rows of a context were counted; None if the model does not know."""
        compared = self.scorer.plan.context and not self.scorer.row_noise
        return ContextRows(self.scorer) if compared else None

    @cached_property
    def _dates(self) -> set[str]:
        return {f.name for f in self.scorer.plan.schema.features if f.unit == DATE}

    @property
    def columns(self) -> list[str]:
        """Columns that are read after the features: those to keep, and those of rules."""
        rules = [] if self.scorer.rules is None else self.scorer.rules.columns
        return list(dict.fromkeys([*self.keep, *rules]))

    def batches(self, X: object, *, n_jobs: int | None = None) -> Iterator[Scored]:
        """Yield the scored batches, in order."""

        def scored(item: Numbered) -> Scored:
            if self.reasons is None:
                return self._scored(item[1], *self.scorer.scored(item))
            parts = self.reasons.explainer.explained(item)
            return self._scored(parts.rows, parts.codes, parts.scores, parts.shares)

        return self.scorer.mapped(X, scored, n_jobs, self.columns)

    def ranked(self, codes: Codes, scores: Floats) -> Floats:
        """Return the ranks (n, 3) of scores (n,): the rank, and the interval that contains it."""
        assert self.ranks is not None
        ends = self.ranks.between(scores, self.scorer.errors(codes, scores))
        return np.column_stack([self.ranks.of(scores), ends])

    def _scored(
        self, rows: Batch, codes: Codes, scores: Floats, shares: Floats | None = None
    ) -> Scored:
        far, rules = far_outside(self.scorer, self.usual, rows), self.scorer.rules
        keys, ruled = scores - FAR_FIRST * far, None
        if rules is not None:
            ruled = Ruled(rules.impossible(rows), rules.known(rows))
            keys -= IMPOSSIBLE_FIRST * (ruled.impossible >= 0)
            keys[ruled.known] = np.inf  # never listed
        # Only the codes of the lowest rows are kept while other batches are scored.
        lowest, names = lowest_rows(keys, self.most), self.scorer.plan.schema.names
        kept, kept_values = [], None
        if self.keep:
            assert isinstance(rows, pa.RecordBatch)  # it has names
            kept = [_plain(rows.column(name), name, name in self._dates) for name in self.keep]
            kept_values = taken(pa.RecordBatch.from_arrays(kept, list(self.keep)), lowest)
        top: Top = []
        if self.every and self.reasons is not None and shares is not None:
            top = self.reasons.top(shares)
        features = None
        if shares is not None:
            columns = rows if isinstance(rows, np.ndarray) else rows.select(range(len(names)))
            features = taken(columns, lowest)
        return Scored(
            scores=scores,
            tally=codes.tally,
            keys=keys,
            lowest=lowest,
            ranks=self.ranked(codes, scores) if self.every and self.ranks else None,
            top=top,
            outside=outside_column(codes, names),
            kept=kept,
            ruled=ruled,
            details=self,
            rows=rows,
            far=far,
            codes=codes.take(lowest),
            shares=None if shares is None else shares[lowest],
            features=features,
            kept_values=kept_values,
        )


def far_outside(scorer: Scorer, usual: Usual | None, rows: Batch) -> Floats:
    """Return how far outside everything a number of each row (n,) is: see `Usual.far`."""
    if usual is None:
        return np.zeros(len(rows))
    return usual.far(scorer.plan.schema.features, rows)


def explained(findings: Sequence[Finding], reasons: Reasons, bar: float | None) -> list[Finding]:
    """Return findings with their reasons: see `Reasons.of`."""
    evidence = [finding.evidence for finding in findings if finding.evidence is not None]
    if not evidence:
        return list(findings)
    shares = np.stack([share for _row, share in evidence])
    numeric = {feature.name for feature in reasons.features if feature.kind == "numeric"}
    every = reasons.of(joined([row for row, _share in evidence], numeric), shares, bar)
    return [replace(finding, why=why) for finding, why in zip(findings, every, strict=True)]


def with_severities(findings: Sequence[Finding], shares: Floats) -> list[Finding]:
    """Return findings (n,) with their severities, given the shares of rows as rare (n,)."""
    severities = np.round(100.0 * (1.0 - shares), 10).tolist()
    return [replace(finding, severity=x) for finding, x in zip(findings, severities, strict=True)]


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
        return pa.nulls(len(codes), pa.string())
    order = np.argsort(outside.rows, kind="stable")
    rows, first = np.unique(outside.rows[order], return_index=True)
    listed = [[names[j] for j in f.tolist()] for f in np.split(outside.features[order], first[1:])]
    index = np.full(len(codes), -1)
    index[rows] = np.arange(len(rows))
    texts = texts_column([", ".join(named) for named in listed])
    return texts.take(as_column(index, index >= 0))


def lowest_rows(scores: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Return the numbers of the lowest scores, lowest first; of equal ones, the earlier first.

    NaN scores come last.
    """
    if 0 < most < len(scores):
        few = np.flatnonzero(scores <= np.partition(scores, most - 1)[most - 1])
        return few[np.argsort(scores[few], kind="stable")[:most]]
    return np.argsort(scores, kind="stable")[:most]
