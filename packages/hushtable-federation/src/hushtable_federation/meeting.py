"""A meeting, as one party goes through it: a hello, a reveal, a code that people read in a call.

The parties leave two small files each in a folder; see `hushtable_federation.codes` for what is in
them, and for why the code can be short. What this party drew and saw lies in a private file beside
its keys, and is written there before anything that follows from it is posted: killed at any moment,
the same call goes on, and a number is never revealed for two sets of cards.
"""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from hushtable import files
from hushtable.errors import FileError, RoundError, UsageError
from hushtable_federation.codes import MOST, Hello, Reveal, Seen, read_hellos
from hushtable_federation.folder.store import name_of, parsed
from hushtable_federation.keys import Keys, check_name
from hushtable_federation.meeting_notes import State, Visit
from hushtable_federation.roster import check_unlike


class Folder(Protocol):
    """Where the parties leave their files."""

    where: str

    def names(self) -> list[str]:
        """Return the names of its files."""

    def read(self, name: str, most: int) -> bytes | None:
        """Return a file of so many bytes at most, if it can be read."""

    def add(self, name: str, content: bytes) -> bool:
        """Write a file; return False if it is there with this content."""


#: In the place of a round's id in the names of files: a folder holds one meeting.
MEETING = hashlib.sha256(b"hushtable meeting").hexdigest()


def _add(folder: Folder, step: str, sender: str, content: bytes) -> None:
    folder.add(name_of(MEETING, step, sender, content), content)


def visit(
    folder: Folder,
    keys: Keys,
    path: Path,
    names: Sequence[str] | None = None,
    coordinator: str | None = None,
    *,
    again: bool = False,
) -> Visit:
    """Do whatever is next in a meeting: post a hello, fix the cards and reveal, work out the code.

    Parameters
    ----------
    folder : Folder
        Where the files of everybody are.
    keys : Keys
        This party's.
    path : path
        Its notes, of `hushtable_federation.meeting_notes.beside`.
    names : sequence of str, optional
        Of all who are expected, this party and the coordinator among them; by default as before.
    coordinator : str, optional
        Which of them opens the rounds; by default as before.
    again : bool
        Whether to forget an earlier meeting, unless that is the one in this folder.

    Returns
    -------
    Visit
        How far it is, and whom it waits for.

    Raises
    ------
    FileError, PrivacyError, RoundError, UsageError
        If the notes cannot be read, others expect something else, or somebody swapped something.
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
            return Visit(state, waiting, unread, others)
        seen = state.seen or Seen(tuple(found.values()), state.coordinator)
        if state.seen is None:
            state = replace(state, seen=seen)
            state.save(path)  # before the number is said: from here on, it is for these cards alone
        reveal = seen.reveal(keys, state.nonce)
        _add(folder, "reveal", keys.card.name, reveal.to_bytes())
        if state.code:
            return Visit(state, others=others)
        reveals, unread = _reveals(folder, seen, reveal)
        waiting = tuple(name for name in state.names if name not in reveals)
        if not waiting:
            state = replace(state, code=seen.code(reveals))
            state.save(path)
        return Visit(state, waiting, unread, others)


def _before(keys: Keys, path: Path, own: Mapping[str, bytes] | None) -> State | None:
    """Return the notes as they are; none if they are to be forgotten.

    ``own`` are this party's hellos in the folder, where it begins anew: if they go with the notes,
    it has done so already.
    """
    before = State.load(path) if path.exists() else None
    if before is None or (own is not None and not _goes_with(before, keys, own)):
        return None
    if before.card != keys.card:
        raise RoundError(
            f"{path} is of a meeting of {before.card.name!r} with other keys: begin anew with "
            "--again in a new folder"
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
    """Return the notes with whom this party expects from now on, or new ones."""
    if before is None:
        if names is None or coordinator is None:
            raise UsageError(
                "who is expected, and who coordinates? Give --expect with all names, your own "
                "among them, and --coordinator; later calls remember both"
            )
        before = State(keys.card, secrets.token_hex(32), (), "")
    wanted = before.names if names is None else _expected(keys.card.name, names)
    lead = before.coordinator if coordinator is None else coordinator
    if lead not in wanted:
        raise UsageError(f"--coordinator {lead!a:.80}: is not among those who are expected")
    state = replace(before, names=wanted, coordinator=lead)
    if state != before and before.seen is not None:
        raise UsageError(
            f"the cards of {', '.join(before.names)} are fixed, with {before.coordinator!r} as "
            "coordinator: leave out --expect and --coordinator, or begin anew with --again in a "
            "new folder"
        )
    return state


def _expected(mine: str, names: Sequence[str]) -> tuple[str, ...]:
    expected = tuple(sorted({check_name(name) for name in names}))
    check_unlike(expected)
    if mine not in expected:
        raise UsageError(
            f"--expect names {', '.join(expected)}, and not {mine!r}, whose keys these are"
        )
    if len(expected) < 2:
        raise UsageError("--expect names you alone: a meeting needs two or more")
    return expected


def _check_mine(contents: Mapping[str, bytes], mine: Hello) -> None:
    """Raise `RoundError` if another hello lies under this party's name."""
    try:
        there = read_hellos(contents, mine.card.name)
    except FileError:  # none, or one that was cut off: it is written again
        return
    if there.card != mine.card:
        raise RoundError(
            f"the folder holds a card of {mine.card.name!r} that is not yours, "
            f"{there.card.fingerprint} (yours is {mine.card.fingerprint}): somebody has the same "
            "name, or poses as you. Find out who on the phone, and begin anew with --again in a "
            "new folder"
        )
    if there != mine:
        raise RoundError(
            "the folder holds a hello of yours from another meeting: begin anew with --again in a "
            "new folder"
        )


