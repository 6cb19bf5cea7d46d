"""Releases: what a row can change, what is refused, how ledgers compose and travel."""

import math
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable import (
    Feature,
    HushTable,
    LocalModel,
    LSHiTables,
    Plan,
    Release,
    Schema,
    Sketch,
    files,
    load,
)
from hushtable.counts.kinds import counts_from_file
from hushtable.describe import describe_ledger
from hushtable.errors import FileError, PlanError, PrivacyError, UsageError
from hushtable.privacy.accounting import rho_bound
from hushtable.privacy.budget import MAX_DELTA
from strategies import as_table, numbers, schemas, second_pass, words

NUMERIC = Schema(tuple(Feature.numeric(f"x{j}", low=-4, high=4) for j in range(4)), named=False)


@pytest.fixture
def plan():
    return Plan.draw(NUMERIC, random_state=0, n_tables=10)


@pytest.fixture
def sketch(plan, X):
    return Sketch.from_data(plan, X)


# --- sensitivity: what the proof rests on -------------------------------------------------------


def private_plans(schema, draw):
    """Every kind of plan that may be released under."""
    seed = draw(st.integers(0, 5))
    terms = {"epsilon": 1.0, "delta": 1e-6, "expected_rows": 100_000}
    return [
        Plan.draw(schema, random_state=seed, n_tables=6, min_depth=1, max_depth=20, n_cells=16),
        Plan.draw(schema, random_state=seed, n_tables=7, **terms),
        Plan.draw(schema, detector="lsh_itables", random_state=seed, n_tables=5),
        Plan.marginals(schema),
        Plan.marginals(schema, **terms),
        Plan.ranges(schema, **terms),
    ]


@st.composite
def schemas_rows_and_one_more(draw):
    schema = draw(schemas())
    columns = [
        numbers if f.kind == "numeric" else st.one_of(st.none(), words) for f in schema.features
    ]
    rows = draw(st.lists(st.tuples(*columns), min_size=1, max_size=8))
    return schema, rows, draw(st.tuples(*columns)), draw(st.integers(0, len(rows)))


@given(schemas_rows_and_one_more(), st.data())
def test_one_row_changes_exactly_one_cell_of_each_table_by_one(case, data):
    schema, rows, row, at = case
    more = [*rows[:at], row, *rows[at:]]
    for plan in private_plans(schema, data.draw):
        assert not plan.data_dependent
        without = Sketch.from_data(plan, as_table(schema, rows)).counts
        change = Sketch.from_data(plan, as_table(schema, more)).counts - without
        for first, last in zip(plan.family.offsets[:-1], plan.family.offsets[1:], strict=True):
            table = change[first:last]
            assert table.sum() == 1
            assert np.count_nonzero(table) == 1


# --- what a release is --------------------------------------------------------------------------


def test_noise_has_the_stated_scale_and_the_total_is_epsilon(sketch):
    release = sketch.release(1.0)
    assert 0.9999 < release.ledger.epsilon <= 1.0
    assert release.ledger.delta == 1e-6
    expected = math.sqrt(10 / (2 * rho_bound(1.0, 0.0, 1e-6)))
    assert release.ledger.noise_sd == pytest.approx(expected, rel=1e-3)
    noise = release.counts - sketch.counts
    # 2,560 cells: a standard deviation is off by 10% with probability below 1e-11.
    assert noise.std() == pytest.approx(release.ledger.noise_sd, rel=0.1)


def test_a_release_carries_no_count_of_rows_and_no_tally(sketch):
    entries, arrays = sketch.release(1.0).entries()
    assert set(arrays) == {"plan." + name for name in sketch.plan.arrays()} | {"counts"}
    assert set(entries) == {"plan_id", "plan", "ledger"}
    shares = entries["ledger"].pop("shares")
    assert set(shares[0]) == {"release", "scale", "library", "earlier"}
    assert set(entries["ledger"]) == {
        "mechanism", "adjacency", "rows_per_person", "sampled", "tables", "l1_sensitivity",
        "l2_sensitivity", "behind_plan", "noise_sd", "rho", "epsilon", "delta",
        "accounting",
    }  # fmt: skip


def test_two_releases_of_one_sketch_differ(sketch):
    a, b = sketch.release(1.0), sketch.release(1.0)
    assert a.release_id != b.release_id
    assert not np.array_equal(a.counts, b.counts)


