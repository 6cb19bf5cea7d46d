"""Verdicts: counts of the rows that someone has judged, under a model's plan, and what they add.

An analyst's verdicts are counted like rows: confirmed outliers into P (nP of them), fine rows into
Q (nQ). A cell is evidence only if it holds more of them than expected from its share of all rows:
this is the information component of pharmacovigilance, observed against expected. Without
verdicts, nothing is added to scores.

References
----------
A. Bate et al. A Bayesian neural network method for adverse drug reaction signal generation.
European Journal of Clinical Pharmacology 54, 1998.
"""

import itertools
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushtable import files
from hushtable.arguments import entries
from hushtable.counts.base import Counts, check_coupled
from hushtable.counts.release import LocalModel, Release
from hushtable.counts.sketch import Sketch
from hushtable.data.encoding import Codes, Encoder, naming_places
from hushtable.data.passes import numbered
from hushtable.data.readers import Reader
from hushtable.data.typed import open_rows
from hushtable.errors import NO_SHARED_VERDICTS, DataError, PlanError, UsageError
from hushtable.plans.draws import purpose_of
from hushtable.plans.families import HashFamily
from hushtable.plans.plan import Plan
from hushtable.plans.score_rule import ScoreRule, exact
from hushtable.privacy.budget import Spent
from hushtable.privacy.ledger import Ledger

# --- what verdicts add to the scores of cells -----------------------------------------------------

#: The column of verdicts, and its two values.
VERDICT = "verdict"
FINE, OUTLIER = "fine", "outlier"
#: Rows added to the observed and the expected number, so that few verdicts give few bits.
PRIOR = 0.5
#: Spreads of the model's scores for each bit of evidence: with one kind of verdicts only, and once
#: this many of the other kind are known. Measured: see the docs.
ALONE, BESIDE, KNOWN = 1.0, 2.0, 3
#: Verdicts of the rarer kind at which tables' weights count half; the largest weight of a table.
_EVEN, _MOST = 5.0, 3.0
#: Spreads and weights are rounded to multiples of 1 / _UNIT: sums may differ in their last bits.
_UNIT = 2.0**10

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def check_takes_verdicts(detector: str, score: ScoreRule, family: HashFamily) -> None:
    """Raise `UsageError` if verdicts cannot change the scores under a plan."""
    if not purpose_of(detector).scores_rows or score.unit != "bits":
        raise UsageError(
            f"the scores under a {detector!r} plan are not in bits, to which verdicts add: "
            "use HushTable or LSHiTables"
        )
    if family.n_histograms != family.n_tables:
        raise UsageError(
            f"{detector!r} takes the least of several counts, to which verdicts do not add: "
            "use HushTable or LSHiTables"
        )


class VerdictCounts(NamedTuple):
    """Exact verdicts: the rows in each cell (n_cells,) with each verdict, and their totals."""

    outliers: Ints
    n_outliers: int
    fine: Ints
    n_fine: int


def verdict_values(judged: VerdictCounts, share: Floats, offsets: Ints, spread: float) -> Floats:
    """Return what exact verdicts add to the score of every cell, in bits.

    ``share`` (n_cells,) is the share of all counted rows in each cell; ``offsets`` (n_tables + 1,)
    the first cell of each table, and the end; ``spread`` is that of the model's scores: see
    `spread_of`.
    """
    for_outliers = _evidence(judged.outliers, judged.n_outliers, share)
    for_fine = _evidence(judged.fine, judged.n_fine, share)
    # Many fine rows in succession say little about all others while no outlier is known.
    of_outliers = ALONE + (BESIDE - ALONE) * min(1.0, judged.n_fine / KNOWN)
    of_fine = ALONE + (BESIDE - ALONE) * min(1.0, judged.n_outliers / KNOWN)
    weight = np.repeat(_weights(judged, share, offsets), np.diff(offsets))
    return exact(spread * weight * (of_fine * for_fine - of_outliers * for_outliers))


