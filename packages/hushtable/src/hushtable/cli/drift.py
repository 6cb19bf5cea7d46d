"""``hushtable drift``: how far new rows are from old ones, and how much of it chance explains."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from hushtable import files
from hushtable.cli.options import READS, ModelReads, argument, number, option
from hushtable.cli.result import Block, CommandResult, Paragraph, TextTable
from hushtable.counts.base import Counts
from hushtable.counts.kinds import counts_from_file
from hushtable.counts.sketch import count_here
from hushtable.data.options import RowOptions
from hushtable.data.texts.reading import Reading
from hushtable.errors import DataError, PlanError, UsageError
from hushtable.plans.plan import Plan
from hushtable.progress import watched
from hushtable.streams import Drift, drift_words, measured, of_all_rows, why_no_drift


def drift_facts(drift: Drift | None) -> dict[str, object]:
    """Return the drift for machines."""
    if drift is None:
        return {"drift": None, "level": None, "beyond_chance": []}
    return {
        "drift": drift.overall,
        "level": drift.level,
        "beyond_chance": drift.beyond_chance,
    }


#: Exit code of a command that succeeded, and found that --fail-above was exceeded.
ABOVE = 3
#: Rows that are used to measure how far chance moves them.
_SAMPLED = 500
_COUNTS = ("sketch", "release", "detector", "local")


@dataclass(frozen=True)
class _Side:
    counts: Counts
    rows: Any = None


def drift(
    old: Annotated[str, argument("OLD", "A sketch, release or model (.hush), or rows.")],
    new: Annotated[str, argument("NEW", "The same for other rows.")],
    fail_above: Annotated[
        str | None,
        option(
            "X|chance",
            "Exit with code 3 if the drift is above this number, or above what chance explains.",
        ),
    ] = None,
    reads: ModelReads = READS,
) -> CommandResult:
    """Compare two sets of rows, and report how much chance explains.

    Each set is a file of counts (.hush), or rows, which are then counted under the plan of the
    other set. Exit codes: 0 success, 1 refused or failed, 2 wrong usage, 3 success, but the drift
    is above --fail-above.

    Example:
      hushtable drift model.hush november.csv --fail-above chance
      hushtable drift october.sketch.hush november.sketch.hush
    """
    limit = 1.0 if fail_above in (None, "chance") else number(str(fail_above))
    if not 0.0 <= limit <= 1.0:
        raise UsageError(f"--fail-above {fail_above}: needs a number from 0 to 1, or chance")
    before, after = _sides([old, new], reads)
    result = _compared(old, before, new, after)
    limit = result.level if fail_above == "chance" else limit
    above = fail_above is not None and result.overall > limit
    features = {
        name: {"drift": x, "level": result.feature_levels[name]}
        for name, x in result.features.items()
    }
    facts = {
        "command": "drift",
        "rows": [before.counts.n_rows, after.counts.n_rows],
        **drift_facts(result),
        "features": features,
        "above": above,
    }
    return CommandResult(
        facts, _blocks(result, before, after, above, fail_above), ABOVE if above else 0
    )


def _sides(names: list[str], reads: RowOptions) -> list[_Side]:
    contents = [
        files.read(name).expect(*_COUNTS) if name.endswith(".hush") else None for name in names
    ]
    counted = [None if counts is None else counts.build(counts_from_file) for counts in contents]
    content = next((counts for counts in reversed(contents) if counts is not None), None)
    if content is None:
        raise UsageError(
            "both are rows: fit a model to one of them (hushtable fit), and compare the other with "
            "it"
        )
    plan, reading = content.build(Plan.from_file), content.build(Reading.from_file)
    if plan.first_counts is not None and plan.first_noise_sd is None:
        plan = plan.first_pass()
    for counts in counted:
        if counts is not None and (reason := why_no_drift(counts)):
            raise UsageError(
                f"drift cannot be measured: {reason}: give a sketch, a release, or a model of one "
                "pass"
            )
    sides = []
    for name, counts in zip(names, counted, strict=True):
        if counts is not None:
            sides.append(_Side(of_all_rows(counts)))
            continue
        reader = reads.open_as(name, plan.schema, reading).repeatable()
        with watched(reader) as watch:
            sides.append(_Side(count_here(plan, watch.reader, n_jobs=-1), reader))
    return sides


def _compared(old: str, before: _Side, new: str, after: _Side) -> Drift:
    rows = None
    for side in (before, after):
        if side.rows is not None and (n := side.counts.n_rows) >= 4:
            rows = side.rows.take(np.arange(0, n, -(-n // _SAMPLED)))
    try:
        drift = measured(before.counts, after.counts, rows)
    except PlanError:
        raise PlanError(
            f"{new} was counted under a different plan than {old}: "
            f"{after.counts.plan.difference(before.counts.plan)}; count the rows of both under one "
            "plan"
        ) from None
    if drift is None:
        raise DataError(
            f"{old} and {new} hold about {before.counts.n_rows:,} and {after.counts.n_rows:,} "
            "rows: too few to compare, or too few for their noise; give more rows"
        )
    return drift


def _blocks(
    drift: Drift, before: _Side, after: _Side, above: bool, limit: str | None
) -> Iterator[Block]:
    yield f"Compared {after.counts.n_rows:,} new rows with {before.counts.n_rows:,} old ones."
    yield Paragraph([drift_words(drift)])
    if drift.features:
        far = sorted(drift.features, key=lambda n: drift.feature_levels[n] - drift.features[n])
        yield ""
        yield TextTable(
            ["column", "drift", "by chance up to"],
            [[n, f"{drift.features[n]:.4f}", f"{drift.feature_levels[n]:.4f}"] for n in far],
        )
    if above:
        yield f"\nThe drift is above --fail-above {limit}: exit code {ABOVE}."
    if not (before.counts.may_leave and after.counts.may_leave):
        yield "\nThis output describes your rows: keep it where the rows are."
