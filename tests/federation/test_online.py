"""The online form: sums with dropouts, hostile coordinators and sites, what a transcript shows."""

from pathlib import Path

import numpy as np
import pytest
from round_helpers import UNATTENDED, Online
from scipy import stats

from hushtable import files
from hushtable.errors import RoundError
from hushtable.federation.keys import Keys
from hushtable.federation.online.memory import Memory
from hushtable.federation.online.messages import STEPS, Message, ask
from hushtable.federation.online.secure_sum import SecureSum
from hushtable.federation.online.site import OnlineSite
from hushtable.federation.refusals import Refusal
from hushtable.federation.rehearsal import Rehearsal


@pytest.fixture(autouse=True)
def at_the_time_of_the_rounds(monkeypatch):
    """Sites and coordinator look at the clock; the rounds of these tests are in 2027."""
    from round_helpers import T0

    monkeypatch.setattr("hushtable.federation.clock.read", lambda: T0)


def total_of(consortium, round_, names):
    return sum(consortium.sites[name].sent(round_) for name in names)


# --- sums -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "lost"),
    [
        (2, 0), (3, 0), (3, 1), (10, 3),
        *(pytest.param(10, lost, marks=pytest.mark.slow) for lost in (0, 1)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("step", [1, 2, 3, 4, 5])
def test_the_sum_is_that_of_those_who_stayed(consortium, quick_noise, k, lost, step):
    those = consortium(k)
    gone = list(those.sites)[:lost]
    round_ = those.open(least=max(k - lost, 2))
    online = Online(those, round_, {step: gone})
    result = online.run()
    # Who masked is in the sum, even if gone in the steps after.
    inside = [name for name in those.sites if name not in gone or step > 3]
    np.testing.assert_array_equal(result.counts, total_of(those, round_, inside))
    assert len(result.ledger.shares) == len(inside)
    assert set(online.sum.lost) == set(gone)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3])
def test_a_hundred_sites(consortium, quick_noise, share):
    those = consortium(100, rows=20)
    gone = list(those.sites)[: int(100 * share)]
    round_ = those.open(least=70)
    result = Online(those, round_, {3: gone}).run()
    inside = [name for name in those.sites if name not in gone]
    np.testing.assert_array_equal(result.counts, total_of(those, round_, inside))


def test_dropouts_in_every_step(consortium, quick_noise):
    those = consortium(10)
    round_ = those.open(least=6)
    lost = {1: ["s00"], 2: ["s01"], 3: ["s02"], 4: ["s03"], 5: []}
    online = Online(those, round_, lost)
    result = online.run()
    inside = [f"s{i:02d}" for i in range(3, 10)]
    np.testing.assert_array_equal(result.counts, total_of(those, round_, inside))
    assert online.sum.lost["s02"] == "masked: silent"
    assert online.sum.reached["s02"] == "shares"
    # The noise suffices for what the ledger says, with the fewest sites that the round allows.
    assert result.ledger.pool.counted == 5
    assert result.ledger.epsilon <= 1.0


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5])
def test_too_many_dropouts_end_the_round_without_a_sum(consortium, quick_noise, step):
    those = consortium(5)
    round_ = those.open(least=4)
    online = Online(those, round_, {step: ["s00", "s01"]})
    with pytest.raises(RoundError, match=r"3 sites are left in step .*, and 4 are needed"):
        online.run()
    assert set(online.sum.lost) == {"s00", "s01"}


def test_the_same_request_gets_the_same_answer_after_a_crash(consortium):
    those = consortium(3)
    round_ = those.open()
    online = Online(those, round_)
    online.run()
    for _, name, request, answer in online.log:
        site = those.sites[name]
        # As after a start: nothing but keys, book and rows.
        assert (
            OnlineSite(site.keys, site.book, site.sketch, policy=UNATTENDED).answer(request)
            == answer
        )
    # What served is forgotten.
    for site in those.sites.values():
        assert site.book.step(round_.round_id, "keys")[2] == {}


