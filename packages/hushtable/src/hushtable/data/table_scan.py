"""One pass over a table, which collects the facts about its columns."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hushtable import kernels
from hushtable.data.columns import (
    InfiniteError,
    as_column,
    as_numbers,
    as_texts,
    infinite,
    is_text,
)
from hushtable.data.readers import Batch
from hushtable.data.readers.reader import StoredRows
from hushtable.data.texts.column_facts import ColumnFacts
from hushtable.data.texts.missing import named_numbers
from hushtable.data.texts.reading import Reading, form_of


def facts_of(name: str, reading: Reading) -> ColumnFacts:
    """Return the facts about a column before its first row."""
    absent = named_numbers(reading.codes(name), ".")
    return ColumnFacts(name, absent, reading.kinds.get(name) == "number")


class TableScan:
    """Facts about a table from some of its batches."""

    def __init__(self, names: list[str], reading: Reading) -> None:
        self.names, self.reading = names, reading
        #: Number of rows, and of those in the first batch.
        self.n_rows = self.n_first = 0
        #: Ranges of the values that are not texts.
        self.low = np.full(len(names), np.inf)
        self.high = np.full(len(names), -np.inf)
        #: Facts by number of the column; none for a matrix.
        self.columns: dict[int, ColumnFacts] = {}

    def add(self, batch: Batch, start: int) -> Batch:
        """Process a batch; return it with numbers in place of texts that can mean nothing else.

        Texts that repeat are then dictionary-encoded. If some texts are codes for missing values,
        texts stay, because their reading may depend on the column's decimal separator.
        """
        self.n_rows += len(batch)
        self.n_first = self.n_first if start else len(batch)
        if isinstance(batch, StoredRows):
            batch.fold_ranges(self.low, self.high)
            return batch
        named = {"category", "label"} & {*self.reading.kinds.values()}
        if isinstance(batch, np.ndarray) and named:
            columns = [as_column(np.ascontiguousarray(column)) for column in batch.T]
            batch = pa.RecordBatch.from_arrays(columns, self.names)
        if isinstance(batch, np.ndarray):
            self._add_ranges(self.reading.without_numbers(batch, self.names), start, slice(None))
            return batch
        made = list(batch.columns)
        for j, column in enumerate(batch.columns):
            name = self.names[j]
            column, declared = _as_declared(self.reading.without_missing(column, name))
            if self.reading.kinds.get(name) in ("category", "label"):
                declared = True
                column = column if is_text(column.type) else as_texts(column, name)
            facts = self.facts(j)
            if not is_text(column.type):
                numbers, here = as_numbers(column, name, start), slice(j, j + 1)
                try:
                    self._add_ranges(numbers[:, np.newaxis], start, here)
                except InfiniteError:
                    facts.add_infinities(numbers, start)
                    numbers = np.where(np.isinf(numbers), np.nan, numbers)
                    self._add_ranges(numbers[:, np.newaxis], start, here)
                facts.add_values(numbers, form_of(column.type), start)
                continue
            facts.declared |= declared
            made_of_texts = facts.add(column, start)
            if made_of_texts is not None and not self.reading.missing:
                made[j] = made_of_texts
                facts.parsed |= not is_text(made_of_texts.type)
        return pa.RecordBatch.from_arrays(made, batch.schema.names)

    def facts(self, j: int) -> ColumnFacts:
        """Return the facts about a column."""
        if j not in self.columns:
            self.columns[j] = facts_of(self.names[j], self.reading)
        return self.columns[j]

    def _add_ranges(self, X: np.ndarray, start: int, columns: slice) -> None:
        row, column = kernels.column_ranges(X, self.low[columns], self.high[columns])
        if row >= 0:
            raise infinite(self.names[columns][column], start + row)

    def merge(self, other: "TableScan") -> None:
        """Add what another thread found."""
        self.n_rows += other.n_rows
        self.n_first = max(self.n_first, other.n_first)
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)
        for j, facts in other.columns.items():
            self.facts(j).merge(facts)

    def mixed(self, j: int) -> bool:
        """Return whether a column holds text in some files and numbers in others."""
        return bool(self.facts(j).n and self.low[j] <= self.high[j])


def _as_declared(column: pa.Array) -> tuple[pa.Array, bool]:
    """Return a column, whole numbers of a dictionary as texts; and whether it has such numbers.

    Frames call a dictionary a category: its type says that numbers are labels.
    """
    if not pa.types.is_dictionary(column.type):
        return column, False
    values = column.dictionary
    if is_text(column.type):
        return column, bool(pc.all(pc.match_substring_regex(values, r"^[+-]?\d+$")).as_py())
    whole = pa.types.is_integer(values.type)
    if pa.types.is_floating(values.type):  # a frame turns whole numbers with gaps into floats
        whole = not pc.any(pc.not_equal(values, pc.round(values))).as_py()
    return (as_texts(column, ""), True) if whole else (column, False)
