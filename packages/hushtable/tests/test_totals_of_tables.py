"""Totals, subtotals, footers and further tables: refused by line, left out by skip_footer."""

import gzip
import io
import re

import numpy as np
import pandas as pd
import pytest
import xlsxwriter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_sources import opendocument

from hushtable.data import read
from hushtable.data.readers import FileLayout, Unasked, as_reader
from hushtable.data.readers.encoding import Text
from hushtable.errors import DataError, UsageError

pytestmark = pytest.mark.usefixtures("shell")  # messages name options

NAMES = ["day", "site", "amount", "count"]


def table(n=40, seed=0):
    rng = np.random.default_rng(seed)
    days = np.datetime64("2026-01-01") + rng.integers(0, 300, n)
    sites = rng.choice(["Alpha", "Beta", "Gamma"], n).tolist()
    amounts, counts = rng.lognormal(5, 1, n).round(2).tolist(), rng.integers(1, 40, n).tolist()
    return [
        list(row) for row in zip(days.astype(str).tolist(), sites, amounts, counts, strict=True)
    ]


ROWS = table()
AMOUNT, COUNT = (round(sum(row[j] for row in ROWS), 2) for j in (2, 3))
MEANS = [AMOUNT / 40, COUNT / 40]


def line(row):
    return ",".join("" if value is None else str(value) for value in row)


def text(*below, rows=ROWS, names=NAMES, end="\n"):
    lines = [line(row) if isinstance(row, list) else row for row in [names, *rows, *below]]
    return end.join(lines) + end


def book(path, rows, hidden=(), columns=None):
    with xlsxwriter.Workbook(str(path)) as workbook:
        sheet = workbook.add_worksheet("Sheet")
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                if value is not None:
                    sheet.write(i, j, value)
        for i in hidden:
            sheet.set_row(i, None, None, {"hidden": True})
        if columns is not None:
            sheet.set_column(columns, None, None, {"hidden": True})


def n_rows(path, **layout):
    return sum(len(batch) for batch in as_reader(path, layout=FileLayout(**layout)).read())


def refused(path, **layout):
    with pytest.raises(DataError) as caught:
        n_rows(path, **layout)
    return str(caught.value)


def remedied(path, message, **layout):
    """Type what a message asks for, until the file is read; return the number of rows."""
    n = int(re.search(r"\nAdd: --read skip_footer=(\d+)$", message)[1])
    return n, n_rows(path, skip_footer=n, **layout)


def as_file(path, below):
    if path.suffix == ".csv":
        path.write_text(text(*below))
    elif path.suffix == ".xlsx":
        book(path, [NAMES, *ROWS, *below])
    else:
        opendocument(path, [NAMES, *ROWS, *below])


ENDINGS = ["csv", "xlsx", "ods"]
TOTALS = {
    "labelled": [["Total", None, AMOUNT, COUNT]],
    "labelled without gaps": [["Total", "all", AMOUNT, COUNT]],
    "no label": [[None, None, AMOUNT, COUNT]],
    "three summaries": [
        ["Sum", None, AMOUNT, COUNT],
        ["Mean", None, *MEANS],
        ["Max", None, max(row[2] for row in ROWS), max(row[3] for row in ROWS)],
    ],
    "a footer below": [["Total", None, AMOUNT, COUNT], ["Printed on 2026-01-01", None, None, None]],
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("below", TOTALS.values(), ids=TOTALS)
def test_summaries_at_the_end_are_refused_and_left_out_on_request(tmp_path, below, ending):
    path = tmp_path / f"a.{ending}"
    as_file(path, below)
    message = refused(path)
    k = len(below)
    where = "line" if ending == "csv" else "row"
    lines = f"{where} 42, the last, looks" if k == 1 else f"{where}s 42 to {41 + k}, the last, look"
    assert f"{lines} like totals or notes below the table" in message
    assert remedied(path, message) == (k, 40)


def test_another_table_of_as_many_columns_below_a_blank_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text("", "name,lead,deputy,room", *["Alpha,Ann,Bo,x1"] * 3))
    assert "line 43, below an empty line, is not a row: it holds words" in refused(path)
    assert remedied(path, refused(path)) == (4, 40)
    # Filled up with delimiters, as workbooks are exported.
    path.write_text(text(",,,", "name,lead,deputy,", *["Alpha,Ann,Bo,"] * 3))
    message = refused(path)
    assert "line 43, below an empty line" in message


