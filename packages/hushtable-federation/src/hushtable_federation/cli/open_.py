"""``hushtable round open``, ``next``, and ``amend``: what a coordinator signs."""

import datetime
from pathlib import Path
from typing import Annotated

import typer

from hushtable import files
from hushtable.cli import options
from hushtable.cli.options import argument, flag, option
from hushtable.cli.result import Block, CommandResult, Paragraph, Target, TextTable, shown
from hushtable.cli.schema import read_schema
from hushtable.errors import RoundError, UsageError
from hushtable.plans.draws import Purpose
from hushtable.plans.plan import Plan
from hushtable.privacy.layout import Design
from hushtable_federation.cli import _common as common
from hushtable_federation.clock import now, shown_time, stamp
from hushtable_federation.coordinator import round_after, tables_after
from hushtable_federation.describe import period_words, round_lines
from hushtable_federation.keys import Keys
from hushtable_federation.language import _
from hushtable_federation.ranges import cells_for, check_expected, range_words
from hushtable_federation.refusals import raise_first
from hushtable_federation.result import Result
from hushtable_federation.round import Round, check_coordinator
from hushtable_federation.settings import SiteSettings
from hushtable_federation.site import Site
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
    flag(
        "--ranges", "For a schema: a round for plausible ranges only, which get the whole budget."
    ),
]
_Previous = Annotated[list[Path] | None, option("ROUND", "Round that the plan was drawn from.")]


