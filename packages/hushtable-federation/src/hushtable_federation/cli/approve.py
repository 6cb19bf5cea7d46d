"""``hushtable round approve``: an officer's signature over a round."""

from pathlib import Path
from typing import Annotated

from hushtable.cli.options import Json, Output, option
from hushtable.cli.output import Target, finish
from hushtable_federation.approval import Approval
from hushtable_federation.cli._common import RoundFile, read_round
from hushtable_federation.keys import Keys

_Key = Annotated[Path, option("FILE", "The officer's keys, of hushtable round keygen.", "--key")]


def approve(round_: RoundFile, key: _Key, output: Output, as_json: Json = False) -> None:
    """Sign a round as the officer whom a site's policy names.

    Look at the round first: hushtable round show.

    Example:
      hushtable round approve round.hush --key officer.key -o round.approval
    """
    target = Target(output, [round_, key])
    asked, keys = read_round(round_), Keys.load(key)
    target.save(Approval.sign(asked, keys))
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
