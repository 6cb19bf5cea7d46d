"""Distributions of values over merged rows, from the counts of a round about columns."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from hushtable.counts.base import Counts
from hushtable.data.schema import Feature
from hushtable.errors import FileError, PlanError, UsageError
from hushtable.plans.draws import Purpose
from hushtable.privacy.layout import onto_simplex
from hushtable.scores.far import BUT
from hushtable.scores.typical import UsualValues
from hushtable.scores.usual import MERGED, Usual


class Frequencies:
    """Relative frequencies of values among the merged rows, feature by feature.

    It needs counts under `Plan.marginals`, else it raises `FileError`, with ``name`` for the file.
    """

    def __init__(self, counts: Counts, name: str) -> None:
        plan = counts.plan
        if plan.purpose is not Purpose.MARGINALS:
            raise FileError(
                f"{name} holds counts of a {plan.detector!r} plan: --marginals takes a merged "
                "sketch or release under hushtable plan marginals"
            )
        if plan.schema.relations is not None:
            raise UsageError(
                f"{name} counts residuals of columns with relations, not values: count under "
                "hushtable plan marginals of a schema without relations"
            )
        self.features, self._name = plan.schema.features, name
        n_rows = max(1.0, float(counts.counts.sum()) / len(self.features))
        #: Rows at the end of a range that count as none: see `UsualValues.of_cells`.
        self._few = (BUT + 0.5 + 5.0 * counts.noise_sd) / n_rows
        #: For each feature, the relative frequency of each cell, with the noise smoothed out: cells
        #: divide a range from low to high, or are categories; the last is for missing values.
        self.cells = []
        for first, last in itertools.pairwise(plan.family.offsets):
            rows = counts.counts[first:last].astype(np.float64)
            if counts.noise_sd > 0.0:
                rows = onto_simplex(rows, n_rows)
            self.cells.append(rows / max(1.0, rows.sum()))

    @cached_property
    def usual(self) -> list[UsualValues | None]:
        """The usual values of each feature among the merged rows."""
        found = (
            UsualValues.of_cells(
                feature, cells[:-1], partial(_edges, feature, len(cells) - 1), self._few
            )
            for feature, cells in zip(self.features, self.cells, strict=True)
        )
        missing = [float(cells[-1]) for cells in self.cells]
        return [u and replace(u, missing=share) for u, share in zip(found, missing, strict=True)]

    def check(self, features: Sequence[Feature]) -> None:
        """Raise `PlanError` unless these are the features that were counted."""
        if [(f.name, f.kind) for f in self.features] != [(f.name, f.kind) for f in features]:
            raise PlanError(
                f"{self._name}: the marginals do not belong to the model's features, in its order"
            )

    def beside(self, own: Usual | None) -> Usual:
        """Return what is usual among the merged rows; bars and pairs come from the own rows."""
        if own is None:
            return Usual(None, tuple(self.usual), among=MERGED)
        return replace(own, values=tuple(self.usual), within={}, bars_within={}, among=MERGED)


def _edges(feature: Feature, n_cells: int, first: int, last: int) -> tuple[float, float]:
    """Return the outer edges of two of the cells into which a range is divided."""
    width = (feature.high - feature.low) / n_cells
    return feature.low + first * width, min(feature.low + (last + 1) * width, feature.high)
