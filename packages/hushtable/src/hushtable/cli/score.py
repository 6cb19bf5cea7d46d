"""``hushtable score``: a model and rows to a score a row."""

import hashlib
import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from hushtable.cli.counts import read_counts, signed_by, standing
from hushtable.cli.home import is_home, score_home
from hushtable.cli.options import Data, ModelFile, Threads, check_contamination, flag, option
from hushtable.cli.output import OutputFolder, Target, shown, tally, tally_blocks
from hushtable.cli.progress import watched
from hushtable.cli.result import Block, CommandResult, Paragraph, TextTable
from hushtable.cli.rows import READS, Reads, Rows
from hushtable.cli.tables import (
    LISTS,
    SCORES,
    check_names,
    check_top,
    endings,
    top_blocks,
    top_facts,
    write_scores,
    write_top,
)
from hushtable.data.columns import as_column, texts_column
from hushtable.data.readers import Reader, one_after_other
from hushtable.data.texts.reading import Reading
from hushtable.errors import DataError, UsageError
from hushtable.scores import models
from hushtable.scores.details import RowDetails, Scored
from hushtable.scores.distributions import Frequencies
from hushtable.scores.files import STAMP, ScoreFile, score_files_of
from hushtable.scores.models import OpenedModel
from hushtable.scores.outliers import Lowest, LowRow, Outliers, find_outliers, unjudged_words
from hushtable.scores.reasons import Reason, Reasons, worth_a_word
from hushtable.scores.scorer import Ranks, Scorer
from hushtable.scores.typical import Usual
from hushtable.threads import for_each, n_threads


