"""Rounds about periods: sums to the bit, one cost, and everything out of order refused."""

import dataclasses
import json
from datetime import date, timedelta

import jsonschema
import numpy as np
import pytest

from hushtable import Increment, Periods, Plan, Release, Sketch, decoded, files
from hushtable.errors import HushTableError, PrivacyError, RoundError, UsageError
from hushtable.privacy import Horizon
from hushtable_federation.keys import Keys
from hushtable_federation.reply import Reply
from hushtable_federation.result import Result, with_seal
from hushtable_federation.round import Round
from places import DOCS
from round_helpers import (
    DEADLINE,
    SCHEMA,
    T0,
    UNATTENDED,
    Consortium,
    Hand,
    Online,
    clock_at,
    send,
    total_of,
)

MONTH = timedelta(days=30)


def stream_plan(periods=4, **more):
    terms = {"epsilon": 1.0, "expected_rows": 9_000, "n_tables": 5, "n_cells": 16}
    return Plan.draw(SCHEMA, random_state=0, horizon=periods, **terms | more)


class Stream:
    """Rounds of a stream, each a month after the last, and what their sites sent."""

    def __init__(self, those: Consortium, periods=4, names=None, **terms):
        self.those, self.plan = those, stream_plan(periods)
        sites = those.sites if names is None else names
        cards = [those.sites[name].keys.card for name in sites]
        self.round = those.open(plan=self.plan, cards=cards, **terms)
        self.at, self.exact = T0, {}

    def next(self, *joining, again=False, **more):
        self.at += MONTH
        cards = [self.those.sites[name].keys.card for name in joining]
        times = {"at": self.at, "deadline": self.at + timedelta(days=7)}
        asked = {"joining": cards, "again": again}
        self.round = self.round.next(self.those.lead, **times | asked | more)
        return self.round

    def rows(self, name, period=None):
        """Return a site's sketch of a period: rows of its own in each."""
        period = self.round.period if period is None else period
        seed = 100 * period + int(name[1:])
        X = np.random.default_rng(seed).normal(size=(40 + period, 3))
        return Sketch.from_data(self.plan, X)

    def submit(self, name, sketch=None, **options):
        sketch = self.rows(name) if sketch is None else sketch
        self.exact.setdefault((name, self.round.period), sketch.counts)
        return self.those.sites[name].submit(self.round, self.at, sketch, **options)

    def result(self, *names):
        sent = {name: self.submit(name) for name in (names or self.round.names)}
        return self.those.sum(self.round, sent, self.at)

    def total(self, *periods):
        return sum(x for (_, period), x in self.exact.items() if period in periods)


@pytest.fixture
def quiet(monkeypatch):
    """Noise that is one draw of few counts in each cell: a sum that can be checked by hand."""
    rng = np.random.default_rng(5)
    drawn = []

    def add_noise(counts, mechanism, scale, *, progress=None):
        drawn.append(rng.integers(-3, 4, len(counts)))
        return counts + drawn[-1]

    monkeypatch.setattr("hushtable.privacy.mechanisms.add_noise", add_noise)
    return drawn


# --- sums -------------------------------------------------------------------------------------


def test_a_stream_is_charged_once_with_the_first_answer(consortium):
    those = consortium(2, cap=1.0)
    here = Stream(those)
    site = those.sites["s00"]
    shares = []
    for _ in range(4):
        here.result()
        shares.append(site.book.answer(here.round.round_id).share)
        assert 0.9999 < site.book.total("all rows") <= 1.0
        assert len(site.book.spent("all rows")) == 1
        if here.round.period < 4:
            here.next()
    assert len({share.release for share in shares}) == 1
    assert site.book.periods(here.round.stream).keys() == {1, 2, 3, 4}
    with pytest.raises(UsageError, match="all 4 periods of the horizon were opened"):
        here.next()
    with pytest.raises(PrivacyError, match="the cap"):  # the cap is used up by the stream
        site.submit(those.open())


