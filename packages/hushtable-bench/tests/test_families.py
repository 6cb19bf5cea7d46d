"""The paper's other families: grids on subspaces, p-stable projections, signs of projections."""

import math

import numpy as np
import pytest
from scipy import stats

import naive
from hushtable import Feature, Plan, Schema, Sketch
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


def test_least_of_four_histograms_is_an_upper_bound_on_the_count(rng):
    """CountMin: never below the rows in the same places, and rarely above."""
    X = rng.random((400, 3))
    plan = draw(unit_schema(3), "rs_hash", n_tables=30)
    sketch = Sketch.from_data(plan, X)
    family, h, excess = plan.family, 0, []
    codes = np.array([[naive.code(plan.schema.features[0], x) for x in row] for row in X])
    for t, depth in enumerate(map(int, family.depth)):
        at = slice(h, h + depth)
        places = (codes[:, family.feature[at]] - 1 + family.shift[at]) // family.width[at]
        _, which, rows = np.unique(places, axis=0, return_inverse=True, return_counts=True)
        cells = np.array([naive.count_min_cells(family, t, (p + 1).tolist()) for p in places])
        least = sketch.counts[cells].min(axis=1)
        excess += (least - rows[which.ravel()]).tolist()
        h += depth
    assert min(excess) == 0
    assert np.mean(np.array(excess) > 0) < 0.02


@pytest.mark.parametrize("d", [1, 2, 20])
def test_collision_rate_of_projections(rng, d):
    """P[h(x) = h(q)] = E max(0, 1 - |u.(x - q)| / f), u uniform on the sphere."""
    plan = draw(unit_schema(d), "rotated_rs_hash", n_tables=600)
    family = plan.family
    f = family.width / (np.linalg.norm(family.weight.astype(float), axis=1) * 2 * LEVELS)
    assert 0.03 < f.min() < f.max() < 0.97
    quantiles = (np.arange(2000) + 0.5) / 2000
    u = np.sqrt(stats.beta(0.5, (d - 1) / 2).ppf(quantiles)) if d > 1 else np.ones(1)
    for _ in range(5):
        x, q = rng.random((2, d))
        place = (products(plan, np.stack([x, q])) + family.shift) // family.width
        same = place[0] == place[1]
        distance = np.linalg.norm(x - q)
        expected = np.maximum(0, 1 - distance * u / f[:, np.newaxis]).mean()
        assert abs(same.mean() - expected) < 4.5 * np.sqrt(0.25 / len(f))


def test_collision_rate_of_signs_is_that_of_the_angle(rng):
    """P[h(x) = h(q)] = 1 - angle / pi (Charikar), in the rows' own units and from their origin."""
    ranges = [(100.0, 130.0), (-2.0, 40.0), (-30.0, 5.0)]
    features = (Feature.numeric(f"x{j}", low=a, high=b) for j, (a, b) in enumerate(ranges))
    plan = draw(Schema(tuple(features)), "ace", n_tables=600)
    low, high = np.array(ranges).T
    for _ in range(10):
        x, q = rng.uniform(low, high, size=(2, 3))
        signs = products(plan, np.stack([x, q])) >= plan.family.cut
        angle = math.acos(x @ q / (np.linalg.norm(x) * np.linalg.norm(q)))
        expected = 1 - angle / math.pi
        error = math.sqrt(expected * (1 - expected) / 9000)
        assert abs((signs[0] == signs[1]).mean() - expected) < 4.5 * error + 1e-3


def products(plan, X):
    """The product of each row's vector with each function's weights, in whole numbers."""
    vectors = np.array([naive.vector(plan, row) for row in X.tolist()])
    return vectors @ plan.family.weight.T.astype(np.int64)
