"""Plans as files carry them, and the JSON Schema of what a manifest says of them."""

import copy
from typing import TYPE_CHECKING, Any

from hushtable import files
from hushtable.data.schema import Schema
from hushtable.entries import entries
from hushtable.plans.draws import DRAWS
from hushtable.plans.families import FAMILIES, family_from_content
from hushtable.plans.score_rule import ScoreRule
from hushtable.privacy.budget import Spent
from hushtable.privacy.layout import Design

if TYPE_CHECKING:
    from hushtable.plans.plan import Plan

__all__ = ["FIRST", "difference", "manifest_schema", "plan_arguments"]

#: The array of the first pass's counts, beside the family's own arrays.
FIRST = "first_counts"
_NEEDED = {"detector": str, "data_dependent": bool, "schema": dict, "family": dict, "score": dict}


def plan_arguments(content: Any, arrays: files.Arrays) -> dict[str, Any]:
    """Return the arguments of the plan that a file describes; raises `PlanError` otherwise."""
    plan = entries(content, "a plan", _NEEDED, {"behind": list, "design": dict})
    score = entries(plan["score"], "a plan's score", {"name": str, "smoothing": float})
    schema, family, arrays = Schema.from_dict(plan["schema"]), dict(plan["family"]), dict(arrays)
    first = arrays.pop(FIRST, None)
    return {
        "schema": schema,
        "family": family_from_content(family.pop("name", None), family, arrays, schema),
        "score": ScoreRule(score["name"], float(score["smoothing"])),
        "detector": plan["detector"],
        "data_dependent": plan["data_dependent"],
        "first_counts": first,
        "behind": tuple(Spent.from_dict(spent) for spent in plan.get("behind", ())),
        "design": Design.from_dict(plan["design"]) if "design" in plan else None,
    }


def difference(mine: "Plan", theirs: "Plan") -> str:
    """Say in words how two plans differ."""
    parts, other = [], theirs.to_dict()
    for key, value in mine.to_dict().items():
        if value != other.get(key):
            parts.append(
                _schema_difference(mine.schema, theirs.schema)
                if key == "schema"
                else f"{key} {value!r} against {other.get(key)!r}"
            )
    if not parts and mine.plan_id != theirs.plan_id:
        parts.append("same schema and settings, but other hash functions were drawn")
    return "; ".join(parts) or "nothing"


def _schema_difference(mine: Schema, theirs: Schema) -> str:
    if mine.names != theirs.names:
        return f"features {mine.names} against {theirs.names}"
    for a, b in zip(mine.features, theirs.features, strict=True):
        if a != b and not (mine.public and theirs.public):
            # What was read off rows is rows' values: no message shows it.
            return f"feature {a.name!r} has another kind, range or categories, read off rows"
        if a != b:
            return f"feature {a.name!r}: {a.to_dict()} against {b.to_dict()}"
    return "one schema is public, the other was read off data"


def manifest_schema(published: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of manifests, with every family and kind of plan that is registered.

    Parameters
    ----------
    published : dict
        ``docs/hush-manifest-1.schema.json``, of which everything else is taken as it is. It is
        this function's own output for the families of this library; a test holds them equal.
    """
    schema = copy.deepcopy(published)
    plan, top = schema["$defs"]["plan"]["properties"], schema["properties"]
    of_models = [f for f in FAMILIES.values() if f.of_model]
    schema["$defs"]["tables"]["oneOf"] = [
        family.json_schema() for _, family in sorted(FAMILIES.items()) if not family.of_model
    ]
    plan["family"]["oneOf"] = [{"$ref": "#/$defs/tables"}, *(f.json_schema() for f in of_models)]
    plan["detector"]["enum"] = sorted(DRAWS)
    top["detector"]["enum"] = sorted(draw.estimator for draw in DRAWS.values() if draw.estimator)
    # Besides the families' own arrays: counts and tallies, masks.
    dtypes = {"int64", "uint64"}.union(*(family.dtypes() for family in FAMILIES.values()))
    top["arrays"]["additionalProperties"]["properties"]["dtype"]["enum"] = sorted(dtypes)
    return schema
