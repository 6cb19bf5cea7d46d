"""A fuzzer of sites: odd files, broken rows, odd schemas, hostile rounds; what leaves, and to whom.

Everyday runs are short; ``-m slow`` makes 1,000 of each, or as many as HUSHTABLE_RUNS says.
"""

import csv
import io
import json
import os
import tempfile
from datetime import timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xlsxwriter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hushtable import Feature, Plan, Schema, Sketch, files
from hushtable_federation.book.book import Book
from hushtable_federation.clock import now
from hushtable_federation.keys import Keys
from hushtable_federation.online.site import OnlineSite
from hushtable_federation.policy import Policy
from hushtable_federation.protocol.messages import STEPS as STEPS_OF_ROUNDS
from hushtable_federation.protocol.messages import Message, ask
from hushtable_federation.refusals import Refusal, SiteLog
from hushtable_federation.round import Round

NORTH, LEAD, OTHER = (Keys.generate(name) for name in ("north", "lead", "south"))
COLUMNS = {
    "age": Feature.numeric("age", low=0, high=120),
    "pulse": Feature.numeric("pulse", low=20, high=250),
    "sex": Feature.categorical("sex", ["f", "m", "sex"]),
    "build": Feature.categorical("build", ["slim", "average", "total", "Zürich", "7", "a,b\nc,d"]),
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
#: Texts of which each has made some reader doubt what a file means.
ODD_TEXTS = (
    "", "NaN", "inf", "1e400", "12,5", "1.234,5", "1 234", "5 mg", "<5", "unseen", "true", "7.0",
    "7.5", "2020-01-02", "12:30", "100000000000000000000", "total", "Summe", "3 rows", "average",
    "***", "-----", "id", "age", "pulse", "sex", "build", "Zürich", "Z\udcfcrich", "\ufeff",
    "a,b\nc,d", '"', '5" pipe', "sep=;", "<html>", '{"a": 1}', "NULL", "\x00", "\x1a", "'", "=1+1",
    "x" * 300,
)  # fmt: skip
#: A row of a table: whose it is, and a value for each column; any text may stand in any of them.
TEXTS = st.integers(-5, 300).map(str) | st.sampled_from(ODD_TEXTS)
IDS = st.sampled_from(["p1", "p1", "p1", "p2", "7", "07", " p1 ", "", "1.5", "id"])
VALID = st.lists(st.tuples(IDS, TEXTS, TEXTS, TEXTS, TEXTS), min_size=0, max_size=8)
HEADER = ("id", *COLUMNS)
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
ODD = {"sites": ["north", 7], "others": {"north": "SECRET"}, "signed": [], "names": 5}


@pytest.fixture(scope="module")
def world():
    # In memory where there is such a folder: each case writes a book.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        made = World(Path(name))
        yield made
        for book in made.books:
            book.close()


class World:
    """A site with two books, one for each of two neighbours, and a file written again each time."""

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

    def site(self, content, allowed, book, **person):
        self.path.write_bytes(content.encode("utf-8", "surrogateescape"))

        def count(round_):
            return Sketch.from_data(round_.plan, str(self.path), attended=False, **person)

        policy = Policy(unattended=True, persons=1, features=allowed, epsilon=5.0)
        log = SiteLog(self.folder / "north.log")
        return OnlineSite(NORTH, book, count, policy=policy, log=log)

    def open(self, schema, terms):
        self.n += 1
        return Round.open(
            self.plan(schema), [NORTH.card, OTHER.card], LEAD, title=f"{self.n:09}",
            deadline=now() + timedelta(days=1), **terms,
        )  # fmt: skip


def request(round_, step, how):
    entry = {"masked": "ab" * 32, "shares": "cd" * 32}
    sites = {"sites": {"north": entry, "south": entry}}
    bodies = {"survivors": sites, "unmask": sites}
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
            # No one else has sent anything: about a list of who is in, this site says nothing.
            assert step in ("hello", "keys", "shares", "masked")
            assert step != "masked" or len(book.answers()) == 1
            continue
        # The bytes of a refusal follow from the word, the round and the keys: nothing else.
        name = round_.round_id if round_.round_id.encode() in answer else ""
        assert answer == Message.refuse(name, NORTH, word)
        assert b"SECRET" not in answer
    assert len(book.answers()) <= 1


#: Examples of each promise: a few every day, and many in slow runs.
EXAMPLES = pytest.mark.parametrize(
    "n", [30, pytest.param(int(os.environ.get("HUSHTABLE_RUNS", "1000")), marks=pytest.mark.slow)]
)


def holds(check, world, n, cases):
    """Check a promise of n cases that Hypothesis draws."""

    @settings(max_examples=n, suppress_health_check=list(HealthCheck), deadline=None)
    @given(**cases)
    def of_each(**case):
        check(world, **case)

    of_each()


@EXAMPLES
def test_all_that_leaves_in_refusals_is_a_word(world, n):
    cases = {
        "content": FILES, "schema": SCHEMAS, "terms": TERMS, "steps": STEPS, "allow": st.booleans(),
    }  # fmt: skip
    holds(what_leaves_is_a_word, world, n, cases)


def as_csv(rows):
    """A file as any program writes it: a text that needs quotation marks has them."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([HEADER, *rows])
    return file.getvalue()


def transcript(world, book, rows, round_, steps, person):
    """Words and sizes of all that a site sends, its masked counts among it."""
    site = world.site(as_csv(rows), tuple(COLUMNS.values()), book, **person)
    sent = []
    for step, how in steps:
        answer = site.answer(request(round_, step, how))
        sent.append((step, how, said(answer), len(answer)))
    return sent


def neighbours_look_alike(world, rows, more, at, schema, terms, steps, persons):
    round_, (one, two) = world.open(schema, terms), world.fresh()
    person = {"person": "id", "rows_per_person": terms["rows_per_person"]} if persons else {}
    changed = [*rows[:at], more, *rows[at:]]
    alike = [
        transcript(world, book, some, round_, steps, person)
        for book, some in ((one, rows), (two, changed))
    ]
    assert alike[0] == alike[1]


#: All that a site sends of its own accord; in the first step, it counts.
ANSWER = [("keys", "good"), ("shares", "good"), ("masked", "good")]
#: Pairs that were distinguished with certainty: rows, and the one more.
NINE = [(f"p{i}", "4", "7", "f", "slim") for i in range(9)]
SEEN = {
    "one person, and another": ([NINE[0]] * 5, ("p2", "70", "", "f", "slim")),
    "a category named as its column": (NINE, ("p2", "5", "", "sex", "")),
    "a last row that begins as a total": (NINE, ("total", "4", "", "", "")),
    "a text among numbers": (NINE, ("p2", "n/k", "7", "f", "slim")),
    "a row without an id": (NINE, ("", "4", "7", "f", "slim")),
    "a byte of another encoding": (NINE, ("p2", "4", "7", "\udcfc", "")),
    "a line break in a text": (NINE, ("p2", "4", "7", "f", "a,b,c,d,e\n1,2,3,4,5")),
}
#: Whatever the rows are, a site that may answer does.
NEIGHBOURS = {
    "rows": VALID,
    "more": VALID.filter(len).map(lambda rows: rows[0]),
    "at": st.integers(0, 8),
    "schema": st.lists(
        st.sampled_from(list(COLUMNS.values())), min_size=1, max_size=4, unique=True
    ).map(lambda features: Schema(features)),
    "terms": TERMS,
    "steps": st.just(ANSWER) | STEPS,
    "persons": st.booleans(),
}


@pytest.mark.parametrize("case", SEEN)
def test_neighbours_that_were_told_apart(world, case):
    rows, more = SEEN[case]
    terms = {"epsilon": 1.0, "delta": 1e-6, "rows_per_person": 1, "masked": True}
    schema = Schema(tuple(COLUMNS.values()))
    neighbours_look_alike(world, rows, more, len(rows), schema, terms, ANSWER, persons=True)


@EXAMPLES
def test_neighbours_transcripts_are_equal(world, n):
    """Words, sizes and order up to the answer do not change with a row; no rows are rows, too."""
    holds(neighbours_look_alike, world, n, NEIGHBOURS)


# --- one row changes one cell of each table, in any file ------------------------------------------


def as_json_lines(rows, kinds):
    """Values as JSON has them: now a number, now a text, now neither."""
    lines = []
    for row in rows:
        values = dict(zip(HEADER, map(kinds.get, row, row), strict=True))
        lines.append(json.dumps(values))
    return "".join(line + "\n" for line in lines)


#: What some texts are in files and frames whose values have types.
TYPED = {
    "7": 7, "7.0": 7.0, "7.5": 7.5, "true": True, "": None, "total": ["a"], "average": {"a": 1},
    "inf": float("inf"), "100000000000000000000": 10**20, "1.5": 1.5, "12": 12.0, "0": False,
}  # fmt: skip


def counted(folder, kind, rows, plan, person):
    path = folder / f"rows.{kind}"
    if kind == "csv":
        path.write_bytes(as_csv(rows).encode("utf-8", "surrogateescape"))
    elif kind == "jsonl":
        path.write_text(as_json_lines(rows, TYPED))
    elif kind == "xlsx":
        write_book(path, rows)
    else:
        typed = [[TYPED.get(text, text) for text in row] for row in rows]
        path = pd.DataFrame(typed, columns=HEADER, dtype=object)
        path["pulse"] = pd.to_numeric(path["pulse"], errors="coerce")
    return Sketch.from_data(plan, path, attended=False, **person)


def write_book(path, rows):
    with xlsxwriter.Workbook(
        path, {"strings_to_formulas": False, "strings_to_urls": False}
    ) as book:
        sheet = book.add_worksheet()
        for i, row in enumerate([HEADER, *rows]):
            for j, text in enumerate(row):
                value = TYPED.get(text, text) if i else text
                if (
                    value is None
                    or isinstance(value, list | dict)
                    or value in (float("inf"), 10**20)
                ):
                    value = ""
                if isinstance(value, str):
                    value = "".join(c for c in value if c.isprintable() or c == "\n")
                sheet.write(i, j, value)


def one_row_is_one_row(world, rows, more, at, kind, persons):
    plan = world.plan(Schema(tuple(COLUMNS.values())))
    person = {"person": "id", "rows_per_person": 2} if persons else {}
    one = counted(world.folder, kind, rows, plan, person)
    two = counted(world.folder, kind, [*rows[:at], more, *rows[at:]], plan, person)
    changed = np.add.reduceat(np.abs(two.counts - one.counts), plan.family.offsets[:-1])
    # With two rows of a person counted at most, a third takes the place of one.
    assert changed.max() <= (2 if persons else 1)
    assert one.n_rows <= two.n_rows <= one.n_rows + 1


@EXAMPLES
def test_a_row_changes_one_cell_of_each_table_and_no_other_row(world, n):
    cases = {
        "rows": VALID,
        "more": VALID.filter(len).map(lambda rows: rows[0]),
        "at": st.integers(0, 8),
        "kind": st.sampled_from(["csv", "jsonl", "frame"] + ["xlsx"] * (n > 30)),
        "persons": st.booleans(),
    }
    holds(one_row_is_one_row, world, n, cases)
