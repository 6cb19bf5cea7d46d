"""The random-feature family: what the paper proves of it, measured."""

import pickle

import numpy as np
import pyarrow as pa
import pytest

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.data.encoding import Encoder
from hushtable.data.readers import as_reader
from hushtable.errors import PlanError, UsageError
from hushtable.plans.families import RandomFeature, family_from_content
from hushtable.plans.families.layouts import JOINED_ROWS
from hushtable.scores.scorer import Scorer


def unit_schema(d):
    return Schema(tuple(Feature.numeric(f"x{j}", low=0, high=1) for j in range(d)))


def functions(schema, n, seed=0, detector="lsh_itables"):
    """Features and cuts of the first n hash functions that a detector draws."""
    plan = Plan.draw(schema, detector=detector, n_tables=2000, random_state=seed)
    return plan.family.feature[:n], plan.family.cut[:n]


@pytest.mark.parametrize("detector", ["lsh_itables", "hushtable"])
def test_collision_rate_is_that_of_equation_1(rng, detector):
    """Pr[h(x) = h(q)] = 1 - (1/d) sum_i |x_i - q_i| / (max_i - min_i)."""
    d, n = 5, 9000
    schema = unit_schema(d)
    feature, cut = functions(schema, n, detector=detector)
    encoder = Encoder(schema)
    for _ in range(20):
        x, q = rng.random((2, d)) ** rng.integers(1, 4)
        codes = encoder.encode(np.stack([x, q])).codes
        same = (codes[feature, 0] >= cut) == (codes[feature, 1] >= cut)
        expected = 1 - np.abs(x - q).mean()
        error = np.sqrt(expected * (1 - expected) / n)
        assert abs(same.mean() - expected) < 4.5 * error + 1e-4


@pytest.mark.slow
def test_lemma_orders_counters_by_neighbours(rng):
    """Lemma 1: more neighbours within r, a larger counter in expectation.

    60 rows lie around one corner and 20 around the opposite one, their distances uniform on
    [0, r]; 300 rows lie farther than r from both. With l = 2 log(s) / log(1 / p(r)), the far
    rows hardly count, and the expected counter is the number of neighbours times p(r/2).
    """
    d, depth, s = 8, 32, 380
    r = 1 - s ** (-2 / depth)  # p(r) = 1 - r, in mean distance a feature
    low, high = np.zeros((1, d)), np.ones((1, d))
    X = np.concatenate([
        low + r * (np.arange(60)[:, np.newaxis] + 0.5) / 60,
        high - r * (np.arange(20)[:, np.newaxis] + 0.5) / 20,
        rng.uniform(0.45, 0.55, size=(300, d)),
    ])  # fmt: skip
    draw = {"min_depth": depth, "max_depth": depth, "n_cells": 1 << 16, "n_tables": 1000}
    plan = Plan.draw(unit_schema(d), random_state=0, **draw)
    counts = Sketch.from_data(plan, X).counts.astype(float)
    corners = Encoder(plan.schema).encode(np.concatenate([low, high]))
    mean_low, mean_high = plan.family.sum(corners, counts) / 1000
    assert mean_low > mean_high
    assert mean_low / mean_high == pytest.approx(60 / 20, rel=0.2)


def test_depths_are_the_papers():
    """Section 3.3: between 2 and 10 hash functions at s = 1000, 6.2 on average."""
    depth = Plan.draw(
        unit_schema(3), detector="lsh_itables", n_tables=10_000, random_state=0
    ).family.depth
    assert (depth.min(), depth.max()) == (2, 10)
    assert depth.mean() == pytest.approx(6.2, abs=0.15)
    for s in (1, 2, 3, 16, 256, 65_536):
        plan = Plan.draw(
            unit_schema(2), detector="lsh_itables", max_samples=s, n_tables=500, random_state=0
        )
        assert plan.family.depth.min() >= 1
        assert plan.family.depth.max() <= max(2, np.ceil(np.log2(s)))


def test_refined_depths_cells_and_stratified_draws():
    schema = unit_schema(7)
    family = Plan.draw(schema, n_tables=200, random_state=0).family
    assert set(family.depth) == set(range(8, 25))
    assert (np.diff(family.offsets) == 256).all()
    # Systematic over the features: each gets its share of the functions, to within one.
    share = np.bincount(family.feature, minlength=7)
    assert share.max() - share.min() <= 1
    # Stratified over the cuts of each feature: one cut in each of n equal parts of the range.
    for j in range(7):
        u = np.sort((family.cut[family.feature == j] - 2.0) / 65_279)
        assert (np.abs(u - (np.arange(len(u)) + 0.5) / len(u)) <= 0.5 / len(u) + 1e-4).all()


