"""``hushtable watch``: score what is new since the last call, and say whether it is unusual."""

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hushtable.cli._drifted import drift_words
from hushtable.cli._errors import written
from hushtable.cli._options import Json, Threads, argument, option
from hushtable.cli._output import Folder, Target, finish, print_sentences, print_table, shown
from hushtable.cli._rows import READS, Reads, names_in
from hushtable.cli._top import check_top, write_top
from hushtable.cli._watch_new import Files
from hushtable.cli._watch_place import Place
from hushtable.cli._watch_run import Limits, Run, facts_of, lines_of
from hushtable.data.readers import Reader
from hushtable.errors import UsageError
from hushtable.files import write_bytes

#: Exit codes: done but for files that could not be read; done, and above --fail-above.
_FAILED, _ABOVE = 1, 3

_Data = Annotated[
    str,
    argument("DATA", "Folder, or glob pattern in quotes, of files; or the URL of a database."),
]
_Model = Annotated[Path, option("FILE", "Model of hushtable fit, or a (merged) sketch or release.")]
_Output = Annotated[
    Path,
    option("FOLDER", "Folder of the summaries, and of what is done already.", "--output", "-o"),
]
_Top = Annotated[int, option("N", "List the N lowest of the new rows.", min=1)]
_Format = Annotated[
    Literal["csv", "xlsx", "html", "parquet"], typer.Option(help="Format of that list.")
]
_Id = Annotated[
    str | None,
    option("NAME", "Column that names a row; of a query, it tells which rows are new.", "--id"),
]
_Keep = Annotated[str | None, option("A,B,...", "Put these columns beside the lowest rows, too.")]
_Threshold = Annotated[
    float | None, option("SCORE", "Rows that score lower are outliers, not those of the model.")
]
_FailAbove = Annotated[
    str | None,
    option(
        "SHARE,drift",
        "Exit with code 3 if the share of outliers among the new rows is above this (2%), or "
        "their drift is above what chance explains (drift), or either (2%,drift).",
    ),
]
_Settle = Annotated[
    float, option("SECONDS", "Leave files for the next call that were just written to.", min=0.0)
]


def watch(
    data: _Data,
    model: _Model,
    output: _Output = Path("watched"),
    top: _Top = 20,
    format: _Format = "csv",
    id_: _Id = None,
    keep: _Keep = None,
    threshold: _Threshold = None,
    fail_above: _FailAbove = None,
    settle: _Settle = 5.0,
    threads: Threads = -1,
    reads: Reads = READS,
    as_json: Json = False,
) -> None:
    """Score what is new since the last call: for cron and systemd.

    New are files that came or changed; of a query, rows with an --id that the last call did not
    see. Each call adds a line to watch.jsonl. If there is something new, it writes summary.txt and
    the lowest rows (top-000001.csv). Exit codes: 0 done, 1 refused or failed (what cannot be read
    is tried again at the next call, all else is done), 2 wrong usage, 3 done and above
    --fail-above.

    Example:
      hushtable watch exports --model model.hush --id "Patient ID" --fail-above 2% -o watched
    """
    id_ = reads.id_or(id_)
    kept = [*([] if id_ is None else [id_]), *names_in(keep or "")]
    check_top(output / f"top.{format}", kept)
    limits, folder = Limits.of(fail_above), Folder(output)
    run = Run(model, reads, id_, kept, top, threshold, threads, as_json)
    run.check(limits)
    source = _source(run, data, settle, output)
    folder.path.mkdir(exist_ok=True)
    place = Place(folder.path, source.name if isinstance(source, Files) else source.source)
    with _whole() as made, place.running():
        run.score(source, place)
        facts = facts_of(run, place.run, source, limits, f"top-{place.run:06}.{format}")
        text = _text(run, facts, folder.path)
        if facts["top"]:
            made.append(folder.path / facts["top"])
            found, unit = run.search.found(), run.scorer.plan.score.unit
            write_top(Target(made[0]), found, model, source.source, unit)
        place.note_run(json.dumps(facts, allow_nan=False))
        if facts["top"] or facts["failed"]:
            summary = Target(folder.path / "summary.txt")
            with summary.writing():
                write_bytes(summary.path, text.encode())
    finish(as_json, facts, lambda: print(text, end=""))
    raise typer.Exit(_code(facts))


def _code(facts: dict[str, Any]) -> int:
    """Return the exit code; on stderr, say what failed."""
    if not facts["failed"]:
        return _ABOVE if facts["above"] else 0
    n, first = len(facts["failed"]), facts["failed"][0]["error"]
    files = "1 file" if n == 1 else f"{n:,} files"
    print(f"hushtable: error: {files} could not be read: {shown(first)}", file=sys.stderr)
    return _FAILED


def _source(run: Run, data: str, settle: float, output: Path) -> Files | Reader:
    """Return the files to look at, or the rows of a query; refuse what cannot be watched."""
    if run.reads.query is None and run.reads.recipe is None:
        files = Files(data, settle)
        files.check(output)
        return files
    if run.id_ is None:
        raise UsageError("--query needs --id: the column that tells which rows are new")
    return run.open(data)


@contextlib.contextmanager
def _whole() -> Iterator[list[Path]]:
    """Take back files that the body has made if its run is not noted."""
    made: list[Path] = []
    try:
        yield made
    except BaseException:
        written.clear()
        for path in made:
            path.unlink(missing_ok=True)
        raise


def _text(run: Run, facts: dict[str, Any], folder: Path) -> str:
    """Return the run in words."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        _print(run, facts, folder)
    return out.getvalue()


def _print(run: Run, facts: dict[str, Any], folder: Path) -> None:
    begin, parts = f"Run {facts['run']} at {facts['at']}:", facts["files"]
    if not facts["rows"]:
        print(f"{begin} no new row.")
    else:
        files = shown(parts[0]["file"]) if len(parts) == 1 else f"{len(parts):,} files"
        print(f"{begin} {facts['rows']:,} new rows in {files}.\n")
        lines = [_line(shown(one["file"]), one) for one in parts]
        lines += [_line("all", facts)] if len(parts) > 1 else []
        print_table(["file", "rows", "outliers", "share", "drift", "by chance up to"], lines)
        print()
        drift = run.total.drift
        words = f"No drift is measured: {run.no_drift or 'too few rows, or too much noise'}."
        print_sentences([words if drift is None else drift_words(drift)])
    print_sentences(lines_of(facts))
    for above in facts["above"]:
        what = "the share of outliers" if above == "share" else "the drift"
        print(f"Above --fail-above: {what}.")
    if facts["top"]:
        where = folder / facts["top"]
        print(f"\nWrote {where}: the lowest of these rows, with their values. Keep it here.")


def _line(name: str, one: dict[str, Any]) -> list[str]:
    outliers = "-" if one["outliers"] is None else f"{one['outliers']:,}"
    share = "-" if one["share"] is None else f"{one['share']:.2%}"
    drifts = ["-" if one[key] is None else f"{one[key]:.4f}" for key in ("drift", "level")]
    return [name, f"{one['rows']:,}", outliers, share, *drifts]
