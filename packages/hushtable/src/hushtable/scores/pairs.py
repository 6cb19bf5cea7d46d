"""Pairs of values that are usual separately but rare together: counts for every pair of columns.

A column of many numbers has up to eight cells by its quantiles; any other column has one for each
of its most frequent values, and one for the rest. Counts of pairs of cells show how many times
rarer a pair is than it would be if the two columns were independent. They are read off the sample
that a model keeps, and stay with it: releasing them would take a part of the budget, and reveal
pairs only from tens of thousands of rows on (see docs/benchmarks/accuracy.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushtable.arguments import entries
from hushtable.data.columns import filled, texts_column
from hushtable.data.readers import Batch
from hushtable.data.schema import Feature
from hushtable.errors import PlanError
from hushtable.files import Content
from hushtable.language import _
from hushtable.scores.typical import (
    UsualValues,
    number_text,
    numbers_of,
    texts_of,
)

#: Largest number of cells of a column.
CELLS = 8
#: Number of columns whose pairs are counted: the first ones, with 2,016 pairs of 128 bytes.
MOST_COLUMNS = 64
#: Number of rows from which on pairs are counted, and least number of rows expected in two cells
#: before their pair can be reported as rarer than expected.
_LEAST_ROWS, _LEAST_EXPECTED = 100, 5.0
#: Outer edges of the cells, as quantiles; values beyond them are in the outer cells too.
_ENDS = (0.01, 0.99)
#: Share of a partner's rows that a usual range holds; number of values named as the usual ones.
_MOST, _NAMED = 0.9, 2

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """The cells of one column.

    For many numbers, they lie between ``edges``, which rise; numbers beyond are in the outer cells.
    For other values, ``names`` lists them, as `UsualValues.shares` does, and the last cell is for
    any other value.
    """

    edges: tuple[float, ...] = ()
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, usual: UsualValues, numbers: Floats) -> "Cells":
        """Return the cells of a column of numbers, if the sample has any."""
        if usual.shares or not len(numbers):
            most = sorted(usual.shares, key=lambda name: -usual.shares[name])
            return cls(names=tuple(most[: CELLS - 1]))
        quantiles = np.linspace(0.0, 1.0, CELLS + 1)
        quantiles[[0, -1]] = _ENDS
        edges = np.unique(np.quantile(numbers, quantiles, method="inverted_cdf")).tolist()
        return cls(tuple(edges) if len(edges) > 1 else ())

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.edges) - 1 if self.edges else len(self.names) + 1

    def place(self, feature: Feature, rows: Batch, j: int) -> Ints:
        """Return the cell of the value of column j in each of some rows (n,); -1 if missing."""
        if feature.kind != "numeric":
            texts = texts_of(feature, rows, j)
            index = pc.index_in(texts, texts_column(self.names), skip_nulls=True)
            places = filled(index, len(self.names))
            missing = np.from_dlpack(texts.is_null().cast(pa.uint8())) == 1
        else:
            numbers = numbers_of(feature, rows, j)
            missing = np.isnan(numbers)
            places = np.full(len(numbers), len(self.names))
            if self.edges:
                places = np.searchsorted(self.edges[1:-1], numbers, side="right")
            for k, name in enumerate(self.names):
                places[numbers == float(name)] = k
        return np.where(missing, -1, places).astype(np.int64)

    def of_value(self, value: float | str) -> int:
        """Return the cell of a value that is not missing."""
        if self.edges:
            return int(np.searchsorted(self.edges[1:-1], float(value), side="right"))
        name = value if isinstance(value, str) else repr(float(value) + 0.0)
        return self.names.index(name) if name in self.names else len(self.names)

    def words(self, rows: Floats, feature: Feature, kind: pa.DataType, value: Any) -> str:
        """Return what some rows usually have instead of a row's own value, in words.

        The most frequent values; of many numbers, an edge below which, or from which on, 90% of
        the rows are, but not the own value: it is a value that occurs. Empty if there is none.

        ``rows`` (8,) are the numbers of rows in each cell; the column has the type ``kind``, and
        ``own`` is the value that is compared with them.
        """
        if self.edges:
            place = self.of_value(value)
            below, least = np.cumsum(rows[: self.size]), _MOST * float(rows.sum())
            # The cells up to k are below the edge k + 1.
            lower = np.flatnonzero(below[:place] >= least)
            higher = place + np.flatnonzero(below[-1] - below[place:-1] >= least)
            if len(lower):
                edge = self.edges[lower[0] + 1]
                return _("below %(end)s", end=number_text(edge, feature, kind))
            if len(higher):
                edge = self.edges[higher[-1] + 1]
                return _("at least %(end)s", end=number_text(edge, feature, kind))
            return ""
        place = self.of_value(value)
        most = np.argsort(-rows[: len(self.names)], kind="stable").tolist()
        names = [self.names[k] for k in most if rows[k] and k != place][:_NAMED]
        if feature.kind == "numeric":
            names = [number_text(float(name), feature, kind) for name in names]
        return _(" or ").join(names) or _("another")

    def to_dict(self) -> dict[str, object]:
        """Return the entry that a file contains."""
        return {"edges": list(self.edges)} if self.edges else {"names": list(self.names)}

    @classmethod
    def from_dict(cls, content: object, feature: Feature) -> "Cells":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        what = f"cells of {feature.name!r}"
        given = entries(content, what, {}, {"edges": list, "names": list})
        edges, names = given.get("edges", []), given.get("names", [])
        right = all(type(x) in (int, float) and math.isfinite(x) for x in edges)
        right = right and sorted(set(edges)) == edges and len(edges) <= CELLS + 1
        right = right and len(edges) != 1
        right = right and all(isinstance(name, str) for name in names) and len(names) < CELLS
        if not right or bool(edges) + bool(names) > 1 or (edges and feature.kind != "numeric"):
            raise PlanError(f"{what}: needs up to {CELLS + 1} rising numbers, or fewer names")
        if feature.kind == "numeric":
            try:
                list(map(float, names))
            except ValueError:
                raise PlanError(f"{what}: needs numbers as names") from None
        return cls(tuple(map(float, edges)), tuple(names))


@dataclass(frozen=True)
class RarePair:
    """A pair of values that is rarer than expected."""

    #: Numbers of the columns: that of the explained value, and that of its partner.
    column: int
    partner: int
    #: How many times rarer it is than expected.
    times: float


@dataclass(frozen=True)
class PairCounts:
    """Numbers of sampled rows in the cells of each pair of columns.

    ``counts`` (p, 8, 8) are those of the pairs of the first c columns, in the order of
    ``np.triu_indices(c, 1)``.
    """

    cells: tuple[Cells, ...]
    counts: NDArray[np.uint16]

    @classmethod
    def of(
        cls,
        features: Sequence[Feature],
        values: Sequence[UsualValues],
        batches: Sequence[Batch],
        times: Ints,
    ) -> "PairCounts | None":
        """Count the pairs of some batches, whose rows represent ``times`` rows; None if few."""
        if int(times.sum()) < _LEAST_ROWS:
            return None
        cells, places = [], []
        for j, (feature, usual) in enumerate(zip(features[:MOST_COLUMNS], values, strict=False)):
            numbers = np.empty(0)
            if feature.kind == "numeric":
                parts = [numbers_of(feature, batch, j) for batch in batches]
                numbers = np.repeat(np.concatenate(parts), times)
            cell = Cells.of(usual, numbers[~np.isnan(numbers)])
            cells.append(cell)
            places.append(np.concatenate([cell.place(feature, batch, j) for batch in batches]))
        counts = []
        for first, second in zip(*_pairs(len(cells)), strict=True):
            a, b = places[first], places[second]
            both = (a >= 0) & (b >= 0)
            counts.append(np.bincount(CELLS * a[both] + b[both], times[both], CELLS * CELLS))
        return cls(tuple(cells), np.array(counts, np.uint16).reshape(-1, CELLS, CELLS))

    def place(self, features: Sequence[Feature], rows: Batch) -> Ints:
        """Return the cells (n, c) of some rows."""
        places = [cells.place(features[j], rows, j) for j, cells in enumerate(self.cells)]
        return np.stack(places, axis=1) if places else np.empty((len(rows), 0), np.int64)

    def rarity(self, places: Ints) -> Floats:
        """Return how many times rarer than expected the pairs of one row (c,) are, as (c, c).

        1 if too few rows are expected for an answer, or if a value is missing.
        """
        a, b = _pairs(len(self.cells))
        p, rarity = np.arange(len(a)), np.ones((len(places), len(places)))
        x, y = places[a], places[b]
        both = self._expected[p, x, y]
        times = (both + 0.5) / (self.counts[p, x, y] + 0.5)
        known = (x >= 0) & (y >= 0) & (both >= _LEAST_EXPECTED)
        rarity[a, b] = rarity[b, a] = np.where(known, times, 1.0)
        return rarity

    def given(self, column: int, partner: int, cell: int) -> Floats:
        """Return the sampled rows in each cell of a column, among those in a partner's cell."""
        a, b = _pairs(len(self.cells))
        first, second = sorted((column, partner))
        counts = self.counts[int(np.flatnonzero((a == first) & (b == second))[0])]
        rows = counts[:, cell] if column == first else counts[cell]
        return np.asarray(rows[: self.cells[column].size], np.float64)

    @cached_property
    def _expected(self) -> Floats:
        """Rows expected in the cells of each pair (p, 8, 8) if its columns were independent."""
        counts = self.counts.astype(np.float64)
        first, second = (counts.sum(axis=axis, keepdims=True) for axis in (2, 1))
        totals = np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1.0)
        return np.asarray(first * second / totals, np.float64)

    @classmethod
    def from_file(cls, content: Content, features: Sequence[Feature]) -> "PairCounts | None":
        """Build what a file contains, if it has any; raise `PlanError` if it is not valid."""
        if "usual_cells" not in content.manifest:
            return None
        stated = content.said("cells of pairs", {"usual_cells": list}, {})["usual_cells"]
        if len(stated) > len(features):
            raise PlanError(f"cells of pairs: needs at most {len(features)} columns")
        cells = tuple(map(Cells.from_dict, stated, features))
        counts, p = content.array("usual.pairs"), len(cells) * (len(cells) - 1) // 2
        if counts.dtype != np.uint16 or counts.shape != (p, CELLS, CELLS):
            raise PlanError(f"counts of pairs: needs uint16 of {p} pairs of {CELLS} x {CELLS}")
        return cls(cells, counts)


def _pairs(n: int) -> tuple[Ints, Ints]:
    first, second = np.triu_indices(n, 1)
    return first, second
