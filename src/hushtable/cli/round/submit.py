"""``hushtable round submit``: a site's answer, checked, shown and written."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable import files
from hushtable.cli._options import Columns, Data, Drop, Json, Output, Threads
from hushtable.cli._output import Target, finish, print_sentences, print_tally, tally
from hushtable.cli._progress import cells_bar, watched
from hushtable.cli._rows import open_rows
from hushtable.cli.round._common import (
    BookFile,
    HiddenPlan,
    KeyFile,
    PolicyFile,
    RoundFile,
    book_beside,
    cards,
    hidden_plan,
    read_round,
)
from hushtable.cli.round.show import print_round
from hushtable.counts.sketch import Sketch
from hushtable.errors import UsageError
from hushtable.federation import site
from hushtable.federation.approval import Approval
from hushtable.federation.book.book import Book
from hushtable.federation.keys import Keys
from hushtable.federation.policy_file import load_policy, policy_beside
from hushtable.federation.site import Reply

__all__ = ["submit"]


def submit(
    round_: RoundFile,
    data: Data,
    key: KeyFile,
    output: Output,
    book: BookFile = None,
    policy: PolicyFile = None,
    plan: HiddenPlan = None,
    approval: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The officer's, of hushtable round approve."),
    ] = None,
    trust: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="CARD",
            help="Card got from its owner: of somebody new, or with new keys. May be repeated.",
        ),
    ] = None,
    data_set: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Name of the rows; another than before only for rows of other people, as each "
            "name has a budget of its own.",
        ),
    ] = "all rows",
    new_people: Annotated[
        bool,
        typer.Option(
            "--new-people",
            help="The rows are other people's, although they look like those of another name.",
        ),
    ] = False,
    outside_too: Annotated[
        bool,
        typer.Option(
            "--outside-too", help="Go on although most rows lie outside the range of a column."
        ),
    ] = False,
    threads: Threads = -1,
    columns: Columns = None,
    drop: Drop = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Send without a question; trusts nobody for you.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Answer a round: count rows, add noise, mask, sign, write a file.

    Shows first what is counted, what will leave and what it costs, and asks. Rows are checked
    against the round before anything is recorded. What is sent is noted in the site's book: called
    again, it writes the same answer, whatever the rows are by now.

    \b
    Example:
      hushtable round submit round.hush patients.csv --key north.key -o north.submission.hush
    """  # noqa: D301 (\b keeps the lines of the example apart)
    target = Target(output, [round_, data, key])
    interactive = sys.stdin.isatty() and not as_json
    if not yes and not interactive:
        raise UsageError("nobody is here to ask: give --yes to send without a question")

    asked = read_round(round_)
    keys = Keys.load(key)
    with Book.open(book_beside(key, book), keys.card) as notes:
        if trust:
            site.trust(notes, asked, cards(trust))
        reply = site.Reply(
            asked,
            keys,
            notes,
            policy=load_policy(policy_beside(key) if policy is None else policy),
            data_set=data_set,
            plan=hidden_plan(plan),
            approval=None if approval is None else Approval.load(approval),
        )
        reader = open_rows(data, columns, drop, reply.plan.schema)
        if not as_json:
            _show(reply)
        if not yes:
            _ask(reply)
        reply.check_known()
        digester = notes.digester(reply.plan.schema)
        with watched(digester.watch(reader), quiet=as_json) as watch:
            counted = Sketch.from_data(reply.plan, watch.reader, n_jobs=threads, allow_empty=True)
        seen = digester.digests() if counted.n_rows else None
        with cells_bar(len(counted.counts), quiet=as_json) as advance:
            content = reply.submission(
                counted, advance, rows=seen, new_people=new_people, outside_too=outside_too
            )
        with target.writing():
            files.write_bytes(output, content, private=not files.travels("submission"))
    facts: dict[str, Any] = {
        "command": "round submit",
        "submission": str(output),
        "round_id": asked.round_id,
        "site": keys.card.name,
        "data_set": data_set,
        "again": reply.earlier is not None,
        "epsilon_so_far": reply.epsilon,
        "tally": tally(reply.plan.schema, counted.tally),
    }

    def text() -> None:
        if reply.earlier is not None:
            print("The round was answered before: this is the same answer, noise and all.")
        print(f"Counted {counted.n_rows:,} rows.")
        print_tally(reply.plan.schema, counted.tally, watch.rows)
        print(f"Wrote {target}: send it to {asked.coordinator.name}. Keep the book.")

    finish(as_json, facts, text)


def _show(reply: Reply) -> None:
    here = {f"{role} {card.name}": "not known here" for role, card in reply.strangers}
    for role, card in (
        ("coordinator", reply.round.coordinator),
        *(("site", card) for card in reply.round.sites),
    ):
        here.setdefault(f"{role} {card.name}", "this site" if card == reply.keys.card else "known")
    print_round(reply.round, reply.plan, here)
    print(f"\nWhat will leave {reply.keys.card.name}: these counts, and nothing else.")
    print_sentences([reply.cost_words])


def _ask(reply: Reply) -> None:
    """Ask a person whether the strangers are who they say, and whether to send."""
    if reply.new:
        names = ", ".join(card.name for card in reply.new)
        print(f"\nNot known here: {names}. Compare their fingerprints with them, on the phone.")
        if typer.confirm("Are all of these fingerprints right?"):
            reply.trust(reply.new)
    typer.confirm("\nSend this?", abort=True)