def spread_of(values: Floats, share: Floats, offsets: Ints) -> float:
    """Return the standard deviation of cells' ``values`` (n_cells,) over the counted rows.

    It is computed within each table, and its square is averaged over the tables. The scores of two
    passes spread three times as far as those of one, and evidence has to have the same scale.
    """
    means = np.add.reduceat(values * share, offsets[:-1])
    centred = values - np.repeat(means, np.diff(offsets))
    variances = np.add.reduceat(centred**2 * share, offsets[:-1])
    return float(_rounded(np.sqrt(variances.mean())))


def _weights(judged: VerdictCounts, share: Floats, offsets: Ints) -> Floats:
    """Return the weights (n_tables,), 1 on average: more for tables that separate verdicts.

    Each row is judged by the evidence of all others: its own is subtracted from its cells.
    """
    outliers, n_outliers, fine, n_fine = judged
    even = np.ones(len(offsets) - 1)
    rarer = min(n_outliers, n_fine)
    if rarer == 0:
        return even
    for_outliers, for_fine = (
        _evidence(outliers, n_outliers, share),
        _evidence(fine, n_fine, share),
    )
    of_others = _evidence(np.maximum(outliers - 1, 0), n_outliers - 1, share)
    of_others_fine = _evidence(np.maximum(fine - 1, 0), n_fine - 1, share)
    apart = outliers * (of_others - for_fine) / n_outliers
    apart -= fine * (for_outliers - of_others_fine) / n_fine
    apart = np.maximum(np.add.reduceat(apart, offsets[:-1]), 0.0)
    if not apart.any():
        return even
    trust = rarer / (rarer + _EVEN)
    weights = 1.0 + trust * (np.minimum(apart / apart.mean(), _MOST) - 1.0)
    return _rounded(weights / weights.mean())


def _rounded(x: Any) -> Floats:
    return np.asarray(np.rint(x * _UNIT) / _UNIT, np.float64)


def _evidence(counts: Ints, n_rows: int, share: Floats) -> Floats:
    """Return log2((observed + a) / (expected + a)) of every cell, or 0 if that is negative."""
    evidence = np.log2((counts + PRIOR) / (n_rows * share + PRIOR))
    return np.asarray(np.maximum(evidence, 0.0), np.float64)