@dataclass(frozen=True)
class Threshold:
    """One of three ways to draw the line, or none: then it is the model's.

    ``share`` is that of the rows to flag (of those scored, or of those of all sites where ranks
    are given, ``ranked``), ``count`` their number, ``score`` the one below which they lie.
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
        """Whether an option draws it."""
        return any(way is not None for way in (self.share, self.count, self.score))

    @property
    def reads_all_rows(self) -> bool:
        """Whether all rows have to be scored before the first is flagged."""
        return self.count is not None or (self.share is not None and not self.ranked)

    def checked(self, only_counted: bool) -> "Threshold":
        """Return the line; refuse one that is drawn among rows that are not judged."""
        if only_counted and self.reads_all_rows:
            raise UsageError(
                "--only-counted excludes --contamination and --count, which are of all rows: give "
                "--threshold, or leave it out"
            )
        return self

    def offset(self, of_model: float, ranks: Ranks | None) -> float:
        """Return the score below which a row is an outlier, where that needs no rows."""
        if self.score is not None:
            return self.score
        if self.share is not None and ranks is not None:
            return ranks.threshold(self.share)
        return of_model

    def offset_of_rows(self, scorer: Scorer, reader: Any, threads: int) -> float:
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


#: Lowest scores that are listed.
SHOWN = 5


class ScoreColumns:
    """Scores rows, with a column for all else that options ask for.

    Columns to ``keep`` come first. ``ranks`` and ``marginals`` are files of merged counts; the
    second put how far out a value lies into the reasons. ``fields`` are the names and types of the
    columns; ``stamp`` stands for which they are, and what they follow from. ``only_counted`` leaves
    scores and ranks of other rows empty.
    """

    def __init__(
        self,
        scorer: Scorer,
        ranks: Path | None,
        explain: bool,
        marginals: Path | None,
        keep: Sequence[str] = (),
        only_counted: bool = False,
    ) -> None:
        features = scorer.plan.schema.features
        # Kept columns have the type that they have in the rows.
        kept: list[tuple[str, pa.DataType | None]] = [(name, None) for name in keep]
        self.fields = [("outside", pa.string()), *kept]
        self.stamp = "".join(["outside", *map(repr, keep), "explained" if explain else ""])
        self.stamp += "counted" if only_counted else ""
        self.keep, self.only_counted = keep, only_counted
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
        self._details = RowDetails(
            scorer, SHOWN, every_rank=True, ranks=self.ranks, reasons=reasons, keep=keep,
            only_counted=only_counted,
        )  # fmt: skip
        self._names = texts_column([feature.name for feature in features])

    def batches(self, reader: Any, n_jobs: int | None = None) -> Iterator[tuple[Scored, Any]]:
        """Yield each batch of rows with its columns, a list of arrays, in order."""
        return self._details.batches(reader, lambda one: (one, self._columns(one)), n_jobs=n_jobs)

    def _columns(self, batch: Scored) -> list[pa.Array]:
        columns: list[pa.Array] = [batch.outside, *batch.kept]
        if batch.ranks is not None:
            unjudged = np.isnan(batch.scores)
            judged = ~unjudged if unjudged.any() else None
            columns += [as_column(ranks, judged) for ranks in batch.ranks.T]
        for best, share in batch.top:
            # Null where nothing falls short.
            falls = share > 0.0
            columns += [self._names.take(as_column(best, falls)), as_column(share, falls)]
        return columns


def lowest_blocks(lowest: list[LowRow]) -> Iterator[Block]:
    """Describe the rows with the lowest scores, their ranks and reasons."""
    yield "The lowest scores (rows are numbered from 0):\n"
    headers, left = ["row", "score"], 0
    lines = [[f"{one.row:,}", f"{one.score:.4f}"] for one in lowest]
    if lowest[0].file:
        headers, left = ["file", *headers], 1
        lines = [[shown(one.file), *line] for one, line in zip(lowest, lines, strict=True)]
    if lowest[0].detail.ranks is not None:
        headers += ["rank among all", "between"]
        for one, line in zip(lowest, lines, strict=True):
            line += one.detail.rank_words
    yield TextTable(headers, lines, left=left)
    if lowest[0].detail.reasons is not None:
        yield "\nWhy (features, and how many bits each takes off a typical score):\n"
        yield Paragraph(_sentence(one, one.detail.reasons or []) for one in lowest)


def _sentence(row: LowRow, reasons: list[Reason]) -> str:
    """Say why a row has its score."""
    place = f"Row {row.row:,} of {shown(row.file)}" if row.file else f"Row {row.row:,}"
    found = [f"{shown(reason.words)} ({reason.share:.2f})" for reason in worth_a_word(reasons)]
    found += [row.detail.likeness] if row.detail.likeness else []
    crowding = f" A typical row has {row.detail.crowding}." if row.detail.crowding else ""
    return f"{place}: {'; '.join(found) or 'no feature stands out'}.{crowding}"


class Summary:
    """Adds up what the scores come to, as they pass.

    Scores below ``offset`` are outliers; NaN if there is no threshold. ``tally`` (d, 2) holds the
    missing and outside values of each feature.
    """

    def __init__(self, n_features: int, offset: float, source: str = "") -> None:
        self.offset = offset
        self.n_rows = 0
        self.n_outliers = 0
        self.tally = np.zeros((n_features, 2), np.int64)
        self._lowest = Lowest(SHOWN, source)

    @property
    def lowest(self) -> list[LowRow]:
        """The rows with the lowest scores, the lowest first."""
        return self._lowest.rows

    def rows(self, batches: Iterable[tuple[Scored, Sequence[Any]]]) -> Iterator[tuple[Any, ...]]:
        """Yield (number of the first row, scores, outliers, more columns) of each batch."""
        for batch, columns in batches:
            outliers = None if math.isnan(self.offset) else batch.scores < self.offset
            self.n_outliers += 0 if outliers is None else int(outliers.sum())
            self.tally += batch.tally
            self._lowest.add(batch, self.n_rows)
            yield self.n_rows, batch.scores, outliers, *columns
            self.n_rows += len(batch.scores)

    @property
    def n_unjudged(self) -> int:
        """Rows that were not judged."""
        return self._lowest.n_unjudged

    def merge(self, other: "Summary") -> None:
        """Take in what the scores of another file come to."""
        self.n_rows += other.n_rows
        self.n_outliers += other.n_outliers
        self.tally += other.tally
        self._lowest.merge(other.lowest)
        self._lowest.n_unjudged += other.n_unjudged


def score_files(
    scorer: Scorer, details: ScoreColumns, offset: float, rows: Rows, folder: OutputFolder
) -> tuple[Summary, int]:
    """Score every file that has no scores yet; return what they come to, and how many had some.

    Several files are scored at a time, each by one thread. An interrupted call leaves whole
    files only, and the next one goes on with the others.
    """
    pairs = score_files_of(scorer.sketch, rows.data, folder.path, offset, details.stamp)
    waiting = [pair for pair in pairs if not pair.is_done()]
    schema = scorer.plan.schema
    total = Summary(len(schema), offset)
    if not waiting:
        return total, len(pairs)
    folder.remove_leftovers()
    # All are opened before the first is scored: a file with other columns is found at once.
    readers = [replace(rows, data=str(pair.source)).open(schema, details.keep) for pair in waiting]
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
    """Another file failed: this one is not gone on with."""


def _until(stopped: threading.Event, rows: Iterator[Any]) -> Iterator[Any]:
    for row in rows:
        if stopped.is_set():
            raise _Stopped
        yield row


#: Columns of --explain.
_REASONS = tuple(f"{name}_{k}" for k in (1, 2, 3) for name in ("reason", "share"))

_Output = Annotated[
    Path,
    option(
        "FILE|FOLDER",
        f"Scores to write: a file that ends in {endings(SCORES)} (with --top in {endings(LISTS)}); "
        "or a folder, for a .parquet file of each file of rows. What is there already is not "
        "scored again.",
        "--output",
        "-o",
    ),
]
_Contamination = Annotated[
    float | None, option("SHARE", "Flag this share of the rows (with --ranks: of all sites' rows).")
]
_Count = Annotated[int | None, option("N", "Flag the N rows with the lowest scores.")]
_Threshold = Annotated[float | None, option("SCORE", "Flag the rows that score lower than this.")]
_Ranks = Annotated[
    Path | None,
    option("FILE", "Add ranks among all sites' rows: merged counts under hushtable plan ranks."),
]
_Explain = Annotated[bool, flag("--explain", "Add the features that make each row's score low.")]
_Marginals = Annotated[
    Path | None,
    option("FILE", "Explain how far out values lie: merged counts under hushtable plan marginals."),
]
_Id = Annotated[
    str | None,
    option("NAME", "Put this column of the rows, an identifier, beside the scores.", "--id"),
]
_Keep = Annotated[
    str | None, option("A,B,...", "Put these columns of the rows, as they are, beside the scores.")
]
_Top = Annotated[
    int | None,
    option(
        "N",
        "Write the N rows with the lowest scores only, sorted: how rare, how sure, and why.",
        min=1,
    ),
]


_OnlyCounted = Annotated[
    bool,
    flag(
        "--only-counted",
        "Do not judge rows of whose context (of a model with --context) fewer than eight rows were "
        "counted.",
    ),
]


def score(
    data: Data,
    model: ModelFile,
    output: _Output,
    threads: Threads = -1,
    reads: Reads = READS,
    contamination: _Contamination = None,
    count: _Count = None,
    threshold: _Threshold = None,
    ranks: _Ranks = None,
    explain: _Explain = False,
    marginals: _Marginals = None,
    id_: _Id = None,
    keep: _Keep = None,
    top: _Top = None,
    only_counted: _OnlyCounted = False,
) -> CommandResult:
    """Score rows and write the scores.

    The output has a row for each row of DATA: its number from 0 (in each file, into a folder),
    its score (low is abnormal; in bits, with ACE in rows), and whether it is an outlier. --ranks
    adds each row's rank among all sites' rows, with a 95% interval. --explain adds the three
    features that lower the score most, and by how much. --top writes a list for people instead: the
    lowest rows with severity (100 times one minus the share of rows as rare), score, standard
    error, and reasons with values beside what is usual. Scores describe the rows: keep them where
    the rows are.

    Example:
      hushtable score patients.csv --drop id,name --model model.hush -o scores.parquet
      hushtable score lake/ --model model.hush -o scores
      hushtable score patients.csv --model model.hush --id id --top 20 -o top.xlsx
    """
    id_, kept = reads.beside(id_, keep)
    line = Threshold(contamination, count, threshold, ranks is not None).checked(only_counted)
    if marginals is not None and not (explain or top):
        raise UsageError("--marginals puts explanations in words: give --explain with it")
    if is_home(model, line.drawn or ranks or explain or only_counted):
        return score_home(model, Rows(data, reads, Reading(), threads), kept, top, output)
    target = _target(output, [data, model, ranks, marginals], line, top, kept)
    scorer, offset, reading, usual = open_model(model, id_)
    signed = {"signed_by": signed_by(scorer.sketch)}
    details = ScoreColumns(scorer, ranks, explain, marginals, kept, only_counted)
    rows = Rows(data, reads, reading, threads)
    if top is not None and isinstance(target, Target):
        found, source = _find_top(scorer, details, usual, rows, top)
        write_top(target, found, model, source, scorer.plan.score.unit)
        return CommandResult(top_facts(found, output) | signed, top_blocks(found, target))
    done = {}
    if isinstance(target, OutputFolder):
        offset = line.offset(offset, details.ranks)
        summary, done["files_kept"] = score_files(scorer, details, offset, rows, target)
    else:
        summary = _score_file(scorer, details, offset, line, rows, target)
    shown_blocks = _blocks(scorer, details, summary, target, **done)
    return CommandResult(_facts(scorer, summary, output) | signed | done, shown_blocks)


def _target(
    output: Path,
    inputs: Sequence[str | Path | None],
    line: Threshold,
    top: int | None,
    kept: list[str],
) -> Target | OutputFolder:
    """Return where to write; refuse what the options do not write there."""
    if top is not None:
        if line.drawn:
            raise UsageError(
                "--top lists rows without a line: leave --contamination, --count and --threshold "
                "out"
            )
        check_top(output, kept)
        return Target(output, inputs)
    check_names(kept, ("row", "score", "outlier", "rank", "rank_low", "rank_high", *_REASONS))
    if not _is_folder(output):
        return Target(output, inputs)
    if line.reads_all_rows:
        raise UsageError(
            "--contamination and --count need all scores before the first is written: give one "
            "file as -o, or --threshold"
        )
    return OutputFolder(output)


def _find_top(
    scorer: Scorer, details: ScoreColumns, usual: Usual | None, rows: Rows, top: int
) -> tuple[Outliers, str]:
    """Find the lowest rows; return with them where they are from, without a URL's password."""
    reader = rows.open(scorer.plan.schema, details.keep)
    with watched(reader) as watch:
        found = find_outliers(
            scorer,
            watch.reader,
            top,
            keep=details.keep,
            usual=usual,
            ranks=details.ranks,
            frequencies=details.frequencies,
            only_counted=details.only_counted,
            n_jobs=rows.threads,
        )
    return found, reader.source


