"""``hushtable plan check``: how local rows fit a schema or plan."""

from pathlib import Path
from typing import Annotated, Any

from hushtable import files
from hushtable.cli._options import Data, Json, Table, Threads, argument
from hushtable.cli._output import MOST_LINES, finish, print_sentences, print_table, shown
from hushtable.cli._progress import watched
from hushtable.cli._rows import READS, Reads, under
from hushtable.cli._understanding import (
    note_doubts,
    print_understanding,
    understanding_facts,
)
from hushtable.cli.plan import read_schema
from hushtable.data.check import FeatureCheck, check_rows
from hushtable.data.infer import understood
from hushtable.data.schema import Schema
from hushtable.data.texts.reading import Reading
from hushtable.describe.plan import values
from hushtable.errors import FileError
from hushtable.plans.plan import Plan

_Schema = Annotated[
    Path, argument("SCHEMA_OR_PLAN", "Schema in TOML, or a .hush file with a plan in it.")
]


def check(
    schema: _Schema,
    data: Data,
    threads: Threads = -1,
    reads: Reads = READS,
    table: Table = False,
    as_json: Json = False,
) -> None:
    """Check rows against a schema or plan, before they are counted.

    Says which columns have values that are missing or outside, are constant, or use so little of
    their range that the unit may be another. It writes no file. What it prints describes the rows
    and stays where they are. It ends with exit code 0 whatever it finds.

    Example:
      hushtable plan check plan.hush patients.csv --drop id,name
    """
    wanted, reading = _schema(schema)
    raw = reads.open(data).repeatable()
    columns, _, _ = understood(raw, None, threads)
    note_doubts([one for one in columns if one.name in wanted.names])
    reader = under(raw, wanted, reading)
    with watched(reader, quiet=as_json) as watch:
        checks = check_rows(wanted, watch.reader, n_jobs=threads)
    facts = {
        "command": "plan check",
        "rows": watch.rows,
        "features": [_facts(one) for one in checks],
        "columns": understanding_facts(columns),
    }

    def text() -> None:
        if table:
            print_understanding(columns)
        _print(checks, reader.source, schema, wanted.public)

    finish(as_json, facts, text)


def _schema(path: Path) -> tuple[Schema, Reading]:
    """Read a schema, or that of the plan in a .hush file, and how a model's rows were read."""
    if path.suffix != ".hush":
        return read_schema(path), Reading()
    content = files.read(path)
    if "plan" not in content.manifest:
        raise FileError(
            f"{path} holds a {content.kind} without a plan: give the schema, or the sites' plan"
        )
    return content.build(Plan.from_file).schema, content.build(Reading.from_file)


def _facts(result: FeatureCheck) -> dict[str, Any]:
    keys = ("missing", "below", "above", "unseen", "used", "finding")
    feature = {"name": result.feature.name, "kind": result.feature.kind}
    return feature | {key: getattr(result, key) for key in keys}


def _print(checks: list[FeatureCheck], source: str, schema: Path, public: bool) -> None:
    found = [one for one in checks if one.outside or one.missing or one.finding]
    print(
        f"Checked {checks[0].rows:,} rows of {source} against {schema}: {len(checks):,} features."
    )
    if found:
        print("Share of the rows whose value is\n")
        # The worst first: a long list is cut.
        found.sort(key=lambda one: (one.finding is None, -one.outside, -one.missing))
        headers = ["feature", "missing", "below", "above", "not listed"]
        print_table(headers, [_row(one) for one in found])
    if len(found) < len(checks):
        others = f"the other {len(checks) - len(found):,}" if found else "all"
        print(f"\nIn {others}, every value is there and inside.")
    sentences = [_sentence(one, public) for one in found if one.finding is not None]
    if sentences:
        print("\nTo look at:\n")
        print_sentences(sentences[:MOST_LINES], indent="  ")
        if len(sentences) > MOST_LINES:
            print(f"  ... and {len(sentences) - MOST_LINES:,} more (--json lists all)")
    print()
    print_sentences([
        "This describes your rows: keep it here. Values outside count as the nearest end, or as "
        "unseen. Mend a wrong unit, spelling or column; do not make ranges of these rows."
    ])  # fmt: skip


def _row(result: FeatureCheck) -> list[str]:
    counts = (result.missing, result.below, result.above, result.unseen)
    return [shown(result.feature.name), *(_share(count / result.rows) for count in counts)]


def _share(share: float) -> str:
    if share == 0.0:
        return "-"
    return "<0.1%" if share < 0.001 else f"{share:.1%}"


def _sentence(result: FeatureCheck, public: bool) -> str:
    """Say what a finding may mean, and what to do about it."""
    feature = result.feature
    name, allowed = shown(feature.name), shown(values(feature, public))
    if result.finding == "missing":
        return f"{name}: no row has a value. Is it the right column?"
    if result.finding == "constant":
        return f"{name}: all values are the same. Is it the right column?"
    if result.finding == "outside" and feature.kind == "categorical":
        return f"{name}: most values are none of its {allowed}. Are they spelled in another way?"
    if result.finding == "outside":
        return f"{name}: most values lie outside its range, {allowed}. Are they in another unit?"
    return (
        f"{name}: 98% of the values use {_share(result.used)} of its range, {allowed}. Are "
        "they in another unit, or is the range far wider than it need be?"
    )
