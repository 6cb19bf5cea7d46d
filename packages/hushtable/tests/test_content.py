"""Files under a wrong name, or none: what they hold decides."""

import gzip
import lzma
import zipfile

import pyarrow as pa
import pytest
import xlsxwriter
from pyarrow import feather, parquet

from hushtable.data.readers import FileLayout, Unasked, as_reader, registry
from hushtable.data.readers.content import ELSEWHERE, content_of
from hushtable.errors import DataError, MissingExtraError, UsageError

pytestmark = pytest.mark.usefixtures("shell")  # messages name options

TABLE = pa.table({"age": [30, 40, 50], "ward": ["north", "south", "north"]})
CSV = "age,ward\n30,north\n40,south\n50,north\n"
LINES = '{"age": 30, "ward": "north"}\n{"age": 40, "ward": "south"}\n{"age": 50, "ward": "north"}\n'


def saved(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def workbook(path):
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet("S1")
        for i, row in enumerate(
            [TABLE.column_names, *zip(*TABLE.to_pydict().values(), strict=True)]
        ):
            sheet.write_row(i, 0, row)
    return path


def values(reader):
    return [(int(row["age"]), row["ward"]) for batch in reader.read() for row in batch.to_pylist()]


ROWS = [(30, "north"), (40, "south"), (50, "north")]
WRITES = {
    "Parquet": lambda path: parquet.write_table(TABLE, path),
    "Feather": lambda path: feather.write_feather(TABLE, str(path)),
    "spreadsheet": workbook,
    "CSV": lambda path: saved(path, CSV),
    "JSON": lambda path: saved(path, LINES),
    "XML": lambda path: saved(
        path, "<t>" + "".join(f"<r><age>{a}</age><ward>{w}</ward></r>" for a, w in ROWS) + "</t>"
    ),
}


@pytest.mark.parametrize("kind", WRITES)
@pytest.mark.parametrize(
    "name", ["a.csv", "a.parquet", "a.feather", "a.xlsx", "a.xls", "a", "a.dat"]
)
def test_what_a_file_holds_counts_and_not_its_name(tmp_path, kind, name):
    WRITES[kind](tmp_path / "right")
    reader = as_reader((tmp_path / "right").rename(tmp_path / name))
    assert values(reader) == ROWS
    named = {"a.csv": "CSV", "a.parquet": "Parquet", "a.feather": "Feather"}.get(name)
    right = kind == (named or "spreadsheet") or (named is None and "." not in name)
    assert (f"read as {kind}, by its content" in reader.found) == (kind != named) or right


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.xls", CSV.replace(",", "\t")),
        ("a.xls", CSV.replace(",", "\t").encode("utf-16")),
        ("a.xlsx", CSV.replace(",", ";").encode("utf-16-le")),
        ("a.doc", CSV),
        ("a.json", LINES),
        ("a.jsonl", f"[{LINES.strip()}]".replace("}\n", "},\n")),
        ("a.csv", f" [{LINES.strip()}]".replace("}\n", "},\n")),
        ("a.csv", gzip.compress(CSV.encode(), mtime=0)),
        ("a.txt", lzma.compress(CSV.encode())),
        ("a.csv", pa.compress(CSV.encode(), "zstd", asbytes=True)),
        ("a.csv.gz", CSV),
        ("a.csv.xz", gzip.compress(CSV.encode(), mtime=0)),
        ("a.json", lzma.compress(LINES.encode())),
        ("a.csv", gzip.compress(lzma.compress(CSV.encode()), mtime=0)),
    ],
)
def test_texts_under_other_names(tmp_path, name, content):
    assert values(as_reader(saved(tmp_path / name, content))) == ROWS


def test_a_compression_that_the_name_does_not_say_is_said(tmp_path):
    packed = gzip.compress(CSV.encode())
    assert as_reader(saved(tmp_path / "a.csv", packed)).found == (
        "decompressed (gzip), by its content",
    )
    assert as_reader(saved(tmp_path / "a.csv.gz", packed)).found == ()


def test_formats_that_are_not_read_compressed_are_unpacked(tmp_path):
    parquet.write_table(TABLE, tmp_path / "a")
    for pack, ending in ((gzip.compress, "gz"), (lzma.compress, "xz")):
        path = saved(tmp_path / f"a.parquet.{ending}", pack((tmp_path / "a").read_bytes()))
        reader = as_reader(path)
        assert values(reader) == ROWS
        assert (reader.source, reader.found) == (str(path), ())


