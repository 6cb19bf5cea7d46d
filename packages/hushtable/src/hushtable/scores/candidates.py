"""Rows that a review may ask about: the lowest of all, each with everything known about it."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable.data.encoding import Codes
from hushtable.data.readers import Batch, Reader, joined, taken
from hushtable.data.schema import Feature
from hushtable.data.weights import Numbered
from hushtable.display import Displayed
from hushtable.scores.details import (
    FAR_FIRST,
    IMPOSSIBLE_FIRST,
    Detail,
    RowDetails,
    Scored,
    explained,
    far_outside,
    lowest_rows,
)
from hushtable.scores.reasons import Reasons, RowPhrases
from hushtable.scores.scorer import Scorer
from hushtable.scores.typical import ValuePhrase
from hushtable.scores.usual import Usual

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Candidates:
    """Some rows out of many, with everything that a review needs to know about them.

    Attributes
    ----------
    numbers : ndarray of shape (n,), int64
        Numbers of the rows, from 0, among all that were read.
    rows : ndarray or pyarrow.RecordBatch
        The features, and the columns to keep.
    codes : Codes
        The features, encoded for scoring, with the rules of the rows' owner applied.
    plain : Codes
        The features, encoded without rules.
    n_rows : int
        Number of all rows that were read.
    """

    numbers: Ints
    rows: Batch
    codes: Codes
    plain: Codes
    n_rows: int

    @classmethod
    def of(cls, scorer: Scorer, numbers: Ints, rows: Batch, n_rows: int) -> "Candidates":
        """Encode some of the rows that were read."""
        codes = plain = scorer.encode((0, rows, None))
        if scorer.rules is not None:
            plain = scorer.by_rules(None).encode((0, rows, None))
        return cls(numbers, rows, codes, plain, n_rows)

    def row(self, k: int) -> Batch:
        """Return the k-th row as a batch of its own."""
        return self.rows[k : k + 1] if isinstance(self.rows, np.ndarray) else self.rows.slice(k, 1)

    def check(self, k: int) -> str:
        """Return a check value of the k-th row under the plan, which differs for other rows."""
        values = self.plain.codes[: len(self.plain.tally), k]
        return hashlib.sha256(values.tobytes()).hexdigest()[:16]

    def place(self, number: int) -> int | None:
        """Return the position of a row among these, or None if it is not one of them."""
        found = np.flatnonzero(self.numbers == number)
        return int(found[0]) if len(found) else None


def lowest_candidates(
    scorer: Scorer,
    reader: Reader,
    most: int,
    keep: Sequence[str],
    usual: Usual | None,
    n_jobs: int | None,
) -> Candidates | None:
    """Keep the rows with the lowest scores in one pass, lowest first; None if there are no rows.

    Rows with a value far outside what is ``usual`` are lower than others. With the owner's rules,
    rows with an impossible value are the lowest, and known rows are left out. Memory stays flat: it
    holds at most two times ``most`` rows, besides the batches being processed.
    """
    found: list[tuple[Ints, Floats, Batch]] = []
    held, n_rows, bar = 0, 0, np.inf

    def few(item: Numbered) -> tuple[int, Ints, Floats, Batch]:
        start, rows, _ = item
        keys = scorer.scored(item)[1] - FAR_FIRST * far_outside(scorer, usual, rows)
        keys -= IMPOSSIBLE_FIRST * impossible(scorer, rows)
        some = lowest_rows(keys, most)
        some = some[keys[some] < bar]
        if scorer.rules is not None:
            some = some[~scorer.rules.known(taken(rows, some))]
        return len(keys), start + some, keys[some], taken(rows, some)

    for n, numbers, scores, rows in scorer.mapped(reader, few, n_jobs, keep):
        n_rows += n
        found.append((numbers, scores, rows))
        held += len(numbers)
        if held > 2 * most:
            found = [_lowest(found, most, scorer)]
            held, bar = most, float(found[0][1][-1])
    if not n_rows:
        return None
    numbers, _, rows = _lowest(found, most, scorer)
    return Candidates.of(scorer, numbers, rows, n_rows)


def impossible(scorer: Scorer, rows: Batch) -> NDArray[np.bool_]:
    """Return which rows (n,) have a value that is impossible by their owner's rules."""
    if scorer.rules is None:
        return np.zeros(len(rows), np.bool_)
    return scorer.rules.impossible(rows) >= 0


def _lowest(
    found: list[tuple[Ints, Floats, Batch]], most: int, scorer: Scorer
) -> tuple[Ints, Floats, Batch]:
    """Return the lowest of rows that arrived in order; of equal scores, the earlier ones."""
    numbers, scores = (np.concatenate([one[k] for one in found]) for k in (0, 1))
    order = np.lexsort((numbers, scores))[:most]
    rows = joined([one[2] for one in found], _numeric(scorer))
    return numbers[order], scores[order], taken(rows, order)


def _numeric(scorer: Scorer) -> set[str]:
    return {one.name for one in scorer.plan.schema.features if one.kind == "numeric"}


