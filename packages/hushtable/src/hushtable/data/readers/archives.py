"""ZIP archives: one table is unpacked into a copy that removes itself."""

import shlex
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from hushtable.data.readers.reader import Copy, unchanged
from hushtable.errors import DataError, explain

#: An unpacked file may exceed this size only if it is less than this many times larger than before.
LARGE, TIMES = 1 << 30, 200
_DAMAGED = (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)


@dataclass(frozen=True)
class Member:
    """A file in an archive."""

    name: str
    size: int
    encrypted: bool = False


def extracted(path: Path, member: Member) -> Copy:
    """Return a copy of a file in an archive."""
    if member.encrypted:
        raise DataError(f"{path}: {member.name} is encrypted: unpack it with its password first")
    limit = max(LARGE, TIMES * path.stat().st_size)
    copy = Copy.of(f"{path}: {member.name}", _ending(member.name))
    if member.size > limit:
        raise _too_large(copy.source, limit)
    with _explained(path), zipfile.ZipFile(path) as archive, archive.open(member.name) as source:
        _pour(source, copy, limit)
    return copy


def _pour(source: IO[bytes], copy: Copy, limit: int) -> None:
    left = limit
    with copy.path.open("wb") as file:
        while block := source.read(1 << 20):
            left -= len(block)
            if left < 0:
                raise _too_large(copy.source, limit)
            file.write(block)


def _too_large(source: str, limit: int) -> DataError:
    return DataError(
        f"{source}: it would unpack to more than {limit / 1e9:.3g} GB, over {TIMES} times the size "
        "of the archive: if this is intended, unpack it yourself, and give the unpacked file"
    )


def members(path: Path) -> list[Member]:
    """Return the files of an archive, without hidden files, and paths outside of it."""
    with _explained(path), zipfile.ZipFile(path) as archive:
        entries = [one for one in archive.infolist() if not one.is_dir()]
    found = [Member(e.filename, e.file_size, bool(e.flag_bits & 1)) for e in entries]
    return [member for member in found if _is_seen(PurePosixPath(member.name))]


def _is_seen(name: PurePosixPath) -> bool:
    hidden = any(part.startswith((".", "~$")) or part == "__MACOSX" for part in name.parts)
    return not hidden and not name.is_absolute()  # ".." begins with a dot


def chosen(
    path: Path, there: Sequence[Member], wanted: str | None, rank: Callable[[str], int]
) -> tuple[Member, tuple[str, ...]]:
    """Return the one table of an archive, and words on the files that are left out.

    Parameters
    ----------
    path : Path
        The archive, for messages.
    there : sequence of Member
        Its files.
    wanted : str or None
        The name of the table, if it is given.
    rank : callable
        Rank of a file's name: 2 for a table, 1 for a file that may accompany a table, 0 for others.
    """
    for name in ("name", "last part of the name") if wanted is not None else ():
        whole = name == "name"
        same = [m for m in there if wanted == (m.name if whole else PurePosixPath(m.name).name)]
        if len(same) == 1:
            return same[0], ()
    best = max((rank(member.name) for member in there), default=0)
    tables = [member for member in there if rank(member.name) == best]
    if len(tables) == 1 and wanted is None:
        left = [member.name for member in there if member is not tables[0]]
        return tables[0], _left_out(left)
    if not there:
        raise DataError(f"{path}: the archive contains no files: pack it again, with a table in it")
    names = [member.name for member in tables]
    held = f"{names[:10]}{f' and {len(names) - 10:,} more' if len(names) > 10 else ''}"
    if wanted is not None:
        raise DataError(
            f"{path}: does not contain {wanted!r}, but {held}: correct --read member=..."
        )
    largest = max(tables, key=lambda member: member.size)
    raise DataError(
        f"{path}: contains several files, {held}: choose one with --read member=NAME\nAdd: --read "
        f"{shlex.quote(f'member={largest.name}')}"
    )


def _left_out(names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        return ()
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return (f"left out of the archive: {', '.join(names[:3])}{more}",)


def _ending(name: str) -> str:
    """Return the last two endings of a name, if every system accepts them."""
    endings = PurePosixPath(name).suffixes[-2:]
    return "".join(one for one in endings if one[1:].isalnum() and one.isascii() and len(one) < 12)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Explain why an archive cannot be read."""
    try:
        with unchanged(path):
            yield
    except DataError:
        raise
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise DataError(f"{path}: cannot be unpacked: {explain(error)}") from None
        raise DataError(
            f"{path}: cannot be unpacked ({error}): it may be damaged, truncated, or packed with "
            "an unsupported method: get it again, or unpack it yourself"
        ) from None
