"""Calls on few rows: orders as of a stable sort, one thread, and texts read as a detector does."""

import threading

import numpy as np
import pytest

from hushtable import HushTable
from hushtable.plans import profile
from hushtable.plans.score_rule import exact
from hushtable.scores import Scorer, scorer
from hushtable.threads import for_each


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


def test_a_scorer_reads_texts_as_its_detector_does(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("size;when\n" + "".join(f"{i},5;{1 + i % 28:02}.11.2026\n" for i in range(60)))
    fitted = HushTable(n_tables=20, random_state=0).fit(path)
    fitted.save(tmp_path / "model.hush")
    found = Scorer.load(tmp_path / "model.hush").score(path)
    assert found.tobytes() == fitted.score_samples(path).tobytes()
    assert len(np.unique(found)) > 20
