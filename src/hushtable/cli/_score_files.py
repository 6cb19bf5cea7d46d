"""Files of rows scored into a folder: a file of scores for each, those that are there left out."""

import threading
from collections.abc import Iterator
from typing import Any

from hushtable.cli._details import Details
from hushtable.cli._output import Folder
from hushtable.cli._progress import watched
from hushtable.cli._rows import open_rows
from hushtable.cli._scores import Summary, write_scores
from hushtable.data.readers import Reader, one_after_other
from hushtable.engines.parts import STAMP, Part, parts_of
from hushtable.scores.scorer import Scorer
from hushtable.threads import for_each, n_threads

__all__ = ["score_files"]


def score_files(
    scorer: Scorer,
    details: Details,
    offset: float,
    data: str,
    folder: Folder,
    columns: str | None,
    drop: str | None,
    threads: int,
    quiet: bool,
) -> tuple[Summary, int]:
    """Score every file that has no scores yet; return what they come to, and how many had some.

    Several files are scored at a time, each by one thread. An interrupted call leaves whole
    files only, and the next one goes on with the others.
    """
    parts = parts_of(scorer.sketch, data, folder.path, offset, details.stamp)
    waiting = [part for part in parts if not part.is_done()]
    schema = scorer.plan.schema
    total = Summary(len(schema), offset)
    if not waiting:
        return total, len(parts)
    folder.remove_leftovers()
    # All are opened before the first is scored: a file with other columns is found at once.
    readers = [open_rows(str(part.source), columns, drop, schema) for part in waiting]
    stopped, lock = threading.Event(), threading.Lock()

    def score_one(item: tuple[Part, Reader]) -> None:
        part, reader = item
        summary = Summary(len(schema), offset, str(part.source))
        rows = _until(stopped, summary.rows(details.batches(reader)))
        with folder.writing(part.target):
            write_scores(part.target, rows, {STAMP: part.stamp()}, details.fields)
        with lock:
            total.merge(summary)

    source = one_after_other(readers, data)
    with watched(source, quiet=quiet) as watch:
        items = list(zip(waiting, watch.reader.parts, strict=True))
        for_each(score_one, [items], n_threads(threads), stopped.set)
    return total, len(parts) - len(waiting)


class _Stopped(Exception):
    """Another file failed: this one is not gone on with."""


def _until(stopped: threading.Event, rows: Iterator[Any]) -> Iterator[Any]:
    for row in rows:
        if stopped.is_set():
            raise _Stopped
        yield row
