"""Time of a secure sum, for each site and for the coordinator, without and with dropouts.

By file: what a site does beyond counting and noise (check the round, masks, signature), and what
the coordinator does (check, sum). Online: all steps of a site, with its book on disk, and the
coordinator's, over a transport that costs nothing; and what a site sends and reads, against the
masked vector alone. One process, one thread. The noise is drawn
by a fast stand-in and not timed: OpenDP draws 100,000 counts in about a second, masks or not.
"""

import argparse
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np

import common
from common import Target
from hushtable import Feature, Plan, Schema, Sketch
from hushtable_federation.book.book import Book
from hushtable_federation.keys import Keys
from hushtable_federation.online.carriers import Memory
from hushtable_federation.online.secure_sum import SecureSum
from hushtable_federation.online.site import OnlineSite
from hushtable_federation.policy import Policy
from hushtable_federation.reply import Reply
from hushtable_federation.result import Collection
from hushtable_federation.round import Round, now

#: Counters of a vector, and tables of 256 cells that make them up.
TABLES = 391
SITES = (20, 100)
SHARES_LOST = (0.0, 0.05, 0.3)


@dataclass
class Timing:
    """Seconds of one sum; whether it was the plain one, to the bit."""

    form: str
    sites: int
    lost: int
    site: float
    coordinator: float
    exact: bool
    counters: int
    #: Bytes that a site sends and reads, of those of the masked vector.
    sent: float
    read: float


@dataclass
class Clock:
    """Seconds by name, and seconds that do not count."""

    spent: dict[str, float] = field(default_factory=dict)
    noise: float = 0.0
    #: By name, bytes that were sent and read.
    sent: Counter[str] = field(default_factory=Counter)
    read: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, start: float, noise_before: float) -> None:
        seconds = time.perf_counter() - start - (self.noise - noise_before)
        self.spent[name] = self.spent.get(name, 0.0) + seconds


class Consortium:
    def __init__(self, folder: Path, sites: int, tables: int) -> None:
        self.clock = Clock()
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

    def exact(self, round_: Round, inside: Sequence[str]) -> np.ndarray:
        return sum(self.books[name].answer(round_.round_id).sent for name in inside)


def by_file(those: Consortium) -> Timing:
    round_ = those.open(len(those.keys), "files")
    clock = those.clock = Clock()
    sent = {}
    for name, keys in those.keys.items():
        start, noise = time.perf_counter(), clock.noise
        asked = Round.from_bytes(round_.content, "round")
        reply = Reply(asked, keys, those.books[name], data_set="files")
        sent[name] = reply.submission(those.sketch)
        clock.add(name, start, noise)
        clock.read[name] += len(round_.content)
        clock.sent[name] += len(sent[name])
    start = time.perf_counter()
    collection = Collection(Round.from_bytes(round_.content, "round"))
    for name, content in sent.items():
        collection.add(name, content)
    result = collection.result()
    coordinator = time.perf_counter() - start
    exact = np.array_equal(result.counts, those.exact(round_, list(sent)))
    return _timing("files", those, 0, clock, coordinator, exact)


def online(those: Consortium, share_lost: float) -> Timing:
    names = list(those.keys)
    lost = names[: round(share_lost * len(names))]
    round_ = those.open(round(0.7 * len(names)), f"online, {share_lost}")
    clock = those.clock = Clock()
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
        if asked[name] >= 2 and name in lost:  # gone when the masked counts are due
            return None
        start, noise = time.perf_counter(), clock.noise
        said = agents[name].answer(request)
        clock.add(name, start, noise)
        clock.read[name] += len(request)
        clock.sent[name] += len(said)
        return said

    sites = Memory({name: partial(answer, name) for name in agents})
    start = time.perf_counter()
    result = SecureSum(round_, those.lead, sites).run()
    coordinator = time.perf_counter() - start - sum(clock.spent.values()) - clock.noise
    inside = [name for name in names if name not in lost]
    exact = np.array_equal(result.counts, those.exact(round_, inside))
    return _timing("online", those, len(lost), clock, coordinator, exact, inside)


def _timing(form, those, lost, clock, coordinator, exact, inside=None) -> Timing:
    names = inside or list(clock.spent)
    n = len(those.sketch.counts)
    site, sent, read = (
        statistics.median(by_name[name] for name in names)
        for by_name in (clock.spent, clock.sent, clock.read)
    )
    return Timing(
        form, len(those.keys), lost, site, coordinator, exact, n, sent / (8 * n), read / (8 * n)
    )


def time_all(sites: Sequence[int] = SITES, tables: int = TABLES) -> list[Timing]:
    return [timing for n in sites for timing in time_sites(n, tables)]


def time_sites(sites: int, tables: int) -> list[Timing]:
    timings = []
    with tempfile.TemporaryDirectory() as folder:
        those = Consortium(Path(folder), sites, tables)
        with mock.patch("hushtable.privacy.noise.add_noise", those.add_noise):
            timings.append(by_file(those))
            common.progress("files")
            for share in SHARES_LOST:
                timings.append(online(those, share))
                common.progress(f"online, {share:.0%} lost")
        for book in those.books.values():
            book.close()
    return timings


def table(timings: Sequence[Timing]) -> str:
    rows = [
        (
            t.form, f"{t.sites}", f"{t.lost}", f"{t.counters:,}", f"{t.site:.3f}",
            f"{t.coordinator:.2f}", f"{t.sent:.2f}", f"{t.read:.2f}", "yes" if t.exact else "NO",
        )
        for t in timings
    ]  # fmt: skip
    header = (
        "form", "sites", "lost", "counters", "a site, s", "coordinator, s", "sent / vector",
        "read / vector", "equals the plain sum",
    )  # fmt: skip
    return common.markdown_table(header, rows)


def targets(timings: Sequence[Timing]) -> list[Target]:
    found = []
    for t in timings:
        claim = f"{t.form}, {t.sites} sites, {t.lost} lost"
        found += [
            Target(
                f"{claim}: seconds of a site", t.site, "<=", 0.3 if t.sites <= 20 else 0.5, ".3f"
            ),
            Target(
                f"{claim}: seconds of the coordinator",
                t.coordinator,
                "<=",
                3.0,
                ".2f",
            ),
            Target(
                f"{claim}: sent, of the masked vector",
                t.sent,
                "<=",
                1.3 if t.sites <= 20 else 2.0,
                ".2f",
            ),
            Target(f"{claim}: equals the plain sum", float(t.exact), ">=", 1.0, ".0f"),
        ]
    return found


def main(arguments: argparse.Namespace) -> int:
    timings = time_all()
    print(table(timings))
    return common.finish(targets(timings))


if __name__ == "__main__":
    common.run(argparse.ArgumentParser(description=__doc__), main)
