"""Hash families: drawn hash functions, their tables of cells, and the rows' ways into them.

A family lays its tables end to end in one vector of cells. Everything above (sketches, files,
noise, scores) sees that vector and ``offsets`` only, never which family it is.
"""

from typing import Any

from hushtable.errors import PlanError
from hushtable.files import Arrays
from hushtable.hashing._equi_width import EquiWidth
from hushtable.hashing._family import HashFamily
from hushtable.hashing._projection import n_dimensions
from hushtable.hashing._random_feature import RandomFeature
from hushtable.hashing._random_projection import RandomProjection
from hushtable.hashing._sim_hash import SimHash
from hushtable.hashing._subspace_grid import SubspaceGrid
from hushtable.schema import Schema

__all__ = [
    "EquiWidth",
    "HashFamily",
    "RandomFeature",
    "RandomProjection",
    "SimHash",
    "SubspaceGrid",
    "family_from_content",
    "n_dimensions",
]


def family_from_content(
    name: str, parameters: dict[str, Any], arrays: Arrays, schema: Schema
) -> HashFamily:
    """Build the family that `HashFamily.parameters` and `HashFamily.arrays` described.

    Raises
    ------
    PlanError
        If the name is unknown, or the parameters or arrays are not that family's.
    """
    known: tuple[type[HashFamily], ...] = (
        EquiWidth,
        RandomFeature,
        RandomProjection,
        SimHash,
        SubspaceGrid,
    )
    families = {family.name: family for family in known}
    if name not in families:
        raise PlanError(f"hash family {name!r} is unknown: needs one of {sorted(families)}")
    if not all(isinstance(value, int) for value in parameters.values()):
        raise PlanError(f"hash family {name!r}: parameters must be whole numbers")
    try:
        return families[name](schema=schema, **parameters, **arrays)  # type: ignore[call-arg]
    except TypeError as error:
        raise PlanError(f"hash family {name!r}: {error}") from None
