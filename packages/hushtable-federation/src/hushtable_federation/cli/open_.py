"""``hushtable round open``: a signed round that every site is asked to answer."""

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable import files
from hushtable.cli import options as options
from hushtable.cli.options import argument, option
from hushtable.cli.output import Target
from hushtable.cli.result import Block, CommandResult, Paragraph, TextTable
from hushtable.cli.schema import read_schema
from hushtable.errors import UsageError
from hushtable.plans.plan import Plan
from hushtable.privacy.layout import Design
from hushtable_federation.cli._common import (
    Days,
    KeyFile,
    cards,
    days_on,
    period_facts,
    read_round,
)
from hushtable_federation.clock import shown_time, stamp
from hushtable_federation.describe import period_words
from hushtable_federation.keys import Keys
from hushtable_federation.plausible_ranges import cells_for
from hushtable_federation.ranges import check_expected, range_words
from hushtable_federation.round import Round
from hushtable_federation.terms import Every, TermOptions

_Plan = Annotated[
    Path,
    argument("PLAN", "Plan; or a schema, with --expected-rows."),
]
_Roster = Annotated[list[Path], argument("CARD...", "Cards of the sites that take part.")]
_Total = Annotated[
    float,
    option("E", "Total epsilon for one person, including the rounds that the plan was drawn from."),
]
_Title = Annotated[str, option("TEXT", "Title of the round, for people.")]
_Masks = Annotated[
    bool,
    typer.Option(
        "--masks/--no-masks",
        help=(
            "Share the noise under masks (the result needs all sites, or --least of them), or let "
            "each site add the whole noise (the result can be without late sites)."
        ),
    ),
]
_Least = Annotated[int | None, option("N", "Number of sites needed for a result.", min=1)]
_Colluders = Annotated[
    int, option("C", "Number of sites that may leak their noise without breaking the bound.", min=0)
]
_EveryOption = Annotated[
    Every | None,
    typer.Option(help="Length of a period, for a plan with a horizon; only used in texts."),
]
_Times = Annotated[
    int | None,
    option(
        "N",
        (
            "Number of periods: as in the plan's horizon; for a schema, draws a plan with this "
            "horizon."
        ),
        min=1,
    ),
]
_Starts = Annotated[
    str | None, option("DAY", "A day in the first period, such as 2027-03-01; by default, today.")
]
_Ranges = Annotated[
    bool,
    typer.Option(
        "--ranges",
        help="For a schema: a round for plausible ranges only, which get the whole budget.",
    ),
]
_Previous = Annotated[list[Path] | None, option("ROUND", "Round that the plan was drawn from.")]


def open_(
    plan: _Plan,
    roster: _Roster,
    key: KeyFile,
    epsilon: _Total,
    output: options.Output,
    delta: options.Delta = 1e-6,
    days: Days = 14.0,
    title: _Title = "",
    expected_rows: options.ExpectedRows = None,
    masks: _Masks = True,
    least: _Least = None,
    colluders: _Colluders = 0,
    adjacency: options.AdjacencyOption = "add-remove",
    rows_per_person: options.RowsPerPerson = 1,
    previous: _Previous = None,
    every: _EveryOption = None,
    times: _Times = None,
    starts: _Starts = None,
    ranges: _Ranges = False,
) -> CommandResult:
    """Open a round: sign what is counted, by whom, on which terms.

    If you give a schema instead of a plan, and a marginals round is worth its cost for the expected
    rows, the round is about the marginals; "hushtable round next" continues from there. Under a
    plan with a horizon, the round is about the first period; "hushtable round next" opens the other
    periods at no further cost. With --ranges, the result is for plausible ranges: see "hushtable
    round ranges".

    Example:
      hushtable round open plan.hush north.card south.card --key lead.key --epsilon 1 -o round.hush
    """
    target = Target(output, [plan, *roster])
    sites, keys = cards(roster), Keys.load(key)
    terms: TermOptions = {
        "epsilon": epsilon, "delta": delta, "masked": masks, "least": least, "colluders": colluders,
        "adjacency": adjacency, "rows_per_person": rows_per_person,
        "share": 1.0 if ranges else None,
    }  # fmt: skip
    round_ = Round.open(
        _what(plan, expected_rows, epsilon, delta, 1 if masks else len(sites), times, ranges),
        sites,
        keys,
        deadline=days_on(days),
        title=title,
        previous=[read_round(path).round_id for path in previous or []],
        **_calendar(every, starts),
        **terms,
    )
    return report(round_, target, "round open")


