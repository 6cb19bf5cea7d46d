"""What a further round would cost: the figures of the book, before anything is answered."""

from dataclasses import replace

import pytest

from hushtable import Plan
from hushtable.errors import PrivacyError, RoundError, UsageError
from hushtable_federation import Reply, forecast
from hushtable_federation.costs import MOST, _largest, last_rows, totals
from hushtable_federation.describe import officer_words
from round_helpers import DEADLINE, SCHEMA, T0, Consortium

LAID = {"epsilon": 1.0, "expected_rows": 9000, "random_state": 0}


@pytest.fixture
def those(tmp_path):
    made = Consortium(tmp_path, 3, cap=2.0)
    yield made
    made.close()


def named(found):
    assert len({one.kind for one in found}) == len(found)
    return {one.kind: one for one in found}


def test_a_forecast_is_what_the_book_says_afterwards(those):
    """Round after round, until the book refuses: so many as were foreseen."""
    site = those.sites["s00"]
    first = those.open()
    foreseen = named(forecast(site.book, first))
    assert foreseen["round"].allowed
    seen = []
    for seed in range(9):
        round_ = those.open(plan=Plan.draw(SCHEMA, n_tables=5, random_state=seed))
        ahead = forecast(site.book, round_)[0]
        try:
            site.submit(round_)
        except PrivacyError:
            assert not ahead.allowed
            assert ahead.why_not == "beyond the cap"
            assert ahead.epsilon > site.book.epsilon
            break
        assert ahead.allowed
        seen.append(site.book.total("all rows"))
        assert seen[-1] == pytest.approx(ahead.epsilon, rel=1e-12)
    assert len(seen) == foreseen["round"].more == 3
    assert foreseen["round"].course[:3] == pytest.approx(seen)
    assert len(foreseen["round"].course) == 4  # and the first that is refused
    assert totals(site.book, "all rows") == pytest.approx(seen)


def test_nothing_is_noted(those):
    site = those.sites["s00"]
    site.submit(those.open())
    before = site.book.head, len(site.book.history())
    forecast(site.book)
    assert (site.book.head, len(site.book.history())) == before


def test_the_last_round_is_looked_ahead_to_by_default(those):
    site = those.sites["s00"]
    with pytest.raises(RoundError, match="no round was answered about 'all rows': name the round"):
        forecast(site.book)
    assert last_rows(site.book) == "all rows"
    site.submit(those.open())
    other = those.open(epsilon=0.5)
    site.submit(other, data_set="new people")
    assert last_rows(site.book) == "new people"
    found = named(forecast(site.book))
    assert found == named(forecast(site.book, other))
    assert found["people"].epsilon == pytest.approx(0.5, rel=1e-3)
    assert found["again"].epsilon == forecast(site.book, other, "new people")[0].epsilon
    assert forecast(site.book, data_set="all rows")[0].epsilon > 1.0
    with pytest.raises(RoundError, match="no round was answered about 'others'"):
        forecast(site.book, data_set="others")


def test_new_people_pay_for_themselves_alone(those):
    site, round_ = those.sites["s00"], those.open()
    site.submit(round_)
    found = named(forecast(site.book))
    assert found["people"].epsilon == pytest.approx(1.0, rel=1e-3)
    Reply(round_, site.keys, site.book, at=T0)  # which is answered already
    assert site.book.total("no one yet") == 0.0


@pytest.mark.parametrize("masked", [True, False])
def test_a_site_more_costs_what_its_round_costs(those, masked, tmp_path_factory):
    round_ = those.open(masked=masked)
    larger = Consortium(tmp_path_factory.mktemp("larger"), 4)
    try:
        asked = larger.open(masked=masked)
        site = larger.sites["s00"]
        site.submit(asked)
        after = site.book.total("all rows")
    finally:
        larger.close()
    book = those.sites["s00"].book
    assert named(forecast(book, round_))["site"].epsilon == pytest.approx(after, rel=1e-12)


