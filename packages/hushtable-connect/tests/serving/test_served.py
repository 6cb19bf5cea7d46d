"""A model that answers: what `outliers` says, row by row, and nothing made up."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.errors import DataError, FileError, UsageError
from hushtable_connect.serving import Served


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    ages, wards = rng.integers(18, 90, 300).astype(float), rng.choice(["north", "south"], 300)
    ages[7], ages[8] = 300.0, np.nan
    return pd.DataFrame({"age": ages, "ward": wards}, index=[f"p{i}" for i in range(300)])


@pytest.fixture(scope="module")
def detector(rows):
    return HushTable(n_tables=20, random_state=0).fit(rows)


def test_answers_are_those_of_outliers_in_the_rows_order(detector, rows):
    found = Served(detector).judge(rows)
    assert found.index.equals(rows.index)
    listed = detector.outliers(rows, n=300).loc[rows.index]
    np.testing.assert_array_equal(found["score"], detector.score_samples(rows))
    np.testing.assert_array_equal(found["outlier"], detector.predict(rows) < 0)
    for name, theirs in [("severity", "severity"), ("reasons", "words"), ("outside", "outside")]:
        assert found[name].tolist() == listed[theirs].tolist()
    assert isinstance(Served(detector).judge(pl.from_pandas(rows)), pl.DataFrame)


def test_a_request_is_answered_as_a_frame_is(detector, rows):
    records = rows.replace({np.nan: None}).to_dict("records")
    served = Served(detector)
    answers = served.answer([{**record, "id": 7} for record in records])
    assert pd.DataFrame(answers, index=rows.index).equals(served.judge(rows))
    # One by one, as requests come, nothing changes but the numbers of the rows.
    alone = [{**served.answer([one])[0], "row": k} for k, one in enumerate(records[:10])]
    assert alone == answers[:10]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ([], "no rows"),
        ([{"age": 30}], r"row 0 has no value \['ward'\]"),
        ([{"age": 30, "ward": "north"}, {"age": "x", "ward": "north"}], "mixes types"),
        ([{"age": "x", "ward": "north"}], "'x' in row 0 is not a number"),
        ([{"age": float("inf"), "ward": "north"}], "infinity: feature 'age' in row 0"),
        ([{"age": 10**30, "ward": "north"}], "integer 1000000000000000000000000000000: whole"),
        ([{"age": [30], "ward": "north"}], "column 'age' has type list"),
    ],
)
def test_a_request_that_does_not_fit_is_refused(detector, request_, words):
    with pytest.raises(DataError, match=words):
        Served(detector).answer(request_)


def test_what_is_not_known_is_not_said(rows, detector, tmp_path):
    schema = Schema([
        Feature.numeric("age", low=18, high=90), Feature.categorical("ward", ["north", "south"]),
    ])  # fmt: skip
    plan = Plan.draw(schema, n_tables=20, random_state=0)
    counts = Sketch.from_data(plan, rows)
    counts.save(tmp_path / "counts.hush")
    served = Served.load(tmp_path / "counts.hush")
    # Merged counts do not know their rows' scores, unless ranks are set.
    one = [{"age": 300, "ward": "north"}]
    assert served.answer(one)[0]["severity"] is None
    assert served.answer(one)[0]["outlier"]
    served.detector.set_ranks(Sketch.from_data(Plan.ranks(counts), rows))
    assert served.answer(one)[0]["severity"] > 99.0
    served.detector.offset_ = float("nan")  # as of a release that is too noisy
    assert served.answer(one)[0]["outlier"] is None
    with pytest.raises(UsageError, match="is not a model"):
        Served(plan)
    plan.save(tmp_path / "plan.hush")
    with pytest.raises(UsageError, match="is not a model"):
        Served.load(tmp_path / "plan.hush")
    (tmp_path / "other.hush").write_bytes(b"no such file")
    with pytest.raises(FileError):
        Served.load(tmp_path / "other.hush")


def test_columns_without_names_are_named_by_their_place():
    X = np.random.default_rng(0).normal(size=(100, 2))
    served = Served(HushTable(n_tables=20, random_state=0).fit(X))
    [answer] = served.answer([{"x0": X[3, 0], "x1": None}])
    expected = served.detector.score_samples([[X[3, 0], np.nan]])
    assert answer["score"] == expected[0]


def test_verdicts_that_were_learned_since_are_heard(rows):
    served = Served(HushTable(n_tables=20, random_state=0).fit(rows))
    one = rows.iloc[[7]]
    before = served.judge(one)
    served.detector.learn(rows.iloc[[7, 20]], [0, 1])
    found = served.judge(one)
    assert found["reasons"].tolist() == served.detector.outliers(one)["words"].tolist()
    assert found["score"].iloc[0] > before["score"].iloc[0]
