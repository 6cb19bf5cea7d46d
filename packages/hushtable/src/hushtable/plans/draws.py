"""The draws: how each detector's hash functions are drawn from a schema (and marginals).

To add a draw, write a function and call `register` once, here or in another package, which names
the module in the entry points of the group ``hushtable.draws``.
"""

import importlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels, plugins
from hushtable.arguments import whole
from hushtable.data.schema import Schema
from hushtable.errors import PlanError, UsageError
from hushtable.plans import families
from hushtable.plans.families import (
    MAX_CELLS,
    Contextual,
    HashFamily,
    RandomFeature,
    context_columns,
    own_cells,
)
from hushtable.plans.families.random_feature import draw_functions, draw_lsh_itables
from hushtable.plans.profile import (
    FIRST,
    FOR_NOVELTY,
    MARGINAL_BINS,
    OWN_SIDES,
    REFINED,
    Marginals,
    Profile,
    stratified,
)
from hushtable.plans.score_rule import ScoreRule
from hushtable.privacy.layout import (
    FIRST_PASS_SHARE,
    GATE_SHARE,
    MARGINAL_SHARE,
    RANGE_SHARE,
    Design,
)


class Purpose(Enum):
    """The use of the counts under a plan."""

    SCORES = "scores"
    MARGINALS = "marginals"
    RANGES = "ranges"
    GATE = "gate"
    RANKS = "ranks"

    @property
    def scores_rows(self) -> bool:
        """Whether the counts give a row a score."""
        return self is Purpose.SCORES

    @property
    def refines(self) -> bool:
        """Whether the counts belong to a first round, from which the next plan is drawn."""
        return self in _SHARES

    def share(self, before: "Set[Purpose]", first_of_two: bool) -> float | None:
        """Return the default share of the budget for a release; None means all that is left.

        ``before`` are the earlier rounds from which its plan was drawn.
        """
        if self in _SHARES:
            return _SHARES[self]
        left = 1.0 - sum(share for purpose, share in _SHARES.items() if purpose in before)
        if self is Purpose.GATE:
            return left * GATE_SHARE
        return left * FIRST_PASS_SHARE if first_of_two and self.scores_rows else None


_SHARES = {
    Purpose.MARGINALS: MARGINAL_SHARE, Purpose.RANGES: RANGE_SHARE,
}  # fmt: skip


@dataclass(frozen=True)
class Draw:
    """A kind of plan: the family of its hash functions, and the rule from counts to scores."""

    #: The plan's ``detector``.
    name: str
    family: type[HashFamily]
    score: ScoreRule
    #: Takes a schema, a generator and, by name, the draw's parameters; returns the family. None if
    #: a method of `Plan`, or a function of `hushtable.counts.rounds`, makes the plan instead.
    function: Callable[..., HashFamily] | None = None
    #: The class that fits such a plan, as MODULE:NAME; files contain its name.
    estimator: str = ""
    purpose: Purpose = Purpose.SCORES
    #: Score rules that replace ``score``, by the parameter that selects each.
    variants: Mapping[str, ScoreRule] = field(default_factory=dict)
    #: Families that replace ``family`` when certain parameters are given.
    others: tuple[type[HashFamily], ...] = ()

    def score_for(self, parameters: Mapping[str, object]) -> ScoreRule:
        """Return the score rule of a plan drawn with these parameters."""
        asked = (rule for name, rule in self.variants.items() if parameters.get(name))
        return next(asked, self.score)

    def laid_out(self, design: Design | None, parameters: Mapping[str, object]) -> dict[str, Any]:
        """Return a draw's parameters, together with the layout for a private plan's design.

        Raises `UsageError` if this draw has no layout for the design.
        """
        in_context = parameters.get("context") is not None
        if design is None:
            return dict(parameters)
        if design.passes == 2 and parameters.get("novelty"):
            raise UsageError(
                "passes=2 with novelty=True: all clean rows should be counted, and a second pass "
                "would leave some of them out, which loses accuracy: draw it with one pass"
            )
        if design.passes == 2 and in_context:
            raise UsageError(
                "passes=2 with context=: rows are compared within their context in one pass over "
                "all rows: leave passes out"
            )
        layout = PRIVATE_PAIRS if in_context else design.parameters()
        if not set(layout) <= set(self.parameters):
            raise UsageError(f"detector {self.name!r} has one layout: leave epsilon out")
        return {**layout, **parameters}

    def estimator_class(self) -> Any:
        """Return the detector that fits such a plan, a subclass of `hushtable.TableDetector`."""
        module, _, name = self.estimator.partition(":")
        return getattr(importlib.import_module(module), name)

    @cached_property
    def parameters(self) -> list[str]:
        """Names of the parameters that `draw` takes."""
        taken = inspect.signature(self.function).parameters.values() if self.function else ()
        return [p.name for p in taken if p.kind is p.KEYWORD_ONLY]

    def draw(self, schema: Schema, rng: "np.random.Generator", **parameters: object) -> HashFamily:
        """Draw the hash functions; raises `UsageError` at a parameter that this draw lacks."""
        known = self.parameters
        if unknown := sorted(set(parameters) - set(known)):
            raise UsageError(f"detector {self.name!r} takes no {', '.join(unknown)}: only {known}")
        assert self.function is not None
        return self.function(schema, rng, **parameters)


