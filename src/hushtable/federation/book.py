"""The site's book: what it has answered, and what that cost the people in its rows.

One SQLite file beside the site's keys. It holds exact counts, and is as secret as the rows.
Everything that is sent is written here first, in one transaction: after a crash at any moment,
either nothing was sent and nothing spent, or the same answer is sent again.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import PrivacyError, RoundError
from hushtable.federation.database import Database, damaged
from hushtable.federation.keys import Card, new_private, refuse_open
from hushtable.federation.round import Round, now, stamp
from hushtable.federation.submission import Part
from hushtable.privacy.budget import Cost, Spent, check_delta, check_epsilon
from hushtable.privacy.ledger import Share

__all__ = ["ALL_ROWS", "Answer", "Book"]

T = TypeVar("T")

#: Name of the rows, unless somebody says that there are several sets of different people.
ALL_ROWS = "all rows"

_VERSION = 1
_TABLES = (
    "create table site (name text not null, signing text not null, epsilon real not null, "
    "delta real not null)",
    "create table known (name text primary key, card text not null, since text not null)",
    "create table answers (round_id text primary key, data_set text not null, title text not null, "
    "made text not null, counts blob not null, sent blob not null, share text not null, "
    "spent text not null)",
    "create table steps (round_id text not null, step text not null, asked text not null, "
    "answer blob not null, kept text not null, primary key (round_id, step))",
)


@dataclass(frozen=True, eq=False)
class Answer:
    """What the site answered to a round.

    Attributes
    ----------
    round_id, title : str
        Of the round.
    data_set : str
        Which rows.
    made : datetime
        When.
    counts : ndarray of shape (n_cells,), int64
        The exact counts.
    sent : ndarray of shape (n_cells,), int64
        The counts with the site's noise.
    share : Share
        Of the ledger.
    spent : Spent
        What it cost a person in the rows.
    """

    round_id: str
    title: str
    data_set: str
    made: datetime
    counts: NDArray[np.int64]
    sent: NDArray[np.int64]
    share: Share
    spent: Spent

    def part(self, round_: Round) -> Part:
        """Return what goes into the submission."""
        return Part(self.sent, round_.ledger(self.share), self.made)


class Book:
    """The book of one site; see the module.

    Make one with `create`, open it with `open`; use it as a context manager.

    Attributes
    ----------
    path : str
        The file.
    site : str
        Name of the site.
    epsilon, delta : float
        The cap: what all rounds together may cost a person in one set of rows.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._db = Database(path)
        self.path = self._db.path
        try:
            # On disk before anything is sent, whatever fails.
            self._db.run("pragma synchronous = extra")
            if self._db.run("pragma user_version") != [(_VERSION,)]:
                raise damaged(self.path)
            rows = self._db.run("select name, signing, epsilon, delta from site")
            self.site, self._signing, self.epsilon, self.delta = self._parsed(_site, rows)
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], card: Card, *, epsilon: float, delta: float = 1e-6
    ) -> "Book":
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
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        row = (card.name, card.signing, epsilon, delta)
        with (
            new_private(path) as temporary,
            contextlib.closing(Database(temporary)) as db,
            db.writing(),
        ):
            for statement in (*_TABLES, f"pragma user_version = {_VERSION}"):
                db.run(statement)
            db.run("insert into site values (?, ?, ?, ?)", row)
        return cls(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str], card: Card | None = None) -> "Book":
        """Open a book that exists.

        Parameters
        ----------
        path : path
            The file.
        card : Card, optional
            Whose book it has to be.

        Raises
        ------
        FileError, PrivacyError, RoundError
            If it is missing, damaged, open to others, or another's.
        """
        refuse_open(path, "a book")
        book = cls(path)
        if card is not None and (card.name, card.signing) != (book.site, book._signing):
            book.close()
            raise RoundError(
                f"{path} is the book of {book.site!r} and its keys, not of {card.name!r} with "
                "these: keys and book belong together"
            )
        return book

    @property
    def unused(self) -> bool:
        """Whether nothing was ever noted."""
        tables = ("known", "answers", "steps")
        return all(self._db.run(f"select count(*) from {table}") == [(0,)] for table in tables)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> "Book":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """All or nothing, and one process at a time."""
        with self._db.writing():
            yield

    def _parsed(self, parse: Callable[[Any], T], row: Any) -> T:
        """Return what a row says; raises `FileError` if it cannot be what was written."""
        try:
            return parse(row)
        except (KeyError, TypeError, ValueError, RecursionError):
            raise damaged(self.path) from None

    # --- the cap ----------------------------------------------------------------------------

    def set_cap(self, epsilon: float, delta: float) -> None:
        """Change what all rounds together may cost."""
        row = (check_epsilon(epsilon), check_delta(delta))
        with self.writing():
            self._db.run("update site set epsilon = ?, delta = ?", row)
        self.epsilon, self.delta = row

    def spent(self, data_set: str) -> tuple[Spent, ...]:
        """Return what rounds about these rows cost, in the order of answers."""
        rows = self._db.run(
            "select spent from answers where data_set = ? order by rowid", (data_set,)
        )
        return tuple(self._parsed(_spent, row) for row in rows)

    def data_sets(self) -> list[str]:
        """Return the names of rows that rounds were about."""
        rows = self._db.run("select distinct data_set from answers")
        return [self._parsed(_text, row) for row in rows]

    def total(self, data_set: str, *more: Spent) -> float:
        """Return the epsilon, at the delta of the cap, of all rounds about these rows."""
        spent = (*self.spent(data_set), *more)
        if len({(s.adjacency, s.rows_per_person) for s in spent}) > 1:
            terms = sorted({f"{s.adjacency}, {s.rows_per_person} rows a person" for s in spent})
            raise PrivacyError(
                f"rounds about {data_set!r} were answered under other terms ({'; '.join(terms)}): "
                "their costs do not add up; ask the coordinator for the same terms"
            )
        return Cost.total(s.cost for s in spent).epsilon(self.delta)

    def check_cap(self, data_set: str, more: Spent) -> float:
        """Return the total after one more answer; raises `PrivacyError` if it breaks the cap."""
        after = self.total(data_set, more)
        if after > self.epsilon * (1.0 + 1e-9):
            before = self.total(data_set)
            raise PrivacyError(
                f"this round would take {data_set!r} to epsilon {after:.3g} (it has cost "
                f"{before:.3g} so far), and the cap of {self.site!r} is {self.epsilon:g} at delta "
                f"{self.delta:g}: ask the coordinator for a smaller epsilon, or raise the cap "
                "(hushtable round book --cap)"
            )
        return after

    # --- who --------------------------------------------------------------------------------

    def known(self) -> dict[str, Card]:
        """Return the cards that this site has met or been given, by name."""
        rows = self._db.run("select name, card from known")
        return dict(self._parsed(_known, row) for row in rows)

    def trust(self, cards: "list[Card] | tuple[Card, ...]") -> None:
        """Take these cards for those of their names from now on."""
        with self.writing():
            for card in cards:
                row = (card.name, json.dumps(card.to_dict()), stamp(now()))
                self._db.run("insert or replace into known values (?, ?, ?)", row)

    def check_cards(self, round_: Round) -> list[Card]:
        """Return the cards that are new here; raises `RoundError` if one changed."""
        known, new = self.known(), []
        for card in dict.fromkeys((round_.coordinator, *round_.sites)):
            if card.name not in known:
                new.append(card)
            elif known[card.name].fingerprint != card.fingerprint:
                raise RoundError(
                    f"the keys of {card.name!r} in this round are not those that this site knows "
                    f"(now {card.fingerprint}; before {known[card.name].fingerprint}): ask "
                    f"{card.name!r} itself, and if they did change, give its new card with --trust"
                )
        return new

    # --- answers ----------------------------------------------------------------------------

    def answer(self, round_id: str) -> Answer | None:
        """Return what was answered to a round, if it was."""
        rows = self._db.run(
            "select round_id, title, data_set, made, counts, sent, share, spent from answers "
            "where round_id = ?",
            (round_id,),
        )
        return self._parsed(_answer, rows[0]) if rows else None

    def answers(self) -> list[Answer]:
        """Return all answers, oldest first."""
        rows = self._db.run(
            "select round_id, title, data_set, made, counts, sent, share, spent from answers "
            "order by rowid"
        )
        return [self._parsed(_answer, row) for row in rows]

    def record(self, answer: Answer) -> Answer:
        """Note an answer before it is sent; return what holds from now on.

        That is the answer given, or, where the round was answered already (by another process,
        or before a crash), the one that was noted then.

        Raises
        ------
        RoundError
            If the round was answered with other rows.
        PrivacyError
            If the cap would be broken.
        """
        with self.writing():
            earlier = self.answer(answer.round_id)
            if earlier is not None:
                return same_rows(earlier, answer.data_set, answer.counts)
            self.check_cap(answer.data_set, answer.spent)
            self._db.run(
                "insert into answers values (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    answer.round_id,
                    answer.data_set,
                    answer.title,
                    stamp(answer.made),
                    answer.counts.astype("<i8").tobytes(),
                    answer.sent.astype("<i8").tobytes(),
                    json.dumps(answer.share.to_dict()),
                    json.dumps(answer.spent.to_dict()),
                ),
            )
        return answer

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

    def forget_steps(self, round_id: str) -> None:
        """Forget what was kept between the steps of a round that is over; keep the answers."""
        with self.writing():
            self._db.run("update steps set kept = '{}' where round_id = ?", (round_id,))


