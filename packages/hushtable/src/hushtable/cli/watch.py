"""``hushtable watch``: score the rows that are new, and report whether they are unusual."""

import contextlib
import json
import math
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.cli.drift import drift_facts
from hushtable.cli.errors import written
from hushtable.cli.options import ModelFile, Threads, argument, number, option
from hushtable.cli.output import OutputFolder, Target, count, shown
from hushtable.cli.progress import watched
from hushtable.cli.result import Block, CommandResult, Paragraph, TextTable, as_text
from hushtable.cli.rows import READS, Reads
from hushtable.cli.score import open_model
from hushtable.cli.tables import check_top, endings, write_top
from hushtable.cli.watch_state import Files, NewRows, WatchPlace
from hushtable.counts.sketch import Sketch, count_here
from hushtable.data.history import History, values_behind
from hushtable.data.options import RowOptions, notes
from hushtable.data.readers import Reader
from hushtable.describe.drift import drift_words, measured, of_all_rows, why_no_drift
from hushtable.errors import HushTableError, UsageError
from hushtable.files import write_bytes
from hushtable.report.lists import LISTS
from hushtable.scores.details import Scored
from hushtable.scores.outliers import Search
from hushtable.streams import Drift


@dataclass(frozen=True)
class Limits:
    """Limits of --fail-above: a share of outliers, and whether drift beyond chance counts."""

    share: float | None = None
    drift: bool = False

    @classmethod
    def of(cls, text: str | None) -> "Limits":
        """Read the value of --fail-above."""
        share, drift = None, False
        for one in [] if text is None else text.split(","):
            if one.strip() == "drift":
                drift = True
                continue
            share = number(one.removesuffix("%")) / (100.0 if one.endswith("%") else 1.0)
            if not 0.0 <= share <= 1.0:
                raise UsageError(f"--fail-above {text}: needs a share such as 2%, or drift")
        return cls(share, drift)


@dataclass
class NewPart:
    """Rows of one file, or of all files: how many there are, and a summary of them."""

    rows: int = 0
    outliers: int | None = 0
    drift: Drift | None = None

    def facts(self) -> dict[str, Any]:
        """Return it for machines."""
        share = None if self.outliers is None or not self.rows else self.outliers / self.rows
        counts = {"rows": self.rows, "outliers": self.outliers, "share": share}
        return counts | drift_facts(self.drift)


@dataclass
class WatchRun:
    """New rows, as a model scores them.

    Attributes
    ----------
    parts : dict of str to NewPart
        Keyed by the file of the rows, or by the database.
    failed : list of tuple (str, str)
        Files that could not be read, and why.
    """

    model: Path
    reads: RowOptions
    id_: str | None
    keep: list[str]  # including the id, if there is one
    top: int
    threshold: float | None
    threads: int
    parts: dict[str, NewPart] = field(default_factory=dict)
    failed: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scorer, self._offset, self._reading, usual = open_model(self.model, self.id_)
        if self.threshold is not None:
            self._offset = self.threshold
        self.search = Search(self.scorer, self.top, keep=self.keep, usual=usual)
        self.no_drift = why_no_drift(self.scorer.sketch)
        self._before = of_all_rows(self.scorer.sketch)
        self._counted = Sketch.zero(self._before.plan)
        #: History of the readings of earlier runs and files; None without an entity.
        self._history: History | None = None

    def check(self, limits: Limits) -> None:
        """Refuse limits that can never be exceeded."""
        if limits.share is not None and math.isnan(self._offset):
            raise UsageError(
                "--fail-above SHARE: the model has no threshold below which rows are outliers: "
                "give --threshold"
            )
        if limits.drift and self.no_drift:
            raise UsageError(
                f"--fail-above drift: drift cannot be measured: {self.no_drift}: leave it out, or "
                "give a model of one pass"
            )

    @property
    def _none(self) -> int | None:
        """No outliers, or None if there is no threshold below which rows are outliers."""
        return None if math.isnan(self._offset) else 0

    def open(self, data: str) -> Reader:
        """Open rows as the model's rows were opened."""
        schema = self.scorer.plan.schema
        return self.reads.open_as(
            data, schema, self._reading, self.search.columns, history=self._history
        )

    def score(self, source: Files | Reader, place: WatchPlace) -> None:
        """Score the new rows, and note them as done."""
        if isinstance(source, Files):
            self._history = self._begun(place)
            self._score_files(source, place)
            if self._history is not None:
                place.note_history(self._history.to_bytes())
            return
        new = NewRows(source, str(self.id_), place.ids())
        self.add(new.reader, source.source)
        if new.ids:  # otherwise the table may be about to be refilled
            place.note_ids(new.ids)

    def _begun(self, place: WatchPlace) -> History | None:
        """Return the history that the last run left, or a new one; None without an entity."""
        used = self._reading.updated(self.reads.reading)
        values = values_behind(self.scorer.plan.schema.names)
        if not used.entity or not values:
            return None
        kept = place.history()
        new = History(entity=used.entity, time=used.time, values=values)
        if kept is None:
            return new
        found = History.from_bytes(kept)
        if not found.is_of(new):
            raise UsageError(
                f"{place.folder} keeps the history of {found}, but the model needs the history of "
                f"{new}: give a different folder"
            )
        return found

    def _score_files(self, files: Files, place: WatchPlace) -> None:
        for new in files.waiting(place):
            name = str(new.path)
            try:
                if files.is_same(new, place):
                    continue
                done = self.add(self.open(name), name, new.changed)
            except UsageError:
                raise  # it would be the same for each file
            except HushTableError as error:
                done = False
                if not new.changed():
                    self.failed.append((name, str(error)))
                    continue
            if done:
                new.note(place)
            else:
                files.leave(new)

    def add(self, reader: Reader, name: str, changed: Callable[[], bool] = lambda: False) -> bool:
        """Score and count all rows of a reader; none if it fails or has changed in the meantime."""
        search, part = copy(self.search), NewPart(outliers=self._none)

        def see(batch: Scored) -> None:
            part.rows += len(batch.scores)
            if part.outliers is not None:
                part.outliers += int((batch.scores < self._offset).sum())

        plan, counted = self._before.plan, None
        with watched(reader) as watch:
            search.add(watch.reader, name, n_jobs=self.threads, see=see)
            if not self.no_drift:
                counted = count_here(plan, watch.reader, n_jobs=self.threads, allow_empty=True)
                part.drift = measured(self._before, counted)
        if changed():
            return False
        self.search, self.parts[name] = search, part
        if self._history is not None:
            # A file that already has the columns leaves no history.
            self._history = self._history.after or self._history
        if counted is not None:
            self._counted += counted
        return True

    @cached_property
    def total(self) -> NewPart:
        """Return the summary of all rows."""
        outliers = self._none
        if outliers is not None:
            outliers = sum(part.outliers or 0 for part in self.parts.values())
        drift = None if self.no_drift else measured(self._before, self._counted)
        return NewPart(self.search.n_rows, outliers, drift)


