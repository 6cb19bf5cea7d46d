"""The .hush file: a safetensors container with one canonical-JSON manifest.

Nothing in it is executable. Every array is listed in the manifest with its dtype, shape and
SHA-256, and the manifest with its own digest, so that a truncated or edited file is refused
before anything is built from it.
"""

import contextlib
import hashlib
import json
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, TypeVar

import numpy as np
import rfc8785
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from hushtable import plugins
from hushtable.arguments import JsonObject, Kinds, entries
from hushtable.errors import NO_HIDDEN, FileError, PlanError, PluginError

#: Key of the manifest in safetensors metadata.
KEY = "hushtable"
#: Entries of a manifest that its digest does not cover.
_APART = ("digest", "signature", "writer")
#: Smallest number of bytes per value in a manifest with more values than its kind may always have:
#: a value takes up to about 160 bytes of memory, and an empty object of 3 bytes takes 72.
_PER_VALUE = 100
#: An escape that canonical JSON never has: an unescaped backslash before a u, except for control
#: characters. Without such escapes, each byte of a text takes one byte in memory.
_ESCAPE = re.compile(rb"(?<!\\)(?:\\\\)*\\u(?!00[01])")


#: In UTF-8, the first byte of a character beyond Latin-1.
_WIDE = re.compile(rb"[\xc4-\xff]")


@dataclass(frozen=True)
class Bound:
    """Limits of a manifest.

    Attributes
    ----------
    size : int
        Largest number of bytes; an eighth of that if there are letters beyond Latin-1.
    values : int
        Number of values that it may always have, however small it is; each has a bracket or a
        comma.
    """

    size: int
    values: int

    def allows(self, text: bytes) -> bool:
        """Return whether a text may be parsed."""
        # Each text with such a character takes up to four bytes of memory per character.
        most = self.size // 8 if _WIDE.search(text) else self.size
        marks = sum(text.count(mark) for mark in (b",", b"[", b"{"))
        return len(text) <= most and marks <= max(self.values, len(text) // _PER_VALUE)


#: For a plan and files with a plan: 65,535 features, or half a million categories.
LARGE = Bound(64 << 20, 500_000)
#: For a round and its result: 300 sites and 2,000 features with 20,000 categories take .6 MB.
ROUND = Bound(16 << 20, 100_000)
#: For messages of a party in a round, and files without a schema.
SMALL = Bound(1 << 20, 10_000)
#: The header contains the manifest, escaped once more, and also lists the arrays.
_HEADER = Bound(2 * LARGE.size, LARGE.values)


def manifest_text(content: bytes, path: str | os.PathLike[str]) -> bytes:
    """Return the manifest in the bytes of a file, in UTF-8; raises `FileError` without one."""
    size = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + min(size, _HEADER.size + 1)]
    if not _HEADER.allows(header):
        raise too_large(path, "the header")
    try:
        if len(header) < size or _has_escapes(header):
            raise ValueError
        # One byte of memory for each of the text, whatever characters it has.
        text = json.loads(header.decode("latin-1")).get("__metadata__", {}).get(KEY)
        if text is not None:
            return bytes(text.encode("latin-1"))
    except (ValueError, AttributeError, RecursionError):
        raise not_ours(path) from None
    raise FileError(f"{path}: a safetensors file, but not one of hushtable")


def not_ours(path: str | os.PathLike[str]) -> FileError:
    """Return the error for content that is not a .hush file, or a truncated one."""
    return FileError(f"{path}: not a .hush file, or a truncated one: get it again from its source")


def too_large(path: str | os.PathLike[str], what: str) -> FileError:
    """Return the error for content that is not parsed because of its size."""
    return FileError(
        f"{path}: {what} is larger, or has far more values, than in any genuine file, and was not "
        "read: ask the sender for the file again, or discard it"
    )


