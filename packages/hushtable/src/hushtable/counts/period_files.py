"""The periods of a site in a file, from which one process at a time releases.

What was released is in the file before it leaves: whatever fails after that, the same increment is
made again of the file, and no period ever has two noises.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hushtable import files
from hushtable.counts.increments import Increment
from hushtable.counts.periods import Periods
from hushtable.counts.release import Release
from hushtable.counts.releasing import earlier_of
from hushtable.counts.sketch import Sketch
from hushtable.errors import FileError, UsageError
from hushtable.privacy.terms import Terms


def release_period(
    path: Path,
    sketch: Sketch,
    terms: Terms | None,
    *,
    start: int | None = None,
    period: int | None = None,
    after: Sequence[Release] = (),
) -> tuple[Increment, Periods]:
    """Release a period of a file, which is begun with the first.

    Parameters
    ----------
    path : path
        The periods of the site.
    sketch : Sketch
        The rows of this period, and of no other.
    terms : Terms or None
        Of all periods together. Needed to begin the file; later they are those of the file.
    start, period, after
        As in `Periods` and `Periods.release`; ``after`` begins the file, as ``start`` does.

    Raises
    ------
    FileError
        If the file is damaged, or another process releases from it.
    UsageError, PlanError, PrivacyError
        If the terms are others than the file's, and as `Periods.release`.
    """
    with files.locked(path):
        periods = _opened(path, sketch, terms, start, after)
        if period is not None:
            periods.check_within(period)
        again = _held(periods, sketch)
        if period is None and again:
            raise UsageError(
                f"the sketch has the counts of period {again}, to the bit: if it is of the same "
                f"rows, ask for that period again (period {again}); if not, name the next one "
                f"({len(periods) + 1} of {periods.horizon.periods})"
            )
        before = len(periods)
        increment = periods.release(sketch, period)
        if len(periods) > before:
            periods.save(path)
    return increment, periods


def _opened(
    path: Path,
    sketch: Sketch,
    terms: Terms | None,
    start: int | None,
    after: Sequence[Release],
) -> Periods:
    """Read the periods, or begin them."""
    if not path.exists():
        if terms is None:
            raise UsageError(f"there is no {path} yet: give epsilon to begin it, for all periods")
        first = 1 if start is None else start
        return Periods(sketch.plan, terms, start=first, after=after)
    periods = files.read(path).expect("periods").build(Periods.from_file)
    if sketch.plan_id != periods.plan.plan_id:
        raise FileError(
            f"{path} holds periods of another plan than the sketch: "
            f"{periods.plan.difference(sketch.plan)}"
        )
    if start not in (None, periods.start):
        raise UsageError(f"start={start}: {path} began with period {periods.start}")
    if after and {*earlier_of(after, periods.plan)} != {*periods.share.earlier}:
        raise UsageError(
            f"{path} was begun after {len(periods.share.earlier)} earlier releases, and not after "
            "these: what came before is named with the first period; leave it out. A release that "
            "was made since names the stream instead (the sum of hushtable decode)"
        )
    if terms is not None and terms != replace(periods.terms, share=terms.share):
        raise UsageError(
            f"{path} was begun with {periods.terms.words()}, for all periods, and not with "
            f"{terms.words()}: leave the terms out"
        )
    return periods


def _held(periods: Periods, sketch: Sketch) -> int:
    """Return the last period with the counts of a sketch, to the bit; 0 if there is none."""
    found = np.flatnonzero((periods.counts == sketch.counts).all(axis=1))
    return int(found[-1]) + 1 if len(found) and sketch.counts.any() else 0
