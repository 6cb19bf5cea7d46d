"""``hushtable review``: look at the lowest rows in turn, and let the model learn from verdicts."""

import contextlib
import csv
import getpass
import glob
import io
import os
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from hushtable.cli.counts import save_learned
from hushtable.cli.errors import written
from hushtable.cli.options import Data, ModelFile, Threads, option
from hushtable.cli.output import Target, count, shown
from hushtable.cli.progress import watched
from hushtable.cli.result import (
    Block,
    CommandResult,
    Paragraph,
    TextTable,
    for_machines,
    show,
)
from hushtable.cli.rows import READS, Reads
from hushtable.cli.score import open_model
from hushtable.cli.tables import harmless
from hushtable.data.options import notes
from hushtable.data.readers import paths
from hushtable.errors import DataError, FileError, UsageError, explain
from hushtable.far import is_url
from hushtable.scores.review import ANSWERS, FINE, OUTLIER, SKIP, Answer, Review, ReviewRow
from hushtable.scores.rules import Rules, add_rule, rules_path
from hushtable.scores.usual import Usual

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


_KEYS = {"o": OUTLIER, "f": FINE, "s": SKIP}
_HELP = """\
o outlier    f fine    s skip, no verdict    (o 17: of row 17, which was listed)
u undo       n TEXT    a note, with the next answer
l list       ten low rows that are unlike each other, for a team
r rescan     score all rows again; without, the lowest ones are
k known      list this row no more: a rule beside the model
i ignore     values on this side of the first column (or i NAME): a rule
q quit       the same command goes on from here"""
_PROMPT = "o outlier, f fine, s skip, u undo, n note, l list, q quit, ? help > "
#: Columns of a row that are shown, reasons first, and rows of a list.
_MOST, _LISTED = 25, 10


def _typed(prompt: str) -> str:
    """Ask for a line; what comes from a file or pipe is printed, as a terminal would have."""
    said = input(prompt)
    if not sys.stdin.isatty():
        print(said)
    return said


