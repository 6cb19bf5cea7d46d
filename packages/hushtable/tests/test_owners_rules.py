"""Rules of a table's owner: what they do to batches, what they refuse, and their file."""

import os
import stat
import sys
import time
import tomllib
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable import Feature, HushTable, Schema
from hushtable.errors import DataError, UsageError
from hushtable.scores.rule_file import HEADER
from hushtable.scores.rules import Rules, add_rule, rules_beside, rules_path
from hushtable.scores.typical import UsualValues

DAY = 86_400.0
START = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
SCHEMA = Schema([
    Feature.numeric("z", low=-9, high=99),
    Feature.numeric("creatinine", low=0, high=2000, unit="umol/l"),
    Feature.categorical("ward", ["north", "south", "1"]),
    Feature.numeric("admitted", low=START, high=START + 100 * DAY, unit="date"),
    Feature.numeric("gap", low=0, high=40, unit="log2 s"),
])  # fmt: skip
USUAL = [
    UsualValues(0.0, (2.0, 5.0, 8.0)),
    UsualValues(0.0, (40.0, 80.0, 120.0)),
    UsualValues(0.0, None, {"north": 0.6, "south": 0.3}),
    UsualValues(0.0, (START + 10 * DAY, START + 20 * DAY, START + 30 * DAY)),
    UsualValues(0.0, (3.0, 10.0, 20.0)),
]
Z, CREATININE, WARD, ADMITTED, GAP = range(5)


def rules_of(*columns, known=(), usual=USUAL, schema=SCHEMA, extra=None):
    """Make rules of tables as TOML has them."""
    return Rules.from_dict({"column": [*columns], "known": [*known]}, schema, usual, extra)


def rows(**columns):
    """Make an Arrow batch of the schema's columns: those given, and others that are usual."""
    n = len(next(iter(columns.values())))
    defaults = {
        "z": pa.array([5.0] * n),
        "creatinine": pa.array([80.0] * n),
        "ward": pa.array(["north"] * n),
        "admitted": pa.array([START + 20 * DAY] * n),
        "gap": pa.array([10.0] * n),
    }
    return pa.RecordBatch.from_pydict(defaults | columns)


def matrix(values, schema_size=2, dtype=np.float64):
    """Make a matrix whose first column has some values."""
    X = np.full((len(values), schema_size), 5, dtype)
    X[:, 0] = values
    return X


def written(tmp_path, text):
    path = tmp_path / "m.rules.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# --- values of no interest ------------------------------------------------------------------------

ONLY_HIGH = {"name": "z", "only": "high"}
WITHIN = {"name": "z", "ignore_within": 2}


def test_missing_values_and_infinities_stay():
    rules = rules_of(ONLY_HIGH)
    X = matrix([np.nan, -np.inf, np.inf, 1.0], 5)
    np.testing.assert_array_equal(rules.applied(X)[:, 0], [np.nan, -np.inf, np.inf, 5.0])
    found = rules.applied(rows(z=pa.array([None, float("nan"), 1.0]))).column("z")
    assert found.null_count == 1
    assert found[0].as_py() is None
    assert np.isnan(found[1].as_py())
    assert found[2].as_py() == 5.0


def test_a_batch_that_has_no_such_value_is_returned_itself():
    rules = rules_of(ONLY_HIGH, WITHIN)
    X, batch = matrix([5.0, np.nan, 50.0], 5), rows(z=[5.0, None, 50.0])
    assert rules.applied(X) is X
    assert rules.applied(batch) is batch
    assert Rules.from_dict({}, SCHEMA).applied(X) is X


def test_columns_without_such_values_are_not_copied_and_those_behind_stay():
    batch = rows(z=[1.0, 6.0], creatinine=[1.0, 500.0])
    batch = batch.append_column("z given context", pa.array([-4.0, 1.0]))
    batch = batch.append_column("order", pa.array(["a", None]))
    found = rules_of(ONLY_HIGH, {"name": "creatinine", "ignore_within": 5}).applied(batch)
    assert found.schema.names == batch.schema.names
    assert found.column(Z).to_pylist() == [5.0, 6.0]
    for j in range(1, batch.num_columns):
        old, new = batch.column(j).buffers(), found.column(j).buffers()
        assert [b and b.address for b in new] == [b and b.address for b in old]
    X = np.array([[1.0, 80.0, -4.0]])
    np.testing.assert_array_equal(rules_of(ONLY_HIGH).applied(X), [[5.0, 80.0, -4.0]])


@pytest.mark.parametrize("encoded", [False, True])
def test_rows_whose_score_a_rule_would_lower_stay_as_they_are(encoded):
    ward = pa.array(["north", None, "south"])
    batch = rows(z=[1.0, 2.0, 9.0], ward=ward.dictionary_encode() if encoded else ward)
    ruled = rules_of(ONLY_HIGH).applied(batch)
    found = Rules.restored(ruled, batch, np.array([True, False, False]))
    assert found.column(Z).to_pylist() == [1.0, 5.0, 9.0]
    for j in range(1, batch.num_columns):
        assert found.column(j).equals(batch.column(j))


