"""``hushtable round next``: from the marginals that the sites sent to the round of the tables."""

from pathlib import Path
from typing import Annotated

from hushtable.cli._options import Json, Output, Seed, option
from hushtable.cli._output import Target
from hushtable.cli.round import _common as common
from hushtable.cli.round.collect import result_of
from hushtable.cli.round.open_ import report
from hushtable.counts.release import Release
from hushtable.errors import RoundError
from hushtable.federation.keys import Keys
from hushtable.federation.round import Round
from hushtable.plans.draws import Purpose
from hushtable.plans.plan import Plan

_Result = Annotated[
    Path | None, option("FILE", "Write the merged marginals too, signed, for the records.")
]


def next_(
    round_: common.RoundFile,
    submissions: common.Submissions,
    key: common.KeyFile,
    output: Output,
    result: _Result = None,
    days: common.Days = 14.0,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Collect marginals, draw the refined plan, and open its round.

    Roster and terms are those of the first round, and the total epsilon is over both.

    Example:
      hushtable round next first.hush *.submission.hush --key lead.key -o second.hush
    """
    target = Target(output, [round_, *submissions])
    other = None if result is None else Target(result, [round_, *submissions])
    asked = common.read_round(round_)
    if asked.layout.purpose is not Purpose.MARGINALS or asked.plan is None:
        raise RoundError(
            f"{round_} is about {asked.layout.detector}: round next goes on from marginals; the "
            "result of this one is made by hushtable round collect"
        )
    keys = common.coordinators_keys(key, asked)
    merged = result_of(common.collected(asked, submissions), keys)
    if other is not None:
        other.save(merged)
    report(_second(asked, merged, keys, days, seed), target, "round next", as_json)


def _second(first: Round, marginals: Release, keys: Keys, days: float, seed: int | None) -> Round:
    assert first.plan is not None
    design, terms = first.plan.design, first.terms
    if design is None:
        raise RoundError(
            "the marginals' plan was not laid out for a budget: open the first round with a schema "
            "and --expected-rows"
        )
    plan = Plan.draw(first.plan.schema, marginals=marginals, random_state=seed, **design.to_dict())
    return Round.open(
        plan,
        first.sites,
        keys,
        epsilon=terms.epsilon,
        delta=terms.delta,
        deadline=common.days_on(days),
        masked=terms.masked,
        least=terms.least,
        colluders=terms.colluders,
        adjacency=terms.adjacency,
        rows_per_person=terms.rows_per_person,
        title=first.title,
        previous=(*first.previous, first.round_id),
    )
