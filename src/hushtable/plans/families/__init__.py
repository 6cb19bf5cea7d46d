"""Hash families: drawn hash functions, their tables of cells, and the rows' ways into them.

A family lays its tables end to end in one vector of cells. Everything above (sketches, files,
noise, scores) sees that vector and ``offsets`` only, never which family it is.
"""

from typing import Any

from hushtable.data.schema import Schema
from hushtable.errors import PlanError
from hushtable.files import Arrays
from hushtable.plans.families._equi_width import EquiWidth
from hushtable.plans.families._family import HashFamily, Summing
from hushtable.plans.families._projection import n_dimensions
from hushtable.plans.families._random_feature import RandomFeature
from hushtable.plans.families._random_projection import RandomProjection
from hushtable.plans.families._score_histogram import ScoreHistogram
from hushtable.plans.families._sim_hash import SimHash
from hushtable.plans.families._subspace_grid import SubspaceGrid

__all__ = [
    "EquiWidth",
    "HashFamily",
    "RandomFeature",
    "RandomProjection",
    "ScoreHistogram",
    "SimHash",
    "SubspaceGrid",
    "Summing",
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
    if name == ScoreHistogram.name:
        return _score_histogram(parameters, arrays, schema)
    known: tuple[type[HashFamily], ...] = (
        EquiWidth,
        RandomFeature,
        RandomProjection,
        SimHash,
        SubspaceGrid,
    )
    families = {family.name: family for family in known}
    if name not in families:
        raise PlanError(
            f"hash family {name!r} is unknown: needs one of "
            f"{sorted([*families, ScoreHistogram.name])}"
        )
    if not all(isinstance(value, int) for value in parameters.values()):
        raise PlanError(f"hash family {name!r}: parameters must be whole numbers")
    try:
        return families[name](schema=schema, **parameters, **arrays)  # type: ignore[call-arg]
    except TypeError as error:
        raise PlanError(f"hash family {name!r}: {error}") from None


def _score_histogram(parameters: dict[str, Any], arrays: Arrays, schema: Schema) -> HashFamily:
    """Build a histogram of scores around the model's family, which is of another kind."""
    model, bins = parameters.get("model"), parameters.get("bins")
    if set(parameters) != {"model", "bins"} or not isinstance(model, dict) or "value" not in arrays:
        raise PlanError("a histogram of scores needs the entries bins and model, and values")
    name = str(model.get("name", ""))
    if name == ScoreHistogram.name or not isinstance(bins, int):
        raise PlanError("a histogram of scores needs a whole number of bins, and a model's tables")
    inner = {key: value for key, value in model.items() if key != "name"}
    theirs = {
        key.removeprefix("model."): array
        for key, array in arrays.items()
        if key.startswith("model.")
    }
    if len(theirs) + 1 != len(arrays):
        raise PlanError("a histogram of scores has arrays that are not its own")
    tables = family_from_content(name, inner, theirs, schema)
    return ScoreHistogram(schema, tables, arrays["value"], bins)