@pytest.mark.parametrize(
    ("column", "middle", "expected"),
    [
        (pa.array([1, None, 9], pa.int8()), 5.0, pa.array([5, None, 9], pa.int8())),
        (pa.array([1, None, 9], pa.int64()), 4.5, pa.array([4.5, None, 9.0])),
        (pa.array([1, None, 9], pa.int8()), 300.0, pa.array([300.0, None, 300.0])),
        (pa.array([1, None, 9]).dictionary_encode(), 5.0, pa.array([5, None, 9])),
        (pa.array([False, True, None]), 1.0, pa.array([True, True, None])),
        (pa.array([False, True, None]), 0.5, pa.array([0.5, 1.0, None])),
        (
            pa.array([Decimal("1.50"), Decimal("9.25")]),
            5.5,
            pa.array([Decimal("5.50"), Decimal("9.25")]),
        ),
        (pa.array([Decimal("1.5"), Decimal("9.5")]), 5.25, pa.array([5.25, 9.5])),
        (pa.array([1, 9], pa.duration("ms")), 5.0, pa.array([5000, 5000], pa.duration("ms"))),
        (pa.array([1, 9], pa.time32("s")), 5.0, pa.array([5, 9], pa.time32("s"))),
    ],
)
def test_types_stay_where_they_hold_the_value(column, middle, expected):
    schema = Schema([Feature.numeric("z", low=0, high=999)])
    usual = [UsualValues(0.0, (middle, middle, middle))]
    rules = rules_of(ONLY_HIGH, usual=usual, schema=schema)
    found = rules.applied(pa.RecordBatch.from_arrays([column], ["z"])).column(0)
    assert found.type == expected.type
    assert found.to_pylist() == expected.to_pylist()


def test_integers_of_a_matrix_become_floats_if_one_changes():
    rules = rules_of(ONLY_HIGH, usual=[UsualValues(0.0, (1.0, 4.5, 8.0)), *USUAL[1:]])
    X = matrix([1, 9], 5, np.int64)
    np.testing.assert_array_equal(rules.applied(X)[:, 0], [4.5, 9.0])
    assert rules.applied(X[1:]).dtype == np.int64


DATES = {
    "seconds": lambda days: pa.array([START + d * DAY for d in days]),
    "date32": lambda days: pa.array([date(2026, 1, 1) + timedelta(d) for d in days], pa.date32()),
    "date64": lambda days: pa.array([date(2026, 1, 1) + timedelta(d) for d in days], pa.date64()),
    **{
        f"timestamp[{unit}]": lambda days, unit=unit, zone=zone: pa.array(
            [datetime(2026, 1, 1) + timedelta(d) for d in days], pa.timestamp(unit, zone)
        )
        for unit, zone in (("s", None), ("ms", "UTC"), ("us", None), ("ns", "Europe/Berlin"))
    },
}


@pytest.mark.parametrize("kind", DATES)
def test_dates(kind):
    column = DATES[kind]
    rules = rules_of(
        {"name": "admitted", "only": "high", "ignore_within": "5 days"},
        {"name": "admitted", "impossible_below": date(2026, 1, 3), "impossible": ["2026-01-09"]},
        {"name": "admitted", "impossible_above": datetime(2026, 3, 1, 12)},
        known=[{"admitted": date(2026, 1, 7)}, {"admitted": "2026-02-05T00:00"}],
    )
    batch = rows(admitted=column([0, 2, 6, 8, 25, 35, 36, 59, 60]))
    expected = column([20, 20, 20, 20, 25, 30, 36, 59, 60])
    assert rules.applied(batch).column("admitted").equals(expected)
    assert rules.impossible(batch).tolist() == [3, -1, -1, 3, -1, -1, -1, -1, 3]
    assert np.flatnonzero(rules.known(batch)).tolist() == [2, 5]
    assert rules.words(ADMITTED, "2026-01-01") == "admitted 2026-01-01: impossible by your rules"


def test_a_time_of_day_counts_to_the_microsecond():
    at = datetime(2026, 1, 7, 13, 14, 15, 49)
    # Nanoseconds since 1970 are rounded twice on their way to seconds.
    assert at.replace(tzinfo=UTC).timestamp() != 1_767_791_655_000_049_000 / 1e9
    rules = rules_of({"name": "admitted", "impossible": [at]}, known=[{"admitted": at}])
    for unit in ("us", "ns"):
        batch = rows(admitted=pa.array([at, at + timedelta(microseconds=1)], pa.timestamp(unit)))
        assert rules.known(batch).tolist() == [True, False]
        assert rules.impossible(batch).tolist() == [ADMITTED, -1]
    berlin = at.replace(tzinfo=timezone(timedelta(hours=1)))
    rules = rules_of(known=[{"admitted": berlin}])
    batch = rows(admitted=pa.array([at, at - timedelta(hours=1)]))
    assert rules.known(batch).tolist() == [False, True]


NUMBER = st.one_of(
    st.none(), st.floats(-30, 60, width=32), st.sampled_from([0.0, 2.0, 5.0, 8.0, 10.0])
)


