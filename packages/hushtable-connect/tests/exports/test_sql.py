"""Models as SQL, against the library: the same bits and flags on both engines."""

import os
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import scored
from hushtable import Feature, HushTable, LSHiTables, Plan, Schema, Sketch
from hushtable.errors import UsageError
from hushtable_bench import RSHash
from hushtable_connect.exports import Model
from hushtable_connect.exports.sql import COLUMNS, DIALECTS, written

# Some of the hostile categories are words for a missing value.
pytestmark = pytest.mark.filterwarnings("ignore:(?s).*mean that the value is missing")

duckdb = pytest.importorskip("duckdb", reason="needs hushtable[databases]")

ENGINES = list(DIALECTS)


class DuckDB:
    """A database in memory."""

    def __init__(self):
        self.connection = duckdb.connect()

    def store(self, rows, name="data"):
        self.connection.register("given", rows)
        quoted = '"' + name.replace('"', '""') + '"'
        self.connection.execute(f"CREATE OR REPLACE TABLE {quoted} AS SELECT * FROM given")

    def ask(self, statement):
        return self.connection.sql(statement).to_arrow_table()


class PostgreSQL:
    """A database of the tests' server; just-in-time compilation takes seconds a statement."""

    def __init__(self, cursor):
        self.cursor = cursor
        cursor.execute("SET jit = off")

    def store(self, rows, name="data"):
        self.cursor.adbc_ingest(name, rows, mode="replace")

    def ask(self, statement):
        self.cursor.execute(statement)
        return self.cursor.fetch_arrow_table()


@pytest.fixture(
    params=[
        pytest.param(engine, marks=[pytest.mark.slow] * (engine == "postgres"))
        for engine in ENGINES
    ]
)
def engine(request):
    if request.param == "duckdb":
        yield request.param, DuckDB()
        return
    with request.getfixturevalue("postgres").cursor() as cursor:
        yield request.param, PostgreSQL(cursor)


def scored_by(engine, model, rows, table="data"):
    """Return the rows of a table as its engine scores them, in their order."""
    dialect, database = engine
    numbered = rows.append_column("row no.", pa.array(range(len(rows))))
    database.store(numbered, table)
    found = database.ask(written(Model.of(model), dialect=dialect, table=table).decode())
    assert found.column_names == [*numbered.column_names, *COLUMNS]
    return found.sort_by("row no.")


def check(engine, case):
    found = scored_by(engine, case.detector, case.rows)
    scores = found["hush_score"].to_numpy()
    assert scores.tobytes() == case.scores.tobytes()
    outlier = case.scores < case.detector.offset_
    assert found["hush_outlier"].to_pylist() == outlier.tolist()
    assert 0 < outlier.sum() < len(outlier)


@pytest.mark.parametrize("detector", scored.DETECTORS)
def test_hostile_rows_score_alike_under_hostile_names(engine, detector):
    # Missing, unseen, at the ends, beyond by 1e-9 and by 1e300; quotes and statements in names.
    check(engine, scored.mixed(detector, 60))


@pytest.mark.parametrize("case", [scored.by_time, scored.neutral, scored.usual, scored.respelled])
def test_times_histories_usual_values_and_other_spellings_score_alike(engine, case):
    check(engine, case())


@pytest.mark.slow
def test_novelty_scores_alike(engine):
    check(engine, scored.mixed("novelty"))


@pytest.mark.slow
@pytest.mark.parametrize("detector", scored.DETECTORS)
@pytest.mark.parametrize("name", scored.SETS)
def test_labelled_sets_score_alike(engine, name, detector):
    folder = os.environ.get("HUSHTABLE_DATA")
    if folder is None:
        pytest.skip("no folder of labelled sets: set HUSHTABLE_DATA")
    check(engine, scored.of_set(Path(folder), name, detector))


def small(rows, **parameters):
    return HushTable(**{"n_tables": 10, "random_state": 0, **parameters}).fit(rows)


HOSTILE = [
    "'; DROP TABLE data; --", "\\'; DROP TABLE data; --", "\\", "a'b\"c", "$$ $1 %s {0} :x ?",
    "/* */ -- ;", "line\nbreak", "ünï ☃ 💥", "select", "'::text[])", "]", "nan", "NULL",
]  # fmt: skip


