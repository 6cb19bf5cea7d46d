"""Values among those of all rows, and the crowding of rows in words."""

import threading
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from hushtable import Feature, HushTable, Schema
from hushtable.data.encoding import Encoder
from hushtable.report.rows import ValueChart
from hushtable.scores.distributions import CELLS, Distribution, Distributions
from hushtable.scores.reasons import Crowding, Reason, crowding_words
from hushtable.scores.scorer import Scorer
from hushtable.scores.typical import describe_value

DAY = 86_400
SCHEMA = Schema([
    Feature.numeric("age", low=0, high=102, unit="year"),
    Feature.numeric("seen", low=20_000 * DAY, high=20_510 * DAY, unit="date"),
    Feature.categorical("ward", ["north", "south", "west"]),
    Feature.numeric("flat", low=3, high=3),
])  # fmt: skip


@pytest.fixture
def rows(rng):
    n = 4_000
    ages = rng.integers(20, 81, n).astype(float)
    ages[:8] = np.nan
    return pa.table({
        "age": ages,
        "seen": (20_100 + rng.integers(0, 201, n)) * float(DAY),
        "ward": np.array(["north"] * 70 + ["south"] * 29 + ["east"])[np.arange(n) % 100],
        "flat": np.full(n, 3.0),
    })  # fmt: skip


@pytest.fixture
def found(rows):
    encoder, found = Encoder(SCHEMA), Distributions(SCHEMA)
    batches = rows.to_batches(max_chunksize=300)

    def add(part):
        for batch in part:
            found.add(encoder.encode(batch))

    threads = [threading.Thread(target=add, args=(batches[k::3],)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_cells_are_those_of_the_rows(found, rows):
    ages = rows["age"].to_numpy()[8:]
    expected, _ = np.histogram(ages, CELLS, (0, 102))
    np.testing.assert_array_equal(found.of("age").cells, expected)
    assert found.of("ward").cells.tolist() == [2800, 1160, 0, 40]
    assert found.of("nobody") is None


def test_usual_values(found, rows):
    def middle(name):
        values = rows[name].to_numpy()
        low, high = np.nanquantile(values, [0.05, 0.95], method="inverted_cdf")
        return low, high

    def usual(name):
        one = found.of(name)
        return describe_value(one.feature, None, pa.float64(), one.usual).usual

    low, high = middle("age")
    assert usual("age") == f"{low:.0f} to {high:.0f}"
    low, high = (datetime.fromtimestamp(value, UTC).date() for value in middle("seen"))
    assert usual("seen") == f"{low} to {high}"
    ward = found.of("ward")
    assert (
        describe_value(ward.feature, None, pa.string(), ward.usual).usual
        == "north (70%), south (29%)"
    )
    assert usual("flat") == "3"
    assert Distribution(SCHEMA.features[0], np.zeros(CELLS, np.int64)).usual is None


def test_charts(found):
    odd = ValueChart.of(Reason("age", 1.0, "age 80", 80.0), found.of("age"), "age 80: high")
    assert odd.words.startswith("age 80: high. Distribution over 3,992 rows")
    assert sum(odd.bars) == 3992
    assert odd.ends == ("0 year", "102 year")
    assert odd.odd == 80 * 34 // 102
    assert odd.at == pytest.approx(80 / 102)
    assert odd.rows_path.count("M") == sum(n > 0 for n in odd.bars) - 1
    ward = ValueChart.of(Reason("ward", 1.0, "", "west"), found.of("ward"), "")
    assert ward.bars == [2800, 1160, 40, 0]
    assert ward.odd == 3
    other = ValueChart.of(Reason("ward", 1.0, "", "moon"), found.of("ward"), "")
    assert (other.bars, other.odd) == ([2800, 1160, 40], 2)
    assert ValueChart.of(Reason("age", 1.0, ""), found.of("age"), "") is None


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (-1.0, "fewer"),
        (0.0, "as many"),
        (0.14, "a tenth more"),
        (0.26, "a tenth more"),
        (0.27, "a quarter more"),
        (0.43, "a quarter more"),
        (0.44, "half again as many"),
        (0.8, "half again as many"),
        (0.81, "twice as many"),
        (1.0, "twice as many"),
        (1.78, "three times as many"),
        (3.2, "nine times as many"),
        (3.4, "about 11 times as many"),
        (6.7, "about 100 times as many"),
        (10.0, "about 1,000 times as many"),
    ],
)
def test_crowding(bits, words):
    assert crowding_words(bits) == f"{words} similar rows"


@pytest.mark.parametrize("passes", [1, 2])
def test_crowding_is_the_rows_in_a_rows_cells(X, passes):
    """Counted one by one: two rows share a cell if a table cannot tell them apart."""
    detector = HushTable(random_state=0, n_tables=20, passes=passes, n_jobs=1).fit(X)
    scorer = Scorer(detector.sketch_)
    crowding, family = Crowding(scorer), scorer.plan.family
    (codes,) = scorer.batches(X, lambda codes, scores: codes)
    logarithms = np.zeros((len(X), 20))
    for t in range(20):
        # The number of a row's cell in one table: the sum of values that are 0 in all others.
        numbers = np.zeros(len(scorer.values))
        here = slice(*family.offsets[t : t + 2])
        numbers[here] = np.arange(1, family.offsets[t + 1] - family.offsets[t] + 1)
        cells = family.summing(numbers)(codes)
        logarithms[:, t] = np.log2((cells[:, np.newaxis] == cells).sum(axis=1))
    expected = logarithms.mean() - logarithms.mean(axis=1)
    found = [crowding.bits(codes.take(np.array([i]))) for i in range(50)]
    np.testing.assert_allclose(found, expected[:50], atol=1e-4)
    assert crowding_words(crowding.bits(codes.take(np.array([0])))).endswith(
        "times as many similar rows"
    )
