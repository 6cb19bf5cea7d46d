"""``hushtable round status``: where a round stands."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.cli._options import Json
from hushtable.cli._output import finish, print_table, shown
from hushtable.cli.round._common import RoundFile, collected, read_round, roster_rows, state
from hushtable.cli.round.collect import print_refused
from hushtable.federation.round import now, stamp
from hushtable.report.words import round_lines

__all__ = ["status"]


def status(
    round_: RoundFile,
    submissions: Annotated[
        list[Path] | None, typer.Argument(metavar="SUBMISSION...", help="What the sites sent.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a round: its terms, its sites, and whose submission is in.

    \b
    Example:
      hushtable round status round.hush *.submission.hush
    """  # noqa: D301 (\b keeps the lines of the example apart)
    asked = read_round(round_)
    collection = collected(asked, submissions or [])
    terms = asked.terms
    facts: dict[str, Any] = {
        "command": "round status",
        "round_id": asked.round_id,
        "title": asked.title,
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
        print_table(["site", "fingerprint", "submission"], roster_rows(asked, collection), left=3)
        print_refused(collection)

    finish(as_json, facts, text)