def _calendar(every: Every | None, starts: str | None) -> dict[str, Any]:
    try:
        day = None if starts is None else datetime.date.fromisoformat(starts)
    except ValueError:
        raise UsageError(f"--starts {starts!r:.40}: needs a day such as 2027-03-01") from None
    return {"every": every, "starts": day}


def _what(
    path: Path,
    expected_rows: int | None,
    epsilon: float,
    delta: float,
    releases: int,
    times: int | None,
    ranges: bool,
) -> Plan:
    if ranges and (path.suffix != ".toml" or times is not None):
        raise UsageError("--ranges goes with a schema (.toml) and --expected-rows, without --times")
    if path.suffix != ".toml":
        if expected_rows is not None:
            raise UsageError("--expected-rows goes with a schema; a plan has its own layout")
        return _of_times(files.read(path).build(Plan.from_file), path, times)
    if expected_rows is None:
        raise UsageError(
            f"{path} is a schema: give --expected-rows, a public estimate of the rows of all sites"
            + ("" if times is None else ", in all periods")
        )

    schema = read_schema(path)
    design = Design(epsilon, delta, expected_rows, releases)
    if ranges:
        cells = cells_for(design, len(schema))
        return Plan.marginals(schema, cells=cells, **design.to_dict())
    if times is not None:
        return Plan.draw(schema, horizon=times, **design.to_dict())
    kind = Plan.marginals if design.pays_marginals(len(schema)) else Plan.draw
    return kind(schema, **design.to_dict())


def _of_times(plan: Plan, path: Path, times: int | None) -> Plan:
    periods = None if plan.horizon is None else plan.horizon.periods
    if times not in (None, periods):
        has = "no horizon" if periods is None else f"a horizon of {periods} periods"
        raise UsageError(
            f"--times {times}, and {path} has {has}: leave out --times, or draw a plan for {times} "
            f"(hushtable plan draw --horizon {times})"
        )
    return plan


def report(round_: Round, target: Target, command: str) -> CommandResult:
    """Write a new round, and report it."""
    check_expected(round_)
    target.save(round_)
    terms = round_.terms
    facts = {
        "command": command,
        "round": str(target.path),
        "round_id": round_.round_id,
        "fingerprint": round_.fingerprint,
        "plan_id": round_.plan.plan_id,
        "detector": round_.plan.detector,
        "sites": round_.names,
        "terms": terms.to_dict(),
        "site_scale": round_.site_scale,
        "deadline": stamp(round_.deadline),
        **period_facts(round_),
    }

    def blocks() -> Iterator[Block]:
        yield f"Round {round_.round_id[:12]}, until {shown_time(round_.deadline)}.\n"
        if period := period_words(round_):
            yield f"{period}.\n"
        roster = [[card.name, card.fingerprint] for card in round_.sites]
        yield TextTable(["site", "fingerprint of its card"], roster, left=2)
        yield f"\nFingerprint of all cards: {round_.fingerprint}"
        yield "In a call of all parties, everyone reads it aloud from the own screen.\n"
        yield Paragraph(terms.sentences(round_.site_scale, len(round_.sites), round_.needed))
        yield from _expected(round_)
        if round_.coordinator in round_.sites:
            yield f"\n{round_.coordinator.name} is also a site: the others refuse the round unless"
            yield "their policies allow it (coordinator_may_be_site)."
        yield f"\nWrote {target}. To put it into the shared folder of the round:"
        yield f"  hushtable round sync FOLDER --key KEY --post {target.path}"
        yield "At each site:"
        yield f"  hushtable round show {target.path} --key SITE.key"
        yield "  hushtable round sync FOLDER DATA --key SITE.key"

    return CommandResult(facts, blocks())


def _expected(round_: Round) -> Iterator[Block]:
    plan = round_.plan
    if plan.design is None:
        return
    said = [plan.design.words()] if plan.purpose.scores_rows else range_words(round_)
    if said:
        yield ""
        yield Paragraph(said)
