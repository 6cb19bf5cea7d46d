"""Histograms of features, of a model's scores, and of verdicts in a model's tables."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.arguments import JsonObject, entries
from hushtable.data.encoding import Codes, NumbersLoop
from hushtable.data.schema import Schema
from hushtable.errors import PlanError
from hushtable.files import Arrays
from hushtable.plans.families.family import (
    MAX_CELLS,
    Arguments,
    Floats,
    HashFamily,
    Ints,
    KernelFamily,
    drawn,
    family_from_content,
    register,
    whole_number,
)
from hushtable.plans.score_rule import ScoreRule, Scoring, logs
from hushtable.privacy.layout import onto_simplex

#: From this many columns on, counting numbers without storing codes is faster.
_FEWEST = 16


@register
@dataclass(frozen=True, eq=False)
class EquiWidth(KernelFamily):
    """One histogram per feature: the marginals.

    A numeric feature has ``bins`` cells of equal width on its range, and one for missing
    values. A categorical feature has a cell for each category, one for unseen categories and
    one for missing values. ``bins`` is a power of two up to 256.
    """

    name: ClassVar[str] = "EquiWidth"
    _loops: ClassVar[str] = "equi_width"

    bins: int = whole_number(2, 256)

    def _check(self) -> None:
        super()._check()
        if self.bins & (self.bins - 1):
            raise PlanError(f"bins={self.bins!r}: needs a power of two from 2 to 256")

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        sizes = [
            (self.bins if f.kind == "numeric" else len(f.categories) + 1) + 1
            for f in self.schema.features
        ]
        return np.concatenate([[0], np.cumsum(sizes)])

    @cached_property
    def _widths(self) -> NDArray[np.int64]:
        width = kernels.LEVELS // self.bins
        return np.array([width if f.kind == "numeric" else 1 for f in self.schema.features])

    def counting_numbers(self) -> NumbersLoop | None:
        if self.n_features < _FEWEST:
            return None
        kernel, widths, offsets = kernels.count_numbers_equi_width, self._widths, self.offsets

        def count(X: object, low: Floats, high: Floats, scale: Floats, *results: Ints) -> Any:
            return kernel(X, low, high, scale, widths, offsets, *results)

        return count

    def _arguments(self, codes: Codes) -> Arguments:
        return self._widths, self.offsets


#: Values of cells are whole multiples of it, in bits: the unit to which scores are rounded.
_UNIT = 2.0**-20
#: Sums of values must not exceed it, so that they stay exact in float64.
_LARGEST = 1 << 52


@register
@dataclass(frozen=True, eq=False)
class ScoreHistogram(HashFamily):
    """One histogram of scores: the hash function is a model.

    ``model`` is the model's tables, ``value`` the score of each of their cells, in 2**-20 of the
    model's unit. The ``bins`` cells have equal width, from the lowest to the highest score that the
    tables can give.
    """

    name: ClassVar[str] = "ScoreHistogram"
    of_model: ClassVar[bool] = True

    model: HashFamily = field()
    value: Ints = drawn(np.int64, "n_model_cells")
    bins: int = whole_number(2, MAX_CELLS)

    def _check(self) -> None:
        super()._check()
        if self.model.of_model:
            raise PlanError(f"{self.name} needs a detector's tables, not {self.model.name}")
        bound = _LARGEST // self.model.n_histograms
        if self.value.max() > bound or self.value.min() < -bound:
            raise PlanError("scores of cells are too large for exact sums")

    def parameters(self) -> JsonObject:
        model = {"name": self.model.name, **self.model.parameters()}
        return {**super().parameters(), "model": model}

    @classmethod
    def json_schema(cls) -> JsonObject:
        described = super().json_schema()
        described["required"].append("model")
        described["properties"]["model"] = {"$ref": "#/$defs/tables"}
        return described

    @property
    def n_model_cells(self) -> int:
        """Number of cells of the model's tables."""
        return self.model.n_cells

    @property
    def offsets(self) -> Ints:
        return np.array([0, self.bins])

    @cached_property
    def edges(self) -> Floats:
        """Scores that bound the cells (bins + 1,); a row's score is a mean over tables."""
        first, width = self._layout
        edges = (first + width * np.arange(self.bins + 1)) * (_UNIT / self.model.n_tables)
        return np.asarray(edges, np.float64)

    @cached_property
    def _layout(self) -> tuple[int, int]:
        """Smallest sum of values over the tables, and the width of a cell that fits all sums."""
        starts, m = self.model.offsets[:-1], self.model.n_tables
        high = np.maximum.reduceat(self.value, starts).reshape(m, -1).max(axis=1)
        least = int(self.model.least(self.value))
        if self.model.margin:  # rows beyond the ranges score up to one unit lower
            least -= m << 20
        return least, (int(high.sum()) - least) // self.bins + 1

    @cached_property
    def _scoring(self) -> Scoring:
        return self.model.scoring(np.asarray(self.value * _UNIT, np.float64))

    def arrays(self) -> Arrays:
        of_model = {f"model.{name}": array for name, array in self.model.arrays().items()}
        return {**super().arrays(), **of_model}

    @classmethod
    def from_content(cls, schema: Schema, parameters: object, arrays: Arrays) -> Self:
        content = entries(parameters, "a histogram of scores", {"bins": int, "model": dict})
        theirs = {k.removeprefix("model."): a for k, a in arrays.items() if k.startswith("model.")}
        if "value" not in arrays or len(theirs) + 1 != len(arrays):
            raise PlanError(
                "a histogram of scores needs values, the arrays of its model and no others"
            )
        of_model = dict(content["model"])
        name = of_model.pop("name", None)
        if name == cls.name:  # checked before it is read, at any depth of nesting
            raise PlanError(f"{cls.name} needs a detector's tables, not {name} again")
        tables = family_from_content(name, of_model, theirs, schema)
        return cls(schema, tables, arrays["value"], content["bins"])

    def cells(self, scores: Floats) -> Ints:
        """Return the cell (n,) of each score (n,): the model's scores, means over its tables."""
        # In whole numbers, like scores when they are counted: the same cell on every machine.
        units = np.rint(scores * (self.model.n_tables / _UNIT)).astype(np.int64)
        least, width = self._layout
        return np.clip((units - least) // width, 0, self.bins - 1)

    def cells_of(self, codes: Codes) -> Ints:
        """Return the cell (n,) of each row."""
        return self.cells(self._scoring(codes))

    def count(self, codes: Codes, counts: Ints, weights: Ints | None = None) -> None:
        np.add.at(counts, self.cells_of(codes), 1 if weights is None else weights)

    def count_pairs(self, codes: Codes, rows: Ints, tables: Ints, counts: Ints) -> None:
        np.add.at(counts, self.cells_of(codes)[rows], 1)

    def sum(self, codes: Codes, values: Floats) -> Floats:
        return np.asarray(values[self.cells_of(codes)], np.float64)


# --- the gate of the second pass: which rows are dense enough to be counted again ---------------

#: Cells of the histogram by which the gate is found: of exact counts, and under noise, where fewer
#: cells are more accurate.
GATE_BINS, PRIVATE_GATE_BINS = 128, 32
#: Cells of a histogram of scores, which ranks rows.
RANK_BINS, PRIVATE_RANK_BINS = 4096, 128
#: How the counts of all rows score behind a gate, instead of HushTable's rule: smoother, because
#: the counts of the dense rows distinguish the others. Measured: see the docs.
SECOND_PASS = ScoreRule("smoothed_log2", 0.2)


def otsu_cell(counts: Ints | Floats) -> int:
    """Return the cell of a histogram at which its upper class begins, by Otsu's method.

    The split maximises N0 N1 (M0 / N0 - M1 / N1)^2, where N are the numbers of rows and M the sums
    of their places in both classes. 0 if all rows are in one cell.

    References
    ----------
    N. Otsu. A threshold selection method from gray-level histograms. IEEE Transactions on
    Systems, Man, and Cybernetics 9(1), 1979.
    """
    rows, places = np.cumsum(counts), np.cumsum(counts * np.arange(len(counts)))
    below, above = rows[:-1].astype(np.float64), (rows[-1] - rows[:-1]).astype(np.float64)
    split = np.flatnonzero((below > 0) & (above > 0))
    if len(split) == 0:
        return 0
    gap = places[split] / below[split] - (places[-1] - places[split]) / above[split]
    return int(split[np.argmax(below[split] * above[split] * gap * gap)]) + 1


def noised_otsu_cell(counts: Ints, n_rows: int) -> int:
    """Return `otsu_cell` of noisy counts, which are first fitted to about ``n_rows`` rows."""
    return otsu_cell(onto_simplex(counts.astype(np.float64), float(max(1, n_rows))))


def gate_histogram(
    family: HashFamily, rule: ScoreRule, first: Ints, noise_sd: float
) -> ScoreHistogram:
    """Return the histogram of rows' densities, by which the gate after counts of all rows is found.

    The density is the mean of log2(C1 + 1), where C1 are exact counts, over half of the tables,
    which chooses as well in half of the time; under noise, it is the score by the plan's rule.
    """
    if noise_sd > 0.0:
        return score_histogram(family, rule.noisy_values(first, noise_sd), PRIVATE_GATE_BINS)
    half = family.part((family.n_tables + 1) // 2)
    return score_histogram(half, logs(first[: half.n_cells], 1.0), GATE_BINS)


def score_histogram(family: HashFamily, values: Floats, bins: int) -> ScoreHistogram:
    """Return the histogram of rows' mean ``values`` (n_cells,), in 2**-20 bits."""
    return ScoreHistogram(family.schema, family, np.rint(values / _UNIT).astype(np.int64), bins)
