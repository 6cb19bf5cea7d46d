"""Two passes: the gate between them, one site and several, and what is refused."""

import numpy as np
import pyarrow as pa
import pytest

from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.counts import rounds
from hushtable.data.readers import reader
from hushtable.errors import PlanError, UsageError


@pytest.fixture
def X(rng):
    X = rng.normal(size=(900, 3))
    X[:90] = rng.uniform(-9.0, 9.0, size=(90, 3))  # apart, and many
    return X


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_tables", [1, 7, 100])
def test_a_fit_is_what_its_rounds_are(X, n_jobs, weighted, n_tables, monkeypatch):
    monkeypatch.setattr(reader, "BATCH_ROWS", 64)
    weights = np.arange(len(X)) % 3 if weighted else None
    given = {"sample_weight": weights, "n_jobs": n_jobs}
    detector = HushTable(n_tables=n_tables, random_state=0, n_jobs=n_jobs)
    detector.fit(X, sample_weight=weights)
    first = Sketch.from_data(detector.plan_.first_pass(), X, **given)
    gate = Sketch.from_data(rounds.gate(first), X, **given)
    second = Sketch.from_data(rounds.second_pass(first, gate), X, **given)
    assert second == detector.sketch_
    assert second.largest_weight == detector.sketch_.largest_weight
    assert (first.counts == detector.plan_.first_counts).all()


# --- adding rows ------------------------------------------------------------------------------


def test_rows_are_added_to_the_counts_of_the_first_pass(X):
    X[0], X[1] = X.min(axis=0), X.max(axis=0)
    twice, once = HushTable(random_state=0).fit(X[:500]), HushTable(passes=1, random_state=0)
    once.fit(X[:500]).partial_fit(X[500:])
    with pytest.warns(UserWarning, match="first of the two passes"):
        twice.partial_fit(X[500:])
    assert twice.plan_.plan_id == once.plan_.plan_id
    assert twice.sketch_ == once.sketch_
    assert twice.offset_ == once.offset_
    begun = HushTable(random_state=0).partial_fit(X[:500]).partial_fit(X[500:])
    assert begun.sketch_ == once.sketch_
    with pytest.raises(AttributeError, match="partial_fit"):
        HushTable(passes=2).partial_fit(X)


def test_a_change_of_scale_is_announced_once_with_the_remedy(X):
    detector = HushTable(random_state=0).fit(X[:500])
    before, offset = detector.score_samples(X).mean(), detector.offset_
    words = rf"until now {offset:.2f}.*fit again on all rows; .*passes=1"
    with pytest.warns(UserWarning, match=words) as caught:
        detector.partial_fit(X[500:600])
    assert [one.filename for one in caught] == [__file__]
    assert detector.score_samples(X).mean() < before - 1.0
    assert detector.offset_ < offset - 1.0
    # From then on, and with one pass from the start, the scale stays: warnings are errors here.
    after = detector.partial_fit(X[600:601]).score_samples(X).mean()
    once = HushTable(passes=1, random_state=0).fit(X[:500])
    assert abs(once.score_samples(X).mean() - after) < 0.5
    begun = HushTable(random_state=0).partial_fit(X[:500])
    np.testing.assert_array_equal(begun.score_samples(X), once.score_samples(X))
    begun.partial_fit(X[500:])


# --- what is refused --------------------------------------------------------------------------


def public(**settings):
    features = [Feature.numeric(name, low=-10, high=10) for name in "abc"]
    return Plan.draw(Schema(features), n_tables=5, random_state=0, **settings)


def table(X):
    return pa.table(dict(zip("abc", X.T, strict=True)))


def test_a_gate_of_other_rows_is_refused(X):
    plan = public()
    first, other = (Sketch.from_data(plan, table(some)) for some in (X, X[:500]))
    gate = Sketch.from_data(rounds.gate(other), table(X))
    with pytest.raises(PlanError, match="gate was counted under another plan"):
        rounds.second_pass(first, gate)
    with pytest.raises(UsageError, match="no rows were counted for the gate"):
        rounds.second_pass(first, Sketch.zero(rounds.gate(first)))
    with pytest.raises(PlanError, match="do not add"):
        Sketch.from_data(rounds.gate(first), table(X)) + gate


def test_counts_behind_different_gates_do_not_add(X):
    plan = public()
    first = Sketch.from_data(plan, table(X))
    one, two = (
        Sketch.from_data(rounds.gated(plan, first.counts, cell), table(X)) for cell in (100, 117)
    )
    with pytest.raises(PlanError, match="another gate of the second pass") as error:
        one + two
    assert "117" not in str(error.value)


def test_a_gate_needs_its_first_counts(X):
    plan = public()
    content, arrays = plan.to_dict(), plan.arrays()
    for cell in (5, -1, 128):
        with pytest.raises(PlanError, match=f"gate_cell={cell}"):
            Plan.from_content(content | {"gate_cell": cell}, arrays)
