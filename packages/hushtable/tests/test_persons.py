"""At most so many rows of a person are counted: whichever way the rows come."""

import hashlib
import hmac
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_sketch import DETECTORS, draw

from hushtable import Feature, Plan, Schema, Sketch, load
from hushtable.data import persons
from hushtable.data.readers import reader
from hushtable.errors import DataError, DataTypeError, FileError, PrivacyError, UsageError

SCHEMA = Schema([
    Feature.numeric("age", low=0, high=99),
    Feature.categorical("ward", ["a", "b"]),
])  # fmt: skip
PLAN = Plan.draw(SCHEMA, n_tables=4, random_state=0)
KEY = b"k" * 32


def table(rows):
    """Rows of (patient, age, ward)."""
    patient, age, ward = (list(column) for column in zip(*rows, strict=True))
    return pa.table({
        "patient": pa.array(patient, pa.string()), "age": pa.array(age, pa.float64()),
        "ward": pa.array(ward, pa.string()), "note": ["x"] * len(rows),
    })  # fmt: skip


def visits(n, n_persons, seed=0):
    rng = np.random.default_rng(seed)
    return [
        (f"p{i}", age, ward)
        for i, age, ward in zip(
            rng.integers(n_persons, size=n).tolist(),
            [None if a > 120 else a for a in rng.uniform(-9, 130, n).tolist()],
            rng.choice(["a", "b", "other", None], n).tolist(),
            strict=True,
        )
    ]


def sketch(rows, plan=PLAN, g=2, **options):
    data = table(rows) if isinstance(rows, list) else rows
    return Sketch.from_data(plan, data, person="patient", rows_per_person=g, **options)


PEOPLE = st.lists(
    st.tuples(
        st.sampled_from(["p1", "p2", "p3", "7", "007"]),
        st.none() | st.floats(-10, 110),
        st.sampled_from(["a", "b", "c", None]),
    ),
    min_size=1,
    max_size=40,
)


@given(PEOPLE, st.integers(1, 5), st.randoms(), st.integers(1, 9))
def test_at_most_g_rows_of_each_and_the_same_in_any_order(rows, g, order, batch):
    times = Counter(patient for patient, _, _ in rows)
    if len(times) == 1 and len(rows) > g:
        rows = [*rows, ("another", 1.0, "a")]
        times["another"] = 1
    found = sketch(rows, g=g)
    assert found.n_rows == sum(min(g, n) for n in times.values())
    seen = found.persons
    assert (seen.n_rows, seen.n_persons) == (len(rows), len(times))
    assert seen.left_out == len(rows) - found.n_rows
    assert seen.cut == sum(n > g for n in times.values())
    # What is counted of a person is counted no matter who else is there.
    alone = [[row for row in rows if row[0] == one] for one in times]
    parts = [sketch([*own, ("zz", None, None)], g=g) for own in alone]
    other = sketch([("zz", None, None)], g=g)
    assert sum((part - other for part in parts), start=Sketch.zero(PLAN)) == found
    shuffled = list(rows)
    order.shuffle(shuffled)
    again = pa.Table.from_batches(table(shuffled).to_batches(max_chunksize=batch))
    assert sketch(again, g=g) == found


@given(PEOPLE, PEOPLE, st.integers(1, 3))
def test_one_person_changes_the_counts_by_g_rows(rows, own, g):
    others = [("other 1", 1.0, "a"), ("other 2", 2.0, "b"), *((p + "x", a, w) for p, a, w in rows)]
    mine = [("me", age, ward) for _, age, ward in own]
    change = sketch(others + mine, g=g).counts - sketch(others, g=g).counts
    assert change.min() >= 0
    tables = np.add.reduceat(change, PLAN.family.offsets[:-1])
    assert set(tables.tolist()) == {min(g, len(mine))}


@pytest.mark.parametrize("detector", DETECTORS)
def test_all_rows_of_all_are_what_is_counted_without(detector):
    rows = visits(700, 50)
    if detector == "second pass":  # how far a chosen row is beyond its range is not kept for a gate
        rows = [(who, age and min(max(age, 0.0), 99.0), ward) for who, age, ward in rows]
    rows = table(rows)
    plan = draw(SCHEMA, detector, rows)
    assert sketch(rows, plan, g=700) == Sketch.from_data(plan, rows)