def test_progress_adds_up_to_all_cells(sketch):
    done = []
    sketch.release(1.0, progress=done.append)
    assert sum(done) == len(sketch.counts)


def test_laplace_is_pure(sketch):
    ledger = sketch.release(0.5, mechanism="discrete-laplace").ledger
    assert ledger.epsilon == pytest.approx(0.5)
    assert ledger.delta == 0.0
    assert ", plus" not in " ".join(describe_ledger(ledger))


def test_the_papers_mechanism_states_the_true_total(X):
    plan = Plan.draw(NUMERIC, detector="lsh_itables", random_state=0)
    whole = Sketch.from_data(plan, X).release(0.01, mechanism="laplace-per-table")
    assert whole.ledger.epsilon == pytest.approx(100 * 0.01)
    sampled = Sketch.from_data(plan, X, max_samples=100)
    ledger = sampled.release(0.01, mechanism="laplace-per-table").ledger
    assert ledger.epsilon == pytest.approx(2 * 100 * 0.01)
    assert "e^2.0" in describe_ledger(ledger)[0]


@pytest.mark.parametrize(
    ("terms", "factor"),
    [
        ({"adjacency": "replace-one"}, math.sqrt(2)),
        ({"rows_per_person": 3}, 3.0),
        ({"adjacency": "replace-one", "rows_per_person": 3}, 3 * math.sqrt(2)),
    ],
)
def test_a_larger_unit_takes_more_noise(sketch, terms, factor):
    one, more = sketch.release(1.0).ledger, sketch.release(1.0, **terms).ledger
    assert more.noise_sd / one.noise_sd == pytest.approx(factor, rel=1e-3)
    assert more.epsilon <= 1.0


def test_scores_of_a_release_tend_to_those_of_the_counts(X):
    """At 20,000 rows and a large epsilon, noise changes the order of few rows."""
    X = np.tile(X, (40, 1))
    plan = Plan.draw(NUMERIC, random_state=0, epsilon=10.0, expected_rows=20_000)
    sketch = Sketch.from_data(plan, X)
    exact = HushTable.from_counts(sketch).score_samples(X)
    noisy = HushTable.from_counts(sketch.release(10.0)).score_samples(X)
    assert np.corrcoef(exact, noisy)[0, 1] > 0.9
    assert noisy.argmin() % 500 == 0


def test_the_papers_score_stays_the_papers(X):
    plan = Plan.draw(NUMERIC, detector="lsh_itables", random_state=0)
    release = Sketch.from_data(plan, X).release(1.0)
    values = plan.cell_scores(release.counts, release.ledger.noise_sd)
    expected = np.log2(np.maximum(release.counts, 1))
    assert np.abs(values - expected).max() <= 2**-20
    assert LSHiTables.from_counts(release).score_samples(X).shape == (500,)


def test_the_number_of_rows_is_estimated(sketch):
    # Noise of 14.3 on 2,560 cells, over 10 tables: 73 is one standard deviation.
    assert abs(sketch.release(1.0).n_rows - 500) < 6 * 73


# --- two rounds and three -----------------------------------------------------------------------

TERMS = {"epsilon": 1.0, "delta": 1e-6, "expected_rows": 20_000}


@pytest.fixture
def many(rng):
    return rng.normal(size=(20_000, 4))


def test_two_rounds_cost_epsilon_together(many):
    marginals = Sketch.from_data(Plan.marginals(NUMERIC, **TERMS), many).release(1.0)
    total = rho_bound(1.0, 0.0, 1e-6)
    assert marginals.ledger.rho == pytest.approx(0.1 * total, rel=1e-4)
    plan = Plan.draw(NUMERIC, marginals=marginals, random_state=0, **TERMS)
    assert not plan.data_dependent
    assert [spent.release for spent in plan.behind] == [marginals.release_id]
    tables = Sketch.from_data(plan, many).release(1.0)
    assert tables.ledger.own.rho == pytest.approx(0.9 * total, rel=1e-3)
    assert 0.9999 < tables.ledger.epsilon <= 1.0
    assert "marginals" in describe_ledger(tables.ledger)[1]


