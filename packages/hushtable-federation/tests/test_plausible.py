"""Plausible ranges off noised histograms: where the quantile is, and when there is none."""

import numpy as np
import pyarrow as pa
import pytest

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.errors import UsageError
from hushtable.privacy import Design
from hushtable_federation.ranges import (
    ValueHistogram,
    category_counts,
    cells_for,
    check_quantiles,
    histograms,
    values_needed,
)

FEATURE = Feature.numeric("x", low=0, high=100, unit="mmol/L")
rng = np.random.default_rng(0)
#: Values over the range: a bell, a long tail, whole numbers, two labs, and half of them at an end.
SHAPES = {
    "bell": rng.normal(40, 6, 60_000),
    "tail": rng.lognormal(2, 0.7, 60_000),
    "whole": rng.poisson(12, 60_000).astype(float),
    "labs": np.concatenate([rng.normal(30, 2, 30_000), rng.normal(60, 4, 30_000)]),
    "end": np.concatenate([np.full(30_000, 100.0), rng.normal(90, 3, 30_000)]),
}


def noised(values, noise_sd, seed, cells=64):
    """Return values as a histogram with noise."""
    counts, _ = np.histogram(np.clip(values, 0, 100), cells, (0, 100))
    noise = np.rint(np.random.default_rng(seed).normal(0, noise_sd, cells))
    return ValueHistogram(FEATURE, counts + noise, float(len(values)), noise_sd)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_quantile_lies_in_its_interval_in_19_of_20_cases(shape):
    values, inside, positions = SHAPES[shape], [], []
    values = np.clip(values, 0, 100)
    for seed in range(100):
        found = noised(values, 9.0, seed).range()
        for limit, tail in zip(found.limits, (0.005, 0.005), strict=True):
            low, high = limit.interval
            exact = np.quantile(values, limit.quantile)
            inside.append(low <= exact <= high)
            beyond = values < limit.value if limit.quantile < 0.5 else values > limit.value
            positions.append(abs(beyond.mean() - tail) - limit.off)
    assert np.mean(inside) >= 0.95
    # A cell adds no more than the tail, whatever the values look like inside it.
    assert np.mean(np.array(positions) <= 0.005) >= 0.95


def test_too_few_values_have_no_range_and_the_number_is_named():
    found = noised(SHAPES["bell"][:5_000], 9.0, 0).range()
    assert found.limits == ()
    assert found.needed == values_needed(9.0, 64, 0.005) == 28_800
    assert noised(SHAPES["bell"][:5_000], 9.0, 0).range((0.05, 0.95)).limits


def test_values_beyond_the_public_range_leave_its_end_as_the_limit():
    limit = noised(SHAPES["end"] + 5.0, 9.0, 0).range().limits[1]
    assert limit.at_end
    assert limit.value == 100.0
    assert "end of the public range" in limit.words("mmol/L")


def test_cells_follow_from_public_numbers_alone():
    few, many = (cells_for(Design(1.0, 1e-6, n), 20) for n in (2_000, 1_000_000))
    assert (few, many) == (32, 256)
    # Noise that each site adds by itself takes more rows.
    assert cells_for(Design(1.0, 1e-6, 300_000, sites=9), 20) < cells_for(
        Design(1.0, 1e-6, 300_000), 20
    )


def test_groups_add_up_to_the_whole():
    values = SHAPES["bell"]
    parts = [noised(values[k::2], 9.0, k) for k in range(2)]
    whole = parts[0].merged(parts[1:], "both")
    assert whole.feature.name == "both"
    assert whole.noise_sd == pytest.approx(9.0 * 2**0.5)
    assert whole.values == len(values)
    np.testing.assert_array_equal(whole.counts, parts[0].counts + parts[1].counts)


@pytest.mark.parametrize("wrong", [(0.995, 0.005), (0.0, 0.9), (0.1, 1.0), (0.1,), (0.5, 0.9)])
def test_quantiles_that_leave_no_tails_are_refused(wrong):
    with pytest.raises(UsageError, match=r"0\.005,0\.995"):
        check_quantiles(wrong)


def test_only_noised_histograms_of_columns_have_ranges():
    schema = Schema([FEATURE, Feature.categorical("sex", ["female", "male"])])
    plan = Plan.marginals(schema, epsilon=1.0, expected_rows=5_000, cells=64)
    rows = pa.table({"x": SHAPES["bell"][:5_000], "sex": ["male"] * 5_000})
    sketch = Sketch.from_data(plan, rows)
    with pytest.raises(UsageError, match="no noise"):
        histograms(sketch)
    [found] = histograms(sketch.release(1.0, share=1.0))
    assert found.feature == FEATURE
    assert found.values == pytest.approx(5_000, abs=200)
    assert len(found.counts) == 64
    tables = Plan.draw(Schema([FEATURE]), random_state=0)
    with pytest.raises(UsageError, match="--ranges"):
        histograms(Sketch.from_data(tables, SHAPES["bell"][:100, np.newaxis]))


@pytest.mark.parametrize("shape", SHAPES)
def test_mean_and_median_are_as_close_as_stated_in_19_of_20_cases(shape):
    values = np.clip(SHAPES[shape], 0, 100)
    means, medians = [], []
    for seed in range(100):
        found = noised(values, 9.0, seed)
        mean, off = found.mean()
        means.append(abs(mean - values.mean()) <= off)
        low, high = found.median().interval
        medians.append(low <= np.median(values) <= high)
    assert np.mean(means) >= 0.95
    assert np.mean(medians) >= 0.95
    assert off < 1.5
    few = noised(values[:200], 9.0, 0)
    assert (few.mean(), few.median()) == (None, None)


def test_categories_are_counted_with_their_noise():
    schema = Schema([Feature.categorical("ward", ["north", "south"]), FEATURE])
    plan = Plan.marginals(schema, epsilon=1.0, expected_rows=50_000)
    rows = pa.table({"ward": ["north"] * 30_000 + ["south"] * 20_000, "x": [40.0] * 50_000})
    release = Sketch.from_data(plan, rows).release(1.0, share=1.0)
    found = category_counts(release)["ward"]
    assert found["north"] == pytest.approx(30_000, abs=5 * release.noise_sd)
    assert found["south"] == pytest.approx(20_000, abs=5 * release.noise_sd)
