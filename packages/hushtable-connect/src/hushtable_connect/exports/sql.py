"""Models as one SQL statement that scores the rows of a table in DuckDB or PostgreSQL."""

import math
from collections.abc import Sequence

from hushtable.errors import UsageError
from hushtable.plans.families import RandomFeature
from hushtable_connect.exports import Format, Model
from hushtable_connect.exports._sql_content import UNIT, Beyond, Function, SqlContent
from hushtable_connect.exports._sql_dialects import DuckDBDialect, PostgreSQL, SqlDialect, number

#: By the name that `written` takes.
DIALECTS: dict[str, SqlDialect] = {"duckdb": DuckDBDialect(), "postgresql": PostgreSQL()}
#: Columns that the statement adds to the table's columns.
COLUMNS = ("hush_score", "hush_outlier", "hush_reason")


def written(model: Model, *, dialect: str = "duckdb", table: str | Sequence[str] = "data") -> bytes:
    """Return a statement that scores the rows of a table.

    It selects all columns of the table, then ``hush_score``, bit-identical to `score_samples`;
    ``hush_outlier``, whether the score is below the threshold, or NULL if there is too much noise
    for a threshold; and, for outliers, ``hush_reason``, the feature with the largest share by
    `Explainer.explain`.

    Parameters
    ----------
    model : Model
        A model of HushTable or LSHiTables. If it was fitted to a matrix, columns are x0, x1, ...
    dialect : {"duckdb", "postgresql"}
        The database.
    table : str, or sequence of str
        The table's name without quotes; in a schema, ``("schema", "table")``.

    Returns
    -------
    bytes
        UTF-8, without a semicolon at the end, so that it can become a view or a part of another
        statement.

    Raises
    ------
    UsageError
        If the tables are of another detector, or a name cannot be written in SQL.
    """
    if dialect not in DIALECTS:
        raise UsageError(f"dialect {dialect!r}: needs one of {', '.join(DIALECTS)}")
    sql, family = DIALECTS[dialect], model.plan.family
    if not isinstance(family, RandomFeature):
        raise UsageError(
            f"{family.name} tables: SQL needs HushTable or LSHiTables, whose hash functions "
            "compare one column with one number; export to ONNX or JSON, or fit one of these"
        )
    _check_names(sql, model)
    content = SqlContent(model, family)
    source = _scored(sql, content, _table(sql, table))
    last = ", ".join(
        f'q.{column} AS "{name}"'
        for column, name in zip(("score", "outlier", "reason"), COLUMNS, strict=True)
    )
    head = f"-- Scores rows as hushtable does, with plan {model.plan.plan_id}.\n"
    when = "outlier" if math.isfinite(content.threshold) else "TRUE"
    source = sql.reasons(source, content, when)
    return f"{head}SELECT {sql.columns}, {last}\nFROM (\n{source}\n) AS q\n".encode()


def _check_names(sql: SqlDialect, model: Model) -> None:
    features = model.plan.schema.features
    for feature in features:
        if feature.name.lower() in COLUMNS:
            raise UsageError(
                f"the statement adds a column {feature.name!r}, but the model has one: rename it"
            )
    sql.check(features)


def _table(sql: SqlDialect, table: str | Sequence[str]) -> str:
    parts = [table] if isinstance(table, str) else [*table]
    if not parts or not all(parts):
        raise UsageError(f"table {table!r}: needs the name of a table")
    return ".".join(sql.identifier(part, "the table's name") for part in parts)


