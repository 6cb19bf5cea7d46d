"""Compiled once: where kernels are kept on disk."""

import hashlib
import tempfile
from pathlib import Path
from typing import Any

import numba
import platformdirs

_config: Any = numba.config


def _folder() -> Path | None:
    """Return the folder for kernels of these very sources; None if it cannot be written to.

    Numba looks at the file of a kernel alone, and would take an old one for good after a change
    in what it inlines from another file, as an upgrade may bring. So the folder goes by all.
    The user's own cache: an install may be read-only.
    """
    sources = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        sources.update(path.read_bytes())
    cache = _config.CACHE_DIR or platformdirs.user_cache_dir("hushtable", appauthor=False)
    folder = Path(cache) / f"hushtable-{sources.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    return folder


_FOLDER = _folder()
#: Whether what is compiled is kept for the next process.
KEPT = _FOLDER is not None


def kernel(function: Any) -> Any:
    """Compile a function on its first call in any process; it releases Python's lock."""
    if not KEPT:
        return numba.njit(nogil=True)(function)
    # Numba settles where a kernel is kept when it is decorated.
    before, _config.CACHE_DIR = _config.CACHE_DIR, str(_FOLDER)
    try:
        return numba.njit(nogil=True, cache=True)(function)
    finally:
        _config.CACHE_DIR = before
