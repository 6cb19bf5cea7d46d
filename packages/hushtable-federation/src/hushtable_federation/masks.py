"""Masks that cancel only in the sum: keys that sites agree on, and dealt, sealed shares of them."""

import hashlib
import itertools
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import rfc8785
from numpy.typing import NDArray

from hushtable.errors import RoundError
from hushtable_federation.keys import crypto, stream
from hushtable_federation.round import Round

Words = NDArray[np.uint64]


def pairwise_mask(name: str, keys: Mapping[str, bytes], n_words: int) -> Words:
    """Add up the masks of a site with all other sites, from the keys agreed on with them.

    In the sum over all sites, they cancel.
    """
    total = np.zeros(n_words, np.uint64)
    for other, key in keys.items():
        add = np.add if name < other else np.subtract
        add(total, stream(key, n_words), out=total)
    return total


def agreed_key(mine: Any, theirs: str, *purpose: str) -> bytes:
    """Return the 32 bytes that the holders of a private and a public key agree on.

    The purpose is the same for both; a key for another purpose, round or pair is unrelated. Raise
    `RoundError` if the other's key is not valid.
    """
    c = crypto()
    try:
        shared = mine.exchange(c.X25519PublicKey.from_public_bytes(bytes.fromhex(theirs)))
    except ValueError:  # not a point on the curve, or one that gives everyone the same key
        raise RoundError(
            f"public key {theirs[:16]!r}...: it is not valid to agree on masks"
        ) from None
    info = rfc8785.dumps(["hushtable", *purpose])
    return bytes(c.HKDF(algorithm=c.SHA256(), length=32, salt=None, info=info).derive(shared))


@dataclass(frozen=True)
class RoundKeys:
    """Agree on masks and seals in one round, by one-time keys of X25519.

    Each site draws a pair for the round, and forgets the private half with the round: anyone who
    steals its other keys later cannot compute what these agreed on.

    Attributes
    ----------
    round : Round
        The round that all keys are bound to, and therefore its plan, terms and roster.
    me : str
        The site.
    private : X25519PrivateKey
        The site's own private half.
    public : dict of str to str
        Public keys of this site and of each site that it masks with, 64 hexadecimal digits.
    """

    round: Round
    me: str
    private: Any
    public: Mapping[str, str]

    def pairs(self) -> dict[str, bytes]:
        """Return the key of the mask with each other site.

        The site's book ensures that each key masks only one vector; keys of masks with lost sites
        are revealed.
        """
        return {name: self._agreed("online masks", name) for name in self.public if name != self.me}

    def seal(self, other: str) -> bytes:
        """Return the key that the site and another one, or itself, seal rows with."""
        return self._agreed("shares", other)

    def _agreed(self, purpose: str, other: str) -> bytes:
        pair = sorted((self.me, other))
        return agreed_key(self.private, self.public[other], purpose, self.round.round_id, *pair)


_NONCE = 12
#: By how much a sealed row is longer than the row.
SEAL_BYTES = _NONCE + 16


def place_of(round_: Round, name: str) -> int:
    """Return the place of a site's shares, counted from 1 in the order of the roster."""
    return round_.names.index(name) + 1


def seal_row(key: bytes, sender: str, reader: str, row: bytes) -> bytes:
    """Seal a row for its reader; see `opened`."""
    nonce = secrets.token_bytes(_NONCE)
    cipher = crypto().ChaCha20Poly1305(key)
    return nonce + bytes(cipher.encrypt(nonce, row, _between(sender, reader)))


def unseal_row(key: bytes, sender: str, reader: str, content: bytes) -> bytes:
    """Open a row that one site sealed for another.

    Raise `RoundError` if it was changed, or sealed with another key or for another site.
    """
    cipher = crypto().ChaCha20Poly1305(key)
    try:
        return bytes(cipher.decrypt(content[:_NONCE], content[_NONCE:], _between(sender, reader)))
    except (crypto().InvalidTag, ValueError):  # ValueError: too short for a nonce
        raise RoundError(f"the shares of {sender!r} for {reader!r} do not open") from None


def _between(sender: str, reader: str) -> bytes:
    return rfc8785.dumps([sender, reader])


#: The smallest prime above all secrets of 32 bytes.
PRIME = 2**256 + 297
SECRET_BYTES, SHARE_BYTES = 32, 33


def polynomial(secret: bytes, threshold: int) -> list[int]:
    """Return a random polynomial with this secret at 0, as coefficients from x^0."""
    if threshold < 1 or len(secret) != SECRET_BYTES:
        raise ValueError("needs threshold >= 1, and a secret of 32 bytes")
    return [int.from_bytes(secret), *random_numbers(threshold - 1)]


