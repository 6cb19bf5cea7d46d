"""More ways in: sheets, JSON lines, Feather, standard input, far files, rows in memory."""

import datetime as dt
import functools
import gc
import gzip
import http.server
import io
import json
import lzma
import os
import sys
import threading
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import xlsxwriter
from pyarrow import feather, ipc, parquet

from hushtable import Feature, Plan, Schema, Sketch
from hushtable.cli import main
from hushtable.data import read
from hushtable.data.readers import FileLayout, Unasked, as_reader, json_files
from hushtable.errors import DataError, DataTypeError, MissingExtraError, UsageError

pytestmark = pytest.mark.usefixtures("shell")  # messages name options

ROWS = {"age": [30.5, 40.0, None, 51.25], "ward": ["north", "south", "é", None]}
TABLE = pa.table(ROWS)


def rows_of(data, columns=None, **layout):
    reader = as_reader(data, layout=FileLayout(**layout))
    reader = reader.select(columns) if columns else reader
    passes = [[row for b in reader.read() for row in b.to_pylist()] for _ in range(2)]
    assert passes[0] == passes[1]
    return passes[0]


def saved(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def lines(table=TABLE):
    return "".join(json.dumps(row) + "\n" for row in table.to_pylist())


# Sheets


def book(path, *sheets, merge=None, hide=()):
    """Write sheets, lists of rows; a text that begins with ``=`` is a formula that failed."""
    with xlsxwriter.Workbook(str(path)) as workbook:
        day = workbook.add_format({"num_format": "yyyy-mm-dd"})
        for number, rows in enumerate(sheets, 1):
            sheet = workbook.add_worksheet(f"S{number}")
            for i, row in enumerate(rows):
                for j, value in enumerate(row):
                    if isinstance(value, dt.datetime):
                        sheet.write_datetime(i, j, value, day)
                    elif isinstance(value, str) and value.startswith("="):
                        sheet.write_formula(i, j, value, None, "#DIV/0!")
                    elif value is not None:
                        sheet.write(i, j, value)
            if merge:
                sheet.merge_range(merge, "x")
            if number in hide:
                sheet.hide()
    return path


def within(path, old, new):
    """Replace bytes in a workbook's first sheet."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    assert old in parts[sheet]
    parts[sheet] = parts[sheet].replace(old, new)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


NAMED = [["id", "value"], ["a", 1], ["b", 2.5]]


@pytest.mark.parametrize("word", ["NA", "N/A", "n/a", "NaN", "nan", "NULL", "null"])
@pytest.mark.parametrize("unasked", [None, Unasked(("a", "b"))])
def test_words_for_a_missing_value_are_missing_in_sheets_as_in_csv(tmp_path, word, unasked):
    rows = [["a", "b"], [1, "x"], [word, word], [3, "y"]]
    lines = "\n".join(",".join(map(str, row)) for row in rows) + "\n"
    for path in [saved(tmp_path / "a.csv", lines), book(tmp_path / "a.xlsx", rows)]:
        reader = as_reader(path, layout=FileLayout(unasked=unasked))
        table = pa.Table.from_batches(list(reader.read()))
        assert [column.is_null().to_pylist() for column in table.columns] == 2 * [
            [False, True, False]
        ], path


def test_a_sheet_keeps_its_types(tmp_path):
    at, noon = dt.datetime(2024, 1, 2), dt.datetime(2024, 1, 3, 12)
    path = book(tmp_path / "a.xlsx", [
        ["Report of 2024"],
        [],
        ["id", "n", "x", "day", "at", "ok", "mixed", "empty"],
        ["12345678901234567890", 1, 1.5, at, at, True, 7],
        ["x2", 3, 2, at, noon, False, "<7"],
        [],
        ["x3", None, 4, None, None, None, at, None, None],
        [None, None],
    ])  # fmt: skip
    reader = as_reader(path)
    (batch,) = reader.read()
    assert dict(zip(batch.schema.names, map(str, batch.schema.types), strict=True)) == {
        "id": "string", "n": "int64", "x": "double", "day": "timestamp[us]", "at": "timestamp[us]",
        "ok": "bool", "mixed": "string", "empty": "double",
    } | {"day": "date32[day]"}  # fmt: skip
    assert batch["id"].to_pylist() == ["12345678901234567890", "x2", "x3"]
    assert batch["mixed"].to_pylist() == ["7", "<7", "2024-01-02"]
    assert batch["at"].to_pylist() == [at, noon, None]
    assert [reader.place(row) for row in range(3)] == [f"row {n} of sheet 'S1'" for n in (4, 5, 7)]
    assert reader.found == ("2 lines above the header",)


def test_errors_of_formulas_are_texts(tmp_path):
    path = book(tmp_path / "a.xlsx", [["a", "b"], [1, "=1/0"], [2, 5], [3, "=1/0"]])
    assert [row["b"] for row in rows_of(path)] == ["#DIV/0!", "5", "#DIV/0!"]
    # Cells need not say where they are.
    plain = within(path, b'<c r="B2" t="e">', b'<c t="e">')
    assert rows_of(plain)[0] == {"a": 1, "b": "#DIV/0!"}


def test_layout_of_a_sheet(tmp_path):
    path = book(tmp_path / "a.xlsx", [[1, 2], [3, 4]])
    with pytest.raises(
        DataError,
        match=r"row 1 looks like a row.*--read skip_lines=0\)\nAdd: --read no_header=true",
    ):
        as_reader(path)
    assert rows_of(path, header=False)[0] == {"column 1": 1, "column 2": 2}
    assert rows_of(path, header=False, skip_lines=1) == [{"column 1": 3, "column 2": 4}]
    assert rows_of(path, skip_lines=0) == [{"1": 3, "2": 4}]
    with pytest.raises(DataError, match="no row 8: lower --read skip_lines="):
        as_reader(path, layout=FileLayout(skip_lines=7))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["a", "b"], [1, 2, "note"]], "row 1 has no name for column C: write one"),
        (
            [[None, "a", "b"], ["x", None, None], [0, 7, 8]],
            "row 1 has no name for column A: write one",
        ),
        ([["a", None, "b"], [1, 0, 2]], "row 1 has no name for column B"),
        (
            [["Report"], ["a", "b", "a"], [1, 2, 3]],
            r"a\.xlsx: sheet 'S1': column 'a' is listed twice in row 2: rename one of the two",
        ),
        ([], "no sheet that is not hidden holds values"),
    ],
)
def test_sheets_that_are_refused(tmp_path, rows, message):
    with pytest.raises(DataError, match=message):
        as_reader(book(tmp_path / "a.xlsx", rows))


def test_a_first_column_without_a_name_in_a_sheet(tmp_path):
    """As in a CSV file: pandas writes the index of a frame so."""
    path = book(tmp_path / "a.xlsx", [[None, "a", "b"], [0, 1, "x"], [1, 2, "y"]])
    assert rows_of(path) == [{"column 1": 0, "a": 1, "b": "x"}, {"column 1": 1, "a": 2, "b": "y"}]
    assert as_reader(path).found == ("column 1 has no name: called 'column 1'",)
    series = book(tmp_path / "b.xlsx", [[None, "a"], [0, 1], [1, None]])
    assert rows_of(series) == [{"column 1": 0, "a": 1}, {"column 1": 1, "a": None}]
    title = book(tmp_path / "c.xlsx", [[None, "Report"], ["x", "a"], [0, 1], [1, 2]])
    assert rows_of(title) == [{"x": 0, "a": 1}, {"x": 1, "a": 2}]


def test_several_sheets(tmp_path):
    path = book(tmp_path / "a.xlsx", NAMED, [], [["z"], [9]])
    with pytest.raises(DataError, match=r"several sheets.*\['S1', 'S3'\].*--read sheet=NAME"):
        as_reader(path)
    assert rows_of(path, sheet="S3") == [{"z": 9}]
    with pytest.raises(DataError, match=r"no sheet 'S9'.*'S1', 'S2', 'S3'"):
        as_reader(path, layout=FileLayout(sheet="S9"))
    hidden = book(tmp_path / "b.xlsx", NAMED, [["z"], [9]], hide=(2,))
    assert rows_of(hidden) == [{"id": "a", "value": 1.0}, {"id": "b", "value": 2.5}]
    assert rows_of(hidden, sheet="S2") == [{"z": 9}]


def test_merged_cells(tmp_path):
    with pytest.raises(DataError, match=r"cells A3:A4 are merged.*unmerge"):
        as_reader(book(tmp_path / "a.xlsx", NAMED, merge="A3:A4"))
    title = [[], *NAMED]
    assert len(rows_of(book(tmp_path / "b.xlsx", title, merge="A1:B1"))) == 2


def test_a_formula_that_was_never_worked_out(tmp_path):
    path = book(tmp_path / "a.xlsx", [["a"], ["=1/0"]])
    within(path, b' t="e"><f>1/0</f><v>#DIV/0!</v>', b"><f>1/0</f><v></v>")
    with pytest.raises(DataError, match="A2 holds a formula whose value was never calculated"):
        as_reader(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xls", b"a\tb", "not a workbook.*rename it to .csv"),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000), "damaged"),
        (
            "a.xlsx",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
            "password",
        ),
        ("a.xlsx", b"PK\3\4 and no more", "damaged"),
    ],
)
def test_workbooks_that_are_none(tmp_path, name, content, message):
    with pytest.raises(DataError, match=message) as caught:
        as_reader(saved(tmp_path / name, content))
    assert str(caught.value).startswith(str(tmp_path / name))


CALC = "urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"


def opendocument(path, rows, hidden=()):
    """Write a sheet of values, None for an empty cell, and cells as XML."""
    urn = "urn:oasis:names:tc:opendocument:xmlns"

    def cell(value):
        if value is None:
            return "<table:table-cell/>"
        if isinstance(value, str) and value.startswith("<"):
            return value
        if isinstance(value, str):
            kind = 'office:value-type="string"'
        else:
            kind = f'office:value-type="float" office:value="{value}"'
        return f"<table:table-cell {kind}><text:p>{escape(str(value))}</text:p></table:table-cell>"

    lines = "".join(
        "<table:table-row" + ' table:visibility="filter"' * (i in hidden) + ">"
        + "".join(map(cell, row)) + "</table:table-row>"
        for i, row in enumerate(rows)
    )  # fmt: skip
    content = (
        f'<office:document-content xmlns:office="{urn}:office:1.0" xmlns:text="{urn}:text:1.0" '
        f'xmlns:table="{urn}:table:1.0" xmlns:calcext="{CALC}"><office:body><office:spreadsheet>'
        f'<table:table table:name="Sheet">{lines}</table:table></office:spreadsheet>'
        "</office:body></office:document-content>"
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr(
            "META-INF/manifest.xml",
            f'<manifest:manifest xmlns:manifest="{urn}:manifest:1.0"><manifest:file-entry '
            'manifest:full-path="/" manifest:media-type="application/'
            'vnd.oasis.opendocument.spreadsheet"/></manifest:manifest>',
        )
        archive.writestr("content.xml", content)


def test_opendocument(tmp_path):
    def ods(cell):
        opendocument(tmp_path / "a.ods", [["a"], [cell]])
        return tmp_path / "a.ods"

    assert rows_of(ods(1.5)) == [{"a": 1.5}]
    failed = (
        '<table:table-cell office:value-type="string" office:string-value="" '
        'calcext:value-type="error"><text:p>#DIV/0!</text:p></table:table-cell>'
        '<table:table-cell office:value-type="float" office:value="1.5"/>'
    )
    with pytest.raises(DataError, match="'Sheet' holds a formula with an error"):
        as_reader(ods(failed))
    with pytest.raises(DataError, match="damaged"):  # calamine alone would not return
        as_reader(ods("<table:table-cell>"))


# JSON lines


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(json_files, "_BLOCK", 64)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("many", [1, 30])  # in one block, and in several
@pytest.mark.parametrize(
    ("first", "last", "values"),
    [
        ("1", "1.5", (1.0, 1.5)),
        ("1", '"x"', ("1", "x")),
        ("1.50", '"x"', ("1.50", "x")),
        ("true", "1", ("true", "1")),
        ("null", "7", (None, 7)),
        ("12345678901234567890", "1", ("12345678901234567890", "1")),
        ('"2024-01-01"', '"2024-01-01 10:00"', ("2024-01-01", "2024-01-01 10:00")),
        ('"2024-01-01"', '"x"', ("2024-01-01", "x")),
    ],
)
def test_types_that_change(tmp_path, many, first, last, values):
    text = f'{{"a": {first}}}\n' * many + f'{{"a": {last}}}\n'
    rows = rows_of(saved(tmp_path / "a.jsonl", text))
    assert [row["a"] for row in rows] == [values[0]] * many + [values[1]]


@pytest.mark.usefixtures("small_blocks")
def test_keys_that_come_late(tmp_path):
    path = saved(tmp_path / "a.jsonl", '{"a": 1}\n' * 20 + '\n{"b": 2}\n')
    reader = as_reader(path)
    assert reader.n_rows == 21
    assert rows_of(path)[-1] == {"a": None, "b": 2}
    assert reader.place(20) == "row 20"  # an empty line: the number of the line is not the row's


@pytest.mark.usefixtures("small_blocks")
def test_nested_values_are_refused_where_they_are_used(tmp_path):
    for nested, kind in (
        ('{"x": 1}', "1: 'a' holds a value, but an"),
        ('["x"]', "10: 'a' holds a list"),
    ):
        path = saved(
            tmp_path / "a.jsonl", '{"a": 1, "b": 2}\n' * 9 + f'{{"a": {nested}, "b": 3}}\n'
        )
        with pytest.raises(DataTypeError, match=rf"(?s)line {kind}.*flatten.*\nAdd: --drop a$"):
            rows_of(path)
        assert len(rows_of(path, ["b"])) == 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a":', "line 2 is not one JSON object.*truncated"),
        ('{"a": 1}\n[1]\n', "line 2 does not hold an object"),
        ('{"a": 1, "a": 2}\n', "line 1 has the key 'a' twice"),
        (b'{"a": "\xff"}\n', "line 1 is not UTF-8"),
        ("\n\n", "no columns"),
        ("{}\n", "no columns"),
    ],
)
def test_json_that_is_refused(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        as_reader(saved(tmp_path / "a.jsonl", text))


# Feather


def test_feather(tmp_path):
    for name, options in (
        ("a.feather", {"compression": "zstd"}),
        ("a.arrow", {"compression": "uncompressed"}),
    ):
        feather.write_feather(TABLE, tmp_path / name, chunksize=3, **options)
        assert rows_of(tmp_path / name) == TABLE.to_pylist()
        assert rows_of(tmp_path / name, ["ward"]) == TABLE.select(["ward"]).to_pylist()
        reader = as_reader(tmp_path / name).select(["ward", "age"])
        assert [batch.schema.names for batch in reader.read()] == [["ward", "age"]] * 2
        assert reader.bytes_read() == reader.n_bytes
    with ipc.new_stream(tmp_path / "a.ipc", TABLE.schema) as file:
        file.write_table(TABLE)
    assert rows_of(tmp_path / "a.ipc") == TABLE.to_pylist()


def test_feather_that_is_damaged(tmp_path):
    feather.write_feather(TABLE, tmp_path / "a.feather", compression="uncompressed")
    content = (tmp_path / "a.feather").read_bytes()
    for bad in (content[:-20], content[:200], b"FEA1" + content[4:], b"no Arrow at all"):
        with pytest.raises(DataError, match=r"b\.feather"):
            rows_of(saved(tmp_path / "b.feather", bad))
    with pytest.raises(DataError, match=r"b\.feather"):  # é cut in two
        rows_of(saved(tmp_path / "b.feather", content.replace("é".encode(), b"\xc3\xc3")))


# Standard input


def piped(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Return the folder that temporary files go to."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


CSV = b"age,ward\n30,north\n40,south\n50,north\n"


@pytest.mark.parametrize("content", [CSV, gzip.compress(CSV, mtime=0), lines().encode()])
def test_standard_input(monkeypatch, temporary, content):
    piped(monkeypatch, content)
    reader = as_reader("-")
    (copy,) = temporary.iterdir()
    assert copy.stat().st_mode & 0o777 == 0o600
    assert (reader.source, reader.names) == ("standard input", ("age", "ward"))
    assert [sum(len(b) for b in reader.read()) for _ in range(2)] == [
        4 - (content != lines().encode())
    ] * 2
    again = as_reader("-").select(["ward"])  # a command may open its rows twice
    assert next(again.read())["ward"][0].as_py() == "north"
    del reader, again
    sys.stdin.detach()
    monkeypatch.undo()
    gc.collect()
    assert not list(temporary.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "standard input is empty"),
        (CSV[:-3], "ends in the middle of a line"),
        (gzip.compress(CSV, mtime=0)[:-9], "standard input"),
        (b"PAR1" + bytes(9), "holds Parquet: save it to a file"),
        (b"PK\3\4", "holds a workbook"),
        (b"ARROW1\0\0", "holds Feather"),
        (lzma.compress(CSV), "holds an xz-compressed file: save it to a file"),
        (b'{"a": 1}\n{"a":\n', "^standard input: line 2 is not one JSON object"),
    ],
)
def test_standard_input_that_is_refused(monkeypatch, temporary, capsys, content, message):
    piped(monkeypatch, content)
    with pytest.raises(DataError, match=message) as caught:
        list(as_reader("-").read())
    assert str(temporary) not in str(caught.value)
    piped(monkeypatch, content)
    assert main(["fit", "-", "-o", str(temporary / "m.hush")]) == 1
    assert "standard input" in capsys.readouterr().err
    assert not (temporary / "m.hush").exists()


def test_a_terminal_is_not_waited_for(monkeypatch):
    lead, terminal = os.openpty()
    with os.fdopen(lead, "rb"), os.fdopen(terminal, "r") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        with pytest.raises(DataError, match="is a terminal: pipe rows"):
            as_reader("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="is closed"):
        as_reader("-")


# Far files


@pytest.fixture
def far(tmp_path):
    system = fsspec.filesystem("memory")
    system.pipe("/lake/a.csv", CSV)
    system.pipe("/lake/b.csv", CSV)
    system.pipe("/lake/.c.csv", b"hidden")
    system.pipe("/lake/notes.md", b"none")
    feather.write_feather(TABLE, tmp_path / "x")
    system.pipe("/other/a.feather", (tmp_path / "x").read_bytes())
    system.pipe("/other/a.jsonl.gz", gzip.compress(lines().encode()))
    yield system
    system.rm("/", recursive=True)


@pytest.mark.parametrize(
    ("url", "n_rows"),
    [
        ("memory://lake/a.csv", 3),
        ("memory://lake", 6),
        ("memory://lake/*.csv", 6),
        ("memory://other/a.feather", 4),
        ("memory://other/a.jsonl.gz", 4),
    ],
)
@pytest.mark.usefixtures("far")
def test_far_files(temporary, url, n_rows):
    before = set(temporary.iterdir())
    reader = as_reader(url)
    for _ in range(2):
        assert sum(len(batch) for batch in reader.read()) == n_rows
    assert reader.source == url
    assert sum(len(batch) for batch in reader.select(["ward"]).read()) == n_rows
    assert len(reader.parts) == n_rows // 3
    del reader
    gc.collect()
    assert set(temporary.iterdir()) == before


def test_far_files_that_cannot_be_read(far, monkeypatch):
    for url, message in (
        ("memory://lake/none.csv", "memory://lake/none.csv: FileNotFoundError.*check the URL"),
        ("memory://none", "memory://none: .*check the URL"),
        ("none://x/a.csv", "none://x/a.csv: ValueError: Protocol not known"),
    ):
        with pytest.raises(DataError, match=message):
            as_reader(url)
    far.pipe("/bad.jsonl", b'{"a":')
    with pytest.raises(DataError, match=r"^memory:///?bad\.jsonl: line 1 is not one JSON object"):
        as_reader("memory://bad.jsonl")
    for missing in ("fsspec.core", "fsspec.registry"):
        monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'hushtable\[remote\]'"):
        as_reader("memory://lake")


def test_secrets_of_a_url_are_not_repeated(monkeypatch, capsys, tmp_path):
    class Backend(fsspec.AbstractFileSystem):
        protocol = "toy"

        def get_file(self, *args, **kwargs):
            raise PermissionError("user:pass%21word refused, token=abc123, pass!word")

    fsspec.register_implementation("toy", Backend, clobber=True)
    url = "toy://user:pass%21word@host/a.csv?token=abc123"
    with pytest.raises(DataError, match=r"^toy://host/a\.csv: PermissionError: check") as caught:
        as_reader(url)
    assert caught.value.__cause__ is None
    assert main(["fit", url, "-o", str(tmp_path / "m.hush")]) == 1
    said = capsys.readouterr().err
    assert "toy://host/a.csv" in said
    assert not any(secret in said for secret in ("user", "word", "abc123"))


def test_over_http(tmp_path):
    pytest.importorskip("aiohttp")
    saved(tmp_path / "a.csv", CSV)
    serve = functools.partial(_Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/a.csv?token=abc"
        reader = as_reader(url)
        server.shutdown()
    assert reader.source == url.partition("?")[0]
    assert sum(len(batch) for batch in reader.read()) == 3


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


# Folders


def test_a_folder_of_several_formats(tmp_path):
    table = pa.table({"a": [1.5, 2.5]})
    feather.write_feather(table, tmp_path / "1.feather")
    saved(tmp_path / "2.jsonl", lines(table))
    book(tmp_path / "3.xlsx", [["a"], [1.5], [2.5]])
    saved(tmp_path / "~$3.xlsx", "Excel's lock")
    saved(tmp_path / ".DS_Store", "hidden")
    (tmp_path / ".cache").mkdir()
    saved(tmp_path / ".cache" / "a.csv", "x\n1\n")
    assert [row["a"] for row in rows_of(str(tmp_path))] == [1.5, 2.5] * 3
    assert len(rows_of(str(tmp_path / "*[0-9]*"))) == 6
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match=r"no folder with CSV or Parquet or JSON or .* files"):
        as_reader(tmp_path / "none")


@pytest.mark.parametrize("name", ["b.jsonl", "b.feather", "b.csv"])
def test_a_file_that_grows_while_it_is_read(tmp_path, name):
    table = pa.table({"a": [1.5, 2.5]})
    for path in (tmp_path / "a.feather", tmp_path / name):
        if path.suffix == ".feather":
            feather.write_feather(table, path)
        else:
            saved(path, lines(table) if path.suffix == ".jsonl" else "a\n1.5\n2.5\n")
    reader = as_reader(tmp_path)
    read = reader.read()
    next(read)
    with (tmp_path / name).open("ab") as file:
        file.write(b"\n")
    with pytest.raises(DataError, match=f"{name}: changed while it was being read"):
        list(read)


# In memory


def test_sparse_is_made_dense_one_batch_at_a_time():
    wide = scipy.sparse.csr_array((1_000_000, 3_000))  # dense: 24 gigabytes
    batch = next(as_reader(wide).read())
    assert batch.nbytes < 1 << 26
    X = scipy.sparse.coo_array(([1.0, 2.0, np.nan], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    np.testing.assert_array_equal(next(as_reader(X).read()), [[0.0, 3.0], [np.nan, 0.0]])
    integers = scipy.sparse.csr_array(np.array([[0, 2**60]]))
    with pytest.raises(DataError, match=r"2\*\*53"):
        list(as_reader(integers).read())
    with pytest.raises(DataError, match="70,000 columns: needs 65,535"):
        as_reader(scipy.sparse.csr_array((5, 70_000)))
    with pytest.raises(DataError, match="Complex"):
        as_reader(scipy.sparse.csr_array(np.array([[1j]])))
    with pytest.raises(DataError, match="Expected 2D"):
        as_reader(scipy.sparse.coo_array(np.array([1.0, 2.0])))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
def test_masked_values_are_missing(dtype):
    X = np.ma.masked_array(np.array([[1, 0], [1, 1]], dtype), mask=[[0, 1], [0, 0]])
    for data in (X, list(X)):
        np.testing.assert_array_equal(next(as_reader(data).read()), [[1, np.nan], [1, 1]])
    assert X.data[0, 1] == 0  # the caller's array is as it was
    hidden = np.ma.masked_array([[1, 2**60]], mask=[[0, 1]])
    assert np.isnan(next(as_reader(hidden).read())[0, 1])


def test_masked_texts_are_missing():
    X = np.ma.masked_array([["a", "b"], ["c", "d"]], mask=[[0, 1], [0, 0]])
    assert next(as_reader(X).read()).to_pydict() == {"0": ["a", "c"], "1": [None, "d"]}


def test_fields_of_structured_arrays_are_columns():
    X = np.array([(1, 2.5, "a"), (3, 4.5, "b")], [("i", int), ("x", float), ("t", "U1")])
    reader = as_reader(X)
    assert reader.names == ("i", "x", "t")
    assert next(reader.read()).to_pylist() == [
        dict(zip("ixt", row, strict=True)) for row in X.tolist()
    ]
    masked = np.ma.masked_array(X, mask=[(0, 1, 0), (0, 0, 0)])
    assert next(as_reader(masked).read())["x"].to_pylist() == [None, 4.5]
    for bad in (X.reshape(1, 2), np.zeros(2, [("a", float, (2,))])):
        with pytest.raises(DataError, match="Expected one record per row"):
            as_reader(bad)
    with pytest.raises(DataError, match="Complex"):
        as_reader(np.zeros(2, [("a", complex)]))


@pytest.mark.parametrize(
    "data", [pd.Series([1, 2]), pl.Series([1, 2]), pa.array([1, 2]), pa.chunked_array([[1, 2]])]
)
def test_one_column_is_no_table(data):
    with pytest.raises(DataError, match="Expected 2D array"):
        as_reader(data)


def test_columns_of_pandas_that_hold_zeros_once():
    frame = pd.DataFrame({"a": pd.arrays.SparseArray([1.0, 0.0, 2.0]), "b": [1, 2, 3]})
    assert next(as_reader(frame).read()).to_pydict() == {"a": [1.0, 0.0, 2.0], "b": [1, 2, 3]}


def test_lists_of_dicts():
    rows = [{"a": 1, "t": "x"}, {"a": 2.5, "late": True}, {}]
    reader = as_reader(rows)
    assert next(reader.read()).to_pylist() == [
        {"a": 1.0, "t": "x", "late": None},
        {"a": 2.5, "t": None, "late": True},
        {"a": None, "t": None, "late": None},
    ]
    for bad, message in (
        ([{"a": 1}, [2]], "row 1 is a list"),
        ([{"a": 1}, {"a": "x"}], "column 'a' mixes types"),
        ([{"a": "x"}, {"a": 10**400}], "column 'a' mixes types"),
        ([{"a": None}, {"a": "\ud800"}], r"column 'a' holds '\\ud800' in row 1: half a character"),
        ([{"a": 1}, {"a": 10**30}], "column 'a' holds the integer 1000.*000: whole numbers beyond"),
        ([{"a": 0.5}, {"a": -(10**400)}], "column 'a' holds the integer of 1,329 bits: whole"),
        ([{"a": 0.5}, {"a": 2**53 + 1}], "column 'a' holds the integer 9007199254740993"),
        ([{1: 2}], "key 1 is not text"),
        ([{}], "no keys"),
    ):
        with pytest.raises(DataError, match=message):
            as_reader(bad)


def test_half_a_character_in_a_frame_is_a_question_or_an_unlisted_category():
    """It ended in an error of Python's own; where no one can be asked, one row stopped a site."""
    frame = pd.DataFrame({"a": ["x", "Z\udcfcrich", "y"]}, dtype=object)
    with pytest.raises(DataError, match="half a character"):
        list(as_reader(frame).read())
    schema = Schema([Feature.categorical("a", ["x", "y"])])
    plan = Plan.draw(schema, n_tables=2, random_state=0)
    for rows in (frame, frame.to_dict("records")):
        sketch = Sketch.from_data(plan, rows, attended=False)
        assert (sketch.n_rows, sketch.outside()) == (3, {"a": 1})


# Without a person, no number of rows decides whether, and how, a file is read


def _csv(path, rows):
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in [("a", "c"), *rows]))


