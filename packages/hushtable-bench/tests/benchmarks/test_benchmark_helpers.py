"""The parts that the benchmark scripts share, on made-up data."""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pytest

import common
from common import Rows, Target
from hushtable.errors import DataError


def test_run_turns_bad_data_into_a_message_and_an_exit_code(capsys, monkeypatch):
    def fails(arguments):
        raise DataError("no such folder")

    monkeypatch.setattr("sys.argv", ["bench"])
    with pytest.raises(SystemExit) as exit_of:
        common.run(argparse.ArgumentParser("bench"), fails)
    assert exit_of.value.code == 2
    assert capsys.readouterr().err == "bench: no such folder\n"


def test_normal_rows_are_drawn_in_place_and_repeatable():
    data = Rows.normal(5000, 3)
    X = data.load()
    assert (data.name, X.shape, X.dtype) == ("normal 5e3 x 3", (5000, 3), np.float32)
    assert X.flags.c_contiguous
    assert abs(X.mean()) < 0.05
    assert 0.95 < X.std() < 1.05
    np.testing.assert_array_equal(X, data.load())


def test_rows_of_a_file(cover):
    data = Rows.of_file(cover)
    assert (data.rows, data.columns) == (300, 2)
    np.testing.assert_array_equal(data.load(), np.load(cover)["X"].astype(np.float32))


def test_runs_take_turns_and_the_first_do_not_count():
    done = []
    both = {"a": lambda: done.append("a"), "b": lambda: (done.append("b"), time.sleep(0.01))}
    times = common.in_turns(both, 2)
    assert done == ["a", "b"] * 3
    assert [len(seconds) for seconds in times.values()] == [2, 2]
    assert common.timed(lambda: 7)[1] == 7
    assert min(times["b"]) >= 0.01 > common.seconds(lambda: None, 3)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_memory_is_in_bytes():
    assert common.process_memory(status="VmHWM:\t  12 kB\nVmRSS:\t 3 kB") == 12 * 1024
    assert common.process_memory() >= common.process_memory("VmRSS") > 10**6


def test_results_carry_the_environment_and_a_miss_the_exit_code(results, capsys):
    kept, missed = Target("kept", 2.0, ">=", 1.0), Target("missed", 0.5, ">=", 1.0)
    assert common.finish([kept]) == 0
    assert not results.exists()
    assert common.finish([kept, missed], "trial", figure=1.5) == 1
    content = json.loads((results / "trial.json").read_text())
    assert content["figure"] == 1.5
    assert {"processor", "python", "numpy", "scikit-learn"} <= set(content["environment"])
    assert capsys.readouterr().out.count("Measured with") == 2