@given(
    values=st.lists(NUMBER, min_size=1, max_size=30),
    only=st.sampled_from([None, "high", "low"]),
    within=st.one_of(st.none(), st.floats(0, 20)),
    width=st.sampled_from([np.float32, np.float64]),
)
def test_applied_changes_what_rules_are_about_and_once(values, only, within, width):
    said = {"only": only, "ignore_within": within}
    said = {key: value for key, value in said.items() if value is not None}
    rules = rules_of(*([{"name": "z"} | said] if said else []))
    before = np.array([np.nan if x is None else x for x in values], width)
    given = matrix(before, 3, width)
    once = rules.applied(given)
    np.testing.assert_array_equal(given, matrix(before, 3, width))
    np.testing.assert_array_equal(rules.applied(once), once)
    np.testing.assert_array_equal(once[:, 1:], 5.0)
    batch = rows(z=pa.array(before, from_pandas=True))
    found = rules.applied(batch)
    assert found.schema == batch.schema
    assert rules.applied(found).equals(found)
    np.testing.assert_array_equal(found.column("z").to_numpy(zero_copy_only=False), once[:, 0])
    for x, y in zip(before.tolist(), once[:, 0].tolist(), strict=True):
        assert y == expected(x, only, within) or np.isnan([x, y]).all()


def expected(x, only, within):
    """Say plainly what a value counts as."""
    if (only == "high" and x < 5.0) or (only == "low" and x > 5.0):
        return 5.0
    if within is not None and 2.0 - within <= x < 2.0:
        return 2.0
    if within is not None and 8.0 < x <= 8.0 + within:
        return 8.0
    return x


def test_what_lies_within_is_found_in_spite_of_rounding():
    assert 0.7 + 0.1 < 0.8
    usual = [UsualValues(0.0, (0.3, 0.5, 0.7)), *USUAL[1:]]
    rules = rules_of({"name": "z", "ignore_within": 0.1}, usual=usual)
    for dtype in (np.float32, np.float64):
        found = rules.applied(matrix([0.2, 0.8, 0.801, 0.199], 5, dtype))[:, 0]
        np.testing.assert_array_equal(found, np.array([0.3, 0.7, 0.801, 0.199], dtype))


# --- impossible values ----------------------------------------------------------------------------


def batches(values, dtype=np.float64):
    """Yield a matrix and an Arrow batch whose first column has some values."""
    yield matrix(values, 5, dtype)
    column = pa.array(np.asarray(values, dtype), from_pandas=True)
    yield rows(z=column)
    yield rows(z=column.dictionary_encode())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_impossible_numbers(dtype):
    rules = rules_of(
        {"name": "z", "impossible": [0, 4.1], "impossible_below": -0.3, "impossible_above": 40.7}
    )
    values = [0.0, -0.0, 4.1, -0.3, -0.31, 40.7, 40.8, 5.0, np.nan]
    for batch in batches(values, dtype):
        assert rules.impossible(batch).tolist() == [0, 0, 0, -1, 0, -1, 0, -1, -1]
        assert rules.impossible(batch).dtype == np.int64


def test_impossible_whole_numbers_and_truth_values():
    rules = rules_of({"name": "z", "impossible": [True, 7.5], "impossible_above": 1e300})
    for batch in batches([0, 1, 7, 8], np.int32):
        assert rules.impossible(batch).tolist() == [-1, 0, -1, -1]
    assert rules.impossible(rows(z=pa.array([True, False, None]))).tolist() == [0, -1, -1]
    assert rules.impossible(matrix([1, 2], 5, np.float32)).tolist() == [0, -1]


TEXT_TYPES = [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]


@pytest.mark.parametrize("kind", TEXT_TYPES)
def test_impossible_texts(kind):
    markup = "<b>x</b> & \"y\" 'z' \\ [/red]"
    rules = rules_of({"name": "ward", "impossible": [markup, "south", 1]})
    column = pa.array(["north", "south", None, markup, "1", "South", "<b>x</b>"], kind)
    found = rules.impossible(rows(ward=column)).tolist()
    assert found == [-1, WARD, -1, WARD, WARD, -1, -1]
    assert rules.words(WARD, markup) == f"ward {markup}: impossible by your rules"


def test_codes_in_a_matrix_are_impossible_as_texts():
    schema = Schema([Feature.categorical("code", ["1", "2", "9"])])
    rules = rules_of({"name": "code", "impossible": [9]}, schema=schema, usual=None)
    X = np.array([[1.0], [9.0], [np.nan]])
    assert rules.impossible(X).tolist() == [-1, 0, -1]
    known = rules_of(known=[{"code": "2"}], schema=schema).known(np.array([[1], [2]]))
    assert known.tolist() == [False, True]


def test_the_first_impossible_feature_is_named():
    rules = rules_of(
        {"name": "creatinine", "impossible_above": 1000},
        {"name": "ward", "impossible": ["south"]},
        {"name": "z", "impossible": [0]},
    )
    batch = rows(z=[5, 0, 5], creatinine=[2000, 2000, 50], ward=["south", "south", "south"])
    assert rules.impossible(batch).tolist() == [CREATININE, Z, WARD]
    assert rules.words(CREATININE, "2000") == "creatinine 2000 umol/l: impossible by your rules"


def test_a_time_since_an_earlier_reading_is_a_length_of_time():
    rules = rules_of({"name": "gap", "impossible_above": "30 days"})
    seconds = np.array([29, 30, 31]) * DAY
    assert rules.impossible(rows(gap=np.log2(1.0 + seconds))).tolist() == [-1, -1, GAP]


# --- known rows -----------------------------------------------------------------------------------


