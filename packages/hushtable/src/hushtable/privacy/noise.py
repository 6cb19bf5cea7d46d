"""Noise: OpenDP's exact samplers, fed by the system's secure random numbers.

No seed can be given. Floating-point samplers of Laplace and Gaussian noise can be attacked
(Mironov, 2012); these draw integers exactly.
"""

import re
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import MissingExtraError, PrivacyError
from hushtable.privacy.mechanisms import MAX_SCALE, named
from hushtable.threads import for_each, n_threads

#: Cells that are drawn in one call of OpenDP: between two calls, progress shows and Ctrl-C works.
_CHUNK = 4096
#: The first OpenDP without a division that biased the noise at some scales, as 4.5 (its #2638).
_UNBIASED = (0, 14, 2)


def _opendp() -> Any:
    try:
        import opendp.prelude as opendp
    except ImportError:
        raise MissingExtraError("a private release", "OpenDP", "private") from None
    installed = version("opendp")
    if tuple(map(int, re.findall(r"\d+", installed)[:3])) < _UNBIASED:
        raise PrivacyError(
            f"OpenDP {installed} draws biased noise: needs 0.14.2 or newer; "
            "pip install --upgrade 'hushtable[private]'"
        )
    opendp.enable_features("contrib")
    return opendp


def library() -> str:
    """Return the name and version of the sampler's library, for the ledger."""
    _opendp()
    return f"opendp {version('opendp')}"


def _sampler(mechanism: str, scale: float, size: int) -> Any:
    opendp = _opendp()
    domain = opendp.vector_domain(opendp.atom_domain(T="i64"), size=size)
    return named(mechanism).sampler(opendp, domain, scale)


def add_noise(
    counts: NDArray[np.int64],
    mechanism: str,
    scale: float,
    *,
    progress: Callable[[int], None] | None = None,
) -> NDArray[np.int64]:
    """Return the counts (n_cells,) with independent, exactly drawn noise on every cell.

    They may be negative then. ``scale`` is in counts; ``progress`` is called after each chunk with
    how many more cells are done. Raises `MissingExtraError` if OpenDP is not installed.
    """
    if not 0.0 < scale <= MAX_SCALE:
        raise PrivacyError(f"noise of scale {scale:g}: needs one above 0 and at most 2^40")
    released = np.empty_like(counts)
    samplers = {
        size: _sampler(mechanism, scale, size)
        for size in {min(_CHUNK, len(counts)), len(counts) % _CHUNK} - {0}
    }

    def fill(start: int) -> None:
        chunk = counts[start : start + _CHUNK]
        released[start : start + len(chunk)] = samplers[len(chunk)](chunk.tolist())
        if progress is not None:
            progress(len(chunk))

    # OpenDP lets go of Python's lock while it draws.
    for_each(fill, [range(0, len(counts), _CHUNK)], n_threads(-1))
    return released
