"""The algebra of costs: its rules one by one, and random histories against another accountant."""

import math
import tempfile
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accountant import by_zcdp, epsilon, event, paid
from hushtable import Plan
from hushtable.counts import rounds
from hushtable.errors import PlanError, PrivacyError
from hushtable.privacy.budget import Charge, Spent, at_sites, split_history
from hushtable.privacy.ledger import Ledger
from hushtable.privacy.mechanisms import Cost
from round_helpers import SCHEMA, Consortium

DELTA = 1e-6


def spent(release, rho=0.1, pure=math.inf, **more):
    return Spent(release, "marginals", Cost(rho, pure), "add-remove", 1, **more)


# --- a person at several sites ------------------------------------------------------------------


def test_noise_of_ones_own_adds_and_shared_noise_adds_shifts():
    own = [[Charge(Cost(0.1))], [Charge(Cost(0.4))], [Charge(Cost(0.2))]]
    assert at_sites(own, 1).rho == 0.4
    assert at_sites(own, 2).rho == pytest.approx(0.6)
    assert at_sites(own, 3).rho == at_sites(own, 9).rho == pytest.approx(0.7)
    shared = [[Charge(cost, "round") for cost, _ in history] for history in own]
    assert at_sites(shared, 2).rho == pytest.approx((math.sqrt(0.4) + math.sqrt(0.2)) ** 2)
    other = [[Charge(Cost(0.1), name)] for name in "abc"]
    assert at_sites(other, 3).rho == pytest.approx(0.3)
    mixed = [[Charge(Cost(0.1), "a"), Charge(Cost(0.2))] for _ in range(3)]
    assert at_sites(mixed, 3).rho == pytest.approx(9 * 0.1 + 3 * 0.2)


def test_the_set_of_sites_that_pays_most_is_found():
    """Two dear sites in different rounds pay less than two in the same."""
    dear, cheap = Cost(0.5), Cost(0.4)
    sites = [[Charge(dear, "x")], [Charge(cheap, "y")], [Charge(cheap, "y")]]
    assert at_sites(sites, 2).rho == pytest.approx(4 * 0.4)


def test_a_pure_epsilon_adds_up_over_sites():
    sites = [[Charge(Cost(0.1, 1.0))], [Charge(Cost(0.1, 3.0))], [Charge(Cost(0.1, 2.0))]]
    assert at_sites(sites, 2).pure == 5.0


charges = st.builds(
    Charge,
    st.floats(1e-6, 5.0).map(Cost),
    st.sampled_from([None, "", "x", "y"]),
)


@given(
    st.lists(st.lists(charges, min_size=1, max_size=4), min_size=1, max_size=6), st.integers(1, 6)
)
def test_the_bound_over_many_sets_is_one(sites, several):
    exact = at_sites(sites, several)
    with mock.patch("hushtable.privacy.budget._SETS", 0):
        bound = at_sites(sites, several)
        alike = at_sites([sites[0]] * 4, several)
    assert bound.rho >= exact.rho * (1 - 1e-12)
    assert alike.rho == pytest.approx(at_sites([sites[0]] * 4, several).rho)
    assert exact.rho >= at_sites(sites, max(1, several - 1)).rho * (1 - 1e-12)


def test_a_thousand_sites_take_no_time():
    sites = [[Charge(Cost(0.1), "x"), Charge(Cost(0.1))] for _ in range(1000)]
    assert at_sites(sites, 2).rho == pytest.approx(0.6)
    assert at_sites(sites, 1000).rho == pytest.approx(0.1e6 + 100)


def test_an_older_entry_does_not_say_whose_noise_it_was_and_counts_as_shared():
    assert spent("a").charge.noise == ""
    assert spent("a", pure=0.5).charge.noise is None
    assert spent("a", parts=("a",)).charge.noise is None
    assert spent("a", pool="r").charge.noise == "r"
    # Two older rounds at two sites, which of them shared noise is not known: at most all.
    sites = [[spent("a", 0.1).charge, spent("b", 0.3).charge]] * 2
    assert at_sites(sites, 2).rho == pytest.approx(4 * 0.4)