@pytest.mark.parametrize("masked", [True, False])
def test_a_site_that_joins_in_period_three(consortium, quiet, masked):
    those = consortium(4)
    here = Stream(those, names=["s00", "s01", "s02"], masked=masked)
    terms = here.round.terms
    increments = [here.result()]
    here.next()
    increments.append(here.result())
    here.next("s03")
    assert here.round.terms == terms
    assert here.round.names == ["s00", "s01", "s02", "s03"]
    increments.append(here.result())
    here.next()
    increments.append(here.result())
    assert [len(one.ledger.shares) for one in increments] == [3, 3, 4, 4]
    assert np.abs(decoded(increments).counts - here.total(1, 2, 3, 4)).max() < 4
    assert np.abs(decoded(increments, 2).counts - here.total(3, 4)).max() < 4
    assert len(those.sites["s03"].book.spent("all rows")) == 1


def test_one_that_joins_two_masked_sites(consortium):
    """Two of four sites are less than half: a stream needs all, and so knows one list alone."""
    those = consortium(4)
    here = Stream(those, names=["s00", "s01"])
    here.result()
    here.next("s02", "s03")
    assert here.round.terms.least == 2
    assert here.round.needed == 4
    sent = {name: here.submit(name) for name in ("s00", "s01", "s02")}
    with pytest.raises(RoundError, match=r"3 sites are left.*open the period again"):
        those.sum(here.round, sent, here.at)


def test_a_result_of_another_period_is_found_out(consortium):
    """A coordinator that signs the first period's sum as the second's."""
    those = consortium(2)
    here = Stream(those)
    first = here.result()
    second = here.next()
    names = dict.fromkeys(second.names, "ab" * 32)
    forged = with_seal(second, first, names, those.lead)
    with pytest.raises(RoundError, match="states a different period"):
        Result("forged.hush", forged, forged.seal, those.lead.card).check_round(second)
    sums = with_seal(here.round, decoded([first, here.result()]), names, those.lead)
    with pytest.raises(RoundError, match="states a different window"):
        Result("sum.hush", sums, sums.seal, those.lead.card).check_round(second)


def test_files_of_a_stream_keep_the_published_schema(consortium, tmp_path):
    those = consortium(2)
    here = Stream(those, every="month")
    one = here.result()
    here.next()
    here.submit("s00")
    later = those.open(at=here.at, deadline=here.at + MONTH)
    sent = those.sites["s00"].submit(later, at=here.at)  # with the stream as an earlier release
    one.save(tmp_path / "1.hush")
    path = DOCS / "hush-manifest-1.schema.json"
    validator = jsonschema.Draft202012Validator(json.loads(path.read_text()))
    contents = [here.round.content, sent, (tmp_path / "1.hush").read_bytes()]
    manifests = [files.unpack(content, "file").manifest for content in contents]
    for manifest in manifests:
        validator.validate(manifest)
    for change in ({"period": 0}, {"stream": "id"}, {"every": "decade"}):
        wrong = manifests[0] | {"round": manifests[0]["round"] | change}
        assert list(validator.iter_errors(wrong)), change


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_whatever_happens_in_a_stream_sums_are_right(consortium, quiet, masked, seed):
    """Sites are late, join, send twice; periods are asked for again, until all are in."""
    rng = np.random.default_rng(seed)
    those = consortium(4, cap=1.0)
    here = Stream(those, periods=5, names=["s00", "s01"], masked=masked)
    waiting, increments = ["s02", "s03"], []
    while len(increments) < 5:
        sent = {name: here.submit(name) for name in here.round.names if rng.random() < 0.6}
        while len(sent) < len(here.round.names):
            here.next(again=True)  # what was sent to the round before does not fit this one
            sent = {name: here.submit(name) for name in here.round.names if rng.random() < 0.8}
        increments.append(those.sum(here.round, sent, here.at))
        if len(increments) < 5:
            joining = [waiting.pop()] if waiting and rng.random() < 0.5 else []
            here.next(*joining)
    for last in range(1, 6):
        for window in range(1, last + 1):
            total = decoded(increments[:last], window)
            exact = here.total(*range(last - window + 1, last + 1))
            assert np.abs(total.counts - exact).max() < 4, (last, window)
    for name in here.round.names:
        book = those.sites[name].book
        assert 0.9999 < book.total("all rows") <= 1.0
        assert len({answer.sent.tobytes() for answer in book.answers()}) == len(
            book.periods(here.round.stream)
        )


def test_the_noise_of_a_site_is_that_of_its_periods(consortium):
    """By file and by `Periods`, the same terms ask for the same noise."""
    here = Stream(consortium(2), masked=False)
    alone = Periods(here.plan, epsilon=1.0)
    assert here.round.site_scale == alone.share.scale
    assert (
        here.result("s00", "s01").ledger.epsilon == alone.release(here.rows("s00")).ledger.epsilon
    )


