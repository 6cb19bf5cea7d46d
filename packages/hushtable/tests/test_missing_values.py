"""An option changes exactly the values that it names, however they are written or typed."""

import csv
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from hushtable import Feature, HushTable, Schema
from hushtable.data import read
from hushtable.data.texts.reading import Reading
from hushtable.data.typed import open_rows
from hushtable.data.understanding import schema_from_data
from hushtable.errors import DataError


def kept(missing, texts, decimal=None):
    """Return the texts that are left."""
    reading, column = Reading(missing=tuple(missing)), pa.array(texts, pa.string())
    column = reading.without_missing(column, "x", decimal)
    return [text for text in column.to_pylist() if text is not None]


@pytest.mark.parametrize(
    ("named", "others", "writings"),
    [
        ("999", ["9.99", "99.9", "9,99", "99,9", "9 99", "0.999", "9990", "-999", "0999", "<999",
                 "999 kg", "999A", "99.90", "9.9.9"],
                ["999", "999.0", "999,00", "+999", "9.99E+02", " 999 ", "999."]),
        ("99", ["9.9", "9,9", "9.90", "990", "099"], ["99", "99.0", "99,000000"]),
        ("-99", ["-9.9", "-9,9", "-9.90", "-0.99", "99", "-990"],
                ["-99", "\u221299", "-99.00", "(99)", "99-"]),
        ("-99.9", ["-999", "-9.99", "99.9"], ["-99.9", "-99,9", "-99,90"]),
        ("-9999", ["-9.9.9.9", "-99.99", "-999.9", "-9,99,9"],
                ["-9999", "-9.999,0", "-9,999.0", "-9 999", "-9\u202f999", "-9'999"]),
        ("0", ["10", "0.1", "00", "-1"], ["0", "0.0", "0,00", "-0"]),
        ("1234567", ["12.34567", "1.234567", "123.4567"], ["1.234.567", "1,234,567", "1 234 567"]),
        ("007", ["7", "07", "7.0"], ["007"]),
        ("ERR", ["err", "ERROR", "E"], ["ERR", " ERR "]),
    ],
)  # fmt: skip
def test_an_option_names_a_value_and_no_other_with_the_same_digits(named, others, writings):
    assert kept([named], [*others, *writings]) == others


def test_one_group_of_three_digits_is_a_thousand_where_the_column_says_so():
    texts = ["1.234", "1,234", "1 234"]
    assert kept(["1234"], texts, ".") == ["1.234"]
    assert kept(["1234"], texts, ",") == ["1,234"]
    assert kept(["1234"], texts) == ["1.234", "1,234"]  # may be a little more than one
    assert kept(["999"], ["999.000", "999,000"], ".") == ["999,000"]
    assert kept(["999"], ["999.000", "999,000"], ",") == ["999.000"]


@pytest.mark.parametrize("texts", [["999.000", "5.000"], ["999.000", "5.25"], ["999.00", "5.5"]])
def test_a_plain_number_that_could_be_thousands_is_read_by_its_column(texts):
    rows = read(pa.table({"x": [*texts, "7.5"]}), missing=["999"])
    [feature] = HushTable(n_tables=5, random_state=0).fit(rows).plan_.schema.features
    assert feature.high == 7.5


