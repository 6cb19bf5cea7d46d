"""A hash family and a detector's draw, as someone else would add them: this file, one call."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushtable.plans.draws import Draw, register
from hushtable.plans.families import HashFamily, drawn, whole_number
from hushtable.plans.score_rule import ScoreRule


@dataclass(frozen=True, eq=False)
class Stripes(HashFamily):
    """Stripes of one feature: table t counts the values of ``feature[t]`` in a ring of cells."""

    name: ClassVar[str] = "Stripes"

    feature: np.ndarray = drawn(np.uint16, "n_stripes", below="n_features")
    start: np.ndarray = drawn(np.int32, "n_stripes", low=-5, below="cells")
    n_stripes: int = whole_number(1, 99)
    cells: int = whole_number(2, 64)

    @property
    def offsets(self):
        return np.arange(self.n_stripes + 1) * self.cells

    def _cells(self, codes):
        stripes = codes.codes[self.feature].astype(np.int64) // 4000 + self.start[:, np.newaxis]
        return stripes % self.cells + self.offsets[:-1, np.newaxis]

    def count(self, codes, counts, weights=None):
        cells = self._cells(codes)
        np.add.at(counts, cells, 1 if weights is None else np.broadcast_to(weights, cells.shape))

    def count_pairs(self, codes, rows, tables, counts):
        np.add.at(counts, self._cells(codes)[tables, rows], 1)

    def sum(self, codes, values):
        return values[self._cells(codes)].sum(axis=0)


def draw_stripes(schema, rng, *, n_tables=20, n_cells=16):
    feature = (rng.random(n_tables) * len(schema)).astype(np.uint16)
    start = (rng.random(n_tables) * n_cells).astype(np.int32)
    return Stripes(schema, feature, start, n_tables, n_cells)


STRIPES = register(Draw("stripes", Stripes, ScoreRule("log2"), draw_stripes))
