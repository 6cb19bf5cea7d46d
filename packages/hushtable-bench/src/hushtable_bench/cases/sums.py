"""Measure the time of a secure sum for each site and the coordinator, with and without dropouts.

`secure_sum`: all steps of a site, with its book on disk, and of the coordinator, over a transport
without cost; and the bytes that a site sends and reads, as multiples of the masked vector.
`folder`: each visit begins from files, as in ``hushtable round sync``, in a folder on this disk.
There is one process with one thread. A fast substitute draws the noise, which is not timed: OpenDP
draws 100,000 counts in about a second, with or without masks.
"""

import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from hushtable import Feature, Plan, Schema, Sketch
from hushtable_bench.runner import CaseRun, progress
from hushtable_federation.book.book import Book
from hushtable_federation.clock import now
from hushtable_federation.folder.coordinator_visit import CoordinatorVisit
from hushtable_federation.folder.mailbox import Directory, Store
from hushtable_federation.folder.round_folder import RoundFolder, post_round, rounds
from hushtable_federation.folder.site_visit import SiteVisit
from hushtable_federation.keys import Keys
from hushtable_federation.online.carriers import Memory
from hushtable_federation.online.secure_sum import SecureSum
from hushtable_federation.online.site import OnlineSite
from hushtable_federation.policy import Policy
from hushtable_federation.result import Result
from hushtable_federation.round import Round
from hushtable_federation.visit import Visit

#: Counters of a vector, and the tables of 256 cells that contain them.
TABLES = 391
SITES = (20, 100)
SHARES_LOST = (0.0, 0.05, 0.3)


@dataclass
class SumTiming:
    """Seconds of one sum, and whether it is bit-identical to the plain sum."""

    form: str
    sites: int
    lost: int
    site: float
    coordinator: float
    exact: bool
    counters: int
    #: Bytes that a site sends and reads, as multiples of the masked vector.
    sent: float
    read: float


@dataclass
class PartyClock:
    """Seconds by name, and seconds that do not count."""

    spent: dict[str, float] = field(default_factory=dict)
    noise: float = 0.0
    #: By name, bytes that were sent and read.
    sent: Counter[str] = field(default_factory=Counter)
    read: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, start: float, noise_before: float) -> None:
        seconds = time.perf_counter() - start - (self.noise - noise_before)
        self.spent[name] = self.spent.get(name, 0.0) + seconds


class TimedConsortium:
    def __init__(self, folder: Path, sites: int, tables: int) -> None:
        self.clock = PartyClock()
        schema = Schema([Feature.numeric(f"x{j}", low=-5, high=5) for j in range(4)])
        self.plan = Plan.draw(
            schema, n_tables=tables, n_cells=256, min_depth=8, max_depth=8, random_state=0
        )
        X = np.random.default_rng(0).normal(size=(100, 4))
        self.sketch = Sketch.from_data(self.plan, X)
        self.lead = Keys.generate("lead")
        self.keys = {f"s{i:03d}": Keys.generate(f"s{i:03d}") for i in range(sites)}
        self.books = {
            name: Book.create(folder / f"{name}.book", keys.card, epsilon=20.0)
            for name, keys in self.keys.items()
        }
        cards = [keys.card for keys in self.keys.values()]
        for book in self.books.values():
            book.trust([self.lead.card], "coordinator")
            book.trust(cards)
        self.policy = Policy(unattended=True, persons=1, features=schema.features)
        self._rng = np.random.default_rng(1)

    def open(self, least: int, title: str) -> Round:
        cards = [keys.card for keys in self.keys.values()]
        deadline = now() + timedelta(days=1)
        return Round.open(
            self.plan, cards, self.lead, epsilon=1.0, deadline=deadline, least=least, title=title
        )

    def add_noise(self, counts, mechanism, scale, *, progress=None):
        start = time.perf_counter()
        noised = counts + np.rint(self._rng.normal(0.0, scale, len(counts))).astype(np.int64)
        self.clock.noise += time.perf_counter() - start
        return noised

    def exact(self, round_: Round, inside: Sequence[str]) -> Any:
        return sum(self.books[name].answer(round_.round_id).sent for name in inside)


