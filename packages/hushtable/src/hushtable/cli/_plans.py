"""Plans as the commands that make them write and describe them."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from hushtable.cli._detectors import HUSHTABLE
from hushtable.cli._output import Target, finish, print_sentences
from hushtable.describe.plan import n_tables
from hushtable.plans.draws import NOVELTY
from hushtable.plans.plan import Plan
from hushtable.privacy.layout import Design
from hushtable.privacy.mechanisms import Cost
from hushtable.privacy.terms import Terms

_EXACT = (
    "A second round, of the rows that lie dense, detects better (mean ROC-AUC +.01, average "
    "precision +.02 on 29 labelled sets) for two more readings of the rows and two more files a "
    "site: hushtable plan gate, then hushtable plan second."
)
_PAYS = (
    "A second round, of the rows that lie dense, would pay (mean average precision +.005 to +.01): "
    "draw this plan with --passes 2; it takes two more files a site, within the same epsilon."
)
_PLANNED = (
    "It leaves budget for a second round, of the rows that lie dense: hushtable plan gate with the "
    "merged release, then hushtable plan second. The three releases come to the epsilon together."
)
_PAYS_NOT = "A second round (--passes 2) would not pay: too few rows for its noise."


def save_plan(
    plan: Plan,
    target: Target,
    command: str,
    as_json: bool,
    notes: Sequence[str] = (),
    more: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write a plan, and say what it is, with further notes, or ``more`` for machines."""
    # Before it is written: it says whether anything can be released under it.
    about_periods = [] if plan.horizon is None else [_at_the_end(plan)]
    target.save(plan)
    design = plan.design
    facts = {
        "command": command,
        "plan": str(target.path),
        "plan_id": plan.plan_id,
        "detector": plan.detector,
        "data_dependent": plan.data_dependent,
        "hidden": plan.hidden,
        "features": len(plan.schema),
        "tables": plan.family.n_tables,
        "cells": plan.family.n_cells,
        "behind": [spent.to_dict() for spent in plan.behind],
        "design": None if design is None else design.to_dict(),
        "expected_loss": None if design is None else round(design.expected_loss, 2),
        "expectation": None if design is None else _expectation(design),
        "passes": 1 if plan.first_counts is None else 2,
        "novelty": plan.score == NOVELTY,
        **more,
    }
    finish(as_json, facts, lambda: _print(plan, target, notes, about_periods))


def _expectation(design: Design) -> dict[str, Any]:
    early = design.early
    return {
        **design.expectation().to_dict(),
        "helps": design.helps(),
        "early": early and {"period": early, **design.expectation(early).to_dict()},
    }


def _print(plan: Plan, target: Target, notes: Sequence[str], periods: Sequence[str]) -> None:
    print(
        f"Plan {plan.plan_id[:12]}: {plan.detector}, {len(plan.schema):,} features, "
        f"{n_tables(plan.family.n_tables)}, {plan.family.n_cells:,} cells."
    )
    if plan.behind:
        what = " and ".join(f"{spent.what} {spent.release[:12]}" for spent in plan.behind)
        print_sentences([
            f"It depends on data through private releases only ({what}), whose cost counts in "
            "every release under it."
        ])  # fmt: skip
    elif not plan.data_dependent:
        print("It depends on no data, only on the schema, the seed and public numbers.")
    design = plan.design
    if design is not None and plan.purpose.scores_rows:
        print_sentences([design.words()])
    print_sentences(periods)
    if said := _second_round(plan):
        print_sentences(said)
    for line in notes:
        print(line)
    if plan.hidden:
        print("Its hash functions are hidden: it is for the sites only. What the coordinator")
        print("gets is made of it by hushtable plan hide.")
    print(f"Wrote {target}. At each site:")
    print(f"  hushtable sketch DATA --plan {target.path} -o site.sketch.hush")
    if design is not None:
        which = "" if plan.horizon is None else " --periods site.periods.hush"
        print(
            f"  hushtable release site.sketch.hush{which} --epsilon {design.epsilon:g} -o site.hush"
        )


def _at_the_end(plan: Plan) -> str:
    """Say how noisy the sum of all periods is."""
    design, horizon = plan.design, plan.horizon
    assert design is not None
    assert horizon is not None
    terms, tables = Terms(design.epsilon, design.delta), plan.family.n_histograms
    before = Cost.total(spent.cost for spent in plan.behind)
    scale = terms.scale(terms.sensitivity(tables, horizon=horizon), before) * design.sites**0.5
    last = scale * math.hypot(*horizon.weights(horizon.periods))
    once = terms.scale(terms.sensitivity(tables), before) * design.sites**0.5
    who = ""
    if horizon.participations > 1:
        who = f", for a person in {horizon.participations} of them at most"
    return (
        f"It is for {horizon.periods} periods at one total{who}. The noise on a count of the sum "
        f"of all is {last:,.0f} (standard deviation, one row a person in a period): "
        f"{last / once:.2g} times that of one release of all rows at once."
    )


def _second_round(plan: Plan) -> list[str]:
    """Say what a second round gives and costs; nothing of plans that have none."""
    if plan.detector != HUSHTABLE.draw or plan.score == NOVELTY or plan.first_counts is not None:
        return []
    if plan.horizon is not None:
        return []
    design = plan.design
    if design is None:
        return [_EXACT]
    if design.passes == 2:
        return [_PLANNED]
    return [_PAYS if design.pays_second_pass() else _PAYS_NOT]