def _objects(rows):
    return [{"a": a, "c": c, "visits": [{"day": 1}, {"day": 2}]} for a, c in rows]


def _json(path, rows):
    path.write_text(json.dumps(_objects(rows)))


def _json_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in _objects(rows)))


def _workbook(path, rows):
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet("S")
        for i, row in enumerate([("a", "c"), *rows, ("total",)]):
            sheet.write_row(i, 0, row)


@pytest.mark.parametrize(
    ("name", "write", "layout", "refused"),
    [
        ("a.csv", _csv, {}, ""),
        ("a.csv", _csv, {"header": False, "delimiter": ","}, "without column names"),
        ("a.dat", _csv, {}, "its name does not state its format"),
        ("a.json", _json, {}, ""),
        ("a.jsonl", _json_lines, {}, ""),
        ("a.json", _json_lines, {}, "does not begin with a list"),
        ("a.xml", _csv, {}, "an XML file, which is not read"),
        ("a.xlsx", _workbook, {"skip_footer": 1}, ""),
        ("a.xlsx", _workbook, {"header": False}, "without column names"),
    ],
)
def test_no_number_of_rows_decides_where_no_person_is(tmp_path, name, write, layout, refused):
    """An empty list, or a row above a footer decided whether a site answers."""
    plan = Plan.draw(
        Schema([Feature.numeric("a", low=0, high=9), Feature.categorical("c", ["x"])]),
        n_tables=2, random_state=0,
    )  # fmt: skip
    for n in range(3):
        write(tmp_path / name, [(5, "x")] * n)
        how = FileLayout(**layout, unasked=Unasked(["a", "c"]))
        if refused:
            with pytest.raises((DataError, UsageError), match=refused):
                as_reader(tmp_path / name, layout=how)
        else:
            rows = as_reader(tmp_path / name, layout=how)
            assert Sketch.from_data(plan, rows, attended=False).n_rows == n