@pytest.mark.parametrize(
    ("values", "missing", "left"),
    [
        (pa.array([999, 99, 9990]), "999", [99, 9990]),
        (pa.array([99.9, 9.99, 999.0]), "99.9", [9.99, 999.0]),
        (pa.array([99.9, 9.99, 999.0], pa.float32()), "99.9", None),
        (pa.array([99.9, 9.99, 999.0]), "99,9", [9.99, 999.0]),
        (pa.array([Decimal("-99"), Decimal("-9.9")]), "-99", [Decimal("-9.9")]),
        (pa.array([-99, -9, -99]).dictionary_encode(), "-99", [-9]),
        (pa.array([date(9999, 12, 31), date(2026, 5, 15)]), "9999-12-31", [date(2026, 5, 15)]),
        (pa.array([True, False]), "1", [True, False]),
        (pa.array([np.inf, -np.inf, 5.0]), "inf", [-np.inf, 5.0]),
        (pa.array([np.inf, -np.inf, 5.0]), "-inf", [np.inf, 5.0]),
    ],
)
def test_typed_columns_lose_the_same_values(values, missing, left):
    column = Reading(missing=(missing,)).without_missing(values, "x")
    assert column.null_count == (len(values) - len(left) if left is not None else 1)
    if left is not None:
        assert [value for value in column.to_pylist() if value is not None] == left


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_a_matrix_loses_the_same_values(kind):
    X = np.array([[999, 1], [99, 2], [5, 999], [7, 4]], kind)
    detector = HushTable(n_tables=5, random_state=0).fit(read(X, missing=["999"]))
    assert [feature.high for feature in detector.plan_.schema.features] == [99, 4]
    expected = X.astype(float)
    expected[expected == 999] = np.nan
    clean = HushTable(n_tables=5, random_state=0).fit(expected)
    # The model keeps what stands for a missing value.
    np.testing.assert_array_equal(detector.score_samples(X), clean.score_samples(expected))


@pytest.mark.parametrize("attended", [True, False])
def test_it_makes_no_difference_whether_somebody_can_be_asked(tmp_path, attended):
    (tmp_path / "rows.csv").write_text("a;b\n999,00;1\n9,99;2\n99,9;3\n999;4\n")
    schema = Schema([Feature.numeric("a", low=0, high=2000), Feature.numeric("b", low=0, high=9)])
    reading = Reading(missing=("999",), decimal=",")

    def rows(X):
        (batch,) = open_rows(X, schema, reading, attended=attended).read()
        columns = batch.T if isinstance(batch, np.ndarray) else map(pa.Array.to_pylist, batch)
        return np.column_stack([np.array(list(column), float) for column in columns])

    expected = [[np.nan, 1], [9.99, 2], [99.9, 3], [np.nan, 4]]
    np.testing.assert_array_equal(rows(str(tmp_path / "rows.csv")), expected)
    np.testing.assert_array_equal(rows(np.nan_to_num(np.array(expected), nan=999.0)), expected)


# --- any table, any options -----------------------------------------------------------------------

POOL = ("999", "99.9", "9.99", "99", "9.9", "-99", "-9.9", "-0.99", "-999", "9990", "0.999", "0")


def written(rng, value, sign, mark):
    """Return a number as someone writes it, with this decimal sign."""
    text = format(abs(value), ",f").replace(",", "g").replace(".", "d")
    if "d" in text and rng.random() < 0.3:
        text += "0" * int(rng.integers(1, 3))
    elif "d" not in text and rng.random() < 0.2:
        text += "d" + "0" * int(rng.integers(1, 5))
    text = text.replace("g", mark).replace("d", sign)
    minus = str(rng.choice(["-", "-", "\u2212"])) if value < 0 else ""
    return minus + text


def a_column(rng, n, sign, named):
    """Return texts (n,), and what each says: a Decimal, or a word."""
    marks = ["", "", " ", "'", "\u202f", "." if sign == "," else ","]
    mark = str(rng.choice(marks))
    if rng.random() < 0.2:
        words = [str(word) for word in rng.choice(["north", "south", "ERR", "n.b."], n)]
        return words, words
    values = []
    for _ in range(n):
        value = Decimal(str(rng.choice([*POOL, *named])))
        if rng.random() < 0.6:
            value = Decimal(int(rng.integers(-(10**6), 10**6))).scaleb(-int(rng.integers(0, 4)))
        values.append(value)
    texts = [written(rng, value, sign, mark) for value in values]
    if rng.random() < 0.4:
        for at in rng.choice(n, int(rng.integers(1, 3)), replace=False):
            texts[at] = values[at] = str(rng.choice(["ERR", "n.b.", "?"]))
    return texts, values