def test_ranges_marginals_and_tables_cost_epsilon_together(many):
    numeric = (Feature.numeric(f"x{j}", low=-50, high=30, unit="m") for j in range(4))
    loose = Schema(tuple(numeric), named=False)
    terms = TERMS | {"epsilon": 3.0}
    ranges = Sketch.from_data(Plan.ranges(loose, **terms), many).release(3.0)
    schema = ranges.ranges()
    assert (schema.names, schema.named) == (loose.names, False)
    assert all(feature.unit == "m" for feature in schema.features)
    assert all(feature.low < -3 and feature.high > 3 for feature in schema.features)
    # An empty bin of 128 exceeds 5 standard deviations of noise in one feature in 27,000, and its
    # range reaches an end then: in one run of 6,700, but in two features at once in 1 of 10^8.
    assert sum(feature.low > -50 and feature.high < 30 for feature in schema.features) >= 3
    marginals = Sketch.from_data(Plan.marginals(schema, **terms), many).release(3.0)
    plan = Plan.draw(schema, marginals=marginals, random_state=0, **terms)
    tables = Sketch.from_data(plan, many).release(3.0)
    assert [spent.what for spent in tables.ledger.behind_plan] == ["ranges", "marginals"]
    assert 2.999 < tables.ledger.epsilon <= 3.0
    assert tables.ledger.own.rho == pytest.approx(0.85 * rho_bound(3.0, 0.0, 1e-6), rel=1e-2)


def test_a_plan_from_paid_ranges_counts_them_without_marginals(many):
    loose = Schema(tuple(Feature.numeric(f"x{j}", low=-50, high=30) for j in range(4)))
    schema = Sketch.from_data(Plan.ranges(loose, **TERMS), many).release(1.0).ranges()
    release = Sketch.from_data(Plan.draw(schema, random_state=0, **TERMS), many).release(1.0)
    assert len(release.ledger.behind_plan) == 1
    assert release.ledger.epsilon <= 1.0


def test_ranges_are_refused_where_rows_are_few():
    with pytest.raises(PrivacyError, match=r"2,000 rows.*do not exceed the noise"):
        Plan.ranges(NUMERIC, epsilon=1.0, expected_rows=2000)


def test_ranges_are_refused_where_the_rows_did_not_come(X):
    release = Sketch.from_data(Plan.ranges(NUMERIC, **TERMS), X[:3]).release(0.05)
    # Some bin of a feature stands 5 standard deviations out by luck with probability 1e-4; that
    # one does in each of the four features, 1e-16.
    with pytest.raises(PrivacyError, match=r"feature 'x\d'.*too few to find a range"):
        release.ranges()


def test_marginals_are_refused_where_they_do_not_pay():
    with pytest.raises(PrivacyError, match="draw the plan in one round"):
        Plan.marginals(NUMERIC, epsilon=0.1, expected_rows=500)


def test_only_a_release_of_ranges_tells_ranges(sketch):
    with pytest.raises(UsageError, match="has no ranges"):
        sketch.release(1.0).ranges()


def test_a_second_release_on_the_same_rows_counts_the_first(plan, sketch):
    first = sketch.release(0.5)
    second = sketch.release(1.0, after=first)
    assert [s.release for s in second.ledger.shares[0].earlier] == [first.release_id]
    assert 0.9999 < second.ledger.epsilon <= 1.0
    assert second.ledger.own.rho < rho_bound(1.0, 0.0, 1e-6)
    third = sketch.release(2.0, after=[first, second])
    total = first.ledger.own.rho + second.ledger.own.rho + third.ledger.own.rho
    assert third.ledger.rho == pytest.approx(total)
    with pytest.raises(PrivacyError, match="is exhausted"):
        sketch.release(1.0, after=second)
    with pytest.raises(PrivacyError, match="count those rows twice"):
        first + second


# --- merging ------------------------------------------------------------------------------------


def test_releases_merge_and_ledgers_compose(plan, X):
    parts = [Sketch.from_data(plan, rows) for rows in (X[:200], X[200:300], X[300:])]
    north, south, east = (p.release(e) for p, e in zip(parts, (1.0, 0.3, 1.0), strict=True))
    merged = north + south + east
    assert np.array_equal(merged.counts, north.counts + south.counts + east.counts)
    ledger = merged.ledger
    # Sites hold different people: the dearest counts, not the sum.
    assert ledger.epsilon == pytest.approx(1.0, rel=1e-4)
    assert ledger.noise_sd == pytest.approx(
        math.hypot(*(r.ledger.noise_sd for r in (north, south, east)))
    )
    assert ledger.epsilon < ledger.epsilon_at(2) < ledger.epsilon_at(3)
    assert ledger.epsilon_at(3) == ledger.epsilon_at(10)
    assert ledger.epsilon_at(1) == ledger.epsilon
    with pytest.raises(UsageError, match="sites=0: needs 1 or more"):
        ledger.epsilon_at(0)
    assert "3 releases are merged" in describe_ledger(ledger)[2]
    other_way = east + (south + north)
    assert other_way.release_id == merged.release_id
    assert other_way.ledger.rho == ledger.rho


