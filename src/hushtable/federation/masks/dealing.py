"""A site deals shares of its secrets, so that each reader can check its own.

The secrets of a site are the key of its own mask, and that of its mask with each other site. All
are shared by polynomials of degree t - 1. The proof that they are: the site commits to each
reader's shares f_j(w) and to the value r(w) of one more random polynomial r, and publishes z = r +
sum_j d_j f_j, whose weights d_j are a hash of these commitments. A reader opens its shares, and so
finds r(w) = z(w) - sum_j d_j f_j(w), which has to be what was committed to. Whoever deals other
values than those of polynomials is found out by whoever gets one; z itself is random and reveals
nothing. K. Baghery, *Π: A unified framework for computational verifiable secret sharing* (2025),
with SHA-256 as the commitment.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import RoundError
from hushtable.federation.masks import shamir
from hushtable.federation.masks.shamir import PRIME, SHARE_BYTES

Bytes = NDArray[np.uint8]
_NONCE = 32
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
        A commitment to the shares of each reader.
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
            row = secrets.token_bytes(_NONCE) + b"".join(
                shamir.value(one, place).to_bytes(SHARE_BYTES) for one in polynomials
            )
            rows.append(row)
            readers.append(_hash(about, b"reader", place, row, _number(mask, place)))
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
        return _NONCE + SHARE_BYTES * len(self.secrets)

    @property
    def _weights(self) -> list[int]:
        n = len(self.secrets)
        text = self.about + self.secrets.tobytes() + self.readers.tobytes()
        stream = hashlib.shake_256(b"hushtable dealing" + text).digest(_WEIGHT_BYTES * n)
        each = (stream[i : i + _WEIGHT_BYTES] for i in range(0, len(stream), _WEIGHT_BYTES))
        return [int.from_bytes(one) % PRIME for one in each]

    def shares(self, row: bytes, place: int) -> list[int] | None:
        """Return a reader's shares, in the order of secrets; None if they are not what is proved.

        ``row`` is what was dealt to the reader at this place, from 1.
        """
        if len(row) != self.row_bytes or not 1 <= place <= len(self.readers):
            return None
        each = range(_NONCE, len(row), SHARE_BYTES)
        found = [int.from_bytes(row[i : i + SHARE_BYTES]) for i in each]
        z = [int.from_bytes(one.tobytes()) for one in self.proof]
        if max(*found, *z) >= PRIME:
            return None
        known = sum(weight * share for weight, share in zip(self._weights, found, strict=True))
        rest = (shamir.value(z, place) - known) % PRIME
        said = _hash(self.about, b"reader", place, row, rest.to_bytes(SHARE_BYTES))
        return found if said == self.readers[place - 1].tobytes() else None

    def fits(self, j: int, secret: bytes | None) -> bool:
        """Whether a secret is the one that the dealer committed to."""
        said = None if secret is None else _hash(self.about, b"secret", j, secret)
        return said is not None and said == bytes(self.secrets[j])


def _number(coefficients: Sequence[int], place: int) -> bytes:
    return shamir.value(coefficients, place).to_bytes(SHARE_BYTES)


def _hash(about: bytes, use: bytes, number: int, *parts: bytes) -> bytes:
    """Hash parts of fixed lengths, in a use and at a number of their own."""
    head = hashlib.sha256(about).digest() + use.ljust(16) + number.to_bytes(8)
    return hashlib.sha256(head + b"".join(parts)).digest()


def _table(rows: Sequence[bytes]) -> Bytes:
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)