@pytest.mark.parametrize(("tails", "added", "quantiles"), [(True, 4.0, 0.3), (False, 1.0, 0.25)])
def test_marginals_steer_features_and_cuts(rng, tails, added, quantiles):
    n = 4000
    X = np.column_stack([
        rng.random(n),  # light tails: kurtosis 1.8
        rng.standard_t(2, n),  # heavy tails
        np.where(rng.random(n) < 0.5, 0.0, 1.0),  # two values: kurtosis 1
    ])  # fmt: skip
    edge = float(np.abs(X[:, 1]).max())
    schema = Schema((
        Feature.numeric("light", low=0, high=1),
        Feature.numeric("heavy", low=-edge, high=edge),
        Feature.numeric("two", low=0, high=1),
        Feature.numeric("constant", low=3, high=3),
    ))  # fmt: skip
    X = np.column_stack([X, np.full(n, 3.0)])
    marginals = Sketch.from_data(Plan.marginals(schema), X)
    drawn = {"marginals": marginals, "n_tables": 400, "random_state": 0}
    family = Plan.draw(schema, tails=tails, **drawn).family
    share = np.bincount(family.feature, minlength=4) / len(family.feature)
    binned = np.floor((X[:, :3] - [0, -edge, 0]) / [1, 2 * edge, 1] * 64).clip(0, 63)
    deviation = binned - binned.mean(axis=0)
    kurtosis = (deviation**4).mean(axis=0) / (deviation**2).mean(axis=0) ** 2
    weight = np.append(np.log(added + kurtosis), 0.0)
    np.testing.assert_allclose(share, weight / weight.sum(), atol=2e-3)
    assert np.histogram(X[:, 1], 64, (-edge, edge))[0].max() > 0.2 * n  # it has tails
    quantiles = 0.15 if tails else quantiles
    # That share of the cuts follows the quantiles: the middle half of the rows of the heavy
    # feature spans little of its range, and draws half of that share.
    q1, q3 = np.quantile(X[:, 1], [0.25, 0.75])
    width = (q3 - q1) / (2 * edge)
    u = (family.cut[family.feature == 1] - 2.0) / 65_279
    inside = ((u >= (q1 + edge) / (2 * edge)) & (u <= (q3 + edge) / (2 * edge))).mean()
    # The histogram of 64 cells smears the middle over its cell, hence the tolerance.
    most = quantiles * 0.5 + (1.0 - quantiles) * width + 0.02
    assert (1.0 - quantiles) * width < inside < most


def placed(X, **settings):
    """Return the places of the cuts on the range of one column, in order."""
    schema = Schema((Feature.numeric("a", low=X.min(), high=X.max()),))
    marginals = Sketch.from_data(Plan.marginals(schema), X[:, np.newaxis])
    plan = Plan.draw(schema, marginals=marginals, n_tables=300, random_state=0, **settings)
    return np.sort((plan.family.cut - 2.0) / 65_279)


def test_cuts_follow_the_tails_of_a_full_cell(rng):
    """z = .15 F + .70 u + .15 T, and cuts are uniform in z (research: R1)."""
    X = np.abs(rng.standard_cauchy(5000)).clip(0, 200)
    u = placed(X)
    steps = np.concatenate([[0.0], np.histogram(X, 64, (X.min(), X.max()))[0].cumsum() / len(X)])
    F = np.interp(u, np.linspace(0, 1, 65), steps)
    with np.errstate(divide="ignore"):
        near = np.minimum(F, 1.0 - F)
        place = (12 + np.log2(np.maximum(near, 2.0**-12))) / 22
    z = 0.15 * F + 0.70 * u + 0.15 * np.where(F < 0.5, place, 1.0 - place)
    wanted = (np.arange(len(z)) + 0.5) / len(z)
    # Where z rises fastest, a step of the codes moves it by more.
    assert np.quantile(np.abs(z - wanted), 0.95) < 2e-3
    plain = placed(rng.random(5000))
    assert np.abs(plain - (np.arange(len(plain)) + 0.5) / len(plain)).max() < 0.02
    assert len(np.unique(placed(np.r_[np.zeros(999), 1.0]))) > 1000


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_tables": 0}, "n_tables=0"),
        ({"n_tables": 2.5}, "n_tables=2.5"),
        ({"n_tables": True}, "n_tables=True"),
        ({"n_cells": 100}, "power of two"),
        ({"min_depth": 9, "max_depth": 8}, "max_depth=8"),
        ({"detector": "forest"}, "needs one of"),
        ({"detector": "lsh_itables", "max_samples": 0}, "max_samples=0"),
        ({"detector": "lsh_itables", "max_samples": 65_537}, "max_samples=65537"),
        ({"detector": "lsh_itables", "n_cells": 64}, "n_cells"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises((UsageError, PlanError), match=message):
        Plan.draw(unit_schema(2), **parameters)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": np.array([0], np.uint8)}, "depth must be from 1 to 32"),
        ({"depth": np.array([33], np.uint8)}, "depth must be from 1 to 32"),
        ({"depth": np.array([], np.uint8)}, r"depth has shape \(0,\): needs \(1,\)"),
        ({"depth": np.array([3], np.uint8)}, r"feature has shape \(2,\): needs \(3,\)"),
        ({"depth": np.array([2], np.int64)}, "depth must be uint8 of 1"),
        ({"feature": np.array([0, 9], np.uint16)}, "feature must be from 0 to 1"),
        ({"cut": np.array([1, 9], np.uint16)}, "codes from 2"),
        ({"cut": np.array([65_281, 9], np.uint16)}, "cut must be from 0 to 65280"),
        ({"missing": np.array([0, 2], np.uint8)}, "missing must be from 0 to 1"),
        ({"subsets": np.array([0, 1], np.uint8)}, r"subsets has shape"),
        ({"max_cells": 100}, "power of two"),
        ({"max_cells": 1 << 17}, "from 2 to 65,536"),
    ],
)
def test_impossible_hash_functions_are_refused(change, message):
    arrays = {
        "depth": np.array([2], np.uint8),
        "feature": np.array([0, 1], np.uint16),
        "cut": np.array([2, 65_280], np.uint16),
        "missing": np.array([0, 1], np.uint8),
        "subsets": np.array([], np.uint8),
        "max_cells": 256,
    }
    RandomFeature(schema=unit_schema(2), **arrays)
    with pytest.raises(PlanError, match=message):
        RandomFeature(schema=unit_schema(2), **(arrays | change))


