"""Files under a wrong name, or none: what they hold decides."""

import gzip
import zipfile

import pyarrow as pa
import pytest
import xlsxwriter
from pyarrow import feather, parquet

from hushtable.data.readers import FileLayout, Unasked, as_reader, registry
from hushtable.data.readers.registry import ELSEWHERE, content_of
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
        ("a.csv", pa.compress(CSV.encode(), "zstd", asbytes=True)),
        ("a.csv.gz", CSV),
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


def test_formats_that_are_not_read_compressed_are_refused(tmp_path):
    parquet.write_table(TABLE, tmp_path / "a")
    path = saved(tmp_path / "a.parquet.gz", gzip.compress((tmp_path / "a").read_bytes()))
    with pytest.raises(DataError, match="a Parquet file compressed with gzip: unpack it"):
        as_reader(path)


def test_columns_of_fixed_width_are_refused(tmp_path):
    path = saved(tmp_path / "a.txt", "day   site  amount\n01 J  Alpha    1.5\n02 J   Beta   12.5\n")
    with pytest.raises(DataError, match=r"no delimiter, but columns of fixed width, .*read_fwf"):
        as_reader(path)
    # A title with blanks says nothing about lines that have a delimiter.
    title = "03.02.2026      Dynamische Listausgabe\n\n"
    rows = [f"|{age:4}|{ward:8}|" for age, ward in ROWS]
    text = "\n".join([f"{title}|age |ward    |", "-" * 15, *rows, ""])
    assert values(as_reader(saved(path, text)).select(["age", "ward"])) == [
        (age, f"{ward:8}") for age, ward in ROWS
    ]


ARFF = "@relation x\n@attribute n numeric\n@data\n1\n"
AN_ARFF = r"is an ARFF file, which is not read: save it as CSV \(in Weka: Save as, CSV\)"
PAGE = "<!DOCTYPE html><html><table><tr><th>age</th></tr><tr><td>30</td></tr></table></html>"
A_PAGE = "is a web page, which is not read: export its table as CSV or as a workbook where"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.odd", b"\0\1\2", "holds nothing that can be read: needs text with .*ends in"),
        ("a.odd", b"one line", "holds nothing that can be read"),
        ("a.7z", b"7z\xbc\xaf\x27\x1c\0\4", "is a 7-Zip archive: unpack it"),
        ("a.zip", b"Rar!\x1a\x07\1\0", "is a RAR archive: unpack it"),
        ("a.csv", b"%PDF-1.7\n1 0 obj\n", "is a PDF.*export the table as CSV"),
        ("a.xls", "MIME-Version: 1.0\nX-Document-Type: Workbook\n", r"MHTML\): open it in Excel"),
        (
            "a.xls",
            '<?xml version="1.0"?><Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet">',
            "an XML file, which is not read: .* or open it in Excel, and save it as .xlsx",
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
    with pytest.raises(UsageError, match="cannot use --read sheet="):
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
    starts = (b"", b"PK\3\4", b"\x1f\x8b\x08", b"\xfd7zXZ\0", b"BZh91AY&SY", b"\xff\xfe")
    for start in (*starts, b"<", b"[{"):
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
