"""Work spread over threads: everything done once, errors raised, results in order."""

import gc
import os
import threading
import time
import weakref

import pytest

from hushtable.errors import UsageError
from hushtable.threads import FEW_ROWS, for_each, map_in_order, n_threads


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_item_is_taken_once(threads):
    done = []
    for_each(done.append, [range(1000)], threads)
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
    for_each(lambda _: meeting.wait(), [range(3)], 3)  # breaks unless three are there at once


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_an_error_stops_the_others_and_is_raised(threads):
    done = []

    def fails(i):
        if i == 10:
            raise KeyError("ten")
        done.append(i)
        time.sleep(0.001)

    with pytest.raises(KeyError, match="ten"):
        for_each(fails, [range(10_000)], threads)
    assert len(done) < 1000


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_of_the_items_is_raised(threads):
    def items():
        yield 1
        raise OSError("unplugged")

    with pytest.raises(OSError, match="unplugged"):
        for_each(lambda _: None, [items()], threads)
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


def test_sources_are_read_at_the_same_time_each_in_order():
    meeting, done = threading.Barrier(3, timeout=10), []

    def source(name):
        meeting.wait()  # breaks unless three sources are read at once
        for i in range(100):
            yield name, i

    for_each(done.append, [source(name) for name in "abc"], 6)
    assert sorted(done) == [(name, i) for name in "abc" for i in range(100)]
    lock, order = threading.Lock(), {"a": [], "b": []}

    def noted(name):
        for i in range(500):
            with lock:
                order[name].append(i)
            yield i

    for_each(lambda _: time.sleep(0), [noted(name) for name in "ab"], 4)
    assert order == {"a": list(range(500)), "b": list(range(500))}


def test_half_as_many_sources_are_open_as_threads():
    opened, most = set(), []

    def source(name):
        opened.add(name)
        yield from range(20)
        opened.remove(name)

    for_each(lambda _: most.append(len(opened)), [source(i) for i in range(50)], 6)
    assert len(most) == 1000
    assert max(most) <= 3


def test_an_error_in_one_source_ends_all():
    def slow():
        for i in range(1000):
            time.sleep(0.001)
            yield i

    def broken():
        yield 1
        raise OSError("unplugged")

    done = []
    with pytest.raises(OSError, match="unplugged"):
        for_each(done.append, [slow(), broken(), slow()], 4)
    assert len(done) < 1000


def test_calls_within_calls_do_not_wait_for_each_other():
    done = []

    def outer(_):
        for_each(done.append, [range(10)], 4)

    for_each(outer, [range(300)], 300)
    assert len(done) == 3000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_starts_its_own_threads():
    for_each(lambda _: None, [range(100)], 3)
    child = os.fork()
    if child == 0:
        meeting = threading.Barrier(3, timeout=10)
        try:
            for_each(lambda _: meeting.wait(), [range(3)], 3)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_hold_nothing_afterwards():
    def fails(_):
        raise UsageError("no")

    held = weakref.ref(fails)
    with pytest.raises(UsageError):
        for_each(fails, [range(3)], 3)
    del fails
    gc.collect()
    assert held() is None


def test_few_rows_are_left_to_one_thread():
    assert n_threads(2, FEW_ROWS) == 1
    assert n_threads(2, FEW_ROWS + 1) == 2
    with pytest.raises(UsageError, match="n_jobs"):
        n_threads(0, 1)
