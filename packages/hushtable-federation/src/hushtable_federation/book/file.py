"""The file of a book: how it is created and read, its content, and the steps of open rounds."""

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, TypeVar

from hushtable.arguments import is_digest
from hushtable.errors import FileError, RoundError
from hushtable.privacy.budget import Spent, check_delta, check_epsilon
from hushtable_federation.book.chain import TABLES, Chain, Database, Entry, damaged
from hushtable_federation.book.convert import check_plain
from hushtable_federation.clock import now, parsed, stamp
from hushtable_federation.keys import Card, new_private, refuse_open

#: The roles that a known card may have in a round.
ROLES = ("site", "coordinator")
#: How a card was verified: by the code of a meeting (until 1.0.0rc1), because it came from its
#: owner, or by the answer to a question, after comparing fingerprints.
WAYS = ("code", "card", "asked")


@dataclass
class Contents:
    """The content of a book, after the entries passed to `add`."""

    #: The site of the book: name and public key.
    site: str = ""
    signing: str = ""
    #: Drawn for this book: the key of its digests of rows.
    key: bytes = b""
    #: The cap.
    epsilon: float = 0.0
    delta: float = 0.0
    #: By name: the current card, and its known roles.
    cards: dict[str, Card] = field(default_factory=dict)
    roles: dict[str, set[str]] = field(default_factory=dict)
    #: By name and role: how the card was verified, and the first time of each way.
    ways: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    #: By id of the round, in the order of answers; and by data set, their costs.
    answers: dict[str, Entry] = field(default_factory=dict)
    spent: dict[str, list[Spent]] = field(default_factory=dict)
    #: By stream and period: the first answer.
    streams: dict[str, dict[int, Entry]] = field(default_factory=dict)
    #: By data set: digests of its rows.
    rows: dict[str, list[Entry]] = field(default_factory=dict)
    #: SHA-256 of the current policy file; empty if none.
    policy: str = ""
    #: By digest of a result: when it was first verified.
    verified: dict[str, datetime] = field(default_factory=dict)

    def add(self, entry: Entry, path: str) -> None:
        """Add the next entry; ``path`` names the book in errors.

        Raise `FileError` if its kind is unknown here, and `KeyError`, `TypeError` or `ValueError`
        if it cannot be what was written.
        """
        take = _KINDS.get(entry.kind)
        if take is None:
            raise FileError(
                f"{path}: entry {entry.n} is of the kind {entry.kind[:40]!r}, which this version "
                "of hushtable does not know: use the version that wrote it, or a newer one (pip "
                "install --upgrade hushtable)"
            )
        if (entry.n == 1) != (entry.kind == "site"):
            raise ValueError("a book begins with its site")
        datetime.fromisoformat(entry.content["at"])
        take(self, entry)


def _site(record: Contents, entry: Entry) -> None:
    content = entry.content
    record.site, record.signing = _text(content["name"]), _text(content["signing"])
    record.key = bytes.fromhex(content["key"])
    if len(record.key) != 32:
        raise ValueError("the key has 32 bytes")
    _cap(record, entry)


def _cap(record: Contents, entry: Entry) -> None:
    record.epsilon = check_epsilon(entry.content["epsilon"])
    record.delta = check_delta(entry.content["delta"])


def _trust(record: Contents, entry: Entry) -> None:
    card, role = Card.from_dict(entry.content["card"]), entry.content["role"]
    if role not in ROLES:
        raise ValueError(f"no role {role!r}")
    # Different keys under a name are a different party, regardless of the name's earlier roles.
    if record.cards.get(card.name) != card:
        record.cards[card.name], record.roles[card.name] = card, set()
        record.ways[card.name] = {}
    record.roles[card.name].add(role)
    if "how" in entry.content:
        ways = record.ways[card.name].setdefault(role, {})
        ways.setdefault(_text(entry.content["how"]), entry.content["at"])


def _policy(record: Contents, entry: Entry) -> None:
    record.policy = _digest(entry.content["digest"])


def _rows(record: Contents, entry: Entry) -> None:
    _digest(entry.content["blobs"]["rows"])
    record.rows.setdefault(_text(entry.content["data_set"]), []).append(entry)


