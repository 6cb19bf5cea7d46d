"""The release: counts after noise, with the ledger. Only releases are meant to leave a site."""

import math
import secrets
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.counts.base import Counts, Noised
from hushtable.data.schema import Feature, Schema
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.plans.draws import Purpose
from hushtable.plans.plan import Plan
from hushtable.privacy import mechanisms
from hushtable.privacy.accounting import GAUSSIAN, ZCDP
from hushtable.privacy.budget import (
    ReleaseTerms,
    Spent,
    check_public_delta,
    check_share,
    split_history,
)
from hushtable.privacy.layout import span
from hushtable.privacy.ledger import Ledger, Share
from hushtable.privacy.mechanisms import Cost, Sensitivity, named


@dataclass(frozen=True, eq=False, repr=False)
class Release(Noised):
    """Noisy counts under a plan, with the ledger that states their cost.

    Made by `Sketch.release`. Releases of one plan and of different people's rows add,
    ``north + south``: the noise adds up too, and the ledgers compose. A release contains nothing
    else about the rows: no number of rows, no count of missing values, no seed.

    Attributes
    ----------
    plan : Plan
        The plan under which rows were counted.
    counts : ndarray of shape (n_cells,), int64
        Rows in each cell plus noise; may be negative.
    ledger : Ledger
        Mechanism, scale, adjacency, privacy unit, total cost, earlier releases.
    seal : hushtable_federation.seal.Seal or None
        The coordinator's signature of the result of a round; a sum of releases has none.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        horizon = self.ledger.sensitivity.horizon
        if horizon != self.plan.horizon or (horizon is not None and self.ledger.window is None):
            raise PlanError(
                "the plan is for releases by period: what a single period released cannot score "
                "rows; decode those of all periods, with hushtable.decoded"
            )

    @cached_property
    def release_id(self) -> str:  # type: ignore[override] # computed once, never assigned
        """Id of the release: random, or, for a sum, the digest of the ids of its parts."""
        return self.ledger.release_id

    def spent(self) -> tuple[Spent, ...]:
        """Return the earlier releases on which a plan drawn from these counts depends."""
        return self.ledger.as_spent(self.plan.detector, self.release_id)

    def release(self, *_: object, **__: object) -> "Release":
        """Refuse, because it is a release already."""
        raise PrivacyError(
            f"release {self.release_id[:12]} has its noise already: send it as it is (to release "
            "again, start from the sketch, with after=[this release] and a larger epsilon)"
        )

    def ranges(self) -> Schema:
        """Return the schema with the numeric ranges that these histograms reveal.

        For a release under `Plan.ranges`. Each range is narrowed to where the rows exceed the
        noise, and widened by its own width on each side. The schema records the cost, so that
        every release under it counts it.

        Raises
        ------
        PrivacyError
            If there are too few rows for the noise; the message names the feature.
        """
        if self.plan.purpose is not Purpose.RANGES:
            raise UsageError(
                f"a release of a {self.plan.detector!r} plan has no ranges: sketch and release "
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
        return Schema(tuple(features), named=schema.named, paid=self.spent(), labels=schema.labels)


@dataclass(frozen=True, eq=False, repr=False)
class LocalModel(Counts):
    """A site's exact counts plus the noisy counts of the other sites, to score the site's own rows.

    Algorithm 2 of the paper: a site knows the noise that it drew, and subtracts it from the sum,
    also in a round with masks. The noise of the others is left, and the site's own rows are counted
    exactly: a local model must be kept like the rows themselves, cannot be added, and cannot be
    released.

    Attributes
    ----------
    plan : Plan
        The plan under which rows were counted.
    counts : ndarray of shape (n_cells,), int64
        Rows in each cell plus the others' noise.
    ledger : Ledger
        The ledger of the sum from which it was made, with its cost.
    own : str
        Id of the site's own entry in that ledger; its noise is not in the counts.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import Feature, LocalModel, Plan, Schema, Sketch
    >>> plan = Plan.draw(Schema([Feature.numeric("age", low=0, high=99)]), random_state=0)
    >>> sketches = [Sketch.from_data(plan, np.full((500, 1), age)) for age in (30.0, 40.0)]
    >>> mine, theirs = (sketch.release(epsilon=1.0) for sketch in sketches)
    >>> local = LocalModel.of(mine + theirs, mine.release_id, mine.counts, sketches[0].counts)
    >>> bool(np.isclose(local.noise_sd, theirs.noise_sd))
    True
    """

    kind: ClassVar[str] = "local"
    noun: ClassVar[str] = "a local model"

    plan: Plan
    counts: NDArray[np.int64]
    ledger: Ledger
    own: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.own not in [share.release for share in self.ledger.shares]:
            raise PlanError("local model: the site has no share in this result")
        if len(self.ledger.shares) < 2:
            raise PlanError("local model: no other site is in this result: score with the sketch")

    @classmethod
    def of(
        cls, result: Noised, own: str, sent: NDArray[np.int64], exact: NDArray[np.int64]
    ) -> "LocalModel":
        """Replace the counts that the site sent by its exact counts.

        Parameters
        ----------
        result : Release
            The sum; its ledger has an entry of the site.
        own : str
            Id of that entry of the ledger.
        sent, exact : ndarray of shape (n_cells,), int64
            The site's counts with and without its noise.
        """
        return cls(result.plan, result.counts - sent + exact, result.ledger, own)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the others' noise on a cell, in counts."""
        return noise_of_others(self.ledger, {self.own})

    def __add__(self, other: object) -> "LocalModel":
        raise PrivacyError(
            "a local model holds exact counts of its site and cannot be added to other counts"
        )

    def release(self, *_: object, **__: object) -> Release:
        """Refuse, because everything that may leave was sent in the round."""
        raise PrivacyError(
            "a local model holds exact counts of its site, and never leaves it: what may leave was "
            "sent in the round; send others its result"
        )

    def entries(self) -> files.Part:
        """Return a local model's part of a file: manifest entries and arrays."""
        entries, arrays = super().entries()
        return entries | {"own": self.own}, arrays

    @classmethod
    def from_file(cls, content: files.Content) -> "LocalModel":
        """Build the local model in a file; raise `PlanError` if it has none."""
        stated = content.said("local model", {"own": str, "ledger": object})
        ledger = Ledger.from_dict(stated["ledger"])
        return cls(Plan.from_file(content), content.array("counts"), ledger, stated["own"])


