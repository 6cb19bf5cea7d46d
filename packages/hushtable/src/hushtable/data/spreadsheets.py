"""Texts that a spreadsheet program would read as formulas, and how to make them harmless."""

import re

import pyarrow as pa
import pyarrow.compute as pc

from hushtable.data.columns import scalar

#: First characters of a text that a spreadsheet program reads as a formula, unless it is a number.
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
    """Undo `harmless` for a text in a file that it may have written."""
    return text[1:] if text.startswith("'") and harmless(text[1:]) == text else text


def harmless_table(table: pa.Table) -> pa.Table:
    """Return a table with `harmless` names and texts, to be written as CSV."""
    columns = [_harmless(column) for column in table.columns]
    return pa.Table.from_arrays(columns, names=[harmless(name) for name in table.column_names])


def harmless_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of what `harmless_table` returns."""
    return pa.schema([(harmless(field.name), _plain(field.type)) for field in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    is_view = pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)
    return pa.large_string() if is_view else kind


def _harmless(column: pa.Array) -> pa.Array:
    if (kind := _plain(column.type)) != column.type:
        column = column.cast(kind)
    if not any(is_text(column.type) for is_text in _TEXTS):
        return column
    formulas = pc.match_substring_regex(column, _FORMULA)
    if not pc.any(formulas).as_py():
        return column
    formulas = pc.and_not(formulas, pc.match_substring_regex(column, _NUMBER))
    mark, nothing = (scalar(text).cast(column.type) for text in ("'", ""))
    return pc.if_else(formulas, pc.binary_join_element_wise(mark, column, nothing), column)
