"""Tables side by side as wider ones: fewer look-ups for the same counts and the same sums."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushtable import kernels

#: Bits of a joined table: its values, 16 kB, stay in the first cache. Measured: see the docs.
_BITS = 11
#: Batches of fewer rows do not repay joining values, or taking joined counts apart again.
JOINED_ROWS = 2_048

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class JoinedTables:
    """How the kernels run over a family's tables: each by itself, or several as one.

    Tables of 5 and 6 bits, side by side, are one of 11 bits, in which a row is looked up once
    instead of twice. Its counts, summed over the bits of the one, are the counts of the other;
    the values of its cells are sums of theirs. Both are exact.

    ``tables`` (n_tables,) and ``functions`` are the family's, in the order of the joined tables.
    First of these, and the end of the last, are ``bounds`` among the tables, ``first`` among the
    functions and ``offsets`` among the cells, (n_joined + 1,) each. ``parts`` is for the kernels:
    bounds; first cell of each table in the family's; its cells.
    """

    bounds: Ints
    tables: Ints
    functions: Ints
    first: Ints
    offsets: Ints
    parts: tuple[Ints, Ints, Ints]

    @classmethod
    def of(cls, depth: NDArray[np.uint8], offsets: Ints, groups: list[list[int]]) -> "JoinedTables":
        """Lay out the tables of a family in these groups."""
        bounds = _ends([len(group) for group in groups])
        tables = np.concatenate(groups)
        bits = depth.astype(np.int64)
        begin = _ends(bits)[:-1]
        functions = np.concatenate([np.arange(begin[t], begin[t] + bits[t]) for t in tables])
        sizes = np.diff(offsets)[tables]
        return cls(
            bounds,
            tables,
            functions,
            _ends(np.add.reduceat(bits[tables], bounds[:-1])),
            _ends(np.multiply.reduceat(sizes, bounds[:-1])),
            (bounds, offsets[tables], sizes),
        )

    @classmethod
    def apart(cls, depth: NDArray[np.uint8], offsets: Ints) -> "JoinedTables":
        """Leave every table by itself."""
        return cls.of(depth, offsets, [[t] for t in range(len(depth))])

    @classmethod
    def packed(cls, depth: NDArray[np.uint8], offsets: Ints) -> "JoinedTables":
        """Pack tables into as few joined ones as will do, the deepest first (best fit)."""
        groups: list[list[int]] = []
        with_room: list[list[int]] = [[] for _ in range(_BITS + 1)]  # groups, by the bits left
        for t in np.argsort(-depth.astype(np.int64), kind="stable").tolist():
            bits = int(depth[t])
            room = next((left for left in range(bits, _BITS + 1) if with_room[left]), None)
            if room is None:
                groups.append([])
                at, room = len(groups) - 1, max(bits, _BITS)
            else:
                at = with_room[room].pop()
            groups[at].append(t)
            with_room[room - bits].append(at)
        return cls.of(depth, offsets, groups)

    def values(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of the joined tables' cells: sums of their tables' ``values``."""
        joined = np.empty(int(self.offsets[-1]))
        kernels.join_values(values, self.parts, self.offsets, joined)
        return joined


def _ends(sizes: ArrayLike) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
