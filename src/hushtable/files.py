"""The .hush file: a safetensors container with one canonical-JSON manifest.

Nothing in it is executable. Every array is listed in the manifest with its dtype, shape and
SHA-256, and the manifest with its own digest, so that a truncated or edited file is refused
before anything is built from it.
"""

import contextlib
import hashlib
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, TypeVar

import numpy as np
import rfc8785
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from hushtable import header
from hushtable.entries import Kinds, entries
from hushtable.errors import FileError, PlanError

#: Version of the file format. To bump it: raise the number; keep a reader for every older one
#: (a function from an old `Content` to a new one, applied in `read`); save the files of the old
#: version that the tests read as ``tests/golden/protocol-N/``; describe the change in
#: ``docs/file-format.md``; publish the new JSON Schema beside the old.
PROTOCOL = 1

Arrays = dict[str, NDArray[Any]]
T = TypeVar("T")


@dataclass(frozen=True)
class Kind:
    """A kind of file."""

    words: str  # what it holds and which command writes it, for messages
    travels: bool = False  # is meant to leave its owner; any other file only its owner may read
    of_round: bool = False  # belongs to a round of several organisations
    bound: header.Bound = header.LARGE  # of its manifest


#: The kinds of this package; `hushtable.counts.kinds.register` adds one.
KINDS = {
    "plan": Kind("a plan of hushtable plan draw", travels=True),
    "sketch": Kind("a sketch of hushtable sketch"),
    "release": Kind("a release of hushtable release", travels=True),
    "increment": Kind("an increment of hushtable release --periods", travels=True),
    "periods": Kind("the periods of a site, of hushtable release --periods"),
    "detector": Kind("a model of hushtable fit"),
    "layout": Kind("a layout of hushtable plan hide", travels=True, of_round=True),
    "round": Kind(
        "a round of hushtable round open", travels=True, of_round=True, bound=header.ROUND
    ),
    "submission": Kind(
        "a submission of hushtable round submit", travels=True, of_round=True, bound=header.SMALL
    ),
    "sealed": Kind(
        "the result of hushtable round collect", travels=True, of_round=True, bound=header.ROUND
    ),
    "secret": Kind(
        "a secret of hushtable round secret", travels=True, of_round=True, bound=header.SMALL
    ),
    "message": Kind(
        "a message of a round that runs online", travels=True, of_round=True, bound=header.SMALL
    ),
    "verdicts": Kind("verdicts of hushtable learn"),
    "local": Kind("a local model of hushtable round model"),
}

#: What people write of themselves as JSON, and others need.
_CARDS = frozenset({"card", "approval"})

#: Of a file that is made, and is nothing that lay there before. The last is of one system.
_CREATED = (
    os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
)
#: Seconds after which nobody writes on to what has not changed since.
_A_DAY = 86_400.0


@dataclass(frozen=True)
class Content:
    """A file that was read: where it lies, its kind, its manifest's entries, its arrays."""

    path: str | os.PathLike[str]
    kind: str
    manifest: dict[str, Any]
    arrays: Arrays

    @property
    def digest(self) -> str:
        """SHA-256 of all that the file says: what a signature covers."""
        return str(self.manifest["digest"])

    @property
    def signature(self) -> str | None:
        """Signature of the digest, in a file of a kind that is signed."""
        return self.manifest.get("signature")

    @property
    def held(self) -> str:
        """The kind with its article, for sentences."""
        article = "an" if self.kind[0] in "aeiou" else "a"
        return self.kind if self.kind.endswith("s") else f"{article} {self.kind}"

    def expect(self, *kinds: str) -> "Content":
        """Return the content if it is of one of these kinds; raises `FileError` otherwise."""
        if self.kind not in kinds:
            *most, last = (KINDS[kind].words for kind in kinds)
            needed = f"{', '.join(most)} or {last}" if most else last
            more = ""
            if self.kind == "increment" and "release" in kinds:
                more = " (hushtable decode makes one of the increments of all periods)"
            raise FileError(f"{self.path}: holds {self.held}: give {needed}{more}")
        return self

    def said(self, what: str, needed: Kinds, optional: Kinds | None = None) -> dict[str, Any]:
        """Return entries of the manifest, each of its kind, as `hushtable.entries` checks them.

        Raises `PlanError` if the file holds no such thing.
        """
        wanted = {**needed, **(optional or {})}
        found = {name: self.manifest[name] for name in wanted if name in self.manifest}
        return entries(found, f"a file of kind {self.kind} holds no {what}: it", needed, optional)

    def array(self, name: str) -> NDArray[Any]:
        """Return an array; raises `PlanError` if the file holds none of this name."""
        if name not in self.arrays:
            raise PlanError(f"a file of kind {self.kind} holds no {name}")
        return self.arrays[name]

    def build(self, make: Callable[["Content"], T]) -> T:
        """Return ``make(self)``; what it refuses becomes a `FileError` that names the file."""
        try:
            return make(self)
        except PlanError as error:
            raise FileError(f"{self.path}: {error}") from None


