"""Spark: the same bits as one machine; scores written by Spark."""

import shutil
import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyspark", reason="Spark is not installed")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java, which is not here", allow_module_level=True)

from pyspark.sql import SparkSession

from engine_helpers import frame, plans, write_files
from hushtable import HushTable, Sketch
from hushtable.errors import DataError, UsageError
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
    with pytest.raises(UsageError, match="DataFrame is not a Spark data frame"):
        engine.sketch_data(plan, frame(3))
    with pytest.raises(UsageError, match="is not a Spark data frame"):
        engine.score_data(engine.sketch_data(plan, data), frame(3))
    with pytest.raises(DataError, match=r"lack the columns \['b'\]"):
        engine.sketch_data(plan, data.drop("b"))
    sketch = engine.sketch_data(plan, data)
    with pytest.raises(UsageError, match="column named score"):
        engine.score_data(sketch, data.withColumnRenamed("id", "score"))
    with pytest.raises(UsageError, match="is not a model"):
        engine.score_data(plan, data)