def _parse(
    text: bytes, bounds: Mapping[str, Bound], path: str | os.PathLike[str]
) -> JsonObject | None:
    """Return the content of a manifest; None if it is not a JSON object.

    ``bounds`` are the bounds of the kinds of files. Raises `FileError`, before anything is parsed,
    if the text exceeds the bound of a kind that it may have.
    """
    # Its kind is literally in the text, possibly together with words that look like it.
    kinds = {kind for kind in bounds if names_kind(text, kind)}
    for kind in sorted(kinds) or [""]:
        if not bounds.get(kind, LARGE).allows(text):
            raise too_large(path, "the manifest" + (f" of a {kind}" if kind else ""))
    if _has_escapes(text):
        return None
    try:
        manifest = json.loads(text.decode("latin-1"), parse_int=_number)
        manifest = manifest if text.isascii() else _decoded(manifest)
    except (ValueError, RecursionError):
        return None
    if not isinstance(manifest, dict):
        return None
    # The kind of a package that is not loaded yet must also be in the text.
    named = manifest.get("kind")
    hidden = isinstance(named, str) and f'"kind":"{named}"'.encode() not in text
    return None if hidden else manifest


def names_kind(text: bytes, kind: str) -> bool:
    """Return whether a manifest may have a kind: the kind is literally in the text."""
    return _mark(kind) in text


@cache
def _mark(kind: str) -> bytes:
    return f'"kind":"{kind}"'.encode()


def _has_escapes(text: bytes) -> bool:
    return b"\\u" in text and _ESCAPE.search(text) is not None


def _number(text: str) -> int | float:
    # RFC 8785 writes 1e18 as 1000000000000000000, which exceeds its exact whole numbers.
    number = int(text)
    return number if abs(number) < 1 << 53 else float(text)


def _decoded(value: object) -> Any:
    """Return content that was parsed byte by byte with texts in UTF-8; lists change in place."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("latin-1").decode()
    if isinstance(value, dict):
        return {_decoded(key): _decoded(item) for key, item in value.items()}
    if isinstance(value, list):
        for k, item in enumerate(value):
            value[k] = _decoded(item)
    return value


def digest(manifest: JsonObject) -> str:
    """Return the SHA-256 of the entries that the digest of a manifest covers."""
    covered = {key: value for key, value in manifest.items() if key not in _APART}
    return hashlib.sha256(rfc8785.dumps(covered)).hexdigest()


#: Version of the file format. To bump it: raise the number; keep a reader for every older one
#: (a function from an old `Content` to a new one, applied in `read`); save the files of the old
#: version that the tests read as ``tests/golden/protocol-N/``; describe the change in
#: ``docs/reference/file-format.md``; publish the new JSON Schema next to the old.
PROTOCOL = 1

Arrays = dict[str, NDArray[Any]]
#: What an object adds to a file: entries of the manifest, and arrays.
Part = tuple[JsonObject, Arrays]
T = TypeVar("T")


@dataclass(frozen=True)
class Kind:
    """A kind of file."""

    words: str  # content and command that writes it, for messages
    travels: bool = False  # may leave its owner; only the owner may read other files
    bound: Bound = LARGE  # of its manifest
    #: Builds its object; None for files that only ``inspect`` reads.
    reader: Callable[["Content"], Any] | None = None
    #: Takes path and content, and returns a `CommandResult`; None if the core itself shows it.
    inspect: Callable[[Path, "Content"], Any] | None = None
    #: By name of a command of the core, what does it for a file of this kind, in place of the core:
    #: ``score(model, rows, kept, top, output, no_use)``. ``no_use`` is true if an option is given
    #: that only the core's models use.
    commands: Mapping[str, Callable[..., Any]] = field(default_factory=dict)


#: The kinds of this package, and requested kinds of others (`kind_of`).
KINDS = {
    "plan": Kind("a plan of hushtable plan draw", travels=True),
    "sketch": Kind("a sketch of hushtable sketch"),
    "release": Kind("a release of hushtable release", travels=True),
    "increment": Kind("an increment of hushtable release --periods", travels=True),
    "periods": Kind("the periods of a site, of hushtable release --periods"),
    "detector": Kind("a model of hushtable fit"),
    "verdicts": Kind("verdicts of hushtable learn"),
    "local": Kind("a local model of hushtable round model"),
}
#: Kinds that the package hushtable-federation adds.
_OF_FEDERATION = frozenset({"home", "message", "round", "submission"})

#: JSON files that people write about themselves, and others need.
_CARDS = frozenset({"card", "approval"})

#: Kinds of files that only rounds with hidden hash functions had. The rounds had a layout, too, in
#: place of a plan.
_HIDDEN = frozenset({"layout", "sealed", "secret"})

#: Flags to create a new file, and never open an existing one. The last exists on one system only.
_CREATED = (
    os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
)
#: Number of seconds without change after which a file counts as abandoned by its writer.
_A_DAY = 86_400.0


def kind_of(name: str) -> Kind | None:
    """Return a kind of this package or of a plug-in; None if it is unknown."""
    if name not in KINDS and (kind := plugins.find(plugins.KINDS, name)) is not None:
        KINDS[name] = kind
    return KINDS.get(name)


def command_of(path: str | os.PathLike[str], name: str) -> Callable[..., Any] | None:
    """Return what does a command for a file of another package's kind; None if the core does."""
    known = kind_of(read(path).kind)
    return None if known is None else known.commands.get(name)


