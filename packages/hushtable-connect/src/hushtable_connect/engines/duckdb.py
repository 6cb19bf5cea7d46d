"""Functions that score and count rows inside a DuckDB query, with Arrow vectors.

Results are bit-identical to the library's. They need the extra ``databases``.
"""

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import pyarrow as pa

from hushtable.counts.sketch import Sketch
from hushtable.data.schema import DATE, Feature
from hushtable.errors import MissingExtraError, UsageError
from hushtable.plans.plan import Plan
from hushtable.scores.scorer import Scorer
from hushtable_connect.engines.work import (
    call,
    check_name,
    check_plan,
    count,
    counts_of,
    packed,
    quoted,
    reading_of,
    rows_of,
    score,
)

__all__ = ["register_score", "register_sketch"]


def register_score(connection: Any, model: Any, name: str = "hush_score") -> str:
    """Register a model as a function of a DuckDB connection, from a row's columns to its score.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        The connection, which has the function until it is closed.
    model : detector, Sketch, Release or LocalModel
        The model that scores; a detector has to be fitted.
    name : str, default="hush_score"
        The function's name.

    Returns
    -------
    str
        The call to write into a query, with the model's columns in their order. The function takes
        numbers as DOUBLE, categories as VARCHAR, and dates as TIMESTAMP; NULL is a missing value.
        It returns a DOUBLE, low = abnormal.

    Raises
    ------
    UsageError
        If this is not a connection or not a model, or the name is taken or not a plain name.
    MissingExtraError
        If DuckDB is not installed.

    Examples
    --------
    >>> import duckdb
    >>> from hushtable import Feature, Plan, Schema, Sketch
    >>> from hushtable_connect.engines.duckdb import register_score
    >>> plan = Plan.draw(Schema([Feature.numeric("age", low=0, high=99)]), random_state=0)
    >>> connection = duckdb.connect()
    >>> register_score(connection, Sketch.from_data(plan, [[30.0], [31.0], [80.0]]))
    'hush_score("age")'
    >>> connection.execute("SELECT hush_score(30) > hush_score(80)").fetchall()[0]
    (True,)
    """
    counts, reading = counts_of(model), reading_of(model)
    scorer, schema = Scorer(counts), counts.plan.schema.of_rows

    def scores(*columns: Any) -> pa.Array:
        return pa.array(score(scorer, rows_of(columns, schema.names), reading))

    types = [_type(feature) for feature in schema.features]
    _create(connection, name, scores, types, "DOUBLE")
    return call(name, schema.names, '"')


def register_sketch(connection: Any, plan: Plan, name: str = "hush_sketch") -> str:
    """Register counting under a plan as a function of a DuckDB connection, from rows to a sketch.

    DuckDB collects the rows of each group in a list, and the function counts them. To count all
    rows of a query in the memory of one batch, pass the relation to ``Sketch.from_data``.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        The connection, which has the function until it is closed.
    plan : Plan
        The plan to count under.
    name : str, default="hush_sketch"
        The function's name.

    Returns
    -------
    str
        The call to write into a query with or without GROUP BY, on a list of the plan's columns.
        The function returns a BLOB, which `hushtable_connect.engines.sketch_of` converts to a
        sketch. It holds exact counts: protect it like the rows.

    Raises
    ------
    UsageError
        If this is not a connection or not a plan, or the name is taken or not a plain name.
    MissingExtraError
        If DuckDB is not installed.

    Examples
    --------
    >>> import duckdb
    >>> from hushtable import Feature, Plan, Schema
    >>> from hushtable_connect.engines import sketch_of
    >>> from hushtable_connect.engines.duckdb import register_sketch
    >>> plan = Plan.draw(Schema([Feature.numeric("age", low=0, high=99)]), random_state=0)
    >>> connection = duckdb.connect()
    >>> sketched = register_sketch(connection, plan)
    >>> rows = "(SELECT range AS age FROM range(40))"
    >>> (found,) = connection.execute(f"SELECT {sketched} FROM {rows}").fetchall()[0]
    >>> sketch_of(plan, found).n_rows
    40
    """
    check_plan(plan)
    fields = {feature.name: _type(feature) for feature in plan.schema.of_rows.features}
    columns = [quoted(one, '"') for one in fields]

    def sketches(groups: Any) -> pa.Array:
        # For no rows, the list is NULL.
        rows = (pa.Table.from_struct_array(one.values) if one.is_valid else None for one in groups)
        found = (Sketch.zero(plan) if one is None else count(plan, one) for one in rows)
        return pa.array([packed(one) for one in found], pa.binary())

    duckdb = _duckdb()
    rows_type = duckdb.list_type(duckdb.struct_type(fields))
    _create(connection, name, sketches, [rows_type], "BLOB")
    return f"{name}(list(struct_pack({', '.join(f'{one} := {one}' for one in columns)})))"


def _type(feature: Feature) -> str:
    if feature.kind == "categorical":
        return "VARCHAR"
    return "TIMESTAMP" if feature.unit == DATE else "DOUBLE"


def _create(
    connection: Any, name: str, function: Callable[..., pa.Array], types: list[Any], gives: str
) -> None:
    """Register a function that is called for NULL, too."""
    duckdb = _duckdb()
    check_name(name)
    if not isinstance(connection, duckdb.DuckDBPyConnection):
        raise UsageError(
            f"{type(connection).__name__} is not a DuckDB connection: use duckdb.connect()"
        )
    # DuckDB needs as many named parameters as there are types.
    places = [Parameter(f"_{j}", Parameter.POSITIONAL_ONLY) for j in range(len(types))]
    function.__signature__ = Signature(places)  # type: ignore[attr-defined] # of any callable
    try:
        connection.create_function(
            name, function, types, gives, type="arrow", null_handling="special"
        )
    except duckdb.NotImplementedException as error:
        raise UsageError(
            f"{name} is already a function of this connection: give another name=, or remove it, "
            f"connection.remove_function({name!r}) ({error})"
        ) from None


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("this engine", "DuckDB", "databases") from None
    return duckdb
