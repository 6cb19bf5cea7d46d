"""`load`: read any .hush file and return its object."""

import os
from typing import TYPE_CHECKING, Any, Union

from hushtable import files, plugins
from hushtable.counts.base import Counts
from hushtable.counts.kinds import READERS, counts_from_file, reader_of
from hushtable.counts.release import LocalModel, Release
from hushtable.counts.sketch import Sketch
from hushtable.errors import FileError, PlanError
from hushtable.plans.draws import ESTIMATORS, draw_of
from hushtable.plans.plan import Plan
from hushtable.scores.models import OpenedModel

if TYPE_CHECKING:
    from hushtable.detectors import TableDetector


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
    reader = reader_of(content.kind)
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


def learned_detector(model: str | os.PathLike[str], verdicts: Counts) -> Any:
    """Return the detector of a model's file, or of merged counts, with only these verdicts.

    Parameters
    ----------
    model : path
        A .hush file of a detector, or of counts that score rows.
    verdicts : Verdicts or VerdictRelease
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
    if verdicts.ledger is not None or verdicts.n_rows:
        detector.learn_from(verdicts)
    return detector


def _detector(content: files.Content) -> Any:
    name = content.manifest.get("detector")
    draw = plugins.registered(ESTIMATORS, name)
    if draw is None:
        raise PlanError(plugins.unknown("detector", name, ESTIMATORS))
    return draw.estimator_class().from_file(content)


READERS["detector"] = _detector
