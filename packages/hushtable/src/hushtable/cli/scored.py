"""Rows scored into files: outliers, the columns next to scores, and their summary."""

import hashlib
import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from hushtable.cli.counts import read_counts
from hushtable.cli.options import check_contamination
from hushtable.cli.output import OutputFolder
from hushtable.cli.rows import Rows
from hushtable.cli.tables import (
    write_scores,
)
from hushtable.data.columns import as_column, texts_column
from hushtable.data.readers import Reader, one_after_other
from hushtable.errors import DataError, UsageError
from hushtable.progress import watched
from hushtable.scores.details import RowDetails, Scored
from hushtable.scores.files import STAMP, ScoreFile, score_files_of
from hushtable.scores.outliers import (
    Lowest,
    explained_rows,
)
from hushtable.scores.reasons import Reasons
from hushtable.scores.scorer import Ranks, Scorer
from hushtable.scores.usual import Frequencies, Usual
from hushtable.threads import for_each, n_threads


@dataclass(frozen=True)
class Threshold:
    """One of three ways to set the threshold; without any, the model's threshold applies.

    ``share`` is the share of rows to flag (of the scored rows or, where ranks are given,
    ``ranked``, of all sites' rows), ``count`` their number, ``score`` the score below which a row
    is flagged.
    """

    share: float | None
    count: int | None
    score: float | None
    ranked: bool

    def __post_init__(self) -> None:
        if sum(way is not None for way in (self.share, self.count, self.score)) > 1:
            raise UsageError("--contamination, --count and --threshold exclude each other")
        check_contamination(self.share)
        if self.count is not None and self.count < 1:
            raise UsageError(f"--count {self.count}: needs 1 or more")

    @property
    def drawn(self) -> bool:
        """Whether an option sets the threshold."""
        return any(way is not None for way in (self.share, self.count, self.score))

    @property
    def reads_all_rows(self) -> bool:
        """Whether all rows have to be scored before the first is flagged."""
        return self.count is not None or (self.share is not None and not self.ranked)

    def checked(self, only_counted: bool) -> "Threshold":
        """Return the threshold; refuse one that is set among rows that are not judged."""
        if only_counted and self.reads_all_rows:
            raise UsageError(
                "--only-counted excludes --contamination and --count, which apply to all rows: "
                "give --threshold, or leave it out"
            )
        return self

    def offset(self, of_model: float, ranks: Ranks | None) -> float:
        """Return the score below which a row is an outlier, where that needs no rows."""
        if self.score is not None:
            return self.score
        if self.share is not None and ranks is not None:
            return ranks.threshold(self.share)
        return of_model

    def offset_of_rows(self, scorer: Scorer, reader: Reader, threads: int) -> float:
        """Return the score below which a row is an outlier; holds 8 bytes a row."""
        batches = list(scorer.batches(reader, lambda _, scores: scores, n_jobs=threads))
        if not batches:
            raise DataError(f"{reader.source} has no rows: there is nothing to score")
        scores = np.concatenate(batches)
        if self.count is None:
            return float(np.percentile(scores, 100.0 * (self.share or 0.0)))
        if self.count >= len(scores):
            raise UsageError(
                f"--count {self.count:,}: {reader.source} has {len(scores):,} rows; give fewer"
            )
        # Rows of equal scores are flagged together, or not at all.
        return float(np.partition(scores, self.count)[self.count])


T = TypeVar("T")
#: Lowest scores that are listed.
SHOWN = 5