def online(those: TimedConsortium, share_lost: float) -> SumTiming:
    names = list(those.keys)
    lost = names[: round(share_lost * len(names))]
    round_ = those.open(round(0.7 * len(names)), f"online, {share_lost}")
    clock = those.clock = PartyClock()
    agents = {
        name: OnlineSite(
            keys,
            those.books[name],
            lambda plan: those.sketch,
            policy=those.policy,
            data_set=round_.title,
        )
        for name, keys in those.keys.items()
    }
    asked: Counter[str] = Counter()

    def answer(name: str, request: bytes) -> bytes | None:
        asked[name] += 1
        if asked[name] >= 2 and name in lost:  # drops out when the masked counts are due
            return None
        start, noise = time.perf_counter(), clock.noise
        record = agents[name].answer(request)
        clock.add(name, start, noise)
        clock.read[name] += len(request)
        clock.sent[name] += len(record)
        return record

    sites = Memory({name: partial(answer, name) for name in agents})
    start = time.perf_counter()
    result = SecureSum(round_, those.lead, sites).run()
    coordinator = time.perf_counter() - start - sum(clock.spent.values()) - clock.noise
    inside = [name for name in names if name not in lost]
    exact = np.array_equal(result.counts, those.exact(round_, inside))
    return _timing("online", those, len(lost), clock, coordinator, exact, inside)


def _timing(
    form: str,
    those: Any,
    lost: int,
    clock: Any,
    coordinator: float,
    exact: bool,
    inside: Any = None,
) -> SumTiming:
    names = inside or list(clock.spent)
    n = len(those.sketch.counts)
    site, sent, read = (
        statistics.median(by_name[name] for name in names)
        for by_name in (clock.spent, clock.sent, clock.read)
    )
    return SumTiming(
        form, len(those.keys), lost, site, coordinator, exact, n, sent / (8 * n), read / (8 * n)
    )


def time_all(sites: Sequence[int] = SITES, tables: int = TABLES) -> list[SumTiming]:
    return [timing for n in sites for timing in time_sites(n, tables)]


def time_sites(sites: int, tables: int) -> list[SumTiming]:
    timings = []
    with tempfile.TemporaryDirectory() as folder:
        those = TimedConsortium(Path(folder), sites, tables)
        with mock.patch("hushtable.privacy.mechanisms.add_noise", those.add_noise):
            for share in SHARES_LOST:
                timings.append(online(those, share))
                progress(f"online, {share:.0%} lost")
        for book in those.books.values():
            book.close()
    return timings


FOLDER_SITES = 20
FOLDER_SHARES_LOST = (0.0, 0.3)


class CountedDirectory(Directory):
    """A directory that counts bytes."""

    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.read = self.sent = 0

    def load(self, name: str, most: int) -> bytes | None:
        """Read."""
        content = super().load(name, most)
        self.read += len(content or b"")
        return content

    def save(self, name: str, content: bytes) -> None:
        """Write."""
        super().save(name, content)
        self.sent += len(content)


@dataclass
class FolderTiming:
    """Seconds of the longest visits in a round, and bytes of a site until it has answered all."""

    lost: int
    visits: int
    site: float
    coordinator: float
    masked: int
    sent: float
    read: float
    exact: bool


class RoundInFolder:
    """A round in a folder, and the costs of its parties."""

    def __init__(self, those: TimedConsortium, folder: Path, round_: Round) -> None:
        self.those, self.round, self.folder = those, round_, folder
        self.box = folder / "box"
        self.box.mkdir(parents=True)
        post_round(Store.open(self.box), round_)
        self.seconds: dict[str, list[float]] = {}
        self.sent: dict[str, list[int]] = {}
        self.read: dict[str, list[int]] = {}

    def visit(self, name: str) -> Visit:
        """Run a visit of a party."""
        those, place = self.those, CountedDirectory(str(self.box))
        start, noise = time.perf_counter(), those.clock.noise
        (found,) = rounds(store := Store(place))
        round_folder, output = RoundFolder(found, store), self.folder / f"{name}.result.hush"
        if name == "lead":
            visit = CoordinatorVisit(
                round_folder, those.lead, self.folder / "journal.json", output
            ).run()
        else:
            keys = those.keys[name]
            with Book.open(those.books[name].path, keys.card) as book:
                online = OnlineSite(
                    keys, book, lambda plan: those.sketch, policy=those.policy,
                    data_set=self.round.title,
                )  # fmt: skip
                begin = partial(online.begin, round_folder.round)
                visit = SiteVisit(round_folder, keys.card, book, begin, online, output).run()
        spent = time.perf_counter() - start - (those.clock.noise - noise)
        for kind, value in (("seconds", spent), ("sent", place.sent), ("read", place.read)):
            getattr(self, kind).setdefault(name, []).append(value)
        return visit


