"""Rounds of sites with made-up rows: in one process, and in a folder."""

from datetime import timedelta
from pathlib import Path

import numpy as np

from hushtable import Feature, Plan, Schema, Sketch
from hushtable_federation.book.book import Book
from hushtable_federation.clock import now
from hushtable_federation.folder.mailbox import Store
from hushtable_federation.folder.round_folder import RoundFolder, post_round
from hushtable_federation.keys import Keys
from hushtable_federation.online.carriers import Memory
from hushtable_federation.online.site import OnlineSite
from hushtable_federation.policy import Policy
from hushtable_federation.round import Round
from hushtable_federation.state import RoundState
from hushtable_federation.visits import CoordinatorVisit, SiteVisit


class Rehearsal:
    """A round that is open for a day, masked unless the terms state otherwise.

    ``lead`` are the coordinator's keys; ``keys``, ``books`` and ``sketches`` are by site.
    """

    def __init__(self, names=("north", "south"), folder=".", n_tables=10, **terms):
        schema = Schema(tuple(Feature.numeric(name, low=-5, high=5) for name in "xy"))
        plan = Plan.draw(schema, n_tables=n_tables, n_cells=64, random_state=0)
        self.lead, self.keys = Keys.generate("lead"), {name: Keys.generate(name) for name in names}
        cards = [keys.card for keys in self.keys.values()]
        asked = {"epsilon": 1.0, "deadline": now() + timedelta(days=1)}
        self.round = Round.open(plan, cards, self.lead, **asked | terms)
        self.books, self.sketches = {}, {}
        for seed, (name, keys) in enumerate(self.keys.items()):
            book = Book.create(Path(folder) / f"{name}.book", keys.card, epsilon=10.0)
            book.trust([self.lead.card], "coordinator")
            book.trust(cards)
            self.books[name] = book
            X = np.random.default_rng(seed).normal(size=(200, 2))
            self.sketches[name] = Sketch.from_data(plan, X)

    def site(self, name):
        """Return an object that answers for a site online."""
        policy = Policy(unattended=True, plans=(self.round.plan.plan_id,), persons=1)
        count = lambda round_: self.sketches[name]  # noqa: E731
        return OnlineSite(self.keys[name], self.books[name], count, policy=policy)

    def transport(self):
        """Return a transport to all sites."""
        return Memory({name: self.site(name).answer for name in self.keys})

    def close(self):
        """Close the books."""
        for book in self.books.values():
            book.close()


class FolderRound(Rehearsal):
    """A round of so many sites in a folder, for a week; a party acts when it is called."""

    def __init__(self, folder, k):
        (folder / "books").mkdir()
        (folder / "round").mkdir(mode=0o700)
        names, until = [f"site{i + 1:02d}" for i in range(k)], now() + timedelta(days=7)
        super().__init__(names, folder / "books", 5, least=k // 2 + 1, deadline=until)
        self.folder = folder
        post_round(self.open().store, self.round)

    def open(self):
        """Return the round's folder, as anyone opens it."""
        return RoundFolder(self.round, Store.open(self.folder / "round"))

    def state(self):
        """Look as anyone who comes by does: with nothing but the folder."""
        return RoundState.of(self.open())

    def visit(self, name):
        """Make the visit of a party that ``hushtable round sync`` makes."""
        here, result = self.open(), self.folder / f"{name}.hush"
        if name == "lead":
            return CoordinatorVisit(here, self.lead, self.folder / "decisions.json", result).run()
        site = self.site(name)

        def begin():
            return {str(step): one for step, one in site.begin(self.round).items()}

        card = self.keys[name].card
        return SiteVisit(here, card, self.books[name], begin, site, result).run()