@pytest.mark.parametrize("conforming", ["on", "off"])
def test_names_and_categories_inject_nothing(engine, conforming):
    dialect, database = engine
    if dialect == "postgresql":  # off: a backslash escapes a quote
        database.cursor.execute(f"SET standard_conforming_strings = {conforming}")
    elif conforming == "off":
        pytest.skip("DuckDB has no such setting")
    rows = pa.table({name: (HOSTILE * 6)[j : j + 60] for j, name in enumerate(HOSTILE)})
    model = small(rows)
    found = scored_by(engine, model, rows, "d'a\"t;a --")
    assert found["hush_score"].to_numpy().tolist() == model.score_samples(rows).tolist()
    database.store(rows)
    assert len(database.ask("SELECT * FROM data")) == 60


def test_a_table_whose_columns_have_the_names_that_the_statement_uses(engine):
    names = ["d", "q", "r", "c", "b", "v", "e", "x0", "l0", "h0", "total", "score", "reason", "u"]
    rng = np.random.default_rng(0)
    rows = pa.table({name: rng.normal(size=80) for name in names})
    model = small(rows)
    found = scored_by(engine, model, rows)
    assert found["hush_score"].to_numpy().tolist() == model.score_samples(rows).tolist()
    assert found.select(names).equals(rows)


def test_the_smallest_and_the_largest_numbers_score(engine):
    # PostgreSQL fails where a product or a quotient is too small for a float64.
    rows = pa.table({"a": [0.0, *[0.25, 0.5] * 45], "b": [0.0, *[1e9, 3e9] * 45]})
    model = small(rows)
    ends = [0.0, -5e-324, 5e-324, -1e-310, -1e-300, -1e-150, -1e-40, -1e150, 1.7e308, -1.7e308]
    odd = pa.table({"a": [a for a in ends for _ in ends], "b": ends * len(ends)})
    found = scored_by(engine, model, odd)
    scores = model.score_samples(odd)
    assert found["hush_score"].to_numpy().tolist() == scores.tolist()


def typed_rows(n=60):
    rng = np.random.default_rng(1)
    day = rng.integers(0, 20_000, n)
    gaps = rng.random(n) < 0.1
    return pa.table(
        {
            "whole": pa.array(rng.integers(0, 50, n), pa.int16(), mask=gaps),
            "single": pa.array(rng.random(n), pa.float32()),
            "decimal": [Decimal(int(x)) / 100 for x in rng.integers(0, 9_999, n)],
            "truth": pa.array(rng.random(n) < 0.5, mask=gaps),
            "day": pa.array(day, pa.int32(), mask=gaps).cast(pa.date32()),
            "moment": pa.array(day * 86_400_123_457, pa.int64()).cast(pa.timestamp("us")),
        }
    )


def test_numbers_truth_and_dates_are_read_as_the_library_reads_them(engine):
    rows = typed_rows()
    if engine[0] == "postgresql":  # which adds no Booleans, so the statement fails
        with pytest.raises(Exception, match="operator does not exist: boolean"):
            scored_by(engine, small(rows), rows)
        rows = rows.drop_columns("truth")
    model = small(rows)
    found = scored_by(engine, model, rows)
    assert found["hush_score"].to_numpy().tolist() == model.score_samples(rows).tolist()


def test_whole_numbers_and_truth_are_categories(engine):
    texts = pa.table({"a": ["1", "2", None, "3"] * 20, "b": ["true", "false"] * 40})
    schema = Schema([Feature.categorical("a", ["1", "2"]), Feature.categorical("b", ["true"])])
    sketch = Sketch.from_data(Plan.draw(schema, n_tables=10, random_state=0), texts)
    model = HushTable.from_counts(sketch)
    values = pa.table({"a": [1, 2, None, 3] * 20, "b": [True, False] * 40})
    found = scored_by(engine, model, values)["hush_score"].to_numpy()
    assert found.tolist() == model.score_samples(texts).tolist()


def test_capitals_count_whatever_the_column_says():
    rows = pa.table({"a": ["Ab", "ab", "AB", "x"] * 20})
    model, database = small(rows), DuckDB()
    database.store(rows, "given")
    database.connection.execute("CREATE TABLE data (a VARCHAR COLLATE NOCASE)")
    database.connection.execute("INSERT INTO data SELECT a FROM given")
    found = database.ask(written(Model.of(model)).decode())["hush_score"].to_numpy()
    assert found.tolist() == model.score_samples(rows).tolist()