def test_runs_on_disk_threads_batches_and_files_change_nothing(monkeypatch, tmp_path):
    rows = table(visits(3_000, 200))
    expected = sketch(rows)
    assert expected.persons.left_out > 2_000
    monkeypatch.setattr(persons, "RUN_BYTES", 4_000)
    monkeypatch.setattr(reader, "BATCH_ROWS", 100)
    for n_jobs in (1, 3):
        found = sketch(rows, n_jobs=n_jobs)
        assert found == expected
        assert np.array_equal(found.persons.sample, expected.persons.sample)
        assert found.persons.cut == expected.persons.cut
    together = sketch(rows.sort_by("patient"))  # all rows of a person in one run
    assert together == expected
    assert together.persons.cut == expected.persons.cut
    for i in range(4):
        pq.write_table(rows.slice(750 * (3 - i), 750), tmp_path / f"{i}.parquet")
    assert sketch(tmp_path, n_jobs=2) == expected
    assert sketch(iter_of(rows)) == expected


@pytest.mark.parametrize("n", range(8))
def test_rows_of_one_cell_inside_and_outside_are_told_apart(n):
    at, beyond = (f"p{n}", 99.0, "a"), (f"p{n}", 120.0, "a")
    other = ("other", 1.0, "a")
    assert sketch([at, beyond, other], g=1) == sketch([beyond, at, other], g=1)


def iter_of(rows):
    """Rows that can be read once only."""
    return pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=70))


def test_nothing_is_left_in_the_temporary_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(persons, "RUN_BYTES", 4_000)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sketch(visits(2_000, 100))
    with pytest.raises(DataError):
        sketch([*visits(2_000, 100), (None, 1.0, "a")])
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(FileError, match="TMPDIR"):
        sketch(visits(2_000, 100))


def test_persons_are_hashed_by_hmac_sha256_under_the_key():
    names = [f"p{i}" for i in range(30)]
    rows = [(name, 1.0, "a") for name in names]
    macs = sorted(hmac.digest(KEY, name.encode(), hashlib.sha256)[:16] for name in names)
    sample = sketch(rows, key=KEY).persons.sample
    assert sample.astype(">u8").tobytes() == b"".join(macs)
    assert not np.array_equal(sketch(rows).persons.sample, sample)


def test_the_key_settles_which_rows_and_no_person_is_favoured():
    ages = np.arange(100.0).tolist()
    rows = [(f"p{i}", age, "a") for i in range(40) for age in ages]
    plan = Plan.marginals(SCHEMA)
    one, other = (sketch(rows, plan, g=50, key=key) for key in (KEY, b"other" * 8))
    assert one == sketch(rows, plan, g=50, key=KEY) != other
    # Half of each age: drawn again for each person.
    low = one.counts[: plan.family.offsets[1]]
    few = low[low > 0]
    assert few.max() < 1.5 * np.median(few)


# --- who is who -----------------------------------------------------------------------------


def test_texts_and_whole_numbers_are_the_same_ids_however_they_are_stored():
    ids = [1, 1, 1, 2, 2, 3]
    expected = None
    for kind in (pa.int8(), pa.uint64(), pa.float64(), pa.string(), pa.large_string()):
        column = pa.array(ids).cast(kind)
        rows = table([("", 5.0 * i, "a") for i in range(6)]).set_column(0, "patient", column)
        for same in (rows, rows.set_column(0, "patient", column.dictionary_encode())):
            found = sketch(same, g=1)
            assert found.persons.n_persons == 3
            expected = expected or found
            assert found == expected
    assert sketch(rows.to_pandas(), g=1) == expected


def test_blanks_around_an_id_are_not_part_of_it_and_zeros_are():
    rows = [(one, float(i), "a") for i, one in enumerate(["7", " 7", "7\t", "007", "P7", "p7"])]
    assert sketch(rows, g=1).persons.n_persons == 4


def test_ids_of_files_are_taken_as_they_are_written(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("age,ward,patient\n1,a,7\n2,a,007\n3,b,7\n4,b,7.0\n")
    found = sketch(path, g=1)
    assert found.persons.n_persons == 3
    path.write_text("age,ward,patient\n1,a,7\n2,a,\n3,b, \n")
    with pytest.raises(DataError, match="in 2 of 3 rows"):
        sketch(path)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array(["p", None, None]), "empty in 2 of 3 rows"),
        (pa.array([1.0, float("nan"), 2.0]), "empty in 1 of 3 rows"),
        (pa.nulls(3), "empty in 3 of 3"),
        (pa.array([1.0, 1.5, 2.0]), "number 1.5 in row 1"),
        (pa.array([1.0, 2.0**53, 2.0]), "too large"),
        (pa.array([1.0, 2.0**24, 2.0], pa.float32()), "too large"),
        (pa.array([1.0, float("inf"), 2.0]), "number inf in row 1"),
        (pa.array([True, False, True]), "type bool"),
        (pa.array([b"x", b"y", b"z"]), "type binary"),
        (pa.array(["p", "p", "p"]), "all 3 rows belong to one person"),
    ],
)
def test_a_column_that_tells_no_persons_is_refused(column, words):
    rows = table([("", 1.0, "a")] * 3).set_column(0, "patient", column)
    with pytest.raises((DataError, DataTypeError), match=words):
        sketch(rows)


