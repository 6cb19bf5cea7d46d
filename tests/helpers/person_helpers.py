"""Rounds about persons: rows named by patient, and answers of one site about them."""

import numpy as np
import pyarrow as pa

from hushtable import Plan, Sketch
from hushtable_federation.policy import Policy
from hushtable_federation.reply import Reply
from round_helpers import SCHEMA, T0

#: Of sites that count persons by a column.
COLUMN = Policy(persons="column", masks=False)
PLAN = Plan.draw(SCHEMA, n_tables=3, random_state=0)


def table(persons, seed=0):
    """A row of three numbers for each person named, as often as it is."""
    X = np.random.default_rng(seed).normal(size=(len(persons), 3))
    return pa.table({"patient": persons, **{f"x{j}": X[:, j] for j in range(3)}})


def names(first, last):
    return [f"p{i}" for i in range(first, last)]


def reply_of(those, round_, name="s00", policy=COLUMN, **options):
    site = those.sites[name]
    return Reply(round_, site.keys, site.book, policy=policy, at=T0, **options)


def counted(reply, rows, known=None):
    """Count at most the round's rows of each person who is not known."""
    return Sketch.from_data(
        reply.plan, rows, person="patient", rows_per_person=reply.round.terms.rows_per_person,
        key=reply.book.persons_key, known=known, allow_empty=True,
    )  # fmt: skip
