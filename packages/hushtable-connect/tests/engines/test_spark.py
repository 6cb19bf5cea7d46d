"""Spark: the same bits as one machine; scores written by Spark."""

import shutil
import sys
import time

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyspark", reason="Spark is not installed")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java, which is not here", allow_module_level=True)

from pyspark.sql import SparkSession

from engine_helpers import frame, plans, write_files
from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.errors import DataError, UsageError
from hushtable_connect.engines import sketch_of
from hushtable_connect.engines import spark as engine

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Spark's own warnings

COLUMNS = ["a", "c", "b"]


@pytest.fixture(scope="module")
def session():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # that of the workers
        yield from _session()


def _session():
    made = (
        SparkSession.builder.master("local[2]")
        .appName("hushtable tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    yield made
    made.stop()


@pytest.mark.parametrize("name", ["hushtable", "lsh_itables", "marginals"])
def test_a_data_frame_is_counted_to_the_bit(session, tmp_path, name):
    rows = write_files(tmp_path, [400, 7, 300, 1])
    data = session.read.parquet(str(tmp_path)).repartition(11)
    plan = plans()[name]
    assert engine.sketch_data(plan, data) == Sketch.from_data(plan, rows[COLUMNS])


def test_files_are_counted_and_scored_to_the_bit(session, tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    rows = write_files(folder, [400, 7, 300, 1])
    for name in ("hushtable", "marginals"):
        expected = Sketch.from_data(plans()[name], rows[COLUMNS])
        assert engine.sketch_data(plans()[name], folder) == expected
        assert engine.sketch_data(plans()[name], f"{folder}/*.parquet") == expected
    detector = HushTable(n_tables=20, random_state=0).fit(rows[COLUMNS])
    targets = engine.score_files(detector, folder, tmp_path / "scores")
    found = np.concatenate([pd.read_parquet(one)["score"] for one in targets])
    np.testing.assert_array_equal(found, detector.score_samples(rows[COLUMNS]))
    made = [one.stat().st_mtime_ns for one in targets]
    assert engine.score_files(detector, folder, tmp_path / "scores") == targets
    assert [one.stat().st_mtime_ns for one in targets] == made  # done before
    assert session.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "10000"


@pytest.mark.serial
def test_five_million_rows_are_counted_in_time(session, tmp_path):
    rng = np.random.default_rng(0)
    schema = Schema([Feature.numeric(f"c{j}", low=-6, high=6) for j in range(10)])
    plan = Plan.draw(schema, random_state=0)
    for i in range(10):
        X = rng.standard_normal((500_000, 10), np.float32)
        pd.DataFrame(X, columns=schema.names).to_parquet(tmp_path / f"{i}.parquet")
    data = session.read.parquet(str(tmp_path))
    engine.sketch_data(plan, data.limit(10))  # starts the workers
    seconds = {}
    for name, rows in (("data frame", data), ("files", tmp_path)):
        began = time.perf_counter()
        found = engine.sketch_data(plan, rows)
        seconds[name] = time.perf_counter() - began
        assert found == Sketch.from_data(plan, tmp_path)
    print(", ".join(f"5 million rows as {name}: {took:.1f} s" for name, took in seconds.items()))
    assert seconds["files"] < seconds["data frame"] < 1.5 * 20.0


def test_scores_are_written_by_spark(session, tmp_path):
    (tmp_path / "rows").mkdir()
    rows = write_files(tmp_path / "rows", [300, 200])
    detector = HushTable(n_tables=20, random_state=0).fit(rows[COLUMNS])
    data = session.read.parquet(str(tmp_path / "rows"))
    scored = engine.score_data(detector, data)
    assert scored.columns == [*data.columns, "score"]
    scored.write.parquet(str(tmp_path / "scores"))
    found = pd.read_parquet(tmp_path / "scores").sort_values(["id", "b", "a"])
    expected = rows.assign(score=detector.score_samples(rows[COLUMNS]))
    expected = expected.sort_values(["id", "b", "a"])
    np.testing.assert_array_equal(found["score"], expected["score"])


def test_partitions_without_rows(session, tmp_path):
    rows = write_files(tmp_path, [50])
    data = session.read.parquet(str(tmp_path)).repartition(8)
    plan = plans()["hushtable"]
    few = data.filter("id < 3")
    assert engine.sketch_data(plan, few) == Sketch.from_data(plan, rows[rows["id"] < 3][COLUMNS])
    with pytest.raises(DataError, match="no rows"):
        engine.sketch_data(plan, data.filter("id < 0"))


def test_what_is_refused(session, tmp_path):
    write_files(tmp_path, [20])
    plan = plans()["hushtable"]
    data = session.read.parquet(str(tmp_path))
    with pytest.raises(UsageError, match="DataFrame: needs a Spark data frame or the path"):
        engine.sketch_data(plan, frame(3))
    with pytest.raises(UsageError, match="is not a Spark data frame"):
        engine.score_data(engine.sketch_data(plan, data), frame(3))
    with pytest.raises(DataError, match=r"lack the plan's columns \['b'\]"):
        engine.sketch_data(plan, data.drop("b"))
    sketch = engine.sketch_data(plan, data)
    with pytest.raises(UsageError, match="column named score"):
        engine.score_data(sketch, data.withColumnRenamed("id", "score"))
    with pytest.raises(UsageError, match="is not a model"):
        engine.score_data(plan, data)


def test_functions_in_sql_score_and_count_to_the_bit(session, tmp_path):
    rows = write_files(tmp_path, [400, 300])
    rows = rows.rename(columns={"a": "the `a`"})
    data = session.read.parquet(str(tmp_path)).withColumnRenamed("a", "the `a`").repartition(5)
    data.createOrReplaceTempView("rows")
    features = [COLUMNS[1], "the `a`", COLUMNS[2]]
    detector = HushTable(n_tables=20, random_state=0).fit(rows[features])
    call = engine.register_score(session, detector)
    assert call == "hush_score(`c`, `the ``a```, `b`)"
    order = ["id", "b", "the `a`"]
    found = session.sql(f"SELECT *, {call} AS score FROM rows").toPandas().sort_values(order)
    expected = rows.assign(score=detector.score_samples(rows[features])).sort_values(order)
    np.testing.assert_array_equal(found["score"], expected["score"])
    plan = detector.plan_
    sketched = engine.register_sketch(session, plan)
    query = f"SELECT id % 3 AS ward, {sketched} AS sketch FROM rows GROUP BY ward"
    groups = session.sql(query).collect()
    assert len(groups) == 3
    for ward, sketch in groups:
        of_ward = rows[rows["id"] % 3 == ward][features]
        assert sketch_of(plan, sketch) == Sketch.from_data(plan, of_ward)
    with pytest.raises(Exception, match="got 1 columns: needs 3, in this order: c, the `a`, b"):
        session.sql("SELECT hush_score(b) FROM rows").collect()


def test_what_no_function_is_made_of(session):
    plan = plans()["hushtable"]
    with pytest.raises(UsageError, match="is not a Spark session"):
        engine.register_sketch(frame(3), plan)
    with pytest.raises(UsageError, match="needs letters"):
        engine.register_sketch(session, plan, name="1; DROP TABLE rows")
    with pytest.raises(UsageError, match="is not a plan"):
        engine.register_sketch(session, Sketch.zero(plan))
