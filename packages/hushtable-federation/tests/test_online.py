"""The online form: sums with dropouts, hostile coordinators and sites, what a transcript shows."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from hushtable import files
from hushtable.errors import RoundError
from hushtable_federation.keys import Keys
from hushtable_federation.online.carriers import Memory
from hushtable_federation.online.secure_sum import SecureSum
from hushtable_federation.protocol.messages import STEPS, Message, ask
from hushtable_federation.refusals import Refusal
from round_helpers import Hand, Online, agent, signed_anew, total_of


@pytest.fixture(autouse=True)
def at_the_time_of_the_rounds(monkeypatch):
    """Sites and coordinator look at the clock; the rounds of these tests are in 2027."""
    from round_helpers import T0

    monkeypatch.setattr("hushtable_federation.clock.read", lambda: T0)


# --- sums -------------------------------------------------------------------------------------

#: In these, anyone who is gone has not masked.
BEFORE = ("keys", "shares", "masked")


@pytest.mark.parametrize(
    ("k", "lost"),
    [
        (2, 0), (3, 1), (10, 3),
        *(pytest.param(*some, marks=pytest.mark.slow) for some in ((3, 0), (10, 0), (10, 1))),
    ],
)  # fmt: skip
@pytest.mark.parametrize("step", STEPS[:5])
def test_the_sum_is_that_of_those_who_stayed(shared, quick_noise, k, lost, step):
    those = shared(k)
    gone = list(those.sites)[:lost]
    round_ = those.open(least=max(k - lost, 2))
    online = Online(those, round_, {step: gone})
    result = online.run()
    # Who masked is in the sum, even if gone in the steps after.
    inside = [name for name in those.sites if name not in gone or step not in BEFORE]
    np.testing.assert_array_equal(result.counts, total_of(those, round_, inside))
    assert len(result.ledger.shares) == len(inside)
    # Where all are there, no one is asked to sign who is in.
    asked = {one for one, *_ in online.log}
    everybody = step not in BEFORE or not lost
    steps = {"keys", "shares", "masked", "unmask", "end"}
    assert asked == steps | (set() if everybody else {"survivors"})
    assert set(online.sum.lost) == (set() if step == "survivors" else set(gone))
    assert online.sum.found_out == {}


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_hundred_sites(consortium, quick_noise, share):
    those = consortium(100, rows=20)
    gone = list(those.sites)[: int(100 * share)]
    round_ = those.open(least=70)
    result = Online(those, round_, {"masked": gone}).run()
    inside = [name for name in those.sites if name not in gone]
    np.testing.assert_array_equal(result.counts, total_of(those, round_, inside))


@pytest.mark.parametrize("step", STEPS[:5])
def test_too_many_dropouts_end_the_round_without_a_sum(shared, quick_noise, step):
    those = shared(5)
    round_ = those.open(least=4)
    # Someone is missing from the first, or no one would be asked to sign.
    online = Online(those, round_, {"masked": ["s00"]} | {step: ["s00", "s01"]})
    with pytest.raises(RoundError, match=r"3 sites are left in step .*, and 4 are needed"):
        online.run()
    assert set(online.sum.lost) == {"s00", "s01"}


@pytest.mark.parametrize("gone", [[], ["s02"]])
def test_the_same_request_gets_the_same_answer_after_a_crash(shared, quick_noise, gone):
    those = shared(3)
    round_ = those.open(least=2)
    online = Online(those, round_, {"masked": gone})
    online.run()
    for _, name, request, answer in online.log:
        assert agent(those.sites[name]).answer(request) == answer
    # What served is forgotten: the key of the own mask, and the counts without noise.
    for name in set(those.sites) - set(gone):
        book = those.sites[name].book
        assert book.step(round_.round_id, "shares")[2] == {}
        assert book.step(round_.round_id, "rows") is None


def test_a_masked_request_of_any_words_gets_the_one_answer(shared, quick_noise):
    """It takes nothing that a coordinator could choose."""
    those = shared(3)
    round_ = those.open()
    online = until(those, round_, "masked")
    other = ask(round_, "masked", those.lead, {"and": "more"})
    assert agent(those.sites["s00"]).answer(other) == online.answers("masked")["s00"]


def test_sites_refuse_in_a_word(consortium):
    those = consortium(3, cap=0.5)
    round_ = those.open()
    online = Online(those, round_)
    with pytest.raises(RoundError, match=r"s00: keys: budget"):
        online.run()
    assert "cap of 's00' is 0.5" in logged(those.sites["s00"])
    assert those.sites["s00"].book.answers() == []


def test_rounds_that_need_no_secure_sum(consortium):
    those = consortium(3)
    with pytest.raises(RoundError, match="needs no secure sum"):
        SecureSum(those.open(masked=False), those.lead, Memory({}))
    with pytest.raises(RoundError, match="follow only its coordinator"):
        SecureSum(those.open(), Keys.generate("lead"), Memory({}))


# --- a coordinator who cheats ---------------------------------------------------------------------


def logged(site):
    """What a site noted of its last refusal, for its own people."""
    return Path(site.book.path).with_suffix(".log").read_text().splitlines()[-1]


def refusal(answer, site):
    """The words that a site keeps of a refusal; what it sent is one word of the list."""
    message = Message.read(answer, site.keys.card)
    assert message.step == "refused"
    assert set(message.body) == {"word"}
    assert json.loads(logged(site))["word"] == Refusal(message.body["word"])
    return logged(site)


def until(those, round_, step, gone=()):
    """Run the steps up to one, then all sites are gone; ``gone`` are so before masking."""
    following = {"shares": "masked", "masked": "unmask", "survivors": "unmask"}[step]
    lost = {"masked": list(gone)} | {following: list(those.sites)}
    if gone and step == "masked":
        lost["survivors"] = lost["unmask"]
    online = Online(those, round_, lost)
    with pytest.raises(RoundError, match="0 sites are left in step"):
        online.run()
    return online


def test_a_refusal_of_a_list_is_one_word_and_a_line_of_the_log(shared, quick_noise):
    """`test_protocol.py` tries all lists; here, the site is one with a book and a log."""
    those = shared(4)
    round_ = those.open(least=3)
    online = until(those, round_, "survivors", ["s03"])
    site, hand = those.sites["s00"], Hand(online)
    request = online.asked("survivors", "s00")
    hand.masked["s03"] = hand.masked["s02"]  # as if it had come since
    every = list(those.sites)
    answer = agent(site).answer(hand.listing("survivors", "s00", every))
    assert "already answered, to a different request" in refusal(answer, site)
    answer = agent(site).answer(hand.listing("unmask", "s00", every))
    assert "signed a different list" in refusal(answer, site)
    assert Message.read(agent(site).answer(request), site.keys.card).step == "survivors"
    assert "is unknown here" in refusal(
        agent(site).answer(ask(round_, "shout", those.lead, {})), site
    )


def test_steps_out_of_order_and_requests_of_others(shared):
    those = shared(3)
    round_ = those.open()
    site = those.sites["s00"]
    for step, body in (("unmask", {}), ("masked", {}), ("survivors", {"sites": {}})):
        answer = agent(site).answer(ask(round_, step, those.lead, body))
        assert Message.read(answer, site.keys.card).step == "refused"
        assert "step 'keys' has to come first, with the round" in refusal(answer, site)
    stranger = Keys.generate("lead")
    answer = agent(site).answer(ask(round_, "keys", stranger, {}))
    assert "does not have the signature" in refusal(answer, site)
    assert site.book.step(round_.round_id, "keys") is None


# --- sites that cheat, and what goes wrong on the way -------------------------------------------


@pytest.mark.parametrize(
    ("step", "body"),
    [
        ("survivors", {}), ("survivors", {"list": "ab" * 32}), ("survivors", {"complaints": 5}),
        ("survivors", {"complaints": [[]]}), ("unmask", {"complaints": "s01"}),
        ("unmask", {"list": 3}), ("survivors", {"signature": "ab" * 64}),
    ],
)  # fmt: skip
def test_a_site_that_answers_nonsense_about_the_list(shared, quick_noise, step, body):
    """It is in the sum, whose masks the others take off."""
    those = shared(5)
    round_ = those.open(least=3)

    def talk(at, who, answer):
        if (at, who) != (step, "s00"):
            return answer
        keys = those.sites[who].keys
        if not body:
            return Message.make(round_, step, keys, {}).content
        return signed_anew(round_, keys, answer, body)

    online = Online(those, round_, {"masked": ["s04"]}, change=talk)
    result = online.run()
    inside = ["s00", "s01", "s02", "s03"]
    np.testing.assert_array_equal(result.counts, total_of(those, round_, inside))
    assert online.sum.found_out == {}
    assert online.sum.lost["s00"] == f"{step}: garbled"


@pytest.mark.parametrize("step", STEPS[:5])
def test_an_answer_that_was_changed_on_its_way_is_a_dropout(shared, quick_noise, step):
    those = shared(5)
    round_ = those.open(least=3)

    def flip(at, name, answer):
        if (at, name) != (step, "s00"):
            return answer
        return answer[:-3] + bytes([answer[-3] ^ 4]) + answer[-2:]

    online = Online(those, round_, {"masked": ["s04"]}, change=flip)
    result = online.run()
    inside = [name for name in list(those.sites)[:4] if name != "s00" or step not in BEFORE]
    np.testing.assert_array_equal(result.counts, total_of(those, round_, inside))
    assert set(online.sum.lost) == {"s00", "s04"}


# --- what the coordinator sees ------------------------------------------------------------------


def words_of(submission):
    return files.unpack(submission, "s").arrays["words"]


def test_single_submissions_look_uniform(consortium):
    those = consortium(3, rows=3000)
    pvalues = []
    for i in range(4):
        round_ = those.open(title=str(i), epsilon=0.5)
        for content in [site.submit(round_) for site in those.sites.values()]:
            seen = np.bincount(words_of(content).view(np.uint8), minlength=256)
            pvalues.append(stats.chisquare(seen).pvalue)
    assert min(pvalues) > 1e-5
    # What is under the masks does not: the test can fail.
    plain = those.sites["s00"].sent(round_)
    assert stats.chisquare(np.bincount(plain.view(np.uint8), minlength=256)).pvalue < 1e-12


@pytest.mark.slow
def test_swapping_two_sites_rows_changes_nothing_that_the_coordinator_sees(consortium):
    """The bytes of single submissions are the same in distribution; only the sum is not its own."""
    seen = {False: [], True: []}
    sizes = {False: set(), True: set()}
    for swapped in seen:
        those = consortium(3, rows=40)
        a, b = those.sites["s00"], those.sites["s01"]
        a.X, b.X = np.full((40, 3), 4.0), np.full((400, 3), -4.0)
        if swapped:
            a.X, b.X = b.X, a.X
        for i in range(40):
            round_ = those.open(title=str(i), epsilon=0.5)
            for name, site in those.sites.items():
                content = site.submit(round_, data_set=str(i))
                sizes[swapped].add((name, len(content)))
                read = files.unpack(content, "s").manifest
                assert set(read) - {"arrays", "digest", "signature", "writer"} == {
                    "protocol", "kind", "round_id", "plan_id", "site", "made", "share",
                }  # fmt: skip
                assert read["share"]["earlier"] == []
                if name == "s00":
                    seen[swapped].append(words_of(content))
    assert sizes[False] == sizes[True]
    low, high = (np.concatenate(seen[swapped]).astype(np.float64) for swapped in seen)
    assert stats.ks_2samp(low, high).pvalue > 1e-5
    by_cell = (np.stack(seen[swapped]) >> np.uint64(63) for swapped in seen)
    ones = [bits.sum(axis=0) for bits in by_cell]  # top bit of each cell: a coin
    table = np.array([[one.sum(), one.size * 40 - one.sum()] for one in ones])
    assert stats.chi2_contingency(table).pvalue > 1e-5
