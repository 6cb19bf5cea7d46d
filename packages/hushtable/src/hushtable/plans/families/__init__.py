"""Hash families: drawn hash functions, their tables of cells, and how rows are mapped to cells.

A family lays its tables end to end in one vector of cells. Everything above (sketches, files,
noise, scores) sees only that vector and ``offsets``, never which family it is. A new family is
one file: a subclass of `HashFamily` that declares its arrays by `drawn` and its parameters by
`whole_number`, with the decorator `register`. Other packages add theirs in the same way.
"""

from hushtable.plans.families.contextual import (
    WEIGHT,
    Contextual,
    context_columns,
    only_one_value,
    own_cells,
)
from hushtable.plans.families.family import (
    FAMILIES,
    MAX_CELLS,
    HashFamily,
    drawn,
    family_from_content,
    register,
    whole_number,
)
from hushtable.plans.families.histograms import (
    EquiWidth,
    ScoreHistogram,
)
from hushtable.plans.families.random_feature import RandomFeature

__all__ = [
    "FAMILIES", "MAX_CELLS", "WEIGHT", "Contextual", "EquiWidth", "HashFamily", "RandomFeature",
    "ScoreHistogram", "context_columns", "drawn", "family_from_content", "only_one_value",
    "own_cells", "register", "whole_number",
]  # fmt: skip
