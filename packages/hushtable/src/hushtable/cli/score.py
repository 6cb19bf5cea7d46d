"""``hushtable score``: score each row with a model."""

import hashlib
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa

from hushtable.cli.options import (
    HUSHTABLE,
    READS,
    Data,
    KeptColumns,
    Language,
    Reads,
    Rows,
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
    SHOWN,
    check_names,
    check_top,
    endings,
    lowest_blocks,
    top_blocks,
    top_facts,
    write_tables,
    write_top,
)
from hushtable.counts.base import Counts
from hushtable.data.columns import as_column, texts_column
from hushtable.data.options import RowOptions, notes
from hushtable.data.readers import Reader, no_rows, paths
from hushtable.data.texts.reading import Reading
from hushtable.describe.plan import signed_by
from hushtable.detectors.load import OpenedModel, open_model, opened
from hushtable.errors import UsageError
from hushtable.files import command_of
from hushtable.language import ENGLISH, speaking
from hushtable.progress import watched
from hushtable.report.lists import LISTS
from hushtable.scores.outliers import Outliers, ScoredBatch, Search
from hushtable.scores.scorer import Ranks, Scorer

#: Metadata key of a Parquet file of scores: a digest of its model and options, and its rows' size
#: and time.
STAMP = b"hushtable.scores"


def score_files_of(data: str, folder: Path) -> list[tuple[Path, Path]]:
    """Pair every file of rows with its file of scores.

    ``data`` is a file, a folder of files, or a glob pattern. The scores go into ``folder``, in the
    same subfolders as the rows; ``rows.parquet`` becomes ``rows.scores.parquet``. Raises
    `UsageError` if two files would have the same name, or if the folder is one from which rows are
    read.
    """
    sources = paths(data)
    within = Path(data).is_dir()
    top = Path(data) if within else Path(os.path.commonpath([s.parent for s in sources]))
    if within and folder.resolve().is_relative_to(top.resolve()):
        raise UsageError(f"{folder} is inside {data}, from which rows are read: give another")
    pairs = []
    for source in sources:
        name = f"{source.name.split('.')[0]}.scores.parquet"
        pairs.append((source, folder / source.parent.relative_to(top) / name))
    if len({target for _, target in pairs}) < len(pairs):
        raise UsageError(
            f"{data}: several files have the same name apart from the ending: score them separately"
        )
    return pairs


def stamp_in(scores: Path) -> bytes | None:
    """Return the stamp of a file of scores; None if there is no such file.

    Raises `UsageError` if the file is another one, which would be lost.
    """
    if not scores.exists():
        return None
    from pyarrow import parquet  # not needed for the first call

    stamp = None
    try:
        stamp = (parquet.read_schema(scores).metadata or {}).get(STAMP)
    except (ValueError, pa.ArrowNotImplementedError):  # it is not Parquet
        pass
    except OSError as error:
        if error.errno is not None:  # Arrow's error for a damaged file has none
            raise
    if stamp is None:
        raise UsageError(
            f"{scores} is not a file of scores that hushtable wrote: give another folder, or "
            "remove it"
        )
    return bytes(stamp)


#: Columns of --ranks and --explain.
_RANKS = ("rank", "rank_low", "rank_high")
_REASONS = tuple(f"{name}_{k}" for k in (1, 2, 3) for name in ("reason", "share"))


