"""Calls on few rows: frames as one block of floats, one thread, a scorer without scikit-learn."""

import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest

from hushtable import Feature, HushTable, Plan, Schema, Sketch
from hushtable.counts import sketch
from hushtable.data import encoding
from hushtable.data.readers import as_reader
from hushtable.data.texts.reading import Reading
from hushtable.data.typed import open_rows
from hushtable.errors import DataError, FileError
from hushtable.plans import profile
from hushtable.plans.score_rule import exact, logs
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


def test_numbers_that_stand_for_nothing_are_missing_in_frames_too(detector):
    reading, schema = Reading(missing=("-9",)), detector.plan_.schema
    frame = pd.DataFrame({"a": [1.0, -9.0], "b": [2.0, 3.0], "c": [4.0, 5.0]})
    (batch,) = open_rows(frame, schema, reading).read()
    assert batch.column(0).null_count == 1


def test_whoever_watches_a_frame_sees_its_rows(detector):
    seen = []
    reader = as_reader(pd.DataFrame(np.zeros((4, 3)), columns=NAMES))

    def read(_part, batches):
        for batch in batches:
            seen.append(len(batch))
            yield batch

    Scorer(detector.sketch_).score(reader.watched(read))
    assert seen == [4]


def test_rows_that_are_open_match_another_schema_by_name(detector):
    frame, schema = pd.DataFrame([[1.0, 2.0, 3.0]], columns=NAMES), detector.plan_.schema
    turned = Schema([Feature.numeric(name, low=0, high=9) for name in "ca"])
    (batch,) = open_rows(open_rows(frame, schema), turned).read()
    assert batch.tolist() == [[3.0, 1.0]]
    with pytest.raises(DataError, match="has no column \\['d'\\]"):
        open_rows(open_rows(frame, schema), Schema([Feature.numeric("d", low=0, high=9)]))


def test_few_rows_are_encoded_once_and_read_again_only_where_a_guess_was_wrong(rows, monkeypatch):
    encoded, plain = [], encoding.kernels.encode
    monkeypatch.setattr(encoding.kernels, "encode", lambda *a: encoded.append(1) or plain(*a))
    monkeypatch.setattr(sketch, "Correcting", None)
    HushTable(n_tables=9, random_state=0).fit(rows)
    assert len(encoded) == 1


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


@pytest.mark.parametrize("bins", [2, 64])
def test_cuts_are_interpolated_as_numpy_does(bins):
    rng = np.random.default_rng(0)
    z = np.sort(rng.random((5, bins + 1)), axis=1)
    row = rng.integers(0, 5, 2_000)
    x = np.where(rng.random(2_000) < 0.5, rng.random(2_000) * 1.2 - 0.1, z[row, row % (bins + 1)])
    edges = np.linspace(0.0, 1.0, bins + 1)
    wanted = [np.interp(a, z[k], edges) for a, k in zip(x, row, strict=True)]
    np.testing.assert_array_equal(profile._interpolated(x, z, row, edges), wanted)


@pytest.mark.parametrize("most", [3, 10**6])
def test_logarithms_of_few_different_counts_are_those_of_each(most):
    counts = np.random.default_rng(0).integers(0, most, 1_000)
    for some, added in ((counts, 1.0), (counts, 0.2 * most), (counts - 1, 1.5), (counts[:0], 1.0)):
        assert (logs(some, added) == exact(np.log2(some + added))).all()


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


SERVER = """
import sys
import numpy as np
from hushtable.scores import Scorer
print(Scorer.load(sys.argv[1]).score(np.full((1, 3), 50.0))[0])
print(*sorted({"sklearn", "pandas", "polars"} & set(sys.modules)))
"""


def test_a_scorer_is_read_and_scores_without_scikit_learn(detector, tmp_path):
    detector.save(tmp_path / "model.hush")
    run = subprocess.run(
        [sys.executable, "-c", SERVER, tmp_path / "model.hush"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    score, imported = run.stdout.split("\n")[:2]
    row = pd.DataFrame([[50.0] * 3], columns=NAMES)
    assert float(score) == detector.score_samples(row)[0]
    assert imported == ""


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
