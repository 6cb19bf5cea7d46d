"""``hushtable review``: review the lowest rows, and let the model learn from verdicts."""

import contextlib
import getpass
import glob
import os
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from hushtable.cli.errors import written
from hushtable.cli.options import READS, Data, KeptColumns, ModelFile, ModelReads, option
from hushtable.cli.result import (
    Block,
    CommandResult,
    Facts,
    Paragraph,
    Target,
    TextTable,
    count,
    for_machines,
    show,
    shown,
)
from hushtable.counts.verdicts import FINE, OUTLIER
from hushtable.data.readers import paths
from hushtable.detectors.load import learned_detector, open_model
from hushtable.errors import UsageError
from hushtable.far import is_url
from hushtable.progress import watched
from hushtable.scores.finding import Finding
from hushtable.scores.outliers import rounded_down
from hushtable.scores.review import Review
from hushtable.scores.rules import rules_path
from hushtable.scores.verdict_log import SKIP, VerdictLog

_KEYS = {"o": OUTLIER, "f": FINE, "s": SKIP}
_HELP = """\
o outlier    f fine    s skip, no verdict    (o 17: for row 17, as in a list)
u undo       n TEXT    a note, with the next answer
r rescan     score all rows again; otherwise, only the lowest are
k known      do not list this row again: a rule next to the model
q quit       the same command continues from here"""
#: Replies to keys that do nothing; `_HELP` is the reply to all others.
_REPLIES = {
    "u": "There is no answer to undo.",
    "i": "i, a rule for values that do not matter, no longer exists: answer f (fine), which the "
    "model learns",
    "l": "l, a list of rows that differ, no longer exists: hushtable score --top lists rows, and "
    "o 17 judges row 17",
}
_PROMPT = "o outlier, f fine, s skip, u undo, n note, q quit, ? help > "
#: Number of columns to show of a row, reasons first.
_MOST = 25


def _talk(review: Review, n: int, log: Path) -> None:
    if last := len(review.last()):
        again = f" {review.n_known} of them are in the model." if review.n_known else ""
        print(f"Continuing from {log}: {count(last, 'answer')}.{again}")
    print(f"Scored {count(review.n_rows, 'row')}. Answer o, f or s and Enter; ? shows help.")
    answered, note = 0, ""
    row = _shown_next(review)
    while row is not None and answered < n:
        try:
            typed = input(_PROMPT)
        except EOFError:
            print()
            return
        if not sys.stdin.isatty():
            print(typed)  # as a terminal would have shown it
        key, _, rest = typed.strip().partition(" ")
        if key == "q":
            return
        try:
            if key in _KEYS:
                if rest and not rest.strip().isdecimal():
                    raise UsageError(f"{key} {rest}: type {key} alone, or with the number of a row")
                judged = review.of_row(int(rest)) if rest else row
                review.answer(judged, _KEYS[key], note)
                answered, note = answered + 1, ""
                row = _shown_next(review) if answered < n else None
            elif key == "n":
                note = rest.strip()
                noted = f"Will be noted with the next answer: {shown(note)}"
                print(noted if note else "No note.")
            elif key == "u" and (gone := review.undo()) is not None:
                print(f"Undone: row {gone.row} was {gone.verdict}.")
                answered, row = max(0, answered - 1), _shown_next(review)
            elif key in ("r", "k"):
                _sort_again(review, row, key)
                row = _shown_next(review)
            else:
                print(_REPLIES.get(key, _HELP))
        except UsageError as error:
            print(f"{error}")


def _sort_again(review: Review, row: Finding, key: str) -> None:
    if key == "k":
        rule = review.add_known(row)
        words = ", ".join(f"{name} = {text}" for name, text in rule.items())
        print(f"Added to {review.rules}: {words}.")
    else:
        start = time.perf_counter()
        review.rescan()
        print(f"Scored {review.n_rows:,} rows in {time.perf_counter() - start:.1f} s.")


def _shown_next(review: Review) -> Finding | None:
    row = review.next()
    if row is None:
        print("No row is left to review.")
        return None
    counts = review.found()
    print(
        f"\nRow {row.row}, score {row.score:.4f}, severity {rounded_down(row.severity)}. So far "
        f"{count(counts['outliers'], 'outlier')} in {count(counts['looked_at'], 'reviewed row')}.\n"
    )
    lines = [[shown(name), shown(text), "", ""] for name, text in row.kept.items()]
    values = [(name, phrase) for name, phrase in row.values.items() if name not in row.kept]
    lines += [
        [shown(name), shown(phrase.text), shown(phrase.usual), phrase.direction]
        for name, phrase in values[: _MOST - len(lines)]
    ]
    show(TextTable(["column", "value", "usual", ""], lines, left=4))
    if (more := len(row.kept) + len(values) - len(lines)) > 0:
        print(f"... and {count(more, 'column')} more")
    print()
    print(textwrap.fill(f"Why: {shown(row.words)}.", 80))
    return row


