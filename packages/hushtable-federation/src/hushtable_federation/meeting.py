"""Meetings: all cards compared in one call, by a code that everyone reads; and a party's notes."""

import hashlib
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from hushtable import files
from hushtable.arguments import entries, is_digest, translate_errors
from hushtable.errors import FileError, PlanError, RoundError, UsageError
from hushtable_federation.book.book import Book
from hushtable_federation.clock import now, stamp
from hushtable_federation.codes import MOST, Hello, Reveal, Seen, read_hellos
from hushtable_federation.folder.mailbox import name_of, parsed
from hushtable_federation.keys import Card, Keys, check_name, check_private, read_json, write_json
from hushtable_federation.round import check_unlike


@dataclass(frozen=True)
class State:
    """One party's notes on a meeting: its number, the expected parties, and the fixed cards."""

    card: Card
    nonce: str
    names: tuple[str, ...]
    coordinator: str
    seen: Seen | None = None
    code: str = ""
    confirmed: tuple[str, ...] = ()
    at: str = ""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the notes atomically, readable only by their owner."""
        fixed = None if self.seen is None else [hello.to_dict() for hello in self.seen.hellos]
        record = {key: getattr(self, key) for key in ("nonce", "coordinator", "code", "at")}
        lists = {"names": list(self.names), "confirmed": list(self.confirmed), "fixed": fixed}
        write_json(path, "meeting", {"card": self.card.to_dict(), **record, **lists})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "State":
        """Read the notes; raise `FileError`, or `PrivacyError` if others may read them."""
        check_private(path, "begin again with --again in a new folder")
        record = read_json(path, "meeting", "meet")
        texts = dict.fromkeys(("nonce", "coordinator", "code", "at"), str)
        needed = {**texts, "names": list[str], "confirmed": list[str], "fixed": list | None}
        try:
            entries(record, "a meeting", {**needed, "card": dict}, error=RoundError)
            record["card"] = Card.from_dict(record["card"])
            fixed = record.pop("fixed")
            for key in ("names", "confirmed"):
                record[key] = tuple(record[key])
            if not is_digest(record["nonce"]):
                raise RoundError("no number")
            if fixed is not None:
                hellos = tuple(map(Hello.from_dict, fixed))
                record["seen"] = Seen(hellos, record["coordinator"])
        except (RoundError, PlanError):
            raise FileError(
                f"{path}: the notes of this meeting are damaged: restore the file from a backup, "
                "or remove it and have everyone begin again with --again in a new folder"
            ) from None
        return cls(**record)


@dataclass(frozen=True)
class MeetingVisit:
    """The state of a meeting after a call.

    Attributes
    ----------
    state : State
        The party's notes.
    waiting : tuple of str
        Parties whose hello or, after the cards are fixed, reveal is missing.
    unread : dict of str to str
        Those among them with an unreadable file, and why.
    others : tuple of str
        Parties that left a hello although they are not expected.
    """

    state: State
    waiting: tuple[str, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()

    @property
    def step(self) -> str:
        """Return the last step: "hello", "reveal", "code", or "confirmed" if all cards are."""
        state = self.state
        if state.seen is None:
            return "hello"
        if not state.code:
            return "reveal"
        return "confirmed" if len(state.confirmed) == len(state.names) - 1 else "code"

    @property
    def waits_for(self) -> str:
        """Return a sentence about whom the meeting waits for; empty if for no one."""
        if not self.waiting:
            return ""
        *most, last = self.waiting
        return f"Waiting for {', '.join(most)}{' and ' if most else ''}{last}."


def beside(key: Path) -> Path:
    """Return the file of notes that belongs to a key file."""
    return key.with_suffix(".meeting")


def verified_beside(notes: Path) -> Path:
    """Return the file of verified cards that belongs to a coordinator's notes."""
    return notes.with_suffix(".verified")


def confirm(
    visited: MeetingVisit, path: Path, code: str, book: Book | None, absent: Sequence[str] = ()
) -> MeetingVisit:
    """Record that people read the same code in a call, and trust their cards.

    A site's ``book`` records the cards, each in its role; the coordinator gets a file of verified
    cards next to the notes. The cards of ``absent`` parties are not trusted yet: if someone swapped
    such a card for all others alike, only its owner's code would reveal it.

    Raise `RoundError` if the code differs from the one here, or there is none yet, and `UsageError`
    if an absent party is not in the meeting, or no party is left.
    """
    state = visited.state
    if state.seen is None or not state.code:
        raise RoundError(f"there is no code yet: {visited.waits_for} Run the command again")
    if "".join(code.split()) != state.code:
        raise RoundError(
            "the code that everyone read is not the one here, so someone has different cards. "
            "Trust none of them, compare the fingerprints on the phone, and begin again with "
            "--again in a new folder"
        )
    others = {name: card for name, card in state.seen.cards.items() if card != state.card}
    strange = sorted({*absent} - {*others})
    if strange or not {*others} - {*absent}:
        who = f"{strange[0]!a:.80} is not in this meeting" if strange else "no one is left"
        raise UsageError(f"--absent: {who}: name those who did not read the code")
    done = tuple(sorted({*others} - {*absent} | {*state.confirmed}))
    state = replace(state, confirmed=done, at=stamp(now()))
    if book is not None:
        lead = {state.coordinator}
        with book.writing():
            book.trust([others[name] for name in done if name not in lead], "site", how="code")
            book.trust([others[name] for name in done if name in lead], "coordinator", how="code")
    with files.locked(path):
        if state.coordinator == state.card.name:
            record = {"how": "code", "code": state.code, "at": state.at}
            cards = [others[name].to_dict() for name in done]
            write_json(verified_beside(path), "verified", {**record, "cards": cards})
        state.save(path)
    return replace(visited, state=state)