def _answer(record: Contents, entry: Entry) -> None:
    content = entry.content
    if _text(content["round_id"]) in record.answers:
        raise ValueError("a round is answered once")
    _text(content["title"])
    for name in ("counts", "sent"):
        _digest(content["blobs"][name])
    datetime.fromisoformat(content["made"])
    spent = Spent.from_dict(content["spent"])
    record.answers[content["round_id"]] = entry
    charged = record.spent.setdefault(_text(content["data_set"]), [])
    # The first answer to a stream is charged for all its periods.
    if not ("stream" in content and _of_stream(record, entry) and spent in charged):
        charged.append(spent)


def _of_stream(record: Contents, entry: Entry) -> bool:
    content = entry.content
    period = content["period"]
    if type(period) is not int or period < 1:
        raise ValueError("no period")
    periods = record.streams.setdefault(_text(content["stream"]), {})
    before = bool(periods)
    first = periods.setdefault(period, entry)
    if first.content["blobs"]["sent"] != content["blobs"]["sent"]:
        raise ValueError("noise is drawn once for each period")
    return before


def _verified(record: Contents, entry: Entry) -> None:
    _text(entry.content["round_id"])
    at = datetime.fromisoformat(entry.content["at"])
    record.verified.setdefault(_digest(entry.content["digest"]), at)


#: Kinds of entries, and how each changes the content. Older versions refuse new kinds.
_KINDS: dict[str, Callable[[Contents, Entry], None]] = {
    "site": _site, "cap": _cap, "trust": _trust, "policy": _policy, "rows": _rows,
    "answer": _answer, "verified": _verified,
}  # fmt: skip


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _digest(value: Any) -> str:
    if not is_digest(value):
        raise ValueError("no digest")
    return str(value)


T = TypeVar("T")

_VERSION = 2
#: Name of the row of a round's steps that states until when the others are kept.
_UNTIL = "until"
_STEPS = (
    "create table steps (round_id text not null, step text not null, asked text not null, "
    "answer blob not null, kept text not null, primary key (round_id, step))"
)


