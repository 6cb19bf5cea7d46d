"""Reading tables as their owners mean them: what each column is, and how its texts are read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from hushtable.data.infer import understood
from hushtable.data.readers import Layout, Reader, as_reader, near_names
from hushtable.data.texts.columns import ColumnUnderstanding, joined_options
from hushtable.data.texts.reading import Reading
from hushtable.errors import DataError

HEADERS = ("column", "what it is", "sure", "seen", "doubt")


def row(one: ColumnUnderstanding) -> tuple[str, ...]:
    """Return a column as a row of the table."""
    sure = f"{int(100 * one.confidence)}%"
    return one.name, one.kind, sure, one.evidence, "" if one.doubt == one.evidence else one.doubt


@dataclass(frozen=True)
class Understanding:
    """Columns of a table as they were understood: iterable, and a table when printed.

    Attributes
    ----------
    columns : tuple of ColumnUnderstanding
        One for each column, in order.
    found : tuple of str
        What was found out about the file, such as its encoding, where it is out of the ordinary.
    reading : Reading
        How the texts of the columns become values.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable.data import understand
    >>> table = pa.table({"TSH": ["1.2", "0.9", "ERR"], "ward": ["a", "b", "a"]})
    >>> [(one.name, one.kind, one.option) for one in understand(table)]
    [('TSH', 'number', '--missing ERR'), ('ward', 'category', '')]
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
        """Columns that a person should look at."""
        return tuple(one for one in self.columns if one.doubt)

    @property
    def refused(self) -> tuple[ColumnUnderstanding, ...]:
        """Columns that `fit` refuses until their doubts are resolved."""
        return tuple(one for one in self.columns if one.refused)

    @property
    def options(self) -> str:
        """The options that resolve what is refused, as they are typed in a shell."""
        return joined_options((o for one in self.refused for o in one.options), self.reading)

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """A table row for each column."""
        return [row(one) for one in self.columns]

    def __str__(self) -> str:
        rows = [HEADERS, *self.rows]
        widths = [max(len(row[j]) for row in rows) for j in range(len(HEADERS) - 1)]
        lines = [
            "  ".join(
                [*(c.ljust(w) for c, w in zip(row[:-1], widths, strict=True)), row[-1]]
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, *self.found])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(header)}</th>" for header in HEADERS)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def read(
    data: Any,
    *,
    missing: Sequence[str] = (),
    decimal: str | None = None,
    dates: str | None = None,
    kinds: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    **layout: Any,
) -> Reader:
    """Say how rows are to be read; what is not said is found out, or refused where in doubt.

    Parameters
    ----------
    data : array, data frame, Arrow object, path or address
        Rows, as every method that takes rows takes them.
    missing : sequence of str
        Texts that stand for a missing value, such as ``["ERR", "-9999"]``.
    decimal : {",", "."}, optional
        Sign before the decimals.
    dates : {"dmy", "mdy", "ymd"}, optional
        Order of day, month and year.
    kinds : dict of str to {"number", "date", "category", "id"}, optional
        Kinds of columns by name. As a number, ``<0.5`` is 0.5, and what is no number is missing;
        an id is left out.
    drop, columns : sequence of str, optional
        Columns to leave out; or those to use, in this order.
    **layout
        ``encoding``, ``delimiter``, ``header``, ``skip_lines`` of a CSV file; ``sheet`` of a
        workbook; ``query`` to a database.

    Returns
    -------
    Reader
        Taken by every method that takes rows.

    Raises
    ------
    DataError
        If there is nothing to read, or a column is not there.
    UsageError
        If an option has no such value.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable import HushTable
    >>> from hushtable.data import read
    >>> table = pa.table({"id": ["a", "b", "c"], "TSH": ["1,2", "0,9", "ERR"]})
    >>> rows = read(table, decimal=",", missing=["ERR"], drop=["id"])
    >>> HushTable(random_state=0).fit(rows).plan_.schema.features[0].high
    1.2
    """
    reading = Reading(tuple(missing), decimal, dates, dict(kinds or {}), tuple(drop))  # type: ignore[arg-type]
    given = Layout(**layout)
    reader = as_reader(data, layout=given)
    reading = replace(reading, layout=given.kept)
    return chosen(reader, reading, columns)


def chosen(
    reader: Reader,
    reading: Reading,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] = (),
) -> Reader:
    """Return a reader of the columns that are used, to be read so, and of those to keep."""
    names = list(reader.names or ())
    named = [*(columns or ()), *reading.dropped, *keep]
    if lacking := sorted({name for name in named if name not in names}):
        near = near_names(lacking, names)
        raise DataError(f"{reader.source} has no column {lacking}: its columns are {names}{near}")
    used = list(columns) if columns is not None else names
    used = [name for name in used if name not in reading.dropped or name in keep]
    used += [name for name in keep if name not in used]
    if not used and names:
        raise DataError(f"{reader.source}: no column is left: leave fewer out")
    if used != names:
        reader = reader.select(used)
    return replace(reader, reading=reading)


def understand(data: Any, *, n_jobs: int | None = None, **options: Any) -> Understanding:
    """Say what each column of a table is, by one pass over all rows.

    Parameters
    ----------
    data : array, data frame, Arrow object, path or address
        Rows, as every method that takes rows takes them.
    n_jobs : int, optional
        Threads; None is one, -1 every core.
    **options
        As `read` takes them.

    Returns
    -------
    Understanding

    Raises
    ------
    DataError
        If the rows cannot be read. A doubt is no error here.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable.data import understand
    >>> [one] = understand(pa.table({"cost": ["4,5", "12,25"]}))
    >>> one.evidence
    '2 numbers with a decimal comma'
    """
    reader = read(data, **options) if options or not isinstance(data, Reader) else data
    reader = reader.repeatable()
    columns, reading, _ = understood(reader, None, n_jobs)
    return Understanding(columns, reader.found, reading)
