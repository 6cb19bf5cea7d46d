"""A column that tells persons, on the command line."""

import pytest

from cli_helpers import SCHEMA, answer, do, draw_keys, post, say, visit, write_rows
from hushtable import load
from hushtable_federation.book.book import Book
from hushtable_federation.keys import Card


@pytest.fixture
def here(tmp_path, capsys):
    """Visits of 40 patients, five each, and what a round of two sites needs."""
    (tmp_path / "schema.toml").write_text(SCHEMA)
    do("plan", "draw", tmp_path / "schema.toml", "--tables", 5, "--seed", 1,
       "-o", tmp_path / "plan.hush")  # fmt: skip
    for seed, name in enumerate(("north", "south")):
        do("round", "keygen", name, "--cap", 9, "--folder", tmp_path)
        visits(write_rows(tmp_path / f"{name}.csv", 200, seed))
    do("round", "keygen", "lead", "--folder", tmp_path)
    do("round", "open", tmp_path / "plan.hush", tmp_path / "north.card", tmp_path / "south.card",
       "--key", tmp_path / "lead.key", "--epsilon", 1, "--rows-per-person", 2,
       "-o", tmp_path / "round.hush")  # fmt: skip
    cards = [Card.load(tmp_path / f"{name}.card") for name in ("lead", "north", "south")]
    for name in ("north", "south"):  # as if all had compared their fingerprints
        with Book.open(tmp_path / f"{name}.book") as book:
            book.trust(cards[:1], "coordinator")
            book.trust(cards[1:], "site")
    capsys.readouterr()
    return tmp_path


