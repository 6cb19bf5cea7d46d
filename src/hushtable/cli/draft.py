"""``hushtable plan draft``: a schema for a person to fill in."""

import json
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from hushtable.cli._options import Columns, Data, Drop, Json
from hushtable.cli._output import Target, finish
from hushtable.cli._rows import open_rows
from hushtable.data.columns import as_numbers, is_text
from hushtable.data.known_columns import known_column
from hushtable.data.readers import Reader
from hushtable.errors import DataError, FileError
from hushtable.files import replacing

__all__ = ["draft"]

_HEAD = """\
# A draft: names and kinds of the columns. Every range and every list of categories is
# for you to fill in or to confirm; take the "# " away from the lines that you complete
# or keep.
#
# Ranges and categories must be public knowledge (a codebook, a data sheet, the law) and
# not be read off the data: they are in the plan, which goes to every site. Where a
# column's name is well known, some are proposed: by the name alone, so check that the
# column means that, and its unit. A value beyond its range counts as the nearest end; a
# category that is not listed counts as unseen. Where the categories of a column are
# numbers, make its kind "categorical" and list them as text.
#
# Then, to see at each site whether its rows fit:
#   hushtable plan check schema.toml DATA
# and, once for all:
#   hushtable plan draw schema.toml -o plan.hush
"""


@dataclass(frozen=True)
class _Column:
    """A column of the draft: ``proposals`` are what JSON says of each that is offered."""

    name: str
    kind: str
    note: str = ""
    proposals: tuple[dict[str, Any], ...] = ()
    hint: str = ""


def draft(
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Schema to write; default: print it."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    columns: Columns = None,
    drop: Drop = None,
    as_json: Json = False,
) -> None:
    """Draft a schema from the names and types of the columns.

    Nothing else is read off the data. Where a name is well known (age, heart_rate, glucose_mmol,
    voltage, weekday), public ranges or categories are proposed as comments. A person confirms
    them and fills in the others, which must be public knowledge.

    \b
    Example:
      hushtable plan draft patients.csv --drop id,name -o schema.toml
    """  # noqa: D301 (\b keeps the lines of the example apart)
    if output is not None and output.exists() and not force:
        raise FileError(
            f"{output} exists, and somebody may have filled it in: name another file, or replace "
            "it with --force"
        )
    target = None if output is None else Target(output, [data])
    features = _features(open_rows(data, columns, drop))
    text = "\n".join([_HEAD, *map(_table, features)])
    known = sum(1 for feature in features if feature.proposals)
    if target is not None:
        with target.writing(), replacing(target.path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    facts = {
        "command": "plan draft",
        "schema": None if target is None else str(target.path),
        "features": [{"name": f.name, "kind": f.kind, "proposals": f.proposals} for f in features],
        "toml": text,
    }

    def say() -> None:
        if target is None:
            print(text, end="")
        else:
            print(f"Wrote {target}: {len(features):,} columns.")
            if known:
                print(f"{known:,} have a well-known name: confirm what is proposed for them.")
            print("Fill in the other ranges and categories, then")
            print(f"  hushtable plan draw {target.path} -o plan.hush")

    finish(as_json, facts, say)


def _features(reader: Reader) -> list[_Column]:
    """Kind, unit and proposals of each column, by its name and type alone."""
    batch: Any = next(reader.read(), None)
    if batch is None or len(batch) == 0:
        raise DataError(f"{reader.source} has no rows: the kinds of its columns cannot be told")
    features = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if not is_text(column.type):
            as_numbers(column.slice(0, 0), name)  # refuses types that are neither
        features.append(_column(name, column.type))
    return features


def _column(name: str, kind: Any) -> _Column:
    """Draft a column of an Arrow type."""
    text = is_text(kind)
    default = _Column(name, "categorical" if text else "numeric", _note(kind))
    known = known_column(name)
    # Dates, times and true/false say themselves what they are.
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if known is None or not (text or number):
        return default
    if lists := known.texts if text else known.codes:
        what = known.what if text else f"{known.what}, as codes"
        offers = tuple({"what": what, "categories": list(one)} for one in lists)
        return replace(default, kind="categorical", proposals=offers, hint=known.note)
    if text:
        return default
    ranges = tuple(
        {"what": one.what or known.what, "low": one.low, "high": one.high, "unit": one.unit}
        for one in known.ranges
    )
    return replace(default, proposals=ranges, hint=known.note if ranges else "")


def _note(kind: Any) -> str:
    """Say in what unit a range is, where the type tells."""
    if pa.types.is_boolean(kind):
        return "false is 0, true is 1"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "in seconds since 1970-01-01: the start of 2020 is 1577836800"
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return "in seconds"
    return ""


def _table(column: _Column) -> str:
    lines = ["[[feature]]", f"name = {_quoted(column.name)}", f'kind = "{column.kind}"']
    if column.proposals:
        for number, proposal in enumerate(column.proposals):
            lines += _proposed(proposal, first=number == 0)
        lines += _comment(f"({column.hint})") if column.hint else []
    elif column.kind == "categorical":
        lines += ["# categories = []"]
    else:
        lines += [f"# {column.note}"] if column.note else []
        lines += ["# low = ", "# high = "]
    return "\n".join(lines) + "\n"


def _proposed(proposal: dict[str, Any], first: bool) -> list[str]:
    """Return the lines that a person un-comments to accept a proposal, under what it is."""
    what = proposal["what"]
    if "categories" in proposal:
        said = f"{what}; public categories, for you to confirm:" if first else "or:"
        listed = ", ".join(map(_quoted, proposal["categories"]))
        return [*_comment(said), *_comment(f"categories = [{listed}]", indent="    ")]
    what = f"{what}, {proposal['unit']}"
    said = f"{what}; a public range, for you to confirm:" if first else f"or {what}:"
    low, high, unit = proposal["low"], proposal["high"], _quoted(proposal["unit"])
    return [*_comment(said), f"# low = {low}", f"# high = {high}", f"# unit = {unit}"]


def _comment(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, 88, initial_indent="# ", subsequent_indent=f"# {indent}")


def _quoted(text: str) -> str:
    """Return a basic string of TOML: one of JSON, with the one escape that only TOML asks for."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
