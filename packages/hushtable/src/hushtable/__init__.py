"""Private, mergeable outlier detection with small tables of counts.

Names load on first use, so that ``import hushtable`` itself is fast.
"""

from typing import TYPE_CHECKING, Any

from hushtable.lazy import exports, removed

if TYPE_CHECKING:
    from hushtable.counts.periods import Increment, Periods, decoded
    from hushtable.counts.release import LocalModel, Release
    from hushtable.counts.sketch import Sketch
    from hushtable.counts.verdicts import Verdicts
    from hushtable.data.schema import Feature, Schema
    from hushtable.detectors import HushTable, LSHiTables
    from hushtable.detectors.load import load
    from hushtable.errors import HushTableError
    from hushtable.plans.plan import Plan
    from hushtable.streams import SlidingWindow, drift

__all__ = [
    "Feature",
    "HushTable",
    "HushTableError",
    "Increment",
    "LSHiTables",
    "LocalModel",
    "Periods",
    "Plan",
    "Release",
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
        "Feature": "data.schema",
        "HushTable": "detectors",
        "HushTableError": "errors",
        "Increment": "counts.periods",
        "LSHiTables": "detectors",
        "LocalModel": "counts.release",
        "Periods": "counts.periods",
        "Plan": "plans.plan",
        "Release": "counts.release",
        "Schema": "data.schema",
        "Sketch": "counts.sketch",
        "SlidingWindow": "streams",
        "Verdicts": "counts.verdicts",
        "decoded": "counts.periods",
        "drift": "streams",
        "load": "detectors.load",
    },
)

removed(
    {
        **{
            f"hushtable.{name}": "pip install 'hushtable[pyod]', and from hushtable_connect.pyod "
            "import PyODAdapter"
            for name in ("PyODAdapter", "detectors.PyODAdapter", "detectors.pyod")
        },
        **{
            f"hushtable.{name}": "NeighbourEnsemble of hushtable_bench.baselines is in its place"
            for name in ("EnsembleKNN", "EnsembleLOF")
        },
        **{
            f"hushtable.plots.{name}": "detector.outliers(X), release.counts, and the desk have "
            "its numbers; three lines of matplotlib draw it: docs/project/coming-from-rc1.md"
            for name in ("NoiseDisplay", "RankedOutliersDisplay", "VerdictsDisplay")
        },
        "hushtable.audit": "it is hushtable_bench.systems.audit, of the package hushtable-bench",
        "hushtable.scores.candidates": "a row of a review is a hushtable.scores.finding.Finding",
        "hushtable.scores.verdict_log.LoggedReview": "call Review(..., log=log) of "
        "hushtable.scores.review",
    }
)


#: Public names of other packages of this repository, which were here once.
_MOVED = {"HomeModel": "federation", **dict.fromkeys(("ACE", "RSHash", "RotatedRSHash"), "bench")}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # importing it takes longer than all of --help

        return version("hushtable")
    if name in _MOVED:
        # No AttributeError, whose words an import statement would replace by its own.
        package = _MOVED[name]
        raise ImportError(
            f"{name} is in the package hushtable-{package}: pip install hushtable-{package}, then "
            f"from hushtable_{package} import {name}"
        )
    return _from_home(name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
