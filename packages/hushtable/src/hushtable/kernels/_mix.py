"""Keys to cells: mixing."""

import numpy as np

from hushtable.kernels._common import inlined


@inlined
def mix(key):
    """Mix 32 bits: MurmurHash3's fmix32."""
    h = np.uint32(key)
    h = np.uint32(h ^ np.uint32(h >> np.uint32(16)))
    h = np.uint32(h * np.uint32(0x85EBCA6B))
    h = np.uint32(h ^ np.uint32(h >> np.uint32(13)))
    h = np.uint32(h * np.uint32(0xC2B2AE35))
    return np.uint32(h ^ np.uint32(h >> np.uint32(16)))


@inlined
def fold(code, cells):
    """Mix a code of 32 bits into ``cells`` (a power of two) cells."""
    return np.uint16(mix(code) & np.uint32(cells - 1))