@dataclass(frozen=True)
class Session:
    """Who reviews how many rows, and where the answers go."""

    log: Annotated[
        Path | None,
        option(
            "FILE",
            "Log of all answers, used to continue a review; default: ROWS.verdicts.csv in this "
            "folder.",
        ),
    ] = None
    who: Annotated[
        str | None, option("NAME", "Name of the reviewer; default: the name of this account.")
    ] = None
    n: Annotated[int, option("N", "Number of rows to review now.", "--n", "-n", min=1)] = 60


def review(
    data: Data,
    model: ModelFile,
    output: Annotated[
        Path | None,
        option("FILE", "Write the model with the verdicts at the end.", "--output", "-o"),
    ] = None,
    reads: ModelReads = READS,
    *,
    session: Session,
    columns: KeptColumns,
) -> CommandResult:
    """Review the lowest rows in turn; each verdict updates the scores.

    Shows the row with the lowest score, with its values, reasons and usual values. Answer with o
    (outlier), f (fine), s (skip) or u (undo), and Enter. Rows like confirmed outliers then score
    lower, and rows like fine ones score higher. Every answer is saved to the log at once; the same
    command continues from there. -o writes the model with all verdicts, however the review ends.
    The log and the model describe rows: keep them where the rows are.

    Example:
      hushtable review patients.csv --model model.hush --id "Patient ID" -o learned.hush
    """
    id_, kept = columns.beside(reads)
    kept = list(dict.fromkeys(kept))
    path = _log_of(data, session.log)
    target = None if output is None else Target(output, [data, model, path])
    scorer, _, reading, usual = open_model(model, id_)
    ruled = [] if scorer.rules is None else scorer.rules.columns
    read = list(dict.fromkeys([*kept, *ruled]))
    reader = reads.open_as(data, scorer.plan.schema, reading, read)
    who = session.who or ""
    with contextlib.suppress(KeyError, OSError, ImportError):  # for an account without a name
        who = who or getpass.getuser()
    asked = VerdictLog(path, scorer.plan.first_pass().plan_id, who)
    with asked.held():
        written.append(str(path))
        with watched(reader) as watch:
            made = Review(
                scorer, watch.reader, keep=kept, usual=usual, n_jobs=-1, log=asked, id_=id_,
                rules=None if is_url(str(model)) else rules_path(model),
            )  # fmt: skip
        try:
            # Where machines read stdout, everything else goes to stderr.
            aside = contextlib.redirect_stdout(sys.stderr)
            with aside if for_machines() else contextlib.nullcontext():
                _talk(made, session.n, path)
        finally:
            if target is not None:
                target.save(learned_detector(model, made.verdicts))
    facts: dict[str, object] = {"command": "review", "log": str(path)}
    facts |= {"model": None if output is None else str(output), "rows": made.n_rows}
    facts |= {**made.found(), "verdicts": made.verdicts.n_rows, "plan_id": made.verdicts.plan_id}
    return CommandResult(facts, _blocks(facts, path, target))


def _log_of(data: str, log: Path | None) -> Path:
    if data == "-":
        raise UsageError(
            "rows cannot come from standard input, which takes the answers: give a file"
        )
    if log is None:
        if "://" in data:
            raise UsageError("rows from elsewhere have no name here: give --log FILE")
        log = Path(f"{Path(data).name}.verdicts.csv")
    if os.path.isfile(data) and log.exists() and os.path.samefile(data, log):
        raise UsageError(f"{log} is both the rows and the log: give a different --log")
    several = os.path.isdir(data) or glob.has_magic(data)
    if several and log.resolve().parent in {path.resolve().parent for path in paths(data)}:
        raise UsageError(f"{log} would lie among the rows: give --log in another folder")
    return log


def _blocks(facts: Facts, path: Path, target: Target | None) -> Iterator[Block]:
    looked, outliers = facts["looked_at"], facts["outliers"]
    yield (
        f"\nReviewed {count(looked, 'row')}: {count(outliers, 'outlier')}, {facts['fine']:,} fine."
    )
    if outliers:
        alone = facts["by_score_alone"]
        lowest = "lowest row" if looked == 1 else f"{looked:,} lowest rows"
        yield Paragraph([
            f"By score alone, the {lowest} would have held {alone:,} of these outliers.",
        ])  # fmt: skip
    yield f"All answers are in {path}."
    if target is None:
        yield "No model was written: use -o FILE to write one, also later from this log."
    else:
        yield f"Wrote {target}. It contains verdicts on rows: keep it where the rows are."
