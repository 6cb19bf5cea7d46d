"""Reviews: which row is next, what answers change, and lists of rows unlike each other."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hushtable import (
    HushTable,
    LSHiTables,
)
from hushtable.counts.verdicts import FINE, OUTLIER
from hushtable.errors import UsageError
from hushtable.scores.review import Review
from hushtable.scores.scorer import Scorer

N = 600


def frame(seed=0):
    """Rows with ids; the first 30 are high in a, which matters, the next 30 in b."""
    X = np.random.default_rng(seed).normal(size=(N, 4))
    X[:30, 0] += 3.0
    X[30:60, 1] += 3.0
    rows = pd.DataFrame(X, columns=list("abcd"))
    rows["id"] = [f"P{i:03}" for i in range(N)]
    rows["ward"] = ["north", None, "south"] * 200
    return rows


FEATURES = list("abcd")


@pytest.fixture(scope="module")
def rows():
    return frame()


@pytest.fixture
def detector(rows):
    return HushTable(random_state=0).fit(rows[FEATURES])


def review_of(detector, rows, **options):
    reader = detector._open(rows, options.get("keep", ()))
    return Review(detector._scorer, reader, usual=detector._usual_values(), **options)


class LogInMemory:
    path = "a log"

    """A log of earlier answers that is written nowhere."""

    def __init__(self, answers):
        self.answers = answers

    def add(self, answer, *_about):
        return answer


def judge(review, n):
    """Look at n rows as someone whom rows high in a concern; return them."""
    seen = []
    for _ in range(n):
        row = review.next()
        review.answer(row, OUTLIER if row.row < 30 else FINE)
        seen.append(row.row)
    return seen


# --- rows to look at ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [HushTable, LSHiTables])
def test_each_row_is_the_lowest_by_all_verdicts_so_far(make, rows):
    detector = make(random_state=0).fit(rows[FEATURES])
    review = review_of(detector, rows[FEATURES])
    other, seen, y = make(random_state=0).fit(rows[FEATURES]), [], []
    for _ in range(12):
        scores = other.score_samples(rows[FEATURES])
        scores[seen] = np.inf
        row = review.next()
        assert row.row == scores.argmin()
        assert row.score == scores.min()
        seen.append(row.row)
        y.append(int(row.row < 30))
        review.answer(row, OUTLIER if y[-1] else FINE)
        other.forget().learn(rows[FEATURES].iloc[seen], y)
    assert review.verdicts == other.verdicts_
    assert not hasattr(detector, "verdicts_")  # the model is left as it is


def test_a_row_is_shown_as_outliers_lists_it(detector, rows):
    shown = review_of(detector, rows, keep=["id", "ward", "a"]).next()
    first = detector.outliers(rows, n=1, keep=["id", "ward"]).iloc[0]
    assert (shown.row, shown.score, shown.words) == (first["row"], first["score"], first["words"])
    assert shown.severity == pytest.approx(first["severity"])
    assert shown.kept["id"] == rows["id"][shown.row]
    assert shown.kept["ward"] == ("north", "", "south")[shown.row % 3]
    assert shown.values["a"].value == rows["a"][shown.row]
    assert set(shown.values) == set(FEATURES)
    assert next(iter(shown.values)) == first["reason_1"]
    facts = shown.to_dict()
    assert facts["id"] == rows["id"][shown.row]
    assert facts["words"] == first["words"]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_few_are_kept_and_the_lowest_of_them(detector, rows, n_jobs, monkeypatch):
    monkeypatch.setattr("hushtable.data.readers.reader.BATCH_ROWS", 50)
    scores = detector.score_samples(rows[FEATURES])
    batches = pa.Table.from_pandas(rows[FEATURES]).to_batches(max_chunksize=50)
    for most in (1, 40, 600, 900):
        reader = detector._open(pa.Table.from_batches(batches))
        review = Review(detector._scorer, reader, most=most, n_jobs=n_jobs)
        expected = np.argsort(scores, kind="stable")[:most]
        np.testing.assert_array_equal(review._found.numbers, expected)
        assert review.n_rows == N


# --- answers --------------------------------------------------------------------------------------


def test_answers_are_outlier_fine_or_skip_and_to_rows_that_are_shown(detector, rows):
    review = review_of(detector, rows[FEATURES], most=20)
    with pytest.raises(UsageError, match="answer 'yes': needs one of outlier, fine, skip"):
        review.answer(review.next(), "yes")
    highest = int(detector.score_samples(rows[FEATURES]).argmax())
    with pytest.raises(UsageError, match=rf"row {highest} is not among the 20 lowest of 600"):
        review.of_row(highest)
    assert review.answers == []


def test_reasons_say_what_verdicts_moved(detector, rows):
    review = review_of(detector, rows[FEATURES])
    for row in (*range(10), *range(30, 40)):
        review.answer(review.of_row(row), OUTLIER if row < 30 else FINE)
    like = {number: review.of_row(number) for number in (*range(10, 30), *range(40, 60))}
    assert sum("confirmed as outliers" in one.likeness for k, one in like.items() if k < 30) > 2
    assert sum("judged fine" in one.likeness for k, one in like.items() if k >= 30) > 2


def test_lists_and_reasons_of_a_learned_detector_say_so_too(detector, rows):
    assert "like rows" not in " ".join(detector.outliers(rows[FEATURES], n=30)["words"])
    detector.learn(rows[FEATURES].iloc[:15], [1] * 15)
    words = detector.outliers(rows[FEATURES], n=30)["words"]
    assert words.str.contains(r"; like rows that were confirmed as outliers \(\d\.\d bits\)").any()


def test_a_review_goes_on_where_it_ended(detector, rows):
    whole, first = (review_of(detector, rows[FEATURES]) for _ in range(2))
    expected, begin = judge(whole, 20), judge(first, 8)
    again = review_of(detector, rows[FEATURES], log=LogInMemory(first.answers))
    assert begin + judge(again, 12) == expected
    assert again.learned == whole.learned
    assert again.found() == whole.found()


# --- going on -------------------------------------------------------------------------------------


# --- lists ----------------------------------------------------------------------------------------


# --- in Python ------------------------------------------------------------------------------------


def test_a_review_in_python(detector, rows):
    review = detector.review(rows, keep=["id", "ward"])
    first = review.row
    assert review.outlier() is review.row
    assert review.undo().row == first.row
    assert not hasattr(detector, "verdicts_")
    with pytest.raises(UsageError, match="no answer to take back"):
        review.undo()
    review.fine()
    assert detector.verdicts_.n_fine == 1
    assert review.undo().row == review.rescan().row == first.row
    review.skip()
    assert review.found()["skipped"] == 1


def test_verdicts_from_elsewhere_are_not_overwritten(detector, rows):
    review = detector.review(rows[FEATURES])
    review.outlier()
    detector.learn(rows[FEATURES].iloc[:3], [1, 1, 1])
    for answer in (review.outlier, review.undo):
        with pytest.raises(UsageError, match="since this review began"):
            answer()
    assert detector.verdicts_.n_rows == 4


def test_the_end_of_the_rows(rows):
    few = rows[FEATURES].iloc[:5]
    detector = HushTable(random_state=0).fit(few)
    review = detector.review(few)
    assert len([row.row for row in review]) == 5
    assert review.row is None
    with pytest.raises(UsageError, match="no row is left"):
        review.fine()


def test_what_cannot_learn_is_not_reviewed(rows):
    with pytest.raises(UsageError, match="needs a list of columns"):
        HushTable(random_state=0).fit(rows[FEATURES]).review(rows, keep="id")


def test_a_list_of_a_review_is_that_of_the_detector(detector, rows):
    """With reasons, repairs and incidents; rows with an answer stay in it."""
    scorer, usual = Scorer(detector.sketch_), detector._usual_values()
    review = Review(scorer, scorer.open(rows[FEATURES]), usual=usual)
    found, expected = review.lowest(10), detector.outliers(rows[FEATURES], n=10)
    assert [row.row for row in found.rows] == expected["row"].tolist()
    assert [row.words for row in found.rows] == expected["words"].tolist()
    assert [found.repair(row) for row in found.rows] == expected["repair"].tolist()
    for _ in range(12):
        review.answer(review.next(), FINE)
    again = review.lowest(3)
    assert set(review.last()) <= {row.row for row in again.rows}
    assert len(again.rows) >= 12


# --- what a second face of a review needs ---------------------------------------------------------


def test_rows_that_are_alike(detector, rows):
    X = rows[FEATURES].copy()
    X.iloc[7] = X.iloc[3]
    scorer = Scorer(detector.sketch_)
    review = Review(scorer, scorer.open(X))
    (nearest, same), *others = review.alike(3, 4)
    assert (nearest, same) == (7, 4)
    assert len(others) == 3
    assert 3 not in [number for number, _ in others]
    assert len(review.alike(3, 10_000)) == N - 1
    with pytest.raises(UsageError, match="not among those kept"):
        review.alike(N + 1, 1)


def test_rows_are_found_by_what_is_kept_beside(detector, rows):
    scorer = Scorer(detector.sketch_)
    review = Review(scorer, scorer.open(rows, ["id", "ward"]), keep=["id", "ward"])
    assert review.named("id", "p003", 5) == [(3, "P003")]
    assert [name for _, name in review.named("id", "P00", 4)] != []
    assert len(review.named("id", "P00", 4)) == 4
    assert review.named("ward", "north", 1)[0][1] == "north"
    assert review.named(None, "17", 5) == [(17, "17")]
    assert review.named(None, "x", 5) == []
    assert review.kept(1) == {"id": "P001", "ward": ""}
    assert review.kept(N + 5) == {}


def test_the_curve_is_that_of_the_verdicts(detector, rows):
    review = review_of(detector, rows[FEATURES])
    judge(review, 40)
    found, alone = review.curve()
    last = list(review.last().values())
    assert found.tolist() == np.cumsum([0, *(one.verdict == OUTLIER for one in last)]).tolist()
    assert (np.diff(alone) >= 0).all()
    assert alone[-1] <= found[-1]
    moved = review.moved_columns()
    assert {name for name, _ in moved} == set(review.scorer.plan.schema.of_rows.names)
    assert [bits for _, bits in moved] == sorted((bits for _, bits in moved), reverse=True)
    review.undo()
    assert len(review.curve()[0]) == 40


def test_the_class_with_a_log_is_refused_with_what_replaces_it():
    with pytest.raises(ImportError, match=r"LoggedReview was removed: call Review\(..., log=log\)"):
        from hushtable.scores.verdict_log import LoggedReview  # noqa: F401
