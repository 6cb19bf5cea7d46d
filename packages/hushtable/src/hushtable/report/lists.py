"""Files of a list of the lowest rows: CSV, workbook, page and Parquet."""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from hushtable.data.spreadsheets import harmless_table
from hushtable.language import _, ngettext, numeral
from hushtable.scores.outliers import Outliers

#: Characters of a column's width, at most and at least.
_WIDEST, _NARROWEST = 60, 8
#: The most characters that a cell holds.
_LONGEST = 32_767
#: The first day that a spreadsheet knows.
_FIRST_DAY = datetime(1900, 3, 1)
#: Number formats of columns.
_FORMATS = {"severity": "0.00", "score": "0.0000", "error": "0.0000"}


def _write_sheet(file: BinaryIO, outliers: Outliers, model: str, *_about: str) -> None:
    """Write the rows as a workbook; texts stay texts, whatever they begin with."""
    import xlsxwriter  # type: ignore[import-untyped] # takes a quarter of a second

    table = outliers.table()
    # In memory: else it leaves rows in files of the folder for temporary ones.
    settings = {"in_memory": True, "remove_timezone": True}
    with xlsxwriter.Workbook(file, settings) as book:
        book.set_properties({"comments": _("Describes rows: keep it where they are.")})
        sheet = book.add_worksheet(_("Outliers"))
        looks, cut = _looks(book), cut_words(table)
        for j, name in enumerate(table.column_names):
            values = [name, *_typed(outliers, table, name)]
            for i, value in enumerate(values):
                _write(sheet, i, j, value, looks, "head" if i == 0 else name)
            widest = max(len(str(value)) for value in values if value is not None)
            sheet.set_column(j, j, min(_WIDEST, max(_NARROWEST, widest + 2)))
        sheet.freeze_panes(1, 0)
        sheet.autofilter(0, 0, len(outliers.rows), table.num_columns - 1)
        sheet.set_landscape()
        sheet.repeat_rows(0)
        notes = book.add_worksheet(_("About"))
        notes.set_column(0, 0, 16)
        notes.set_column(1, 1, 100)
        about = outliers.notes(model) | ({_("Long texts"): cut} if cut else {})
        for i, (name, text) in enumerate(about.items()):
            notes.write_string(i, 0, name, looks["head"])
            notes.write_string(i, 1, text, looks["words"])


def cut_words(table: pa.Table) -> str:
    """State how many texts of a list are too long for a cell of a workbook; empty if none is."""
    texts = [column for column in table.columns if pa.types.is_string(column.type)]
    n_cut = sum(pc.sum(pc.greater(pc.utf8_length(one), _LONGEST)).as_py() or 0 for one in texts)
    if not n_cut:
        return ""
    return ngettext(
        "%(n)s text was cut to %(most)s characters, the longest that a cell holds; a list as .csv "
        "or .parquet has it whole.",
        "%(n)s texts were cut to %(most)s characters, the longest that a cell holds; a list as "
        ".csv or .parquet has them whole.",
        n_cut,
        most=numeral(_LONGEST),
    )


def _looks(book: Any) -> dict[str, Any]:
    top: dict[str, Any] = {"valign": "top"}
    forms: dict[str, dict[str, Any]] = {
        "head": {"bold": True, "bottom": 1},
        "words": {"text_wrap": True},
        "date": {"num_format": "yyyy-mm-dd"},
        "datetime": {"num_format": "yyyy-mm-dd hh:mm:ss"},
        "time": {"num_format": "[hh]:mm:ss"},
        "plain": {},
        **{name: {"num_format": form} for name, form in _FORMATS.items()},
    }
    return {name: book.add_format(top | form) for name, form in forms.items()}


def _typed(outliers: Outliers, table: pa.Table, name: str) -> list[Any]:
    column = table[name]
    if name in outliers.keep or not name.startswith("value_"):
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":  # takes pandas else
            column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
        return list(column.to_pylist())
    k = int(name[-1]) - 1
    each = [[reason.phrase.value for reason in row.reasons] for row in outliers.rows]
    return [values[k] if k < len(values) else None for values in each]


def _write(sheet: Any, i: int, j: int, value: Any, looks: dict[str, Any], name: str) -> None:
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
            i, j, str(value)[:_LONGEST], looks["words"] if name in _SENTENCES else look
        )


def _write_page(file: BinaryIO, outliers: Outliers, model: str, source: str, unit: str) -> None:
    from hushtable.report.page import top_page  # with all that a report needs

    file.write(top_page(outliers, model, source, unit).encode())


def _write_csv(file: BinaryIO, outliers: Outliers, *_about: str) -> None:
    from pyarrow import csv

    csv.write_csv(harmless_table(outliers.table()), file)


def _write_parquet(file: BinaryIO, outliers: Outliers, *_about: str) -> None:
    from pyarrow import parquet  # which most commands do without

    parquet.write_table(outliers.table(), file)


#: Columns of whole sentences.
_SENTENCES = ("words", "repair")
#: Writers of a list of the lowest rows, by the ending of its file. Each takes the file, the rows,
#: the name of the model, where the rows are from, and the unit of the scores.
LISTS: dict[str, Callable[[BinaryIO, Outliers, str, str, str], None]] = {
    ".csv": _write_csv,
    ".xlsx": _write_sheet,
    ".html": _write_page,
    ".parquet": _write_parquet,
}
