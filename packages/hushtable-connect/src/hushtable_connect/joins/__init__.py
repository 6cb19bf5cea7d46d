"""Several tables: features of one table's rows joined to the rows of another table by a key.

`request` parses ``--join``, `aggregates` computes the features of each key with DuckDB, and `rows`
makes them columns of rows. It needs the extra ``databases``; tested in ``tests/test_joins.py``.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hushtable.data.readers import Reader, as_reader
from hushtable.data.texts.reading import Reading
from hushtable.errors import DataError, UsageError, explain
from hushtable_connect.joins.aggregates import KeyedFeatures, keyed_features
from hushtable_connect.joins.request import JoinRequest, parse_features, table_name
from hushtable_connect.joins.rows import rows_of_keys, with_features

__all__ = ["grouped", "joined"]


def joined(
    rows: Any, other: Any, *, on: str | tuple[str, str], features: Sequence[str], name: str = ""
) -> Reader:
    """Join features of another table's rows to the rows with the same key.

    The rows, their number, and their order stay. If a row has no counterpart, its count is 0, and
    other features are missing. If a row has no key, all features are missing.

    Parameters
    ----------
    rows : array, data frame, Arrow object, path or Reader
        Rows, as `hushtable.data.read` takes them, with names.
    other : array, data frame, Arrow object, path or Reader
        The other table, which can have several rows with the same key.
    on : str or tuple (str, str)
        The column that holds the key, in both tables; or the column of the rows and the column of
        the other table. Keys are compared as texts, without blanks around them, and with composed
        accents.
    features : sequence of str
        ``"count"``; ``"mean of value"``, or count, distinct, median, sum, min, max, std;
        ``"last of value by date"``, or first; ``"last date"`` of a column of dates;
        ``"share of ward=ICU"``.
    name : str, optional
        The beginning of the features' names; default: the name of the other table's file, up to
        the first point.

    Returns
    -------
    Reader
        The rows, with a column for each feature, such as ``visits.mean_value``. Its ``found``
        reports how many rows and keys have no counterpart.

    Raises
    ------
    DataError
        If a column is missing, its type is in doubt, it has no values of the kind that a feature
        needs, or no key of the rows is in the other table.
    UsageError
        If a feature is not understood.
    MissingExtraError
        If DuckDB is not installed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable_connect.joins import joined
    >>> patients = pa.table({"patient": ["a", "b", "c"], "age": [31, 58, 44]})
    >>> visits = pa.table({"patient": ["b", "a", "b"], "value": [1.0, 5.0, 2.0]})
    >>> rows = joined(patients, visits, on="patient", features=["count", "mean of value"], name="v")
    >>> [batch.column("v.mean_value").to_pylist() for batch in rows.read()]
    [[5.0, 1.5, None]]
    >>> rows.found
    ('1 of 3 rows has no row in v',)
    """
    here, there = (on, on) if isinstance(on, str) else on
    table = as_reader(other)
    in_memory = table.source == "the data"
    if in_memory and not name:
        raise UsageError("name: needs the beginning of the features' names, such as name='visits'")
    name = name or table_name(table.source)
    table = replace(table, source=name) if in_memory else table
    request = JoinRequest(here, there, parse_features(features), table.source, name)
    own = table.reading or Reading()
    kinds = {request.named(column): kind for column, kind in own.kinds.items()}
    keyed = keyed_features(table, request, replace(own, kinds=kinds))
    return with_features(as_reader(rows), request, keyed)


def grouped(rows: Any, *, on: str, features: Sequence[str]) -> Reader:
    """Combine all rows with the same key into one row.

    Parameters
    ----------
    rows : array, data frame, Arrow object, path or Reader
        Rows, as `hushtable.data.read` takes them, with names. Those without a key are left out.
    on : str
        The column that holds the key.
    features : sequence of str
        As `joined` takes them.

    Returns
    -------
    Reader
        A row for each key, in the order of their first rows: the key and the features, such as
        ``mean_value``.

    Raises
    ------
    DataError
        If a column is missing, its type is in doubt, or it has no values of the kind that a feature
        needs.
    UsageError
        If a feature is not understood.
    MissingExtraError
        If DuckDB is not installed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hushtable_connect.joins import grouped
    >>> visits = pa.table({"patient": ["b", "a", "b"], "value": [1.0, 5.0, 2.0]})
    >>> rows = grouped(visits, on="patient", features=["count", "mean of value"])
    >>> [batch.to_pydict() for batch in rows.read()]
    [{'patient': ['b', 'a'], 'count': [2, 1], 'mean_value': [1.5, 5.0]}]
    """
    table = as_reader(rows)
    request = JoinRequest(on, on, parse_features(features))
    keyed = keyed_features(table, request, table.reading or Reading())
    return rows_of_keys(table, request, keyed)


class Joins:
    """The tables that ``--join`` names; an extension that the options of rows load.

    Parameters
    ----------
    texts : sequence of str
        Values of the option.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._requests = [JoinRequest.parse(text) for text in texts]
        if any(one.file is None for one in self._requests[1:]):
            raise UsageError(
                "--join on KEY, without FILE, makes the rows: give it once, before any other --join"
            )
        #: The last features of each table, and how they were read, for several files of rows.
        self._kept: dict[JoinRequest, tuple[Reading, KeyedFeatures]] = {}

    @property
    def files(self) -> list[str]:
        """Where the tables are."""
        return [one.file for one in self._requests if one.file is not None]

    def added(self, rows: Reader, said: Reading) -> Reader:
        """Return rows with the features; ``said`` is how texts become values."""
        for request in self._requests:
            if request.file is None:
                rows = rows_of_keys(rows, request, keyed_features(rows, request, said))
                continue
            before, keyed = self._kept.get(request, (None, None))
            if keyed is None or before != said:
                keyed = _of_file(request, said)
                self._kept[request] = said, keyed
            rows = with_features(rows, request, keyed)
        return rows


def _of_file(request: JoinRequest, said: Reading) -> KeyedFeatures:
    """Return the features of a file; the option gives its layout, or the layout is detected."""
    assert request.file is not None
    encoding = said.layout.get("encoding")
    kept = {} if encoding is None else {"encoding": encoding}
    try:
        table = as_reader(request.file, layout=request.layout, kept=kept)
    except (DataError, UsageError) as error:
        if "--" not in str(error):
            raise
        raise type(error)(
            f"{error} (for the FILE of --join, in brackets after its name: FILE (sheet=Visits) "
            "on ...)"
        ) from None
    except OSError as error:
        raise DataError(f"cannot read {request.file} (--join): {explain(error)}") from None
    return keyed_features(table, request, said)
