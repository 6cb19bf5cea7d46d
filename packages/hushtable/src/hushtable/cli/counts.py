"""The option ``--detector``, and files of counts."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable import files
from hushtable.cli.result import shown
from hushtable.counts.base import Counts, Noised
from hushtable.counts.kinds import counts_from_file
from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch
from hushtable.counts.verdicts import Verdicts
from hushtable.describe.plan import signed_by
from hushtable.errors import FileError, PrivacyError, UsageError
from hushtable.plans.draws import Draw, detectors, draw_of


def _spelled() -> list[str]:
    return [name.replace("_", "-") for name in detectors()]


Detector = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        autocompletion=_spelled,
        help=f"Detector: {' or '.join(_spelled())}, or one of another package.",
    ),
]
HUSHTABLE = "hushtable"


def draw_spelled(spelled: str) -> Draw:
    """Return the draw of a detector as the command line spells it."""
    return draw_of(spelled.replace("-", "_"))


def read_counts(path: Path, *more: str) -> Counts:
    """Read a file that must hold a sketch, a release, or another of the given kinds."""
    content = files.read(path)
    if content.kind == Verdicts.kind:
        raise PrivacyError(
            f"{path} holds exact verdicts, from which rows can be read, so keep it where the rows "
            "are. To add up the verdicts of one site, use hushtable learn; for several sites, "
            "make releases under hushtable plan verdicts"
        )
    return content.expect("sketch", "release", *more).build(counts_from_file)


def read_sketch(path: Path) -> Sketch:
    """Read a file that must hold a sketch."""
    content = files.read(path).expect("sketch", "release")
    if content.kind == Release.kind:
        raise FileError(
            f"{path} is already a release with noise: send it as it is (only a sketch of hushtable "
            "sketch can be released)"
        )
    return content.build(Sketch.from_file)


def read_release(path: Path) -> Release:
    """Read a file that must hold a release."""
    content = files.read(path).expect("release", "sketch")
    if content.kind == Sketch.kind:
        raise FileError(
            f"{path} is a raw sketch, and its exact counts must not leave the site: give a release "
            f"(hushtable release {path} --epsilon 1 -o FILE)"
        )
    return content.build(Release.from_file)


def cost(release: Noised) -> dict[str, float]:
    """Return the cost of a release, for machines."""
    ledger = release.ledger
    return {"epsilon": ledger.epsilon, "delta": ledger.delta, "noise_sd": ledger.noise_sd}


def refuse_repeated(paths: Sequence[Path]) -> None:
    """Raise `UsageError` if a file is given twice."""
    seen: dict[str, Path] = {}
    for path in paths:
        real = os.path.realpath(path)
        if real in seen:
            raise UsageError(f"{path} is given twice, and its rows would count twice: give it once")
        seen[real] = path


def standing(counts: Any, what: str = "The result") -> str:
    """Return one sentence on whether counts are signed, and how to check the signature."""
    who = signed_by(counts)
    if who is None:
        return f"{what} is not signed: anyone could have made or changed it."
    by = f"{what} is signed by {shown(who['name'])} ({who['fingerprint']})"
    return f"{by}: hushtable round verify checks the signature."
