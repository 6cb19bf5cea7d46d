"""Ledgers of rounds about different people: several pools, of which the dearest counts."""

import json
import math
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable import Feature, Increment, Plan, Release, Schema, decoded, files, load
from hushtable.describe import describe_ledger
from hushtable.errors import PlanError, PrivacyError
from hushtable.privacy.budget import Charge, at_sites, split_history
from hushtable.privacy.ledger import Ledger, Pool, Share
from hushtable.privacy.mechanisms import Cost, Sensitivity
from places import DOCS

PLAN = Plan.draw(Schema([Feature.numeric("a", low=0, high=9)]), n_tables=4, random_state=0)
UNIT = Sensitivity(PLAN.family.n_histograms)


def masked(name, scale, k=3, colluders=0):
    shares = tuple(Share(f"{name}{i}", scale, "x") for i in range(k))
    pool = Pool.against(colluders, k, name)
    return Ledger("discrete-gaussian", UNIT, 1e-6, shares, (), pool, "gaussian")


def own(name, scale):
    shares = (Share(name, scale, "x"),)
    return Ledger("discrete-gaussian", UNIT, 1e-6, shares, (), None, "gaussian")


def merged(ledgers):
    return sum(ledgers[1:], start=ledgers[0])


def released(ledger, seed=0):
    counts = np.random.default_rng(seed).integers(0, 99, PLAN.family.n_cells)
    return Release(PLAN, counts, ledger)


def test_the_dearest_counts_and_all_noise_adds_up():
    a, b, c = masked("r", 20.0), masked("q", 30.0), own("p", 60.0)
    total = a + b + c
    assert total.epsilon == a.epsilon > b.epsilon
    assert total.noise_sd == pytest.approx(math.hypot(a.noise_sd, b.noise_sd, c.noise_sd))
    assert [pool.round for pool in total.pools] == ["r", "q"]
    assert (total.pool, a.pool.round) == (None, "r")
    assert [total.pool_of(share) for share in total.shares][-1] is None


def test_who_is_in_two_pays_both_and_at_two_sites_of_one_pays_four_times():
    a, b = masked("r", 20.0), masked("q", 20.0)
    # Once at two sites of a round; in both rounds, it would be half of that.
    assert (a + b).epsilon_at(2) == a.epsilon_at(2)
    assert (a + b)._at(2).rho == pytest.approx(4 * a.rho)
    assert (a + b)._at(6).rho == pytest.approx(9 * a.rho + 9 * b.rho)
    assert (a + own("p", 20.0))._at(4).rho == pytest.approx(9 * a.rho + own("p", 20.0).rho)


LEDGERS = st.lists(
    st.tuples(st.floats(5, 500), st.integers(1, 4), st.integers(0, 1)), min_size=1, max_size=5
)


@given(LEDGERS, st.randoms())
def test_a_sum_never_says_less_than_its_parts_in_any_order(drawn, order):
    parts = [
        own(f"{i}", scale) if k == 1 else masked(f"{i}", scale, k, colluders * (k > 2))
        for i, (scale, k, colluders) in enumerate(drawn)
    ]
    total = merged(parts)
    assert total.epsilon == max(part.epsilon for part in parts)
    for sites in (1, 2, 3):
        assert total.epsilon_at(sites) >= max(part.epsilon_at(sites) for part in parts) * 0.999999
    assert Ledger.from_dict(total.to_dict()) == total
    shuffled = list(parts)
    order.shuffle(shuffled)
    again = merged(shuffled)
    assert again.epsilon_at(2) == pytest.approx(total.epsilon_at(2), rel=1e-9)
    assert set(again.shares) == set(total.shares)


def test_a_sum_goes_through_a_file_and_one_pool_is_written_as_before(tmp_path):
    a, b = released(masked("r", 20.0)), released(masked("q", 30.0), 1)
    both = a + b
    np.testing.assert_array_equal(both.counts, a.counts + b.counts)
    both.save(tmp_path / "both.hush")
    back = load(tmp_path / "both.hush")
    assert back.ledger == both.ledger
    path = DOCS / "hush-manifest-1.schema.json"
    validator = jsonschema.Draft202012Validator(json.loads(path.read_text()))
    manifest = files.read(tmp_path / "both.hush").manifest
    assert not list(validator.iter_errors(manifest))
    said = both.ledger.to_dict()
    assert "pool" not in said
    assert [share["pool"]["round"] for share in said["shares"]] == ["r"] * 3 + ["q"] * 3
    one = a.ledger.to_dict()
    assert one["pool"]["round"] == "r"
    assert not any("pool" in share for share in one["shares"])


def test_a_part_of_a_pool_is_no_release():
    whole, part = masked("r", 20.0), masked("q", 20.0)
    short = replace(part, shares=part.shares[:2])
    assert released(whole + part)
    with pytest.raises(PrivacyError, match="2 of at least 3 parts"):
        released(whole + short)
    with pytest.raises(PrivacyError, match="2 of at least 3 parts"):
        released(own("p", 20.0) + short)


