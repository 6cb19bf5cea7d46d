"""One histogram of the scores that a model gives: how rare a row is among all rows counted."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from hushtable.data.encoding import Codes
from hushtable.data.schema import Schema
from hushtable.entries import entries
from hushtable.errors import PlanError
from hushtable.files import Arrays
from hushtable.plans.families._family import (
    MAX_CELLS,
    Floats,
    HashFamily,
    Ints,
    Scoring,
    drawn,
    whole_number,
)
from hushtable.plans.families.registry import family_from_content, register

#: Values of cells are whole numbers of it, in bits: the unit that scores are rounded to.
_UNIT = 2.0**-20
#: No sum of values is larger: it stays exact in float64.
_LARGEST = 1 << 52


@register
@dataclass(frozen=True, eq=False)
class ScoreHistogram(HashFamily):
    """One histogram of scores: the hash function is a model.

    ``model`` is the model's tables, ``value`` the score of each of their cells, in 2**-20 of the
    model's unit. The ``bins`` cells have equal width, from the least to the largest score that the
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

    @property
    def n_model_cells(self) -> int:
        """Number of cells of the model's tables."""
        return self.model.n_cells

    @property
    def offsets(self) -> Ints:
        return np.array([0, self.bins])

    @cached_property
    def edges(self) -> Floats:
        """Scores between which the cells lie (bins + 1,); a row's score is a mean over tables."""
        first, width = self._layout
        edges = (first + width * np.arange(self.bins + 1)) * (_UNIT / self.model.n_tables)
        return np.asarray(edges, np.float64)

    @cached_property
    def _layout(self) -> tuple[int, int]:
        """Least sum of values over the tables, and the width of a cell, so that all sums fit."""
        starts, m = self.model.offsets[:-1], self.model.n_tables
        high = np.maximum.reduceat(self.value, starts).reshape(m, -1).max(axis=1)
        least = int(self.model.least(self.value))
        if self.model.margin:  # rows beyond the ranges fall by one unit more
            least -= m << 20
        return least, (int(high.sum()) - least) // self.bins + 1

    @cached_property
    def _scoring(self) -> Scoring:
        return self.model.scoring(np.asarray(self.value * _UNIT, np.float64))

    def parameters(self) -> dict[str, Any]:
        model = {"name": self.model.name, **self.model.parameters()}
        return {**super().parameters(), "model": model}

    def arrays(self) -> Arrays:
        of_model = {f"model.{name}": array for name, array in self.model.arrays().items()}
        return {**super().arrays(), **of_model}

    @classmethod
    def from_content(cls, schema: Schema, parameters: Any, arrays: Arrays) -> Self:
        content = entries(parameters, "a histogram of scores", {"bins": int, "model": dict})
        model = dict(content["model"])
        name = model.pop("name", None)
        if name == cls.name:  # before it is read, however deep it goes
            raise PlanError(f"{cls.name} needs a detector's tables, not {name} again")
        theirs = {k.removeprefix("model."): a for k, a in arrays.items() if k.startswith("model.")}
        if "value" not in arrays or len(theirs) + 1 != len(arrays):
            raise PlanError("a histogram of scores needs values, its model's arrays and no others")
        tables = family_from_content(name, model, theirs, schema)
        return cls(schema, tables, arrays["value"], content["bins"])

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        found = super().json_schema()
        found["required"].append("model")
        found["properties"]["model"] = {"$ref": "#/$defs/tables"}
        return found

    def cells(self, scores: Floats) -> Ints:
        """Return the cell (n,) of each score (n,): the model's, a mean over its tables."""
        # Whole numbers, as all scores are when counted: the same cell on every machine.
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
