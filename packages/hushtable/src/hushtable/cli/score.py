"""``hushtable score``: score each row with a model."""

import hashlib
import json
import math
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import pyarrow as pa

from hushtable.cli.options import (
    HUSHTABLE,
    READS,
    Data,
    Language,
    Reads,
    Rows,
    check_contamination,
    draw_spelled,
    flag,
    option,
    read_counts,
    standing,
)
from hushtable.cli.result import (
    Block,
    CommandResult,
    Facts,
    OutputFolder,
    Paragraph,
    Target,
    tally,
    tally_blocks,
)
from hushtable.cli.tables import (
    SCORES,
    check_names,
    check_top,
    endings,
    lowest_blocks,
    top_blocks,
    top_facts,
    write_scores,
    write_top,
)
from hushtable.counts.base import Counts
from hushtable.data.columns import as_column, texts_column
from hushtable.data.options import RowOptions, notes
from hushtable.data.readers import Reader, one_after_other, paths
from hushtable.data.texts.reading import Reading
from hushtable.describe.plan import signed_by
from hushtable.detectors.load import OpenedModel, open_model, opened
from hushtable.errors import DataError, UsageError
from hushtable.files import command_of
from hushtable.language import ENGLISH, speaking
from hushtable.progress import watched
from hushtable.report.lists import LISTS
from hushtable.scores.finding import RowDetails, Scored
from hushtable.scores.outliers import (
    Lowest,
    Search,
    explained_rows,
    known_words,
)
from hushtable.scores.reasons import Reasons
from hushtable.scores.scorer import Ranks, Scorer
from hushtable.scores.usual import Frequencies, Usual
from hushtable.threads import for_each, n_threads

T = TypeVar("T")
#: Metadata key of a Parquet file of scores that states its rows and its model.
STAMP = b"hushtable.scores"


@dataclass(frozen=True)
class ScoreFile:
    """A file of rows, the file for its scores, and the digest of the model."""

    source: Path
    target: Path
    model: str

    def stamp(self) -> bytes:
        """Return the note that the target contains: which model scored which rows."""
        seen = self.source.stat()
        stamp = {"model": self.model, "bytes": seen.st_size, "changed_ns": seen.st_mtime_ns}
        return json.dumps(stamp).encode()

    def is_done(self) -> bool:
        """Return whether the target holds the scores of these rows, unchanged, by this model.

        It is made again if the rows' file has changed since. Raises `UsageError` if it holds
        anything else, which would be lost.
        """
        if not self.target.exists():
            return False
        stamp = self._found()
        try:
            content = json.loads(stamp or b"null")
        except (ValueError, RecursionError):
            content = None
        model = content.get("model") if isinstance(content, dict) else None
        if not isinstance(model, str):
            raise UsageError(
                f"{self.target} is not a file of scores that hushtable wrote: give another "
                "folder, or remove it"
            )
        if model != self.model:
            raise UsageError(
                f"{self.target} holds scores by another model or threshold, or other columns: "
                "give another folder, or remove it"
            )
        return stamp == self.stamp()

    def _found(self) -> bytes | None:
        from pyarrow import parquet

        try:
            stamp: bytes | None = (parquet.read_schema(self.target).metadata or {}).get(STAMP)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
            return None
        except OSError as error:
            if error.errno is not None:
                raise
            return None  # Arrow's error for a damaged file
        return stamp


