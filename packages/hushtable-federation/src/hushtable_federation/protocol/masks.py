"""Masks that cancel only in the sum, and the shares that remove the masks of absent sites.

All keys derive from the protocol's number, so that keys of two versions are unrelated.
"""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import rfc8785
from numpy.typing import NDArray

from hushtable.errors import RoundError
from hushtable_federation.keys import Card, Keys, crypto
from hushtable_federation.terms import PROTOCOL

Words = NDArray[np.uint64]

# --- masks ----------------------------------------------------------------------------------------

#: Words of a mask that are added at once: they stay in the second-level cache.
_PIECE = 32_768
_ZEROS = memoryview(bytes(8 * _PIECE))


def add_stream(key: bytes, total: Words, *, subtract: bool = False) -> None:
    """Add a key's mask to words in place, or subtract it: a ChaCha20 stream of uint64.

    Each key is used for only one mask, so the nonce is zero.
    """
    c = crypto()
    cipher = c.Cipher(c.ChaCha20(key, bytes(16)), mode=None).encryptor()
    room = bytearray(8 * _PIECE)
    words, add = np.frombuffer(room, "<u8"), np.subtract if subtract else np.add
    for start in range(0, len(total), _PIECE):
        piece = total[start : start + _PIECE]
        cipher.update_into(_ZEROS[: 8 * len(piece)], room)
        add(piece, words[: len(piece)], out=piece)


def add_pair(name: str, other: str, key: bytes, total: Words, *, subtract: bool = False) -> None:
    """Add the mask that a site has with another one to its words, or subtract it.

    The two masks of a pair cancel: the site whose name comes first adds, and the other subtracts.
    """
    add_stream(key, total, subtract=subtract != (name > other))


# --- keys -----------------------------------------------------------------------------------------


def derive(secret: bytes, *purpose: str) -> bytes:
    """Return a key of 32 bytes for this purpose, from a secret."""
    c = crypto()
    info = rfc8785.dumps(["hushtable", PROTOCOL, *purpose])
    return bytes(c.HKDF(algorithm=c.SHA256(), length=32, salt=None, info=info).derive(secret))


def own_key(seed: bytes, round_id: str, name: str) -> bytes:
    """Return the key of a site's own mask."""
    return derive(seed, "own mask", round_id, name)


def seed_hash(seed: bytes) -> str:
    """Return the commitment of a seed, in hexadecimal digits."""
    return hashlib.sha256(b"hushtable seed" + seed).hexdigest()


def public_of(private: bytes) -> str:
    """Return the public half of an X25519 key, in hexadecimal digits."""
    key = crypto().X25519PrivateKey.from_private_bytes(private)
    return str(key.public_key().public_bytes_raw().hex())


def draw_key() -> bytes:
    """Draw a private key of X25519."""
    return bytes(crypto().X25519PrivateKey.generate().private_bytes_raw())


def exchange(private: bytes, public: str) -> bytes:
    """Return what X25519 gives for a private and a public key.

    Raise `RoundError` if the public key is no point on the curve, or one that gives everyone the
    same secret.
    """
    c = crypto()
    try:
        point = c.X25519PublicKey.from_public_bytes(bytes.fromhex(public))
        return bytes(c.X25519PrivateKey.from_private_bytes(private).exchange(point))
    except ValueError:
        raise RoundError(f"public key {public[:16]!r}...: no keys can be agreed with it") from None


def pair_key(private: bytes, public: str, round_id: str, name: str, other: str) -> bytes:
    """Return the key of the mask of two sites, from the mask keys of one and of the other."""
    return derive(exchange(private, public), "mask", round_id, *sorted((name, other)))


def seal_key(private: bytes, public: str, round_id: str, name: str, other: str) -> bytes:
    """Return the key that two sites, or a site alone, seal rows with, from their seal keys."""
    return derive(exchange(private, public), "seal", round_id, *sorted((name, other)))


# --- shares ---------------------------------------------------------------------------------------

#: The smallest prime above all secrets of 32 bytes.
PRIME = 2**256 + 297
SECRET_BYTES, SHARE_BYTES, HASH_BYTES, SIGNATURE_BYTES = 32, 33, 32, 64


def share(secret: bytes, threshold: int, places: Sequence[int]) -> list[bytes]:
    """Return a share of a secret for each place, counted from 1; see Shamir (1979).

    The polynomial has degree ``threshold - 1``, so ``threshold`` shares give the secret, and fewer
    give nothing.
    """
    if threshold < 1 or len(secret) != SECRET_BYTES:
        raise ValueError("needs threshold >= 1, and a secret of 32 bytes")
    coefficients = [int.from_bytes(secret)]
    coefficients += [secrets.randbelow(PRIME) for _ in range(threshold - 1)]
    shares = []
    for place in places:
        value = 0
        for coefficient in reversed(coefficients):  # Horner's rule
            value = (value * place + coefficient) % PRIME
        shares.append(value.to_bytes(SHARE_BYTES))
    return shares


