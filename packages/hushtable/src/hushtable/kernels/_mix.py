"""Keys to cells: mixing, and CountMin sketches of keys."""

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


@inlined
def _scaled(half, cells):
    """Return one of ``cells`` cells for 16 random bits."""
    return np.uint16(np.uint32(np.uint32(half) * np.uint32(cells)) >> np.uint32(16))


@inlined
def key_cells(n, keys, seeds, cells, found):
    """Write each key's cell in each of ``len(seeds)`` histograms; two share a mixing's halves."""
    depth = len(seeds)
    for r in range(0, depth, 2):
        seed, low, high = seeds[r], found[r], found[min(r + 1, depth - 1)]
        if r + 1 < depth:
            for i in range(n):
                h = mix(np.uint32(keys[i] ^ seed))
                low[i] = _scaled(h & np.uint32(0xFFFF), cells)
                high[i] = _scaled(h >> np.uint32(16), cells)
        else:
            for i in range(n):
                low[i] = _scaled(mix(np.uint32(keys[i] ^ seed)) & np.uint32(0xFFFF), cells)


@inlined
def add_least(n, values, at, cells, found, total):
    """Add to ``total`` the least of each key's ``values`` in one table's histograms."""
    depth = len(found)
    if depth == 4:  # RS-Hash's: four look-ups in one pass
        a, b = values[at : at + cells], values[at + cells : at + 2 * cells]
        c, d = values[at + 2 * cells : at + 3 * cells], values[at + 3 * cells :]
        for i in range(n):
            ab = min(a[found[0, i]], b[found[1, i]])
            total[i] += min(ab, min(c[found[2, i]], d[found[3, i]]))
    else:
        for i in range(n):
            least = values[at + found[0, i]]
            for r in range(1, depth):
                least = min(least, values[at + r * cells + found[r, i]])
            total[i] += least
