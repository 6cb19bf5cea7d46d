"""Rows to 64-bit hashes, which choose the rows of two tables to examine; they are not secret."""

import numpy as np

from hushtable.kernels import MISSING_WORD
from hushtable.kernels._common import kernel

_MISSING = np.uint64(MISSING_WORD)
_ABOVE_SIGN = np.uint64(0x7FFF_FFFF_FFFF_FFFF)
_INFINITY = np.uint64(0x7FF0_0000_0000_0000)
_FACTOR = np.uint64(0x9E37_79B9_7F4A_7C15)
_FIRST, _SECOND = np.uint64(0xFF51_AFD7_ED55_8CCD), np.uint64(0xC4CE_B9FE_1A85_EC53)
_HALF, _SHIFT = np.uint64(32), np.uint64(33)
#: Rows for which words of one column are gathered from the rows' layout.
_TILE = 512


@kernel
def fold_words(words, order, hashes):
    """Fold the columns of ``words`` (n, d), the bits of float64, into the rows' ``hashes`` (n,).

    h = m xor (m >> 32) with m = (h xor word) * odd, modulo 2^64, column after column in
    the ``order`` given: two rows that differ in a single column never get the same hash. Zero has
    one sign, and missing values have one pattern of bits.
    """
    n = len(words)
    # Side by side, whatever the rows' layout: the loop over them then runs by vectors.
    column = np.empty(_TILE, np.uint64)
    for start in range(0, n, _TILE):
        stop = min(start + _TILE, n)
        tile = hashes[start:stop]
        for j in order:
            for i in range(stop - start):
                column[i] = words[start + i, j]
            for i in range(stop - start):
                word = column[i]
                magnitude = word & _ABOVE_SIGN
                word = np.uint64(0) if magnitude == np.uint64(0) else word
                word = _MISSING if magnitude > _INFINITY else word
                h = np.uint64((tile[i] ^ word) * _FACTOR)
                tile[i] = h ^ np.uint64(h >> _HALF)


@kernel
def finish_hashes(hashes):
    """Mix the rows' ``hashes`` (n,) to the last bit (MurmurHash3's fmix64); return their sum."""
    total = np.uint64(0)
    for i in range(len(hashes)):
        h = hashes[i]
        h = np.uint64((h ^ np.uint64(h >> _SHIFT)) * _FIRST)
        h = np.uint64((h ^ np.uint64(h >> _SHIFT)) * _SECOND)
        h = h ^ np.uint64(h >> _SHIFT)
        hashes[i] = h
        total = np.uint64(total + h)
    return total
