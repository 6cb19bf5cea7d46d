"""``hushtable round submit``: a site's answer, checked, shown and written."""

from pathlib import Path
from typing import Any

from hushtable import files
from hushtable.cli.options import Data, Json, Output
from hushtable.cli.output import Target, finish, tally
from hushtable.cli.progress import cells_bar
from hushtable.cli.rows import READS, Reads
from hushtable.cli.rows import person_facts as facts_of
from hushtable.counts.sketch import Sketch
from hushtable_federation import site, trusting
from hushtable_federation.book.book import Book
from hushtable_federation.cli import _common as common
from hushtable_federation.cli._answering import ANSWERS, Answers, Counting, confirm
from hushtable_federation.keys import Keys
from hushtable_federation.site import Reply


def submit(
    round_: common.RoundFile,
    data: Data,
    key: common.KeyFile,
    output: Output,
    answers: Answers = ANSWERS,
    reads: Reads = READS,
    as_json: Json = False,
) -> None:
    """Answer a round: count rows, add noise, mask, sign, write a file.

    Shows first what is counted, what will leave and what it costs, and asks. Checks the rows
    against the round before anything is recorded. The site's book keeps what is sent: called
    again, the command writes the same answer, whatever the rows are by now.

    Example:
      hushtable round submit round.hush patients.csv --key north.key -o north.submission.hush
    """
    target = Target(output, [round_, data, key])
    answers.check_asked(as_json)
    asked, keys = common.read_round(round_), Keys.load(key)
    with Book.open(common.book_beside(key, answers.book), keys.card) as notes:
        if answers.trust:
            trusting.trust(notes, asked, common.cards(answers.trust), "card")
        reply = site.Reply(
            asked, keys, notes, approval=answers.approved, **answers.about(key, attended=True)
        )
        counting = Counting(data, reads, answers.person, answers.threads, as_json)
        counting.check(reply, answers.new_people)
        reader = counting.open(reply.plan)
        confirm(reply, show=not as_json, ask=not answers.yes)
        counted = counting.count(reply, reader)
        with cells_bar(len(counted.counts), quiet=as_json) as advance:
            said = answers.said._asdict()
            content = reply.submission(counted, advance, rows=counting.seen(), **said)
        nameless = counting.nameless(reply)
        with target.writing():
            files.write_bytes(output, content, private=not files.travels("submission"))
    facts = _facts(reply, counted, nameless, output)
    finish(as_json, facts, lambda: _print(reply, counting, nameless, target))


def _facts(reply: Reply, counted: Sketch, nameless: int, output: Path) -> dict[str, Any]:
    return {
        "command": "round submit",
        "submission": str(output),
        "round_id": reply.round.round_id,
        **common.period_facts(reply.round),
        "site": reply.keys.card.name,
        "data_set": reply.data_set,
        "again": reply.earlier is not None,
        "epsilon_so_far": reply.epsilon,
        "tally": tally(reply.plan.schema, counted.tally),
        **facts_of(counted.persons, nameless),
    }


def _print(reply: Reply, counting: Counting, nameless: int, target: Target) -> None:
    if reply.earlier is not None:
        period = reply.round.period
        what = "The round" if period is None else f"Period {period}"
        print(f"{what} was answered before: this is the same answer, noise and all.")
    counting.report(reply, nameless)
    print(f"Wrote {target}: send it to {reply.round.coordinator.name}. Keep the book.")
