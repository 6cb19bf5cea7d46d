"""Dask: the same bits as one machine, also when a worker is killed in the middle."""

import os
import signal
import time
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from engine_helpers import frame, plans, write_files
from hushtable import HushTable, Sketch
from hushtable.errors import DataError, UsageError
from hushtable_connect.engines import dask as engine

COLUMNS = ["a", "c", "b"]


pytestmark = pytest.mark.skipif(find_spec("dask") is None, reason="Dask is not installed")


@pytest.fixture(scope="module", autouse=True)
def imported():
    """Import Dask for the first test: it takes seconds that collecting can do without."""
    global dask, dd
    import dask
    import dask.dataframe as dd


@pytest.fixture(autouse=True)
def one_process(imported):
    with dask.config.set(scheduler="threads"):
        yield


@pytest.mark.parametrize("name", ["hushtable", "lsh_itables", "marginals"])
@pytest.mark.parametrize("partitions", [1, 3, 40])
def test_a_data_frame_is_counted_to_the_bit(name, partitions):
    plan, rows = plans()[name], frame(300)
    found = engine.sketch_data(plan, dd.from_pandas(rows, npartitions=partitions))
    assert found == Sketch.from_data(plan, rows[COLUMNS])


def test_scores_come_with_the_index_of_the_rows():
    rows = frame(200).set_index(np.arange(200)[::-1])
    detector = HushTable(n_tables=20, random_state=0).fit(rows[COLUMNS])
    found = engine.score_data(detector, dd.from_pandas(rows, npartitions=4, sort=False)).compute()
    assert found.name == "score"
    assert found.index.tolist() == rows.index.tolist()
    np.testing.assert_array_equal(found.to_numpy(), detector.score_samples(rows[COLUMNS]))


def test_empty_partitions_count_nothing():
    plan = plans()["hushtable"]
    rows = dd.from_pandas(frame(100), npartitions=5)
    some = rows[rows["id"] < 30]
    assert engine.sketch_data(plan, some) == Sketch.from_data(plan, frame(100)[COLUMNS][:30])
    assert len(engine.score_data(engine.sketch_data(plan, some), some)) == 30
    with pytest.raises(DataError, match="no rows"):
        engine.sketch_data(plan, rows[rows["id"] < 0])


def test_what_is_refused():
    plan = plans()["hushtable"]
    with pytest.raises(UsageError, match="DataFrame is not a Dask data frame"):
        engine.sketch_data(plan, frame(10))
    with pytest.raises(UsageError, match="is not a Dask data frame"):
        engine.score_data(Sketch.from_data(plan, frame(10)[COLUMNS]), frame(10))
    with pytest.raises(UsageError, match="is not a model"):
        engine.score_data(plan, dd.from_pandas(frame(10), npartitions=1))
    lacking = dd.from_pandas(frame(10).drop(columns="b"), npartitions=1)
    with pytest.raises(DataError, match=r"lack the columns \['b'\]"):
        engine.sketch_data(plan, lacking)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of a cluster whose worker is killed
def test_a_killed_worker_changes_no_bit(tmp_path):
    from distributed import Client, LocalCluster

    (tmp_path / "rows").mkdir()
    rows = write_files(tmp_path / "rows", [20_000] * 24)
    plan = plans()["hushtable"]
    expected = Sketch.from_data(plan, rows[COLUMNS])
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None,
            local_directory=str(tmp_path / "workers"),
        ) as cluster,
        Client(cluster) as client,
        dask.config.set(scheduler=client),
    ):  # fmt: skip
        data = dd.read_parquet(tmp_path / "rows")
        assert engine.sketch_data(plan, data) == expected
        victim = next(iter(client.run(os.getpid).values()))
        killed = []

        def kill_in_the_middle():
            time.sleep(0.1)
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

        import threading

        thread = threading.Thread(target=kill_in_the_middle)
        thread.start()
        found = engine.sketch_data(plan, data)
        thread.join()
        assert killed == [victim]
        assert found == expected


def test_texts_are_read_as_the_model_s_were():
    texts = [f"{x:.2f}".replace(".", ",") for x in np.random.default_rng(0).normal(5, 1, 60)]
    rows = pd.DataFrame({"TSH": texts})
    detector = HushTable(random_state=0).fit(rows)
    found = engine.score_data(detector, dd.from_pandas(rows, npartitions=3)).compute()
    np.testing.assert_array_equal(found, detector.score_samples(rows))


def test_a_detector_that_learned_scores_by_its_verdicts():
    rows = frame(300)[COLUMNS]
    detector = HushTable(n_tables=20, random_state=0).fit(rows)
    detector.learn(rows[:4], [1, 1, 0, 0])
    found = engine.score_data(detector, dd.from_pandas(rows, npartitions=2)).compute()
    np.testing.assert_array_equal(found, detector.score_samples(rows))
