"""A site's book: what it has answered and spent, chained so that changes are detected."""

import hmac
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, TypeVar

import numpy as np

from hushtable.arguments import is_digest, is_text
from hushtable.data.schema import Schema
from hushtable.errors import FileError, PrivacyError, RoundError, UsageError
from hushtable.privacy.accounting import rounded_up
from hushtable.privacy.budget import Spent, check_delta, check_epsilon
from hushtable.privacy.mechanisms import Cost
from hushtable_federation.book.chain import (
    ROLES,
    TABLES,
    WAYS,
    BookLedger,
    Chain,
    Database,
    Entry,
    check_plain,
    damaged,
)
from hushtable_federation.book.digests import (
    REGISTER,
    Digests,
    Period,
    RowDigester,
    RowDigests,
    barred,
    from_bytes,
    nameless,
)
from hushtable_federation.clock import now, parsed, stamp
from hushtable_federation.keys import Card, new_private, refuse_open
from hushtable_federation.submission import Contribution

#: Default name of the rows, unless there are several sets about different people.
ALL_ROWS = "all rows"

T = TypeVar("T")

_VERSION = 2
#: Name of the row of a round's steps that states until when the others are kept.
_UNTIL = "until"
_STEPS = (
    "create table steps (round_id text not null, step text not null, asked text not null, "
    "answer blob not null, kept text not null, primary key (round_id, step))"
)


