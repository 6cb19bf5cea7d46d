"""Dealers of shares who lie, built by hand."""

import secrets

import numpy as np

from hushtable_federation import masks


def deal(about, keys, threshold, n_sites, *, commit=None, change=None, degree=None):
    """Deal as `Dealing.deal` does, but for a lie that the proof is made around.

    ``commit`` are other secrets than those dealt; ``change`` takes a place and a row, and returns
    the row that is dealt and committed to; ``degree`` is another one than that of the threshold.
    """
    length = threshold if degree is None else degree + 1
    polynomials = [masks.polynomial(key, length) for key in keys]
    mask = masks.random_numbers(length)
    rows, readers = [], []
    for place in range(1, n_sites + 1):
        row = secrets.token_bytes(masks.NONCE_BYTES) + b"".join(
            masks.value(one, place).to_bytes(masks.SHARE_BYTES) for one in polynomials
        )
        rows.append(row if change is None else change(place, row))
        opening = masks._opening(about, place, rows[-1], masks.value(mask, place))
        readers.append(masks._hash(about, b"reader", place, opening))
    committed = [masks._hash(about, b"secret", j, key) for j, key in enumerate(commit or keys)]
    empty = np.empty((0, masks.SHARE_BYTES), np.uint8)
    made = masks.Dealing(about, masks._table(committed), masks._table(readers), empty)
    z = list(mask)
    for weight, one in zip(made._weights, polynomials, strict=True):
        z = [(a + weight * b) % masks.PRIME for a, b in zip(z, one, strict=True)]
    proof = masks._table([number.to_bytes(masks.SHARE_BYTES) for number in z[:threshold]])
    return masks.Dealing(about, made.secrets, made.readers, proof), rows


def shifted(row, j=0, by=1):
    """Return a row whose share of one secret is another."""
    at = masks.NONCE_BYTES + j * masks.SHARE_BYTES
    end = at + masks.SHARE_BYTES
    number = (int.from_bytes(row[at:end]) + by) % masks.PRIME
    return row[:at] + number.to_bytes(masks.SHARE_BYTES) + row[end:]
