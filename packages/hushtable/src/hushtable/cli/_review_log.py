"""The log of a review: a line of CSV for each answer, which is never changed.

One process at a time holds it. Each line is on the disk before the answer counts.
"""

import contextlib
import csv
import io
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from hushtable.cli._errors import explain, notes
from hushtable.cli._formulas import harmless
from hushtable.errors import DataError, FileError
from hushtable.scores.review import ANSWERS, Answer, ReviewRow

#: Columns; ``check`` stands for the row's values under the plan.
COLUMNS = ("when", "who", "row", "id", "verdict", "note", "score", "plan_id", "check")
UNDO = "undo"
_HEAD = f"{','.join(COLUMNS)}\n"
#: Length of a plan's id and of a check, in letters.
_PLAN_ID, _CHECK = 64, 16


class Log:
    """Answers of a review, and of those before it.

    Attributes
    ----------
    answers : list of Answer
        In order, without those that were taken back.
    """

    def __init__(self, path: Path, plan_id: str, who: str) -> None:
        self.path, self._plan_id, self._who = path, plan_id, who
        self.answers: list[Answer] = []

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Read the log, or begin it, and keep other processes out."""
        with self._said():
            opened = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with open(opened, "rb+", buffering=0) as self._file:
            _lock(self._file, self.path)
            with self._said():
                text = self._file.read()
            if _HEAD.encode().startswith(text):  # new, or cut in its first line
                self._write(_HEAD[len(text) :])
            else:
                self.answers = answers_in(text, self.path, self._plan_id)
                if not text.endswith(b"\n"):
                    self._write("\n")
            yield

    def note(self, shown: ReviewRow, verdict: str, note: str, id_: str) -> None:
        """Write down an answer to a row that was shown, or that it was taken back."""
        self.add(shown.row, verdict, note, id_, f"{shown.score:.6f}", shown.check)

    def add(
        self, row: int, verdict: str, note: str = "", id_: str = "", score: str = "",
        check: str = "",
    ) -> None:  # fmt: skip
        """Write a line; it is on the disk when this returns."""
        when = datetime.now(UTC).isoformat(timespec="seconds")
        fields = [when, self._who, str(row), id_, verdict, note, score, self._plan_id, check]
        # A line of the file for each, so that a line that was cut takes no other with it.
        plain = [harmless(" ".join(field.splitlines())) for field in fields]
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(plain)
        self._write(line.getvalue())

    def _write(self, text: str) -> None:
        with self._said():
            self._file.write(text.encode())
            os.fsync(self._file.fileno())

    @contextlib.contextmanager
    def _said(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise FileError(f"cannot write {self.path}: {explain(error)}") from error


def is_log(names: Sequence[str]) -> bool:
    """Return whether a file with these columns is a log."""
    return tuple(names) == COLUMNS


def answers_in(content: bytes, path: Path, plan_id: str) -> list[Answer]:
    """Return the answers of a log that were not taken back.

    Lines that were cut are left out, and noted. Raises `DataError` if it is no log, or one of
    another plan.
    """
    head, *lines = content.decode(errors="replace").split("\n")
    if f"{head}\n".removeprefix("\ufeff") != _HEAD:
        raise DataError(
            f"{path} is no log of hushtable review: its first line is not {_HEAD.strip()}; give "
            "another --log"
        )
    answers: list[Answer] = []
    cut = []
    last = len(lines) - 1
    for k, line in enumerate(lines):
        if not line.strip():
            continue
        found = None if k == last else _fields(line)
        if found is None:
            cut.append(k + 2)
            continue
        row, verdict, note, plan, check = found
        if plan != plan_id:
            raise DataError(
                f"{path}, line {k + 2}: this verdict was given under another plan than the "
                "model's: give the model of that review, or another log"
            )
        if verdict != UNDO:
            answers.append(Answer(row, verdict, note, check))
            continue
        on_row = [j for j, one in enumerate(answers) if one.row == row]
        if on_row:
            del answers[on_row[-1]]
    if cut:
        which = ", ".join(map(str, cut[:5]))
        notes.append(f"{path}: cut short in line {which}: left out, and all others used")
    return answers


def _fields(line: str) -> tuple[int, str, str, str, str] | None:
    """Return row, verdict, note, plan id and check of a line; None if it is not whole."""
    try:
        (fields,) = csv.reader([line.rstrip("\r")], strict=True)
    except (csv.Error, ValueError):
        return None
    if len(fields) != len(COLUMNS):
        return None
    _, _, row, _, verdict, note, _, plan, check = fields
    whole = row.isdecimal() and len(row) < 19 and verdict in (*ANSWERS, UNDO)
    if not whole or len(plan) != _PLAN_ID or len(check) != _CHECK:
        return None
    return int(row), verdict, note, plan, check


def _lock(file: BinaryIO, path: Path) -> None:
    """Keep other processes out until the file is closed."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(1 << 30)  # a byte that nobody reads: others may look at the log
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            file.seek(0)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise FileError(
            f"{path}: another hushtable review has this log: wait until it has ended, or give "
            "another --log (hushtable learn takes several)"
        ) from None
