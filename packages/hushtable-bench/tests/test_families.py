"""The paper's other families: grids on subspaces, p-stable projections, signs of projections."""

import numpy as np
import pytest

from hushtable import Feature, Plan, Schema
from hushtable.errors import PlanError
from hushtable.kernels import LEVELS
from hushtable.plans.families import FAMILIES, family_from_content
from strategies import plans_of_every_kind, tampered


def unit_schema(d):
    return Schema(tuple(Feature.numeric(f"x{j}", low=0, high=1) for j in range(d)))


def draw(schema, detector, **parameters):
    return Plan.draw(schema, detector=detector, random_state=0, **parameters)


# --- RS-Hash ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_places_by_multiplication_are_places_by_division():
    """What the kernel's float32 product rests on: every width, both sides of each edge."""
    for width in range(2, LEVELS + 1):
        inverse = np.float32((1 + 2.0**-20) / width)
        edges = np.arange(1, (2 * LEVELS) // width + 2) * width
        x = np.concatenate([edges - 1, edges])
        x = x[x < LEVELS + width]
        places = (x.astype(np.float32) * inverse).astype(np.int32)
        assert (places == x // width).all(), width


# --- rotated RS-Hash: the paper's identity ----------------------------------------------------


# --- ACE --------------------------------------------------------------------------------------


# --- refusals ---------------------------------------------------------------------------------


BROKEN = [
    ("rs_hash", "depth", lambda a: a[:-1], "has shape"),
    ("rs_hash", "shift", lambda a: a + LEVELS, "beyond its width"),
    ("rs_hash", "multiplier", lambda a: a - 1, "multiplier is even"),
    ("rotated_rs_hash", "weight", lambda a: a.ravel(), "2 dimension"),
    ("rotated_rs_hash", "depth", lambda a: a[:0], "depth has shape"),
    ("rotated_rs_hash", "shift", lambda a: a * 0, "sums below 0"),
    ("rotated_rs_hash", "shift", lambda a: a + 2**52, "shift must be from 0 to"),
    ("rotated_rs_hash", "width", lambda a: a * 0 + 1, "places"),
    ("rotated_rs_hash", "multiplier", lambda a: a - 1, "multiplier is even"),
    ("ace", "cut", lambda a: a * 0 + 2**60, "cut must be from -9"),
    ("ace", "depth", lambda a: np.full(len(a) // 3, 45, np.uint8), "depth must be from 1 to 16"),
]


def test_no_array_of_any_family_is_used_unchecked(monkeypatch):
    schema = Schema((*unit_schema(1).features, Feature.categorical("c", ["a", "b"])))
    plans = plans_of_every_kind(schema, np.array([[0.5, "a"], [0.7, "b"]], object))
    for family in FAMILIES.values():
        for method in ("count", "count_pairs", "sum", "summing"):
            monkeypatch.setattr(family, method, lambda *_: pytest.fail("it was used"))
    for plan in plans.values():
        family = plan.family
        for name, array in tampered(family):
            with pytest.raises(PlanError, match="hash functions"):
                type(family).from_content(
                    schema, family.parameters(), family.arrays() | {name: array}
                )


@pytest.mark.parametrize(("detector", "key", "change", "message"), BROKEN)
def test_impossible_arrays_are_refused(detector, key, change, message):
    family = draw(unit_schema(2), detector, n_tables=6).family
    arrays = family.arrays() | {key: change(family.arrays()[key])}
    with pytest.raises(PlanError, match=message):
        family_from_content(family.name, family.parameters(), arrays, unit_schema(2))


def test_weights_too_large_for_exact_products_are_refused():
    schema = unit_schema(600)
    family = draw(schema, "ace", n_tables=1).family
    arrays = family.arrays()
    arrays["weight"] = np.full(arrays["weight"].shape, 2**31 - 1, np.int32)
    with pytest.raises(PlanError, match="too large"):
        family_from_content(family.name, {}, arrays, schema)
