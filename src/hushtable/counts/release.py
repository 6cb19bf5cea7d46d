"""The release: counts after noise, with the ledger. The only thing meant to leave a site."""

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.data.schema import Feature, Schema
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.plans.draws import Purpose
from hushtable.plans.plan import Plan
from hushtable.privacy import noise
from hushtable.privacy.budget import (
    Adjacency,
    Cost,
    Mechanism,
    Sensitivity,
    calibrated_scale,
    check_epsilon,
    check_mechanism,
    check_public_delta,
    check_share,
)
from hushtable.privacy.composition import Spent, split_history
from hushtable.privacy.denoise import span
from hushtable.privacy.ledger import Ledger, Share
from hushtable.privacy.seal import Seal, write

if TYPE_CHECKING:
    from hushtable.counts.sketch import Sketch

__all__ = ["Release", "check_counts", "check_plan", "release_counts", "share_of_budget"]


@dataclass(frozen=True, eq=False)
class Release:
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
    """

    plan: Plan
    counts: NDArray[np.int64]
    ledger: Ledger
    seal: Seal | None = None

    def __post_init__(self) -> None:
        cells = (self.plan.family.n_cells,)
        if self.counts.dtype != np.int64 or self.counts.shape != cells:
            raise PlanError(
                f"release: counts are {self.counts.dtype} {self.counts.shape}; its plan needs "
                f"int64 {cells}"
            )
        if self.ledger.sensitivity.tables != self.plan.family.n_histograms:
            raise PlanError("the ledger counts other tables than the plan has")
        if self.ledger.behind_plan != self.plan.behind:
            raise PlanError("the ledger leaves out, or adds to, the releases behind the plan")
        pool = self.ledger.pool
        if pool is not None and len(self.ledger.shares) < pool.least:
            raise PrivacyError(
                f"{len(self.ledger.shares)} of at least {pool.least} parts of a shared noise: too "
                "little noise for a release"
            )

    @cached_property
    def release_id(self) -> str:
        """Id of the release: random, or, for a sum, the digest of the ids that it sums."""
        ids = sorted(share.release for share in self.ledger.shares)
        return ids[0] if len(ids) == 1 else hashlib.sha256(" ".join(ids).encode()).hexdigest()

    def spent(self) -> tuple[Spent, ...]:
        """Return the releases that a plan drawn from these counts has behind it."""
        return self.ledger.as_spent(self.plan.detector, self.release_id)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise on a cell, in counts."""
        return self.ledger.noise_sd

    @property
    def n_rows(self) -> int:
        """Rows counted, as estimated from the noised counts of all tables."""
        return round(float(self.counts.sum()) / self.plan.family.n_histograms)

    def __add__(self, other: "Release") -> "Release":
        if not isinstance(other, Release):
            if hasattr(other, "tally"):
                raise PrivacyError(
                    "a release and a raw sketch do not add: the sum would be neither exact nor "
                    "private; release the sketch first"
                )
            return NotImplemented
        if self.plan.plan_id != other.plan.plan_id:
            raise PlanError(
                f"two releases of different plans do not add: {self.plan.difference(other.plan)}"
            )
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
                f"a release of a {self.plan.detector!r} plan tells no ranges: sketch and release "
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

    # --- files --------------------------------------------------------------------------------

    def entries(self) -> tuple[dict[str, Any], files.Arrays]:
        """Return what a file carries of a release: manifest entries and arrays."""
        entries, arrays = self.plan.entries()
        return entries | {"ledger": self.ledger.to_dict()}, arrays | {"counts": self.counts}

    @classmethod
    def from_file(cls, content: files.Content) -> "Release":
        """Build the release that a file carries; raises `PlanError` if it holds none."""
        if "counts" not in content.arrays or "ledger" not in content.manifest:
            raise PlanError(f"a file of kind {content.kind} holds no release")
        ledger = Ledger.from_dict(content.manifest["ledger"])
        seal = Seal.from_file(content)
        return cls(Plan.from_file(content), content.arrays["counts"], ledger, seal)

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the release to a .hush file, atomically. This file may leave the site.

        Parameters
        ----------
        path : path
            Where; an existing file is replaced only by a complete new one.
        """
        write(path, "release", *self.entries(), self.seal)


def release_counts(
    sketch: "Sketch",
    *,
    epsilon: float,
    delta: float,
    mechanism: Mechanism,
    adjacency: Adjacency,
    rows_per_person: int,
    share: float | None,
    after: "Release | Sequence[Release]",
    progress: Callable[[int], None] | None,
) -> Release:
    """Check, calibrate, draw the noise; see `Sketch.release` for the parameters."""
    check_mechanism(mechanism)
    epsilon, plan = check_epsilon(epsilon), sketch.plan
    check_plan(plan)
    sensitivity = Sensitivity(plan.family.n_histograms, adjacency, rows_per_person, sketch.sampled)
    check_counts(sketch, mechanism, rows_per_person)
    laplace = mechanism != "discrete-gaussian"
    delta = 0.0 if laplace else check_public_delta(delta, plan.expected_rows)
    earlier = _earlier(after, plan)
    before = Cost.total(spent.cost for spent in (*plan.behind, *earlier))
    share = share_of_budget(share, plan)
    if mechanism == "laplace-per-table":
        scale = 1.0 / epsilon
    else:
        scale = calibrated_scale(
            mechanism, sensitivity, epsilon=epsilon, delta=delta, before=before, share=share
        )
    part = Share(secrets.token_hex(32), scale, noise.library(), earlier)
    # The ledger checks the terms: before any noise is drawn.
    ledger = Ledger(mechanism, sensitivity, delta, (part,), plan.behind)
    noised = noise.add_noise(sketch.counts, mechanism, scale, progress=progress)
    return Release(plan, noised, ledger)


def share_of_budget(share: float | None, plan: Plan) -> float | None:
    """Return which share of the budget a release takes; None is all that is left."""
    return plan.purpose.share_of_budget if share is None else check_share(share)


def check_plan(plan: Plan) -> None:
    """Raise `PrivacyError` if the plan tells of rows what no noise on the counts hides."""
    if not plan.schema.public:
        raise PrivacyError(
            "the plan's ranges or categories were read off the data: one extreme row can move "
            "them, and no noise on the counts hides that; give public ranges in a schema "
            "(hushtable plan draft), or find them privately with Plan.ranges"
        )
    if plan.data_dependent:
        raise PrivacyError(
            "the plan depends on exact counts (raw marginals, a first pass, an exact model's "
            "scores), which no noise on the tables hides: draw it from the schema alone, or from "
            "releases"
        )


def check_counts(sketch: "Sketch", mechanism: Mechanism, rows_per_person: int) -> None:
    """Raise `PrivacyError` if a row may have changed more counts than the accounting takes."""
    if sketch.sampled and mechanism != "laplace-per-table":
        raise PrivacyError(
            "the tables hold random samples of fixed size: one row more pushes another out, "
            "which doubles what a row changes and gains nothing; sketch again without "
            "max_samples (or use the paper's mechanism='laplace-per-table', which accounts for it)"
        )
    if sketch.seeded:
        raise PrivacyError(
            "the samples in the tables were drawn from a seed or a generator, or the file does not "
            "say from what: whoever knows it knows which rows are in each sample, and one row more "
            "may redraw them all; sketch the rows again and leave random_state out, or max_samples"
        )
    # Of data in which everybody has at most that many rows, no weight is above it.
    if (weight := sketch.largest_weight) > rows_per_person:
        raise PrivacyError(
            f"rows were counted with sample_weight, up to {weight} times each: one person's rows "
            f"can change a count by that; give rows_per_person={weight} or more"
        )


def _earlier(after: "Release | Sequence[Release]", plan: Plan) -> tuple[Spent, ...]:
    """Return what earlier releases cost, each once, without those that are behind the plan."""
    given = after if isinstance(after, Sequence) else [after]
    spent: dict[str, Spent] = {}
    for release in given:
        if not isinstance(release, Release):
            raise UsageError(f"after={type(release).__name__}: needs earlier releases")
        told = (*release.spent(), *_dearest_past(release.ledger))
        spent |= {entry.release: entry for entry in told}
    earlier, _ = split_history(plan.behind, tuple(spent.values()))
    return earlier


def _dearest_past(ledger: Ledger) -> tuple[Spent, ...]:
    """Return what had come before at the site where it cost most, in either currency.

    Which of several sites this one is, a merged release does not say.
    """
    past = [
        (Cost.total(spent.cost for spent in share.earlier), share.earlier)
        for share in ledger.shares
    ]
    by_rho = max(past, key=lambda one: one[0].rho)[1]
    by_pure = max(past, key=lambda one: one[0].pure)[1]
    return tuple(dict.fromkeys((*by_rho, *by_pure)))