#: Every kind of plan. Commands, estimators, files, the JSON Schema and tests use this list.
DRAWS: dict[str, Draw] = {}
#: Those that an estimator fits, by the name of its class.
ESTIMATORS: dict[str, Draw] = {}


def register(draw: Draw) -> Draw:
    """Add a kind of plan, and its family: plans with this name can then be drawn, saved and read.

    Raises `UsageError` if another kind, or another family, has the same name.
    """
    for family in (draw.family, *draw.others):
        families.register(family)
    if DRAWS.setdefault(draw.name, draw) is not draw:
        raise UsageError(f"a draw {draw.name!r} is registered already: rename one")
    if draw.estimator:
        ESTIMATORS[draw.estimator.partition(":")[2]] = draw
    return draw


def detectors() -> list[str]:
    """Return the names of the draws that `Plan.draw` accepts."""
    return sorted(name for name, draw in DRAWS.items() if draw.function is not None)


def draw_of(detector: object) -> Draw:
    """Return the draw of a detector; raise `UsageError` if there is none."""
    draw = plugins.registered(DRAWS, detector)
    if draw is None or draw.function is None:
        raise UsageError(plugins.unknown("detector", detector, detectors()))
    return draw


def purpose_of(detector: str, family: HashFamily | None = None) -> Purpose:
    """Return the purpose of plans with a name.

    Budgets, and the use of the counts, depend on the name: `PlanError` is raised if the name is
    unknown or the tables do not belong to its family.
    """
    if family is None:  # an unknown name is of another package, or of a later version
        return DRAWS[detector].purpose if detector in DRAWS else Purpose.SCORES
    draw = plugins.registered(DRAWS, detector)
    if draw is None:
        raise PlanError(plugins.unknown("a plan of", detector, DRAWS))
    if type(family) not in (draw.family, *draw.others):
        raise PlanError(
            f"a plan of {detector!r} needs the hash family {draw.family.name}, but this one has "
            f"{family.name}: get the plan again from the person who drew it"
        )
    return draw.purpose


Floats = NDArray[np.float64]


#: Distance beyond its range, in ranges, at which a number takes half of what its row can lose; and
#: what is added to it, divided by the rows counted: the fewer rows were counted, the further new
#: rows exceed their range. Measured: see the docs.
MARGIN, MARGIN_OF_FEW_ROWS = 0.03, 10.0


