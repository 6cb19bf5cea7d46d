"""A round in a folder, each visit from files alone; and a folder that hides and delays files."""

import contextlib
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from hushtable_federation.book.book import Book
from hushtable_federation.folder.mailbox import Store
from hushtable_federation.folder.round_folder import RoundFolder, post_round, rounds
from hushtable_federation.keys import Keys
from hushtable_federation.online.site import OnlineSite
from hushtable_federation.result import Result
from hushtable_federation.visits import CoordinatorVisit, SiteVisit
from round_helpers import DEADLINE, T0, UNATTENDED, clock_at

#: From here on, the coordinator waits no longer for the keys of sites that are away.
HALF = T0 + (DEADLINE - T0) / 2 + timedelta(minutes=1)


class Clock:
    """Stands still until it is set; ``monkeypatch`` puts it in place of this machine's."""

    def __init__(self, monkeypatch, at=T0):
        self.at = at
        monkeypatch.setattr("hushtable_federation.clock.read", lambda: self.at)

    def __iadd__(self, time):
        self.at += time
        return self


class Folder:
    """A round in a folder; what a visit knows comes from files, each time.

    ``place`` opens the folder for a party, by name; by default the directory ``box``.
    """

    def __init__(self, consortium, round_, place=None):
        self.consortium, self.round = consortium, round_
        self.box = consortium.folder / "box"
        self.box.mkdir(exist_ok=True)
        self.place = place or (lambda name: Store.open(self.box))
        self.journal = consortium.folder / f"{round_.round_id[:16]}.json"
        self.lead = consortium.lead
        post_round(self.store("lead"), round_)

    def store(self, name):
        return self.place(name)

    def posts(self, name="lead"):
        store = self.store(name)
        (found,) = [
            one
            for one in rounds(store)
            if one.round_id == self.round.round_id and one.coordinator == self.lead.card
        ]
        return RoundFolder(found, store)

    def output(self, name):
        return self.consortium.folder / f"{name}.{self.round.round_id[:12]}.result.hush"

    def site(self, name, *, rows=True, policy=None):
        """Have a site visit; return its visit. Its policy allows the round, unless one is given."""
        policy = policy or replace(UNATTENDED, masks=self.round.terms.masked)
        site, posts = self.consortium.sites[name], self.posts(name)
        with Book.open(site.book.path, site.keys.card) as book:
            online = OnlineSite(site.keys, book, site.count, policy=policy)
            begin = partial(online.begin, posts.round)
            if not rows:
                begin = None
            output = self.output(name)
            return SiteVisit(posts, site.keys.card, book, begin, online, output).run()

    def visit(self, keys: Keys | None = None, journal: Path | None = None):
        """Have the coordinator visit; return its visit."""
        posts, output = self.posts(), self.output("lead")
        self.posts_seen = posts  # with what it set aside
        return CoordinatorVisit(posts, keys or self.lead, journal or self.journal, output).run()

    def sites(self, *away):
        """Have all sites visit but those away; return their visits."""
        names = [name for name in self.consortium.sites if name not in away]
        return {name: self.site(name) for name in names}

    def counted(self, *away):
        """Have all sites but those away visit until their counts are sent; return the visits."""
        self.sites(*away)
        if away:
            with clock_at(HALF):
                self.visit()
        return self.sites(*away)

    def result(self, name="lead"):
        return Result.load(self.output(name))

    def check(self):
        """Check that the result is the exact sum of what the books say was sent."""
        result = self.result()
        sent = [self.consortium.sites[name].sent(self.round) for name in result.sites]
        assert (result.counts.counts == sum(sent)).all()
        for site in self.consortium.sites.values():
            given = [one for one in site.book.answers() if one.round_id == self.round.round_id]
            assert len(given) <= 1
        return result

    def names(self, step=None, sender=None):
        """Return names of files in the directory, of a step and sender."""
        found = []
        for path in sorted(self.box.iterdir()):
            parts = path.name.split(".")
            if (step is None or parts[1:2] == [step]) and sender in (None, *parts[2:3]):
                found.append(path)
        return found

    def close(self):
        with contextlib.suppress(Exception):
            self.consortium.close()