def read_verified(path: str | os.PathLike[str]) -> list[Card]:
    """Return the cards that `confirm` wrote for a coordinator; else raise `FileError`."""
    check_private(path, "meet again")
    record = read_json(path, "verified", "meet")
    with translate_errors(
        FileError,
        f"{path}: this is not a file of verified cards: give one that hushtable round meet wrote",
    ):
        entries(record, "a file", {"how": str, "code": str, "at": str, "cards": list})
        return [Card.from_dict(card) for card in record["cards"]]


class MeetingFolder(Protocol):
    """A place where the parties leave their files."""

    where: str

    def names(self) -> list[str]:
        """Return the names of its files."""

    def read(self, name: str, most: int) -> bytes | None:
        """Return the content of a file of at most that many bytes, if it can be read."""

    def add(self, name: str, content: bytes) -> bool:
        """Write a file; return False if it already exists with this content."""


#: Replaces a round's id in file names: a folder holds one meeting.
MEETING = hashlib.sha256(b"hushtable meeting").hexdigest()


def _add(folder: MeetingFolder, step: str, sender: str, content: bytes) -> None:
    folder.add(name_of(MEETING, step, sender, content), content)


def visit(
    folder: MeetingFolder,
    keys: Keys,
    path: Path,
    names: Sequence[str] | None = None,
    coordinator: str | None = None,
    *,
    again: bool = False,
) -> MeetingVisit:
    """Do the next step of a meeting: post a hello, fix the cards and reveal, compute the code.

    The notes are at ``path``, which `beside` returns. ``names`` are those of all expected parties,
    including this party and the coordinator; without names, those of the earlier call. ``again``
    forgets an earlier meeting, unless it is the one in this folder.

    Raise `FileError`, `PrivacyError`, `RoundError` or `UsageError` if the notes cannot be read,
    others expect different parties, or someone swapped something.
    """
    with files.locked(path):
        posted = _posted(folder, "hello")
        own = _contents(folder, posted.get(keys.card.name, ()))
        before = _before(keys, path, own if again else None)
        state = _state(before, keys, names, coordinator)
        if state != before:
            state.save(path)
        mine = Hello.make(keys, state.nonce)
        _check_mine(own, mine)
        _add(folder, "hello", keys.card.name, mine.to_bytes())
        others = tuple(sorted({*posted} - {*state.names}))
        found, unread = _found(folder, posted, state, mine)
        waiting = tuple(name for name in state.names if name not in found)
        if state.seen is None and waiting:
            return MeetingVisit(state, waiting, unread, others)
        seen = state.seen or Seen(tuple(found.values()), state.coordinator)
        if state.seen is None:
            state = replace(state, seen=seen)
            state.save(
                path
            )  # before the number is revealed, which from now on belongs only to these cards
        reveal = seen.reveal(keys, state.nonce)
        _add(folder, "reveal", keys.card.name, reveal.to_bytes())
        if state.code:
            return MeetingVisit(state, others=others)
        reveals, unread = _reveals(folder, seen, reveal)
        waiting = tuple(name for name in state.names if name not in reveals)
        if not waiting:
            state = replace(state, code=seen.code(reveals))
            state.save(path)
        return MeetingVisit(state, waiting, unread, others)


def _before(keys: Keys, path: Path, own: Mapping[str, bytes] | None) -> State | None:
    """Return the current notes; None if they are to be forgotten."""
    # ``own`` are this party's hellos in the folder, if it begins again: if they fit the notes, it
    # has already begun again.
    before = State.load(path) if path.exists() else None
    if before is None or (own is not None and not _goes_with(before, keys, own)):
        return None
    if before.card != keys.card:
        raise RoundError(
            f"{path} belongs to a meeting of {before.card.name!r} with different keys: begin again "
            "with --again in a new folder"
        )
    return before


def _goes_with(state: State, keys: Keys, own: Mapping[str, bytes]) -> bool:
    try:
        there = read_hellos(own, keys.card.name)
    except (FileError, RoundError):
        return False
    return state.card == keys.card and there == Hello.make(keys, state.nonce)


