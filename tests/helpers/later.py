"""Libraries that take long to import, and that a single test file needs."""

from importlib import import_module
from typing import Any


class Later:
    """A module that is imported when it is first used: collecting can do without it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)
