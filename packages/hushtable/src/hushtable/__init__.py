"""Private, mergeable outlier detection with small tables of counts.

Names load on first use, so that ``import hushtable`` itself is fast.
"""

from typing import TYPE_CHECKING, Any

from hushtable.display import Displayed, View
from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable.counts.periods import Increment, Periods, decoded
    from hushtable.counts.release import LocalModel, Release
    from hushtable.counts.sketch import Sketch
    from hushtable.counts.verdicts import Verdicts
    from hushtable.data.schema import Feature, Schema
    from hushtable.detectors import (
        ACE,
        HomeModel,
        HushTable,
        LSHiTables,
        PyODAdapter,
        RotatedRSHash,
        RSHash,
    )
    from hushtable.detectors.load import load
    from hushtable.errors import HushTableError
    from hushtable.plans.plan import Plan
    from hushtable.streams import SlidingWindow, drift

__all__ = [
    "ACE",
    "Feature",
    "HomeModel",
    "HushTable",
    "HushTableError",
    "Increment",
    "LSHiTables",
    "LocalModel",
    "Periods",
    "Plan",
    "PyODAdapter",
    "RSHash",
    "Release",
    "RotatedRSHash",
    "Schema",
    "Sketch",
    "SlidingWindow",
    "Verdicts",
    "decoded",
    "drift",
    "load",
]

_from_home, _ = exports(
    __name__,
    {
        "ACE": "detectors",
        "Feature": "data.schema",
        "HomeModel": "detectors",
        "HushTable": "detectors",
        "HushTableError": "errors",
        "Increment": "counts.periods",
        "LSHiTables": "detectors",
        "LocalModel": "counts.release",
        "Periods": "counts.periods",
        "Plan": "plans.plan",
        "PyODAdapter": "detectors",
        "RSHash": "detectors",
        "Release": "counts.release",
        "RotatedRSHash": "detectors",
        "Schema": "data.schema",
        "Sketch": "counts.sketch",
        "SlidingWindow": "streams",
        "Verdicts": "counts.verdicts",
        "decoded": "counts.periods",
        "drift": "streams",
        "load": "detectors.load",
    },
)


def _view(thing: object) -> View:
    from hushtable.describe.views import view  # only when the first object is displayed

    return view(thing)


Displayed._view = _view


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # importing it takes longer than all of --help

        return version("hushtable")
    return _from_home(name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
