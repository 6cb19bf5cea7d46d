"""``hushtable round next``: the next period of a stream, or the tables after marginals."""

from pathlib import Path
from typing import Annotated

import typer

from hushtable.cli.options import Output, Seed, argument, option
from hushtable.cli.output import Target
from hushtable.cli.result import CommandResult
from hushtable.errors import RoundError, UsageError
from hushtable.plans.draws import Purpose
from hushtable_federation.cli import _common as common
from hushtable_federation.cli.open_ import report
from hushtable_federation.coordinator import round_after, tables_after
from hushtable_federation.result import Result
from hushtable_federation.round import Round


def _checked(path: Path, asked: Round) -> Result:
    result = Result.load(path)
    result.check_round(asked)
    return result


_Result = Annotated[
    Path | None, argument("[RESULT]", "The result of ROUND, if it is a marginals round.")
]
_Again = Annotated[
    bool, typer.Option("--again", help="Open the same period again, with a later deadline.")
]
_Joining = Annotated[
    list[Path] | None, option("CARD", "Card of a site that joins. May be repeated.", "--site")
]


def next_(
    round_: common.RoundFile,
    key: common.KeyFile,
    output: Output,
    result: _Result = None,
    days: common.Days = 14.0,
    seed: Seed = None,
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
    _check_given(asked, round_, about_marginals=result is not None or seed is not None,
                 about_periods=again or bool(site))  # fmt: skip
    keys = common.coordinators_keys(key, asked)
    if asked.period is not None:
        times = {"deadline": common.days_on(days), "again": again}
        following = asked.next(keys, joining=common.cards(site or []), **times)
        return report(following, target, "round next")
    if result is None:
        raise UsageError(f"{round_} is a marginals round: give its result, too")
    tables = tables_after(asked.plan, _checked(result, asked).counts, seed=seed)
    second = round_after(asked, tables, keys, common.days_on(days))
    return report(second, target, "round next")


def _check_given(asked: Round, path: Path, *, about_marginals: bool, about_periods: bool) -> None:
    if asked.period is not None:
        if about_marginals:
            raise UsageError(
                f"{path} is about period {asked.period}: leave out the result and --seed, which "
                "the next period does not need"
            )
        return
    if asked.plan.purpose is not Purpose.MARGINALS:
        raise RoundError(
            f"{path} is about {asked.plan.detector}: round next continues marginals or periods; "
            "the result of this round is already a model"
        )
    if about_periods:
        raise UsageError(
            f"{path} is a marginals round: leave out --again and --site, which are for periods"
        )