def same_rows(earlier: Answer, data_set: str, counts: NDArray[np.int64]) -> Answer:
    """Return the earlier answer if it was about the same rows; raises `RoundError` otherwise."""
    if earlier.data_set != data_set or not np.array_equal(earlier.counts, counts):
        raise RoundError(
            f"this site answered the round on {stamp(earlier.made)} with other rows "
            f"({earlier.data_set!r}), and answers once only: two answers tell more than was paid "
            "for; give the rows of that day, or ask the coordinator for a new round"
        )
    return earlier


def _site(rows: Any) -> tuple[str, str, float, float]:
    ((name, signing, epsilon, delta),) = rows
    try:
        return _text((name,)), _text((signing,)), check_epsilon(epsilon), check_delta(delta)
    except PrivacyError as error:
        raise ValueError from error


def _text(row: Any) -> str:
    (text,) = row
    if not isinstance(text, str):
        raise TypeError
    return text


def _spent(row: Any) -> Spent:
    return Spent.from_dict(json.loads(_text(row)))


def _known(row: Any) -> tuple[str, Card]:
    name, text = row
    return _text((name,)), Card.from_dict(json.loads(text))


def _step(row: Any) -> tuple[str, bytes, dict[str, Any]]:
    asked, answer, kept = row[0], row[1], json.loads(row[2])
    if not (isinstance(asked, str) and isinstance(answer, bytes) and isinstance(kept, dict)):
        raise TypeError
    return asked, answer, kept


def _answer(row: Any) -> Answer:
    round_id, title, data_set, made, counts, sent, share, spent = row
    return Answer(
        _text((round_id,)),
        _text((title,)),
        _text((data_set,)),
        datetime.fromisoformat(made),
        np.frombuffer(counts, "<i8").astype(np.int64, copy=False),
        np.frombuffer(sent, "<i8").astype(np.int64, copy=False),
        Share.from_dict(json.loads(share)),
        Spent.from_dict(json.loads(spent)),
    )
