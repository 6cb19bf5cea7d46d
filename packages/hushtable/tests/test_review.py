"""Reviews: which row is next, what answers change, and lists of rows unlike each other."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hushtable import (
    Feature,
    HushTable,
    LSHiTables,
    Plan,
    Schema,
    Sketch,
    Verdicts,
    load,
)
from hushtable.errors import DataError, UsageError
from hushtable.plans.verdicts import FINE, OUTLIER
from hushtable.scores.review import Review
from hushtable.scores.rules import Rules
from hushtable.scores.scorer import Scorer
from hushtable.scores.verdict_log import SKIP, Answer

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


def test_a_rescan_finds_rows_that_were_not_kept(detector, rows):
    review = review_of(detector, rows[FEATURES], most=15)
    judge(review, 15)
    assert review.next() is None
    review.rescan()
    other = HushTable(random_state=0).fit(rows[FEATURES]).learn_from(review.verdicts)
    scores = other.score_samples(rows[FEATURES])
    scores[[*review.last()]] = np.inf
    row = review.next()
    assert row is None or row.row == scores.argmin()
    bigger = review_of(detector, rows[FEATURES], most=40, log=LogInMemory(review.answers))
    assert bigger.next().row == scores.argmin()


def test_rows_that_are_read_once_are_not_scored_again(detector, rows):
    batches = pa.Table.from_pandas(rows[FEATURES]).to_batches()
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))
    review = review_of(detector, reader)
    judge(review, 3)
    with pytest.raises(UsageError, match="read only once"):
        review.rescan()


# --- answers --------------------------------------------------------------------------------------


def test_undo_takes_back_one_answer_after_the_other(detector, rows):
    review = review_of(detector, rows[FEATURES])
    states = []
    for verdict in (OUTLIER, FINE, SKIP, OUTLIER):
        states.append((review.next().row, review.learned, review.scores))
        review.answer(review.next(), verdict)
    review.answer(review.of_row(states[0][0]), FINE)  # another word on the first row
    assert review.last()[states[0][0]].verdict == FINE
    assert review.undo().verdict == FINE
    assert review.learned.n_outliers == 2
    for row, learned, scores in reversed(states):
        assert review.undo().row == row
        assert review.next().row == row
        assert review.learned == learned
        np.testing.assert_array_equal(review.scores, scores)
    assert review.undo() is None


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
    before = detector.score_samples(rows[FEATURES])
    spread = review.scorer.sketch.spread(detector.sketch_.cell_scores())
    for number, one in like.items():
        now = review.of_row(number)
        moved = before[number] - now.score
        if abs(moved) < spread:  # scores differ by that anyway
            assert (one.moved, one.likeness) == (0.0, "")
        else:
            assert one.moved == pytest.approx(moved, abs=1e-9)
            assert one.likeness
        assert one.likeness in now.words


def test_lists_and_reasons_of_a_learned_detector_say_so_too(detector, rows):
    assert "like rows" not in " ".join(detector.outliers(rows[FEATURES], n=30)["words"])
    detector.learn(rows[FEATURES].iloc[:15], [1] * 15)
    words = detector.outliers(rows[FEATURES], n=30)["words"]
    assert words.str.contains(r"; like rows that were confirmed as outliers \(\d\.\d bits\)").any()


def test_what_was_found(detector, rows):
    review = review_of(detector, rows[FEATURES])
    judge(review, 20)
    review.answer(review.next(), SKIP)
    found = review.found()
    lowest = np.argsort(detector.score_samples(rows[FEATURES]))[:20]
    confirmed = {row for row, one in review.last().items() if one.verdict == OUTLIER}
    assert found == {
        "looked_at": 20, "outliers": len(confirmed), "fine": 20 - len(confirmed), "skipped": 1,
        "by_score_alone": len(confirmed & {*lowest.tolist()}),
    }  # fmt: skip
    assert found["outliers"] > found["by_score_alone"] > 0


# --- going on -------------------------------------------------------------------------------------


def test_a_review_goes_on_where_it_ended(detector, rows):
    whole, first = (review_of(detector, rows[FEATURES]) for _ in range(2))
    expected, begin = judge(whole, 20), judge(first, 8)
    again = review_of(detector, rows[FEATURES], log=LogInMemory(first.answers))
    assert begin + judge(again, 12) == expected
    assert again.learned == whole.learned
    assert again.found() == whole.found()


def test_verdicts_that_the_model_has_learned_count_once(detector, rows):
    first = review_of(detector, rows[FEATURES])
    judge(first, 8)
    learned = HushTable(random_state=0).fit(rows[FEATURES]).learn_from(first.verdicts)
    judge(first, 2)  # which the model has not
    again = review_of(learned, rows[FEATURES], log=LogInMemory(first.answers))
    assert again.n_known == 8
    assert again.verdicts == first.verdicts
    for _ in range(10):
        again.undo()
    assert again.verdicts.n_rows == 0


def test_a_model_that_learned_from_others_keeps_their_verdicts(detector, rows):
    theirs = Verdicts.from_data(detector.plan_, frame(seed=5)[FEATURES].iloc[:9], [1] * 9)
    review = review_of(detector.learn_from(theirs), rows[FEATURES])
    judge(review, 5)
    assert review.verdicts == theirs + review.learned
    assert review.learned.n_rows == 5


def test_answers_to_other_rows_are_refused(detector, rows):
    first = review_of(detector, rows[FEATURES])
    judge(first, 5)
    moved = rows[FEATURES].iloc[::-1].reset_index(drop=True)
    with pytest.raises(DataError, match="is not the row that was answered"):
        review_of(detector, moved, log=LogInMemory(first.answers))
    with pytest.raises(DataError, match="has 600 rows, but there is an answer to row 600"):
        review_of(detector, rows[FEATURES], log=LogInMemory([Answer(600, OUTLIER)]))


# --- lists ----------------------------------------------------------------------------------------


def test_rows_of_a_list_are_unlike_each_other():
    X = np.random.default_rng(0).normal(size=(400, 3))
    X[:6] = [6.0, 0.0, 0.0]  # six times the same
    X[6] = [0.0, 6.0, 0.0]
    X[7] = [0.0, 0.0, -6.0]
    detector = HushTable(random_state=0, passes=1).fit(X)
    review = review_of(detector, X)
    listed = [row.row for row in review.list_of(5)]
    assert len(set(listed)) == 5
    assert {6, 7} <= set(listed)
    assert sum(row < 6 for row in listed) <= 1
    for row in listed[:4]:
        review.answer(review.of_row(row), FINE)
    assert not {*listed[:4]} & {row.row for row in review.list_of(5)}
    assert len(review.list_of(1_000)) == 396


# --- in Python ------------------------------------------------------------------------------------


def test_a_detector_learns_from_its_review_at_once(detector, rows, tmp_path):
    review = detector.review(rows, keep=["id", "ward"])
    seen = []
    for row in review:
        seen.append(row.row)
        if row.row < 30:
            review.outlier("high in a")
        elif row.row < 60:
            review.fine()
        elif len(seen) > 20:
            break
    y = [1 if row < 30 else 0 for row in seen if row < 60]
    answered = rows[FEATURES].iloc[[row for row in seen if row < 60]]
    other = HushTable(random_state=0).fit(rows[FEATURES]).learn(answered, y)
    assert detector.verdicts_ == other.verdicts_ == review.verdicts
    assert detector.offset_ == other.offset_
    expected = other.score_samples(rows[FEATURES])
    np.testing.assert_array_equal(detector.score_samples(rows[FEATURES]), expected)
    assert review.found()["looked_at"] == len(y)
    detector.save(tmp_path / "m.hush")
    assert load(tmp_path / "m.hush").verdicts_ == other.verdicts_


def test_a_review_in_a_notebook(detector, rows):
    review = detector.review(rows, keep=["id", "ward"])
    first = review.row
    assert review.outlier() is review.row
    assert f"<b>Row {review.row.row}.</b>" in review._repr_html_()
    assert review.row.kept["id"] in review.row._repr_html_()
    assert review.undo().row == first.row
    assert not hasattr(detector, "verdicts_")
    with pytest.raises(UsageError, match="no answer to take back"):
        review.undo()
    listed = review.list_of(3)
    assert review.choose(listed[2]).row.row == listed[2].row
    review.fine()
    assert detector.verdicts_.n_fine == 1
    assert review.rescan().row == first.row
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
    assert "No row is left" in review._repr_html_()
    with pytest.raises(UsageError, match="no row is left"):
        review.fine()


def test_what_cannot_learn_is_not_reviewed(rows):
    with pytest.raises(UsageError, match="needs a list of columns"):
        HushTable(random_state=0).fit(rows[FEATURES]).review(rows, keep="id")


def test_released_counts_are_reviewed_too(rows):
    pytest.importorskip("opendp")
    schema = Schema([Feature.numeric(name, low=-5.0, high=8.0) for name in FEATURES])
    release = Sketch.from_data(Plan.draw(schema), rows[FEATURES]).release(epsilon=5.0)
    detector = HushTable.from_counts(release)
    review = detector.review(rows[FEATURES])
    before = review.row.score
    review.fine()
    review.undo()
    assert review.row.score == before
    review.outlier()
    assert detector.verdicts_.n_outliers == 1


# --- what a second face of a review needs ---------------------------------------------------------


def test_rows_far_outside_everything_and_impossible_ones_come_first(rows):
    """As in a list of the same rows; known rows do not come at all."""
    X = rows[FEATURES].copy()
    X.loc[400, "d"], X.loc[401, "c"] = 60.0, 0.0
    detector = HushTable(random_state=0).fit(X)
    usual = detector._usual_values()
    content = {"column": [{"name": "c", "impossible": [0]}], "known": [{"d": 60.0}]}
    scorer = Scorer(detector.sketch_)
    plain = Review(scorer, scorer.open(X), usual=usual)
    assert plain.next().row == 400
    rules = Rules.from_dict(content, scorer.plan.schema, usual.values)
    review = Review(scorer.by_rules(rules), scorer.open(X), usual=usual)
    assert review.next().row == 401
    assert 400 not in [row.row for row in review.lowest(N).rows]


def test_a_list_of_a_review_is_that_of_the_detector(detector, rows):
    """With reasons, repairs and incidents; rows with an answer stay in it."""
    scorer, usual = Scorer(detector.sketch_), detector._usual_values()
    review = Review(scorer, scorer.open(rows[FEATURES]), usual=usual)
    found, expected = review.lowest(10), detector.outliers(rows[FEATURES], n=10)
    assert [row.row for row in found.rows] == expected["row"].tolist()
    assert [found.sentence(row) for row in found.rows] == expected["words"].tolist()
    assert [found.repair(row) for row in found.rows] == expected["repair"].tolist()
    for _ in range(12):
        review.answer(review.next(), FINE)
    again = review.lowest(3)
    assert set(review.last()) <= {row.row for row in again.rows}
    assert len(again.rows) >= 12


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
