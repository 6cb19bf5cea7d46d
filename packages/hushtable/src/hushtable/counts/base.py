"""Counts of any kind under a plan: the base of sketch, release and local model."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hushtable import files, plugins
from hushtable.data.history import of_history
from hushtable.data.labels import fold
from hushtable.data.readers import Reader
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.plans.plan import Plan
from hushtable.privacy.budget import Spent
from hushtable.privacy.ledger import Ledger, check_parts


class Counts(ABC):
    """Counts of rows in the cells of a plan's tables, and the operations on them.

    A subclass sets the attributes declared here.
    """

    kind: ClassVar[str]  # of the files that hold them, one of `hushtable.files.KINDS`
    noun: ClassVar[str]  # their kind in words
    adds: ClassVar[bool] = False  # whether counts of other rows can be added
    may_leave: ClassVar[bool] = False  # whether they contain no exact counts
    mixed: ClassVar[bool] = False  # whether they count rows only after they are decoded

    plan: Plan
    counts: NDArray[np.int64]  # rows in each cell, shape (n_cells,)
    ledger: Ledger | None  # the guarantee of their noise; None for exact counts
    sampled: bool = False  # whether each table holds a random sample instead of all rows
    tally: NDArray[np.int64] | None = None  # missing and outside values, (n_features, 2), if known
    release_id: str = ""  # empty if they are not a release
    seal: Any = None  # a round's `hushtable_federation.seal.Seal`; None if they are not signed

    def __post_init__(self) -> None:
        self._check_array("counts", (self.n_cells,))

    def _check_array(self, name: str, shape: tuple[int, ...]) -> None:
        array = getattr(self, name)
        if array.dtype != np.int64 or array.shape != shape:
            raise PlanError(
                f"{self.noun}: {name} is {array.dtype} {array.shape}; its plan needs int64 {shape}"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.plan!r})"

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
        """Number of histograms; each of them counts every row once."""
        return self.plan.family.n_histograms

    @property
    def n_rows(self) -> int:
        """Number of rows counted, estimated if the counts are noisy."""
        return round(float(self.counts.sum()) / self.n_tables)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise on a cell, in counts; 0 for exact counts."""
        return 0.0 if self.ledger is None else self.ledger.noise_sd

    @property
    def unlearned(self) -> "Counts":
        """The counts of rows, without the effect of verdicts."""
        return self

    def cell_scores(self) -> NDArray[np.float64]:
        """Return the score of every cell (n_cells,), in the unit of the plan's score rule."""
        check_decoded(self)
        return self.plan.cell_scores(self.counts, self.noise_sd)

    def spent(self) -> tuple[Spent, ...]:
        """Return the earlier releases on which a plan drawn from these counts depends."""
        return self.plan.behind

    def __add__(self, other: Any) -> Any:
        raise PrivacyError(f"{self.noun} cannot be added to other counts")

    def _addable(self, other: object, verb: str = "add") -> bool:
        """Return whether the other object holds counts of the same kind under the same plan.

        Raises
        ------
        PlanError, PrivacyError
            If they are counts to which these must not be added.
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

    def entries(self) -> files.Part:
        """Return the counts' part of a file: manifest entries and arrays."""
        entries, arrays = self.plan.entries()
        if self.ledger is not None:
            entries["ledger"] = self.ledger.to_dict()
        return entries, arrays | {"counts": self.counts}

    @classmethod
    @abstractmethod
    def from_file(cls, content: files.Content) -> Self:
        """Build the counts in a file; raise `PlanError` if it has none."""

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the counts to a .hush file, atomically.

        A file of a release may leave the site; one of exact counts must not.
        """
        if self.seal is None:
            files.write(path, self.kind, *self.entries())
        else:
            self.seal.write(path, self.kind, *self.entries())


@dataclass(frozen=True, eq=False, repr=False)
class Noised(Counts):
    """Counts with the noise that their ledger states: of one or several sites."""

    adds: ClassVar[bool] = True
    may_leave: ClassVar[bool] = True

    plan: Plan
    counts: NDArray[np.int64]
    ledger: Ledger
    seal: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ledger.sensitivity.tables != self.plan.family.n_histograms:
            raise PlanError("the ledger counts other tables than those of the plan")
        if self.ledger.behind_plan != self.plan.behind:
            raise PlanError("the ledger leaves out, or adds to, the releases behind the plan")
        check_parts(self.ledger)

    def __add__(self, other: Self) -> Self:
        if not self._addable(other):
            return NotImplemented
        return type(self)(self.plan, self.counts + other.counts, self.ledger + other.ledger)

    @classmethod
    def from_file(cls, content: files.Content) -> Self:
        """Build the counts in a file.

        Raises `PlanError` if it has none, or its seal is invalid or incomplete, and `PluginError`
        if hushtable-federation is not installed to check the seal.
        """
        ledger = Ledger.from_dict(content.said(cls.kind, {"ledger": object})["ledger"])
        plan, seal = Plan.from_file(content), None
        if content.manifest.get("result") is not None or content.signature is not None:
            seal = plugins.extension("seal", "a signed file", "federation")(content)
        return cls(plan, content.array("counts"), ledger, seal)


def mergeable(given: object) -> Counts | None:
    """Return the argument if it is a sketch or a release, otherwise None.

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
            f"{counts.noun} mixes the counts of its periods, and is meaningless on its own: decode "
            "those of all periods so far (hushtable.decoded, hushtable decode)"
        )


def coupling_words(plan: Plan, reader: Reader, person: str | None) -> str:
    """Return why one person's records may change the features of others' rows; empty if not.

    A release hides one person. If rows depend only on rows and records with the same key, and each
    key is one person, then only a person's own rows depend on the person, and a limited number of
    them is counted. That each key has one row is no substitute, because only the rows show it.
    Counts under a plan that depends on rows are never released.
    """
    if plan.data_dependent:
        return ""
    named = "no person" if person is None else f"person={person!r}"
    change = (
        "so one person's records could change the features of other persons' rows, and counts "
        "under this plan may be released"
    )
    for link in reader.coupled:
        if not link.key:
            return f"{link.how}, {change}: {link.remedy}"
        if person is None or fold(person) != link.key:
            return (
                f"{link.how}, with {named}, {change}: give person={link.key!r} (--person) if each "
                f"{link.key!r} is one person; otherwise {link.remedy}"
            )
    numbers = [f.name for f in plan.schema.features if f.kind == "numeric"]
    if person is None and (derived := of_history(numbers)):
        return (
            f"columns {derived} are named like those of history_columns, with no person, {change}: "
            "give person= (--person), the entity of the history, if each entity is one person; "
            "otherwise do not derive a history, or rename columns that are none"
        )
    return ""


def check_coupled(plan: Plan, reader: Reader, person: str | None) -> None:
    """Raise `PrivacyError` if one person's records may change the features of others' rows."""
    if words := coupling_words(plan, reader, person):
        raise PrivacyError(words)