def open_(
    plan: _Plan,
    roster: _Roster,
    key: common.KeyFile,
    epsilon: _Total,
    output: options.Output,
    delta: options.Delta = 1e-6,
    days: common.Days = 14.0,
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
    try:
        day = None if starts is None else datetime.date.fromisoformat(starts)
    except ValueError:
        raise UsageError(f"--starts {starts!r:.40}: needs a day such as 2027-03-01") from None
    sites, keys = common.cards(roster), Keys.load(key)
    terms: TermOptions = {
        "epsilon": epsilon, "delta": delta, "masked": masks, "least": least, "colluders": colluders,
        "adjacency": adjacency, "rows_per_person": rows_per_person,
        "share": 1.0 if ranges else None,
    }  # fmt: skip
    round_ = Round.open(
        _what(plan, expected_rows, epsilon, delta, 1 if masks else len(sites), times, ranges),
        sites,
        keys,
        deadline=common.days_on(days),
        title=title,
        previous=[common.read_round(path).round_id for path in previous or []],
        every=every,
        starts=day,
        **terms,
    )
    return _report(round_, target, "round open")


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
        plan = files.read(path).build(Plan.from_file)
        periods = None if plan.horizon is None else plan.horizon.periods
        if times not in (None, periods):
            has = "no horizon" if periods is None else f"a horizon of {periods} periods"
            raise UsageError(
                f"--times {times}, and {path} has {has}: leave out --times, or draw a plan for "
                f"{times} (hushtable plan draw --horizon {times})"
            )
        return plan
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


def _report(round_: Round, target: Target, command: str) -> CommandResult:
    check_expected(round_)
    target.save(round_)
    terms, plan = round_.terms, round_.plan
    facts = {
        "command": command,
        "round": str(target.path),
        "round_id": round_.round_id,
        "fingerprint": round_.fingerprint,
        "plan_id": plan.plan_id,
        "detector": plan.detector,
        "sites": round_.names,
        "terms": terms.to_dict(),
        "site_scale": round_.site_scale,
        "deadline": stamp(round_.deadline),
        **common.period_facts(round_),
    }
    blocks: list[Block] = [f"Round {round_.round_id[:12]}, until {shown_time(round_.deadline)}.\n"]
    if period := period_words(round_):
        blocks.append(f"{period}.\n")
    roster, lines = [[card.name, card.fingerprint] for card in round_.sites], round_lines(round_)
    blocks += [
        TextTable(["site", "fingerprint of its card"], roster, left=2),
        f"\nFingerprint of all cards: {round_.fingerprint}",
        "In a call of all parties, everyone reads it aloud from the own screen.\n",
        *(f"{label:<13}{lines[label]}" for label in (_("Cost"), _("Noise"), _("Needs"))),
    ]
    if plan.design is not None:  # the accuracy to expect, from the plan's public numbers
        words = [plan.design.words()] if plan.purpose.scores_rows else range_words(round_)
        blocks += ["", Paragraph(words)] if words else []
    if round_.coordinator in round_.sites:
        blocks.append(
            f"\n{round_.coordinator.name} is also a site: the others refuse the round unless\n"
            "their policies allow it (coordinator_may_be_site)."
        )
    blocks.append(
        f"\nWrote {target}. To put it into the shared folder of the round:\n"
        f"  hushtable round sync FOLDER --key KEY --post {target.path}\n"
        "At each site:\n"
        f"  hushtable round show {target.path} --key SITE.key\n"
        "  hushtable round sync FOLDER DATA --key SITE.key"
    )
    return CommandResult(facts, blocks)


# --- round next -----------------------------------------------------------------------------------

_Result = Annotated[
    Path | None, argument("[RESULT]", "The result of ROUND, if it is a marginals round.")
]
_Again = Annotated[bool, flag("--again", "Open the same period again, with a later deadline.")]
_Joining = Annotated[
    list[Path] | None, option("CARD", "Card of a site that joins. May be repeated.", "--site")
]


def next_(
    round_: common.RoundFile,
    key: common.KeyFile,
    output: options.Output,
    result: _Result = None,
    days: common.Days = 14.0,
    seed: options.Seed = None,
    again: _Again = False,
    site: _Joining = None,
) -> CommandResult:
    """Open the round for the next period, or the one after a marginals round.

    For a stream of periods, give no result: roster and terms stay the same, and the period is the
    next one, or the same one with --again. For marginals, the command draws the refined plan from
    their signed result; the total epsilon covers both rounds.

    Example:
      hushtable round next march.hush --key lead.key -o april.hush
      hushtable round next first.hush result.hush --key lead.key -o second.hush
    """
    target = Target(output, [round_, result])
    asked = common.read_round(round_)
    is_period = asked.period is not None
    if not is_period and asked.plan.purpose is not Purpose.MARGINALS:
        raise RoundError(
            f"{round_} is about {asked.plan.detector}: round next continues marginals or periods; "
            "the result of this round is already a model"
        )
    faults = {
        f"{round_} is about period {asked.period}: leave out the result and --seed, which the next "
        "period does not need": is_period and (result is not None or seed is not None),
        f"{round_} is a marginals round: leave out --again and --site, which are for periods": (
            not is_period and (again or site)
        ),
    }
    raise_first(UsageError, faults)
    keys, deadline = Keys.load(key), common.days_on(days)
    check_coordinator(asked, keys)
    if is_period:
        joining = common.cards(site or [])
        following = asked.next(keys, joining=joining, deadline=deadline, again=again)
        return _report(following, target, "round next")
    if result is None:
        raise UsageError(f"{round_} is a marginals round: give its result, too")
    read = Result.load(result)
    read.check_round(asked)
    tables = tables_after(asked.plan, read.counts, seed=seed)
    return _report(round_after(asked, tables, keys, deadline), target, "round next")


# --- round amend ----------------------------------------------------------------------------------

_LeadsKey = Annotated[Path, option("FILE", "The coordinator's keys, or its file.", "--key")]
_MoreDays = Annotated[
    float | None, option("N", "Number of days from now until the deadline.", min=0, max=3650)
]
_Drop = Annotated[
    list[str] | None,
    option("SITE", "Continue without this site: it is late, away, or has lost its keys."),
]
_Why = Annotated[str, option("TEXT", "The reason, which the sites will see.")]


def amend(
    key: _LeadsKey,
    folder: common.FolderArgument = "",
    days: _MoreDays = None,
    drop: _Drop = None,
    why: _Why = "",
    which: common.Which = "",
) -> CommandResult:
    """Extend a round in a folder, or go on without a site.

    You sign the change, and the sites see it. You can amend a round until it is decided which sites
    are in the sum. After that, no site can be dropped, and the other sites make up for missing
    ones. Drop a site whose keys are no longer trusted; it gets a new card in the next round.

    Example:
      hushtable round amend /mnt/round --key lead.key --days 3 --drop north --why "server down"
    """
    if days is None and not drop:
        raise UsageError("nothing to amend: give --days, --drop, or both")
    settings = SiteSettings.load(key)
    common.check_folder(folder, settings)
    deadline = None if days is None else common.days_on(days)
    asked, made = Site(settings).lead.amend(
        folder, which=which, deadline=deadline, drop=drop or (), why=why
    )
    facts = {
        "command": "round amend",
        "round_id": asked.round_id,
        "number": made.number,
        "deadline": stamp(made.deadline),
        "dropped": list(made.dropped),
        "why": made.why,
    }
    over = " (over)" if now() > made.deadline else ""
    lines = [
        f"Round {asked.round_id[:12]}, amendment {made.number}:",
        f"  until {shown_time(made.deadline)}{over}",
        *([f"  without {', '.join(map(shown, made.dropped))}"] if made.dropped else []),
        f"It is in {folder or settings.address.folder}. Continue with: hushtable round sync",
    ]
    return CommandResult(facts, lines)
