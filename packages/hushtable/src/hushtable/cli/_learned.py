"""Models with verdicts, as commands write them."""

from pathlib import Path
from typing import Any

from hushtable import files
from hushtable.cli._output import Target
from hushtable.counts.base import Counts
from hushtable.counts.kinds import counts_from_file
from hushtable.detectors.load import load


def save_learned(model: Path, verdicts: Counts, target: Target) -> None:
    """Write the detector of a model, or of merged counts, with these verdicts and no others."""
    # scikit-learn takes a second to import: only once there is something to write.
    from hushtable.detectors.load import by_draw

    content = files.read(model)
    if content.kind == "detector":
        detector: Any = load(model)
    else:
        counts = content.build(counts_from_file)
        detector = by_draw()[counts.plan.detector].from_counts(counts)
    detector.forget()
    if verdicts.ledger is not None or verdicts.n_rows:
        detector.learn_from(verdicts)
    target.save(detector)


def count(n: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