class Book:
    """The book of one site: a file whose entries form a hash chain, and what they amount to.

    Make one with `create`, open it with `open`; use it as a context manager.

    Attributes
    ----------
    path : str
        The file.
    site : str
        Name of the site.

    Examples
    --------
    >>> from hushtable_federation import Book, Keys
    >>> keys = Keys.generate("north")
    >>> with Book.create("north.book", keys.card, epsilon=2.0) as book:
    ...     book.total("all rows")
    0.0
    """

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
            over = "select round_id, kept from steps where step = ? and kept != '{}'"
            for round_id, kept in self._db.run(over, (_UNTIL,)):
                until = self._parsed(lambda kept: parsed(json.loads(kept)["until"]), kept)
                if now() > until:  # the time of the round is over
                    self.forget_steps(round_id)
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
        if card is not None and (card.name, card.signing) != (book.site, book._ledger.signing):
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

    def _now(self) -> BookLedger:
        try:
            for entry in self._chain.read():
                self._parsed(lambda entry: self._ledger.add(entry, self.path), entry)
        except BaseException:
            self._forget()
            raise
        return self._ledger

    def _forget(self) -> None:
        self._chain, self._ledger = Chain(self._db), BookLedger()

    def _note(
        self, kind: str, content: dict[str, Any], blobs: Mapping[str, bytes] = MappingProxyType({})
    ) -> None:
        entry = self._chain.append(kind, {"at": stamp(now()), **content}, blobs)
        self._ledger.add(entry, self.path)

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

    # --- the cap ----------------------------------------------------------------------------

    @property
    def epsilon(self) -> float:
        """Return the cap: what all rounds together may cost a person in one set of rows."""
        return self._now().epsilon

    @property
    def delta(self) -> float:
        """Return the delta of the cap."""
        return self._now().delta

    def set_cap(self, epsilon: float, delta: float) -> None:
        """Change what all rounds together may cost."""
        content = {"epsilon": check_epsilon(epsilon), "delta": check_delta(delta)}
        with self.writing():
            self._note("cap", content)

    def spent(self, data_set: str) -> tuple[Spent, ...]:
        """Return the costs of rounds about these rows, in the order of answers."""
        return tuple(self._now().spent.get(data_set, ()))

    def data_sets(self) -> list[str]:
        """Return the names of rows that the site has answered about."""
        return list(self._now().spent)

    def total(self, data_set: str, *more: Spent) -> float:
        """Return the epsilon, at the delta of the cap, of all rounds about these rows."""
        # A stream is charged once, for all its periods.
        spent = dict.fromkeys((*self.spent(data_set), *more))
        if len({(s.adjacency, s.rows_per_person) for s in spent}) > 1:
            terms = sorted({f"{s.adjacency}, {s.rows_per_person} rows per person" for s in spent})
            raise PrivacyError(
                f"rounds about {data_set!r} were answered under other terms ({'; '.join(terms)}), "
                "so their costs cannot be added: ask the coordinator for the same terms"
            )
        return Cost.total(s.cost for s in spent).epsilon(self.delta)

    def totals(self, data_set: str) -> list[float]:
        """Return the epsilon of these rows after each answer, at the delta of the cap."""
        spent: dict[Spent, None] = {}
        epsilons = []
        for entry in self.history():
            if entry.kind == "answer" and entry.content["data_set"] == data_set:
                spent[Spent.from_dict(entry.content["spent"])] = None
                epsilons.append(Cost.total(charge.cost for charge in spent).epsilon(self.delta))
        return epsilons

    def check_cap(self, data_set: str, *more: Spent) -> float:
        """Return the total after further answers; raise `PrivacyError` if it exceeds the cap."""
        after = self.total(data_set, *more)
        if after > self.epsilon * (1.0 + 1e-9):
            before = self.total(data_set)
            raise PrivacyError(
                f"this round would raise the total of {data_set!r} to epsilon "
                f"{rounded_up(after):g} (it is {rounded_up(before):g} so far), but the cap of "
                f"{self.site!r} is {self.epsilon:g} at delta {self.delta:g}: "
                f"{self.smaller(data_set, self.epsilon)}, or raise the cap (hushtable round book "
                "--cap)"
            )
        return after

    def smaller(self, data_set: str, most: float) -> str:
        """Return what to do if a round would raise the total above ``most``."""
        left = self.total(data_set) < 0.999 * most
        return "ask the coordinator for a smaller epsilon" if left else "nothing is left to spend"

    # --- who --------------------------------------------------------------------------------

    def known(self, role: str | None = None) -> dict[str, Card]:
        """Return the cards that this site confirmed or was given, by name.

        Parameters
        ----------
        role : {"site", "coordinator"}, optional
            Only cards that are known in this role.
        """
        contents = self._now()
        return {
            name: card
            for name, card in contents.cards.items()
            if role is None or _role(role) in contents.roles[name]
        }

    def trust(self, cards: Sequence[Card], role: str = "site", how: str | None = None) -> None:
        """Trust these cards under their names from now on.

        Parameters
        ----------
        cards : sequence of Card
            A card with keys other than before takes over the name, without its earlier roles.
        role : {"site", "coordinator"}
            The role of the cards.
        how : {"code", "card", "asked"}, optional
            How the cards were verified, for `history`: see `hushtable_federation.book.chain.WAYS`.
        """
        if how is not None and how not in WAYS:
            raise UsageError(f"how={how!r}: needs one of {', '.join(WAYS)}")
        if not cards:
            return
        more = {} if how is None else {"how": how}
        with self.writing():
            for card in dict.fromkeys(cards):
                if self.known(_role(role)).get(card.name) != card:
                    self._note("trust", {"card": card.to_dict(), "role": role, **more})

    # --- answers ----------------------------------------------------------------------------

    def answer(self, round_id: str) -> Contribution | None:
        """Return the contribution to a round, if there is one."""
        entry = self._now().answers.get(round_id)
        return None if entry is None else self._answer(entry)

    def periods(self, stream: str) -> dict[int, str]:
        """Return the answered periods of a stream, each with the id of its first round.

        ``stream`` is the id of the stream's first round.
        """
        periods = self._now().streams.get(stream, {})
        return {period: entry.content["round_id"] for period, entry in periods.items()}

    def answers(self) -> list[Contribution]:
        """Return the contributions to all rounds, oldest first."""
        return [self._answer(entry) for entry in self._now().answers.values()]

    def _answer(self, entry: Entry) -> Contribution:
        blobs = [blob for blob in entry.content["blobs"].items() if blob[0] != REGISTER]
        contents = {name: self._chain.blob(entry, digest) for name, digest in blobs}
        return self._parsed(lambda entry: Contribution.of(entry.content, contents), entry)

    def record(
        self,
        given: Contribution,
        samples: Sequence[RowDigests] = (),
        new_people: bool = False,
    ) -> Contribution:
        """Record a contribution before it is sent; return the one that holds from now on.

        That is the given one, or, if the round was already answered (by another process, or before
        a crash), the one recorded then, even if the rows have changed.

        Parameters
        ----------
        given : Contribution
            The contribution to send.
        samples : sequence of RowDigests
            Of the rows and persons (`Recognised.samples`), as `check_people` takes them.
        new_people : bool
            Whether a person states that these rows are about different people than all other data
            sets. The book records that, and which data set they resemble.

        Raises
        ------
        PrivacyError
            If the total would exceed the cap; and what `check_people` raises.
        """
        if not is_text(given.data_set):
            raise UsageError(f"data_set={given.data_set!r}: needs a text, the name of the rows")
        with self.writing():
            earlier = self.answer(given.round_id)
            if earlier is not None:
                return earlier
            if given.spent not in self.spent(given.data_set):  # for a stream, paid once
                self.check_cap(given.data_set, given.spent)
            for sample in samples:
                like = self.check_people(given.data_set, sample, new_people)
                content = {"data_set": given.data_set, "new_people": new_people, "like": like}
                self._note("rows", content, {"rows": sample.to_bytes()})
            self._note("answer", *given.noted())
        return given

    def without_result(self, data_set: str) -> list[str]:
        """Return the rounds about these rows whose result this site has not verified, in words."""
        verified = {
            entry.content["round_id"] for entry in self.history() if entry.kind == "verified"
        }
        answers = (entry.content for entry in self._now().answers.values())
        return [
            f"{answer['title']!r} ({answer['round_id'][:12]})"
            for answer in answers
            if answer["data_set"] == data_set and answer["round_id"] not in verified
        ]

    # --- which people -----------------------------------------------------------------------

    def digester(self, schema: Schema) -> RowDigester:
        """Return an object that makes digests of rows under this book's key."""
        return RowDigester(schema, self._now().key)

    @property
    def persons_key(self) -> bytes:
        """Return the secret key that persons are hashed with: 32 bytes, specific to this book."""
        return hmac.digest(self._now().key, b"persons", "sha256")

    def barred(self, data_set: str, period: Period | None = None) -> Digests:
        """Return the persons not to count in a round about these rows.

        Parameters
        ----------
        data_set : str
            The data set of the round. Persons whom answers about other data sets counted are
            barred.
        period : Period, optional
            The period of the round.

        Returns
        -------
        ndarray of shape (n,), uint64
            The first 64 bits of digests under `persons_key`, sorted: for ``known`` of
            `hushtable.Sketch.from_data`.
        """
        return barred(self._now().answers.values(), self._register, data_set, period)

    def nameless(self, data_set: str, period: Period | None = None) -> int:
        """Return how many answers have no person ids, so that `barred` ignores their persons."""
        return nameless(list(self._now().answers.values()), data_set, period)

    def check_others(self, data_set: str) -> None:
        """Raise `UsageError` if the book has no data set that new people could differ from."""
        if self.data_sets() == [data_set]:
            raise UsageError(
                f"--new-people: the only answers in this book are about {data_set!r} too: give new "
                "people their own data_set; a further round about the same people needs no "
                "--new-people"
            )

    def _register(self, entry: Entry) -> Digests:
        if not entry.content[REGISTER]:
            return np.empty(0, np.uint64)
        content = self._chain.blob(entry, entry.content["blobs"][REGISTER])
        return self._parsed(from_bytes, content)

    def check_people(self, data_set: str, rows: RowDigests, new_people: bool = False) -> str | None:
        """Return another data set that these rows seem to belong to; refuse unless ``new_people``.

        Raises
        ------
        PrivacyError
            If there is one, and these are not stated to be ``new_people``.
        """
        other = self._alike(data_set, rows)
        if other is not None and not new_people:
            raise PrivacyError(
                f"the rows given as {data_set!r} seem to be those of {other!r}, or a part of them, "
                f"and the same people share one budget. Answer with data_set = '{other}' in the "
                "site's file; if they are different people, give --new-people, which the book "
                "records"
            )
        return other

    def _alike(self, data_set: str, rows: RowDigests) -> str | None:
        for name, entries in self._now().rows.items():
            for entry in entries if name != data_set else ():
                content = self._chain.blob(entry, entry.content["blobs"]["rows"])
                if rows.same_people(self._parsed(RowDigests.from_bytes, content)):
                    return name
        return None

    # --- what else is noted -----------------------------------------------------------------

    @property
    def policy(self) -> str:
        """Return the SHA-256 of the last recorded policy file; empty if there is none."""
        return self._now().policy

    def note_policy(self, digest: str) -> None:
        """Record the current policy file, by its SHA-256 in 64 hexadecimal digits."""
        _check_digest(digest)
        with self.writing():
            if digest != self._now().policy:
                self._note("policy", {"digest": digest})

    def verified(self, digest: str) -> datetime | None:
        """Return when a result with this digest was first verified, if it was."""
        return self._now().verified.get(digest)

    def note_verified(self, digest: str, round_id: str) -> None:
        """Record that the result of a round, with this SHA-256, was verified."""
        _check_digest(digest)
        with self.writing():
            if digest not in self._now().verified:
                self._note("verified", {"digest": digest, "round_id": round_id})


def _role(role: str) -> str:
    if role not in ROLES:
        raise UsageError(f"role={role!r}: needs one of {', '.join(ROLES)}")
    return role


def _check_digest(digest: Any) -> None:
    if not is_digest(digest):
        raise UsageError(f"digest={digest!r}: needs a SHA-256 in 64 hexadecimal digits")


def _step(row: Any) -> tuple[str, bytes, dict[str, Any]]:
    asked, answer, kept = row[0], row[1], json.loads(row[2])
    if not (isinstance(asked, str) and isinstance(answer, bytes) and isinstance(kept, dict)):
        raise TypeError
    return asked, answer, kept