def a_case(rng, folder):
    """Return rows, options to read them, and what each column's cells say."""
    n, sign = int(rng.integers(8, 40)), str(rng.choice([".", ","]))
    named = [str(x) for x in rng.choice(POOL, int(rng.integers(0, 3)), replace=False)]
    columns, truth = {}, {}
    for j in range(int(rng.integers(1, 5))):
        columns[f"c{j}"], truth[f"c{j}"] = a_column(rng, n, sign, named)
    options = {"missing": [*named, *rng.choice(["ERR", "n.b.", "?"], int(rng.integers(0, 4)))]}
    if rng.random() < 0.7:
        options["decimal"] = sign
    if len(columns) > 1 and rng.random() < 0.3:
        options["drop"] = [str(rng.choice(list(columns)))]
    if rng.random() < 0.4:
        kind = str(rng.choice(["number", "category"]))
        options["kinds"] = {str(rng.choice(list(columns))): kind}
    if rng.random() < 0.5:
        return pa.table(columns), options, truth
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=";" if sign == "," else ",")
        writer.writerows([list(columns), *zip(*columns.values(), strict=True)])
    return str(folder / "rows.csv"), options, truth


def check_column(name, kind, got, truth, options, one):
    """Check each value of a column against what its cell says; return how many are lost."""
    lost = 0
    numbers = {Decimal(text) for text in options["missing"] if text in POOL}
    for value, cell in zip(got, truth, strict=True):
        gone = cell in options["missing"] or (isinstance(cell, Decimal) and cell in numbers)
        if kind == "categorical":
            said = isinstance(cell, Decimal) and value is not None
            assert said or (value is None) == gone, (name, cell, value)
        elif isinstance(cell, str):  # a word among numbers
            assert value is None, (name, cell, value)
            lost += not gone
        else:
            assert (value is None) == gone, (name, cell, value)
            assert gone or value == float(cell), (name, cell, value)
    if lost:
        assert options.get("kinds", {}).get(name) == "number"
        assert f"as requested, {lost:,} value" in one.question, (lost, one)
    return lost


def run_cases(n, folder):
    """Read n random tables; return how many were read, refused, and how many cells were checked."""
    done = refused = cells = 0
    for seed in range(n):
        rows, options, truth = a_case(np.random.default_rng(seed), folder)
        try:
            reader = read(rows, **options)
            inferred = schema_from_data(reader)
        except DataError:
            refused += 1
            continue
        batches = list(open_rows(reader, inferred.schema, inferred.reading).read())
        assert not set(options.get("drop", ())) & {f.name for f in inferred.schema.features}
        found = {one.name: one for one in inferred.columns}
        for j, feature in enumerate(inferred.schema.features):
            one = found[feature.name]
            if "three digits after each" in one.question:
                continue  # it is in doubt, and the doubt is said
            got = [value for batch in batches for value in batch.column(j).to_pylist()]
            try:
                check_column(feature.name, feature.kind, got, truth[feature.name], options, one)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, {options}") from error
            if feature.kind == "numeric":
                left = [value for value in got if value is not None]
                assert (feature.low, feature.high) == (min(left), max(left)), f"seed {seed}"
            cells += len(got)
        done += 1
    return done, refused, cells


def test_no_option_loses_a_value_that_it_does_not_name(tmp_path):
    done, refused, _ = run_cases(60, tmp_path)
    assert done > refused


@pytest.mark.slow
def test_ten_thousand_tables_with_options_lose_no_value_in_silence(tmp_path, capsys):
    done, refused, cells = run_cases(10_000, tmp_path)
    with capsys.disabled():
        print(f"\n{done:,} tables read, {refused:,} refused in words; {cells:,} cells as named")
    assert done > refused