# --- what a plan's history contains -------------------------------------------------------------

MINE = spent("mine", 0.1, pool="r")


@pytest.mark.parametrize(
    ("entry", "contained"),
    [
        (spent("sum", 0.1, pool="r", parts=("other", "mine")), True),
        (spent("mine", 0.1, pool="r"), True),
        (spent("sum", 0.2, pool="r", parts=("mine",)), True),
        (spent("sum", 0.0999, pool="r", parts=("mine",)), False),
        (spent("sum", 0.1, 5.0, pool="r", parts=("mine",)), False),
        (spent("sum", 0.1, pool="other", parts=("mine",)), False),
        (spent("sum", 0.1, parts=("mine",)), False),
        (spent("sum", 0.1, pool="r", parts=("other",)), False),
        (spent("mine", 0.05, pool="r"), False),
        (Spent("s", "ranges", Cost(0.1), "replace-one", 1, "r", ("mine",)), False),
        (Spent("s", "ranges", Cost(0.1), "add-remove", 2, "r", ("mine",)), False),
    ],
)
def test_what_proves_that_a_release_is_contained(entry, contained):
    earlier, apart = split_history((entry,), (MINE,))
    assert earlier == (() if contained else (MINE,))
    assert apart == (() if contained else (entry.release,))


def test_two_releases_are_contained_where_both_are_paid():
    two = (spent("one", 0.1, parts=("one",)), spent("two", 0.1, parts=("two",)))
    dear = spent("sum", 0.2, parts=("one", "two"))
    assert split_history((dear,), two) == ((), ())
    cheap = spent("sum", 0.1, parts=("one", "two"))
    assert split_history((cheap,), two) == (two, ("sum",))
    # The sum itself and a part of it are no two costs.
    assert split_history((dear,), (dear, two[0])) == ((), ())


def test_what_nobody_released_is_apart():
    assert split_history((spent("a"), spent("b")), ()) == ((), ("a", "b"))
    assert split_history((), (MINE,)) == ((MINE,), ())


# --- in files -----------------------------------------------------------------------------------


def test_an_entry_goes_through_json():
    pooled = spent("a", pool="r", parts=("x", "y"), tables=2)
    for entry in (spent("a"), pooled, spent("a", parts=("a",))):
        assert Spent.from_dict(entry.to_dict()) == entry
    assert set(spent("a").to_dict()) == {
        "release", "what", "rho", "pure_epsilon", "adjacency", "rows_per_person"
    }  # fmt: skip


@pytest.mark.parametrize(
    "change", [{"pool": ""}, {"pool": 5}, {"pool": "\ud800"}, {"parts": "a"}, {"parts": [5]}]
)
def test_a_wrong_entry_is_refused(change):
    with pytest.raises(PlanError, match=r"pool needs an id|each of its kind"):
        Spent.from_dict(spent("a").to_dict() | change)
    with pytest.raises(PlanError, match="needs costs above 0"):
        Spent.from_dict(spent("a").to_dict() | {"pure_epsilon": 0.0})


@pytest.fixture
def ledger(tmp_path, quick_noise):
    """Of three sites, after marginals: masked, then masked."""
    with closing(Consortium(tmp_path, 3)) as those:
        first = those.open(plan=Plan.marginals(SCHEMA), share=0.5)
        marginals = collected(those, first, those.sites)
        plan = tables(marginals)
        yield collected(those, those.open(plan=plan), those.sites).ledger


def test_a_ledger_with_a_history_goes_through_json(ledger):
    assert Ledger.from_dict(ledger.to_dict()) == ledger
    assert [one.pool for one in ledger.behind_plan] != [None]
    assert all("apart" not in share for share in ledger.to_dict()["shares"])


