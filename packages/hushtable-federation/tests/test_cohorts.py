"""Cohorts: rounds about different people add up, and a book counts no one beyond their budget."""

import itertools
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable import Plan, Sketch
from hushtable.data.persons import SAMPLE, Known, among
from hushtable.errors import PrivacyError, RoundError, UsageError
from hushtable.privacy.accounting import Horizon
from hushtable_federation.book.book import Book
from hushtable_federation.book.digests import Period, barred, from_bytes, nameless, to_bytes
from hushtable_federation.coordinator import Coordinator
from hushtable_federation.reply import Reply
from hushtable_federation.site import Site
from person_helpers import COLUMN, PLAN, counted, names, reply_of, table
from place_helpers import Places
from round_helpers import T0, send


def answered(those, round_, rows, data_set, name="s00"):
    """Answer about new people; return what is sent, and whose rows were counted."""
    reply = reply_of(those, round_, name, data_set=data_set)
    sketch = counted(reply, rows, reply.barred())
    return send(reply, sketch, new_people=True), sketch


def _sketch(those, round_, name, persons, data_set):
    reply = reply_of(those, round_, name, data_set=data_set)
    return counted(reply, table(persons), reply.barred())


def cohort(those, persons, data_set, **terms):
    """Run a round of all sites, whose persons are given by site; return it and its result."""
    round_ = those.open(title=data_set, **terms)
    sent = {}
    for name, site in those.sites.items():
        sketch = _sketch(those, round_, name, persons[name], data_set)
        about = {"policy": COLUMN, "data_set": data_set, "new_people": True}
        sent[name] = site.submit(round_, T0, sketch, **about)
    return round_, those.sum(round_, sent)


# --- the name of the rows -----------------------------------------------------------------------


def test_a_second_visit_for_another_data_set_is_refused(tmp_path):
    """As if a timer was moved on between two visits: the counts keep the name of their rows."""
    places, box = Places(tmp_path), tmp_path / "box"
    round_ = places.open()
    box.mkdir()
    Coordinator.open(tmp_path / "lead.key", tmp_path).post(box, tmp_path / "round.hush")

    def visit(name, data_set):
        site = Site.open(places.file(name), data_set=data_set, results=tmp_path)
        ((_, found),) = site.sync(box)
        return found

    for name in places.names:
        assert visit(name, "2026").posted[:1] == ["keys"]
    refused = visit("north", "2027")
    assert refused.state == "failed"
    assert "counted as data_set '2026', and this visit is for data_set '2027'" in refused.words[0]
    assert "data_set = '2026'" in refused.words[0]
    with places.book("north") as book:
        assert book.answers() == []
        assert book.total("2026") == book.total("2027") == 0.0
    assert "masked" in visit("north", "2026").posted
    with places.book("north") as book:
        assert [one.round_id for one in book.answers()] == [round_.round_id]
        assert 0.0 < book.total("2026") <= 1.0
        assert book.total("2027") == 0.0


# --- rounds that add up -------------------------------------------------------------------------


def test_the_same_people_again_are_nobody_and_pay_nothing(those):
    people = {name: names(1_000 * i, 1_000 * i + 80) for i, name in enumerate(those.sites)}
    cohort(those, people, "2026")
    two, _ = cohort(those, people, "2027")
    for site in those.sites.values():
        assert site.book.answer(two.round_id).counts.sum() == 0


def test_a_person_who_changes_site_pays_at_both(those):
    stays, moves = names(0, 80), names(80, 90)
    nobody = dict.fromkeys(those.sites, names(0, 0))
    _, a = cohort(those, nobody | {"s00": stays + moves}, "2026")
    two, b = cohort(those, nobody | {"s01": names(500, 560) + moves}, "2027")
    # Another book has another key: no one is known there.
    assert those.sites["s01"].book.answer(two.round_id).counts.sum() == 5 * 70
    total = (a + b).ledger
    assert total.epsilon_at(2) > total.epsilon == a.ledger.epsilon


