"""The open folder of a desk: its tables, models, and logs, and nothing outside it."""

import hashlib
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushtable.errors import FileError, HushTableError, UsageError, explain
from hushtable.files import replacing
from hushtable_desk.language import _

#: Endings of files that hold tables, of models, and of logs of verdicts.
TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".jsonl", ".ndjson", ".feather", ".arrow",
          ".ipc", ".xlsx", ".xlsm", ".xls", ".ods", ".json", ".geojson", ".zip", ".gz", ".bz2",
          ".zst", ".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt", ".db", ".sqlite",
          ".sqlite3", ".duckdb")  # fmt: skip
MODEL, LOG = ".hush", ".verdicts.csv"
#: The file in which a desk keeps its settings for a folder, and their parts: by table, how it is
#: read and its model, and the last visit to it.
STATE, _PARTS = ".hushtable-desk.json", ("tables", "visits")


@dataclass(frozen=True)
class FolderFile:
    """A file of the folder."""

    name: str
    size: int
    changed: float

    @property
    def key(self) -> str:
        """The key that replaces the name in an address."""
        return key_of(self.name)


def as_known(error: HushTableError | OSError) -> HushTableError:
    """Return an error with words for a person: of the system, which file it refused, and why."""
    if isinstance(error, HushTableError):
        return error
    return FileError(f"cannot read or write {error.filename or 'a file'}: {explain(error)}")


def key_of(name: str) -> str:
    """Return the key that replaces a file's name in an address."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]


class Folder:
    """A folder and the files directly in it."""

    def __init__(self, path: Path) -> None:
        self.path, self._writing = path.resolve(), threading.Lock()
        if not self.path.is_dir():
            raise UsageError(f"{path}: there is no such folder")
        if not os.access(self.path, os.R_OK | os.X_OK):
            raise FileError(
                f"{path}: this account is not allowed to read the folder: open another one"
            )

    @property
    def writable(self) -> bool:
        """Whether verdicts and models can be written here."""
        return os.access(self.path, os.W_OK)

    def files(self, *endings: str) -> list[FolderFile]:
        """Return the files whose names have these endings, the newest first."""
        entries = [entry for entry in self._all() if entry.name.lower().endswith(endings)]
        return sorted(entries, key=lambda entry: (-entry.changed, entry.name))

    @property
    def tables(self) -> list[FolderFile]:
        """The files that hold tables."""
        return [entry for entry in self.files(*TABLES) if not entry.name.endswith(LOG)]

    @property
    def models(self) -> list[FolderFile]:
        """The .hush files."""
        return self.files(MODEL)

    @property
    def logs(self) -> list[FolderFile]:
        """The logs of verdicts."""
        return self.files(LOG)

    def _all(self) -> Iterator[FolderFile]:
        with os.scandir(self.path) as entries:
            for item in entries:
                try:
                    if not item.name.startswith(".") and item.is_file() and self._inside(item.name):
                        yield FolderFile(item.name, item.stat().st_size, item.stat().st_mtime)
                except OSError:  # deleted in the meantime, or not readable
                    continue

    def _inside(self, name: str) -> bool:
        return (self.path / name).resolve().parent == self.path

    def file(self, name: str) -> Path:
        """Return the path of a file directly in the folder.

        Raises `UsageError` for any other name, for a hidden file, such as the desk's own settings,
        and for a link that leads out of the folder.
        """
        plain = name and not name.startswith(".") and not set(name) & {"/", "\\", "\0"}
        if not plain or not self._inside(name):
            raise UsageError("this is not a file of the open folder")
        return self.path / name

    def by_key(self, key: str) -> FolderFile | None:
        """Return the file for a key in an address; None if it no longer exists."""
        return next((entry for entry in self._all() if entry.key == key), None)

    def new_name(self, name: str) -> str:
        """Return a name for a dropped file, which is different if the name is taken."""
        stem, dot, ending = name.rpartition(".")
        tried, k = name, 1
        while (self.path / tried).exists():
            k += 1
            tried = f"{stem} {k}{dot}{ending}" if stem else f"{name} {k}"
        return tried

    # --- what is remembered -----------------------------------------------------------------------

    def remembered(self, part: str, table: str) -> dict[str, Any]:
        """Return the entries about a table that `remember` kept in a part of the settings.

        Raises `FileError` if the settings cannot be read: an empty answer would let the next
        decision replace them.
        """
        return self._settings()[part].get(table, {})

    def remember(self, part: str, table: str, **entries: Any) -> None:
        """Keep entries for the next visit, only for this account: settings of tables, no rows."""
        with self._writing:
            content = self._settings()
            content[part][table] = content[part].get(table, {}) | entries
            with replacing(self.path / STATE, private=True) as file:
                file.write(json.dumps(content, indent=1).encode())

    def _settings(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return all parts, and any other entries, which a later version may need."""
        try:
            content = json.loads((self.path / STATE).read_text(encoding="utf-8"))
            parts = {p: {n: {**item} for n, item in content.get(p, {}).items()} for p in _PARTS}
            return {**content, **parts}
        except FileNotFoundError:
            return {part: {} for part in _PARTS}
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise FileError(
                _("the settings in %(file)s cannot be read: put an earlier copy of this file in "
                  "its place, or delete it to begin again", file=STATE)
            ) from error  # fmt: skip
