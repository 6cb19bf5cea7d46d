"""Home models on the command line: scores here and elsewhere, and what such a file holds."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hushtable import files
from hushtable.cli.output import Target, shown, size
from hushtable.cli.progress import watched
from hushtable.cli.result import Block, CommandResult, LabelledValues, Paragraph, TextTable
from hushtable.cli.rows import Rows
from hushtable.cli.tables import SCORES, write_scores, write_table
from hushtable.data.columns import as_column, texts_column
from hushtable.data.readers import Reader
from hushtable.errors import UsageError

#: Rows that are shown.
_SHOWN = 5


def is_home(path: Path, lined: Any) -> bool:
    """Whether a file holds a home model; refuse options that it has no use for."""
    at_home = files.read(path).kind == "home"
    if at_home and lined:
        raise UsageError(
            "a home model has two scores, and kinds of rows in place of a threshold: leave "
            "--contamination, --count, --threshold, --ranks, --explain and --only-counted out"
        )
    return at_home


def inspect_home(path: Path, content: files.Content) -> CommandResult:
    """Show what the file of a home model holds."""
    from hushtable.detectors import HomeModel  # scikit-learn takes a second to import

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
        "Weight": f"{home.weight:.2f} for the others' counts in the one ranking",
        "Features": f"{len(plan.schema):,}",
        "May leave": "no: it holds exact counts, and values of rows",
    }
    return CommandResult(facts, [LabelledValues(lines)])


def score_home(
    model: Path, rows: Rows, kept: Sequence[str], top: int | None, output: Path
) -> CommandResult:
    """Score rows by a home model, all of them or a list of the lowest, and write them."""
    from hushtable.detectors import HomeModel  # scikit-learn takes a second to import

    target = Target(output, [rows.data, model])
    if target.path.suffix not in SCORES:
        raise UsageError(f"{output}: the scores of a home model go to {' or '.join(SCORES)}")
    home = files.read(model).build(HomeModel.from_file)
    home.here.n_jobs = rows.threads
    reader = rows.open(home.elsewhere.plan.schema, kept).repeatable()
    with watched(reader, passes=6) as watch:
        found = home.scores(watch.reader)
        compared = None if home.marginals is None else home.column_differences(watch.reader)
        beside = _beside(watch.reader, kept)
        listed = home.outliers(watch.reader, top or _SHOWN, found)
    kinds = Counter(found.kinds)
    if top is None:
        flagged = np.array([kind != "ordinary" for kind in found.kinds])
        columns = [*beside.values(), as_column(found.here), as_column(found.elsewhere)]
        columns.append(texts_column(found.kinds))
        types = [(name, column.type) for name, column in beside.items()]
        types += [("here", pa.float64()), ("elsewhere", pa.float64()), ("kind", pa.string())]
        write_scores(target.path, [(0, found.score, flagged, *columns)], more=types)
    else:
        places = listed["row"]
        for k, (name, column) in enumerate(beside.items()):
            listed = listed.add_column(1 + k, name, column.take(places))
        write_table(target.path, listed)
    facts = {
        "command": "score", "rows": len(found.score), "weight": home.weight, "kinds": dict(kinds),
        "systematic": None if compared is None else _systematic(compared),
        "output": str(target.path), "lowest": listed.slice(0, top or _SHOWN).to_pylist(),
    }  # fmt: skip
    return CommandResult(facts, _blocks(home, kinds, compared, listed, target))


def _systematic(columns: Any) -> dict[str, Any]:
    """Return the facts about columns that are unlike elsewhere."""
    found = columns.systematic
    return {
        "column": None if found is None else found.name,
        "words": columns.words,
        "differing": [asdict(one) for one in columns.differing],
    }


def _beside(reader: Reader, kept: Sequence[str]) -> dict[str, Any]:
    """Return the columns that are kept, of all rows."""
    if not kept:
        return {}
    batches = [pa.record_batch(batch).select(list(kept)) for batch in reader.read()]
    table = pa.Table.from_batches(batches).combine_chunks()
    return {name: table[name].combine_chunks() for name in kept}


def _blocks(
    home: Any, kinds: Counter[str], compared: Any, listed: Any, target: Target
) -> Iterator[Block]:
    from hushtable.detectors.home import WORDS

    yield Paragraph([
        f"Scored {sum(kinds.values()):,} rows by {home.n_rows:,} rows of this site, "
        f"and by about {home.elsewhere.n_rows:,} of all others.",
    ])  # fmt: skip
    if compared is not None:
        yield Paragraph([shown(compared.words)])
    yield ""
    yield TextTable(
        ["kind", "rows", ""], [(kind, f"{kinds[kind]:,}", words) for kind, words in WORDS.items()]
    )
    yield ""
    rows = listed.slice(0, _SHOWN).to_pylist()
    yield TextTable(["row", "why"], [(f"{one['row']:,}", shown(one["words"])) for one in rows])
    if compared is None:
        yield (
            "\nWhether a column is systematically unlike elsewhere is not known: this model was "
            "made without --marginals."
        )
    yield f"\nWrote {target}. It describes this site's rows: keep it where they are."