PEOPLE = st.lists(st.lists(st.sampled_from(names(0, 8)), max_size=25), min_size=1, max_size=4)


@given(PEOPLE, st.integers(1, 3), st.randoms())
def test_nobody_is_in_two_cohorts_and_nobody_has_more_than_g_rows(cohorts, g, order):
    plan = PLAN
    book, seen, total = [], set(), Sketch.zero(plan)
    for year, persons in enumerate(cohorts):
        rows = [*persons, f"only {year} a", f"only {year} b"]
        order.shuffle(rows)
        known = barred(book, lambda one: one.register, f"year {year}")
        options = {"person": "patient", "rows_per_person": g, "key": b"k" * 16, "known": known}
        sketch = Sketch.from_data(plan, table(rows, year), **options)
        times = Counter(one for one in rows if one not in seen)
        assert sketch.n_rows == sum(min(g, n) for n in times.values())
        told = sketch.persons
        assert (told.known, told.known_rows) == (
            len(seen & set(rows)), sum(one in seen for one in rows)
        )  # fmt: skip
        assert told.n_persons == len(set(rows))
        assert told.left_out == len(rows) - sketch.n_rows
        # Who is left out changes nothing for anyone else.
        others = Sketch.from_data(plan, table(rows, year).filter(
            pa.array([one not in seen for one in rows])), **options | {"known": None})  # fmt: skip
        assert np.array_equal(others.counts, sketch.counts)
        assert len(told.register) == len(times)
        seen |= set(rows)
        total += sketch
        book.append(entry(f"year {year}", told.register))
    assert total.n_rows <= g * len(seen)