@dataclass(frozen=True)
class Content:
    """A file that was read: its path, kind, manifest entries, and arrays."""

    path: str | os.PathLike[str]
    kind: str
    manifest: JsonObject
    arrays: Arrays

    @property
    def digest(self) -> str:
        """SHA-256 of the whole content of the file, which a signature covers."""
        return str(self.manifest["digest"])

    @property
    def signature(self) -> str | None:
        """Signature of the digest, for kinds of files that are signed."""
        return self.manifest.get("signature")

    @property
    def held(self) -> str:
        """The kind with its article, for sentences."""
        article = "an" if self.kind[0] in "aeiou" else "a"
        return self.kind if self.kind.endswith("s") else f"{article} {self.kind}"

    def expect(self, *kinds: str) -> "Content":
        """Return the content if it is of one of these kinds; raises `FileError` otherwise."""
        if self.kind not in kinds:
            *most, last = (known.words for kind in kinds if (known := kind_of(kind)))
            needed = f"{', '.join(most)} or {last}" if most else last
            more = ""
            if self.kind == "increment" and "release" in kinds:
                more = " (hushtable decode makes one from the increments of all periods)"
            raise FileError(f"{self.path}: holds {self.held}: give {needed}{more}")
        return self

    def said(self, what: str, needed: Kinds, optional: Kinds | None = None) -> JsonObject:
        """Return entries of the manifest, each of its type, as `hushtable.arguments` checks them.

        Raises `PlanError` if the file has no such entries.
        """
        wanted = {**needed, **(optional or {})}
        stated = {name: self.manifest[name] for name in wanted if name in self.manifest}
        return entries(stated, f"a file of kind {self.kind} holds no {what}: it", needed, optional)

    def array(self, name: str) -> NDArray[Any]:
        """Return an array; raises `PlanError` if the file holds none of this name."""
        if name not in self.arrays:
            raise PlanError(f"a file of kind {self.kind} holds no {name}")
        return self.arrays[name]

    def part(self, name: str, kind: str) -> "Content":
        """Return another object in the file, as the content of its own file."""
        start = f"{name}."
        inside = {key: array for key, array in self.arrays.items() if key.startswith(start)}
        arrays = {key.removeprefix(start): array for key, array in inside.items()}
        entry = self.manifest.get(name)
        if not isinstance(entry, dict):
            raise PlanError(f"a file of kind {self.kind} holds no {name}")
        return replace(self, kind=kind, manifest=entry, arrays=arrays)

    def build(self, make: Callable[["Content"], T]) -> T:
        """Return ``make(self)``; turn refusals into a `FileError` that names the file."""
        try:
            return make(self)
        except (PlanError, PluginError) as error:
            raise FileError(f"{self.path}: {error}") from None


