"""The estimators: scikit-learn's contract, thresholds, merged detectors."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from estimator_checks import some_checks
from hushtable import (
    Feature,
    HushTable,
    LSHiTables,
    Plan,
    Schema,
    Sketch,
)
from hushtable.errors import DataError, PlanError, UsageError
from hushtable.scores.scorer import Scorer

DETECTORS = [HushTable, LSHiTables]


@pytest.mark.filterwarnings("ignore:contamination=")  # some checks fit rows that are alike
@parametrize_with_checks([
    HushTable(passes=2, n_tables=20, contamination=0.1),
])  # fmt: skip
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@some_checks(LSHiTables())
def test_scikit_learns_checks_of_lsh_itables(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:contamination=")
@parametrize_with_checks([
    HushTable(),
    HushTable(passes=1),
    HushTable(novelty=True, contamination=0.01),
    LSHiTables(max_samples=10, contamination=0.1),
])  # fmt: skip
def test_scikit_learns_checks_of_other_settings(estimator, check):
    check(estimator)


@pytest.mark.parametrize("make", DETECTORS)
def test_more_columns_than_a_byte_counts(make, rng):
    X = rng.normal(size=(200, 300))
    X[7] += 20.0
    assert np.argmin(make(n_tables=20, random_state=0).fit(X).score_samples(X)) == 7


# --- fitting in parts ------------------------------------------------------------------------


def test_partial_fit_adds_to_the_counts(rng):
    X = rng.uniform(-1, 1, size=(600, 2))
    X[0], X[1] = -1, 1  # the first part spans the range
    detector = HushTable(random_state=0).partial_fit(X[:300])
    plan = detector.plan_
    detector.partial_fit(X[300:])
    assert detector.plan_ is plan
    assert detector.sketch_ == Sketch.from_data(plan, X)
    assert detector.offset_ == HushTable.from_counts(detector.sketch_).offset_
    sampled = LSHiTables(max_samples=50, random_state=0).partial_fit(X[:300]).partial_fit(X[300:])
    assert sampled.sketch_.n_rows == 100
    with pytest.raises(AttributeError, match="partial_fit"):
        HushTable(passes=2).partial_fit(X)


def test_sample_weight_repeats_rows(rng):
    X = rng.normal(size=(80, 2))
    weights = rng.integers(0, 4, 80)
    weighted = HushTable(random_state=0).fit(X, sample_weight=weights)
    repeated = HushTable(random_state=0).fit(np.repeat(X, weights, axis=0))
    assert weighted.plan_.plan_id == repeated.plan_.plan_id
    assert weighted.sketch_.counts.tolist() == repeated.sketch_.counts.tolist()
    share = HushTable(random_state=0, contamination=0.1)
    assert (
        share.fit(X, sample_weight=weights).offset_
        == share.fit(np.repeat(X, weights, axis=0)).offset_
    )


# --- the threshold ---------------------------------------------------------------------------


@pytest.mark.parametrize("make", DETECTORS)
def test_contamination_is_the_share_of_flagged_rows(make, rng):
    X = rng.normal(size=(1000, 3))
    for share in (0.01, 0.1, 0.5):
        flagged = make(contamination=share, random_state=0).fit_predict(X) == -1
        assert flagged.mean() == pytest.approx(share, abs=0.006)
    detector = make(random_state=0).fit(X)
    before = detector.offset_
    assert detector.set_threshold(X, 0.2) is detector
    assert (detector.predict(X) == -1).mean() == pytest.approx(0.2, abs=0.006)
    assert detector.offset_ != before
    with pytest.raises(DataError, match="no rows"):
        detector.set_threshold(X[:0], 0.2)
    with pytest.raises(UsageError, match="at most"):
        detector.set_threshold(X, 0.7)


# --- scikit-learn's surroundings -------------------------------------------------------------


@pytest.mark.parametrize("make", DETECTORS)
def test_not_fitted(make, X):
    with pytest.raises(NotFittedError):
        make().score_samples(X)
    with pytest.raises(NotFittedError):
        make().save("nowhere.hush")


@pytest.mark.parametrize(
    ("detector", "message"),
    [
        (HushTable(contamination=0.6), "at most 0.5"),
        (HushTable(contamination="some"), "needs 'auto'"),
        (HushTable(contamination=True), "needs 'auto'"),
        (HushTable(passes=3), 'needs "auto", 1 or 2'),
        (HushTable(n_tables=0), "n_tables=0"),
        (HushTable(n_jobs=0), "n_jobs=0"),
        (LSHiTables(max_samples=0), "max_samples=0"),
    ],
)
def test_wrong_parameters_are_named(detector, message, X):
    with pytest.raises(ValueError, match=message):
        detector.fit(X)


def test_from_counts_refuses_what_it_cannot_do(rng):
    schema = Schema((Feature.numeric("x", low=0, high=1),))
    x = rng.random((30, 1))
    refined = Sketch.from_data(Plan.draw(schema, random_state=0), x)
    with pytest.raises(PlanError, match="'hushtable' plan, LSHiTables needs"):
        LSHiTables.from_counts(refined)
    with pytest.raises(PlanError, match="'marginals' plan"):
        HushTable.from_counts(Sketch.from_data(Plan.marginals(schema), x))
    with pytest.raises(UsageError, match="no rows were counted"):
        HushTable.from_counts(Sketch.zero(refined.plan))
    # A schema's names are the data's names: a frame in another order is refused.
    detector = HushTable.from_counts(refined)
    with pytest.raises(DataError, match="unseen at fit time"):
        detector.score_samples(pd.DataFrame(x, columns=["y"]))


def test_ties_that_prevent_a_threshold_are_said():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], [37, 13], axis=0)
    with pytest.warns(UserWarning, match=r"asks for 10 of 50 rows, but only 0 .* 13 rows or more"):
        detector = HushTable(contamination=0.2, random_state=0).fit(X)
    assert (detector.predict(X) == 1).all()
    detector.set_threshold(X, 13)
    assert (detector.predict(X) == -1).sum() == 13
    with pytest.warns(UserWarning, match="contamination=5 asks for 5 of 25 rows, but only 0"):
        detector.set_threshold(X, 5, sample_weight=np.arange(50) % 2)


@pytest.mark.parametrize("make", DETECTORS)
@pytest.mark.parametrize("n_jobs", [2, 7, -1])
def test_threads_change_no_bit(make, n_jobs, rng):
    X = rng.normal(size=(40_000, 3))
    one = make(n_tables=10, random_state=0).fit(X)
    many = make(n_tables=10, random_state=0, n_jobs=n_jobs).fit(X)
    assert many.sketch_ == one.sketch_
    assert (many.score_samples(X) == one.score_samples(X)).all()
    assert many.offset_ == one.offset_


@pytest.mark.parametrize(
    ("settings", "part"), [({"passes": 1}, 2), ({"passes": 2}, 3), ({"novelty": True}, 3)]
)
def test_auto_threshold_is_the_mean_of_the_rarer_rows(rng, settings, part):
    X = rng.normal(size=(301, 2))
    detector = HushTable(n_tables=5, random_state=0, **settings).fit(X)
    scorer = Scorer(detector.sketch_)
    offsets = detector.plan_.family.offsets
    means = []
    for t in range(5):
        table = slice(offsets[t], offsets[t + 1])
        rows = np.sort(np.repeat(scorer.values[table], scorer.row_counts[table]))
        # 301 rows: the rarer half is 150 rows and half of the next, the third 100 and a third.
        whole = 301 // part
        means.append((rows[:whole].sum() + rows[whole] / part) / (301 / part))
        if "novelty" in settings:  # less what a row's own count adds to it in the mean
            counts = np.repeat(scorer.row_counts[table], scorer.row_counts[table])
            means[-1] -= np.mean(np.log2(counts + 0.05) - np.log2(counts - 0.95))
    exact = 1e-6 if "novelty" in settings else 1e-12  # cells are rounded to 2**-20
    assert detector.offset_ == pytest.approx(np.mean(means), rel=exact)


@pytest.mark.parametrize("make", DETECTORS)
def test_pickle_clone_pipeline_and_frames(make, X):
    frame = pd.DataFrame(X, columns=list("abcd"))
    detector = make(random_state=0).fit(frame)
    again = pickle.loads(pickle.dumps(detector))
    assert (again.score_samples(frame) == detector.score_samples(frame)).all()
    copy = clone(detector)
    assert copy.get_params() == detector.get_params()
    assert not hasattr(copy, "plan_")
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), make(random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline.fit(frame).score_samples(frame)
    assert pipeline[-1].feature_names_in_.tolist() == list("abcd")
    result = cross_validate(
        make(random_state=0), X, np.zeros(len(X)), scoring=lambda e, X, y: e.score_samples(X).mean()
    )
    assert np.isfinite(result["test_score"]).all()


def test_random_state_of_every_kind(X):
    a, b = (HushTable(random_state=np.random.RandomState(3)).fit(X) for _ in range(2))
    assert a.plan_.plan_id == b.plan_.plan_id
    assert HushTable().fit(X).plan_.plan_id != HushTable().fit(X).plan_.plan_id
    generator = HushTable(random_state=np.random.default_rng(3)).fit(X)
    same = HushTable(random_state=3).fit(X)
    assert generator.plan_.plan_id == same.plan_.plan_id


@pytest.mark.parametrize("make", DETECTORS)
def test_columns_are_checked_as_scikit_learn_does(make, X):
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = make(n_tables=5, random_state=0).fit(frame)
    plain = make(n_tables=5, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- z\n.*now missing:\n- d"):
        named.predict(frame.rename(columns={"d": "z"}))
    with pytest.raises(ValueError, match="must be in the same order"):
        named.predict(frame[["b", "a", "c", "d"]])
    with pytest.raises(ValueError, match="X has 3 features"):
        plain.predict(X[:, :3])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        named.predict(X)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        plain.predict(frame)
    with pytest.raises(TypeError, match="string names"):
        named.predict(frame.rename(columns={"d": 3}))
