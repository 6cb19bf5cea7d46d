"""``hushtable score --top``, ``--id`` and ``--keep``: a result to hand on, in four formats."""

import datetime
import decimal
import re

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from python_calamine import CalamineWorkbook

from cli_helpers import do, write_rows
from hushtable.data import spreadsheets

ENDINGS = (".csv", ".xlsx", ".html", ".parquet")
#: What a spreadsheet or a browser must not run.
EVIL = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "<script>alert(1)</script>", "\t=1"]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with rows that have ids, and a model that was fitted without those."""
    here = tmp_path_factory.mktemp("top")
    lines = write_rows(here / "plain.csv", 400).read_text().splitlines()
    ids = [f"{i:05}" for i in range(len(lines) - 1)]
    ids[7] = "=1+1"
    text = "\n".join(f"{a},{b}" for a, b in zip(["Patient ID", *ids], lines, strict=True))
    (here / "rows.csv").write_text(text + "\n")
    do("fit", here / "plain.csv", "--seed", 1, "-o", here / "model.hush")
    return here


@pytest.fixture
def top(run, here, tmp_path):
    """Write the lowest rows; return the result and the file."""

    def top(*options, suffix=".parquet", data="rows.csv", model="model.hush"):
        out = tmp_path / f"top{suffix}"
        result = run("score", here / data, "--model", here / model, "-o", out, *options)
        assert result.code == 0, result.err
        return result, out

    return top


def table_of(path):
    """Return the cells of a file of the lowest rows, as texts where they are texts."""
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix == ".csv":
        texts = pa.csv.ConvertOptions(column_types={"Patient ID": pa.string()})
        return pa.csv.read_csv(path, convert_options=texts).to_pylist()
    sheet = CalamineWorkbook.from_path(str(path)).get_sheet_by_name("Outliers").to_python()
    return [dict(zip(sheet[0], line, strict=True)) for line in sheet[1:]]


def test_a_sheet_has_numbers_a_frozen_head_and_notes(top):
    _, out = top("--id", "Patient ID", "--top", 5, suffix=".xlsx")
    first = table_of(out)[0]
    assert first["row"] == 7
    assert first["Patient ID"] == "=1+1"
    values = {first[f"reason_{k}"]: first[f"value_{k}"] for k in (1, 2)}
    assert values == {"income": 199_999.0, "age": 119.0}
    about = dict(CalamineWorkbook.from_path(str(out)).get_sheet_by_name("About").to_python())
    assert "model.hush" in about["Made"]
    assert about["Rows"].startswith("5 of 400 rows")
    meant = {"rank", "severity", "score", "value", "direction", "usual", "words", "Keep it"}
    assert meant <= set(about)
    assert not list(out.parent.glob("*.part"))


def test_nothing_of_a_row_runs(run, here, tmp_path):
    rows = (here / "plain.csv").read_text().splitlines()[:400]
    names = ["name", *EVIL * 67]
    lines = [f'"{a}",{b}' for a, b in zip(names, rows, strict=False)]
    (tmp_path / "evil.csv").write_text("\n".join(lines) + "\n")
    command = ("score", tmp_path / "evil.csv", "--model", here / "model.hush", "--id", "name")
    for suffix in ENDINGS:
        out = tmp_path / f"top{suffix}"
        result = run(*command, "--top", 50, "-o", out)
        assert result.code == 0, result.err
        if suffix == ".html":
            page = out.read_text()
            assert "<script>alert" not in page
            assert "&lt;script&gt;alert(1)" in page
            assert "default-src 'none'" in page
            continue
        texts = {row["name"] for row in table_of(out)}
        expected = {text if text[0] == "<" else f"'{text}" for text in EVIL}
        assert texts <= (expected if suffix == ".csv" else set(EVIL))
        assert len(texts) == len(EVIL)
    run(*command, "-o", tmp_path / "all.csv")
    texts = {row["name"] for row in table_of(tmp_path / "all.csv")}
    assert texts == {text if text[0] == "<" else f"'{text}" for text in EVIL}
    run(*command, "-o", tmp_path / "all.parquet")  # for machines: as they are
    assert {row["name"] for row in table_of(tmp_path / "all.parquet")} == {*EVIL}


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(),
        pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.large_string()),
    ],
    ids=str,
)  # fmt: skip
def test_no_kind_of_text_becomes_a_formula(kind):
    """Also the name of a column; a number stays one, and so does what is missing."""
    fine = ["-3.5", "+1e-7", "-3,5", "P-1", "'=1", "", None, "1=1", " =1"]
    column = pa.array([*EVIL, "\r=1", "\n=1", *fine], pa.string()).cast(kind)
    table = spreadsheets.harmless_table(pa.table({"=name": column, "n": range(len(column))}))
    assert table.column_names == ["'=name", "n"]
    found = table["'=name"].cast(pa.string()).to_pylist()
    expected = [text if text[0] == "<" else f"'{text}" for text in (*EVIL, "\r=1", "\n=1")]
    assert found == expected + fine
    assert [spreadsheets.harmless(text) for text in fine if text] == [text for text in fine if text]
    assert [spreadsheets.original(text) for text in expected] == [*EVIL, "\r=1", "\n=1"]
    assert spreadsheets.original("'P1") == "'P1"


@pytest.mark.parametrize("options", [(), ("--top", 30)])
def test_names_of_columns_become_no_formulas_either(run, tmp_path, options):
    """Whatever is written so is found again by those who judge the rows."""
    write_rows(tmp_path / "plain.csv", 300)
    rows = (tmp_path / "plain.csv").read_text().splitlines()
    ids = ["=id", *(f"{EVIL[k % 6]} {k}" for k in range(300))]
    (tmp_path / "rows.csv").write_text(
        "".join(f'"{a}",{b}\n' for a, b in zip(ids, rows, strict=True))
    )
    do("fit", tmp_path / "rows.csv", "--drop", "=id", "--seed", 1, "-o", tmp_path / "m.hush")
    score = ("score", tmp_path / "rows.csv", "--model", tmp_path / "m.hush", "--id", "=id")
    assert run(*score, *options, "-o", tmp_path / "s.csv").code == 0
    head = (tmp_path / "s.csv").read_text().splitlines()[0]
    assert "'=id" in head
    assert '"=' not in head
    table = pa.csv.read_csv(tmp_path / "s.csv")
    judged = table.select(["'=id"]).append_column("verdict", pa.array(["fine"] * len(table)))
    pa.csv.write_csv(judged, tmp_path / "verdicts.csv")
    learn = ("learn", tmp_path / "m.hush", tmp_path / "verdicts.csv", "--id", "=id")
    learned = run(*learn, "--rows", tmp_path / "rows.csv", "-o", tmp_path / "l.hush", "--json")
    assert learned.code == 0, learned.err
    assert learned.json["fine"] == len(table) == (30 if options else 300)


def test_the_page_has_each_row_with_its_reasons(top):
    _, out = top("--id", "Patient ID", "--keep", "ward", "--top", 3, suffix=".html")
    page = out.read_text()
    assert page.count('<li id="row-') == 3
    assert '<span class="soft">Patient ID</span> =1+1</span>' in page
    assert '<span class="soft">ward</span> ' in page
    assert re.search(
        r"<strong>income 199999.00</strong>, usually [\d.]+ to [\d.]+: far above<", page
    )
    assert page.count("<svg ") == page.count("<figure>") >= 3
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--id", "absent", "--top", 3), 1, "has no column ['absent']"),
        (("--keep", "absent"), 1, "has no column ['absent']"),
        (("--id", "age", "--top", 3), 2, "uses this column as a feature"),
        (("--id", "Patient ID", "--keep", "Patient ID", "--top", 3), 2, "is named twice"),
        (("--top", 3, "--contamination", 3), 2, "leave --contamination out"),
        (("--top", 0), 2, "--top"),
    ],
)
def test_what_cannot_be_is_refused(refused, here, tmp_path, options, code, says):
    command = ("score", here / "rows.csv", "--model", here / "model.hush")
    refused(*command, *options, "-o", tmp_path / "t.csv", code=code, says=says)


def test_names_and_endings_that_do_not_go(refused, here, tmp_path):
    command = ("score", here / "rows.csv", "--model", here / "model.hush")
    for name in ("t.pdf", "folder"):
        says = "must end in .csv, .xlsx, .html or .parquet"
        refused(*command, "--top", 3, "-o", tmp_path / name, code=2, says=says)
    refused(*command, "-o", tmp_path / "t.xlsx", code=2, says="--top writes")
    (tmp_path / "odd.csv").write_text("score,age,income,ward\n1,40,20000,north\n")
    odd = ("score", tmp_path / "odd.csv", "--model", here / "model.hush", "--keep", "score")
    for more in ((), ("--top", 3)):
        refused(*odd, *more, "-o", tmp_path / "t.csv", code=2, says="has its own column 'score'")


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".html", ".parquet"])
def test_kept_columns_of_any_single_value_and_no_nested_one(run, refused, here, tmp_path, suffix):
    n = 40
    table = pa.table(
        {
            "age": [float(i % 7) for i in range(n)],
            "price": pa.array([decimal.Decimal("1.50")] * n),
            "kind": pa.array(["x", "y"] * (n // 2)).dictionary_encode(),
            "raw": pa.array([b"ab"] * n),
            "at": pa.array([datetime.time(3, 4)] * n),
            "seen": pa.array([datetime.datetime(2026, 1, 1)] * n, pa.timestamp("ns", "UTC")),
            "took": pa.array([datetime.timedelta(seconds=5)] * n),
            "none": pa.nulls(n),
            "list": pa.array([[1, 2]] * n),
        }
    )
    pq.write_table(table, tmp_path / "kinds.parquet")
    do("fit", tmp_path / "kinds.parquet", "--columns", "age", "-o", tmp_path / "m.hush")
    command = ("score", tmp_path / "kinds.parquet", "--model", tmp_path / "m.hush")
    command += ("--columns", "age", "--top", 3, "-o", tmp_path / f"t{suffix}", "--keep")
    result = run(*command, "price,kind,raw,at,seen,took,none")
    assert result.code == 0, result.err
    if suffix == ".parquet":
        expected = [table.schema.field(name).type for name in ("price", "seen", "took", "none")]
        found = pq.read_schema(tmp_path / "t.parquet")
        assert [found.field(name).type for name in ("price", "seen", "took", "none")] == expected
    refused(*command, "list", says="needs single values")


def test_texts_that_a_cell_does_not_hold_are_counted(run, here, tmp_path):
    lines = [(here / "plain.csv").read_text().splitlines()[k] for k in range(41)]
    long = ["note", "x" * 32_767, *["y" * 40_000] * 2, *["short"] * 37]
    data = tmp_path / "rows.csv"
    data.write_text("".join(f"{a},{b}\n" for a, b in zip(long, lines, strict=True)))
    command = ("score", data, "--model", here / "model.hush", "--keep", "note", "--top", 40)
    said = "2 texts were cut to 32,767 characters, the longest that a cell holds"
    assert said in run(*command, "-o", tmp_path / "top.xlsx").out
    book = CalamineWorkbook.from_path(str(tmp_path / "top.xlsx"))
    assert said in dict(book.get_sheet_by_name("About").to_python())["Long texts"]
    assert said not in run(*command, "-o", tmp_path / "top.csv").out
    assert sorted(map(len, (row["note"] for row in table_of(tmp_path / "top.csv"))))[-1] == 40_000


def test_the_terminal_has_one_language(top):
    result, _ = top("--top", 5, "--language", "de", suffix=".xlsx")
    assert "The 5 most unusual of" in result.out
    assert "üblich" not in result.out
