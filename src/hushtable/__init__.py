"""Private, mergeable outlier detection with small tables of counts.

Names load on first use, so that ``import hushtable`` costs nothing by itself.
"""

import importlib
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hushtable.detectors import ACE, HushTable, LSHiTables, PyODAdapter, RotatedRSHash, RSHash
    from hushtable.errors import HushTableError
    from hushtable.loading import load
    from hushtable.plan import Plan
    from hushtable.privacy.local import LocalModel
    from hushtable.privacy.release import Release
    from hushtable.schema import Feature, Schema
    from hushtable.sketch import Sketch
    from hushtable.streams import SlidingWindow, drift

__all__ = [
    "ACE",
    "Feature",
    "HushTable",
    "HushTableError",
    "LSHiTables",
    "LocalModel",
    "Plan",
    "PyODAdapter",
    "RSHash",
    "Release",
    "RotatedRSHash",
    "Schema",
    "Sketch",
    "SlidingWindow",
    "drift",
    "load",
]

_HOMES = {
    "ACE": "detectors",
    "Feature": "schema",
    "HushTable": "detectors",
    "HushTableError": "errors",
    "LSHiTables": "detectors",
    "LocalModel": "privacy.local",
    "Plan": "plan",
    "PyODAdapter": "detectors",
    "RSHash": "detectors",
    "Release": "privacy.release",
    "RotatedRSHash": "detectors",
    "Schema": "schema",
    "Sketch": "sketch",
    "SlidingWindow": "streams",
    "drift": "streams",
    "load": "loading",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version("hushtable")
    if name in _HOMES:
        return getattr(importlib.import_module(f"hushtable.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'hushtable' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
