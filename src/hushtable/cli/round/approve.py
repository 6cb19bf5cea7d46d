"""``hushtable round approve``: an officer's signature over a round."""

from pathlib import Path
from typing import Annotated

import typer

from hushtable.cli._options import Json, Output
from hushtable.cli._output import Target, finish
from hushtable.cli.round._common import RoundFile, read_round
from hushtable.federation.approval import Approval
from hushtable.federation.keys import Keys

__all__ = ["approve"]


def approve(
    round_: RoundFile,
    key: Annotated[
        Path,
        typer.Option(
            "--key", metavar="FILE", help="The officer's keys, of hushtable round keygen."
        ),
    ],
    output: Output,
    as_json: Json = False,
) -> None:
    """Sign a round as the officer whom a site's policy names.

    Look at the round first: hushtable round show.

    \b
    Example:
      hushtable round approve round.hush --key officer.key -o round.approval
    """  # noqa: D301 (\b keeps the lines of the example apart)
    target = Target(output, [round_, key])
    asked, keys = read_round(round_), Keys.load(key)
    with target.writing():
        Approval.sign(asked, keys).save(output)
    facts = {
        "command": "round approve",
        "approval": str(output),
        "round_id": asked.round_id,
        "officer": keys.card.fingerprint,
    }

    def text() -> None:
        print(f"{keys.card.name} ({keys.card.fingerprint}) approves round {asked.round_id[:12]}.")
        print(f"Wrote {target}. At the site:")
        print(f"  hushtable round submit {round_} DATA --key SITE.key --approval {output} -o FILE")

    finish(as_json, facts, text)