# --- counts of verdicts ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Verdicts(Counts):
    """Counts of rows that were confirmed as outliers, and of rows that are fine.

    They are counted under the plan of a model, in all tables, and change the scores of their cells:
    see `verdict_values`. Verdicts of several sites or days add up exactly, and can be subtracted
    again.

    They are exact counts of few rows, from which the rows can be reconstructed: keep them like the
    rows themselves.

    Attributes
    ----------
    plan : Plan
        Plan of the model; with two passes, that of the first.
    outliers, fine : ndarray of shape (n_cells,), int64
        Number of rows in each cell that were confirmed as outliers, and that are fine.
    coupled : str
        Why no release can be made: see `Sketch`.

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
    ledger = None  # exact counts have no ledger

    plan: Plan
    outliers: Ints = field(repr=False)
    fine: Ints = field(repr=False)
    coupled: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        first = self.plan.family.offsets[:-1]
        for name in ("outliers", "fine"):
            self._check_array(name, (self.n_cells,))
            array = getattr(self, name)
            rows = np.add.reduceat(array, first)
            if array.min() < 0 or (rows != rows[0]).any() or rows[0] > 2**40:
                raise PlanError(
                    f"{self.noun}: {name} needs the same rows in each table, at most 2^40, and no "
                    "count below 0"
                )

    @classmethod
    def zero(cls, plan: Plan) -> "Verdicts":
        """Return no verdicts, the identity of ``+``."""
        return cls(plan.first_pass(), *np.zeros((2, plan.family.n_cells), np.int64))

    @classmethod
    def from_data(cls, plan: Plan, X: object, y: ArrayLike) -> "Verdicts":
        """Count rows with verdicts.

        Parameters
        ----------
        plan : Plan
            Plan of the model.
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
        check_takes_verdicts(plan.detector, plan.score, plan.family)
        check_coupled(plan, reader, None)
        outlier = checked(y)
        encoder, total = Encoder(plan.schema), cls.zero(plan)
        family = total.plan.family
        n_rows = 0
        with naming_places(reader):
            for start, batch, _ in itertools.chain.from_iterable(numbered(reader)):
                n_rows += len(batch)
                labels = outlier[start : start + len(batch)]
                if len(labels) == len(batch):
                    codes = encoder.encode(batch, start)
                    family.count(codes, total.outliers, labels)
                    family.count(codes, total.fine, 1 - labels)
        if n_rows != len(outlier):
            raise DataError(
                f"{len(outlier):,} verdicts for {n_rows:,} rows: needs one for each row"
            )
        return total

    @classmethod
    def of_codes(cls, plan: Plan, codes: Codes, y: Ints, coupled: str = "") -> "Verdicts":
        """Count encoded rows; ``y`` (n,) is 1 for an outlier and 0 for a fine row."""
        total = replace(cls.zero(plan), coupled=coupled)
        total.plan.family.count(codes, total.outliers, y)
        total.plan.family.count(codes, total.fine, 1 - y)
        return total

    @property
    def counts(self) -> Ints:  # type: ignore[override] # a field in the base class
        """Confirmed outliers minus fine rows in each cell."""
        return self.outliers - self.fine

    @property
    def n_outliers(self) -> int:
        """Number of rows that were confirmed as outliers."""
        return self.plan.rows_counted(self.outliers)

    @property
    def n_fine(self) -> int:
        """Number of fine rows."""
        return self.plan.rows_counted(self.fine)

    @property
    def n_rows(self) -> int:
        """Verdicts."""
        return self.n_outliers + self.n_fine

    @property
    def n_contradictory(self) -> int:
        """Largest number of pairs of an outlier and a fine row in the same cells."""
        both = np.add.reduceat(np.minimum(self.outliers, self.fine), self.plan.family.offsets[:-1])
        return int(both.min())

    # --- the algebra ------------------------------------------------------------------------

    def __add__(self, other: "Verdicts") -> "Verdicts":
        if not self._addable(other):
            return NotImplemented
        return replace(
            self,
            outliers=self.outliers + other.outliers,
            fine=self.fine + other.fine,
            coupled=self.coupled or other.coupled,
        )

    def __sub__(self, other: "Verdicts") -> "Verdicts":
        """Subtract verdicts that were added."""
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

    # It is compared by its arrays, which have no hash.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        outliers = f"{self.n_outliers:,} outlier{'s' if self.n_outliers != 1 else ''}"
        return f"Verdicts({outliers}, {self.n_fine:,} fine, plan_id={self.plan_id[:12]!r})"

    # --- files --------------------------------------------------------------------------------

    def entries(self) -> files.Part:
        """Return the verdicts' part of a file: manifest entries and arrays."""
        entries, arrays = self.plan.entries()
        if self.coupled:
            entries["coupled"] = self.coupled
        return entries, arrays | {"outliers": self.outliers, "fine": self.fine}

    @classmethod
    def from_file(cls, content: files.Content) -> "Verdicts":
        """Build the verdicts in a file; raise `PlanError` if it has none."""
        coupled = content.said("verdicts", {}, {"coupled": str}).get("coupled", "")
        plan = Plan.from_file(content)
        return cls(plan, content.array("outliers"), content.array("fine"), coupled)


def checked(y: ArrayLike) -> Ints:
    """Return verdicts as int64 of shape (n,); raise `DataError` unless all are 1 or 0."""
    given = np.asarray(y)
    needed = "needs 1 (an outlier) or 0 (fine) for each row"
    if given.ndim != 1:
        raise DataError(f"verdicts of shape {given.shape}: {needed}")
    for at, value in enumerate(given.tolist()):
        if not isinstance(value, bool | int | float) or value not in (0, 1):
            raise DataError(f"verdict {value!r} of row {at}: {needed}")
    return given.astype(np.int64)


#: Prefix of the names of verdicts' arrays in a file.
_OF = "verdicts."


