"""``hushtable review``: look at the lowest rows in turn, and let the model learn from verdicts."""

import contextlib
import getpass
import glob
import os
import sys
from pathlib import Path
from typing import Annotated, Any

from hushtable.cli._errors import written
from hushtable.cli._learned import count, save_learned
from hushtable.cli._options import Data, Json, Threads, option
from hushtable.cli._output import Target, finish, print_sentences
from hushtable.cli._progress import watched
from hushtable.cli._review_log import Log
from hushtable.cli._review_session import Session
from hushtable.cli._rows import READS, Reads, names_in
from hushtable.cli.score import open_model
from hushtable.data.readers import paths
from hushtable.errors import UsageError
from hushtable.scores.review import Review

_Model = Annotated[Path, option("FILE", "Model of hushtable fit, or a merged sketch or release.")]
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
    model: _Model,
    output: _Output = None,
    log: _Log = None,
    id_: _Id = None,
    keep: _Keep = None,
    who: _Who = None,
    n: _N = 60,
    threads: Threads = -1,
    reads: Reads = READS,
    as_json: Json = False,
) -> None:
    """Look at the lowest rows in turn; each verdict moves the rest.

    Shows the row with the lowest score, with values, reasons, and what is usual, and takes an
    answer: o (outlier), f (fine), s (skip), u (undo), and Enter. Rows like confirmed outliers then
    score lower, and rows like those that are fine higher. Every answer is in the log at once; the
    same command goes on from there. -o writes the model with all verdicts, however the review
    ends. Log and model describe rows: keep them where the rows are.

    Example:
      hushtable review patients.csv --model model.hush --id "Patient ID" -o learned.hush
    """
    id_ = reads.id_or(id_)
    kept = list(dict.fromkeys([*([] if id_ is None else [id_]), *names_in(keep or "")]))
    path = _log_of(data, log)
    target = None if output is None else Target(output, [data, model, path])
    scorer, _, reading, usual = open_model(model, id_)
    reader = reads.open_as(data, scorer.plan.schema, reading, kept)
    asked = Log(path, scorer.plan.first_pass().plan_id, who or _account())
    with asked.held():
        written.append(str(path))
        with watched(reader, quiet=as_json) as watch:
            found = Review(
                scorer, watch.reader, keep=kept, usual=usual, answers=asked.answers, n_jobs=threads
            )
        try:
            _talk(found, asked, id_, n, aside=as_json)
        finally:
            if target is not None:
                save_learned(model, found.verdicts, target)
    facts: dict[str, Any] = {"command": "review", "log": str(path)}
    facts |= {"model": None if output is None else str(output), "rows": found.n_rows}
    facts |= {**found.found(), "verdicts": found.verdicts.n_rows, "plan_id": found.verdicts.plan_id}
    finish(as_json, facts, lambda: _print(facts, path, target))


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


def _talk(found: Review, log: Log, id_: str | None, n: int, *, aside: bool) -> None:
    """Take answers; with ``aside``, all that is said goes to stderr: machines read stdout."""
    with contextlib.redirect_stdout(sys.stderr) if aside else contextlib.nullcontext():
        if last := len(found.last()):
            again = f" {found.n_known} of them are in the model." if found.n_known else ""
            print(f"Going on from {log.path}: {count(last, 'answer')}.{again}")
        print(f"Scored {count(found.n_rows, 'row')}. Answer o, f or s and Enter; ? says more.")
        Session(found, log, id_, n).run()


def _print(facts: dict[str, Any], path: Path, target: Target | None) -> None:
    looked, outliers = facts["looked_at"], facts["outliers"]
    print(
        f"\nLooked at {count(looked, 'row')}: {count(outliers, 'outlier')}, {facts['fine']:,} fine."
    )
    if outliers:
        alone = facts["by_score_alone"]
        lowest = "lowest row" if looked == 1 else f"{looked:,} lowest rows"
        print_sentences([
            f"By score alone, the {lowest} would have held {alone:,} of these outliers.",
        ])  # fmt: skip
    print(f"All answers are in {path}.")
    if target is None:
        print("No model was written: -o FILE writes one, also from this log.")
    else:
        print(f"Wrote {target}. It holds verdicts on rows: keep it where the rows are.")