def noise_of_others(ledger: Ledger, own: Container[str]) -> float:
    """Return the standard deviation, per cell, of the noise of all releases except ``own``."""
    others = (share.scale for share in ledger.shares if share.release not in own)
    return math.hypot(*map(named(ledger.mechanism).noise_sd, others))


def release_counts(
    counts: Counts,
    terms: ReleaseTerms,
    after: Release | Sequence[Release] = (),
    progress: Callable[[int], None] | None = None,
) -> Release:
    """Calibrate and draw the noise; `Sketch.release` documents the parameters and checks counts."""
    plan = counts.plan
    if plan.horizon is not None:
        raise PrivacyError(
            f"the plan is for {plan.horizon.periods} periods with one budget: release each of them "
            "with hushtable.Periods"
        )
    if not named(terms.mechanism).pure:
        check_public_delta(terms.delta, plan.expected_rows)
    earlier = earlier_of(after, plan)
    before = Cost.total(spent.cost for spent in (*plan.behind, *earlier))
    sensitivity = terms.sensitivity(plan.family.n_histograms, counts.sampled)
    scale = _scale(terms, plan, sensitivity, before)
    # The ledger checks the terms, before any noise is drawn.
    ledger = Ledger(
        mechanism=terms.mechanism,
        sensitivity=sensitivity,
        delta=terms.delta,
        shares=(Share(secrets.token_hex(32), scale, mechanisms.library(), earlier),),
        behind_plan=plan.behind,
        accounting=GAUSSIAN if named(terms.mechanism).gaussian else ZCDP,
    )
    noised = mechanisms.add_noise(counts.counts, terms.mechanism, scale, progress=progress)
    return Release(plan, noised, ledger)


def _scale(terms: ReleaseTerms, plan: Plan, sensitivity: Sensitivity, before: Cost) -> float:
    """Return the scale of the noise; if a second round has no budget, the error explains why."""
    share = plan.share_of_budget if terms.share is None else check_share(terms.share)
    try:
        return replace(terms, share=share).scale(sensitivity, before)
    except PrivacyError as error:
        planned = plan.design is not None and plan.design.passes == 2
        second = plan.purpose is Purpose.GATE or plan.first_noise_sd is not None
        if planned or not second:
            raise
        raise PrivacyError(
            f"{error} (for a second pass, draw the plan with passes=2, or release the first with "
            "share=0.5)"
        ) from None


def check_plan(plan: Plan) -> None:
    """Raise `PrivacyError` if a plan depends on rows, which noise on counts cannot hide."""
    if not plan.schema.public:
        raise PrivacyError(
            "the plan's ranges or categories were read off the data: one extreme row can move "
            "them, and noise on the counts does not hide that: give public ranges in a schema "
            "(hushtable plan draft), or find them privately with Plan.ranges"
        )
    if plan.data_dependent:
        raise PrivacyError(
            "the plan depends on exact counts (raw marginals, a first pass, an exact model's "
            "scores), which noise on the tables does not hide: draw it from the schema alone, or "
            "from releases"
        )


def earlier_of(after: Release | Sequence[Release], plan: Plan) -> tuple[Spent, ...]:
    """Return the cost of earlier releases, each once, without those behind the plan."""
    given = after if isinstance(after, Sequence) else [after]
    spent: dict[str, Spent] = {}
    for release in given:
        if not isinstance(release, Release):
            raise UsageError(f"after={type(release).__name__}: needs earlier releases")
        history = (*release.spent(), *_dearest_past(release.ledger))
        spent |= {entry.release: entry for entry in history}
    earlier, _ = split_history(plan.behind, tuple(spent.values()))
    return earlier


def _dearest_past(ledger: Ledger) -> tuple[Spent, ...]:
    """Return the earlier releases of the site where they cost most, in either currency.

    A merged release does not state which of several sites this one is.
    """
    past = [
        (Cost.total(spent.cost for spent in share.earlier), share.earlier)
        for share in ledger.shares
    ]
    by_rho = max(past, key=lambda pair: pair[0].rho)[1]
    by_pure = max(past, key=lambda pair: pair[0].pure)[1]
    by_spread = max(past, key=lambda pair: pair[0].spread)[1]
    return tuple(dict.fromkeys((*by_rho, *by_pure, *by_spread)))
