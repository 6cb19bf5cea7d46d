"""Pairs of a context and a behaviour: what a row is compared with, and what is compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.encoding import Codes
from hushtable.data.readers import found_name
from hushtable.data.schema import Schema
from hushtable.errors import PlanError, UsageError
from hushtable.plans.families.family import (
    MAX_CELLS,
    Arguments,
    Concatenated,
    Floats,
    Ints,
    drawn,
    register,
    whole_number,
)
from hushtable.plans.families.random_feature import MAX_DEPTH, RandomFeature, subset_sizes
from hushtable.plans.score_rule import ScoreRule, exact

#: Number of rows by which shares within a context shrink towards those of all rows. Measured: see
#: docs/benchmarks/accuracy.md.
WEIGHT = 8.0


def context_columns(schema: Schema, names: Sequence[str]) -> NDArray[np.bool_]:
    """Return which columns are the context (d,); raise `UsageError` if they cannot be one."""
    if not names or isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"context={names!r}: needs a list of names of columns, such as ['ward']")
    names = [found_name(name, schema.names) for name in names]
    if unknown := [name for name in names if name not in schema.names]:
        raise UsageError(
            f"context={unknown}: there is no such column: name some of {list(schema.names)}"
        )
    inside = np.isin(np.array(schema.names, object), list(names))
    constant = [name for name in names if schema.features[schema.names.index(name)].constant]
    if constant and not own_cells(schema, inside, MAX_CELLS):  # which a missing value has, too
        raise only_one_value(constant)
    if inside.all():
        raise UsageError(
            f"context={list(names)} are all columns: leave out at least one, which is then compared"
        )
    return inside


def only_one_value(names: Sequence[str]) -> UsageError:
    """Return the error of a context that does not vary."""
    return UsageError(
        f"context={list(names)}: the column has only one value, so it does not distinguish rows: "
        "leave it out"
    )


def own_cells(schema: Schema, inside: NDArray[np.bool_], most: int) -> int:
    """Return the number, from 1, of the column whose values have a cell each; 0 if none has."""
    [first, *others] = np.flatnonzero(inside).tolist()
    feature = schema.features[first]
    fits = len(feature.categories) + 2 <= most
    return first + 1 if not others and feature.kind == "categorical" and fits else 0


@register
@dataclass(frozen=True, eq=False)
class Contextual(Concatenated):
    """Pairs of cells: random-feature LSH of the context, and of the behaviour, in each table.

    ``depth``, ``feature``, ``cut``, ``missing`` and ``subsets`` are hash functions on the columns
    of the behaviour, folded into ``cells`` cells: see `RandomFeature`. The arrays that start with
    ``context_`` are those on the columns of the context, folded into ``contexts`` cells. A cell is
    a pair: context times ``cells``, plus behaviour. If ``own`` is above 0, there are no functions
    of the context: each value of the categorical feature with this number, counted from 1, is a
    context, as are a missing value and an unseen one. Otherwise, each group of ``shared``
    consecutive tables has the same functions of the context. The last ``pooled`` tables are of
    differences within groups (`Differences.in_groups`), which they compare with those of all rows.
    """

    name: ClassVar[str] = "Contextual"
    _loops: ClassVar[str] = "contextual"

    depth: NDArray[np.uint8] = drawn(np.uint8, "n_tables", low=1, below=MAX_DEPTH + 1)
    feature: NDArray[np.uint16] = drawn(np.uint16, "n_functions", below="n_features")
    cut: NDArray[np.uint16] = drawn(np.uint16, "n_functions", below=kernels.LEVELS + 1)
    missing: NDArray[np.uint8] = drawn(np.uint8, "n_functions", below=2)
    subsets: NDArray[np.uint8] = drawn(np.uint8, "n_sides", below=2)
    context_depth: NDArray[np.uint8] = drawn(np.uint8, "n_drawn", low=1, below=MAX_DEPTH + 1)
    context_feature: NDArray[np.uint16] = drawn(
        np.uint16, "n_context_functions", below="n_features"
    )
    context_cut: NDArray[np.uint16] = drawn(
        np.uint16, "n_context_functions", below=kernels.LEVELS + 1
    )
    context_missing: NDArray[np.uint8] = drawn(np.uint8, "n_context_functions", below=2)
    context_subsets: NDArray[np.uint8] = drawn(np.uint8, "n_context_sides", below=2)
    contexts: int = whole_number(2, MAX_CELLS)
    cells: int = whole_number(2, MAX_CELLS)
    own: int = whole_number(0, MAX_CELLS, default=0)
    shared: int = whole_number(1, MAX_CELLS, default=1)
    pooled: int = whole_number(0, MAX_CELLS, default=0)
    margin: int = whole_number(0, kernels.LEVELS, default=0)
    own_sides: int = whole_number(0, 10, default=10)

    def _check(self) -> None:
        if self.contexts * self.cells > MAX_CELLS:
            raise PlanError(
                f"{self.contexts} contexts of {self.cells} cells: a table has at most {MAX_CELLS:,}"
            )
        if self.own:
            feature = self.schema.features[self.own - 1] if self.own <= self.n_features else None
            if (
                feature is None
                or feature.kind != "categorical"
                or len(feature.categories) + 2 != self.contexts
            ):
                raise PlanError(
                    f"own={self.own}: is not a categorical feature with {self.contexts - 2} values"
                )
        differences = self.schema.differences
        if self.pooled > (0 if differences is None else self.n_tables):
            raise PlanError(f"pooled={self.pooled}: needs tables of differences within groups")
        context = {int(j) for j in self.context_feature} | ({self.own - 1} if self.own else set())
        if context & {int(j) for j in self.feature}:
            raise PlanError(
                "hash functions: a column belongs to both the context and the behaviour"
            )
        # Their own checks run once more than needed, but are not repeated here.
        _ = self.behaviour, self.context
        super()._check()

    @classmethod
    def paired(
        cls,
        behaviour: RandomFeature,
        context: RandomFeature | None,
        own: int,
        margin: int,
        pooled: int = 0,
    ) -> "Contextual":
        """Return pairs of a table of each kind, or of a table and each value of feature ``own``.

        There may be fewer tables of the context, each for several of the behaviour. ``margin`` is
        the one of `RandomFeature`.
        """
        schema = behaviour.schema
        if context is None:
            drawn = {name: array[:0] for name, array in behaviour.arrays().items()}
            contexts = len(schema.features[own - 1].categories) + 2
        else:
            drawn, contexts = context.arrays(), context.max_cells
        shared = 1 if context is None else -(-behaviour.n_tables // context.n_tables)
        return cls(
            schema=schema,
            **behaviour.arrays(),
            **{f"context_{name}": array for name, array in drawn.items()},
            contexts=contexts,
            cells=behaviour.max_cells,
            own=own,
            shared=shared,
            pooled=pooled,
            margin=margin,
            own_sides=behaviour.own_sides,
        )

    @property
    def n_drawn(self) -> int:
        """Number of drawn contexts; 0 if the context is a feature's value."""
        return 0 if self.own else -(-self.n_tables // self.shared)

    @property
    def n_context_functions(self) -> int:
        """Number of hash functions of all contexts together."""
        return int(self.context_depth.sum(dtype=np.int64))

    @property
    def n_sides(self) -> int:
        """Number of sides in ``subsets``."""
        return int(subset_sizes(self.schema, self.feature).sum())

    @property
    def n_context_sides(self) -> int:
        """Number of sides in ``context_subsets``."""
        return int(subset_sizes(self.schema, self.context_feature).sum())

    @property
    def size(self) -> int:
        """Number of cells of a table."""
        return self.contexts * self.cells

    @cached_property
    def offsets(self) -> Ints:
        return np.arange(self.n_tables + 1, dtype=np.int64) * self.size

    @cached_property
    def behaviour(self) -> RandomFeature:
        """The hash functions of the behaviour, as tables of their own."""
        arrays = self.depth, self.feature, self.cut, self.missing, self.subsets
        return RandomFeature(self.schema, *arrays, max_cells=self.cells)

    @cached_property
    def context(self) -> RandomFeature | None:
        """The hash functions of the context, as tables of their own; None if it is a value."""
        if self.own:
            return None
        return RandomFeature(
            self.schema,
            self.context_depth,
            self.context_feature,
            self.context_cut,
            self.context_missing,
            self.context_subsets,
            max_cells=self.contexts,
        )

    @property
    def context_features(self) -> list[int]:
        """Numbers of the columns of the context."""
        return [self.own - 1] if self.own else sorted(set(self.context_feature.tolist()))

    def shares(self, counts: Ints, weight: float = WEIGHT) -> tuple[Floats, Floats]:
        """Return the share p of each cell within its context, and its behaviour's share q.

        q = C_b / N and p = (C + w q) / (C_c + w), where C is the count of the cell, C_b that of its
        behaviour in all contexts, C_c that of its context, N the table's, and w ``weight`` in rows:
        if few rows of a context were counted, p is close to q. In ``pooled`` tables, p is q. With
        noise, counts below 0 are taken as 0, and those of a behaviour, a context or a table as at
        least 1.

        Parameters
        ----------
        counts : ndarray of shape (n_cells,), int64
            The counts of all tables.
        weight : float
            Number of rows.

        Returns
        -------
        p, q : ndarray of shape (n_cells,), float64
        """
        of_pairs = counts.reshape(-1, self.contexts, self.cells)
        of_context = of_pairs.sum(axis=2, keepdims=True)
        of_behaviour = of_pairs.sum(axis=1, keepdims=True)
        n_rows = np.maximum(of_behaviour.sum(axis=2, keepdims=True), 1)
        if counts.min(initial=0) < 0:
            of_pairs = np.maximum(of_pairs, 0)
            of_context, of_behaviour = np.maximum(of_context, 1), np.maximum(of_behaviour, 1)
        q = of_behaviour / n_rows
        p = np.minimum((of_pairs + weight * q) / (of_context + weight), 1.0)
        pooled = self.n_tables - self.pooled
        p[pooled:] = q[pooled:]
        return p.ravel(), np.broadcast_to(q, of_pairs.shape).ravel()

    def cell_scores(self, rule: ScoreRule, counts: Ints, noise_sd: float) -> Floats:
        """Return the score of every cell (n_cells,) by a rule that takes shares.

        Under noise, the weight is at least twice its standard deviation. In a missing or unseen
        group, a cell has the score that it has among all rows, plus what the group adds on average.
        """
        p, q = self.shares(counts, max(WEIGHT, 2.0 * noise_sd))
        scores = rule.values_in_context(p, q)
        if not (self.pooled and self.own):
            return scores
        shape = self.n_tables, self.contexts, self.cells
        scores, of_all = (v.reshape(shape) for v in (scores, rule.values_in_context(q, q)))
        known = slice(1, -1)  # the first is missing, the last is unseen
        rows = counts.reshape(shape)[:, known]
        added = (rows * (scores - of_all)[:, known]).sum(axis=(1, 2), keepdims=True)
        added = exact(added / np.maximum(rows.sum(axis=(1, 2), keepdims=True), 1))
        unknown = [0, -1]
        scores[:, unknown] = of_all[:, unknown] + added
        return scores.ravel()

    def slopes(self, rule: ScoreRule, counts: Ints, noise_sd: float) -> Floats:
        """Return the derivative of `cell_scores` by the cell's count, with fixed sums of counts."""
        weight = max(WEIGHT, 2.0 * noise_sd)
        p, _ = self.shares(counts, weight)
        rows = np.maximum(self.rows_of_context(counts), 1) + weight
        slopes = np.where(counts > 0, 1.0, 0.0) / ((p + rule.smoothing) * rows * np.log(2.0))
        return np.asarray(slopes, np.float64)

    def rows_of_context(self, counts: Ints) -> Ints:
        """Return, for each cell, how many rows of its context were counted (n_cells,)."""
        of_pairs = counts.reshape(-1, self.contexts, self.cells)
        of_context = np.repeat(of_pairs.sum(axis=2), self.cells)
        return np.asarray(of_context, np.int64)

    @property
    def can_gain(self) -> NDArray[np.bool_]:
        return self.behaviour.can_gain

    def gains(self, codes: Codes, values: Floats, limits: Floats) -> tuple[Floats, Floats]:
        totals, gains = np.empty(len(codes)), np.empty((len(codes), len(codes.tally)))
        functions = *self._functions(codes), self._place, self.behaviour.reachable
        kernels.gain_random_feature(codes.codes, *functions, values, limits, gains, totals)
        return totals, gains

    def _arguments(self, codes: Codes) -> Arguments:
        return *self._functions(codes), self._place

    @property
    def _place(self) -> tuple[int, int, int, int]:
        return self.own - 1, self.shared, self.cells, self.size

    def _functions(self, codes: Codes) -> tuple[Any, Any]:
        which = codes.some_missing
        if which not in self._laid_out:
            context = None if self.context is None else _folding(self.context.functions(codes))
            self._laid_out[which] = _folding(self.behaviour.functions(codes)), context
        return self._laid_out[which]

    @cached_property
    def _laid_out(self) -> dict[bool, tuple[Any, Any]]:
        return {}


def _folding(functions: Arguments) -> Arguments:
    """Return hash functions with a flag for each table that folds, even if none does."""
    first, rows, cuts, subset_at, subsets, folded, offsets = functions
    if folded is None:
        folded = np.zeros(len(offsets) - 1, np.uint8)
    return first, rows, cuts, subset_at, subsets, folded, offsets