def sync_round(those: TimedConsortium, folder: Path, share_lost: float) -> FolderTiming:
    """Run a round in which some sites never answer."""
    names = list(those.keys)
    lost = names[: round(share_lost * len(names))]
    here = [name for name in names if name not in lost]
    round_ = those.open(round(0.7 * len(names)), f"folder, {share_lost}")
    those.clock = PartyClock()
    one, visits, state = RoundInFolder(those, folder, round_), 0, ""
    late = datetime.now(UTC) + timedelta(days=2)
    while state != "done":
        visits += 1
        for name in here:
            one.visit(name)
        with mock.patch("hushtable_federation.clock.read", return_value=late):
            state = one.visit("lead").state
    result = Result.load(one.folder / "lead.result.hush").counts
    exact = np.array_equal(result.counts, those.exact(round_, here))
    sites = [max(one.seconds[name]) for name in here]
    sent, read = ([sum(kind[name]) for name in here] for kind in (one.sent, one.read))
    masked = max(path.stat().st_size for path in one.box.glob("*.masked.*"))
    return FolderTiming(
        len(lost), visits, statistics.median(sites), max(one.seconds["lead"]), masked,
        statistics.median(sent), statistics.median(read), exact,
    )  # fmt: skip


def time_folder(sites: int = FOLDER_SITES, tables: int = TABLES) -> list[FolderTiming]:
    """Return the costs of rounds with and without lost sites."""
    timings = []
    with tempfile.TemporaryDirectory() as folder:
        those = TimedConsortium(Path(folder), sites, tables)
        with mock.patch("hushtable.privacy.mechanisms.add_noise", those.add_noise):
            for share in FOLDER_SHARES_LOST:
                timings.append(sync_round(those, Path(folder) / f"{share}", share))
                progress(f"{share:.0%} lost")
        for book in those.books.values():
            book.close()
    return timings


# --- the runs -------------------------------------------------------------------------------------


def secure_sum(run: CaseRun, *, sites: Sequence[int] = SITES, tables: int = TABLES) -> None:
    """Time secure sums with and without dropouts."""
    found = [timing for n in sites for timing in time_sites(n, tables)]
    run.table(
        {
            "form": "{t.form}", "sites": "{t.sites}", "lost": "{t.lost}",
            "counters": "{t.counters:,}", "a site, s": "{t.site:.3f}",
            "coordinator, s": "{t.coordinator:.2f}", "sent / vector": "{t.sent:.2f}",
            "read / vector": "{t.read:.2f}", "equals the plain sum": "{t.exact}",
        }, found,
    )  # fmt: skip
    for t in found:
        claim, few = f"{t.form}, {t.sites} sites, {t.lost} lost", t.sites <= 20
        run.hold(f"{claim}: seconds of a site", t.site, "<=", 0.3 if few else 0.5, ".3f")
        run.hold(f"{claim}: seconds of the coordinator", t.coordinator, "<=", 3.0, ".2f")
        run.hold(f"{claim}: sent, of the masked vector", t.sent, "<=", 1.3 if few else 2.0, ".2f")
        run.hold(f"{claim}: equals the plain sum", float(t.exact), ">=", 1.0, ".0f")


def folder(run: CaseRun, *, sites: int = FOLDER_SITES, tables: int = TABLES) -> None:
    """Measure bytes and time of a round in a folder."""
    found = time_folder(sites, tables)
    run.table(
        {
            "lost": "{t.lost}", "visits": "{t.visits}", "a site's longest, s": "{t.site:.2f}",
            "coordinator's longest, s": "{t.coordinator:.2f}",
            "masked vector, bytes": "{t.masked:,}", "a site sends, bytes": "{t.sent:,.0f}",
            "and reads, bytes": "{t.read:,.0f}", "equals the plain sum": "{t.exact}",
        }, found,
    )  # fmt: skip
    for t in found:
        claim = f"{sites} sites in a folder, {t.lost} lost"
        run.hold(f"{claim}: visits of a site", t.visits, "<=", 3 if t.lost else 2, ".0f")
        run.hold(f"{claim}: bytes sent by the masked vector's", t.sent / t.masked, "<=", 1.3)
        run.hold(f"{claim}: seconds of a site's longest visit", t.site, "<=", 0.3, ".3f")
        run.hold(f"{claim}: seconds of the coordinator's", t.coordinator, "<=", 3.0, ".2f")
        run.hold(f"{claim}: equals the plain sum", float(t.exact), ">=", 1.0, ".0f")