@pytest.mark.parametrize("apart", ["x", [5], None])
def test_a_wrong_list_of_what_is_apart_is_refused(ledger, apart):
    stated = ledger.to_dict()
    stated["shares"][0]["apart"] = apart
    with pytest.raises(PlanError, match="each of its kind"):
        Ledger.from_dict(stated)


def test_a_ledger_without_the_entries_of_today_reads_with_the_same_numbers(ledger):
    stated = ledger.to_dict()
    for entry in stated["behind_plan"]:
        del entry["pool"], entry["parts"]
    older = Ledger.from_dict(stated)
    assert (older.rho, older.epsilon) == (ledger.rho, ledger.epsilon)
    for sites in (2, 3):
        assert older.epsilon_at(sites) == pytest.approx(ledger.epsilon_at(sites))


def test_a_release_behind_the_plan_stands_there_once(ledger):
    stated = ledger.to_dict()
    stated["behind_plan"] *= 2
    with pytest.raises(PlanError, match="is listed twice among those behind the plan"):
        Ledger.from_dict(stated)


# --- releases without rounds --------------------------------------------------------------------


def test_a_merged_release_that_came_before_counts_with_the_dearest_past(tmp_path):
    with closing(Consortium(tmp_path, 2)) as those:
        site, other = (one.sketch(those.plan) for one in those.sites.values())
        first = site.release(0.5)
        merged = site.release(1.0, after=first) + other.release(0.5)
        later = site.release(2.0, after=merged).ledger
        true = first.ledger.own.rho + merged.ledger.own.rho + later.own.rho
        assert later.rho == pytest.approx(true)
        assert [one.release for one in later.shares[0].earlier] == [
            merged.release_id, first.release_id
        ]  # fmt: skip


def test_ones_own_part_of_what_is_behind_the_plan_counts_once(tmp_path):
    with closing(Consortium(tmp_path, 2)) as those:
        plan = Plan.marginals(SCHEMA)
        parts = [one.sketch(plan).release(1.0, share=0.3) for one in those.sites.values()]
        site = those.sites["s00"].sketch(tables(parts[0] + parts[1]))
        ledger = site.release(1.0, after=parts[0]).ledger
        assert ledger.shares[0].earlier == ()
        assert 0.9999 < ledger.epsilon <= 1.0


def test_rows_of_other_people_stand_apart(tmp_path):
    """A site that answers about other people's rows had no part in the history, nor is charged."""
    with closing(Consortium(tmp_path, 2)) as those:
        first = those.open(plan=Plan.marginals(SCHEMA), share=0.5)
        plan = tables(collected(those, first, those.sites))
        second = those.open(plan=plan)
        result = collected(those, second, those.sites, data_set="of others").ledger
        assert {share.apart for share in result.shares} == {(plan.behind[0].release,)}
        book = those.sites["s00"].book
        # The result says what the dearest paid, who were behind the plan, at the same share.
        assert 0.95 * result.epsilon < book.total("of others") <= result.epsilon


def test_different_units_before_and_now_are_refused(tmp_path):
    with closing(Consortium(tmp_path, 2)) as those:
        collected(those, those.open(), those.sites)
        with pytest.raises(PrivacyError, match="their costs cannot be added"):
            those.sites["s00"].submit(those.open(rows_per_person=2))


# --- random histories ---------------------------------------------------------------------------


@st.composite
def histories(draw):
    """Campaigns of one to three steps, with attempts that fail, over two to five sites."""
    k = draw(st.integers(2, 5))
    sites = st.sets(st.sampled_from([f"s{i:02d}" for i in range(k)]), min_size=1).map(sorted)

    def step(what):
        masked = draw(st.booleans())
        roster = draw(sites.filter(lambda those: len(those) >= 2))
        late = [] if masked else draw(st.sampled_from([[], roster[2:]]))
        colluders = draw(st.integers(0, len(roster) - 2)) if masked else 0
        share = draw(st.sampled_from([0.1, 0.3]))
        terms = {"masked": masked, "colluders": colluders, "share": share}
        # Some of the sites answered, and there was no result.
        failed = [sorted(set(roster) & set(those)) for those in draw(st.lists(sites, max_size=1))]
        return what, roster, late, failed, terms if masked else terms | {"least": 2}

    whole = st.sampled_from(
        [("tables",), ("marginals", "tables"), ("marginals", "tables", "ranks")]
    )
    campaigns = draw(st.lists(whole, min_size=1, max_size=2))
    unit = {
        "adjacency": draw(st.sampled_from(["add-remove", "replace-one"])),
        "rows_per_person": draw(st.integers(1, 3)),
    }
    return k, unit, [[step(what) for what in campaign] for campaign in campaigns]


