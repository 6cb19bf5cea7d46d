"""The families by the names that files give them."""

from typing import Any, TypeVar

from hushtable.data.schema import Schema
from hushtable.errors import PlanError, UsageError
from hushtable.files import Arrays
from hushtable.plans.families._family import HashFamily

Family = TypeVar("Family", bound=type[HashFamily])

#: Every family that a plan may have. Files, the JSON Schema and the tests go by this list.
FAMILIES: dict[str, type[HashFamily]] = {}


def register(family: Family) -> Family:
    """Add a hash family, as a decorator of its class: plans of it can then be read.

    Raises `UsageError` if another family has its name.
    """
    if FAMILIES.setdefault(family.name, family) is not family:
        raise UsageError(f"hash family {family.name!r} is registered already: rename one")
    return family


def family_from_content(name: Any, parameters: Any, arrays: Arrays, schema: Schema) -> HashFamily:
    """Build the family that `HashFamily.parameters` and `HashFamily.arrays` described.

    Raises `PlanError` if the name is unknown, or parameters or arrays are not that family's.
    """
    if not isinstance(name, str) or name not in FAMILIES:
        raise PlanError(f"hash family {name!r} is unknown: needs one of {sorted(FAMILIES)}")
    return FAMILIES[name].from_content(schema, parameters, arrays)