# --- periods in and out of order --------------------------------------------------------------


@pytest.mark.parametrize("masked", [True, False])
def test_a_period_asked_for_again_gets_the_same_noise(consortium, masked):
    those = consortium(2)
    here = Stream(those, masked=masked)
    book = those.sites["s00"].book
    one = here.submit("s00")
    first = here.round
    assert here.submit("s00") == one  # twice to the same round, bit for bit
    again = here.next(again=True)
    assert (again.period, again.stream) == (1, first.round_id)
    result = here.result()
    two = book.answer(again.round_id)
    assert two.content != one
    np.testing.assert_array_equal(two.sent, book.answer(first.round_id).sent)
    np.testing.assert_array_equal(two.counts, here.rows("s00", 1).counts)
    assert len(book.spent("all rows")) == 1
    assert result.period == 1
    assert book.periods(first.round_id) == {1: first.round_id}
    # The rows are not looked at: whatever they are now, the same leaves.
    assert here.submit("s00", here.rows("s00", 9)) == two.content
    here.next()
    assert np.isfinite(decoded([result, here.result()]).counts).all()


def test_a_site_that_leaves_ends_the_stream(consortium):
    those = consortium(3)
    here = Stream(those, masked=False)
    increments = [here.result()]
    here.next()
    increments.append(here.result())
    here.next()
    increments.append(here.result("s00", "s01"))
    with pytest.raises(PrivacyError, match="decode up to period 2, and start a new plan"):
        decoded(increments)
    assert decoded(increments[:2]).ledger.period == 2
    # Back again: what it sent for period 3 in between is still missing from the sum.
    here.submit("s02")
    third = here.round
    here.next()
    increments.append(here.result())
    with pytest.raises(PrivacyError, match="If what it sent for period 3 came late, add it"):
        decoded(increments)
    here.round = third
    here.next(again=True)
    increments[2] = here.result()
    assert decoded(increments).ledger.period == 4


# --- coordinators that do other than they said --------------------------------------------------


def forged(round_, keys, **change):
    """Return a round that its coordinator signed with other entries."""
    read = files.unpack(round_.content, "round")
    said = {"round": read.manifest["round"] | change}
    said["round"] = {name: value for name, value in said["round"].items() if value is not None}
    plan, arrays = round_.plan.entries()
    return Round.from_bytes(files.pack("round", said | plan, arrays, keys.sign), "forged")


def unchanged(site, act, says):
    head, spent = site.book.head, site.book.total("all rows")
    with pytest.raises(HushTableError, match=says):
        act()
    assert (site.book.head, site.book.total("all rows")) == (head, spent)


def test_the_same_period_of_other_sites_is_refused_under_masks(consortium):
    those = consortium(3)
    here = Stream(those, names=["s00", "s01"])
    site, first = those.sites["s00"], here.round
    here.submit("s00")
    cards = [card.to_dict() for card in those.cards]
    here.round = forged(first, those.lead, sites=cards, stream=first.round_id)
    unchanged(site, lambda: here.submit("s00"), "would reveal its counts")
    # Without masks, what leaves is the same, bit for bit, no matter who else is asked.
    here = Stream(consortium(3), names=["s00", "s01"], masked=False)
    here.submit("s00")
    first, lead = here.round, here.those.lead
    cards = [card.to_dict() for card in here.those.cards]
    here.round = forged(first, lead, sites=cards, stream=first.round_id)
    here.submit("s00")
    book = here.those.sites["s00"].book
    sent = [book.answer(one.round_id).sent for one in (first, here.round)]
    np.testing.assert_array_equal(*sent)
    assert len(book.spent("all rows")) == 1


