"""``hushtable round submit``: a site's answer, checked, shown and written."""

import sys
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from hushtable import files
from hushtable.cli._options import Data, Json, Output, Person, Threads, option
from hushtable.cli._output import Target, finish, print_sentences, print_tally, tally
from hushtable.cli._persons import facts_of, kept, print_persons
from hushtable.cli._progress import cells_bar, watched
from hushtable.cli._rows import READS, Reads
from hushtable.cli.round import _common as common
from hushtable.cli.round.show import print_round
from hushtable.counts.sketch import Sketch
from hushtable.data.readers import Reader
from hushtable.errors import UsageError
from hushtable.federation import site, trusting
from hushtable.federation.approval import Approval
from hushtable.federation.book.book import Book
from hushtable.federation.book.registers import Period
from hushtable.federation.keys import Keys
from hushtable.federation.policy_file import load_policy, policy_beside
from hushtable.federation.site import Reply

_Approval = Annotated[Path | None, option("FILE", "The officer's, of hushtable round approve.")]
_Trust = Annotated[
    list[Path] | None,
    option("CARD", "Card got from its owner: somebody new, or new keys. May be repeated."),
]
_DataSet = Annotated[
    str,
    option(
        "NAME",
        "Name of the rows. Each name has a budget of its own: another only for other people.",
    ),
]
_NewPeople = Annotated[
    bool,
    typer.Option("--new-people", help="The rows are other people's, though they look alike."),
]
_OutsideToo = Annotated[
    bool, typer.Option("--outside-too", help="Go on although most rows lie outside a range.")
]
_Yes = Annotated[
    bool, typer.Option("--yes", help="Send without a question; trusts nobody for you.")
]


def submit(
    round_: common.RoundFile,
    data: Data,
    key: common.KeyFile,
    output: Output,
    book: common.BookFile = None,
    policy: common.PolicyFile = None,
    plan: common.HiddenPlan = None,
    approval: _Approval = None,
    trust: _Trust = None,
    person: Person = None,
    data_set: _DataSet = "all rows",
    new_people: _NewPeople = False,
    outside_too: _OutsideToo = False,
    threads: Threads = -1,
    reads: Reads = READS,
    yes: _Yes = False,
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
    if not yes and (as_json or not sys.stdin.isatty()):
        raise UsageError("nobody is here to ask: give --yes to send without a question")
    asked, keys = common.read_round(round_), Keys.load(key)
    with Book.open(common.book_beside(key, book), keys.card) as notes:
        if trust:
            trusting.trust(notes, asked, common.cards(trust), "card")
        allowed = load_policy(policy or policy_beside(key))
        shared = common.hidden_plan(plan)
        approved = None if approval is None else Approval.load(approval)
        reply = site.Reply(
            asked, keys, notes, policy=allowed, data_set=data_set, plan=shared, approval=approved
        )
        _check_people(reply, person, new_people)
        reader = reads.open_as(data, reply.plan.schema, keep=kept(person, reply.plan.schema))
        _confirm(reply, show=not as_json, ask=not yes)
        said = {"new_people": new_people, "outside_too": outside_too}
        answer = _answer(reply, reader, person, threads, as_json, **said)
        with target.writing():
            files.write_bytes(output, answer.content, private=not files.travels("submission"))
    finish(as_json, _facts(reply, answer, output), lambda: _print(reply, answer, target))


class _Answer(NamedTuple):
    """Rows counted, what is to be sent of them, how many were read; answers that name nobody."""

    counted: Sketch
    content: bytes
    n_read: int
    nameless: int


def _check_people(reply: Reply, person: str | None, new_people: bool) -> None:
    reply.check_persons(person is not None)
    if person is not None and new_people and reply.earlier is None:
        reply.book.check_others(reply.data_set)


def _answer(
    reply: Reply, reader: Reader, person: str | None, threads: int, quiet: bool, **allowed: bool
) -> _Answer:
    persons: Any = {}
    if person is not None:
        most = reply.round.terms.rows_per_person
        persons = {"person": person, "rows_per_person": most, "key": reply.book.persons_key}
        persons["known"] = reply.barred()
    digester = reply.book.digester(reply.plan.schema)
    with watched(digester.watch(reader), quiet=quiet) as watch:
        counted = Sketch.from_data(
            reply.plan, watch.reader, n_jobs=threads, allow_empty=True, **persons
        )
    seen = digester.digests() if watch.rows else None
    with cells_bar(len(counted.counts), quiet=quiet) as advance:
        content = reply.submission(counted, advance, rows=seen, **allowed)
    nameless = reply.book.nameless(reply.data_set, Period.of(reply.round))
    return _Answer(counted, content, watch.rows, nameless)


def _facts(reply: Reply, answer: _Answer, output: Path) -> dict[str, Any]:
    return {
        "command": "round submit",
        "submission": str(output),
        "round_id": reply.round.round_id,
        **common.period_facts(reply.round),
        "site": reply.keys.card.name,
        "data_set": reply.data_set,
        "again": reply.earlier is not None,
        "epsilon_so_far": reply.epsilon,
        "tally": tally(reply.plan.schema, answer.counted.tally),
        **facts_of(answer.counted.persons, answer.nameless),
    }


def _print(reply: Reply, answer: _Answer, target: Target) -> None:
    counted = answer.counted
    if reply.earlier is not None:
        period = reply.round.period
        what = "The round" if period is None else f"Period {period}"
        print(f"{what} was answered before: this is the same answer, noise and all.")
    print(f"Counted {counted.n_rows:,} rows.")
    print_persons(counted.persons, answer.nameless)
    n_rows = counted.n_rows if counted.persons else answer.n_read
    print_tally(reply.plan.schema, counted.tally, n_rows)
    print(f"Wrote {target}: send it to {reply.round.coordinator.name}. Keep the book.")


def _confirm(reply: Reply, *, show: bool, ask: bool) -> None:
    """Show the round; ask a person whether strangers are who they say, and whether to send."""
    if show:
        here = {f"{role} {card.name}": "not known here" for role, card in reply.strangers}
        for role, card in common.roles(reply.round):
            known = "this site" if card == reply.keys.card else "known"
            here.setdefault(f"{role} {card.name}", known)
        print_round(reply.round, reply.plan, here)
        print(f"\nWhat will leave {reply.keys.card.name}: these counts, and nothing else.")
        print_sentences([reply.cost_words])
    if ask and reply.new:
        names = ", ".join(card.name for card in reply.new)
        print(f"\nNot known here: {names}. Compare their fingerprints with them, on the phone.")
        if typer.confirm("Are all of these fingerprints right?"):
            reply.trust(reply.new)
    if ask:
        typer.confirm("\nSend this?", abort=True)
    reply.check_known()