def random_numbers(n: int) -> list[int]:
    """Return n random numbers of the field."""
    return [secrets.randbelow(PRIME) for _ in range(n)]


def value(coefficients: Sequence[int], place: int) -> int:
    """Return a polynomial's value at a place."""
    found = 0
    for coefficient in reversed(coefficients):  # Horner's rule
        found = (found * place + coefficient) % PRIME
    return found


@lru_cache(10_000)
def weights(places: tuple[int, ...], at: int = 0) -> list[int]:
    """Return Lagrange's weights, which give a polynomial's value elsewhere from its values here.

    There are as many places as the threshold; the sum of values times weights is the value ``at``.
    """
    found = []
    for place in places:
        above, below = 1, 1
        for other in places:
            if other != place:
                above = above * (at - other) % PRIME
                below = below * (place - other) % PRIME
        found.append(above * pow(below, -1, PRIME) % PRIME)
    return found


def combine(shares: Mapping[int, int]) -> bytes | None:
    """Return the secret of shares, given by place; None if they do not belong together.

    There are as many shares as the threshold.
    """
    each = zip(weights(tuple(shares)), shares.values(), strict=True)
    found = sum(weight * share for weight, share in each) % PRIME
    return found.to_bytes(SECRET_BYTES) if found < 2**256 else None


def decode(shares: Mapping[int, int], threshold: int) -> bytes | None:
    """Return the secret of shares if at most half of those beyond the threshold are wrong.

    Of n shares, floor((n - threshold) / 2) may be wrong; return None if more are. This is the
    extended Euclidean algorithm, on the polynomial through all shares and the one that is 0 at all
    places: S. Gao, *A new algorithm for decoding Reed-Solomon codes* (2003).
    """
    places, n = tuple(shares), len(shares)
    zero = [1]
    for place in places:
        zero = _product(zero, [-place, 1])
    last, rest = zero, _through(shares, zero)
    before, factor = [0], [1]
    while 2 * (len(rest) - 1) >= n + threshold:
        quotient, remainder = _divided(last, rest)
        last, rest = rest, remainder
        step = _product(quotient, factor)
        before, factor = factor, _sum(before, [-one for one in step])
    found, remainder = _divided(rest, factor)
    wrong = sum(value(found, place) != share for place, share in shares.items())
    if remainder or len(found) > threshold or 2 * wrong > n - threshold:
        return None
    secret = value(found, 0)
    return secret.to_bytes(SECRET_BYTES) if secret < 2**256 else None


def _through(shares: Mapping[int, int], zero: list[int]) -> list[int]:
    """Return the polynomial through shares; ``zero`` is the one that is 0 at all their places."""
    found: list[int] = []
    for place, share in shares.items():
        others, _ = _divided(zero, [-place, 1])
        weight = share * pow(value(others, place), -1, PRIME)
        found = _sum(found, [weight * one for one in others])
    return found


# --- polynomials: coefficients from x^0; the last is not 0 -----------------------------


def _sum(a: Sequence[int], b: Sequence[int]) -> list[int]:
    found = [(x + y) % PRIME for x, y in itertools.zip_longest(a, b, fillvalue=0)]
    while found and not found[-1]:
        found.pop()
    return found


def _product(a: Sequence[int], b: Sequence[int]) -> list[int]:
    found = [0] * (len(a) + len(b))
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            found[i + j] += x * y
    return _sum(found, [])


