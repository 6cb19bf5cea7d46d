"""Calls with arguments that are not what they should be."""

import copy
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any

import numpy as np
import seeds
from edits import ODD, Program

from hushtable import (
    Feature,
    HushTable,
    LSHiTables,
    Plan,
    Schema,
    Sketch,
)
from hushtable.streams import SlidingWindow, drift
from hushtable_bench import ACE, RotatedRSHash, RSHash
from hushtable_federation.round import Round

__all__ = ["CALLS", "called"]


@cache
def _X() -> np.ndarray:
    return np.random.default_rng(0).uniform(0, 1, (60, 2))


@cache
def _schema() -> Schema:
    return Schema([Feature.numeric(name, low=0, high=1) for name in "ab"])


@cache
def _plan() -> Plan:
    return Plan.draw(_schema(), n_tables=3, n_cells=16, random_state=0)


@cache
def _sketch() -> Sketch:
    return Sketch.from_data(_plan(), _X())


@cache
def _fitted() -> HushTable:
    return HushTable(n_tables=3, random_state=0).fit(_X())


def _detector(kind: type) -> Callable[..., Any]:
    def fit_and_score(**parameters: Any) -> None:
        weights = parameters.pop("sample_weight", None)
        more = {} if weights is None else {"sample_weight": weights}
        kind(**parameters).fit(_X(), **more).predict(_X())

    return fit_and_score


def _set_threshold(**arguments: Any) -> None:
    copy.copy(_fitted()).set_threshold(_X(), **({"contamination": 0.1} | arguments))


def _score(**arguments: Any) -> None:
    model = copy.copy(_fitted()).set_params(**arguments)
    model.score_samples(_X())
    model.explain(_X())


def _open(**terms: Any) -> None:
    cards = [seeds.keys(name).card for name in seeds.NAMES]
    terms = {"epsilon": 1.0, "deadline": seeds.NOW + timedelta(days=1), "at": seeds.NOW} | terms
    Round.open(_plan(), cards, seeds.keys("lead"), **terms)


def _window(**arguments: Any) -> None:
    SlidingWindow(_plan(), **({"n_panes": 2} | arguments)).add(_X())


_TERMS = ("epsilon", "delta", "expected_rows", "sites")
_FIT = ("n_tables", "contamination", "n_jobs", "random_state")

#: What is called, and its arguments that may be odd.
CALLS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "numeric": (
        lambda **a: Feature.numeric(**({"name": "a", "low": 0, "high": 1} | a)),
        ("name", "low", "high", "unit"),
    ),
    "categorical": (
        lambda **a: Feature.categorical(**({"name": "a", "categories": ["x"]} | a)),
        ("name", "categories"),
    ),
    "schema": (lambda **a: Schema(**({"features": _schema().features} | a)), ("features",)),
    "draw": (
        lambda **a: Plan.draw(_schema(), **a),
        (*_TERMS, "detector", "random_state", "n_tables", "n_cells", "min_depth", "max_depth"),
    ),
    "draw the paper's": (
        lambda **a: Plan.draw(_schema(), detector="lsh_itables", **a),
        ("random_state", "n_tables", "max_samples"),
    ),
    "draw marginals": (lambda **a: Plan.marginals(_schema(), **a), _TERMS),
    "draw ranges": (
        lambda **a: Plan.ranges(_schema(), **({"epsilon": 1.0, "expected_rows": 10_000} | a)),
        _TERMS,
    ),
    "sketch": (
        lambda **a: Sketch.from_data(_plan(), **({"X": _X()} | a)),
        ("X", "sample_weight", "max_samples", "random_state", "n_jobs"),
    ),
    "release": (
        lambda **a: _sketch().release(**({"epsilon": 1.0} | a)),
        ("epsilon", "delta", "mechanism", "adjacency", "rows_per_person", "after", "share"),
    ),
    "round": (
        _open,
        (
            "epsilon",
            "delta",
            "masked",
            "least",
            "colluders",
            "adjacency",
            "rows_per_person",
            "share",
            "title",
            "previous",
        ),
    ),
    "window": (_window, ("n_panes", "n_jobs")),
    "drift": (
        lambda **a: drift(**({"before": _sketch(), "after": _sketch()} | a)),
        ("before", "after", "rows"),
    ),
    "threshold": (_set_threshold, ("contamination", "sample_weight")),
    "score": (_score, ("n_jobs",)),
    "fit HushTable": (_detector(HushTable), (*_FIT, "passes", "sample_weight")),
    "fit LSHiTables": (_detector(LSHiTables), (*_FIT, "max_samples")),
    "fit RSHash": (_detector(RSHash), (*_FIT, "max_samples")),
    "fit RotatedRSHash": (_detector(RotatedRSHash), (*_FIT, "max_samples")),
    "fit ACE": (_detector(ACE), (*_FIT, "n_bits", "sample_weight")),
}


def called(program: bytes) -> None:
    """Call something with some odd arguments."""
    choices = Program(program)
    call, names = CALLS[choices.pick(sorted(CALLS))]
    odd: dict[str, Any] = {}
    for _ in range(1 + choices.below(3)):
        odd[choices.pick(names)] = copy.deepcopy(choices.pick(ODD))
    call(**odd)
