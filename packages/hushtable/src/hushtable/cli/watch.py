"""``hushtable watch``: score the rows that are new, and report whether they are unusual.

The state of a watch is one file of JSON, which one process at a time holds and replaces at its end,
so that a run is noted as a whole or not at all, whatever ends it. It holds names, sizes, times and
digests of files, and digests of ids, but no values of rows. Under a model of readings of entities,
it also holds their history: names of entities, and sums over their readings.
"""

import base64
import contextlib
import glob
import hashlib
import itertools
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa

from hushtable.arguments import JsonObject
from hushtable.cli.drift import ABOVE, drift_facts
from hushtable.cli.errors import REFUSED, written
from hushtable.cli.options import (
    READS,
    KeptColumns,
    ModelFile,
    ModelReads,
    argument,
    number,
    option,
)
from hushtable.cli.result import (
    Block,
    CommandResult,
    Facts,
    OutputFolder,
    Paragraph,
    Target,
    TextTable,
    as_text,
    count,
    shown,
)
from hushtable.cli.tables import check_top, write_top
from hushtable.counts.sketch import Sketch, count_here
from hushtable.data.history import History, values_behind
from hushtable.data.options import RowOptions, notes
from hushtable.data.readers import Batch, Reader, paths, taken
from hushtable.detectors.load import open_model
from hushtable.errors import DataError, FileError, HushTableError, UsageError, explain
from hushtable.files import locked, write_bytes
from hushtable.progress import watched
from hushtable.scores.outliers import Search
from hushtable.streams import Drift, drift_words, measured, of_all_rows, why_no_drift


