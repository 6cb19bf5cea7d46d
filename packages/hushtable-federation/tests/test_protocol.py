"""The masked sum without files and network: who vanishes, who lies, and what no site ever gives."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushtable import files
from hushtable.errors import RoundError
from hushtable_federation.protocol import masks
from hushtable_federation.protocol.messages import (
    LIST,
    STEPS,
    Dealt,
    Message,
    RoundKeys,
    SumList,
    ask,
    passed_on,
    table,
)
from hushtable_federation.protocol.site import place_of, undealt
from hushtable_federation.protocol.tally import Tally, TooFewError
from hushtable_federation.terms import PROTOCOL
from round_helpers import draw, signed_anew
from sum_helpers import NOW, Parties, public_keys


def expected(parties, gone):
    """Return the sites whose counts are in the sum: who was there until it had masked."""
    late = STEPS.index("survivors")
    return [name for name in parties.keys if STEPS.index(gone.get(name, "unmask")) >= late]


def summed(parties, gone=None, **options):
    """Return the sites in the sum, whose counts it exactly is; None if there is none."""
    try:
        result = parties.play(gone, **options)
    except RoundError:
        return None
    names = sorted(parties.tally.listed.sites)
    np.testing.assert_array_equal(result.counts, parties.total(names))
    return names


@settings(deadline=None)
@given(
    st.integers(3, 6),
    st.lists(st.sampled_from([None, None, *STEPS]), min_size=6, max_size=6),
    st.booleans(),
)
def test_whoever_vanishes_the_sum_is_exact_or_there_is_none(n, when, restarts):
    least = n // 2 + 1
    parties = Parties(n, least)
    gone = {name: step for name, step in zip(parties.keys, when, strict=False) if step}
    found = summed(parties, gone, restarts=restarts)
    assert parties.tally.found_out == {}
    assert parties.tally.disputed == []
    helpers = set(parties.keys) - set(gone)
    if len(helpers) == n:
        assert found == sorted(parties.keys)
    if found is not None:
        assert found == expected(parties, gone)
    elif len(helpers) >= least:
        # Enough sites helped: one of the others had drawn a key and dealt nothing.
        assert "shares" in gone.values()


def test_a_site_that_drew_a_key_and_dealt_nothing_needs_the_help_of_all():
    assert summed(Parties(5, 3), {"s4": "shares"}) == ["s0", "s1", "s2", "s3"]
    parties = Parties(5, 3)
    with pytest.raises(TooFewError, match="'s4' drew a key and dealt no shares of it, so all"):
        parties.play({"s4": "shares", "s0": "unmask"})
    assert parties.tally.awaited == ["s0"]
    # Whose shares are there needs no more than the threshold.
    assert summed(Parties(5, 3), {"s4": "masked", "s0": "unmask"}) == ["s0", "s1", "s2", "s3"]


# --- what a site never gives --------------------------------------------------------------------


def given_by(parties, name):
    """Return by site what was given of it: shares of its seed or key, or the key of a mask."""
    content = next(c for step, n, c in parties.log if (step, n) == ("unmask", name))
    arrays, listed = Message.read(content, parties.keys[name].card).arrays, parties.tally.listed
    away = undealt(parties.tally.dealt[name].keys, listed)
    lengths = {"keys": len(listed.others), "pairs": len(away), "seeds": len(listed.sites)}
    assert {name: len(one) for name, one in arrays.items()} == lengths
    found = {n: {"seed"} for n in listed.sites}
    found |= {n: {"key"} for n in listed.others}
    return found | {n: {"pair"} for n in away}


@pytest.mark.parametrize("gone", [{}, {"s3": "masked"}, {"s3": "shares"}, {"s3": "keys"}])
def test_of_each_site_one_secret_at_most_is_given(gone):
    parties = Parties(4, 3)
    # A share at place 0 is the secret itself.
    assert [place_of(parties.round, name) for name in parties.round.names] == [1, 2, 3, 4]
    assert summed(parties, gone) is not None
    held = {name: rows_of(parties, name) for name in parties.keys if name not in gone}
    for name in held:
        for other in given_by(parties, name):
            answer = next(c for step, n, c in parties.log if (step, n) == ("unmask", name))
            row = held[name].get(other)
            if row is not None:
                inside = other in parties.tally.listed.sites
                assert (row.seed in answer) == inside
                assert (row.key in answer) == (not inside)
    for name, keys in given_by(parties, "s0").items():
        assert (name in gone) == (keys != {"seed"})


def rows_of(parties, reader):
    """Return the opened rows that a reader was dealt, by dealer."""
    found, site = {}, parties.site(reader)
    for name, dealt in parties.tally.dealt.items():
        key = site._seal(name, public_keys(parties, name).seal)
        found[name] = masks.Row.read(
            parties.round.card(name),
            dealt.context(parties.round, reader),
            masks.open_row(key, dealt.rows[reader]),
        )
    return found


def listing(parties, step, reader, sites, others=()):
    """Return a request about any list, as a coordinator may choose it."""
    tally = parties.tally
    entries = {n: {"masked": tally.submitted[n].digest, "seed": tally.dealt[n].seed} for n in sites}
    listed = SumList(entries, {n: tally.dealt[n].seed for n in others})
    rows = [tally.dealt[n].rows[reader] for n in sorted(listed.dealers)]
    arrays = {"rows": table(rows, masks.SEALED_BYTES)}
    body = listed.to_dict() | {"reader": reader}
    return ask(parties.round, step, parties.lead, body, arrays)


def masked(n=4, least=3, gone=None):
    """Return parties up to the masked counts."""
    parties = Parties(n, least)
    inbox = []
    for step in STEPS[:3]:
        inbox = [
            (step, name, parties.answer(name, request))
            for name, request in parties.tally.advance(inbox, NOW, step).items()
            if STEPS.index((gone or {}).get(name, "unmask")) > STEPS.index(step)
        ]
        parties.log += inbox
    for one in inbox:
        parties.tally.take(*one, NOW)
    return parties


def word(parties, name, request):
    """Return the word of a refusal; empty if the site answered."""
    return Message.read(parties.answer(name, request), parties.keys[name].card).body.get("word", "")


def test_two_lists_in_any_order_get_one_answer():
    """Both secrets of s3 would be known from both of these lists."""
    some, every = ["s0", "s1", "s2"], ["s0", "s1", "s2", "s3"]
    ways = [("survivors", some, ["s3"]), ("survivors", every, []), ("unmask", every, [])]
    for first, second in itertools.permutations(ways, 2):
        parties = masked()
        assert word(parties, "s0", listing(parties, first[0], "s0", *first[1:])) == ""
        refused = word(parties, "s0", listing(parties, second[0], "s0", *second[1:]))
        assert refused == "answered"
        # The same request gets the same bytes.
        again = listing(parties, first[0], "s0", *first[1:])
        assert parties.answer("s0", again) == parties.answer("s0", again)


def test_a_late_vector_gets_no_seed():
    """s3 dealt, and sends its counts when the list is out: its key may be known, its seed not."""
    parties = masked(gone={"s3": "masked"})
    found = parties.tally.advance((), NOW, "survivors")
    parties.tally.take(
        "masked",
        "s3",
        parties.answer("s3", ask(parties.round, "masked", parties.lead, {})),
        NOW,
    )
    assert sorted(found) == sorted(parties.tally.listed.sites) == ["s0", "s1", "s2"]
    assert list(parties.tally.listed.others) == ["s3"]
    for name, request in found.items():
        assert word(parties, name, request) == ""
    every = listing(parties, "unmask", "s0", ["s0", "s1", "s2"], ["s3"])
    record = Message.read(every, parties.lead.card)
    late = {"masked": files.unpack(parties.counts["s3"].content, "s3").digest}
    late["seed"] = record.body["others"].pop("s3")
    record.body["sites"]["s3"] = late
    made = ask(parties.round, "unmask", parties.lead, record.body, record.arrays)
    assert word(parties, "s0", made) == "answered"


@pytest.mark.parametrize(
    ("sites", "others", "refused"),
    [
        (["s0", "s1"], ["s3"], "sites"),  # too few
        (["s1", "s2", "s3"], [], "sites"),  # without this site
        (["s0", "s1", "s2"], ["s0"], "request"),  # in the sum, and outside
    ],
)
@pytest.mark.parametrize("step", ["survivors", "unmask"])
def test_lists_that_no_site_accepts(step, sites, others, refused):
    parties = masked()
    assert word(parties, "s0", listing(parties, step, "s0", sites, others)) == refused
    assert parties.stores["s0"].step("", step) is None


@pytest.mark.parametrize("step", ["survivors", "unmask"])
def test_the_request_of_another_site_is_no_reason_to_complain(step):
    """Whoever can write to a folder can put it there; the right one is answered afterwards."""
    parties = masked()
    names = ["s0", "s1", "s2", "s3"]
    assert word(parties, "s0", listing(parties, step, "s1", names)) == "request"
    answer = parties.answer("s0", listing(parties, step, "s0", names))
    assert "complaints" not in Message.read(answer, parties.keys["s0"].card).body


@pytest.mark.parametrize("entry", ["masked", "seed"])
def test_a_list_with_another_answer_of_this_site(entry):
    parties = masked()
    request = Message.read(listing(parties, "unmask", "s0", parties.keys), parties.lead.card)
    request.body["sites"]["s0"][entry] = "ab" * 32
    made = ask(parties.round, "unmask", parties.lead, request.body, request.arrays)
    assert word(parties, "s0", made) == "sites"


def test_shares_before_enough_sites_have_signed():
    parties = masked(5, 3, {"s4": "masked"})
    signed = {}
    for name, request in parties.tally.advance((), NOW, "survivors").items():
        answer = Message.read(parties.answer(name, request), parties.keys[name].card)
        signed[name] = answer.body["signature"]

    def asked(some):
        return word(parties, "s0", ask(parties.round, "unmask", parties.lead, {"signed": some}))

    two = {name: signed[name] for name in ("s0", "s1")}
    assert asked(two) == "sites"
    assert asked(two | {"s2": signed["s1"]}) == "shares"  # under another name
    late = parties.keys["s4"].sign(LIST, parties.tally.listed.digest(parties.round))
    assert asked(two | {"s4": late}) == "shares"  # who is not on the list
    assert asked(two | {"s2": 7}) == "request"
    assert asked({}) == "sites"
    assert word(parties, "s0", ask(parties.round, "unmask", parties.lead, {})) == "request"
    assert asked(two | {"s2": signed["s2"]}) == ""


def test_a_key_that_the_coordinator_has_not_seen_counts_if_sites_masked_with_it():
    """In a folder, sites see a key before the coordinator does, and settle the keys alone."""
    parties = masked()
    late = Tally(parties.round, parties.lead)
    for step, name, content in parties.log:
        if (step, name) != ("keys", "s3"):
            assert late.take(step, name, content, NOW) == ""
    late.close_keys()
    assert sorted(late.decided.keys) == ["s0", "s1", "s2", "s3"]
    assert late.present == ["s0", "s1", "s2", "s3"]
    assert late.found_out == {}


def test_a_key_that_only_some_sites_know_is_not_masked_with():
    """The coordinator gives s0 another key of s3: the two masks of s0 and s3 would not cancel."""
    parties = Parties(4, 3)
    requests = parties.tally.advance((), NOW, "keys")
    drawn = [("keys", name, parties.answer(name, one)) for name, one in requests.items()]
    parties.log += drawn
    parties.tally.advance(drawn, NOW, "shares")
    keys = {name: public_keys(parties, name).content for name in parties.keys}
    _, other = draw(parties.round, parties.keys["s3"])
    parties.log.insert(0, ("keys", "s3", other))
    odd = keys | {"s3": public_keys(parties, "s3").content}
    for name in parties.keys:
        body, arrays = passed_on(odd if name == "s0" else keys)
        asked = ask(parties.round, "shares", parties.lead, body, arrays)
        parties.tally.take("shares", name, parties.answer(name, asked), NOW)
        asked = ask(parties.round, "masked", parties.lead, {})
        parties.tally.take("masked", name, parties.answer(name, asked), NOW)
    # Proved by what s0 masked with: s3 signed two keys, and the sum is that of the others.
    assert set(parties.tally.found_out) == {"s3"}
    assert parties.tally.present == ["s0", "s1", "s2"]
    # The lists for s0 and for the others name the keys that they do not have in common.
    for name, request in parties.tally.advance((), NOW, "survivors").items():
        assert word(parties, name, request) == ""
        assert "keys" in Message.read(request, parties.lead.card).body


def test_a_reader_that_gives_a_share_that_its_dealer_did_not_sign_is_named():
    parties = Parties(4, 3)

    def change(step, name, answer):
        if (step, name) != ("unmask", "s0"):
            return answer
        seeds = Message.read(answer, parties.keys[name].card).arrays["seeds"].copy()
        seeds[1, 0] ^= 1
        return signed_anew(parties.round, parties.keys[name], answer, arrays={"seeds": seeds})

    assert summed(parties, change=change) == ["s0", "s1", "s2", "s3"]
    assert parties.tally.found_out == {"s0": "gave a share that its dealer, 's1', did not sign"}


# --- requests, and answers, of any form -----------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "arrays"),
    [
        ({"sites": 7, "others": {}}, {}),
        ({"sites": {}, "others": {}, "keys": 3}, {}),
        ({"sites": {"s0": {"masked": "ab" * 32}}, "others": {}}, {}),
        ({"sites": {"s0": {"masked": 3, "seed": 4}}, "others": {}}, {}),
        ({"sites": {}, "others": {"s0": "ab"}}, {}),
        ({"sites": {}, "others": {"mallory": "ab" * 32}}, {}),
        ({"sites": {}, "more": {}}, {}),
        ({"sites": {}, "others": {}}, {"rows": np.zeros((2, 3), np.uint8)}),
        ({"sites": {}, "others": {}}, {"rows": np.zeros((0, 158), np.float64)}),
    ],
)
@pytest.mark.parametrize("step", ["survivors", "unmask"])
def test_lists_of_another_form(step, body, arrays):
    parties = masked()
    request = ask(parties.round, step, parties.lead, body | {"reader": "s0"}, arrays)
    assert word(parties, "s0", request) in ("request", "sites")
    assert parties.stores["s0"].step("", step) is None


@pytest.mark.parametrize("names", [None, 3, ["s1", "s0"], ["s0", "s0"], ["mallory"], [1, 2]])
def test_keys_that_are_passed_on_in_another_form(names):
    parties = Parties(3, 2)
    parties.play()
    keys = [public_keys(parties, name).content for name in ("s0", "s1")]
    request = ask(
        parties.round, "shares", parties.lead, {"names": names}, {"keys": table(keys, 128)}
    )
    assert word(parties, "s0", request) == "request"


@pytest.mark.parametrize(
    "arrays",
    [
        {"keys": np.zeros(3, np.uint8)},
        {"keys": np.zeros((3, 128), np.uint8)},
        {"keys": np.zeros((3, 128), np.float64)},
        {"rows": np.zeros((2, 158), np.uint8)},
        {"rows": np.zeros((3, 157), np.uint8)},
    ],
)
def test_a_dealing_of_another_form_is_not_taken(arrays):
    parties = Parties(3, 2)

    def change(step, name, answer):
        if (step, name) != ("shares", "s0"):
            return answer
        return signed_anew(parties.round, parties.keys[name], answer, arrays=arrays)

    assert summed(parties, change=change) == ["s1", "s2"]
    assert parties.tally.lost["s0"] == "shares: garbled"
    assert parties.tally.found_out == {}


@pytest.mark.parametrize("name", ["names", "seed"])
def test_a_dealing_with_other_entries_is_not_taken(name):
    parties = Parties(3, 2)
    parties.play()
    content = next(c for step, n, c in parties.log if (step, n) == ("shares", "s0"))
    for value in (None, 3, [], "ab"):
        made = signed_anew(parties.round, parties.keys["s0"], content, {name: value})
        with pytest.raises(RoundError):
            Dealt.of_message(parties.round, Message.read(made, parties.keys["s0"].card))


def test_steps_before_the_earlier_ones():
    parties = Parties(3, 2)
    assert word(parties, "s0", ask(parties.round, "masked", parties.lead, {})) == "order"
    signed = ask(parties.round, "unmask", parties.lead, {"signed": {}})
    assert word(parties, "s0", signed) == "order"
    # The list of a round in which all have answered, to a site that has not.
    parties = masked(3, 2)
    asked = listing(parties, "survivors", "s0", parties.keys)
    parties.stores["s0"].steps.clear()
    assert word(parties, "s0", asked) == "order"
    assert parties.stores["s0"].steps == {}


def test_keys_that_lack_this_site_or_too_many():
    parties = Parties(4, 3)
    parties.log += [
        ("keys", n, parties.answer(n, r)) for n, r in parties.tally.requests("keys").items()
    ]
    keys = {name: public_keys(parties, name).content for name in parties.keys}
    for some in (["s0", "s1"], ["s1", "s2", "s3"]):
        body, arrays = passed_on({name: keys[name] for name in some})
        assert (
            word(parties, "s0", ask(parties.round, "shares", parties.lead, body, arrays)) == "sites"
        )
    wrong = keys | {"s1": keys["s2"]}
    request = ask(parties.round, "shares", parties.lead, *passed_on(wrong))
    assert word(parties, "s0", request) == "shares"
    assert parties.stores["s0"].step("", "shares") is None


def test_keys_that_are_no_keys_are_named():
    """A point of small order would give everyone the same key."""
    parties = Parties(3, 2)

    def change(step, name, answer):
        if (step, name) != ("keys", "s0"):
            return answer
        keys = parties.keys[name]
        bad = RoundKeys.sign(parties.round, keys, "00" * 32, masks.public_of(masks.draw_key()))
        return signed_anew(parties.round, keys, answer, arrays={"keys": table([bad.content], 128)})

    assert summed(parties, change=change) == ["s1", "s2"]
    assert parties.tally.found_out == {"s0": "signed a key for this round that is no key"}


def test_a_submission_that_changed_on_disk_is_not_added():
    parties = Parties(3, 2)
    parties.play()
    with pytest.raises(RoundError, match="has changed since it was read"):
        parties.tally.result(lambda name: parties.sent("s0"))


def test_the_number_of_the_protocol_is_in_every_key(monkeypatch):
    before = masks.derive(bytes(32), "any"), SumList().digest(Parties(3, 2).round)
    monkeypatch.setattr(masks, "PROTOCOL", PROTOCOL + 1)
    monkeypatch.setattr("hushtable_federation.protocol.messages.PROTOCOL", PROTOCOL + 1)
    assert masks.derive(bytes(32), "any") != before[0]
    assert SumList().digest(Parties(3, 2).round) != before[1]


def test_a_site_that_was_killed_after_it_recorded_its_counts_helps_all_the_same():
    """Its book has the counts, and not the step: it is on the list as it answered."""
    parties = masked()
    del parties.stores["s0"].steps["masked"]
    names = ["s0", "s1", "s2"]
    assert word(parties, "s0", listing(parties, "survivors", "s0", names, ["s3"])) == ""


def test_shares_are_given_at_once_for_the_whole_roster_only():
    parties = masked()
    request = listing(parties, "unmask", "s0", ["s0", "s1", "s2"], ["s3"])
    assert word(parties, "s0", request) == "sites"
    assert word(parties, "s0", listing(parties, "unmask", "s0", parties.keys)) == ""