def _score_file(
    scorer: Scorer,
    details: ScoreColumns,
    offset: float,
    line: Threshold,
    rows: Rows,
    target: Target,
) -> Summary:
    """Score the rows into one file."""
    schema = scorer.plan.schema
    reader, passes = rows.open(schema, details.keep), 1
    if line.reads_all_rows:
        reader, passes = reader.repeatable(), 2
    with watched(reader, passes=passes) as watch, target.writing():
        if line.reads_all_rows:
            offset = line.offset_of_rows(scorer, watch.reader, rows.threads)
        else:
            offset = line.offset(offset, details.ranks)
        summary = Summary(len(schema), offset)
        scored = summary.rows(details.batches(watch.reader, n_jobs=rows.threads))
        write_scores(target.path, _some(scored, reader.source), more=details.fields)
    return summary


def _facts(scorer: Scorer, summary: Summary, output: Path) -> dict[str, Any]:
    unknown = math.isnan(summary.offset)
    return {
        "command": "score",
        "scores": str(output),
        "rows": summary.n_rows,
        "outliers": None if unknown else summary.n_outliers,
        **({"unjudged": summary.n_unjudged} if summary.n_unjudged else {}),
        "offset": None if unknown else summary.offset,
        "lowest": [row.facts() for row in summary.lowest],
        "tally": tally(scorer.plan.schema, summary.tally),
    }


