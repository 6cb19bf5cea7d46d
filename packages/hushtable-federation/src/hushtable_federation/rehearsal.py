"""Rehearsals with invented rows: a round in one process, and a whole round in a folder.

In the folder, sites are away, late, killed or lying. The visits are those of ``hushtable round
sync``; only the clock, the rows and the order of visits are invented. A killed site dies at a write
into the folder, before or after it.
"""

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.sketch import Sketch
from hushtable.data.schema import Feature, Schema
from hushtable.errors import HushTableError, UsageError
from hushtable.plans.plan import Plan
from hushtable_federation import clock
from hushtable_federation.book.book import Book
from hushtable_federation.clock import now
from hushtable_federation.folder.coordinator_visit import CoordinatorVisit
from hushtable_federation.folder.mailbox import Directory, Store
from hushtable_federation.folder.round_folder import RoundFolder, post_round, rounds
from hushtable_federation.folder.site_visit import SiteVisit
from hushtable_federation.keys import Keys
from hushtable_federation.online.carriers import Memory
from hushtable_federation.online.site import OnlineSite
from hushtable_federation.policy import Policy
from hushtable_federation.protocol.messages import Message
from hushtable_federation.result import Result
from hushtable_federation.round import Round
from hushtable_federation.visit import STUCK, Visit


class Rehearsal:
    """Sites and a coordinator with invented rows, and a round that is open for a day.

    The round is masked, with epsilon 1, unless the terms (as `Round.open` takes them) state
    otherwise; it has ``n_tables`` tables of 64 cells. ``lead`` are the coordinator's keys;
    ``keys``, ``books``, made in the folder, and ``sketches`` are by site.
    """

    def __init__(
        self,
        names: Sequence[str] = ("north", "south"),
        folder: str | os.PathLike[str] = ".",
        n_tables: int = 10,
        **terms: Any,
    ) -> None:
        schema = Schema(tuple(Feature.numeric(name, low=-5, high=5) for name in "xy"))
        plan = Plan.draw(schema, n_tables=n_tables, n_cells=64, random_state=0)
        self.lead, self.keys = Keys.generate("lead"), {name: Keys.generate(name) for name in names}
        cards = [keys.card for keys in self.keys.values()]
        asked: dict[str, Any] = {"epsilon": 1.0, "deadline": now() + timedelta(days=1)}
        self.round = Round.open(plan, cards, self.lead, **asked | terms)
        self.books, self.sketches = dict[str, Book](), dict[str, Sketch]()
        for seed, (name, keys) in enumerate(self.keys.items()):
            book = Book.create(Path(folder) / f"{name}.book", keys.card, epsilon=10.0)
            book.trust([self.lead.card], "coordinator")
            book.trust(cards)
            self.books[name] = book
            X = np.random.default_rng(seed).normal(size=(200, 2))
            self.sketches[name] = Sketch.from_data(plan, X)

    def site(self, name: str) -> OnlineSite:
        """Return an object that answers for a site online."""
        # Invented rows, each from a different person.
        policy = Policy(unattended=True, plans=(self.round.plan.plan_id,), persons=1)
        keys, book = self.keys[name], self.books[name]
        return OnlineSite(keys, book, lambda plan: self.sketches[name], policy=policy)

    def transport(self) -> Memory:
        """Return a transport to all sites."""
        return Memory({name: self.site(name).answer for name in self.keys})

    def close(self) -> None:
        """Close the books."""
        for book in self.books.values():
            book.close()


#: Answers; never answers; disappears after it sent its counts; answers after the deadline; dies at
#: its first visit, and returns; sends invalid shares.
Behaviour = Literal["comes", "away", "gone", "late", "killed", "lies"]


@dataclass(frozen=True)
class Scenario:
    """The parties of a rehearsal.

    Parameters
    ----------
    sites, away, late, liars, killed : int
        Number of sites; among them, sites that never answer or disappear after they sent their
        counts, that answer after the deadline, that send wrong shares, and that die at a write and
        return.
    tables : int
        Number of tables of 64 cells.
    seed : int or None
        Seed of the roles and the order of visits. Keys, noise and masks have no seed.

    Raises
    ------
    UsageError
        If too few sites answer for a result.
    """

    sites: int = 20
    away: int = 0
    late: int = 0
    liars: int = 0
    killed: int = 0
    tables: int = 200
    seed: int | None = None

    def __post_init__(self) -> None:
        true = self.sites - self.away - self.late - self.liars
        if true < self.least:
            raise UsageError(
                f"{self.sites} sites, {self.away} away, {self.late} late, {self.liars} lying: "
                f"{max(true, 0)} are left, and {self.least} are needed: give more sites, or fewer "
                "of these"
            )
        if self.killed > true:
            raise UsageError(
                f"{self.killed} killed: needs at most {true}, the number of sites left"
            )

    @property
    def least(self) -> int:
        """Return the number of sites needed for a result: more than half."""
        return self.sites // 2 + 1

    def fates(self, rng: random.Random) -> list[Behaviour]:
        """Return what happens to each site, in random order."""
        found: list[Behaviour] = [rng.choice(("away", "gone")) for _ in range(self.away)]
        counts: dict[Behaviour, int] = {
            "late": self.late,
            "lies": self.liars,
            "killed": self.killed,
        }
        for fate, n in counts.items():
            found += [fate] * n
        while len(found) < self.sites:
            found.append("comes")
        rng.shuffle(found)
        return found


