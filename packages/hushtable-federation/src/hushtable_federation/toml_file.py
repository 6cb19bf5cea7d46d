"""TOML files that people write, checked entry by entry; each error names the line."""

import os
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushtable.errors import FileError

#: A check whether a value has a type, and the type in words.
Kind = tuple[Callable[[Any], bool], str]


def is_texts(value: Any) -> bool:
    """Return whether this is a list of texts."""
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


#: Checked by the caller.
ANY: Kind = (lambda value: True, "anything")
SWITCH: Kind = (lambda value: isinstance(value, bool), "true or false")
TABLE: Kind = (lambda value: isinstance(value, dict), "a table")
TEXT: Kind = (lambda value: isinstance(value, str) and bool(value), "a text")


@dataclass(frozen=True)
class TomlFile:
    """Entries of a file, and its text, to find the line of an entry for errors."""

    path: Path
    text: str
    entries: dict[str, Any]

    @classmethod
    def read(cls, path: str | os.PathLike[str], remedy: str) -> "TomlFile":
        """Read a file; ``remedy`` states what to do if that fails. Raise `FileError`."""
        try:
            return cls.parsed(path, Path(path).read_bytes())
        except OSError as error:
            raise FileError(f"{path}: {error.strerror}: {remedy}") from None

    @classmethod
    def parsed(cls, path: str | os.PathLike[str], content: bytes) -> "TomlFile":
        """Return the entries in a file's bytes; raise `FileError` if they cannot be read."""
        try:
            text = content.decode()
            return cls(Path(path), text, tomllib.loads(text))
        except (ValueError, RecursionError) as error:  # it names the line
            raise FileError(f"{path}: this is not a TOML file: {error}") from None

    def error(self, name: str, words: str, table: str = "") -> FileError:
        """Return an error that names the line of an entry, of a table or of the file itself."""
        inside = not table
        for number, line in enumerate(self.text.splitlines(), start=1):
            if inside and re.match(rf"""\s*\[*["']?{re.escape(name)}["']?\s*[]=.]""", line):
                return FileError(f"{self.path}, line {number}: {words}")
            if table and line.lstrip().startswith("["):
                inside = line.strip().startswith(f"[{table}]")
        return FileError(f"{self.path}: {words}")

    def check(
        self, kinds: Mapping[str, Kind], needed: Collection[str] = (), table: str = ""
    ) -> dict[str, Any]:
        """Return the entries of a table, or of the file itself, after checking names and types.

        Raise `FileError` if one is not valid, or if a ``needed`` one is missing.
        """
        entries = self.entries.get(table, {}) if table else self.entries
        where = f"[{table}] " if table else ""
        if not isinstance(entries, dict):
            raise self.error(table, f"{where}is {entries!r:.80}: needs a table")
        for name, value in entries.items():
            if name not in kinds:
                words = (
                    f"{where}unknown entry {name!r}, misspelt or from a newer version: known "
                    "entries are "
                )
                raise self.error(name, words + ", ".join(sorted(kinds)), table)
            fits, kind = kinds[name]
            if not fits(value):
                words = f"{where}{name} is {value!r:.80}: needs {kind}"
                raise self.error(name, words, table)
        for name in sorted(set(needed) - set(entries)):
            words = f"{where or 'it '}lacks {name}: needs {', '.join(sorted(needed))}"
            raise self.error(table or name, words)
        return dict(entries)
