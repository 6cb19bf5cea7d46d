"""``hushtable score``: a model and rows to a score a row."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable import files
from hushtable.cli._counts import threshold as threshold_of
from hushtable.cli._details import Details, print_lowest
from hushtable.cli._line import Line
from hushtable.cli._options import Columns, Data, Drop, Json, Threads
from hushtable.cli._output import (
    Folder,
    Target,
    finish,
    print_sentences,
    print_tally,
    tally,
)
from hushtable.cli._progress import watched
from hushtable.cli._rows import open_rows
from hushtable.cli._score_files import score_files
from hushtable.cli._scores import Summary, write_scores
from hushtable.cli._signed import signed_by, standing
from hushtable.counts.sketch import counts_from_file
from hushtable.errors import DataError, FileError, UsageError
from hushtable.plans.plan import HISTOGRAMS
from hushtable.scores.scorer import Scorer

__all__ = ["score"]


def score(
    data: Data,
    model: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="Model of hushtable fit, or a (merged) sketch or release."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|FOLDER",
            help="Scores to write: a .parquet or .csv file; or a folder, for a .parquet file of "
            "each file of rows: what is there already is not scored again.",
        ),
    ],
    threads: Threads = -1,
    columns: Columns = None,
    drop: Drop = None,
    contamination: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Flag this share of the rows (with --ranks: of the rows of all sites) instead of "
            "those below the model's threshold.",
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(metavar="N", help="Flag the N rows with the lowest scores."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(metavar="SCORE", help="Flag the rows that score lower than this."),
    ] = None,
    ranks: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Add each row's rank among the rows of all sites: merged sketch or release under "
            "hushtable plan ranks.",
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Add the features that make each row's score low."),
    ] = False,
    marginals: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --explain, say how far out values lie: merged sketch or release under "
            "hushtable plan marginals.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Score rows and write the scores.

    The output has a row for each row of DATA: its number from 0 (in each file, into a folder),
    its score (low is abnormal; in bits, with ACE in rows), and whether it is an outlier. With
    --ranks also which share of the rows of all sites is at least as rare, and between which
    shares that lies; with --explain the three features that lower the score most, and by how
    much. Scores tell of the rows: keep them where the rows are.

    \b
    Example:
      hushtable score patients.csv --drop id,name --model model.hush -o scores.parquet
      hushtable score lake/ --model model.hush -o scores
    """  # noqa: D301 (\b keeps the lines of the example apart)
    to_folder = _is_folder(output)
    line = Line(contamination, count, threshold, ranked=ranks is not None)
    if to_folder and line.reads_all_rows:
        raise UsageError(
            "--contamination and --count need all scores before the first is written: give one "
            "file as -o, or --threshold"
        )
    if marginals is not None and not explain:
        raise UsageError("--marginals puts explanations in words: give --explain with it")
    more = [path for path in (ranks, marginals) if path is not None]
    target = Folder(output) if to_folder else Target(output, [data, model, *more])
    scorer, offset = _open_model(model)
    signer = signed_by(scorer.sketch)
    details = Details(scorer, ranks, explain, marginals)
    schema = scorer.plan.schema
    kept = 0
    if isinstance(target, Folder):
        offset = line.offset(offset, details.ranks)
        summary, kept = score_files(
            scorer, details, offset, data, target, columns, drop, threads, as_json
        )
    else:
        reader = open_rows(data, columns, drop, schema)
        passes = 1
        if line.reads_all_rows:
            passes, reader = 2, reader.repeatable()
        with watched(reader, passes=passes, quiet=as_json) as watch, target.writing():
            if line.reads_all_rows:
                offset = line.offset_of_rows(scorer, watch.reader, threads)
            else:
                offset = line.offset(offset, details.ranks)
            summary = Summary(len(schema), offset)
            rows = _some(summary.rows(details.batches(watch.reader, n_jobs=threads)), reader.source)
            write_scores(output, rows, more=details.fields)

    facts = {
        "command": "score",
        "scores": str(output),
        "rows": summary.n_rows,
        "outliers": None if math.isnan(offset) else summary.n_outliers,
        "offset": None if math.isnan(offset) else offset,
        "lowest": [row.facts() for row in summary.lowest],
        "tally": tally(schema, summary.tally),
        "signed_by": signer,
    }
    if to_folder:
        facts["files_kept"] = kept

    def text() -> None:
        if kept:
            print(f"Scored before, and left as they are: {kept:,} files.")
        if summary.n_rows == 0:
            print(f"No other row is to be scored. {output} holds all scores.")
            return
        share = summary.n_outliers / summary.n_rows
        if math.isnan(offset):
            print(f"Scored {summary.n_rows:,} rows. The noise in the released counts leaves no")
            print("threshold to be told from them, and the column outlier is empty:")
            print("--contamination 0.05 would flag the lowest 5% of these rows.")
        else:
            print(
                f"Scored {summary.n_rows:,} rows: {summary.n_outliers:,} outliers ({share:.2%}), "
                f"those below {offset:.4g} {scorer.plan.score.unit}."
            )
        print_tally(schema, summary.tally, summary.n_rows)
        print_lowest(summary.lowest)
        names = [name for name, _ in details.fields]
        print(f"\nWrote {target}: {', '.join(['row', 'score', 'outlier', *names])}.")
        if hasattr(scorer.sketch, "seal"):
            print_sentences([standing(scorer.sketch, "The model")])
        if scorer.sketch.ledger is not None:
            print(
                "Scores tell of your rows: the model's privacy does not cover them. Keep them here."
            )

    finish(as_json, facts, text)


def _is_folder(output: Path) -> bool:
    if output.suffix in (".parquet", ".csv"):
        return False
    if output.is_dir() or not output.suffix:
        return True
    raise UsageError(
        f"-o {output}: needs a name that ends in .parquet or .csv, or a folder's, without a dot"
    )


def _some(rows: Iterator[tuple[Any, ...]], source: str) -> Iterator[tuple[Any, ...]]:
    """Pass rows on; raise `DataError` if there are none, before an empty file takes its place."""
    none = True
    for row in rows:
        none = False
        yield row
    if none:
        raise DataError(f"{source} has no rows: there is nothing to score")


def _open_model(path: Path) -> tuple[Scorer, float]:
    """Read a detector or a sketch without scikit-learn, which takes a second to import."""
    content = files.read(path)
    if content.kind not in ("detector", "sketch", "release", "local"):
        raise FileError(
            f"{path} holds a {content.kind}: give a model of hushtable fit, a sketch, a release "
            "or a local model"
        )
    counts = content.build(counts_from_file)
    if counts.plan.detector == "ranks":
        raise FileError(
            f"{path} holds ranks, which do not score: give the model as --model, and this file as "
            "--ranks"
        )
    if counts.plan.detector in HISTOGRAMS:
        raise FileError(
            f"{path} holds {counts.plan.detector}, which do not score: draw a plan with them "
            f"(hushtable plan draw schema.toml --{counts.plan.detector} {path} -o plan.hush) and "
            "sketch again"
        )
    scorer = Scorer(counts)
    return scorer, threshold_of(content, scorer)
