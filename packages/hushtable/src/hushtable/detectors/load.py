"""Read any .hush file: its object, or what scores rows with it."""

import math
import os
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from hushtable import files, plugins
from hushtable.counts.base import Counts
from hushtable.counts.kinds import counts_from_file, reader_of
from hushtable.counts.release import LocalModel, Release
from hushtable.counts.sketch import Sketch
from hushtable.counts.verdicts import Verdicts
from hushtable.data.options import notes
from hushtable.data.texts.reading import Reading
from hushtable.errors import FileError, PlanError, UsageError
from hushtable.files import Content
from hushtable.plans.draws import ESTIMATORS, Purpose, draw_of
from hushtable.plans.plan import Plan
from hushtable.scores.rules import Rules, rules_beside
from hushtable.scores.scorer import Scorer
from hushtable.scores.usual import Usual

if TYPE_CHECKING:
    from hushtable.detectors import TableDetector


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
    usual = content.build(lambda part: Usual.from_file(part, counts.plan.schema))
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


def load(
    path: str | os.PathLike[str],
) -> Union[Plan, Sketch, Release, LocalModel, "TableDetector"]:
    """Read a .hush file. Nothing in it is executed.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Plan, Sketch, Release, LocalModel, fitted detector, or an object of another package
        The object that the file holds.

    Raises
    ------
    FileError
        If it is not an intact .hush file of a protocol that this version reads.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> from hushtable import Feature, Plan, Schema, load
    >>> plan = Plan.draw(Schema([Feature.numeric("age", low=0, high=99)]), random_state=0)
    >>> plan.save("plan.hush")
    >>> load("plan.hush").plan_id == plan.plan_id
    True
    """
    content = files.read(path)
    reader = _detector if content.kind == "detector" else reader_of(content.kind)
    if reader is None:
        raise FileError(
            f"{path} holds {content.held}, which is not a plan, counts or a model: hushtable "
            f"inspect {path} shows its contents"
        )
    return content.build(reader)  # type: ignore[no-any-return] # the type depends on its kind


def opened(detector: "TableDetector") -> OpenedModel:
    """Return what scores rows of a fitted detector, as if it had been saved and read."""
    usual = detector._usual_values()
    return OpenedModel(detector._scorer, detector.offset_, detector.reading_, usual)


def learned_detector(model: str | os.PathLike[str], verdicts: Verdicts) -> Any:
    """Return the detector of a model's file, or of merged counts, with only these verdicts.

    Parameters
    ----------
    model : path
        A .hush file of a detector, or of counts that score rows.
    verdicts : Verdicts
        Verdicts under the model's plan. Those that the model learned before are discarded.

    Returns
    -------
    fitted detector

    Raises
    ------
    FileError
        If it is not such a file.
    """
    content = files.read(model)
    if content.kind == "detector":
        detector: Any = load(model)
    else:
        counts = content.build(counts_from_file)
        detector = draw_of(counts.plan.detector).estimator_class().from_counts(counts)
    detector.forget()
    if verdicts.n_rows:
        detector.learn_from(verdicts)
    return detector


def _detector(content: Content) -> Any:
    name = content.manifest.get("detector")
    draw = plugins.registered(ESTIMATORS, name)
    if draw is None:
        raise PlanError(plugins.unknown("detector", name, ESTIMATORS))
    return draw.estimator_class().from_file(content)
