"""``hushtable score``: a model and rows to a score a row."""

import heapq
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushtable.cli._options import Columns, Data, Drop, Json, Threads
from hushtable.cli._output import Target, finish, print_sentences, print_table, print_tally, tally
from hushtable.cli._progress import watched
from hushtable.cli._reasons import Reasons
from hushtable.cli._rows import open_rows
from hushtable.errors import DataError, FileError, UsageError

if TYPE_CHECKING:
    from hushtable.scorer import Scorer

__all__ = ["score"]

_SHOWN = 5
#: Rows written at a time: a Parquet row group of about 4 MB.
_GROUP_ROWS = 1 << 18


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
        typer.Option("--output", "-o", metavar="FILE", help="Scores to write: .parquet or .csv."),
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

    The output has a row for each row of DATA: its number from 0, its score (low is abnormal; in
    bits, with ACE in rows), and whether it is an outlier. With --explain also the three
    features that lower the score most, and by how much. Scores tell of the rows: keep them where
    the rows are.

    \b
    Example:
      hushtable score patients.csv --drop id,name --model model.hush -o scores.parquet
    """  # noqa: D301 (\b keeps the lines of the example apart)
    if output.suffix not in (".parquet", ".csv"):
        raise UsageError(f"-o {output}: needs a name that ends in .parquet or .csv")
    if marginals is not None and not explain:
        raise UsageError("--marginals puts explanations in words: give --explain with it")
    target = Target(output, [data, model, *([] if marginals is None else [marginals])])
    scorer, offset = _open_model(model)
    reasons = Reasons(scorer, marginals, _SHOWN) if explain else None
    schema = scorer.plan.schema
    reader = open_rows(data, columns, drop, schema)

    passes = 1
    if contamination is not None:
        if not 0.0 < contamination <= 0.5:
            raise UsageError(f"--contamination {contamination}: needs a share above 0, at most 0.5")
        passes, reader = 2, reader.repeatable()
    with watched(reader, passes=passes, quiet=as_json) as watch, target.writing():
        if contamination is not None:
            offset = _offset(scorer, watch.reader, contamination, threads)
        summary = _Summary(len(schema), offset)
        batches = (reasons or scorer).batches(watch.reader, n_jobs=threads)
        _write(output, summary.rows(batches, reader.source), reasons.fields if reasons else [])

    facts = {
        "command": "score",
        "scores": str(output),
        "rows": summary.n_rows,
        "outliers": None if math.isnan(offset) else summary.n_outliers,
        "offset": None if math.isnan(offset) else offset,
        "lowest": [
            {"row": row, "score": value}
            | ({"reasons": [reason.facts() for reason in reasons.of(row)]} if reasons else {})
            for value, row in summary.lowest
        ],
        "tally": tally(schema, summary.tally),
    }

    def text() -> None:
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
        lowest = [(f"{row:,}", f"{value:.4f}") for value, row in summary.lowest]
        print_table(["row", "score"], lowest, left=0)
        if reasons is not None:
            print(
                "\nWhy (features and their shares of what a score falls short of a typical one):\n"
            )
            print_sentences(reasons.sentence(row) for _, row in summary.lowest)
        more = [name for name, _ in reasons.fields] if reasons else []
        print(f"\nWrote {target}: {', '.join(['row', 'score', 'outlier', *more])}.")
        if scorer.sketch.ledger is not None:
            print(
                "Scores tell of your rows: the model's privacy does not cover them. Keep them here."
            )

    finish(as_json, facts, text)


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
    if content.kind != "detector":
        return scorer, scorer.auto_offset()
    offset = content.manifest.get("offset")
    if offset is None and counts.ledger is not None:
        return scorer, math.nan
    if isinstance(offset, bool) or not isinstance(offset, int | float) or not math.isfinite(offset):
        raise FileError(f"{path}: the threshold is not a number: get the file again")
    return scorer, float(offset)


def _offset(scorer: "Scorer", reader: Any, share: float, threads: int) -> float:
    """Return the score below which a share of the rows lies; holds 8 bytes a row."""
    import numpy as np

    scores = [batch for batch, _ in scorer.batches(reader, n_jobs=threads)]
    if not scores:
        raise DataError(f"{reader.source} has no rows: there is nothing to score")
    return float(np.percentile(np.concatenate(scores), 100.0 * share))


class _Summary:
    """What the scores come to, gathered as they pass."""

    def __init__(self, n_features: int, offset: float) -> None:
        import numpy as np

        self.offset = offset
        self.n_rows = 0
        self.n_outliers = 0
        self.tally = np.zeros((n_features, 2), np.int64)
        self.lowest: list[tuple[float, int]] = []

    def rows(self, batches: Iterator[tuple[Any, ...]], source: str) -> Iterator[tuple[Any, ...]]:
        """Yield (number of the first row, scores, outliers, more columns) of each batch."""
        for scores, counts, *more in batches:
            outliers = None if math.isnan(self.offset) else scores < self.offset
            self.n_outliers += 0 if outliers is None else int(outliers.sum())
            self.tally += counts
            self._note_lowest(scores)
            yield self.n_rows, scores, outliers, *more
            self.n_rows += len(scores)
        if self.n_rows == 0:
            raise DataError(f"{source} has no rows: there is nothing to score")

    def _note_lowest(self, scores: Any) -> None:
        import numpy as np

        # Only what may be among the lowest so far; ties go to the earlier row.
        bar = np.partition(scores, _SHOWN)[_SHOWN] if len(scores) > _SHOWN else np.inf
        if len(self.lowest) == _SHOWN:
            bar = min(bar, self.lowest[-1][0])
        found = np.flatnonzero(scores <= bar)
        new = zip(scores[found].tolist(), (found + self.n_rows).tolist(), strict=True)
        self.lowest = heapq.nsmallest(_SHOWN, [*self.lowest, *new])


def _write(path: Path, rows: Iterator[tuple[Any, ...]], more: list[tuple[str, Any]]) -> None:
    """Write the scores as they come; the path holds all of them, or what it held before."""
    import pyarrow as pa

    from hushtable.files import replacing

    fields = [("row", pa.int64()), ("score", pa.float64()), ("outlier", pa.bool_())]
    schema = pa.schema([*fields, *more])
    with replacing(path) as temporary:
        if path.suffix == ".csv":
            from pyarrow import csv

            writer = csv.CSVWriter(str(temporary), schema)
        else:
            from pyarrow import parquet

            writer = parquet.ParquetWriter(str(temporary), schema)
        with writer:
            for table in _grouped(rows, schema):
                writer.write_table(table)


def _grouped(rows: Iterator[tuple[Any, ...]], schema: Any) -> Iterator[Any]:
    import numpy as np
    import pyarrow as pa

    def column(kind: Any, length: int, values: Any) -> Any:
        # Not pa.array, which imports pandas where it is installed: a quarter of a second.
        return pa.Array.from_buffers(kind, length, [None, pa.py_buffer(values)])

    batches, waiting = [], 0
    for start, scores, outliers, *more in rows:
        n_rows = len(scores)
        arrays = [
            column(pa.int64(), n_rows, np.arange(start, start + n_rows)),
            column(pa.float64(), n_rows, scores),
            pa.nulls(n_rows, pa.bool_())
            if outliers is None
            else column(pa.bool_(), n_rows, np.packbits(outliers, bitorder="little")),
            *more,
        ]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
        waiting += n_rows
        if waiting >= _GROUP_ROWS:
            yield pa.Table.from_batches(batches).combine_chunks()
            batches, waiting = [], 0
    if batches:
        yield pa.Table.from_batches(batches).combine_chunks()
