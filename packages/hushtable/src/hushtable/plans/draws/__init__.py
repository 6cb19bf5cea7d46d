"""The draws: which hash functions each detector takes, given a schema (and marginals).

A new draw is one file with a function, and one call of `register`, here or anywhere else.
"""

from hushtable.plans import families
from hushtable.plans.draws._hushtable import draw_hushtable
from hushtable.plans.draws._papers import draw_lsh_itables, draw_rs_hash
from hushtable.plans.draws._profile import MARGINAL_BINS, Marginals
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
from hushtable.plans.score_rule import ScoreRule

__all__ = [
    "DRAWS", "MARGINAL_BINS", "NOVELTY", "Draw", "Marginals", "Purpose", "detectors", "draw_of",
    "purpose_of", "register",
]  # fmt: skip

#: How counts of clean rows become scores: one row in a cell is far from none. Measured: see the
#: docs.
NOVELTY = ScoreRule("pseudocount_log2", 0.05)
_LOG2, _SMOOTHED = ScoreRule("log2"), ScoreRule("smoothed_log2", 0.05)

for _draw in (
    Draw("ace", families.SimHash, ScoreRule("count"), draw_ace, "ACE"),
    Draw("gate", families.ScoreHistogram, _LOG2, purpose=Purpose.GATE),
    Draw(
        "hushtable",
        families.RandomFeature,
        _SMOOTHED,
        draw_hushtable,
        "HushTable",
        variants={"novelty": NOVELTY},
    ),
    Draw("lsh_itables", families.RandomFeature, _LOG2, draw_lsh_itables, "LSHiTables"),
    Draw("marginals", families.EquiWidth, _LOG2, purpose=Purpose.MARGINALS),
    Draw("ranges", families.EquiWidth, _LOG2, purpose=Purpose.RANGES),
    Draw("ranks", families.ScoreHistogram, _LOG2, purpose=Purpose.RANKS),
    Draw(
        "rotated_rs_hash", families.RandomProjection, _LOG2, draw_rotated_rs_hash, "RotatedRSHash"
    ),
    Draw("rs_hash", families.SubspaceGrid, _LOG2, draw_rs_hash, "RSHash"),
    Draw("verdicts", families.Labelled, _LOG2, purpose=Purpose.VERDICTS),
):
    register(_draw)
