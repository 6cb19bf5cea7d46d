"""``hushtable score``: a model and rows to a score a row."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.cli._details import Details, print_lowest
from hushtable.cli._line import Line
from hushtable.cli._options import Data, Json, Threads, option
from hushtable.cli._output import Folder, Target, finish, print_sentences, print_tally, tally
from hushtable.cli._progress import watched
from hushtable.cli._rows import READS, Reads, Rows, names_in
from hushtable.cli._score_files import score_files
from hushtable.cli._scores import Summary, write_scores
from hushtable.cli._signed import signed_by, standing
from hushtable.cli._top import check_names, check_top, print_top, top_facts, write_top
from hushtable.errors import DataError, UsageError
from hushtable.scores import models
from hushtable.scores.models import OpenedModel
from hushtable.scores.outliers import Outliers, find_outliers
from hushtable.scores.scorer import Scorer
from hushtable.scores.typical import Usual

#: Columns of --explain.
_REASONS = tuple(f"{name}_{k}" for k in (1, 2, 3) for name in ("reason", "share"))

_Model = Annotated[Path, option("FILE", "Model of hushtable fit, or a (merged) sketch or release.")]
_Output = Annotated[
    Path,
    option(
        "FILE|FOLDER",
        "Scores to write: a .parquet or .csv file (with --top also .xlsx or .html); or a folder, "
        "for a .parquet file of each file of rows. What is there already is not scored again.",
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
_Explain = Annotated[
    bool, typer.Option("--explain", help="Add the features that make each row's score low.")
]
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


def score(
    data: Data,
    model: _Model,
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
    as_json: Json = False,
) -> None:
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
    id_ = reads.id_or(id_)
    kept = [*([] if id_ is None else [id_]), *names_in(keep or "")]
    line = Line(contamination, count, threshold, ranked=ranks is not None)
    if marginals is not None and not (explain or top):
        raise UsageError("--marginals puts explanations in words: give --explain with it")
    target = _target(output, [data, model, ranks, marginals], line, top, kept)
    scorer, offset, reading, usual = open_model(model, id_)
    signed = {"signed_by": signed_by(scorer.sketch)}
    details = Details(scorer, ranks, explain, marginals, kept)
    rows = Rows(data, reads, reading, threads, as_json)
    if top is not None and isinstance(target, Target):
        found, source = _find_top(scorer, details, usual, rows, top)
        write_top(target, found, model, source, scorer.plan.score.unit)
        finish(as_json, top_facts(found, output) | signed, lambda: print_top(found, target))
        return
    done = {}
    if isinstance(target, Folder):
        offset = line.offset(offset, details.ranks)
        summary, done["files_kept"] = score_files(scorer, details, offset, rows, target)
    else:
        summary = _score_file(scorer, details, offset, line, rows, target)
    facts = _facts(scorer, summary, output) | signed | done
    finish(as_json, facts, lambda: _print(scorer, details, summary, target, **done))


def _target(
    output: Path, inputs: Sequence[str | Path | None], line: Line, top: int | None, kept: list[str]
) -> Target | Folder:
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
    return Folder(output)


def _find_top(
    scorer: Scorer, details: Details, usual: Usual | None, rows: Rows, top: int
) -> tuple[Outliers, str]:
    """Find the lowest rows; return with them where they are from, without a URL's password."""
    reader = rows.open(scorer.plan.schema, details.keep)
    with watched(reader, quiet=rows.quiet) as watch:
        found = find_outliers(
            scorer,
            watch.reader,
            top,
            keep=details.keep,
            usual=usual,
            ranks=details.ranks,
            frequencies=details.frequencies,
            n_jobs=rows.threads,
        )
    return found, reader.source


def _score_file(
    scorer: Scorer, details: Details, offset: float, line: Line, rows: Rows, target: Target
) -> Summary:
    """Score the rows into one file."""
    schema = scorer.plan.schema
    reader, passes = rows.open(schema, details.keep), 1
    if line.reads_all_rows:
        reader, passes = reader.repeatable(), 2
    with watched(reader, passes=passes, quiet=rows.quiet) as watch, target.writing():
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
        "offset": None if unknown else summary.offset,
        "lowest": [row.facts() for row in summary.lowest],
        "tally": tally(scorer.plan.schema, summary.tally),
    }


def _print(
    scorer: Scorer,
    details: Details,
    summary: Summary,
    target: Target | Folder,
    files_kept: int = 0,
) -> None:
    if files_kept:
        print(f"Scored before, and left as they are: {files_kept:,} files.")
    if summary.n_rows == 0:
        print(f"No other row is to be scored. {target.path} holds all scores.")
        return
    if math.isnan(summary.offset):
        print(f"Scored {summary.n_rows:,} rows. The released counts are too noisy to derive a")
        print("threshold, and the column outlier is empty: --contamination 0.05 would flag the")
        print("lowest 5% of these rows.")
    else:
        share = summary.n_outliers / summary.n_rows
        print(
            f"Scored {summary.n_rows:,} rows: {summary.n_outliers:,} outliers ({share:.2%}), "
            f"those below {summary.offset:.4g} {scorer.plan.score.unit}."
        )
    print_tally(scorer.plan.schema, summary.tally, summary.n_rows)
    print_lowest(summary.lowest)
    names = [name for name, _ in details.fields]
    print(f"\nWrote {target}: {', '.join(['row', 'score', 'outlier', *names])}.")
    if scorer.sketch.may_leave:
        print_sentences([standing(scorer.sketch, "The model")])
    if scorer.sketch.ledger is not None:
        print("Scores describe your rows: the model's privacy does not cover them. Keep them here.")


def _is_folder(output: Path) -> bool:
    if output.suffix in (".parquet", ".csv"):
        return False
    if output.is_dir() or not output.suffix:
        return True
    raise UsageError(
        f"-o {output}: needs a name that ends in .parquet or .csv, or a folder's, without a dot "
        "(.xlsx and .html are for --top)"
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