def test_two_rows_a_person_behind_the_same_noise(those):
    """The cost of noise that was made for one row: rho is four times as large."""
    site, round_ = those.sites["s00"], those.open(epsilon=0.5)
    two = named(forecast(site.book, round_))["rows"]
    scale = round_.site_scale * round_.terms.k_min**0.5
    wide = replace(round_.sensitivity, rows_per_person=2)
    cost = wide.cost("discrete-gaussian", scale)
    assert two.epsilon == pytest.approx(cost.epsilon(site.book.delta), rel=1e-9)
    assert two.allowed
    site.submit(round_)
    once = site.book.answer(round_.round_id).spent
    assert once.cost.rho == pytest.approx(cost.rho / 4.0, rel=1e-12)
    again = named(forecast(site.book))["rows"]
    assert again.why_not == "earlier rounds had other terms"
    assert again.epsilon == pytest.approx((cost + cost).epsilon(site.book.delta), rel=1e-9)


def test_other_terms_do_not_add_up(those):
    site = those.sites["s00"]
    site.submit(those.open())
    found = forecast(site.book, those.open(rows_per_person=2))[0]
    assert (found.why_not, found.more) == ("earlier rounds had other terms", 0)
    with pytest.raises(PrivacyError, match="cannot be added"):
        site.submit(those.open(rows_per_person=2))


def test_a_plan_that_no_round_counts_under_yet(those):
    book = those.sites["s00"].book
    laid = Plan.draw(SCHEMA, **LAID)
    found = named(forecast(book, laid))
    assert found["round"].epsilon == pytest.approx(1.0, rel=1e-3)
    assert "site" not in found
    with pytest.raises(UsageError, match="not designed for a budget: name the round"):
        forecast(book, those.plan)


def test_a_horizon_pays_with_the_first_period(those):
    book = those.sites["s00"].book
    first = named(forecast(book, Plan.draw(SCHEMA, horizon=12, **LAID)))["round"]
    assert first.what == "the first of 12 periods, which pays for all"
    assert first.epsilon == pytest.approx(1.0, rel=1e-3)
    assert first.epsilon <= 1.0


@pytest.mark.parametrize("masked", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_later_periods_cost_nothing_more(those, masked):
    book = those.sites["s00"].book
    plan = Plan.draw(SCHEMA, horizon=12, **LAID)
    first = those.open(plan=plan, masked=masked)
    foreseen = named(forecast(book, first))["round"].epsilon
    those.sites["s00"].submit(first)
    paid = book.total("all rows")
    assert paid == pytest.approx(foreseen, rel=1e-12)
    second = first.next(those.lead, deadline=DEADLINE, at=T0)
    for asked in (None, first, second):
        found = named(forecast(book, asked))
        for kind in ("period", "resend", "site"):
            one = found[kind]
            assert (one.epsilon, one.allowed, one.more) == (paid, True, None)
        assert found["again"].epsilon > paid
    those.sites["s00"].submit(second)
    assert totals(book, "all rows") == [paid, paid]
    last = replace(second, place=replace(second.place, period=12))
    assert not {"period", "site"} & set(named(forecast(book, last)))
    # Another stream of the same plan has noise of its own, and a price.
    other = those.open(plan=plan, masked=masked, title="once more")
    assert named(forecast(book, other))["round"].epsilon == found["again"].epsilon


def test_the_largest_number_that_fits():
    for most in (0, 1, 2, 77, MOST, MOST + 5):
        assert _largest(lambda n, most=most: n <= most) == min(most, MOST)


@pytest.mark.parametrize("rows", [120, 390, 9000])
def test_what_is_asked_says_what_a_site_is_to_gain_over_its_own_rows(those, rows):
    """`round show` and `plan draw` compared with the same tables without noise alone."""
    plan = Plan.draw(SCHEMA, epsilon=1.0, expected_rows=rows, random_state=0)
    round_ = those.open(plan=plan)
    words = " ".join(officer_words(round_))
    assert f"A site of {rows // len(round_.sites):,} rows that scores with a home model" in words
    assert ("Half of the possible gain needs" in words) == (plan.design.signal < 80.0)
    columns = Plan.marginals(SCHEMA, epsilon=1.0, expected_rows=9000)
    assert "home model" not in " ".join(officer_words(those.open(plan=columns)))
