"""Ranks among the rows of all sites, standard errors of scores, and thresholds from both."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_checks import standard_errors
from hushtable import (
    Feature,
    HushTable,
    LocalModel,
    LSHiTables,
    Plan,
    Schema,
    Sketch,
)
from hushtable.counts import rounds
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.plans.draws import detectors
from hushtable.plans.families import ScoreHistogram
from hushtable.plans.families.histograms import PRIVATE_RANK_BINS, RANK_BINS
from hushtable.scores.scorer import Ranks, Scorer
from strategies import as_table, schemas_and_rows

DETECTORS = [HushTable, LSHiTables]
SCHEMA = Schema(tuple(Feature.numeric(f"x{j}", low=-9, high=9) for j in range(4)), named=False)


def rows(n=3000, seed=0, d=4):
    """Normal rows; the first ten lie far off."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    X[:10] += 6.0
    return X


@pytest.fixture(scope="module")
def merged():
    """Releases of two sites for nine tenths of the budget, and what both hold."""
    X = rows()
    plan = Plan.draw(SCHEMA, epsilon=1.0, expected_rows=3000, sites=2, random_state=0)
    parts = X[:1500], X[1500:]
    releases = [Sketch.from_data(plan, part).release(0.9) for part in parts]
    return parts, releases


@pytest.mark.parametrize("detector", detectors())
@given(data=schemas_and_rows(), seed=st.integers(0, 99), cut=st.integers(0, 30))
def test_sites_add_up_to_the_scores_of_all_rows(detector, data, seed, cut):
    schema, some = data
    sketch = Sketch.from_data(
        Plan.draw(schema, detector=detector, n_tables=3, random_state=seed), as_table(schema, some)
    )
    plan = rounds.ranks(sketch)
    whole = Sketch.from_data(plan, as_table(schema, some))
    parts = [part for part in (some[:cut], some[cut:]) if part]
    together = sum(
        (Sketch.from_data(plan, as_table(schema, part)) for part in parts), start=Sketch.zero(plan)
    )
    np.testing.assert_array_equal(together.counts, whole.counts)
    scorer = Scorer(sketch)
    scores, ranks = scorer.score(as_table(schema, some)), Ranks(whole, scorer)
    # Rows that lie in the same cell, or lower ones: a cell is a part of the scores' range.
    edges = plan.family.edges
    cells = np.clip(np.searchsorted(edges, scores, side="right") - 1, 0, RANK_BINS - 1)
    expected = [(cells <= cell).mean() for cell in cells]
    np.testing.assert_allclose(ranks.of(scores), expected)
    assert (edges[cells] <= scores).all()
    assert (scores < edges[cells + 1]).all()


