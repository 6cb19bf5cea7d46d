"""A folder of this machine, or one that it mounts, in which parties leave files for each other."""

import contextlib
import os
from pathlib import Path

from hushtable import files
from hushtable.errors import FileError


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
        """Return a file's content; None if it is gone, or has more than so many bytes."""
        with contextlib.suppress(FileNotFoundError), open(self._folder / name, "rb") as file:
            content = file.read(most + 1)
            return content if len(content) <= most else None
        return None

    def add(self, name: str, content: bytes) -> bool:
        """Write a file, whole or not at all; return False if it is there with this content."""
        if self.read(name, len(content)) == content:
            return False
        files.write_bytes(self._folder / name, content, private=False)
        return True
