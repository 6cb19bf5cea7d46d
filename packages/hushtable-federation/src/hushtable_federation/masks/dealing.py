"""A site deals shares of its secrets, so that each reader can check its own.

The secrets of a site are the key of its own mask, and that of its mask with each other site. All
are shared by polynomials of degree t - 1. The proof that they are: the site commits to each
reader's shares f_j(w) and to the value r(w) of one more random polynomial r, and publishes z = r +
sum_j d_j f_j, whose weights d_j are a hash of these commitments. A reader opens its shares, and so
finds r(w) = z(w) - sum_j d_j f_j(w), which has to be what was committed to. Whoever deals other
values than those of polynomials is found out by whoever gets one; z itself is random and reveals
nothing. K. Baghery, *Π: A unified framework for computational verifiable secret sharing* (2025),
with SHA-256 as the commitment.

The commitment to a reader's row is a hash of hashes, one for each share. So whoever gives a share
later shows by the others' hashes, its opening, that it was dealt this one: a giver cannot change a
share, and cannot have the blame fall on others.
"""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import RoundError
from hushtable_federation.masks import shamir
from hushtable_federation.masks.shamir import PRIME, SHARE_BYTES

Bytes = NDArray[np.uint8]
#: Of a row: what comes before the first share.
NONCE_BYTES = 32
_HASH_BYTES = 32
#: Of a weight: so many more than the prime has that its remainder is as good as uniform.
_WEIGHT_BYTES = 48


@dataclass(frozen=True)
class Dealing:
    """All that everybody may know of what a site dealt.

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
        polynomials = [shamir.polynomial(key, threshold) for key in keys]
        mask = shamir.random_numbers(threshold)
        rows, readers = [], []
        for place in range(1, n_sites + 1):
            row = secrets.token_bytes(NONCE_BYTES) + b"".join(
                shamir.value(one, place).to_bytes(SHARE_BYTES) for one in polynomials
            )
            rows.append(row)
            opening = _opening(about, place, row, shamir.value(mask, place))
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
                raise RoundError(f"shares were dealt with {name} of another form")

    @property
    def row_bytes(self) -> int:
        """Length of a reader's row."""
        return NONCE_BYTES + SHARE_BYTES * len(self.secrets)

    @property
    def _weights(self) -> list[int]:
        n = len(self.secrets)
        text = self.about + self.secrets.tobytes() + self.readers.tobytes()
        stream = hashlib.shake_256(b"hushtable dealing" + text).digest(_WEIGHT_BYTES * n)
        each = (stream[i : i + _WEIGHT_BYTES] for i in range(0, len(stream), _WEIGHT_BYTES))
        return [int.from_bytes(one) % PRIME for one in each]

    def opening(self, row: bytes, place: int) -> bytes | None:
        """Return by what a reader shows single shares; None if they are not what is proved.

        ``row`` is what was dealt to the reader at this place, from 1.
        """
        if len(row) != self.row_bytes or not 1 <= place <= len(self.readers):
            return None
        found = [int.from_bytes(share) for share in _shares(row)]
        z = [int.from_bytes(one.tobytes()) for one in self.proof]
        if max(*found, *z) >= PRIME:
            return None
        known = sum(weight * share for weight, share in zip(self._weights, found, strict=True))
        rest = (shamir.value(z, place) - known) % PRIME
        opening = _opening(self.about, place, row, rest)
        return opening if self.shows(place, opening, {}) else None

    def shows(self, place: int, opening: bytes, shares: Mapping[int, bytes]) -> bool:
        """Whether these shares, by number of the secret, were dealt to the reader at a place."""
        if len(opening) != opening_bytes(len(self.secrets)):
            return False
        if _hash(self.about, b"reader", place, opening) != bytes(self.readers[place - 1]):
            return False
        return all(
            _share_hash(self.about, place, j, share) == opening[_HASH_BYTES * j :][:_HASH_BYTES]
            for j, share in shares.items()
        )

    def fits(self, j: int, secret: bytes | None) -> bool:
        """Whether a secret is the one that the dealer committed to."""
        said = None if secret is None else _hash(self.about, b"secret", j, secret)
        return said is not None and said == bytes(self.secrets[j])


def opening_bytes(n_secrets: int) -> int:
    """Return the length of a row's opening."""
    return _HASH_BYTES * (n_secrets + 1)


def _shares(row: bytes) -> list[bytes]:
    each = range(NONCE_BYTES, len(row), SHARE_BYTES)
    return [row[i : i + SHARE_BYTES] for i in each]


def _opening(about: bytes, place: int, row: bytes, rest: int) -> bytes:
    """Return the hash of each share, and that of the value of r, which the row's nonce hides."""
    each = [_share_hash(about, place, j, share) for j, share in enumerate(_shares(row))]
    last = _hash(about, b"rest", place, row[:NONCE_BYTES], rest.to_bytes(SHARE_BYTES))
    return b"".join(each) + last


def _share_hash(about: bytes, place: int, j: int, share: bytes) -> bytes:
    return _hash(about, b"share", place, j.to_bytes(8), share)


def _hash(about: bytes, use: bytes, number: int, *parts: bytes) -> bytes:
    """Hash parts of fixed lengths, in a use and at a number of their own."""
    head = hashlib.sha256(about).digest() + use.ljust(16) + number.to_bytes(8)
    return hashlib.sha256(head + b"".join(parts)).digest()


def _table(rows: Sequence[bytes]) -> Bytes:
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)
