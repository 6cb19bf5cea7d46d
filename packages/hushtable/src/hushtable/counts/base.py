"""Counts under a plan, of whichever kind: the base of sketch, release, local model, sealed sum."""

from abc import ABC, abstractmethod
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.data.readers import Reader
from hushtable.display import Displayed
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.plans.draws import Purpose, purpose_of
from hushtable.plans.families import TOTALS
from hushtable.plans.plan import Plan
from hushtable.privacy.budget import Spent
from hushtable.privacy.ledger import Ledger
from hushtable.privacy.seal import Seal, write


class Counts(Displayed, ABC):
    """Counts of rows in the cells of a plan's tables, and what may be done with them.

    A subclass sets what is declared here.
    """

    kind: ClassVar[str]  # of the files that hold them, one of `hushtable.files.KINDS`
    noun: ClassVar[str]  # their kind in words
    adds: ClassVar[bool] = False  # whether counts of other rows can be added
    may_leave: ClassVar[bool] = False  # whether no exact counts are in them
    hidden: ClassVar[bool] = False  # whether the hash functions are unknown: nothing is scored
    mixed: ClassVar[bool] = False  # whether they count rows only once they are decoded

    plan: Plan
    counts: NDArray[np.int64]  # rows in each cell, shape (n_cells,)
    ledger: Ledger | None  # what the noise in them promises; None for exact counts
    sampled: bool = False  # whether each table holds a random sample instead of all rows
    tally: NDArray[np.int64] | None = None  # missing and outside values, (n_features, 2), if known
    release_id: str = ""  # empty if they are no release
    seal: Seal | None = None  # of the result of a round that its coordinator signed

    def __post_init__(self) -> None:
        self._check_array("counts", (self.n_cells,))

    def _check_array(self, name: str, shape: tuple[int, ...]) -> None:
        array = getattr(self, name)
        if array.dtype != np.int64 or array.shape != shape:
            raise PlanError(
                f"{self.noun}: {name} is {array.dtype} {array.shape}; its plan needs int64 {shape}"
            )

    @property
    def plan_id(self) -> str:
        """Id of the plan."""
        return self.plan.plan_id

    @property
    def detector(self) -> str:
        """Name of the detector whose tables they are, as in `Plan`."""
        return self.plan.detector

    @property
    def n_cells(self) -> int:
        """Cells of all tables."""
        return self.plan.family.n_cells

    @property
    def n_tables(self) -> int:
        """Histograms of which each holds every row once."""
        return self.plan.family.n_histograms

    @property
    def n_rows(self) -> int:
        """Rows counted, as estimated from the noised counts of all tables."""
        if purpose_of(self.detector) is Purpose.VERDICTS:  # behind the totals, by sign
            return int(self.counts[:TOTALS].sum())
        return round(float(self.counts.sum()) / self.n_tables)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise on a cell, in counts; 0 for exact counts."""
        return 0.0 if self.ledger is None else self.ledger.noise_sd

    @property
    def unlearned(self) -> "Counts":
        """The counts of rows, without what was learned from verdicts."""
        return self

    def cell_scores(self) -> NDArray[np.float64]:
        """Return the score of every cell (n_cells,), in the unit of the plan's score rule."""
        check_decoded(self)
        return self.plan.cell_scores(self.counts, self.noise_sd)

    def spent(self) -> tuple[Spent, ...]:
        """Return the releases that a plan drawn from these counts has behind it."""
        return self.plan.behind

    def __add__(self, other: Any) -> Any:
        raise PrivacyError(f"{self.noun} adds to nothing")

    def counted_under(self, layout: Any) -> bool:
        """Return whether these counts are under the plan that a layout is of."""
        return bool(self.plan_id == layout.plan_id)

    def _addable(self, other: Any, verb: str = "add") -> bool:
        """Return whether the other is counts of the same kind, under the same plan.

        Raises
        ------
        PlanError, PrivacyError
            If it is counts that these must not be added to.
        """
        if not isinstance(other, Counts):
            return False
        if type(other) is not type(self):
            raise PrivacyError(
                f"{self.noun} and {other.noun} do not {verb}: the result would be neither exact "
                "nor private; release the sketch first"
            )
        if self.plan_id != other.plan_id:
            raise PlanError(
                f"two {self.kind}{'es' if self.kind.endswith('ch') else 's'} of different plans do "
                f"not {verb}: {self.plan.difference(other.plan)}"
            )
        return True

    # --- files --------------------------------------------------------------------------------

    def entries(self) -> tuple[dict[str, Any], files.Arrays]:
        """Return what a file carries of the counts: manifest entries and arrays."""
        entries, arrays = self.plan.entries()
        if self.ledger is not None:
            entries["ledger"] = self.ledger.to_dict()
        return entries, arrays | {"counts": self.counts}

    @classmethod
    @abstractmethod
    def from_file(cls, content: files.Content) -> Self:
        """Build the counts that a file carries; raises `PlanError` if it holds none."""

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the counts to a .hush file, atomically.

        A file of a release may leave the site; one of exact counts must not.
        """
        write(path, self.kind, *self.entries(), self.seal)


class Noised(Counts):
    """Counts with the noise that their ledger states: of one site or several, sealed or not."""

    may_leave: ClassVar[bool] = True

    ledger: Ledger

    def open(self, plan: Plan) -> "Noised":
        """Return the release; only of a sealed result is the plan needed."""
        return self


def mergeable(given: object) -> Counts | None:
    """Return what is given if it is a sketch or a release, else None.

    Raises `UsageError` if it is an increment.
    """
    if not isinstance(given, Counts) or not given.adds:
        return None
    check_decoded(given)
    return given


def check_decoded(counts: Counts) -> None:
    """Raise `UsageError` if counts mix those of several periods."""
    if counts.mixed:
        raise UsageError(
            f"{counts.noun} mixes the counts of its periods, and shows nothing by itself: decode "
            "those of all periods so far (hushtable.decoded, hushtable decode)"
        )


def check_history(plan: Plan, reader: Reader, person: str | None) -> None:
    """Raise `PrivacyError` for a history that one person's rows change in rows of others.

    A release hides one person. If readings are compared within a person, all that depends on the
    person are the person's own rows, of which so many are counted.
    """
    if plan.schema.public and reader.entity not in ("", person):
        said = "no person" if person is None else f"person={person!r}"
        raise PrivacyError(
            f"readings are compared within {reader.entity!r}, and {said} is named, under a plan "
            "whose counts may be released: one person's readings would change what others' are "
            f"compared with. Name person={reader.entity!r} (--person), if that is whom a release "
            "hides; else derive no history"
        )
