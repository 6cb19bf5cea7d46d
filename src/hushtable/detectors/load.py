"""`load`: any .hush file, as the object that it holds."""

import os
from typing import TYPE_CHECKING, Union

from hushtable import files
from hushtable.counts.local import LocalModel
from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch
from hushtable.errors import FileError
from hushtable.plans.plan import Plan

if TYPE_CHECKING:
    from hushtable.detectors import TableDetector

__all__ = ["load"]


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
    """
    content = files.read(path)
    if content.kind == "plan":
        return content.build(Plan.from_file)
    if content.kind == "sketch":
        return content.build(Sketch.from_file)
    if content.kind == "release":
        return content.build(Release.from_file)
    if content.kind == "local":
        return content.build(LocalModel.from_file)
    if content.kind != "detector":
        raise FileError(
            f"{path} holds a {content.kind}, which belongs to a round: see hushtable round --help"
        )
    # scikit-learn takes a second to import: only for those who load a detector.
    from hushtable.detectors._by_draw import BY_DRAW

    name = content.manifest.get("detector")
    known = {detector.__name__: detector for detector in BY_DRAW.values()}
    if not isinstance(name, str) or name not in known:
        raise FileError(f"{path}: detector {name!r} is none of {sorted(known)}: upgrade hushtable")
    return content.build(known[name].from_file)
