"""The log of a review: a line for each answer, written to disk before the answer counts."""

import contextlib
import csv
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from hushtable.counts.verdicts import FINE, OUTLIER
from hushtable.data.options import notes
from hushtable.data.spreadsheets import harmless, original
from hushtable.errors import DataError, FileError, explain
from hushtable.files import lock_now
from hushtable.lazy import exports

#: An answer that is not a verdict, and all answers.
SKIP = "skip"
ANSWERS = (OUTLIER, FINE, SKIP)
#: In a log: the last answer to the row was taken back.
UNDO = "undo"
#: Columns; ``check`` is a check value of the row's values under the plan.
COLUMNS = ("when", "who", "row", "id", "verdict", "note", "score", "plan_id", "check")
_HEAD = f"{','.join(COLUMNS)}\n"
#: Length of a plan's id and of a check, in letters.
_PLAN_ID, _CHECK = 64, 16

__getattr__, _ = exports(__name__, {})  # refuses what was removed


@dataclass(frozen=True)
class Answer:
    """Someone's answer to a row.

    ``check`` is a check value of the row's values under the plan, which differs for other rows.
    ``who`` answered, and ``when`` (UTC, ISO 8601), are as recorded in the log, if they are.
    """

    row: int
    verdict: str
    note: str = ""
    check: str = ""
    who: str = ""
    when: str = ""


class LogInUseError(FileError):
    """Another review or desk has the log open."""


class VerdictLog:
    """Answers of this and earlier reviews: a CSV file that only this account may read.

    Parameters
    ----------
    path : path
        The file; it is created if necessary.
    plan_id : str
        Id of the model's plan: verdicts that were given under another plan are refused.
    who : str
        The person who answers, unless an answer names someone else.

    Attributes
    ----------
    answers : list of Answer
        In order, without those that were taken back.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hushtable.scores.verdict_log import Answer, VerdictLog
    >>> log = VerdictLog(Path("rows.csv.verdicts.csv"), "0" * 64, "Ada")
    >>> with log.held():
    ...     _ = log.add(Answer(17, "outlier", check="0" * 16))
    >>> with log.held():
    ...     [(one.row, one.verdict, one.who) for one in log.answers]
    [(17, 'outlier', 'Ada')]
    """

    def __init__(self, path: Path, plan_id: str, who: str) -> None:
        self.path, self._plan_id, self._who = path, plan_id, who
        self.answers: list[Answer] = []

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Read the log, or start it, and keep other processes out."""
        try:
            opened = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise FileError(f"cannot write {self.path}: {explain(error)}") from error
        with open(opened, "rb+", buffering=0) as self._file:
            _lock(self._file, self.path)
            text = self._file.read()
            if _HEAD.encode().startswith(text):  # new, or truncated in its first line
                self._write(_HEAD[len(text) :])
            else:
                self.answers = answers_in(text, self.path, self._plan_id)
                if not text.endswith(b"\n"):
                    self._write("\n")
            yield

    def add(self, answer: Answer, id_: str = "", score: float | None = None) -> Answer:
        """Write an answer to the log, and return it as written; it is then on disk.

        ``id_`` names the row, and ``score`` is the score that it had. The verdict may be `UNDO`.
        """
        when = datetime.now(UTC).isoformat(timespec="seconds")
        added = replace(answer, who=answer.who or self._who, when=when)
        scored = "" if score is None else f"{score:.6f}"
        fields = [
            when, added.who, str(added.row), id_, added.verdict, added.note, scored, self._plan_id,
            added.check,
        ]  # fmt: skip
        # One line each, so that a truncated line does not damage another.
        plain = [harmless(" ".join(field.splitlines())) for field in fields]
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(plain)
        self._write(line.getvalue())
        return added

    def _write(self, text: str) -> None:
        end, rest = self._file.seek(0, os.SEEK_END), text.encode()
        try:
            while rest:  # a disk that is nearly full takes a part, without an error
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(end)  # so that the next line is not written after a part of one
            raise FileError(f"cannot write {self.path}: {explain(error)}") from error


def is_log(names: Sequence[str]) -> bool:
    """Return whether a file with these columns is a log."""
    return tuple(names) == COLUMNS


def plan_of_log(path: Path) -> str | None:
    """Return the id of the plan under which a log's verdicts were given; None if it has none."""
    try:
        lines = path.read_bytes().decode(errors="replace").split("\n")[1:-1]
    except FileNotFoundError:
        return None
    return next((fields[1] for line in lines if (fields := _fields(line)) is not None), None)


def answers_in(content: bytes, path: Path, plan_id: str) -> list[Answer]:
    """Return the answers in a log that were not taken back.

    Truncated lines are left out, and noted. Raises `DataError` if it is not a log, or belongs to
    another plan.
    """
    head, *lines = content.decode(errors="replace").split("\n")
    if f"{head}\n".removeprefix("\ufeff") != _HEAD:
        raise DataError(
            f"{path} is not a log of hushtable review: its first line is not {_HEAD.strip()}: "
            "rename it, or give another log (--log)"
        )
    answers: list[Answer] = []
    cut = []
    last = len(lines) - 1
    for k, line in enumerate(lines):
        if not line.strip():
            continue
        fields = None if k == last else _fields(line)
        if fields is None:
            cut.append(k + 2)
            continue
        answer, plan = fields
        if plan != plan_id:
            raise DataError(
                f"{path}, line {k + 2}: this verdict was given under another plan than the "
                "model's: give the model of that review, or another log"
            )
        if answer.verdict != UNDO:
            answers.append(answer)
            continue
        on_row = [j for j, earlier in enumerate(answers) if earlier.row == answer.row]
        if on_row:
            del answers[on_row[-1]]
    if cut:
        which = ", ".join(map(str, cut[:5]))
        notes.append(
            f"{path}: truncated in line {which}: this was left out, and all other lines were used"
        )
    return answers


def _fields(line: str) -> tuple[Answer, str] | None:
    try:
        (fields,) = csv.reader([line.rstrip("\r")], strict=True)
    except (csv.Error, ValueError):
        return None
    if len(fields) != len(COLUMNS):
        return None
    when, who, row, _, verdict, note, _, plan, check = fields
    whole = row.isdecimal() and len(row) < 19 and verdict in (*ANSWERS, UNDO)
    if not whole or len(plan) != _PLAN_ID or len(check) != _CHECK:
        return None
    return Answer(int(row), verdict, original(note), check, original(who), when), plan


def _lock(file: BinaryIO, path: Path) -> None:
    try:
        file.seek(1 << 30)  # an unused byte, so that others may read the log
        lock_now(file.fileno())
        file.seek(0)
    except OSError:
        raise LogInUseError(
            f"{path}: another hushtable review or desk uses this log: wait until it has ended, or "
            "give another log (--log; hushtable learn takes several)"
        ) from None
