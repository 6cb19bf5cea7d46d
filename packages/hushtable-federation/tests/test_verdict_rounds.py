"""Verdicts that leave their sites: as releases, and in rounds, under their own plan."""

import numpy as np
import pandas as pd
import pytest

from hushtable import (
    Feature,
    HushTable,
    LocalModel,
    LSHiTables,
    Plan,
    Release,
    Schema,
    Sketch,
    Verdicts,
    load,
)
from hushtable.counts import rounds
from hushtable.counts.verdicts import LearnedModel
from hushtable.errors import DataError, PlanError, PrivacyError, UsageError
from hushtable.scores import Scorer
from hushtable_federation.result import implausible
from round_helpers import SCHEMA, Consortium

COLUMNS = SCHEMA.names


def rows(n=1500, seed=0):
    """Normal rows; the first tenth is high in one column, the next in another."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    X[: n // 10, 0] += 3.0
    X[n // 10 : n // 5, 1] += 3.0
    return X


def table(X):
    return pd.DataFrame(X, columns=COLUMNS)


def judged(X, outliers, fine):
    """Rows with verdicts, as a site's table has them."""
    told = table(X[[*outliers, *fine]])
    return told.assign(verdict=["outlier"] * len(outliers) + ["fine"] * len(fine))


@pytest.fixture(scope="module")
def model():
    """A released model of 1,500 rows, at a total of 1."""
    plan = Plan.draw(SCHEMA, epsilon=3.0, expected_rows=1500, random_state=0)
    return Sketch.from_data(plan, rows()).release(1.0)


@pytest.fixture(scope="module")
def plan(model):
    return rounds.verdicts(model, 200)


# --- counts ---------------------------------------------------------------------------------------


def test_outliers_count_one_and_fine_rows_minus_one(model, plan):
    X = rows()
    table = judged(X, range(10), range(500, 530))
    sketch = Sketch.from_data(plan, table)
    outliers, fine = (Sketch.from_data(model.plan, X[at]) for at in (range(10), range(500, 530)))
    np.testing.assert_array_equal(sketch.counts[2:], outliers.counts - fine.counts)
    assert sketch.counts[:2].tolist() == [30, 10]
    assert sketch.n_rows == 40
    own = Verdicts.from_data(model.plan, X[[*range(10), *range(500, 530)]], [1] * 10 + [0] * 30)
    assert own.signed(plan) == sketch
    parts = [Sketch.from_data(plan, table[k::3]) for k in range(3)]
    assert sum(parts, start=Sketch.zero(plan)) == sketch
    assert sketch - parts[0] == parts[1] + parts[2]


def test_missing_values_count_by_the_models_own_features(model, plan):
    table = judged(rows(), range(10), range(500, 530))
    table.loc[3, COLUMNS[1]] = np.nan
    sketch = Sketch.from_data(plan, table)
    own = Verdicts.from_data(model.plan, table[COLUMNS], [1] * 10 + [0] * 30)
    np.testing.assert_array_equal(own.signed(plan).counts, sketch.counts)


@pytest.mark.parametrize("verdict", ["outlier", "fine"])
def test_one_row_changes_one_cell_of_each_histogram_by_one(plan, verdict):
    table = judged(rows(), range(10), range(500, 530))
    more = pd.concat([table, table.iloc[[3]].assign(verdict=verdict)])
    changed = Sketch.from_data(plan, more).counts - Sketch.from_data(plan, table).counts
    for one in np.split(changed, plan.family.offsets[1:-1]):
        assert np.abs(one).sum() == np.abs(one).max() == 1
    release = Sketch.from_data(plan, table).release(4.0)
    assert release.ledger.sensitivity.tables == plan.family.n_histograms


# --- what they cost, and what they do -------------------------------------------------------------