def _state(
    before: State | None, keys: Keys, names: Sequence[str] | None, coordinator: str | None
) -> State:
    """Return the notes with the parties expected from now on, or new notes."""
    if before is None:
        if names is None or coordinator is None:
            raise UsageError(
                "the expected parties and the coordinator are unknown: give --expect with all "
                "names, including your own, and --coordinator; later calls remember both"
            )
        before = State(keys.card, secrets.token_hex(32), (), "")
    wanted = before.names if names is None else _expected(keys.card.name, names)
    lead = before.coordinator if coordinator is None else coordinator
    if lead not in wanted:
        raise UsageError(
            f"--coordinator {lead!a:.80}: this name is not among the expected ones: give one of "
            "them"
        )
    state = replace(before, names=wanted, coordinator=lead)
    if state != before and before.seen is not None:
        raise UsageError(
            f"the cards of {', '.join(before.names)} are fixed, with {before.coordinator!r} as "
            "coordinator: leave out --expect and --coordinator, or begin again with --again in a "
            "new folder"
        )
    return state


def _expected(mine: str, names: Sequence[str]) -> tuple[str, ...]:
    expected = tuple(sorted({check_name(name) for name in names}))
    check_unlike(expected)
    if mine not in expected:
        raise UsageError(
            f"--expect names {', '.join(expected)}, but not {mine!r}, the owner of these keys: add "
            "it"
        )
    if len(expected) < 2:
        raise UsageError("--expect names only you: a meeting needs two or more parties")
    return expected


def _check_mine(contents: Mapping[str, bytes], mine: Hello) -> None:
    """Raise `RoundError` if there is a different hello under this party's name."""
    try:
        there = read_hellos(contents, mine.card.name)
    except FileError:  # none, or an incomplete one: it is written again
        return
    if there.card != mine.card:
        raise RoundError(
            f"the folder holds a card of {mine.card.name!r} that is not yours, "
            f"{there.card.fingerprint} (yours is {mine.card.fingerprint}): someone has the same "
            "name, or impersonates you. Find out who, on the phone, and begin again with --again "
            "in a new folder"
        )
    if there != mine:
        raise RoundError(
            "the folder holds a hello of yours from another meeting: begin again with --again in a "
            "new folder"
        )


# --- what the others posted -----------------------------------------------------------------


def _posted(folder: MeetingFolder, step: str) -> dict[str, list[str]]:
    """Return the files of a step, by their party."""
    found: dict[str, list[str]] = {}
    for file in folder.names():
        claims = parsed(file)
        if claims is not None and (claims.round_id16, claims.step) == (MEETING[:16], step):
            found.setdefault(claims.sender, []).append(file)
    return found


def _contents(folder: MeetingFolder, paths: Sequence[str]) -> dict[str, bytes]:
    return {path: content for path in paths if (content := folder.read(path, MOST)) is not None}


def _found(
    folder: MeetingFolder, posted: Mapping[str, Sequence[str]], state: State, mine: Hello
) -> tuple[dict[str, Hello], dict[str, str]]:
    """Return the hellos of the expected parties, and why some cannot be read.

    Raise `RoundError` if one differs from what this party has fixed.
    """
    found, unread = dict[str, Hello](), dict[str, str]()
    fixed = {} if state.seen is None else state.seen.saw
    for name in state.names:
        if name == mine.card.name:
            found[name] = mine
        elif name in posted:
            try:
                found[name] = read_hellos(_contents(folder, posted[name]), name)
            except FileError as error:
                unread[name] = str(error)
                continue
        if name in found and fixed.get(name, found[name].digest) != found[name].digest:
            raise RoundError(
                f"the hello of {name!r} has changed since the cards were fixed here: someone "
                f"replaced it. Trust no card yet, ask {name!r} on the phone, and begin again with "
                "--again in a new folder"
            )
    return found, unread


def _reveals(
    folder: MeetingFolder, seen: Seen, mine: Reveal
) -> tuple[dict[str, Reveal], dict[str, str]]:
    """Return the checked reveals of all parties, and why some cannot be read."""
    found, unread = {mine.name: mine}, dict[str, str]()
    posted = _posted(folder, "reveal")
    for name in seen.saw:
        contents = _contents(folder, posted.get(name, ()))
        if name in posted and not contents:
            unread[name] = f"the reveal of {name!r} is incomplete"
        for path, content in contents.items():
            try:
                reveal = Reveal.from_bytes(content, path)
            except (FileError, RoundError) as error:  # it may still be arriving
                unread[name] = str(error)
                continue
            if reveal.name != name:
                raise RoundError(
                    f"{path}: holds the reveal of {reveal.name!r} under another name: someone "
                    "moved it; have it removed, and run the command again"
                )
            if not seen.signed(reveal):  # anyone can write to the folder
                unread[name] = f"{path}: this file is not signed by {name!r}: have it removed"
                continue
            seen.check(reveal)
            found.setdefault(name, reveal)
    return found, {name: why for name, why in unread.items() if name not in found}
