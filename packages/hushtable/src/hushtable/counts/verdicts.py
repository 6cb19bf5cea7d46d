"""Verdicts: counts of the rows that somebody has looked at, under a model's plan."""

import itertools
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushtable import files
from hushtable.counts.base import Counts
from hushtable.counts.sketch import Sketch
from hushtable.data.encoding import Codes, Encoder, naming_places
from hushtable.data.readers import Reader
from hushtable.data.typed import open_rows
from hushtable.data.weights import numbered
from hushtable.errors import DataError, PlanError, UsageError
from hushtable.plans.families import Labelled
from hushtable.plans.plan import Plan
from hushtable.plans.verdicts import check_takes_verdicts

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Verdicts(Counts):
    """Counts of rows that were confirmed as outliers, and of rows that are fine.

    They are counted under the plan of a model, in all tables, and change the scores of the cells
    that they fall into: see `hushtable.plans.verdicts`. Verdicts of several sites, or days, add
    up exactly, and can be taken away again.

    They are exact counts of few rows, from which the rows can be read: they are kept like the
    rows themselves. What may leave a site is a release under ``Plan.verdicts``.

    Attributes
    ----------
    plan : Plan
        Of the model: of two passes, the first's.
    outliers, fine : ndarray of shape (n_cells,), int64
        Rows in each cell that were confirmed as outliers, and that are fine.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import HushTable, Verdicts
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> plan = HushTable(random_state=0).fit(X).plan_
    >>> monday = Verdicts.from_data(plan, X[:2], [1, 0])
    >>> tuesday = Verdicts.from_data(plan, X[2:5], [0, 0, 0])
    >>> monday + tuesday
    Verdicts(1 outlier, 4 fine, plan_id='...')
    """

    kind: ClassVar[str] = "verdicts"
    noun: ClassVar[str] = "raw verdicts"
    adds: ClassVar[bool] = True
    ledger = None  # exact counts have none

    plan: Plan
    outliers: Ints = field(repr=False)
    fine: Ints = field(repr=False)

    def __post_init__(self) -> None:
        first = self.plan.family.offsets[:-1]
        for name in ("outliers", "fine"):
            self._check_array(name, (self.n_cells,))
            array = getattr(self, name)
            rows = np.add.reduceat(array, first)
            if array.min() < 0 or (rows != rows[0]).any() or rows[0] > 2**40:
                raise PlanError(
                    f"{self.noun}: {name} needs the same rows in each table, 2^40 at most, and no "
                    "count below 0"
                )

    @classmethod
    def zero(cls, plan: Plan) -> "Verdicts":
        """Return no verdicts, the identity of ``+``."""
        return cls(plan.first_pass(), *np.zeros((2, plan.family.n_cells), np.int64))

    @classmethod
    def from_data(cls, plan: Plan, X: Any, y: ArrayLike) -> "Verdicts":
        """Count rows with verdicts.

        Parameters
        ----------
        plan : Plan
            Of the model.
        X : array, data frame, Arrow object or path
            The rows, with the plan's features as columns.
        y : array-like of shape (n,)
            The verdicts: 1 for an outlier, 0 for a row that is fine.

        Returns
        -------
        Verdicts

        Raises
        ------
        DataError
            If a verdict is anything else, there is not one for each row, or the columns are not
            the plan's.
        UsageError
            If the plan's scores do not take verdicts.
        """
        return cls.of_rows(plan, open_rows(X, plan.schema), y)

    @classmethod
    def of_rows(cls, plan: Plan, reader: Reader, y: ArrayLike) -> "Verdicts":
        """Count the rows of a reader that has the plan's features; see `from_data`."""
        check_takes_verdicts(plan)
        outlier = checked(y)
        encoder, found = Encoder(plan.schema), cls.zero(plan)
        family = found.plan.family
        n_rows = 0
        with naming_places(reader):
            for start, batch, _ in itertools.chain.from_iterable(numbered(reader)):
                n_rows += len(batch)
                some = outlier[start : start + len(batch)]
                if len(some) == len(batch):
                    codes = encoder.encode(batch, start)
                    family.count(codes, found.outliers, some)
                    family.count(codes, found.fine, 1 - some)
        if n_rows != len(outlier):
            raise DataError(f"{len(outlier):,} verdicts for {n_rows:,} rows: needs one a row")
        return found

    @classmethod
    def of_codes(cls, plan: Plan, codes: Codes, y: Ints) -> "Verdicts":
        """Count rows that are encoded; ``y`` (n,) is 1 for an outlier, 0 for a row that is fine."""
        found = cls.zero(plan)
        found.plan.family.count(codes, found.outliers, y)
        found.plan.family.count(codes, found.fine, 1 - y)
        return found

    @property
    def counts(self) -> Ints:  # type: ignore[override] # the base's is a field
        """Confirmed outliers minus rows that are fine, in each cell: what a release holds."""
        return self.outliers - self.fine

    @property
    def n_outliers(self) -> int:
        """Rows that were confirmed as outliers."""
        return self.plan.rows_counted(self.outliers)

    @property
    def n_fine(self) -> int:
        """Rows that are fine."""
        return self.plan.rows_counted(self.fine)

    @property
    def n_rows(self) -> int:
        """Verdicts."""
        return self.n_outliers + self.n_fine

    @property
    def n_contradictory(self) -> int:
        """Pairs at most of an outlier and a row that is fine, which lie in the same cells."""
        both = np.add.reduceat(np.minimum(self.outliers, self.fine), self.plan.family.offsets[:-1])
        return int(both.min())

    def signed(self, plan: Plan) -> Sketch:
        """Return the sketch of these verdicts under ``Plan.verdicts`` of the model, to release."""
        family = plan.family
        if not isinstance(family, Labelled) or not family.model.same(self.plan.family):
            raise PlanError(
                f"{self.noun} can be released under Plan.verdicts of its own model only: this plan "
                "is another's"
            )
        tally = np.zeros((len(plan.schema), 2), np.int64)
        totals = np.array([self.n_fine, self.n_outliers])
        return Sketch(plan, np.append(totals, self.counts), tally)

    # --- the algebra ------------------------------------------------------------------------

    def __add__(self, other: "Verdicts") -> "Verdicts":
        if not self._addable(other):
            return NotImplemented
        return replace(self, outliers=self.outliers + other.outliers, fine=self.fine + other.fine)

    def __sub__(self, other: "Verdicts") -> "Verdicts":
        """Take verdicts away that were added."""
        if not self._addable(other, "subtract"):
            return NotImplemented
        if (other.outliers > self.outliers).any() or (other.fine > self.fine).any():
            raise UsageError(
                "only verdicts that were learned can be forgotten: some count would be below zero"
            )
        return replace(self, outliers=self.outliers - other.outliers, fine=self.fine - other.fine)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Verdicts):
            return NotImplemented
        return (
            self.plan_id == other.plan_id
            and np.array_equal(self.outliers, other.outliers)
            and np.array_equal(self.fine, other.fine)
        )

    # Equal by its arrays, which have no hash.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        outliers = f"{self.n_outliers:,} outlier{'s' if self.n_outliers != 1 else ''}"
        return f"Verdicts({outliers}, {self.n_fine:,} fine, plan_id={self.plan_id[:12]!r})"

    # --- files --------------------------------------------------------------------------------

    def entries(self) -> tuple[dict[str, Any], files.Arrays]:
        """Return what a file carries of verdicts: manifest entries and arrays."""
        entries, arrays = self.plan.entries()
        return entries, arrays | {"outliers": self.outliers, "fine": self.fine}

    @classmethod
    def from_file(cls, content: files.Content) -> "Verdicts":
        """Build the verdicts that a file carries; raises `PlanError` if it holds none."""
        return cls(Plan.from_file(content), content.array("outliers"), content.array("fine"))


def checked(y: ArrayLike) -> Ints:
    """Return verdicts as int64 of shape (n,); raises `DataError` unless all are 1 or 0."""
    given = np.asarray(y)
    needed = "needs 1 (an outlier) or 0 (fine) for each row"
    if given.ndim != 1:
        raise DataError(f"verdicts of shape {given.shape}: {needed}")
    for at, value in enumerate(given.tolist()):
        if not isinstance(value, bool | int | float) or value not in (0, 1):
            raise DataError(f"verdict {value!r} of row {at}: {needed}")
    return given.astype(np.int64)
