"""Shamir's secret sharing: any t of n shares give the secret, fewer reveal nothing of it.

The secret is the value at 0 of a random polynomial of degree t - 1 over the integers modulo
the prime 2^521 - 1; a share is its value at the place of a site, 1 to n. A. Shamir, *How to
share a secret* (1979).
"""

import secrets
from collections.abc import Mapping, Sequence

#: Larger than any secret of 64 bytes.
_PRIME = 2**521 - 1
SHARE_BYTES = 66


def split(secret: bytes, threshold: int, n_shares: int) -> list[bytes]:
    """Share a secret of at most 64 bytes among places 1 to n; ``threshold`` give it back."""
    if not 1 <= threshold <= n_shares or len(secret) > 64:
        raise ValueError("needs 1 <= threshold <= n_shares, and a secret of at most 64 bytes")
    powers = [secrets.randbelow(_PRIME) for _ in range(threshold - 1)]
    shares = []
    for place in range(1, n_shares + 1):
        value = 0
        for coefficient in powers:  # Horner's rule
            value = (value + coefficient) * place % _PRIME
        value = (value + int.from_bytes(secret)) % _PRIME
        shares.append(value.to_bytes(SHARE_BYTES))
    return shares


def combine(shares: Mapping[int, Sequence[bytes]], length: int) -> list[bytes]:
    """Return the secrets, of ``length`` bytes each, that shares from the same places give.

    By place, as many as the threshold: the shares of each secret, in the same order at each.
    Raises `ValueError` if they do not belong together.
    """
    places = list(shares)
    weights = [_weight(place, places) for place in places]
    found = []
    for values in zip(*shares.values(), strict=True):
        total = sum(w * int.from_bytes(v) for w, v in zip(weights, values, strict=True)) % _PRIME
        try:
            found.append(total.to_bytes(length))
        except OverflowError:
            raise ValueError("the shares do not belong together") from None
    return found


def _weight(place: int, places: Sequence[int]) -> int:
    """Lagrange's weight of a place for the value at 0."""
    above, below = 1, 1
    for other in places:
        if other != place:
            above = above * other % _PRIME
            below = below * (other - place) % _PRIME
    return above * pow(below, -1, _PRIME) % _PRIME
