"""Masks that cancel, shares that give a secret back, and what a single submission shows."""

import itertools
import random

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import x25519
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hushtable.errors import RoundError
from hushtable_federation.keys import Keys
from hushtable_federation.masks import (
    PRIME,
    agreed_key,
    combine,
    decode,
    pairwise_mask,
    polynomial,
    stream,
    value,
    weights,
)

ROWS = 4096


def masks(keys, purpose):
    """Return the mask of each site, from keys that each agrees on by itself."""
    found = {}
    for me in keys:
        name = me.card.name
        agreed = {
            other.card.name: agreed_key(
                me.masking, other.card.masking, purpose, *sorted((name, other.card.name))
            )
            for other in keys
            if other is not me
        }
        found[name] = pairwise_mask(name, agreed, ROWS)
    return found


@pytest.mark.parametrize("k", [2, 3, 10])
def test_masks_cancel_and_hide(k):
    keys = [Keys.generate(f"s{i}") for i in range(k)]
    found = masks(keys, "round one")
    assert not sum(found.values()).any()
    for mask in found.values():
        assert len(np.unique(mask)) == ROWS
    # Another purpose, other masks.
    other = masks(keys, "round two")
    assert not (found["s0"] == other["s0"]).any()


def test_a_key_is_the_same_at_both_ends_only_for_the_same_purpose():
    a, b = Keys.generate("a"), Keys.generate("b")
    ours = agreed_key(a.masking, b.card.masking, "x", "1")
    assert ours == agreed_key(b.masking, a.card.masking, "x", "1")
    assert ours != agreed_key(b.masking, a.card.masking, "x", "2")
    assert len(ours) == 32


@pytest.mark.parametrize("public", ["00" * 32, "01" + "00" * 31, "aa", "zz"])
def test_a_public_key_that_is_none(public):
    with pytest.raises(RoundError, match="not valid to agree on masks"):
        agreed_key(Keys.generate("a").masking, public, "x")


def test_sites_of_every_version_agree():
    """On a mask, or a sum is lost: these are kept for ever."""
    private = x25519.X25519PrivateKey.from_private_bytes
    mine, other = private(bytes(range(32))), private(bytes(range(32, 64)))
    theirs = other.public_key().public_bytes_raw().hex()
    assert agreed_key(mine, theirs, "masks", "a", "b").hex() == (
        "e1c7b0775538dc24c957e48db3b77bf347fecdc1a645d803aa1dad263ad20c8d"
    )


def test_a_stream_is_chacha20():
    """The first block of RFC 8439, appendix A.1, test vector 1: key and nonce zero."""
    words = stream(bytes(32), 8)
    expected = bytes.fromhex(
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
    )
    assert words.astype("<u8").tobytes() == expected


def test_masked_counts_look_uniform():
    keys = [Keys.generate(f"s{i}") for i in range(3)]
    counts = np.arange(ROWS, dtype=np.int64) % 7  # anything but uniform
    for mask in masks(keys, "round").values():
        seen = np.bincount((counts.view(np.uint64) + mask).view(np.uint8), minlength=256)
        assert stats.chisquare(seen).pvalue > 1e-6
    plain = np.bincount(counts.view(np.uint8), minlength=256)
    assert stats.chisquare(plain).pvalue < 1e-6


# --- shares -----------------------------------------------------------------------------------


@given(st.binary(min_size=32, max_size=32), st.integers(1, 12), st.integers(0, 8), st.randoms())
def test_any_threshold_of_shares_gives_the_secret(hidden, threshold, more, random):
    of_secret = polynomial(hidden, threshold)
    places = random.sample(range(1, threshold + more + 1), threshold)
    assert combine({place: value(of_secret, place) for place in places}) == hidden


