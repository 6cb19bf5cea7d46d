"""Comparing rows with a schema: values that are missing, outside, constant, or in a small part.

The result describes the rows: it is for anyone who holds them, and ranges must not be derived from
it.
"""

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable import kernels
from hushtable.data.columns import as_numbers
from hushtable.data.encoding import Codes, Encoder, naming_places
from hushtable.data.passes import Numbered, numbered
from hushtable.data.readers import Batch, no_rows
from hushtable.data.schema import Feature, Schema
from hushtable.data.typed import open_rows
from hushtable.threads import map_in_order, n_threads

#: Number of cells of a range, used to see how much of it the values use: 65,280 levels in 1,020.
_CELLS, _LEVELS_A_CELL = 1020, 64
#: Fraction of the values on each side that may be anywhere without the range counting as used: one
#: typing error must not hide that all other values are in a different unit.
_TAIL = 0.01
#: A smaller used part of the range than this suggests a different unit.
_NARROW = 0.01


@dataclass(frozen=True)
class FeatureCheck:
    """The fit of the rows to one feature.

    Attributes
    ----------
    feature : Feature
        The feature.
    rows : int
        Number of rows in total.
    missing : int
        Rows without a value.
    below, above : int
        Rows below and above the range of a numeric feature.
    unseen : int
        Rows whose category a categorical feature does not list.
    constant : bool
        Whether all values are the same, and the feature could take others.
    used : float
        Part of the range, from 0 to 1, in which the middle 98% of the values of a numeric feature
        lie; 1 for a categorical feature and where there are no values.

    Examples
    --------
    >>> from hushtable import Feature, Schema
    >>> from hushtable.data import check_rows
    >>> schema = Schema([Feature.numeric("weight", low=0, high=1000, unit="kg")])
    >>> check_rows(schema, [[0.07], [0.08], [0.06]])[0].finding
    'narrow'
    """

    feature: Feature
    rows: int
    missing: int
    below: int
    above: int
    unseen: int
    constant: bool
    used: float

    @property
    def outside(self) -> int:
        """Rows outside the range or the categories."""
        return self.below + self.above + self.unseen

    @property
    def finding(self) -> str | None:
        """The most serious finding that a person should check, or None.

        ``"missing"``: no row has a value. ``"outside"``: most values lie outside. ``"constant"``:
        all values are the same. ``"narrow"``: the values use less than 1/100 of the range.
        """
        if self.missing == self.rows:
            return "missing"
        if 2 * self.outside > self.rows - self.missing:
            return "outside"
        if self.constant:
            return "constant"
        return "narrow" if self.used < _NARROW else None


def check_rows(schema: Schema, X: Any, *, n_jobs: int | None = None) -> list[FeatureCheck]:
    """Compare rows with a schema, before they are counted under it.

    Parameters
    ----------
    schema : Schema
        Kinds, ranges and categories; that of a plan is ``plan.schema``.
    X : array, data frame, Arrow object or path
        Rows, as `hushtable.data.readers.as_reader` takes them, with the schema's features as
        columns, by name. They are read once, a batch at a time.
    n_jobs : int, optional
        Threads; None is one, -1 every core. The result is the same for any number.

    Returns
    -------
    list of FeatureCheck
        One for each feature, in order.

    Raises
    ------
    DataError
        If there are no rows, the columns are not the schema's, or a value is of the wrong kind;
        the message names the column.

    Examples
    --------
    >>> from hushtable import Feature, Schema
    >>> from hushtable.data import check_rows
    >>> schema = Schema([Feature.numeric("age", low=0, high=120)])
    >>> [age] = check_rows(schema, [[31], [58], [700]])
    >>> age.rows, age.above
    (3, 1)
    """
    schema = replace(schema.of_rows, relations=None)  # values are checked, not their residuals
    reader, encoder = open_rows(X, schema), Encoder(schema)

    def counted(item: Numbered) -> _Counts:
        start, batch, _ = item
        part = _Counts(schema)
        part.add_rows(batch, encoder.encode(batch, start), start)
        return part

    total = _Counts(schema)
    items = itertools.chain.from_iterable(numbered(reader))
    with naming_places(reader):
        for part in map_in_order(counted, items, n_threads(n_jobs, reader.n_rows)):
            total.merge(part)
    if not total.rows:
        raise no_rows(reader)
    return [total.check(j) for j in range(len(schema))]


class _Counts:
    """Counts of some rows; the sum gives the counts of all rows."""

    def __init__(self, schema: Schema) -> None:
        d = len(schema)
        self.schema = schema
        self.rows = 0
        self.tally = np.zeros((d, 2), np.int64)
        self.below = np.zeros(d, np.int64)
        self.lowest = np.full(d, np.inf)
        self.highest = np.full(d, -np.inf)
        #: For each feature, rows in each cell of its range, or of each category and the unseen.
        self.cells = [np.zeros(_n_cells(feature), np.int64) for feature in schema.features]

    def add_rows(self, batch: Batch, codes: Codes, start: int) -> None:
        self.rows += len(codes)
        self.tally += codes.tally
        for j, feature in enumerate(self.schema.features):
            present = codes.codes[j][codes.codes[j] != kernels.MISSING_LOW] - 1
            if feature.kind == "categorical":
                self.cells[j] += np.bincount(present, minlength=_n_cells(feature))
                continue
            self.cells[j] += np.bincount(present // _LEVELS_A_CELL, minlength=_CELLS)
            values = (
                batch[:, j]
                if isinstance(batch, np.ndarray)
                else as_numbers(batch.column(j), feature.name, start)
            )
            # A float64, because the encoder compares in it.
            self.below[j] += np.count_nonzero(values < np.float64(feature.low))
            self.lowest[j] = np.fmin.reduce(values, initial=self.lowest[j])
            self.highest[j] = np.fmax.reduce(values, initial=self.highest[j])

    def merge(self, other: "_Counts") -> None:
        self.rows += other.rows
        self.tally += other.tally
        self.below += other.below
        self.lowest = np.minimum(self.lowest, other.lowest)
        self.highest = np.maximum(self.highest, other.highest)
        for mine, theirs in zip(self.cells, other.cells, strict=True):
            mine += theirs

    def check(self, j: int) -> FeatureCheck:
        feature, cells = self.schema.features[j], self.cells[j]
        missing, outside = self.tally[j].tolist()
        if feature.kind == "numeric":
            below, unseen = int(self.below[j]), 0
            same, used = bool(self.lowest[j] == self.highest[j]), _used(cells)
        else:
            below, unseen = 0, outside
            same, used = np.count_nonzero(cells) == 1 and not unseen, 1.0
        if feature.constant:
            same, used = False, 1.0
        above = outside - below - unseen
        return FeatureCheck(feature, self.rows, missing, below, above, unseen, same, used)


def _n_cells(feature: Feature) -> int:
    return _CELLS if feature.kind == "numeric" else len(feature.categories) + 1


def _used(cells: NDArray[np.int64]) -> float:
    """Return the part of the range that holds the values, up to a tail on each side."""
    up_to = np.cumsum(cells)
    n = up_to[-1]
    if n == 0:
        return 1.0
    first = np.searchsorted(up_to, _TAIL * n, side="right")
    last = np.searchsorted(up_to, (1.0 - _TAIL) * n, side="left")
    return float(last - first + 1) / len(cells)
