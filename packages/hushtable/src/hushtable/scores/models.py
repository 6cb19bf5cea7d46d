"""Models as files: their scores, their threshold, how they read rows, and what is usual."""

import math
import os
from typing import NamedTuple

from hushtable import files
from hushtable.counts.base import Counts
from hushtable.counts.kinds import counts_from_file
from hushtable.data.options import notes
from hushtable.data.texts.reading import Reading
from hushtable.errors import FileError, UsageError
from hushtable.files import Content
from hushtable.plans.draws import Purpose
from hushtable.scores.rules import Rules, rules_beside
from hushtable.scores.scorer import Scorer
from hushtable.scores.usual import Usual


class OpenedModel(NamedTuple):
    """A model that was read from a file."""

    scorer: Scorer
    #: Rows with a lower score are outliers; NaN if noise leaves no threshold.
    threshold: float
    reading: Reading
    #: What a detector knows about the rows that it counted.
    usual: Usual | None


def open_model(path: str | os.PathLike[str], id_: str | None = None) -> OpenedModel:
    """Read a detector, or counts that score, and the rules of the rows' owner next to it, if any.

    Parameters
    ----------
    path : path
        A .hush file of a detector, sketch, release or local model.
    id_ : str, optional
        The column that identifies rows.

    Returns
    -------
    OpenedModel

    Raises
    ------
    UsageError
        If the rules next to it do not fit (see `Rules.read`), or if ``id_`` is a feature.
    FileError
        If it is not such a file, or if its counts do not score rows; the message states their use.
    OSError
        If the file cannot be read.
    """
    content = files.read(path).expect("detector", "sketch", "release", "local")
    counts = content.build(counts_from_file)
    _check_scores(path, counts)
    if id_ in counts.plan.schema.names:
        raise UsageError(
            f"--id {id_}: the model uses this column as a feature: fit without it (--drop), or "
            "give it as --keep"
        )
    model = scoring(content, counts)
    if (beside := rules_beside(path)) is None:
        return model
    usual = None if model.usual is None else model.usual.values
    rules = Rules.read(beside, counts.plan.schema, usual)
    notes.append(f"Rows are scored with the rules in {beside}.")
    return model._replace(scorer=model.scorer.by_rules(rules))


def scoring(content: Content, counts: Counts) -> OpenedModel:
    """Return the entries of a file of counts that score rows, other than the counts."""
    scorer = Scorer(counts)
    usual = content.build(lambda one: Usual.from_file(one, counts.plan.schema))
    reading = content.build(Reading.from_file)
    return OpenedModel(scorer, threshold(content, scorer), reading, usual)


def _check_scores(path: str | os.PathLike[str], counts: Counts) -> None:
    plan = counts.plan
    if plan.purpose.refines:
        raise FileError(
            f"{path} holds {plan.detector}, which do not score rows: draw a plan with them "
            f"(hushtable plan draw schema.toml --{plan.detector} {path} -o plan.hush) and "
            "sketch again"
        )
    if plan.purpose is Purpose.GATE:
        raise FileError(
            f"{path} holds counts for a gate, which do not score rows: make the second plan with "
            f"them (hushtable plan second FIRST --gate {path} -o second.plan.hush) and sketch again"
        )
    if plan.purpose is Purpose.VERDICTS:
        raise FileError(
            f"{path} holds verdicts, which change the scores of a model: run hushtable learn MODEL "
            f"{path} -o FILE, and score rows with that file"
        )
    if not plan.purpose.scores_rows:
        raise FileError(
            f"{path} holds ranks, which do not score rows: give the model as --model, and this "
            "file as --ranks"
        )


def threshold(content: Content, scorer: Scorer) -> float:
    """Return the threshold of a model's file; NaN if noise in the counts does not allow one."""
    if content.kind != "detector":
        return scorer.auto_offset()
    offset = content.manifest.get("offset")
    if offset is None and scorer.sketch.ledger is not None:
        return math.nan
    if isinstance(offset, bool) or not isinstance(offset, int | float) or not math.isfinite(offset):
        raise FileError(f"{content.path}: the threshold is not a number: get the file again")
    return float(offset)
