"""Models as one SQL statement that scores the rows of a table in DuckDB or PostgreSQL.

Cuts become numbers of the table, and the scores of cells whole numbers.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.data.encoding import FARTHEST, Encoder
from hushtable.errors import UsageError
from hushtable.kernels import LEVELS
from hushtable.plans.families import RandomFeature
from hushtable_connect.exports import Format, Model
from hushtable_connect.exports._sql_dialects import (
    UNIT,
    CellScores,
    DuckDBDialect,
    PostgreSQL,
    SqlDialect,
    number,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Function:
    """One hash function: its bit has the weight ``2**place`` in its table's code."""

    feature: int
    place: int
    #: Numbers from here on are on the high side; so are missing ones if ``missing``.
    cut: float
    missing: bool
    #: For a categorical feature: sides of a missing value, of each category, of an unseen one.
    sides: str


@dataclass(frozen=True)
class Beyond:
    """How far a number is beyond its range: (low - x) / unit, or (x - high) / unit.

    It is 0 between ``below`` and ``above``, and ``farthest`` at and below ``far_below`` and at and
    above ``far_above``. If no number is that far, these two are infinite.
    """

    low: float
    high: float
    unit: float
    below: float
    above: float
    far_below: float
    far_above: float
    farthest: float = FARTHEST


class SqlContent:
    """A model in the form that a statement needs. Tables that fold their codes come first."""

    def __init__(self, model: Model, family: RandomFeature) -> None:
        self.features, self.folds = family.schema.features, model.plan.schema.labels > 0
        self._encoder, self._family = Encoder(family.schema), family
        folded = (1 << family.depth.astype(np.int64)) > family.max_cells
        self.order = np.argsort(~folded, kind="stable")
        self.n_tables = family.n_tables
        first, last = family.offsets[:-1][self.order], family.offsets[1:][self.order]
        units = np.rint(model.scorer.values * UNIT).astype(np.int64)
        values = np.concatenate([units[a:b] for a, b in zip(first, last, strict=True)])
        starts = np.cumsum(last - first) - (last - first) + 1
        self.cells = CellScores(values, starts, family.max_cells - 1, int(folded.sum()))
        numeric = any(feature.kind == "numeric" for feature in self.features)
        #: If no number can be beyond its range, no score is reduced for it.
        self.margin = family.margin / LEVELS if numeric else 0.0
        self.depth = family.least(model.scorer.values) / family.n_tables - 1.0
        self.threshold = model.threshold

    def functions(self) -> list[list[Function]]:
        """Return the hash functions of each table."""
        family = self._family
        cuts, ends = self._cuts(), np.cumsum(family.depth, dtype=np.int64)
        codes = []
        for t in self.order.tolist():
            depth, end = int(family.depth[t]), int(ends[t])
            codes.append([self._function(h, end - 1 - h, cuts) for h in range(end - depth, end)])
        return codes

    def _function(self, h: int, place: int, cuts: Floats) -> Function:
        family = self._family
        at, size = int(family.subset_at[h]), int(family.subset_sizes[h])
        sides = "".join(map(str, family.subsets[at : at + size].tolist())) if size else ""
        return Function(
            int(family.feature[h]), place, float(cuts[h]), bool(family.missing[h]), sides
        )

    def _cuts(self) -> Floats:
        of = self._family.feature
        low, scale = self._encoder.low[of], self._encoder.scale[of]
        level = self._family.cut - 1.0
        return first_number(lambda x: (x - low) * scale >= level, len(level))

    def beyond(self) -> dict[int, Beyond]:
        """Return, for each numeric feature, how far a number is beyond its range."""
        if self.margin == 0.0:
            return {}
        low, high, unit = self._encoder.low, self._encoder.high, self._encoder.unit
        n = len(low)
        # On the low side, numbers are negated, so that they rise.
        far = first_number(lambda x: excess(-x, low, unit) >= FARTHEST, n)
        lower = first_number(lambda x: excess(-x, low, unit) > 0.0, n)
        far_above = first_number(lambda x: excess(high, x, unit) >= FARTHEST, n)
        above = first_number(lambda x: excess(high, x, unit) > 0.0, n)
        columns = zip(low, high, unit, -lower, above, -far, far_above, strict=True)
        return {
            j: Beyond(*map(float, values))
            for j, (feature, values) in enumerate(zip(self.features, columns, strict=True))
            if feature.kind == "numeric"
        }