@pytest.mark.parametrize(
    ("fitted", "given", "words"),
    [
        ([1.0, 2.0, 9.0], [1.0, np.inf, 2.0], "finite"),
        ([0.0, 1.0, 0.5], [0.0, -np.inf, 0.1], "finite"),
        ([1.0, 2.0, 9.0], ["1", "2", "9"], r"needs numbers|operator does not exist"),
        ([0.0, 1.0, 0.5], ["0", "1", "1"], r"needs numbers|operator does not exist"),
        (["a", "b", "c"], [0.5, 1.5, 2.5], "needs texts"),
    ],
)
def test_what_cannot_be_read_exactly_fails(engine, fitted, given, words):
    model = small(pa.table({"x": fitted * 20}))
    with pytest.raises(Exception, match=words):
        scored_by(engine, model, pa.table({"x": given * 20}))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        *((f"'{sign}infinity'::{kind}", r"'day': needs finite numbers, or NULL, got -?[Ii]nfinity")
          for kind in ("date", "timestamp", "timestamptz") for sign in ("", "-")),
        ("INTERVAL '3 days'", "'day': needs dates, got a column of type interval"),
        ("TIME '10:00'", "'day': needs dates, got a column of type time"),
    ],
)  # fmt: skip
def test_what_is_no_date_fails(engine, value, words):
    dialect, database = engine
    model = small(typed_rows().select(["day"]))
    ask = database.connection.execute if dialect == "duckdb" else database.cursor.execute
    ask("DROP TABLE IF EXISTS days")
    ask(f"CREATE TABLE days AS SELECT {value} AS day")
    with pytest.raises(Exception, match=f"(?i){words}"):
        database.ask(written(Model.of(model), dialect=dialect, table="days").decode())


FRAME = pa.table({"a": [1.0, 2.0, 3.0] * 10, "b": [5.0, 6.0, 7.0] * 10})


def renamed(*names):
    return FRAME.rename_columns(names)


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        (FRAME, {"dialect": "oracle"}, "duckdb, postgresql"),
        (FRAME, {"table": ""}, "name of a table"),
        (FRAME, {"table": "nul\0"}, "NUL"),
        (renamed("a", "Hush_Score"), {}, "adds a column"),
        (renamed("age", "AGE"), {}, "capital letters"),
        (renamed("a", "ü" * 32), {"dialect": "postgresql"}, "63 bytes"),
        (FRAME, {"dialect": "postgresql", "table": "t" * 64}, "63 bytes"),
    ],
)
def test_what_cannot_be_written_is_refused(rows, options, words):
    with pytest.raises(UsageError, match=words):
        written(Model.of(small(rows)), **options)


def test_other_families_are_refused():
    with pytest.raises(UsageError, match="HushTable or LSHiTables"):
        written(Model.of(RSHash(n_tables=4, random_state=0).fit(FRAME)))


def test_a_prepared_statement_scores_the_rows_of_the_moment(engine):
    dialect, database = engine
    X = np.random.default_rng(0).normal(size=(500, 3))
    rows = pa.table({name: X[:, j] for j, name in enumerate(("age", "pulse", "fever"))})
    model = HushTable(random_state=0, n_tables=20).fit(rows)
    do = (database.connection if dialect == "duckdb" else database.cursor).execute
    database.store(rows.slice(0, 0), "visit")
    if dialect == "duckdb":
        do("PRAGMA disable_optimizer")
    do(f"PREPARE judge AS {written(Model.of(model), dialect=dialect, table='visit').decode()}")
    if dialect == "duckdb":
        do("PRAGMA enable_optimizer")
    else:  # it copies results by default, which PostgreSQL cannot do with EXECUTE
        database.cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
    scores = model.score_samples(rows)
    for i in (0, 7, 499):
        do("DELETE FROM visit")
        do(f"INSERT INTO visit VALUES ({', '.join(map(repr, X[i].tolist()))})")
        do(f"INSERT INTO visit VALUES ({', '.join(map(repr, X[i].tolist()))})")
        found = database.ask("EXECUTE judge")
        assert found["hush_score"].to_pylist() == [scores[i]] * 2


def test_it_is_one_statement():
    model = LSHiTables(n_tables=5, random_state=0).fit(scored.mixed_rows(100))
    [statement] = duckdb.extract_statements(written(Model.of(model)).decode())
    assert statement.type == duckdb.StatementType.SELECT
