"""Workbooks of Excel 97 to 2003 (.xls): a container of streams, with records in one of them."""

import io
import struct
import zipfile

import pytest

from hushtable.data.readers import as_reader
from hushtable.errors import DataError

_SECTOR, _LEAST = 512, 4096
_FREE, _END, _TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def record(number, content):
    """Return a record of a sheet."""
    return struct.pack("<HH", number, len(content)) + content


def cell(i, j, value):
    """Return the record of a number, or of a text with two bytes per character."""
    if isinstance(value, str):
        letters = struct.pack("<HB", len(value), 1) + value.encode("utf-16-le")
        return record(0x0204, struct.pack("<HHH", i, j, 0) + letters)
    return record(0x0203, struct.pack("<HHHd", i, j, 0, value))


def stream(rows, behind):
    """Return the stream of a workbook with one sheet; ``behind`` are bytes that follow it."""
    begin = [record(0x0809, struct.pack("<HHHHII", 0x0600, kind, 0, 0, 0, 0)) for kind in (5, 16)]
    end = record(0x000A, b"")
    at = len(begin[0]) + len(record(0x0085, bytes(10))) + len(end)
    sheet = record(0x0085, struct.pack("<IBBBB", at, 0, 0, 2, 0) + b"S1")
    cells = b"".join(cell(i, j, one) for i, row in enumerate(rows) for j, one in enumerate(row))
    found = begin[0] + sheet + end + begin[1] + cells + end
    size = -(-max(_LEAST, len(found) + len(behind)) // _SECTOR) * _SECTOR
    return found + bytes(size - len(found) - len(behind)) + behind


def workbook(path, rows, behind=b""):
    """Write a container: its header, the table of its sectors, its directory, and the stream."""
    content = stream(rows, behind)
    n = len(content) // _SECTOR
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    header += struct.pack("<HHHHH6xIIIIIIIII", 62, 3, 0xFFFE, 9, 6, 0, 1, 1, 0, _LEAST, _END, 0,
                          _END, 0)  # fmt: skip
    header += struct.pack("<I", 0) + struct.pack("<I", _FREE) * 108
    table = [_TABLE, _END, *range(3, n + 2), _END]
    sectors = struct.pack(f"<{_SECTOR // 4}I", *table, *[_FREE] * (_SECTOR // 4 - len(table)))
    entries = b""
    for name, kind, child, start, size in (
        ("Root Entry", 5, 1, _END, 0),
        ("Workbook", 2, _FREE, 2, len(content)),
    ):
        letters = (name + "\0").encode("utf-16-le")
        entries += letters.ljust(64, b"\0") + struct.pack(
            "<HBBIII36xIQ", len(letters), kind, 1, _FREE, _FREE, child, start, size
        )
    path.write_bytes(header + sectors + entries.ljust(_SECTOR, b"\0") + content)
    return path


ROWS = [["age", "ward"], [30.5, "north"], [40.0, "é"]]
READ = [{"age": 30.5, "ward": "north"}, {"age": 40.0, "ward": "é"}]


@pytest.mark.parametrize("theme", [False, True])
def test_a_theme_of_excel_2007_is_a_part_and_not_the_workbook(tmp_path, theme):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("theme/theme/theme1.xml", "<theme/>")
    path = workbook(tmp_path / "a.xls", ROWS, packed.getvalue() if theme else b"")
    assert zipfile.is_zipfile(path) == theme
    assert [row for batch in as_reader(path).read() for row in batch.to_pylist()] == READ


@pytest.mark.parametrize("rows", [[["m\0p\0g\0"], [21.0]], [["mpg"], ["a\0b\0"]]])
def test_texts_whose_encoding_was_misread_are_refused(tmp_path, rows):
    with pytest.raises(DataError, match=r"A[12] holds a NUL character.*save it as \.xlsx"):
        as_reader(workbook(tmp_path / "a.xls", rows))