def test_the_ledger_counts_the_model_too(model, plan):
    release = Sketch.from_data(plan, judged(rows(), range(10), range(500, 530))).release(2.0)
    assert plan.behind == model.spent()
    assert release.ledger.epsilon == pytest.approx(2.0, rel=1e-4)
    with pytest.raises(PrivacyError):  # the model has spent that already
        Sketch.from_data(plan, judged(rows(), range(10), range(500, 530))).release(1.0)


@pytest.mark.parametrize("saved", [False, True])
def test_a_detector_learns_from_a_release_of_all_sites(tmp_path, model, plan, saved):
    X = rows()
    sites = [judged(X, range(k, 100, 5), range(150 + k, 250, 5)) for k in range(5)]
    release = sum((Sketch.from_data(plan, one) for one in sites), start=Sketch.zero(plan))
    release, X = release.release(9.0), table(X)
    detector = HushTable.from_counts(model)
    before = detector.score_samples(X)
    detector.learn_from(release)
    if saved:
        detector.save(tmp_path / "m.hush")
        detector = load(tmp_path / "m.hush")
    moved = detector.score_samples(X) - before
    assert moved[100:150].mean() < -0.5  # like the confirmed ones, and no one looked at them
    assert moved[250:300].mean() > 0.5
    with pytest.raises(UsageError, match="count twice"):
        detector.learn(X[:1], [1])
    detector.forget()
    np.testing.assert_array_equal(detector.score_samples(X), before)


def test_own_verdicts_change_a_released_model(model):
    X = table(rows())
    detector = HushTable.from_counts(model)
    before = detector.score_samples(X)
    moved = detector.learn(X[:20], np.ones(20)).score_samples(X) - before
    assert moved[20:150].mean() < moved[300:].mean() - 0.5


# --- rounds ---------------------------------------------------------------------------------------


@pytest.fixture
def five(tmp_path, model):
    """Five sites with twenty verdicts of each kind; each sees outliers of the first kind."""
    those = Consortium(tmp_path, 5, cap=20.0)
    X = rows()
    for k, site in enumerate(those.sites.values()):
        site.X = judged(X, range(k, 100, 5), range(150 + k, 250, 5))
    yield those
    those.close()


def test_verdicts_travel_in_a_masked_round(five, model, plan):
    round_ = five.open(plan=plan, epsilon=4.0)
    sent = {name: site.submit(round_) for name, site in five.sites.items()}
    result = five.sum(round_, sent)
    exact = sum((site.sketch(plan) for site in five.sites.values()), start=Sketch.zero(plan))
    noise = result.counts - exact.counts
    assert 0.8 < noise.std() / result.noise_sd < 1.2
    X, detector = table(rows()), HushTable.from_counts(model)
    before = detector.score_samples(X)
    moved = detector.learn_from(result).score_samples(X) - before
    assert moved[100:150].mean() < moved[300:].mean() < moved[250:300].mean()
    # A site that has its own verdicts without noise: never leaves.
    answer = five.sites["s00"].book.answer(round_.round_id)
    local = LocalModel.of(result, answer.share.release, answer.sent, answer.counts)
    assert local.noise_sd < result.noise_sd
    assert np.isfinite(detector.learn_from(local).score_samples(X)).all()


def test_counts_of_many_verdicts_are_plausible_and_lies_are_not(five, plan):
    """The first histogram counts them, and all others count outliers less the fine."""
    exact = sum((site.sketch(plan) for site in five.sites.values()), start=Sketch.zero(plan)).counts
    for counts in (exact, 100 * exact):
        assert implausible(plan, counts, 1.0) is None
    for cell, by in ((0, 1_000), (50, 1_000), (50, -1_000)):
        lie = exact.copy()
        lie[cell] += by
        assert implausible(plan, lie, 1.0) is not None
    moved = exact.copy()
    moved[[50, 51]] += [5_000, -5_000]
    assert implausible(plan, moved, 1.0) is not None


def test_no_round_protects_another_verdict_on_the_same_row(five, plan):
    with pytest.raises(PrivacyError, match="change its counts by two"):
        assert five.open(plan=plan, epsilon=4.0, adjacency="replace-one").site_scale
    sketch = next(iter(five.sites.values())).sketch(plan)
    with pytest.raises(PrivacyError, match="use 'add-remove'"):
        sketch.release(4.0, adjacency="replace-one")