def combine(shares: Mapping[int, bytes]) -> bytes | None:
    """Return the secret of shares, given by place; None if they are not shares of 32 bytes.

    There are as many shares as the threshold.
    """
    each = zip(_weights(tuple(shares)), shares.values(), strict=True)
    total = sum(weight * int.from_bytes(share) for weight, share in each) % PRIME
    return total.to_bytes(SECRET_BYTES) if total < 2**256 else None


@lru_cache(100)
def _weights(places: tuple[int, ...]) -> list[int]:
    """Return Lagrange's weights: the sum of shares times weights is the secret."""
    weights = []
    for place in places:
        above, below = 1, 1
        for other in places:
            if other != place:
                above = above * -other % PRIME
                below = below * (place - other) % PRIME
        weights.append(above * pow(below, -1, PRIME) % PRIME)
    return weights


# --- rows of shares -------------------------------------------------------------------------------


class Context(NamedTuple):
    """The context that a dealer's signature binds the shares of one reader to.

    ``keys`` is the digest of the keys that the dealer masks with, and ``seed`` the commitment of
    its seed.
    """

    round_id: str
    dealer: str
    reader: str
    keys: str
    seed: str

    def digest(self, key_hash: bytes, seed_hash: bytes) -> str:
        """Return the digest to sign, for the hashes of the two shares."""
        text = rfc8785.dumps(["hushtable", PROTOCOL, *self, key_hash.hex(), seed_hash.hex()])
        return hashlib.sha256(text).hexdigest()


#: The kind in the signature under a row, as `Keys.sign` has it.
_KIND = "shares"


class Row(NamedTuple):
    """The row of a reader: shares of a dealer's mask key and of its seed, and a signature.

    The signature is over the hashes of both, so that the reader can prove one share without
    revealing the other.
    """

    key: bytes
    seed: bytes
    signature: bytes

    @classmethod
    def sign(cls, keys: Keys, context: Context, key: bytes, seed: bytes) -> "Row":
        """Sign the shares of a reader."""
        digest = context.digest(_hash(key), _hash(seed))
        return cls(key, seed, bytes.fromhex(keys.sign(_KIND, digest)))

    @classmethod
    def read(cls, dealer: Card, context: Context, content: bytes) -> "Row":
        """Check and read a row; raise `RoundError` if the dealer did not sign it."""
        key, seed = content[:SHARE_BYTES], content[SHARE_BYTES : 2 * SHARE_BYTES]
        row = cls(key, seed, content[2 * SHARE_BYTES :])
        digest = context.digest(_hash(key), _hash(seed))
        if not dealer.signs(_KIND, digest, row.signature.hex()):
            raise RoundError(f"the shares of {dealer.name!r} do not have its signature")
        return row

    def prove_key(self) -> bytes:
        """Return the share of the mask key as `Proved.read` checks it."""
        return self.key + _hash(self.seed) + self.signature

    def prove_seed(self) -> bytes:
        """Return the share of the seed as `Proved.read` checks it."""
        return self.seed + _hash(self.key) + self.signature


ROW_BYTES = 2 * SHARE_BYTES + SIGNATURE_BYTES
PROVED_BYTES = SHARE_BYTES + HASH_BYTES + SIGNATURE_BYTES


def is_proved(dealer: Card, context: Context, content: bytes, *, of_seed: bool) -> bool:
    """Return whether a dealer signed this share, as `Row.prove_seed` or `Row.prove_key` gave it."""
    mine = _hash(content[:SHARE_BYTES])
    other = content[SHARE_BYTES : SHARE_BYTES + HASH_BYTES]
    digest = context.digest(other, mine) if of_seed else context.digest(mine, other)
    return dealer.signs(_KIND, digest, content[SHARE_BYTES + HASH_BYTES :].hex())


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(b"hushtable share" + content).digest()


_NONCE = 12
SEALED_BYTES = ROW_BYTES + _NONCE + 16


def seal_row(key: bytes, row: Row) -> bytes:
    """Seal a row; the key is the one of dealer and reader (see `seal_key`)."""
    nonce = secrets.token_bytes(_NONCE)
    return nonce + bytes(crypto().ChaCha20Poly1305(key).encrypt(nonce, b"".join(row), None))


def open_row(key: bytes, content: bytes) -> bytes:
    """Open a sealed row; raise `RoundError` if it was changed, or sealed with another key."""
    cipher = crypto().ChaCha20Poly1305(key)
    try:
        return bytes(cipher.decrypt(content[:_NONCE], content[_NONCE:], None))
    except (crypto().InvalidTag, ValueError):  # ValueError: too short for a nonce
        raise RoundError("the row of shares does not open") from None