def test_another_table_in_a_sheet(tmp_path):
    path = tmp_path / "a.xlsx"
    other = [["site", "manager", "since", "room"], ["Alpha", "Ann", 2009, "x"]]
    total = [None, "Total", AMOUNT, COUNT]
    book(path, [NAMES, *ROWS, total, [], *other])
    message = refused(path)
    assert "rows 44 to 45, the last, look like another table" in message
    assert remedied(path, message) == (3, 40)  # with the total above
    book(path, [NAMES, *ROWS, [], ["Managers"], [], *other])
    assert remedied(path, refused(path)) == (3, 40)
    book(path, [NAMES, *ROWS, NAMES, *ROWS])
    assert as_reader(path).found == ("line 42 repeats the names, and is left out",)
    assert n_rows(path) == 80


def grouped():
    rows = []
    for i in range(0, 40, 10):
        rows += ROWS[i : i + 10]
        rows.append(["Subtotal", None, round(sum(r[2] for r in ROWS[i : i + 10]), 2), None])
    return rows


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_subtotals_are_refused_by_line(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    rows = [*grouped(), ["Grand total", None, AMOUNT, COUNT]]
    if ending == "csv":
        path.write_text(text(rows=rows))
    else:
        book(path, [NAMES, *rows])
    message = refused(path)
    kind = "lines" if ending == "csv" else "rows"
    assert f"{kind} 12, 23, 34, 45" in message
    assert "Delete them, or export without subtotals; if they are rows, add --read skip" in message
    assert "Add:" not in message
    assert n_rows(path, skip_footer=0) == 45
    if ending == "csv":  # also where a column is left out
        with pytest.raises(DataError, match="lines 12, 23"):
            list(read(path, drop=["site", "day"]).read())


# --- no false alarms ------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32), n=st.integers(2, 60), d=st.integers(1, 6))
def test_an_ordinary_last_row_is_never_called_a_total(tmp_path_factory, seed, n, d):
    rng = np.random.default_rng(seed)
    makes = [
        lambda: rng.normal(100, 20, n).round(rng.integers(0, 3)),
        lambda: rng.integers(0, 3, n),
        lambda: rng.lognormal(0, 3, n).round(2),
        lambda: np.arange(n),
        lambda: rng.poisson(0.2, n),
        lambda: np.cumsum(rng.integers(1, 9, n)),
        lambda: rng.choice(["a", "b", "Max", "Son", "total"], n),
        lambda: 2.0 ** (np.arange(n) % 45),
        lambda: np.where(rng.random(n) < 0.2, None, rng.normal(0, 1, n).round(3)),
    ]
    columns = {f"c{j}": makes[rng.integers(len(makes))]() for j in range(d)}
    folder = tmp_path_factory.mktemp("a")
    frame = pd.DataFrame({"key": [f"K{i}" for i in range(n)]} | columns)
    frame.to_csv(folder / "a.csv", index=False)
    assert n_rows(folder / "a.csv") == n
    book(folder / "a.xlsx", [list(frame), *frame.astype(object).to_numpy().tolist()])
    assert n_rows(folder / "a.xlsx") == n


@pytest.mark.parametrize(
    ("last", "says"),
    [
        ("2026-0", "if the file was truncated, export it again"),
        ("2026-01-01,Alpha", "if the file was truncated, export it again"),
        ("2026-01-01,Alpha,1,2,3", "quotation marks around texts"),
    ],
)
def test_what_may_be_a_row_is_not_offered_to_be_left_out(tmp_path, last, says):
    (tmp_path / "a.csv").write_text(text() + last)
    message = refused(tmp_path / "a.csv")
    assert says in message
    assert "skip_footer" not in message


def test_a_stray_line_between_rows_is_not_offered_to_be_left_out(tmp_path):
    (tmp_path / "a.csv").write_text(text("Page 2", *ROWS))
    message = refused(tmp_path / "a.csv")
    assert "line 42 has 1 field" in message
    assert "skip_footer" not in message


# --- the option -----------------------------------------------------------------------------------


def test_the_lines_left_out_are_said(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text(["Total", None, AMOUNT, COUNT]))
    assert read(path, skip_footer=1).found == (
        f"of its lines, the last is left out, from 'Total,,{AMOUNT},{COUNT}' on",
    )
    book(tmp_path / "a.xlsx", [NAMES, *ROWS, [], ["Total", None, AMOUNT, COUNT], ["Fin"]])
    [words] = read(tmp_path / "a.xlsx", skip_footer=2).found
    assert words.startswith("of its lines, the last 2 are left out, from 'Total |")


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_more_lines_than_there_are(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    as_file(path, [])
    words = "above the last 99|leaves out all of them: lower it"
    with pytest.raises(DataError, match=words):
        n_rows(path, skip_footer=99)
    for n in (-1, -99):
        with pytest.raises(UsageError, match="needs 0 or more"):
            n_rows(path, skip_footer=n)
    assert n_rows(path, skip_footer=0) == 40


def test_lines_held_back_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("hushtable.data.readers.encoding._MOST_HELD", 1 << 10)
    (tmp_path / "a.csv").write_text(text(rows=ROWS * 50))
    with pytest.raises(DataError, match="lower --read skip_footer="):
        n_rows(tmp_path / "a.csv", skip_footer=1_000)


def test_lines_of_delimiters_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("hushtable.data.readers.encoding._MOST_HELD", 1 << 10)
    (tmp_path / "a.csv").write_text(text(*[",,,"] * 1_000))
    with pytest.raises(DataError, match=r"in lines without values.*delete these"):
        n_rows(tmp_path / "a.csv")


# --- sheets ---------------------------------------------------------------------------------------


def test_tables_side_by_side(tmp_path):
    path = tmp_path / "a.xlsx"
    for names in (["site", "lead"], ["place", "lead"]):
        rows = [[*row, None, None, None] for row in ROWS]
        rows[0][5:], rows[1][5:] = ["Alpha", "Ann"], ["Beta", "Bo"]
        book(path, [[*NAMES, None, *names], *rows])
        message = refused(path)
        assert "side by side, in the columns A:D (40 rows) and F:G (2 rows)" in message
        assert message.endswith("Add: --read 'sheet=Sheet!A:D'")
        assert n_rows(path, sheet="Sheet!A:D") == 40
        reader = as_reader(path, layout=FileLayout(sheet="'Sheet'!F:G"))
        assert (reader.names, reader.n_rows) == (tuple(names), 2)
        with pytest.raises(UsageError, match="comes after the last"):
            n_rows(path, sheet="Sheet!D:A")
    # One table with a spacer, and remarks here and there.
    book(
        path,
        [
            [*NAMES, None, "remark"],
            *[[*r, None, "x" if i < 3 else None] for i, r in enumerate(ROWS)],
        ],
    )
    assert n_rows(path) == 40


def test_hidden_rows_and_columns_are_read(tmp_path):
    book(tmp_path / "a.xlsx", [NAMES, *ROWS], hidden=(7, 9), columns="B:B")
    opendocument(tmp_path / "a.ods", [NAMES, *ROWS], hidden=(1, 2, 30))
    for name in ("a.xlsx", "a.ods"):
        assert (n_rows(tmp_path / name), read(tmp_path / name).found) == (40, ())
        assert read(tmp_path / name).names == tuple(NAMES)


def test_lines_are_left_out_where_nobody_is_asked(tmp_path):
    """In rounds: by the option alone, and no line decides whether a site answers."""
    unasked = Unasked(NAMES)
    below = [["Total", None, AMOUNT, COUNT], '"(40', "Fin"]
    for name, end in (("a.csv", ""), ("a.csv.gz", "\n\n")):
        content = (text(*below).rstrip() + end).encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        assert n_rows(tmp_path / name, skip_footer=3, unasked=unasked) == 40
    opendocument(tmp_path / "a.ods", [NAMES, *ROWS, below[0]])
    assert n_rows(tmp_path / "a.ods", skip_footer=1, unasked=unasked) == 40
    assert n_rows(tmp_path / "a.ods", unasked=unasked) == 41
    assert not unasked.words


@given(
    lines=st.lists(st.sampled_from(["a,", "a\n", "\n", ",\r\n", "\r", " ,\n", ","])),
    size=st.integers(1, 5),
)
def test_what_is_left_out_does_not_depend_on_blocks(lines, size):
    whole = "".join(lines).encode()
    read = [Text(io.BytesIO(whole), "utf-8", "a", delimiter=",") for _ in range(2)]
    found = [
        b"".join(iter(lambda text=text, n=n: text.read(n), b""))
        for text, n in zip(read, (size, 1 << 20), strict=True)
    ]
    assert found[0].rstrip(b"\r\n") == found[1].rstrip(b"\r\n")
    assert whole.startswith(found[1])
    assert not whole[len(found[1]) :].strip(b", \r\n")