def test_a_masked_answer_of_an_older_book_is_sent_again(consortium):
    """Books of before hold what was masked with the step, and not with the answer."""
    those = consortium(3)
    round_ = those.open()
    site = those.sites["s00"]
    request = ask(round_, "masked", those.lead, {"shares": {}})
    digest = Message.read(request, those.lead.card).digest
    site.book.note_step(round_.round_id, "masked", digest, b"as it was sent", {})
    agent = OnlineSite(site.keys, site.book, site.sketch, policy=UNATTENDED)
    assert agent.answer(request) == b"as it was sent"


def test_sites_refuse_in_a_word(consortium):
    those = consortium(3, cap=0.5)
    round_ = those.open()
    online = Online(those, round_)
    with pytest.raises(RoundError, match=r"s00: keys: budget"):
        online.run()
    assert "cap of 's00' is 0.5" in logged(those.sites["s00"])
    assert those.sites["s00"].book.answers() == []


def test_a_round_that_was_answered_is_not_answered_online(consortium):
    those = consortium(3)
    round_ = those.open()
    for site in those.sites.values():
        site.submit(round_)
    with pytest.raises(RoundError, match="s00: keys: answered"):
        Online(those, round_).run()


def test_rounds_that_need_no_secure_sum(consortium):
    those = consortium(3)
    with pytest.raises(RoundError, match="needs no secure sum"):
        SecureSum(those.open(masked=False), those.lead, Memory({}))
    with pytest.raises(RoundError, match="with other keys"):
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
    assert logged(site).split("\t")[3] == Refusal(message.body["word"])
    return logged(site)


def until(consortium, round_, steps):
    """Run the first steps only, after which all sites are gone; return the transport."""
    online = Online(consortium, round_, {steps + 1: list(consortium.sites)})
    with pytest.raises(RoundError, match=f"0 sites are left in step {STEPS[steps]!r}"):
        online.run()
    return online


def test_two_lists_of_who_is_in(consortium):
    """With both, the masks of a site that is in could be taken off: it signs one only."""
    those = consortium(4)
    round_ = those.open(least=3)
    online = until(those, round_, 4)
    request = {n: r for s, n, r, _ in online.log if s == 4}["s00"]
    site = those.sites["s00"]
    smaller = ask(round_, "survivors", those.lead, {"sites": ["s00", "s01", "s02"]})
    agent = OnlineSite(site.keys, site.book, site.sketch, policy=UNATTENDED)
    assert "answered before, to another request" in refusal(agent.answer(smaller), site)
    assert Message.read(agent.answer(request), site.keys.card).step == "survivors"


def test_no_share_without_enough_signatures(consortium):
    those = consortium(4)
    round_ = those.open(least=3)
    online = until(those, round_, 4)
    signed = {n: a.hex() for s, n, _, a in online.log if s == 4}
    few = {name: signed[name] for name in ("s00", "s01")}
    site = those.sites["s00"]
    agent = OnlineSite(site.keys, site.book, site.sketch, policy=UNATTENDED)
    answer = agent.answer(ask(round_, "unmask", those.lead, {"signed": few}))
    assert "2 sites signed who is in, and 3 are needed" in refusal(answer, site)

    # A signature that the coordinator made up.
    fake = Message.make(round_, "survivors", Keys.generate("s02"), {"sites": sorted(signed)})
    made_up = few | {"s02": fake.content.hex()}
    answer = agent.answer(ask(round_, "unmask", those.lead, {"signed": made_up}))
    assert "does not carry the signature of 's02'" in refusal(answer, site)

    # A list that another site signed, but not this one.
    other = Message.make(round_, "survivors", those.sites["s02"].keys, {"sites": ["s00", "s01"]})
    mixed = signed | {"s02": other.content.hex()}
    answer = agent.answer(ask(round_, "unmask", those.lead, {"signed": mixed}))
    assert "signed another list" in refusal(answer, site)