def excess(a: Floats, b: Floats, unit: Floats) -> Floats:
    """Return (b - a) / unit, as the library divides it."""
    with np.errstate(over="ignore"):
        return np.asarray((b - a) / unit, np.float64)


def first_number(holds: Callable[[Floats], Any], n: int) -> Floats:
    """Return the least finite float64 (n,) from which on each condition holds, else infinity.

    ``holds`` takes (n,) numbers, and stays true for larger ones. The function halves the numbers,
    in the order of their bits, until one is left. This makes cuts exact in a runtime that only
    compares.
    """
    largest = int(np.float64(np.finfo(np.float64).max).view(np.int64))
    low, high = np.full(n, -largest - 1), np.full(n, largest + 1)
    while (wide := low + 1 < high).any():
        # Adds halves, because the distance exceeds int64.
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        with np.errstate(over="ignore", invalid="ignore"):
            true = np.asarray(holds(_number(middle)))
        high = np.where(wide & true, middle, high)
        low = np.where(wide & ~true, middle, low)
    return np.where(high > largest, np.inf, _number(high))


def _number(place: Ints) -> Floats:
    size = np.abs(place).view(np.float64)
    return np.where(place < 0, -size, size)


#: By the name that `written` takes.
DIALECTS: dict[str, SqlDialect] = {"duckdb": DuckDBDialect(), "postgresql": PostgreSQL()}
#: Columns that the statement adds to the table's columns.
COLUMNS = ("hush_score", "hush_outlier")


def written(model: Model, *, dialect: str = "duckdb", table: str | Sequence[str] = "data") -> bytes:
    """Return a statement that scores the rows of a table.

    It selects all columns of the table, then ``hush_score``, bit-identical to `score_samples`, and
    ``hush_outlier``, whether the score is below the threshold, or NULL if there is too much noise
    for a threshold.

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
    features = model.plan.schema.features
    for feature in features:
        if feature.name.lower() in COLUMNS:
            raise UsageError(
                f"the statement adds a column {feature.name!r}, but the model has one: rename it"
            )
    sql.check(features)
    content = SqlContent(model, family)
    source = _scored(sql, content, _table(sql, table))
    last = ", ".join(
        f'q.{column} AS "{name}"'
        for column, name in zip(("score", "outlier"), COLUMNS, strict=True)
    )
    head = f"-- Scores rows as hushtable does, with plan {model.plan.plan_id}.\n"
    return f"{head}SELECT {sql.columns}, {last}\nFROM (\n{source}\n) AS q\n".encode()


def _table(sql: SqlDialect, table: str | Sequence[str]) -> str:
    parts = [table] if isinstance(table, str) else [*table]
    if not parts or not all(parts):
        raise UsageError(f"table {table!r}: needs the name of a table")
    return ".".join(sql.identifier(part, "the table's name") for part in parts)


def _scored(sql: SqlDialect, content: SqlContent, table: str) -> str:
    # For feature j, x is the number, and k is the place of the category; b holds how far numbers
    # are beyond their ranges.
    source = _values(sql, content, table)
    m = number(content.n_tables)
    codes = ", ".join(_code(sql, functions) for functions in content.functions())
    codes = sql.array.format(codes, "BIGINT")
    columns, sums = ["q.r", f"{codes} AS c"], sql.sums(content.cells)
    if content.margin:
        beyond, d = content.beyond(), range(len(content.features))
        parts = (_beyond(f"q.x{j}", beyond[j]) if j in beyond else "0e0" for j in d)
        columns.append(f"{sql.array.format(', '.join(parts), 'DOUBLE PRECISION')} AS b")
        sums.append(f"{sql.total.format('q.b')} AS e")
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
    return f"SELECT {', '.join(columns)}\nFROM (\n{source}\n) AS q{sql.fence}"


def _signed(value: float) -> str:
    return f"({number(value)})"


def _beyond(x: str, end: Beyond) -> str:
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
    # No square overflows or underflows.
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
    bits = []
    for function in functions:
        x, weight = f"q.x{function.feature}", 1 << function.place
        cut = _signed(function.cut) if math.isfinite(function.cut) else "'Infinity'"
        if function.sides:
            bits.append(f"{sql.side.format(function.sides, f'q.k{function.feature}')} * {weight}")
        elif function.missing:  # NULL is not below
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