def test_fewer_shares_give_nothing():
    """Of two shares of three, every secret is as likely: some third share gives each."""
    secret, seen = bytes(range(32)), set()
    for _ in range(20):
        one, two, three = (value(polynomial(secret, 3), place) for place in (1, 2, 3))
        assert combine({1: one, 2: two}) != secret
        seen |= {one, two, three}
    assert len(seen) == 60
    for other in (bytes(32), b"\xff" * 32):
        # The third share that, with these two, gives another secret.
        at_0 = dict(zip((0, 1, 2), (int.from_bytes(other), one, two), strict=True))
        third = sum(w * s for w, s in zip(weights((0, 1, 2), 3), at_0.values(), strict=True))
        assert combine({1: one, 2: two, 3: third % PRIME}) == other


def test_a_value_beyond_all_secrets_is_none():
    """The field has 297 numbers more than there are secrets of 32 bytes."""
    assert combine({1: 2**256 - 1}) == b"\xff" * 32
    assert combine({1: 2**256}) is None


@pytest.mark.parametrize(("secret", "threshold"), [(bytes(32), 0), (bytes(31), 2)])
def test_polynomials_that_cannot_be(secret, threshold):
    with pytest.raises(ValueError, match="threshold >= 1, and a secret of 32 bytes"):
        polynomial(secret, threshold)


# --- wrong shares ---------------------------------------------------------------------------------

#: How shares may be wrong, by place: together on another polynomial, too.
WRONG = {
    "shifted": lambda shares, places, rng: {at: (shares[at] + 1) % PRIME for at in places},
    "zeros": lambda shares, places, rng: dict.fromkeys(places, 0),
    "random": lambda shares, places, rng: {at: rng.randrange(PRIME) for at in places},
    "swapped": lambda shares, places, rng: dict(
        zip(places, [shares[at] for at in reversed(places)], strict=True)
    ),
    "of another secret": lambda shares, places, rng: {
        at: (shares[at] + 7 * at + 5) % PRIME for at in places
    },
}


def brute_force(shares, threshold):
    """The one secret whose polynomial all shares lie on but half of those beyond the threshold."""
    found = set()
    for some in itertools.combinations(shares, threshold):
        line = {at: shares[at] for at in some}
        by = weights(some, 0)
        at_zero = sum(w * s for w, s in zip(by, line.values(), strict=True)) % PRIME
        on = sum(
            sum(w * s for w, s in zip(weights(some, at), line.values(), strict=True)) % PRIME == got
            for at, got in shares.items()
        )
        if 2 * (len(shares) - on) <= len(shares) - threshold and at_zero < 2**256:
            found.add(at_zero.to_bytes(32))
    assert len(found) <= 1
    return next(iter(found), None)


@pytest.mark.parametrize("how", WRONG)
@given(st.binary(min_size=32, max_size=32), st.integers(1, 5), st.integers(0, 4), st.randoms())
def test_decoding_agrees_with_trying_all_choices(how, hidden, threshold, more, random):
    """Of as many wrong shares as it corrects, and of any more."""
    n = threshold + more
    coefficients = polynomial(hidden, threshold)
    places = random.sample(range(1, 30), n)
    shares = {at: value(coefficients, at) for at in places}
    wrong = random.sample(places, random.randint(0, n))
    shares |= WRONG[how](shares, wrong, random)
    found = decode(shares, threshold)
    assert found == brute_force(shares, threshold)
    if 2 * len(wrong) <= more:
        assert found == hidden


@pytest.mark.parametrize("how", WRONG)
@pytest.mark.parametrize(("n", "threshold"), [(20, 12), (100, 53), (100, 100), (100, 1)])
def test_as_many_wrong_shares_as_half_of_those_beyond_the_threshold(how, n, threshold):
    rng = random.Random(n)
    coefficients = polynomial(bytes(range(32)), threshold)
    shares = {at: value(coefficients, at) for at in range(1, n + 1)}
    wrong = rng.sample(range(1, n + 1), (n - threshold) // 2)
    assert decode(shares | WRONG[how](shares, wrong, rng), threshold) == bytes(range(32))
