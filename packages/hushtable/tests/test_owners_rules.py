"""Rules of a table's owner: what they do to batches, what they refuse, and their file."""

import os
import stat
import sys
import tomllib
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable import Feature, Schema
from hushtable.errors import UsageError
from hushtable.scores.rules import HEADER, Rules, write_rule
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
ADMITTED = 3


def rules_of(*columns, known=(), usual=USUAL, schema=SCHEMA):
    """Make rules of tables as TOML has them."""
    return Rules.from_dict({"column": [*columns], "known": [*known]}, schema, usual)


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
        {"name": "admitted", "impossible_below": date(2026, 1, 3), "impossible": ["2026-01-09"]},
        {"name": "admitted", "impossible_above": datetime(2026, 3, 1, 12)},
        known=[{"admitted": date(2026, 1, 7)}, {"admitted": "2026-02-05T00:00"}],
    )
    batch = rows(admitted=column([0, 2, 6, 8, 25, 35, 36, 59, 60]))
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


# --- impossible values ----------------------------------------------------------------------------


def batches(values, dtype=np.float64):
    """Yield a matrix and an Arrow batch whose first column has some values."""
    yield matrix(values, 5, dtype)
    column = pa.array(np.asarray(values, dtype), from_pandas=True)
    yield rows(z=column)
    yield rows(z=column.dictionary_encode())


def test_impossible_whole_numbers_and_truth_values():
    rules = rules_of({"name": "z", "impossible": [True, 7.5], "impossible_above": 1e300})
    for batch in batches([0, 1, 7, 8], np.int32):
        assert rules.impossible(batch).tolist() == [-1, 0, -1, -1]
    assert rules.impossible(rows(z=pa.array([True, False, None]))).tolist() == [0, -1, -1]
    assert rules.impossible(matrix([1, 2], 5, np.float32)).tolist() == [0, -1]