def test_the_same_release_does_not_merge_twice(sketch):
    a, b = sketch.release(1.0), sketch.release(1.0)
    with pytest.raises(PrivacyError, match=f"{a.release_id[:12]} would be counted twice"):
        (b + a) + a
    with pytest.raises(PrivacyError, match="counted twice"):
        (a + b) + a


def test_releases_of_different_plans_do_not_merge(sketch, X):
    other = Sketch.from_data(Plan.draw(NUMERIC, random_state=1, n_tables=10), X)
    with pytest.raises(PlanError, match="two releases of different plans do not add"):
        sketch.release(1.0) + other.release(1.0)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"adjacency": "replace-one"}, "different adjacencies do not merge"),
        ({"rows_per_person": 2}, "different privacy units"),
        ({"mechanism": "discrete-laplace"}, "different mechanisms"),
    ],
)
def test_releases_under_different_terms_do_not_merge(sketch, terms, message):
    with pytest.raises(PrivacyError, match=message):
        sketch.release(1.0) + sketch.release(1.0, **terms)


def test_a_release_and_a_sketch_do_not_add(sketch):
    release = sketch.release(1.0)
    for add in (lambda: release + sketch, lambda: sketch + release):
        with pytest.raises(PrivacyError, match=r"raw sketch.*release the sketch first"):
            add()


# --- refusals -----------------------------------------------------------------------------------


def test_a_release_is_not_released_again(sketch):
    with pytest.raises(PrivacyError, match="has its noise already"):
        sketch.release(1.0).release(1.0)


def test_ranges_from_the_data_are_refused(X):
    with pytest.raises(PrivacyError, match="read off the data"):
        HushTable(random_state=0).fit(X).sketch_.release(1.0)


def test_raw_marginals_behind_a_plan_are_refused(X):
    marginals = Sketch.from_data(Plan.marginals(NUMERIC), X)
    plan = Plan.draw(NUMERIC, marginals=marginals, random_state=0)
    with pytest.raises(PrivacyError, match="exact counts"):
        Sketch.from_data(plan, X).release(1.0)
    with pytest.raises(PrivacyError, match="release them first"):
        Plan.draw(NUMERIC, marginals=marginals, epsilon=1.0, expected_rows=10_000)


def test_a_second_pass_is_refused(plan, sketch, X):
    second = Sketch.from_data(second_pass(sketch, X), X)
    with pytest.raises(PrivacyError, match="exact counts"):
        second.release(1.0)


def test_a_seed_for_the_noise_is_refused(sketch):
    with pytest.raises(PrivacyError, match="noise takes no seed"):
        sketch.release(1.0, random_state=0)


def test_weights_beyond_the_privacy_unit_are_refused(plan, X, tmp_path):
    weights = np.ones(len(X), int)
    weights[7] = 3
    sketch = Sketch.from_data(plan, X, sample_weight=weights)
    sketch.save(tmp_path / "s.hush")
    merged = load(tmp_path / "s.hush") + Sketch.from_data(plan, X)
    with pytest.raises(PrivacyError, match="give rows_per_person=3"):
        merged.release(1.0, rows_per_person=2)
    assert merged.release(1.0, rows_per_person=3).ledger.epsilon <= 1.0


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, 20.1, 1e300, True, "1", None])
def test_a_useless_epsilon_is_refused(sketch, epsilon):
    with pytest.raises(PrivacyError, match=r"epsilon=.*needs a number above 0"):
        sketch.release(epsilon)


@pytest.mark.parametrize(
    "delta", [0, -1e-6, math.nan, math.inf, 1.0, 2, True, "1e-6", 1 / 499, 1.1e-5]
)
def test_a_useless_delta_is_refused(sketch, delta):
    with pytest.raises(PrivacyError, match="delta="):
        sketch.release(1.0, delta)


def test_the_largest_delta_is_allowed(sketch):
    assert sketch.release(1.0, MAX_DELTA).ledger.delta == MAX_DELTA


@pytest.mark.parametrize("share", [0, 0.0, -0.1, 1.1, True, "1", math.nan])
def test_a_share_must_be_one(sketch, share):
    with pytest.raises(UsageError, match="share="):
        sketch.release(1.0, share=share)


