"""One way to spread work over threads: an ordered map with little in flight."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from hushtable.errors import UsageError

__all__ = ["map_in_order", "n_threads"]

T = TypeVar("T")
R = TypeVar("R")


def n_threads(n_jobs: int | None) -> int:
    """Threads that ``n_jobs`` asks for, as scikit-learn counts: None is 1, -1 is every core."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise UsageError(f"n_jobs={n_jobs!r}: needs a whole number other than 0, or None for 1")
    if n_jobs > 0:
        return n_jobs
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (cores or 1) + 1 + n_jobs)


def map_in_order(function: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Yield ``function(item)`` in the order of ``items``, with ``threads`` calls at a time.

    At most ``2 * threads`` items are held, so a stream of any length needs little memory.
    """
    if threads == 1:
        yield from map(function, items)
        return
    pending: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                pending.append(pool.submit(function, item))
                if len(pending) >= 2 * threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
