"""Bytes and time of a round in a folder: what a site sends and reads, and how long a visit takes.

Each visit begins from files, as ``hushtable round sync`` does, in a folder on this disk. Beyond
counting and noise: rows are counted before, and the noise is drawn by a fast stand-in that is not
timed. One process, one thread.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np

import common
from common import Target
from hushtable_federation.book.book import Book
from hushtable_federation.folder.mailbox import Directory, Store
from hushtable_federation.folder.round_folder import RoundFolder, post_round, rounds
from hushtable_federation.folder.visits import CoordinatorVisit, SiteVisit, Visit
from hushtable_federation.online.site import OnlineSite
from hushtable_federation.result import Result
from hushtable_federation.round import Round
from secure_sum import TABLES, Clock, Consortium

SITES = 20
SHARES_LOST = (0.0, 0.3)


class Counted(Directory):
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
class Timing:
    """Of a round: seconds of the longest visits, bytes of a site until it has answered all."""

    lost: int
    visits: int
    site: float
    coordinator: float
    masked: int
    sent: float
    read: float
    exact: bool


class Folder:
    """A round in a folder, and what its parties spend on it."""

    def __init__(self, those: Consortium, folder: Path, round_: Round) -> None:
        self.those, self.round, self.folder = those, round_, folder
        self.box = folder / "box"
        self.box.mkdir(parents=True)
        post_round(Store.open(self.box), round_)
        self.seconds: dict[str, list[float]] = {}
        self.sent: dict[str, list[int]] = {}
        self.read: dict[str, list[int]] = {}

    def visit(self, name: str) -> Visit:
        """Have a party visit."""
        those, place = self.those, Counted(str(self.box))
        start, noise = time.perf_counter(), those.clock.noise
        (found,) = rounds(store := Store(place))
        posts, output = RoundFolder(found, store), self.folder / f"{name}.result.hush"
        if name == "lead":
            visit = CoordinatorVisit(posts, those.lead, self.folder / "journal", output).run()
        else:
            keys = those.keys[name]
            with Book.open(those.books[name].path, keys.card) as book:
                online = OnlineSite(
                    keys, book, lambda plan: those.sketch, policy=those.policy,
                    data_set=self.round.title,
                )  # fmt: skip
                begin = partial(online.begin, posts.round)
                visit = SiteVisit(posts, keys.card, book, begin, online, output).run()
        spent = time.perf_counter() - start - (those.clock.noise - noise)
        for kind, value in (("seconds", spent), ("sent", place.sent), ("read", place.read)):
            getattr(self, kind).setdefault(name, []).append(value)
        return visit


def run(those: Consortium, folder: Path, share_lost: float) -> Timing:
    """Run a round of which some sites never answer."""
    names = list(those.keys)
    lost = names[: round(share_lost * len(names))]
    here = [name for name in names if name not in lost]
    round_ = those.open(round(0.7 * len(names)), f"folder, {share_lost}")
    those.clock = Clock()
    one, visits, state = Folder(those, folder, round_), 0, ""
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
    return Timing(
        len(lost), visits, statistics.median(sites), max(one.seconds["lead"]), masked,
        statistics.median(sent), statistics.median(read), exact,
    )  # fmt: skip


def time_all(sites: int = SITES, tables: int = TABLES) -> list[Timing]:
    """Return what rounds with and without lost sites take."""
    timings = []
    with tempfile.TemporaryDirectory() as folder:
        those = Consortium(Path(folder), sites, tables)
        with mock.patch("hushtable.privacy.noise.add_noise", those.add_noise):
            for share in SHARES_LOST:
                timings.append(run(those, Path(folder) / f"{share}", share))
                common.progress(f"{share:.0%} lost")
        for book in those.books.values():
            book.close()
    return timings


def table(timings: Sequence[Timing]) -> str:
    """Return the figures for people."""
    rows = [
        (
            f"{t.lost}", f"{t.visits}", f"{t.site:.2f}", f"{t.coordinator:.2f}",
            f"{t.masked / 1e3:,.0f}", f"{t.sent / 1e3:,.0f}", f"{t.read / 1e3:,.0f}",
            f"{t.sent / t.masked:.2f}", "yes" if t.exact else "NO",
        )
        for t in timings
    ]  # fmt: skip
    header = (
        "lost", "visits", "a site's longest, s", "coordinator's longest, s", "masked vector, kB",
        "a site sends, kB", "and reads, kB", "sent / masked", "equals the plain sum",
    )  # fmt: skip
    return common.markdown_table(header, rows)


def targets(timings: Sequence[Timing]) -> list[Target]:
    """Return what has to hold."""
    found = []
    for t in timings:
        claim = f"{SITES} sites in a folder, {t.lost} lost"
        found += [
            Target(f"{claim}: visits of a site", t.visits, "<=", 3 if t.lost else 2, ".0f"),
            Target(f"{claim}: bytes sent by the masked vector's", t.sent / t.masked, "<=", 1.3),
            Target(f"{claim}: seconds of a site's longest visit", t.site, "<=", 0.3, ".3f"),
            Target(f"{claim}: seconds of the coordinator's", t.coordinator, "<=", 3.0, ".2f"),
            Target(f"{claim}: equals the plain sum", float(t.exact), ">=", 1.0, ".0f"),
        ]
    return found


def main(arguments: argparse.Namespace) -> int:
    """Print the figures."""
    timings = time_all()
    print(table(timings))
    return common.finish(targets(timings))


if __name__ == "__main__":
    common.run(argparse.ArgumentParser(description=__doc__), main)
