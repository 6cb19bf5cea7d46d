"""An option changes exactly the values that it names, however they are written or typed."""

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from hushtable import Feature, HushTable, Schema
from hushtable.data import read
from hushtable.data.texts.reading import Reading
from hushtable.data.typed import open_rows


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


@pytest.mark.parametrize(
    "texts",
    [["999.000", "5.000"], ["999.000", "5.25"], ["999.00", "5.5"], ["999.000", "999.000"]],
)
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