def test_other_terms_plan_or_coordinator_within_a_stream(consortium):
    those = consortium(2)
    here = Stream(those)
    site, first = those.sites["s00"], here.round
    here.submit("s00")
    asked = here.next()
    terms = asked.terms.to_dict() | {"epsilon": 2.0}
    here.round = forged(asked, those.lead, terms=terms)
    unchanged(site, lambda: here.submit("s00"), "another terms")
    here.round = forged(asked, those.lead, terms=asked.terms.to_dict() | {"rows_per_person": 2})
    unchanged(site, lambda: here.submit("s00"), "another terms")
    plan = Plan.draw(SCHEMA, epsilon=1.0, expected_rows=9_000, horizon=4, random_state=1)
    other = those.open(plan=plan, at=here.at, deadline=here.at + MONTH)
    here.round = forged(other, those.lead, period=2, stream=first.round_id)
    unchanged(
        site,
        lambda: Reply(here.round, site.keys, site.book, at=here.at),
        "another plan",
    )
    stranger = Keys.generate("other")
    site.book.trust([stranger.card], "coordinator")
    here.round = forged(asked, stranger, coordinator=stranger.card.to_dict())
    unchanged(site, lambda: here.submit("s00"), "another coordinator")
    here.round = asked
    unchanged(site, lambda: here.submit("s00", data_set="others"), "about 'all rows', not 'others'")
    assert len(here.submit("s00")) > 0


def test_a_round_that_states_what_cannot_be(consortium):
    those = consortium(2)
    here = Stream(those)
    first, lead = here.round, those.lead
    for says, change in (
        ("period if, and only if, the plan has", {"period": None}),
        ("period=5", {"period": 5, "stream": "ab" * 32}),
        ("period=0", {"period": 0}),
        ("first round", {"period": 2}),
        ("first round", {"period": 2, "stream": "no id"}),
        ("every=", {"every": "decade", "starts": "2027-03-01"}),
        ("needs a date", {"every": "month"}),
        ("with every", {"starts": "2027-03-01"}),
        ("Invalid isoformat|needs a day", {"every": "month", "starts": "March"}),
        ("needs a day", {"every": "month", "starts": "20270301"}),
        ("beyond the calendar", {"every": "year", "starts": "9998-03-01"}),
        ("another kind", {"period": "1"}),
    ):
        with pytest.raises(HushTableError, match=says):
            forged(first, lead, **change)
    plain = those.open()
    with pytest.raises(HushTableError, match="and only if"):
        forged(plain, lead, period=1)


def test_what_is_not_opened(consortium):
    those = consortium(2)
    plan = stream_plan()
    with pytest.raises(UsageError, match="no horizon"):
        those.open(every="month")
    with pytest.raises(UsageError, match="starts needs every"):
        those.open(plan=plan, starts=date(2027, 3, 1))
    with pytest.raises(UsageError, match="every='fortnight'"):
        those.open(plan=plan, every="fortnight")
    with pytest.raises(UsageError, match="has no period"):
        those.open().next(those.lead, deadline=DEADLINE, at=T0)
    first = those.open(plan=plan)
    with pytest.raises(RoundError, match="follow only its coordinator"):
        first.next(those.sites["s00"].keys, deadline=DEADLINE, at=T0)
    with pytest.raises(UsageError, match="has passed"):
        first.next(those.lead, deadline=T0 - MONTH, at=T0)
    with pytest.raises(UsageError, match="for the same sites"):
        first.next(those.lead, deadline=DEADLINE, at=T0, again=True, joining=[those.lead.card])
    with pytest.raises(HushTableError, match="different name"):
        first.next(those.lead, deadline=DEADLINE, at=T0, joining=[those.cards[0]])


# --- the book ---------------------------------------------------------------------------------


def test_two_processes_that_answer_one_period(consortium):
    """Under two rounds about it: the noise of the second never leaves."""
    those = consortium(2)
    here = Stream(those, masked=False)
    site, first = those.sites["s00"], here.round
    again = here.next(again=True, at=T0 + timedelta(days=1))
    slow = Reply(again, site.keys, site.book, at=again.opened)
    here.round, here.at = first, T0
    here.submit("s00")
    unchanged(site, lambda: send(slow, here.rows("s00", 1)), "by another process in the meantime")
    content = send(Reply(again, site.keys, site.book, at=again.opened), here.rows("s00", 1))
    assert site.book.answer(again.round_id).content == content


def test_a_book_takes_no_other_noise_for_a_period(consortium):
    those = consortium(2)
    here = Stream(those)
    book = those.sites["s00"].book
    here.submit("s00")
    noted = book.answer(here.round.round_id)
    other = dataclasses.replace(noted, round_id="ab" * 32, sent=noted.sent + 1)
    with pytest.raises(ValueError, match="drawn once"):
        book.record(other)
    assert len(book.answers()) == 1


