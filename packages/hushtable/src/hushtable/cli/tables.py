"""Tables of rows that commands write, each format by its ending: scores, and lists of the lowest.

In what a spreadsheet program may open, no text becomes a formula.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from hushtable.cli.output import Target, shown
from hushtable.cli.result import Block, Paragraph, TextTable
from hushtable.data.columns import as_column
from hushtable.errors import UsageError
from hushtable.files import replacing
from hushtable.scores.outliers import AMONG, LowRow, Outliers, known_words, unjudged_words

#: How a text begins that a spreadsheet program takes for a formula, unless it is a number.
_FORMULA = r"^[=+\-@\t\r\n]"
_NUMBER = r"^[+-]?[0-9]+([.,][0-9]+)?([eE][+-]?[0-9]+)?$"
_TEXTS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
)


def harmless(text: str) -> str:
    """Return a text, with an apostrophe before it if it would become a formula."""
    is_formula = re.match(_FORMULA, text) and not re.fullmatch(_NUMBER.strip("^$"), text)
    return f"'{text}" if is_formula else text


def original(text: str) -> str:
    """Return the text that `harmless` was given, of a text in a file that may be written by it."""
    return text[1:] if text.startswith("'") and harmless(text[1:]) == text else text


def harmless_table(table: pa.Table) -> pa.Table:
    """Return a table whose names and texts are `harmless`, to be written as CSV."""
    columns = [_harmless(column) for column in table.columns]
    return pa.Table.from_arrays(columns, names=[harmless(name) for name in table.column_names])


def harmless_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of what `harmless_table` returns."""
    return pa.schema([(harmless(field.name), _plain(field.type)) for field in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type that a column of texts is written in; another type stays."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    is_view = pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)
    return pa.large_string() if is_view else kind


def _harmless(column: Any) -> Any:
    if (kind := _plain(column.type)) != column.type:
        column = column.cast(kind)
    if not any(is_text(column.type) for is_text in _TEXTS):
        return column
    found = pc.match_substring_regex(column, _FORMULA)
    if not pc.any(found).as_py():
        return column
    found = pc.and_not(found, pc.match_substring_regex(column, _NUMBER))
    mark, nothing = (pa.scalar(text, column.type) for text in ("'", ""))
    return pc.if_else(found, pc.binary_join_element_wise(mark, column, nothing), column)


#: Characters of a column's width, at most and at least.
_WIDEST, _NARROWEST = 60, 8
#: The first day that a spreadsheet knows.
_FIRST_DAY = datetime(1900, 3, 1)
#: Number formats of columns.
_FORMATS = {"severity": "0.00", "score": "0.0000", "error": "0.0000"}


def _write_sheet(file: BinaryIO, found: Outliers, model: str, *_: str) -> None:
    """Write the rows as a workbook; texts stay texts, whatever they begin with."""
    import xlsxwriter  # type: ignore[import-untyped] # takes a quarter of a second

    table = found.table()
    # In memory: else it leaves rows in files of the folder for temporary ones.
    settings = {"in_memory": True, "remove_timezone": True}
    with xlsxwriter.Workbook(file, settings) as book:
        book.set_properties({"comments": "Describes rows: keep it where they are."})
        sheet = book.add_worksheet("Outliers")
        looks = _Looks(book)
        for j, name in enumerate(table.column_names):
            values = [name, *_typed(found, table, name)]
            for i, value in enumerate(values):
                _write(sheet, i, j, value, looks, "head" if i == 0 else name)
            widest = max(len(str(value)) for value in values if value is not None)
            sheet.set_column(j, j, min(_WIDEST, max(_NARROWEST, widest + 2)))
        sheet.freeze_panes(1, 0)
        sheet.autofilter(0, 0, len(found.rows), table.num_columns - 1)
        sheet.set_landscape()
        sheet.repeat_rows(0)
        notes = book.add_worksheet("About")
        notes.set_column(0, 0, 16)
        notes.set_column(1, 1, 100)
        for i, (name, text) in enumerate(found.notes(model).items()):
            notes.write_string(i, 0, name, looks["head"])
            notes.write_string(i, 1, text, looks["words"])


class _Looks(dict[str, Any]):
    """Formats of cells, by the name of the column or of the kind of value."""

    def __init__(self, book: Any) -> None:
        top = {"valign": "top"}
        super().__init__(
            head=book.add_format(top | {"bold": True, "bottom": 1}),
            words=book.add_format(top | {"text_wrap": True}),
            date=book.add_format(top | {"num_format": "yyyy-mm-dd"}),
            datetime=book.add_format(top | {"num_format": "yyyy-mm-dd hh:mm:ss"}),
            time=book.add_format(top | {"num_format": "[hh]:mm:ss"}),
            plain=book.add_format(top),
        )
        for name, form in _FORMATS.items():
            self[name] = book.add_format(top | {"num_format": form})


def _typed(found: Outliers, table: pa.Table, name: str) -> list[Any]:
    """Return the values of a column; those of reasons as numbers and dates."""
    column = table[name]
    if name in found.keep or not name.startswith("value_"):
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":  # takes pandas else
            column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
        return list(column.to_pylist())
    k = int(name[-1]) - 1
    each = [[one.phrase.value for one in found.reasons(row) if one.phrase] for row in found.rows]
    return [values[k] if k < len(values) else None for values in each]


def _write(sheet: Any, i: int, j: int, value: Any, looks: _Looks, name: str) -> None:
    """Write a value by its own type: a text is never taken for a formula, a link or a number."""
    look = looks.get(name, looks["plain"])
    if value is None or value != value:
        sheet.write_blank(i, j, None, look)
    elif isinstance(value, bool):
        sheet.write_boolean(i, j, value, look)
    elif isinstance(value, int | float | Decimal) and abs(float(value)) < 1e15:
        sheet.write_number(i, j, float(value), look)
    elif isinstance(value, datetime) and value.replace(tzinfo=None) >= _FIRST_DAY:
        midnight = value.time() == time()
        sheet.write_datetime(i, j, value, looks["date" if midnight else "datetime"])
    elif isinstance(value, date) and value >= _FIRST_DAY.date() and not isinstance(value, datetime):
        sheet.write_datetime(i, j, value, looks["date"])
    elif isinstance(value, time | timedelta):
        sheet.write_datetime(i, j, value, looks["time"])
    else:
        sheet.write_string(
            i, j, str(value)[:32_767], looks["words"] if name in _SENTENCES else look
        )


def _write_page(file: BinaryIO, found: Outliers, model: str, source: str, unit: str) -> None:
    from hushtable.report.page import top_page  # with all that a report needs

    file.write(top_page(found, model, source, unit).encode())


#: Columns of whole sentences.
_SENTENCES = ("words", "repair")
#: Writers of a list of the lowest rows, by the ending of its file. Each takes the file, the rows,
#: the name of the model, where the rows are from, and the unit of the scores.
LISTS: dict[str, Callable[[BinaryIO, Outliers, str, str, str], None]] = {
    ".csv": lambda file, found, *_: csv.write_csv(harmless_table(found.table()), file),
    ".xlsx": _write_sheet,
    ".html": _write_page,
    ".parquet": lambda file, found, *_: parquet.write_table(found.table(), file),
}
#: Writers of the scores of all rows, by the ending of their file.
SCORES: dict[str, Any] = {".parquet": parquet.ParquetWriter, ".csv": csv.CSVWriter}
#: Rows that are printed; the file has all.
_SHOWN = 5
#: Of every file of the lowest rows.
_TAKEN = ("rank", "file", "row", "severity", "score", "error", "outside", "words")


def endings(writers: Iterable[str]) -> str:
    """Return endings in words."""
    *first, last = writers
    return f"{', '.join(first)} or {last}"


def check_top(output: Path, keep: list[str]) -> None:
    """Refuse what --top cannot write, before any row is read."""
    if output.suffix not in LISTS:
        raise UsageError(f"-o {output}: --top needs a name that ends in {endings(LISTS)}")
    taken = [f"{name}_{k}" for name in ("reason", "value", "usual", "direction") for k in (1, 2, 3)]
    check_names(keep, (*_TAKEN, *taken))
    if output.suffix == ".html":
        from hushtable.report.page import check_extra

        check_extra()


def check_names(keep: list[str], taken: tuple[str, ...]) -> None:
    """Refuse to keep a column twice, or one of a name that a column of scores has."""
    for name in keep:
        if keep.count(name) > 1:
            raise UsageError(f"--id, --keep: {name!r} is named twice: name each column once")
        if name in taken:
            raise UsageError(
                f"--id, --keep: the file has a column {name!r} of its own: rename that of the rows"
            )


def write_top(target: Target, found: Outliers, model: Path, source: str, unit: str) -> None:
    """Write the rows in the format that the file's name ends in."""
    with target.writing(), replacing(target.path, private=True) as file:
        LISTS[target.path.suffix](file, found, model.name, source, unit)


def top_facts(found: Outliers, output: Path) -> dict[str, Any]:
    """Return what was written for machines."""
    rows = found.table().to_pylist()
    return {
        "command": "score",
        "scores": str(output),
        "rows": found.n_rows,
        **({"unjudged": found.n_unjudged} if found.n_unjudged else {}),
        **({"known": found.n_known} if found.n_known else {}),
        "severity_among": found.among,
        "top": [{name: _json(value) for name, value in row.items()} for row in rows],
    }


def _json(value: Any) -> Any:
    if isinstance(value, float) and value != value:
        return None
    return value if isinstance(value, str | int | float | None) else str(value)


def top_blocks(found: Outliers, target: Target) -> Iterator[Block]:
    """Describe the first rows, and what the file holds."""
    rows = found.rows[:_SHOWN]
    table = found.table()
    among = table.schema.metadata[AMONG].decode()
    if found.n_unjudged:
        yield Paragraph([unjudged_words(found.n_unjudged)])
    if found.n_known:
        yield Paragraph([known_words(found.n_known)])
    yield f"The {len(found.rows):,} most unusual of {found.n_rows - found.n_unjudged:,} rows:\n"
    headers, left = ["rank", *found.keep, "row", "severity", "score"], 1 + len(found.keep)
    lines = [
        [f"{k + 1}", *_kept(row), f"{row.row:,}", found.severity(k), _score(row)]
        for k, row in enumerate(rows)
    ]
    if rows[0].file:
        headers.insert(left, "file")
        for line, row in zip(lines, rows, strict=True):
            line.insert(left, shown(row.file))
        left += 1
    yield TextTable(headers, lines, left=left)
    if found.explained:
        yield "\nWhy:\n"
        yield Paragraph(shown(f"{k + 1}. {found.sentence(row)}.") for k, row in enumerate(rows))
    if found.incidents:
        yield "\nAlike:\n"
        yield Paragraph(shown(f"{one.words}: {_ranks(one.rows)}.") for one in found.incidents[:3])
    if len(found.rows) > len(rows):
        yield f"\n... and {len(found.rows) - len(rows):,} more in the file."
    yield ""
    yield Paragraph([f"Severity: 100 times one minus the share of rows as rare, among {among}."])
    yield f"Wrote {target}. It describes rows and holds their values: keep it where they are."


def _ranks(rows: list[int]) -> str:
    """Name rows of a list by their ranks."""
    some = [f"{k + 1}" for k in rows[:_SHOWN]]
    more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
    return f"{len(rows)} rows, rank {', '.join(some)}{more}"


def lowest_blocks(lowest: list[LowRow]) -> Iterator[Block]:
    """Describe the rows with the lowest scores, their ranks and reasons."""
    yield "The most unusual rows, numbered from 0:\n"
    headers, left = ["row", "score"], 0
    lines = [[f"{one.row:,}", f"{one.score:.4f}"] for one in lowest]
    if lowest[0].file:
        headers, left = ["file", *headers], 1
        lines = [[shown(one.file), *line] for one, line in zip(lowest, lines, strict=True)]
    if lowest[0].detail.ranks is not None:
        headers += ["rank among all", "between"]
        for one, line in zip(lowest, lines, strict=True):
            line += one.detail.rank_words
    yield TextTable(headers, lines, left=left)
    if lowest[0].detail.reasons is not None:
        usual = any(one.detail.why.repaired for one in lowest if one.detail.why)
        bits = "the score gains if that value alone is usual" if usual else "it takes off the score"
        yield f"\nWhy (in brackets, the bits that {bits}):\n"
        yield Paragraph(_sentence(one) for one in lowest)


def _sentence(row: LowRow) -> str:
    """Say why a row has its score."""
    place = f"Row {row.row:,} of {shown(row.file)}" if row.file else f"Row {row.row:,}"
    found = [f"{shown(reason.words)} ({reason.share:.2f})" for reason in row.detail.reasons or []]
    found += [row.detail.likeness] if row.detail.likeness else []
    crowding = f" A typical row has {row.detail.crowding}." if row.detail.crowding else ""
    return f"{place}: {'; '.join(found) or 'no feature stands out'}.{crowding}"


def _kept(row: LowRow) -> list[str]:
    values = (one.cast(pa.string())[0].as_py() for one in row.detail.kept)
    return ["" if value is None else shown(value) for value in values]


def _score(row: LowRow) -> str:
    error = row.detail.error
    return f"{row.score:.4f}" + ("" if error is None else f" ± {error:.4f}")


#: Rows written at a time: a Parquet row group of about 4 MB.
_GROUP_ROWS = 1 << 18


def write_scores(
    path: Path,
    rows: Iterable[tuple[Any, ...]],
    metadata: dict[bytes, bytes] | None = None,
    more: Sequence[tuple[str, Any]] = (),
) -> None:
    """Write scores as `Summary.rows` yields them, in the format that the path ends in.

    The path holds all of them, or what it held before. ``metadata`` is for Parquet; ``more`` are
    the names and types of the columns behind row, score and outlier.
    """
    rows = iter(rows)
    begin = list(itertools.islice(rows, 1))
    rows = itertools.chain(begin, rows)
    # A kept column has the type that it has in the first batch.
    found = [column.type for batch in begin for column in batch[3:]] or [pa.string()] * len(more)
    kept = [(name, kind or found[k]) for k, (name, kind) in enumerate(more)]
    fields = [("row", pa.int64()), ("score", pa.float64()), ("outlier", pa.bool_()), *kept]
    schema = pa.schema(fields, metadata)
    as_csv = path.suffix == ".csv"
    written = harmless_schema(schema) if as_csv else schema
    with replacing(path, private=True) as file, SCORES[path.suffix](file, written) as writer:
        for table in _grouped(rows, schema):
            writer.write_table(harmless_table(table) if as_csv else table)


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table of rows, in the format that the path ends in; atomically."""
    table = harmless_table(table) if path.suffix == ".csv" else table
    with replacing(path, private=True) as file, SCORES[path.suffix](file, table.schema) as writer:
        writer.write_table(table)


def _grouped(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.Table]:
    batches, waiting = [], 0
    for start, scores, outliers, *more in rows:
        n_rows, unjudged = len(scores), np.isnan(scores)
        judged = ~unjudged if unjudged.any() else None
        arrays = [
            as_column(np.arange(start, start + n_rows)),
            as_column(scores, judged),
            pa.nulls(n_rows, pa.bool_()) if outliers is None else as_column(outliers, judged),
            *more,
        ]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
        waiting += n_rows
        if waiting >= _GROUP_ROWS:
            yield pa.Table.from_batches(batches).combine_chunks()
            batches, waiting = [], 0
    if batches:
        yield pa.Table.from_batches(batches).combine_chunks()