def test_known_numbers_match_whatever_their_type():
    rules = rules_of(known=[{"z": 17}, {"z": 0.1}, {"z": True}, {"z": 1e300}])
    for dtype in (np.float64, np.float32):
        for batch in batches([17.0, 0.1, 17.1, 1.0, np.nan], dtype):
            assert rules.known(batch).tolist() == [True, True, False, True, False]
    for batch in batches([17, 0, 1], np.int16):
        assert rules.known(batch).tolist() == [True, False, True]


@given(data=st.data())
def test_known_rows_are_those_that_a_plain_comparison_finds(data):
    value = {"z": st.integers(0, 3), "ward": st.sampled_from(["north", "south"]),
             "order": st.sampled_from(["a", "b", "c"])}  # fmt: skip
    known = data.draw(
        st.lists(st.fixed_dictionaries({}, optional=value).filter(bool), max_size=6, unique_by=str)
    )
    known = [dict(one) for one in {frozenset(row.items()) for row in known}]
    some = data.draw(st.lists(st.fixed_dictionaries(
        {name: st.one_of(st.none(), values) for name, values in value.items()}
    ), min_size=1, max_size=20))  # fmt: skip
    batch = rows(
        z=pa.array([row["z"] for row in some], pa.float64()),
        ward=pa.array([row["ward"] for row in some], pa.string()),
    ).append_column("order", pa.array([row["order"] for row in some], pa.string()))
    matching = [any(all(row[k] == v for k, v in one.items()) for one in known) for row in some]
    rules = rules_of(known=known)
    assert rules.known(batch).tolist() == matching
    assert rules.columns == (["order"] if any("order" in one for one in known) else [])


BIG = 900_719_925_474_099_301
#: Columns behind the features, and of each of their values whether it is known by order = VALUE.
BEHIND = [
    (17, pa.array([17, 18, None]), [1, 0, 0]),
    (17, pa.array([17.0, 17.5, None]), [1, 0, 0]),
    (17.0, pa.array([17, 18], pa.uint64()), [1, 0]),
    (0.1, pa.array([0.1, 0.2], pa.float32()), [1, 0]),
    (1e-7, pa.array([1e-7, 1e-6]), [1, 0]),
    (17, pa.array([Decimal("17.00"), Decimal("17.01")]), [1, 0]),
    (17, pa.array(["17", "17.0", "017", "a17", None]), [1, 1, 0, 0, 0]),
    (3.5, pa.array(["3.5", "3.4"]), [1, 0]),
    (BIG, pa.array([BIG, BIG + 1]), [1, 0]),
    (BIG, pa.array([str(BIG), str(BIG + 1)]), [1, 0]),
    ("17", pa.array([17, 18]), [1, 0]),
    ("17", pa.array([17.0, 18.0]), [1, 0]),
    ("017", pa.array(["017", "17"]).dictionary_encode(), [1, 0]),
    ("<i>a</i>", pa.array(["<i>a</i>", "a"], pa.large_string()), [1, 0]),
    ("é", pa.array(["é", "e", None], pa.string_view()), [1, 0, 0]),
    (True, pa.array([True, False, None]), [1, 0, 0]),
    (True, pa.array(["true", "1"]), [1, 0]),
    (date(2026, 1, 5), pa.array([date(2026, 1, 5), date(2026, 1, 6), None]), [1, 0, 0]),
    (date(2026, 1, 5), pa.array([datetime(2026, 1, 5), datetime(2026, 1, 5, 1)]), [1, 0]),
    (date(2026, 1, 5), pa.array(["2026-01-05", "2026-01-05 00:00", "2026-01-50"]), [1, 1, 0]),
    ("2026-01-05", pa.array([date(2026, 1, 5), None]), [1, 0]),
    ("2026-01-05 00:00:00.000000", pa.array([datetime(2026, 1, 5), datetime(2026, 1, 6)]), [1, 0]),
    ("2026-01-05 00:00:00.000000", pa.array(["2026-01-05 00:00:00.000000", "5"]), [1, 0]),
    (datetime(2026, 1, 5, 9, 30), pa.array(["2026-01-05T09:30", "2026-01-05 09:30:00Z"]), [1, 1]),
    (datetime(2026, 1, 5, 9, 30), pa.array([datetime(2026, 1, 5, 9, 30)], pa.timestamp("ns")), [1]),
    ("2026-99-99", pa.array(["2026-99-99", "2026-01-01"]), [1, 0]),
    ("20260105", pa.array(["20260105", "2026-01-05"]), [1, 0]),
    ("2026-01-05x12:00", pa.array([datetime(2026, 1, 5, 12)]), [0]),
    (date(2026, 1, 5), pa.array([17, 18]), [0, 0]),
    (date(1801, 1, 5), pa.array([date(1801, 1, 5)]), [1]),
    (date(1801, 1, 5), pa.array(["1801-01-05"]), [1]),
]


@pytest.mark.parametrize(("value", "column", "known"), BEHIND)
def test_columns_behind_the_features(value, column, known):
    rules = rules_of(known=[{"order": value}], extra=["order", "z"])
    assert rules.columns == ["order"]
    batch = rows(z=[5.0] * len(column)).append_column("order", column)
    assert rules.known(batch).tolist() == [bool(one) for one in known]