@dataclass(frozen=True, eq=False)
class LearnedModel(Counts):
    """Counts that score rows, with verdicts that raise and lower the scores of their cells.

    A detector that has learned from verdicts scores with it, and saves it.

    Attributes
    ----------
    model : Sketch, Release or LocalModel
        The counts.
    verdicts : Verdicts
        Exact verdicts under the model's plan.

    Raises
    ------
    PlanError
        If the verdicts belong to another model.
    UsageError
        If verdicts cannot change the scores of these counts.
    """

    kind: ClassVar[str] = "detector"
    noun: ClassVar[str] = "a model with verdicts"

    model: Counts
    verdicts: Verdicts
    plan: Plan = field(init=False, repr=False)
    counts: NDArray[np.int64] = field(init=False, repr=False)
    ledger: Ledger | None = field(init=False, repr=False)
    sampled: bool = field(init=False, repr=False)
    tally: NDArray[np.int64] | None = field(init=False, repr=False)
    seal: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.verdicts, Verdicts):
            raise UsageError(f"learning from {self.verdicts.noun}: needs exact verdicts on rows")
        plan, given = self.model.plan.first_pass(), self.verdicts.plan
        if given.plan_id != plan.plan_id:
            raise PlanError(
                "these verdicts were counted under another plan than the model's, and do not "
                f"apply to its tables: {plan.difference(given)}"
            )
        for name in ("plan", "counts", "ledger", "sampled", "tally", "seal"):
            object.__setattr__(self, name, getattr(self.model, name))

    @property
    def unlearned(self) -> Counts:
        """The model."""
        return self.model

    @property
    def adds(self) -> bool:  # type: ignore[override] # like its model
        """Whether counts of other rows can be added to the model's."""
        return self.model.adds

    @property
    def n_rows(self) -> int:
        """Number of rows counted by the model."""
        return self.model.n_rows

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise on a cell of the model, in counts."""
        return self.model.noise_sd

    def spent(self) -> tuple[Spent, ...]:
        """Return the releases of the model."""
        return self.model.spent()

    def cell_scores(self) -> NDArray[np.float64]:
        """Return the score of every cell, in bits: the model's, plus what verdicts add."""
        of_model = self.model.cell_scores()
        return exact(of_model + self._of_verdicts(of_model))

    def _of_verdicts(self, of_model: NDArray[np.float64]) -> NDArray[np.float64]:
        given, family = self.verdicts, self.plan.family
        share, spread = self._share(), self.spread(of_model)
        judged = VerdictCounts(given.outliers, given.n_outliers, given.fine, given.n_fine)
        return verdict_values(judged, share, family.offsets, spread)

    def spread(self, of_model: NDArray[np.float64]) -> float:
        """Return the spread of the model's scores, given those of its cells (n_cells,)."""
        return spread_of(of_model, self._share(), self.plan.family.offsets)

    def _share(self) -> NDArray[np.float64]:
        first, offsets = self.plan.first_counts, self.plan.family.offsets
        rows = np.maximum(self.counts if first is None else first, 0).astype(np.float64)
        each = np.maximum(np.add.reduceat(rows, offsets[:-1]), 1.0)
        return np.asarray(rows / np.repeat(each, np.diff(offsets)), np.float64)

    # --- files --------------------------------------------------------------------------------

    def entries(self) -> files.Part:
        """Return the part of a file for the model and the verdicts: manifest entries, arrays."""
        of_model, arrays = self.model.entries()
        given = self.verdicts
        entry = {"coupled": given.coupled} if given.coupled else {}
        named = {f"{_OF}outliers": given.outliers, f"{_OF}fine": given.fine}
        return of_model | {"verdicts": entry}, arrays | named

    @classmethod
    def from_file(cls, content: files.Content) -> "LearnedModel":
        """Build the model in a file, and its verdicts; raise `PlanError` if they do not fit."""
        model = model_from_file(content)
        entry = content.said("verdicts", {"verdicts": dict})["verdicts"]
        if "plan" in entry:
            raise PlanError(NO_SHARED_VERDICTS)
        coupled = entries(entry, "verdicts", {}, {"coupled": str}).get("coupled", "")
        outliers, fine = (content.array(f"{_OF}{name}") for name in ("outliers", "fine"))
        return cls(model, Verdicts(model.plan.first_pass(), outliers, fine, coupled))


def model_from_file(content: files.Content) -> Counts:
    """Build the counts in a detector's file, of any kind; raise `PlanError` if there are none."""
    entries = content.manifest
    made = LocalModel if "own" in entries else Release if "ledger" in entries else Sketch
    counts: Counts = made.from_file(content)
    return counts