def visits(path, ids=None):
    """Put patients before the rows of a file."""
    header, *rows = path.read_text().splitlines()
    ids = ids or [f"P{i % 40}" for i in range(len(rows))]
    lines = [f"patient,{header}", *map(",".join, zip(ids, rows, strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


def submit(here, *options, name="north", **entries):
    say(here, name, **entries)
    draw_keys(here, post(here, "round.hush"), name, person="patient")
    return answer(here, name, "round.hush", *options)


def sent(here, round_="round"):
    """Return the files in which the site's counts left."""
    return list((here / f"{round_}.box").glob("*.masked.north.*"))


def test_a_sketch_of_persons_and_its_release(here, run):
    sketch = ("sketch", here / "north.csv", "--plan", here / "plan.hush", "-o", here / "s.hush")
    printed = run(*sketch, "--person", "patient", "--rows-per-person", 3)
    assert "Counted 120 rows" in printed.out
    assert (
        "40 persons in 200 rows. Left out: 80 rows of 40 persons who had more than 3" in printed.out
    )
    assert "patient" not in printed.err  # it is not left out
    facts = run(*sketch, "--person", "patient", "--drop", "patient", "--json").json
    assert facts["rows"] == 40
    assert facts["persons"] == {
        "persons": 40, "rows_per_person": 1, "rows_left_out": 160, "persons_cut": 40,
    }  # fmt: skip
    run(*sketch, "--person", "patient", "--rows-per-person", 3)
    assert run("inspect", here / "s.hush", "--json").json["rows_per_person"] == 3
    assert "3 at most, by a column" in run("inspect", here / "s.hush").out


def test_a_release_takes_the_number_from_the_sketch(here, run, refused):
    pytest.importorskip("opendp")
    sketch = ("sketch", here / "north.csv", "--plan", here / "plan.hush", "-o", here / "s.hush")
    release = ("release", here / "s.hush", "--epsilon", 5, "-o", here / "r.hush")
    run(*sketch)
    assert run(*release, "--json").json["persons"] == "affirmed"
    run(*sketch, "--person", "patient", "--rows-per-person", 3)
    assert run(*release, "--json").json["persons"] == "column"
    assert load(here / "r.hush").ledger.sensitivity.rows_per_person == 3
    refused(*release, "--rows-per-person", 2, says="up to 3 rows of a person")


def test_a_new_policy_wants_the_column_and_an_affirmed_one_does_not(here, run, refused):
    pytest.importorskip("opendp")
    refused(*submit(here), says=["more than 2 rows", "person = ...", "persons = 1"])
    assert not sent(here)
    (facts,) = run(*submit(here, person="patient"), "--json").json["rounds"]
    assert facts["counted"]["persons"]["rows_left_out"] == 120
    (left,) = sent(here)
    content = left.read_bytes()
    assert b"left" not in content
    left.unlink()
    (again,) = run(*submit(here), "--json").json["rounds"]  # noted in the book: sent again
    assert (again["posted"], again["counted"]) == (["masked"], None)
    assert left.read_bytes() == content
    policy = here / "south.policy.toml"
    assert run("round", "show", "--policy", policy, "--json").json["persons"] == "column"
    policy.write_text(policy.read_text().replace('"column"', "3"))
    assert "Persons       at most 3 rows per person" in run("round", "show", "--policy", policy).out
    south = visit(here, open_another(here, "later"), "south", rows="south.csv")
    refused(*south, says=["up to 3", "--rows-per-person 3", "person = ..."])
    policy.write_text(policy.read_text().replace("persons = 3", "persons = 2"))
    assert run(*south).code == 0


@pytest.mark.parametrize(
    ("column", "ids", "says"),
    [
        ("who", None, "no column"),
        ("age", None, "but the plan counts it as a feature"),
        ("patient", [""] + ["P1", "P2"] * 99 + ["P1"], "empty in 1 of 200 rows"),
    ],
)
def test_a_column_that_tells_nobody_is_refused_and_nothing_noted(here, run, column, ids, says):
    if ids is not None:
        visits(write_rows(here / "north.csv", 200), ids)
    printed = run(*submit(here, person=column))
    assert printed.code == (2 if column == "age" else 1)
    assert says in printed.err
    assert not sent(here)
    with Book.open(here / "north.book") as book:
        assert book.data_sets() == []


def test_in_a_round_rows_of_one_person_alone_are_counted_as_any_others(here, run):
    """Whether all rows are one person's is no question where others see whether there is a file."""
    pytest.importorskip("opendp")
    visits(write_rows(here / "north.csv", 200), ["P1"] * 200)
    printed = run(*submit(here, person="patient"))
    assert printed.code == 0
    assert "1 person in 200 rows." in printed.out


def open_another(here, name):
    """Open another round of the two sites under the same plan."""
    do("round", "open", here / "plan.hush", here / "north.card", here / "south.card", "--key",
       here / "lead.key", "--epsilon", 1, "--rows-per-person", 2, "--title", name,
       "-o", here / f"{name}.hush")  # fmt: skip
    return post(here, f"{name}.hush")


def another(here, name, **entries):
    """Have a site answer another round."""
    say(here, "north", person="patient", **entries)
    draw_keys(here, open_another(here, name), "north", person="patient")
    return answer(here, "north", f"{name}.hush")


def test_new_people_are_those_whom_the_book_has_not_counted(here, run, refused):
    pytest.importorskip("opendp")
    (first,) = run(*submit(here, person="patient"), "--json").json["rounds"]
    persons = first["counted"]["persons"]
    assert persons["persons_known"] == persons["answers_without_persons"] == 0
    later = another(here, "later")
    refused(*later, "--new-people", code=2, says="their own data_set")
    say(here, "north", data_set="2027")
    renamed = run(*later)
    assert (renamed.code, sent(here, "later")) == (1, [])
    assert "seem to be those of 'all rows'" in renamed.err
    ids = [f"P{i % 50}" for i in range(200)]  # ten more than before
    visits(write_rows(here / "north.csv", 200, 7), ids)
    printed = run(*later, "--new-people")
    assert "Counted 20 rows." in printed.out
    assert (
        "50 persons in 200 rows. Left out: 20 rows of 10 persons who had more than 2" in printed.out
    )
    assert "Left out: all 160 rows of 40 persons whom this book has" in printed.out
    with Book.open(here / "north.book") as book:
        assert [len(book.barred(name)) for name in ("all rows", "2027", "2028")] == [10, 40, 50]
    # All of them are known by now: no one is counted, and nothing shows it.
    third = run(*another(here, "third", data_set="2028"), "--new-people", "--json").json
    assert third["rounds"][0]["counted"]["persons"] == {
        "persons": 50, "rows_per_person": 2, "rows_left_out": 200, "persons_cut": 0,
        "persons_known": 50, "rows_of_known": 200, "answers_without_persons": 0,
    }  # fmt: skip
    with Book.open(here / "north.book") as book:  # rows are judged no matter who is counted of them
        noted = [one.content["data_set"] for one in book.history() if one.kind == "rows"]
    assert noted.count("2028") == 2
    sizes = {sent(here, name)[0].stat().st_size for name in ("later", "third")}
    assert max(sizes) - min(sizes) < 200


def test_an_answer_without_persons_is_said_where_it_matters(here, run):
    pytest.importorskip("opendp")
    policy = here / "north.policy.toml"
    policy.write_text(policy.read_text().replace('"column"', "2"))
    assert run(*submit(here)).code == 0
    visits(write_rows(here / "north.csv", 200, 7), [f"Q{i}" for i in range(200)])
    printed = run(*another(here, "later", data_set="2027"), "--new-people")
    assert "1 earlier answer about other rows did not identify persons" in printed.out
    assert "each row belongs to a different person" in printed.out


def test_the_book_of_somebody_else_has_no_key_to_hash_persons_by(here, refused):
    refused(*submit(here, person="patient", book="south.book"), says="south")
    assert not sent(here)


def test_a_number_of_rows_without_a_column_is_refused(here, refused):
    refused("sketch", here / "north.csv", "--plan", here / "plan.hush", "--rows-per-person", 2,
            "-o", here / "s.hush", code=2, says="--person")  # fmt: skip


def test_a_model_of_some_rows_of_each(run, tmp_path, rng):
    ids = [f"P{i}" for i in rng.integers(90, size=500)]
    rows = [f"{one},{age:.2f}" for one, age in zip(ids, rng.normal(50, 9, 500), strict=True)]
    data, model = tmp_path / "visits.csv", tmp_path / "model.hush"
    data.write_text("\n".join(["patient,age", *rows]))
    done = run("fit", data, "--person", "patient", "-o", model, "--json")
    assert done.code == 0, done.err
    n = len(set(ids))
    assert (done.json["rows"], done.json["persons"]["persons"]) == (n, n)
    assert done.json["persons"]["rows_left_out"] == 500 - n
    assert f"{n} persons in 500 rows." in run("fit", data, "--person", "patient", "-o", model).out
    plan = run("fit", data, "--person", "patient", "--drop", "patient", "--tables", 9, "-o", model)
    assert plan.code == 0, plan.err  # to leave the column out is what happens anyway
    notes = [f"{one},note {i},{i % 9}" for i, one in enumerate(ids)]
    data.write_text("\n".join(["patient,text,age", *notes]))
    doubtful = run("fit", data, "--person", "patient", "-o", model)
    option = doubtful.err.rpartition("Add: ")[2].split()
    assert run("fit", data, "--person", "patient", *option, "-o", model).code == 0, option
    refused = run("fit", data, "--rows-per-person", 2, "-o", model)
    assert (refused.code, "needs --person" in refused.err) == (2, True)
