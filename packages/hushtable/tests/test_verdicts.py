"""Verdicts: counted, added, forgotten, saved; what they do to scores, ranks and thresholds."""

import copy
import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable import (
    HushTable,
    LSHiTables,
    Sketch,
    Verdicts,
    load,
)
from hushtable.cli import main
from hushtable.counts import rounds
from hushtable.counts.verdicts import FINE, OUTLIER, LearnedModel
from hushtable.errors import DataError, PlanError, UsageError
from hushtable.scores import Explainer, Ranks, Scorer
from hushtable.scores.review import Review

N = 600


def rows(seed=0):
    """Normal rows of 4 columns; the first 30 are high in the first, the next 30 in the second."""
    X = np.random.default_rng(seed).normal(size=(N, 4))
    X[:30, 0] += 3.0
    X[30:60, 1] += 3.0
    return X


@pytest.fixture(scope="module")
def fitted():
    return HushTable(random_state=0).fit(rows())


@pytest.fixture
def detector(fitted):
    return copy.deepcopy(fitted)


def some(seed=1, n=20):
    """Some rows with verdicts."""
    X = rows()
    at = np.random.default_rng(seed).permutation(N)[:n]
    return X[at], (at < 30).astype(int)


# --- counts ---------------------------------------------------------------------------------------


@given(data=st.data(), n=st.integers(1, 40))
def test_verdicts_of_several_sites_give_the_same_bits(fitted, data, n):
    X, y = some(n=n)
    site = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    parts = [Verdicts.from_data(fitted.plan_, X[site == k], y[site == k]) for k in range(3)]
    together = sum(parts, start=Verdicts.zero(fitted.plan_))
    assert together == Verdicts.from_data(fitted.plan_, X, y)
    assert together - parts[0] == parts[1] + parts[2]
    apart, at_once = copy.deepcopy(fitted), copy.deepcopy(fitted).learn(X, y)
    for part in parts:
        apart.learn_from(part)
    np.testing.assert_array_equal(apart.score_samples(rows()), at_once.score_samples(rows()))


def test_counts_below_zero_are_refused(fitted):
    verdicts = Verdicts.from_data(fitted.plan_, *some())
    counts = verdicts.outliers.copy()
    counts[0], counts[1] = -1, counts[:2].sum() + 1  # as many rows in each table as before
    with pytest.raises(PlanError, match="outliers needs the same rows in each table"):
        replace(verdicts, outliers=counts)


# --- scores ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("make", [HushTable, LSHiTables])
def test_without_verdicts_scores_are_the_same_bits(make, passes):
    if make is LSHiTables and passes == 2:
        pytest.skip("LSHiTables has one pass")
    detector = make(random_state=0, **({"passes": passes} if make is HushTable else {}))
    X = rows()
    before = detector.fit(X).score_samples(X)
    X_looked_at, y = some()
    assert (detector.learn(X_looked_at, y).score_samples(X) != before).any()
    detector.forget(X_looked_at, y)
    np.testing.assert_array_equal(detector.score_samples(X), before)
    assert not hasattr(detector, "verdicts_")
    detector.learn(X_looked_at, y).forget()
    np.testing.assert_array_equal(detector.score_samples(X), before)
    assert detector.learn(X[:0], []).verdicts_.n_rows == 0
    np.testing.assert_array_equal(detector.score_samples(X), before)


def test_verdicts_are_kept_by_partial_fit_and_forgotten_by_fit():
    detector = HushTable(passes=1, random_state=0).fit(rows())
    X, y = some()
    detector.learn(X, y).partial_fit(rows(seed=5))
    assert detector.verdicts_.n_rows == len(y)
    other = HushTable(passes=1, random_state=0).fit(rows())
    other.partial_fit(rows(seed=5)).learn(X, y)
    np.testing.assert_array_equal(detector.score_samples(X), other.score_samples(X))
    assert not hasattr(detector.fit(rows()), "verdicts_")


# --- what follows from scores ---------------------------------------------------------------------