def score_files_of(
    model: Counts,
    data: str,
    folder: str | os.PathLike[str],
    offset: float | None = None,
    details: str = "",
) -> list[ScoreFile]:
    """Pair every file of rows with its file of scores.

    ``data`` is a file, a folder of files, or a glob pattern. The scores go into ``folder``, in the
    same subfolders as the rows; ``rows.parquet`` becomes ``rows.scores.parquet``. ``offset`` is the
    threshold, if outliers are to be marked; ``details`` names the other columns to write: files
    without them are made again. Raises `UsageError` if two files would have the same name, or if
    the folder is one from which rows are read.
    """
    sources = paths(data)
    within = Path(data).is_dir()
    top = Path(data) if within else Path(os.path.commonpath([s.parent for s in sources]))
    if within and Path(folder).resolve().is_relative_to(top.resolve()):
        raise UsageError(f"{folder} is inside {data}, from which rows are read: give another")
    about = f"{model.plan.plan_id} {model.noise_sd} {offset} {details}".rstrip()
    digest = hashlib.sha256(about.encode())
    digest.update(model.counts.tobytes())
    pairs = []
    for source in sources:
        target = Path(folder) / source.parent.relative_to(top)
        target /= f"{source.name.split('.')[0]}.scores.parquet"
        pairs.append(ScoreFile(source, target, digest.hexdigest()))
    if len({pair.target for pair in pairs}) < len(pairs):
        raise UsageError(
            f"{data}: several files have the same name apart from the ending: score them separately"
        )
    return pairs


#: Lowest scores that are listed.
SHOWN = 5


class ScoreColumns:
    """Scores rows, with a column for everything else that the options request.

    Columns to ``keep`` come first. The ranks and ``marginals`` are files of merged counts; the
    marginals add to the reasons how extreme a value is. ``fields`` are the names and types of the
    columns; ``stamp`` identifies them and their inputs. Scores and ranks of rows that are not
    judged are empty.
    """

    def __init__(
        self,
        scorer: Scorer,
        line: "Threshold",
        explain: bool,
        marginals: Path | None,
        keep: Sequence[str],
        usual: Usual | None,
    ) -> None:
        # Kept columns have the type that they have in the rows.
        self.fields: list[tuple[str, pa.DataType | None]] = [("outside", pa.string())]
        self.fields += [(name, None) for name in keep]
        self.stamp = "".join(["outside", *map(repr, keep), "explained" if explain else ""])
        if scorer.rules is not None:
            self.fields.append(("rule", pa.string()))
            self.stamp += "ruled"
        self.ranks, self.frequencies, reasons = None, None, None
        #: The object that finds the reasons of the lowest rows.
        self.reasons: Reasons | None = None
        if marginals is not None:
            self.frequencies = Frequencies(read_counts(marginals), str(marginals))
            self.frequencies.check(scorer.plan.schema.features)
        if explain:
            usual = usual if self.frequencies is None else self.frequencies.beside(usual)
            self.reasons = reasons = Reasons(scorer, usual=usual)
        if line.ranks is not None:
            counts = read_counts(line.ranks)
            self.ranks = Ranks(counts, scorer)
            self.fields += [(name, pa.float64()) for name in ("rank", "rank_low", "rank_high")]
            self.stamp += hashlib.sha256(counts.counts.tobytes()).hexdigest()
        for k in range(1, reasons.n_top + 1 if reasons else 1):
            self.fields += [(f"reason_{k}", pa.string()), (f"share_{k}", pa.float64())]
        self._details = RowDetails(
            scorer, SHOWN, every=True, ranks=self.ranks, reasons=reasons, keep=keep
        )
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
            columns += [as_column(ranks) for ranks in batch.ranks.T]
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
        for_each(score_one, [items], n_threads(-1), stopped.set)
    return total, len(pairs) - len(waiting)


class _Stopped(Exception):
    """Raised to stop scoring this file, because another file failed."""


def _until(stopped: threading.Event, rows: Iterator[T]) -> Iterator[T]:
    for row in rows:
        if stopped.is_set():
            raise _Stopped
        yield row


#: Columns of --explain.
_REASONS = tuple(f"{name}_{k}" for k in (1, 2, 3) for name in ("reason", "share"))

