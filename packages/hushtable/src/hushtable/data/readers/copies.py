"""Files that are copied before they are read: of URLs, of standard input, and in ZIP archives.

A copy removes itself; messages name the original.
"""

import contextlib
import os
import shlex
import shutil
import sys
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any

from hushtable import far
from hushtable.data.readers.reader import Batch, Read, Reader, unchanged
from hushtable.errors import DataError, explain
from hushtable.words.refusals import refusal, refused

NAME = "standard input"
#: First bytes of content that must be in a file, and its description.
_FILES = {
    b"PAR1": "Parquet", b"ARROW1": "Feather", b"PK\3\4": "a workbook or an archive",
    b"\xd0\xcf\x11\xe0": "a workbook", b"SQLite format": "a database",
    b"(\xb5/\xfd": "a Zstandard-compressed file", b"BZh": "a bzip2-compressed file",
    b"\xfd7zXZ": "an xz-compressed file",
}  # fmt: skip
#: The standard input that has been read: it cannot be read again.
_COPIES: weakref.WeakKeyDictionary[Any, "Copy"] = weakref.WeakKeyDictionary()
#: An unpacked file may exceed this size only if it is less than this many times larger than before.
LARGE, TIMES = 1 << 30, 200
_DAMAGED = (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)


@dataclass(frozen=True, eq=False)
class Copy:
    """A file that only its owner may read, removed with the last reference to it."""

    #: The original, for messages.
    source: str
    path: Path

    @classmethod
    def of(cls, source: str, ending: str) -> "Copy":
        """Return an empty file whose name has this ending."""
        number, path = tempfile.mkstemp(prefix="hushtable-", suffix=ending)
        os.close(number)
        copy = cls(source, Path(path))
        weakref.finalize(copy, copy.path.unlink, missing_ok=True)  # at the latest at exit
        return copy

    def reader(self, open_: Callable[[Path], Reader]) -> Reader:
        """Open the copy; messages name the original."""

        def read(read: Read) -> Iterator[Batch]:
            with self._named():
                yield from read()

        with self._named():
            rows = open_(self.path)
        sources = [replace(part.through(read), name=self.source) for part in rows.sources]
        return replace(rows, sources=tuple(sources), source=self.source)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except DataError as error:
            raise type(error)(str(error).replace(str(self.path), self.source)) from None
        except OSError as error:  # its message would name the copy, or the URL with its secrets
            raise DataError(f"{self.source}: its copy cannot be read: {error.strerror}") from None


# --- URLs and standard input ----------------------------------------------------------------------


def copies_of(url: str, rank: Callable[[PurePosixPath], int]) -> list[Copy]:
    """Copy every file of rows that a URL (of a file, a folder or a pattern) names.

    ``rank`` returns how likely a file with a name holds rows; 0 if it does not.
    """
    public = far.public(url)
    made = []
    with far.reaching(url, DataError):
        system, root = far.connect(url)
        if set("*[") & set(root):
            names = sorted(name for name in system.glob(root) if rank(_name(name)))
        elif rank(_name(root)):
            names = [root]
        else:
            inside = {name: rank(_name(name)) for name in system.find(root)}
            names = sorted(name for name in inside if inside[name] == max(inside.values()) > 0)
        for name in names:
            source = public if name == root else far.public(system.unstrip_protocol(name))
            made.append(Copy.of(source, "".join(_name(name).suffixes[-2:])))
            system.get_file(name, str(made[-1].path))
    if not made:
        raise DataError(f"{public}: no such file, and no folder with files of rows: check the URL")
    return made


