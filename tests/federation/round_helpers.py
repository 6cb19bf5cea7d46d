"""A consortium in one folder: a coordinator, sites with keys, books and rows."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.federation.book.book import Book
from hushtable.federation.collect import Collection
from hushtable.federation.keys import Keys
from hushtable.federation.online.memory import Memory
from hushtable.federation.online.messages import STEPS, Message
from hushtable.federation.online.secure_sum import SecureSum
from hushtable.federation.online.site import OnlineSite
from hushtable.federation.policy import Policy
from hushtable.federation.round import Round
from hushtable.federation.site import Reply

#: When every round of these tests is opened.
T0 = datetime(2027, 3, 1, 12, tzinfo=UTC)
DEADLINE = T0 + timedelta(days=7)
SCHEMA = Schema([Feature.numeric(f"x{j}", low=-5.0, high=5.0) for j in range(3)])
#: Of sites that answer by themselves, about these columns.
UNATTENDED = Policy(unattended=True, features=SCHEMA.features)


@dataclass
class Site:
    """A site: keys, book, rows."""

    keys: Keys
    book: Book
    X: np.ndarray
    asked: int = field(default=0)

    @property
    def name(self):
        return self.keys.card.name

    def sketch(self, plan):
        return Sketch.from_data(plan, self.X)

    def submit(self, round_, at=T0, **options):
        reply = Reply(round_, self.keys, self.book, at=at, **options)
        return reply.submission(self.sketch(reply.plan))

    def sent(self, round_):
        return self.book.answer(round_.round_id).sent


class Consortium:
    """Sites named s00, s01, ... and a coordinator named lead."""

    def __init__(self, folder, k, rows=60, cap=10.0):
        self.folder, self.lead = folder, Keys.generate("lead")
        rng = np.random.default_rng(k)
        self.sites = {}
        for i in range(k):
            keys = Keys.generate(f"s{i:02d}")
            book = Book.create(folder / f"s{i:02d}.book", keys.card, epsilon=cap)
            self.sites[keys.card.name] = Site(keys, book, rng.normal(size=(rows, 3)))
        for site in self.sites.values():  # as if all had compared their fingerprints
            site.book.trust([self.lead.card], "coordinator")
            site.book.trust([card for card in self.cards if card != site.keys.card], "site")
        sizes = {"n_tables": 5, "n_cells": 16, "min_depth": 2, "max_depth": 4}
        self.plan = Plan.draw(SCHEMA, random_state=0, **sizes)

    @property
    def cards(self):
        return [site.keys.card for site in self.sites.values()]

    def open(self, **terms):
        terms = {"epsilon": 1.0, "deadline": DEADLINE, "at": T0} | terms
        plan = terms.pop("plan", self.plan)
        cards, keys = terms.pop("cards", self.cards), terms.pop("keys", self.lead)
        return Round.open(plan, cards, keys, **terms)

    def collect(self, round_, submissions, at=T0):
        collection = Collection(round_)
        for name, content in submissions.items():
            collection.add(name, content, at)
        return collection

    def close(self):
        for site in self.sites.values():
            site.book.close()


class Online(Memory):
    """Sites in this process; ``lost`` names, by step, those that are gone from then."""

    def __init__(self, consortium, round_, lost=None, change=None):
        self.consortium, self.round, self.lost = consortium, round_, lost or {}
        self.change = change or (lambda step, name, answer: answer)
        self.gone, self.log = set(), []
        self.agents = {
            name: OnlineSite(site.keys, site.book, site.sketch, policy=UNATTENDED)
            for name, site in consortium.sites.items()
        }
        super().__init__({name: partial(self.answer, name) for name in self.agents})

    def answer(self, name, request):
        """Answer as the site does, if it is there; note and change what it says."""
        step = STEPS.index(Message.read(request, self.consortium.lead.card).step) + 1
        self.gone |= set(self.lost.get(step, ()))
        if name in self.gone:
            return None
        answer = self.agents[name].answer(request)
        self.log.append((step, name, request, answer))
        return self.change(step, name, answer)

    def run(self):
        self.sum = SecureSum(self.round, self.consortium.lead, self)
        return self.sum.run()
