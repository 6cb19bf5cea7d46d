"""The release: counts after noise, with the ledger. The only thing meant to leave a site."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.counts.base import Noised
from hushtable.data.schema import Feature, Schema
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.plans.draws import Purpose
from hushtable.plans.plan import Plan
from hushtable.privacy.composition import Spent
from hushtable.privacy.denoise import span
from hushtable.privacy.ledger import Ledger
from hushtable.privacy.merging import check_parts
from hushtable.privacy.seal import Seal


@dataclass(frozen=True, eq=False)
class Release(Noised):
    """Noised counts under a plan, with the ledger that says what they cost.

    Made by `Sketch.release`. Releases of one plan and of different people's rows add,
    ``north + south``: the noise adds up too, and the ledgers compose. Nothing else of the rows
    is in a release: no number of rows, no count of missing values, no seed.

    Attributes
    ----------
    plan : Plan
        What was counted under.
    counts : ndarray of shape (n_cells,), int64
        Rows in each cell plus noise; may be negative.
    ledger : Ledger
        Mechanism, scale, adjacency, privacy unit, total cost, what came before.
    seal : Seal or None
        Of the result of a round that its coordinator signed; a sum of releases has none.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import Feature, Plan, Schema, Sketch
    >>> plan = Plan.draw(Schema([Feature.numeric("age", low=0, high=99)]), random_state=0)
    >>> sketches = [Sketch.from_data(plan, np.full((500, 1), age)) for age in (30.0, 40.0)]
    >>> north, south = (sketch.release(epsilon=1.0) for sketch in sketches)
    >>> (north + south).ledger.epsilon == north.ledger.epsilon  # other people's rows
    True
    """

    kind: ClassVar[str] = "release"
    noun: ClassVar[str] = "a release"
    adds: ClassVar[bool] = True

    plan: Plan
    counts: NDArray[np.int64]
    ledger: Ledger
    seal: Seal | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ledger.sensitivity.tables != self.plan.family.n_histograms:
            raise PlanError("the ledger counts other tables than the plan has")
        if self.ledger.behind_plan != self.plan.behind:
            raise PlanError("the ledger leaves out, or adds to, the releases behind the plan")
        horizon = self.ledger.sensitivity.horizon
        if horizon != self.plan.horizon or (horizon is not None and self.ledger.window is None):
            raise PlanError(
                "the plan is for releases that go on: what a period released scores nothing; "
                "decode those of all periods, with hushtable.decoded"
            )
        check_parts(self.ledger)

    @cached_property
    def release_id(self) -> str:  # type: ignore[override] # computed once, never assigned
        """Id of the release: random, or, for a sum, the digest of the ids that it sums."""
        return self.ledger.release_id

    def spent(self) -> tuple[Spent, ...]:
        """Return the releases that a plan drawn from these counts has behind it."""
        return self.ledger.as_spent(self.plan.detector, self.release_id)

    def __add__(self, other: "Release") -> "Release":
        if not self._addable(other):
            return NotImplemented
        plan = other.plan if other.plan.hidden else self.plan
        return Release(plan, self.counts + other.counts, self.ledger + other.ledger)

    def release(self, *_: Any, **__: Any) -> "Release":
        """Refuse: it is a release already."""
        raise PrivacyError(
            f"release {self.release_id[:12]} has its noise already: send it as it is (to release "
            "again, start from the sketch, with after=[this release] and a larger epsilon)"
        )

    def ranges(self) -> Schema:
        """Return the schema with the numeric ranges that these histograms show.

        For a release under `Plan.ranges`. Each range is narrowed to where the rows stand out
        of the noise, and widened by its own width on each side. The schema carries the cost
        with it, so that every release under it counts it.

        Raises
        ------
        PrivacyError
            If there are too few rows for the noise; the message names the feature.
        """
        if self.plan.purpose is not Purpose.RANGES:
            raise UsageError(
                f"a release of a {self.plan.detector!r} plan holds no ranges: sketch and release "
                "under Plan.ranges(schema, ...)"
            )
        schema, offsets = self.plan.schema, self.plan.family.offsets
        features = []
        for j, feature in enumerate(schema.features):
            if feature.kind == "categorical" or feature.constant:
                features.append(feature)
                continue
            bins = self.counts[offsets[j] : offsets[j + 1] - 1].astype(np.float64)
            try:
                start, stop = span(bins, float(bins.sum()), self.ledger.noise_sd)
            except PrivacyError as error:
                raise PrivacyError(f"feature {feature.name!r}: {error}") from None
            width = feature.high - feature.low
            low, high = feature.low + start * width, feature.low + stop * width
            features.append(Feature.numeric(feature.name, low=low, high=high, unit=feature.unit))
        return Schema(tuple(features), named=schema.named, paid=self.spent())

    @classmethod
    def from_file(cls, content: files.Content) -> "Release":
        """Build the release that a file carries; raises `PlanError` if it holds none."""
        ledger = Ledger.from_dict(content.said("release", {"ledger": object})["ledger"])
        plan, seal = Plan.from_file(content), Seal.from_file(content)
        return cls(plan, content.array("counts"), ledger, seal)