def _name(path: str) -> PurePosixPath:
    """Return the last part of a path; with some backends, the path is a URL with a query."""
    return PurePosixPath(PurePosixPath(path.partition("?")[0]).name)


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
        raise DataError(f"{NAME} is empty: did the preceding command fail?")
    held = next((words for magic, words in _FILES.items() if start.startswith(magic)), None)
    if held:
        raise DataError(f"{NAME} holds {held}: save it to a file first, and give that file")
    zipped = start.startswith(b"\x1f\x8b")
    plain = zlib.decompressobj(wbits=31).decompress(start, 1 << 12) if zipped else start
    json = plain.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
    copy = Copy.of(NAME, (".jsonl" if json else ".csv") + (".gz" if zipped else ""))
    with copy.path.open("wb") as file:
        file.write(start)
        shutil.copyfileobj(stream, file)
    if not zipped:  # which marks its own end
        with copy.path.open("rb") as file:
            file.seek(-min(2, copy.path.stat().st_size), 2)
            if not file.read().rstrip(b"\0").endswith((b"\n", b"\r")):
                raise DataError(
                    f"{NAME} ends in the middle of a line: did the preceding command fail? If its "
                    "last line is complete, end it with a line break"
                )
    return copy


# --- archives -------------------------------------------------------------------------------------


def members(path: Path) -> list[zipfile.ZipInfo]:
    """Return the files of an archive, without hidden files, and paths outside of it."""
    files = []
    with _explained(path), zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = PurePosixPath(member.filename)
            hidden = any(part.startswith((".", "~$")) or part == "__MACOSX" for part in name.parts)
            if not (member.is_dir() or hidden or name.is_absolute()):  # ".." begins with a dot
                files.append(member)
    return files


def chosen(
    path: Path, files: Sequence[zipfile.ZipInfo], wanted: str | None, ranks: Mapping[str, int]
) -> tuple[zipfile.ZipInfo, tuple[str, ...]]:
    """Return the one table of an archive, and words on the files that are left out.

    ``wanted`` is its name, or the last part of it. ``ranks`` are 2 for the name of a table, 1 for
    that of a file that may accompany one, and 0 for others.
    """
    if not files:
        raise refused("no_files", source=path)
    best = max(ranks.values())
    tables = [member for member in files if ranks[member.filename] == best]
    if wanted is not None:
        same = [member for member in files if wanted == member.filename]
        same = same or [member for member in files if wanted == PurePosixPath(member.filename).name]
        if len(same) == 1:
            return same[0], ()
    elif len(tables) == 1:
        left = [member.filename for member in files if member is not tables[0]]
        more = f" and {len(left) - 3:,} more" if len(left) > 3 else ""
        words = f"left out of the archive: {', '.join(left[:3])}{more}"
        return tables[0], (words,) if left else ()
    names = [member.filename for member in tables]
    held = f"{names[:10]}{refusal('more', n=len(names) - 10) if len(names) > 10 else ''}"
    if wanted is not None:
        raise refused("no_member", source=path, wanted=wanted, files=held)
    largest = max(tables, key=lambda member: member.file_size).filename
    raise refused(
        "several_files", f"--read {shlex.quote(f'member={largest}')}", source=path, files=held
    )


def extracted(path: Path, member: zipfile.ZipInfo) -> Copy:
    """Return a copy of a file in an archive."""
    if member.flag_bits & 1:
        raise refused("encrypted", source=path, member=member.filename)
    # Names that a system may refuse get no ending.
    endings = PurePosixPath(member.filename).suffixes[-2:]
    plain = [end for end in endings if end[1:].isalnum() and end.isascii() and len(end) < 12]
    copy = Copy.of(f"{path}: {member.filename}", "".join(plain))
    with _explained(path), zipfile.ZipFile(path) as archive, archive.open(member) as source:
        _pour(source, copy, max(LARGE, TIMES * path.stat().st_size))
    return copy


def _pour(source: IO[bytes], copy: Copy, limit: int) -> None:
    left = limit
    with copy.path.open("wb") as file:
        while block := source.read(1 << 20):
            left -= len(block)
            if left < 0:
                raise refused(
                    "too_large", source=copy.source, size=f"{limit / 1e9:.3g}", times=TIMES
                )
            file.write(block)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        with unchanged(path):
            yield
    except DataError:
        raise
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise refused("not_unpacked", source=path, error=explain(error)) from None
        raise refused("damaged", source=path, error=error) from None
