"""Checks of arguments that many calls take, in the same words."""

from typing import Any

import numpy as np

from hushtable.errors import UsageError

#: Rows, and whatever is counted like them: beyond, sums might not be exact, nor costs finite.
MOST = 2**40


def whole(name: str, value: Any, low: int = 1, high: int = MOST) -> int:
    """Return a whole number from low to high; raises `UsageError` otherwise."""
    number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not number or not low <= value <= high:
        range_ = f", {low} or more" if high == MOST else f" from {low:,} to {high:,}"
        raise UsageError(f"{name}={value!r}: needs a whole number{range_}")
    return int(value)


def generator(random_state: Any, rng: Any = None) -> np.random.Generator:
    """Return the generator that ``random_state`` or ``rng`` means, of which one may be given.

    ``rng`` is what SPEC 7 of Scientific Python names it in functions: all that
    ``numpy.random.default_rng`` takes. The same whole number gives the same generator by either.

    Raises
    ------
    UsageError
        If both are given, or the one that is given is no seed.
    """
    if rng is not None and random_state is not None:
        raise UsageError(
            f"random_state={random_state!r} and rng={rng!r}: give one of them, rng in new code"
        )
    name, seed = ("random_state", random_state) if rng is None else ("rng", rng)
    if isinstance(seed, np.random.RandomState):
        seed = seed.randint(2**31)
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise UsageError(
            f"{name}={seed!r}: needs a whole number, 0 or more, or a NumPy Generator; None draws "
            "anew each time"
        ) from None


def is_text(value: Any) -> bool:
    """Whether this is text that a file can hold."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half a character
        return False
    return True
