"""``hushtable round secret``: what the sites share and the coordinator does not know."""

import secrets
from pathlib import Path
from typing import Annotated

import typer

from hushtable.cli._options import Json
from hushtable.cli._output import Target, finish
from hushtable.federation.keys import new_private

__all__ = ["secret"]


def secret(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File to write.")],
    as_json: Json = False,
) -> None:
    """Make a secret from which the sites draw hidden hash functions.

    One site makes it and gives it to the other sites, never to the coordinator. Each then draws
    the same plan: "hushtable plan draw schema.toml --secret FILE".

    \b
    Example:
      hushtable round secret -o shared.secret
    """  # noqa: D301 (\b keeps the lines of the example apart)
    target = Target(output)
    with target.writing(), new_private(output) as temporary:
        temporary.write_text(secrets.token_hex(32) + "\n")
    facts = {"command": "round secret", "secret": str(output)}
    finish(as_json, facts, lambda: print(f"Wrote {target}: for the sites only."))
