"""``hushtable export``: a model for another runtime."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from hushtable import files
from hushtable.cli.options import Output, argument, option
from hushtable.cli.result import Block, CommandResult, Paragraph, Target, shown
from hushtable.describe.plan import values_of_rows
from hushtable_connect.exports import Format, Model, format_of

_Model = Annotated[
    Path, argument("MODEL", "Model of hushtable fit, or a sketch or release, merged or not.")
]
_Dialect = Annotated[
    Literal["duckdb", "postgresql"] | None,
    option("duckdb|postgresql", "With -o FILE.sql: the database. Default: duckdb."),
]
_Table = Annotated[
    str | None, option("NAME", "With -o FILE.sql: the table with the rows. Default: data.")
]


def export(
    model: _Model,
    output: Output,
    dialect: _Dialect = None,
    table: _Table = None,
) -> CommandResult:
    """Write a model for another runtime: ONNX, SQL or JSON.

    The ending of FILE selects the format: .onnx, .sql, or .json. The other runtime gives rows the
    same scores as hushtable. The file holds the cells' scores: if the model has exact counts,
    keep the file where the rows are.

    Example:
      hushtable export model.hush -o model.json
      hushtable export model.hush --dialect postgresql --table visits -o model.sql
    """
    kind = format_of(output)
    given = {"dialect": dialect, "table": table}
    options = {name: value for name, value in given.items() if value is not None}
    kind.check(options)
    target = Target(output, [model])
    opened = Model.of(model)
    content = kind.write(opened, **options)
    with target.writing():
        files.write_bytes(target.path, content)
    facts = _facts(opened, kind) | {"export": str(output)}
    return CommandResult(facts, _blocks(opened, kind, target))


def _facts(model: Model, kind: Format) -> dict[str, Any]:
    plan = model.plan
    return {
        "command": "export",
        "format": kind.words,
        "detector": plan.detector,
        "plan_id": plan.plan_id,
        "features": len(plan.schema),
        "tables": plan.family.n_tables,
        "cells": plan.family.n_cells,
        "offset": None if math.isnan(model.threshold) else model.threshold,
        "unit": plan.score.unit,
        "exact_counts": not model.scorer.sketch.may_leave,
    }


def _blocks(model: Model, kind: Format, target: Target) -> Iterator[Block]:
    schema, unit = model.plan.schema, model.plan.score.unit
    line = f"rows below {model.threshold:.4g} {unit} are outliers"
    if math.isnan(model.threshold):
        line = "there is too much noise for a threshold below which rows are outliers"
    sentences = [f"Wrote {target}, the model as {kind.words}: {kind.use}; {line}."]
    if not model.scorer.sketch.may_leave:
        values = values_of_rows(schema)
        of_rows = f"values of your rows: {values}; and " if values else ""
        sentences += [
            shown(f"It holds {of_rows}scores of cells, which reveal exact counts."),
            "Keep it where the rows are.",
        ]
    yield Paragraph(sentences)
