"""Notes of one party on a meeting, and whom it trusts once people have read the code."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hushtable import files
from hushtable.arguments import entries, is_digest
from hushtable.errors import FileError, PlanError, RoundError, UsageError
from hushtable_federation.book.book import Book
from hushtable_federation.clock import now, stamp
from hushtable_federation.codes import Hello, Seen
from hushtable_federation.keys import Card, check_private, read_json, write_json


@dataclass(frozen=True)
class State:
    """One party's notes on a meeting: its number, whom it expects, and the cards that it fixed."""

    card: Card
    nonce: str
    names: tuple[str, ...]
    coordinator: str
    seen: Seen | None = None
    code: str = ""
    confirmed: tuple[str, ...] = ()
    at: str = ""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the notes for their owner alone, in one piece."""
        fixed = None if self.seen is None else [hello.to_dict() for hello in self.seen.hellos]
        said = {key: getattr(self, key) for key in ("nonce", "coordinator", "code", "at")}
        lists = {"names": list(self.names), "confirmed": list(self.confirmed), "fixed": fixed}
        write_json(path, "meeting", {"card": self.card.to_dict(), **said, **lists})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "State":
        """Read the notes; raises `FileError`, or `PrivacyError` if others may read them."""
        check_private(path, "begin anew with --again in a new folder")
        said = read_json(path, "meeting", "meet")
        texts = dict.fromkeys(("nonce", "coordinator", "code", "at"), str)
        needed = {**texts, "names": list[str], "confirmed": list[str], "fixed": list | None}
        try:
            entries(said, "a meeting", {**needed, "card": dict}, error=RoundError)
            said["card"] = Card.from_dict(said["card"])
            fixed = said.pop("fixed")
            for key in ("names", "confirmed"):
                said[key] = tuple(said[key])
            if not is_digest(said["nonce"]):
                raise RoundError("no number")
            if fixed is not None:
                hellos = tuple(map(Hello.from_dict, fixed))
                said["seen"] = Seen(hellos, said["coordinator"])
        except (RoundError, PlanError):
            raise FileError(
                f"{path}: the notes of this meeting are damaged: restore the file from a backup, "
                "or remove it and have everybody begin anew with --again in a new folder"
            ) from None
        return cls(**said)


@dataclass(frozen=True)
class Visit:
    """How far a meeting is after a call.

    Attributes
    ----------
    state : State
        The party's notes.
    waiting : tuple of str
        Whose hello or, once the cards are fixed, reveal is not there yet.
    unread : dict of str to str
        Of these, whose file cannot be read, and why.
    others : tuple of str
        Who left a hello, and is not expected.
    """

    state: State
    waiting: tuple[str, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()

    @property
    def step(self) -> str:
        """The step that was taken last: "hello", "reveal", "code", or "confirmed" where all are."""
        state = self.state
        if state.seen is None:
            return "hello"
        if not state.code:
            return "reveal"
        return "confirmed" if len(state.confirmed) == len(state.names) - 1 else "code"

    @property
    def waits_for(self) -> str:
        """Say whom the meeting waits for; empty if for nobody."""
        if not self.waiting:
            return ""
        *most, last = self.waiting
        return f"Waiting for {', '.join(most)}{' and ' if most else ''}{last}."


def beside(key: Path) -> Path:
    """Return the file of notes that goes with a key file."""
    return key.with_suffix(".meeting")


def verified_beside(notes: Path) -> Path:
    """Return the file of verified cards that goes with the notes of a coordinator."""
    return notes.with_suffix(".verified")


def confirm(
    visited: Visit, path: Path, code: str, book: Book | None, absent: Sequence[str] = ()
) -> Visit:
    """Note that people read the same code in a call, and trust the cards of these.

    Parameters
    ----------
    visited : Visit
        What `hushtable_federation.meeting.visit` returned.
    path : path
        The notes, of `beside`. The coordinator gets a file of verified cards next to them.
    code : str
        What everybody read: nine digits, spaces apart.
    book : Book, optional
        A site's, in which the cards are noted, each in its role.
    absent : sequence of str
        Who did not read it. Their cards are not trusted yet: a card that somebody swapped for all
        others alike shows by its owner's code alone.

    Returns
    -------
    Visit
        With those who are confirmed.

    Raises
    ------
    RoundError
        If this is not the code here, or there is none yet.
    UsageError
        If somebody is absent who is not in the meeting, or nobody is left.
    """
    state = visited.state
    if state.seen is None or not state.code:
        raise RoundError(f"there is no code yet: {visited.waits_for} Call again")
    if "".join(code.split()) != state.code:
        raise RoundError(
            "the code that everybody read is not the one here: somebody has other cards. Trust "
            "nobody, compare the fingerprints on the phone, and begin anew with --again in a new "
            "folder"
        )
    others = {name: card for name, card in state.seen.cards.items() if card != state.card}
    strange = sorted({*absent} - {*others})
    if strange or not {*others} - {*absent}:
        who = f"{strange[0]!a:.80} is not in this meeting" if strange else "nobody is left"
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
            said = {"how": "code", "code": state.code, "at": state.at}
            cards = [others[name].to_dict() for name in done]
            write_json(verified_beside(path), "verified", {**said, "cards": cards})
        state.save(path)
    return replace(visited, state=state)


def read_verified(path: str | os.PathLike[str]) -> list[Card]:
    """Return the cards that `confirm` wrote for a coordinator; raises `FileError` on others."""
    check_private(path, "meet again")
    said = read_json(path, "verified", "meet")
    try:
        entries(said, "a file", {"how": str, "code": str, "at": str, "cards": list})
        return [Card.from_dict(card) for card in said["cards"]]
    except (PlanError, RoundError) as error:
        raise FileError(f"{path}: holds no verified cards: {error}") from None