def _blocks(
    scorer: Scorer,
    details: ScoreColumns,
    summary: Summary,
    target: Target | OutputFolder,
    files_kept: int = 0,
) -> Iterator[Block]:
    if files_kept:
        yield f"Scored before, and left as they are: {files_kept:,} files."
    if summary.n_rows == 0:
        yield f"No other row is to be scored. {target.path} holds all scores."
        return
    if math.isnan(summary.offset):
        yield f"Scored {summary.n_rows:,} rows. The released counts are too noisy to derive a"
        yield "threshold, and the column outlier is empty: --contamination 0.05 would flag the"
        yield "lowest 5% of these rows."
    else:
        share = summary.n_outliers / summary.n_rows
        yield (
            f"Scored {summary.n_rows:,} rows: {summary.n_outliers:,} outliers ({share:.2%}), "
            f"those below {summary.offset:.4g} {scorer.plan.score.unit}."
        )
    if summary.n_unjudged:
        yield Paragraph([unjudged_words(summary.n_unjudged)])
    yield from tally_blocks(scorer.plan.schema, summary.tally, summary.n_rows)
    if summary.lowest:
        yield from lowest_blocks(summary.lowest)
    names = [name for name, _ in details.fields]
    yield f"\nWrote {target}: {', '.join(['row', 'score', 'outlier', *names])}."
    if scorer.sketch.may_leave:
        yield Paragraph([standing(scorer.sketch, "The model")])
    if scorer.sketch.ledger is not None:
        yield "Scores describe your rows: the model's privacy does not cover them. Keep them here."


def _is_folder(output: Path) -> bool:
    if output.suffix in SCORES:
        return False
    if output.is_dir() or not output.suffix:
        return True
    raise UsageError(
        f"-o {output}: needs a name that ends in {endings(SCORES)}, or a folder's, without a dot "
        f"(--top writes {endings(LISTS)})"
    )


def _some(rows: Iterator[tuple[Any, ...]], source: str) -> Iterator[tuple[Any, ...]]:
    """Pass rows on; raise `DataError` if there are none, before an empty file takes its place."""
    none = True
    for row in rows:
        none = False
        yield row
    if none:
        raise DataError(f"{source} has no rows: there is nothing to score")


def open_model(path: Path, id_: str | None) -> OpenedModel:
    """Read a model that scores; refuse one that takes the identifier for a feature."""
    model = models.open_model(path)
    if id_ in model.scorer.plan.schema.names:
        raise UsageError(
            f"--id {id_}: the model takes this column for a feature: fit without it (--drop), or "
            "give it as --keep"
        )
    return model
