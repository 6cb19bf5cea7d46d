"""DuckDB: scores and sketches by functions inside a query, to the bit; hostile names are names."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

pytest.importorskip("duckdb", reason="DuckDB is not installed")

import duckdb

from engine_helpers import frame, plans
from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.data.schema import DATE
from hushtable.errors import DataError, UsageError
from hushtable.scores import Scorer
from hushtable_connect.engines import duckdb as engine
from hushtable_connect.engines import sketch_of

COLUMNS = ["a", "c", "b"]


@pytest.fixture
def rows():
    return frame(5_000)  # more than one of DuckDB's vectors


@pytest.fixture
def connection(rows):
    with duckdb.connect() as made:
        # NaN of pandas would be a NaN of DuckDB's: here a missing value is NULL.
        made.register("frame", pa.Table.from_pandas(rows, preserve_index=False))
        made.execute("CREATE TABLE t AS SELECT * FROM frame")
        yield made


def test_a_context_that_predicts_others_needs_no_further_columns(connection, rows):
    numbers = [name for name in COLUMNS if rows[name].dtype.kind == "f"]
    detector = HushTable(n_tables=20, context=numbers[:1], random_state=0).fit(rows[COLUMNS])
    assert detector.plan_.schema.differences is not None
    found = connection.sql(f"SELECT {engine.register_score(connection, detector)} AS s FROM t").df()
    np.testing.assert_array_equal(found["s"], detector.score_samples(rows[COLUMNS]))


def test_scores_are_the_detector_s_to_the_bit(connection, rows):
    detector = HushTable(n_tables=20, random_state=0).fit(rows[COLUMNS])
    call = engine.register_score(connection, detector)
    assert call == 'hush_score("a", "c", "b")'
    found = connection.sql(f"SELECT *, {call} AS score FROM t ORDER BY id").to_df()
    np.testing.assert_array_equal(found["score"], detector.score_samples(rows[COLUMNS]))
    below = f"SELECT count(*) FROM t WHERE {call} < {detector.offset_!r}"
    assert connection.execute(below).fetchall()[0] == (
        int((detector.predict(rows[COLUMNS]) < 0).sum()),
    )


@pytest.mark.parametrize("name", ["hushtable", "lsh_itables", "marginals"])
def test_groups_are_counted_to_the_bit(connection, rows, name):
    plan = plans()[name]
    sketched = engine.register_sketch(connection, plan)
    found = connection.execute(f"SELECT id % 7 AS ward, {sketched} FROM t GROUP BY ward").fetchall()
    assert len(found) == 7
    for ward, sketch in found:
        assert sketch_of(plan, sketch) == Sketch.from_data(plan, rows[rows["id"] % 7 == ward])
    whole = sum((sketch_of(plan, one) for _, one in found), start=Sketch.zero(plan))
    # A relation is read as it streams, without a function.
    assert whole == Sketch.from_data(plan, connection.sql("SELECT * FROM t"))


def test_no_rows_are_a_sketch_of_none(connection):
    plan = plans()["hushtable"]
    sketched = engine.register_sketch(connection, plan)
    (none,) = connection.execute(f"SELECT {sketched} FROM t WHERE id < 0").fetchall()[0]
    assert sketch_of(plan, none) == Sketch.zero(plan)


HOSTILE = ['a"; DROP TABLE t; --', "select", "it's", "tab\tle", "🐦 (x)"]


def test_names_and_categories_are_never_read_as_sql(connection):
    values = {name: np.arange(40) / 3 + j for j, name in enumerate(HOSTILE)}
    hostile = pd.DataFrame(values).assign(kind=["x'); DROP TABLE t; --", "y"] * 20)
    detector = HushTable(n_tables=20, random_state=0).fit(hostile)
    connection.register("hostile", pa.Table.from_pandas(hostile))
    call = engine.register_score(connection, detector)
    sketched = engine.register_sketch(connection, detector.plan_)
    found = connection.sql(f"SELECT {call} FROM hostile").to_df().to_numpy()[:, 0]
    np.testing.assert_array_equal(found, detector.score_samples(hostile))
    (one,) = connection.execute(f"SELECT {sketched} FROM hostile").fetchall()[0]
    assert sketch_of(detector.plan_, one) == Sketch.from_data(detector.plan_, hostile)
    assert connection.execute("SELECT count(*) FROM t").fetchall()[0] == (5_000,)


def test_dates_are_dates():
    when = Feature.numeric("when", low=0, high=4e9, unit=DATE)
    plan = Plan.draw(Schema([when]), n_tables=20, random_state=0)
    rows = pd.DataFrame({"when": pd.to_datetime(["2026-11-01 00:00", "1970-01-01 12:30", None])})
    with duckdb.connect() as connection:
        call = engine.register_score(connection, Sketch.from_data(plan, rows))
        query = f'SELECT {call} FROM (SELECT unnest(?::TIMESTAMP[]) AS "when")'
        times = [None if pd.isna(one) else one.to_pydatetime() for one in rows["when"]]
        found = [score for (score,) in connection.execute(query, [times]).fetchall()]
    assert found == Scorer(Sketch.from_data(plan, rows)).score(rows).tolist()


def test_what_is_refused(connection, rows):
    plan = plans()["hushtable"]
    sketch = Sketch.from_data(plan, rows)
    engine.register_score(connection, sketch)
    with pytest.raises(UsageError, match="already a function of this connection"):
        engine.register_score(connection, sketch)
    with pytest.raises(UsageError, match="needs letters"):
        engine.register_score(connection, sketch, name="x(a) AS SELECT 1; --")
    with pytest.raises(UsageError, match="is not a DuckDB connection"):
        engine.register_score(rows, sketch)
    with pytest.raises(UsageError, match="is not a model"):
        engine.register_score(connection, plan, name="other")
    with pytest.raises(UsageError, match="is not a plan"):
        engine.register_sketch(connection, sketch)
    with pytest.raises(duckdb.Error, match="infinity: feature 'a'"):
        connection.execute("SELECT hush_score('inf'::DOUBLE, 'x', 1)").fetchall()
    with pytest.raises(duckdb.Error, match="hush_score"):  # a column too few
        connection.execute("SELECT hush_score(1, 'x')").fetchall()
    other = Plan.draw(plan.schema, n_tables=20, random_state=1)
    sketched = engine.register_sketch(connection, other)
    (one,) = connection.execute(f"SELECT {sketched} FROM t").fetchall()[0]
    for wrong, words in [(one, "no sketch under this plan"), ("text", "needs the bytes")]:
        with pytest.raises(UsageError, match=words):
            sketch_of(plan, wrong)
    with pytest.raises(DataError):
        Sketch.from_data(plan, connection.sql("SELECT a, b FROM t"))
