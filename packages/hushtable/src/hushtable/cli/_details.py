"""Ranks and reasons as ``hushtable score`` writes and prints them."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from hushtable.cli._counts import read_counts
from hushtable.cli._output import print_sentences, print_table, shown
from hushtable.data.columns import as_column, texts_column
from hushtable.scores import details
from hushtable.scores.details import Scored
from hushtable.scores.distributions import Frequencies
from hushtable.scores.outliers import LowRow
from hushtable.scores.ranks import Ranks
from hushtable.scores.reasons import Reason, Reasons, worth_a_word
from hushtable.scores.scorer import Scorer

#: Lowest scores that are listed.
SHOWN = 5


class Details:
    """Scores rows, with a column for all else that options ask for.

    Columns to ``keep`` come first. ``ranks`` and ``marginals`` are files of merged counts; the
    second put how far out a value lies into the reasons. ``fields`` are the names and types of the
    columns; ``stamp`` stands for which they are, and what they follow from.
    """

    def __init__(
        self,
        scorer: Scorer,
        ranks: Path | None,
        explain: bool,
        marginals: Path | None,
        keep: Sequence[str] = (),
    ) -> None:
        features = scorer.plan.schema.features
        # Kept columns have the type that they have in the rows.
        kept: list[tuple[str, pa.DataType | None]] = [(name, None) for name in keep]
        self.fields = [("outside", pa.string()), *kept]
        self.stamp = "".join(["outside", *map(repr, keep), "explained" if explain else ""])
        self.keep = keep
        self.ranks, self.frequencies, reasons = None, None, None
        if marginals is not None:
            self.frequencies = Frequencies(read_counts(marginals), str(marginals))
            self.frequencies.check(features)
        if explain:
            reasons = Reasons(scorer, frequencies=self.frequencies)
        if ranks is not None:
            counts = read_counts(ranks)
            self.ranks = Ranks(counts, scorer)
            self.fields += [(name, pa.float64()) for name in ("rank", "rank_low", "rank_high")]
            self.stamp += hashlib.sha256(counts.counts.tobytes()).hexdigest()
        for k in range(1, reasons.n_top + 1 if reasons else 1):
            self.fields += [(f"reason_{k}", pa.string()), (f"share_{k}", pa.float64())]
        self._details = details.Details(
            scorer, SHOWN, every_rank=True, ranks=self.ranks, reasons=reasons, keep=keep
        )
        self._names = texts_column([feature.name for feature in features])

    def batches(self, reader: Any, n_jobs: int | None = None) -> Iterator[tuple[Scored, Any]]:
        """Yield each batch of rows with its columns, a list of arrays, in order."""
        return self._details.batches(reader, lambda one: (one, self._columns(one)), n_jobs=n_jobs)

    def _columns(self, batch: Scored) -> list[pa.Array]:
        columns: list[pa.Array] = [batch.outside, *batch.kept]
        if batch.ranks is not None:
            columns += map(as_column, batch.ranks.T)
        for best, share in batch.top:
            # Null where nothing falls short.
            falls = share > 0.0
            columns += [self._names.take(as_column(best, falls)), as_column(share, falls)]
        return columns


def print_lowest(lowest: list[LowRow]) -> None:
    """Print the rows with the lowest scores, their ranks and reasons."""
    print("The lowest scores (rows are numbered from 0):\n")
    headers, left = ["row", "score"], 0
    lines = [[f"{one.row:,}", f"{one.score:.4f}"] for one in lowest]
    if lowest[0].file:
        headers, left = ["file", *headers], 1
        lines = [[shown(one.file), *line] for one, line in zip(lowest, lines, strict=True)]
    if lowest[0].detail.ranks is not None:
        headers += ["rank among all", "between"]
        for one, line in zip(lowest, lines, strict=True):
            line += one.detail.rank_words
    print_table(headers, lines, left=left)
    if lowest[0].detail.reasons is not None:
        print("\nWhy (features, and how many bits each takes off a typical score):\n")
        print_sentences(_sentence(one, one.detail.reasons or []) for one in lowest)


def _sentence(row: LowRow, reasons: list[Reason]) -> str:
    """Say why a row has its score."""
    place = f"Row {row.row:,} of {shown(row.file)}" if row.file else f"Row {row.row:,}"
    found = [f"{shown(reason.words)} ({reason.share:.2f})" for reason in worth_a_word(reasons)]
    found += [row.detail.likeness] if row.detail.likeness else []
    crowding = f" A typical row has {row.detail.crowding}." if row.detail.crowding else ""
    return f"{place}: {'; '.join(found) or 'no feature stands out'}.{crowding}"
