"""A round counts at most g rows of a person, and the book knows persons again."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable import Sketch
from hushtable.data.readers import as_reader
from hushtable.errors import PrivacyError
from hushtable_federation.policy import Policy
from hushtable_federation.refusals import Refusal, Refused
from person_helpers import COLUMN, PLAN, counted, names, reply_of, table
from round_helpers import send


def test_fifty_rows_of_each_patient_count_as_one(those):
    once = table(names(0, 60))
    round_ = those.open(rows_per_person=1)
    reply = reply_of(those, round_)
    fifty = pa.concat_tables([once] * 50)
    with pytest.raises(Refused, match="person = ") as refused:
        send(reply, Sketch.from_data(reply.plan, fifty))
    assert refused.value.word is Refusal.POLICY
    assert those.sites["s00"].book.answers() == []
    send(reply, counted(reply, fifty))
    answer = those.sites["s00"].book.answer(round_.round_id)
    assert np.array_equal(answer.counts, Sketch.from_data(reply.plan, once).counts)


@pytest.mark.parametrize("g", [1, 3])
def test_a_sketch_of_more_rows_a_person_than_the_round_states_is_refused(those, g):
    reply = reply_of(those, those.open(rows_per_person=g))
    rows = table(names(0, 60) * 5)
    more = Sketch.from_data(reply.plan, rows, person="patient", rows_per_person=g + 1)
    with pytest.raises(PrivacyError, match=f"up to {g + 1} rows"):
        send(reply, more)


@given(
    st.lists(st.lists(st.sampled_from(names(0, 6)), min_size=2, max_size=30), min_size=1,
             max_size=4), st.integers(1, 3),
)  # fmt: skip
def test_sites_together_count_at_most_g_rows_of_a_person_each(sites, g):
    total = Sketch.zero(PLAN)
    for seed, persons in enumerate(sites):
        rows = table([*persons, "someone else"], seed)
        total += Sketch.from_data(PLAN, rows, person="patient", rows_per_person=g)
    expected = sum(min(g, p.count(one)) for p in sites for one in set(p)) + len(sites)
    assert total.n_rows == expected
    assert total.rows_per_person == g * len(sites)


# --- the same people under another name -----------------------------------------------------


def answered(those, persons, data_set, seed, **options):
    round_ = those.open(title=f"round {seed}")
    reply = reply_of(those, round_, data_set=data_set)
    return send(reply, counted(reply, table(persons, seed)), **options)


def test_the_same_people_under_another_name_are_known_by_their_ids(those):
    answered(those, names(0, 400), "all rows", 0)
    # Other rows, of whom a quarter are the same people.
    with pytest.raises(PrivacyError, match="seem to be those of 'all rows'"):
        answered(those, names(300, 700), "second clinic", 1)
    book = those.sites["s00"].book
    assert book.data_sets() == ["all rows"]
    answered(those, names(300, 700), "all rows", 2)
    answered(those, names(400, 700), "second clinic", 3, new_people=True)
    answered(those, names(5_000, 5_400), "third", 4)
    assert book.data_sets() == ["all rows", "second clinic", "third"]


def test_a_few_people_are_known_if_they_are_all_the_same(those):
    answered(those, names(0, 20), "all rows", 0)
    answered(those, names(1, 20), "other", 1)
    with pytest.raises(PrivacyError, match="seem to be those"):
        answered(those, names(0, 20) * 2, "third", 2)


@pytest.mark.parametrize("again", ["other pseudonyms", "no column"])
def test_rows_are_known_again_if_their_persons_have_other_names_or_none(those, again):
    """Digests of rows are needed beside those of persons, whose names can change."""

    def given(title, persons, data_set, policy=COLUMN):
        reply = reply_of(those, those.open(title=title), policy=policy, data_set=data_set)
        rows = table(persons)  # the same values each time
        digester = reply.book.digester(reply.plan.schema)
        for _ in digester.watch(as_reader(rows.drop_columns(["patient"]))).read():
            pass
        by_column = policy is COLUMN
        sketch = counted(reply, rows) if by_column else Sketch.from_data(reply.plan, rows)
        return send(reply, sketch, rows=digester.digests())

    given("first", names(0, 400), "all rows")
    policy = COLUMN if again == "other pseudonyms" else Policy(persons=1)
    with pytest.raises(PrivacyError, match="seem to be those of 'all rows'"):
        given("second", names(9_000, 9_400), "renamed", policy)
    assert those.sites["s00"].book.data_sets() == ["all rows"]


# --- the policy -----------------------------------------------------------------------------


def test_an_answered_round_is_answered_again_whatever_the_policy_says(those):
    round_ = those.open()
    rows = table(names(0, 60))
    first = reply_of(those, round_, policy=Policy(persons=1))
    sent = send(first, Sketch.from_data(first.plan, rows))
    again = reply_of(those, round_)
    assert send(again, Sketch.from_data(again.plan, rows)) == sent
