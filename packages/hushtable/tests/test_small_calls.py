"""Calls on few rows: frames as one block of floats, one thread, a scorer without scikit-learn."""

import threading

import numpy as np
import pandas as pd
import pytest

from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.data.typed import open_rows
from hushtable.errors import DataError, FileError
from hushtable.plans import profile
from hushtable.plans.score_rule import exact
from hushtable.scores import Scorer, scorer
from hushtable.threads import FEW_ROWS, for_each

NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).integers(0, 100, size=(500, 3)).astype(float)


@pytest.fixture(scope="module")
def detector(rows):
    return HushTable(n_tables=20, random_state=0).fit(pd.DataFrame(rows, columns=NAMES))


@pytest.mark.parametrize("n_rows", [FEW_ROWS, FEW_ROWS + 1])
def test_only_few_rows_become_one_block(n_rows, detector):
    read = open_rows(pd.DataFrame(np.zeros((n_rows, 3)), columns=NAMES), detector.plan_.schema)
    assert read.numeric == (n_rows == FEW_ROWS)


def test_rows_that_are_open_match_another_schema_by_name(detector):
    frame, schema = pd.DataFrame([[1.0, 2.0, 3.0]], columns=NAMES), detector.plan_.schema
    turned = Schema([Feature.numeric(name, low=0, high=9) for name in "ca"])
    (batch,) = open_rows(open_rows(frame, schema), turned).read()
    assert batch.tolist() == [[3.0, 1.0]]
    with pytest.raises(DataError, match="has no column \\['d'\\]"):
        open_rows(open_rows(frame, schema), Schema([Feature.numeric("d", low=0, high=9)]))


@pytest.mark.parametrize("least", [0.0, -9.0, 2.0**28])
def test_cells_are_put_in_the_order_of_a_stable_sort(least):
    drawn = np.random.default_rng(0).integers(0, 90, size=(20, 256))
    values = exact(np.log2(drawn + 0.3)) if least <= 0.0 else drawn.astype(float)
    stable = np.argsort(values + least, axis=1, kind="stable")
    assert (scorer._order(values + least) == stable).all()


def test_numbers_are_put_in_the_order_of_a_stable_sort_with_equal_ones_too():
    rng = np.random.default_rng(0)
    for numbers in (rng.random(1600), rng.integers(0, 50, 1600) / 7.0):
        assert (profile.stable_order(numbers) == np.argsort(numbers, kind="stable")).all()


def test_one_thread_takes_items_itself_and_stops_at_the_first_error():
    done, stopped = [], []

    def work(item):
        done.append((item, threading.current_thread()))
        if item == 2:
            raise ValueError("two")

    with pytest.raises(ValueError, match="two"):
        for_each(work, [range(2), range(2, 9)], 1, lambda: stopped.append(True))
    assert done == [(item, threading.current_thread()) for item in (0, 1, 2)]
    assert stopped == [True]


def test_a_scorer_is_read_from_every_file_of_counts(rows, detector, tmp_path):
    plan = Plan.draw(Schema([Feature.numeric(n, low=0, high=99) for n in NAMES]), n_tables=9)
    sketch = Sketch.from_data(plan, rows)
    for counts in (sketch, sketch.release(epsilon=1.0)):
        counts.save(tmp_path / "counts.hush")
        found = Scorer.load(tmp_path / "counts.hush").score(rows)
        assert found.tobytes() == Scorer(counts).score(rows).tobytes()
    detector.plan_.save(tmp_path / "plan.hush")
    with pytest.raises(FileError, match="holds a plan: give a model"):
        Scorer.load(tmp_path / "plan.hush")


def test_a_scorer_reads_texts_as_its_detector_does(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("size;when\n" + "".join(f"{i},5;{1 + i % 28:02}.11.2026\n" for i in range(60)))
    fitted = HushTable(n_tables=20, random_state=0).fit(path)
    fitted.save(tmp_path / "model.hush")
    found = Scorer.load(tmp_path / "model.hush").score(path)
    assert found.tobytes() == fitted.score_samples(path).tobytes()
    assert len(np.unique(found)) > 20
