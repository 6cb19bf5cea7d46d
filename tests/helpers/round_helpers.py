"""A consortium in one folder: a coordinator, sites with keys, books and rows."""

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from unittest.mock import patch

import numpy as np

from hushtable import Feature, Plan, Schema, Sketch, files
from hushtable_federation.book.book import Book
from hushtable_federation.book.digests import Recognised
from hushtable_federation.keys import Keys
from hushtable_federation.online.carriers import Memory
from hushtable_federation.online.secure_sum import SecureSum
from hushtable_federation.online.site import OnlineSite, Statement
from hushtable_federation.policy import Policy
from hushtable_federation.protocol import masks
from hushtable_federation.protocol.messages import Dealt, Message, RoundKeys, SumList, ask, table
from hushtable_federation.reply import Reply
from hushtable_federation.result import Collection
from hushtable_federation.round import Round

#: When every round of these tests is opened.
T0 = datetime(2027, 3, 1, 12, tzinfo=UTC)
DEADLINE = T0 + timedelta(days=7)
SCHEMA = Schema([Feature.numeric(f"x{j}", low=-5.0, high=5.0) for j in range(3)])
#: Of sites that answer by themselves, about these columns: each row is of a person of its own.
UNATTENDED = Policy(unattended=True, features=SCHEMA.features, persons=1)


@contextmanager
def clock_at(at):
    """Have this machine's clock stand still."""
    with patch("hushtable_federation.clock.read", lambda: at or datetime.now(UTC)):
        yield


@dataclass
class Site:
    """A site: keys, book, rows."""

    keys: Keys
    book: Book
    X: np.ndarray
    asked: int = field(default=0)
    #: All sites of the consortium, by name.
    others: dict = field(default_factory=dict, repr=False)

    @property
    def name(self):
        return self.keys.card.name

    def sketch(self, plan):
        return Sketch.from_data(plan, self.X)

    def count(self, round_):
        return self.sketch(round_.plan)

    def submit(self, round_, at=T0, sketch=None, new_people=False, **options):
        """Answer a round, as with a person here: return the file with the site's counts."""
        reply = Reply(round_, self.keys, self.book, at=at, **options)
        sketch = self.sketch(reply.plan) if sketch is None else sketch
        options |= {"attended": True, "statement": Statement(new_people)}
        online = self._online(sketch, **options)
        with clock_at(at):
            noted = [self.book.step(round_.round_id, step) for step in ("keys", "rows")]
            if noted[0] and not noted[1] and self.book.answer(round_.round_id) is None:
                online._participant(round_).counts.count()
            sent = online.begin(round_)
            if round_.terms.masked:
                keys = {name: self.others[name].key(round_) for name in round_.names}
                sent = online.send_counts(round_, keys)
            return [*sent.values()][-1]

    def key(self, round_):
        """Return what the site says of its key for a round, drawn before it counts its rows.

        So other sites can send their counts.
        """
        drawn, content = draw(round_, self.keys)
        kept = {name: one.hex() for name, one in drawn.items()}
        content = self.book.note_step(round_.round_id, "keys", round_.round_id, content, kept)[1]
        return RoundKeys.read(round_, self.name, content).content

    def _online(self, sketch, **options):
        return OnlineSite(self.keys, self.book, lambda round_: sketch, **options)

    def answer(self, request):
        """Answer a request of a round that the site has submitted to; no rows are counted."""
        return self._online(None, policy=UNATTENDED).answer(request)

    def sent(self, round_):
        return self.book.answer(round_.round_id).sent


class Consortium:
    """Sites named s00, s01, ... and a coordinator named lead."""

    def __init__(self, folder, k, rows=60, cap=10.0, epsilon=1.0):
        self.n_opened = 0
        self.folder, self.lead, self.epsilon = folder, Keys.generate("lead"), epsilon
        rng = np.random.default_rng(k)
        self.sites = {}
        for i in range(k):
            keys = Keys.generate(f"s{i:02d}")
            book = Book.create(folder / f"s{i:02d}.book", keys.card, epsilon=cap)
            X = rng.normal(size=(rows, 3))
            self.sites[keys.card.name] = Site(keys, book, X, others=self.sites)
        for site in self.sites.values():  # as if all had compared their fingerprints
            site.book.trust([self.lead.card], "coordinator")
            site.book.trust([card for card in self.cards if card != site.keys.card], "site")
        sizes = {"n_tables": 5, "n_cells": 16, "min_depth": 2, "max_depth": 4}
        self.plan = Plan.draw(SCHEMA, random_state=0, **sizes)

    @property
    def cards(self):
        return [site.keys.card for site in self.sites.values()]

    def open(self, **terms):
        self.n_opened += 1  # no two rounds of one consortium are the same by chance
        title = f"round {self.n_opened}"
        terms = {"epsilon": self.epsilon, "deadline": DEADLINE, "at": T0, "title": title} | terms
        plan = terms.pop("plan", self.plan)
        cards, keys = terms.pop("cards", self.cards), terms.pop("keys", self.lead)
        return Round.open(plan, cards, keys, **terms)

    def result(self, round_, names=None, at=T0, **options):
        """Play a round of these sites, by default all of its roster; return the signed result."""
        names = round_.names if names is None else names
        sent = {name: self.sites[name].submit(round_, at=at, **options) for name in names}
        return self.sum(round_, sent, at)

    def sum(self, round_, sent, at=T0):
        """Return the signed result of what sites submitted, by name."""
        if not round_.terms.masked:
            return self.collect(round_, sent, at).result(self.lead)
        with clock_at(at):
            sites = {name: self.sites[name].answer for name in sent}
            return SecureSum(round_, self.lead, Memory(sites)).run()

    def collect(self, round_, submissions, at=T0):
        collection = Collection(round_)
        for name, content in submissions.items():
            collection.add(name, content, at)
        return collection

    def close(self):
        for site in self.sites.values():
            site.book.close()


