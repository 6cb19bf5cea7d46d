"""Readers of files by kind: the objects that `hushtable.load` and the commands build."""

from collections.abc import Callable
from typing import Any

from hushtable import files
from hushtable.counts.base import Counts
from hushtable.counts.periods import Increment, Periods
from hushtable.counts.release import LocalModel, Release
from hushtable.counts.sketch import Sketch
from hushtable.counts.verdicts import LearnedModel, Verdicts, model_from_file
from hushtable.plans.plan import Plan

_READERS: dict[str, Callable[[files.Content], Any]] = {
    "plan": Plan.from_file,
    "sketch": Sketch.from_file,
    "release": Release.from_file,
    "increment": Increment.from_file,
    "periods": Periods.from_file,
    "local": LocalModel.from_file,
    "verdicts": Verdicts.from_file,
}


def reader_of(kind: str) -> Callable[[files.Content], Any] | None:
    """Return the builder of the object in a file of a kind; None if it can only be inspected."""
    if kind in _READERS:
        return _READERS[kind]
    known = files.kind_of(kind)
    return None if known is None else known.reader


def counts_from_file(content: files.Content) -> Counts:
    """Build the counts in a file; raise `PlanError` if it has none."""
    kinds: tuple[type[Counts], ...] = (Sketch, Release, Increment, LocalModel, Verdicts)
    made = {kind.kind: kind for kind in kinds}.get(content.kind)
    if made is not None:
        return made.from_file(content)
    if content.kind not in _READERS and (reader := reader_of(content.kind)) is not None:
        built = reader(content)
        if isinstance(built, Counts):
            return built
    learned = "verdicts" in content.manifest  # belong to a detector, with any counts
    return LearnedModel.from_file(content) if learned else model_from_file(content)
