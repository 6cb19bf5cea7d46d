"""Compiled once: where kernels are cached on disk."""

import tempfile
from pathlib import Path
from typing import Any

import numba
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

    def on_start(self, found: object) -> None:
        if _is_ours(found):
            compile_notice.begin()

    def on_end(self, found: object) -> None:
        if _is_ours(found):
            compile_notice.end()


def _is_ours(found: Any) -> bool:
    return str(found.data["dispatcher"].__module__).startswith("hushtable")


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