def test_values_of_several_kinds_in_one_column_behind():
    values = [17, "a", date(2026, 1, 5), "2026-01-05 00:00", "17"]
    rules = rules_of(known=[{"order": value} for value in values])
    column = pa.array(["17", "a", "2026-01-05", "b"])
    batch = rows(z=[5.0] * 4).append_column("order", column)
    assert rules.known(batch).tolist() == [True, True, True, False]
    batch = rows(z=[5.0] * 2).append_column("order", pa.array([date(2026, 1, 5), None]))
    assert rules.known(batch).tolist() == [True, False]


def test_a_column_behind_has_to_be_there():
    rules = rules_of(known=[{"order": 17}])
    for batch in (rows(z=[1.0]), np.ones((1, 5))):
        with pytest.raises(DataError, match=r"the rows have no column 'order'.* add it, or"):
            rules.known(batch)


def test_rules_without_any_change_nothing(tmp_path):
    for text in ("", "# nothing\n", "\ufeff# from an editor\n"):
        rules = Rules.read(written(tmp_path, text), SCHEMA)
        batch = rows(z=[0.0, None])
        assert rules.applied(batch) is batch
        assert rules.impossible(batch).tolist() == [-1, -1]
        assert rules.known(batch).tolist() == [False, False]
        assert rules.columns == []


def test_features_are_found_by_their_place():
    rules = rules_of({"name": "z", "impossible": [0]}, known=[{"z": 3}])
    batch = rows(z=[0.0, 3.0]).rename_columns(list("abcde"))
    assert rules.impossible(batch).tolist() == [0, -1]
    assert rules.known(batch).tolist() == [False, True]


# --- what is refused ------------------------------------------------------------------------------


def of(name, said):
    """Return a rule of a column as a file has it."""
    return f"[[column]]\nname = '{name}'\n{said}\n"


