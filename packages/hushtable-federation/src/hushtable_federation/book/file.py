"""The file of a book: how it begins and opens, its chain, and the steps of rounds under way."""

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from types import MappingProxyType
from typing import Any, Self, TypeVar

from hushtable.errors import FileError, RoundError
from hushtable.privacy.budget import check_delta, check_epsilon
from hushtable_federation.book.chain import TABLES, Chain, Entry
from hushtable_federation.book.contents import Contents
from hushtable_federation.book.database import Database, damaged
from hushtable_federation.clock import now, parsed, stamp
from hushtable_federation.contribution import Contribution
from hushtable_federation.keys import Card, new_private, refuse_open

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

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._db = Database(path)
        self.path = self._db.path
        self._forget()
        try:
            # On disk before anything is sent, whatever fails.
            self._db.run("pragma synchronous = extra")
            if self._db.run("pragma user_version") == [(1,)]:
                self._take_over()
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
    def open(cls, path: str | os.PathLike[str], card: Card | None = None) -> Self:
        """Open a book that exists; the whole chain is checked.

        Parameters
        ----------
        path : path
            The file.
        card : Card, optional
            Whose book it has to be.

        Raises
        ------
        FileError, PrivacyError, RoundError
            If it is missing, damaged, changed from outside, open to others, or another's.
        """
        refuse_open(path, "a book")
        book = cls(path)
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
        """Read everything anew when it is needed next."""
        self._chain, self._said = Chain(self._db), Contents()

    def _note(
        self, kind: str, content: dict[str, Any], blobs: Mapping[str, bytes] = MappingProxyType({})
    ) -> None:
        entry = self._chain.append(kind, {"at": stamp(now()), **content}, blobs)
        self._said.add(entry, self.path)

    def _take_over(self) -> None:
        with self._db.writing():
            # Another process may have been first.
            if self._db.run("pragma user_version") == [(1,)]:
                key = secrets.token_bytes(32)
                self._parsed(lambda _: _as_chain(self._db, key, stamp(now())), None)
                self._db.run(f"pragma user_version = {_VERSION}")
                self._now()  # takes nothing over that it could not read

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
            # What others dealt is overwritten: a copy of the file has nothing of it.
            self._db.run("pragma secure_delete = on")
            self._db.run(
                f"update steps set kept = '{{}}' where round_id = ? and step not in ({marks})",
                (round_id, *kept),
            )

    def keep_steps(self, round_id: str, until: datetime) -> None:
        """Keep what the steps of a round need no longer than that; a later time replaces it."""
        said = json.dumps({"until": stamp(until)})
        noted = "select kept from steps where round_id = ? and step = ?"
        with self.writing():
            if self._db.run(noted, (round_id, _UNTIL)) != [(said,)]:
                self._db.run(
                    "insert or replace into steps values (?, ?, '', '', ?)",
                    (round_id, _UNTIL, said),
                )

    def _forget_steps_over(self) -> None:
        """Forget what was kept of rounds whose time is over."""
        noted = "select round_id, kept from steps where step = ? and kept != '{}'"
        for round_id, kept in self._db.run(noted, (_UNTIL,)):
            if now() > self._parsed(lambda kept: parsed(json.loads(kept)["until"]), kept):
                self.forget_steps(round_id)


def _step(row: Any) -> tuple[str, bytes, dict[str, Any]]:
    asked, answer, kept = row[0], row[1], json.loads(row[2])
    if not (isinstance(asked, str) and isinstance(answer, bytes) and isinstance(kept, dict)):
        raise TypeError
    return asked, answer, kept


def _as_chain(db: Database, key: bytes, at: str) -> None:
    """Make a chain of the tables of version 1, in a transaction; the ``steps`` stay.

    ``key`` has 32 bytes, for digests of rows; ``at`` is the time now. Raises `KeyError`,
    `TypeError` or `ValueError` if the tables do not hold what was written.
    """
    for statement in TABLES:
        db.run(statement)
    chain = Chain(db)
    ((name, signing, epsilon, delta),) = db.run("select name, signing, epsilon, delta from site")
    site = {"name": name, "signing": signing, "key": key.hex(), "epsilon": epsilon, "delta": delta}
    chain.append("site", {"at": at, **site, "from_version": 1}, {})
    for text, since in db.run("select card, since from known order by since, name"):
        card = Card.from_dict(json.loads(text)).to_dict()
        chain.append("trust", {"at": _time(since), "card": card, "role": "site"}, {})
    # Row by row: a large book fits into the file, but perhaps not into memory.
    names = ("round_id", "title", "data_set", "made", "counts", "sent", "share", "spent")
    for row in db.run("select rowid from answers order by rowid"):
        (values,) = db.run(f"select {', '.join(names)} from answers where rowid = ?", row)
        found = dict(zip(names, values, strict=True))
        parsed = {name: json.loads(found[name]) for name in ("share", "spent")}
        content, blobs = Contribution.of(found | parsed, found).noted()
        chain.append("answer", {"at": _time(found["made"]), **content}, blobs)
    for table in ("site", "known", "answers"):
        db.run(f"drop table {table}")


def _time(text: Any) -> str:
    datetime.fromisoformat(text)
    return str(text)
