"""Plans of the rounds that follow from counts: between two passes, and after a model.

`Plan.draw`, `Plan.marginals` and `Plan.ranges` make plans from public numbers. A plan made here
depends on counts: on releases, whose cost counts in every release under the plan, or on sketches,
whose exact counts or scores it holds, so that nothing can be released under it.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Counts
from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.plans.draws import DRAWS, NOVELTY
from hushtable.plans.families import HashFamily
from hushtable.plans.families.histograms import (
    PRIVATE_RANK_BINS,
    RANK_BINS,
    SECOND_PASS,
    gate_histogram,
    noised_otsu_cell,
    otsu_cell,
    score_histogram,
)
from hushtable.plans.plan import Plan

__all__ = ["gate", "ranks", "second_pass"]


def _after(counts: Counts, name: str, family: HashFamily, *, exact: bool = False) -> Plan:
    """Return a plan that follows from counts; ``exact`` means that it reveals exact ones."""
    return Plan(
        family.schema,
        family,
        DRAWS[name].score,
        name,
        data_dependent=counts.plan.data_dependent or exact,
        behind=counts.spent(),
    )


def gate(first: Counts) -> Plan:
    """Make the plan of the round between two passes: a histogram of rows' densities.

    A row counts in the cell of its mean log2(C1 + 1) over half of the tables, where C1 are the
    counts of the first pass; or, if they were released, in the cell of its score. The merged
    counts of all sites determine which rows the second pass counts: see `second_pass`.

    Parameters
    ----------
    first : Sketch or Release
        Merged counts of all rows.

    Raises
    ------
    UsageError, PlanError
        If no second pass can follow: the counts do not score, contain no rows, are already
        from a second pass, or belong to a plan for novelty detection.
    PrivacyError
        If they are a local model.

    Examples
    --------
    >>> from hushtable import Feature, Plan, Schema, Sketch
    >>> from hushtable.counts import rounds
    >>> plan = Plan.draw(Schema([Feature.numeric("age", low=0, high=99)]), random_state=0)
    >>> rows = [[40.0], [41.0], [90.0]]
    >>> first = Sketch.from_data(plan, rows)
    >>> found = Sketch.from_data(rounds.gate(first), rows)
    >>> Sketch.from_data(rounds.second_pass(first, found), rows).n_rows
    2
    """
    _check_first(first)
    plan = first.plan
    histogram = gate_histogram(plan.family, plan.score, first.counts, first.noise_sd)
    if first.ledger is None:
        return _after(first, "gate", histogram, exact=True)
    return replace(_after(first, "gate", histogram), design=plan.design)


def second_pass(first: Counts, gate_counts: Counts) -> Plan:
    """Return the plan that counts again, but only the rows in dense regions.

    Isolated rows are left out of its counts, so that they do not hide each other; a row is
    scored by the counts of both passes. The plan has the tables of the first pass.

    Parameters
    ----------
    first : Sketch or Release
        Merged counts of all rows.
    gate_counts : Sketch or Release
        Merged counts under ``gate(first)``: exact if the first ones are, otherwise released.
        Otsu's method divides them into two classes; rows of the denser one are counted.

    Raises
    ------
    PlanError
        If the gate's counts are of another plan.
    UsageError, PrivacyError
        As in `gate`; or if only one of the two was released.

    Examples
    --------
    >>> from hushtable import Feature, Plan, Schema, Sketch
    >>> from hushtable.counts import rounds
    >>> plan = Plan.draw(Schema([Feature.numeric("age", low=0, high=99)]), random_state=0)
    >>> rows = [[40.0], [41.0], [90.0]]
    >>> first = Sketch.from_data(plan, rows)
    >>> gate_counts = Sketch.from_data(rounds.gate(first), rows)
    >>> rounds.second_pass(first, gate_counts).first_rows
    3
    """
    plan, needed = first.plan, gate(first)
    if gate_counts.plan.plan_id != needed.plan_id:
        raise PlanError(
            "the gate was counted under another plan than the gate's of these first counts: "
            + needed.difference(gate_counts.plan)
        )
    if first.ledger is not None:
        if not gate_counts.may_leave:
            raise PrivacyError(
                "the first counts are a release, and the gate's are exact, on which the second "
                "pass must not depend: release them too, sketch.release(epsilon=...)"
            )
        plan = replace(
            plan,
            first_counts=first.counts,
            first_noise_sd=first.noise_sd,
            gate_cell=0,
            behind=tuple({spent.release: spent for spent in gate_counts.spent()}.values()),
        )
        return replace(plan, gate_cell=noised_otsu_cell(gate_counts.counts, plan.first_rows))
    if gate_counts.ledger is not None:
        raise UsageError("the gate's counts have noise, the first ones do not: give exact ones")
    if not gate_counts.counts.any():
        raise UsageError("no rows were counted for the gate: add the sites' counts first")
    return gated(plan, first.counts, otsu_cell(gate_counts.counts))


def gated(plan: Plan, first: NDArray[np.int64], cell: int) -> Plan:
    """Return the plan of the second pass, given exact counts and a cell of the gate."""
    score = SECOND_PASS if plan.score.name == SECOND_PASS.name else plan.score
    return replace(plan, first_counts=first, gate_cell=cell, score=score, data_dependent=True)


def _check_first(first: Counts) -> None:
    plan = first.plan
    if first.ledger is not None and not first.may_leave:
        raise PrivacyError(
            "a local model holds exact counts of its site, on which no shared plan may depend: "
            "give the release that it was made from"
        )
    if plan.first_counts is not None:
        raise UsageError("this plan is for a second pass already: a third gains nothing")
    if plan.horizon is not None:
        raise UsageError(
            f"a second pass cannot follow a plan for {plan.horizon.periods} periods: it would "
            "count the rows of all of them again, and their budget is spent"
        )
    if not plan.purpose.scores_rows:
        raise UsageError(f"counts of a {plan.detector!r} plan do not score rows: no second pass")
    if plan.score == NOVELTY:
        raise UsageError(
            "this plan is for novelty detection: its rows are clean, and a second pass would leave "
            "some of them out, which loses accuracy"
        )
    if first.ledger is None and plan.rows_counted(first.counts) == 0:
        raise PlanError("the first pass counted no rows: add the sites' counts first")


def ranks(model: Counts) -> Plan:
    """Make the plan of an optional last round, which gives rows ranks: a histogram of scores.

    A row counts in the cell of the score that the model gives it. With the sum over the sites,
    `hushtable.scores.Ranks` ranks a row among the rows of all sites. With a sketch, the plan holds
    its exact scores: it is as private as the sketch.

    Parameters
    ----------
    model : Sketch or Release
        The merged counts that score rows.

    Raises
    ------
    UsageError
        If the counts are of histograms that do not score.

    Examples
    --------
    >>> from hushtable import HushTable, Sketch
    >>> from hushtable.counts import rounds
    >>> X = [[70, 1], [71, 2], [72, 3], [180, 4]]
    >>> model = HushTable(random_state=0).fit(X).sketch_
    >>> Sketch.from_data(rounds.ranks(model), X).n_rows
    4
    """
    plan = model.plan
    if not plan.purpose.scores_rows:
        raise UsageError(
            f"counts of a {plan.detector!r} plan do not score rows: ranks need a detector's counts"
        )
    bins = RANK_BINS if model.ledger is None else PRIVATE_RANK_BINS
    family = score_histogram(plan.family, model.cell_scores(), bins)
    return _after(model, "ranks", family, exact=not model.may_leave)
