"""``hushtable fit``: rows to a model."""

from typing import Annotated, Any

import typer

from hushtable.cli._options import (
    Columns,
    Data,
    Detector,
    Drop,
    Json,
    Output,
    Seed,
    Tables,
    Threads,
)
from hushtable.cli._output import Target, finish, listed, print_tally, tally
from hushtable.cli._progress import watched
from hushtable.cli._rows import open_rows
from hushtable.errors import UsageError

__all__ = ["fit"]


def _contamination(value: str) -> str | float:
    if value == "auto":
        return value
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not 0.0 < share <= 0.5:
        raise UsageError(f"--contamination {value}: needs auto, or a share above 0 and at most 0.5")
    return share


def fit(
    data: Data,
    output: Output,
    detector: Annotated[Detector, typer.Option(help="Detector to fit.")] = Detector.HUSHTABLE,
    tables: Tables = 100,
    passes: Annotated[
        int,
        typer.Option(
            metavar="1|2",
            help="2 counts the denser rows once more (hushtable only): slower, more accurate.",
        ),
    ] = 1,
    contamination: Annotated[
        str,
        typer.Option(metavar="SHARE", help="Share of the rows to call outliers, or auto."),
    ] = "auto",
    seed: Seed = None,
    threads: Threads = -1,
    columns: Columns = None,
    drop: Drop = None,
    as_json: Json = False,
) -> None:
    """Fit a detector to rows and write it as a model.

    Ranges and categories are read off the rows. Numbers, dates, true/false and text are used
    as they are; empty fields are missing values.

    \b
    Example:
      hushtable fit patients.csv --drop id,name -o model.hush
    """  # noqa: D301 (\b keeps the lines of the example apart)
    share = _contamination(contamination)
    if passes not in (1, 2):
        raise UsageError(f"--passes {passes}: needs 1 or 2")
    if passes == 2 and detector is not Detector.HUSHTABLE:
        raise UsageError("--passes 2 needs --detector hushtable")
    target = Target(output, [data])
    reader = open_rows(data, columns, drop)

    # scikit-learn takes a second to import: only once the files are known to be there.
    from hushtable.detectors import BY_RECIPE

    model = BY_RECIPE[detector.recipe]()
    if detector is Detector.HUSHTABLE:
        model.set_params(passes=passes)
        readings = 2 + passes
    else:  # to sample rows, it must know their number
        sampled = "max_samples" in model.get_params()
        readings = 2 + (sampled and reader.n_rows is None)
    model.set_params(n_tables=tables, contamination=share, n_jobs=threads, random_state=seed)
    with watched(reader, passes=readings + (share != "auto"), quiet=as_json) as watch:
        model.fit(watch.reader)
    with target.writing():
        model.save(output)

    family, schema = model.plan_.family, model.plan_.schema
    sketch: Any = model.sketch_  # after fit, exact counts
    name = type(model).__name__
    facts = {
        "command": "fit",
        "model": str(output),
        "detector": name,
        "rows": watch.rows,
        "features": len(schema),
        "tables": family.n_tables,
        "cells": family.n_cells,
        "offset": model.offset_,
        "plan_id": model.plan_.plan_id,
        "tally": tally(schema, sketch.tally),
    }

    def text() -> None:
        print(
            f"Fitted {name} to {watch.rows:,} rows: {family.n_tables:,} tables, "
            f"{family.n_cells:,} cells."
        )
        texts = [f.name for f in schema.features if f.kind == "categorical"]
        print(
            f"{len(schema) - len(texts):,} columns are numeric, {len(texts):,} categorical"
            + (f" ({listed(texts)})." if texts else ".")
        )
        unit = model.plan_.score.unit
        print(f"Rows that score below {model.offset_:.4g} {unit} are outliers.")
        print_tally(schema, sketch.tally, watch.rows)
        print(f"Wrote {target}. It holds ranges and counts of your rows: keep it where they are.")

    finish(as_json, facts, text)