# --- audits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("spent", "claimed", "found"), [(3.0, 3.0, False), (20.0, 0.5, True)])
def test_an_audit_stays_below_the_claim_and_finds_too_little_noise(spent, claimed, found):
    model = Sketch.from_data(Plan.draw(SCHEMA, random_state=0), rows())
    systems = pytest.importorskip("hushtable_bench.systems", reason="needs hushtable-bench")
    audit = systems.audit_canaries(
        lambda sketch: sketch.release(spent),
        rounds.verdicts(model, 1000),
        canaries=1000,
        random_state=0,
        epsilon=claimed,
        delta=1e-6,
    )
    assert audit.rejects is found


# --- bad input ------------------------------------------------------------------------------------


def test_few_verdicts_stay_at_home(model):
    with pytest.raises(PrivacyError, match="60 verdicts of all sites: noise would drown"):
        rounds.verdicts(model, 60)


def test_no_verdicts_under_a_plan_that_depends_on_rows_are_released():
    raw = HushTable(random_state=0).fit(rows())
    plan = rounds.verdicts(raw.sketch_, 200)
    X = pd.DataFrame(rows()[:5], columns=plan.schema.names[:3]).assign(verdict="outlier")
    with pytest.raises(PrivacyError, match="read off the data"):
        Sketch.from_data(plan, X).release(3.0)


@pytest.mark.parametrize(("column", "words"), [(None, "is missing"), ("yes", "is neither")])
def test_rows_without_a_verdict_are_refused(plan, column, words):
    table = judged(rows(), range(10), range(20, 30))
    table.loc[4, "verdict"] = column
    with pytest.raises(DataError, match=words):
        Sketch.from_data(plan, table)
    with pytest.raises(DataError, match="no column"):
        Sketch.from_data(plan, table.drop(columns="verdict"))


def test_verdicts_of_other_hash_functions_are_refused(model, plan):
    other = Plan.draw(SCHEMA, epsilon=3.0, expected_rows=1500, random_state=1)
    elsewhere = HushTable.from_counts(Sketch.from_data(other, rows()).release(1.0))
    release = Sketch.from_data(plan, judged(rows(), range(10), range(20, 30))).release(3.0)
    with pytest.raises(PlanError, match="other hash functions"):
        elsewhere.learn_from(release)
    with pytest.raises(UsageError, match="needs verdicts"):
        elsewhere.learn_from(Sketch.from_data(plan, judged(rows(), range(10), range(20, 30))))
    own = Verdicts.from_data(other, rows()[:3], [1, 0, 0])
    with pytest.raises(PlanError, match="of its own model: this plan"):
        own.signed(plan)


def test_plans_of_verdicts_need_scores_that_take_them(model, plan):
    with pytest.raises(UsageError, match="not in bits"):
        rounds.verdicts(Sketch.zero(plan), 200)
    named = Schema([Feature.numeric("verdict", low=0, high=1)])
    with pytest.raises(PlanError, match="name of the column"):
        rounds.verdicts(Sketch.zero(Plan.draw(named)), 200)


def test_lsh_itables_learn_from_releases():
    first = Plan.draw(SCHEMA, detector="lsh_itables", random_state=0)
    model = Sketch.from_data(first, rows()).release(3.0)
    plan = rounds.verdicts(model, 200)
    release = Sketch.from_data(plan, judged(rows(), range(100), range(300, 400))).release(9.0)
    detector = LSHiTables.from_counts(model).learn_from(release)
    assert isinstance(detector.verdicts_, Release)
    assert isinstance(detector._scorer.sketch, LearnedModel)


def test_verdicts_alone_score_nothing(plan):
    with pytest.raises(UsageError, match="do not score rows"):
        Scorer(Sketch.from_data(plan, judged(rows(), range(10), range(20, 30))))
