"""``hushtable score``: score each row with a model."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from hushtable.cli.counts import HUSHTABLE, draw_spelled, standing
from hushtable.cli.options import Data, Language, Threads, flag, option
from hushtable.cli.output import OutputFolder, Target, tally, tally_blocks
from hushtable.cli.result import Block, CommandResult, Paragraph
from hushtable.cli.rows import READS, Reads, Rows
from hushtable.cli.scored import ScoreColumns, Summary, Threshold, score_files
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
from hushtable.data.options import RowOptions, notes
from hushtable.data.texts.reading import Reading
from hushtable.describe.content import signed_by
from hushtable.errors import DataError, UsageError
from hushtable.files import command_of
from hushtable.language import ENGLISH, speaking
from hushtable.progress import watched
from hushtable.report.lists import LISTS
from hushtable.scores.models import OpenedModel, open_model
from hushtable.scores.outliers import (
    Outliers,
    Search,
    known_words,
    unjudged_words,
)
from hushtable.scores.scorer import Scorer
from hushtable.scores.usual import Usual

T = TypeVar("T")
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
_Contamination = Annotated[
    float | None, option("SHARE", "Flag this share of the rows (with --ranks: of all sites' rows).")
]
_Count = Annotated[int | None, option("N", "Flag the N rows with the lowest scores.")]
_Threshold = Annotated[float | None, option("SCORE", "Flag the rows that score lower than this.")]
_Ranks = Annotated[
    Path | None,
    option("FILE", "Add ranks among all sites' rows: merged counts under hushtable plan ranks."),
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
    output: _Output,
    model: _Model = None,
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
    language: Language = ENGLISH,
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
    line = Threshold(contamination, count, threshold, ranks is not None).checked(only_counted)
    if marginals is not None and not (explain or top):
        raise UsageError("--marginals adds words to explanations: give --explain with it")
    if model is None:
        _check_without_model(data, output, top, ranks, marginals, only_counted)
    elif (score_kind := command_of(model, "score")) is not None:
        made: CommandResult = score_kind(
            model, Rows(data, reads, Reading(), threads), kept, top, output,
            line.drawn or ranks or explain or only_counted,
        )  # fmt: skip
        return made
    target = _target(output, [data, model, ranks, marginals], line, top, kept)
    (scorer, offset, reading, usual), facts = _opened(model, data, reads, id_, threads)
    rows = Rows(data, reads, reading, threads)
    details = ScoreColumns(scorer, ranks, explain, marginals, kept, only_counted, usual)
    if top is not None and isinstance(target, Target):
        with speaking(language):
            found, source = _find_top(scorer, details, usual, rows, top)
            write_top(target, found, model, source, scorer.plan.score.unit)
        return CommandResult(
            top_facts(found, output) | facts, top_blocks(found, target, words=language == ENGLISH)
        )
    summary, done = _score_all(scorer, details, offset, line, rows, target)
    shown_blocks = _blocks(scorer, details, summary, target, **done)
    return CommandResult(_facts(scorer, summary, output) | facts | done, shown_blocks)


def _check_without_model(
    data: str,
    output: Path,
    top: int | None,
    ranks: Path | None,
    marginals: Path | None,
    only_counted: bool,
) -> None:
    given = {"--ranks": ranks, "--marginals": marginals, "--only-counted": only_counted}
    if names := [name for name, one in given.items() if one]:
        raise UsageError(f"{names[0]} needs --model: fit a model first (hushtable fit)")
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
    model: Path | None, data: str, reads: RowOptions, id_: str | None, threads: int
) -> tuple[OpenedModel, dict[str, Any]]:
    if model is not None:
        found = open_model(model, id_)
        return found, {"signed_by": signed_by(found.scorer.sketch)}
    from hushtable.cli.fit import fit_rows  # not needed with a model
    from hushtable.detectors.load import opened

    if id_ is not None:  # which is read as an identifier, not as a feature
        quoted = id_.replace('"', '""')
        reads = replace(reads, as_=[*(reads.as_ or ()), f'"{quoted}=id"'])
    settings = {"n_jobs": threads, "random_state": 0}
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
                "--top lists rows without a threshold: leave --contamination, --count and "
                "--threshold out"
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
    reader = rows.open(scorer.plan.schema, details.columns)
    search = Search(
        scorer,
        top,
        keep=details.keep,
        usual=usual,
        ranks=details.ranks,
        frequencies=details.frequencies,
        only_counted=details.only_counted,
    )
    with watched(reader) as watch:
        return search.find(watch.reader, n_jobs=rows.threads), reader.source


def _score_all(
    scorer: Scorer,
    details: ScoreColumns,
    offset: float,
    line: Threshold,
    rows: Rows,
    target: Target | OutputFolder,
) -> tuple[Summary, dict[str, int]]:
    done = {}
    if isinstance(target, OutputFolder):
        offset = line.offset(offset, details.ranks)
        summary, done["files_kept"] = score_files(scorer, details, offset, rows, target)
    else:
        summary = _score_file(scorer, details, offset, line, rows, target)
    summary.explain(details.reasons)
    return summary, done


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
        "rows": summary.lowest.n_rows,
        "outliers": None if unknown else summary.n_outliers,
        **({"unjudged": summary.lowest.n_unjudged} if summary.lowest.n_unjudged else {}),
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
    if summary.lowest.n_unjudged:
        yield Paragraph([unjudged_words(summary.lowest.n_unjudged)])
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
        f"{summary.offset:.4g} {unit}; --count 20 marks the 20 lowest, and --top 20 lists "
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