def write(path: str | os.PathLike[str], kind: str, entries: dict[str, Any], arrays: Arrays) -> None:
    """Write a file atomically: the path holds the whole new file, or what it held before.

    Unless it `travels`, its owner alone may read it.
    """
    write_bytes(path, pack(kind, entries, arrays), private=not travels(kind, entries))


def write_bytes(path: str | os.PathLike[str], content: bytes, *, private: bool = True) -> None:
    """Write a file atomically; ``private`` as for `replacing`."""
    with replacing(path, private=private) as file:
        file.write(content)


def travels(kind: str, entries: Mapping[str, Any] = MappingProxyType({})) -> bool:
    """Whether a file, of a kind or a card, is meant to travel: then the umask says who may read it.

    One with a plan that was read off rows stays, and so does one with hash functions that are
    hidden from the coordinator, as the entries of its manifest say.
    """
    of_rows = bool(entries.get("plan", {}).get("data_dependent"))
    meant = kind in _CARDS or (kind in KINDS and KINDS[kind].travels)
    return meant and not of_rows and not entries.get("hidden", False)


def pack(
    kind: str,
    entries: dict[str, Any],
    arrays: Arrays,
    sign: Callable[[str, str], str] | None = None,
) -> bytes:
    """Return the bytes of a file of one of `KINDS`.

    The entries of its manifest are as JSON has them, arrays have the names that the kind gives
    them. ``sign`` takes kind and digest, and returns the signature.
    """
    manifest = {"protocol": PROTOCOL, "kind": kind, **entries, "arrays": array_digests(arrays)}
    manifest["digest"] = header.digest(manifest)
    if sign is not None:
        manifest["signature"] = sign(kind, manifest["digest"])
    manifest["writer"] = {"hushtable": _version()}
    text = rfc8785.dumps(manifest)
    if not KINDS[kind].bound.allows(text):
        raise FileError(f"the {kind} is too large for a file: shorten the categories")
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return safetensors.numpy.save(contiguous, metadata={header.KEY: text.decode()})


