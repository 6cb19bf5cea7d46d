"""A review at a terminal: a row, an answer, the next row."""

import sys
import textwrap
import time

from hushtable.cli._learned import count
from hushtable.cli._output import print_sentences, print_table, shown
from hushtable.cli._review_log import UNDO, Log
from hushtable.errors import UsageError
from hushtable.scores.review import FINE, OUTLIER, SKIP, Review, ReviewRow

_KEYS = {"o": OUTLIER, "f": FINE, "s": SKIP}
_HELP = """\
o outlier    f fine    s skip, no verdict    (o 17: of row 17, which was listed)
u undo       n TEXT    a note, with the next answer
l list       ten low rows that are unlike each other, for a team
r rescan     score all rows again; without, the lowest ones are
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

    ``id_`` is the kept column that the log names rows by; ``n`` the rows to look at.
    """

    def __init__(self, review: Review, log: Log, id_: str | None, n: int) -> None:
        self._review, self._log, self._id, self._n = review, log, id_, n
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
        print_table(["column", "value", "usual", ""], lines, left=4)
        if (more := len(row.kept) + len(values) - len(lines)) > 0:
            print(f"... and {count(more, 'column')} more")
        print()
        print(textwrap.fill(f"Why: {shown(row.words)}.", 80))

    def _list(self) -> None:
        rows = self._review.list_of(_LISTED)
        print()
        for row in rows:
            name = f" ({shown(row.kept[self._id])})" if self._id else ""
            print_sentences([f"Row {row.row}{name}, {row.score:.4f}: {shown(row.words)}."])
        print("\nAnswer by their numbers (o 17, f 17), or go on with the row above.")


def _down(severity: float) -> str:
    """Return a severity, rounded down: 100 would say that no row is as rare."""
    return f"{int(100.0 * severity + 1e-6) / 100:.2f}"
