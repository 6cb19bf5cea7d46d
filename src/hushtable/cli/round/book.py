"""``hushtable round book``: what a site has answered, and what that cost."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.cli._options import Json
from hushtable.cli._output import finish, print_table, shown
from hushtable.errors import UsageError

__all__ = ["book"]


def book(
    file: Annotated[Path, typer.Argument(metavar="BOOK", help="Book of hushtable round keygen.")],
    cap: Annotated[
        float | None, typer.Option(metavar="E", help="Change what all rounds together may cost.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(metavar="D", help="Delta of the cap; as it was by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a site's book: rounds answered, and the budget spent on each set of rows.

    \b
    Example:
      hushtable round book north.book
    """  # noqa: D301 (\b keeps the lines of the example apart)
    from hushtable.federation.book import Book
    from hushtable.federation.round import stamp

    if cap is None and delta is not None:
        raise UsageError("--delta goes with --cap")
    with Book.open(file) as notes:
        if cap is not None:
            notes.set_cap(cap, notes.delta if delta is None else delta)
        answers = notes.answers()
        totals = {name: notes.total(name) for name in notes.data_sets()}
        facts: dict[str, Any] = {
            "command": "round book",
            "site": notes.site,
            "cap": {"epsilon": notes.epsilon, "delta": notes.delta},
            "spent": totals,
            "rounds": [
                {
                    "round_id": one.round_id,
                    "title": one.title,
                    "data_set": one.data_set,
                    "made": stamp(one.made),
                    "what": one.spent.what,
                    "rho": one.spent.cost.rho,
                }
                for one in answers
            ],
            "known": {name: card.fingerprint for name, card in notes.known().items()},
        }

    def text() -> None:
        most = facts["cap"]["epsilon"]
        print(f"Book of {facts['site']}. Each set of rows may spend epsilon {most:g} in all, at")
        print(f"delta {facts['cap']['delta']:g}.\n")
        if not answers:
            print("No round was answered.")
            return
        print_table(
            ["round", "title", "rows", "what", "answered", "rho"],
            [
                [
                    one.round_id[:12],
                    shown(one.title),
                    shown(one.data_set),
                    one.spent.what,
                    stamp(one.made),
                    f"{one.spent.cost.rho:.4g}",
                ]
                for one in answers
            ],
            left=5,
        )
        print()
        print_table(
            ["rows", "epsilon spent", "of at most"],
            [[shown(name), f"{spent:.3g}", f"{most:g}"] for name, spent in totals.items()],
        )

    finish(as_json, facts, text)
