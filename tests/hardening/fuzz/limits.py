"""What one input may take: memory, and time of one core."""

import contextlib
import resource
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["MOST_SECONDS", "TooSlow", "limited"]

#: Far above what any input takes on a busy machine; code that runs in a circle takes for ever.
MOST_SECONDS = 10.0


class TooSlow(Exception):
    """An input took more time than any of its size should."""


@contextlib.contextmanager
def limited(most_bytes: int) -> Iterator[None]:
    """Let what takes more memory fail, as `MemoryError`, and too much time as `TooSlow`.

    Memory is address space beyond what the process has before.
    """
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + most_bytes, hard))
    start = time.process_time()
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    took = time.process_time() - start
    if took > MOST_SECONDS:
        raise TooSlow(f"{took:.1f} s")
