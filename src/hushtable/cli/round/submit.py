"""``hushtable round submit``: a site's answer, checked, shown and written."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.cli._options import Columns, Data, Drop, Json, Output, Threads
from hushtable.cli._output import Target, finish, print_sentences, print_table, print_tally, tally
from hushtable.cli._progress import cells_bar, watched
from hushtable.cli._rows import open_rows
from hushtable.cli.round._common import (
    BookFile,
    KeyFile,
    RoundFile,
    book_beside,
    cards,
    read_round,
)
from hushtable.errors import RoundError, UsageError

__all__ = ["submit"]


def submit(
    round_: RoundFile,
    data: Data,
    key: KeyFile,
    output: Output,
    book: BookFile = None,
    plan: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The sites' plan, where the round hides it."),
    ] = None,
    trust: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="CARD", help="Card got from its owner, for keys that changed. May be repeated."
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
            help="Say that the rows are of other people than those of all other names, though they "
            "look like theirs; the book notes it.",
        ),
    ] = False,
    threads: Threads = -1,
    columns: Columns = None,
    drop: Drop = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Answer a round: count the rows, add noise, mask, sign, and write the one file to send.

    Shows first what will leave and what it costs, and asks. What is sent is noted in the site's
    book before: called again, it writes the same answer.

    \b
    Example:
      hushtable round submit round.hush patients.csv --key north.key -o north.submission.hush
    """  # noqa: D301 (\b keeps the lines of the example apart)
    target = Target(output, [round_, data, key])
    interactive = sys.stdin.isatty() and not as_json
    if not yes and not interactive:
        raise UsageError("nobody is here to ask: give --yes to send without a question")

    from hushtable import files
    from hushtable.federation.book import Book
    from hushtable.federation.keys import Keys
    from hushtable.federation.site import Reply
    from hushtable.plan import Plan
    from hushtable.sketch import Sketch

    asked = read_round(round_)
    keys = Keys.load(key)
    shared = None if plan is None else files.read(plan).build(Plan.from_file)
    with Book.open(book_beside(key, book), keys.card) as notes:
        if trust:
            given = cards(trust)
            notes.trust([one for one in given if one == asked.coordinator], "coordinator")
            others = [one for one in given if one != asked.coordinator or one in asked.sites]
            notes.trust(others)
        reply = Reply(asked, keys, notes, data_set=data_set, plan=shared, new_people=new_people)
        reader = reply.watch(open_rows(data, columns, drop, reply.plan.schema))
        if not as_json:
            _show(reply)
        if not yes:
            typer.confirm("\nSend this?", abort=True)
        with watched(reader, quiet=as_json) as watch:
            counted = Sketch.from_data(reply.plan, watch.reader, n_jobs=threads)
        with cells_bar(len(counted.counts), quiet=as_json) as advance:
            content = reply.submission(counted, advance)
        with target.writing():
            files.write_bytes(output, content)
        answer = notes.answer(asked.round_id)
    if answer is None:
        raise RoundError("the book does not hold the answer: do not send the file")
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


def _show(reply: Any) -> None:
    from hushtable.federation.round import shown_time

    asked = reply.round
    title = f" ({asked.title})" if asked.title else ""
    print(f"Round {asked.round_id[:12]}{title} of {asked.coordinator.name},")
    print(f"until {shown_time(asked.deadline)}. What will leave {reply.keys.card.name}:\n")
    print_sentences(reply.words(), indent="  ")
    if reply.new:
        print("\nNot met before: compare their fingerprints with them, on the phone.\n")
        print_table(["name", "fingerprint"], [[c.name, c.fingerprint] for c in reply.new], left=2)
