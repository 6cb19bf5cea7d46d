"""Writing files safely, and texts that several commands print about them."""

import contextlib
import glob
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hushtable.cli.errors import escaped, written
from hushtable.cli.result import Block, TextTable
from hushtable.data.options import first_names
from hushtable.data.schema import Schema
from hushtable.errors import FileError, UsageError, explain, without_secrets
from hushtable.files import remove_leftovers


class Target:
    """A file to be written: refused early if it is not writable, replaced only by a complete one.

    It must not be one of ``inputs``, the files that are read.
    """

    def __init__(self, path: Path, inputs: Iterable[str | Path | None] = ()) -> None:
        self.path = path
        _check_name(path)
        if path.is_file() and any(_takes_in(name, path) for name in inputs if name is not None):
            raise UsageError(f"{path} is both read and written: give a different -o")
        if path.exists() and not path.is_file():
            what = "a folder" if path.is_dir() else "not a regular file"
            raise FileError(f"cannot write {path}: it is {what}: name a file")
        _check_folder(path.parent, f"cannot write {path}")

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Name the file if the body fails to write it; note it as written otherwise."""
        try:
            yield
        except OSError as error:
            raise FileError(
                f"cannot write {self.path}: {explain(error)} (nothing was written)"
            ) from error
        written.append(str(self.path))
        remove_leftovers(self.path.parent, glob.escape(self.path.name))

    def save(self, what: Any) -> None:
        """Write an object that has a method ``save``."""
        with self.writing():
            what.save(self.path)

    def __str__(self) -> str:
        return f"{self.path} ({size(self.path)})"


class OutputFolder:
    """A folder to be filled with files, made with the first; refused early if not writable."""

    def __init__(self, path: Path) -> None:
        self.path = path
        _check_name(path)
        self._files = 0
        self._lock = threading.Lock()
        if path.exists() and not path.is_dir():
            raise FileError(f"cannot write to {path}: it is a file: name a folder")
        _check_folder(path if path.exists() else path.parent, f"cannot write to {path}")

    def remove_leftovers(self) -> None:
        """Remove what an earlier, killed call left behind."""
        remove_leftovers(self.path, "*.scores.parquet", below=True)

    @contextlib.contextmanager
    def writing(self, path: Path) -> Iterator[None]:
        """Name a file of the folder if the body fails to write it; count it otherwise."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield
        except OSError as error:
            raise FileError(
                f"cannot write {path}: {explain(error)}; {self} (the same command continues from "
                "there)"
            ) from error
        with self._lock:
            self._files += 1
            written[:] = [str(self)]

    def __str__(self) -> str:
        return f"{count(self._files, 'file')} in {self.path}"


def _check_name(path: Path) -> None:
    """Refuse to write an address, because the password in it would be the name of a file."""
    if without_secrets(str(path)) != str(path):
        raise UsageError(f"-o {path}: this is an address with a password: name a file")


def _check_folder(folder: Path, what: str) -> None:
    """Refuse a folder in which no file can be created."""
    if not folder.is_dir():
        raise FileError(f"{what}: there is no folder {folder}: make it first")
    if not os.access(folder, os.W_OK):
        raise FileError(f"{what}: {folder} is read-only: use another folder")


def _takes_in(source: str | Path, path: Path) -> bool:
    """Whether a file is among those that a path, folder or pattern of rows names."""
    if os.path.isfile(source):
        return os.path.samefile(source, path)
    if path.suffix not in (".csv", ".parquet"):
        return False
    found: Iterable[Any] = glob.iglob(str(source), recursive=True)
    if os.path.isdir(source):
        found = Path(source).rglob("*")
    return any(os.path.samefile(name, path) for name in found if os.path.isfile(name))


def size(path: str | Path) -> str:
    """Return a file's size for people."""
    n = os.path.getsize(path)
    for unit, bytes_ in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= bytes_:
            return f"{n / bytes_:,.1f} {unit}"
    return f"{n} bytes"


def shown(name: str) -> str:
    """Return a name that may come from someone else's file, safe to print on a terminal."""
    return escaped(name, kept="")


def count(n: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def listed(names: Sequence[str], most: int = 3) -> str:
    """Return names for a sentence; of many, only the first few."""
    return shown(first_names(names, most))


def tally(schema: Schema, counts: Any) -> dict[str, dict[str, int]]:
    """Return missing and outside counts of the columns that have some."""
    names = schema.of_rows.names
    return {
        name: {"missing": int(missing), "outside": int(outside)}
        for name, (missing, outside) in zip(names, counts[: len(names)], strict=True)
        if missing or outside
    }


def tally_blocks(schema: Schema, counts: Any, n_rows: int) -> Iterator[Block]:
    """Report for each feature how many values were missing, or outside the plan."""
    found = [(n, one["missing"], one["outside"]) for n, one in tally(schema, counts).items()]
    if not found:
        yield "No values are missing or outside the plan.\n"
        return
    yield ""
    rows = [(name, f"{missing:,}", f"{outside:,}") for name, missing, outside in found]
    yield TextTable(["feature", "missing", "outside"], rows)
    yield ""
    if any(outside for _, _, outside in found):
        yield "Outside means: numbers beyond the range, or categories that are not listed.\n"
    empty = [name for name, missing, _ in found if missing == n_rows]
    if empty:
        yield f"No row has a value in {listed(empty)}: does the file have the columns of the"
        yield "plan?\n"
    doubtful = [name for name, _, outside in found if 2 * outside > n_rows]
    if doubtful:
        yield f"Most rows lie outside in {listed(doubtful)}: do the data have another unit"
        yield "than the plan, or other names for the categories?\n"
