"""A consortium as people set it up for a network: keys, books, policies, rows, rounds as files."""

from datetime import timedelta

import numpy as np

from hushtable import Feature, Plan, Schema, load
from hushtable_federation.book.book import Book
from hushtable_federation.clock import now
from hushtable_federation.keys import Keys
from hushtable_federation.policy import write_policy
from hushtable_federation.round import Round
from hushtable_federation.site import Site

SCHEMA = Schema([Feature.numeric(name, low=-5, high=5) for name in "ab"])


class Places:
    """Sites that answer by themselves, and a coordinator named lead, in one folder.

    The plan has five tables over two columns, one of which is the context of the other.
    """

    def __init__(self, folder, names=("east", "north", "south")):
        self.folder, self.names = folder, names
        self.keys = {name: Keys.generate(name) for name in (*names, "lead")}
        self.plan = Plan.draw(SCHEMA, n_tables=5, context=["a"], random_state=0)
        for name, keys in self.keys.items():
            keys.save(folder / f"{name}.key")
        for seed, name in enumerate(names):
            with self.book(name, Book.create, self.keys[name].card, epsilon=5.0) as book:
                book.trust([self.keys["lead"].card], "coordinator")
                book.trust([self.keys[other].card for other in names])
            self.write_policy(name)
            X = np.random.default_rng(seed).normal(size=(100, 2))
            self.file(name).write_text(f'key = "{name}.key"\nrows = "{name}.csv"\n')
            np.savetxt(folder / f"{name}.csv", X, delimiter=",", header="a,b", comments="")

    def write_policy(self, name):
        """Let a site answer by itself, about these columns."""
        policy = self.folder / f"{name}.policy.toml"
        write_policy(policy, name, 5.0, 1e-6, 1)
        columns = "".join(
            f'[[feature]]\nname = "{name}"\nkind = "numeric"\nlow = -5\nhigh = 5\n' for name in "ab"
        )
        policy.write_text(policy.read_text().replace("answer = false", "answer = true") + columns)

    def book(self, name, how=Book.open, *more, **options):
        return how(self.folder / f"{name}.book", *more, **options)

    def file(self, name):
        """Return a site's file."""
        return self.folder / f"{name}.toml"

    def answer(self, name, request):
        """Return what a site answers, as after a start."""
        return Site.open(self.file(name)).answer(request)

    def open(self, least=2, title="", rows_per_person=1, deadline=None):
        """Open a round, and put it there."""
        round_ = Round.open(
            self.plan,
            [self.keys[name].card for name in self.names],
            self.keys["lead"],
            epsilon=1.0,
            deadline=deadline or now() + timedelta(days=1),
            least=least,
            title=title,
            rows_per_person=rows_per_person,
        )
        round_.save(self.folder / "round.hush")
        return round_

    def check(self, round_, inside=None, result="result.hush", answers=1):
        """Hold the result to the books: the sum of those inside; no one is charged twice."""
        inside, parts = self.names if inside is None else inside, []
        for name in self.names:
            with self.book(name) as book:
                assert len(book.answers()) == answers * (name in inside)
                if name in inside:
                    parts.append(book.answer(round_.round_id).sent)
        np.testing.assert_array_equal(load(self.folder / result).counts, sum(parts))
