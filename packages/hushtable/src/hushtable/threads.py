"""One way to spread work over threads: each takes the next item until none is left.

The kernels release Python's lock, so that threads run in parallel. A source's items are read
by whichever thread takes the next one, one thread at a time: reading goes on while others
compute, and several sources, such as files, are read at once.
"""

import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral
from typing import Any, Generic, TypeVar

from hushtable.arguments import MOST
from hushtable.errors import UsageError

T = TypeVar("T")
R = TypeVar("R")

#: Number of rows that one thread finishes, or nearly so, before another has started: with so few
#: rows, a second thread may be slower. Measured with 100 tables of the paper, the fastest.
FEW_ROWS = 8_192
#: The same for counting and for ranges: a call of `fit` starts a thread for each.
FEW_TO_COUNT = 16_384
#: Number of results that `map_in_order` holds per thread.
_HELD = 16
#: Largest number of threads on a machine with fewer cores: each holds its own counts.
_MOST_THREADS = 64
#: Seconds that an interrupted call waits for its helpers.
_GRACE = 1.0

_END: Any = object()


def n_threads(n_jobs: int | None, n_rows: int | None = None, few: int = FEW_ROWS) -> int:
    """Return the number of threads for ``n_jobs``, as in scikit-learn: None is 1, -1 all cores.

    If the number of rows is known and at most ``few``, one thread does the work.
    """
    if n_jobs is None:
        return 1
    number = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if not number or n_jobs == 0 or abs(n_jobs) > MOST:
        raise UsageError(f"n_jobs={n_jobs!r}: needs a whole number other than 0, or None for 1")
    if n_rows is not None and n_rows <= few:
        return 1
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    if n_jobs > 0:
        return min(int(n_jobs), max(_MOST_THREADS, cores))
    return max(1, cores + 1 + int(n_jobs))


def for_each(
    function: Callable[[T], object],
    sources: Iterable[Iterable[T]],
    threads: int,
    stop: Callable[[], object] = lambda: None,
) -> None:
    """Call ``function`` on every item of every source, with ``threads`` calls at a time.

    Items of one source are read in order; otherwise anything may come before anything else. Half
    as many sources are open at a time as there are threads. The first exception stops the
    others after their current item, and is raised. If that may take long, ``stop`` can end
    them: it is called once an exception has come.
    """
    if threads == 1:  # no sharing: a call on a row or two should not take longer
        _alone(function, sources, stop)
        return
    # Reading is less than half of the work, and an open file takes memory.
    turns = _Turns(sources, max(1, threads // 2))
    errors: list[BaseException] = []

    def work() -> None:
        try:
            while (item := turns.take()) is not _END:
                function(item)
        except BaseException as error:
            errors.append(error)
            turns.end()
            stop()

    # The calling thread works too: one thread needs no other. (The executors of the standard
    # library can hang at exit after Ctrl-C, because their threads are waited for. These are not.)
    helpers: list[threading.Thread] = []
    try:
        for _ in range(threads - 1):
            helper = threading.Thread(target=work, name="hushtable", daemon=True)
            helper.start()
            helpers.append(helper)
        work()
        if all(isinstance(error, Exception) for error in errors):
            for helper in helpers:
                helper.join()
    except BaseException as error:  # Ctrl-C while waiting
        errors.append(error)
        turns.end()
        stop()
    if errors:
        for helper in helpers:  # not indefinitely after Ctrl-C
            helper.join(_GRACE)
        raise errors[0]


def _alone(
    function: Callable[[T], object], sources: Iterable[Iterable[T]], stop: Callable[[], object]
) -> None:
    try:
        for item in itertools.chain.from_iterable(sources):
            function(item)
    except BaseException:
        stop()
        raise


def map_in_order(function: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Yield ``function(item)`` in the order of ``items``, with ``threads`` calls at a time.

    A few results per thread are held, so that a stream of any length needs little memory.
    """
    iterator = iter(items)
    while True:
        results: dict[int, R] = {}

        def keep(numbered: tuple[int, T], results: dict[int, R] = results) -> None:
            results[numbered[0]] = function(numbered[1])

        waiting = itertools.islice(iterator, _HELD * threads)
        for_each(keep, [enumerate(waiting)], threads)
        if not results:
            return
        yield from (results[number] for number in range(len(results)))


class _Turns(Generic[T]):
    """Items of several sources, for threads to take; each source is read by one at a time.

    At most ``together`` sources are open.
    """

    def __init__(self, sources: Iterable[Iterable[T]], together: int) -> None:
        self._idle = deque(iter(source) for source in sources)
        self._together = together
        self._reading = 0
        self._changed = threading.Condition()
        self._ended = False

    def end(self) -> None:
        """Give out no more items."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def take(self) -> T:
        """Return the next item of a source that no one else reads, or `_END`."""
        while True:
            with self._changed:
                # Others may read as many sources as may be open, or all that are left.
                while not self._ended and (
                    self._reading == self._together or (self._reading and not self._idle)
                ):
                    self._changed.wait()
                if not self._idle or self._ended:
                    return _END  # type: ignore[no-any-return]
                source = self._idle.popleft()
                self._reading += 1
            item = _END
            try:
                item = next(source, _END)
            finally:
                with self._changed:
                    self._reading -= 1
                    if item is not _END:
                        # At the front: an open source is read to its end before another.
                        self._idle.appendleft(source)
                    self._changed.notify_all()
            if item is not _END:
                return item  # type: ignore[no-any-return]
