"""``hushtable round next``: the next period of a stream, or the tables after marginals."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable import files
from hushtable.cli.options import Output, Seed, argument, option
from hushtable.cli.output import Target
from hushtable.cli.result import Block, CommandResult, Paragraph
from hushtable.errors import RoundError, UsageError
from hushtable.plans.draws import Purpose
from hushtable.plans.plan import Plan
from hushtable_federation.cli import _common as common
from hushtable_federation.cli.open_ import report
from hushtable_federation.cli.secret import SharedSecret, read_shared
from hushtable_federation.coordinator import check_drawn_from, round_after, tables_after
from hushtable_federation.keys import Keys
from hushtable_federation.layout import Layout
from hushtable_federation.result import Result
from hushtable_federation.round import HIDDEN_PERIODS, Round


@dataclass(frozen=True)
class HiddenStep:
    """Files that the command was given, at a site and at the coordinator alike."""

    round: Path
    result: Path
    key: Path
    output: Path
    layout: Path | None

    def _result(self, asked: Round) -> Result:
        if asked.period is not None:
            raise UsageError(HIDDEN_PERIODS)
        return _checked(self.result, asked)

    # --- at a site ------------------------------------------------------------------------------

    def draw(self, secret: Path, plan: Path | None, book: Path | None) -> CommandResult:
        """Draw the plan of the next round and write it; write its layout, too, if requested."""
        read = [self.round, self.key, secret, plan, self.result]
        target, other = Target(self.output, read), None
        if self.layout is not None:
            other = Target(self.layout, read)
            if self.layout == self.output:
                raise UsageError(
                    "--layout and -o name the same file: give two names, because the plan is for "
                    "sites only"
                )
        asked, keys = common.read_round(self.round), Keys.load(self.key)
        if keys.card not in asked.sites:
            raise RoundError(
                f"{keys.card.name!r} ({keys.card.fingerprint}) is not a site of this round: draw "
                "the plan at a site, and give the coordinator its layout (--layout)"
            )
        result = self._result(asked)
        marginals = common.hidden_plan(plan) if plan is not None else asked.plan
        if marginals is None:
            raise UsageError(
                f"{self.round} hides its plan: give the marginals plan that the sites share "
                "(--plan)"
            )
        shared = read_shared(secret, self.key, book)
        drawn = tables_after(asked.layout.check(marginals), result.counts, secret=shared.secret)
        target.save(drawn)
        if other is not None:
            other.save(Layout.of(drawn))
        return self._report(drawn, shared, target, other)

    def _report(
        self, drawn: Plan, shared: SharedSecret, target: Target, other: Target | None
    ) -> CommandResult:
        facts: dict[str, Any] = {
            "command": "round next",
            "plan": str(self.output),
            "layout": None if other is None else str(other.path),
            "plan_id": drawn.plan_id,
            "detector": drawn.detector,
            "hidden": drawn.hidden,
            **shared.facts(),
        }

        def blocks() -> Iterator[Block]:
            yield f"Plan {drawn.plan_id[:12]}: the same at every site that draws it.\n"
            if drawn.design is not None:
                yield Paragraph([drawn.design.words()])
                yield ""
            yield from shared.lines()
            yield f"\nWrote {target}: for this site only."
            if other is None:
                yield "One site sends its layout to the coordinator. To write the layout:"
                yield f"  hushtable plan hide {self.output} -o layout.hush"
            else:
                yield f"Wrote {other}: for the coordinator, who opens the round with it:"
                line = f"{self.round} {self.result} --layout {other.path}"
                yield f"  hushtable round next {line} --key KEY -o ROUND"
            yield f'Answer that round with this plan (plan = "{self.output}" in the site\'s file):'
            yield "  hushtable round sync FOLDER DATA --key KEY"

        return CommandResult(facts, blocks())

    # --- at the coordinator ---------------------------------------------------------------------

    def open(self, plan: Path | None, book: Path | None, days: float) -> CommandResult:
        """Open the round for a layout that a site made from the result."""
        if self.layout is None or plan is not None or book is not None:
            raise UsageError(
                "--plan and --book go with --secret, at a site; a coordinator gives only --layout"
            )
        target = Target(self.output, [self.round, self.key, self.layout, self.result])
        asked = common.read_round(self.round)
        keys = common.coordinators_keys(self.key, asked)
        result = self._result(asked)
        layout = files.read(self.layout).expect("layout").build(Layout.from_file)
        check_drawn_from(layout, result.counts)
        second = round_after(asked, layout, keys, common.days_on(days))
        return report(second, target, "round next")


def _checked(path: Path, asked: Round) -> Result:
    """Read the signed result of a round, and check it against the round."""
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
_Secret = Annotated[
    Path | None,
    option(
        "FILE",
        "At a site, after marginals with a hidden plan: draw the plan of the tables from this "
        "secret of the sites.",
    ),
]
_Layout = Annotated[
    Path | None,
    option(
        "FILE",
        "With --secret: also write the layout, for the coordinator. Without --secret, at the "
        "coordinator: open the round for this layout.",
    ),
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
    secret: _Secret = None,
    layout: _Layout = None,
    plan: common.HiddenPlan = None,
    book: common.BookFile = None,
) -> CommandResult:
    """Open the round for the next period, or the one after a marginals round.

    For a stream of periods, give no result: roster and terms stay the same, and the period is the
    next one, or the same one with --again. For marginals, the command draws the refined plan from
    their signed result; the total epsilon covers both rounds.

    If the hash functions are hidden, this takes two calls: with --secret, each site draws the same
    plan; with --layout, the coordinator opens the round for it.

    Example:
      hushtable round next march.hush --key lead.key -o april.hush
      hushtable round next first.hush result.hush --key lead.key -o second.hush
      hushtable round next first.hush result.hush --secret shared.hush --key north.key -o plan.hush
    """
    if secret or layout or plan or book:
        given = HiddenStep(round_, _given_to_hidden(result, seed, again, site), key, output, layout)
        if secret is not None:
            return given.draw(secret, plan, book)
        return given.open(plan, book, days)
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
    assert asked.plan is not None
    tables = tables_after(asked.plan, _checked(result, asked).counts, seed=seed)
    second = round_after(asked, tables, keys, common.days_on(days))
    return report(second, target, "round next")


def _check_given(asked: Round, path: Path, *, about_marginals: bool, about_periods: bool) -> None:
    """Raise unless another round follows this one, and the options suit its kind."""
    if asked.period is not None:
        if about_marginals:
            raise UsageError(
                f"{path} is about period {asked.period}: leave out the result and --seed, which "
                "the next period does not need"
            )
        return
    if asked.layout.purpose is Purpose.MARGINALS and asked.plan is None:
        raise UsageError(
            f"{path} hides its plan: have a site draw the tables from the result (--secret), and "
            "open their round with the layout (--layout)"
        )
    if asked.layout.purpose is not Purpose.MARGINALS:
        raise RoundError(
            f"{path} is about {asked.layout.detector}: round next continues marginals or periods; "
            "the result of this round is already a model"
        )
    if about_periods:
        raise UsageError(
            f"{path} is a marginals round: leave out --again and --site, which are for periods"
        )


def _given_to_hidden(result: Path | None, seed: Any, again: bool, site: Any) -> Path:
    """Return the result; raise `UsageError` without one, or with options of other rounds."""
    if result is None or seed is not None or again or site:
        raise UsageError(
            "--secret, --layout, --plan and --book are for hidden hash functions, after a "
            "marginals round: give its result, and leave out --seed, --again and --site"
        )
    return result
