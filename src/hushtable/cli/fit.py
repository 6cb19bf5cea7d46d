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
from hushtable.cli._output import Target, finish, print_sentences, print_tally, shown, tally
from hushtable.cli._progress import watched
from hushtable.cli._rows import joined, names_in, open_rows
from hushtable.data.infer import doubtful_texts
from hushtable.data.schema import Schema
from hushtable.errors import DataError, UsageError
from hushtable.report.words import texts_of_rows, values_of_rows

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
    keep_text: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Keep these columns of text, though they look like identifiers, names or free "
            "text: all their texts are in the model then.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Fit a detector to rows and write it as a model.

    Ranges and categories are read off the rows, and are in the model. Numbers, dates, true/false
    and text are used as they are; empty fields are missing values.

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
    keep = names_in(keep_text or "")
    used = list(reader.names or ())
    if lacking := [name for name in keep if name not in used]:
        raise DataError(f"--keep-text: {lacking} are not among the columns in use, {used}")

    # scikit-learn takes a second to import: only once the files are known to be there.
    from hushtable.detectors._by_recipe import BY_RECIPE

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
    family, schema = model.plan_.family, model.plan_.schema
    sketch: Any = model.sketch_  # after fit, exact counts
    _check_texts(schema, watch.rows - sketch.tally[:, 0], keep, columns, drop)
    with target.writing():
        model.save(output)

    name, texts = type(model).__name__, texts_of_rows(schema)
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
        "texts": texts,
    }

    def text() -> None:
        print(
            f"Fitted {name} to {watch.rows:,} rows: {family.n_tables:,} tables, "
            f"{family.n_cells:,} cells."
        )
        print(f"{len(schema) - len(texts):,} columns are numeric, {len(texts):,} categorical.")
        unit = model.plan_.score.unit
        print(f"Rows that score below {model.offset_:.4g} {unit} are outliers.")
        print_tally(schema, sketch.tally, watch.rows)
        print(f"Wrote {target}.")
        print_sentences([
            shown(f"It holds values of your rows: {values_of_rows(schema)}; and exact counts."),
            "Keep it where the rows are.",
        ])  # fmt: skip

    finish(as_json, facts, text)


def _check_texts(
    schema: Schema, n_values: Any, keep: list[str], columns: str | None, drop: str | None
) -> None:
    """Refuse texts that look like those of single rows, unless their columns are to be kept."""
    found = doubtful_texts(schema, n_values.tolist())
    doubtful = [name for name in found if name not in keep]
    if not doubtful:
        return
    looks = "; ".join(f"{name!r} ({found[name]})" for name in doubtful)
    without = (
        "by naming the others only in --columns"
        if columns is not None
        else f"with --drop {joined(names_in(drop or '') + doubtful)}"
    )
    raise DataError(
        "all texts of a column of text are in the model, and some look like those of single "
        f"rows: {looks}. Leave them out {without}, or keep them with --keep-text "
        f"{joined(keep + doubtful)} (nothing was written)"
    )
