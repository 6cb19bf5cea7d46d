"""``hushtable round keygen``: keys, card and book of somebody who takes part."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.cli._options import Delta, Json
from hushtable.cli._output import Target, finish
from hushtable.errors import UsageError

__all__ = ["keygen"]


def keygen(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As others see you.")],
    cap: Annotated[
        float | None,
        typer.Option(
            metavar="E",
            help="For a site: epsilon that all rounds together may cost a person in its rows.",
        ),
    ] = None,
    delta: Delta = 1e-6,
    folder: Annotated[
        Path, typer.Option("--folder", metavar="DIR", help="Where to write the files.")
    ] = Path(),
    as_json: Json = False,
) -> None:
    """Make the keys of a site (with --cap) or of a coordinator (without).

    NAME.key is secret. NAME.card is its public half: give it to the coordinator, and read its
    fingerprint to them on the phone. NAME.book, with --cap, notes what the site answers and what
    that costs; it is as secret as the rows.

    \b
    Example:
      hushtable round keygen north --cap 2
    """  # noqa: D301 (\b keeps the lines of the example apart)
    from hushtable.federation.book import Book
    from hushtable.federation.keys import Keys

    keys = Keys.generate(name)
    files = {kind: folder / f"{name}.{kind}" for kind in ("key", "card", "book")}
    if cap is None:
        del files["book"]
    for path in files.values():
        if path.exists():
            raise UsageError(
                f"{path} exists, and keys are never overwritten: use it, or give another name"
            )
    targets = {kind: Target(path) for kind, path in files.items()}
    if cap is not None:
        with targets["book"].writing():
            Book.create(files["book"], keys.card, epsilon=cap, delta=delta).close()
    with targets["key"].writing():
        keys.save(files["key"])
    with targets["card"].writing():
        keys.card.save(files["card"])
    facts: dict[str, Any] = {
        "command": "round keygen",
        "name": name,
        "fingerprint": keys.card.fingerprint,
        "files": {kind: str(path) for kind, path in files.items()},
    }

    def text() -> None:
        print(f"Keys of {name}. Fingerprint: {keys.card.fingerprint}\n")
        print(f"  {files['key']}   secret: back it up, show it to nobody")
        if cap is not None:
            print(f"  {files['book']}  secret: back it up; cap: epsilon {cap:g}, delta {delta:g}")
        print(f"  {files['card']}  give it to the coordinator")

    finish(as_json, facts, text)
