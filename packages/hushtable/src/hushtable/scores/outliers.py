"""The rows with the lowest scores as a table: how rare, how sure, their values, and why."""

import contextlib
import heapq
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable.data.readers import Reader, no_rows
from hushtable.errors import DataError, UsageError
from hushtable.scores.details import Detail, RowDetails, Scored
from hushtable.scores.distributions import Frequencies
from hushtable.scores.reasons import FEW_OF_CONTEXT, TOP, Reason, Reasons, worth_a_word
from hushtable.scores.scorer import Ranks, Scorer
from hushtable.scores.typical import DIRECTION_MEANS, USUAL_MEANS, Usual


@dataclass(frozen=True, order=True)
class LowRow:
    """One of the rows with the lowest scores."""

    score: float
    #: That the row is in; empty if there is only one.
    file: str
    #: Its number in the file, from 0.
    row: int
    detail: Detail = field(default_factory=Detail, compare=False)

    def facts(self) -> dict[str, Any]:
        """Return the row for machines."""
        place = {"file": self.file} if self.file else {}
        return {**place, "row": self.row, "score": self.score, **self.detail.facts()}


class Lowest:
    """Keeps the rows with the lowest scores; of equal scores, those of the earlier file and row."""

    def __init__(self, most: int, file: str = "") -> None:
        self.most, self.file = most, file
        #: Rows that came with `add`, and those of them with the highest score of ``rows``.
        self.n_rows = self._ties = 0
        #: Of these, rows that were not judged.
        self.n_unjudged = 0
        #: The lowest first.
        self.rows: list[LowRow] = []

    def add(self, batch: Scored, start: int) -> None:
        """Take in the next batch; ``start`` is the number of its first row."""
        # Of equal scores, the one that is here already is the earlier.
        before, bar = self.rows, self._bar
        self.merge(
            LowRow(float(batch.scores[i]), self.file, start + i, batch.detail(k))
            for k, i in enumerate(batch.lowest.tolist())
            if batch.scores[i] < bar
        )
        self.n_rows += len(batch.scores)
        self.n_unjudged += int(np.isnan(batch.scores).sum())
        # Below the bar there are fewer rows than ``most``: those that now lie on it were listed.
        listed = self._ties if self._bar == bar else sum(r.score == self._bar for r in before)
        self._ties = listed + int((batch.scores == self._bar).sum())

    @property
    def _bar(self) -> float:
        return self.rows[-1].score if self.rows and len(self.rows) == self.most else np.inf

    def as_rare(self, score: float) -> int:
        """Return how many of all rows that came score as low as one of ``rows``, or lower."""
        if score == self._bar:
            return sum(row.score < score for row in self.rows) + self._ties
        return sum(row.score <= score for row in self.rows)

    def merge(self, rows: Iterable[LowRow]) -> None:
        """Take in rows that were found elsewhere."""
        self.rows = heapq.nsmallest(self.most, [*self.rows, *rows])


#: Where a table says which rows its severities are among.
AMONG = b"hushtable.severity_among"
#: The rows that severities are among.
_ALL_SITES, _COUNTED = "the rows that the ranks count", "the rows that the model counted"
#: Likewise, where nothing is known of others.
SCORED = "the rows that were scored here"