@pytest.mark.parametrize(
    ("step", "body", "reason"),
    [
        ("survivors", {"sites": ["s00"]}, "1 sites are left, and 3 are needed"),
        ("survivors", {"sites": ["s00", "s00", "s01"]}, "not one of those who took part"),
        ("survivors", {"sites": ["s01", "s02", "s03"]}, "not one of those who took part"),
        ("survivors", {"sites": ["s00", "s01", "mallory"]}, "not one of those who took part"),
        ("survivors", {}, "not of its form"),
        ("survivors", {"sites": [1, 2, 3]}, "not of its form"),
        ("shout", {}, "unknown here"),
    ],
)
def test_requests_that_make_no_sense(consortium, step, body, reason):
    those = consortium(4)
    round_ = those.open(least=3)
    until(those, round_, 3)
    site = those.sites["s00"]
    agent = OnlineSite(site.keys, site.book, site.sketch, policy=UNATTENDED)
    assert reason in refusal(agent.answer(ask(round_, step, those.lead, body)), site)


def test_steps_out_of_order_and_requests_of_others(consortium):
    those = consortium(3)
    round_ = those.open()
    site = those.sites["s00"]
    agent = OnlineSite(site.keys, site.book, site.sketch, policy=UNATTENDED)
    answer = agent.answer(ask(round_, "unmask", those.lead, {"signed": {}}))
    assert "comes first" in refusal(answer, site)
    stranger = Keys.generate("lead")
    answer = agent.answer(ask(round_, "keys", stranger, {}))
    assert "does not carry the signature" in refusal(answer, site)


def test_keys_that_the_coordinator_made_up(consortium):
    those = consortium(3)
    round_ = those.open()
    online = until(those, round_, 1)
    offered = {n: a.hex() for s, n, _, a in online.log if s == 1}
    fake = Message.make(round_, "keys", Keys.generate("s01"), {"encrypt": "00", "mask": "11"})
    site = those.sites["s00"]
    agent = OnlineSite(site.keys, site.book, site.sketch, policy=UNATTENDED)
    answer = agent.answer(
        ask(round_, "shares", those.lead, {"keys": offered | {"s01": fake.content.hex()}})
    )
    assert "does not carry the signature of 's01'" in refusal(answer, site)


@pytest.mark.parametrize(
    "body", [{}, {"keys": 3}, {"keys": {"s00": "xyz"}}, {"keys": {"s00": 5}}, {"keys": {"s00": ""}}]
)
def test_requests_of_another_form(consortium, body):
    those = consortium(3)
    round_ = those.open()
    until(those, round_, 1)
    site = those.sites["s00"]
    agent = OnlineSite(site.keys, site.book, site.sketch, policy=UNATTENDED)
    answer = agent.answer(ask(round_, "shares", those.lead, body))
    assert Message.read(answer, site.keys.card).step == "refused"


@pytest.mark.parametrize("key", ["00" * 32, "01" + "00" * 31, "00", "ff" * 40])
def test_keys_that_are_none(consortium, key):
    """Points of low order would give every pair the same mask."""
    those = consortium(3)
    round_ = those.open()

    def offer(step, name, answer):
        if (step, name) != (1, "s00"):
            return answer
        body = {"encrypt": key, "mask": key[:-2] + "02"}
        return Message.make(round_, "keys", those.sites[name].keys, body).content

    with pytest.raises(RoundError, match=r"are left in step"):
        Online(those, round_, change=offer).run()


# --- sites that cheat, and what goes wrong on the way -------------------------------------------


def liar(those, round_, liars, lie):
    """Change what sites give in the last step."""

    def change(step, name, answer):
        if step != 5 or name not in liars:
            return answer
        site = those.sites[name]
        shares = Message.read(answer, site.keys.card).body["shares"]
        body = {"shares": {other: lie(text) for other, text in shares.items()}}
        return Message.make(round_, "unmask", site.keys, body).content

    return change


