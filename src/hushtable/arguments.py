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


def generator(random_state: Any) -> np.random.Generator:
    """Return the generator that ``random_state`` means; raises `UsageError` if it is none."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise UsageError(
            f"random_state={random_state!r}: needs a whole number, 0 or more, or a NumPy "
            "Generator; None draws anew each time"
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
