"""A fuzzer of sites: odd files, broken rows, odd schemas, hostile rounds; what leaves, and to whom.

Everyday runs are short; ``-m slow`` makes 10,000.
"""

import json
import os
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hushtable import Feature, Plan, Schema, Sketch, files
from hushtable.federation.book.book import Book
from hushtable.federation.keys import Keys
from hushtable.federation.online.messages import STEPS as STEPS_OF_ROUNDS
from hushtable.federation.online.messages import Message, ask
from hushtable.federation.online.site import OnlineSite
from hushtable.federation.policy import Policy
from hushtable.federation.refusals import Refusal
from hushtable.federation.round import Round, now

NORTH, LEAD, OTHER = (Keys.generate(name) for name in ("north", "lead", "south"))
COLUMNS = {
    "age": Feature.numeric("age", low=0, high=120),
    "pulse": Feature.numeric("pulse", low=20, high=250),
    "sex": Feature.categorical("sex", ["f", "m"]),
}
#: What a cell of a file may hold; the marks are looked for in what leaves.
CELLS = st.one_of(
    st.integers(-10, 300).map(str),
    st.sampled_from(
        ["", "f", "m", "x", "NaN", "inf", "1e400", "SECRET-1", "SECRET,2", '"', "\x00"]
    ),
)
FILES = st.builds(
    lambda head, rows, end: ",".join(head) + "\n" + "".join(",".join(r) + "\n" for r in rows) + end,
    st.lists(st.sampled_from([*COLUMNS, "name", "SECRET-3"]), min_size=0, max_size=4),
    st.lists(st.lists(CELLS, min_size=0, max_size=4), max_size=6),
    st.sampled_from(["", '"unclosed SECRET-4', "\x00\xff", "1,2"]),
)
VALID = st.lists(
    st.tuples(
        st.integers(-5, 200).map(str) | st.just(""),
        st.integers(0, 300).map(str) | st.just(""),
        st.sampled_from(["f", "m", "unseen", ""]),
    ),
    min_size=0,
    max_size=8,
)
SCHEMAS = st.lists(
    st.sampled_from(
        [*COLUMNS.values(), Feature.numeric("name", low=0, high=1),
         Feature.numeric("sex", low=0, high=1), Feature.categorical("age", ["1"]),
         Feature.numeric("age", low=5, high=5), Feature.numeric("nosuch", low=0, high=1)]
    ),
    min_size=1, max_size=3, unique_by=lambda feature: feature.name,
).map(lambda features: Schema(features))  # fmt: skip
TERMS = st.fixed_dictionaries(
    {
        "epsilon": st.sampled_from([0.1, 1.0, 5.0, 20.0]),
        "delta": st.sampled_from([1e-6, 1e-5, 1e-9]),
        "rows_per_person": st.sampled_from([1, 2, 50]),
        "masked": st.sampled_from([True, True, True, False]),
    }
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["hello", *STEPS_OF_ROUNDS, "what"]),
        st.sampled_from(["good", "empty", "odd", "stranger", "cut"]),
    ),
    min_size=1,
    max_size=6,
)
ODD = {"sites": ["north", 7], "without": {"north": "SECRET"}, "shares": [], "complaints": 5}


@pytest.fixture(scope="module")
def world():
    # In memory where there is such a folder: each case writes a book.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        made = World(Path(name))
        yield made
        for book in made.books:
            book.close()


class World:
    """A site with two books, one for each of two neighbours, and a file written anew each time."""

    def __init__(self, folder):
        self.folder, self.n, self.plans = folder, 0, {}
        self.path = folder / "rows.csv"
        self.books = [self._book(), self._book()]

    def _book(self):
        self.n += 1
        book = Book.create(self.folder / f"{self.n}.book", NORTH.card, epsilon=3.0)
        book.trust([LEAD.card], "coordinator")
        book.trust([OTHER.card], "site")
        return book

    def fresh(self):
        """Return both books, of which none has answered anything."""
        for i, book in enumerate(self.books):
            if book.answers():
                book.close()
                self.books[i] = self._book()
        return self.books

    def plan(self, schema):
        key = json.dumps(schema.to_dict())
        if key not in self.plans:
            self.plans[key] = Plan.draw(
                schema, random_state=0, n_tables=2, n_cells=8, min_depth=1, max_depth=2
            )
        return self.plans[key]

    def site(self, content, allowed, book):
        self.path.write_bytes(content.encode("utf-8", "surrogateescape"))

        def count(plan):
            return Sketch.from_data(plan, str(self.path), allow_empty=True)

        policy = Policy(unattended=True, persons=1, features=allowed, epsilon=5.0)
        return OnlineSite(NORTH, book, count, policy=policy)

    def open(self, schema, terms):
        self.n += 1
        return Round.open(
            self.plan(schema), [NORTH.card, OTHER.card], LEAD, title=f"{self.n:09}",
            deadline=now() + timedelta(days=1), **terms,
        )  # fmt: skip