def test_files_and_runs_in_any_order_leave_the_same_persons_out(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    ids = rng.integers(900, size=4_000).tolist()
    rows = table([f"p{i}" for i in ids])
    options = {"person": "patient", "rows_per_person": 2, "key": b"k" * 16}
    known = Sketch.from_data(
        PLAN, table(names(300, 1_200)), **options, known=np.empty(0, np.uint64)
    ).persons.register
    expected = Sketch.from_data(PLAN, rows, **options, known=known)
    times = Counter(ids)
    assert expected.persons.known == sum(i >= 300 for i in times)
    assert expected.n_rows == sum(min(2, n) for i, n in times.items() if i < 300)
    monkeypatch.setattr("hushtable.data.persons.RUN_BYTES", 4_000)
    monkeypatch.setattr("hushtable.data.readers.reader.BATCH_ROWS", 100)
    for part in range(4):
        pq.write_table(rows.slice(1_000 * (3 - part), 1_000), tmp_path / f"{part}.parquet")
    for again in (rows, tmp_path):
        found = Sketch.from_data(PLAN, again, **options, known=known, n_jobs=2)
        assert found == expected
        assert np.array_equal(found.persons.register, expected.persons.register)
        assert np.array_equal(found.persons.sample, expected.persons.sample)
        assert found.persons.known_rows == expected.persons.known_rows


# --- the same people under another name ---------------------------------------------------------


def test_a_renamed_data_set_gains_nothing(those):
    answered(those, those.open(title="1"), table(names(0, 400)), "all rows")
    again = those.open(title="2")
    reply = reply_of(those, again, data_set="renamed")
    others = table(names(0, 400), seed=1)  # rows, of the same persons
    sketch = counted(reply, others, reply.barred())
    with pytest.raises(PrivacyError, match="seem to be those of 'all rows'"):
        send(reply, sketch)
    assert reply.book.data_sets() == ["all rows"]
    send(reply, sketch, new_people=True)
    assert reply.book.answer(again.round_id).counts.sum() == 0
    assert (sketch.persons.known, len(sketch.persons.register)) == (400, 0)
    # Two persons in four hundred would not be noticed, and are left out all the same.
    _, mixed = answered(those, those.open(title="3"), table(names(398, 800)), "third")
    assert mixed.n_rows == 400


def test_a_further_round_about_the_same_people_counts_them_and_adds_up(those):
    people = table(names(0, 80))
    answered(those, those.open(title="1"), people, "2026")
    answered(those, those.open(title="2"), table(names(100, 180)), "2027")
    _, again = answered(those, those.open(title="3"), people, "2026")
    assert again.n_rows == 80
    book = those.sites["s00"].book
    assert book.total("2026") > book.total("2027")


def test_an_answer_without_persons_leaves_nobody_out_and_is_said(those):
    site = those.sites["s00"]
    round_ = those.open(title="1")
    reply = Reply(round_, site.keys, site.book, at=T0)
    send(reply, Sketch.from_data(reply.plan, table(names(0, 80))))
    _, sketch = answered(those, those.open(title="2"), table(names(0, 80), 1), "2027")
    assert sketch.n_rows == 80
    assert (site.book.nameless("2027"), site.book.nameless("all rows")) == (1, 0)


def test_persons_whom_another_process_counted_meanwhile_are_not_counted_again(those):
    reply = reply_of(those, those.open(title="1"), data_set="2027")
    sketch = counted(reply, table(names(0, 80)), reply.barred())
    answered(those, those.open(title="2"), table(names(79, 160)), "2026")
    with pytest.raises(RoundError, match="in the meantime"):
        send(reply, sketch, new_people=True)
    assert reply.book.data_sets() == ["2026"]


def test_new_people_need_others_to_be_new_beside(those):
    book = those.sites["s00"].book
    book.check_others("all rows")
    answered(those, those.open(title="1"), table(names(0, 80)), "all rows")
    book.check_others("2027")
    with pytest.raises(UsageError, match="their own data_set"):
        book.check_others("all rows")


def test_registers_stay_in_the_chain_and_a_changed_one_is_noticed(those):
    answered(those, those.open(title="1"), table(names(0, 80)), "2026")
    site = those.sites["s00"]
    site.book.close()
    with Book.open(site.book.path) as book:
        (entry,) = [one for one in book.history() if one.kind == "answer"]
        assert entry.content["persons"] == 80
        assert len(book.barred("2027")) == 80
        assert len(book.barred("2026")) == 0
        assert book.answers()[0].register is None  # read where it is needed
        forged = to_bytes(np.arange(80, dtype=np.uint64))
        digest = entry.content["blobs"]["persons"]
        book._db.run("update blobs set content = ? where digest = ?", (forged, digest))
        with pytest.raises(Exception, match="was changed by another program"):
            book.barred("2027")


# --- digests ------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 9)), st.lists(st.integers(0, 9)))
def test_among(known, some):
    found = among(np.array(sorted(known), np.uint64), np.array(some, np.uint64))
    assert found.tolist() == [one in known for one in some]


def test_the_sample_is_of_all_persons_whoever_is_left_out():
    rows = table(names(0, 5_000))
    options = {"person": "patient", "key": b"k" * 16}
    first = Sketch.from_data(PLAN, rows.slice(0, 3_000), known=np.empty(0, np.uint64), **options)
    register = first.persons.register
    plain = Sketch.from_data(PLAN, rows, **options).persons
    known = Sketch.from_data(PLAN, rows, known=register, **options).persons
    assert len(plain.sample) == SAMPLE
    assert np.array_equal(plain.sample, known.sample)
    assert (known.n_persons, known.known) == (5_000, 3_000)


@pytest.mark.parametrize(
    "known",
    [[3, 5], np.array([3, 5]), np.array([5, 3], np.uint64), np.ones((2, 2), np.uint64), b"abcd"],
)
def test_what_is_no_register(known):
    with pytest.raises(UsageError, match="known"):
        Known(known)


def test_a_register_that_does_not_rise_is_refused():
    assert from_bytes(to_bytes(np.array([2, 3], np.uint64))).tolist() == [2, 3]
    with pytest.raises(ValueError, match="rises"):
        from_bytes(to_bytes(np.array([3, 2], np.uint64)))
    with pytest.raises(ValueError, match="size"):
        from_bytes(b"1234567")


# --- periods ------------------------------------------------------------------------------------


def entry(data_set, register=None, **content):
    said = {} if register is None else {"persons": len(register)}
    return SimpleNamespace(content={"data_set": data_set, **said, **content}, register=register)


def streamed(counted, stream="s", data_set="all rows"):
    """Answers to the periods of a stream, each with whom it counted."""
    return [
        entry(data_set, np.array(sorted(those), np.uint64), stream=stream, period=period)
        for period, those in counted.items()
    ]


STREAM = st.dictionaries(st.integers(1, 9), st.frozensets(st.integers(0, 6)), max_size=8)


@given(STREAM, st.integers(1, 9), st.integers(1, 3), st.integers(1, 3))
def test_who_has_no_period_left_or_had_one_just_now_is_barred(counted, number, most, apart):
    answers = streamed(counted) + streamed({1: {5, 6}}, stream="another")
    period = Period("s", number, Horizon.of(9, most, apart))
    found = barred(answers, lambda one: one.register, "all rows", period).tolist()
    others = {n: those for n, those in counted.items() if n != number}
    expected = [
        person
        for person in range(7)
        if sum(person in those for those in others.values()) >= most
        or any(person in those for n, those in others.items() if abs(n - number) < apart)
    ]
    assert found == expected


@given(st.lists(st.frozensets(st.integers(0, 9)), min_size=9, max_size=9), st.integers(1, 3),
       st.integers(1, 3))  # fmt: skip
def test_nobody_has_more_periods_than_the_horizon_allows(came, most, apart):
    horizon, counted = Horizon.of(9, most, apart), {}
    for number, those in enumerate(came, 1):
        period = Period("s", number, horizon)
        out = barred(streamed(counted), lambda one: one.register, "all rows", period).tolist()
        counted[number] = those - set(out)
    for person in range(10):
        periods = [number for number, those in counted.items() if person in those]
        assert len(periods) <= most
        assert all(b - a >= apart for a, b in itertools.pairwise(periods))


def test_a_period_just_far_enough_away_bars_nobody():
    answers = streamed({1: {1}, 2: {2}, 3: {3}, 6: {6}, 7: {7}})
    period = Period("s", 4, Horizon.of(9, 2, 3))
    assert barred(answers, lambda one: one.register, "all rows", period).tolist() == [2, 3, 6]


def test_a_stream_knows_the_persons_of_other_data_sets_too():
    period = Period("s", 2, Horizon.of(3))
    answers = streamed({1: {1}}) + streamed({1: {2}}, "t") + [entry("x", np.array([3], np.uint64))]
    read = {"read": lambda one: one.register, "data_set": "all rows"}
    assert barred(answers, **read, period=period).tolist() == [1, 3]
    assert barred(answers, **read).tolist() == [3]
    silent = [entry("all rows", stream="s", period=n) for n in (1, 2, 3)] + [entry("x")]
    assert nameless(answers + silent, "all rows", period) == 2  # period 3, and x
    assert nameless(answers + silent, "all rows", None) == 1


def test_under_a_policy_of_columns_a_period_needs_its_persons(those):
    plan = Plan.draw(PLAN.schema, n_tables=3, random_state=0, horizon=3, epsilon=1.0,
                     expected_rows=90)  # fmt: skip
    reply = reply_of(those, those.open(), data_set="all rows")
    reply.plan = plan  # as in a round about a period
    sketch = Sketch.from_data(plan, table(names(0, 60)), person="patient")
    with pytest.raises(UsageError, match=r"known=reply\.barred"):
        reply.counted(sketch)
    known = Sketch.from_data(plan, table(names(0, 60)), person="patient", known=reply.barred())
    assert reply.counted(known).sum() == 3 * 60
