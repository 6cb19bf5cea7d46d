"""``hushtable round secret``: what the sites share and the coordinator does not know."""

import os
from pathlib import Path
from typing import Annotated

import typer

from hushtable.cli._options import Json
from hushtable.cli._output import Target, finish
from hushtable.errors import UsageError

__all__ = ["secret"]


def secret(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File to write.")],
    as_json: Json = False,
) -> None:
    """Make a secret from which the sites draw hash functions that the coordinator cannot know.

    One site makes it and gives it to the other sites, never to the coordinator. Each then draws
    the same plan: "hushtable plan draw schema.toml --secret FILE".

    \b
    Example:
      hushtable round secret -o shared.secret
    """  # noqa: D301 (\b keeps the lines of the example apart)
    import secrets

    target = Target(output)
    with target.writing():
        try:
            file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise UsageError(
                f"{output} exists, and is not overwritten: give another name"
            ) from None
        with open(file, "w") as stream:
            stream.write(secrets.token_hex(32) + "\n")
    facts = {"command": "round secret", "secret": str(output)}
    finish(as_json, facts, lambda: print(f"Wrote {target}: for the sites only."))
