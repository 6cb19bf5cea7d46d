"""Dask and Spark: the same bits as one machine, also when a worker is killed in the middle."""

import os
import shutil
import signal
import sys
import threading
import time
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.errors import DataError, UsageError
from hushtable_connect.engines import dask as in_dask
from hushtable_connect.engines import spark as in_spark

SCHEMA = Schema([
    Feature.numeric("a", low=-4, high=4),
    Feature.categorical("c", ["x", "y", "z"]),
    Feature.numeric("b", low=0, high=100, unit="s"),
])  # fmt: skip
COLUMNS = ["a", "c", "b"]
PLANS = {
    "hushtable": Plan.draw(SCHEMA, n_tables=20, random_state=0),
    "lsh_itables": Plan.draw(SCHEMA, detector="lsh_itables", n_tables=20, random_state=0),
    "marginals": Plan.marginals(SCHEMA),
}
PLAN = PLANS["hushtable"]


def frame(n):
    """Rows with missing values, unseen categories, values outside, and a column too many."""
    rng = np.random.default_rng(0)
    a = rng.normal(0, 2, n)
    a[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame({
        "id": np.arange(n),
        "a": a,
        "c": rng.choice(["x", "y", "z", "new", None], n),
        "b": rng.integers(-10, 120, n),
    })  # fmt: skip


class Dask:
    """Data frames of Dask."""

    name, engine = "Dask", in_dask

    def of(self, rows, partitions):
        import dask.dataframe

        return dask.dataframe.from_pandas(rows, npartitions=partitions)

    def few(self, data, n):
        return data[data["id"] < n]

    def scores(self, model, data):
        return in_dask.score_data(model, data).compute().to_numpy()


class Spark:
    """Data frames of Spark, in the order of their column id."""

    name, engine = "Spark", in_spark

    def __init__(self, session, folder):
        self.session, self.folder = session, folder

    def of(self, rows, partitions):
        rows.to_parquet(self.folder / "rows.parquet")
        return self.session.read.parquet(str(self.folder)).repartition(partitions)

    def few(self, data, n):
        return data.filter(f"id < {n}")

    def scores(self, model, data):
        scored = in_spark.score_data(model, data)
        assert scored.columns == [*data.columns, "score"]
        scored.write.parquet(f"{self.folder}.scores")
        return pd.read_parquet(f"{self.folder}.scores").sort_values("id")["score"].to_numpy()


@pytest.fixture(scope="module")
def session():
    pytest.importorskip("pyspark", reason="Spark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not here")
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # that of the workers
        made = SparkSession.builder.master("local[2]").appName("hushtable tests")
        for name, value in {
            "ui.enabled": "false", "sql.shuffle.partitions": "4",
            "driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1",
        }.items():  # fmt: skip
            made = made.config(f"spark.{name}", value)
        made = made.getOrCreate()
        made.sparkContext.setLogLevel("ERROR")
        yield made
        made.stop()


@pytest.fixture
def dask():
    pytest.importorskip("dask", reason="Dask is not installed")
    import dask

    with dask.config.set(scheduler="threads"):
        yield Dask()


@pytest.fixture
def spark(request, tmp_path):
    return Spark(request.getfixturevalue("session"), tmp_path)


#: Spark has warnings of its own.
OF_SPARK = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(params=["dask", pytest.param("spark", marks=OF_SPARK)])
def engine(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("partitions", [1, 3, 40])
def test_a_data_frame_is_counted_to_the_bit(engine, name, partitions):
    found = engine.engine.sketch_data(PLANS[name], engine.of(frame(300), partitions))
    assert found == Sketch.from_data(PLANS[name], frame(300)[COLUMNS])


def test_scores_are_those_of_one_machine_with_verdicts_that_were_learned(engine):
    rows = frame(300)
    detector = HushTable(n_tables=20, random_state=0).fit(rows[COLUMNS])
    before = detector.score_samples(rows[COLUMNS])
    detector.learn(rows[COLUMNS][:4], [1, 1, 0, 0])
    expected = detector.score_samples(rows[COLUMNS])
    assert (expected != before).any()
    np.testing.assert_array_equal(engine.scores(detector, engine.of(rows, 4)), expected)


def test_scores_of_dask_come_with_the_index_of_the_rows(dask):
    rows = frame(200).set_index(np.arange(200)[::-1])
    detector = HushTable(n_tables=20, random_state=0).fit(rows[COLUMNS])
    found = in_dask.score_data(detector, dask.of(rows, 4)).compute()
    assert found.name == "score"
    expected = pd.Series(detector.score_samples(rows[COLUMNS]), rows.index, name="score")
    pd.testing.assert_series_equal(found.sort_index(), expected.sort_index())


def test_partitions_without_rows_count_nothing(engine):
    rows = engine.of(frame(100), 5)
    some = engine.few(rows, 30)
    found = engine.engine.sketch_data(PLAN, some)
    assert found == Sketch.from_data(PLAN, frame(100)[COLUMNS][:30])
    assert len(engine.scores(found, some)) == 30
    with pytest.raises(DataError, match="no rows"):
        engine.engine.sketch_data(PLAN, engine.few(rows, 0))


def test_what_is_refused(engine):
    rows, sketch = frame(10), Sketch.from_data(PLAN, frame(10)[COLUMNS])
    with pytest.raises(UsageError, match=f"DataFrame is not a {engine.name} data frame"):
        engine.engine.sketch_data(PLAN, rows)
    with pytest.raises(UsageError, match=f"is not a {engine.name} data frame"):
        engine.engine.score_data(sketch, rows)
    with pytest.raises(UsageError, match="is not a model"):
        engine.engine.score_data(PLAN, engine.of(rows, 1))
    with pytest.raises(DataError, match=r"lack the columns \['b'\]"):
        engine.engine.sketch_data(PLAN, engine.of(rows.drop(columns="b"), 1))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_spark_adds_no_second_column_named_score(spark):
    rows = frame(10).rename(columns={"id": "score"})
    with pytest.raises(UsageError, match="column named score"):
        in_spark.score_data(Sketch.from_data(PLAN, rows[COLUMNS]), spark.of(rows, 1))


def test_texts_are_read_as_the_model_s_were(dask):
    texts = [f"{x:.2f}".replace(".", ",") for x in np.random.default_rng(0).normal(5, 1, 60)]
    rows = pd.DataFrame({"TSH": texts})
    detector = HushTable(random_state=0).fit(rows)
    found = dask.scores(detector, dask.of(rows, 3))
    np.testing.assert_array_equal(found, detector.score_samples(rows))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("distributed") is None, reason="Dask's cluster is not installed")
@pytest.mark.filterwarnings("ignore")  # of a cluster whose worker is killed
def test_a_killed_worker_changes_no_bit(tmp_path):
    import dask
    from distributed import Client, LocalCluster

    rows = frame(480_000)
    expected = Sketch.from_data(PLAN, rows[COLUMNS])
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None,
            local_directory=str(tmp_path / "workers"),
        ) as cluster,
        Client(cluster) as client,
        dask.config.set(scheduler=client),
    ):  # fmt: skip
        data = Dask().of(rows, 24)
        assert in_dask.sketch_data(PLAN, data) == expected
        victim = next(iter(client.run(os.getpid).values()))
        killed = []

        def kill_in_the_middle():
            time.sleep(0.1)
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

        thread = threading.Thread(target=kill_in_the_middle)
        thread.start()
        found = in_dask.sketch_data(PLAN, data)
        thread.join()
        assert killed == [victim]
        assert found == expected
