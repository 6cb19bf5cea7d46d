"""A run of a watch: rows scored and counted file by file, and what they come to."""

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from hushtable.cli._drifted import drift_facts, measured
from hushtable.cli._output import shown
from hushtable.cli._progress import watched
from hushtable.cli._rows import Reads
from hushtable.cli._watch_new import Files, NewRows
from hushtable.cli._watch_place import Place
from hushtable.cli.score import open_model
from hushtable.counts.sketch import Sketch
from hushtable.data.readers import Reader
from hushtable.errors import HushTableError, UsageError
from hushtable.report.rows import of_all_rows, why_no_drift
from hushtable.scores.details import Scored
from hushtable.scores.outliers import Search
from hushtable.streams import Drift


@dataclass(frozen=True)
class Limits:
    """Limits of --fail-above: a share of outliers, and whether drift beyond chance passes one."""

    share: float | None = None
    drift: bool = False

    @classmethod
    def of(cls, text: str | None) -> "Limits":
        """Read the words of --fail-above."""
        share, drift = None, False
        for one in [] if text is None else text.split(","):
            if one.strip() == "drift":
                drift = True
                continue
            try:
                share = float(one.removesuffix("%")) / (100.0 if one.endswith("%") else 1.0)
            except ValueError:
                share = math.nan
            if not 0.0 <= share <= 1.0:
                raise UsageError(f"--fail-above {text}: needs a share such as 2%, or drift")
        return cls(share, drift)


@dataclass
class Part:
    """Rows of one file, or of all: how many there are, and how they look."""

    rows: int = 0
    outliers: int | None = 0
    drift: Drift | None = None

    def facts(self) -> dict[str, Any]:
        """Return it for machines."""
        share = None if self.outliers is None or not self.rows else self.outliers / self.rows
        counts = {"rows": self.rows, "outliers": self.outliers, "share": share}
        return counts | drift_facts(self.drift)


@dataclass
class Run:
    """New rows, as a model scores them.

    Attributes
    ----------
    parts : dict of str to Part
        By the file that the rows are in, or by the database.
    failed : list of tuple (str, str)
        Files that could not be read, and why.
    """

    model: Path
    reads: Reads
    id_: str | None
    keep: list[str]  # with the id, if there is one
    top: int
    threshold: float | None
    threads: int
    quiet: bool
    parts: dict[str, Part] = field(default_factory=dict)
    failed: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scorer, self._offset, self._reading, usual = open_model(self.model, self.id_)
        if self.threshold is not None:
            self._offset = self.threshold
        self.search = Search(self.scorer, self.top, keep=self.keep, usual=usual)
        self.no_drift = why_no_drift(self.scorer.sketch)
        self._before = of_all_rows(self.scorer.sketch)
        self._counted = Sketch.zero(self._before.plan)

    def check(self, limits: Limits) -> None:
        """Refuse limits that can never be found to be passed."""
        if limits.share is not None and math.isnan(self._offset):
            raise UsageError(
                "--fail-above SHARE: the model has no line below which rows are outliers: give "
                "--threshold"
            )
        if limits.drift and self.no_drift:
            raise UsageError(
                f"--fail-above drift: no drift can be measured: {self.no_drift}: leave it out, or "
                "give a model of one pass"
            )

    @property
    def _none(self) -> int | None:
        """No outlier, or None if there is no line below which rows are outliers."""
        return None if math.isnan(self._offset) else 0

    def open(self, data: str) -> Reader:
        """Open rows as the model's were."""
        return self.reads.open_as(data, self.scorer.plan.schema, self._reading, self.keep)

    def score(self, source: Files | Reader, place: Place) -> None:
        """Score what is new, and note it as done."""
        if isinstance(source, Files):
            self._score_files(source, place)
            return
        new = NewRows(source, str(self.id_), place.ids())
        self.add(new.reader, source.source)
        if new.ids:  # else the table may be about to be filled again
            place.note_ids(new.ids)

    def _score_files(self, files: Files, place: Place) -> None:
        for new in files.waiting(place):
            name = str(new.path)
            try:
                if files.is_same(new, place):
                    continue
                done = self.add(self.open(name), name, new.changed)
            except UsageError:
                raise  # it would be the same for each
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
        """Score and count all rows of a reader; none if it fails, or has changed meanwhile."""
        search, part = copy(self.search), Part(outliers=self._none)

        def see(batch: Scored) -> None:
            part.rows += len(batch.scores)
            if part.outliers is not None:
                part.outliers += int((batch.scores < self._offset).sum())

        plan, counted = self._before.plan, None
        with watched(reader, passes=1 if self.no_drift else 2, quiet=self.quiet) as watch:
            search.add(watch.reader, name, n_jobs=self.threads, see=see)
            if not self.no_drift:
                counted = Sketch.from_data(
                    plan, watch.reader, n_jobs=self.threads, allow_empty=True
                )
                part.drift = measured(self._before, counted)
        if changed():
            return False
        self.search, self.parts[name] = search, part
        if counted is not None:
            self._counted += counted
        return True

    @cached_property
    def total(self) -> Part:
        """Return what all rows come to."""
        outliers = self._none
        if outliers is not None:
            outliers = sum(part.outliers or 0 for part in self.parts.values())
        drift = None if self.no_drift else measured(self._before, self._counted)
        return Part(self.search.n_rows, outliers, drift)


def facts_of(
    run: Run, number: int, source: Files | Reader, limits: Limits, top: str
) -> dict[str, Any]:
    """Return what a run found, for the log and for machines."""
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


def lines_of(facts: dict[str, Any]) -> list[str]:
    """Return the sentences about files that were not scored."""
    lines = [f"Left for the next run: {one['file']}: {one['why']}." for one in facts["left"]]
    lines += [
        f"Not scored again: {one['file']} holds the same bytes as {one['as']}."
        for one in facts["same"]
    ]
    lines += [f"Failed: {one['error']}" for one in facts["failed"]]
    return [shown(line) for line in lines]