_Model = Annotated[
    Path | None,
    option(
        "FILE",
        "Model of hushtable fit, or a (merged) sketch or release; default: a model that is fitted "
        "to the same rows, and not kept.",
    ),
]
_Output = Annotated[
    Path,
    option(
        "FILE|FOLDER",
        f"Scores to write: a file that ends in {endings(SCORES)} (with --top in {endings(LISTS)}); "
        "or a folder, for one .parquet file per file of rows. A file that is there already is not "
        "scored again.",
        "--output",
        "-o",
    ),
]
_Explain = Annotated[bool, flag("--explain", "Add the features that lower each row's score.")]
_Marginals = Annotated[
    Path | None,
    option("FILE", "Explain how extreme values are: merged counts under hushtable plan marginals."),
]
_Id = Annotated[
    str | None,
    option("NAME", "Copy this column of the rows, an identifier, next to the scores.", "--id"),
]
_Keep = Annotated[
    str | None, option("A,B,...", "Copy these columns of the rows, unchanged, next to the scores.")
]
_Top = Annotated[
    int | None,
    option(
        "N",
        "Write only N rows, with severity, certainty and reasons: first those with values far "
        "outside, then the lowest scores.",
        min=1,
    ),
]


_Contamination = Annotated[
    float | None,
    option(
        "SHARE|N",
        "Flag this share of the rows (with --ranks: of all sites' rows), or the N rows with the "
        "lowest scores.",
    ),
]
_Threshold = Annotated[float | None, option("SCORE", "Flag the rows that score lower than this.")]
_Ranks = Annotated[
    Path | None,
    option("FILE", "Add ranks among all sites' rows: merged counts under hushtable plan ranks."),
]


@dataclass(frozen=True)
class Threshold:
    """Which rows are flagged; without an option, those below the model's threshold."""

    contamination: _Contamination = None
    threshold: _Threshold = None
    ranks: _Ranks = None

    def __post_init__(self) -> None:
        if self.contamination is not None and self.threshold is not None:
            raise UsageError("--contamination and --threshold exclude each other")
        flagged = self.contamination or 0.0
        if not flagged % 1.0 == 0.0 < flagged:  # a share, not a number of rows
            check_contamination(self.contamination)

    @property
    def drawn(self) -> bool:
        """Whether an option sets the threshold."""
        return self.contamination is not None or self.threshold is not None

    @property
    def reads_all_rows(self) -> bool:
        """Whether all rows have to be scored before the first is flagged."""
        return self.contamination is not None and not (self.ranks and self.contamination < 1.0)

    def offset(self, of_model: float, ranks: Ranks | None) -> float:
        """Return the score below which a row is an outlier, where that needs no rows."""
        if self.threshold is not None:
            return self.threshold
        if self.contamination is not None and ranks is not None:
            return ranks.threshold(self.contamination)
        return of_model

    def offset_of_rows(self, scorer: Scorer, reader: Reader) -> float:
        """Return the score below which a row is an outlier; holds 8 bytes a row."""
        scores = scorer.score(reader, n_jobs=-1)
        if not len(scores):
            raise DataError(f"{reader.source} has no rows: there is nothing to score")
        flagged = self.contamination or 0.0
        if flagged < 1.0:
            return float(np.percentile(scores, 100.0 * flagged))
        if flagged >= len(scores):
            raise UsageError(
                f"--contamination {flagged:g}: {reader.source} has {len(scores):,} rows; give fewer"
            )
        # Rows of equal scores are flagged together, or not at all.
        return float(np.partition(scores, int(flagged))[int(flagged)])


