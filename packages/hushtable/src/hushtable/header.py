"""The header of a .hush file: bounded before it is parsed, so that no file takes far more memory.

May import errors alone. Tested by ``tests/test_files.py`` and
``tests/hardening/fuzz/test_bombs.py``.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import rfc8785

from hushtable.errors import FileError

#: Where safetensors has the manifest.
KEY = "hushtable"
#: Entries of a manifest that its digest does not cover.
_APART = ("digest", "signature", "writer")
#: Bytes of a manifest for each of its values, where there are more values than a kind may have in
#: any case: a value takes up to some 160 bytes of memory, an empty object of 3 bytes 72.
_PER_VALUE = 100
#: An escape that no canonical JSON has: a backslash, itself not escaped, before a u, but for the
#: control characters. Without them each byte of a text is in memory what it is in the file.
_ESCAPE = re.compile(rb"(?<!\\)(?:\\\\)*\\u(?!00[01])")


#: Canonical JSON of what holds texts alone.
_encoded = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
#: In UTF-8, the first byte of a letter that is not of Latin-1.
_WIDE = re.compile(rb"[\xc4-\xff]")


@dataclass(frozen=True)
class Bound:
    """Limits of a manifest.

    Attributes
    ----------
    size : int
        Bytes at most; an eighth of it if there are letters beyond Latin-1.
    values : int
        Values that it may have in any case, however small it is: of each, a bracket or a comma.
    """

    size: int
    values: int

    def allows(self, text: bytes) -> bool:
        """Whether a text may be parsed."""
        # Each text with such a letter takes up to four bytes of memory for each of its letters.
        most = self.size // 8 if _WIDE.search(text) else self.size
        found = sum(text.count(mark) for mark in (b",", b"[", b"{"))
        return len(text) <= most and found <= max(self.values, len(text) // _PER_VALUE)


#: Of a plan and of what carries one: 65,535 features, or half a million categories.
LARGE = Bound(64 << 20, 500_000)
#: Of a round and its result: 300 sites and 2,000 features with 20,000 categories take .6 MB.
ROUND = Bound(16 << 20, 100_000)
#: Of what a party sends in a round, and of what carries no schema.
SMALL = Bound(1 << 20, 10_000)
#: The manifest is escaped once more in the header, which lists the arrays, too.
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
    """Return the error of what is no file, or the beginning of one."""
    return FileError(f"{path}: not a .hush file, or a truncated one: get it again from its source")


def too_large(path: str | os.PathLike[str], what: str) -> FileError:
    """Return the error of what is not parsed because of its size."""
    return FileError(
        f"{path}: {what} is larger than that of any real file, or has far more values, and was not "
        "read: ask its sender for the file again, or leave it aside"
    )


def parse(
    text: bytes, bounds: Mapping[str, Bound], path: str | os.PathLike[str]
) -> dict[str, Any] | None:
    """Return what a manifest says; None if it is no JSON object.

    ``bounds`` are those of the kinds of files. Raises `FileError`, before anything is parsed, if
    the text is beyond the bound of a kind that it may be of.
    """
    # Its kind stands in the text as it is, maybe beside words that look like it.
    found = {kind for kind in bounds if names_kind(text, kind)}
    for kind in sorted(found) or [""]:
        if not bounds.get(kind, LARGE).allows(text):
            raise too_large(path, "the manifest" + (f" of a {kind}" if kind else ""))
    if _has_escapes(text):
        return None
    try:
        manifest = json.loads(text.decode("latin-1"), parse_int=_number)
        manifest = manifest if text.isascii() else _decoded(manifest)
    except (ValueError, RecursionError):
        return None
    if not isinstance(manifest, dict) or manifest.get("kind") in [*(bounds.keys() - found)]:
        return None
    return manifest


def names_kind(text: bytes, kind: str) -> bool:
    """Whether a manifest may be of a kind: it stands in the text as it is."""
    return _mark(kind) in text


@cache
def _mark(kind: str) -> bytes:
    return f'"kind":"{kind}"'.encode()


def _has_escapes(text: bytes) -> bool:
    return b"\\u" in text and _ESCAPE.search(text) is not None


def _number(text: str) -> int | float:
    # RFC 8785 writes 1e18 as 1000000000000000000, which is none of its whole numbers.
    number = int(text)
    return number if abs(number) < 1 << 53 else float(text)


def _decoded(value: Any) -> Any:
    """Return what was parsed byte by byte with its texts in UTF-8; lists change in place."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("latin-1").decode()
    if isinstance(value, dict):
        return {_decoded(key): _decoded(one) for key, one in value.items()}
    if isinstance(value, list):
        for k, one in enumerate(value):
            value[k] = _decoded(one)
    return value


def is_intact(manifest: dict[str, Any], text: bytes) -> bool:
    """Whether the digest of a manifest is that of its text, or of its canonical form."""
    said = manifest.get("digest")
    try:
        return said == _digest_as_it_stands(manifest, text) or said == digest(manifest)
    except (ValueError, RecursionError):  # what has no canonical form, such as half a character
        return False


def _digest_as_it_stands(manifest: dict[str, Any], text: bytes) -> str | None:
    """Return the digest of a canonical text without serialising it; None if it is none."""
    gaps = []
    for name in _APART:
        if name in manifest:
            entry = f',"{name}":{_encoded(manifest[name])}'.encode()
            at = text.find(entry)
            if at < 0 or text.find(entry, at + 1) >= 0:
                return None
            gaps.append((at, at + len(entry)))
    found, view, begin = hashlib.sha256(), memoryview(text), 0
    for at, end in sorted(gaps):
        found.update(view[begin:at])
        begin = max(begin, end)
    found.update(view[begin:])
    return found.hexdigest()


def digest(manifest: dict[str, Any]) -> str:
    """Return the SHA-256 of what the digest of a manifest covers."""
    covered = {key: value for key, value in manifest.items() if key not in _APART}
    return hashlib.sha256(rfc8785.dumps(covered)).hexdigest()