# --- counting scores ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda family, arrays: family.update(bins=1), "from 2 to 65,536"),
        (lambda family, arrays: family.update(model=dict(family)), "a detector's tables"),
        (lambda family, arrays: arrays.pop("value"), "needs values"),
        (lambda family, arrays: arrays.update(more=arrays["value"]), "no others"),
        (lambda family, arrays: arrays.update(value=arrays["value"][1:]), "value has shape"),
        (lambda family, arrays: arrays.update(value=arrays["value"] + (1 << 52)), "too large"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(change, says):
    plan = rounds.ranks(HushTable(n_tables=3, random_state=0).fit(rows(200)).sketch_)
    content, arrays = plan.to_dict(), dict(plan.arrays())
    change(content["family"], arrays)
    with pytest.raises(PlanError, match=says):
        Plan.from_content(content, arrays)


# --- private ranks --------------------------------------------------------------------------------


def test_released_ranks_count_what_the_model_cost(merged):
    parts, (north, south) = merged
    model = north + south
    plan = rounds.ranks(model)
    assert isinstance(plan.family, ScoreHistogram)
    assert plan.family.bins == PRIVATE_RANK_BINS
    assert plan.plan_id == rounds.ranks(south + north).plan_id
    assert not plan.data_dependent
    assert [spent.release for spent in plan.behind] == [model.release_id]
    ranked = [Sketch.from_data(plan, part).release(1.0) for part in parts]
    assert 0.9 < ranked[0].ledger.epsilon <= 1.0
    assert ranked[0].ledger.noise_sd < north.ledger.noise_sd
    with pytest.raises(PrivacyError, match="exhausted"):
        Sketch.from_data(plan, parts[0]).release(0.9)
    detector = HushTable.from_counts(model).set_ranks(ranked[0] + ranked[1])
    X = np.concatenate(parts)
    ranks, between = detector.rank_samples(X, return_interval=True)
    true = np.searchsorted(np.sort(detector.score_samples(X)), detector.score_samples(X), "right")
    # Noise of 15 a cell, added up over at most 128 of them: 170 rows of 3,000, times five.
    assert np.abs(ranks - true / len(X)).max() < 0.3
    assert ((between[:, 0] <= ranks) & (ranks <= between[:, 1])).all()
    assert (np.diff(Ranks(ranked[0], Scorer(model)).shares) >= 0.0).all()


def test_nothing_is_released_of_ranks_under_exact_counts():
    sketch = Sketch.from_data(Plan.draw(SCHEMA, random_state=0), rows())
    plan = rounds.ranks(sketch)
    assert plan.data_dependent
    with pytest.raises(PrivacyError, match="an exact model's scores"):
        Sketch.from_data(plan, rows()).release(1.0)


# --- what does not fit ----------------------------------------------------------------------------


def test_counts_that_rank_nothing_are_refused():
    detector = HushTable(random_state=0).fit(rows())
    other = HushTable(random_state=1).fit(rows())
    with pytest.raises(PlanError, match="to another model"):
        detector.set_ranks(Sketch.from_data(rounds.ranks(other.sketch_), rows()))
    with pytest.raises(PlanError, match=r"under hushtable.counts.rounds.ranks"):
        detector.set_ranks(other.sketch_)
    with pytest.raises(UsageError, match="no rows were counted"):
        detector.set_ranks(Sketch.zero(rounds.ranks(detector.sketch_)))
    marginals = Sketch.from_data(Plan.marginals(SCHEMA), rows())
    with pytest.raises(UsageError, match="do not score rows"):
        rounds.ranks(marginals)
    with pytest.raises(UsageError, match="do not score rows"):
        rounds.ranks(Sketch.from_data(rounds.ranks(detector.sketch_), rows()))
    with pytest.raises(UsageError, match="set_ranks first"):
        detector.rank_samples(rows())


def test_a_local_model_has_no_ranks(merged):
    parts, (north, south) = merged
    own = Sketch.from_data(north.plan, parts[0])
    local = LocalModel.of(north + south, north.release_id, north.counts, own.counts)
    detector = HushTable.from_counts(local)
    with pytest.raises(UsageError, match="local model"):
        detector.set_ranks(parts[0])
    counts = Sketch.from_data(rounds.ranks(north + south), parts[0])
    with pytest.raises(UsageError, match="local model"):
        detector.set_ranks(counts)


# --- standard errors ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", DETECTORS)
def test_standard_errors_equal_the_oracles(make):
    X = rows(300)
    detector = make(n_tables=7, random_state=0).fit(X)
    scorer = Scorer(detector.sketch_)
    errors = detector.standard_errors(X)
    np.testing.assert_allclose(errors, standard_errors(scorer, X), atol=2e-3)
    assert errors.min() > 0.0
    scores, same = scorer.score_with_errors(X, n_jobs=3)
    np.testing.assert_array_equal(scores, detector.score_samples(X))
    np.testing.assert_array_equal(same, errors)


def test_one_table_tells_no_error():
    X = rows(300)
    with pytest.raises(UsageError, match="2 tables"):
        HushTable(n_tables=1, random_state=0).fit(X).standard_errors(X)


# --- the line -------------------------------------------------------------------------------------


def test_the_line_is_drawn_at_a_share_of_the_merged_rows(merged):
    parts, (north, south) = merged
    X = np.concatenate(parts)
    detector = HushTable(random_state=0).fit(X)
    ranks = Sketch.from_data(rounds.ranks(detector.sketch_), X)
    for share in (0.01, 0.1, 0.5):
        flagged = (detector.set_threshold(ranks, share).predict(X) == -1).mean()
        assert share - 0.02 < flagged <= share
    assert (detector.set_threshold(ranks, 30).predict(X) == -1).sum() <= 30
    # The same line at either site.
    released = HushTable.from_counts(north + south)
    counts = [Sketch.from_data(rounds.ranks(north + south), part) for part in parts]
    lines = {released.set_threshold(a + b, 0.05).offset_ for a, b in (counts, counts[::-1])}
    assert len(lines) == 1


@pytest.mark.parametrize("wrong", [0, -3, 1501, True])
def test_a_number_of_rows_that_cannot_be_is_refused(wrong):
    detector = HushTable(random_state=0).fit(rows())
    with pytest.raises(UsageError, match="contamination="):
        detector.set_threshold(rows(), wrong)


def test_ranks_are_not_part_of_a_saved_model(tmp_path):
    detector = HushTable(random_state=0).fit(rows()).set_ranks(rows())
    detector.save(tmp_path / "ranked.hush")
    HushTable(random_state=0).fit(rows()).save(tmp_path / "plain.hush")
    plain, ranked = ((tmp_path / f"{name}.hush").read_bytes() for name in ("plain", "ranked"))
    assert plain == ranked


def test_weights_threads_and_batches_leave_counts_alone(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    X = rows(20_000)
    plan = rounds.ranks(HushTable(random_state=0).fit(X).sketch_)
    once = Sketch.from_data(plan, X, n_jobs=1)
    np.testing.assert_array_equal(Sketch.from_data(plan, X, n_jobs=3).counts, once.counts)
    twice = Sketch.from_data(plan, X, sample_weight=np.full(len(X), 2))
    np.testing.assert_array_equal(twice.counts, 2 * once.counts)
    table = pa.table({f"x{j}": X[:, j] for j in range(4)})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=777)
    named = rounds.ranks(HushTable(random_state=0).fit(table).sketch_)
    read = Sketch.from_data(named, tmp_path / "rows.parquet")
    np.testing.assert_array_equal(read.counts, once.counts)
    sampled = Sketch.from_data(plan, X, max_samples=100, random_state=0)
    assert sampled.counts.sum() == 100