def test_an_unknown_mechanism_is_refused(sketch):
    with pytest.raises(UsageError, match="'gauss' is unknown: needs one of discrete-gaussian"):
        sketch.release(1.0, mechanism="gauss")


def test_other_things_than_releases_cannot_come_before(sketch):
    with pytest.raises(UsageError, match="needs earlier releases"):
        sketch.release(1.0, after=[sketch])


def test_gaussian_noise_follows_a_pure_epsilon(sketch):
    first = sketch.release(0.5, mechanism="discrete-laplace")
    release = sketch.release(1.0, after=first)
    assert 0.9999 < release.ledger.epsilon <= 1.0
    assert release.ledger.rho == pytest.approx(first.ledger.rho + release.ledger.own.rho)


def test_earlier_releases_under_other_terms_do_not_add_up(sketch):
    first = sketch.release(0.1, rows_per_person=2)
    with pytest.raises(PrivacyError, match=r"2 rows per person.*do not add up"):
        sketch.release(1.0, after=first)


def test_rows_cannot_be_added_to_a_release(sketch, X):
    detector = HushTable.from_counts(sketch.release(1.0))
    with pytest.raises(PrivacyError, match="made from a release"):
        detector.partial_fit(X)


def test_a_private_plan_needs_both_numbers():
    with pytest.raises(UsageError, match="epsilon needs expected_rows"):
        Plan.draw(NUMERIC, epsilon=1.0)
    with pytest.raises(UsageError, match="give epsilon with it"):
        Plan.draw(NUMERIC, expected_rows=1000)
    with pytest.raises(UsageError, match="one layout"):
        Plan.draw(NUMERIC, detector="lsh_itables", epsilon=1.0, expected_rows=1000)


# --- files --------------------------------------------------------------------------------------


def test_a_release_comes_back_from_its_file(plan, X, tmp_path):
    parts = [Sketch.from_data(plan, rows).release(1.0) for rows in (X[:200], X[200:])]
    merged = parts[0] + parts[1]
    merged.save(tmp_path / "all.hush")
    back = load(tmp_path / "all.hush")
    assert isinstance(back, Release)
    content = files.read(tmp_path / "all.hush")
    assert counts_from_file(content).release_id == merged.release_id
    assert np.array_equal(back.counts, merged.counts)
    assert back.ledger == merged.ledger
    assert back.release_id == merged.release_id
    assert back.plan.plan_id == plan.plan_id


def test_a_detector_made_from_a_release_comes_back(many, tmp_path):
    plan = Plan.draw(NUMERIC, random_state=0, **TERMS)
    detector = HushTable.from_counts(Sketch.from_data(plan, many).release(1.0))
    detector.save(tmp_path / "d.hush")
    back = load(tmp_path / "d.hush")
    assert isinstance(counts_from_file(files.read(tmp_path / "d.hush")), Release)
    assert back.offset_ == detector.offset_
    assert np.array_equal(back.score_samples(many), detector.score_samples(many))


def test_plans_with_paid_ranges_come_back(many, tmp_path):
    loose = Schema(tuple(Feature.numeric(f"x{j}", low=-50, high=30) for j in range(4)))
    schema = Sketch.from_data(Plan.ranges(loose, **TERMS), many).release(1.0).ranges()
    plan = Plan.draw(schema, random_state=0, **TERMS)
    plan.save(tmp_path / "p.hush")
    back = load(tmp_path / "p.hush")
    assert back.plan_id == plan.plan_id
    assert (back.behind, back.design, back.schema) == (plan.behind, plan.design, plan.schema)


