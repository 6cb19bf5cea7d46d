"""``hushtable round next`` where hash functions are hidden: at a site, and at the coordinator."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushtable import files
from hushtable.cli._output import Target, finish, print_sentences
from hushtable.errors import RoundError, UsageError
from hushtable.plans.plan import Plan
from hushtable_federation.campaign import check_drawn_from, round_after, tables_after
from hushtable_federation.cli import _common as common
from hushtable_federation.cli import _secrets
from hushtable_federation.cli.open_ import report
from hushtable_federation.keys import Keys
from hushtable_federation.layout import Layout
from hushtable_federation.opening import HIDDEN_PERIODS
from hushtable_federation.result import Result
from hushtable_federation.round import Round


@dataclass(frozen=True)
class Given:
    """Files that the command was given, the same at both."""

    round: Path
    results: list[Path]
    key: Path
    output: Path
    layout: Path | None
    as_json: bool

    def _result(self, asked: Round) -> Result:
        """Read the signed result of the round, and check it against the round."""
        if asked.period is not None:
            raise UsageError(HIDDEN_PERIODS)
        if len(self.results) != 1:
            raise UsageError(
                f"{len(self.results)} files beside {self.round}: with hidden hash functions, give "
                "one, the signed result of hushtable round collect --key"
            )
        result = Result.load(self.results[0])
        result.check_round(asked)
        return result

    # --- at a site ------------------------------------------------------------------------------

    def draw(self, secret: Path, plan: Path | None, book: Path | None) -> None:
        """Draw the plan of the next round, and write it; the layout, too, if it is asked for."""
        read = [self.round, self.key, secret, plan, *self.results]
        target, other = Target(self.output, read), None
        if self.layout is not None:
            other = Target(self.layout, read)
            if self.layout == self.output:
                raise UsageError("--layout and -o name the same file: the plan is for sites alone")
        asked, keys = common.read_round(self.round), Keys.load(self.key)
        if keys.card not in asked.sites:
            raise RoundError(
                f"{keys.card.name!r} ({keys.card.fingerprint}) is no site of this round: the plan "
                "is drawn at its sites, and the coordinator gets its layout (--layout)"
            )
        result = self._result(asked)
        marginals = common.hidden_plan(plan) if plan is not None else asked.plan
        if marginals is None:
            raise UsageError(
                f"{self.round} hides its plan: give the plan of the marginals that the sites share "
                "(--plan)"
            )
        shared = _secrets.read(secret, self.key, book)
        drawn = tables_after(asked.layout.check(marginals), result.counts, secret=shared.secret)
        target.save(drawn)
        if other is not None:
            other.save(Layout.of(drawn))
        self._report(drawn, shared, target, other)

    def _report(
        self, drawn: Plan, shared: _secrets.Opened, target: Target, other: Target | None
    ) -> None:
        facts: dict[str, Any] = {
            "command": "round next",
            "plan": str(self.output),
            "layout": None if other is None else str(other.path),
            "plan_id": drawn.plan_id,
            "detector": drawn.detector,
            "hidden": drawn.hidden,
            **shared.facts(),
        }

        def text() -> None:
            print(f"Plan {drawn.plan_id[:12]}: the same at every site that draws it.\n")
            if drawn.design is not None:
                print_sentences([drawn.design.words()])
                print()
            for line in shared.lines():
                print(line)
            print(f"\nWrote {target}: for this site only.")
            if other is None:
                print("One site sends the coordinator its layout:")
                print(f"  hushtable plan hide {self.output} -o layout.hush")
            else:
                print(f"Wrote {other}: for the coordinator, who opens the round with it:")
                line = f"{self.round} {self.results[0]} --layout {other.path}"
                print(f"  hushtable round next {line} --key KEY -o ROUND")
            print(f'Answer that round with it (plan = "{self.output}" in the site\'s file):')
            print("  hushtable round submit ROUND DATA --key KEY -o FILE")

        finish(self.as_json, facts, text)

    # --- at the coordinator ---------------------------------------------------------------------

    def open(self, plan: Path | None, book: Path | None, days: float) -> None:
        """Open the round about a layout that a site made of the result."""
        if self.layout is None or plan is not None or book is not None:
            raise UsageError(
                "--plan and --book go with --secret, at a site; a coordinator gives --layout alone"
            )
        target = Target(self.output, [self.round, self.key, self.layout, *self.results])
        asked = common.read_round(self.round)
        keys = common.coordinators_keys(self.key, asked)
        result = self._result(asked)
        layout = files.read(self.layout).expect("layout").build(Layout.from_file)
        check_drawn_from(layout, result.counts)
        second = round_after(asked, layout, keys, common.days_on(days))
        report(second, target, "round next", self.as_json)
