"""Shamir's secret sharing: any t of n shares give the secret, fewer reveal nothing of it.

The secret is the value at 0 of a random polynomial of degree t - 1 over the integers modulo
the prime 2^256 + 297; a share is its value at the place of a site, 1 to n. A. Shamir, *How to
share a secret* (1979).
"""

import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache

#: The smallest prime above all secrets of 32 bytes.
PRIME = 2**256 + 297
SECRET_BYTES, SHARE_BYTES = 32, 33


def polynomial(secret: bytes, threshold: int) -> list[int]:
    """Return a random polynomial with this secret of 32 bytes at 0: its coefficients from x^0."""
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
    """Return Lagrange's weights: of the values at these places, they give the value at another.

    As many places as the threshold; the sum of each value times its weight is the value ``at``.
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
    """Return the secret that shares by place give; None if they do not belong together.

    As many as the threshold.
    """
    each = zip(weights(tuple(shares)), shares.values(), strict=True)
    found = sum(weight * share for weight, share in each) % PRIME
    return found.to_bytes(SECRET_BYTES) if found < 2**256 else None