@contextlib.contextmanager
def replacing(
    path: str | os.PathLike[str], *, private: bool = True, new: bool = False
) -> Iterator[BinaryIO]:
    """Give a temporary file beside ``path``, open for writing, which then becomes ``path``.

    It does if the body succeeds. Whatever goes wrong (a full disk, Ctrl-C), ``path`` keeps what it
    held and the temporary file is removed; after SIGKILL or a power cut it stays,
    ``.NAME.????????.part``, to be removed by `remove_leftovers`. Only the owner can
    read a ``private`` file, from its first byte on; the umask decides who can read another. A
    ``new`` file takes the place of no other.

    Raises
    ------
    FileExistsError
        If the file is to be a ``new`` one and ``path`` exists.
    FileError
        If somebody else removed or replaced the temporary file in the meantime.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        descriptor = os.open(temporary, _CREATED, 0o600 if private else 0o666)
    except OSError as error:
        error.filename = str(path)  # what people named
        raise
    try:
        # Never opened again by its name, which others may have given to a link by then.
        with open(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            made = os.fstat(file.fileno())
            _check_is(temporary, made, path)
        (_take if new else os.replace)(temporary, path)
        if new:
            _check_is(path, made, path)
    except BaseException:
        with contextlib.suppress(OSError):  # it has its name by now, or is somebody else's folder
            temporary.unlink()
        raise


def _check_is(name: Path, made: os.stat_result, path: Path) -> None:
    """Raise `FileError` if a name no longer stands for the file that was made under it."""
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.lstat(name), made):
            return
    raise FileError(
        f"{path}: not written: somebody else removed or replaced its temporary file. Look who else "
        "may write to that folder, run chmod +t on it (then only the owner of a file may do that), "
        "and call again"
    )


def _take(temporary: Path, path: Path) -> None:
    """Give a whole file its name, unless another file has it."""
    try:
        os.link(temporary, path)  # unlike a rename, takes no other file's place
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: the name is taken first
        os.close(os.open(path, _CREATED, 0o600))
        temporary.replace(path)
    else:
        temporary.unlink()


@contextlib.contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let one process at a time go on with a file; raise `FileError` if another is at it.

    The lock is one of the system's, on ``.NAME.lock`` beside the file, and ends with the process,
    however that ends.
    """
    lock = Path(path).with_name(f".{Path(path).name}.lock")
    while True:
        descriptor = os.open(lock, _CREATED & ~os.O_EXCL, 0o600)
        try:
            _lock(descriptor)
        except OSError:
            os.close(descriptor)
            raise FileError(
                f"{path}: another process is at work on it: call again once that is done"
            ) from None
        # Whoever had it before may have removed it just now: then it locks nobody out.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), lock.stat()):
                break
        os.close(descriptor)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # not while it is open, says one system
            lock.unlink()
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt  # of one system each

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def remove_leftovers(folder: Path, name: str, *, below: bool = False) -> None:
    """Remove what writers that were killed left, once nobody has written to it for a day.

    ``name`` is that of the file, or a glob pattern of names; ``below`` looks in the folders
    within, too.
    """
    pattern = f".{name}.????????.part"
    for left in folder.rglob(pattern) if below else folder.glob(pattern):
        with contextlib.suppress(OSError):  # another's, or removed by another just now
            if time.time() - left.stat().st_mtime > _A_DAY:
                left.unlink()


@cache
def _version() -> str:
    return version("hushtable")


def read(path: str | os.PathLike[str]) -> Content:
    """Read and check a file; build nothing.

    Raises `FileError` if it is not an intact .hush file of a protocol that this version reads,
    and `OSError` if it cannot be read.
    """
    return unpack(Path(path).read_bytes(), path)


def unpack(content: bytes, path: str | os.PathLike[str]) -> Content:
    """Check the bytes of a file and return what they say; ``path`` names them in errors."""
    manifest = _manifest(header.manifest_text(content, path), path)
    try:
        arrays = safetensors.numpy.load(content)
    except (safetensors.SafetensorError, ValueError, KeyError):
        raise header.not_ours(path) from None
    if array_digests(arrays) != manifest["arrays"]:
        raise FileError(f"{path}: the arrays are not those the file was written with: get it again")
    return Content(path, manifest["kind"], manifest, arrays)


def _manifest(text: bytes, path: str | os.PathLike[str]) -> dict[str, Any]:
    manifest = header.parse(text, {name: kind.bound for name, kind in KINDS.items()}, path)
    if manifest is None:
        raise FileError(f"{path}: the manifest is damaged: get the file again from its source")
    protocol = manifest.get("protocol")
    if not isinstance(protocol, int) or isinstance(protocol, bool) or protocol < 1:
        raise FileError(f"{path}: the manifest names no protocol: get the file again")
    if protocol > PROTOCOL:
        raise FileError(
            f"{path}: written with protocol {protocol}, this version reads up to {PROTOCOL}: "
            "upgrade with pip install -U hushtable"
        )
    if not header.is_intact(manifest, text):
        raise FileError(f"{path}: the manifest was edited after the file was written: get it again")
    kind = manifest.get("kind")
    if not isinstance(kind, str) or kind not in KINDS or type(manifest.get("arrays")) is not dict:
        raise FileError(f"{path}: kind {kind!r} is none of {', '.join(KINDS)}")
    return manifest


def array_digests(arrays: Arrays) -> dict[str, Any]:
    """Return dtype, shape and SHA-256 (of the little-endian bytes) of each array."""
    return {
        name: {
            "dtype": str(array.dtype),
            "shape": list(array.shape),
            "sha256": hashlib.sha256(
                np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
                .reshape(-1)
                .view(np.uint8)
                .data
            ).hexdigest(),
        }
        for name, array in sorted(arrays.items())
    }
