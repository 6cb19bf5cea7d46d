"""The draws: which hash functions each detector takes, given a schema (and marginals).

A new draw is one file with a function, and one call of `register`, here or anywhere else.
"""

from hushtable.plans.draws._hushtable import MARGINAL_BINS, Marginals, draw_hushtable
from hushtable.plans.draws._papers import draw_lsh_itables, draw_rs_hash
from hushtable.plans.draws._projection import draw_ace, draw_rotated_rs_hash
from hushtable.plans.draws.registry import (
    DRAWS,
    Draw,
    Purpose,
    detectors,
    draw_of,
    purpose_of,
    register,
)
from hushtable.plans.families import (
    EquiWidth,
    RandomFeature,
    RandomProjection,
    ScoreHistogram,
    SimHash,
    SubspaceGrid,
)
from hushtable.plans.score_rule import ScoreRule

__all__ = [
    "DRAWS",
    "MARGINAL_BINS",
    "Draw",
    "Marginals",
    "Purpose",
    "detectors",
    "draw_of",
    "purpose_of",
    "register",
]

_LOG2 = ScoreRule("log2")
_SMOOTHED = ScoreRule("smoothed_log2", 0.05)

for _draw in (
    Draw("ace", SimHash, ScoreRule("count"), draw_ace, "ACE"),
    Draw("hushtable", RandomFeature, _SMOOTHED, draw_hushtable, "HushTable"),
    Draw("lsh_itables", RandomFeature, _LOG2, draw_lsh_itables, "LSHiTables"),
    Draw("marginals", EquiWidth, _LOG2, purpose=Purpose.MARGINALS),
    Draw("ranges", EquiWidth, _LOG2, purpose=Purpose.RANGES),
    Draw("ranks", ScoreHistogram, _LOG2, purpose=Purpose.RANKS),
    Draw("rotated_rs_hash", RandomProjection, _LOG2, draw_rotated_rs_hash, "RotatedRSHash"),
    Draw("rs_hash", SubspaceGrid, _LOG2, draw_rs_hash, "RSHash"),
):
    register(_draw)
