"""Masks that cancel in the sum: one-time pads over whole numbers modulo 2^64.

Two sites stretch the key that they agreed on to a stream of 64-bit numbers (ChaCha20), and the
one whose name comes first adds it, the other subtracts it. To whoever does not have the key, a
masked vector is uniformly random; the sum over all sites is exact, because addition modulo 2^64
is. Bonawitz et al., *Practical Secure Aggregation for Privacy-Preserving Machine Learning*
(2017), section 4.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hushtable_federation.keys import crypto

Words = NDArray[np.uint64]


def stream(key: bytes, n_words: int) -> Words:
    """Stretch a key of 32 bytes to its mask, uint64; each key is used for one mask only."""
    c = crypto()
    cipher = c.Cipher(c.ChaCha20(key, bytes(16)), mode=None).encryptor()
    return np.frombuffer(cipher.update(bytes(8 * n_words)), "<u8").astype(np.uint64, copy=False)


def pairwise_mask(name: str, keys: Mapping[str, bytes], n_words: int) -> Words:
    """Add up the masks of a site with each other one, from the keys agreed on with these.

    Over all sites, they cancel.
    """
    total = np.zeros(n_words, np.uint64)
    for other, key in keys.items():
        add = np.add if name < other else np.subtract
        add(total, stream(key, n_words), out=total)
    return total
