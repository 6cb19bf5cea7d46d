"""The content of a plan: its fields, their form in files, and the id that follows."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any, Self

import numpy as np
import rfc8785
from numpy.typing import NDArray

from hushtable import files
from hushtable.data.schema import Schema
from hushtable.display import Displayed
from hushtable.entries import entries
from hushtable.errors import PlanError
from hushtable.plans.draws import Purpose, purpose_of
from hushtable.plans.families import HashFamily, family_from_content
from hushtable.plans.gate import GATE_BINS, PRIVATE_GATE_BINS
from hushtable.plans.score_rule import ScoreRule
from hushtable.privacy.budget import Spent
from hushtable.privacy.horizon import Horizon
from hushtable.privacy.layout import (
    FIRST_PASS_SHARE,
    GATE_SHARE,
    MARGINAL_SHARE,
    RANGE_SHARE,
    Design,
)

#: The array of the first pass's counts, beside the family's own arrays.
FIRST = "first_counts"
_NEEDED = {"detector": str, "data_dependent": bool, "schema": dict, "family": dict, "score": dict}
_OPTIONAL = {"behind": list, "design": dict, "gate_cell": int, "first_noise_sd": float}

#: Shares of the whole budget that rounds before the tables take.
_BEFORE = {Purpose.MARGINALS: MARGINAL_SHARE, Purpose.RANGES: RANGE_SHARE}


@dataclass(frozen=True, eq=False)
class PlanContent(Displayed):
    """The content of a plan; `hushtable.Plan` describes the fields, and makes plans."""

    schema: Schema
    family: HashFamily
    score: ScoreRule
    detector: str
    data_dependent: bool
    first_counts: NDArray[np.int64] | None = None
    gate_cell: int | None = None
    behind: tuple[Spent, ...] = ()
    design: Design | None = None
    hidden: bool = False
    first_noise_sd: float | None = None

    def __post_init__(self) -> None:
        purpose_of(self.detector, self.family)
        if not set(self.schema.paid) <= set(self.behind):
            raise PlanError("the plan leaves out releases that its ranges were read off")
        first, gate, noise = self.first_counts, self.gate_cell, self.first_noise_sd
        bins = GATE_BINS if noise is None else PRIVATE_GATE_BINS
        if gate is not None and (first is None or not 0 <= gate < bins):
            raise PlanError(
                f"gate_cell={gate!r}: needs counts of a first pass, and 0 to {bins - 1}"
            )
        if noise is not None:
            self._check_noised(noise)
        if first is None:
            return
        if first.dtype != np.int64 or first.shape != (self.family.n_cells,):
            raise PlanError("the first pass's counts do not fit the plan's tables")
        if noise is None and first.min() < 0:
            raise PlanError("the first pass's counts do not fit the plan's tables")
        if self.first_rows == 0:
            raise PlanError("the first pass counted no rows: nothing to refine by")
        if noise is None and not self.data_dependent:
            raise PlanError(
                "the plan holds exact counts of a first pass, and says that it depends on no data"
            )
        first = first.copy()
        first.setflags(write=False)
        object.__setattr__(self, "first_counts", first)

    def _check_noised(self, noise_sd: float) -> None:
        """Raise `PlanError` if a second pass cannot follow from releases of a first and a gate."""
        if self.gate_cell is None or not 1e-6 <= noise_sd < np.inf:  # of ledgers' scales
            raise PlanError(
                f"first_noise_sd={noise_sd!r}: needs counts of a first pass, a gate, and a number "
                "of 1e-6 or more"
            )
        if not {self.detector, Purpose.GATE.value} <= {spent.what for spent in self.behind}:
            raise PlanError("the plan leaves out the releases that its second pass follows from")

    @property
    def purpose(self) -> Purpose:
        """The use of the counts under this plan: to score rows, or as marginals, ranges, ranks."""
        return purpose_of(self.detector)

    @property
    def share_of_budget(self) -> float | None:
        """Share of the budget that a release takes by default; None is all that is left.

        A gate, and the first of two passes, share what the rounds before the tables leave.
        """
        purpose = self.purpose
        if purpose in _BEFORE:
            return _BEFORE[purpose]
        before = {purpose_of(spent.what) for spent in self.behind}
        left = 1.0 - sum(share for round_, share in _BEFORE.items() if round_ in before)
        if purpose is Purpose.GATE:
            return left * GATE_SHARE
        twice = self.design is not None and self.design.passes == 2
        first = purpose.scores_rows and self.first_counts is None
        return left * FIRST_PASS_SHARE if twice and first else None

    @property
    def expected_rows(self) -> int | None:
        """Public number of rows that the plan was laid out for; None if it was for none."""
        return None if self.design is None else int(self.design.expected_rows)

    @property
    def horizon(self) -> Horizon | None:
        """The periods in which rows come, of a plan for releases that go on; None of others."""
        return None if self.design is None else self.design.horizon

    @property
    def first_rows(self) -> int:
        """Rows that the first pass counted; of counts with noise the estimate, 1 or more."""
        if self.first_counts is None:
            return 0
        if self.first_noise_sd is None:
            return self.rows_counted(self.first_counts)
        return max(
            1, round(float(self.first_counts.sum(dtype=np.float64)) / self.family.n_histograms)
        )

    def rows_counted(self, counts: NDArray[np.int64]) -> int:
        """Return how many rows a vector of counts holds (by its first table)."""
        return int(counts[: self.family.offsets[1]].sum())

    def to_dict(self) -> dict[str, Any]:
        """Return the plan without its arrays, as JSON carries it."""
        return {
            "detector": self.detector,
            "data_dependent": self.data_dependent,
            "schema": self.schema.to_dict(),
            "family": {"name": self.family.name, **self.family.parameters()},
            "score": self.score.to_dict(),
            **({} if self.gate_cell is None else {"gate_cell": self.gate_cell}),
            **({} if self.first_noise_sd is None else {"first_noise_sd": self.first_noise_sd}),
            **({"behind": [spent.to_dict() for spent in self.behind]} if self.behind else {}),
            **({} if self.design is None else {"design": self.design.to_dict()}),
        }

    def arrays(self) -> files.Arrays:
        """Return the drawn arrays, and the counts of the first pass where there are some."""
        first = {} if self.first_counts is None else {FIRST: self.first_counts}
        return {**self.family.arrays(), **first}

    @classmethod
    def from_content(cls, content: Any, arrays: files.Arrays) -> Self:
        """Build the plan that `to_dict` and `arrays` described; raises `PlanError` otherwise."""
        plan = entries(content, "a plan", _NEEDED, _OPTIONAL)
        score = entries(plan["score"], "a plan's score", {"name": str, "smoothing": float})
        schema, family, arrays = Schema.from_dict(plan["schema"]), dict(plan["family"]), {**arrays}
        first, noise = arrays.pop(FIRST, None), plan.get("first_noise_sd")
        return cls(
            schema,
            family_from_content(family.pop("name", None), family, arrays, schema),
            ScoreRule(score["name"], float(score["smoothing"])),
            plan["detector"],
            plan["data_dependent"],
            first,
            plan.get("gate_cell"),
            tuple(Spent.from_dict(spent) for spent in plan.get("behind", ())),
            Design.from_dict(plan["design"]) if "design" in plan else None,
            first_noise_sd=None if noise is None else float(noise),
        )

    def entries(self) -> tuple[dict[str, Any], files.Arrays]:
        """Return what a file of any kind carries of its plan: manifest entries and arrays."""
        arrays = {f"plan.{name}": array for name, array in self.arrays().items()}
        hidden = {"hidden": True} if self.hidden else {}
        return {"plan_id": self.plan_id, "plan": self.to_dict(), **hidden}, arrays

    @classmethod
    def from_file(cls, file: files.Content) -> Self:
        """Build the plan that a file of any kind carries; raises `PlanError` if it does not fit."""
        arrays = {
            name.removeprefix("plan."): array
            for name, array in file.arrays.items()
            if name.startswith("plan.")
        }
        plan = cls.from_content(file.manifest.get("plan"), arrays)
        if plan.plan_id != file.manifest.get("plan_id"):
            raise PlanError("the plan's content does not have the plan id that the file states")
        hidden = file.manifest.get("hidden", False)
        if not isinstance(hidden, bool):
            raise PlanError(f"hidden={hidden!r}: needs true or false")
        return replace(plan, hidden=True) if hidden else plan

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the plan to a .hush file, atomically.

        Parameters
        ----------
        path : path
            Where; an existing file is replaced only by a complete new one.
        """
        files.write(path, "plan", *self.entries())

    @cached_property
    def plan_id(self) -> str:
        """SHA-256 of the plan's canonical content (RFC 8785) with the digests of its arrays."""
        described = self.to_dict() | {"arrays": files.array_digests(self.arrays())}
        return hashlib.sha256(rfc8785.dumps(described)).hexdigest()

    def difference(self, other: "PlanContent") -> str:
        """Say in words how two plans differ."""
        parts, theirs = [], other.to_dict()
        for key, mine in self.to_dict().items():
            if mine == theirs.get(key):
                continue
            if key == "schema":
                parts.append(_schema_difference(self.schema, other.schema))
            elif key == "gate_cell":  # where it lies follows from rows
                parts.append("another gate of the second pass")
            else:
                parts.append(f"{key} {mine!r} against {theirs.get(key)!r}")
        if not parts and self.plan_id != other.plan_id:
            parts.append("same schema and settings, but other hash functions were drawn")
        return "; ".join(parts) or "nothing"


def _schema_difference(mine: Schema, theirs: Schema) -> str:
    if mine.names != theirs.names:
        return f"features {mine.names} against {theirs.names}"
    for a, b in zip(mine.features, theirs.features, strict=True):
        if a != b and not (mine.public and theirs.public):
            # What was read off rows is rows' values: no message shows it.
            return f"feature {a.name!r} has another kind, range or categories, read off rows"
        if a != b:
            return f"feature {a.name!r}: {a.to_dict()} against {b.to_dict()}"
    return "one schema is public, the other was read off data"
