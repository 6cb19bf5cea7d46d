"""Files of rows scored into a folder: a file of scores for each, those that are there left out."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hushtable.cli._details import Details
from hushtable.cli._output import Folder
from hushtable.cli._progress import watched
from hushtable.cli._rows import Rows
from hushtable.cli._scores import Summary, write_scores
from hushtable.data.readers import Reader, one_after_other
from hushtable.scores.files import STAMP, ScoreFile, score_files_of
from hushtable.scores.scorer import Scorer
from hushtable.threads import for_each, n_threads


def score_files(
    scorer: Scorer, details: Details, offset: float, rows: Rows, folder: Folder
) -> tuple[Summary, int]:
    """Score every file that has no scores yet; return what they come to, and how many had some.

    Several files are scored at a time, each by one thread. An interrupted call leaves whole
    files only, and the next one goes on with the others.
    """
    pairs = score_files_of(scorer.sketch, rows.data, folder.path, offset, details.stamp)
    waiting = [pair for pair in pairs if not pair.is_done()]
    schema = scorer.plan.schema
    total = Summary(len(schema), offset)
    if not waiting:
        return total, len(pairs)
    folder.remove_leftovers()
    # All are opened before the first is scored: a file with other columns is found at once.
    readers = [replace(rows, data=str(pair.source)).open(schema, details.keep) for pair in waiting]
    stopped, lock = threading.Event(), threading.Lock()

    def score_one(item: tuple[ScoreFile, Reader]) -> None:
        pair, reader = item
        summary = Summary(len(schema), offset, str(pair.source))
        scored = _until(stopped, summary.rows(details.batches(reader)))
        with folder.writing(pair.target):
            write_scores(pair.target, scored, {STAMP: pair.stamp()}, details.fields)
        with lock:
            total.merge(summary)

    source = one_after_other(readers, rows.data)
    with watched(source, quiet=rows.quiet) as watch:
        items = list(zip(waiting, watch.reader.parts, strict=True))
        for_each(score_one, [items], n_threads(rows.threads), stopped.set)
    return total, len(pairs) - len(waiting)


class _Stopped(Exception):
    """Another file failed: this one is not gone on with."""


def _until(stopped: threading.Event, rows: Iterator[Any]) -> Iterator[Any]:
    for row in rows:
        if stopped.is_set():
            raise _Stopped
        yield row