def draw_hushtable(
    schema: Schema,
    rng: "np.random.Generator",
    *,
    marginals: Marginals | None = None,
    n_tables: int = 100,
    n_cells: int | None = None,
    min_depth: int | None = None,
    max_depth: int | None = None,
    novelty: bool = False,
    tails: bool = True,
    context: Sequence[str] | None = None,
    n_contexts: int = 256,
    own_sides: int = OWN_SIDES,
) -> RandomFeature | Contextual:
    """Draw the refined tables: deep codes folded into few cells, and stratified draws.

    Depths are uniform on ``min_depth..max_depth``, 8 to 24 by default, and there are 256 cells a
    table; for ``novelty``, 24 to 32 and 1,024. All (feature, cut) pairs are drawn at once,
    systematically over the features by weight and stratified over the cuts of each feature,
    then shuffled and dealt to the tables. With ``marginals``, features weigh log(4 + kurtosis),
    and .3 of the cuts follow the quantiles; if one cell of a feature holds more than a fifth of
    the rows, .15 of its cuts follow the quantiles and .15 the tails (see `Profile`). For novelty,
    all features have equal weights, as they do without marginals; then cuts are uniform on the
    range. Half of the functions on a categorical feature separate rare categories from frequent
    ones. Noise in the marginals is removed first, and the remaining weights are shrunk towards
    their mean. The margin is larger if fewer rows were counted.

    Missing values have sides of their own in ``own_sides`` of ten tables: see `draw_functions`.

    Without ``tails``, and under noise, weights are log(1 + kurtosis), a quarter of the cuts follow
    the quantiles, and none follow the tails.

    With ``context``, names of columns, these hash functions are drawn on the other columns, the
    behaviour: 3 to 8 per table, folded into 16 cells. The context has its own functions: 5 to 12
    per table, folded into ``n_contexts`` = 256 cells. A single categorical column has a cell for
    each value instead, if there are no more of these than a table has room for or, under noise,
    than ``n_contexts`` (see `Contextual`).
    """
    m = whole("n_tables", n_tables, 1, 10_000)
    defaults = (24, 32, 1024) if novelty else (8, 24, 256) if context is None else (3, 8, 16)
    low, high, cells = (
        default if given is None else given
        for given, default in zip((min_depth, max_depth, n_cells), defaults, strict=True)
    )
    low = whole("min_depth", low, 1, 32)
    high = whole("max_depth", high, low, 32)
    cells = whole("n_cells", cells, 2, 1 << 16)
    depth = (low + np.floor(rng.random(m) * (high - low + 1))).clip(low, high).astype(np.uint8)
    noisy = marginals is not None and marginals.noise_sd > 0.0
    by = FOR_NOVELTY if novelty else REFINED if tails and not noisy else FIRST
    profile = Profile(schema, marginals, by)
    margin = round(min(1.0, MARGIN + MARGIN_OF_FEW_ROWS / profile.n_rows) * kernels.LEVELS)
    own_sides = whole("own_sides", own_sides, 0, 10)
    if context is None:
        weights = profile.weights
        tables = _refined(schema, rng, depth, profile, weights, cells, own_sides)
        return replace(tables, margin=margin)
    if novelty:
        raise UsageError("context= and novelty=True cannot be combined: leave one out")
    inside = context_columns(schema, context)
    behaviour, pooled = _behaviour(schema, rng, depth, profile, inside, cells, own_sides)
    most = whole("n_contexts", n_contexts, 2, MAX_CELLS // cells)
    own = own_cells(schema, inside, most if noisy or n_contexts < CONTEXTS else MAX_CELLS // cells)
    drawn_contexts = m if schema.differences is None else -(-m // SHARED)
    drawn = None if own else _drawn_context(schema, rng, drawn_contexts, profile, inside, most)
    return Contextual.paired(behaviour, drawn, own, margin, pooled)


def _refined(
    schema: Schema,
    rng: "np.random.Generator",
    depth: NDArray[np.uint8],
    profile: Profile,
    weights: Floats,
    cells: int,
    own_sides: int,
) -> RandomFeature:
    feature, cut = stratified(weights, int(depth.sum()), rng)
    cuts = feature, profile.positions(feature, cut)
    return draw_functions(
        schema, rng, depth, cuts, max_cells=cells, profile=profile, own_sides=own_sides
    )


#: Cells of a drawn context, and its depths: from log2 of the cells minus 3 to that plus 4.
#: Measured: see docs/benchmarks/accuracy.md.
CONTEXTS, SHALLOWER, DEEPER = 256, 3, 4
#: Tables that share a drawn context if differences from its predictions are features; and one of
#: how many tables is of differences within groups, if there are such. Measured: see
#: docs/benchmarks/accuracy.md; of two to four, all are alike on public panels.
SHARED, POOLED = 4, 3
#: Tables for counts of pairs that will have noise, and contexts in each. Measured: see
#: docs/benchmarks/accuracy.md.
PRIVATE_PAIRS = {"n_tables": 25, "n_contexts": 64, "n_cells": 16, "min_depth": 3, "max_depth": 8}


def _behaviour(
    schema: Schema,
    rng: "np.random.Generator",
    depth: NDArray[np.uint8],
    profile: Profile,
    inside: NDArray[np.bool_],
    cells: int,
    own_sides: int,
) -> tuple[RandomFeature, int]:
    """Draw tables of the behaviour; return how many, the last ones, are of differences in groups.

    Differences from a regression are features like others.
    """
    differences = schema.differences
    pooled = len(depth) // POOLED if differences is not None and differences.in_groups else 0
    derived = np.arange(len(schema)) >= len(schema.of_rows)
    weights = profile.weights_of(~inside & ~derived if pooled else ~inside)
    family = _refined(schema, rng, depth[pooled:], profile, weights, cells, own_sides)
    if not pooled:
        return family, 0
    weights = profile.weights_of(derived)
    more = _refined(schema, rng, depth[:pooled], profile, weights, cells, own_sides)
    return family.and_more(more), pooled


def _drawn_context(
    schema: Schema,
    rng: "np.random.Generator",
    m: int,
    profile: Profile,
    inside: NDArray[np.bool_],
    contexts: int,
) -> RandomFeature:
    bits = math.log2(contexts)
    if bits % 1.0:
        raise UsageError(f"n_contexts={contexts}: needs a power of two")
    low, high = max(1, int(bits) - SHALLOWER), min(32, int(bits) + DEEPER)
    depth = (low + np.floor(rng.random(m) * (high - low + 1))).clip(low, high).astype(np.uint8)
    return _refined(schema, rng, depth, profile, profile.weights_of(inside), contexts, OWN_SIDES)


__all__ = [
    "DRAWS", "ESTIMATORS", "IN_CONTEXT", "MARGINAL_BINS", "NOVELTY", "Draw", "Marginals", "Purpose",
    "detectors", "draw_of", "purpose_of", "register",
]  # fmt: skip

#: How counts of clean rows become scores: one row in a cell is far from no row. Measured: see the
#: docs.
NOVELTY = ScoreRule("pseudocount_log2", 0.05)
#: How counts of pairs become scores: 1% of a context's rows is far from no row. Measured: see
#: docs/benchmarks/accuracy.md.
IN_CONTEXT = ScoreRule("context_log2", 0.01)
_HOME = "hushtable.detectors:"
_LOG2, _SMOOTHED = ScoreRule("log2"), ScoreRule("smoothed_log2", 0.05)

for _draw in (
    Draw("gate", families.ScoreHistogram, _LOG2, purpose=Purpose.GATE),
    Draw(
        "hushtable",
        families.RandomFeature,
        _SMOOTHED,
        draw_hushtable,
        _HOME + "HushTable",
        variants={"novelty": NOVELTY, "context": IN_CONTEXT},
        others=(families.Contextual,),
    ),
    Draw("lsh_itables", families.RandomFeature, _LOG2, draw_lsh_itables, _HOME + "LSHiTables"),
    Draw("marginals", families.EquiWidth, _LOG2, purpose=Purpose.MARGINALS),
    Draw("ranges", families.EquiWidth, _LOG2, purpose=Purpose.RANGES),
    Draw("ranks", families.ScoreHistogram, _LOG2, purpose=Purpose.RANKS),
):
    register(_draw)
