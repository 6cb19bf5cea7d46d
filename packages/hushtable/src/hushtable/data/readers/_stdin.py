"""Rows on standard input."""

import shutil
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any
from weakref import WeakKeyDictionary

from hushtable.data.readers._copy import Copy
from hushtable.data.readers._reader import Reader
from hushtable.errors import DataError

NAME = "standard input"
#: First bytes of what has to lie in a file, and what it is.
_FILES = {
    b"PAR1": "Parquet", b"ARROW1": "Feather", b"PK\3\4": "a workbook or an archive",
    b"\xd0\xcf\x11\xe0": "a workbook", b"SQLite format": "a database",
    b"(\xb5/\xfd": "compressed by Zstandard", b"BZh": "compressed by bzip2",
}  # fmt: skip
#: What is read already: it cannot be read a second time.
_COPIES: WeakKeyDictionary[Any, Copy] = WeakKeyDictionary()


def standard_input(open_: Callable[[Path], Reader]) -> Reader:
    """Read CSV or JSON lines from standard input, which is copied to a temporary file first."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None or stream.closed:
        raise DataError(f"{NAME} is closed: give a file, or pipe rows into the command")
    if stream not in _COPIES:
        if stream.isatty():
            raise DataError(f"{NAME} is a terminal: pipe rows into the command, or give a file")
        _COPIES[stream] = _copied(stream)
    return _COPIES[stream].reader(open_)


def _copied(stream: IO[bytes]) -> Copy:
    start = stream.read(1 << 16)
    if not start:
        raise DataError(f"{NAME} is empty: did the command before it fail?")
    held = next((words for magic, words in _FILES.items() if start.startswith(magic)), None)
    if held:
        raise DataError(f"{NAME} holds {held}: save it to a file first, and give that file")
    zipped = start.startswith(b"\x1f\x8b")
    copy = Copy.of(NAME, _ending(start, zipped))
    with copy.path.open("wb") as file:
        file.write(start)
        shutil.copyfileobj(stream, file)
    if not zipped:  # which knows its end by itself
        with copy.path.open("rb") as file:
            file.seek(-min(2, copy.path.stat().st_size), 2)
            if not file.read().rstrip(b"\0").endswith((b"\n", b"\r")):
                raise DataError(
                    f"{NAME} stops in the middle of a line: did the command before it fail? If "
                    "its last line is whole, end it with a line break"
                )
    return copy


def _ending(start: bytes, zipped: bool) -> str:
    """Return the ending of the name of a file of such rows."""
    if zipped:
        start = zlib.decompressobj(wbits=31).decompress(start, 1 << 12)
    json = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
    return (".jsonl" if json else ".csv") + (".gz" if zipped else "")
