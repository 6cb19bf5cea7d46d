"""Shamir's secret sharing: any t of n shares give the secret, fewer reveal nothing of it.

The secret is the value at 0 of a random polynomial of degree t - 1 over the integers modulo
the prime 2^256 + 297; a share is its value at the place of a site, 1 to n. A. Shamir, *How to
share a secret* (1979).
"""

import itertools
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


def decode(shares: Mapping[int, int], threshold: int) -> bytes | None:
    """Return the secret of which at most half of the shares beyond the threshold are wrong.

    Of n shares, floor((n - threshold) / 2) may be. None if more are. The extended Euclidean
    algorithm, of the polynomial through all shares and that which is 0 at all places: S. Gao, *A
    new algorithm for decoding Reed-Solomon codes* (2003).
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
    """Return the polynomial through shares; ``zero`` is that which is 0 at all their places."""
    found: list[int] = []
    for place, share in shares.items():
        others, _ = _divided(zero, [-place, 1])
        weight = share * pow(value(others, place), -1, PRIME)
        found = _sum(found, [weight * one for one in others])
    return found


# --- polynomials: coefficients from x^0, of which the last is not 0 -----------------------------


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
