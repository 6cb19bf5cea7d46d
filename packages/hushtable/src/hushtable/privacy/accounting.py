"""Names of the ways from costs to epsilon, as files have them."""

from typing import Any

from hushtable.errors import UsageError

#: As exact as Gaussian noise allows, where all noise is; and by zCDP, which files leave out.
GAUSSIAN, ZCDP = "gaussian", "zcdp"


def check_accounting(accounting: Any) -> None:
    """Raise `UsageError` if there is no such way."""
    if accounting not in (GAUSSIAN, ZCDP):
        raise UsageError(f"accounting={accounting!r}: needs {GAUSSIAN!r} or {ZCDP!r}")
