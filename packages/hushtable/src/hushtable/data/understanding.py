"""Reading tables as their owners mean them: the kind of each column, and how its texts are read."""

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hushtable import kernels
from hushtable.data.calendar import calendar_features
from hushtable.data.columns import as_numbers, as_texts, is_text
from hushtable.data.encoding import naming_places
from hushtable.data.history import check_named, history_names, history_unit
from hushtable.data.passes import KeptBatches, Numbered, Weights, numbered
from hushtable.data.readers import Reader, in_memory, no_rows
from hushtable.data.remedies import tried
from hushtable.data.schema import DATE, MAX_FEATURES, Feature, Schema
from hushtable.data.table_scan import TableScan
from hushtable.data.texts.decisions import (
    TableFacts,
    all_exceptions,
    decide,
    judged,
    noting_total,
    with_codes,
    with_infinities,
    without_values,
)
from hushtable.data.texts.doubt import ColumnUnderstanding, Doubt, Kind
from hushtable.data.texts.reading import ColumnReading, Reading
from hushtable.data.typed import typed, with_calendar, with_history
from hushtable.errors import DataError, PlanError
from hushtable.threads import FEW_ROWS, FEW_TO_COUNT, for_each, n_threads
from hushtable.words.doubts import evidence_words, questions
from hushtable.words.options import typed_options, way

#: Largest number of bytes per value for which rows in memory are kept after reading, so that
#: repeated texts are not looked up again.
_SMALL = 4


@dataclass(frozen=True)
class Inferred:
    """A schema derived from rows, and how the rows were read."""

    schema: Schema
    n_rows: int
    #: How texts became values, for later files.
    reading: Reading
    columns: tuple[ColumnUnderstanding, ...]
    #: The rows, which are read from memory if all of them are kept; and their bytes there.
    rows: Reader
    n_bytes: int = 0


class FirstLook(NamedTuple):
    """The columns of a table, how they are read, and the facts of the pass over its rows."""

    columns: tuple[ColumnUnderstanding, ...]
    reading: Reading
    scan: TableScan
    #: The rows, which are read from memory if all of them are kept; and their bytes there.
    rows: Reader
    n_bytes: int


def understood(
    reader: Reader, weights: Weights | None = None, n_jobs: int | None = None, n_bytes: int = 0
) -> FirstLook:
    """Read all rows once, and decide on the kind of each column; keep at most ``n_bytes`` of them.

    Raises `DataError` on an infinity, a mixture of types, or if there are no rows, but not for a
    doubt.
    """
    names = list(reader.names or (f"x{j}" for j in range(reader.n_columns)))
    if len(names) > MAX_FEATURES:  # before each is processed
        raise PlanError(f"{len(names):,} features: a schema takes at most {MAX_FEATURES:,}")
    reading = reader.reading or Reading()
    known = {*names, *reading.dropped}
    if unknown := [name for name in reading.kinds if name not in known]:
        raise DataError(f"{reader.source} has no column {unknown} (--as): its columns are {names}")
    small = in_memory(reader)
    kept = KeptBatches(n_bytes, _SMALL * reader.n_columns if small else np.inf)
    keeps = not small or ((reader.n_rows or 0) > FEW_ROWS and not reader.numeric)
    if not keeps or n_bytes == 0 or weights is not None:
        kept.clear()
    threads = n_threads(n_jobs, reader.n_rows, few=FEW_TO_COUNT)
    idle: SimpleQueue[TableScan] = SimpleQueue()
    for _thread in range(threads):
        idle.put(TableScan(names, reading))

    def look(item: Numbered) -> None:
        start, batch, _ = item
        scan = idle.get()
        try:
            kept.add(start, scan.add(batch, start))
        finally:
            idle.put(scan)

    with naming_places(reader):
        for_each(look, numbered(reader, weights), threads)
    total = idle.get()
    while not idle.empty():
        total.merge(idle.get())
    if total.n_rows == 0:
        raise no_rows(reader)
    texts = {column.name: column for column in total.columns.values() if column.n}
    table = TableFacts(reading, texts, reader)
    whose = ColumnUnderstanding(reading.entity, "id", evidence_words("entity"))
    columns = _of_matrix(total) or tuple(
        whose if name == whose.name else _decided(total, j, table, named=reader.names is not None)
        for j, name in enumerate(names)
    )
    columns = tried(columns, total, table)
    read = {column.name: column.reading for column in columns if column.reading is not None}
    reading = replace(reading, columns={**reading.columns, **read})
    # Kept numbers are useless for a column whose texts turn out to be other than plain numbers,
    # such as the date 20260515.
    parsed = (reading.columns.get(c.name) for c in total.columns.values() if c.parsed)
    if not all(column is not None and column.takes_plain_numbers for column in parsed):
        kept.clear()
    rows = kept.rows(reader, total.n_rows) or reader
    return FirstLook(columns, reading, total, rows, kept.n_bytes)