def test_ranks_are_of_the_learned_scores(detector):
    X, y = some()
    detector.set_ranks(rows())
    detector.learn(X, y)
    with pytest.raises(UsageError, match="set_ranks"):
        detector.rank_samples(X)
    scores = detector.score_samples(rows())
    found = detector.set_ranks(rows()).rank_samples(rows())
    order = (scores[:, np.newaxis] >= scores).mean(axis=1)
    np.testing.assert_allclose(found, order, atol=0.01)  # cells of a histogram
    unlearned = rounds.ranks(detector.sketch_)
    with pytest.raises(PlanError, match="another model"):
        Ranks(Sketch.from_data(unlearned, rows()), detector._scorer)


# --- files ----------------------------------------------------------------------------------------


def test_a_detector_is_saved_with_its_verdicts(tmp_path, detector):
    X, y = some()
    detector.learn(X, y).save(tmp_path / "m.hush")
    again = load(tmp_path / "m.hush")
    assert again.verdicts_ == detector.verdicts_
    assert again.offset_ == detector.offset_
    expected = detector.score_samples(rows())
    np.testing.assert_array_equal(again.score_samples(rows()), expected)
    np.testing.assert_array_equal(Scorer.load(tmp_path / "m.hush").score(rows()), expected)
    again.learn(rows()[:5], [1] * 5).save(tmp_path / "n.hush")
    assert load(tmp_path / "n.hush").verdicts_.n_rows == len(y) + 5
    assert len(load(tmp_path / "n.hush").outliers(rows(), n=3)) == 3
    again.forget().save(tmp_path / "n.hush")
    np.testing.assert_array_equal(
        load(tmp_path / "n.hush").score_samples(rows()), detector.forget().score_samples(rows())
    )


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (["yes", "no"], "verdict 'yes' of row 0: needs 1"),
        ([1.0, np.nan], "verdict nan of row 1"),
        ([1, -1], "verdict -1 of row 1"),
        ([1], "1 verdicts for 2 rows"),
        ([[1, 0]], r"verdicts of shape \(1, 2\)"),
        ([1, None], "verdict None of row 1"),
    ],
)
def test_other_labels_are_refused_and_nothing_is_lost(detector, y, words):
    X, known = some()
    detector.learn(X, known)
    before = detector.score_samples(X)
    with pytest.raises(DataError, match=words):
        detector.learn(X[:2], y)
    assert detector.verdicts_.n_rows == len(known)
    np.testing.assert_array_equal(detector.score_samples(X), before)


def test_verdicts_of_another_model_are_refused(detector):
    other = HushTable(random_state=1).fit(rows())
    with pytest.raises(PlanError, match="another plan"):
        detector.learn_from(Verdicts.from_data(other.plan_, *some()))
    with pytest.raises(UsageError, match="needs exact verdicts"):
        detector.learn_from(other.sketch_)


def test_what_was_not_learned_cannot_be_forgotten(detector):
    X, y = some()
    with pytest.raises(UsageError, match="nothing to forget"):
        detector.forget(X, y)
    detector.learn(X, y)
    with pytest.raises(UsageError, match="only verdicts that were learned"):
        detector.forget(X, 1 - y)
    with pytest.raises(UsageError, match="needs both"):
        detector.forget(X)
    assert detector.verdicts_.n_rows == len(y)


# --- what it learned ------------------------------------------------------------------------------


def test_the_features_that_verdicts_moved_are_found(detector):
    before, X = Scorer(detector.sketch_), rows()
    review = Review(before, before.open(X))
    assert review.moved_columns() == []
    for number in (*range(10), *range(60, 70)):
        review.answer(review.of_row(number), OUTLIER if number < 10 else FINE)
    (first, bits), *others = review.moved_columns()
    assert first == before.plan.schema.names[0]  # in which the confirmed ones are high
    shares = [Explainer(one).explain(X) for one in (review.scorer, before)]
    assert bits == pytest.approx(np.abs(shares[0] - shares[1]).mean(axis=0)[0])
    assert all(0.0 <= few < bits for _, few in others)


@pytest.fixture
def files_(tmp_path, detector):
    X = pd.DataFrame(rows(), columns=list("abcd"))
    X.to_csv(tmp_path / "rows.csv", index=False)
    detector = HushTable(random_state=0).fit(X)
    detector.learn(X.iloc[[*range(10), 60, 0]], [1] * 10 + [0, 0]).save(tmp_path / "m.hush")
    detector.verdicts_.save(tmp_path / "v.hush")
    return tmp_path