ARFF = "@relation x\n@attribute n numeric\n@data\n1\n"
AN_ARFF = r"is an ARFF file, which is not read: save it as CSV \(in Weka: Save as, CSV\)"
PAGE = "<!DOCTYPE html><html><table><tr><th>age</th></tr><tr><td>30</td></tr></table></html>"
A_PAGE = "is a web page, which is not read: export its table as CSV or as a workbook where"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        (
            "a.odd",
            b"\0\1\2",
            "holds nothing that can be read: needs text with columns, or .*ends in",
        ),
        ("a.odd", b"one line", "holds nothing that can be read"),
        ("a.7z", b"7z\xbc\xaf\x27\x1c\0\4", "is a 7-Zip archive: unpack it"),
        ("a.zip", b"Rar!\x1a\x07\1\0", "is a RAR archive: unpack it"),
        ("a.csv", b"%PDF-1.7\n1 0 obj\n", "is a PDF.*export the table as CSV"),
        ("a.xls", "MIME-Version: 1.0\nX-Document-Type: Workbook\n", r"MHTML\): open it in Excel"),
        (
            "a.xls",
            '<?xml version="1.0"?><Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet">',
            "Excel 2003 XML spreadsheet: open it in Excel",
        ),
        (
            "a.txt",
            ":20:STARTUMSE\r\n:25:10020030/1234567\r\n:28C:00001/001\r\n:60F:C260101EUR1,00\r\n-",
            "is an MT940 bank statement, not a table: export the transactions as CSV",
        ),
        ("a.arff", f"% 1\n{ARFF}", AN_ARFF),
        ("a.txt", ARFF.upper(), AN_ARFF),
        ("a.arff", CSV, AN_ARFF),
        ("a.arff.gz", gzip.compress(ARFF.encode(), mtime=0), AN_ARFF),
        ("a.html", PAGE, A_PAGE),
        ("a.htm", CSV, A_PAGE),
        ("a.xls", PAGE, A_PAGE),
        ("a.csv", PAGE, A_PAGE),
        ("a.pkl", b"\x80\x04\x95\x0b\0\0", "is a pickle, which could run any code"),
    ],
)
def test_files_that_are_no_table_are_refused_with_a_way(tmp_path, name, content, says):
    with pytest.raises(DataError, match=says) as caught:
        as_reader(saved(tmp_path / name, content))
    assert str(caught.value).startswith(str(tmp_path / name))


@pytest.mark.parametrize("name", ["a.sav", "a.dta", "a.db", "b.csv"])
def test_what_another_package_reads_names_it_where_it_is_missing(tmp_path, monkeypatch, name):
    monkeypatch.setattr(registry, "_plugins_loaded", ["none"])
    core = {end: one for end, one in registry.FORMATS.items() if end not in ELSEWHERE}
    monkeypatch.setattr(registry, "FORMATS", core)
    path = saved(tmp_path / name, b"SQLite format 3\0" if name == "b.csv" else b"\0\1")
    with pytest.raises(MissingExtraError, match=r"needs hushtable-connect.*'hushtable\[files\]'"):
        as_reader(path)


def test_a_document_is_no_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.docx", "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", "<w/>")
    with pytest.raises(DataError, match="is a document, not a table: save its table"):
        as_reader(tmp_path / "a.docx")


def test_an_option_for_the_named_kind_is_refused_where_the_file_is_of_another(tmp_path):
    with pytest.raises(UsageError, match="cannot use --sheet"):
        as_reader(saved(tmp_path / "a.xls", CSV), layout=FileLayout(sheet="S1"))


@pytest.mark.parametrize("name", ["<b>age</b>", "<br/>", "<p>", "[1]", "{x}", ":20:"])
def test_names_that_only_look_like_another_kind(tmp_path, name):
    path = saved(tmp_path / "a.csv", f"{name},ward\n1,<b>x</b>\n2,<b>y</b>\n")
    assert as_reader(path).names[-1] == "ward"


def test_rows_decide_no_format_where_nobody_is_asked(tmp_path):
    """The first row of a file without a mark of its own would show in whether a site answers."""
    layout = FileLayout(unasked=Unasked(["age", "ward"]))
    for first in ("%!", "[1,", ":20:\n:25:1\n:60F:1", "@relation x", "mime-version: 1"):
        path = saved(tmp_path / "a.csv", f"{first}\n{CSV}")
        assert values(as_reader(path, layout=layout)) == ROWS
    assert values(as_reader(workbook(tmp_path / "b.csv"), layout=layout)) == ROWS


