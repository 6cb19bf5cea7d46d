"""History as options of detectors: readings in place of whose numbers earlier ones are seen."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score
from test_history import Injection, panel, synthetic

from hushtable import Feature, HushTable, Plan, Schema, Sketch, load
from hushtable.data import read, typed
from hushtable.data.encoding import Encoder
from hushtable.data.history import SINCE, history_names
from hushtable.data.typed import open_rows
from hushtable.errors import DataError, FileError, PlanError, PrivacyError, UsageError
from hushtable.history import History, history_columns

NAMES = {"entity": "patient", "time": "at"}


def readings(seed=0, n=1000):
    """Readings of six patients in the order of time, with a column that is no number."""
    frame = panel(seed, n=n)
    frame["at"] *= n / 400
    frame = frame.sort_values("at", kind="stable", ignore_index=True)
    frame["at"] = pd.to_datetime(frame["at"], unit="s")
    frame["ward"] = np.where(frame["patient"].astype(str) < "c", "north", "south")
    return frame


def schema(values=("pulse", "heat"), public=True):
    features = [Feature.numeric(name, low=-8, high=24) for name in history_names(values)]
    return Schema([Feature.categorical("ward", ["north", "south"]), *features], public=public)


def opened(rows, **options):
    """Return the rows that a detector would count, as a table."""
    reader = open_rows(read(rows, **NAMES), schema(public=False), **options)
    return pa.Table.from_batches(list(reader.read()))


def expected(frame):
    found = history_columns(frame, **NAMES, values=["pulse", "heat"])
    return found[["ward", *history_names(["pulse", "heat"])]]


def assert_same(table, frame):
    assert table.column_names == list(frame.columns)
    for name in history_names(["pulse", "heat"]):
        np.testing.assert_array_equal(table[name].to_numpy(), frame[name].to_numpy(), err_msg=name)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_rows_have_the_columns_of_the_function(ending, tmp_path):
    frame = readings()
    assert_same(opened(frame), expected(frame))
    file = tmp_path / f"rows{ending}"
    frame.to_csv(file, index=False) if ending == ".csv" else frame.to_parquet(file)
    assert_same(opened(file), expected(frame))


@pytest.fixture
def streamed(monkeypatch):
    """Read files in small batches, none of them at once."""
    monkeypatch.setattr(typed, "_AT_ONCE", 0)
    monkeypatch.setattr("hushtable.data.readers.reader.BATCH_ROWS", 100)


def test_a_large_file_out_of_order_is_refused_with_the_row(streamed, tmp_path):
    frame = readings()
    half = len(frame) // 2
    frame[half:].to_parquet(tmp_path / "a.parquet")
    frame[:half].to_parquet(tmp_path / "b.parquet")
    with pytest.raises(
        DataError, match=r"row .* older than the last one before it .*sort the read"
    ):
        list(open_rows(read(tmp_path, **NAMES), schema(public=False)).read())


@pytest.mark.parametrize(
    ("context", "auc", "precision"), [(None, 0.90, 0.55), ("hour", 0.89, 0.55)]
)
def test_a_detector_finds_what_is_unusual_for_an_entity(context, auc, precision):
    measured = []
    for seed in range(3):
        frame, unusual = Injection(synthetic(seed), seed).all()
        frame["at"] = pd.to_datetime(frame["at"], unit="s")
        detector = HushTable(**NAMES, context=context, random_state=seed).fit(frame)
        scores = detector.score_samples(frame)
        measured.append(
            (roc_auc_score(unusual, -scores), average_precision_score(unusual, -scores))
        )
    found = np.mean(measured, axis=0)
    print(f"\nentity, context {context}: AUC {found[0]:.3f}, AP {found[1]:.3f}")
    assert found[0] >= auc
    assert found[1] >= precision


def test_features_are_the_history_and_what_is_no_number():
    frame = readings()
    detector = HushTable(**NAMES, random_state=0).fit(frame)
    assert detector.plan_.schema.names == ["ward", *history_names(["pulse", "heat"])]
    assert [f.unit for f in detector.plan_.schema.features] == [
        "", "sd", "sd", "", "sd", "sd", "", SINCE,
    ]  # fmt: skip
    kinds = {one.name: one.kind for one in detector.understanding_}
    assert kinds["patient"] == "id"
    by_hour = HushTable(**NAMES, context="hour", random_state=0).fit(frame)
    assert by_hour.plan_.schema.names == [*detector.plan_.schema.names, "hour"]


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({}, {"entity": "ward"}, "needs time"),
        ({}, {"entity": "at", "time": "at"}, "is also the column of the time"),
        ({}, {"entity": "nurse", "time": "at"}, "no column 'nurse' (entity)"),
        ({}, {"entity": "patient", "time": "when"}, "no column 'when' (time)"),
        ({"pulse": 60.0, "heat": "warm"}, NAMES, "no column of varying numbers"),
        ({"since": 1.5}, NAMES, "already has a column 'since'"),
        ({"pulse place": 1.5}, NAMES, "already has a column 'pulse place'"),
        ({"patient": 1.5}, NAMES, "needs texts or whole numbers"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused_in_words(change, options, said):
    frame = readings(n=40).assign(**change)
    frame["more"] = np.arange(len(frame)) % 7 if "pulse" not in change else "x"
    with pytest.raises((DataError, UsageError)) as refused:
        HushTable(**options, random_state=0).fit(frame)
    assert said in str(refused.value)


def test_a_first_reading_is_no_outlier_for_being_the_first():
    frame, _ = Injection(synthetic(0), 0).all()
    frame["at"] = pd.to_datetime(frame["at"], unit="s")
    scores = HushTable(**NAMES, random_state=0).fit(frame).score_samples(frame)
    first = ~frame.duplicated("patient").to_numpy()
    assert (scores[first] < np.quantile(scores, 0.02)).mean() <= 0.1


@pytest.mark.parametrize("detector", ["hushtable", "lsh_itables"])
def test_a_missing_neutral_value_falls_where_the_median_does(detector):
    feature = Feature.numeric("x", low=0, high=10, neutral=True)
    plan = Plan.draw(Schema([feature]), detector=detector, random_state=0)
    family = plan.family
    counts = [np.zeros(family.n_cells, np.int64) for _ in range(2)]
    for value, cells in zip((np.nan, 5.0), counts, strict=True):
        family.count(Encoder(plan.schema).encode(np.array([[value]])), cells)
    np.testing.assert_array_equal(*counts)
    assert Feature.from_dict(feature.to_dict()) == feature
    with pytest.raises(PlanError, match="neutral"):
        Feature("ward", "categorical", categories=("a",), neutral=True)


# --- releases -----------------------------------------------------------------------------------


def test_under_a_public_plan_the_entity_has_to_be_the_person():
    plan = Plan.draw(schema(), epsilon=1.0, expected_rows=5000, random_state=0)
    rows = readings().dropna(subset="patient")
    with pytest.raises(PrivacyError, match=r"with no person.*--person"):
        Sketch.from_data(plan, read(rows, **NAMES))
    with pytest.raises(PrivacyError, match="with person='nurse'"):
        Sketch.from_data(plan, read(rows.assign(nurse="eve"), **NAMES), person="nurse")
    counted = Sketch.from_data(plan, read(rows, **NAMES), person="patient", rows_per_person=3)
    assert counted.release(epsilon=1.0).ledger.sensitivity.rows_per_person == 3
    with pytest.raises(UsageError, match="attended=False"):
        Sketch.from_data(plan, read(rows, **NAMES), attended=False)


def test_a_person_more_or_less_changes_at_most_their_rows():
    """The canary: an extreme person among others, counted with and without."""
    plan = Plan.draw(schema(), epsilon=1.0, expected_rows=5000, random_state=0)
    rows = readings().dropna(subset="patient")
    extreme = rows[rows["patient"] == rows["patient"][0]].assign(
        patient="canary", pulse=lambda f: 1e6 * (-1.0) ** np.arange(len(f))
    )
    most = 3
    both = pd.concat([rows, extreme]).sort_values("at", kind="stable", ignore_index=True)
    options = {"person": "patient", "rows_per_person": most}
    without = Sketch.from_data(plan, read(rows, **NAMES), **options)
    with_them = Sketch.from_data(plan, read(both, **NAMES), **options)
    moved = with_them.counts - without.counts
    assert moved.min() >= 0
    assert set(np.add.reduceat(moved, plan.family.offsets[:-1])) == {most}


# --- between visits -----------------------------------------------------------------------------


def test_a_history_is_kept_as_bytes():
    frame = readings()
    whole, parts = History(**NAMES), History(**NAMES)
    whole.update(frame[:200].drop(columns="ward"))
    expected = whole.update(frame[200:].drop(columns="ward"))
    parts.update(frame[:200].drop(columns="ward"))
    again = History.from_bytes(parts.to_bytes())
    pd.testing.assert_frame_equal(again.update(frame[200:].drop(columns="ward")), expected)
    assert History.from_bytes(History(**NAMES).to_bytes()).values is None
    for damaged in (b"", b"PK", parts.to_bytes()[:-200]):
        with pytest.raises(FileError, match="damaged"):
            History.from_bytes(damaged)


@pytest.fixture
def watch(run, tmp_path):
    """Watch a folder under a model of the first 400 readings; return what a run says, as JSON."""
    frame = readings(n=1200)
    (tmp_path / "in").mkdir()
    HushTable(**NAMES, random_state=0).fit(frame[:400]).save(tmp_path / "model.hush")

    def watch(name, rows, code=0):
        rows.to_csv(tmp_path / "in" / name, index=False)
        words = ["--model", tmp_path / "model.hush", "--settle", 0, "-o", tmp_path / "out"]
        result = run("watch", tmp_path / "in", *words, "--top", 5, "--json")
        assert result.code == code, result.err
        return result.json

    watch.frame, watch.folder = frame, tmp_path
    return watch


def assert_lowest(watch, facts, rows):
    """Check a run's list against the scores of these rows among all, from the first to the last.

    Rows with a value far outside everything come first, if their score is among the rarest 1%.
    """
    scores = load(watch.folder / "model.hush").score_samples(watch.frame)
    listed = pd.read_csv(watch.folder / "out" / facts["top"])
    rare = load(watch.folder / "model.hush")._usual_values().rare_below
    far = listed["words"].str.contains(": (?:far|beyond)") & (listed["score"] <= rare)
    assert far.tolist() == sorted(far, reverse=True)
    expected = np.sort(scores[rows])
    assert listed["score"][~far].is_monotonic_increasing
    assert np.isclose(listed["score"].to_numpy()[:, None], expected).any(axis=1).all()
    n = int((~far).sum())
    np.testing.assert_allclose(
        listed["score"][~far], np.setdiff1d(expected, listed["score"][far])[:n]
    )


def test_watch_goes_on_where_the_last_run_ended(watch):
    parts = {"a.csv": slice(400), "b.csv": slice(400, 900), "c.csv": slice(900, None)}
    for name, rows in parts.items():
        facts = watch(name, watch.frame[rows])
        assert_lowest(watch, facts, rows)


def test_watch_keeps_its_history_if_a_file_fails(watch):
    watch("a.csv", watch.frame[:800])
    failed = watch("b.csv", watch.frame[100:200], code=1)["failed"]
    assert "older than the last one before it" in failed[0]["error"]
    (watch.folder / "in" / "b.csv").unlink()
    assert_lowest(watch, watch("c.csv", watch.frame[800:]), slice(800, None))


def test_a_folder_of_another_history_is_refused(watch, run, tmp_path):
    watch("a.csv", watch.frame[:400])
    other = watch.frame[:400].drop(columns="heat")
    HushTable(**NAMES, random_state=0).fit(other).save(tmp_path / "model.hush")
    result = run(
        "watch", tmp_path / "in", "--model", tmp_path / "model.hush", "-o", tmp_path / "out"
    )
    assert result.code == 2
    assert "keeps the history of" in result.err