class BookFile:
    """The file under a `Book`: how it is created and read, regardless of its content."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check_plain(Path(path))
        self._db = Database(path)
        self.path = self._db.path
        self._forget()
        try:
            # Everything is on disk before anything is sent, even if something fails.
            self._db.run("pragma synchronous = extra")
            # Deleted data are overwritten, so a copy of the file does not contain them.
            self._db.run("pragma secure_delete = on")
            if self._db.run("pragma user_version") != [(_VERSION,)]:
                raise damaged(self.path)
            self._db.run("select count(*) from steps")
            self.site = self._now().site
            self._forget_steps_over()
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], card: Card, *, epsilon: float, delta: float = 1e-6
    ) -> Self:
        """Create a book.

        Parameters
        ----------
        path : path
            A new file, readable by its owner only.
        card : Card
            The site's.
        epsilon, delta : float
            The cap.
        """
        # Because of the key, the last link, which people pass on, reveals nothing about the
        # entries.
        site = {"name": card.name, "signing": card.signing, "key": secrets.token_hex(32)}
        cap = {"epsilon": check_epsilon(epsilon), "delta": check_delta(delta)}
        # In memory, because SQLite would open a temporary file by its name.
        with new_private(path) as file, closing(Database(":memory:")) as db:
            with db.writing():
                for statement in (*TABLES, _STEPS, f"pragma user_version = {_VERSION}"):
                    db.run(statement)
                Chain(db).append("site", {"at": stamp(now()), **site, **cap}, {})
            file.write(db.content())
        return cls(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str], card: Card | None = None) -> Self:
        """Open an existing book, and check the whole chain.

        Parameters
        ----------
        path : path
            The file.
        card : Card, optional
            The card that the book has to belong to.

        Raises
        ------
        FileError, PrivacyError, RoundError
            If it is missing, damaged, changed by another program, readable by others, or another
            site's.
        """
        refuse_open(path, "a book")
        book = cls(path)
        if card is not None and (card.name, card.signing) != (book.site, book._said.signing):
            book.close()
            raise RoundError(
                f"{path} is the book of {book.site!r} and its keys, not of {card.name!r} with "
                "these: use the keys and the book that belong together"
            )
        return book

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- the chain --------------------------------------------------------------------------

    @property
    def head(self) -> str:
        """Return the last link (64 hexadecimal digits); a copy reveals if entries are removed."""
        self._now()
        return self._chain.head

    def history(self) -> list[Entry]:
        """Return all entries, oldest first."""
        self._now()
        return list(self._chain.entries)

    @property
    def unused(self) -> bool:
        """Return whether the book contains only the site and its cap."""
        return len(self.history()) == 1 and self._db.run("select count(*) from steps") == [(0,)]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run the body as one transaction, in one process at a time; nested calls join it."""
        if self._db.in_transaction:
            yield
            return
        try:
            with self._db.writing():
                self._now()
                yield
        except BaseException:
            self._forget()  # what was read in the transaction may have been rolled back
            raise

    def _now(self) -> Contents:
        try:
            for entry in self._chain.read():
                self._parsed(lambda entry: self._said.add(entry, self.path), entry)
        except BaseException:
            self._forget()
            raise
        return self._said

    def _forget(self) -> None:
        self._chain, self._said = Chain(self._db), Contents()

    def _note(
        self, kind: str, content: dict[str, Any], blobs: Mapping[str, bytes] = MappingProxyType({})
    ) -> None:
        entry = self._chain.append(kind, {"at": stamp(now()), **content}, blobs)
        self._said.add(entry, self.path)

    def _parsed(self, parse: Callable[[Any], T], row: Any) -> T:
        try:
            return parse(row)
        except FileError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
            raise damaged(self.path) from None

    # --- steps of an online round -----------------------------------------------------------

    def step(self, round_id: str, step: str) -> tuple[str, bytes, dict[str, Any]] | None:
        """Return the digest of a step's request, the answer, and the data kept for later steps."""
        rows = self._db.run(
            "select asked, answer, kept from steps where round_id = ? and step = ?",
            (round_id, step),
        )
        return self._parsed(_step, rows[0]) if rows else None

    def note_step(
        self, round_id: str, step: str, asked: str, answer: bytes, kept: dict[str, Any]
    ) -> tuple[str, bytes]:
        """Record a step before it is answered; return the request and answer that hold from now on.

        These are the given ones, or those that another process recorded in the meantime.
        """
        with self.writing():
            earlier = self.step(round_id, step)
            if earlier is not None:
                return earlier[:2]
            self._db.run(
                "insert into steps values (?, ?, ?, ?, ?)",
                (round_id, step, asked, answer, json.dumps(kept)),
            )
        return asked, answer

    def forget_steps(self, round_id: str) -> None:
        """Forget the data kept between the steps of a round; keep the answers."""
        with self.writing():
            # The counts and the round of an answer are also in the chain.
            self._db.run(
                "delete from steps where round_id = ? and step in ('rows', 'round')", (round_id,)
            )
            self._db.run("update steps set kept = '{}' where round_id = ?", (round_id,))

    def keep_steps(self, round_id: str, until: datetime) -> None:
        """Limit how long the data of a round's steps are kept; a later call replaces it."""
        record = json.dumps({"until": stamp(until)})
        noted = "select kept from steps where round_id = ? and step = ?"
        with self.writing():
            if self._db.run(noted, (round_id, _UNTIL)) != [(record,)]:
                self._db.run(
                    "insert or replace into steps values (?, ?, '', '', ?)",
                    (round_id, _UNTIL, record),
                )

    def _forget_steps_over(self) -> None:
        noted = "select round_id, kept from steps where step = ? and kept != '{}'"
        for round_id, kept in self._db.run(noted, (_UNTIL,)):
            if now() > self._parsed(lambda kept: parsed(json.loads(kept)["until"]), kept):
                self.forget_steps(round_id)


def _step(row: Any) -> tuple[str, bytes, dict[str, Any]]:
    asked, answer, kept = row[0], row[1], json.loads(row[2])
    if not (isinstance(asked, str) and isinstance(answer, bytes) and isinstance(kept, dict)):
        raise TypeError
    return asked, answer, kept