def test_an_unknown_family_is_refused():
    with pytest.raises(PlanError, match="'Forest' is unknown"):
        family_from_content("Forest", {}, {}, unit_schema(1))
    with pytest.raises(PlanError, match=r"needs the parameters \['bins'\]"):
        family_from_content("EquiWidth", {"bins": 64, "depth": 3}, {}, unit_schema(1))
    with pytest.raises(PlanError, match="bins=48"):
        family_from_content("EquiWidth", {"bins": 48}, {}, unit_schema(1))


@pytest.mark.parametrize("seed", range(8))
def test_joined_tables_change_no_count_and_no_sum(seed):
    rng = np.random.default_rng(seed)
    numbers = [Feature.numeric(f"x{j}", low=0, high=1) for j in range(3)]
    schema = Schema((*numbers, Feature.categorical("c", ["a", "b", "c"])))
    kwargs = {"max_samples": 1 << int(rng.integers(2, 17))}
    plan = Plan.draw(
        schema, detector="lsh_itables", n_tables=1 + 7 * seed, random_state=seed, **kwargs
    )
    n = JOINED_ROWS + int(rng.integers(0, 5000))
    rows = {name: rng.uniform(-0.1, 1.1, n) for name in schema.names[:3]}
    if seed % 2:
        rows["x1"][rng.random(n) < 0.1] = np.nan
    text = pa.array(rng.choice(np.array(["a", "b", "c", "other", None]), n))
    codes = Encoder(schema).encode(pa.record_batch({**rows, "c": text}))

    family = plan.family
    joined, apart = np.zeros((2, family.n_cells), np.int64)
    family.count(codes, joined)
    family.count(codes, apart, np.ones(n, np.int64))  # weights are counted table by table
    assert (joined == apart).all()
    values = np.rint(rng.normal(size=family.n_cells) * 2**20) / 2**20
    assert (family.summing(values)(codes) == family.sum(codes, values)).all()


def test_a_pickle_holds_nothing_that_follows_from_the_rest(rng):
    X = rng.random((JOINED_ROWS, 3))
    plan = Plan.draw(unit_schema(3), detector="lsh_itables", random_state=0)
    scorer = Scorer(Sketch.from_data(plan, X[:10]))
    before = len(pickle.dumps(scorer))
    scores = scorer.score(X)
    Sketch.from_data(plan, X)
    assert len(pickle.dumps(scorer)) < before + 1000  # the joined values alone are 600 kB
    assert (pickle.loads(pickle.dumps(scorer)).score(X) == scores).all()


def test_a_part_of_a_family_counts_as_its_first_tables():
    names = ["a", "b", "c"]
    schema = Schema((Feature.categorical("ward", names), Feature.numeric("age", low=0, high=1)))
    family = Plan.draw(schema, n_tables=9, random_state=0).family
    X = pa.table({"ward": names * 20, "age": np.linspace(0.0, 1.0, 60)})
    codes = Encoder(schema).encode(next(iter(as_reader(X).read())))
    whole, part = np.zeros(family.n_cells, np.int64), family.part(4)
    some = np.zeros(part.n_cells, np.int64)
    family.count(codes, whole)
    part.count(codes, some)
    assert part.n_tables == 4
    np.testing.assert_array_equal(some, whole[: part.n_cells])