def test_other_rounds_about_the_rows_count_a_stream_once(consortium):
    those = consortium(2)
    here = Stream(those)
    here.result()
    here.next()
    here.result()
    later = those.open(at=here.at, deadline=here.at + MONTH, epsilon=3.0)
    site = those.sites["s00"]
    site.submit(later, at=here.at)
    (earlier,) = site.book.answer(later.round_id).share.earlier
    assert earlier.pool == here.round.stream
    assert len(site.book.spent("all rows")) == 2


def test_the_policy_is_asked_in_each_period(consortium):
    those = consortium(2)
    here = Stream(those)
    here.submit("s00")
    here.next()
    strict = dataclasses.replace(UNATTENDED, epsilon=0.5)
    unchanged(
        those.sites["s00"], lambda: here.submit("s00", policy=strict), "policy allows .* per round"
    )


# --- words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("every", "names"),
    [
        (None, ["period 1", "period 2", "period 60"]),
        ("day", ["2027-03-15", "2027-03-16", "2027-05-13"]),
        ("week", ["week of 2027-03-15", "week of 2027-03-22", "week of 2028-05-01"]),
        ("month", ["March 2027", "April 2027", "February 2032"]),
        ("quarter", ["March 2027 to May 2027", "June 2027 to August 2027",
                     "December 2041 to February 2042"]),
        ("year", ["2027", "2028", "2086"]),
    ],
)  # fmt: skip
def test_what_a_period_is_called(consortium, every, names):
    starts = None if every is None else date(2027, 3, 15)
    place = consortium(2).open(plan=stream_plan(60), every=every, starts=starts).place
    assert [place.called(t) for t in (1, 2, 60)] == names
    assert place.words(Horizon.of(60)).startswith("period 1 of 60")


def test_the_calendar_begins_on_the_day_of_opening(consortium):
    round_ = consortium(2).open(plan=stream_plan(), every="month")
    assert round_.place.starts == T0.date()
    assert Round.from_bytes(round_.content, "r").place == round_.place


def test_masked_increments_are_plain_ones_to_the_bit(consortium, quiet):
    """The same rows and noise, masked and not: each sum, and what is decoded of them."""
    sums = {}
    for masked in (True, False):
        those = consortium(3)
        here = Stream(those, masked=masked)
        quiet.clear()
        rounds = [here.round, here.next(), here.next()]
        increments = []
        for here.round in rounds:
            here.at = here.round.opened
            increments.append(here.result())
            sent = [site.sent(here.round) for site in those.sites.values()]
            np.testing.assert_array_equal(increments[-1].counts, sum(sent))
        sums[masked] = increments
        horizon = here.plan.horizon
        for one in increments:
            mixed = horizon.mixed(np.array([here.total(t) for t in range(1, one.period + 1)]))
            noise = sum(quiet[3 * (one.period - 1) : 3 * one.period])
            np.testing.assert_array_equal(one.counts, mixed + noise)
        off = decoded(increments).counts - here.total(1, 2, 3)
        assert np.abs(off).max() < 3
        last = decoded(increments, window=1)
        assert np.abs(last.counts - here.total(3)).max() < 3
        assert isinstance(last, Release)
        assert [one.ledger.epsilon for one in increments] == [last.ledger.epsilon] * 3
        assert 0.9999 < last.ledger.epsilon <= 1.0


def test_a_stream_needs_all_its_sites_in_each_sum(consortium):
    """A site that is left out would end it: no site helps with a list that lacks one."""
    those = consortium(3)
    here = Stream(those)
    with clock_at(T0):
        online = Online(those, here.round, {"masked": ["s02"]})
        with pytest.raises(RoundError, match=r"2 sites are left.*open the period again"):
            online.run()
        hand = Hand(online)
        for step in ("survivors", "unmask"):
            answer = online.agents["s00"].answer(hand.listing(step, "s00", ["s00", "s01"]))
            assert files.unpack(answer, "answer").manifest["body"] == {"word": "sites"}
        again = here.round.next(those.lead, deadline=DEADLINE, again=True, at=T0, title="again")
        result = Online(those, again).run()
    assert isinstance(result, Increment)
    np.testing.assert_array_equal(result.counts, total_of(those, again, again.names))
    assert len(those.sites["s00"].book.spent("all rows")) == 1