# --- what the others posted -----------------------------------------------------------------


def _posted(folder: Folder, step: str) -> dict[str, list[str]]:
    """Return the files of a step, by whose they are."""
    found: dict[str, list[str]] = {}
    for file in folder.names():
        claims = parsed(file)
        if claims is not None and (claims.round_id16, claims.step) == (MEETING[:16], step):
            found.setdefault(claims.sender, []).append(file)
    return found


def _contents(folder: Folder, paths: Sequence[str]) -> dict[str, bytes]:
    return {path: content for path in paths if (content := folder.read(path, MOST)) is not None}


def _found(
    folder: Folder, posted: Mapping[str, Sequence[str]], state: State, mine: Hello
) -> tuple[dict[str, Hello], dict[str, str]]:
    """Return the hellos of those who are expected, and why some cannot be read.

    Raises `RoundError` if one is not what this party has fixed.
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
                f"the hello of {name!r} has changed since the cards were fixed here: somebody "
                f"replaced it. Trust nobody yet, ask {name!r} on the phone, and begin anew with "
                "--again in a new folder"
            )
    return found, unread


def _reveals(folder: Folder, seen: Seen, mine: Reveal) -> tuple[dict[str, Reveal], dict[str, str]]:
    """Return the reveals of all who are in, each checked, and why some cannot be read."""
    found, unread = {mine.name: mine}, dict[str, str]()
    posted = _posted(folder, "reveal")
    for name in seen.saw:
        contents = _contents(folder, posted.get(name, ()))
        if name in posted and not contents:
            unread[name] = f"the reveal of {name!r} is not whole yet"
        for path, content in contents.items():
            try:
                reveal = Reveal.from_bytes(content, path)
            except (FileError, RoundError) as error:  # it may still be on its way
                unread[name] = str(error)
                continue
            if reveal.name != name:
                raise RoundError(
                    f"{path}: holds the reveal of {reveal.name!r} under another name: somebody "
                    "moved it; have it removed, and call again"
                )
            if not seen.signed(reveal):  # anybody can write to the folder
                unread[name] = f"{path}: is not signed by {name!r}: have it removed"
                continue
            seen.check(reveal)
            found.setdefault(name, reveal)
    return found, {name: why for name, why in unread.items() if name not in found}
