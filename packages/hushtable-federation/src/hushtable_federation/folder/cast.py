"""Who plays in a rehearsal: sites that come, are away or late, are killed, or lie."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import UsageError
from hushtable_federation.folder.directory import Directory
from hushtable_federation.folder.posts import Posts
from hushtable_federation.keys import Keys
from hushtable_federation.online.messages import Message

#: Comes; never comes; is gone once its counts are there; comes after the deadline; dies at its
#: first visit, and comes again; gives shares that are none.
Fate = Literal["comes", "away", "gone", "late", "killed", "lies"]


@dataclass(frozen=True)
class Cast:
    """Who plays.

    Parameters
    ----------
    sites, away, late, liars, killed : int
        Sites in all; of them, those that never come or are gone once their counts are there, that
        come after the deadline, that give wrong shares, and that die at a write and come again.
    tables : int
        Of 64 cells.
    seed : int or None
        Of who is what, and who comes when. Keys, noise and masks have none.

    Raises
    ------
    UsageError
        If a round of so few that answer can have no result.
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
                "of the others"
            )
        if self.killed > true:
            raise UsageError(f"{self.killed} killed: needs at most {true}, as many as are left")

    @property
    def least(self) -> int:
        """Sites without which there is no result: more than half."""
        return self.sites // 2 + 1

    def fates(self, rng: random.Random) -> list[Fate]:
        """Return what becomes of each site, in random order."""
        found: list[Fate] = [rng.choice(("away", "gone")) for _ in range(self.away)]
        counts: dict[Fate, int] = {"late": self.late, "lies": self.liars, "killed": self.killed}
        for fate, n in counts.items():
            found += [fate] * n
        while len(found) < self.sites:
            found.append("comes")
        rng.shuffle(found)
        return found


@dataclass
class Player:
    """A party of the rehearsal.

    Attributes
    ----------
    sent, read : int
        Bytes, written to the folder and read from it.
    visits : int
        At which it put something there: of a site, all but those by which it gets the result.
    seconds : float
        Of all visits.
    counts : ndarray of shape (n_cells,), int64, or None
        Of a site that answered: counts with its noise, which never leave it.
    """

    keys: Keys
    fate: Fate
    place: "Counted"
    output: Path
    first: int = 1
    visits: int = 0
    seconds: float = 0.0
    over: bool = False
    stuck: bool = False
    counts: NDArray[np.int64] | None = None

    @property
    def name(self) -> str:
        """On its card."""
        return self.keys.card.name

    @property
    def sent(self) -> int:
        """Bytes that it wrote to the folder."""
        return self.place.sent

    @property
    def read(self) -> int:
        """Bytes that it read from the folder."""
        return self.place.got


class Killed(BaseException):
    """Ends a visit as kill -9 does: nothing after it is done."""


@dataclass
class Counted:
    """A directory that counts bytes, and kills whoever writes when it is told to."""

    inner: Directory
    where: str = field(init=False)
    sent: int = 0
    got: int = 0
    #: Writes until the next one kills; none does at 0.
    dies_at: int = 0
    dies_after: bool = False

    def __post_init__(self) -> None:
        self.where = self.inner.where

    def look(self, wanted: Callable[[str], bool]) -> tuple[list[str], int]:
        """As `Directory.look`."""
        return self.inner.look(wanted)

    def subfolder(self, name: str) -> bool | None:
        """As `Directory.subfolder`."""
        return self.inner.subfolder(name)

    def load(self, name: str, most: int) -> bytes | None:
        """As `Directory.load`."""
        content = self.inner.load(name, most)
        self.got += len(content or b"")
        return content

    def save(self, name: str, content: bytes) -> None:
        """As `Directory.save`; raises `Killed` where that is due."""
        self.dies_at -= 1
        if self.dies_at == 0 and not self.dies_after:
            raise Killed
        self.inner.save(name, content)
        self.sent += len(content)
        if self.dies_at == 0:
            raise Killed


class Lying(Posts):
    """The files of a round to a site that gives wrong shares, and signs them."""

    keys: Keys

    def add(self, step: str, sender: str, content: bytes) -> bool:
        """As `Posts.add`; shares are changed, the same way each time."""
        if step == "unmask":
            said = Message.read(content, self.keys.card)
            arrays = said.arrays | {"shares": said.arrays["shares"] ^ np.uint8(1)}
            content = Message.make(self.round, step, self.keys, said.body, arrays).content
        return super().add(step, sender, content)
