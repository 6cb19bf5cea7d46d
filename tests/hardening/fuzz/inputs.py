"""The corpus of each target, and what one input may take of memory and time.

The corpus has inputs that reach different code, one a line in base64, and what once went wrong:
``corpus/TARGET.txt`` is made by ``run.py --keep``. ``findings/TARGET.SLUG`` is a file each, as
the reader got it, kept by hand once the fault is mended.
"""

import base64
import contextlib
import resource
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["findings", "keep", "kept", "limited"]

_HERE = Path(__file__).parent
#: What is kept of one target at most.
_MOST_BYTES, _MOST_INPUTS = 12_000, 80


def kept(target: str) -> list[bytes]:
    """Return the inputs that are kept for a target."""
    path = _HERE / "corpus" / f"{target}.txt"
    return [base64.b64decode(line) for line in path.read_text().split()] if path.exists() else []


def keep(target: str, inputs: list[bytes]) -> int:
    """Write the corpus of a target again, some of these of every size; return how many."""
    by_size = sorted({one for one in inputs if one}, key=lambda one: (len(one), one))
    chosen = by_size[:: max(1, -(-len(by_size) // _MOST_INPUTS))]
    while sum(map(len, chosen)) > _MOST_BYTES:
        chosen.pop()  # the largest
    (_HERE / "corpus").mkdir(exist_ok=True)
    lines = "".join(f"{base64.b64encode(one).decode()}\n" for one in chosen)
    (_HERE / "corpus" / f"{target}.txt").write_text(lines)
    return len(chosen)


def findings(target: str) -> list[bytes]:
    """Return what once went wrong in a target."""
    return [path.read_bytes() for path in sorted(_HERE.glob(f"findings/{target}.*"))]


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
