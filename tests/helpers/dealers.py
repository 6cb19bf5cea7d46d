"""Dealers of shares who lie, built by hand."""

import secrets

import numpy as np

from hushtable_federation.masks import dealing as d
from hushtable_federation.masks import shamir


def deal(about, keys, threshold, n_sites, *, commit=None, change=None, degree=None):
    """Deal as `Dealing.deal` does, but for a lie that the proof is made around.

    ``commit`` are other secrets than those dealt; ``change`` takes a place and a row, and returns
    the row that is dealt and committed to; ``degree`` is another one than that of the threshold.
    """
    length = threshold if degree is None else degree + 1
    polynomials = [shamir.polynomial(key, length) for key in keys]
    mask = shamir.random_numbers(length)
    rows, readers = [], []
    for place in range(1, n_sites + 1):
        row = secrets.token_bytes(d.NONCE_BYTES) + b"".join(
            shamir.value(one, place).to_bytes(shamir.SHARE_BYTES) for one in polynomials
        )
        rows.append(row if change is None else change(place, row))
        opening = d._opening(about, place, rows[-1], shamir.value(mask, place))
        readers.append(d._hash(about, b"reader", place, opening))
    committed = [d._hash(about, b"secret", j, key) for j, key in enumerate(commit or keys)]
    empty = np.empty((0, shamir.SHARE_BYTES), np.uint8)
    made = d.Dealing(about, d._table(committed), d._table(readers), empty)
    z = list(mask)
    for weight, one in zip(made._weights, polynomials, strict=True):
        z = [(a + weight * b) % shamir.PRIME for a, b in zip(z, one, strict=True)]
    proof = d._table([number.to_bytes(shamir.SHARE_BYTES) for number in z[:threshold]])
    return d.Dealing(about, made.secrets, made.readers, proof), rows


def shifted(row, j=0, by=1):
    """Return a row whose share of one secret is another."""
    at = d.NONCE_BYTES + j * shamir.SHARE_BYTES
    end = at + shamir.SHARE_BYTES
    number = (int.from_bytes(row[at:end]) + by) % shamir.PRIME
    return row[:at] + number.to_bytes(shamir.SHARE_BYTES) + row[end:]
