"""Two passes: the gate between them, one site and several, and what is refused."""

import numpy as np
import pyarrow as pa
import pytest

from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.counts import counter, rounds
from hushtable.data.readers import as_reader, reader
from hushtable.errors import PlanError, UsageError
from hushtable.plans.families.histograms import GATE_BINS, otsu_cell
from hushtable.scores.scorer import Scorer


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


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("first", ["dense", "apart", "one cluster"])
def test_rows_that_come_in_order_mislead_the_guess_not_the_counts(X, first, weighted, monkeypatch):
    """The first batches do not look like the last: rows are taken in, or taken away, at the end."""
    monkeypatch.setattr(reader, "BATCH_ROWS", 64)
    corrected = []
    wanted = counter.Correcting._add

    def add(self, item):
        _, guess = self._placing.placed[item[0]]
        corrected.append(np.sign(guess - self._placing.guess))
        wanted(self, item)

    monkeypatch.setattr(counter.Correcting, "_add", add)
    X = X[np.argsort((X**2).sum(axis=1))]
    if first == "apart":
        X = X[::-1]
    if first == "one cluster":  # most rows lie below the gate at the end, none at first
        X = np.concatenate([np.zeros((200, 3)), X])
    given = {"sample_weight": np.arange(len(X)) % 3 if weighted else None}
    detector = HushTable(random_state=0).fit(X, **given)
    before = Sketch.from_data(detector.plan_.first_pass(), X, **given)
    gate = Sketch.from_data(rounds.gate(before), X, **given)
    assert any(corrected)
    assert detector.sketch_ == Sketch.from_data(rounds.second_pass(before, gate), X, **given)


def test_empty_batches_are_no_rows(X):
    batches = [X[:300], X[:0], X[300:], X[:0]]
    reader = as_reader(X).of_batches(lambda: iter(batches), len(X))
    detector = HushTable(random_state=0, n_jobs=3).fit(reader)
    assert detector.sketch_ == HushTable(random_state=0).fit(X).sketch_


def test_the_gate_leaves_out_rows_that_lie_apart(X):
    detector = HushTable(random_state=0).fit(X)
    plan = detector.plan_
    first = Sketch(plan.first_pass(), plan.first_counts, detector.sketch_.tally)
    gate = Sketch.from_data(rounds.gate(first), X)
    dense = gate.plan.family.cells(_means(first, X)[0]) >= plan.gate_cell
    assert detector.sketch_ == Sketch.from_data(plan, X)
    assert detector.sketch_.n_rows == dense.sum()
    assert dense[:90].mean() < 0.05
    assert dense[90:].mean() > 0.6
    # It scores by both counts, and the rows apart no longer hide each other.
    scores = detector.score_samples(X)
    both = np.log2(detector.sketch_.counts + 1.0) + np.log2(plan.first_counts + 0.2 * len(X))
    np.testing.assert_allclose(Scorer(detector.sketch_).values, both, atol=1e-6)
    gap = np.median(scores[90:]) - np.median(scores[:90])
    once = HushTable(passes=1, random_state=0).fit(X).score_samples(X)
    assert gap > 3 * (np.median(once[90:]) - np.median(once[:90]))


def _means(first, X):
    """Return the mean of log2(C1 + 1) over half of the tables, and over all, of each row."""
    values = np.rint(np.log2(first.counts + 1.0) * 2**20) / 2**20
    codes = Scorer(first)._encoder.encode(X)
    half = first.plan.family.part(50)
    halved = half.sum(codes, values[: half.n_cells]) / 50
    return halved, first.plan.family.sum(codes, values) / 100


def test_rows_that_all_score_alike_are_all_counted():
    X = np.tile([[0.0, 1.0], [1.0, 0.0]], (50, 1))
    detector = HushTable(random_state=0).fit(X)
    assert detector.plan_.gate_cell == 0
    assert detector.sketch_.n_rows == 100
    assert len(np.unique(detector.score_samples(X))) == 1


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


@pytest.mark.parametrize("seed", range(20))
def test_otsu_splits_where_the_classes_lie_furthest_apart(seed):
    counts = np.random.default_rng(seed).integers(0, 50, GATE_BINS)
    places = np.repeat(np.arange(GATE_BINS), counts)

    def between(cell):
        low, high = places[places < cell], places[places >= cell]
        if not len(low) or not len(high):
            return -1.0
        return len(low) * len(high) * (low.mean() - high.mean()) ** 2

    found = [between(cell) for cell in range(GATE_BINS)]
    assert found[otsu_cell(counts)] == pytest.approx(max(found), rel=1e-12)
