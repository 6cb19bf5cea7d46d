"""The draws: which hash functions each detector takes, given a schema (and marginals)."""

from collections.abc import Callable
from dataclasses import dataclass

from hushtable.errors import UsageError
from hushtable.plans.draws._hushtable import MARGINAL_BINS, Marginals, draw_hushtable
from hushtable.plans.draws._papers import draw_lsh_itables, draw_rs_hash
from hushtable.plans.draws._projection import draw_ace, draw_rotated_rs_hash
from hushtable.plans.families import (
    HashFamily,
    RandomFeature,
    RandomProjection,
    SimHash,
    SubspaceGrid,
)
from hushtable.plans.score_rule import ScoreRule

__all__ = ["MARGINAL_BINS", "RECIPES", "Marginals", "Recipe", "recipe"]


@dataclass(frozen=True)
class Recipe:
    """A detector's draw of hash functions, their family, and its score."""

    draw: Callable[..., HashFamily]
    family: type[HashFamily]
    score: ScoreRule
    takes_marginals: bool


def recipe(detector: str) -> Recipe:
    """Return the recipe of a detector by its name in plans."""
    if not isinstance(detector, str) or detector not in RECIPES:
        raise UsageError(f"detector {detector!r} is unknown: needs one of {sorted(RECIPES)}")
    return RECIPES[detector]


RECIPES: dict[str, Recipe] = {
    "ace": Recipe(draw_ace, SimHash, ScoreRule("count"), takes_marginals=False),
    "hushtable": Recipe(
        draw_hushtable, RandomFeature, ScoreRule("smoothed_log2", 0.05), takes_marginals=True
    ),
    "lsh_itables": Recipe(
        draw_lsh_itables, RandomFeature, ScoreRule("log2"), takes_marginals=False
    ),
    "rotated_rs_hash": Recipe(
        draw_rotated_rs_hash, RandomProjection, ScoreRule("log2"), takes_marginals=False
    ),
    "rs_hash": Recipe(draw_rs_hash, SubspaceGrid, ScoreRule("log2"), takes_marginals=False),
}
