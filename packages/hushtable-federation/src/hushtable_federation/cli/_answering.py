"""Options of commands that answer for a site, and what they show and ask before that."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.cli.errors import check_interrupt
from hushtable.cli.options import argument, option
from hushtable.cli.output import shown, tally, tally_blocks
from hushtable.cli.progress import watched
from hushtable.cli.result import Paragraph, show
from hushtable.cli.rows import person_facts, persons_blocks
from hushtable.data.readers import Reader
from hushtable.errors import UsageError
from hushtable_federation.cli import _common as common
from hushtable_federation.cli.show import round_blocks
from hushtable_federation.online.site import Statement
from hushtable_federation.reply import Reply
from hushtable_federation.settings import site_files
from hushtable_federation.site import Attendant, Site, SiteRows
from hushtable_federation.standing import parties

Rows = Annotated[
    str | None,
    argument("[DATA]", "The rows, if they are not those that the site's file names."),
]
_SiteFile = Annotated[
    Path | None,
    option(
        "FILE",
        "This site's file, written by hushtable round keygen: keys, rows, how to read them. By "
        "default, the only one in this folder.",
        "--site",
    ),
]
_Key = Annotated[
    Path | None,
    option("FILE", "Your keys, if you have no such file: for a coordinator.", "--key"),
]
_Approval = Annotated[
    Path | None, option("FILE", "The officer's approval, written by hushtable round approve.")
]
_Trust = Annotated[
    list[Path] | None,
    option("CARD", "Card that its owner gave you: a new party, or new keys. May be repeated."),
]
_NewPeople = Annotated[
    bool,
    typer.Option(
        "--new-people", help="The rows are about different people, although they look alike."
    ),
]
_OutsideToo = Annotated[
    bool, typer.Option("--outside-too", help="Continue although most rows lie outside a range.")
]
_Yes = Annotated[
    bool, typer.Option("--yes", help="Send without asking; this does not trust anyone for you.")
]


@dataclass(frozen=True)
class Answers:
    """Options of the commands that answer for a site."""

    site: _SiteFile = None
    key: _Key = None
    approval: _Approval = None
    trust: _Trust = None
    new_people: _NewPeople = False
    outside_too: _OutsideToo = False
    yes: _Yes = False

    def check_asked(self, quiet: bool) -> None:
        """Raise `UsageError` if there is a question, but no one to ask."""
        if not self.yes and (quiet or not sys.stdin.isatty()):
            raise UsageError(
                "there is no terminal to ask at: give --yes to send without a question"
            )

    def open(self, data: str | None, results: Path | None = None) -> Site:
        """Open the site that the command names, with the settings that its options change."""
        if self.site is not None and self.key is not None:
            raise UsageError("--site and --key exclude each other: the file names the keys")
        changes: dict[str, Any] = {"rows": data, "results": results}
        changes["approvals"] = None if self.approval is None else escape(str(self.approval))
        given = {name: value for name, value in changes.items() if value is not None}
        return Site.open(self.site or self.key or _only_file(), **given)


#: No option given.
ANSWERS = Answers()


def _only_file() -> Path:
    found = site_files(Path())
    if len(found) != 1:
        what = (
            "there is no site's file in this folder"
            if not found
            else f"there are {len(found)} sites' files in this folder"
        )
        raise UsageError(f"{what}: name yours (--site NORTH.toml), or a coordinator's keys (--key)")
    return found[0]


class Screen(Attendant):
    """The person at this terminal, or no one if the command runs unattended."""

    def __init__(self, answers: Answers, *, quiet: bool, unattended: bool = False) -> None:
        self._answers, self._quiet = answers, quiet
        self.attended = not unattended
        self.cards = common.cards(answers.trust or [])
        self.statement = Statement(answers.new_people, answers.outside_too)
        #: For machines, by the id of the round: what this call counted for it.
        self.counted: dict[str, dict[str, Any]] = {}

    def confirm(self, reply: Reply) -> None:
        """Show the round; ask whether unknown cards are genuine, and whether to send."""
        if not self.attended:
            return
        if not self._quiet:
            here = {f"{role} {card.name}": "not known here" for role, card in reply.strangers}
            for role, card in parties(reply.round):
                known = "this site" if card == reply.keys.card else "known"
                here.setdefault(f"{role} {card.name}", known)
            show(*round_blocks(reply.round, here, reply.beside_cost))
            print(f"\n{reply.keys.card.name} will send these counts, and nothing else.")
            show(Paragraph([reply.cost_words]))
        ask = not self._answers.yes
        self._answers.check_asked(self._quiet)
        if ask and reply.new:
            names = ", ".join(card.name for card in reply.new)
            print(
                f"\nNot known here: {names}. In a call of all parties, everyone reads aloud this "
                f"fingerprint of all cards:\n  {reply.round.fingerprint}"
            )
            if typer.confirm("Have all read the same?"):
                reply.trust(reply.new)
        if ask:
            typer.confirm("\nSend this?", abort=True)
        reply.check_known()

    @contextmanager
    def reading(self, reader: Reader) -> Iterator[Reader]:
        """Show how many rows are read; the last moment to stop before the site pays and sends."""
        with watched(reader, quiet=self._quiet or not self.attended) as watch:
            yield watch.reader
        check_interrupt()

    def report(self, reply: Reply, rows: SiteRows) -> None:
        """Print the numbers of rows and people counted, and values outside; this stays here."""
        sketch = rows.sketch
        if sketch is None:
            return
        self.counted[reply.round.round_id] = {
            "data_set": reply.data_set,
            "epsilon_so_far": reply.epsilon,
            "tally": tally(reply.plan.schema, sketch.tally),
            **person_facts(sketch.persons, rows.nameless(reply.round)),
        }
        if self._quiet:
            return
        n_rows = sketch.n_rows if sketch.persons else rows.n_read
        show(
            f"Counted {sketch.n_rows:,} rows.",
            Paragraph([f"Not read: {shown(words)}" for words in sketch.unread]),
            *persons_blocks(sketch.persons, rows.nameless(reply.round)),
            *tally_blocks(reply.plan.schema, sketch.tally, n_rows),
        )