def request(round_, step, how):
    entry = {"masked": "ab" * 32, "shares": "cd" * 32}
    sites = {"sites": {"north": entry, "south": entry}}
    bodies = {"survivors": sites, "unmask": sites, "without": {"without": ["south"]}}
    body = {"good": bodies.get(step, {}), "empty": {}, "odd": ODD}.get(how, {})
    sent = ask(round_, step, Keys.generate("lead") if how == "stranger" else LEAD, body)
    return sent[:-20] if how == "cut" else sent


def said(answer):
    """The refusal in an answer; None if it is none."""
    read = files.unpack(answer, "answer")
    if read.kind != "message" or read.manifest["step"] != "refused":
        return None
    message = Message.read(answer, NORTH.card)
    assert set(message.body) == {"word"}
    return Refusal(message.body["word"])


def what_leaves_is_a_word(world, content, schema, terms, steps, allow):
    (book, _), round_ = world.fresh(), world.open(schema, terms)
    site = world.site(content, tuple(schema.features if allow else COLUMNS.values()), book)
    for step, how in steps:
        answer = site.answer(request(round_, step, how))
        word = said(answer)
        if word is None:
            assert b"SECRET" not in answer
            # Nobody else has sent anything: about a list of who is in, this site says nothing.
            assert step in ("hello", "shares", "masked")
            assert step != "masked" or len(book.answers()) == 1
            continue
        # The bytes of a refusal follow from the word, the round and the keys: nothing else.
        name = round_.round_id if round_.round_id.encode() in answer else ""
        assert answer == Message.refuse(name, NORTH, word)
        assert b"SECRET" not in answer
    assert len(book.answers()) <= 1


CASES = given(content=FILES, schema=SCHEMAS, terms=TERMS, steps=STEPS, allow=st.booleans())
QUICK = settings(max_examples=30, suppress_health_check=list(HealthCheck), deadline=None)
LONG = settings(max_examples=3_000, suppress_health_check=list(HealthCheck), deadline=None)


@QUICK
@CASES
def test_all_that_leaves_in_refusals_is_a_word(world, content, schema, terms, steps, allow):
    what_leaves_is_a_word(world, content, schema, terms, steps, allow)


@pytest.mark.slow
@LONG
@CASES
def test_all_that_leaves_in_refusals_is_a_word_in_many_runs(
    world, content, schema, terms, steps, allow
):
    what_leaves_is_a_word(world, content, schema, terms, steps, allow)


def transcript(world, book, rows, round_, steps):
    """Words and sizes of all that a site sends, its masked counts among it."""
    content = "age,pulse,sex\n" + "".join(",".join(row) + "\n" for row in rows)
    site = world.site(content, tuple(COLUMNS.values()), book)
    sent = []
    for step, how in steps:
        answer = site.answer(request(round_, step, how))
        sent.append((step, how, said(answer), len(answer)))
    return sent


def neighbours_look_alike(world, rows, more, schema, terms, steps):
    round_, (one, two) = world.open(schema, terms), world.fresh()
    assert transcript(world, one, rows, round_, steps) == transcript(
        world, two, [*rows, more], round_, steps
    )


NEIGHBOURS = given(
    rows=VALID,
    more=VALID.filter(len).map(lambda rows: rows[0]),
    schema=st.lists(
        st.sampled_from(list(COLUMNS.values())), min_size=1, max_size=3, unique=True
    ).map(lambda features: Schema(features)),
    terms=TERMS,
    steps=STEPS,
)


@QUICK
@NEIGHBOURS
def test_neighbours_transcripts_are_equal(world, rows, more, schema, terms, steps):
    """Words, sizes and order up to the answer do not change with a row; no rows are rows, too."""
    neighbours_look_alike(world, rows, more, schema, terms, steps)


#: A site answers with its noise in these, which takes most of the time: 10_000 take minutes.
MANY = settings(LONG, max_examples=int(os.environ.get("HUSHTABLE_RUNS", "1000")))


@pytest.mark.slow
@MANY
@NEIGHBOURS
def test_neighbours_transcripts_are_equal_in_many_runs(world, rows, more, schema, terms, steps):
    neighbours_look_alike(world, rows, more, schema, terms, steps)