def named_candidates(
    scorer: Scorer, reader: Reader, numbers: Iterable[int], keep: Sequence[str] = ()
) -> Candidates:
    """Pick rows by their numbers in one pass; numbers without a row are left out."""
    wanted = np.unique(np.fromiter(numbers, np.int64))
    opened = scorer.open(reader, keep)
    found, at, start = list[Batch](), list[Ints](), 0
    for batch in opened.read():
        here = wanted[slice(*np.searchsorted(wanted, [start, start + len(batch)]))]
        if len(here) or not found:
            found.append(taken(batch, here - start))
            at.append(here)
        start += len(batch)
    rows: Batch = (
        joined(found, _numeric(scorer)) if found else np.empty((0, len(scorer.plan.schema)))
    )
    picked = np.concatenate(at) if at else wanted[:0]
    return Candidates.of(scorer, picked, rows, start)


@dataclass(frozen=True)
class ReviewRow(Displayed):
    """A row for someone to judge.

    Attributes
    ----------
    row : int
        Number of the row, from 0.
    score, severity : float
        Score with all verdicts so far, in bits; 100 times one minus the share of rows as rare.
    values : dict of str to ValuePhrase
        For each feature: the value in words, and what is usual. The reasons come first.
    kept : dict of str to str
        For each column to keep, the value as text; empty if it is missing.
    detail : Detail
        Reasons, columns outside the plan, and how far verdicts moved the score.
    check : str
        Check value of the row's values under the plan.
    usual : Usual or None
        What the values are compared with.
    features : tuple of Feature
        The columns that reasons refer to.
    """

    row: int
    score: float
    severity: float
    values: dict[str, ValuePhrase] = field(repr=False)
    kept: dict[str, str]
    detail: Detail = field(repr=False)
    check: str = field(repr=False)
    usual: Usual | None = field(default=None, repr=False)
    features: tuple[Feature, ...] = field(default=(), repr=False)

    @property
    def words(self) -> str:
        """Why the row scores low, in a sentence without a full stop."""
        found = [self.detail.rule] if self.detail.rule else []
        found += [one.words for one in self.detail.reasons or []]
        found += [self.detail.likeness] if self.detail.likeness else []
        return "; ".join(found) or "no column stands out"

    def to_dict(self) -> dict[str, Any]:
        """Return row, score, severity, words, and the values by column."""
        values = {name: one.value for name, one in self.values.items()}
        facts = {"row": self.row, "score": self.score, "severity": self.severity}
        return facts | {"words": self.words} | self.kept | values


class ReviewRows:
    """Makes the rows to show from a scorer's results, with the columns to keep."""

    @property
    def usual(self) -> Usual | None:
        """The values with which others are compared."""
        return self.reasons.usual

    def __init__(self, scorer: Scorer, usual: Usual | None, keep: Sequence[str]) -> None:
        self._schema, self._keep = scorer.plan.schema, tuple(keep)
        self._in_words = RowPhrases(scorer.plan, usual)
        self.reasons = Reasons(scorer, usual=usual)
        self._details = RowDetails(
            scorer,
            1,
            errors=scorer.plan.family.n_tables > 1,
            reasons=self.reasons,
            usual=usual,
            keep=self._keep,
        )
        names = self._schema.names
        self._behind = tuple(name for name in self._details.columns if name not in names)

    def of(self, found: Candidates, k: int, scores: NDArray[np.float64]) -> ReviewRow:
        """Show the k-th of some rows that have these scores (n,)."""
        row = found.row(k)
        (detail,) = explained(self.details(row), self.reasons, None)
        share = np.count_nonzero(scores <= scores[k]) / found.n_rows
        return ReviewRow(
            int(found.numbers[k]),
            float(scores[k]),
            round(float(100.0 * (1.0 - share)), 10),
            self._phrases(row, detail),
            dict(zip(self._keep, map(as_text, detail.kept), strict=True)),
            detail,
            found.check(k),
            self.reasons.usual,
            self._schema.of_rows.features,
        )

    def reader(self, rows: Batch) -> Reader:
        """Return a reader of some rows."""
        return Reader(
            None if isinstance(rows, np.ndarray) else tuple(rows.schema.names),
            len(self._schema) + len(self._behind),
            len(rows),
            lambda: iter((rows,)),
            numeric=isinstance(rows, np.ndarray),
            keep=self._behind,
            opened=self._schema,
        )

    def details(self, rows: Batch) -> list[Detail]:
        """Return the details of some rows, without reasons yet."""
        reader, n = self.reader(rows), len(rows)

        def in_order(batch: Scored) -> list[Detail]:
            return [batch.detail(k) for k in np.argsort(batch.lowest).tolist()]

        details = replace(self._details, most=n).batches(reader, in_order)
        return [one for some in details for one in some]

    def _phrases(self, row: Any, detail: Detail) -> dict[str, ValuePhrase]:
        """Return each feature's value in words, starting with those of the reasons."""
        values = {
            feature.name: self._in_words.of(row, 0, j)
            for j, feature in enumerate(self._schema.of_rows.features)
        }
        first = [name for one in detail.reasons or [] for name in one.columns]
        return {name: values[name] for name in (*first, *values)}


def as_text(value: pa.Array) -> str:
    """Return a value, given as an array of one, as text; empty if it is missing."""
    text = value.cast(pa.string())[0].as_py()
    return "" if text is None else str(text)