REFUSED = {
    "a key": ("[[colum]]\nname = 'z'", "'colum': needs [[column]] and [[known]], nothing else"),
    "a single table": (
        "[column]\nname = 'z'",
        "'column': needs double brackets: [[column]]",
    ),
    "a number": ("known = 17", "'known': needs double brackets: [[known]]"),
    "no name": ("[[column]]\nonly = 'high'", "[[column]] 1: needs the name of its column: name ="),
    "an unknown column": (
        of("z", "impossible = [0]") + of("Kreatinine", "only = 'high'"),
        "[[column]] 2: no column 'Kreatinine': did you mean 'creatinine'?",
    ),
    "a column in capitals": (of("Z", "only = 'low'"), "did you mean 'z'?"),
    "a column like no other": (
        of("qqq", "only = 'low'"),
        "no column 'qqq': needs one of 'z', 'creatinine', 'ward', 'admitted', 'gap'",
    ),
    "a name that looks the same": (
        of("wa\u200brd", "only = 'low'"),
        "only in blanks or invisible marks",
    ),
    "a name alone": (
        "[[column]]\nname = 'z'",
        "[[column]] 1, 'z': has no settings: needs one of",
    ),
    "a setting": (
        of("z", "imposible = [0]"),
        "[[column]] 1, 'z': imposible is not a setting: did you mean 'impossible'",
    ),
    "only of a category": (
        of("ward", "only = 'high'"),
        "'ward': only: the column has categories, not numbers: only impossible = [...] fits it",
    ),
    "a bound of a category": (
        of("ward", "impossible_above = 3"),
        "'ward': impossible_above: the column has categories",
    ),
    "only neither": (of("z", "only = 'up'"), 'only \'up\': needs "high" or "low"'),
    "a text of numbers": (
        of("z", "impossible = [0, 'n/a']"),
        "'z': impossible 'n/a': needs a finite number, like the values of 'z'",
    ),
    "no list": (of("z", "impossible = 0"), "impossible 0: needs a list of values"),
    "a bound of text": (of("z", "impossible_above = '40'"), "'40': needs a finite number"),
    "nan": (of("z", "impossible = [nan]"), "nan: needs a finite number"),
    "a number beyond Python": (
        of("z", f"impossible_above = 1{'0' * 5000}"),
        "not TOML: Exceeds the limit",
    ),
    "below 0": (of("z", "ignore_within = -1"), "ignore_within -1: needs a finite number,"),
    "within a text": (of("z", "ignore_within = '5 days'"), "'5 days': needs a finite"),
    "a number of dates": (
        of("admitted", "impossible_below = 2020"),
        "'admitted': impossible_below 2020: needs a date, such as 2026-01-31",
    ),
    "a date that is none": (
        of("admitted", "impossible = ['2026-02-30']"),
        "'2026-02-30': needs a date",
    ),
    "a date of numbers": (of("z", "impossible = [2026-01-01]"), "needs a finite number"),
    "within 5 of dates": (
        of("admitted", "ignore_within = 5"),
        'ignore_within 5: needs a length of time, such as "5 days"',
    ),
    "a number of gaps": (
        of("gap", "impossible_above = 30"),
        '30: needs a length of time, such as "30 days"',
    ),
    "within of gaps": (
        of("gap", "ignore_within = 30"),
        "does not apply to times since an earlier reading: use",
    ),
    "both sides": (
        of("z", "only = 'high'") + of("z", "only = 'low'"),
        "[[column]] 2, 'z': only 'low' contradicts another [[column]] of this name: keep one",
    ),
    "two bounds": (
        of("z", "impossible_above = 40") + of("z", "impossible_above = 41"),
        "[[column]] 2, 'z': impossible_above 41 contradicts another",
    ),
    "nothing possible": (
        of("z", "impossible_above = 3") + of("z", "impossible_below = 3"),
        "column 'z': impossible below 3 and above 3: needs the first number to be lower",
    ),
    "the median": (
        of("creatinine", "impossible = [80]"),
        "column 'creatinine': 80 umol/l, the median of the counted rows, would be impossible:",
    ),
    "the usual range": (of("z", "impossible_above = 1"), "5, the median of the counted"),
    "most categories": (
        of("ward", "impossible = ['north']"),
        "60% of the counted rows would be impossible",
    ),
    "high, and impossible": (
        of("z", "only = 'high'\nimpossible_above = 7"),
        "column 'z': only = \"high\", and impossible above 7, although 8 is usual: leave one of "
        "them out",
    ),
    "low, and impossible": (
        of("z", "only = 'low'\nimpossible_below = 3"),
        'only = "low", and impossible below 3, although 2 is usual: leave one of them out',
    ),
    "an empty row": ("[[known]]", "[[known]] 1: needs at least one column, such as order = 17"),
    "an unknown column of a row": (
        "[[known]]\norder = 17\n[[known]]\nordr = 17",
        "[[known]] 2: no column 'ordr': did you mean 'order'?",
    ),
    "a text of a number of a row": (
        "[[known]]\nz = 'a'",
        "[[known]] 1: z = 'a': needs a finite number",
    ),
    "a time of a row": (
        "[[known]]\norder = 09:30:00",
        "order = datetime.time(9, 30): needs a text",
    ),
    "a name with a dot": ("[[known]]\na.b = 17", 'a: write a name with dots in quotes: "a....'),
    "a row twice": (
        "[[known]]\nz = 17\nward = 'a'\n[[known]]\nz = 1\n[[known]]\nward = 'a'\nz = 17.0",
        "[[known]] 3 repeats [[known]] 1: delete one of them",
    ),
    "no TOML": (
        "[[column]]\nname = z",
        "not TOML: Invalid value (at line 2, column 8): correct it",
    ),
    "a key twice": (
        "[[known]]\nz = 1\nz = 2",
        "not TOML: Cannot overwrite a value (at the end, line 3",
    ),
    "not UTF-8": (
        b"[[known]]\norder = 1\n# caf\xe9\n",
        "line 3 is not UTF-8: save the file as UTF-8",
    ),
    "nested": ("a = " + "[" * 100_000, "nested too deeply: needs [[column]] and [[known]]"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(tmp_path, case):
    text, words = REFUSED[case]
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as error:
        Rules.read(path, SCHEMA, USUAL, ["z", "order"])
    assert str(error.value).startswith(f"{path}: ")
    assert words in str(error.value)


#: Rules that are close to a contradiction, but none.
TAKEN = [
    "[[column]]\nname = 'z'\nimpossible = [0]\n[[column]]\nname = 'z'\nimpossible = [0, 1]",
    "[[column]]\nname = 'z'\nonly = 'high'\n[[column]]\nname = 'z'\nonly = 'high'",
    "[[column]]\nname = 'z'\nonly = 'high'\nimpossible_above = 8",
    "[[column]]\nname = 'z'\nonly = 'low'\nimpossible_above = 7\nimpossible_below = 2",
    "[[column]]\nname = 'z'\nimpossible_above = 5",
    "[[column]]\nname = 'ward'\nimpossible = ['south', 'east', 3]",
    "[[column]]\nname = 'admitted'\nimpossible = [2026-01-05, 2026-01-06T07:00:00Z, '2026-01-07']",
    "known = [{z = 17}, {z = 18}]",
    "[[known]]\nordr = 17\n[[known]]\nordr = '17'",
    "[[known]]\n'a.b' = 17",
]  # fmt: skip


@pytest.mark.parametrize("text", TAKEN)
def test_what_is_taken(tmp_path, text):
    Rules.read(written(tmp_path, text), SCHEMA, USUAL)


def test_capitals_of_a_name_may_be_meant_otherwise():
    schema = Schema([Feature.numeric("HR", low=0, high=300)])
    with pytest.raises(UsageError, match=r"no column 'hr': did you mean 'HR'\?"):
        rules_of({"name": "hr", "impossible": [0]}, schema=schema, usual=None)


@pytest.mark.skipif(sys.platform == "win32", reason="no time.tzset")
def test_dates_do_not_depend_on_where_the_machine_is(monkeypatch):
    try:
        with monkeypatch.context() as patch:
            patch.setenv("TZ", "America/New_York")
            time.tzset()
            rules = rules_of(known=[{"admitted": date(2026, 1, 7)}, {"order": "2026-01-07"}])
            column = pa.array([date(2026, 1, 7), date(2026, 1, 6)])
            batch = rows(admitted=column).append_column(
                "order", pa.array(["x", "2026-01-07 00:00"])
            )
            assert rules.known(batch).tolist() == [True, True]
    finally:
        time.tzset()


@pytest.mark.parametrize("usual", [None, [UsualValues(1.0)] * 5])
def test_a_model_that_does_not_know_what_is_usual(usual):
    for rule, key in ((ONLY_HIGH, "only"), (WITHIN, "ignore_within")):
        with pytest.raises(
            UsageError, match=f"column 'z': {key} needs the column's usual .*fit the mod"
        ):
            rules_of(rule, usual=usual)
    rules = rules_of({"name": "z", "impossible": [0], "impossible_above": 9}, usual=usual)
    assert rules.impossible(matrix([0, 10, 5], 5)).tolist() == [0, 0, -1]


def test_differences_are_no_columns_for_rules(rng):
    X = rng.normal(size=(400, 2))
    X[:, 1] += 3.0 * X[:, 0]
    frame = pd.DataFrame(X, columns=["a", "b"])
    detector = HushTable(context=["a"], random_state=0).fit(frame)
    schema = detector._scorer.plan.schema
    assert schema.differences is not None
    usual = detector._usual_values().values
    added = schema.names[-1]
    with pytest.raises(UsageError, match=r"no column 'b given context': needs one of 'a', 'b'$"):
        rules_of({"name": added, "only": "high"}, schema=schema, usual=usual)
    rules = rules_of({"name": "b", "only": "high"}, schema=schema, usual=usual)
    (batch,) = detector._open(frame).read()
    found = rules.applied(batch)
    assert found.shape == (400, 3)
    np.testing.assert_array_equal(found[:, [0, 2]], batch[:, [0, 2]])
    np.testing.assert_array_equal(found[:, 1], np.maximum(X[:, 1], usual[1].middle[1]))


# --- adding rules ---------------------------------------------------------------------------------


def add(path, kind, rule, extra=None):
    return add_rule(path, kind, rule, SCHEMA, USUAL, extra)


def test_rules_are_added_to_a_file_that_is_made(tmp_path):
    path = tmp_path / "m.rules.toml"
    assert add(path, "column", {"name": "z", "impossible": [0], "only": "high"})
    assert add(path, "known", {"order": 17, "ward": "north"})
    text = path.read_text()
    assert text == (
        HEADER + '\n[[column]]\nname = "z"\nimpossible = [0]\nonly = "high"\n'
        '\n[[known]]\norder = 17\nward = "north"\n'
    )
    assert tomllib.loads(HEADER) == {}
    rules = Rules.read(path, SCHEMA, USUAL)
    assert rules.columns == ["order"]
    assert rules.impossible(matrix([0.0], 5)).tolist() == [0]


@pytest.mark.skipif(sys.platform == "win32", reason="no such rights")
def test_a_new_file_is_for_its_owner_and_others_keep_their_rights(tmp_path):
    path = tmp_path / "m.rules.toml"
    add(path, "known", {"order": 17})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o664)
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    assert add(link, "known", {"order": 18})
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o664
    assert sorted(os.listdir(tmp_path)) == ["link.toml", "m.rules.toml"]


def test_the_example_in_the_header_is_right():
    lines = [line.lstrip("# ") for line in HEADER.splitlines() if "[[" in line or " = " in line]
    schema = Schema([Feature.numeric("creatinine", low=0, high=50, unit="mg/dl")])
    usual = [UsualValues(0.0, (0.5, 0.9, 1.25))]
    rules = Rules.from_dict(tomllib.loads("\n".join(lines)), schema, usual)
    assert rules.columns == ["order"]
    X = np.array([[0.0], [0.05], [0.1], [1.45], [1.5], [40.5]])
    assert rules.impossible(X).tolist() == [0, 0, -1, -1, -1, 0]
    assert rules.applied(X).ravel().tolist() == [0.9, 0.9, 0.9, 1.25, 1.5, 40.5]


@pytest.mark.parametrize(
    "before",
    [
        b"",
        b"# mine\r\n[[known]]\r\norder = 1 # ours\r\n",
        b"# no end",
        b"\xef\xbb\xbf# a mark\n\n\n",
        "# naïve ünï\n[[known]]\n'a b' = '''x\ny'''\n".encode(),
    ],
)
def test_what_is_there_stays_byte_by_byte(tmp_path, before):
    path = written(tmp_path, before)
    assert add(path, "known", {"order": 17})
    assert add(path, "column", {"name": "z", "impossible": [0]})
    after, head = path.read_bytes(), before or HEADER.encode()
    end = b"\r\n" if b"\r\n" in before else b"\n"
    lines = [
        b"",
        b"[[known]]",
        b"order = 17",
        b"",
        b"[[column]]",
        b'name = "z"',
        b"impossible = [0]",
    ]
    lines = lines if head.endswith(b"\n") else [b"", *lines]
    assert after == head + end.join([*lines, b""])
    content = tomllib.loads(after.decode("utf-8-sig"))
    assert content["known"][-1] == {"order": 17}
    assert content["column"] == [{"name": "z", "impossible": [0]}]


AGAIN = [
    ("known", {"order": 17}, {"order": 17.0}),
    ("known", {"z": 17, "ward": "a"}, {"ward": "a", "z": 17}),
    ("known", {"admitted": date(2026, 1, 5)}, {"admitted": "2026-01-05"}),
    ("column", {"name": "z", "impossible": [0, 1]}, {"name": "z", "impossible": [1]}),
    ("column", {"name": "z", "only": "high"}, {"name": "z", "only": "high"}),
    ("column", {"name": "z", "ignore_within": 5}, {"name": "z", "ignore_within": np.float64(5)}),
]


@pytest.mark.parametrize(("kind", "first", "second"), AGAIN)
def test_the_same_rule_again_changes_nothing(tmp_path, kind, first, second):
    path = tmp_path / "m.rules.toml"
    assert add(path, kind, first)
    before, at = path.read_bytes(), path.stat()
    assert not add(path, kind, second)
    assert path.read_bytes() == before
    assert path.stat().st_ino == at.st_ino


CONTRADICTING = [
    ("column", {"name": "z", "only": "low"}, "[[column]] 2, 'z': only 'low' contradicts"),
    ("column", {"name": "z", "impossible_above": 7}, "although 8 is usual"),
    ("column", {"name": "z", "impossible": [5]}, "the median of the counted rows"),
    ("column", {"name": "zz", "impossible": [5]}, "no column 'zz'"),
    ("column", {"name": "z"}, "has no settings"),
    ("known", {"ordr": 3}, "[[known]] 1: no column 'ordr'"),
    ("known", {}, "[[known]] 1: needs at least one column"),
    ("known", {"order": None}, "None: a rule needs a number, text, date"),
    ("known", {"order": float("nan")}, "nan: a rule needs a number"),
    ("known", {"order": "half \ud800"}, "a rule needs a number, text, date"),
    ("knwon", {"order": 3}, "kind='knwon': needs 'column' or 'known'"),
]


@pytest.mark.parametrize(("kind", "rule", "words"), CONTRADICTING)
def test_what_contradicts_is_not_written(tmp_path, kind, rule, words):
    path = tmp_path / "m.rules.toml"
    add(path, "column", ONLY_HIGH)
    before = path.read_bytes()
    with pytest.raises(UsageError) as error:
        add(path, kind, rule, ["order"])
    assert words in str(error.value)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m.rules.toml"]


def test_what_is_refused_makes_no_file(tmp_path):
    with pytest.raises(UsageError, match="did you mean 'z'"):
        add(tmp_path / "m.rules.toml", "column", {"name": "Z", "only": "high"})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("[[column]]\nname = z\n", "not TOML: Invalid value (at line 2"),
        ("[known]\norder = 1\n", "'known': needs double brackets: [[known]]"),
        ("known = [{order = 1}]\n", "not TOML: "),
        ("[[column]]\nname = 'q'\nonly = 'low'\n", "no column 'q'"),
    ],
)
def test_nothing_is_added_to_a_file_that_is_wrong(tmp_path, before, words):
    path = written(tmp_path, before)
    with pytest.raises(UsageError) as error:
        add(path, "known", {"order": 17})
    assert words in str(error.value)
    assert path.read_text() == before