def run_facts(
    run: WatchRun, number: int, source: Files | Reader, limits: Limits, top: str
) -> dict[str, Any]:
    """Return the findings of a run, for the log and for machines."""
    total, above = run.total, []
    facts = total.facts()
    same, left = (source.same, source.left) if isinstance(source, Files) else ([], [])
    if limits.share is not None and (facts["share"] or 0.0) > limits.share:
        above.append("share")
    if limits.drift and total.drift is not None and total.drift.overall > total.drift.level:
        above.append("drift")
    return {
        "command": "watch",
        "run": number,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": str(run.model),
        "plan_id": run.scorer.plan.plan_id,
        **facts,
        "files": [{"file": name, **part.facts()} for name, part in run.parts.items()],
        "same": [{"file": a, "as": b} for a, b in same],
        "left": [{"file": a, "why": b} for a, b in left],
        "failed": [{"file": a, "error": b} for a, b in run.failed],
        "top": top if total.rows else None,
        "above": above,
    }


def file_lines(facts: dict[str, Any]) -> list[str]:
    """Return the sentences about files that were not scored."""
    lines = [f"Left for the next run: {one['file']}: {one['why']}." for one in facts["left"]]
    lines += [
        f"Not scored again: {one['file']} holds the same bytes as {one['as']}."
        for one in facts["same"]
    ]
    lines += [f"Failed: {one['error']}" for one in facts["failed"]]
    return [shown(line) for line in lines]


#: Exit codes: some files could not be read; --fail-above was exceeded.
_FAILED, _ABOVE = 1, 3

_Data = Annotated[
    str,
    argument("DATA", "Folder, or glob pattern in quotes, of files; or the URL of a database."),
]
_Output = Annotated[
    Path,
    option("FOLDER", "Folder for the summaries, and for the state of the watch.", "--output", "-o"),
]
_Top = Annotated[int, option("N", "List the N lowest-scoring new rows.", min=1)]


def _known_format(name: str) -> str:
    if f".{name}" not in LISTS:
        raise typer.BadParameter(f"{name!r}: needs {endings(LISTS)}, without the dot.")
    return name


_Format = Annotated[
    str,
    option("<ending>", f"Format of that list: {endings(LISTS)}.", callback=_known_format),
]
_Id = Annotated[
    str | None,
    option(
        "NAME", "Column that identifies a row; in a query, it shows which rows are new.", "--id"
    ),
]
_Keep = Annotated[str | None, option("A,B,...", "Also copy these columns next to the lowest rows.")]
_Threshold = Annotated[
    float | None,
    option(
        "SCORE", "Rows that score lower are outliers, instead of those below the model's threshold."
    ),
]
_FailAbove = Annotated[
    str | None,
    option(
        "SHARE,drift",
        "Exit with code 3 if the share of outliers among the new rows is above this value (such "
        "as 2%), if their drift is above what chance explains (drift), or if either is (2%,drift).",
    ),
]
_Settle = Annotated[
    float,
    option(
        "SECONDS",
        "Leave files that were written to less than this long ago for the next call.",
        min=0.0,
    ),
]