def test_kinds_of_bytes_at_random_are_found_without_a_fault(tmp_path, rng):
    starts = (
        b"",
        b"PK\3\4",
        b"\x1f\x8b\x08",
        b"\xfd7zXZ\0",
        b"BZh91AY&SY",
        b"\xff\xfe",
        b"<",
        b"[{",
    )
    for start in starts:
        for size in (0, 1, 7, 600):
            content_of(saved(tmp_path / "a", start + rng.bytes(size)))


# Folders


def test_a_folder_is_read_by_its_tables(tmp_path):
    saved(tmp_path / "a.csv", CSV)
    saved(tmp_path / "about.html", "<html>")
    saved(tmp_path / "about.json", "{}")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("a.csv", CSV)
    assert values(as_reader(tmp_path)) == ROWS
    (tmp_path / "a.csv").unlink()
    (tmp_path / "about.html").unlink()
    (tmp_path / "about.json").unlink()
    assert values(as_reader(tmp_path)) == ROWS  # of the archive
    saved(tmp_path / "a.csv", CSV)
    saved(tmp_path / "b.arff", "@relation x\n@data\n")  # rows that are not skipped silently
    with pytest.raises(DataError, match=r"b\.arff: is an ARFF file, which is not read"):
        as_reader(tmp_path)


def test_a_folder_under_the_name_of_an_archive(tmp_path):
    (tmp_path / "x.zip").mkdir()
    saved(tmp_path / "x.zip" / "a.csv", CSV)
    assert values(as_reader(tmp_path / "x.zip")) == ROWS


def test_a_link_to_itself(tmp_path):
    (tmp_path / "a.csv").symlink_to(tmp_path / "a.csv")
    with pytest.raises(DataError, match=r"a\.csv: no such file"):
        as_reader(tmp_path / "a.csv")
    saved(tmp_path / "b.csv", CSV)
    (tmp_path / "loop").symlink_to(tmp_path)
    assert values(as_reader(tmp_path)) == ROWS


# Columns of fixed width

FIXED = """\
   day   site  amount  note
01 Jan  Alpha    1.50  red
02 Jan   Beta   12.50  not so red

03 Jan  Gamma  112.50
"""


@pytest.mark.parametrize("name", ["a.txt", "a.dat", "a.prn"])
def test_columns_of_fixed_width(tmp_path, name):
    reader = as_reader(saved(tmp_path / name, FIXED))
    assert reader.names == ("day", "site", "amount", "note")
    rows = [row for batch in reader.read() for row in batch.to_pylist()]
    assert [list(row.values()) for row in rows] == [
        ["01 Jan", "Alpha", "1.50", "red"],
        ["02 Jan", "Beta", "12.50", "not so red"],
        ["03 Jan", "Gamma", "112.50", None],
    ]
    assert "fixed-width columns at 1-6, 9-13, 16-21, from 24" in reader.found
    assert reader.place(2) == "line 5"


def test_numbers_of_rows_in_front_of_columns_of_fixed_width(tmp_path):
    """So pandas writes a frame: the index has no name, and its numbers are no part of a value."""
    text = "     price  size\n0     1.50     2\n1    12.50     3\n10    3.50     4\n"
    reader = as_reader(saved(tmp_path / "a.txt", text))
    assert reader.names == ("column 1", "price", "size")
    rows = [list(row.values()) for batch in reader.read() for row in batch.to_pylist()]
    assert rows == [["0", "1.50", "2"], ["1", "12.50", "3"], ["10", "3.50", "4"]]
    assert "column 1 has no name: called 'column 1'" in reader.found
    rows = ["           street  size", "12  High Street       2", "No  Low Street        3"]
    street = "\n".join([*rows, "1   A Street          4"])
    assert as_reader(saved(tmp_path / "b.txt", street)).names == ("street", "size")


def test_fixed_width_without_names_below_a_title_in_another_encoding(tmp_path):
    rows = "A1   Zürich   1,5\nA2   Bern    12,5\nA3   Genève   3,5\n"
    path = saved(tmp_path / "a.txt", f"List of 2026\n{rows}".encode("cp1252"))
    reader = as_reader(path, layout=FileLayout(header=False, skip_lines=1))
    assert [list(row.values()) for batch in reader.read() for row in batch.to_pylist()] == [
        ["A1", "Zürich", "1,5"], ["A2", "Bern", "12,5"], ["A3", "Genève", "3,5"],
    ]  # fmt: skip