class Session:
    """Asks for answers to rows, and learns each at once.

    ``id_`` is the kept column that the log names rows by; ``n`` the rows to look at. ``rules`` is
    the file of the owner's rules, and ``usual`` what the model knows of usual values.
    """

    def __init__(
        self,
        review: Review,
        log: Log,
        id_: str | None,
        n: int,
        rules: Path | None,
        usual: Usual | None,
    ) -> None:
        self._review, self._log, self._id, self._n = review, log, id_, n
        self._rules, self._usual = rules, usual
        self._looked, self._note = 0, ""
        self._quit = False

    def run(self) -> None:
        """Show rows and take answers until there are enough, or no more, or no row is left."""
        row = self._next()
        while row is not None and self._looked < self._n and not self._quit:
            try:
                said = _typed(_PROMPT).strip()
            except EOFError:
                print()
                return
            try:
                row = self._take(said, row)
            except UsageError as error:
                print(f"{error}")

    def _take(self, said: str, row: ReviewRow) -> ReviewRow | None:
        """Do what was typed; return the row to look at then."""
        key, _, rest = said.partition(" ")
        if (verdict := _KEYS.get(key)) is not None:
            if rest and not rest.strip().isdecimal():
                raise UsageError(f"{said}: needs {key} alone, or the number of a row that is shown")
            return self._answer(self._review.of_row(int(rest)) if rest else row, verdict)
        if key == "u":
            return self._undo(row)
        if key == "n":
            self._note = rest.strip()
            print(f"Noted with the next answer: {shown(self._note)}" if rest else "No note.")
        elif key == "l":
            self._list()
        elif key == "r":
            start = time.perf_counter()
            self._review.rescan()
            print(f"Scored {self._review.n_rows:,} rows in {time.perf_counter() - start:.1f} s.")
            return self._next()
        elif key in ("k", "i"):
            return self._rule(row, key, rest.strip())
        elif key == "q":
            self._quit = True
        else:
            print(_HELP)
        return row

    def _answer(self, row: ReviewRow, verdict: str) -> ReviewRow | None:
        self._log.note(row, verdict, self._note, row.kept.get(self._id or "", ""))
        self._review.answer(row, verdict, self._note)
        self._note = ""
        self._looked += 1
        return self._next() if self._looked < self._n else None

    def _rule(self, row: ReviewRow, key: str, column: str) -> ReviewRow | None:
        """Add a rule of the owner, and score all rows by it."""
        if self._rules is None:
            raise UsageError("rules are kept beside a model on this machine: copy it")
        schema = self._review.scorer.plan.schema
        usual = None if self._usual is None else self._usual.values
        if key == "k":
            if not self._id:
                raise UsageError("k: needs --id NAME, the column that names rows")
            said: dict[str, Any] = {self._id: row.kept[self._id]}
            add_rule(self._rules, "known", said, schema, usual)
        else:
            column = column or next(iter(row.values))
            said = {"name": column, "only": _other_side(row, column)}
            add_rule(self._rules, "column", said, schema, usual)
        self._review.use(Rules.read(self._rules, schema, usual))
        print(f"Added to {self._rules}: {', '.join(f'{k} = {v}' for k, v in said.items())}.")
        return self._next()

    def _undo(self, row: ReviewRow) -> ReviewRow | None:
        if not self._review.answers:
            print("There is no answer to take back.")
            return row
        gone = self._review.answers[-1]
        self._log.add(gone.row, UNDO, check=gone.check)
        self._review.undo()
        self._looked = max(0, self._looked - 1)
        print(f"Taken back: row {gone.row} was {gone.verdict}.")
        return self._next()

    def _next(self) -> ReviewRow | None:
        row = self._review.next()
        if row is None:
            print("No row is left to look at.")
        else:
            self._print(row)
        return row

    def _print(self, row: ReviewRow) -> None:
        found = self._review.found()
        print(
            f"\nRow {row.row}, score {row.score:.4f}, severity {_down(row.severity)}. So far "
            f"{count(found['outliers'], 'outlier')} in {found['looked_at']:,} looked at.\n"
        )
        lines = [[shown(name), shown(value), "", ""] for name, value in row.kept.items()]
        values = [(name, one) for name, one in row.values.items() if name not in row.kept]
        lines += [
            [shown(name), shown(one.text), shown(one.usual), one.direction]
            for name, one in values[: _MOST - len(lines)]
        ]
        show(TextTable(["column", "value", "usual", ""], lines, left=4))
        if (more := len(row.kept) + len(values) - len(lines)) > 0:
            print(f"... and {count(more, 'column')} more")
        print()
        print(textwrap.fill(f"Why: {shown(row.words)}.", 80))

    def _list(self) -> None:
        rows = self._review.list_of(_LISTED)
        print()
        for row in rows:
            name = f" ({shown(row.kept[self._id])})" if self._id else ""
            show(Paragraph([f"Row {row.row}{name}, {row.score:.4f}: {shown(row.words)}."]))
        print("\nAnswer by their numbers (o 17, f 17), or go on with the row above.")


def _other_side(row: ReviewRow, column: str) -> str:
    """Return on which side values are of interest, where a row's value is not."""
    phrase = row.values.get(column)
    if phrase is None or phrase.direction not in ("high", "low"):
        raise UsageError(f"i {column}: needs a column whose value is high or low here")
    return "low" if phrase.direction == "high" else "high"


def _down(severity: float) -> str:
    """Return a severity, rounded down: 100 would say that no row is as rare."""
    return f"{int(100.0 * severity + 1e-6) / 100:.2f}"


_Log = Annotated[
    Path | None,
    option(
        "FILE", "Log of all answers, to go on with; ROWS.verdicts.csv in this folder if left out."
    ),
]
_Id = Annotated[
    str | None, option("NAME", "Column that names rows: shown, and in the log.", "--id")
]
_Keep = Annotated[str | None, option("A,B,...", "Show these columns of the rows, too.")]
_Who = Annotated[str | None, option("NAME", "Who answers; the name of this account if left out.")]
_N = Annotated[int, option("N", "Rows to look at now.", "--n", "-n", min=1)]
_Output = Annotated[
    Path | None, option("FILE", "Model with the verdicts, to write at the end.", "--output", "-o")
]


