"""Every line of bad input, through Python: a clear error, and nothing lost."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hushtable
from hushtable import (
    Feature,
    HushTable,
    HushTableError,
    Plan,
    Schema,
    Sketch,
)
from hushtable.data import read, understand
from hushtable.errors import DataError, DataTypeError, in_python, in_shell


@pytest.fixture
def plan():
    return Plan.draw(
        Schema((
            Feature.numeric("age", low=0, high=120),
            Feature.categorical("ward", ["north", "south"]),
        )),
        n_tables=4,
        random_state=0,
    )  # fmt: skip


@pytest.fixture
def fine():
    return pd.DataFrame({"age": [30.0, 40.0, 50.0], "ward": ["north", "south", "north"]})


def csv(tmp_path, text, name="a.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("a,b\n", "no rows"),
        ("a,b\n1,2\n", "1 sample"),
        ("a,b\n1,2\n3\n", "line 3 has 1 field, but needs 2"),
        ("a,b\n1,inf\n2,3\n", "'inf' in line 2"),
        ("a,b\n1,\n2,\n", "b: all its values are missing\nIn Python: .*drop=\\['b'\\]"),
        (b"a,b\n" + b"1,2\n" * 20_000 + b"1,\xff\n", "line 20002 is not UTF-8.*encoding='"),
    ],
)
def test_files_that_cannot_be_fitted(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        HushTable().fit(csv(tmp_path, text))


def test_columns_in_another_order_are_found_by_their_names(tmp_path):
    csv(tmp_path, "a,b\n1,2\n", "1.csv")
    csv(tmp_path, "b,a\n20,3\n", "2.csv")
    schema = HushTable(n_tables=2).fit(tmp_path).plan_.schema
    assert [(f.name, f.low, f.high) for f in schema.features] == [("a", 1, 3), ("b", 2, 20)]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.empty((0, 3)), "0 sample"),
        (np.empty((3, 0)), "0 feature"),
        (np.zeros((1, 3)), "1 sample"),
        (np.zeros(3), "Expected 2D"),
        (np.zeros((2, 2, 2)), "Expected 2D"),
        (np.array([[1.0, np.inf], [2.0, 3.0]]), "infinity: feature 'x1' in row 0"),
        (np.array([[1.0, 0], [-np.inf, 3.0]]), "infinity: feature 'x0' in row 1"),
        (np.array([[1.0, np.nan], [2.0, np.nan]]), "x1: all its values are missing"),
        (np.array([[1, 2**53 + 1], [1, 1]]), r"2\*\*53"),
        (np.array([[1, -(2**63)], [1, 1]]), r"-9223372036854775808.*2\*\*53"),
        (np.array([[1, 2**64 - 1], [1, 1]], np.uint64), r"2\*\*53"),
        (np.array([[-1e308], [1e308]]), "finite"),
        (np.array([[1j], [2]]), "Complex"),
        ([[1, 2], [3]], "rows and columns"),
        (pa.table({"a": pa.array([[1], [2]])}), "type list"),
        (pd.DataFrame(), "0 feature"),
        (pd.DataFrame({"a": [1, 2**60]}), r"2\*\*53"),
    ],
)
def test_rows_in_memory_that_cannot_be_fitted(X, message):
    with pytest.raises(DataError, match=message):
        HushTable().fit(X)


@pytest.mark.parametrize(
    "X",
    [
        np.array([[1, "a"], ["b", 2]], dtype=object),
        np.array([[1, {"a": 1}], [2, 3]], dtype=object),
        pd.DataFrame({"a": [1, "b"]}),
        pd.DataFrame({"a": [1.0, 2.0], 3: [1.0, 2.0]}),
    ],
)
def test_types_that_are_not_taken(X):
    with pytest.raises(DataTypeError):
        HushTable().fit(X)


def test_rows_that_do_not_fit_the_plan(plan, fine):
    Sketch.from_data(plan, fine)
    for rows, message in [
        (fine[["age"]], r"no column \['ward'\]"),
        (fine.rename(columns={"age": "Age"}), r"no column \['age'\].*other columns are \['Age'\]"),
        (fine.assign(age="old"), "'age': 'old' in row 0 is not a number"),
        (fine.assign(age=[1.0, np.inf, 2.0]), "infinity: feature 'age' in row 1"),
        (fine.iloc[:0], "no rows"),
        (fine.assign(ward=pd.to_datetime(["2024-01-01"] * 3)), None),
    ]:
        if message is None:
            # A date is text that is none of the categories.
            assert Sketch.from_data(plan, rows).outside() == {"ward": 3}
            continue
        with pytest.raises(DataError, match=message):
            Sketch.from_data(plan, rows)


def test_a_failed_fit_leaves_the_old_one(X):
    detector = HushTable(random_state=0).fit(X)
    before = detector.score_samples(X)
    bad = X.copy()
    bad[400, 2] = np.inf
    with pytest.raises(HushTableError):
        detector.partial_fit(bad)
    with pytest.raises(HushTableError):
        detector.fit(bad)
    assert (detector.score_samples(X) == before).all()


def test_errors_are_of_one_family_and_of_the_expected_kind():
    with pytest.raises(ValueError, match="0 feature") as caught:
        HushTable().fit(np.empty((3, 0)))
    assert isinstance(caught.value, HushTableError)
    with pytest.raises(TypeError):
        HushTable().fit(pd.DataFrame({"a": [1, "b"]}))


# --- where a value is -------------------------------------------------------------------------


@pytest.fixture
def lake(tmp_path):
    """Return a folder of three files, the second of which holds an infinity, and a plan."""
    rng = np.random.default_rng(0)
    for part in range(3):
        columns = {name: rng.normal(size=50) for name in ("a", "b")}
        if part == 1:
            columns["b"][7] = np.inf
        pq.write_table(pa.table(columns), tmp_path / f"part-{part}.parquet")
    schema = Schema([Feature.numeric(name, low=-9, high=9) for name in ("a", "b")])
    return tmp_path, Plan.draw(schema, n_tables=5, random_state=0)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_infinity_in_a_column_of_numbers_is_a_doubt_as_in_text(lake, threads):
    folder, _ = lake
    where = rf"b: holds numbers and 'inf' in row 7 of {re.escape(str(folder))}/part-1\.parquet"
    with pytest.raises(DataError, match=rf"{where}\nIn Python: .*missing=\['inf'\]\)$"):
        HushTable(n_jobs=threads).fit(str(folder))
    table = pa.table({"a": [0.0, 1.0, 2.0], "b": [-np.inf, 1.0, np.inf]})
    doubts = [one.question for one in understand(table)]
    assert doubts == ["", "holds numbers and 'inf' in row 2, '-inf' in row 0"]
    rows = read(table, missing=["inf", "-inf"])
    assert [one.question for one in understand(rows)] == ["", ""]
    scores = HushTable(random_state=0).fit(rows).score_samples(table)
    assert np.array_equal(scores, HushTable(random_state=0).fit(rows).score_samples(rows))


REMEDIES = [
    # a file, and the arguments of the remedy that its refusal states
    ("a,b\n1,\n2,\n", "drop=['b']"),
    ("a,b c\n" + "1,ERR\n" + "".join(f"{i},{i * 7 % 13}\n" for i in range(99)), "missing=['ERR']"),
    ("1,2\n3,4\n" + "1,2\n" * 50, "header=False"),
    ("a,b\n" + "1,2\n4,5\n" * 50 + "Total,350\n", "skip_footer=1"),
    ("a,b\n" + "12 kg,1\n13 kg,2\nheavy,3\n" * 9, "missing=['heavy']"),
]


@pytest.mark.parametrize(("content", "arguments"), REMEDIES)
def test_a_refusal_in_python_states_a_call_that_reads_the_rows(tmp_path, content, arguments):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(DataError) as refused:
        HushTable(random_state=0).fit(tmp_path / "a.csv")
    words, _, call = str(refused.value).partition("\nIn Python: ")
    assert call == f"hushtable.data.read(data, {arguments})"
    assert "--" not in words
    data = str(tmp_path / "a.csv")
    HushTable(random_state=0).fit(eval(call, {"hushtable": hushtable, "data": data}))


def test_options_in_sentences_are_arguments_in_python():
    words = {
        "add --read skip_lines=3, or --read no_header=true if": "add skip_lines=3, or "
        "header=False if",
        "(--dates dmy or --dates mdy)": "(dates='dmy' or dates='mdy')",
        "--missing would also apply": "missing would also apply",
        "If not, add --as 'b c=id'": "If not, add kinds={'b c': 'id'}",
        "such as --read encoding=cp1252": "such as encoding='cp1252'",
        "--decimal , or --decimal .": "decimal=',' or decimal='.'",
        "choose one with --read member=NAME": "choose one with member='NAME'",
        "hushtable fit --context": "hushtable fit --context",
        "a\nAdd: --dates dmy/mdy": "a\nIn Python: hushtable.data.read(data, dates='dmy/mdy')",
    }
    assert {text: in_python(text) for text in words} == words
    with in_shell():
        assert str(DataError("add --read no_header=true")) == "add --read no_header=true"
