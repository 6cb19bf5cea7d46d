"""One truth for a value: lists, pages, reports and sessions say the same of it."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.charts.reasons import Pictures
from hushtable.data.readers import as_reader
from hushtable.report.content import RowsToShow, score_rows
from hushtable.scores.reasons import Reasons
from hushtable.scores.scorer import Scorer
from hushtable.scores.typical import RARE, UsualValues, describe_cell, describe_value, direction
from hushtable.scores.usual import Frequencies

AGE = Feature.numeric("age", low=0, high=100)
WARD = Feature.categorical("ward", [*"abcd"])


def people(seed, n=400):
    """Rows of every kind: skewed, whole, flat and missing numbers, and rare categories."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 90, n).astype(float)
    age[rng.random(n) < 0.05] = np.nan
    return pd.DataFrame({
        "age": age,
        "cost": rng.lognormal(3.0, 1.5, n).round(2),
        "flag": rng.random(n) < 0.1,
        "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 365, n), "D"),
        "ward": rng.choice(["north", "south", "east", "west"], n, p=[0.6, 0.25, 0.1, 0.05]),
    })  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_list_and_pictures_say_the_same_of_each_value(seed):
    detector = HushTable(random_state=seed, n_tables=20).fit(people(seed))
    scorer, usual = Scorer(detector.sketch_), detector._usual_values()
    frame, n_drawn = people(seed + 100), 0
    listed = detector.outliers(frame, n=20).set_index("row")["words"]
    report = score_rows(
        scorer, detector.offset_, as_reader(frame), shown=RowsToShow(20, values=True), usual=usual
    )
    draw = Pictures(report.lowest.features, report.lowest.usual)
    for row in report.lowest.rows:
        words = listed[row.row].split("; ")
        for reason in row.reasons:
            assert reason.words in words
            if picture := draw.of(reason):
                assert f'aria-label="{reason.words}"' in picture
                if reason.value is None:  # "age is missing, as in 2.7% of rows"
                    assert f">{reason.words.split()[-3]}<" in picture
                n_drawn += 1
    assert n_drawn >= 10  # in the other rows, no column stands out


@given(st.floats(0.0, 100.0), st.floats(0.0, 100.0), st.floats(0.0, 100.0))
def test_words_follow_the_limits_that_they_name(x, a, b):
    low, high = sorted((a, b))
    usual = UsualValues(0.0, (low, low, high))
    side = direction(AGE, x, usual)
    assert side == ("low" if x < low else "high" if x > high else "")
    assert direction(AGE, -1.0, usual) == direction(AGE, 100.5, usual) == "beyond"
    assert direction(AGE, None, usual) == direction(WARD, None, usual) == "missing"
    words = describe_cell(AGE, pa.array([x]), usual).words
    assert ("within the usual" in words) == (not side)
    assert words.endswith(f": {side}") or not side


@pytest.mark.parametrize(
    ("shares", "side"),
    [
        ({"a": 0.9, "b": RARE}, ""),
        ({"a": 0.9, "b": RARE - 0.001}, "rare"),
        ({"a": 0.1, "b": 0.05}, ""),  # among many, half of the most frequent
        ({"a": 0.1, "b": 0.0499}, "rare"),
        ({"a": 0.5}, "rare"),  # not among the most frequent
        ({}, "rare"),
        ({"b": 0.9}, ""),
    ],
)
def test_rare_categories(shares, side):
    assert direction(WARD, "b", UsualValues(0.0, None, shares)) == side
    assert direction(WARD, "b", None) == ""
    assert direction(WARD, "z", UsualValues(0.0, None, shares)) == "beyond"


def test_words_beside_merged_rows_have_the_same_limits():
    """`--marginals`: of the middle 90% nothing is called far out, and beyond it everything is."""
    rows = np.arange(100.0)[:, np.newaxis]
    schema = Schema([AGE])
    merged = Frequencies(Sketch.from_data(Plan.marginals(schema), rows), "m.hush")
    scorer = Scorer(Sketch.from_data(Plan.draw(schema, random_state=0, n_tables=20), rows))
    usual = merged.beside(None)
    reasons = Reasons(scorer, usual=usual)
    low, _, high = usual.values[0].middle
    assert low == pytest.approx(5.0, abs=2.0)
    assert high == pytest.approx(95.0, abs=2.0)
    shares = reasons.explainer.explain(rows)
    for x, why in enumerate(reasons.of(rows, shares, bar=np.inf)):
        for one in why.reasons:
            side = "low" if x < low else "high" if x > high else ""
            assert one.phrase.direction == side
            assert one.words.endswith(f": {side}") or "within" in one.words


def test_what_is_missing_is_said_with_its_share():
    usual = UsualValues(0.02, (1.0, 2.0, 3.0))
    assert (
        describe_value(AGE, None, pa.float64(), usual).words == "age is missing, as in 2% of rows"
    )
    assert not describe_value(AGE, None, pa.float64(), None).compared


def described(x, values):
    """Return a number in words, among the values of counted rows."""
    feature = Feature.numeric("ui", low=0, high=9)
    rows = np.array(values, np.float64)[:, np.newaxis]
    usual = UsualValues.of(feature, 0, [rows], np.ones(len(values), np.int64))
    return describe_value(feature, x, pa.float64(), usual), usual


def test_a_number_of_few_is_described_by_its_share():
    """A midwife can do nothing with "ui 1, within the usual 0 to 1"."""
    values = [0.0] * 85 + [1.0] * 10 + [2.0] * 5
    phrase, usual = described(1.0, values)
    assert phrase.words == "ui 1, in 10% of rows"
    assert phrase.usual == "0 (85%), 1 (10%), 2 (5%)"
    assert (phrase.direction, phrase.share, phrase.common) == ("", 0.1, False)
    rare, _ = described(2.0, values)
    assert (rare.words, rare.direction) == ("ui 2, in 5% of rows: rare", "rare")
    most, _ = described(0.0, values)
    assert most.common
    unseen, _ = described(7.0, values)
    assert (unseen.words, unseen.direction) == ("ui 7, in few rows: rare", "rare")
    far, _ = described(9.0, values)
    assert far.words == "ui 9, usually 0 (85%), 1 (10%), 2 (5%): far above"
    assert far.direction == "high"
    assert described(12.0, values)[0].direction == "beyond"
    assert UsualValues.from_dict(usual.to_dict(), Feature.numeric("ui", low=0, high=9)) == usual
    assert described(-0.0, values)[0].common


def test_numbers_of_many_are_described_by_their_range():
    phrase, usual = described(9.0, np.arange(110) % 11 * 0.9)
    assert usual.shares == {}
    assert phrase.words == "ui 9, within the usual 0 to 9"
    assert phrase.share is None


@pytest.mark.parametrize(("missing", "common"), [(4, False), (5, True), (40, True)])
def test_a_missing_value_is_a_reason_where_few_are_missing(missing, common):
    values = [np.nan] * missing + list(np.linspace(0, 9, 100 - missing))
    phrase, _ = described(None, values)
    assert phrase.direction == "missing"
    assert phrase.common == common
