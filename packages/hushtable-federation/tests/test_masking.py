"""Masks that cancel, shares that give a secret, and rows that only their reader opens."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import places
from hushtable.errors import RoundError
from hushtable_federation.keys import Keys
from hushtable_federation.protocol import masks
from hushtable_federation.protocol.masks import PRIME, Context, Row, combine, share

N_WORDS = 40_000  # more than one piece
ROUND = "ab" * 32


def masks_of(k, round_id=ROUND):
    """Return the mask of each of k sites, from keys that each agrees on by itself."""
    private = {f"s{i}": masks.draw_key() for i in range(k)}
    found = {}
    for name, mine in private.items():
        found[name] = np.zeros(N_WORDS, np.uint64)
        for other in private.keys() - {name}:
            key = masks.pair_key(mine, masks.public_of(private[other]), round_id, name, other)
            masks.add_pair(name, other, key, found[name])
    return found


@pytest.mark.parametrize("k", [2, 3, 10])
def test_masks_cancel_and_hide(k):
    found = masks_of(k)
    assert not sum(found.values()).any()
    for mask in found.values():
        assert len(np.unique(mask)) == N_WORDS


@pytest.mark.parametrize("n_words", [8, 32_768, 32_769])
def test_a_stream_is_chacha20(n_words):
    """The first block of RFC 8439, appendix A.1, test vector 1: key and nonce zero."""
    words = np.zeros(n_words, np.uint64)
    masks.add_stream(bytes(32), words)
    assert words[:8].astype("<u8").tobytes() == bytes.fromhex(
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
    )
    assert len(np.unique(words)) == n_words
    masks.add_stream(bytes(32), words, subtract=True)
    assert not words.any()


def test_keys_are_equal_at_both_ends_and_for_one_purpose_only():
    a, b = masks.draw_key(), masks.draw_key()
    public_a, public_b = masks.public_of(a), masks.public_of(b)
    ours = masks.pair_key(a, public_b, ROUND, "a", "b")
    assert ours == masks.pair_key(b, public_a, ROUND, "b", "a")
    others = {
        masks.pair_key(a, public_b, "cd" * 32, "a", "b"),
        masks.pair_key(a, public_b, ROUND, "a", "c"),
        masks.seal_key(a, public_b, ROUND, "a", "b"),
        masks.own_key(a, ROUND, "a"),
        masks.own_key(a, ROUND, "b"),
    }
    assert len(others | {ours}) == 6
    assert set(map(len, others | {ours})) == {32}


@pytest.mark.parametrize("public", ["00" * 32, "01" + "00" * 31, "aa", "zz"])
def test_a_public_key_that_is_none(public):
    with pytest.raises(RoundError, match="no keys can be agreed with it"):
        masks.exchange(masks.draw_key(), public)


# --- shares ---------------------------------------------------------------------------------------


@given(st.binary(min_size=32, max_size=32), st.integers(1, 12), st.integers(0, 8), st.randoms())
def test_any_threshold_of_shares_gives_the_secret(hidden, threshold, more, random):
    everybody = range(1, threshold + more + 1)
    shares = dict(zip(everybody, share(hidden, threshold, everybody), strict=True))
    some = random.sample(everybody, threshold)
    assert combine({place: shares[place] for place in some}) == hidden


def test_fewer_shares_give_nothing():
    """Of two shares of three, every secret is as likely: some third share gives each."""
    secret, seen = bytes(range(32)), set()
    for _ in range(20):
        one, two, three = share(secret, 3, (1, 2, 3))
        assert combine({1: one, 2: two}) != secret
        seen |= {one, two, three}
        # On the parabola through (0, other), (1, one), (2, two): at 3, other - 3 one + 3 two.
        other = b"\xff" * 32
        first, second = int.from_bytes(one), int.from_bytes(two)
        third = (int.from_bytes(other) - 3 * first + 3 * second) % PRIME
        assert combine({1: one, 2: two, 3: third.to_bytes(33)}) == other
    assert len(seen) == 60


def test_a_value_beyond_all_secrets_is_none():
    """The field has 297 numbers more than there are secrets of 32 bytes."""
    assert combine({1: (2**256 - 1).to_bytes(33)}) == b"\xff" * 32
    assert combine({1: (2**256).to_bytes(33)}) is None


@pytest.mark.parametrize(("secret", "threshold"), [(bytes(32), 0), (bytes(31), 2)])
def test_polynomials_that_cannot_be(secret, threshold):
    with pytest.raises(ValueError, match="threshold >= 1, and a secret of 32 bytes"):
        share(secret, threshold, [1])


# --- rows -----------------------------------------------------------------------------------------

DEALER = Keys.generate("d")
CONTEXT = Context(ROUND, "d", "r", "11" * 32, "22" * 32)
ROW = Row.sign(DEALER, CONTEXT, b"k" * 33, b"s" * 33)


def test_a_row_is_read_as_it_was_sealed():
    key = masks.draw_key()
    sealed = masks.seal_row(key, ROW)
    assert len(sealed) == masks.SEALED_BYTES == 158
    assert Row.read(DEALER.card, CONTEXT, masks.open_row(key, sealed)) == ROW
    assert masks.seal_row(key, ROW) != sealed


@pytest.mark.parametrize("length", [0, 5, 12, 157])
def test_a_row_that_was_cut_does_not_open(length):
    key = masks.draw_key()
    with pytest.raises(RoundError, match="does not open"):
        masks.open_row(key, masks.seal_row(key, ROW)[:length])


def test_a_row_opens_only_with_its_key_and_unchanged():
    key = masks.draw_key()
    sealed = masks.seal_row(key, ROW)
    with pytest.raises(RoundError, match="does not open"):
        masks.open_row(masks.draw_key(), sealed)
    for at in (0, 12, -1):
        changed = bytearray(sealed)
        changed[at] ^= 1
        with pytest.raises(RoundError, match="does not open"):
            masks.open_row(key, bytes(changed))


@pytest.mark.parametrize("entry", Context._fields)
def test_a_signature_is_bound_to_all_of_its_context(entry):
    """So a row serves no other round, dealer, reader, keys or seed."""
    content = b"".join(ROW)
    assert Row.read(DEALER.card, CONTEXT, content) == ROW
    with pytest.raises(RoundError, match="do not have its signature"):
        Row.read(DEALER.card, CONTEXT._replace(**{entry: "33" * 32}), content)


@pytest.mark.parametrize("at", [0, 33, 66, 129])
def test_a_row_whose_dealer_did_not_sign_it(at):
    changed = bytearray(b"".join(ROW))
    changed[at] ^= 1
    with pytest.raises(RoundError, match="do not have its signature"):
        Row.read(DEALER.card, CONTEXT, bytes(changed))
    with pytest.raises(RoundError, match="do not have its signature"):
        Row.read(Keys.generate("d").card, CONTEXT, b"".join(ROW))


@pytest.mark.parametrize("of_seed", [False, True])
def test_one_share_is_proved_without_the_other(of_seed):
    given = ROW.prove_seed() if of_seed else ROW.prove_key()
    assert len(given) == masks.PROVED_BYTES
    assert masks.is_proved(DEALER.card, CONTEXT, given, of_seed=of_seed)
    assert (b"s" * 33 if of_seed else b"k" * 33) in given
    assert (b"k" * 33 if of_seed else b"s" * 33) not in given
    assert not masks.is_proved(DEALER.card, CONTEXT, given, of_seed=not of_seed)
    for at in (0, 33, 65, 128):
        changed = bytearray(given)
        changed[at] ^= 1
        assert not masks.is_proved(DEALER.card, CONTEXT, bytes(changed), of_seed=of_seed)


# --- golden ---------------------------------------------------------------------------------------


def test_the_vectors_of_the_protocol_are_those_that_were_published():
    """Sites of two versions agree on each key and mask, or their sums are lost."""
    from golden_sum import vectors

    published = json.loads((places.GOLDEN / "masked-sum-2.json").read_text())
    assert vectors() == published
