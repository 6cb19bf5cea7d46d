"""Releases that go on for periods: what leaves, what is decoded, and what it costs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from hushtable import (
    Feature,
    HushTable,
    Increment,
    Periods,
    Plan,
    Release,
    Schema,
    Sketch,
    decoded,
    load,
)
from hushtable.describe import describe_ledger
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.privacy import Horizon

SCHEMA = Schema([Feature.numeric("a", low=-6, high=6), Feature.numeric("b", low=-6, high=6)])
TERMS = {"epsilon": 1.0, "expected_rows": 12_000}


def plan_for(periods, **more):
    return Plan.draw(SCHEMA, horizon=periods, random_state=0, **TERMS, **more)


def month(plan, seed, n=500):
    return Sketch.from_data(plan, np.random.default_rng(seed).normal(size=(n, 2)))


def stream(plan, months, **more):
    """Return a site's periods after these months, and what they released."""
    site = Periods(plan, epsilon=1.0, **more)
    return site, [site.release(one) for one in months]


@pytest.mark.parametrize(
    ("periods", "most"), [(12, 3.6), pytest.param(60, 6.0, marks=pytest.mark.slow)]
)
def test_the_running_sum_has_the_noise_that_its_ledger_says(periods, most):
    plan = plan_for(periods)
    months = [month(plan, seed, 50) for seed in range(periods)]
    _, increments = stream(plan, months)
    total = decoded(increments)
    off = total.counts - sum(one.counts for one in months)
    assert off.std() == pytest.approx(total.ledger.noise_sd, rel=0.05)
    once = Plan.draw(SCHEMA, random_state=0, **TERMS)
    single = Sketch.zero(once).release(1.0).ledger.noise_sd
    cells = plan.family.n_histograms / once.family.n_histograms  # of how many tables, the noise
    ratio = total.ledger.noise_sd**2 / single**2 / cells
    print(f"{periods} of {periods} periods: {ratio:.2f} times one release's variance")
    assert ratio <= most
    assert total.ledger.epsilon <= 1.0


def test_every_period_states_the_whole_cost_and_no_more(tmp_path):
    plan = plan_for(5)
    site, increments = stream(plan, [month(plan, seed) for seed in range(5)])
    costs = {one.ledger.epsilon for one in increments}
    assert len(costs) == 1
    assert 0.999 < costs.pop() <= 1.0
    assert [one.period for one in increments] == [1, 2, 3, 4, 5]
    with pytest.raises(UsageError, match="period 6: the plan is for 5 periods"):
        site.release(month(plan, 6))


def test_a_period_is_released_once_and_the_same_again(tmp_path):
    plan = plan_for(4)
    site, (first, second) = stream(plan, [month(plan, 0), month(plan, 1)])
    site.save(tmp_path / "north.hush")
    again = load(tmp_path / "north.hush")
    assert isinstance(again, Periods)
    for one in (site, again):
        np.testing.assert_array_equal(one.release(month(plan, 7), period=1).counts, first.counts)
        np.testing.assert_array_equal(one.increment(2).counts, second.counts)
    third = again.release(month(plan, 2))
    assert third.ledger.shares == first.ledger.shares
    with pytest.raises(UsageError, match="next one is 3"):
        load(tmp_path / "north.hush").release(month(plan, 3), period=4)


def test_windows_are_differences(rng):
    plan = plan_for(8)
    months = [month(plan, seed, 400) for seed in range(8)]
    _, increments = stream(plan, months)
    last = decoded(increments, window=3)
    off = last.counts - sum(one.counts for one in months[5:])
    assert off.std() == pytest.approx(last.ledger.noise_sd, rel=0.1)
    assert abs(last.n_rows - 1200) < 200


def test_sites_add_up_and_one_may_join_later(tmp_path):
    plan = plan_for(4)
    months = [month(plan, seed) for seed in range(4)]
    _, north = stream(plan, months)
    late = Periods(plan, epsilon=1.0, start=3)
    south = [late.release(one) for one in months[2:]]
    both = [*north[:2], north[2] + south[0], north[3] + south[1]]
    total = decoded(both)
    off = total.counts - sum(one.counts for one in [*months, *months[2:]])
    assert off.std() <= 1.1 * total.ledger.noise_sd
    assert total.ledger.epsilon <= 1.0  # other people's rows
    with pytest.raises(PrivacyError, match="not in period 4"):
        decoded([*both[:3], north[3]])  # a site that left
    with pytest.raises(PrivacyError, match="began with period 3, but is not in period 3"):
        decoded([*north[:3], both[3]])  # its first increment is late
    with pytest.raises(
        PlanError, match="begins with period 3, but this is an increment of period 2"
    ):
        replace(south[0], ledger=replace(south[0].ledger, period=2))
    with pytest.raises(UsageError):
        late.increment(1)


def test_a_decoded_sum_scores_rows_and_travels(tmp_path, rng):
    plan = plan_for(6)
    rows = rng.normal(size=(6, 2000, 2))
    _, increments = stream(plan, [Sketch.from_data(plan, X) for X in rows])
    for number, one in enumerate(increments):
        one.save(tmp_path / f"{number}.hush")
    read = [load(tmp_path / f"{number}.hush") for number in range(6)]
    assert all(isinstance(one, Increment) for one in read)
    total = decoded(read[::-1])
    assert isinstance(total, Release)
    total.save(tmp_path / "total.hush")
    model = HushTable.from_counts(load(tmp_path / "total.hush"))
    odd = rng.uniform(3.5, 5.5, (50, 2)) * rng.choice([-1, 1], (50, 2))
    scores = model.score_samples(pd.DataFrame(np.vstack([rows[0], odd]), columns=["a", "b"]))
    assert roc_auc_score(np.repeat([1, 0], [2000, 50]), scores) > 0.97