class ScoreTable:
    """Tables of the scores of all rows, and totals of the rows that were scored.

    Columns to ``keep`` follow row, score, outlier and outside; ``n_reasons`` is the number of
    reasons of each row. Scores and ranks of rows that are not judged are empty.
    """

    def __init__(
        self, scorer: Scorer, keep: Sequence[str], *, ranked: bool, n_reasons: int
    ) -> None:
        self.names = ["row", "score", "outlier", "outside", *keep]
        self.names += [] if scorer.rules is None else ["rule"]
        self.names += _RANKS if ranked else ()
        self.names += _REASONS[: 2 * n_reasons]
        self._features = texts_column(scorer.plan.schema.names)
        #: Number of outliers, and of the missing and outside values of each feature (d, 2).
        self.n_outliers = 0
        self.tally = np.zeros((len(self._features), 2), np.int64)

    def batches(self, scored: Iterable[ScoredBatch], offset: float) -> Iterator[pa.Table]:
        """Yield a table of each batch.

        Scores below ``offset`` are outliers; NaN if there is no threshold.
        """
        start = 0
        for batch in scored:
            n_rows = len(batch.scores)
            outliers = pa.nulls(n_rows, pa.bool_())
            if not math.isnan(offset):
                below = batch.scores < offset
                flagged = below if batch.ruled is None else batch.ruled.flagged(below)
                self.n_outliers += int(flagged.sum())
                outliers = as_column(flagged)
            self.tally += batch.tally
            columns = [as_column(np.arange(start, start + n_rows)), as_column(batch.scores)]
            columns += [outliers, batch.outside, *batch.kept]
            if batch.ruled is not None:
                columns.append(batch.ruled.column(self._features.to_pylist()))
            if batch.ranks is not None:
                columns += [as_column(ranks) for ranks in batch.ranks.T]
            for best, share in batch.top:
                falls = share > 0.0  # null where no feature lowers the score
                columns += [self._features.take(as_column(best, falls)), as_column(share, falls)]
            yield pa.table(columns, self.names)
            start += n_rows


def score_files(
    search: Search, table: ScoreTable, offset: float, rows: Rows, folder: OutputFolder,
    counts: Sequence[Counts],
) -> int:  # fmt: skip
    """Score every file whose scores are not in the folder; return how many files had theirs.

    Scores of rows that have changed since are replaced; those by other ``counts`` or with other
    options would be lost, so they are refused with `UsageError`. An interrupted call leaves only
    complete files, and the next call continues with the others.
    """
    plan, n_kept = counts[0].plan, 0
    digest = hashlib.sha256(repr((plan.plan_id, offset, table.names)).encode())
    for summed in counts:
        digest.update(repr(summed.noise_sd).encode() + summed.counts.tobytes())
    model = digest.hexdigest()
    folder.remove_leftovers()
    for source, target in score_files_of(rows.data, folder.path):
        status, before = source.stat(), stamp_in(target)
        stamp = f"{model} {status.st_size} {status.st_mtime_ns}".encode()
        if before == stamp:
            n_kept += 1
            continue
        if before is not None and not before.startswith(model.encode()):
            raise UsageError(
                f"{target} holds scores by another model or threshold, or other columns: give "
                "another folder, or remove it"
            )
        reader = replace(rows, data=str(source)).open(plan.schema, search.columns)
        with watched(reader) as watch, folder.writing(target):
            scored = search.batches(watch.reader, str(source), n_jobs=-1)
            write_tables(target, table.batches(scored, offset), {STAMP: stamp})
    return n_kept


@dataclass(frozen=True)
class Threshold:
    """Which rows are flagged; without an option, those below the model's threshold."""

    contamination: Annotated[
        float | None,
        option(
            "SHARE|N",
            "Flag this share of the rows (with --ranks: of all sites' rows), or the N rows with "
            "the lowest scores.",
        ),
    ] = None
    ranks: Annotated[
        Path | None,
        option(
            "FILE", "Add ranks among all sites' rows: merged counts under hushtable plan ranks."
        ),
    ] = None

    def __post_init__(self) -> None:
        flagged = self.contamination
        if flagged is None or flagged % 1.0 == 0.0 < flagged:  # a number of rows
            return
        if not 0.0 < flagged <= 0.5:
            raise UsageError(f"--contamination {flagged}: needs a share above 0, at most 0.5")

    @property
    def reads_all_rows(self) -> bool:
        """Whether all rows have to be scored before the first is flagged."""
        return self.contamination is not None and not (self.ranks and self.contamination < 1.0)

    def offset(self, of_model: float, ranks: Ranks | None) -> float:
        """Return the score below which a row is an outlier, where that needs no rows."""
        if self.contamination is not None and ranks is not None:
            return ranks.threshold(self.contamination)
        return of_model

    def offset_of_rows(self, scorer: Scorer, reader: Reader) -> float:
        """Return the score below which a row is an outlier; holds 8 bytes a row."""
        scores = scorer.score(reader, n_jobs=-1)
        if not len(scores):
            raise no_rows(reader)
        flagged = self.contamination or 0.0
        if flagged < 1.0:
            return float(np.percentile(scores, 100.0 * flagged))
        if flagged >= len(scores):
            raise UsageError(
                f"--contamination {flagged:g}: {reader.source} has {len(scores):,} rows; give fewer"
            )
        # Rows of equal scores are flagged together, or not at all.
        return float(np.partition(scores, int(flagged))[int(flagged)])