@dataclass
class Participant:
    """A party of the rehearsal.

    Attributes
    ----------
    sent, read : int
        Bytes written to the folder, and read from it.
    visits : int
        Number of visits at which it wrote something: for a site, all except those that fetch the
        result.
    seconds : float
        Total time of all visits.
    counts : ndarray of shape (n_cells,), int64, or None
        For a site that answered: counts with its noise, which it never sends unmasked.
    """

    keys: Keys
    fate: Behaviour
    place: "MeteredDirectory"
    output: Path
    first: int = 1
    visits: int = 0
    seconds: float = 0.0
    over: bool = False
    stuck: bool = False
    counts: NDArray[np.int64] | None = None

    @property
    def name(self) -> str:
        """Return the name on its card."""
        return self.keys.card.name

    @property
    def sent(self) -> int:
        """Return the number of bytes that it wrote to the folder."""
        return self.place.sent

    @property
    def read(self) -> int:
        """Return the number of bytes that it read from the folder."""
        return self.place.got


class Killed(BaseException):
    """Ends a visit like kill -9: nothing is done after it."""


class MeteredDirectory(Directory):
    """A directory that counts bytes, and raises `Killed` at the chosen write."""

    sent = got = 0
    #: Number of writes until one kills; 0 for none.
    dies_at = 0
    dies_after = False

    def load(self, name: str, most: int) -> bytes | None:
        """As `Directory.load`."""
        content = super().load(name, most)
        self.got += len(content or b"")
        return content

    def save(self, name: str, content: bytes) -> None:
        """Write as `Directory.save`; raise `Killed` at the chosen write."""
        self.dies_at -= 1
        if self.dies_at == 0 and not self.dies_after:
            raise Killed
        super().save(name, content)
        self.sent += len(content)
        if self.dies_at == 0:
            raise Killed


class Lying(RoundFolder):
    """The folder of a round for a site that sends wrong shares, and signs them."""

    keys: Keys

    def add(self, step: str, sender: str, content: bytes) -> bool:
        """Write as `RoundFolder.add`, but change shares, always in the same way."""
        if step == "unmask":
            message = Message.read(content, self.keys.card)
            arrays = message.arrays | {"seeds": message.arrays["seeds"] ^ np.uint8(1)}
            content = Message.make(self.round, step, self.keys, message.body, arrays).content
        return super().add(step, sender, content)


#: Days until the deadline; until a late site answers; until the rehearsal ends.
_DEADLINE, _LATE, _END = 7, 9, 60
#: Probability of a visit on a day, after a site's first visit.
_COMES = 0.6
_RESULT = "result.hush"


class Event(NamedTuple):
    """A visit at which something happened."""

    at: datetime
    #: From 1.
    day: int
    name: str
    #: ``"visit"``, ``"killed"`` or ``"gone"``.
    what: str
    visit: Visit


