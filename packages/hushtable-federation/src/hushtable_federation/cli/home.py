"""Home models on the command line: scores here and elsewhere, and what such a file holds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable import files
from hushtable.cli.options import Rows
from hushtable.cli.result import (
    Block,
    CommandResult,
    LabelledValues,
    Paragraph,
    Target,
    TextTable,
    shown,
    size,
)
from hushtable.cli.tables import SCORES, write_scores, write_table
from hushtable.data.columns import as_column, texts_column
from hushtable.errors import UsageError
from hushtable.progress import watched
from hushtable_federation.home import WORDS, HomeModel

#: Number of rows to show.
_SHOWN = 5


def inspect_home(path: Path, content: files.Content) -> CommandResult:
    """Show what the file of a home model holds."""
    home = content.build(HomeModel.from_file)
    plan, noise_sd = home.elsewhere.plan, home.elsewhere.noise_sd
    facts = {
        "command": "inspect", "file": str(path), "kind": "home", "rows": home.n_rows,
        "rows_elsewhere": home.elsewhere.n_rows, "noise_sd": noise_sd, "weight": home.weight,
        "plan_id": plan.plan_id, "features": [f.to_dict() for f in plan.schema.features],
    }  # fmt: skip
    lines = {
        "File": f"{path} ({size(path)})",
        "Kind": f"home, protocol {content.manifest['protocol']}",
        "Plan": plan.plan_id,
        "Rows here": f"{home.n_rows:,}",
        "Rows elsewhere": f"about {home.elsewhere.n_rows:,}, with noise of {noise_sd:,.1f}",
        "Weight": f"{home.weight:.2f} for the others' counts in the combined ranking",
        "Features": f"{len(plan.schema):,}",
        "May leave": "no: it holds exact counts, and values of rows",
    }
    return CommandResult(facts, [LabelledValues(lines)])


def score_home(
    model: Path, rows: Rows, kept: Sequence[str], top: int | None, output: Path, no_use: Any
) -> CommandResult:
    """Score rows by a home model, and write all of them or a list of the lowest."""
    if no_use:
        raise UsageError(
            "a home model has two scores, and classifies rows instead of using a threshold: leave "
            "--contamination, --threshold, --ranks, --explain, and --parts out"
        )
    target = Target(output, [rows.data, model])
    if target.path.suffix not in SCORES:
        raise UsageError(
            f"{output}: the scores of a home model are written as {' or '.join(SCORES)}"
        )
    home = files.read(model).build(HomeModel.from_file)
    home.here.n_jobs = -1
    rows = replace(rows, reading=home.here.reading_)
    reader = rows.open(home.elsewhere.plan.schema, kept).repeatable()
    beside: dict[str, Any] = {}
    with watched(reader) as watch:
        found = home.scores(watch.reader)
        if kept:
            batches = (pa.record_batch(batch).select([*kept]) for batch in watch.reader.read())
            table = pa.Table.from_batches(batches).combine_chunks()
            beside = {name: table[name].combine_chunks() for name in kept}
        lowest = home.outliers(watch.reader, top or _SHOWN, found)
    if top is None:
        flagged = np.array([kind != "ordinary" for kind in found.kinds])
        columns = [*beside.values(), as_column(found.here), as_column(found.elsewhere)]
        columns.append(texts_column(found.kinds))
        types = [(name, column.type) for name, column in beside.items()]
        types += [("here", pa.float64()), ("elsewhere", pa.float64()), ("kind", pa.string())]
        write_scores(target.path, [(0, found.score, flagged, *columns)], more=types)
    else:
        listed = lowest
        for k, (name, column) in enumerate(beside.items()):
            listed = listed.add_column(1 + k, name, column.take(lowest["row"]))
        write_table(target.path, listed)
    kinds = Counter(found.kinds)
    facts = {
        "command": "score", "rows": len(found.score), "weight": home.weight, "kinds": dict(kinds),
        "output": str(target.path), "lowest": lowest.to_pylist(),
    }  # fmt: skip
    meanings = [(kind, words, f"{kinds[kind]:,}") for kind, words in WORDS.items()]
    first = [(f"{one['row']:,}", shown(one["words"])) for one in facts["lowest"][:_SHOWN]]
    words = (
        f"Scored {len(found.score):,} rows, compared with {home.n_rows:,} rows of this site and "
        f"about {home.elsewhere.n_rows:,} rows of all other sites."
    )
    blocks: list[Block] = [
        Paragraph([words]),
        "",
        TextTable(["kind", "meaning", "rows"], meanings, left=2),
        "",
        TextTable(["row", "why"], first, left=2),
        f"\nWrote {target}. It describes this site's rows: keep it where the rows are.",
    ]
    return CommandResult(facts, blocks)