def write(path: str | os.PathLike[str], kind: str, entries: JsonObject, arrays: Arrays) -> None:
    """Write a file atomically: the path holds the whole new file, or the old one.

    Unless it `travels`, only its owner may read it. Raises `FileError` if there is no such folder,
    or if the path is one.
    """
    if Path(path).is_dir():
        raise FileError(
            f"{path}: not written, because it is a folder: save to a file in it, such as "
            f"{Path(path) / 'model.hush'}"
        )
    if not Path(path).parent.is_dir():
        raise FileError(
            f"{path}: not written, because there is no folder {Path(path).parent}: create it, or "
            "save to another folder"
        )
    write_bytes(path, pack(kind, entries, arrays), private=not travels(kind, entries))


def write_bytes(path: str | os.PathLike[str], content: bytes, *, private: bool = True) -> None:
    """Write a file atomically; ``private`` as for `replacing`."""
    with replacing(path, private=private) as file:
        file.write(content)


def travels(kind: str, entries: Mapping[str, Any] = MappingProxyType({})) -> bool:
    """Return whether a file (a kind or a card) may travel; the umask then decides who may read it.

    A file with a plan that was derived from rows stays, according to the entries of its manifest.
    """
    of_rows = bool(entries.get("plan", {}).get("data_dependent"))
    meant = kind in _CARDS or ((known := kind_of(kind)) is not None and known.travels)
    return meant and not of_rows


def pack(
    kind: str,
    entries: JsonObject,
    arrays: Arrays,
    sign: Callable[[str, str], str] | None = None,
) -> bytes:
    """Return the bytes of a file of a kind that `kind_of` knows.

    The entries of its manifest are JSON values; arrays have the names that the kind defines.
    ``sign`` takes kind and digest, and returns the signature.
    """
    manifest = {"protocol": PROTOCOL, "kind": kind, **entries, "arrays": array_digests(arrays)}
    manifest["digest"] = digest(manifest)
    if sign is not None:
        manifest["signature"] = sign(kind, manifest["digest"])
    manifest["writer"] = {"hushtable": _version()}
    text = rfc8785.dumps(manifest)
    known = kind_of(kind)
    assert known is not None
    if not known.bound.allows(text):
        raise FileError(f"the {kind} is too large for a file: shorten the categories")
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return safetensors.numpy.save(contiguous, metadata={KEY: text.decode()})


@contextlib.contextmanager
def replacing(
    path: str | os.PathLike[str], *, private: bool = True, new: bool = False
) -> Iterator[BinaryIO]:
    """Yield a temporary file next to ``path``, open for writing, which then becomes ``path``.

    It does if the body succeeds. Whatever goes wrong (a full disk, Ctrl-C), ``path`` keeps its
    content and the temporary file is removed; after SIGKILL or a power cut it stays as
    ``.NAME.????????.part``, to be removed by `remove_leftovers`. Only the owner can
    read a ``private`` file, from its first byte on; the umask decides who can read another. A
    ``new`` file replaces no other.

    Raises
    ------
    FileExistsError
        If the file is to be a ``new`` one and ``path`` exists.
    FileError
        If someone else removed or replaced the temporary file in the meantime.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        descriptor = os.open(temporary, _CREATED, 0o600 if private else 0o666)
    except OSError as error:
        error.filename = str(path)  # what people named
        raise
    try:
        # Never reopened by its name, which others may have given to a link by then.
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
        with contextlib.suppress(OSError):  # it was renamed already, or is in someone else's folder
            temporary.unlink()
        raise


def _check_is(name: Path, made: os.stat_result, path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.lstat(name), made):
            return
    raise FileError(
        f"{path}: not written: someone else removed or replaced its temporary file. Check who else "
        "may write to that folder, run chmod +t on it (so that only the owner of a file may "
        "remove it), and try again"
    )


def _take(temporary: Path, path: Path) -> None:
    """Give a whole file its name, unless another file has it."""
    try:
        os.link(temporary, path)  # unlike a rename, replaces no other file
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: the name is taken first
        os.close(os.open(path, _CREATED, 0o600))
        temporary.replace(path)
    else:
        temporary.unlink()


@contextlib.contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let one process at a time work on a file; raise `FileError` if another does.

    The lock is a system lock on ``.NAME.lock`` next to the file. It ends with the process, however
    that ends.
    """
    lock = Path(path).with_name(f".{Path(path).name}.lock")
    while True:
        descriptor = os.open(lock, _CREATED & ~os.O_EXCL, 0o600)
        try:
            lock_now(descriptor)
        except OSError:
            os.close(descriptor)
            raise FileError(
                f"{path}: another process is working on it: try again when that is finished"
            ) from None
        # Its previous holder may have removed it just now: then the lock has no effect.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), lock.stat()):
                break
        os.close(descriptor)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # one system refuses this while it is open
            lock.unlink()
        os.close(descriptor)


