"""The lowest rows as a table: severity, values beside what is usual, frames, and what is kept."""

import datetime
import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from hushtable import Feature, HushTable, LSHiTables, Schema, files, load
from hushtable.errors import DataError, FileError, UsageError
from hushtable.scores.finding import Finding, lowest_rows
from hushtable.scores.outliers import AMONG, Lowest
from hushtable.scores.typical import UsualValues, describe_cell
from hushtable.scores.usual import FEW, Sample


@pytest.fixture
def people(rng):
    """A frame of 400 rows: an odd pulse in row 7, an odd ward in row 9, none in row 11."""
    frame = pd.DataFrame(
        {
            "name": [f"P{i:03}" for i in range(400)],
            "pulse": rng.integers(60, 100, 400).astype(float),
            "ward": rng.choice(["north", "south"], 400, p=[0.8, 0.2]),
            "seen": pd.Timestamp("2026-01-01")
            + pd.to_timedelta(rng.integers(0, 30, 400), unit="D"),
        }
    )
    frame.loc[7, "pulse"] = 250.0
    frame.loc[9, "ward"] = "east"
    frame.loc[11, "pulse"] = np.nan
    return frame.set_index("name")


@pytest.fixture
def fitted(people):
    return HushTable(random_state=0).fit(people)


# --- severity ---------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [HushTable, LSHiTables])
def test_severity_is_one_minus_the_share_of_counted_rows_as_rare(make, people):
    detector = make(random_state=0).fit(people)
    scores = detector.score_samples(people)
    table = detector.outliers(people, n=30)
    assert table.attrs["severity_among"] == "the rows that the model counted"
    rare = np.array([(scores <= score).mean() for score in table["score"]])
    np.testing.assert_allclose(table["severity"], 100.0 * (1.0 - rare), atol=1e-9)
    order = np.argsort(scores, kind="stable")
    order = np.append(7, order[order != 7])  # its pulse is far outside: it comes first
    assert table["row"].tolist() == order[:30].tolist()
    assert table["rank"].tolist() == list(range(1, 31))
    errors = detector.standard_errors(people)
    np.testing.assert_array_equal(table["error"], errors[table["row"]])


