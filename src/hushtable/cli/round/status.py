"""``hushtable round status``: where a round stands."""

from pathlib import Path
from typing import Annotated, Any

from hushtable.cli._options import Json, argument
from hushtable.cli._output import finish, shown
from hushtable.cli.round._common import RoundFile, collected, period_facts, read_round, state
from hushtable.cli.round.collect import print_roster
from hushtable.federation.round import now, stamp
from hushtable.report.words import round_lines

_Submissions = Annotated[list[Path] | None, argument("SUBMISSION...", "What the sites sent.")]


def status(round_: RoundFile, submissions: _Submissions = None, as_json: Json = False) -> None:
    """Show a round: its terms, its sites, and whose submission is in.

    Example:
      hushtable round status round.hush *.submission.hush
    """
    asked = read_round(round_)
    collection = collected(asked, submissions or [])
    terms = asked.terms
    facts: dict[str, Any] = {
        "command": "round status",
        "round_id": asked.round_id,
        "title": asked.title,
        **period_facts(asked),
        "opened": stamp(asked.opened),
        "deadline": stamp(asked.deadline),
        "over": now() > asked.deadline,
        "coordinator": asked.coordinator.to_dict(),
        "sites": asked.names,
        "plan_id": asked.layout.plan_id,
        "hidden": asked.plan is None,
        "terms": terms.to_dict(),
        "site_scale": asked.site_scale,
        **state(collection),
    }

    def text() -> None:
        lines = round_lines(asked, len(collection.accepted))
        for label, value in lines.items():
            print(f"{label:<13}{shown(value)}")
        print()
        print_roster(asked, collection)

    finish(as_json, facts, text)