def test_parts_of_one_round_gather_beside_another_round():
    whole, q = masked("r", 20.0), masked("q", 20.0)
    parts = [replace(q, shares=(share,)) for share in q.shares]
    total = merged([whole, *parts])
    assert total == whole + q
    assert released(total)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda a, b: a + a, "merge each release once"),
        (lambda a, b: a + b + a, "merge each release once"),
        (lambda a, b: a + replace(b, pool=replace(b.pool, round="r", counted=1)), "one round"),
        (
            lambda a, b: replace(a, shares=(replace(a.shares[0], pool=b.pool),)),
            "although all of them share one",
        ),
        (lambda a, b: a + earlier(b, a), "came before"),
        (lambda a, b: earlier(b, a) + a, "came before"),
    ],
)
def test_what_does_not_add(wrong, words):
    with pytest.raises(PrivacyError, match=words):
        wrong(masked("r", 20.0), masked("q", 30.0))


def earlier(later, before):
    """The ledger, with what each of its sites sent to a round before."""
    spent = [
        replace(before, shares=(share,)).as_spent("hushtable", share.release)[-1]
        for share in before.shares
    ]
    shares = zip(later.shares, spent, strict=True)
    return replace(later, shares=tuple(replace(s, earlier=(one,)) for s, one in shares))


def test_a_share_of_a_pool_that_says_nothing_of_it_is_refused():
    said = (masked("r", 20.0) + masked("q", 30.0)).to_dict()
    for change in ({"pool": None}, {"pool": {"round": "r"}}, {"pool": "r"}):
        shares = [said["shares"][0] | change, *said["shares"][1:]]
        with pytest.raises(PlanError):
            Ledger.from_dict(said | {"shares": shares})
    counted = [s | {"pool": s["pool"] | {"least": 4, "counted": 3}} for s in said["shares"][:3]]
    with pytest.raises(PlanError, match="edited"):  # it would count on more noise than there is
        Ledger.from_dict(said | {"shares": [*counted, *said["shares"][3:]]})


def test_two_streams_add_up_period_by_period_and_decode():
    plan = Plan.draw(PLAN.schema, n_tables=4, epsilon=1.0, expected_rows=99, horizon=2,
                     random_state=0)  # fmt: skip
    unit = Sensitivity(plan.family.n_histograms, horizon=plan.horizon)
    counts = np.zeros(plan.family.n_cells, np.int64)

    def increment(ledger, period):
        return Increment(plan, counts, replace(ledger, sensitivity=unit, period=period))

    a, b, c = masked("r", 20.0), masked("q", 30.0), own("p", 40.0)
    both = [increment(a, period) + increment(b, period) for period in (1, 2)]
    total = decoded(both)
    assert [pool.round for pool in total.ledger.pools] == ["r", "q"]
    assert total.ledger.epsilon == both[0].ledger.epsilon == increment(a, 1).ledger.epsilon
    (late,) = c.shares
    c = replace(c, shares=(replace(late, start=2),))  # a site that joins later
    joined = [increment(a, 1), increment(a, 2) + increment(c, 2)]
    assert decoded(joined).ledger.epsilon == total.ledger.epsilon
    unmasked = increment(replace(a, pool=None), 1)
    other = increment(replace(a, pool=replace(a.pool, round="x")), 1)
    for wrong in (unmasked, other):
        with pytest.raises(PrivacyError, match="cannot be added"):
            decoded([wrong, increment(a, 2)])
    with pytest.raises(PrivacyError, match="is in period 1"):
        decoded([both[0], increment(a, 2)])


# --- a plan that is drawn from a sum of rounds ------------------------------------------------


def test_a_history_of_two_rounds_contains_what_a_site_sent_to_one():
    a, b = masked("r", 20.0), masked("q", 20.0)
    (behind,) = (a + b).as_spent("marginals", "sum")
    assert behind.pool == "q r"
    (mine,) = replace(a, shares=a.shares[:1]).as_spent("marginals", "r0")
    assert split_history([behind], [mine]) == ((), ())
    (alone,) = own("p", 60.0).as_spent("marginals", "p")
    (with_own,) = (a + own("p", 60.0)).as_spent("marginals", "sum")
    assert split_history([with_own], [alone]) == ((), ())
    (other,) = masked("x", 20.0).as_spent("marginals", "r0")
    assert split_history([behind], [other])[1] == ("sum",)


def test_of_merged_rounds_the_dearer_way_of_adding_counts():
    cost = Cost(0.01)
    together, one = Charge(cost, "q r"), Charge(cost, "r")
    # No one says in which of the two a site was: it may have been the one of the other site.
    assert at_sites([[together], [one]], 2).rho == pytest.approx(0.04)
    assert at_sites([[one], [Charge(cost, "q")]], 2).rho == pytest.approx(0.02)


# --- in words ---------------------------------------------------------------------------------


def test_words_say_what_adds_up_and_what_it_costs_to_be_in_two():
    words = " ".join(describe_ledger(masked("r", 20.0) + masked("q", 30.0, 4, 1)))
    assert "2 rounds about different people are merged." in words
    assert "each of these sites included." in words  # that of the first counts on all others
    assert "a person in one of them, at one site; for one in 2 of them, or at 2 sites, the" in words
    words = " ".join(describe_ledger(masked("r", 20.0, 4, 1) + own("p", 9.0) + own("q", 9.0)))
    assert "1 round and 2 releases about different people are merged." in words
    assert "even if it learns the noise of another." in words
    assert "3 sites share the noise, and only" in " ".join(describe_ledger(masked("r", 20.0)))
    assert "2 releases are merged." in " ".join(describe_ledger(own("p", 9.0) + own("q", 9.0)))