def score(
    data: Data,
    output: _Output,
    model: _Model = None,
    reads: Reads = READS,
    explain: _Explain = False,
    marginals: _Marginals = None,
    id_: _Id = None,
    keep: _Keep = None,
    top: _Top = None,
    language: Language = ENGLISH,
    *,
    line: Threshold,
) -> CommandResult:
    """Score rows and write the scores.

    The output has a row for each row of DATA: its number from 0 (starting again for each file, if
    the output is a folder), its score (low is abnormal; in bits), and whether
    it is an outlier. --ranks adds each row's rank among all sites' rows, with a 95% interval.
    --explain adds the three features that lower the score most, and by how much. --top writes a
    list for people instead: the lowest rows with severity (100 times one minus the share of rows
    as rare), score, standard error, and reasons with values next to usual ones. Scores describe
    the rows: keep them where the rows are.

    Example:
      hushtable score patients.csv --id id --top 20 -o top.xlsx
      hushtable score patients.csv --drop id,name --model model.hush -o scores.parquet
      hushtable score lake/ --model model.hush -o scores
      hushtable score patients.csv --model model.hush --id id --top 20 -o top.xlsx
    """
    id_, kept = reads.beside(id_, keep)
    if marginals is not None and not (explain or top):
        raise UsageError("--marginals adds words to explanations: give --explain with it")
    if model is None:
        _check_without_model(data, output, top, line, marginals)
    elif (score_kind := command_of(model, "score")) is not None:
        made: CommandResult = score_kind(
            model, Rows(data, reads, Reading()), kept, top, output,
            line.drawn or line.ranks or explain,
        )  # fmt: skip
        return made
    target = _target(output, [data, model, line.ranks, marginals], line, top, kept)
    (scorer, offset, reading, usual), facts = _opened(model, data, reads, id_)
    rows = Rows(data, reads, reading)
    details = ScoreColumns(scorer, line, explain, marginals, kept, usual)
    if top is not None and isinstance(target, Target):
        with speaking(language):
            reader = rows.open(scorer.plan.schema, details.columns)
            search = Search(
                scorer, top, keep=kept, usual=usual, ranks=details.ranks,
                frequencies=details.frequencies,
            )  # fmt: skip
            with watched(reader) as watch:
                found = search.find(watch.reader, n_jobs=-1)
            write_top(target, found, model, reader.source, scorer.plan.score.unit)
        return CommandResult(
            top_facts(found, output) | facts, top_blocks(found, target, words=language == ENGLISH)
        )
    done = {}
    if isinstance(target, OutputFolder):
        offset = line.offset(offset, details.ranks)
        summary, done["files_kept"] = score_files(scorer, details, offset, rows, target)
    else:
        summary = _score_file(scorer, details, offset, line, rows, target)
    summary.lowest.rows = explained_rows(summary.lowest.rows, SHOWN, details.reasons)
    shown_blocks = _blocks(scorer, details, summary, target, **done)
    return CommandResult(_facts(scorer, summary, output) | facts | done, shown_blocks)


def _check_without_model(
    data: str,
    output: Path,
    top: int | None,
    line: Threshold,
    marginals: Path | None,
) -> None:
    given = (
        (line.ranks, "--ranks"),
        (marginals, "--marginals"),
    )
    for value, name in given:
        if value:
            raise UsageError(f"{name} needs --model: fit a model first (hushtable fit)")
    if data == "-":
        raise UsageError(
            "rows from standard input can be read only once, and without --model they are fitted "
            "first: give a file, or --model"
        )
    if top is None and _is_folder(output):
        raise UsageError(
            f"-o {output}: scores in a folder need --model, so that all files are scored by the "
            "same model: fit one first (hushtable fit), or give one file as -o"
        )


def _opened(
    model: Path | None, data: str, reads: RowOptions, id_: str | None
) -> tuple[OpenedModel, Facts]:
    if model is not None:
        found = open_model(model, id_)
        return found, {"signed_by": signed_by(found.scorer.sketch)}
    from hushtable.cli.fit import fit_rows  # not needed with a model

    if id_ is not None:  # which is read as an identifier, not as a feature
        quoted = id_.replace('"', '""')
        reads = replace(reads, as_=[*(reads.as_ or ()), f'"{quoted}=id"'])
    settings = {"n_jobs": -1, "random_state": 0}
    draw, reader = draw_spelled(HUSHTABLE), reads.open(data)
    fitted, n_rows, of_omop = fit_rows(data, reads, reader, draw, settings, {})
    n_features = len(fitted.plan_.schema.of_rows)
    notes.append(
        f"No --model: fitted {type(fitted).__name__} to these {n_rows:,} rows ({n_features:,} "
        "columns). To keep a model for later rows, run hushtable fit."
    )
    facts = {"rows": n_rows, "features": n_features, "plan_id": fitted.plan_.plan_id}
    return opened(fitted), {"signed_by": None, "fitted": facts | of_omop}


