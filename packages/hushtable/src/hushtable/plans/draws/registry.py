"""Every kind of plan by its name: what draws it, of which family, and what its counts are for."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from hushtable.data.schema import Schema
from hushtable.errors import PlanError, UsageError
from hushtable.plans.families import HashFamily
from hushtable.plans.families import register as register_family
from hushtable.plans.score_rule import ScoreRule


class Purpose(Enum):
    """The use of the counts under a plan."""

    SCORES = "scores"
    MARGINALS = "marginals"
    RANGES = "ranges"
    GATE = "gate"
    RANKS = "ranks"
    VERDICTS = "verdicts"

    @property
    def scores_rows(self) -> bool:
        """Whether a row's cells give it a score."""
        return self is Purpose.SCORES

    @property
    def refines(self) -> bool:
        """Whether the counts are of a first round, that the next plan is drawn from."""
        return self in (Purpose.MARGINALS, Purpose.RANGES)


@dataclass(frozen=True)
class Draw:
    """A kind of plan: the family of its hash functions, and how counts become scores."""

    #: The plan's ``detector``.
    name: str
    family: type[HashFamily]
    score: ScoreRule
    #: Takes a schema, a generator and, by name, the draw's parameters; returns the family. A
    #: plan without is made by a method of `Plan` of its own.
    function: Callable[..., HashFamily] | None = None
    #: The class in `hushtable.detectors` that fits it, as files name it.
    estimator: str = ""
    purpose: Purpose = Purpose.SCORES
    #: Score rules in place of ``score``, by the parameter that asks for one.
    variants: Mapping[str, ScoreRule] = field(default_factory=dict)

    def score_for(self, parameters: Mapping[str, Any]) -> ScoreRule:
        """Return the score rule of a plan that is drawn with these parameters."""
        asked = (rule for name, rule in self.variants.items() if parameters.get(name))
        return next(asked, self.score)

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters that `draw` takes."""
        taken = inspect.signature(self.function).parameters.values() if self.function else ()
        return [p.name for p in taken if p.kind is p.KEYWORD_ONLY]

    def draw(self, schema: Schema, rng: np.random.Generator, **parameters: Any) -> HashFamily:
        """Draw the hash functions; raises `UsageError` at a parameter that this draw lacks."""
        known = self.parameters
        if unknown := sorted(set(parameters) - set(known)):
            raise UsageError(f"detector {self.name!r} takes no {', '.join(unknown)}: only {known}")
        assert self.function is not None
        return self.function(schema, rng, **parameters)


#: Every kind of plan. Commands, estimators, files, the JSON Schema and tests go by this list.
DRAWS: dict[str, Draw] = {}


def register(draw: Draw) -> Draw:
    """Add a kind of plan, and its family: plans of this name can then be drawn, saved and read.

    Raises `UsageError` if another kind, or another family, has its name.
    """
    register_family(draw.family)
    if DRAWS.setdefault(draw.name, draw) is not draw:
        raise UsageError(f"a draw {draw.name!r} is registered already: rename one")
    return draw


def detectors() -> list[str]:
    """Return the names of the draws that `Plan.draw` makes plans by."""
    return sorted(name for name, draw in DRAWS.items() if draw.function is not None)


def draw_of(detector: Any) -> Draw:
    """Return the draw of a detector; raises `UsageError` if there is none."""
    if not isinstance(detector, str) or detector not in detectors():
        raise UsageError(f"detector {detector!r} is unknown: needs one of {detectors()}")
    return DRAWS[detector]


def purpose_of(detector: str, family: HashFamily | None = None) -> Purpose:
    """Return the purpose of plans of a name.

    Budgets, and the use of the counts, go by the name: `PlanError` is raised if it is unknown, or
    if the tables are not of its family. Of tables that are hidden, only the name is known.
    """
    draw = DRAWS.get(detector) if isinstance(detector, str) else None
    if draw is None:
        if family is None:  # of a later version
            return Purpose.SCORES
        raise PlanError(f"a plan of {detector!r} is unknown: needs one of {sorted(DRAWS)}")
    if family is not None and type(family) is not draw.family:
        raise PlanError(
            f"a plan of {detector!r} needs the hash family {draw.family.name}, and this one has "
            f"{family.name}: get the plan again from whoever drew it"
        )
    return draw.purpose