def _divided(a: Sequence[int], b: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return quotient and remainder."""
    rest, inverse = list(a), pow(b[-1], -1, PRIME)
    quotient = [0] * max(len(a) - len(b) + 1, 0)
    for i in reversed(range(len(quotient))):
        quotient[i] = rest[i + len(b) - 1] * inverse % PRIME
        for j, y in enumerate(b):
            rest[i + j] = (rest[i + j] - quotient[i] * y) % PRIME
    return _sum(quotient, []), _sum(rest, [])


Bytes = NDArray[np.uint8]
#: The part of a row before the first share.
NONCE_BYTES = 32
_HASH_BYTES = 32
#: Bits of a weight: so many more than the prime has that its remainder is nearly uniform.
_WEIGHT_BYTES = 48


@dataclass(frozen=True)
class Dealing:
    """The public part of what a site dealt.

    Attributes
    ----------
    about : bytes
        Round and dealer, which all hashes are bound to.
    secrets : ndarray of shape (n_secrets, 32), uint8
        A commitment to each secret.
    readers : ndarray of shape (n_sites, 32), uint8
        A commitment to the shares of each reader: the hash of its row's opening.
    proof : ndarray of shape (threshold, 33), uint8
        Coefficients of z.
    """

    about: bytes
    secrets: Bytes
    readers: Bytes
    proof: Bytes

    @classmethod
    def deal(
        cls, about: bytes, keys: Sequence[bytes], threshold: int, n_sites: int
    ) -> "tuple[Dealing, list[bytes]]":
        """Share secrets of 32 bytes each; return the public part, and the row of each reader."""
        polynomials = [polynomial(key, threshold) for key in keys]
        mask = random_numbers(threshold)
        rows, readers = [], []
        for place in range(1, n_sites + 1):
            row = secrets.token_bytes(NONCE_BYTES) + b"".join(
                value(one, place).to_bytes(SHARE_BYTES) for one in polynomials
            )
            rows.append(row)
            opening = _opening(about, place, row, value(mask, place))
            readers.append(_hash(about, b"reader", place, opening))
        committed = [_hash(about, b"secret", j, key) for j, key in enumerate(keys)]
        made = cls(about, _table(committed), _table(readers), np.empty((0, SHARE_BYTES), np.uint8))
        z = list(mask)
        for weight, one in zip(made._weights, polynomials, strict=True):
            z = [(a + weight * b) % PRIME for a, b in zip(z, one, strict=True)]
        proof = _table([number.to_bytes(SHARE_BYTES) for number in z])
        return cls(about, made.secrets, made.readers, proof), rows

    def __post_init__(self) -> None:
        for name, width in (("secrets", 32), ("readers", 32), ("proof", SHARE_BYTES)):
            array = getattr(self, name)
            if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != width:
                raise RoundError(f"shares were dealt with {name} of the wrong form")

    @property
    def row_bytes(self) -> int:
        """Return the length of a reader's row."""
        return NONCE_BYTES + SHARE_BYTES * len(self.secrets)

    @property
    def _weights(self) -> list[int]:
        n = len(self.secrets)
        text = self.about + self.secrets.tobytes() + self.readers.tobytes()
        stream = hashlib.shake_256(b"hushtable dealing" + text).digest(_WEIGHT_BYTES * n)
        each = (stream[i : i + _WEIGHT_BYTES] for i in range(0, len(stream), _WEIGHT_BYTES))
        return [int.from_bytes(one) % PRIME for one in each]

    def opening(self, row: bytes, place: int) -> bytes | None:
        """Return the opening that a reader proves single shares with; None if the row is not valid.

        ``row`` was dealt to the reader at this place, counted from 1.
        """
        if len(row) != self.row_bytes or not 1 <= place <= len(self.readers):
            return None
        found = [int.from_bytes(share) for share in _shares(row)]
        z = [int.from_bytes(one.tobytes()) for one in self.proof]
        if max(*found, *z) >= PRIME:
            return None
        known = sum(weight * share for weight, share in zip(self._weights, found, strict=True))
        rest = (value(z, place) - known) % PRIME
        opening = _opening(self.about, place, row, rest)
        return opening if self.shows(place, opening, {}) else None

    def shows(self, place: int, opening: bytes, shares: Mapping[int, bytes]) -> bool:
        """Return whether these shares, by number of secret, were dealt to the reader at a place."""
        if len(opening) != opening_bytes(len(self.secrets)):
            return False
        if _hash(self.about, b"reader", place, opening) != bytes(self.readers[place - 1]):
            return False
        return all(
            _share_hash(self.about, place, j, share) == opening[_HASH_BYTES * j :][:_HASH_BYTES]
            for j, share in shares.items()
        )

    def fits(self, j: int, secret: bytes | None) -> bool:
        """Return whether a secret is the one that the dealer committed to."""
        hashed = None if secret is None else _hash(self.about, b"secret", j, secret)
        return hashed is not None and hashed == bytes(self.secrets[j])


def opening_bytes(n_secrets: int) -> int:
    """Return the length of a row's opening."""
    return _HASH_BYTES * (n_secrets + 1)


def _shares(row: bytes) -> list[bytes]:
    each = range(NONCE_BYTES, len(row), SHARE_BYTES)
    return [row[i : i + SHARE_BYTES] for i in each]


def _opening(about: bytes, place: int, row: bytes, rest: int) -> bytes:
    """Return the hashes of each share and of the value of r, which the row's nonce hides."""
    each = [_share_hash(about, place, j, share) for j, share in enumerate(_shares(row))]
    last = _hash(about, b"rest", place, row[:NONCE_BYTES], rest.to_bytes(SHARE_BYTES))
    return b"".join(each) + last


def _share_hash(about: bytes, place: int, j: int, share: bytes) -> bytes:
    return _hash(about, b"share", place, j.to_bytes(8), share)


def _hash(about: bytes, use: bytes, number: int, *parts: bytes) -> bytes:
    """Hash parts of fixed lengths, separated by use and number."""
    head = hashlib.sha256(about).digest() + use.ljust(16) + number.to_bytes(8)
    return hashlib.sha256(head + b"".join(parts)).digest()


def _table(rows: Sequence[bytes]) -> Bytes:
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)


