"""``hushtable plan draft``: a schema for a person to fill in."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushtable.cli._options import Columns, Data, Drop, Json
from hushtable.cli._output import Target, finish, written
from hushtable.cli._rows import open_rows
from hushtable.errors import DataError, FileError

if TYPE_CHECKING:
    from hushtable.readers import Reader

__all__ = ["draft"]

_HEAD = """\
# A draft: names and kinds of the columns. Every range and every list of categories is for you
# to fill in; take the "# " away from the lines that you complete.
#
# Ranges and categories must be public knowledge (a codebook, a data sheet, the law) and not
# be read off the data: they are in the plan, which goes to every site. A value beyond its
# range counts as the nearest end; a category that is not listed counts as unseen. Where the
# categories of a column are numbers, make its kind "categorical" and list them as text.
#
# Then: hushtable plan draw schema.toml -o plan.hush
"""


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

    Nothing else is read off the data. A person fills in the ranges and categories, which must
    be public knowledge.

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
    if target is not None:
        from hushtable.files import replacing

        with target.writing(), replacing(target.path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    facts = {
        "command": "plan draft",
        "schema": written()[0] if written() else None,
        "features": [{"name": name, "kind": kind} for name, kind, _ in features],
        "toml": text,
    }

    def say() -> None:
        if target is None:
            print(text, end="")
        else:
            print(f"Wrote {target}: {len(features):,} columns. Fill in ranges and categories, then")
            print(f"  hushtable plan draw {target.path} -o plan.hush")

    finish(as_json, facts, say)


def _features(reader: "Reader") -> list[tuple[str, str, str]]:
    """Name, kind and unit of each column, by its type alone."""
    from hushtable.columns import as_numbers, is_text

    batch: Any = next(reader.read(), None)
    if batch is None or len(batch) == 0:
        raise DataError(f"{reader.source} has no rows: the kinds of its columns cannot be told")
    features = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if is_text(column.type):
            features.append((name, "categorical", ""))
            continue
        as_numbers(column.slice(0, 0), name)  # refuses types that are neither
        features.append((name, "numeric", _note(column.type)))
    return features


def _note(kind: Any) -> str:
    """Say in what unit a range is, where the type tells."""
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        return "false is 0, true is 1"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "in seconds since 1970-01-01: the start of 2020 is 1577836800"
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return "in seconds"
    return ""


def _table(feature: tuple[str, str, str]) -> str:
    name, kind, note = feature
    lines = ["[[feature]]", f"name = {_quoted(name)}", f'kind = "{kind}"']
    if kind == "categorical":
        lines += ["# categories = []"]
    else:
        lines += [f"# {note}"] if note else []
        lines += ["# low = ", "# high = "]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Return a basic string of TOML: one of JSON, with the one escape that only TOML asks for."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