def _target(
    output: Path,
    inputs: Sequence[str | Path | None],
    line: Threshold,
    top: int | None,
    kept: list[str],
) -> Target | OutputFolder:
    if top is not None:
        if line.drawn:
            raise UsageError(
                "--top lists rows without a threshold: leave --contamination and --threshold out"
            )
        check_top(output, kept)
        return Target(output, inputs)
    check_names(kept, ("row", "score", "outlier", "rank", "rank_low", "rank_high", *_REASONS))
    if not _is_folder(output):
        return Target(output, inputs)
    if line.reads_all_rows:
        raise UsageError(
            "--contamination needs all scores before the first is written: give one file as -o, or "
            "--threshold"
        )
    return OutputFolder(output)


def _score_file(
    scorer: Scorer,
    details: ScoreColumns,
    offset: float,
    line: Threshold,
    rows: Rows,
    target: Target,
) -> Summary:
    schema = scorer.plan.schema
    reader = rows.open(schema, details.columns)
    if line.reads_all_rows:
        reader = reader.repeatable()
    with watched(reader) as watch, target.writing():
        if line.reads_all_rows:
            offset = line.offset_of_rows(scorer, watch.reader)
        else:
            offset = line.offset(offset, details.ranks)
        summary = Summary(len(schema), offset)
        scored = summary.rows(details.batches(watch.reader, n_jobs=-1))
        write_scores(target.path, _some(scored, reader.source), more=details.fields)
    return summary


def _facts(scorer: Scorer, summary: Summary, output: Path) -> dict[str, object]:
    unknown = math.isnan(summary.offset)
    return {
        "command": "score",
        "scores": str(output),
        "rows": summary.lowest.n_rows,
        "outliers": None if unknown else summary.n_outliers,
        **({"known": summary.lowest.n_known} if summary.lowest.n_known else {}),
        "offset": None if unknown else summary.offset,
        "lowest": [row.facts() for row in summary.lowest.rows],
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
        yield f"Already scored, and left as they are: {files_kept:,} files."
    if summary.lowest.n_rows == 0:
        yield f"There are no other rows to score. {target.path} holds all scores."
        return
    yield f"Scored {summary.lowest.n_rows:,} rows."
    if summary.lowest.n_known:
        yield Paragraph([known_words(summary.lowest.n_known)])
    yield from tally_blocks(scorer.plan.schema, summary.tally, summary.lowest.n_rows)
    if summary.lowest.rows:
        yield from lowest_blocks(summary.lowest.rows)
        yield ""
        yield Paragraph([_outlier_words(summary, scorer.plan.score.unit)])
    names = [name for name, _ in details.fields]
    yield f"\nWrote {target}: {', '.join(['row', 'score', 'outlier', *names])}."
    if scorer.sketch.may_leave:
        yield Paragraph([standing(scorer.sketch, "The model")])
    if scorer.sketch.ledger is not None:
        yield (
            "Scores describe your rows, and the privacy of the model does not cover them: keep "
            "them here."
        )


def _outlier_words(summary: Summary, unit: str) -> str:
    if math.isnan(summary.offset):
        return (
            "The released counts are too noisy to derive a threshold, and the column outlier is "
            "empty: --contamination 0.05 would mark the lowest 5% of these rows."
        )
    share = summary.n_outliers / summary.lowest.n_rows
    return (
        f"The column outlier marks {summary.n_outliers:,} rows ({share:.2%}), those below "
        f"{summary.offset:.4g} {unit}; --contamination 20 marks the 20 lowest, and --top 20 lists "
        "20 rows with reasons."
    )


def _is_folder(output: Path) -> bool:
    if output.suffix in SCORES:
        return False
    if output.is_dir() or not output.suffix:
        return True
    raise UsageError(
        f"-o {output}: the name must end in {endings(SCORES)}, or be that of a folder, without a "
        f"dot (--top writes {endings(LISTS)})"
    )


def _some(rows: Iterator[T], source: str) -> Iterator[T]:
    """Pass rows on; raise `DataError` if there are none, before an empty file is written."""
    none = True
    for row in rows:
        none = False
        yield row
    if none:
        raise DataError(f"{source} has no rows: there is nothing to score")