def test_inspect_says_how_many_verdicts_and_which_contradict(files_, capsys):
    for name in ("m", "v"):
        assert main(["inspect", str(files_ / f"{name}.hush")]) == 0
        told = capsys.readouterr().out
        assert "10 outliers, 2 fine; 1 pair of rows in the same cells have both verdicts" in told
        assert main(["inspect", str(files_ / f"{name}.hush"), "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["outliers"], facts["fine"], facts["contradictory"]) == (10, 2, 1)


def test_counts_are_those_of_the_rows_of_each_verdict(fitted):
    X, y = some()
    found, plan = Verdicts.from_data(fitted.plan_, X, y), fitted.plan_.first_pass()
    for counts, verdict in ((found.outliers, 1), (found.fine, 0)):
        np.testing.assert_array_equal(counts, Sketch.from_data(plan, X[y == verdict]).counts)
    assert (found.n_outliers, found.n_fine, found.n_rows) == (y.sum(), (1 - y).sum(), len(y))


@pytest.mark.parametrize(("outliers", "fine"), [(1, 6), (2, 2), (8, 6), (8, 1)])
def test_values_follow_the_definition(fitted, outliers, fine):
    X, offsets = rows(), fitted.plan_.family.offsets.tolist()
    verdicts = Verdicts.from_data(
        fitted.plan_, X[[*range(outliers), *range(100, 100 + fine)]], [1] * outliers + [0] * fine
    )
    share, before = fitted.plan_.first_counts / N, fitted.sketch_.cell_scores()
    expected = naive_values(before, verdicts.outliers, verdicts.fine, share, offsets)
    found = LearnedModel(fitted.sketch_, verdicts).cell_scores()
    np.testing.assert_allclose(found, expected, rtol=0.005, atol=0.005)  # weights are rounded
    assert np.abs(found - before).max() > 1.0


def naive_values(before, P, Q, share, offsets):
    """The scores of docs/explanation/score.md, table by table and cell by cell."""
    tables = [range(*ends) for ends in itertools.pairwise(offsets)]
    n_outliers, n_fine = (sum(int(counts[c]) for c in tables[0]) for counts in (P, Q))

    def evidence(count, n, c):
        return max(0.0, math.log2((count + 0.5) / (n * share[c] + 0.5)))

    spreads, apart = [], []
    for cells in tables:
        mean = sum(share[c] * before[c] for c in cells)
        spreads.append(sum(share[c] * (before[c] - mean) ** 2 for c in cells))
        gap = 0.0
        for c in cells:
            if P[c]:
                own = evidence(P[c] - 1, n_outliers - 1, c)
                gap += P[c] / n_outliers * (own - evidence(Q[c], n_fine, c))
            if Q[c]:
                own = evidence(Q[c] - 1, n_fine - 1, c)
                gap -= Q[c] / n_fine * (evidence(P[c], n_outliers, c) - own)
        apart.append(max(0.0, gap))
    rarer = min(n_outliers, n_fine)
    weights = [
        1.0 + rarer / (rarer + 5.0) * (min(gap / np.mean(apart), 3.0) - 1.0) for gap in apart
    ]
    found = np.array(before)
    for cells, weight in zip(tables, np.array(weights) / np.mean(weights), strict=True):
        for c in cells:
            of_fine, of_outliers = 1.0 + min(1.0, n_outliers / 3), 1.0 + min(1.0, n_fine / 3)
            bits = of_fine * evidence(Q[c], n_fine, c)
            bits -= of_outliers * evidence(P[c], n_outliers, c)
            found[c] += math.sqrt(np.mean(spreads)) * weight * bits
    return found


def test_the_automatic_threshold_follows_and_one_that_was_set_stays(detector):
    X, y = some()
    before = detector.offset_
    assert detector.learn(X, y).offset_ != before
    assert detector.forget().offset_ == before
    detector.set_threshold(rows(), 0.1)
    set_ = detector.offset_
    assert detector.learn(X, y).offset_ == set_
