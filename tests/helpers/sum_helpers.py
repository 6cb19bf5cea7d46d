"""A masked round without files, network and books: participants with a store in memory, a tally."""

import hashlib

import numpy as np

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.errors import HushTableError
from hushtable_federation.clock import CLOCKS
from hushtable_federation.keys import Keys
from hushtable_federation.protocol.messages import STEPS, Message, RoundKeys
from hushtable_federation.protocol.site import MaskedSite
from hushtable_federation.protocol.tally import Tally
from hushtable_federation.refusals import Refusal
from hushtable_federation.round import Round
from hushtable_federation.submission import Submission, charged
from round_helpers import DEADLINE, T0

SCHEMA = Schema([Feature.numeric("x", low=-5.0, high=5.0)])
PLAN = Plan.draw(SCHEMA, random_state=0, n_tables=2, n_cells=16, min_depth=2, max_depth=4)
NOW = T0 + CLOCKS


class MemoryStore:
    """Keeps the answers of one site."""

    def __init__(self):
        self.steps = {}

    def step(self, round_id, step):
        return self.steps.get(step)

    def note_step(self, round_id, step, asked, answer, kept):
        return self.steps.setdefault(step, (asked, answer, kept))[:2]


class FixedCounts:
    """Counts of a site, without noise."""

    def __init__(self, round_, keys, seed):
        self.round, self.keys, self.content = round_, keys, b""
        rows = np.random.default_rng(seed).normal(size=(40, 1))
        self.counts = Sketch.from_data(round_.plan, rows).counts

    def count(self):
        pass

    def send(self, mask):
        if not self.content:
            release = hashlib.sha256(self.keys.card.name.encode()).hexdigest()
            share, _ = charged(self.round, release, ())
            self.content = Submission.pack(self.round, self.keys, self.counts, share, T0, mask)
        return self.content

    def sent(self):
        return self.content


class Parties:
    """The parties of one masked round, and their messages in the order in which they were sent."""

    def __init__(self, n, least, plan=PLAN, **terms):
        self.lead, self.keys = _keys("lead"), {f"s{i}": _keys(f"s{i}") for i in range(n)}
        cards = [one.card for one in self.keys.values()]
        terms = {"epsilon": 0.5, "at": T0, "deadline": DEADLINE, "least": least} | terms
        self.round = Round.open(plan, cards, self.lead, **terms)
        self.counts = {
            name: FixedCounts(self.round, keys, i)
            for i, (name, keys) in enumerate(self.keys.items())
        }
        self.stores = {name: MemoryStore() for name in self.keys}
        self.log = []
        #: Bytes that sites read in requests.
        self.read = 0
        self.tally = Tally(self.round, self.lead)

    def site(self, name):
        """Return a site as after a start: with nothing but its keys, store and counts."""
        return MaskedSite(self.round, self.keys[name], self.stores[name], self.counts[name])

    def answer(self, name, request):
        """Return the answer of a site, or its refusal."""
        try:
            return self.site(name).answer(Message.read(request, self.lead.card))
        except HushTableError as error:
            word = error.word or Refusal.UNAVAILABLE
            return Message.refuse(self.round.round_id, self.keys[name], word)

    def play(self, gone=None, change=lambda step, name, answer: answer, restarts=False):
        """Return the sum, if sites are gone from a step on, by name."""
        gone = gone or {}
        inbox = []
        for step in STEPS:
            if restarts:
                self.tally = self.restarted()
            outbox = self.tally.advance(inbox, NOW, step)
            inbox = []
            for name, request in outbox.items():
                self.read += len(request)
                is_gone = name in gone and STEPS.index(step) >= STEPS.index(gone[name])
                content = b"" if is_gone else change(step, name, self.answer(name, request))
                self.log.append((step, name, content))
                inbox.append((step, name, content))
        for step, name, content in inbox:
            self.tally.take(step, name, content, NOW)
        return self.tally.result(self.sent)

    def restarted(self):
        """Return a tally of another process, from the decisions and the answers so far."""
        tally = Tally(self.round, self.lead, self.tally.decided)
        for step, name, content in self.log:
            tally.take(step, name, content, NOW)
        return tally

    def sent(self, name):
        return next(c for step, n, c in self.log if (step, n) == ("masked", name))

    def total(self, names):
        """Return the sum of the counts of some sites."""
        return sum(self.counts[name].counts for name in names)


def _keys(name, known={}):  # noqa: B006 (identities are drawn once for all tests)
    return known.setdefault(name, Keys.generate(name))


def public_keys(parties, name):
    """Return what a site signed as its keys for the round."""
    content = next(c for step, n, c in parties.log if (step, n) == ("keys", name))
    return RoundKeys.read(parties.round, name, content)