def lock_now(descriptor: int) -> None:
    """Lock an open file until it is closed; raise `OSError` if another process has the lock.

    On Windows, the lock is on the byte at the current position.
    """
    if sys.platform == "win32":
        import msvcrt  # of one system each

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def remove_leftovers(folder: Path, name: str, *, below: bool = False) -> None:
    """Remove leftovers of killed writers, once no one has written to them for a day.

    ``name`` is the name of the file, or a glob pattern; ``below`` also searches the folders within.
    """
    pattern = f".{name}.????????.part"
    for left in folder.rglob(pattern) if below else folder.glob(pattern):
        with contextlib.suppress(OSError):  # owned by another, or just removed by another
            if time.time() - left.stat().st_mtime > _A_DAY:
                left.unlink()


@cache
def _version() -> str:
    from importlib.metadata import version  # which takes a while to import

    return version("hushtable")


def read(path: str | os.PathLike[str]) -> Content:
    """Read and check a file; build nothing.

    Raises `FileError` if it is not an intact .hush file of a protocol that this version reads,
    and `OSError` if it cannot be read.
    """
    return unpack(Path(path).read_bytes(), path)


def unpack(content: bytes, path: str | os.PathLike[str]) -> Content:
    """Check the bytes of a file and return their content; ``path`` names them in errors."""
    manifest = _manifest(manifest_text(content, path), path)
    try:
        arrays = safetensors.numpy.load(content)
    except (safetensors.SafetensorError, ValueError, KeyError):
        raise not_ours(path) from None
    if array_digests(arrays) != manifest["arrays"]:
        raise FileError(
            f"{path}: the arrays are not the ones that the file was written with: get it again"
        )
    return Content(path, manifest["kind"], manifest, arrays)


def _manifest(text: bytes, path: str | os.PathLike[str]) -> JsonObject:
    if not any(names_kind(text, kind) for kind in KINDS):
        for name in plugins.points(plugins.KINDS):
            kind_of(name)
    manifest = _parse(text, {name: kind.bound for name, kind in KINDS.items()}, path)
    if manifest is None:
        raise FileError(f"{path}: the manifest is damaged: get the file again from its source")
    protocol = manifest.get("protocol")
    if not isinstance(protocol, int) or isinstance(protocol, bool) or protocol < 1:
        raise FileError(f"{path}: the manifest does not name a protocol: get the file again")
    if protocol > PROTOCOL:
        raise FileError(
            f"{path}: written with protocol {protocol}, but this version reads up to {PROTOCOL}: "
            "upgrade with pip install -U hushtable"
        )
    try:
        intact = manifest.get("digest") == digest(manifest)
    except (ValueError, RecursionError):  # no canonical form: half a character
        intact = False
    if not intact:
        raise FileError(f"{path}: the manifest was edited after the file was written: get it again")
    kind = manifest.get("kind")
    name = kind if isinstance(kind, str) else ""
    if name in _HIDDEN or "layout" in manifest:
        raise FileError(f"{path}: {NO_HIDDEN}")
    known = kind_of(name) is not None
    if not known and name in _OF_FEDERATION:
        raise FileError(f"{path}: {plugins.missing(f'a file of kind {name!r}', 'federation')}")
    if not known or type(manifest.get("arrays")) is not dict:
        kinds = ", ".join(sorted({*KINDS, *plugins.points(plugins.KINDS)}))
        raise FileError(f"{path}: kind {kind!r} is not among {kinds}")
    return manifest


def array_digests(arrays: Arrays) -> JsonObject:
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
