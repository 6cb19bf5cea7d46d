"""``hushtable round status``: where a round stands."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.cli._options import Json
from hushtable.cli._output import finish, print_table, shown
from hushtable.cli.round._common import RoundFile, collected, read_round, roster_rows, state
from hushtable.cli.round.collect import print_refused

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
    from hushtable.federation.round import now, shown_time, stamp

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
        hidden = ", hash functions hidden from the coordinator" if asked.plan is None else ""
        over = " (over)" if facts["over"] else ""
        lines = {
            "Round": f"{asked.round_id[:12]} {shown(asked.title)}".rstrip(),
            "Coordinator": f"{asked.coordinator.name}, {asked.coordinator.fingerprint}",
            "Open": f"{shown_time(asked.opened)} to {shown_time(asked.deadline)}{over}",
            "Plan": f"{asked.layout.plan_id[:12]}, {asked.layout.detector}{hidden}",
            "Cost": f"epsilon {terms.epsilon:g}, delta {terms.delta:g}, {terms.adjacency}, "
            f"{terms.rows_per_person:,} rows a person at most",
            "Noise": f"{asked.site_scale:,.4g} a site, "
            + (f"under masks, k_min {terms.k_min}" if terms.masked else "the whole, no masks"),
            "Needs": f"{terms.least} of {len(asked.sites)} sites; "
            f"{len(collection.accepted)} are in",
        }
        for label, value in lines.items():
            print(f"{label:<13}{value}")
        print()
        print_table(["site", "fingerprint", "submission"], roster_rows(asked, collection), left=3)
        print_refused(collection)

    finish(as_json, facts, text)
