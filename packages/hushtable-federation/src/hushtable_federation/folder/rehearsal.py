"""A whole round in a folder with invented rows: sites away, late, killed and lying.

The visits are those of ``hushtable round sync``; only the clock, the rows and who comes when are
invented. A site that is killed dies at a write into the folder, before or after it.
"""

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hushtable.errors import HushTableError
from hushtable_federation import clock
from hushtable_federation.folder.cast import Cast, Counted, Fate, Killed, Lying, Player
from hushtable_federation.folder.coordinator import CoordinatorVisit
from hushtable_federation.folder.directory import Directory
from hushtable_federation.folder.posts import Posts, post_round, rounds
from hushtable_federation.folder.site import SiteVisit
from hushtable_federation.folder.store import Store
from hushtable_federation.folder.visits import Visit
from hushtable_federation.keys import Keys
from hushtable_federation.rehearsal import Rehearsal
from hushtable_federation.result import Result
from hushtable_federation.round import Round

#: Days until the deadline; until a site that is late comes; until nobody plays on.
_DEADLINE, _LATE, _END = 7, 9, 60
#: Chance that a site comes on a day, after its first.
_COMES = 0.6


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
    """A round that is played from the first visit to the result.

    Parameters
    ----------
    folder : Path
        Empty; gets the folder of the round, ``round``, and one of each party.
    cast : Cast
        Who plays.
    told : callable
        Takes each `Event` as it happens, of visits at which something did.

    Attributes
    ----------
    sites : list of Player
    lead : Player
        The coordinator.
    result : Result or None
        None as long as there is none.
    found_out : dict of str to str
        By site that was found out, what it did.
    days : int
        Until nobody who comes had anything left to do.
    """

    folder: Path
    cast: Cast
    told: Callable[[Event], None] = lambda _: None
    sites: list[Player] = field(default_factory=list, init=False)
    lead: Player = field(init=False)
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

    def _player(self, keys: Keys, fate: Fate) -> Player:
        output = self.folder / keys.card.name
        output.mkdir()
        place = Counted(Directory(str(self.folder / "round")))
        first = _LATE if fate == "late" else self._rng.randint(1, _DEADLINE - 1)
        if fate == "killed":
            place.dies_at, place.dies_after = self._rng.randint(1, 2), self._rng.random() < 0.5
        return Player(keys, fate, place, output, first)

    def run(self) -> None:
        """Play; raises `HushTableError` if a party cannot go on that nothing was done to."""
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
        """Have whoever comes on a day make a visit, in random order."""
        order = [self.lead, *self.sites]
        self._rng.shuffle(order)
        for i, player in enumerate(order):
            self._now = self._start + timedelta(days=self.days - 1, minutes=10 * i)
            if player.over or (player is not self.lead and not self._comes(player)):
                continue
            self.visit(player)

    def _comes(self, player: Player) -> bool:
        if player.fate == "away" or self.days < player.first:
            return False
        sure = self.days == player.first or player.fate == "killed"
        return sure or self._rng.random() < _COMES

    def visit(self, player: Player) -> None:
        """Have a party make a visit; note how it went."""
        began, what, visit = time.perf_counter(), "visit", Visit()
        try:
            visit = self._as_lead() if player is self.lead else self._as_site(player)
        except Killed:
            what = "killed"
        player.seconds += time.perf_counter() - began
        player.over = visit.state == "done" or (visit.state == "failed" and player.fate != "late")
        player.visits += bool(visit.posted or what == "killed")
        self.found_out |= visit.found_out
        stuck = visit.state == "failed" and not player.stuck
        player.stuck = player.stuck or stuck
        if visit.posted or visit.state == "done" or stuck or what == "killed":
            self.told(Event(self._now, self.days, player.name, what, visit))
        if player.fate == "gone" and visit.posted:
            player.over = True
            self.told(Event(self._now, self.days, player.name, "gone", visit))

    # --- visits, as hushtable round sync makes them ---------------------------------------------

    def _as_lead(self) -> Visit:
        posts = self._posts(self.lead)
        output = self.lead.output / "result.hush"
        journal = self.lead.output / "decisions.json"
        visit = CoordinatorVisit(posts, self.lead.keys, journal, output).run()
        if visit.state == "done":
            self.result = Result.load(output)
        return visit

    def _as_site(self, player: Player) -> Visit:
        posts, online = self._posts(player), self._here.site(player.name)
        book = self._here.books[player.name]

        def begin() -> dict[str, bytes]:
            return {str(step): one for step, one in online.begin(posts.round).items()}

        output = player.output / "result.hush"
        try:
            return SiteVisit(posts, player.keys.card, book, begin, online, output).run()
        finally:
            given = book.answer(posts.round.round_id)
            player.counts = None if given is None else given.sent

    def _posts(self, player: Player) -> Posts:
        store = Store(player.place)
        (found,) = rounds(store)
        if player.fate != "lies":
            return Posts(found, store)
        posts = Lying(found, store)
        posts.keys = player.keys
        return posts

    @contextlib.contextmanager
    def _clock(self) -> Iterator[None]:
        """Have all parties read the clock of the play."""
        before = clock.read
        clock.read = lambda: self._now
        try:
            yield
        finally:
            clock.read = before

    # --- what came of it ------------------------------------------------------------------------

    @property
    def round(self) -> Round:
        """As it was opened."""
        return self._here.round

    @property
    def exact(self) -> bool:
        """Whether the result is, to the bit, the sum of what the sites in it counted, with noise.

        False as long as there is none.
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
        """The noise on a cell of the result, as measured and as promised; standard deviations."""
        if self.result is None:
            raise HushTableError("there is no result: nothing is known of its noise")
        true = np.zeros(self.result.counts.counts.shape)
        for name in self.result.sites:
            true += self._here.sketches[name].counts
        return float(np.std(self.result.counts.counts - true)), self.result.counts.ledger.noise_sd

    @property
    def vector(self) -> int:
        """Bytes of a site's masked counts: less cannot be sent."""
        return 8 * self.round.layout.n_cells