#: Choices of givers to try for a lying dealer's secret, if decoding does not find it.
_MOST_TRIES = 2_000
#: A secret, by its dealer and the site that shares the mask with the dealer.
Secret = tuple[str, str]


@dataclass
class Unmasking:
    """Finds everything that masks the sum of some sites of a round.

    Attributes
    ----------
    round : Round
        Of the sites.
    dealings : mapping of str to Dealing
        By site, the public part of what it dealt.
    shares : mapping of str to mapping of Secret to int
        By site, the shares that it gives and that were dealt to it.
    partners : mapping of str to collection of str
        By site, the sites that it has masks with.
    sites : list of str
        Of whom the sum is.
    liars : dict of str to str
        By site that dealt shares of a different key, a message.
    """

    round: Round
    dealings: Mapping[str, Dealing]
    shares: Mapping[str, Mapping[Secret, int]]
    partners: Mapping[str, Collection[str]]
    sites: list[str]
    liars: dict[str, str] = field(default_factory=dict)
    _found: dict[Secret, bytes] = field(default_factory=dict, init=False, repr=False)

    def masks(self) -> NDArray[np.uint64]:
        """Return the mask of the sum, of shape (n_cells,); raise `RoundError` if it is unknown."""
        n_cells = self.round.plan.family.n_cells
        total = np.zeros(n_cells, np.uint64)
        for name in self.sites:
            total += stream(self.secret(name, name), n_cells)
            total += pairwise_mask(name, self.outside(name), n_cells)
        return total

    def outside(self, name: str) -> dict[str, bytes]:
        """Return the keys of a site's masks with sites outside the sum; raise as `masks` does."""
        out = sorted(set(self.partners[name]) - {*self.sites})
        return {other: self.secret(name, other) for other in out}

    def secret(self, dealer: str, other: str) -> bytes:
        """Return the key of a site's own mask, or of one with another; raise as `masks` does."""
        if (dealer, other) not in self._found:
            self._found[dealer, other] = self._put_together(dealer, other)
        return self._found[dealer, other]

    def _put_together(self, dealer: str, other: str) -> bytes:
        """Reconstruct a secret from as many shares as needed.

        Each giver has proved that it was dealt its share. So if the shares do not give the secret
        that the dealer committed to, the dealer cheated, perhaps with colluding readers.
        Unsuccessful attempts reveal no secrets.
        """
        names = [name for name in self.shares if (dealer, other) in self.shares[name]]
        names.sort(key=lambda name: (name == dealer, name in self.liars))
        given = {place_of(self.round, name): self.shares[name][dealer, other] for name in names}
        least = self.round.needed
        if len(given) < least:
            raise RoundError(
                f"no sum: {len(given)} sites gave shares behind the masks of {dealer!r}, and "
                f"{least} are needed. More answers may solve this; otherwise open a new round"
            )
        j = self.round.names.index(other)
        for secret, sure in _candidates(given, least):
            if secret is not None and (sure or self.dealings[dealer].fits(j, secret)):
                return secret
            self.liars[dealer] = (
                "dealt shares of a mask key that differs from the one it committed to"
            )
        raise RoundError(
            f"no sum: {dealer!r} dealt shares that are not of one key: more than "
            f"{(len(given) - least) // 2} of {len(given)} are wrong. Open a new round without it"
        )


def _candidates(given: Mapping[int, int], least: int) -> Iterator[tuple[bytes | None, bool]]:
    """Yield possible secrets, and whether each is certain, even if the dealer committed to another.

    Decoding finds the secret if at most half of the shares beyond ``least`` are wrong; trying finds
    it among more wrong shares, if there are few givers.
    """
    choices = _choices(list(given), least)
    yield combine({place: given[place] for place in next(choices)}), False
    yield decode(given, least), True
    for choice in itertools.islice(choices, _MOST_TRIES):
        yield combine({place: given[place] for place in choice}), False


def _choices(givers: list[int], least: int) -> Iterator[tuple[int, ...]]:
    """Yield as many givers as needed: the first ones, then others with few left out."""
    seen = set()
    for n_out in range(len(givers) - least + 1):
        for out in itertools.combinations(givers, n_out):
            choice = tuple(itertools.islice((one for one in givers if one not in out), least))
            if choice not in seen:
                seen.add(choice)
                yield choice
