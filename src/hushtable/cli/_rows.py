"""The rows that a command reads: the file, and which of its columns."""

import csv
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from hushtable.cli._errors import explain
from hushtable.data.encoding import Encoder
from hushtable.data.readers import Reader, as_reader
from hushtable.data.schema import Schema
from hushtable.errors import DataError, UsageError


@dataclass(frozen=True)
class Rows:
    """Rows as the command line names them, and how they are to be read."""

    data: str
    columns: str | None
    drop: str | None
    threads: int
    quiet: bool

    def open(self, schema: Schema | None = None, keep: Sequence[str] = ()) -> Reader:
        """Open them; see `open_rows`."""
        return open_rows(self.data, self.columns, self.drop, schema, keep)


def open_rows(
    data: str,
    columns: str | None,
    drop: str | None,
    schema: Schema | None = None,
    keep: Sequence[str] = (),
) -> Reader:
    """Open the rows, with the columns that --columns or --drop picks; they must fit the schema.

    Columns to ``keep`` that are no features follow behind, whatever is picked.
    """
    if columns is not None and drop is not None:
        raise UsageError("--columns and --drop exclude each other: give one of them")
    texts: frozenset[str] = frozenset() if schema is None else schema.categorical_names
    further = [name for name in keep if schema is None or name not in schema.names]
    texts = texts.union(further)
    try:
        reader = as_reader(data, text_columns=texts)
    except OSError as error:
        raise DataError(f"cannot read {data}: {explain(error)}") from error
    if lacking := [name for name in keep if name not in (reader.names or ())]:
        raise DataError(
            f"--id, --keep: {reader.source} has no column {lacking}: its columns are "
            f"{list(reader.names or ())}"
        )
    if columns is not None or drop is not None:
        chosen = [name for name in _chosen(reader, columns, drop) if name not in further]
        reader = reader.select([*chosen, *further])
    if schema is not None:
        try:
            Encoder(schema).check(reader, keep)
        except DataError as error:
            raise DataError(f"{error}{_hint(reader, schema)}") from None
    return reader


def names_in(option: str) -> list[str]:
    """Split at commas; a name that holds one stands in double quotes, as in a CSV file."""
    return [name.strip() for name in next(csv.reader([option], skipinitialspace=True), [])]


def _chosen(reader: Reader, columns: str | None, drop: str | None) -> list[str]:
    names = list(reader.names or ())
    named = names_in(columns if columns is not None else drop or "")
    lacking = [name for name in named if name not in names]
    if lacking:
        raise DataError(f"{reader.source} has no column {lacking}: its columns are {names}")
    chosen = named if columns is not None else [name for name in names if name not in named]
    if not chosen:
        raise UsageError("no column is left: name fewer in --drop, or some in --columns")
    if len(set(chosen)) < len(chosen):
        raise UsageError("--columns names a column twice: name each once")
    return chosen


def _hint(reader: Reader, schema: Schema) -> str:
    """Say which option makes the columns fit, if one does."""
    names, wanted = list(reader.names or ()), schema.names
    if not schema.named or not set(wanted) <= set(names):
        return ""
    extra = [name for name in names if name not in wanted]
    if [name for name in names if name in wanted] == wanted:
        return f"; --drop {joined(extra)} leaves the others out"
    return f"; --columns {joined(wanted)} puts them in order"


def joined(names: list[str]) -> str:
    """Return names as an option takes them, quoted for the shell."""
    fields = [f'"{name}"' if "," in name or name != name.strip() else name for name in names]
    text = ",".join(fields)
    return shlex.quote(text) if os.name == "posix" else text
