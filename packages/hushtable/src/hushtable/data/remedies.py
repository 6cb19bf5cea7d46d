"""The guard: an option that resolves a doubt is proposed only if it was tried, and does no harm.

An option is applied to a sample of a column's texts, which are then read again. It does harm if it

- leaves no value,
- loses values that another option keeps: texts with a digit in more than a tenth of the rows,
- changes a value by a factor of a hundred or more, or
- removes values of other columns, or turns names into a row, or a row into names.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from hushtable.data.columns import as_texts, texts_column
from hushtable.data.readers import Reader
from hushtable.data.readers.dialect import is_unit
from hushtable.data.table_scan import TableScan, facts_of
from hushtable.data.texts.column_facts import FEW, ColumnFacts, Exceptions
from hushtable.data.texts.decisions import TableFacts, all_exceptions, as_kind, decide, n_lost
from hushtable.data.texts.doubt import ColumnUnderstanding, Doubt
from hushtable.words.doubts import Loss
from hushtable.words.options import Option

#: Largest share of the rows of numbers, and of dates, that an option may lose.
_LOST, _LOST_DATES = 0.1, 0.5
#: Most rows of the sample with one text.
_TIMES = 20
#: Factor between two readings of a text from which they are on two scales.
_SCALE = 100.0
#: Share of the rows with other texts below which a column holds numbers.
_FEW_ODD = 0.2
#: Rows that may hold names below a title; lines of a file to show.
_MOST_NAMES, _LINES = 5, 3


def tried(
    columns: Sequence[ColumnUnderstanding], scan: TableScan, table: TableFacts
) -> tuple[ColumnUnderstanding, ...]:
    """Return columns in doubt with the options that do no harm.

    Where none is left, the doubt shows some lines of the file.
    """
    columns = _with_names_below(columns, scan, table.reader)
    return tuple(
        replace(column, doubt=_guarded(column, column.doubt, scan.facts(j), scan, table))
        if column.doubt
        else column
        for j, column in enumerate(columns)
    )


def _guarded(
    column: ColumnUnderstanding,
    doubt: Doubt,
    facts: ColumnFacts,
    scan: TableScan,
    table: TableFacts,
) -> Doubt:
    more = dict(doubt.facts)
    for options in _ways(doubt, facts):
        if not options:
            continue
        lost, harms = _effect(options, column, facts, table)
        if options == doubt.options and options[0][0] == "as" and lost.n:
            more["loss"] = Loss(options[0], lost.n, facts.n, table.examples(lost))
        if not harms:
            limited = tuple(  # a code is limited to its column if others hold it as a value
                (field, f"{column.name}:{text}")
                if field == "missing" and _is_elsewhere(column.name, text, scan)
                else (field, text)
                for field, text in options
            )
            return replace(doubt, options=limited, facts=more)
    if doubt.refused and doubt.place:
        more["lines"] = tuple(_lines(facts, doubt.example, table.reader))
    return replace(doubt, options=(), facts=more)


def _ways(doubt: Doubt, facts: ColumnFacts) -> Iterator[tuple[Option, ...]]:
    if not doubt.options:
        return
    yield doubt.options
    if doubt.kind == "exceptions":
        named = doubt.options[0][0] == "missing"
        if named:
            yield (as_kind(facts, "number"),)
        # Most are numbers, and nearly each is in one row: these are no categories.
        numbers = 2 * len(facts.texts) > facts.n > doubt.facts["n"] / _FEW_ODD
        if (named and not numbers) or len(facts.texts) <= FEW:
            yield (as_kind(facts, "category"),)
        yield (("drop", facts.name),)


def _effect(
    options: Sequence[Option], decision: ColumnUnderstanding, facts: ColumnFacts, table: TableFacts
) -> tuple[Exceptions, bool]:
    """Read a sample of a column's texts again with options, and compare.

    Return the texts that the options lose, and whether they do harm.
    """
    odd = all_exceptions(facts)
    if facts.n == 0 or options[0][0] not in ("missing", "as"):
        return Exceptions(), False
    rows = Counter(odd.rows) | facts.texts
    ends = {facts.low, facts.high, *facts.inner} if facts.n_plain else set()
    rows.update({f"{end:.10g}": facts.n_plain for end in sorted(ends) if np.isfinite(end)})
    kinds = dict(value.rpartition("=")[::2] for field, value in options if field == "as")
    missing = [value for field, value in options if field == "missing"]
    usual = table.reading
    reading = replace(
        usual, kinds={**usual.kinds, **kinds}, missing=(*usual.missing, *missing), columns={}
    )
    texts = list(rows)
    column = texts_column(texts)
    again = facts_of(facts.name, reading)
    sample = texts_column([text for text in texts for _ in range(min(rows[text], _TIMES))])
    again.add(reading.without_missing(sample, facts.name), 0)
    if again.n == 0:
        return odd, True
    other = replace(table, reading=reading, columns={**table.columns, facts.name: again})
    read = decide(again, other).reading
    if read is None or read.is_category:
        return Exceptions(), False
    after = read.values(reading.without_missing(column, facts.name, read.decimal))
    before = after if decision.reading is None else decision.reading.values(column)
    lost = Exceptions()
    for text, value in zip(texts, after, strict=True):
        if value != value and text in odd.rows:
            lost.add(text, odd.rows[text], odd.first[text])
    kind = "date" if read.kind == "date" else "number"
    if options[0][0] == "as":
        lost.n = max(lost.n, n_lost(facts, kind, read.dates))
    most = (_LOST_DATES if kind == "date" else _LOST) * facts.n
    # A program's error, such as #DIV/0!, is no value.
    are_values = options[0][0] == "as" or all(re.match(r"[^#]*\d", text) for text in lost.rows)
    are_codes = decision.doubt is not None and decision.doubt.kind == "codes"  # which are no values
    with np.errstate(all="ignore"):
        scale = np.abs(np.log(np.abs(after / before)))
    moved = bool((scale[np.isfinite(scale)] >= np.log(_SCALE)).any()) and kind == "number"
    many = are_values and not are_codes and lost.n > most
    return lost, many or moved or bool(np.isnan(after).all())


def _is_elsewhere(name: str, text: str, scan: TableScan) -> bool:
    number = float(text) if re.fullmatch(r"-?\d+(\.\d+)?", text) else None
    for j, other in enumerate(scan.names):
        if other == name:
            continue
        facts = scan.facts(j)
        low, high = min(facts.low, scan.low[j]), max(facts.high, scan.high[j])
        if number is not None and low <= number <= high:
            return True
        others = facts.others
        values = facts.n - others.n
        # A text among numbers or dates is no value.
        mostly = 2 * values >= facts.n or (values > 0 and len(others.rows) == 1)
        if facts.texts[text] and not (text in others.rows and mostly):
            return True
    return False


def _lines(facts: ColumnFacts, text: str, reader: Reader) -> Iterator[str]:
    rows = [odd.first[text] for odd in facts.exceptions.values() if text in odd.first]
    if not rows:
        return
    numbers = np.arange(min(rows), min(rows) + _LINES)
    for batch in reader.take(numbers).read():
        if isinstance(batch, pa.RecordBatch):
            texts = [as_texts(column, "").to_pylist() for column in batch.columns]
            yield from (
                (reader.delimiter or ", ").join(text or "" for text in row)
                for row in zip(*texts, strict=True)
            )


def _with_names_below(
    columns: Sequence[ColumnUnderstanding], scan: TableScan, reader: Reader
) -> Sequence[ColumnUnderstanding]:
    """Return columns, with an option for the first rows if these hold names, or units.

    Each column of numbers or dates then holds another word in the same first rows, and no word
    again.
    """
    if not scan.columns:
        return columns
    values = [j for j, column in enumerate(columns) if column.kind in ("number", "date")]
    odd = [scan.facts(j).others for j in values if scan.facts(j).n]
    rows = {tuple(sorted(others.first.values())) for others in odd}
    again = any(times > 1 for others in odd for times in others.rows.values())
    if len(values) < 2 or len(odd) < len(values) or len(rows) != 1 or again:
        return columns
    [first] = rows
    names = {max(others.first, key=others.first.__getitem__) for others in odd if others.first}
    whole = not any(facts.n_missing for facts in scan.columns.values())
    if not 0 < len(first) <= _MOST_NAMES or first != tuple(range(len(first))):
        return columns
    where = reader.place(len(first) - 1)
    line = re.search(r"\d+", where)
    if line is None:
        return columns
    if len(first) == 1 and 2 * sum(map(is_unit, names)) >= len(names):
        what, options = "below", (("skip_below", "1"),)
    elif whole and len(names) == len(odd):
        what, options = "names", (("skip_lines", str(int(line[0]) - 1)),)
    else:
        return columns
    return [
        column
        if j not in values or column.doubt is None
        else replace(
            column,
            doubt=replace(column.doubt, options=options, facts={**column.doubt.facts, what: where}),
        )
        for j, column in enumerate(columns)
    ]
