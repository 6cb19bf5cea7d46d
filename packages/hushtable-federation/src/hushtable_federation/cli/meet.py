"""``hushtable round meet``: all cards, compared in one call by a code that everyone reads aloud."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from hushtable.cli.options import argument, option
from hushtable.cli.output import shown
from hushtable.cli.result import (
    Block,
    CommandResult,
    Paragraph,
    TextTable,
    for_machines,
    show,
)
from hushtable.errors import UsageError
from hushtable_federation.book.book import Book
from hushtable_federation.cli import _common as common
from hushtable_federation.codes import shown_code
from hushtable_federation.folder.mailbox import Store
from hushtable_federation.keys import Keys
from hushtable_federation.meeting import MeetingVisit, beside, confirm, verified_beside, visit

_Folder = Annotated[
    str, argument("FOLDER", "A new folder that all parties share, for this meeting only.")
]
_Coordinator = Annotated[str | None, option("NAME", "Name of the party that opens the rounds.")]
_Expect = Annotated[
    str | None,
    option(
        "A,B,...", "The names of all parties, including you, or a text file with one name per line."
    ),
]
_Code = Annotated[
    str | None, option("CODE", "The code that everyone read aloud in the call: trust these cards.")
]
_Absent = Annotated[
    str | None,
    option("A,B,...", "Parties that did not read the code: their cards are not trusted yet."),
]
_Wait = Annotated[
    float,
    option("MINUTES", "Check the folder repeatedly until everyone is there.", min=0.0, max=1440.0),
]
_Again = Annotated[
    bool,
    typer.Option("--again", help="Begin again in a new folder; all others have to do the same."),
]

#: Seconds between two checks of the folder.
PAUSE = 2.0


def meet(
    folder: _Folder,
    key: common.KeyFile,
    coordinator: _Coordinator = None,
    expect: _Expect = None,
    book: common.BookFile = None,
    code: _Code = None,
    absent: _Absent = None,
    wait: _Wait = 0.0,
    again: _Again = False,
) -> CommandResult:
    """Compare all cards in one call, by a code that everyone reads aloud.

    Each call does the next step. The first one posts your card, with a commitment to a number. Once
    all cards are there, the next one fixes the cards and reveals the number. The one after that
    shows a code of nine digits, which everyone reads aloud on the phone. If someone has a different
    code, they have different cards: then trust none of them. Your book records who was verified; a
    coordinator gets a file of cards for round open.

    Example:
      hushtable round meet shared --key north.key --coordinator lead --expect lead,north,south
      hushtable round meet shared --key north.key --wait 10
    """
    if absent is not None and code is None and (for_machines() or not sys.stdin.isatty()):
        raise UsageError("--absent goes with --code: there is no terminal to ask at")
    keys, notes = Keys.load(key), beside(key)
    place = Store.open(folder, keys.card.name)
    name, kept = keys.card.name, common.book_beside(key, book)
    if kept.exists() or coordinator not in (None, name):
        Book.open(kept, keys.card).close()  # fail, if at all, before anything is posted
    names, end = _names(expect), time.monotonic() + 60.0 * wait
    visited = visit(place, keys, notes, names, coordinator, again=again)
    printed = ""
    while visited.waiting and time.monotonic() < end:
        if visited.waits_for != printed and not for_machines():
            print(printed := visited.waits_for, file=sys.stderr)
        time.sleep(PAUSE)
        visited = visit(place, keys, notes)
    if code is None and visited.step == "code" and not for_machines():
        show(*_code_blocks(visited))
    asks = code is None and visited.step == "code" and not for_machines() and sys.stdin.isatty()
    if asks and typer.confirm("\nDid everyone read the same code, each from their own screen?"):
        code = visited.state.code
    if code is not None:
        away = [] if absent is None else _split(absent)
        if kept.exists() or visited.state.coordinator != name:
            with Book.open(kept, keys.card) as noted:
                visited = confirm(visited, notes, code, noted, away)
        else:
            visited = confirm(visited, notes, code, None, away)
    return CommandResult(_facts(visited, notes), _blocks(visited, place, folder, key))


def _split(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _names(expect: str | None) -> list[str] | None:
    """Return the names that an option lists, or the lines of the file that it names."""
    if expect is None or not os.path.isfile(expect):
        return None if expect is None else _split(expect)
    try:
        lines = Path(expect).read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise UsageError(f"--expect {expect}: needs a text file with one name per line") from None
    return [line.strip() for line in lines if line.strip()]


def _facts(visited: MeetingVisit, notes: Path) -> dict[str, Any]:
    state = visited.state
    cards = {} if state.seen is None else state.seen.cards
    verified = verified_beside(notes)
    return {
        "command": "round meet",
        "name": state.card.name,
        "fingerprint": state.card.fingerprint,
        "coordinator": state.coordinator,
        "step": visited.step,
        "expected": list(state.names),
        "waiting": list(visited.waiting),
        "unread": dict(visited.unread),
        "not_expected": list(visited.others),
        "cards": {name: card.fingerprint for name, card in cards.items()},
        "code": state.code or None,
        "confirmed": list(state.confirmed),
        "verified": str(verified) if state.confirmed and _leads(visited) else None,
    }


def _leads(visited: MeetingVisit) -> bool:
    return visited.state.coordinator == visited.state.card.name


def _code_blocks(visited: MeetingVisit) -> Iterator[Block]:
    """Show the cards and the code, and explain what to do with them."""
    state = visited.state
    cards = {} if state.seen is None else state.seen.cards
    rows = [
        ["coordinator" if name == state.coordinator else "site", name, card.fingerprint]
        for name, card in cards.items()
    ]
    yield TextTable(["role", "name", "fingerprint"], rows, left=3)
    yield f"\nThe code: {shown_code(state.code)}\n"
    yield Paragraph([
        "Make a call whose number you did not get from this folder. In it, everyone reads the "
        "whole code aloud from their own screen. If anyone has a different code, someone swapped "
        "a card: then trust none of these cards."
    ])  # fmt: skip


def _blocks(visited: MeetingVisit, place: Store, folder: str, key: Path) -> Iterator[Block]:
    state, away = visited.state, visited.waiting
    if visited.others:
        names = ", ".join(shown(name) for name in visited.others[:5])
        yield Paragraph([f"Left out because you did not expect them: {names}."])
    if visited.step == "hello":
        yield f"Your card is in {folder}: {len(state.names) - len(away)} of {len(state.names)}."
    elif visited.step == "reveal":
        yield f"The cards of all {len(state.names)} are fixed, and your number is revealed."
    elif not state.confirmed:
        yield "\nNo card is trusted yet. After the call, if everyone read the same code:"
        yield f"  hushtable round meet {quote(folder)} --key {quote(str(key))} --code CODE"
    if place.aside:
        yield Paragraph([f"{shown(place.aside)}."])
    for why in visited.unread.values():
        yield Paragraph([f"Not readable yet: {shown(why)}"])
    if visited.waiting:
        yield f"{visited.waits_for} Run this command again later."
    if state.confirmed:
        yield f"Verified by the code {shown_code(state.code)}: {', '.join(state.confirmed)}."
        missing = [n for n in state.names if n not in (*state.confirmed, state.card.name)]
        if missing:
            yield f"Not verified yet: {', '.join(missing)}. Have them read the code to you."
        elif _leads(visited):
            cards = verified_beside(beside(key))
            typed = f"{quote(str(cards))} --key {quote(str(key))}"
            yield f"  hushtable round open PLAN {typed} --epsilon E -o round.hush"