@dataclass(frozen=True)
class Outliers:
    """The rows with the lowest scores, lowest first.

    Attributes
    ----------
    rows : list of LowRow
        With standard errors, reasons and kept columns.
    severities : list of float
        100 times one minus the share of rows that are as rare, or rarer.
    among : str
        Which rows those are.
    keep : tuple of str
        Names of the kept columns.
    explained : bool
        Whether the model gives reasons.
    n_rows : int
        Rows that were scored.
    meaning : str
        What a difference between two scores stands for.
    """

    rows: list[LowRow]
    severities: list[float]
    among: str
    keep: tuple[str, ...]
    explained: bool
    n_rows: int
    meaning: str
    #: Of the rows that were scored, those that were not judged: see ``only_counted``.
    n_unjudged: int = 0

    def severity(self, k: int) -> str:
        """Return a row's severity, rounded down: 100 would say that no row is as rare."""
        return f"{int(100.0 * self.severities[k] + 1e-6) / 100:.2f}"

    def reasons(self, row: LowRow) -> list[Reason]:
        """Return the reasons of a row that are worth a word, with their values."""
        return worth_a_word(row.detail.reasons or [])

    def sentence(self, row: LowRow) -> str:
        """Return a row's reasons in words."""
        words = [reason.phrase.words for reason in self.reasons(row) if reason.phrase is not None]
        words += [said for said in (row.detail.likeness, row.detail.context) if said]
        return "; ".join(words) or "no column stands out"

    def notes(self, model: str) -> dict[str, str]:
        """Return by headings what a reader of the rows needs to know; ``model`` is its name."""
        rows = f"{len(self.rows):,} of {self.n_rows:,} rows, the lowest scores first."
        rows += f" {unjudged_words(self.n_unjudged)}" if self.n_unjudged else ""
        notes = {
            "Made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC by hushtable, with the model {model}.",
            "Rows": f"{rows} Rows are numbered from 0.",
            "severity": "From 0 to 100: 100 times one minus the share of rows that are as rare, or "
            f"rarer, among {self.among}.",
            "score": self.meaning,
            "error": "One standard error of the score: rows whose scores differ by less may change "
            "places.",
            "outside": "Columns whose value lies beyond the ranges or categories of the model.",
        }
        if self.explained:
            notes["reason"] = "The columns that lower the score most, the strongest first."
            notes |= {"usual": USUAL_MEANS, "direction": DIRECTION_MEANS}
        stays = "This describes rows and holds their values: keep it where the rows are."
        return notes | {"Keep it": stays}

    def table(self) -> pa.Table:
        """Return a table with a line for each row.

        Columns: rank, file (if there are several), row, those kept, severity, score, error,
        outside, and if the model gives reasons, for each of three the column, its value, what is
        usual and the direction, and all in words.
        """
        columns: dict[str, Any] = {"rank": pa.array(range(1, len(self.rows) + 1), pa.int64())}
        if any(row.file for row in self.rows):
            columns["file"] = pa.array([row.file for row in self.rows], pa.string())
        columns["row"] = pa.array([row.row for row in self.rows], pa.int64())
        for k, name in enumerate(self.keep):
            columns[name] = _joined([row.detail.kept[k] for row in self.rows])
        columns["severity"] = pa.array(self.severities, pa.float64())
        columns["score"] = pa.array([row.score for row in self.rows], pa.float64())
        columns["error"] = pa.array([row.detail.error for row in self.rows], pa.float64())
        columns["outside"] = pa.array([outside(row) for row in self.rows], pa.string())
        if self.explained:
            columns |= self._reason_columns()
        return pa.table(columns).replace_schema_metadata({AMONG: self.among.encode()})

    def _reason_columns(self) -> dict[str, pa.Array]:
        columns = {}
        for k in range(TOP):
            found = [reason_facts(self.reasons(row), k) for row in self.rows]
            names = (f"reason_{k + 1}", f"value_{k + 1}", f"usual_{k + 1}", f"direction_{k + 1}")
            for name, values in zip(names, zip(*found, strict=True), strict=True):
                columns[name] = pa.array(values, pa.string())
        columns["words"] = pa.array([self.sentence(row) for row in self.rows], pa.string())
        return columns


def unjudged_words(n_rows: int) -> str:
    """Say how many rows were not judged, and why."""
    rows = "1 row was" if n_rows == 1 else f"{n_rows:,} rows were"
    return f"{rows} not judged: fewer than {FEW_OF_CONTEXT:.0f} rows of their context were counted."


def _joined(values: list[pa.Array]) -> pa.Array:
    """Return kept values as one column; as texts, where files have them in several types."""
    if len({one.type for one in values}) > 1:
        values = [one.cast(pa.string()) for one in values]
    return pa.concat_arrays(values)


def reason_facts(reasons: Sequence[Reason], k: int) -> tuple[str | None, ...]:
    """Return column, value, usual values and direction of the k-th reason, or None each."""
    if k >= len(reasons) or (phrase := reasons[k].phrase) is None:
        return (None,) * 4
    return reasons[k].feature, phrase.text, phrase.usual, phrase.direction