def _scored(sql: SqlDialect, content: SqlContent, table: str) -> str:
    """Return a query of the rows r, their codes c, and the values that follow from them.

    For feature j, x is the number, and k is the place of the category; b holds how far numbers are
    beyond their ranges.
    """
    source = _values(sql, content, table)
    m = number(content.n_tables)
    codes = sql.array((_code(sql, functions) for functions in content.functions()), "BIGINT")
    columns, sums = ["q.r", f"{codes} AS c"], sql.sums(content)
    if content.margin:
        beyond, d = content.beyond(), range(len(content.features))
        found = (_beyond(f"q.x{j}", beyond[j]) if j in beyond else "0e0" for j in d)
        columns.append(f"{sql.array(found, 'DOUBLE')} AS b")
        sums.append(f"{sql.total('q.b')} AS e")
    source = _from(sql, source, columns)
    source = _from(sql, source, ["q.*", *sums])
    source = _from(sql, source, ["q.*", f"q.total / {UNIT}e0 / {m} AS clipped"])
    score = "q.clipped"
    if content.margin:
        source = _from(sql, source, ["q.*", f"{_share_lost(content.margin)} AS p"])
        lost = f"q.p * (q.clipped - {_signed(content.depth)}) AS lost"
        source, score = _from(sql, source, ["q.*", lost]), "q.clipped - q.lost"
    source = _from(sql, source, ["q.*", f"{score} AS score"])
    line = math.isfinite(content.threshold)
    below = f"q.score < {_signed(content.threshold)}" if line else "CAST(NULL AS BOOLEAN)"
    return _from(sql, source, ["q.*", f"{below} AS outlier"])


def _values(sql: SqlDialect, content: SqlContent, table: str) -> str:
    """Return a query of the rows r, their numbers x and the places k of their categories."""
    read, clean = [f"{sql.row} AS r"], ["q.r"]
    for j, feature in enumerate(content.features):
        column = "d." + sql.identifier(feature.name, "a column's name")
        if feature.kind == "categorical":
            read.append(f"{sql.category(column, feature, folds=content.folds)} AS k{j}")
            clean.append(f"q.k{j}")
        else:
            read.append(f"{sql.number(column, feature)} AS x{j}")
            clean.append(f"{sql.finite(f'q.x{j}', feature)} AS x{j}")
    return _from(sql, f"SELECT {', '.join(read)}\nFROM {table} AS d{sql.fence}", clean)


def _from(sql: SqlDialect, source: str, columns: Sequence[str]) -> str:
    """Return a query of columns of another."""
    return f"SELECT {', '.join(columns)}\nFROM (\n{source}\n) AS q{sql.fence}"


def _signed(value: float) -> str:
    return f"({number(value)})"


def _beyond(x: str, end: Beyond) -> str:
    """Return how far a number is beyond its range, in ranges."""
    cases = [
        (x, "<=", end.far_below, number(end.farthest)),
        (x, "<=", end.below, f"({_signed(end.low)} - {x}) / {number(end.unit)}"),
        (x, ">=", end.far_above, number(end.farthest)),
        (x, ">=", end.above, f"({x} - {_signed(end.high)}) / {number(end.unit)}"),
    ]
    when = " ".join(
        f"WHEN {x} {sign} {_signed(place)} THEN {then}"
        for x, sign, place, then in cases
        if math.isfinite(place)
    )
    return f"CASE {when} ELSE 0e0 END"


def _share_lost(margin: float) -> str:
    """Return the share that a row loses beyond its range; no square overflows or underflows."""
    far, near = (
        f"(q.e / ({number(margin)} + q.e))",
        f"({number(margin)} / ({number(margin)} + q.e))",
    )
    return (
        f"CASE WHEN q.e < {number(margin * 1e-30)} THEN 0e0 "
        f"WHEN q.e > {number(margin * 1e12)} THEN 1e0 "
        f"ELSE {far} * {far} / ({near} * {near} + {far} * {far}) END"
    )


def _code(sql: SqlDialect, functions: list[Function]) -> str:
    """Return the code of a table: the bits of its hash functions."""
    bits = []
    for one in functions:
        x, weight = f"q.x{one.feature}", 1 << one.place
        cut = _signed(one.cut) if math.isfinite(one.cut) else "'Infinity'"
        if one.sides:
            bits.append(f"{sql.side(one.sides, f'q.k{one.feature}')} * {weight}")
        elif one.missing:  # NULL is not below
            bits.append(f"CASE WHEN {x} < {cut} THEN 0 ELSE {weight} END")
        else:
            bits.append(f"CASE WHEN {x} >= {cut} THEN {weight} ELSE 0 END")
    return " + ".join(bits)


FORMAT = Format(
    "a SQL statement",
    "it scores the rows of a table when it runs in the database",
    written,
    ("dialect", "table"),
)