@given(value=st.one_of(
    st.text(), st.integers(-(2**63), 2**63 - 1), st.booleans(), st.dates(),
    st.floats(allow_nan=False, allow_infinity=False), st.datetimes(),
), name=st.text(min_size=1))  # fmt: skip
def test_any_value_survives(tmp_path_factory, value, name):
    path = tmp_path_factory.mktemp("rules") / "m.rules.toml"
    if name in SCHEMA.names:
        return
    assert add(path, "known", {name: value})
    if isinstance(value, str):
        assert add(path, "column", {"name": "ward", "impossible": [value]})
        batch = rows(ward=pa.array([value, f"{value}!"]))
        batch = batch.append_column(name, pa.array([value, f"{value}!"]))
        rules = Rules.read(path, SCHEMA, USUAL)
        assert rules.known(batch).tolist() == [True, False]
        assert rules.impossible(batch).tolist() == [WARD, -1]
    assert tomllib.loads(path.read_bytes().decode())["known"] == [{name: value}]
    assert not add(path, "known", {name: value})


@pytest.mark.parametrize(
    ("value", "written"),
    [(np.int64(17), "17"), (np.float32(0.5), "0.5"), (np.bool_(True), "true"),
     (pd.Timestamp("2026-01-05 09:30"), "2026-01-05T09:30:00"), (1e-7, "1e-07")],
)  # fmt: skip
def test_values_of_libraries(tmp_path, value, written):
    path = tmp_path / "m.rules.toml"
    assert add(path, "known", {"order": value})
    assert path.read_text().endswith(f"[[known]]\norder = {written}\n")
    assert not add(path, "known", {"order": value})


# --- the file beside a model ----------------------------------------------------------------------


def test_the_file_beside_a_model(tmp_path):
    model = tmp_path / "a.b.hush"
    assert rules_beside(model) is None
    path = rules_path(model)
    assert path == tmp_path / "a.b.rules.toml"
    path.touch()
    assert rules_beside(model) == path
    assert rules_beside(str(model)) == path
    assert rules_path(tmp_path / "model.v2").name == "model.v2.rules.toml"


def test_a_model_far_away_has_none_beside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:" / "bucket").mkdir(parents=True)
    (tmp_path / "s3:" / "bucket" / "m.rules.toml").touch()
    assert rules_beside("s3://bucket/m.hush") is None
    with pytest.raises(UsageError, match=r"s3://bucket/m.hush: rules are next to a model on this"):
        rules_path("s3://user:secret@bucket/m.hush")


# --- speed ----------------------------------------------------------------------------------------