def watch(
    data: _Data,
    model: ModelFile,
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
) -> CommandResult:
    """Score rows that are new since the last call (for cron, systemd).

    Files are new if they were added or changed; rows of a query are new if the last call did not
    see their --id. Each call adds a line to watch.jsonl. If there are new rows, it writes
    summary.txt and the lowest rows (top-000001.csv). Exit codes: 0 success, 1 refused or failed
    (files that cannot be read are tried again at the next call, all others are done), 2 wrong
    usage, 3 success, but --fail-above was exceeded.

    Example:
      hushtable watch exports --model model.hush --id "Patient ID" --fail-above 2% -o watched
    """
    id_, kept = reads.beside(id_, keep)
    check_top(output / f"top.{format}", kept)
    limits, folder = Limits.of(fail_above), OutputFolder(output)
    run = WatchRun(model, reads, id_, kept, top, threshold, threads)
    run.check(limits)
    source = _source(run, data, settle, output)
    folder.path.mkdir(exist_ok=True)
    place = WatchPlace(folder.path, source.name if isinstance(source, Files) else source.source)
    with _whole() as made, place.running():
        run.score(source, place)
        facts = run_facts(run, place.run, source, limits, f"top-{place.run:06}.{format}")
        blocks = list(_blocks(run, facts, folder.path))
        if facts["top"]:
            made.append(folder.path / facts["top"])
            found, unit = run.search.found(), run.scorer.plan.score.unit
            write_top(Target(made[0]), found, model, source.source, unit)
        place.note_run(json.dumps(facts, allow_nan=False))
        if facts["top"] or facts["failed"]:
            summary = Target(folder.path / "summary.txt")
            with summary.writing():
                write_bytes(summary.path, as_text(blocks).encode())
    return CommandResult(facts, blocks, _code(facts))


def _code(facts: dict[str, Any]) -> int:
    """Return the exit code; note failures."""
    if not facts["failed"]:
        return _ABOVE if facts["above"] else 0
    files, first = count(len(facts["failed"]), "file"), facts["failed"][0]["error"]
    notes.append(f"error: {files} could not be read: {first}")
    return _FAILED


def _source(run: WatchRun, data: str, settle: float, output: Path) -> Files | Reader:
    """Return the files to watch, or the rows of a query; refuse sources that cannot be watched."""
    if run.reads.query is None and run.reads.recipe is None:
        files = Files(data, settle)
        files.check(output)
        return files
    if run.id_ is None:
        raise UsageError("--read query=... needs --id, the column that shows which rows are new")
    return run.open(data)


@contextlib.contextmanager
def _whole() -> Iterator[list[Path]]:
    """Remove files that the body has made if its run is not noted."""
    made: list[Path] = []
    try:
        yield made
    except BaseException:
        written.clear()
        for path in made:
            path.unlink(missing_ok=True)
        raise


def _blocks(run: WatchRun, facts: dict[str, Any], folder: Path) -> Iterator[Block]:
    begin, parts = f"Run {facts['run']} at {facts['at']}:", facts["files"]
    if not facts["rows"]:
        yield f"{begin} no new rows."
    else:
        files = shown(parts[0]["file"]) if len(parts) == 1 else f"{len(parts):,} files"
        yield f"{begin} {facts['rows']:,} new rows in {files}.\n"
        lines = [_line(shown(one["file"]), one) for one in parts]
        lines += [_line("all", facts)] if len(parts) > 1 else []
        yield TextTable(["file", "rows", "outliers", "share", "drift", "by chance up to"], lines)
        yield ""
        drift = run.total.drift
        words = f"Drift was not measured: {run.no_drift or 'too few rows, or too much noise'}."
        yield Paragraph([words if drift is None else shown(drift_words(drift))])
    yield Paragraph(file_lines(facts))
    for above in facts["above"]:
        what = "the share of outliers" if above == "share" else "the drift"
        yield f"Above --fail-above: {what}."
    if facts["top"]:
        where = folder / facts["top"]
        yield (
            f"\nWrote {where}: the lowest of these rows, with their values. Keep it where the "
            "rows are."
        )


def _line(name: str, one: dict[str, Any]) -> list[str]:
    outliers = "-" if one["outliers"] is None else f"{one['outliers']:,}"
    share = "-" if one["share"] is None else f"{one['share']:.2%}"
    drifts = ["-" if one[key] is None else f"{one[key]:.4f}" for key in ("drift", "level")]
    return [name, f"{one['rows']:,}", outliers, share, *drifts]
