"""``hushtable score``: a model and rows to a score a row."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushtable.cli._counts import threshold
from hushtable.cli._options import Columns, Data, Drop, Json, Threads
from hushtable.cli._output import (
    Folder,
    Target,
    finish,
    print_sentences,
    print_table,
    print_tally,
    shown,
    tally,
)
from hushtable.cli._progress import watched
from hushtable.cli._reasons import Reasons
from hushtable.cli._rows import open_rows
from hushtable.cli._score_files import score_files
from hushtable.cli._scores import SHOWN, Summary, write_scores
from hushtable.errors import DataError, FileError, UsageError

if TYPE_CHECKING:
    from hushtable.scorer import Scorer

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
            help="Flag this share of the rows instead of those below the model's threshold.",
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
    --explain also the three features that lower the score most, and by how much. Scores tell of
    the rows: keep them where the rows are.

    \b
    Example:
      hushtable score patients.csv --drop id,name --model model.hush -o scores.parquet
      hushtable score lake/ --model model.hush -o scores
    """  # noqa: D301 (\b keeps the lines of the example apart)
    to_file = output.suffix in (".parquet", ".csv")
    to_folder = not to_file and (output.is_dir() or not output.suffix)
    if not to_file and not to_folder:
        raise UsageError(
            f"-o {output}: needs a name that ends in .parquet or .csv, or a folder's, without a dot"
        )
    if to_folder and contamination is not None:
        raise UsageError(
            "--contamination needs all scores before the first is written: give one file as -o, "
            "or fit the model with it"
        )
    if to_folder and explain:
        raise UsageError("--explain writes one file: give a name ending in .parquet or .csv as -o")
    if marginals is not None and not explain:
        raise UsageError("--marginals puts explanations in words: give --explain with it")
    inputs: list[str | Path] = [data, model, *([] if marginals is None else [marginals])]
    target = Folder(output) if to_folder else Target(output, inputs)
    scorer, offset = _open_model(model)
    reasons = Reasons(scorer, marginals, SHOWN) if explain else None
    schema = scorer.plan.schema
    kept = 0
    if isinstance(target, Folder):
        summary, kept = score_files(scorer, offset, data, target, columns, drop, threads, as_json)
    else:
        reader = open_rows(data, columns, drop, schema)
        passes = 1
        if contamination is not None:
            if not 0.0 < contamination <= 0.5:
                raise UsageError(
                    f"--contamination {contamination}: needs a share above 0, at most 0.5"
                )
            passes, reader = 2, reader.repeatable()
        with watched(reader, passes=passes, quiet=as_json) as watch, target.writing():
            if contamination is not None:
                offset = _offset(scorer, watch.reader, contamination, threads)
            summary = Summary(len(schema), offset)
            batches = (reasons or scorer).batches(watch.reader, n_jobs=threads)
            rows = _some(summary.rows(batches), reader.source)
            write_scores(output, rows, more=reasons.fields if reasons else [])

    facts = {
        "command": "score",
        "scores": str(output),
        "rows": summary.n_rows,
        "outliers": None if math.isnan(offset) else summary.n_outliers,
        "offset": None if math.isnan(offset) else offset,
        "lowest": [
            {**({"file": file} if file else {}), "row": row, "score": value}
            | ({"reasons": [reason.facts() for reason in reasons.of(row)]} if reasons else {})
            for value, file, row in summary.lowest
        ],
        "tally": tally(schema, summary.tally),
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
        print("The lowest scores (rows are numbered from 0):\n")
        found = [(shown(file), f"{row:,}", f"{value:.4f}") for value, file, row in summary.lowest]
        if to_folder:
            print_table(["file", "row", "score"], found)
        else:
            print_table(["row", "score"], [line[1:] for line in found], left=0)
        if reasons is not None:
            print(
                "\nWhy (features and their shares of what a score falls short of a typical one):\n"
            )
            print_sentences(reasons.sentence(row) for _, _, row in summary.lowest)
        more = [name for name, _ in reasons.fields] if reasons else []
        print(f"\nWrote {target}: {', '.join(['row', 'score', 'outlier', *more])}.")
        if scorer.sketch.ledger is not None:
            print(
                "Scores tell of your rows: the model's privacy does not cover them. Keep them here."
            )

    finish(as_json, facts, text)


def _some(rows: Iterator[tuple[Any, ...]], source: str) -> Iterator[tuple[Any, ...]]:
    """Pass rows on; raise `DataError` if there are none, before an empty file takes its place."""
    none = True
    for row in rows:
        none = False
        yield row
    if none:
        raise DataError(f"{source} has no rows: there is nothing to score")


def _open_model(path: Path) -> tuple["Scorer", float]:
    """Read a detector or a sketch without scikit-learn, which takes a second to import."""
    from hushtable import files
    from hushtable.scorer import Scorer
    from hushtable.sketch import counts_from_file

    content = files.read(path)
    if content.kind not in ("detector", "sketch", "release", "local"):
        raise FileError(
            f"{path} holds a {content.kind}: give a model of hushtable fit, a sketch, a release "
            "or a local model"
        )
    counts = content.build(counts_from_file)
    if counts.plan.detector in ("marginals", "ranges"):
        raise FileError(
            f"{path} holds {counts.plan.detector}, which do not score: draw a plan with them "
            f"(hushtable plan draw schema.toml --{counts.plan.detector} {path} -o plan.hush) and "
            "sketch again"
        )
    scorer = Scorer(counts)
    return scorer, threshold(content, scorer)


def _offset(scorer: "Scorer", reader: Any, share: float, threads: int) -> float:
    """Return the score below which a share of the rows lies; holds 8 bytes a row."""
    import numpy as np

    scores = [batch for batch, _ in scorer.batches(reader, n_jobs=threads)]
    if not scores:
        raise DataError(f"{reader.source} has no rows: there is nothing to score")
    return float(np.percentile(np.concatenate(scores), 100.0 * share))
