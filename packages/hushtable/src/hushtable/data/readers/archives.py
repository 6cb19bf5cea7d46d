"""ZIP archives: one table is unpacked into a copy that removes itself."""

import shlex
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from hushtable.data.readers.reader import Copy, unchanged
from hushtable.errors import DataError, explain
from hushtable.words.refusals import refusal, refused

#: An unpacked file may exceed this size only if it is less than this many times larger than before.
LARGE, TIMES = 1 << 30, 200
_DAMAGED = (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)


def members(path: Path) -> list[zipfile.ZipInfo]:
    """Return the files of an archive, without hidden files, and paths outside of it."""
    files = []
    with _explained(path), zipfile.ZipFile(path) as archive:
        for one in archive.infolist():
            name = PurePosixPath(one.filename)
            hidden = any(part.startswith((".", "~$")) or part == "__MACOSX" for part in name.parts)
            if not (one.is_dir() or hidden or name.is_absolute()):  # ".." begins with a dot
                files.append(one)
    return files


def chosen(
    path: Path, files: Sequence[zipfile.ZipInfo], wanted: str | None, rank: Callable[[str], int]
) -> tuple[zipfile.ZipInfo, tuple[str, ...]]:
    """Return the one table of an archive, and words on the files that are left out.

    ``wanted`` is its name, or the last part of it. ``rank`` returns 2 for the name of a table, 1
    for that of a file that may accompany one, and 0 for others.
    """
    if not files:
        raise refused("no_files", source=path)
    best = max(rank(one.filename) for one in files)
    tables = [one for one in files if rank(one.filename) == best]
    if wanted is not None:
        same = [one for one in files if wanted == one.filename]
        same = same or [one for one in files if wanted == PurePosixPath(one.filename).name]
        if len(same) == 1:
            return same[0], ()
    elif len(tables) == 1:
        left = [one.filename for one in files if one is not tables[0]]
        more = f" and {len(left) - 3:,} more" if len(left) > 3 else ""
        words = f"left out of the archive: {', '.join(left[:3])}{more}"
        return tables[0], (words,) if left else ()
    names = [one.filename for one in tables]
    held = f"{names[:10]}{refusal('more', n=len(names) - 10) if len(names) > 10 else ''}"
    if wanted is not None:
        raise refused("no_member", source=path, wanted=wanted, files=held)
    largest = max(tables, key=lambda one: one.file_size).filename
    raise refused(
        "several_files", f"--read {shlex.quote(f'member={largest}')}", source=path, files=held
    )


def extracted(path: Path, member: zipfile.ZipInfo) -> Copy:
    """Return a copy of a file in an archive."""
    if member.flag_bits & 1:
        raise refused("encrypted", source=path, member=member.filename)
    # Names that a system may refuse get no ending.
    endings = PurePosixPath(member.filename).suffixes[-2:]
    plain = [one for one in endings if one[1:].isalnum() and one.isascii() and len(one) < 12]
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


@contextmanager
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
