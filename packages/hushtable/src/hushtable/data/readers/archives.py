"""Archives and packed files: one table is unpacked into a copy that removes itself."""

import lzma
import shlex
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

import pyarrow as pa

from hushtable.data.readers.encoding import decompressed
from hushtable.data.readers.reader import Copy, unchanged
from hushtable.errors import DataError, explain

#: An unpacked file may exceed this size only if it is less than this many times larger than before.
LARGE, TIMES = 1 << 30, 200
#: Archives within archives.
DEEPEST = 2
#: Largest number of bytes between two files of a tar archive.
_HEADERS = 1 << 24
_DAMAGED = (
    OSError, EOFError, zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error,
    NotImplementedError, RuntimeError, UnicodeDecodeError,
)  # fmt: skip


@dataclass(frozen=True)
class Member:
    """A file in an archive."""

    name: str
    size: int
    encrypted: bool = False


def limit_of(path: Path) -> int:
    """Return how many bytes may be unpacked from a file in total."""
    return max(LARGE, TIMES * path.stat().st_size)


def unpacked(path: Path, name: str, limit: int) -> Copy:
    """Return a copy of a file that gzip, bzip2, Zstandard or xz compressed, decompressed."""
    copy = Copy.of(str(path), _ending(name))
    with _explained(path), _stream(path) as plain:
        _pour(plain, copy, path, limit)
    return copy


def extracted(path: Path, member: Member, limit: int) -> Copy:
    """Return a copy of a file in an archive."""
    if member.encrypted:
        raise DataError(f"{path}: {member.name} is encrypted: unpack it with its password first")
    if member.size > limit:
        raise _too_large(path, limit)
    copy = Copy.of(f"{path}: {member.name}", _ending(member.name))
    with _explained(path):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive, archive.open(member.name) as file:
                _pour(file, copy, path, limit)
        else:
            with _tar(path, limit) as entries:
                for tar, entry in entries:
                    if entry.name == member.name:
                        _pour(cast(IO[bytes], tar.extractfile(entry)), copy, path, limit)
                        break
    return copy


def members(path: Path, limit: int) -> list[Member]:
    """Return the files of an archive, without hidden files, links, and paths outside of it."""
    with _explained(path):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                entries = [one for one in archive.infolist() if not one.is_dir()]
            found = [Member(e.filename, e.file_size, bool(e.flag_bits & 1)) for e in entries]
        else:
            with _tar(path, limit) as files:
                found = [Member(entry.name, entry.size) for _, entry in files]
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
        raise DataError(f"{path}: does not contain {wanted!r}, but {held}: correct --member")
    largest = max(tables, key=lambda member: member.size)
    raise DataError(
        f"{path}: contains several files, {held}: choose one with --member NAME\nAdd: --member "
        f"{shlex.quote(largest.name)}"
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
def _stream(path: Path) -> Iterator[Any]:
    with pa.OSFile(str(path)) as raw:
        is_xz = raw.read(6) == b"\xfd7zXZ\0"
    if is_xz:
        with lzma.open(path) as plain:
            yield plain
    else:
        with pa.OSFile(str(path)) as raw, decompressed(raw) as plain:
            yield plain


class _Counted:
    """A stream that refuses reads beyond a number of bytes, which is raised step by step."""

    def __init__(self, stream: Any, error: DataError) -> None:
        self._stream, self._error, self.left = stream, error, _HEADERS

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes."""
        if self.left < 0:
            raise self._error
        block = bytes(self._stream.read(size))
        self.left -= len(block)
        return block


@contextmanager
def _tar(path: Path, limit: int) -> Iterator[Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]]:
    """Open a tar archive, compressed or not, as its files in order."""
    with _stream(path) as plain:
        counted = _Counted(plain, _too_large(path, limit))
        with tarfile.open(fileobj=cast(IO[bytes], counted), mode="r|") as tar:
            yield _entries(tar, counted, path, limit)


def _entries(
    tar: tarfile.TarFile, counted: _Counted, path: Path, limit: int
) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    total = 0
    for entry in tar:
        total += max(0, entry.size)
        if total > limit:
            raise _too_large(path, limit)
        counted.left = entry.size + _HEADERS
        if entry.isreg():
            yield tar, entry
        tar.members = []  # type: ignore[attr-defined] # else all stay in memory


def _pour(source: Any, copy: Copy, path: Path, limit: int) -> None:
    left = limit
    with copy.path.open("wb") as file:
        while block := source.read(1 << 20):
            left -= len(block)
            if left < 0:
                raise _too_large(path, limit)
            file.write(block)


def _too_large(path: Path, limit: int) -> DataError:
    return DataError(
        f"{path}: it would unpack to more than {limit / 1e9:.3g} GB, over {TIMES} times its size: "
        "if this is intended, unpack it yourself, and give the unpacked file"
    )


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
