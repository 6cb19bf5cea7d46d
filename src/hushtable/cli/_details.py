"""What is written of rows besides their scores: ranks, and reasons."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from hushtable.cli._counts import read_counts
from hushtable.cli._output import print_sentences, print_table, shown
from hushtable.cli._reasons import Reasons, sentence
from hushtable.cli._scores import Lowest, Scored
from hushtable.data.encoding import Codes
from hushtable.scores.explain import Explained
from hushtable.scores.ranks import Ranks
from hushtable.scores.scorer import Scorer

__all__ = ["Details", "print_lowest"]


class Details:
    """Scores rows, and finds what else was asked for.

    Parameters
    ----------
    scorer : Scorer
        Of the model.
    ranks : Path, optional
        Merged sketch or release under ranks of the model.
    explain : bool
        Whether to give reasons.
    marginals : Path, optional
        With reasons, says how far out a value lies.

    Attributes
    ----------
    ranks : Ranks or None
        The rows of all sites, where ranks were given.
    fields : list of (str, pyarrow.DataType)
        Names and types of the columns.
    stamp : str
        Which columns they are, and what they follow from.
    """

    def __init__(
        self, scorer: Scorer, ranks: Path | None, explain: bool, marginals: Path | None
    ) -> None:

        self._scorer = scorer
        self._reasons = Reasons(scorer, marginals) if explain else None
        self.ranks, self.fields, self.stamp = None, [], "explained" if explain else ""
        if ranks is not None:
            counts = read_counts(ranks)
            self.ranks = Ranks(counts, scorer)
            self.fields += [(name, pa.float64()) for name in ("rank", "rank_low", "rank_high")]
            self.stamp += hashlib.sha256(counts.counts.tobytes()).hexdigest()
        if self._reasons is not None:
            self.fields += self._reasons.fields

    def batches(self, reader: Any, *, n_jobs: int | None = None) -> Iterator[Scored]:
        """Yield each batch of rows, in order."""
        if self._reasons is None:
            return self._scorer.batches(reader, self._ranked, n_jobs=n_jobs)
        return self._reasons.explainer.batches(reader, self._explained, n_jobs=n_jobs)

    def _ranked(self, codes: Codes, scores: Any) -> Scored:

        if self.ranks is None:
            return Scored(scores, codes.tally)
        ranks = self.ranks.of(scores)
        low, high = self.ranks.between(scores, self._scorer.errors(codes, scores)).T

        def details(i: int) -> dict[str, Any]:
            return {"rank": float(ranks[i]), "between": [float(low[i]), float(high[i])]}

        def column(values: Any) -> Any:
            # Not pa.array, which imports pandas where it is installed: a quarter of a second.
            return pa.Array.from_buffers(
                pa.float64(), len(values), [None, pa.py_buffer(values.copy())]
            )

        return Scored(scores, codes.tally, tuple(map(column, (ranks, low, high))), details)

    def _explained(self, batch: Explained) -> Scored:
        assert self._reasons is not None
        ranked = self._ranked(batch.codes, batch.scores)
        columns, reasons = self._reasons.of(batch)

        def details(i: int) -> dict[str, Any]:
            return {**ranked.details(i), "reasons": reasons(i)}

        return Scored(ranked.scores, ranked.tally, (*ranked.columns, *columns), details)


def print_lowest(lowest: list[Lowest]) -> None:
    """Print the rows with the lowest scores, and what is said of them."""
    print("The lowest scores (rows are numbered from 0):\n")
    headers, left = ["row", "score"], 0
    lines = [[f"{one.row:,}", f"{one.score:.4f}"] for one in lowest]
    if lowest[0].file:
        headers, left = ["file", *headers], 1
        lines = [[shown(one.file), *line] for one, line in zip(lowest, lines, strict=True)]
    if "rank" in lowest[0].details:
        headers += ["rank among all", "between"]
        for one, line in zip(lowest, lines, strict=True):
            low, high = one.details["between"]
            line += [f"{one.details['rank']:.2%}", f"{low:.2%} and {high:.2%}"]
    print_table(headers, lines, left=left)
    if "reasons" in lowest[0].details:
        print("\nWhy (features and their shares of what a score falls short of a typical one):\n")
        print_sentences(sentence(_place(one), one.details["reasons"]) for one in lowest)


def _place(row: Lowest) -> str:
    return f"Row {row.row:,} of {shown(row.file)}" if row.file else f"Row {row.row:,}"
