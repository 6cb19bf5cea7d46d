"""``hushtable plan``: make the plan that several sites share from a schema with public ranges."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from hushtable.cli import options
from hushtable.cli.options import (
    HUSHTABLE,
    Detector,
    argument,
    draw_spelled,
    flag,
    option,
    read_counts,
)
from hushtable.cli.result import Block, CommandResult, Paragraph, Target
from hushtable.cli.schema import read_schema
from hushtable.counts.base import Counts
from hushtable.data.options import names_in
from hushtable.describe.plan import n_tables
from hushtable.errors import UsageError
from hushtable.plans.draws import NOVELTY
from hushtable.plans.plan import Plan
from hushtable.privacy.accounting import Horizon
from hushtable.privacy.budget import ReleaseTerms
from hushtable.privacy.mechanisms import Cost

_EXACT = (
    "A second round, over the rows in dense regions, detects better (mean ROC-AUC +.01, average "
    "precision +.02 on 29 labelled data sets). It reads the rows two more times and adds two "
    "files per site: hushtable plan gate, then hushtable plan second."
)
_PAYS = (
    "A second round, over the rows in dense regions, would be worthwhile (mean average precision "
    "+.005 to +.01): draw this plan with --passes 2; it adds two files per site, within the same "
    "epsilon."
)
_PLANNED = (
    "It leaves budget for a second round, over the rows in dense regions: hushtable plan gate "
    "with the merged release, then hushtable plan second. Together, the three releases cost the "
    "epsilon."
)
_PAYS_NOT = (
    "A second round (--passes 2) would not be worthwhile: there are too few rows for its noise."
)


def save_plan(
    plan: Plan,
    target: Target,
    command: str,
    notes: Sequence[str] = (),
) -> CommandResult:
    """Write a plan, and describe it, with further notes."""
    # Before it is written, because this reports whether anything can be released under it.
    about_periods = [] if plan.horizon is None else [_at_the_end(plan)]
    target.save(plan)
    design, expectation = plan.design, None
    if design is not None:
        early = design.early
        expectation = {
            **design.expectation().to_dict(),
            "helps": design.helps(),
            "early": early and {"period": early, **design.expectation(early).to_dict()},
        }
    facts = {
        "command": command,
        "plan": str(target.path),
        "plan_id": plan.plan_id,
        "detector": plan.detector,
        "data_dependent": plan.data_dependent,
        "features": len(plan.schema),
        "tables": plan.family.n_tables,
        "cells": plan.family.n_cells,
        "behind": [spent.to_dict() for spent in plan.behind],
        "design": None if design is None else design.to_dict(),
        "expected_loss": None if design is None else round(design.expected_loss, 2),
        "expectation": expectation,
        "passes": 1 if plan.first_counts is None else 2,
        "novelty": plan.score == NOVELTY,
    }
    return CommandResult(facts, _blocks(plan, target, notes, about_periods))


def _blocks(
    plan: Plan, target: Target, notes: Sequence[str], periods: Sequence[str]
) -> Iterator[Block]:
    yield (
        f"Plan {plan.plan_id[:12]}: {plan.detector}, {len(plan.schema):,} features, "
        f"{n_tables(plan.family.n_tables)}, {plan.family.n_cells:,} cells."
    )
    if plan.behind:
        what = " and ".join(f"{spent.what} {spent.release[:12]}" for spent in plan.behind)
        yield Paragraph([
            f"It depends on data only through private releases ({what}), and every release under "
            "it includes their cost."
        ])  # fmt: skip
    elif not plan.data_dependent:
        yield "It does not depend on data, only on the schema, the seed and public numbers."
    design = plan.design
    if design is not None and plan.purpose.scores_rows:
        yield Paragraph([design.words()])
    yield Paragraph(periods)
    if second := _second_round(plan):
        yield Paragraph(second)
    yield from notes
    yield f"Wrote {target}. At each site:"
    yield f"  hushtable sketch DATA --plan {target.path} -o site.sketch.hush"
    if design is not None:
        which = "" if plan.horizon is None else " --periods site.periods.hush"
        yield (
            f"  hushtable release site.sketch.hush{which} --epsilon {design.epsilon:g} -o site.hush"
        )


def _at_the_end(plan: Plan) -> str:
    design, horizon = plan.design, plan.horizon
    assert design is not None
    assert horizon is not None
    terms, tables = ReleaseTerms(design.epsilon, design.delta), plan.family.n_histograms
    before = Cost.total(spent.cost for spent in plan.behind)
    scale = terms.scale(terms.sensitivity(tables, horizon=horizon), before) * design.sites**0.5
    last = scale * math.hypot(*horizon.weights(horizon.periods))
    once = terms.scale(terms.sensitivity(tables), before) * design.sites**0.5
    who = ""
    if horizon.participations > 1:
        who = f", for a person who is in at most {horizon.participations} of them"
    return (
        f"It is for {horizon.periods} periods at one total budget{who}. The noise on a count of "
        f"the sum of all periods is {last:,.0f} (standard deviation, one row per person and "
        f"period): {last / once:.2g} times the noise of one release of all rows at once."
    )


def _second_round(plan: Plan) -> list[str]:
    if plan.detector != HUSHTABLE or plan.score == NOVELTY or plan.first_counts is not None:
        return []
    if plan.horizon is not None:
        return []
    design = plan.design
    if design is None:
        return [_EXACT]
    if design.passes == 2:
        return [_PLANNED]
    return [_PAYS if design.pays_second_pass() else _PAYS_NOT]


SchemaFile = Annotated[Path, argument("SCHEMA", "Schema in TOML, with its ranges filled in.")]


@dataclass(frozen=True)
class DrawSettings:
    """The tables of a plan, and what they count."""

    detector: Detector = HUSHTABLE
    tables: Annotated[
        int | None,
        option(
            "M",
            "Number of tables; by default 100, or a number that suits --epsilon.",
            min=1,
            max=10_000,
        ),
    ] = None
    seed: options.Seed = None
    novelty: Annotated[
        bool,
        flag("--novelty", "For rows that are known to be clean (hushtable only): see the docs."),
    ] = False
    context: options.Context = None
    horizon: Annotated[
        str | None,
        option(
            "T[,K[,A]]",
            "With --epsilon: number of periods in which rows arrive, with one total budget for "
            "all; largest number of periods in which a person has rows, and smallest number from "
            "one of these to the next (default 1). --expected-rows is the number of rows in all "
            "periods.",
        ),
    ] = None

    def parameters(self, epsilon: float | None) -> dict[str, Any]:
        """Return the arguments of `Plan.draw`; ``epsilon`` is that of the budget."""
        parameters: dict[str, Any] = {
            "detector": draw_spelled(self.detector).name,
            "random_state": self.seed,
        }
        if self.novelty:
            parameters["novelty"] = True
        if self.context is not None:
            parameters["context"] = names_in(self.context)
        if self.tables is not None or epsilon is None:
            parameters["n_tables"] = self.tables or 100
        if self.horizon is not None:
            numbers = self.horizon.split(",")
            if len(numbers) > 3 or not all(n.strip().isdecimal() and int(n) for n in numbers):
                raise UsageError(
                    f"--horizon {self.horizon}: needs one to three whole numbers, such as 24,2,12"
                )
            parameters["horizon"] = Horizon.of(*map(int, numbers))
        return parameters


@dataclass(frozen=True)
class Budget:
    """The public numbers for which the tables of a private plan are laid out."""

    epsilon: options.Epsilon = None
    delta: options.Delta = 1e-6
    expected_rows: options.ExpectedRows = None
    sites: options.Sites = 1
    passes: options.PlanPasses = 1


def draw(
    schema: SchemaFile,
    output: options.Output,
    marginals: Annotated[
        Path | None,
        option(
            "FILE",
            "Merged sketch or release under hushtable plan marginals: refines the plan (hushtable "
            "only).",
        ),
    ] = None,
    *,
    settings: DrawSettings,
    budget: Budget,
) -> CommandResult:
    """Draw the hash functions that all sites share.

    Without --marginals, the plan depends on the schema, the seed and the other options only, not
    on any data. With --epsilon, the tables are laid out for the noise of a private release.

    Example:
      hushtable plan draw schema.toml --epsilon 1 --expected-rows 50000 -o plan.hush
    """
    target = Target(output, [schema, marginals])
    counts = read_counts(marginals) if marginals else None
    terms = asdict(budget) | settings.parameters(budget.epsilon)
    plan = Plan.draw(read_schema(schema), marginals=counts, **terms)
    return save_plan(plan, target, "plan draw", _notes(plan, counts))


def _notes(plan: Plan, counts: Counts | None) -> Sequence[str]:
    notes = []
    if plan.context and plan.design is not None:
        notes.append("The accuracy above was measured without a context.")
    if counts is not None and plan.data_dependent:
        notes += [
            f"It depends on data: the merged marginals of {counts.n_rows:,} rows. No sketch",
            "under it can be released privately.",
        ]
    design = plan.design if counts is None and plan.horizon is None else None
    if design is not None and design.pays_marginals(len(plan.schema)):
        notes += [
            "A first round for the marginals would be worthwhile: hushtable plan marginals with "
            "the same",
            "options, then sketch, release, merge, and give the sum to --marginals here.",
        ]
    return notes