@dataclass(frozen=True)
class ListOptions:
    """Reasons, and the list of the lowest rows."""

    explain: Annotated[
        bool,
        flag(
            "--explain",
            "Add the features that lower each row's score. Reasons of a list also consider what a "
            "usual value would change, so their features may be others.",
        ),
    ] = False
    top: Annotated[
        int | None,
        option(
            "N",
            "Write only N rows, with severity, certainty and reasons: first those with values far "
            "outside, then the lowest scores.",
            min=1,
        ),
    ] = None
    language: Language = ENGLISH


def score(
    data: Data,
    output: Annotated[
        Path,
        option(
            "FILE|FOLDER",
            f"Scores to write: a file that ends in {endings(SCORES)} (with --top in "
            f"{endings(LISTS)}); or a folder, for one .parquet file per file of rows, which keeps "
            "scores of unchanged rows.",
            "--output",
            "-o",
        ),
    ],
    model: Annotated[
        Path | None,
        option(
            "FILE",
            "Model of hushtable fit, or a (merged) sketch or release; default: a model that is "
            "fitted to the same rows, and not kept.",
        ),
    ] = None,
    reads: Reads = READS,
    *,
    listed: ListOptions,
    columns: KeptColumns,
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
    id_, kept = columns.beside(reads)
    top, explain = listed.top, listed.explain
    if model is None:
        _check_without_model(data, output, top, line)
    elif (score_kind := command_of(model, "score")) is not None:
        made: CommandResult = score_kind(
            model, Rows(data, reads, Reading()), kept, top, output,
            line.contamination or line.ranks or explain,
        )  # fmt: skip
        return made
    target = _target(output, [data, model, line.ranks], line, top, kept)
    (scorer, offset, reading, usual), facts = _opened(model, data, reads, id_)
    rows = Rows(data, reads, reading)
    ranked = None if line.ranks is None else read_counts(line.ranks)
    ranks = None if ranked is None else Ranks(ranked, scorer)
    search = Search(
        scorer, top or SHOWN, keep=kept, usual=usual, ranks=ranks, explain=explain or bool(top),
        every=top is None,
    )  # fmt: skip
    if top is not None and isinstance(target, Target):
        with speaking(listed.language):
            reader = rows.open(scorer.plan.schema, search.columns)
            with watched(reader) as watch:
                lowest = search.find(watch.reader, n_jobs=-1)
            write_top(target, lowest, model, reader.source, scorer.plan.score.unit)
        return CommandResult(
            top_facts(lowest, output) | facts,
            top_blocks(lowest, target, words=listed.language == ENGLISH),
        )
    if explain and search.reasons is None:
        raise UsageError(
            "--explain needs tables that separate the features, such as those of HushTable and "
            "LSHiTables: leave it out"
        )
    n_reasons = search.reasons.n_top if search.reasons else 0
    table = ScoreTable(scorer, kept, ranked=ranks is not None, n_reasons=n_reasons)
    if isinstance(target, OutputFolder):
        offset = line.offset(offset, ranks)
        counts = [scorer.sketch, *([] if ranked is None else [ranked])]
        facts["files_kept"] = score_files(search, table, offset, rows, target, counts)
    else:
        reader = rows.open(scorer.plan.schema, search.columns)
        if line.reads_all_rows:
            reader = reader.repeatable()
        with watched(reader) as watch, target.writing():
            if line.reads_all_rows:
                offset = line.offset_of_rows(scorer, watch.reader)
            else:
                offset = line.offset(offset, ranks)
            scored = search.batches(watch.reader, n_jobs=-1)
            if not write_tables(target.path, table.batches(scored, offset)):
                raise no_rows(reader)
    listing = search.found() if search.n_rows else None
    facts = _facts(scorer, table, listing, offset, output) | facts
    return CommandResult(facts, _blocks(scorer, table, listing, facts, target))


def _check_without_model(
    data: str,
    output: Path,
    top: int | None,
    line: Threshold,
) -> None:
    if line.ranks:
        raise UsageError("--ranks needs --model: fit a model first (hushtable fit)")
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
        loaded = open_model(model, id_)
        return loaded, {"signed_by": signed_by(loaded.scorer.sketch)}
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
        if line.contamination is not None:
            raise UsageError("--top lists rows without a threshold: leave --contamination out")
        check_top(output, kept)
        return Target(output, inputs)
    check_names(kept, ("row", "score", "outlier", *_RANKS, *_REASONS))
    if not _is_folder(output):
        return Target(output, inputs)
    if line.reads_all_rows:
        raise UsageError(
            "--contamination needs all scores before the first is written: give one file as -o"
        )
    return OutputFolder(output)


def _facts(
    scorer: Scorer, table: ScoreTable, listing: Outliers | None, offset: float, output: Path
) -> Facts:
    unknown = math.isnan(offset)
    facts: Facts = {
        "command": "score",
        "scores": str(output),
        "rows": 0 if listing is None else listing.n_rows,
        "outliers": None if unknown else table.n_outliers,
        "offset": None if unknown else offset,
        "lowest": [] if listing is None else [row.facts() for row in listing.rows],
        "tally": tally(scorer.plan.schema, table.tally),
    }
    if listing is not None and listing.n_known:
        facts["known"] = listing.n_known
    return facts


def _blocks(
    scorer: Scorer,
    table: ScoreTable,
    listing: Outliers | None,
    facts: Facts,
    target: Target | OutputFolder,
) -> Iterator[Block]:
    if files_kept := facts.get("files_kept"):
        yield f"Already scored, and left as they are: {files_kept:,} files."
    if listing is None:
        yield f"There are no other rows to score. {target.path} holds all scores."
        return
    yield f"Scored {listing.n_rows:,} rows."
    yield from tally_blocks(scorer.plan.schema, table.tally, listing.n_rows)
    if listing.rows:
        yield from lowest_blocks(listing)
        yield ""
        yield Paragraph([_outlier_words(facts, scorer.plan.score.unit)])
    yield f"\nWrote {target}: {', '.join(table.names)}."
    if scorer.sketch.may_leave:
        yield Paragraph([standing(scorer.sketch, "The model")])
    if scorer.sketch.ledger is not None:
        yield (
            "Scores describe your rows, and the privacy of the model does not cover them: keep "
            "them here."
        )


def _outlier_words(facts: Facts, unit: str) -> str:
    if facts["offset"] is None:
        return (
            "The released counts are too noisy to derive a threshold, and the column outlier is "
            "empty: --contamination 0.05 would mark the lowest 5% of these rows."
        )
    return (
        f"The column outlier marks {facts['outliers']:,} rows "
        f"({facts['outliers'] / facts['rows']:.2%}), those below {facts['offset']:.4g} {unit}; "
        "--contamination 20 marks the 20 lowest, and --top 20 lists 20 rows with reasons."
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