def review(
    data: Data,
    model: ModelFile,
    output: _Output = None,
    log: _Log = None,
    id_: _Id = None,
    keep: _Keep = None,
    who: _Who = None,
    n: _N = 60,
    threads: Threads = -1,
    reads: Reads = READS,
) -> CommandResult:
    """Look at the lowest rows in turn; each verdict moves the rest.

    Shows the row with the lowest score, with values, reasons, and what is usual, and takes an
    answer: o (outlier), f (fine), s (skip), u (undo), and Enter. Rows like confirmed outliers then
    score lower, and rows like those that are fine higher. Every answer is in the log at once; the
    same command goes on from there. -o writes the model with all verdicts, however the review
    ends. Log and model describe rows: keep them where the rows are.

    Example:
      hushtable review patients.csv --model model.hush --id "Patient ID" -o learned.hush
    """
    id_, kept = reads.beside(id_, keep)
    kept = list(dict.fromkeys(kept))
    path = _log_of(data, log)
    target = None if output is None else Target(output, [data, model, path])
    scorer, _, reading, usual = open_model(model, id_)
    ruled = [] if scorer.rules is None else scorer.rules.columns
    columns = list(dict.fromkeys([*kept, *ruled]))
    reader = reads.open_as(data, scorer.plan.schema, reading, columns)
    asked = Log(path, scorer.plan.first_pass().plan_id, who or _account())
    with asked.held():
        written.append(str(path))
        with watched(reader) as watch:
            found = Review(
                scorer, watch.reader, keep=kept, usual=usual, answers=asked.answers, n_jobs=threads
            )
        try:
            rules = None if is_url(str(model)) else rules_path(model)
            _talk(Session(found, asked, id_, n, rules, usual), found, asked)
        finally:
            if target is not None:
                save_learned(model, found.verdicts, target)
    facts: dict[str, Any] = {"command": "review", "log": str(path)}
    facts |= {"model": None if output is None else str(output), "rows": found.n_rows}
    facts |= {**found.found(), "verdicts": found.verdicts.n_rows, "plan_id": found.verdicts.plan_id}
    return CommandResult(facts, _blocks(facts, path, target))


def _log_of(data: str, log: Path | None) -> Path:
    """Return where the log is."""
    if data == "-":
        raise UsageError("rows on standard input, which takes the answers: give a file")
    if log is None:
        if "://" in data:
            raise UsageError("give --log FILE: rows that come from elsewhere have no name here")
        log = Path(f"{Path(data).name}.verdicts.csv")
    if os.path.isfile(data) and log.exists() and os.path.samefile(data, log):
        raise UsageError(f"{log} is both the rows and the log: give another --log")
    several = os.path.isdir(data) or glob.has_magic(data)
    if several and log.resolve().parent in {one.resolve().parent for one in paths(data)}:
        raise UsageError(f"{log} would lie among the rows: give --log in another folder")
    return log


def _account() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # of an account without a name
        return ""


def _talk(session: Session, found: Review, log: Log) -> None:
    """Take answers; where machines read stdout, all that is said goes to stderr."""
    with contextlib.redirect_stdout(sys.stderr) if for_machines() else contextlib.nullcontext():
        if last := len(found.last()):
            again = f" {found.n_known} of them are in the model." if found.n_known else ""
            print(f"Going on from {log.path}: {count(last, 'answer')}.{again}")
        print(f"Scored {count(found.n_rows, 'row')}. Answer o, f or s and Enter; ? says more.")
        session.run()


def _blocks(facts: dict[str, Any], path: Path, target: Target | None) -> Iterator[Block]:
    looked, outliers = facts["looked_at"], facts["outliers"]
    yield (
        f"\nLooked at {count(looked, 'row')}: {count(outliers, 'outlier')}, {facts['fine']:,} fine."
    )
    if outliers:
        alone = facts["by_score_alone"]
        lowest = "lowest row" if looked == 1 else f"{looked:,} lowest rows"
        yield Paragraph([
            f"By score alone, the {lowest} would have held {alone:,} of these outliers.",
        ])  # fmt: skip
    yield f"All answers are in {path}."
    if target is None:
        yield "No model was written: -o FILE writes one, also from this log."
    else:
        yield f"Wrote {target}. It holds verdicts on rows: keep it where the rows are."
