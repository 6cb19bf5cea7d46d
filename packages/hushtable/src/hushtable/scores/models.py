"""Models as files: what scores, the line, how rows are read, and what is usual in them."""

import math
import os
from typing import NamedTuple

from hushtable import files
from hushtable.counts.base import Counts
from hushtable.counts.kinds import counts_from_file
from hushtable.data.options import notes
from hushtable.data.texts.reading import Reading
from hushtable.errors import FileError
from hushtable.files import Content
from hushtable.plans.draws import Purpose
from hushtable.scores.rules import Rules, rules_beside
from hushtable.scores.scorer import Scorer
from hushtable.scores.usual import Usual


class OpenedModel(NamedTuple):
    """A model that was read from a file."""

    scorer: Scorer
    #: Rows that score below are outliers; NaN where noise leaves no line.
    threshold: float
    reading: Reading
    #: What a detector knows of the rows that it counted.
    usual: Usual | None


def open_model(path: str | os.PathLike[str]) -> OpenedModel:
    """Read a detector, or counts that score, and the rules of the rows' owner beside it, if any.

    Parameters
    ----------
    path : path
        A .hush file of a detector, sketch, release or local model.

    Returns
    -------
    OpenedModel

    Raises
    ------
    UsageError
        If the rules beside it do not fit: see `Rules.read`.
    FileError
        If it is not such a file, or one whose counts do not score rows: what they are for.
    OSError
        If the file cannot be read.
    """
    content = files.read(path).expect("detector", "sketch", "release", "local")
    counts = content.build(counts_from_file)
    _check_scores(path, counts)
    model = scoring(content, counts)
    if (beside := rules_beside(path)) is None:
        return model
    usual = None if model.usual is None else model.usual.values
    rules = Rules.read(beside, counts.plan.schema, usual)
    notes.append(f"Rows are scored by the rules in {beside}.")
    return model._replace(scorer=model.scorer.by_rules(rules))


def scoring(content: Content, counts: Counts) -> OpenedModel:
    """Return what the file of counts that score rows says besides them."""
    scorer = Scorer(counts)
    usual = content.build(lambda one: Usual.from_file(one, counts.plan.schema))
    reading = content.build(Reading.from_file)
    return OpenedModel(scorer, threshold(content, scorer), reading, usual)


def _check_scores(path: str | os.PathLike[str], counts: Counts) -> None:
    """Raise `FileError` if counts do not score rows."""
    plan = counts.plan
    if plan.purpose.refines:
        raise FileError(
            f"{path} holds {plan.detector}, which do not score: draw a plan with them "
            f"(hushtable plan draw schema.toml --{plan.detector} {path} -o plan.hush) and "
            "sketch again"
        )
    if plan.purpose is Purpose.GATE:
        raise FileError(
            f"{path} holds counts for a gate, which do not score: make the second plan with them "
            f"(hushtable plan second FIRST --gate {path} -o second.plan.hush) and sketch again"
        )
    if plan.purpose is Purpose.VERDICTS:
        raise FileError(
            f"{path} holds verdicts, which change the scores of a model: hushtable learn MODEL "
            f"{path} -o FILE, and score with that"
        )
    if not plan.purpose.scores_rows:
        raise FileError(
            f"{path} holds ranks, which do not score: give the model as --model, and this file as "
            "--ranks"
        )


def threshold(content: Content, scorer: Scorer) -> float:
    """Return the threshold of a model's file; NaN if the counts are too noisy to derive one."""
    if content.kind != "detector":
        return scorer.auto_offset()
    offset = content.manifest.get("offset")
    if offset is None and scorer.sketch.ledger is not None:
        return math.nan
    if isinstance(offset, bool) or not isinstance(offset, int | float) or not math.isfinite(offset):
        raise FileError(f"{content.path}: the threshold is not a number: get the file again")
    return float(offset)
