"""Tables of rows that commands write, each format by its ending: scores, and lists of the lowest.

In files that a spreadsheet program may open, no text becomes a formula.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path

import pyarrow as pa

from hushtable.cli.result import Block, Paragraph, Target, TextTable
from hushtable.data.spreadsheets import harmless_schema, harmless_table
from hushtable.errors import UsageError
from hushtable.files import replacing
from hushtable.language import _
from hushtable.report.lists import LISTS, cut_words
from hushtable.scores.finding import as_text
from hushtable.scores.outliers import LISTED, Outliers, known_words, rounded_down

#: Endings of files for the scores of all rows.
SCORES = (".parquet", ".csv")
#: Number of rows to print; the file has all.
SHOWN = 5


def endings(writers: Iterable[str]) -> str:
    """Return endings in words."""
    *first, last = writers
    return f"{', '.join(first)} or {last}"


def check_top(output: Path, keep: list[str]) -> None:
    """Refuse a format that --top cannot write, before any row is read."""
    if output.suffix not in LISTS:
        raise UsageError(f"-o {output}: with --top, the name must end in {endings(LISTS)}")
    check_names(keep, LISTED)
    if output.suffix == ".html":
        from hushtable.report.page import check_extra

        check_extra()


def check_names(keep: list[str], taken: tuple[str, ...]) -> None:
    """Refuse to keep a column twice, or a column with the name of a column of scores."""
    for name in keep:
        if keep.count(name) > 1:
            raise UsageError(f"--id, --keep: {name!r} is named twice: name each column once")
        if name in taken:
            raise UsageError(
                f"--id, --keep: the output has its own column {name!r}: rename the column of the "
                "rows"
            )


def write_top(target: Target, listed: Outliers, model: Path | None, source: str, unit: str) -> None:
    """Write the rows in the format that the file's name ends in; without a model, they have one."""
    name = _("of these rows") if model is None else model.name
    with target.writing(), replacing(target.path, private=True) as file:
        LISTS[target.path.suffix](file, listed, name, source, unit)


def top_facts(listed: Outliers, output: Path) -> dict[str, object]:
    """Return what was written for machines."""
    rows = listed.table().to_pylist()
    for row in rows:
        for name, value in row.items():
            if value != value:
                row[name] = None
            elif not isinstance(value, str | int | float | None):
                row[name] = str(value)
    return {
        "command": "score",
        "scores": str(output),
        "rows": listed.n_rows,
        **({"known": listed.n_known} if listed.n_known else {}),
        **({"lone": [number.words for number in listed.lone]} if listed.lone else {}),
        "severity_among": listed.among,
        "top": rows,
    }


def top_blocks(listed: Outliers, target: Target, *, words: bool = True) -> Iterator[Block]:
    """Describe the first rows, and the contents of the file; ``words`` as for `lowest_blocks`."""
    yield from lowest_blocks(listed, words=words)
    if target.path.suffix == ".xlsx" and (cut := cut_words(listed.table())):
        yield cut
    yield (
        f"Wrote {target}. It describes rows and contains their values: keep it where the rows are."
    )


def lowest_blocks(listed: Outliers, *, words: bool = True) -> Iterator[Block]:
    """Describe the first of the lowest rows.

    ``words`` states whether to give reasons: those of a list in another language are in the file.
    """
    rows = listed.rows[:SHOWN]
    if listed.n_known:
        yield Paragraph([known_words(listed.n_known)])
    if listed.lone:
        yield Paragraph(one.words for one in listed.lone)
    yield f"The {len(listed.rows):,} most unusual of {listed.n_rows:,} rows:\n"
    headers, left = ["rank", *listed.keep, "row", "severity", "score"], 1 + len(listed.keep)
    several = bool(rows[0].file)
    headers[left:left] = ["file"] if several else []
    lines = []
    for k, row in enumerate(rows):
        place = [row.file, f"{row.row:,}"] if several else [f"{row.row:,}"]
        error = "" if row.error is None else f" ± {row.error:.4f}"
        kept = map(_kept_text, row.kept_values.values())
        lines.append(
            [f"{k + 1}", *kept, *place, rounded_down(row.severity), f"{row.score:.4f}{error}"]
        )
    yield TextTable(headers, lines, left=left + several)
    if listed.explained and words:
        yield "\nWhy:\n"
        yield Paragraph(f"{k + 1}. {row.words}." for k, row in enumerate(rows))
    if listed.incidents and words:
        yield "\nAlike:\n"
        groups = []
        for one in listed.incidents[:3]:
            n, first = len(one.rows), ", ".join(f"{k + 1}" for k in one.rows[:SHOWN])
            more = f" and {n - SHOWN} more" if n > SHOWN else ""
            groups.append(f"{one.words}: {n} rows, rank {first}{more}.")
        yield Paragraph(groups)
    if len(listed.rows) > len(rows):
        yield f"\n... and {len(listed.rows) - len(rows):,} more in the file."
    yield ""
    severity = f"Severity: 100 times one minus the share of rows as rare, among {listed.among}."
    if any(row.far for row in listed.rows):
        severity += " Rows with a value far outside all others come first."
    yield Paragraph([severity])


def _kept_text(value: pa.Array) -> str:
    """Return a value, given as an array of one, as text; a time without zeros that say nothing."""
    text = as_text(value)
    return _ZEROS.sub(r"\1", text) if pa.types.is_timestamp(value.type) else text


#: No fraction of a second, and midnight.
_ZEROS = re.compile(r"(?: 00:00:00)?(?:\.0+)?(Z?)$")


#: Rows written at a time: a Parquet row group of about 4 MB.
_GROUP_ROWS = 1 << 18


def write_tables(
    path: Path, tables: Iterable[pa.Table], metadata: Mapping[bytes, bytes] | None = None
) -> bool:
    """Write tables of the same columns in the format that the path ends in, atomically.

    Return whether there were any; without one, nothing is written. ``metadata`` is for Parquet.
    """
    tables = iter(tables)
    first = next(tables, None)
    if first is None:
        return False
    as_csv, schema = path.suffix == ".csv", first.schema.with_metadata(metadata)
    schema = harmless_schema(schema) if as_csv else schema
    # Each takes a while to import.
    kind = import_module("pyarrow.csv" if as_csv else "pyarrow.parquet")
    begin = kind.CSVWriter if as_csv else kind.ParquetWriter
    with replacing(path, private=True) as file, begin(file, schema) as writer:
        for table in _grouped(itertools.chain([first], tables)):
            writer.write_table(harmless_table(table) if as_csv else table)
    return True


def _grouped(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(map(len, waiting)) >= _GROUP_ROWS:
            yield pa.concat_tables(waiting).combine_chunks()
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks()
