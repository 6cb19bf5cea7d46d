"""The file of a book: how it is made and read, what it says, and the steps of open rounds."""

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
from hushtable_federation import at_rest
from hushtable_federation.book.chain import TABLES, Chain, Database, Entry, damaged
from hushtable_federation.clock import now, parsed, stamp
from hushtable_federation.keys import Card, new_private, passphrase_of, refuse_open

#: What someone whose card is known may be in a round.
ROLES = ("site", "coordinator")
#: How someone verified a card: the code that all read in a call, the card came from its owner, or
#: the answer to a question, after fingerprints were compared.
WAYS = ("code", "card", "asked")


@dataclass
class Contents:
    """All that a book says, after the entries that `add` was given."""

    #: Whose book it is: name and public key.
    site: str = ""
    signing: str = ""
    #: Drawn for this book alone: digests of rows are made under it.
    key: bytes = b""
    #: The cap.
    epsilon: float = 0.0
    delta: float = 0.0
    #: By name: one card at a time, and as what it is known.
    cards: dict[str, Card] = field(default_factory=dict)
    roles: dict[str, set[str]] = field(default_factory=dict)
    #: By name and role: how the card was verified, and when so for the first time.
    ways: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    #: By id of the round, in the order of answers; and by data set, what these cost.
    answers: dict[str, Entry] = field(default_factory=dict)
    spent: dict[str, list[Spent]] = field(default_factory=dict)
    #: By stream of rounds and period: the first answer.
    streams: dict[str, dict[int, Entry]] = field(default_factory=dict)
    #: By data set: digests of its rows.
    rows: dict[str, list[Entry]] = field(default_factory=dict)
    #: SHA-256 of the policy file in force; empty without.
    policy: str = ""
    #: By digest of a result: when it was verified first.
    verified: dict[str, datetime] = field(default_factory=dict)

    def add(self, entry: Entry, path: str) -> None:
        """Take in the next entry; ``path`` names the book in errors.

        Raises `FileError` if it is of a kind that is not known here, and `KeyError`, `TypeError`
        or `ValueError` if it cannot be what was written.
        """
        take = _KINDS.get(entry.kind)
        if take is None:
            raise FileError(
                f"{path}: entry {entry.n} is of the kind {entry.kind[:40]!r}, which this version "
                "of hushtable does not know: use the one that wrote it, or a newer one (pip "
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
    # Other keys under a name are someone else, whatever the name was before.
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
    # All periods of a stream are charged with the first answer.
    if not ("stream" in content and _of_stream(record, entry) and spent in charged):
        charged.append(spent)


def _of_stream(record: Contents, entry: Entry) -> bool:
    """Note the period that an answer is about; return whether its stream was answered before."""
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


#: Kinds of entries, and what each does. Older versions refuse a new kind.
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
#: Name of the row of a round's steps that says until when the others are kept.
_UNTIL = "until"
_STEPS = (
    "create table steps (round_id text not null, step text not null, asked text not null, "
    "answer blob not null, kept text not null, primary key (round_id, step))"
)


class BookFile:
    """The file under a `Book`: how it is made and read, whatever it notes."""

    def __init__(self, path: str | os.PathLike[str], key: Path | None = None) -> None:
        self._db = Database(path, _secret(Path(path), key))
        self.path = self._db.path
        self._forget()
        try:
            # On disk before anything is sent, whatever fails.
            self._db.run("pragma synchronous = extra")
            # What is forgotten is overwritten: a copy of the file has nothing of it.
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
        """Begin a book.

        Parameters
        ----------
        path : path
            A new file, readable by its owner only.
        card : Card
            The site's.
        epsilon, delta : float
            The cap.
        """
        # With the key, the last link, which people pass on, says nothing of the entries.
        site = {"name": card.name, "signing": card.signing, "key": secrets.token_hex(32)}
        cap = {"epsilon": check_epsilon(epsilon), "delta": check_delta(delta)}
        # In memory, since SQLite would open a temporary file by its name.
        with new_private(path) as file, closing(Database(":memory:")) as db:
            with db.writing():
                for statement in (*TABLES, _STEPS, f"pragma user_version = {_VERSION}"):
                    db.run(statement)
                Chain(db).append("site", {"at": stamp(now()), **site, **cap}, {})
            file.write(db.content())
        return cls(path)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], card: Card | None = None, key: Path | None = None
    ) -> Self:
        """Open a book that exists; the whole chain is checked.

        Parameters
        ----------
        path : path
            The file.
        card : Card, optional
            Whose book it has to be.
        key : path, optional
            File of the keys whose passphrase opens the book, if that is encrypted; by default the
            one beside it.

        Raises
        ------
        FileError, PrivacyError, RoundError
            If it is missing, damaged, changed from outside, open to others, or another's.
        """
        refuse_open(path, "a book")
        book = cls(path, key)
        if card is not None and (card.name, card.signing) != (book.site, book._said.signing):
            book.close()
            raise RoundError(
                f"{path} is the book of {book.site!r} and its keys, not of {card.name!r} with "
                "these: keys and book belong together"
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
        """Last link of the chain, 64 hexadecimal digits: kept apart, it shows a cut end."""
        self._now()
        return self._chain.head

    def history(self) -> list[Entry]:
        """Return all entries, oldest first."""
        self._now()
        return list(self._chain.entries)

    @property
    def unused(self) -> bool:
        """Whether nothing was ever noted but the site and its cap."""
        return len(self.history()) == 1 and self._db.run("select count(*) from steps") == [(0,)]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All or nothing, and one process at a time; inside another, a part of that."""
        if self._db.in_transaction:
            yield
            return
        try:
            with self._db.writing():
                self._now()
                yield
        except BaseException:
            self._forget()  # what was read in the transaction may not have come to stay
            raise

    def _now(self) -> Contents:
        """Return what the book says, with what other processes have noted since."""
        try:
            for entry in self._chain.read():
                self._parsed(lambda entry: self._said.add(entry, self.path), entry)
        except BaseException:
            self._forget()
            raise
        return self._said

    def _forget(self) -> None:
        """Read everything again when it is needed next."""
        self._chain, self._said = Chain(self._db), Contents()

    def _note(
        self, kind: str, content: dict[str, Any], blobs: Mapping[str, bytes] = MappingProxyType({})
    ) -> None:
        entry = self._chain.append(kind, {"at": stamp(now()), **content}, blobs)
        self._said.add(entry, self.path)

    def _parsed(self, parse: Callable[[Any], T], row: Any) -> T:
        """Return what a row says; raises `FileError` if it cannot be what was written."""
        try:
            return parse(row)
        except FileError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
            raise damaged(self.path) from None

    # --- steps of an online round -----------------------------------------------------------

    def step(self, round_id: str, step: str) -> tuple[str, bytes, dict[str, Any]] | None:
        """Return what was asked in a step (its digest), what was answered, and what was kept."""
        rows = self._db.run(
            "select asked, answer, kept from steps where round_id = ? and step = ?",
            (round_id, step),
        )
        return self._parsed(_step, rows[0]) if rows else None

    def note_step(
        self, round_id: str, step: str, asked: str, answer: bytes, kept: dict[str, Any]
    ) -> tuple[str, bytes]:
        """Note a step before it is answered; return what was asked and answered from now on.

        That is what is given, or what another process noted in the meantime.
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

    def forget_steps(self, round_id: str, but: str = "") -> None:
        """Forget what was kept between the steps of a round; keep the answers.

        ``but`` is a step of which it is kept on, where one may follow that needs it.
        """
        kept = (but, _UNTIL) if but else ()
        marks = ", ".join("?" * len(kept))
        with self.writing():
            # These counts are in the chain, too.
            self._db.run("delete from steps where round_id = ? and step = 'rows'", (round_id,))
            self._db.run(
                f"update steps set kept = '{{}}' where round_id = ? and step not in ({marks})",
                (round_id, *kept),
            )

    def keep_steps(self, round_id: str, until: datetime) -> None:
        """Keep what the steps of a round need no longer than that; a later time replaces it."""
        record = json.dumps({"until": stamp(until)})
        noted = "select kept from steps where round_id = ? and step = ?"
        with self.writing():
            if self._db.run(noted, (round_id, _UNTIL)) != [(record,)]:
                self._db.run(
                    "insert or replace into steps values (?, ?, '', '', ?)",
                    (round_id, _UNTIL, record),
                )

    def _forget_steps_over(self) -> None:
        """Forget what was kept of rounds whose time is over."""
        noted = "select round_id, kept from steps where step = ? and kept != '{}'"
        for round_id, kept in self._db.run(noted, (_UNTIL,)):
            if now() > self._parsed(lambda kept: parsed(json.loads(kept)["until"]), kept):
                self.forget_steps(round_id)


def _secret(path: Path, key: Path | None) -> str:
    """Return the passphrase of a book; empty if it is not encrypted."""
    if not at_rest.is_encrypted(path):
        return ""
    beside = path.with_suffix(".key") if key is None else key
    reference = passphrase_of(beside) if beside.exists() else ""
    if not reference:
        raise damaged(str(path))  # no keys beside it say that it is an encrypted one
    return at_rest.passphrase(reference, beside.parent)


def _step(row: Any) -> tuple[str, bytes, dict[str, Any]]:
    asked, answer, kept = row[0], row[1], json.loads(row[2])
    if not (isinstance(asked, str) and isinstance(answer, bytes) and isinstance(kept, dict)):
        raise TypeError
    return asked, answer, kept
