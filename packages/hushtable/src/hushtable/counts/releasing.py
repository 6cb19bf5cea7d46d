"""Releasing: check a sketch, calibrate the noise, draw it, and write the ledger."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hushtable.counts.release import Release
from hushtable.errors import PrivacyError, UsageError
from hushtable.plans.draws import Purpose, purpose_of
from hushtable.plans.plan import Plan
from hushtable.privacy import noise
from hushtable.privacy.accounting import GAUSSIAN, ZCDP
from hushtable.privacy.budget import check_public_delta, check_share
from hushtable.privacy.composition import Spent, split_history
from hushtable.privacy.ledger import Ledger, Share
from hushtable.privacy.mechanisms import MECHANISMS, Cost, Sensitivity, named
from hushtable.privacy.terms import Terms

if TYPE_CHECKING:  # a sketch releases itself
    from hushtable.counts.sketch import Sketch


def release_counts(
    sketch: "Sketch",
    terms: Terms,
    after: Release | Sequence[Release] = (),
    progress: Callable[[int], None] | None = None,
) -> Release:
    """Check, calibrate, draw the noise; see `Sketch.release` for the parameters."""
    plan = sketch.plan
    check_plan(plan)
    if plan.horizon is not None:
        raise PrivacyError(
            f"the plan is for {plan.horizon.periods} periods at one budget: release each of them "
            "with hushtable.Periods"
        )
    check_counts(sketch, terms.mechanism, terms.rows_per_person)
    if not named(terms.mechanism).pure:
        check_public_delta(terms.delta, plan.expected_rows)
    earlier = earlier_of(after, plan)
    before = Cost.total(spent.cost for spent in (*plan.behind, *earlier))
    check_adjacency(plan.detector, terms.adjacency)
    sensitivity = terms.sensitivity(plan.family.n_histograms, sketch.sampled)
    scale = _scale(terms, plan, sensitivity, before)
    part = Share(secrets.token_hex(32), scale, noise.library(), earlier)
    # The ledger checks the terms: before any noise is drawn.
    accounting = GAUSSIAN if named(terms.mechanism).gaussian else ZCDP
    about = terms.mechanism, sensitivity, terms.delta, (part,), plan.behind
    ledger = Ledger(*about, accounting=accounting)
    noised = noise.add_noise(sketch.counts, terms.mechanism, scale, progress=progress)
    return Release(plan, noised, ledger)


def _scale(terms: Terms, plan: Plan, sensitivity: Sensitivity, before: Cost) -> float:
    """Return the scale of the noise; where a second round has no budget, the error says why."""
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
    """Raise `PrivacyError` if a plan depends on rows, which no noise on counts hides."""
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


def check_adjacency(detector: str, adjacency: str) -> None:
    """Raise `PrivacyError` if neighbours of this kind differ by more than the accounting takes."""
    if purpose_of(detector) is Purpose.VERDICTS and adjacency == "replace-one":
        raise PrivacyError(
            "adjacency 'replace-one' for verdicts: another verdict on the same row would change "
            "its counts by two each, which is not accounted for; use 'add-remove'"
        )


def check_counts(sketch: "Sketch", mechanism: str, rows_per_person: int) -> None:
    """Raise `PrivacyError` if a row may have changed more counts than the accounting takes."""
    if sketch.sampled and not named(mechanism).takes_samples:
        that = next(one.name for one in MECHANISMS.values() if one.takes_samples)
        raise PrivacyError(
            "the tables hold random samples of fixed size: one row more pushes another out, "
            "which doubles what a row changes and gains nothing; sketch again without "
            f"max_samples (or use the paper's mechanism={that!r}, which accounts for it)"
        )
    if sketch.seeded:
        raise PrivacyError(
            "the samples in the tables were drawn from a seed or a generator, or the file does not "
            "say from what: whoever knows it knows which rows are in each sample, and one row more "
            "may redraw them all; sketch the rows again and leave random_state out (rng, "
            "too), or max_samples"
        )
    # Of data in which everybody has at most that many rows, no weight is above it.
    if (weight := sketch.largest_weight) > rows_per_person:
        raise PrivacyError(
            f"rows were counted with sample_weight, up to {weight} times each: one person's rows "
            f"can change a count by that; give rows_per_person={weight} or more"
        )
    if (most := sketch.rows_per_person or 0) > rows_per_person:
        raise PrivacyError(
            f"up to {most} rows of a person were counted, and the noise would be for "
            f"{rows_per_person}: give rows_per_person={most} or more, or count fewer (of sketches "
            "that were added, whoever is in several has the rows of each: sketch all rows at once)"
        )


def earlier_of(after: Release | Sequence[Release], plan: Plan) -> tuple[Spent, ...]:
    """Return what earlier releases cost, each once, without those that are behind the plan."""
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
    """Return what had come before at the site where it cost most, in either currency.

    Which of several sites this one is, a merged release does not say.
    """
    past = [
        (Cost.total(spent.cost for spent in share.earlier), share.earlier)
        for share in ledger.shares
    ]
    by_rho = max(past, key=lambda one: one[0].rho)[1]
    by_pure = max(past, key=lambda one: one[0].pure)[1]
    by_spread = max(past, key=lambda one: one[0].spread)[1]
    return tuple(dict.fromkeys((*by_rho, *by_pure, *by_spread)))
