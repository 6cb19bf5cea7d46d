"""Work spread over threads: everything done once, errors raised, results in order."""

import threading
import time

import pytest

from hushtable.errors import UsageError
from hushtable.threads import for_each, map_in_order, n_threads


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_item_is_taken_once(threads):
    done = []
    for_each(done.append, range(1000), threads)
    assert sorted(done) == list(range(1000))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_order_whoever_is_first(threads):
    def slow_first(i):
        time.sleep(0.002 if i % 7 == 0 else 0)
        return -i

    assert list(map_in_order(slow_first, range(200), threads)) == [-i for i in range(200)]
    assert list(map_in_order(slow_first, [], threads)) == []


def test_threads_work_at_the_same_time():
    meeting = threading.Barrier(3, timeout=10)
    for_each(lambda _: meeting.wait(), range(3), 3)  # breaks unless three are there at once


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_an_error_stops_the_others_and_is_raised(threads):
    done = []

    def fails(i):
        if i == 10:
            raise KeyError("ten")
        done.append(i)
        time.sleep(0.001)

    with pytest.raises(KeyError, match="ten"):
        for_each(fails, range(10_000), threads)
    assert len(done) < 1000


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_of_the_items_is_raised(threads):
    def items():
        yield 1
        raise OSError("unplugged")

    with pytest.raises(OSError, match="unplugged"):
        for_each(lambda _: None, items(), threads)
    with pytest.raises(OSError, match="unplugged"):
        list(map_in_order(lambda i: i, items(), threads))


def test_a_stream_is_read_as_it_is_used():
    taken = []

    def items():
        for i in range(10_000):
            taken.append(i)
            yield i

    results = map_in_order(lambda i: i, items(), 2)
    next(results)
    assert len(taken) <= 64


def test_n_jobs_counts_as_scikit_learn_does():
    from joblib import effective_n_jobs

    for n_jobs in (None, 1, 3, -1):
        assert n_threads(n_jobs) == effective_n_jobs(n_jobs)
    assert n_threads(-1000) == 1
    for wrong in (0, True, 1.5, "2"):
        with pytest.raises(UsageError, match="n_jobs"):
            n_threads(wrong)
