"""Masks that cancel in the sum: one-time pads over whole numbers modulo 2^64.

Two sites agree on a key that nobody else has (X25519), stretch it to a stream of 64-bit
numbers (HKDF-SHA256, ChaCha20), and the one whose name comes first adds it, the other subtracts
it. To whoever does not have the key, a masked vector is uniformly random; the sum over all sites
is exact, because addition modulo 2^64 is. Bonawitz et al., *Practical Secure Aggregation for
Privacy-Preserving Machine Learning* (2017), section 4.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import rfc8785
from numpy.typing import NDArray

from hushtable.errors import RoundError
from hushtable.federation.keys import crypto

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

__all__ = ["agreed_key", "pairwise_mask", "stream"]

Words = NDArray[np.uint64]


def agreed_key(mine: "X25519PrivateKey", theirs: str, *purpose: str) -> bytes:
    """Return the 32 bytes that two sites agree on for one purpose.

    Parameters
    ----------
    mine : X25519PrivateKey
        Of one of the two.
    theirs : str
        Public key of the other, in hexadecimal digits.
    *purpose : str
        What the key is for, the same at both: a key for another purpose, round or pair has
        nothing in common with it.

    Raises
    ------
    RoundError
        If the other's key is none.
    """
    c = crypto()
    try:
        shared = mine.exchange(c.X25519PublicKey.from_public_bytes(bytes.fromhex(theirs)))
    except ValueError:  # no point of the curve, or one that gives everybody the same key
        raise RoundError(
            f"public key {theirs[:16]!r}...: no masks can be agreed on by it"
        ) from None
    info = rfc8785.dumps(["hushtable", *purpose])
    key: bytes = c.HKDF(algorithm=c.SHA256(), length=32, salt=None, info=info).derive(shared)
    return key


def stream(key: bytes, n_words: int) -> Words:
    """Return the mask that a key stands for; each key is used for one mask only.

    Parameters
    ----------
    key : bytes
        32 bytes.
    n_words : int
        Length of the mask.

    Returns
    -------
    ndarray of shape (n_words,), uint64
    """
    c = crypto()
    cipher = c.Cipher(c.ChaCha20(key, bytes(16)), mode=None).encryptor()
    return np.frombuffer(cipher.update(bytes(8 * n_words)), "<u8").astype(np.uint64, copy=False)


def pairwise_mask(name: str, keys: Mapping[str, bytes], n_words: int) -> Words:
    """Return what a site adds so that the masks of all sites cancel.

    Parameters
    ----------
    name : str
        The site's.
    keys : mapping of str to bytes
        The key that it agreed on with each other site, by name.
    n_words : int
        Length of the mask.
    """
    total = np.zeros(n_words, np.uint64)
    for other, key in keys.items():
        if name < other:
            total += stream(key, n_words)
        else:
            total -= stream(key, n_words)
    return total