class ScoreColumns:
    """Scores rows, with a column for everything else that the options request.

    Columns to ``keep`` come first. ``ranks`` and ``marginals`` are files of merged counts; the
    marginals add to the reasons how extreme a value is. ``fields`` are the names and types of the
    columns; ``stamp`` identifies them and their inputs. ``only_counted`` leaves scores and ranks of
    other rows empty.
    """

    def __init__(
        self,
        scorer: Scorer,
        ranks: Path | None,
        explain: bool,
        marginals: Path | None,
        keep: Sequence[str] = (),
        only_counted: bool = False,
        usual: Usual | None = None,
    ) -> None:
        # Kept columns have the type that they have in the rows.
        self.fields: list[tuple[str, pa.DataType | None]] = [("outside", pa.string())]
        self.fields += [(name, None) for name in keep]
        self.stamp = "".join(["outside", *map(repr, keep), "explained" if explain else ""])
        self.stamp += "counted" if only_counted else ""
        if scorer.rules is not None:
            self.fields.append(("rule", pa.string()))
            self.stamp += "ruled"
        self.keep, self.only_counted = keep, only_counted
        self.ranks, self.frequencies, reasons = None, None, None
        #: The object that finds the reasons of the lowest rows.
        self.reasons: Reasons | None = None
        if marginals is not None:
            self.frequencies = Frequencies(read_counts(marginals), str(marginals))
            self.frequencies.check(scorer.plan.schema.features)
        if explain:
            usual = usual if self.frequencies is None else self.frequencies.beside(usual)
            self.reasons = reasons = Reasons(scorer, usual=usual)
        if ranks is not None:
            counts = read_counts(ranks)
            self.ranks = Ranks(counts, scorer)
            self.fields += [(name, pa.float64()) for name in ("rank", "rank_low", "rank_high")]
            self.stamp += hashlib.sha256(counts.counts.tobytes()).hexdigest()
        for k in range(1, reasons.n_top + 1 if reasons else 1):
            self.fields += [(f"reason_{k}", pa.string()), (f"share_{k}", pa.float64())]
        self._details = RowDetails(
            scorer, SHOWN, every_rank=True, ranks=self.ranks, reasons=reasons, every_top=explain,
            keep=keep, only_counted=only_counted,
        )  # fmt: skip
        self._names = texts_column(scorer.plan.schema.names)

    @property
    def columns(self) -> list[str]:
        """Columns that are read after the features."""
        return self._details.columns

    def batches(
        self, reader: Reader, n_jobs: int | None = None
    ) -> Iterator[tuple[Scored, list[pa.Array]]]:
        """Yield each batch of rows with its columns, a list of arrays, in order."""
        return self._details.batches(reader, lambda one: (one, self._columns(one)), n_jobs=n_jobs)

    def _columns(self, batch: Scored) -> list[pa.Array]:
        columns: list[pa.Array] = [batch.outside, *batch.kept]
        if batch.ruled is not None:
            columns.append(batch.ruled.column(self._names.to_pylist()))
        if batch.ranks is not None:
            unjudged = np.isnan(batch.scores)
            judged = ~unjudged if unjudged.any() else None
            columns += [as_column(ranks, judged) for ranks in batch.ranks.T]
        for best, share in batch.top:
            # Null where no feature lowers the score.
            falls = share > 0.0
            columns += [self._names.take(as_column(best, falls)), as_column(share, falls)]
        return columns


class Summary:
    """Summarizes the scores as they pass.

    Scores below ``offset`` are outliers; NaN if there is no threshold. ``tally`` (d, 2) holds the
    missing and outside values of each feature.
    """

    def __init__(self, n_features: int, offset: float, source: str = "") -> None:
        self.offset, self.n_outliers = offset, 0
        self.tally = np.zeros((n_features, 2), np.int64)
        #: The rows with the lowest scores, and the number of rows.
        self.lowest = Lowest(SHOWN, source)

    def rows(self, batches: Iterable[tuple[Scored, list[pa.Array]]]) -> Iterator[tuple[Any, ...]]:
        """Yield (number of the first row, scores, outliers, more columns) of each batch."""
        for batch, columns in batches:
            outliers = None if math.isnan(self.offset) else batch.scores < self.offset
            if outliers is not None and batch.ruled is not None:
                outliers = batch.ruled.flagged(outliers)
            self.n_outliers += 0 if outliers is None else int(outliers.sum())
            self.tally += batch.tally
            start = self.lowest.n_rows
            self.lowest.add(batch, start)
            yield start, batch.scores, outliers, *columns

    def merge(self, other: "Summary") -> None:
        """Add the summary of another file's scores."""
        self.n_outliers += other.n_outliers
        self.tally += other.tally
        self.lowest.merge(other.lowest)

    def explain(self, reasons: Reasons | None) -> None:
        """Find the reasons of the lowest rows, if the options request any."""
        self.lowest.rows = explained_rows(self.lowest.rows, SHOWN, reasons)


def score_files(
    scorer: Scorer, details: ScoreColumns, offset: float, rows: Rows, folder: OutputFolder
) -> tuple[Summary, int]:
    """Score every file that has no scores yet; return the summary, and how many files had some.

    Several files are scored at a time, each by one thread. An interrupted call leaves only complete
    files, and the next call continues with the others.
    """
    pairs = score_files_of(scorer.sketch, rows.data, folder.path, offset, details.stamp)
    waiting = [pair for pair in pairs if not pair.is_done()]
    schema = scorer.plan.schema
    total = Summary(len(schema), offset)
    if not waiting:
        return total, len(pairs)
    folder.remove_leftovers()
    # All are opened before the first is scored: a file with other columns is found at once.
    readers = [
        replace(rows, data=str(pair.source)).open(schema, details.columns) for pair in waiting
    ]
    stopped, lock = threading.Event(), threading.Lock()

    def score_one(item: tuple[ScoreFile, Reader]) -> None:
        pair, reader = item
        summary = Summary(len(schema), offset, str(pair.source))
        scored = _until(stopped, summary.rows(details.batches(reader)))
        with folder.writing(pair.target):
            write_scores(pair.target, scored, {STAMP: pair.stamp()}, details.fields)
        with lock:
            total.merge(summary)

    source = one_after_other(readers, rows.data)
    with watched(source) as watch:
        items = list(zip(waiting, watch.reader.parts, strict=True))
        for_each(score_one, [items], n_threads(rows.threads), stopped.set)
    return total, len(pairs) - len(waiting)


class _Stopped(Exception):
    """Raised to stop scoring this file, because another file failed."""


def _until(stopped: threading.Event, rows: Iterator[T]) -> Iterator[T]:
    for row in rows:
        if stopped.is_set():
            raise _Stopped
        yield row