@pytest.fixture
def quick_noise(monkeypatch):
    """Noise of the same scale, drawn fast."""
    monkeypatch.setattr("hushtable.privacy.mechanisms.add_noise", add_noise)


def add_noise(counts, mechanism, scale, *, progress=None):
    rng = np.random.default_rng(0)
    return counts + np.rint(rng.normal(0.0, scale, len(counts))).astype(np.int64)


@settings(deadline=None, max_examples=6, suppress_health_check=[HealthCheck.too_slow])
@given(histories())
def test_no_history_costs_more_than_said_nor_much_less(history):
    check(history)


@pytest.mark.slow
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(histories())
def test_no_longer_list_of_histories_does(history):
    check(history)


def check(history):
    """Run a history; compare books and ledgers with what was paid, at every result."""
    k, unit, campaigns = history
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch("hushtable.privacy.mechanisms.add_noise", add_noise),
        closing(Consortium(Path(folder), k, rows=200, cap=20.0)) as those,
    ):
        past = []
        for campaign in campaigns:
            plan, behind = None, []
            for what, roster, late, failed, terms in campaign:
                plan = next_plan(what, plan)
                cards = [those.sites[name].keys.card for name in roster]
                for names in [*failed, roster]:
                    title = f"{len(past)}"
                    round_ = those.open(plan=plan, cards=cards, title=title, **terms, **unit)
                    past.append(event(round_, names))
                    submissions = {n: those.sites[n].submit(round_) for n in names}
                for name in late:
                    del submissions[name]
                plan = result = those.sum(round_, submissions)
                compare(those, result.ledger, past, behind, set(submissions))
                behind.append((past[-1], set(submissions)))


def next_plan(what, before):
    """The plan of a step, drawn from the result of the step before it if there was one."""
    if what == "marginals":
        return Plan.marginals(SCHEMA)
    return rounds.ranks(before) if what == "ranks" else tables(before)


def tables(marginals):
    sizes = {"n_tables": 5, "n_cells": 16, "min_depth": 2, "max_depth": 4}
    return Plan.draw(SCHEMA, marginals=marginals, random_state=0, **sizes)


def collected(those, round_, names, **options):
    submissions = {name: those.sites[name].submit(round_, **options) for name in names}
    return those.sum(round_, submissions)


def compare(those, ledger, past, behind, inside):
    for name, site in those.sites.items():
        paid_there = sum(one.rho(1) for one in past if name in one.sites)
        said = site.book.total("all rows")
        assert epsilon(paid_there, DELTA) * (1 - 1e-9) <= said
        assert said <= by_zcdp(paid_there, DELTA) * 1.01
    # At a site with a part in the result, all that it ever answered counts. At any other, what
    # the result tells of its rows: what the plan was drawn from.
    events = {
        name: [one for one in past if name in one.sites]
        if name in inside
        else [one for one, sites in behind if name in sites]
        for name in those.sites
    }
    assert ledger.epsilon == ledger.epsilon_at(1)
    # Which sites without a part are the same in two entries, the ledger is not told.
    others = sorted((sites - inside for _, sites in behind), key=len)
    told = all(a <= b for a, b in pairwise(others))
    for sites in range(1, len(those.sites) + 1):
        said = ledger.epsilon_at(sites)
        assert said >= paid(events, sites, DELTA) * (1 - 1e-9)
        assert not told or said <= paid(events, sites, DELTA, by_zcdp) * 1.01