def outside(row: LowRow) -> str:
    """Return the names of the columns in which a row lies beyond the plan."""
    return ", ".join(getattr(row.detail, "outside", None) or ())


def reasons_of(
    scorer: Scorer, usual: Usual | None, frequencies: Frequencies | None = None
) -> Reasons | None:
    """Return what finds reasons; None of a detector whose tables mix features."""
    with contextlib.suppress(UsageError):
        return Reasons(scorer, frequencies=frequencies, usual=usual)
    return None


class Search:
    """Finds the n rows with the lowest scores of several sources, one after the other.

    Severities are among the rows of ``ranks``, else among those that the model counted, if it
    knows, else among these. ``reasons`` may be made before, by `reasons_of`. Memory stays flat.
    """

    def __init__(
        self,
        scorer: Scorer,
        n: int,
        *,
        keep: Sequence[str] = (),
        usual: Usual | None = None,
        ranks: Ranks | None = None,
        frequencies: Frequencies | None = None,
        reasons: Reasons | None = None,
        only_counted: bool = False,
    ) -> None:
        check_number(n)
        self._reasons = reasons or reasons_of(scorer, usual, frequencies)
        errors = scorer.plan.family.n_tables > 1
        self._details = RowDetails(
            scorer, n, errors=errors, reasons=self._reasons, keep=keep, only_counted=only_counted
        )
        self._usual, self._ranks, self._keep = usual, ranks, tuple(keep)
        self._lowest = Lowest(n)

    def add(
        self,
        reader: Reader,
        file: str = "",
        *,
        n_jobs: int | None = None,
        see: Callable[[Scored], None] = lambda batch: None,
    ) -> None:
        """Look through all rows of a reader, or through none if it fails.

        Its columns are the plan's features, and those to keep; ``see`` gets each batch, scored.
        """
        lowest, start = copy(self._lowest), 0
        lowest.file = file
        for batch in self._details.batches(reader, lambda one: one, n_jobs=n_jobs):
            see(batch)
            lowest.add(batch, start)
            start += len(batch.scores)
        self._lowest = lowest

    def found(self) -> Outliers:
        """Return the lowest of the rows; there must have been some."""
        lowest = self._lowest
        if not lowest.rows:
            raise DataError(
                f"no row is left to list: {unjudged_words(lowest.n_unjudged)} Leave only_counted "
                "(--only-counted) out"
            )
        scores = np.array([row.score for row in lowest.rows])
        if self._ranks is not None:
            among, shares = _ALL_SITES, self._ranks.of(scores)
        elif self._usual is not None and self._usual.scores is not None:
            among, shares = _COUNTED, self._usual.as_rare(scores)
        else:
            as_rare = [lowest.as_rare(row.score) for row in lowest.rows]
            among, shares = SCORED, np.array(as_rare) / lowest.n_rows
        severities = np.round(100.0 * (1.0 - shares), 10).tolist()
        scorer, explained = self._details.scorer, self._reasons is not None
        meaning = scorer.plan.score_words(scorer.sketch.noise_sd)
        seen = lowest.n_rows, meaning, lowest.n_unjudged
        return Outliers(lowest.rows, severities, among, self._keep, explained, *seen)

    @property
    def n_rows(self) -> int:
        """Rows that were looked through."""
        return self._lowest.n_rows


def find_outliers(
    scorer: Scorer, reader: Reader, n: int, *, n_jobs: int | None = None, **known: Any
) -> Outliers:
    """Find the n rows with the lowest scores in one pass, and what can be said of each.

    ``reader`` has the plan's features as columns, and those to keep; ``known`` is as `Search`
    takes it. Raises `DataError` if there are no rows.
    """
    search, several = Search(scorer, n, **known), len(reader.parts) > 1
    for part in reader.parts:
        search.add(part, part.source if several else "", n_jobs=n_jobs)
    if not search.n_rows:
        raise no_rows(reader)
    return search.found()


def check_number(n: Any) -> None:
    """Raise `UsageError` unless n is a number of rows to list."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise UsageError(f"n={n!r}: needs the number of rows to list, 1 or more")
