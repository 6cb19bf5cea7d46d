"""One way to spread work over threads: each takes the next item until none is left.

The kernels release Python's lock, so that threads run side by side. The items' iterator runs
in whichever thread takes the next one, under a lock: reading goes on while others compute.
"""

import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral
from typing import TypeVar

from hushtable.errors import UsageError

__all__ = ["for_each", "map_in_order", "n_threads"]

T = TypeVar("T")
R = TypeVar("R")

#: Results that `map_in_order` holds for each thread.
_HELD = 16


def n_threads(n_jobs: int | None) -> int:
    """Threads that ``n_jobs`` asks for, as scikit-learn counts: None is 1, -1 is every core."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise UsageError(f"n_jobs={n_jobs!r}: needs a whole number other than 0, or None for 1")
    if n_jobs > 0:
        return int(n_jobs)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (cores or 1) + 1 + int(n_jobs))


def for_each(function: Callable[[T], object], items: Iterable[T], threads: int) -> None:
    """Call ``function`` on every item, with ``threads`` calls at a time, in any order.

    The first exception stops the others after their current item, and is raised.
    """
    iterator = iter(items)
    lock = threading.Lock()
    end = object()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            while not errors:
                with lock:
                    item = next(iterator, end)
                if item is end:
                    return
                function(item)  # type: ignore[arg-type]
        except BaseException as error:
            errors.append(error)

    # The calling thread works too: one thread needs no other.
    helpers = [threading.Thread(target=work, daemon=True) for _ in range(threads - 1)]
    try:
        for helper in helpers:
            helper.start()
        work()
        for helper in helpers:
            helper.join()
    except BaseException as error:  # Ctrl-C while waiting
        errors.append(error)
        raise
    if errors:
        raise errors[0]


def map_in_order(function: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Yield ``function(item)`` in the order of ``items``, with ``threads`` calls at a time.

    A few results a thread are held, so that a stream of any length needs little memory.
    """
    iterator = iter(items)
    while True:
        results: dict[int, R] = {}

        def keep(numbered: tuple[int, T], results: dict[int, R] = results) -> None:
            results[numbered[0]] = function(numbered[1])

        for_each(keep, enumerate(itertools.islice(iterator, _HELD * threads)), threads)
        if not results:
            return
        yield from (results[number] for number in range(len(results)))