@pytest.mark.parametrize("n_rows", [5, FEW, 20 * FEW + 11])
def test_the_sample_is_the_same_for_any_source(n_rows, rng, tmp_path):
    X = rng.normal(size=(n_rows, 2))
    table = pa.table({"a": X[:, 0], "b": X[:, 1]})
    for k, part in enumerate((table.slice(0, n_rows // 3), table.slice(n_rows // 3))):
        (tmp_path / "rows").mkdir(exist_ok=True)
        pq.write_table(part, tmp_path / "rows" / f"{k}.parquet")
    batches = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=1000))
    found = []
    for source in (table, tmp_path / "rows", batches):
        for jobs in (1, 2):
            if source is batches and jobs == 2:
                continue
            usual = HushTable(n_tables=5, random_state=0, n_jobs=jobs).fit(source)._usual_values()
            found.append((usual.scores.tolist(), usual.values))
    assert found.count(found[0]) == len(found) == 5
    assert len(found[0][0]) == min(n_rows, max(FEW, n_rows // 16))


def test_no_row_is_pickled_before_the_first_use(people):
    people["pulse"] += 0.123456789
    detector = HushTable(random_state=0).fit(people)
    assert isinstance(detector._usual, Sample)
    whole = pickle.dumps(detector)
    assert not isinstance(pickle.loads(whole)._usual, Sample)


def test_ranks_go_before(fitted, people):
    half = people.iloc[:200]
    fitted.set_ranks(half)
    table = fitted.outliers(people, n=9)
    np.testing.assert_allclose(
        table["severity"], 100 - 100 * fitted.rank_samples(people)[table["row"]]
    )
    assert table.attrs["severity_among"] == "the rows that the ranks count"


def test_old_files_and_damaged_ones(fitted, people, tmp_path):
    fitted.save(tmp_path / "d.hush")
    content = files.read(tmp_path / "d.hush")
    left_out = ("protocol", "kind", "arrays", "digest", "writer")
    entries = {k: v for k, v in content.manifest.items() if k not in left_out}
    arrays = dict(content.arrays)

    def loaded(entries, arrays):
        files.write(tmp_path / "e.hush", "detector", entries, arrays)
        return load(tmp_path / "e.hush")

    old = {k: v for k, v in entries.items() if k != "usual"}
    table = loaded(old, {k: v for k, v in arrays.items() if k != "usual.scores"}).outliers(people)
    assert table.attrs["severity_among"] == "the rows that were scored here"
    usual = entries["usual"]
    broken = [
        usual[:1],
        [{"missing": 2.0}, *usual[1:]],
        [{"missing": 0.0, "middle": [3, 2, 1]}, *usual[1:]],
        [{"missing": 0.0, "middle": [1, 2]}, *usual[1:]],
        [{"missing": 0.0, "middle": [1, "2", 3]}, *usual[1:]],
        [{"missing": 0.0, "shares": {"west": 0.5}}, *usual[1:]],
        [usual[0], {"missing": 0.0, "middle": [1, 2, 3]}, *usual[2:]],
        [{"missing": 0.0, "more": 1}, *usual[1:]],
        [{"missing": 0.0, "shares": {"1": 0.5}}, *usual[1:]],
        [{"missing": 0.0, "shares": {"nan": 0.5}}, *usual[1:]],
        [{"missing": 0.0, "shares": {f"{x}.0": 0.05 for x in range(11)}}, *usual[1:]],
    ]
    for damaged in broken:
        with pytest.raises(FileError, match="usual"):
            loaded(entries | {"usual": damaged}, arrays)
    for scores in (
        np.array([2.0, 1.0]), np.array([1.0, np.nan]), np.array([1]), np.zeros(0), np.zeros((2, 2)),
    ):  # fmt: skip
        with pytest.raises(FileError, match="rising"):
            loaded(entries, arrays | {"usual.scores": scores})
    # As a model has it that learned from verdicts: its values are known, not their scores.
    table = loaded(entries, {k: v for k, v in arrays.items() if k != "usual.scores"}).outliers(
        people
    )
    assert table.attrs["severity_among"] == "the rows that were scored here"


def test_a_text_that_no_category_is_stays_out_of_the_file(tmp_path):
    """Under a schema, rows may hold texts that it does not list: they are of one row each."""
    schema = Schema(
        [Feature.numeric("age", low=0, high=120), Feature.categorical("sex", ["f", "m"])]
    )
    rows = pd.DataFrame(
        {"age": np.arange(40.0), "sex": [*"fm" * 15, *["Jane Doe"] * 6, *[None] * 4]}
    )
    detector = HushTable(n_tables=5, random_state=0).fit(rows, schema=schema)
    detector.save(tmp_path / "d.hush")
    assert b"Jane" not in (tmp_path / "d.hush").read_bytes()
    sex = files.read(tmp_path / "d.hush").manifest["usual"][1]
    assert sex == {"missing": 0.1, "shares": {"f": 0.375, "m": 0.375}}  # of all rows
    again = load(tmp_path / "d.hush").outliers(rows, n=3)
    pd.testing.assert_frame_equal(again, detector.outliers(rows, n=3))


def scored(scores, lowest):
    """Return a batch of rows about which only the scores are known."""
    return SimpleNamespace(
        scores=scores, keys=scores, lowest=lowest, ruled=None,
        finding=lambda k, row, file: Finding(row, float(scores[lowest[k]]), file),
    )  # fmt: skip


def test_ties_count_as_rare_over_batches_and_files():
    lowest, every = Lowest(3), []
    batches = [[5.0, 4.0], [4.0, 4.0, 9.0], [1.0, 4.0], [2.0, 2.0, 2.0, 2.0], [2.0], [7.0]]
    for scores in batches:
        few = lowest_rows(np.array(scores), 3)
        lowest.add(scored(np.array(scores), few), len(every))
        every += scores
        for row in lowest.rows:
            assert lowest.as_rare(row.score) == sum(s <= row.score for s in every)
    assert lowest.n_rows == len(every)


# --- values and words -------------------------------------------------------------------------


def test_what_lies_beyond_is_said(fitted, people):
    odd = people.iloc[:1].assign(pulse=9999.0, ward="west")
    words = fitted.outliers(odd, n=1)["words"].item()
    assert "pulse 9999, usually 6" in words
    assert ": beyond the range of 60 to 250" in words
    assert "ward west: none of the 3 known" in words


def test_truth_values_times_and_numbers_of_no_calendar():
    flag = Feature.numeric("flag", low=0, high=1)
    found = describe_cell(flag, pa.array([True]), UsualValues(0.0, (0.0, 0.0, 0.0)))
    assert (found.value, found.words) == (True, "flag true, usually false: high")
    time = Feature.numeric("at", low=0, high=86_400)
    found = describe_cell(time, pa.array([datetime.time(3, 30)]), None)
    assert (found.text, found.usual) == ("3:30:00", "0:00:00 to 24:00:00 (range)")
    far = Feature.numeric("day", low=0, high=1e18, unit="date")
    assert describe_cell(far, pa.array([1e17]), None).value == 1e17


# --- frames -----------------------------------------------------------------------------------


def test_a_frame_of_the_callers_kind(fitted, people, tmp_path):
    pandas = fitted.outliers(people, n=4, keep=["pulse"])
    assert pandas.index.tolist() == [f"P{i:03}" for i in pandas["row"]]
    assert pandas.index.name == "name"
    np.testing.assert_array_equal(pandas["pulse"], people["pulse"].iloc[pandas["row"]])
    flat = pl.from_pandas(people.reset_index())
    polars = fitted.outliers(flat, n=4, keep=("name",))
    assert isinstance(polars, pl.DataFrame)
    assert polars["name"].to_list() == pandas.index.tolist()
    assert isinstance(fitted.outliers(flat.lazy(), n=4, keep=("name",)), pl.DataFrame)
    arrow = fitted.outliers(flat.to_arrow(), n=4, keep=("name", "seen"))
    assert isinstance(arrow, pa.Table)
    assert arrow.schema.field("seen").type == flat.to_arrow().schema.field("seen").type
    assert arrow.schema.metadata[AMONG] == b"the rows that the model counted"
    flat.write_parquet(tmp_path / "p.parquet")
    path = fitted.outliers(tmp_path / "p.parquet", n=4, keep=("name",))
    assert path["words"].to_pylist() == pandas["words"].tolist()
    X = people[["pulse"]].to_numpy()
    matrix = HushTable(random_state=0).fit(X).outliers(X, n=2)
    assert isinstance(matrix, pa.Table)
    assert matrix["reason_1"].to_pylist()[0] == "x0"


@pytest.mark.parametrize(
    ("n", "keep", "says"),
    [
        (0, (), "1 or more"),
        (True, (), "1 or more"),
        (2.5, (), "1 or more"),
        (2, "name", "needs a list of columns"),
        (2, ["nobody"], r"keep=\['nobody'\]: the data has no such column"),
        (2, ["ward", "ward"], "names a column twice"),
        (2, ["row"], "its own column 'row': rename the column of the rows"),
    ],
)
def test_bad_wishes_are_refused(fitted, people, n, keep, says):
    with pytest.raises((DataError, UsageError), match=says):
        fitted.outliers(people, n=n, keep=keep)


def test_further_columns_are_left_out_and_missing_ones_refused(fitted, people):
    with pytest.warns(UserWarning, match="'more'.* are ignored"):
        assert fitted.outliers(people.assign(more=1.0), n=2).equals(fitted.outliers(people, n=2))
    with pytest.raises(DataError, match="yet now missing"):
        fitted.outliers(people.reset_index().drop(columns="ward"), n=2, keep=["name"])
    with pytest.raises(DataError, match="has no rows"):
        fitted.outliers(people.iloc[:0], n=2)


# --- set_output -------------------------------------------------------------------------------


def test_set_output_keeps_the_index(fitted, people):
    arrays = fitted.explain(people), fitted.score_samples(people), fitted.predict(people)
    decisions = fitted.decision_function(people)
    framed = clone(fitted.set_output(transform="pandas")).fit(people)  # clone keeps it
    shares = framed.explain(people)
    assert shares.columns.tolist() == people.columns.tolist()
    pd.testing.assert_index_equal(shares.index, people.index)
    np.testing.assert_array_equal(shares, arrays[0])
    for series, expected in (
        (framed.score_samples(people), arrays[1]),
        (framed.predict(people), arrays[2]),
        (framed.decision_function(people), decisions),
    ):
        pd.testing.assert_index_equal(series.index, people.index)
        np.testing.assert_array_equal(series, expected)
    assert (framed.fit_predict(people) == framed.predict(people)).all()
    framed.set_ranks(people).set_threshold(people, 0.1)
    assert framed.rank_samples(people).min() > 0.0
    framed.set_output(transform="polars")
    assert framed.explain(people).columns == people.columns.tolist()
    assert framed.score_samples(people).to_list() == arrays[1].tolist()
    framed.set_output().set_output(transform="default")
    assert isinstance(framed.predict(people), np.ndarray)
    with pytest.raises(UsageError, match="needs one of"):
        framed.set_output(transform="arrow")


def test_a_date_that_is_kept_is_a_date(tmp_path, rng):
    days = [f"2026-{1 + i // 28:02}-{1 + i % 28:02}" for i in range(200)]
    hours = [f"{day} {i % 24:02}:30" for i, day in enumerate(days)]
    rows = pd.DataFrame({"day": days, "at": hours, "a": rng.normal(size=200)})
    rows.loc[3, "day"] = None
    rows.to_csv(tmp_path / "rows.csv", index=False)
    detector = HushTable(random_state=0).fit(tmp_path / "rows.csv")
    for X in (rows, tmp_path / "rows.csv"):
        found = detector.outliers(X, n=200, keep=["day", "at"])
        found = found if isinstance(found, pd.DataFrame) else found.to_pandas()
        found = found.set_index("row").sort_index()
        assert (
            found["day"].dt.strftime("%Y-%m-%d").fillna("").tolist()
            == rows["day"].fillna("").tolist()
        )
        assert found["at"].dt.strftime("%Y-%m-%d %H:%M").tolist() == hours


def test_a_row_of_weight_w_is_w_rows(people):
    weights = np.arange(400) % 3
    repeated = people.iloc[np.repeat(np.arange(400), weights)]
    a = HushTable(random_state=0).fit(people, sample_weight=weights)
    b = HushTable(random_state=0).fit(repeated)
    assert a.outliers(people, n=50)["severity"].tolist() == (
        b.outliers(people, n=50)["severity"].tolist()
    )
    assert a._usual_values().values == b._usual_values().values