class WatchPlace:
    """Completed work of earlier runs, and a log of the runs, in a folder.

    Attributes
    ----------
    run : int
        Number of this run, from 1.
    log : Path
        A line of JSON for each completed run.
    """

    def __init__(self, folder: Path, watched: str) -> None:
        self.folder, self.run = folder, 1
        self.log, self._path = folder / "watch.jsonl", folder / "watch.db"
        #: Length of the log that completed runs wrote.
        self._bytes = 0
        self._state: JsonObject = {
            "watched": watched, "runs": 0, "bytes": 0, "files": {}, "ids": [], "history": "",
        }  # fmt: skip

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Keep other processes out; keep the notes of the body only if it succeeds."""
        with locked(self._path):
            self._begin()
            try:
                yield
                write_bytes(self._path, json.dumps(self._state).encode())
            except BaseException:
                self._cut()
                raise

    def _begin(self) -> None:
        if self._path.exists():
            self._read()
        else:  # if someone removed the state, the numbers of runs, and so of lists, continue
            lines = self.log.read_bytes().count(b"\n") if self.log.exists() else 0
            self._state |= {"runs": lines, "bytes": self._size()}
            write_bytes(self._path, json.dumps(self._state).encode())
        self.run, self._bytes = self._state["runs"] + 1, self._state["bytes"]
        self._cut()  # left behind by a killed run

    def _read(self) -> None:
        kinds = {name: type(value) for name, value in self._state.items()}
        wrong = FileError(
            f"{self._path} is not the state of a watch by this version, or is damaged: remove it "
            "to score everything again"
        )
        try:
            state = json.loads(self._path.read_bytes())
        except ValueError:
            raise wrong from None
        if not isinstance(state, dict) or kinds != {k: type(value) for k, value in state.items()}:
            raise wrong
        if state["watched"] != self._state["watched"]:
            raise UsageError(
                f"{self.folder} is already used to watch {state['watched']}: give a different "
                "folder"
            )
        self._state = state

    def _size(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0

    def _cut(self) -> None:
        if self._size() > self._bytes:
            os.truncate(self.log, self._bytes)

    def note_run(self, line: str) -> None:
        """Add this run's line to the log."""
        with open(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
            file.write(f"{line}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        self._state |= {"runs": self.run, "bytes": self._size()}

    # --- files ------------------------------------------------------------------------------

    def is_done(self, name: str, status: os.stat_result) -> bool:
        """Whether a file is done, and has not been touched since."""
        known: list[object] = self._state["files"].get(name, [])
        return known[:2] == [status.st_size, status.st_mtime_ns]

    def twin(self, digest: str) -> str | None:
        """Return the name of a file that is done and holds the same bytes."""
        names = (name for name, known in self._state["files"].items() if known[2] == digest)
        return min(names, default=None)

    def note_file(self, new: "NewFile") -> None:
        """Note that a file is done."""
        known = [new.seen.st_size, new.seen.st_mtime_ns, new.digest]
        self._state["files"][os.path.abspath(new.path)] = known

    # --- rows of a query --------------------------------------------------------------------

    def ids(self) -> set[str]:
        """Return the digests of the ids that the last run saw."""
        return set(self._state["ids"])

    def note_ids(self, digests: Iterable[str]) -> None:
        """Keep these digests in place of the last run's."""
        self._state["ids"] = sorted(digests)

    # --- earlier readings of entities ---------------------------------------------------------

    def history(self) -> bytes | None:
        """Return the history that the last run left."""
        kept: str = self._state["history"]
        return base64.b64decode(kept) if kept else None

    def note_history(self, readings: bytes) -> None:
        """Keep this history in place of the last run's."""
        self._state["history"] = base64.b64encode(readings).decode()


@dataclass
class NewFile:
    """A file to be scored."""

    path: Path
    seen: os.stat_result
    digest: str = ""

    def changed(self) -> bool:
        """Whether someone has written to it since it was seen."""
        try:
            now = self.path.stat()
        except FileNotFoundError:
            return True
        return (now.st_size, now.st_mtime_ns) != (self.seen.st_size, self.seen.st_mtime_ns)


@dataclass
class Files:
    """Files that a folder or pattern names: those to score, and the others with reasons."""

    source: str
    settle: float
    #: (file, reason) of files left for the next run, and of files whose bytes were scored before.
    left: list[tuple[str, str]] = field(default_factory=list)
    same: list[tuple[str, str]] = field(default_factory=list)

    def check(self, folder: Path) -> None:
        """Refuse sources that cannot be watched, and an output folder among the sources."""
        if self.source == "-" or "://" in self.source:
            raise UsageError(
                "watch reads a folder or pattern of files on this machine, or a database with "
                "--read query=...: copy other sources here first"
            )
        top, where = Path(self.source), folder.resolve()
        if not top.exists():
            # The folders of a pattern up to the first star must exist; files may come later.
            fixed = itertools.takewhile(lambda part: not glob.has_magic(part), top.parent.parts)
            if not glob.has_magic(self.source) or not Path(*fixed).is_dir():
                raise DataError(f"{self.source}: no such file or folder: check the path")
        inside = {path.resolve().parent for path in self._paths()}
        if where in inside or (top.is_dir() and where.is_relative_to(top.resolve())):
            raise UsageError(f"-o {folder} is where rows are read from: give a different folder")

    def _paths(self) -> list[Path]:
        try:
            return paths(self.source)
        except DataError:
            return []

    def waiting(self, place: WatchPlace) -> Iterator[NewFile]:
        """Yield the files that are new or have changed, and rest."""
        for path in self._paths():
            try:
                new = NewFile(path, path.stat())
            except FileNotFoundError:
                continue  # removed while the others were scored
            if place.is_done(os.path.abspath(path), new.seen):
                continue
            age = abs(time.time() - new.seen.st_mtime)
            if age < self.settle:
                self.left.append((str(path), f"written to {age:.0f} seconds ago"))
                continue
            yield new

    def is_same(self, new: NewFile, place: WatchPlace) -> bool:
        """Return whether a file holds the same bytes as a scored file; note it if so."""
        try:
            with new.path.open("rb") as file:
                new.digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise DataError(f"cannot read {new.path}: {explain(error)}") from None
        twin = place.twin(new.digest)
        if twin is None or new.changed():
            return False
        if twin != os.path.abspath(new.path):
            self.same.append((str(new.path), twin))
        place.note_file(new)
        return True


class NewRows:
    """Rows of a query with ids that the last run did not see."""

    def __init__(self, reader: Reader, id_: str, known: set[str]) -> None:
        self._source, self._id, self._known = reader, id_, known
        #: Digests of all ids that the query returns.
        self.ids: set[str] = set()

    @property
    def reader(self) -> Reader:
        """Return a reader of the new rows."""

        def place(row: int) -> str:
            return f"row {row} of the new ones"

        return self._source.of_batches(self._read, None, place)

    def _read(self) -> Iterator[Batch]:
        for batch in self._source.read():
            assert isinstance(batch, pa.RecordBatch)
            names = batch.column(self._id).cast(pa.string()).to_pylist()
            if None in names:
                raise DataError(
                    f"{self._source.source}: a row has no {self._id!r}: --id identifies rows; "
                    "exclude rows without it in the query"
                )
            marks = [hashlib.sha256(name.encode()).hexdigest()[:32] for name in names]
            self.ids.update(marks)
            new = np.flatnonzero([mark not in self._known for mark in marks])
            if len(new):
                yield taken(batch, new)


@dataclass(frozen=True)
class Alarm:
    """When outliers are too many, and how many rows are listed."""

    top: Annotated[int, option("N", "List the N lowest-scoring new rows.", min=1)] = 20
    fail_above: Annotated[
        str | None,
        option(
            "SHARE,drift",
            "Exit with code 3 if the share of outliers among the new rows is above this value "
            "(such as 2%), if their drift is above what chance explains (drift), or if either is "
            "(2%,drift).",
        ),
    ] = None

    @cached_property
    def limits(self) -> tuple[float | None, bool]:
        """The share of outliers of --fail-above, and whether drift beyond chance counts."""
        share, drift = None, False
        for text in [] if self.fail_above is None else self.fail_above.split(","):
            if text.strip() == "drift":
                drift = True
                continue
            share = number(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
            if not 0.0 <= share <= 1.0:
                raise UsageError(
                    f"--fail-above {self.fail_above}: needs a share such as 2%, or drift"
                )
        return share, drift


@dataclass
class NewPart:
    """Rows of one file, or of all files: how many there are, and a summary of them."""

    rows: int = 0
    outliers: int = 0
    drift: Drift | None = None

    def facts(self, flagged: bool) -> Facts:
        """Return it for machines; ``flagged`` is whether the model has a threshold."""
        share = self.outliers / self.rows if flagged and self.rows else None
        counts = {"rows": self.rows, "outliers": self.outliers if flagged else None}
        return counts | {"share": share} | drift_facts(self.drift)


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
    alarm: Alarm
    parts: dict[str, NewPart] = field(default_factory=dict)
    failed: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scorer, self._offset, self._reading, usual = open_model(self.model, self.id_)
        self.search = Search(self.scorer, self.alarm.top, keep=self.keep, usual=usual)
        self.no_drift = why_no_drift(self.scorer.sketch)
        self._before = of_all_rows(self.scorer.sketch)
        self._counted = Sketch.zero(self._before.plan)
        #: History of the readings of earlier runs and files; None without an entity.
        self._history: History | None = None
        share, drift = self.alarm.limits  # those that can never be exceeded are refused
        if share is not None and not self.flagged:
            raise UsageError(
                "--fail-above SHARE: the model has no threshold below which rows are outliers: "
                "give --fail-above drift"
            )
        if drift and self.no_drift:
            raise UsageError(
                f"--fail-above drift: drift cannot be measured: {self.no_drift}: leave it out, or "
                "give a model of one pass"
            )

    @property
    def flagged(self) -> bool:
        """Whether the model has a threshold below which rows are outliers."""
        return not math.isnan(self._offset)

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
        used = self._reading.updated(self.reads.reading)
        values = values_behind(self.scorer.plan.schema.names)
        if not used.entity or not values:
            return None
        kept = place.history()
        new = History(entity=used.entity, time=used.time, values=values)
        if kept is None:
            return new
        history = History.from_bytes(kept)
        if not history.is_of(new):
            raise UsageError(
                f"{place.folder} keeps the history of {history}, but the model needs the history "
                f"of {new}: give a different folder"
            )
        return history

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
                place.note_file(new)
            else:  # for the next run
                files.left.append((name, "it changed while it was being read"))

    def add(self, reader: Reader, name: str, changed: Callable[[], bool] = lambda: False) -> bool:
        """Score and count all rows of a reader; none if it fails or has changed in the meantime."""
        search, part = copy(self.search), NewPart()
        plan, counted = self._before.plan, None
        with watched(reader) as watch:
            for batch in search.batches(watch.reader, name, n_jobs=-1):
                part.rows += len(batch.scores)
                part.outliers += int((batch.scores < self._offset).sum())
            if not self.no_drift:
                counted = count_here(plan, watch.reader, n_jobs=-1, allow_empty=True)
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
        outliers = sum(part.outliers for part in self.parts.values())
        drift = None if self.no_drift else measured(self._before, self._counted)
        return NewPart(self.search.n_rows, outliers, drift)


def run_facts(run: WatchRun, number: int, source: Files | Reader, top: str) -> Facts:
    """Return the findings of a run, for the log and for machines."""
    total, above = run.total, []
    facts, (share, drift) = total.facts(run.flagged), run.alarm.limits
    same, left = (source.same, source.left) if isinstance(source, Files) else ([], [])
    if share is not None and (facts["share"] or 0.0) > share:
        above.append("share")
    if drift and total.drift is not None and total.drift.overall > total.drift.level:
        above.append("drift")
    return {
        "command": "watch",
        "run": number,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": str(run.model),
        "plan_id": run.scorer.plan.plan_id,
        **facts,
        "files": [{"file": name} | part.facts(run.flagged) for name, part in run.parts.items()],
        "same": [{"file": a, "as": b} for a, b in same],
        "left": [{"file": a, "why": b} for a, b in left],
        "failed": [{"file": a, "error": b} for a, b in run.failed],
        "top": top if total.rows else None,
        "above": above,
    }


def file_lines(facts: Facts) -> list[str]:
    """Return the sentences about files that were not scored."""
    lines = [f"Left for the next run: {file['file']}: {file['why']}." for file in facts["left"]]
    lines += [
        f"Not scored again: {file['file']} holds the same bytes as {file['as']}."
        for file in facts["same"]
    ]
    lines += [f"Failed: {file['error']}" for file in facts["failed"]]
    return [shown(line) for line in lines]


def watch(
    data: Annotated[
        str,
        argument("DATA", "Folder, or glob pattern in quotes, of files; or the URL of a database."),
    ],
    model: ModelFile,
    output: Annotated[
        Path,
        option(
            "FOLDER", "Folder for the summaries, and for the state of the watch.", "--output", "-o"
        ),
    ] = Path("watched"),
    settle: Annotated[
        float,
        option(
            "SECONDS",
            "Leave files that were written to less than this long ago for the next call.",
            min=0.0,
        ),
    ] = 5.0,
    reads: ModelReads = READS,
    *,
    columns: KeptColumns,
    alarm: Alarm,
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
    id_, kept = columns.beside(reads)
    check_top(output / "top.csv", kept)
    folder = OutputFolder(output)
    run = WatchRun(model, reads, id_, kept, alarm)
    source = _source(run, data, settle, output)
    folder.path.mkdir(exist_ok=True)
    # The name of files does not depend on the folder in which the command is called.
    name = os.path.abspath(source.source) if isinstance(source, Files) else source.source
    place = WatchPlace(folder.path, name)
    with _whole() as made, place.running():
        run.score(source, place)
        facts = run_facts(run, place.run, source, f"top-{place.run:06}.csv")
        blocks = list(_blocks(run, facts, folder.path))
        if facts["top"]:
            made.append(folder.path / facts["top"])
            lowest, unit = run.search.found(), run.scorer.plan.score.unit
            write_top(Target(made[0]), lowest, model, source.source, unit)
        place.note_run(json.dumps(facts, allow_nan=False))
        if facts["top"] or facts["failed"]:
            summary = Target(folder.path / "summary.txt")
            with summary.writing():
                write_bytes(summary.path, as_text(blocks).encode())
    if not facts["failed"]:
        return CommandResult(facts, blocks, ABOVE if facts["above"] else 0)
    unread, first = count(len(facts["failed"]), "file"), facts["failed"][0]["error"]
    notes.append(f"error: {unread} could not be read: {first}")
    return CommandResult(facts, blocks, REFUSED)


def _source(run: WatchRun, data: str, settle: float, output: Path) -> Files | Reader:
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


def _blocks(run: WatchRun, facts: Facts, folder: Path) -> Iterator[Block]:
    begin, parts = f"Run {facts['run']} at {facts['at']}:", facts["files"]
    if not facts["rows"]:
        yield f"{begin} no new rows."
    else:
        files = shown(parts[0]["file"]) if len(parts) == 1 else f"{len(parts):,} files"
        yield f"{begin} {facts['rows']:,} new rows in {files}.\n"
        lines = [_line(shown(part["file"]), part) for part in parts]
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


def _line(name: str, part: Facts) -> list[str]:
    outliers = "-" if part["outliers"] is None else f"{part['outliers']:,}"
    share = "-" if part["share"] is None else f"{part['share']:.2%}"
    drifts = ["-" if part[key] is None else f"{part[key]:.4f}" for key in ("drift", "level")]
    return [name, f"{part['rows']:,}", outliers, share, *drifts]