class Online(Memory):
    """Sites in this process; ``lost`` names, by step, those that are gone from then.

    ``change`` takes step, name and answer, and returns what arrives of it; ``log`` has all of them.
    """

    def __init__(self, consortium, round_, lost=None, change=None):
        self.consortium, self.round, self.lost = consortium, round_, lost or {}
        self.change = change or (lambda step, name, answer: answer)
        self.gone, self.log = set(), []
        self.agents = {name: agent(site) for name, site in consortium.sites.items()}
        super().__init__({name: partial(self.answer, name) for name in self.agents})

    def answer(self, name, request):
        """Answer as the site does, if it is there; note and change what it says."""
        step = Message.read(request, self.consortium.lead.card).step
        self.gone |= set(self.lost.get(step, ()))
        if name in self.gone:
            return None
        answer = self.agents[name].answer(request)
        self.log.append((step, name, request, answer))
        return self.change(step, name, answer)

    def asked(self, step, name):
        """Return what a site was asked in a step."""
        return next(r for s, n, r, _ in self.log if (s, n) == (step, name))

    def answers(self, step):
        """Return what sites answered in a step, by name, before any change."""
        return {n: a for s, n, _, a in self.log if s == step}

    def run(self):
        self.sum = SecureSum(self.round, self.consortium.lead, self)
        return self.sum.run()


def draw(round_, keys, **public):
    """Return private keys for a round, and the message with their public halves, or others."""
    drawn = {name: masks.draw_key() for name in ("mask", "seal")}
    each = {name: masks.public_of(one) for name, one in drawn.items()} | public
    made = RoundKeys.sign(round_, keys, each["mask"], each["seal"])
    arrays = {"keys": table([made.content], len(made.content))}
    return drawn, Message.make(round_, "keys", keys, {}, arrays).content


class Hand:
    """A coordinator by hand: has what sites dealt and sent, and asks each site what it likes."""

    def __init__(self, online):
        self.round, self.lead = online.round, online.consortium.lead
        self.dealt, self.masked = {}, {}
        for name, content in online.answers("shares").items():
            message = Message.read(content, self.round.card(name))
            self.dealt[name] = Dealt.of_message(self.round, message)
        for name, content in online.answers("masked").items():
            self.masked[name] = files.unpack(content, name).digest

    def sites(self, names, others=()):
        """Return the list that has these sites; ``others`` are named as dealers outside."""
        sites = {n: {"masked": self.masked[n], "seed": self.dealt[n].seed} for n in names}
        return SumList(sites, {name: self.dealt[name].seed for name in others})

    def listing(self, step, reader, names, others=(), rows=None, **body):
        """Return a request about a list, for one site."""
        listed, rows = self.sites(names, others), rows or {}
        dealers = sorted(listed.dealers)
        each = [rows[n] if n in rows else self.dealt[n].rows[reader] for n in dealers]
        keys = {name: self.dealt[name].digests for name in dealers}
        body = listed.to_dict() | {"reader": reader, "keys": keys} | body
        return ask(self.round, step, self.lead, body, {"rows": table(each, masks.SEALED_BYTES)})

    def unmask(self, signed):
        """Return a request that shows signatures under a list, by answers to ``survivors``."""
        read = {name: Message.read(one, self.round.card(name)) for name, one in signed.items()}
        body = {"signed": {name: one.body["signature"] for name, one in read.items()}}
        return ask(self.round, "unmask", self.lead, body)


def send(reply, sketch, rows=None, **options):
    """Record what a checked reply sends of a sketch, as both kinds of rounds do; return it."""
    masks = None
    if reply.round.terms.masked:
        masks = np.zeros(reply.round.plan.family.n_cells, np.uint64)
    people = Recognised.of(rows, sketch.persons)
    return reply.answer(reply.counted(sketch), masks, people=people, **options).content


def agent(site):
    """Return a site as after a start: nothing but keys, book and rows."""
    return OnlineSite(site.keys, site.book, site.count, policy=affirmed(site))


def affirmed(site):
    """Return the policy of a site whose people affirm what is true: equal rows are one person's."""
    _, most = np.unique(site.X, axis=0, return_counts=True)
    return replace(UNATTENDED, persons=int(most.max(initial=1)))


def signed_anew(round_, keys, answer, body=None, arrays=None):
    """Return an answer with some of its entries replaced, signed by its site all the same."""
    read = Message.read(answer, keys.card)
    return Message.make(
        round_, read.step, keys, read.body | (body or {}), dict(read.arrays) | (arrays or {})
    ).content


def total_of(consortium, round_, names):
    """Return the sum of what some sites sent, with noise, by their books."""
    return sum(consortium.sites[name].sent(round_) for name in names)
