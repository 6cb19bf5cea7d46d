"""The JSON Schema of manifests, with the families and kinds of plans that are registered."""

import copy
from typing import Any

from hushtable.plans.draws import DRAWS, ESTIMATORS
from hushtable.plans.families import FAMILIES


def manifest_schema(published: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of manifests, with every family and kind of plan that is registered.

    Everything else is taken from ``published``, ``docs/hush-manifest-1.schema.json``. It is this
    function's own output for the families of all packages; a test of hushtable-bench, which adds
    some, holds them equal.
    """
    schema = copy.deepcopy(published)
    plan, top = schema["$defs"]["plan"]["properties"], schema["properties"]
    of_models = [f for _, f in sorted(FAMILIES.items()) if f.of_model]
    schema["$defs"]["tables"]["oneOf"] = [
        family.json_schema() for _, family in sorted(FAMILIES.items()) if not family.of_model
    ]
    plan["family"]["oneOf"] = [{"$ref": "#/$defs/tables"}, *(f.json_schema() for f in of_models)]
    plan["detector"]["enum"] = sorted(DRAWS)
    top["detector"]["enum"] = sorted(ESTIMATORS)
    # Besides the families' own arrays: counts and tallies, masks, scores of counted rows.
    dtypes = {"float64", "int64", "uint64"}.union(
        *(family.dtypes() for family in FAMILIES.values())
    )
    top["arrays"]["additionalProperties"]["properties"]["dtype"]["enum"] = sorted(dtypes)
    return schema