def test_codes_in_a_matrix_are_impossible_as_texts():
    schema = Schema([Feature.categorical("code", ["1", "2", "9"])])
    rules = rules_of({"name": "code", "impossible": [9]}, schema=schema, usual=None)
    X = np.array([[1.0], [9.0], [np.nan]])
    assert rules.impossible(X).tolist() == [-1, 0, -1]
    known = rules_of(known=[{"code": "2"}], schema=schema).known(np.array([[1], [2]]))
    assert known.tolist() == [False, True]


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
    rules = rules_of(known=[{"order": value}])
    assert rules.columns == ["order"]
    batch = rows(z=[5.0] * len(column)).append_column("order", column)
    assert rules.known(batch).tolist() == [bool(one) for one in known]


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
    "no name": (
        "[[column]]\nimpossible = [0]",
        "[[column]] 1: needs the name of its column: name =",
    ),
    "an unknown column": (
        of("z", "impossible = [0]") + of("Kreatinine", "impossible = [0]"),
        "[[column]] 2: no column 'Kreatinine': did you mean 'creatinine'?",
    ),
    "a column in capitals": (of("Z", "impossible = [0]"), "did you mean 'z'?"),
    "a column like no other": (
        of("qqq", "impossible = [0]"),
        "no column 'qqq': needs one of 'z', 'creatinine', 'ward', 'admitted', 'gap'",
    ),
    "a name that looks the same": (
        of("wa\u200brd", "impossible = [0]"),
        "only in blanks or invisible marks",
    ),
    "a name alone": (
        "[[column]]\nname = 'z'",
        "'z': has no settings: needs one of",
    ),
    "a setting": (
        of("z", "imposible = [0]"),
        "[[column]] 1, 'z': imposible is not a setting: did you mean 'impossible'",
    ),
    "a bound of a category": (
        of("ward", "impossible_above = 3"),
        "'ward': impossible_above: the column has categories",
    ),
    "a text of numbers": (
        of("z", "impossible = [0, 'n/a']"),
        "'z': impossible 'n/a': needs a finite number, like the values of 'z'",
    ),
    "no list": (of("z", "impossible = 0"), "impossible 0: needs a list of values"),
    "a bound of text": (of("z", "impossible_above = '40'"), "'40': needs a finite number"),
    "nan": (of("z", "impossible = [nan]"), "nan: needs a finite number"),
    "a number beyond Python": (
        of("z", f"impossible_above = 1{'0' * 5000}"),
        "not TOML in UTF-8: Exceeds the limit",
    ),
    "a number of dates": (
        of("admitted", "impossible_below = 2020"),
        "'admitted': impossible_below 2020: needs a date, such as 2026-01-31",
    ),
    "a date that is none": (
        of("admitted", "impossible = ['2026-02-30']"),
        "'2026-02-30': needs a date",
    ),
    "a date of numbers": (of("z", "impossible = [2026-01-01]"), "needs a finite number"),
    "a number of gaps": (
        of("gap", "impossible_above = 30"),
        '30: needs a length of time, such as "30 days"',
    ),
    "nothing possible": (
        of("z", "impossible_above = 3\nimpossible_below = 3"),
        "'z': impossible below 3 and above 3: needs the first number to be lower",
    ),
    "the median": (
        of("creatinine", "impossible = [80]"),
        "'creatinine': 80 umol/l, the median of the counted rows, would be impossible:",
    ),
    "the usual range": (of("z", "impossible_above = 1"), "5, the median of the counted"),
    "most categories": (
        of("ward", "impossible = ['north']"),
        "60% of the counted rows would be impossible",
    ),
    "an empty row": ("[[known]]", "[[known]] 1: needs at least one column, such as order = 17"),
    "a text of a number of a row": (
        "[[known]]\nz = 'a'",
        "[[known]] 1: z = 'a': needs a finite number",
    ),
    "a time of a row": (
        "[[known]]\norder = 09:30:00",
        "order = datetime.time(9, 30): needs a text",
    ),
    "a name with a dot": ("[[known]]\na.b = 17", 'a: write a name with dots in quotes: "a....'),
    "no TOML": (
        "[[column]]\nname = z",
        "not TOML in UTF-8: Invalid value (at line 2, column 8): correct it",
    ),
    "a key twice": (
        "[[known]]\nz = 1\nz = 2",
        "not TOML in UTF-8: Cannot overwrite a value (at end of document",
    ),
    "not UTF-8": (
        b"[[known]]\norder = 1\n# caf\xe9\n",
        "not TOML in UTF-8: 'utf-8' codec can't decode byte 0xe9 in position",
    ),
    "nested": ("a = " + "[" * 100_000, "nested too deeply: needs [[column]] and [[known]]"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(tmp_path, case):
    text, words = REFUSED[case]
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as error:
        Rules.read(path, SCHEMA, USUAL)
    assert str(error.value).startswith(f"{path}: ")
    assert words in str(error.value)


@pytest.mark.parametrize(("dropped", "usual", "way"), [
    ("only = 'low'", USUAL, "lower higher values to 5 in the rows"),
    ("ignore_within = 2", USUAL, "change values up to 2 beyond 2 to 8 to the nearer of these"),
    ("only = 'high'", None, "raise lower values to its median in the rows"),
])  # fmt: skip
def test_a_file_of_1_0_0rc1_with_another_kind_of_rule_is_refused(tmp_path, dropped, usual, way):
    path = written(tmp_path, of("z", dropped))
    with pytest.raises(UsageError) as error:
        Rules.read(path, SCHEMA, usual)
    assert f"{path}: [[column]] 1, 'z': {dropped.split()[0]} is no longer read: delete" in str(
        error.value
    )
    assert way in str(error.value)


# --- adding rules ---------------------------------------------------------------------------------


def add(path, column="order", text="17"):
    return write_rule(path, "known", {column: text}, None, SCHEMA, USUAL)


def test_known_rows_are_added_to_a_file_that_is_made(tmp_path):
    path = tmp_path / "m.rules.toml"
    add(path)
    rules = add(path, "ward", "north")
    assert (
        path.read_text() == f'{HEADER}\n[[known]]\n"order" = "17"\n\n[[known]]\n"ward" = "north"\n'
    )
    assert tomllib.loads(HEADER) == {}
    assert rules.columns == Rules.read(path, SCHEMA, USUAL).columns == ["order"]


@pytest.mark.skipif(sys.platform == "win32", reason="no such rights")
def test_a_new_file_is_for_its_owner_and_others_keep_their_rights(tmp_path):
    path = tmp_path / "m.rules.toml"
    add(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o664)
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    add(link, text="18")
    assert link.is_symlink()
    assert "18" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o664
    assert sorted(os.listdir(tmp_path)) == ["link.toml", "m.rules.toml"]


def test_the_example_in_the_header_is_right():
    lines = [line.lstrip("# ") for line in HEADER.splitlines() if "[[" in line or " = " in line]
    schema = Schema([Feature.numeric("creatinine", low=0, high=50, unit="mg/dl")])
    usual = [UsualValues(0.0, (0.5, 0.9, 1.25))]
    rules = Rules.from_dict(tomllib.loads("\n".join(lines)), schema, usual)
    assert rules.columns == ["order"]
    X = np.array([[0.0], [0.05], [0.1], [1.45], [40.5]])
    assert rules.impossible(X).tolist() == [0, 0, -1, -1, 0]


@pytest.mark.parametrize(("column", "text", "words"), [
    ("order", "half \ud800", "cannot contain this text"),
    ("z", "17", "[[known]] 1: z = '17': needs a finite number"),
])  # fmt: skip
def test_what_does_not_fit_makes_no_file(tmp_path, column, text, words):
    with pytest.raises(UsageError) as error:
        add(tmp_path / "m.rules.toml", column, text)
    assert words in str(error.value)
    assert os.listdir(tmp_path) == []


@given(text=st.text(), name=st.text(min_size=1))
def test_any_text_survives(tmp_path_factory, text, name):
    path = tmp_path_factory.mktemp("rules") / "m.rules.toml"
    if name in SCHEMA.names:
        return
    add(path, name, text)
    batch = rows(z=[5.0, 5.0]).append_column(name, pa.array([text, f"{text}!"]))
    assert Rules.read(path, SCHEMA, USUAL).known(batch).tolist() == [True, False]
    assert tomllib.loads(path.read_bytes().decode())["known"] == [{name: text}]


# --- changing rules -------------------------------------------------------------------------------

OURS = """# Ours.
[[column]] # the gauge
name = "z"
impossible = [0]

# These are known.
[[known]]
order = 17

  [[column]]
  name = "ward"
  impossible = ["x", "[[known]]"]
"""


def change(path, kind, rule, number):
    return write_rule(path, kind, rule, number, SCHEMA, USUAL)


def test_a_rule_is_changed_and_removed_and_all_other_lines_stay(tmp_path):
    path = written(tmp_path, OURS)
    change(path, "column", {"name": "z", "impossible_below": 0.5}, 0)
    changed = OURS.replace(
        '[[column]] # the gauge\nname = "z"\nimpossible = [0]\n',
        '[[column]]\n"name" = "z"\n"impossible_below" = 0.5\n',
    )
    assert path.read_text() == changed
    change(path, "known", None, 0)
    assert path.read_text() == changed.replace("[[known]]\norder = 17\n", "")
    rules = change(path, "column", None, 1)
    assert rules.impossible(rows(z=[0.0, 5.0])).tolist() == [0, -1]
    assert path.read_text().endswith("# These are known.\n\n")
    rules = change(path, "column", None, 0)
    assert rules.impossible(rows(z=[0.0, 5.0])).tolist() == [-1, -1]
    assert path.read_text() == "# Ours.\n\n# These are known.\n\n"


@pytest.mark.parametrize("content", [
    "column = [{name = 'z', impossible = [0]}]\n",
    "[['column']]\nname = 'z'\nimpossible = [0]\n",
    "[[known]]\na = '''\n[[column]]\n'''\n[[column]]\nname = 'z'\nimpossible = [0]\n",
])  # fmt: skip
def test_a_rule_that_is_not_found_in_its_lines_changes_nothing(tmp_path, content):
    path = written(tmp_path, content)
    with pytest.raises(UsageError):
        change(path, "column", None, 0)
    assert path.read_text() == content


def test_a_rule_that_does_not_fit_changes_nothing(tmp_path):
    path = written(tmp_path, OURS)
    with pytest.raises(UsageError, match="needs a finite number"):
        change(path, "column", {"name": "z", "impossible": ["low"]}, 0)
    assert path.read_text() == OURS


# --- the file beside a model ----------------------------------------------------------------------