def _of_matrix(scan: TableScan) -> tuple[ColumnUnderstanding, ...]:
    """Return the columns of a matrix, which holds only numbers; none for another table."""
    if scan.columns:
        return ()
    evidence = evidence_words("number")
    return tuple(
        without_values(name)
        if low > high
        else ColumnUnderstanding(name, "number" if low < high else "constant", evidence)
        for name, low, high in zip(scan.names, scan.low, scan.high, strict=True)
    )


def _decided(scan: TableScan, j: int, table: TableFacts, *, named: bool) -> ColumnUnderstanding:
    """Return a column as it is read; ``named`` if columns have names, unlike those of a matrix."""
    name, ends = scan.names[j], (float(scan.low[j]), float(scan.high[j]))
    asks, facts, empty = name not in table.reading.kinds, scan.columns[j], ends[0] > ends[1]
    if facts.n or (empty and facts.has_texts):
        decision = noting_total(decide(facts, table), facts, table)
        if any(rule == "infinity" for rule, _text in facts.first):
            return with_infinities(decision, facts, table)
        if decision.reading is not None:
            texts = [text for (rule, _), (text, _row) in facts.first.items() if rule == "form"]
            like = decision.reading.like([*texts, *all_exceptions(facts).rows])
            decision = replace(decision, reading=like)
        if not empty and (decision.reading is None or decision.reading.is_category):
            raise DataError(
                f"column {name!r} holds numbers in some rows and text in others: make it one or "
                "the other"
            )
        if decision.kind not in ("number", "date") or decision.refused or not empty:
            return decision
        if facts.codes and asks:
            return with_codes(decision, facts.codes)
        if decision.kind == "date" or decision.doubt:
            return decision
        ends, more = (facts.low, facts.high), facts.n > facts.n_different
        return judged(decision, facts, ends, asks=asks and named, more=more)
    form = facts.form
    reading = None if form == "number" else ColumnReading(form)
    kind: Kind = "date" if form == "date" else "number"
    decision = ColumnUnderstanding(name, kind, evidence_words(form), reading=reading)
    if any(rule == "infinity" for rule, _text in facts.first):
        return with_infinities(decision, facts, table)
    if empty:
        return without_values(name)
    if facts.codes and asks and ends[0] < ends[1]:
        return with_codes(decision, facts.codes)
    return judged(decision, facts, ends, asks=asks and named, more=scan.n_rows > scan.n_first)


def schema_from_data(
    reader: Reader, weights: Weights | None = None, n_jobs: int | None = None, n_bytes: int = 0
) -> Inferred:
    """Derive a schema from the data, without the rows of weight 0.

    At most ``n_bytes`` of the rows are kept for the following passes: rows of files as numbers and
    texts, and rows in memory if this takes only a fraction of it.

    The schema is not public: every range is the minimum and maximum of the data. Raises `DataError`
    on an infinity, a column without any value, ambiguous texts, too many categories, or if there
    are no rows.
    """
    source = reader.source
    columns, reading, scan, reader, n_bytes = understood(reader, weights, n_jobs, n_bytes)
    refuse(columns, reading, source)
    if reading.entity:
        inferred = _inferred_of_history(reader, reading, columns, weights, n_jobs)
        return replace(inferred, reading=reading, columns=columns, rows=reader)
    parts, columns = _calendar(reader, reading, columns)
    features: list[Feature | None] = [_feature(column, j, scan) for j, column in enumerate(columns)]
    others = [j for j, column in enumerate(columns) if column.name != reading.time]
    again = [j for j in others if features[j] is None]
    if again:
        doubtful = [columns[j] for j in again]
        features_read = _second_look(reader, reading, again, weights, doubtful)
        for j, found_again in zip(again, features_read, strict=True):
            features[j] = found_again
    left = [feature for j in others if (feature := features[j]) is not None]
    schema = Schema((*left, *parts), public=False, named=reader.names is not None)
    return Inferred(schema, scan.n_rows, reading, columns, reader, n_bytes)