def ledger_edits():
    yield "epsilon", 0.1, "states epsilon 0.1"
    yield "rho", 1e-4, "states rho"
    yield "noise_sd", 1e6, "states noise_sd"
    yield "tables", 9, "states l1_sensitivity|l1_sensitivity"
    yield "l1_sensitivity", 5, "states l1_sensitivity"
    yield "adjacency", "replace-one", "states l1_sensitivity"
    yield "adjacency", "none", "adjacency='none'"
    yield "rows_per_person", 2, "states l1_sensitivity"
    yield "rows_per_person", 0, "rows_per_person=0"
    yield "mechanism", "gauss", "'gauss' is unknown"
    yield "delta", 0.5, "states epsilon"
    yield "delta", 1.5, "delta=1.5"
    yield "delta", -1e-6, "delta=-1e-06"
    yield "delta", "1e-6", "each of its kind"
    yield "tables", 0, "tables=0"
    yield "shares", [], "would be counted twice|needs"
    yield "shares", [{"scale": 1}], "each share needs"
    share = {"release": "a", "scale": 1.0, "library": "b", "earlier": []}
    for wrong in ({"release": 5}, {"library": None}, {"earlier": {}}, {"scale": True}):
        yield "shares", [share | wrong], "each share needs"
    for wrong in (0, -1.0, 1e-7, 2e15):
        yield "shares", [share | {"scale": wrong}], "not a scale of noise"
    yield "behind_plan", [{}], "earlier release needs"
    yield "sampled", True, "states l1_sensitivity"
    yield "n_rows", 500, "needs the entries"
    for key, value in [
        ("tables", 9.5), ("tables", "10"), ("tables", True), ("sampled", 0),
        ("delta", True), ("shares", {}), ("behind_plan", {}),
    ]:  # fmt: skip
        yield key, value, "each of its kind"


@pytest.mark.parametrize(("key", "value", "message"), list(ledger_edits()))
def test_an_edited_ledger_is_refused(sketch, tmp_path, key, value, message):
    """Also where the file's digests were made to fit: its entries must add up."""
    entries, arrays = sketch.release(1.0).entries()
    entries["ledger"][key] = value
    files.write(tmp_path / "r.hush", "release", entries, arrays)
    with pytest.raises(FileError, match=message):
        load(tmp_path / "r.hush")


def test_a_ledger_that_leaves_the_plans_past_out_is_refused(many, tmp_path):
    marginals = Sketch.from_data(Plan.marginals(NUMERIC, **TERMS), many).release(1.0)
    plan = Plan.draw(NUMERIC, marginals=marginals, random_state=0, **TERMS)
    release = Sketch.from_data(plan, many).release(1.0)
    alone = type(release.ledger)(
        release.ledger.mechanism,
        release.ledger.sensitivity,
        release.ledger.delta,
        release.ledger.shares,
    )
    entries, arrays = release.entries()
    entries["ledger"] = alone.to_dict()
    files.write(tmp_path / "r.hush", "release", entries, arrays)
    with pytest.raises(FileError, match="releases behind the plan"):
        load(tmp_path / "r.hush")


def test_a_release_without_its_ledger_is_refused(sketch, tmp_path):
    entries, arrays = sketch.release(1.0).entries()
    del entries["ledger"]
    files.write(tmp_path / "r.hush", "release", entries, arrays)
    with pytest.raises(FileError, match="holds no release"):
        load(tmp_path / "r.hush")


def test_words_that_can_be_signed(sketch):
    words = describe_ledger(sketch.release(1.0).ledger)
    assert words[0] == (
        "Adding or removing one record changes the probability of anything that this file shows "
        "by at most a factor e^1.0, plus 1e-06."
    )
    pure = describe_ledger(sketch.release(1.0, mechanism="discrete-laplace").ledger)
    assert pure[0].endswith("by at most a factor e^1.0.")
    unit = describe_ledger(sketch.release(0.25, adjacency="replace-one", rows_per_person=4).ledger)
    assert unit[0].startswith("Changing all records of one person (up to 4) changes")
    assert "e^0.25" in unit[0]


def test_python_prints_objects_short_and_without_values_of_rows():
    rows = pa.table(
        {"age": np.linspace(17.125, 93.625, 400), "ward": ["a rare text", *["b"] * 399]}
    )
    fitted = HushTable(n_tables=2, random_state=0).fit(rows)
    schema = Schema([Feature.numeric(f"x{j}", low=0, high=1) for j in range(300)])
    sketch = Sketch.zero(Plan.draw(schema, n_tables=2, random_state=0))
    mine = sketch.release(epsilon=1.0)
    release = mine + sketch.release(epsilon=1.0)
    local = LocalModel.of(release, mine.release_id, mine.counts, sketch.counts)
    for thing in (
        schema,
        sketch,
        release,
        release.ledger,
        local,
        fitted.plan_.schema,
        fitted.plan_,
    ):
        assert len(repr(thing)) < 150
        assert not re.search(r"17\.1|93\.6|a rare text|array", repr(thing))
    assert repr(release.ledger) == "Ledger('discrete-gaussian', epsilon=1, delta=1e-06, shares=2)"
