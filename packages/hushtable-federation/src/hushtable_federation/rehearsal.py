"""A small round within one process, of sites that know each other: to try things out."""

import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from hushtable.counts.sketch import Sketch
from hushtable.data.schema import Feature, Schema
from hushtable.plans.plan import Plan
from hushtable_federation.book.book import Book
from hushtable_federation.clock import now
from hushtable_federation.keys import Keys
from hushtable_federation.online.memory import Memory
from hushtable_federation.online.site import OnlineSite
from hushtable_federation.policy import Policy
from hushtable_federation.round import Round


class Rehearsal:
    """Sites and a coordinator with invented rows, and a round that is open for a day.

    The round is masked, with epsilon 1, unless the terms (as `Round.open` takes them) say
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
        """Return what answers for a site online."""
        # Invented rows, each of a person of its own.
        policy = Policy(
            unattended=True, plans=(self.round.layout.plan_id,), persons=1, max_rows=True
        )
        keys, book = self.keys[name], self.books[name]
        return OnlineSite(keys, book, lambda plan: self.sketches[name], policy=policy)

    def transport(self) -> Memory:
        """Return a transport to all sites."""
        return Memory({name: self.site(name).answer for name in self.keys})

    def close(self) -> None:
        """Close the books."""
        for book in self.books.values():
            book.close()
