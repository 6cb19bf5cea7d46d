"""Names of a package that load on first use (PEP 562), so that importing it costs nothing.

Names and modules that were removed are refused with what to do instead.
"""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

#: By their dotted names, what was removed, and what to do instead.
_removed: dict[str, str] = {}


class _RemovedModules:
    """The last finder of modules, which Python calls for those that no other finder knows."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raise `ImportError` for a module that was removed."""
        _check_there(name)


def removed(names: Mapping[str, str]) -> None:
    """Refuse to import modules, and names that `exports` would find, that were removed.

    ``names`` states by their dotted names what to do instead.
    """
    if _RemovedModules not in sys.meta_path:
        sys.meta_path.append(_RemovedModules)
    _removed.update(names)


def _check_there(name: str) -> None:
    if name in _removed:
        raise ImportError(f"{name} was removed: {_removed[name]}", name=name)


def exports(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package.

    ``homes`` names the module, below the package, that each public name comes from.
    """

    def __getattr__(name: str) -> Any:
        if name not in homes:
            _check_there(f"{package}.{name}")
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)  # next time, it is found without this
        return value

    return __getattr__, lambda: sorted(homes)
