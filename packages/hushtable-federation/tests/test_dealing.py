"""What a site deals: any t rows give its secrets, and anyone who is dealt another row finds it."""

import itertools
import secrets

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dealers
from hushtable.errors import RoundError
from hushtable_federation import masks
from hushtable_federation.masks import (
    NONCE_BYTES,
    PRIME,
    SHARE_BYTES,
    Dealing,
    opening_bytes,
)

ABOUT = b"a round, a dealer"
KEYS = [bytes([j]) * 32 for j in range(1, 5)]


def shares_of(row):
    """Return the shares in a row, as they lie there."""
    return [row[i : i + SHARE_BYTES] for i in range(NONCE_BYTES, len(row), SHARE_BYTES)]


@pytest.fixture(scope="module")
def dealt():
    """Four secrets for five readers, of whom three are enough."""
    return Dealing.deal(ABOUT, KEYS, 3, 5)


@given(
    st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=4),
    st.integers(1, 6),
    st.integers(0, 4),
    st.randoms(),
)
def test_any_threshold_of_rows_gives_each_secret(keys, threshold, more, random):
    n = threshold + more
    dealing, rows = Dealing.deal(ABOUT, keys, threshold, n)
    places = random.sample(range(1, n + 1), threshold)
    for j, key in enumerate(keys):
        some = {place: int.from_bytes(shares_of(rows[place - 1])[j]) for place in places}
        found = masks.combine(some)
        assert found == key
        assert dealing.fits(j, found)
    for place, row in enumerate(rows, 1):
        assert len(row) == dealing.row_bytes
        opening = dealing.opening(row, place)
        assert len(opening) == opening_bytes(len(keys))
        assert dealing.shows(place, opening, dict(enumerate(shares_of(row))))


def test_fewer_rows_give_nothing(dealt):
    """Not with the proof, either: it is random, and of each dealing another."""
    dealing, rows = dealt
    for some in itertools.combinations(range(1, 6), 2):
        for j in range(len(KEYS)):
            shares = {place: int.from_bytes(shares_of(rows[place - 1])[j]) for place in some}
            assert not dealing.fits(j, masks.combine(shares))
    proofs = {Dealing.deal(ABOUT, KEYS, 3, 5)[0].proof.tobytes() for _ in range(20)}
    assert len(proofs) == 20
    # Each byte of it is as likely as any other: of 200 proofs, none is rare or frequent.
    bits = np.unpackbits(
        np.stack([Dealing.deal(ABOUT, KEYS[:1], 2, 2)[0].proof[:, 1:] for _ in range(200)]), axis=-1
    )
    assert 40 < bits.sum(axis=0).min() <= bits.sum(axis=0).max() < 160


def test_a_secret_is_the_one_that_was_committed_to_and_no_other(dealt):
    dealing, _ = dealt
    for i, j in itertools.product(range(4), repeat=2):
        assert dealing.fits(i, KEYS[j]) == (i == j)
    assert not dealing.fits(0, None)


def test_a_row_that_is_changed_in_any_byte_is_refused(dealt):
    dealing, rows = dealt
    assert dealing.opening(rows[1], 2) is not None
    for i in range(len(rows[1])):
        changed = rows[1][:i] + bytes([rows[1][i] ^ 1]) + rows[1][i + 1 :]
        assert dealing.opening(changed, 2) is None, i
    for row, place in (
        (rows[1], 1), (rows[1], 0), (rows[1], 6), (rows[1], -4), (rows[1][:-1], 2),
        (rows[1] + b"0", 2), (b"", 2),
    ):  # fmt: skip
        assert dealing.opening(row, place) is None


def test_a_share_beyond_the_field_is_refused():
    """It would be another text of the same number."""

    def change(place, row):
        end = NONCE_BYTES + SHARE_BYTES
        number = int.from_bytes(row[NONCE_BYTES:end]) + PRIME
        return row[:NONCE_BYTES] + number.to_bytes(SHARE_BYTES) + row[end:]

    dealing, rows = dealers.deal(ABOUT, KEYS, 3, 5, change=change)
    assert [dealing.opening(row, i) for i, row in enumerate(rows, 1)] == [None] * 5


def test_a_giver_shows_single_shares_and_no_others(dealt):
    dealing, rows = dealt
    opening, shares = dealing.opening(rows[1], 2), shares_of(rows[1])
    assert dealing.shows(2, opening, {3: shares[3]})
    assert not dealing.shows(2, opening, {2: shares[3]})
    assert not dealing.shows(2, opening, {3: shares[3][:-1]})
    assert not dealing.shows(2, opening, {3: shares_of(rows[2])[3]})
    assert not dealing.shows(3, opening, {3: shares[3]})
    for i in range(len(opening)):
        changed = opening[:i] + bytes([opening[i] ^ 1]) + opening[i + 1 :]
        assert not dealing.shows(2, changed, {}), i
    for cut in (b"", opening[:-1], opening + b"0"):
        assert not dealing.shows(2, cut, {})


