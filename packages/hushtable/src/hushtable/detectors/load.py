"""`load`: any .hush file, as the object that it holds."""

import os
from typing import TYPE_CHECKING, Any, Union

from hushtable import files
from hushtable.counts.kinds import READERS, reader_of
from hushtable.counts.local import LocalModel
from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch
from hushtable.errors import FileError, PlanError
from hushtable.plans.plan import Plan

if TYPE_CHECKING:
    from hushtable.detectors import TableDetector


def load(path: str | os.PathLike[str]) -> Union[Plan, Sketch, Release, LocalModel, "TableDetector"]:
    """Read a .hush file. Nothing in it is executed.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Plan, Sketch, Release, LocalModel or fitted detector
        Whichever the file holds.

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
    reader, known = reader_of(content.kind), files.kind_of(content.kind)
    if reader is None or known is None or known.inspect is not None:
        raise FileError(
            f"{path} holds {content.held}, which is no plan, counts or model: hushtable inspect "
            f"{path} shows it"
        )
    return content.build(reader)  # type: ignore[no-any-return] # by its kind


def _detector(content: files.Content) -> Any:
    # scikit-learn takes a second to import: only for those who load a detector.
    from hushtable.detectors._by_draw import BY_DRAW

    name = content.manifest.get("detector")
    known = {detector.__name__: detector for detector in BY_DRAW.values()}
    if not isinstance(name, str) or name not in known:
        raise PlanError(f"detector {name!r} is none of {sorted(known)}: upgrade hushtable")
    return known[name].from_file(content)


READERS["detector"] = _detector
