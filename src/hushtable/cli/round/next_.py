"""``hushtable round next``: from the marginals that the sites sent to the round of the tables."""

from pathlib import Path
from typing import Annotated

import typer

from hushtable.cli._options import Json, Output, Seed
from hushtable.cli._output import Target
from hushtable.cli.round._common import (
    Days,
    KeyFile,
    RoundFile,
    Submissions,
    collected,
    coordinators_keys,
    days_on,
    read_round,
)
from hushtable.cli.round.collect import result_of
from hushtable.cli.round.open_ import tell
from hushtable.counts.release import Release
from hushtable.errors import RoundError
from hushtable.federation.keys import Keys
from hushtable.federation.round import Round
from hushtable.plans.plan import Plan

__all__ = ["next_"]


def next_(
    round_: RoundFile,
    submissions: Submissions,
    key: KeyFile,
    output: Output,
    result: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the merged marginals too, signed, for the records."
        ),
    ] = None,
    days: Days = 14.0,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Collect marginals, draw the refined plan, and open its round.

    Roster and terms are those of the first round, and the total epsilon is over both.

    \b
    Example:
      hushtable round next first.hush *.submission.hush --key lead.key -o second.hush
    """  # noqa: D301 (\b keeps the lines of the example apart)
    target = Target(output, [round_, *submissions])
    other = None if result is None else Target(result, [round_, *submissions])
    asked = read_round(round_)
    if asked.layout.detector != "marginals" or asked.plan is None:
        raise RoundError(
            f"{round_} is about {asked.layout.detector}: round next goes on from marginals; the "
            "result of this one is made by hushtable round collect"
        )
    keys = coordinators_keys(key, asked)
    merged = result_of(collected(asked, submissions), keys)
    if other is not None:
        with other.writing():
            merged.save(other.path)
    tell(_second(asked, merged, keys, days, seed), target, "round next", as_json)


def _second(first: Round, marginals: Release, keys: Keys, days: float, seed: int | None) -> Round:

    assert first.plan is not None
    design, terms = first.plan.design, first.terms
    if design is None:
        raise RoundError(
            "the marginals' plan was not laid out for a budget: open the first round with a schema "
            "and --expected-rows"
        )
    plan = Plan.draw(
        first.plan.schema,
        marginals=marginals,
        random_state=seed,
        epsilon=design.epsilon,
        delta=design.delta,
        expected_rows=design.expected_rows,
        sites=design.sites,
    )
    return Round.open(
        plan,
        first.sites,
        keys,
        epsilon=terms.epsilon,
        delta=terms.delta,
        deadline=days_on(days),
        masked=terms.masked,
        least=terms.least,
        colluders=terms.least - 1 - terms.k_min if terms.masked else 0,
        adjacency=terms.adjacency,
        rows_per_person=terms.rows_per_person,
        title=first.title,
        previous=(*first.previous, first.round_id),
    )