def _inferred_of_history(
    reader: Reader,
    reading: Reading,
    columns: Sequence[ColumnUnderstanding],
    weights: Weights | None,
    n_jobs: int | None,
) -> Inferred:
    check_named(reader, {"entity": reading.entity, "time": reading.time})
    names = {column.name: column.kind for column in columns}
    values = [name for name, kind in names.items() if kind == "number" and name != reading.time]
    if not values:
        raise DataError(
            f"{reader.source} has no column of varying numbers besides the entity and the time: "
            f"history needs at least one; its columns are {names}"
        )
    rows = with_history(reader, reading, values)
    kinds = {name: kind for name, kind in reading.kinds.items() if name in (rows.names or ())}
    plain = replace(reading, entity="", kinds=kinds)
    inferred = schema_from_data(replace(rows, reading=plain), weights, n_jobs)
    derived = history_names(values)
    features = (
        replace(f, unit=history_unit(f.name), neutral=True) if f.name in derived else f
        for f in inferred.schema.features
    )
    return replace(inferred, schema=replace(inferred.schema, features=tuple(features)))


def _calendar(
    reader: Reader, reading: Reading, columns: Sequence[ColumnUnderstanding]
) -> tuple[list[Feature], tuple[ColumnUnderstanding, ...]]:
    """Return the features of the time column's parts, without the hour if no row states one.

    The column's doubt then reports this.
    """
    rows = with_calendar(reader, reading)
    if not reading.time:
        return [], tuple(columns)
    [clock] = (clock for clock in columns if clock.name == reading.time)
    if clock.kind != "date":
        raise DataError(
            f"time={clock.name!r}: {clock.evidence}, but needs points in time, such as "
            "2026-02-28 14:30"
        )
    hours_read = (set(pc.unique(pa.table(batch)["hour"]).to_pylist()) for batch in rows.read())
    if any(hours - {"0", None} for hours in hours_read):
        return calendar_features(), tuple(columns)
    doubt = Doubt(clock.name, "no_hours")
    warnings.warn(f"{clock.name}: {doubt}", UserWarning, stacklevel=7)
    noted = tuple(replace(c, doubt=doubt) if c is clock else c for c in columns)
    return [feature for feature in calendar_features() if feature.name != "hour"], noted


def _feature(column: ColumnUnderstanding, j: int, scan: TableScan) -> Feature | None:
    """Return the feature of a column; None if its texts have to be read again."""
    texts = scan.columns.get(j)
    if texts is None or not texts.n:
        unit = DATE if texts is not None and texts.form == "date" else ""
        return _numeric(column.name, scan.low[j], scan.high[j], unit)
    if column.reading is None or texts.n_plain not in (0, texts.n) or scan.mixed(j):
        return None
    if column.reading.is_category and not texts.n_plain:
        return Feature.categorical(column.name, column.reading.categories(texts.texts))
    if column.reading.kind == "number" and texts.n_plain and column.reading.decimal == ".":
        return _numeric(column.name, texts.low, texts.high, column.reading.unit)
    return None


def _numeric(name: str, low: float, high: float, unit: str) -> Feature:
    if low > high:
        words = f"column {name!r}: as it is read, all its values are missing"
        raise DataError(words + way((("drop", name),)))
    try:
        return Feature.numeric(name, low=low, high=high, unit=unit)
    except ValueError as error:
        raise DataError(str(error)) from None


