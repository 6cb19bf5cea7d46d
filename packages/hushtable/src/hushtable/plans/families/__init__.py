"""Hash families: drawn hash functions, their tables of cells, and the rows' ways into them.

A family lays its tables end to end in one vector of cells. Everything above (sketches, files,
noise, scores) sees that vector and ``offsets`` only, never which family it is. A new family is
one file: a subclass of `HashFamily` that declares its arrays by `drawn` and its parameters by
`whole_number`, with the decorator `register`.
"""

from hushtable.plans.families._equi_width import EquiWidth
from hushtable.plans.families._family import HashFamily, Summing, drawn, whole_number
from hushtable.plans.families._labelled import FINE, OUTLIER, TOTALS, VERDICT, Labelled, labelled
from hushtable.plans.families._projection import RandomProjection, SimHash, n_dimensions
from hushtable.plans.families._random_feature import RandomFeature
from hushtable.plans.families._score_histogram import ScoreHistogram
from hushtable.plans.families._subspace_grid import SubspaceGrid
from hushtable.plans.families.registry import FAMILIES, family_from_content, register

__all__ = [
    "FAMILIES", "FINE", "OUTLIER", "TOTALS", "VERDICT", "EquiWidth", "HashFamily", "Labelled",
    "RandomFeature", "RandomProjection", "ScoreHistogram", "SimHash", "SubspaceGrid", "Summing",
    "drawn", "family_from_content", "labelled", "n_dimensions", "register", "whole_number",
]  # fmt: skip