def test_what_makes_no_sum_is_refused():
    plan = plan_for(4)
    _, increments = stream(plan, [month(plan, seed) for seed in range(3)])
    for wrong, says in (
        ([], "needs those of all"),
        (increments[1:], "needs each from 1"),
        ([increments[0], increments[0]], "needs each from 1"),
        (increments[::2], "needs each from 1"),
    ):
        with pytest.raises((PlanError, UsageError), match=says):
            decoded(wrong)
    other = plan_for(5)
    _, others = stream(other, [month(other, 0)])
    with pytest.raises(PlanError, match="different plans"):
        decoded([increments[0], *others])
    with pytest.raises(PrivacyError, match="periods do not merge"):
        increments[0] + increments[1]
    with pytest.raises(PrivacyError, match="counted twice"):
        increments[0] + increments[0]


def test_what_no_horizon_can_do_is_refused():
    plan = plan_for(3)
    with pytest.raises(PrivacyError, match="3 periods with one budget"):
        month(plan, 0).release(1.0)
    with pytest.raises(UsageError, match="no horizon"):
        Periods(Plan.draw(SCHEMA, random_state=0, **TERMS), epsilon=1.0)
    with pytest.raises(UsageError, match="give epsilon"):
        Plan.draw(SCHEMA, horizon=3)
    with pytest.raises(UsageError, match="second pass"):
        Plan.draw(SCHEMA, horizon=3, epsilon=1.0, expected_rows=10**6, passes=2)
    for periods in (0, 521, 2.5):
        with pytest.raises(UsageError):
            plan_for(periods)
    site = Periods(plan, epsilon=1.0)
    with pytest.raises(PlanError, match="another plan"):
        site.release(month(plan_for(4), 0))
    assert len(site) == 0  # and nothing was counted
    with pytest.raises(UsageError, match="next one is 1"):
        site.release(month(plan, 0), period=2)


def test_a_horizon_of_one_is_one_release():
    plan = plan_for(Horizon((1,)))
    _, (increment,) = stream(plan, [month(plan, 0)])
    once = Plan.draw(SCHEMA, random_state=0, **TERMS)
    assert decoded([increment]).ledger.noise_sd == pytest.approx(
        Sketch.zero(once).release(1.0).ledger.noise_sd, rel=1e-4
    )


# --- what came before a stream ----------------------------------------------------------------


@pytest.fixture(scope="module")
def before():
    """A release about the same people, before the stream begins."""
    plan = Plan.draw(SCHEMA, random_state=3, n_tables=20)
    return month(plan, 1).release(0.6)


def test_a_stream_counts_what_came_before(before, tmp_path):
    plan = plan_for(3)
    site, increments = stream(plan, [month(plan, seed) for seed in range(3)], after=before)
    plain, _ = stream(plan, [])
    assert site.share.scale > plain.share.scale
    for one in (*increments, decoded(increments)):
        assert 0.99 < one.ledger.epsilon <= 1.0
        assert one.ledger.rho > sum(spent.cost.rho for spent in before.spent())
        assert f"the earlier releases on the same rows (hushtable {before.release_id[:12]})" in (
            " ".join(describe_ledger(one.ledger))
        )
    site.save(tmp_path / "north.hush")
    again = load(tmp_path / "north.hush")
    assert again.share == site.share
    assert again.release(month(plan, 9), period=2).ledger == increments[1].ledger


@pytest.mark.parametrize("more", [{"start": 2}, {"rows_per_person": 1}, {"delta": 1e-6}])
def test_a_stream_that_joins_later_counts_it_too(before, more):
    plan = plan_for(3)
    site = Periods(plan, epsilon=1.0, after=[before, before], **more)
    assert len(site.share.earlier) == 1  # named twice, counted once
    assert site.ledger(site.start).epsilon <= 1.0


def test_the_budget_before_a_stream_may_be_exhausted(before):
    plan = plan_for(3)
    with pytest.raises(PrivacyError, match=r"the budget of epsilon=0\.6 .* is exhausted"):
        Periods(plan, epsilon=0.6, after=before)
    with pytest.raises(PrivacyError, match="their costs do not add up"):
        Periods(plan, epsilon=1.0, after=before, rows_per_person=2)
    with pytest.raises(UsageError, match="after=Sketch: needs earlier releases"):
        Periods(plan, epsilon=1.0, after=[month(plan, 0)])


def test_a_stream_after_a_stream_and_a_release_after_both(before):
    first, second = plan_for(2), plan_for(3)
    _, sent = stream(first, [month(first, seed) for seed in range(2)])
    done = decoded(sent)
    site = Periods(second, epsilon=1.5, after=[before, done])
    assert len(site.share.earlier) == 2
    third = Plan.draw(SCHEMA, random_state=9, n_tables=20)
    last = month(third, 4).release(2.0, after=decoded([site.release(month(second, 5))]))
    named = {spent.release for share in last.ledger.shares for spent in share.earlier}
    assert {before.release_id, done.release_id} < named
    assert 1.99 < last.ledger.epsilon <= 2.0


def test_increments_of_sites_with_and_without_a_past_add_up(before):
    plan = plan_for(2)
    north = Periods(plan, epsilon=1.0, after=before)
    south = Periods(plan, epsilon=1.0)
    both = decoded([north.release(month(plan, 0)) + south.release(month(plan, 1))])
    # Of each currency, the site that spent most: a little more than either site did.
    assert 1.0 - 1e-3 < both.ledger.epsilon < 1.0 + 1e-4
    assert [len(share.earlier) for share in both.ledger.shares] in ([1, 0], [0, 1])
