"""For all kernels: how they are compiled and cached on disk, mixing keys into cells, and adding."""

import tempfile
from pathlib import Path
from typing import Any

import numba
import numpy as np
import platformdirs
from numba.core import event
from numba.core.caching import FunctionCache

from hushtable.kernels._built import digest
from hushtable.progress import AGAIN, compile_notice

_config: Any = numba.config


def _folder() -> Path | None:
    """Return the folder for kernels of exactly these sources; None if it is not writable.

    Numba checks only the file of a kernel, and would use outdated code after a change in a file
    from which it inlines, for example after an upgrade. So the folder depends on all sources. It is
    in the user's own cache, because an installation may be read-only.
    """
    cache = _config.CACHE_DIR or platformdirs.user_cache_dir("hushtable", appauthor=False)
    folder = Path(cache) / f"hushtable-{digest()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    return folder


_FOLDER = _folder()
#: Whether compiled code is kept for the next process.
KEPT = _FOLDER is not None


class _Compiling(event.Listener):
    """Records that kernels are compiled; other uses of Numba are ignored."""

    def on_start(self, event: object) -> None:
        if _is_ours(event):
            compile_notice.begin()

    def on_end(self, event: object) -> None:
        if _is_ours(event):
            compile_notice.end()


def _is_ours(event: Any) -> bool:
    return str(event.data["dispatcher"].__module__).startswith("hushtable")


if not KEPT:
    compile_notice.text = AGAIN
event.register("numba:compile", _Compiling())  # type: ignore[no-untyped-call]


class _Kept(FunctionCache):
    """Numba's cache of one kernel; if a file of it is damaged, the kernel is compiled again."""

    def load_overload(self, sig: object, target_context: object) -> Any:
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # pickle may raise any error for such a file
            self.flush()  # type: ignore[no-untyped-call]
            return None


def kernel(function: object) -> Any:
    """Compile a function on its first call in any process; it releases Python's lock.

    As in NumPy, a division by zero is infinite or NaN: built kernels cannot raise an error.
    """
    compiled = numba.njit(nogil=True, error_model="numpy")
    if not KEPT:
        return compiled(function)
    # Numba decides where to cache a kernel when it is decorated.
    before, _config.CACHE_DIR = _config.CACHE_DIR, str(_FOLDER)
    try:
        dispatcher: Any = compiled(function)
        dispatcher._cache = _Kept(function)  # type: ignore[no-untyped-call]
        return dispatcher
    finally:
        _config.CACHE_DIR = before


# --- what kernels call ----------------------------------------------------------------------------

#: Rows that one loop processes: the cost of starting a loop is then small, and a few columns of
#: codes and cells fit in the second-level cache.
BLOCK = 4_096
#: Rows whose counts in one table are collected before those in the next: the table's counters
#: stay in the first-level cache, and are added to all counts once.
SPAN = 4 * BLOCK


#: How Numba compiles functions that only kernels call: Python does not call them, and they allocate
#: no memory. Numba then does not have to count references to their arrays: in functions that LLVM
#: does not inline, counting takes longer than a loop over a thousand rows.
INLINED: Any = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def inlined(function: object) -> Any:
    return numba.njit(**INLINED)(function)


@inlined
def gather(cells, n, lanes):
    """Count ``n`` cells, in four lanes.

    Consecutive rows often fall into the same cell, and a counter that was just written is slow to
    read again: with four counters for each cell this happens rarely.
    """
    a, b, c, d = lanes[0], lanes[1], lanes[2], lanes[3]
    i = 0
    while i + 3 < n:
        a[cells[i]] += np.uint32(1)
        b[cells[i + 1]] += np.uint32(1)
        c[cells[i + 2]] += np.uint32(1)
        d[cells[i + 3]] += np.uint32(1)
        i += 4
    while i < n:
        a[cells[i]] += np.uint32(1)
        i += 1


@inlined
def empty_lanes(lanes, size):
    """Add the lanes up in the first one, and reset the others."""
    a, b, c, d = lanes[0], lanes[1], lanes[2], lanes[3]
    for cell in range(size):
        a[cell] = np.uint32((a[cell] + b[cell]) + (c[cell] + d[cell]))
    lanes[1:, :size] = 0


@inlined
def add(cells, n, weights, start, offset, counts):
    if weights.size == 0:
        for i in range(n):
            counts[offset + cells[i]] += 1
    else:
        for i in range(n):
            counts[offset + cells[i]] += weights[start + i]


@inlined
def mix(key):
    """Mix 32 bits: MurmurHash3's fmix32."""
    h = np.uint32(key)
    h = np.uint32(h ^ np.uint32(h >> np.uint32(16)))
    h = np.uint32(h * np.uint32(0x85EBCA6B))
    h = np.uint32(h ^ np.uint32(h >> np.uint32(13)))
    h = np.uint32(h * np.uint32(0xC2B2AE35))
    return np.uint32(h ^ np.uint32(h >> np.uint32(16)))


@inlined
def fold(code, cells):
    """Mix a code of 32 bits into ``cells`` (a power of two) cells."""
    return np.uint16(mix(code) & np.uint32(cells - 1))
