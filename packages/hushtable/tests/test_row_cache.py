"""Rows of a file are read once by `fit`, within a bound of memory; counts and words stay."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import roc_auc_score

from hushtable import HushTable, LSHiTables, load
from hushtable.data import passes
from hushtable.data.readers import as_reader, csv, reader
from hushtable.errors import DataError, HushTableError, PlanError, PrivacyError, UsageError

#: Bytes: none of the rows, some of them, all values and no code, and all.
MEMORIES = [1, 40_000, 90_000, passes.MOST_BYTES]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Let a small file have many blocks and batches."""
    monkeypatch.setattr(csv, "_BLOCK", 1 << 13)
    monkeypatch.setattr(reader, "BATCH_ROWS", 100)


def table(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    missing = rng.random(n) < 0.1
    return pa.table({
        "dose": pa.array(rng.normal(size=n).round(4), mask=missing),
        "visits": rng.integers(0, 9, n),
        "ward": [f"ward {k}" for k in rng.integers(0, 5, n)],
        "day": [f"{1 + k % 28:02d}.{1 + k % 12:02d}.2024" for k in rng.integers(0, 300, n)],
        "weight": [f"{w:.1f} kg" for w in rng.normal(70, 9, n)],
        "paid": rng.random(n) < 0.5,
    })  # fmt: skip


def written(path, rows):
    if path.suffix == ".parquet":
        pq.write_table(rows, path, row_group_size=300)
    else:
        pyarrow.csv.write_csv(rows, path)
    return path


def facts(detector):
    counts, plan = detector.sketch_.counts.tolist(), detector.plan_.plan_id
    return plan, counts, detector.offset_, detector.understanding_, detector.reading_


def outcome(make, path):
    """Return what a fit finds, or the words by which it refuses."""
    try:
        return facts(make().fit(path))
    except HushTableError as error:
        return type(error), str(error)


@pytest.fixture
def bounded(monkeypatch):
    def bound(n_bytes):
        monkeypatch.setattr("hushtable.detectors.base.MOST_BYTES", n_bytes)

    return bound


@pytest.mark.parametrize(
    ("suffix", "settings"),
    [
        (".csv", {}),
        (".parquet", {"n_jobs": 2}),
        (".parquet", {"novelty": True}),
        (".csv", {"context": "ward", "n_jobs": 2}),
        (".parquet", {"contamination": 0.1}),
    ],
)
def test_the_same_bits_within_any_memory(tmp_path, bounded, suffix, settings):
    path = written(tmp_path / f"rows{suffix}", table())
    found = []
    for n_bytes in MEMORIES:
        bounded(n_bytes)
        found.append(outcome(lambda: HushTable(random_state=0, **settings), path))
    assert found[0] == found[1] == found[2] == found[3]
    assert len(found[0]) == 5, found[0]


def test_a_file_that_changes_between_passes_is_refused(tmp_path, bounded, monkeypatch):
    path = written(tmp_path / "rows.csv", table().select(["dose", "visits"]))
    real = HushTable._drawn_by

    def changing(self, *given):
        with path.open("a") as file:
            file.write("1.5,2\n")
        return real(self, *given)

    monkeypatch.setattr(HushTable, "_drawn_by", changing)
    before = path.read_text()
    detector = HushTable(random_state=0).fit(path)  # it has all rows already
    path.write_text(before)
    monkeypatch.setattr(HushTable, "_drawn_by", real)
    assert facts(HushTable(random_state=0).fit(path)) == facts(detector)
    monkeypatch.setattr(HushTable, "_drawn_by", changing)
    bounded(1)
    with pytest.raises(DataError, match=r"rows\.csv: changed while it was being read"):
        HushTable(random_state=0).fit(path)


def test_nothing_is_kept_when_the_memory_does_not_suffice():
    rows = as_reader(table())
    for kept in (passes.KeptBatches(20_000), passes.KeptBatches(10**6, per_row=8)):
        for number, batch in enumerate(rows.read()):
            kept.add(number, batch)
        assert kept.rows(rows, 1500) is None
        assert kept.n_bytes == 0


# --- a sample of the rows -------------------------------------------------------------------------


@pytest.fixture
def X(rng):
    return rng.normal(size=(5000, 3)).astype(np.float32)


def test_a_sample_of_a_file_is_that_of_an_array(X, tmp_path):
    names = ["a", "b", "c"]
    path = tmp_path / "rows.csv"
    pyarrow.csv.write_csv(pa.table(dict(zip(names, X.T, strict=True))), path)
    by_file = HushTable(random_state=0, max_rows=700).fit(path)
    by_frame = HushTable(random_state=0, max_rows=700).fit(pyarrow.csv.read_csv(path))
    assert by_file.sketch_ == by_frame.sketch_


@pytest.mark.slow
@pytest.mark.parametrize("name", ["10_cover", "11_donors", "33_skin"])
def test_a_sample_detects_as_all_rows_do(data_dir, name):
    """By the same hash functions; means of three seeds."""
    content = np.load(data_dir / f"{name}.npz")
    X, y = content["X"].astype(np.float32), content["y"].ravel()
    detectors = [[HushTable(random_state=s, max_rows=n) for s in range(3)] for n in (None, 1 << 17)]
    every, some = (
        np.mean([roc_auc_score(y, -one.fit(X).score_samples(X)) for one in each])
        for each in detectors
    )
    print(f"{name}: ROC-AUC {every:.4f} by all rows, {some:.4f} by 131,072")
    assert abs(some - every) < 0.01


def test_a_threshold_is_a_share_of_all_rows(X):
    detector = HushTable(random_state=0, max_rows=700, contamination=0.1).fit(X)
    assert (detector.predict(X) == -1).sum() == 500


def test_a_sample_is_recorded_in_the_model(X, tmp_path):
    HushTable(random_state=0, max_rows=700).fit(X).save(tmp_path / "m.hush")
    assert load(tmp_path / "m.hush").sketch_.sampled


def test_what_max_rows_refuses(X):
    with pytest.raises(UsageError, match="max_rows=1: needs a whole number, 2 or more"):
        HushTable(max_rows=1).fit(X)
    with pytest.raises(UsageError, match="max_rows=700 counts whole rows: leave sample_weight out"):
        HushTable(max_rows=700).fit(X, sample_weight=np.ones(len(X)))
    detector = HushTable(random_state=0, max_rows=700).fit(X)
    with pytest.raises(AttributeError, match="no partial_fit, which needs max_rows=None"):
        detector.partial_fit(X)
    with pytest.raises(UsageError, match="counted a sample of its rows"):
        detector.set_params(max_rows=None).partial_fit(X)
    with pytest.raises(PrivacyError):
        detector.sketch_.release(1.0)
    assert "max_rows" not in LSHiTables().get_params()


@pytest.mark.parametrize("arrow", [False, True], ids=["pandas", "arrow"])
def test_two_columns_of_one_name_are_refused(arrow):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})[["a", "b", "a"]]
    if arrow:
        frame = pa.table([pa.array([1.0, 2.0])] * 2, names=["a", "a"])
    with pytest.raises(DataError, match="column 'a' is listed twice: rename one of the two"):
        HushTable().fit(frame)


def test_more_columns_than_a_schema_takes():
    X = np.broadcast_to(np.arange(5.0, dtype=np.float32)[:, np.newaxis], (5, 10**5))
    with pytest.raises(PlanError, match="100,000 features: a schema takes at most 65,535"):
        HushTable().fit(X)