# --- dealers who lie ------------------------------------------------------------------------------


def off(dealing, rows):
    """Return the places of the readers whose row is refused."""
    return [i for i, row in enumerate(rows, 1) if dealing.opening(row, i) is None]


def test_a_dealer_by_hand_that_does_not_lie_is_believed():
    assert off(*dealers.deal(ABOUT, KEYS, 3, 5)) == []


@pytest.mark.parametrize("places", [[1], [2, 5], [1, 2, 3, 4, 5]])
@pytest.mark.parametrize("j", [0, 3])
def test_whoever_is_off_the_polynomials_finds_it(places, j):
    """All is committed to as it was dealt; the proof is that of most of it."""

    def change(place, row):
        return dealers.shifted(row, j, secrets.randbelow(PRIME - 1) + 1) if place in places else row

    assert off(*dealers.deal(ABOUT, KEYS, 3, 5, change=change)) == places


def test_shifts_that_cancel_between_two_secrets_are_found():
    """Weights come after the commitments: no one can choose shares by them."""

    def change(place, row):
        return dealers.shifted(dealers.shifted(row, 0, 1), 1, -1) if place == 4 else row

    assert off(*dealers.deal(ABOUT, KEYS, 3, 5, change=change)) == [4]


def test_a_polynomial_of_a_higher_degree_is_found():
    """With it, more sites than the round's least would be needed."""
    assert off(*dealers.deal(ABOUT, KEYS, 3, 5, degree=3)) == [1, 2, 3, 4, 5]


def test_a_lower_degree_is_the_dealers_own_business():
    """It gives away its own secrets to fewer; no one else's."""
    dealing, rows = dealers.deal(ABOUT, KEYS, 3, 5, degree=2)
    assert off(dealing, rows) == []


def test_a_commitment_to_another_key_shows_in_the_end():
    others = [secrets.token_bytes(32) for _ in KEYS]
    dealing, rows = dealers.deal(ABOUT, KEYS, 3, 5, commit=others)
    assert off(dealing, rows) == []
    assert [dealing.fits(j, key) for j, key in enumerate(KEYS)] == [False] * 4


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("secrets", lambda a: a[:, :31]),
        ("readers", lambda a: a.astype(np.uint64)),
        ("proof", lambda a: a[:, :32]),
        ("proof", lambda a: a[0]),
    ],
)
def test_a_public_part_of_another_form(dealt, field, change):
    parts = {name: getattr(dealt[0], name) for name in ("secrets", "readers", "proof")}
    parts[field] = change(parts[field])
    with pytest.raises(RoundError, match=f"dealt with {field} of the wrong form"):
        Dealing(ABOUT, **parts)


@pytest.mark.parametrize("rows", [slice(2), [0, 1, 2, 2], slice(0)])
def test_a_proof_of_another_length(dealt, rows):
    """Of fewer coefficients than the threshold, or more: the round's terms say how many."""
    dealing, dealt_rows = dealt
    other = Dealing(ABOUT, dealing.secrets, dealing.readers, dealing.proof[rows])
    assert off(other, dealt_rows) == [1, 2, 3, 4, 5]


def test_all_is_bound_to_round_and_dealer(dealt):
    """A dealing of another round, or of another site, is none here: nothing can be replayed."""
    dealing, rows = dealt
    other = Dealing(b"a round, another", dealing.secrets, dealing.readers, dealing.proof)
    assert other._weights != dealing._weights
    assert off(other, rows) == [1, 2, 3, 4, 5]
    assert not any(other.fits(j, key) for j, key in enumerate(KEYS))
    opening = dealing.opening(rows[0], 1)
    assert not other.shows(1, opening, {})


def test_weights_follow_from_all_that_was_committed_to(dealt):
    dealing, _ = dealt
    seen = {tuple(dealing._weights)}
    for name in ("secrets", "readers"):
        parts = {one: getattr(dealing, one).copy() for one in ("secrets", "readers")}
        parts[name][-1, -1] ^= 1
        seen.add(tuple(Dealing(ABOUT, **parts, proof=dealing.proof)._weights))
    assert len(seen) == 3
    assert all(0 <= weight < PRIME for weight in dealing._weights)
    assert masks._WEIGHT_BYTES * 8 - PRIME.bit_length() >= 120  # as good as uniform