def _second_look(
    reader: Reader,
    reading: Reading,
    places: Sequence[int],
    weights: Weights | None,
    columns: Sequence[ColumnUnderstanding],
) -> Iterator[Feature]:
    if reader.names is not None:
        reader = reader.select([reader.names[j] for j in places])
        places = range(len(places))
    low, high = np.full((2, reader.n_columns), np.inf) * [[1.0], [-1.0]]
    texts: dict[int, Counter[str]] = {}
    for source in numbered(typed(reader, None, reading), weights):
        for start, batch, _weights in source:
            for j in places:
                column: Any = batch.column(j) if isinstance(batch, pa.RecordBatch) else batch[:, j]
                if is_text(column.type):
                    rows = pc.value_counts(as_texts(column, str(j)).drop_null()).flatten()
                    counts = dict(zip(*(col.to_pylist() for col in rows), strict=True))
                    texts.setdefault(j, Counter()).update(counts)
                else:
                    X = as_numbers(column, str(j), start)[:, np.newaxis]
                    kernels.column_ranges(X, low[j : j + 1], high[j : j + 1])
    for j, col in zip(places, columns, strict=True):
        assert col.reading is not None
        if j in texts:
            yield Feature.categorical(col.name, col.reading.categories(texts[j]))
        else:
            unit = DATE if col.reading.kind == "date" else col.reading.unit
            yield _numeric(col.name, low[j], high[j], unit)


def refuse(
    columns: Sequence[ColumnUnderstanding], reading: Reading, source: str, *, personal: bool = False
) -> None:
    """Raise `DataError` for the columns in doubt, with the options that resolve it.

    With ``personal``, columns that are ``asked`` about are enough to raise.
    """
    doubtful = [column for column in columns if column.refused or column.asked]
    if not any(column.refused or personal for column in doubtful):
        return
    options = [option for column in doubtful for option in column.options]
    what = "a column is" if len(doubtful) == 1 else f"{len(doubtful):,} columns are"
    raise DataError(
        f"{source}: {what} in doubt; correct the values, or specify how to read them.\n"
        + "\n".join(f"  {words}" for words in questions(doubtful))
        + way(options, reading.options)
    )


HEADERS = ("column", "kind", "evidence", "doubt")


@dataclass(frozen=True)
class Understanding:
    """Columns of a table as they were read: iterable, and a table when printed.

    Attributes
    ----------
    columns : tuple of ColumnUnderstanding
        One for each column, in order.
    found : tuple of str
        Facts detected about the file, such as its encoding, if they are unusual.
    reading : Reading
        How the texts of the columns become values.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable.data import understand
    >>> table = pa.table({"TSH": ["1.2", "0.9", "ERR"], "ward": ["a", "b", "a"]})
    >>> [(one.name, one.kind, one.option) for one in understand(table)]
    [('TSH', 'number', "missing=['ERR']"), ('ward', 'category', '')]
    """

    columns: tuple[ColumnUnderstanding, ...]
    found: tuple[str, ...]
    reading: Reading

    def __iter__(self) -> Iterator[ColumnUnderstanding]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def doubts(self) -> tuple[ColumnUnderstanding, ...]:
        """Columns that a person should check."""
        return tuple(column for column in self.columns if column.doubt)

    @property
    def refused(self) -> tuple[ColumnUnderstanding, ...]:
        """Columns that `fit` refuses until their doubts are resolved."""
        return tuple(column for column in self.columns if column.refused)

    @property
    def options(self) -> str:
        """Options that resolve the refused columns, as typed in a shell or in Python."""
        options = (option for column in self.refused for option in column.options)
        return typed_options(options, self.reading.options)

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """A table row for each column."""
        return [
            (c.name, c.kind, c.evidence, "" if c.question == c.evidence else c.question)
            for c in self.columns
        ]

    def __repr__(self) -> str:
        rows = [HEADERS, *self.rows]
        widths = [max(len(row[j]) for row in rows) for j in range(len(HEADERS) - 1)]
        lines = [
            "  ".join(
                [*(c.ljust(w) for c, w in zip(row[:-1], widths, strict=True)), row[-1]]
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, *self.found])