def test_a_wider_value_below_the_first_lines(tmp_path):
    lines = ["  id   amount"] + [f"{i:>4}   {i / 2:>6}" for i in range(600)]
    wide = [*lines, " 601  12345.5"]
    reader = as_reader(saved(tmp_path / "a.txt", "\n".join(wide) + "\n"))
    assert [b.to_pylist()[-1] for b in reader.read()][-1] == {"id": "601", "amount": "12345.5"}
    across = [*wide, "123456789012"]
    with pytest.raises(DataError, match=r"line 603 does not fit the fixed-width columns above it"):
        as_reader(saved(tmp_path / "a.txt", "\n".join(across) + "\n"))


@pytest.mark.parametrize(
    "text",
    [
        "a  b,c\n1  2,3\n4  5,6\n7  8,9\n",  # the delimiter is in the names
        "word  of prose\nthat says  nothing\nin any  column at all\n",
    ],
)
def test_two_blanks_are_no_columns(tmp_path, text):
    assert len(as_reader(saved(tmp_path / "a.txt", text)).names) < 3


# XML

XML = """<?xml version="1.0" encoding="iso-8859-1"?>
<x:export xmlns:x="urn:x" made="today"><meta><by>me</by></meta><x:rows>
  <x:row id="1" xsi:nil="false"><site>Z\xfcrich</site><amount cur="EUR"> 5.5 </amount>
    <place><lon>7</lon></place></x:row>
  <x:row id="2"><site/><amount>6.5</amount><extra>&lt;1</extra></x:row>
</x:rows></x:export>
""".replace("xmlns:x=", 'xmlns:xsi="urn:y" xmlns:x=')


def test_xml(tmp_path):
    reader = as_reader(saved(tmp_path / "a.xml", XML.encode("latin-1")))
    assert reader.found == ("rows are the elements 'row'",)
    assert [row for batch in reader.read() for row in batch.to_pylist()] == [
        {"id": "1", "site": "Zürich", "amount.cur": "EUR", "amount": "5.5", "place.lon": "7",
         "extra": None},
        {"id": "2", "site": None, "amount.cur": None, "amount": "6.5", "place.lon": None,
         "extra": "<1"},
    ]  # fmt: skip


TWO = "<d><p><i v='1'/><i v='2'/></p><q><j w='3'/><j w='4'/><j w='5'/></q></d>"


def test_xml_with_two_kinds_of_rows(tmp_path):
    path = saved(tmp_path / "a.xml", TWO)
    with pytest.raises(
        DataError, match=r"\['d/p/i', 'd/q/j'\].*--member NAME\nAdd: --member d/q/j$"
    ):
        as_reader(path)
    for name in ("j", "d/q/j"):
        reader = as_reader(path, layout=FileLayout(member=name))
        assert [row["w"] for batch in reader.read() for row in batch.to_pylist()] == ["3", "4", "5"]
    with pytest.raises(DataError, match="has no row element 'k'"):
        as_reader(path, layout=FileLayout(member="k"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('<!DOCTYPE d [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><d><r v="&b;"/><r v="1"/></d>',
         "has a DOCTYPE, which could define entities: delete it"),
        ('<!DOCTYPE d SYSTEM "file:///etc/passwd"><d><r v="1"/><r v="1"/></d>', "has a DOCTYPE"),
        ("<d><r><a>1</a></r><r>", "line 1 is not valid XML .*truncated"),
        ("<d>" * 100 + "</d>" * 100, "nested more than 64 deep"),
        ("<d>" + "".join(f"<r{i}/>" for i in range(10_100)) + "</d>", "more than 10,000 kinds"),
        ("<d><r>1</r><r>2</r></d>", "no element repeats and holds values"),
        ("<d><r><a>1</a><a>2</a></r><r><a>3</a></r></d>",
         r"element 1: 'a' holds a list[^\n]*, or write one value per column$"),
        ("<d><r><a>1</a><a>2</a><b>4</b></r><r><a>3</a></r></d>",
         r"element 1: 'a' holds a list[^\n]*\nAdd: --drop a$"),
    ],
)  # fmt: skip
def test_xml_that_is_refused(tmp_path, text, says):
    with pytest.raises(DataError, match=says) as caught:
        list(as_reader(saved(tmp_path / "a.xml", text)).read())
    assert str(caught.value).startswith(str(tmp_path / "a.xml"))