def test_numbers_in_one_file_and_texts_in_another_are_refused(tmp_path):
    for name, ids in (("a", [1, 2]), ("b", ["1", "02"])):
        rows = table([("", 1.0, "a")] * 2).set_column(0, "patient", pa.array(ids))
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    with pytest.raises(DataError, match="numbers in some rows and texts in others"):
        sketch(tmp_path)


def test_numbers_and_texts_in_one_column_of_a_frame_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1.0, 2.0, 3.0], "ward": "a", "patient": [1, "1", 1.0]})
    with pytest.raises(DataError, match="patient"):
        sketch(frame)


def test_who_has_one_row_each_loses_none():
    rows = visits(50, 10_000)
    found = sketch(rows, g=1)
    assert (found.persons.left_out, found.n_rows) == (0, 50)
    assert sketch([("p", 1.0, "a")], g=1).n_rows == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"person": "age"}, "counts it as a feature"),
        ({"person": "who"}, "no column .*who"),
        ({"person": "patient", "rows_per_person": 0}, "rows_per_person"),
        ({"person": "patient", "key": b"short"}, "16"),
        ({"person": "patient", "key": b""}, "16"),
        ({"rows_per_person": 2}, "person="),
        ({"key": KEY}, "person="),
        ({"person": "patient", "sample_weight": [1, 1]}, "sample_weight"),
        ({"person": "patient", "max_samples": 1}, "max_samples"),
    ],
)
def test_what_cannot_be_is_refused(options, words):
    with pytest.raises((DataError, UsageError), match=words):
        Sketch.from_data(PLAN, table(visits(2, 2)), **options)


def test_rows_without_names_have_no_such_column():
    plan = Plan.draw(Schema([Feature.numeric("a", low=0, high=9)]), n_tables=2, random_state=0)
    for rows in (np.ones((3, 1)), [[1.0]]):
        with pytest.raises(DataError, match="no column names"):
            Sketch.from_data(plan, rows, person="patient")


def test_no_rows():
    empty = table(visits(1, 1)).slice(0, 0)
    with pytest.raises(DataError, match="no rows"):
        sketch(empty)
    found = sketch(empty, allow_empty=True)
    assert (found.n_rows, found.rows_per_person, found.persons.n_persons) == (0, 2, 0)


# --- what the sketch says, and what its release does ----------------------------------------


def test_the_sketch_says_how_many_and_its_release_needs_nobodys_word(tmp_path):
    found = sketch(visits(300, 40), g=3)
    found.save(tmp_path / "s.hush")
    for one in (found, load(tmp_path / "s.hush")):
        assert one.rows_per_person == 3
        assert one.release(9.0).ledger.sensitivity.rows_per_person == 3
        assert one.release(9.0, rows_per_person=5).ledger.sensitivity.rows_per_person == 5
        with pytest.raises(PrivacyError, match="up to 3 rows"):
            one.release(9.0, rows_per_person=1)
    assert Sketch.from_data(PLAN, table(visits(9, 9))).rows_per_person is None


def test_what_leaves_does_not_say_how_many_were_left_out(tmp_path):
    kept = sketch([("p1", 1.0, "a")] * 50 + [("p2", 2.0, "a")], g=1)
    fewer = sketch([("p1", 1.0, "a"), ("p2", 2.0, "a")], g=1)
    assert kept == fewer
    for name, one in (("kept", kept), ("fewer", fewer)):
        one.save(tmp_path / name)
    assert (tmp_path / "kept").read_bytes() == (tmp_path / "fewer").read_bytes()
    assert kept.release(1.0).entries()[0].keys() == fewer.release(1.0).entries()[0].keys()


def test_who_is_in_two_sketches_has_the_rows_of_both():
    a, b = sketch(visits(30, 9), g=2), sketch(visits(30, 9, seed=1), g=3)
    assert (a + b).rows_per_person == (b + a).rows_per_person == 5
    assert (a + Sketch.zero(PLAN)).rows_per_person == 2
    assert (Sketch.zero(PLAN) + a).rows_per_person == 2
    assert (a + Sketch.from_data(PLAN, table(visits(9, 9)))).rows_per_person is None
    with pytest.raises(PrivacyError, match="up to 5 rows"):
        (a + b).release(1.0, rows_per_person=2)