@dataclass
class Play:
    """A round that is simulated from the first visit to the result.

    ``told`` is called with each `Event` as it happens, for visits at which something happened.

    Parameters
    ----------
    folder : Path
        An empty folder, for the folder of the round, ``round``, and one for each party.
    cast : Scenario
        The parties.

    Attributes
    ----------
    sites : list of Participant
    lead : Participant
        The coordinator.
    result : Result or None
        None until there is one.
    found_out : dict of str to str
        By site that cheated, what it did.
    days : int
        Days until no party had anything left to do.
    """

    folder: Path
    cast: Scenario
    told: Callable[[Event], None] = lambda _: None
    sites: list[Participant] = field(default_factory=list, init=False)
    lead: Participant = field(init=False)
    result: Result | None = field(default=None, init=False)
    found_out: dict[str, str] = field(default_factory=dict, init=False)
    days: int = field(default=0, init=False)
    _here: Rehearsal = field(init=False)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.cast.seed)
        names = [f"site{i + 1:02d}" for i in range(self.cast.sites)]
        (self.folder / "books").mkdir()
        (self.folder / "round").mkdir(mode=0o700)
        self._start = self._now = clock.now()
        self._here = Rehearsal(
            names, self.folder / "books", self.cast.tables, least=self.cast.least,
            deadline=self._start + timedelta(days=_DEADLINE), title="Rehearsal",
        )  # fmt: skip
        fates = self.cast.fates(self._rng)
        self.lead = self._player(self._here.lead, "comes")
        self.sites = [
            self._player(self._here.keys[name], fate)
            for name, fate in zip(names, fates, strict=True)
        ]

    def _player(self, keys: Keys, fate: Behaviour) -> Participant:
        output = self.folder / keys.card.name
        output.mkdir()
        place = MeteredDirectory(str(self.folder / "round"))
        first = _LATE if fate == "late" else self._rng.randint(1, _DEADLINE // 2)
        if fate == "killed":
            place.dies_at, place.dies_after = self._rng.randint(1, 2), self._rng.random() < 0.5
        return Participant(keys, fate, place, output, first)

    def run(self) -> None:
        """Run the rehearsal; raise `HushTableError` if an undisturbed party cannot continue."""
        try:
            with self._clock():
                post_round(Store(self.lead.place), self.round)
                while not self._all_over() and self.days < _END:
                    self.days += 1
                    self._day()
        finally:
            self.close()

    def close(self) -> None:
        """Close the books."""
        self._here.close()

    def _all_over(self) -> bool:
        return all(one.over for one in (self.lead, *self.sites) if one.fate not in ("away", "gone"))

    def _day(self) -> None:
        """Let all parties of a day make a visit, in random order."""
        order = [self.lead, *self.sites]
        self._rng.shuffle(order)
        for i, player in enumerate(order):
            self._now = self._start + timedelta(days=self.days - 1, minutes=10 * i)
            if player.over or (player is not self.lead and not self._comes(player)):
                continue
            self.visit(player)

    def _comes(self, player: Participant) -> bool:
        if player.fate == "away" or self.days < player.first:
            return False
        counting = player.counts is None and self.days <= _DEADLINE
        sure = self.days == player.first or player.fate == "killed" or counting
        return sure or self._rng.random() < _COMES

    def visit(self, player: Participant) -> None:
        """Let a party make a visit, and record its outcome."""
        began, what, visit = time.perf_counter(), "visit", Visit()
        try:
            visit = self._as_lead() if player is self.lead else self._as_site(player)
        except Killed:
            what = "killed"
        player.seconds += time.perf_counter() - began
        hindered = visit.state in (*STUCK, "left-out")
        has_result = visit.state == "done" or (hindered and (player.output / _RESULT).exists())
        player.over = has_result or (hindered and player.fate != "late")
        player.visits += bool(visit.posted or what == "killed")
        self.found_out |= visit.found_out
        stuck = hindered and not has_result and not player.stuck
        player.stuck = player.stuck or stuck
        if visit.posted or has_result or stuck or what == "killed":
            self.told(Event(self._now, self.days, player.name, what, visit))
        if player.fate == "gone" and "masked" in visit.posted:
            player.over = True
            self.told(Event(self._now, self.days, player.name, "gone", visit))

    # --- visits, as hushtable round sync makes them ---------------------------------------------

    def _as_lead(self) -> Visit:
        round_folder = self._posts(self.lead)
        output = self.lead.output / _RESULT
        journal = self.lead.output / "decisions.json"
        visit = CoordinatorVisit(round_folder, self.lead.keys, journal, output).run()
        if visit.state == "done":
            self.result = Result.load(output)
        return visit

    def _as_site(self, player: Participant) -> Visit:
        round_folder, online = self._posts(player), self._here.site(player.name)
        book = self._here.books[player.name]

        def begin() -> dict[str, bytes]:
            return {str(step): one for step, one in online.begin(round_folder.round).items()}

        output = player.output / _RESULT
        try:
            return SiteVisit(round_folder, player.keys.card, book, begin, online, output).run()
        finally:
            given = book.answer(round_folder.round.round_id)
            player.counts = None if given is None else given.sent

    def _posts(self, player: Participant) -> RoundFolder:
        store = Store(player.place)
        (found,) = rounds(store)
        if player.fate != "lies":
            return RoundFolder(found, store)
        round_folder = Lying(found, store)
        round_folder.keys = player.keys
        return round_folder

    @contextlib.contextmanager
    def _clock(self) -> Iterator[None]:
        """Make all parties use the simulated clock."""
        before = clock.read
        clock.read = lambda: self._now
        try:
            yield
        finally:
            clock.read = before

    # --- what came of it ------------------------------------------------------------------------

    @property
    def round(self) -> Round:
        """Return the round as it was opened."""
        return self._here.round

    @property
    def exact(self) -> bool:
        """Return whether the result equals, bit for bit, the sum of its sites' counts and noise.

        False until there is a result.
        """
        if self.result is None:
            return False
        total = np.zeros_like(self.result.counts.counts)
        for one in self.sites:
            if one.name in self.result.sites:
                if one.counts is None:
                    return False
                total += one.counts
        return bool(np.array_equal(total, self.result.counts.counts))

    @property
    def noise(self) -> tuple[float, float]:
        """Return the measured and the promised standard deviation of the noise on a cell."""
        if self.result is None:
            raise HushTableError(
                "there is no result, so its noise is unknown: run the rehearsal first"
            )
        true = np.zeros(self.result.counts.counts.shape)
        for name in self.result.sites:
            true += self._here.sketches[name].counts
        return float(np.std(self.result.counts.counts - true)), self.result.counts.ledger.noise_sd

    @property
    def vector(self) -> int:
        """Return the bytes of a site's masked counts, the least that it can send."""
        return 8 * self.round.plan.family.n_cells
