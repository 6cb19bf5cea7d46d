"""``hushtable round next``: the next period of a stream, or from marginals to the tables."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.cli.options import Json, Output, Seed, argument, option
from hushtable.cli.output import Target
from hushtable.errors import RoundError, UsageError
from hushtable.plans.draws import Purpose
from hushtable_federation.campaign import round_after, tables_after
from hushtable_federation.cli import _common as common
from hushtable_federation.cli import _hidden
from hushtable_federation.cli.collect import result_of
from hushtable_federation.cli.open_ import report
from hushtable_federation.round import Round

_Result = Annotated[
    Path | None, option("FILE", "Write the merged marginals too, signed, for the records.")
]


_Submissions = Annotated[
    list[Path] | None,
    argument(
        "SUBMISSION...",
        "Of a round about marginals: what the sites sent; with --secret or --layout, the result.",
    ),
]
_Again = Annotated[
    bool, typer.Option("--again", help="Ask for the same period again, with a later deadline.")
]
_Joining = Annotated[
    list[Path] | None, option("CARD", "Card of a site that joins. May be repeated.", "--site")
]
_Secret = Annotated[
    Path | None,
    option(
        "FILE",
        "At a site, from marginals to hidden tables: draw their plan from what the sites share.",
    ),
]
_Layout = Annotated[
    Path | None,
    option(
        "FILE",
        "With --secret: write the layout, too, for the coordinator. Without, at the coordinator: "
        "open the round of it.",
    ),
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
    secret: _Secret = None,
    layout: _Layout = None,
    plan: common.HiddenPlan = None,
    book: common.BookFile = None,
    as_json: Json = False,
) -> None:
    """Open the round of the next period, or the one after marginals.

    Of a stream, it takes no submissions: roster and terms stay, and the period is the next one, or
    the same --again. Of marginals, it collects them and draws the refined plan; the total epsilon
    is over both rounds.

    Where the hash functions are hidden, it takes the signed result of the marginals, twice: with
    --secret, each site draws the same plan; with --layout, the coordinator opens its round.

    Example:
      hushtable round next march.hush --key lead.key -o april.hush
      hushtable round next first.hush *.submission.hush --key lead.key -o second.hush
      hushtable round next first.hush result.hush --secret shared.hush --key north.key -o plan.hush
    """
    if secret or layout or plan or book:
        _check_hidden(result, seed, again, site)
        given = _hidden.Given(round_, submissions or [], key, output, layout, as_json)
        if secret is not None:
            return given.draw(secret, plan, book)
        return given.open(plan, book, days)
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
    assert asked.plan is not None
    tables = tables_after(asked.plan, merged, seed=seed)
    second = round_after(asked, tables, keys, common.days_on(days))
    report(second, target, "round next", as_json)


def _check_given(asked: Round, path: Path, *, about_marginals: bool, about_periods: bool) -> None:
    """Raise unless a round goes on, and with options of its kind."""
    if asked.period is not None:
        if about_marginals:
            raise UsageError(
                f"{path} is about period {asked.period}: the next one needs no submissions, "
                "--result or --seed; add these up with hushtable round collect"
            )
        return
    if asked.layout.purpose is Purpose.MARGINALS and asked.plan is None:
        raise UsageError(
            f"{path} hides its plan: collect the marginals (hushtable round collect), have a site "
            "draw the tables from the result (--secret), and open their round with its --layout"
        )
    if asked.layout.purpose is not Purpose.MARGINALS:
        raise RoundError(
            f"{path} is about {asked.layout.detector}: round next goes on from marginals, or from "
            "a period; the result of this one is made by hushtable round collect"
        )
    if about_periods:
        raise UsageError(f"{path} is about marginals: --again and --site are for periods")


def _check_hidden(result: Any, seed: Any, again: bool, site: Any) -> None:
    """Raise `UsageError` if options of other rounds are given beside those of hidden plans."""
    if result is not None or seed is not None or again or site:
        raise UsageError(
            "--secret, --layout, --plan and --book are for hidden hash functions, after the "
            "marginals: leave out --result, --seed, --again and --site"
        )
