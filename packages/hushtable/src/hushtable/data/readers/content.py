"""Kinds of files, by their first bytes: a name may have a different ending, or none."""

import re
import zipfile
import zlib
from pathlib import Path

from hushtable.data.readers.encoding import compression, find_encoding, opened_bytes
from hushtable.errors import DataError

#: How files of a kind begin, and the ending that their names should have.
_MATCHES = tuple((re.compile(begins), ending) for begins, ending in (
    (rb"PAR1", ".parquet"), (rb"ARROW1|FEA1", ".feather"),
    (rb"\xd0\xcf\x11\xe0", ".xls"), (rb"PK(\x03\x04|\x05\x06)", ".zip"),
    (rb"SQLite format 3\0", ".sqlite"), (rb"(?s).{8}DUCK", ".duckdb"),
    (rb"\$FL[23]", ".sav"), (rb"(?s).{0,250}SPSS PORT FILE", ".por"),
    (rb"<stata_dta>", ".dta"), (rb"HEADER RECORD\*{7}LIB", ".xpt"),
    (rb"(?s)\0{12}\xc2\xea\x81\x60\xb3\x14\x11\xcf", ".sas7bdat"),
    (rb"RD[AX][23]\n", ".rda"), (rb"X\n\0\0\0|A\n[23]\n", ".rds"),
    (rb"7z\xbc\xaf\x27\x1c", ".7z"), (rb"Rar!\x1a\x07", ".rar"), (rb"\xfd7zXZ\0", ".xz"),
    (rb"(?s).{257}ustar", ".tar"), (rb"%PDF-", ".pdf"),
    (rb"\0\x01\0\0Standard (Jet|ACE) DB", ".mdb"), (rb"\x89HDF\r\n", ".h5"),
    (rb"\x80[\x02-\x05][\x8c\x95c}\](]", ".pkl"), (rb"\x93NUMPY", ".npy"),
))  # fmt: skip
#: How texts of a kind begin, after blanks; comments and declarations may precede.
_MATCHES_TEXT = tuple(
    (re.compile(begins, re.IGNORECASE | re.DOTALL), ending)
    for begins, ending in (
        (r"(\[\s*)?\{\s*[\"}]", ".json"),
        (r"(<\?xml[^>]*>|<!--.*?-->|\s)*<(!doctype\s+html|html|head|body|table|div|meta|style)\b",
         ".html"),
        (r"(<!--.*?-->\s*)*<\?xml\b", ".xml"),
        # Without a declaration: an element that begins with another one.
        (r"(<!--.*?-->\s*)*<[a-z_][\w.:-]*(\s[^<>]*)?(?<!/)>\s*<[a-z_!]", ".xml"),
        (r"(%[^\n]*\n|\s)*@relation\s", ".arff"),
        (r"(\{1:[^\n]*\n|\s)*:20:.*?\n:(25|28C|60[FM]):", ".mt940"),
        (r"(from:[^\n]*\n|subject:[^\n]*\n)*mime-version:", ".mht"),
    )
)  # fmt: skip
#: Formats that hushtable-connect reads, by file name ending.
ELSEWHERE = {
    **dict.fromkeys((".sav", ".zsav", ".por"), "an SPSS file"), ".dta": "a Stata file",
    **dict.fromkeys((".xpt", ".sas7bdat"), "a SAS file"),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3", ".duckdb"), "a database"),
}  # fmt: skip
#: Endings of kinds that the first bytes identify: a file without these bytes is of no such kind.
BINARY = frozenset({ending for _, ending in _MATCHES}) | {
    ".pq", ".arrow", ".ipc", ".xlsx", ".xlsm", ".ods", ".zsav", ".rdata", ".db", ".sqlite3",
}  # fmt: skip
#: Endings of packed files.
PACKED = frozenset({".gz", ".bz2", ".zst"})
ARCHIVES = frozenset({".zip", ".tar", ".tgz", ".tbz2", ".txz", ".xz"})
#: Number of bytes to check.
_BEGINNING = 1 << 16
_CONTROL = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f]")


def content_of(path: Path) -> tuple[str | None, str | None]:
    """Return the codec that compressed a file, and its kind, by its first bytes when unpacked.

    The kind is the usual ending of names of its kind: ``.csv`` for other text, ``.gz`` for content
    that is compressed twice, None if it is not known.
    """
    with path.open("rb") as file:
        start = file.read(_BEGINNING)
    codec = compression(start)
    if codec is not None:
        try:
            with opened_bytes(path) as (_, plain):
                start = bytes(plain.read(_BEGINNING))
        except (OSError, EOFError, zlib.error):
            start = b""  # reading it to the end raises the error
    if codec is not None and compression(start) is not None:
        return codec, ".gz"
    ending = next((ending for begins, ending in _MATCHES if begins.match(start)), None)
    if ending == ".zip" and codec is None:
        ending = _of_zip(path)
    return codec, ending or _of_text(start)


def _of_zip(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if "mimetype" in names and "content.xml" in names:
                kind = archive.read("mimetype")[:64]
                return ".ods" if b"spreadsheet" in kind else ".docx"
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, zlib.error):
        return ".zip"
    if "[Content_Types].xml" in names:
        return ".xlsx" if any(name.startswith("xl/") for name in names) else ".docx"
    return ".zip"


def _of_text(start: bytes) -> str | None:
    encoding = "latin-1"
    if b"\0" in start or start.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            encoding = find_encoding(start, "")
        except DataError:
            return None
    elif start.startswith(b"\xef\xbb\xbf"):
        encoding = "utf-8-sig"
    text = start.decode(encoding, errors="ignore")
    if _CONTROL.search(text.rstrip("\x1a")):
        return None
    text = text.lstrip("\ufeff \t\r\n")
    ending = next((ending for begins, ending in _MATCHES_TEXT if begins.match(text)), None)
    return ending or (".csv" if re.search(r"[\r\n]+\S", text) else None)
