"""A site before it answers: options, what its people are shown, and how rows are counted."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.cli.errors import check_interrupt as check
from hushtable.cli.options import Person, Threads, option
from hushtable.cli.output import print_sentences, print_tally, shown
from hushtable.cli.progress import watched
from hushtable.cli.rows import Reads, print_persons
from hushtable.cli.rows import person_columns as kept
from hushtable.counts.sketch import Sketch
from hushtable.data.readers import Reader
from hushtable.errors import UsageError
from hushtable.plans.plan import Plan
from hushtable_federation.approval import Approval
from hushtable_federation.book.digests import RowDigests
from hushtable_federation.book.registers import Period
from hushtable_federation.cli import _common as common
from hushtable_federation.cli.show import print_round
from hushtable_federation.online.state import Said
from hushtable_federation.policy_file import load_policy, policy_beside
from hushtable_federation.site import Reply

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


@dataclass(frozen=True)
class Answers:
    """Options of the commands by which a site answers."""

    book: common.BookFile = None
    policy: common.PolicyFile = None
    plan: common.HiddenPlan = None
    approval: _Approval = None
    trust: _Trust = None
    person: Person = None
    data_set: _DataSet = "all rows"
    new_people: _NewPeople = False
    outside_too: _OutsideToo = False
    threads: Threads = -1
    yes: _Yes = False

    def check_asked(self, quiet: bool) -> None:
        """Raise `UsageError` if there is a question, and nobody to ask."""
        if not self.yes and (quiet or not sys.stdin.isatty()):
            raise UsageError("nobody is here to ask: give --yes to send without a question")

    @property
    def approved(self) -> Approval | None:
        """The officer's approval, if one is given."""
        return None if self.approval is None else Approval.load(self.approval)

    @property
    def said(self) -> Said:
        """Of the rows."""
        return Said(self.new_people, self.outside_too)

    def about(self, key: Path, *, attended: bool) -> dict[str, Any]:
        """Return arguments of `Reply` and `OnlineSite`, for the site with these keys."""
        return {
            "policy": load_policy(self.policy or policy_beside(key)),
            "data_set": self.data_set,
            "plan": common.hidden_plan(self.plan),
            "attended": attended,
        }


#: No option given.
ANSWERS = Answers()


@dataclass
class Counting:
    """Counts a site's rows for what a reply answers; ``data`` as the command line names them."""

    data: str
    reads: Reads
    person: str | None
    threads: int
    quiet: bool
    attended: bool = True
    counted: Sketch | None = field(default=None, init=False)
    n_read: int = field(default=0, init=False)
    _seen: Callable[[], RowDigests] | None = field(default=None, init=False)

    def check(self, reply: Reply, new_people: bool) -> None:
        """Refuse what can be refused before anybody is asked."""
        reply.check_persons(self.person is not None)
        if self.person is not None and new_people and reply.earlier is None:
            reply.book.check_others(reply.data_set)

    def open(self, plan: Plan) -> Reader:
        """Open the rows; refuse them before anybody is asked."""
        keep = kept(self.person, plan.schema)
        return self.reads.open_as(self.data, plan.schema, keep=keep, attended=self.attended)

    def count(self, reply: Reply, reader: Reader) -> Sketch:
        """Return the sketch of rows that were opened."""
        persons: Any = {}
        if self.person is not None:
            most = reply.round.terms.rows_per_person
            persons = {"person": self.person, "rows_per_person": most}
            persons |= {"key": reply.book.persons_key, "known": reply.barred()}
        digester = reply.book.digester(reply.plan.schema)
        with watched(digester.watch(reader), quiet=self.quiet) as watch:
            self.counted = Sketch.from_data(
                reply.plan,
                watch.reader,
                n_jobs=self.threads,
                allow_empty=True,
                attended=self.attended,
                **persons,
            )
        self.n_read, self._seen = watch.rows, digester.digests
        check()  # what follows is paid for, and leaves
        return self.counted

    def seen(self) -> RowDigests | None:
        """Return by what the rows that were counted are known again; None of none."""
        return self._seen() if self.n_read and self._seen is not None else None

    def report(self, reply: Reply, nameless: int) -> None:
        """Print how many rows were counted, of whom, and which values lie outside: here alone."""
        if self.counted is None:
            return
        print(f"Counted {self.counted.n_rows:,} rows.")
        print_sentences([f"Not read: {shown(words)}" for words in self.counted.unread])
        print_persons(self.counted.persons, nameless)
        n_rows = self.counted.n_rows if self.counted.persons else self.n_read
        print_tally(reply.plan.schema, self.counted.tally, n_rows)

    def nameless(self, reply: Reply) -> int:
        """Return how many earlier answers name no persons."""
        return reply.book.nameless(reply.data_set, Period.of(reply.round))


def confirm(reply: Reply, *, show: bool, ask: bool) -> None:
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