# Options


@pytest.mark.parametrize(
    ("name", "layout", "said"),
    [
        ("a.csv", {"sheet": "S", "query": "SELECT 1"}, "--read sheet=..., --read query=..."),
        (
            "a.parquet",
            {"delimiter": ";", "header": False},
            "--read delimiter=..., --read no_header=...",
        ),
        ("a.feather", {"skip_lines": 1}, "--read skip_lines=..."),
        ("a.jsonl", {"encoding": "cp1252"}, "--read encoding=..."),
        ("a.xlsx", {"delimiter": ";", "sheet": "S"}, "--read delimiter=..."),
        (
            "",
            {"delimiter": ",", "sheet": "S"},
            "--read sheet=...",
        ),  # of the folder, one file is CSV
        (None, {"query": "SELECT 1"}, "--read query=..."),
    ],
)
def test_options_that_a_source_has_no_use_for(tmp_path, name, layout, said):
    table = pa.table({"a": [1, 2]})
    for suffix in [Path(name).suffix] if name else [".csv", ".parquet"]:
        path = tmp_path / f"a{suffix}"
        if suffix == ".xlsx":
            with xlsxwriter.Workbook(path) as book:
                book.add_worksheet("S").write_column(0, 0, ["a", 1, 2])
        elif suffix == ".parquet":
            parquet.write_table(table, path)
        elif suffix == ".feather":
            feather.write_feather(table, path)
        else:
            path.write_text("a\n1\n2\n" if suffix == ".csv" else '{"a": 1}\n')
    data = table if name is None else tmp_path / name
    with pytest.raises(UsageError, match=f"cannot use {said}: leave it out"):
        read(data, **layout)
