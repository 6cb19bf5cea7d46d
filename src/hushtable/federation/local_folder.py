"""A folder of this machine, or one that it mounts, in which parties leave files for each other."""

import contextlib
import hashlib
import os
import re
from pathlib import Path
from typing import NamedTuple

from hushtable import files
from hushtable.errors import FileError

_FORM = re.compile(r"([0-9a-f]{16})\.([a-z][a-z0-9-]{0,23})\.(.+)\.([0-9a-f]{16})\.hush")


class Name(NamedTuple):
    """The claims of a file's name: nothing that anybody signed."""

    round_id16: str
    step: str
    sender: str
    digest16: str


def name_of(round_id: str, step: str, sender: str, content: bytes) -> str:
    """Return the name of a file: whose it is, in which step, and a digest of all that it holds."""
    return f"{round_id[:16]}.{step}.{sender}.{hashlib.sha256(content).hexdigest()[:16]}.hush"


def parsed(name: str) -> Name | None:
    """Return what the name of a file claims; None if it is no such name."""
    found = _FORM.fullmatch(name)
    return Name(*found.groups()) if found else None


class LocalFolder:
    """Files by name; ``where`` names the folder in messages."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self.where = str(folder)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> "LocalFolder":
        """Take a folder that is there; raises `FileError` otherwise."""
        if not os.path.isdir(folder):
            raise FileError(f"there is no folder {os.fspath(folder)!a:.200}: make it first")
        return cls(folder)

    def names(self) -> list[str]:
        """Return the names of its files, sorted, without hidden ones."""
        with os.scandir(self._folder) as found:
            return sorted(f.name for f in found if not f.name.startswith(".") and f.is_file())

    def read(self, name: str, most: int) -> bytes | None:
        """Return a file's content; None if it is gone, cut off, or has more than so many bytes."""
        with contextlib.suppress(FileNotFoundError), open(self._folder / name, "rb") as file:
            content = file.read(most + 1)
            claims = parsed(name)
            if len(content) <= most and claims and name == name_of(*claims[:3], content):
                return content
        return None

    def add(self, name: str, content: bytes) -> bool:
        """Write a file, whole or not at all; return False if it is there with this content."""
        if self.read(name, len(content)) == content:
            return False
        files.write_bytes(self._folder / name, content, private=False)
        return True