LIES = {
    "wrong": lambda text: text[:-2] + "00",
    "zeros": lambda text: "00" * 66,
    "short": lambda text: text[:-2],
    "no number": lambda text: "xyz",
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize(
    "liars", [["s00"], ["s01", "s03"], pytest.param(["s04"], marks=pytest.mark.slow)]
)
def test_wrong_shares_of_some_do_not_stop_the_sum(consortium, quick_noise, liars, lie):
    """E_badshare: zeros from one of five in the last step: no sum, and five budgets spent."""
    those = consortium(6)
    round_ = those.open(least=4)
    online = Online(those, round_, change=liar(those, round_, liars, LIES[lie]))
    np.testing.assert_array_equal(online.run().counts, total_of(those, round_, list(those.sites)))
    assert online.sum.lost == {}


def test_wrong_shares_of_too_many_give_no_sum(consortium):
    those = consortium(4)
    round_ = those.open(least=3)
    wrong = liar(those, round_, ["s00", "s01"], LIES["wrong"])
    with pytest.raises(RoundError, match="no sum: the shares behind the masks do not fit"):
        Online(those, round_, {3: ["s03"]}, wrong).run()


@pytest.mark.parametrize(
    ("step", "name", "body"),
    [
        (1, "keys", {}),
        (1, "keys", {"encrypt": 1, "mask": 2}),
        (2, "shares", {}),
        (2, "shares", {"shares": {"s01": "00"}, "commitment": ""}),
        (3, "masked", {}),
    ],
)
def test_a_site_that_answers_nonsense_is_a_dropout(consortium, step, name, body):
    those = consortium(4)
    round_ = those.open(least=3)

    def talk(at, who, answer):
        if (at, who) != (step, "s00"):
            return answer
        return Message.make(round_, name, those.sites[who].keys, body).content

    online = Online(those, round_, change=talk)
    result = online.run()
    assert online.sum.lost["s00"] == f"{name}: garbled"
    np.testing.assert_array_equal(result.counts, total_of(those, round_, ["s01", "s02", "s03"]))


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5])
def test_an_answer_that_was_changed_on_its_way_is_a_dropout(consortium, step):
    those = consortium(4)
    round_ = those.open(least=3)

    def flip(at, name, answer):
        if (at, name) != (step, "s00"):
            return answer
        return answer[:-3] + bytes([answer[-3] ^ 4]) + answer[-2:]

    online = Online(those, round_, change=flip)
    result = online.run()
    inside = [name for name in those.sites if name != "s00" or step > 3]
    np.testing.assert_array_equal(result.counts, total_of(those, round_, inside))
    assert set(online.sum.lost) == {"s00"}


def test_a_share_that_was_changed_on_its_way(consortium):
    those = consortium(4)
    round_ = those.open(least=3)

    def spoil(step, name, answer):
        if (step, name) != (2, "s00"):
            return answer
        site = those.sites[name]
        body = Message.read(answer, site.keys.card).body
        text = body["shares"]["s01"]
        body["shares"]["s01"] = text[:-2] + ("00" if text[-2:] != "00" else "11")
        return Message.make(round_, "shares", site.keys, body).content

    online = Online(those, round_, change=spoil)
    result = online.run()
    # The reader notices, and drops out while that is harmless.
    assert online.sum.lost["s01"] == "masked: shares"
    assert "the share of 's00' was changed on its way" in logged(those.sites["s01"])
    np.testing.assert_array_equal(result.counts, total_of(those, round_, ["s00", "s02", "s03"]))


# --- what the coordinator sees ------------------------------------------------------------------


def words_of(submission):
    return files.unpack(submission, "s").arrays["words"]


@pytest.mark.parametrize("form", ["files", "online"])
def test_single_submissions_look_uniform(consortium, form):
    those = consortium(3, rows=3000)
    pvalues = []
    for i in range(4):
        round_ = those.open(title=str(i), epsilon=0.5)
        if form == "files":
            sent = [site.submit(round_) for site in those.sites.values()]
        else:
            online = Online(those, round_)
            online.run()
            sent = [answer for step, _, _, answer in online.log if step == 3]
        for content in sent:
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


# --- transports -----------------------------------------------------------------------------------


def test_a_function_of_requests_to_answers_is_a_transport_too(tmp_path):
    here = Rehearsal(("east", "north", "south"), tmp_path, least=2)
    sites, steps = {name: here.site(name) for name in here.keys}, []

    def carry(requests):
        steps.append(sorted(requests))
        lost = {"east"} if len(steps) > 2 else set()
        return {name: sites[name].answer(requests[name]) for name in set(requests) - lost}

    secure_sum = SecureSum(here.round, here.lead, carry)
    assert len(secure_sum.run().ledger.shares) == 2
    assert steps[:2] == [["east", "north", "south"]] * 2
    assert secure_sum.lost == {"east": "masked: silent"}
    here.close()
