"""``hushtable round next``: the next period of a stream, or from marginals to the tables."""

from pathlib import Path
from typing import Annotated

import typer

from hushtable.cli._options import Json, Output, Seed, argument, option
from hushtable.cli._output import Target
from hushtable.cli.round import _common as common
from hushtable.cli.round.collect import result_of
from hushtable.cli.round.open_ import report
from hushtable.counts.release import Release
from hushtable.errors import RoundError, UsageError
from hushtable.federation.keys import Keys
from hushtable.federation.round import Round
from hushtable.plans.draws import Purpose
from hushtable.plans.plan import Plan

_Result = Annotated[
    Path | None, option("FILE", "Write the merged marginals too, signed, for the records.")
]


_Submissions = Annotated[
    list[Path] | None, argument("SUBMISSION...", "Of a round about marginals: what the sites sent.")
]
_Again = Annotated[
    bool, typer.Option("--again", help="Ask for the same period again, with a later deadline.")
]
_Joining = Annotated[
    list[Path] | None, option("CARD", "Card of a site that joins. May be repeated.", "--site")
]


def next_(
    round_: common.RoundFile,
    key: common.KeyFile,
    output: Output,
    submissions: _Submissions = None,
    result: _Result = None,
    days: common.Days = 14.0,
    seed: Seed = None,
    again: _Again = False,
    site: _Joining = None,
    as_json: Json = False,
) -> None:
    """Open the round of the next period, or the one after marginals.

    Of a stream, it takes no submissions: roster and terms stay, and the period is the next one, or
    the same --again. Of marginals, it collects them and draws the refined plan; the total epsilon
    is over both rounds.

    Example:
      hushtable round next march.hush --key lead.key -o april.hush
      hushtable round next first.hush *.submission.hush --key lead.key -o second.hush
    """
    sent = submissions or []
    target = Target(output, [round_, *sent])
    other = None if result is None else Target(result, [round_, *sent])
    asked = common.read_round(round_)
    _check_given(asked, round_, about_marginals=bool(sent) or other is not None or seed is not None,
                 about_periods=again or bool(site))  # fmt: skip
    keys = common.coordinators_keys(key, asked)
    if asked.period is not None:
        times = {"deadline": common.days_on(days), "again": again}
        following = asked.next(keys, joining=common.cards(site or []), **times)
        return report(following, target, "round next", as_json)
    merged = result_of(common.collected(asked, sent), keys)
    if other is not None:
        other.save(merged)
    report(_second(asked, merged, keys, days, seed), target, "round next", as_json)


def _check_given(asked: Round, path: Path, *, about_marginals: bool, about_periods: bool) -> None:
    """Raise unless a round goes on, and with options of its kind."""
    if asked.period is not None:
        if about_marginals:
            raise UsageError(
                f"{path} is about period {asked.period}: the next one needs no submissions, "
                "--result or --seed; add these up with hushtable round collect"
            )
        return
    if asked.layout.purpose is not Purpose.MARGINALS or asked.plan is None:
        raise RoundError(
            f"{path} is about {asked.layout.detector}: round next goes on from marginals, or from "
            "a period; the result of this one is made by hushtable round collect"
        )
    if about_periods:
        raise UsageError(f"{path} is about marginals: --again and --site are for periods")


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
        max_rows=terms.max_rows,
        adjacency=terms.adjacency,
        rows_per_person=terms.rows_per_person,
        title=first.title,
        previous=(*first.previous, first.round_id),
    )
