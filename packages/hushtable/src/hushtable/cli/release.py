"""``hushtable release``: turn a sketch into a file that may leave the site."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable import files
from hushtable.cli import options
from hushtable.cli.counts import cost, read_release, read_sketch
from hushtable.cli.errors import written
from hushtable.cli.options import (
    READS,
    Data,
    Output,
    Person,
    Reads,
    Threads,
    argument,
    option,
    person_facts,
    persons_blocks,
)
from hushtable.cli.result import Block, CommandResult, Paragraph, Target, tally, tally_blocks
from hushtable.counts.base import Noised
from hushtable.counts.periods import release_period
from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch
from hushtable.data.options import person_columns
from hushtable.describe import describe_ledger
from hushtable.errors import PrivacyError, UsageError
from hushtable.plans.plan import Plan
from hushtable.privacy.budget import ReleaseTerms
from hushtable.privacy.mechanisms import DEFAULT, MECHANISMS
from hushtable.progress import bar_of, watched

_PlanFile = Annotated[Path, option("FILE", "Plan of hushtable plan draw.")]
_RowsPerPerson = Annotated[
    int | None,
    option("N", "With --person: largest number of rows to count per person; default 1.", min=1),
]


def sketch(
    data: Data,
    plan: _PlanFile,
    output: Output,
    person: Person = None,
    rows_per_person: _RowsPerPerson = None,
    threads: Threads = -1,
    reads: Reads = READS,
) -> CommandResult:
    """Count rows under a plan and write the counts as a sketch.

    A sketch holds exact counts, so it is not private: keep it, and send a release of it.

    Example:
      hushtable sketch patients.csv --drop id,name --plan plan.hush -o site.sketch.hush
    """
    if person is None and rows_per_person is not None:
        raise UsageError("--rows-per-person needs --person, the column that identifies persons")
    target = Target(output, [data, plan])
    drawn = files.read(plan).expect("plan").build(Plan.from_file)
    reader = reads.open_as(data, drawn.schema, keep=person_columns(person, drawn.schema))
    most: Any = {} if rows_per_person is None else {"rows_per_person": rows_per_person}
    with watched(reader) as watch:
        counted = Sketch.from_data(drawn, watch.reader, n_jobs=threads, person=person, **most)
    target.save(counted)
    facts = {
        "command": "sketch",
        "sketch": str(output),
        "rows": counted.n_rows,
        "plan_id": drawn.plan_id,
        "tally": tally(drawn.schema, counted.tally),
        **person_facts(counted.persons),
    }

    def blocks() -> Iterator[Block]:
        yield f"Counted {counted.n_rows:,} rows under plan {drawn.plan_id[:12]}."
        yield from persons_blocks(counted.persons)
        yield from tally_blocks(
            drawn.schema, counted.tally, counted.n_rows if person else watch.rows
        )
        yield f"Wrote {target}. It contains exact counts and is not private: keep it here."
        if not drawn.data_dependent:
            yield "Only a release of it may leave the site:"
            which = "" if drawn.horizon is None else " --periods site.periods.hush"
            yield f"  hushtable release {output}{which} --epsilon 1 -o site.hush"

    return CommandResult(facts, blocks())


_Sketch = Annotated[Path, argument("SKETCH", "Sketch made by hushtable sketch.")]


def _known(name: str) -> str:
    if name not in MECHANISMS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(MECHANISMS)}.")
    return name


_After = Annotated[
    list[Path] | None,
    option(
        "FILE",
        "Earlier release about the same rows; counts towards E. May be repeated; with --periods, "
        "give it with the first period.",
    ),
]


@dataclass(frozen=True)
class NoiseTerms:
    """The terms of a release; without epsilon, those of periods that have begun."""

    epsilon: Annotated[
        float | None,
        option(
            "E",
            "Total budget for one person, over all tables, all earlier releases, and all periods; "
            "required, except for periods that have begun.",
        ),
    ] = None
    delta: options.Delta = 1e-6
    mechanism: Annotated[
        str,
        option(
            f"<{'|'.join(MECHANISMS)}>",
            "Noise. " + "; ".join(f"{one.name}: {one.words}" for one in MECHANISMS.values()) + ".",
            callback=_known,
        ),
    ] = DEFAULT
    adjacency: options.AdjacencyOption = "add-remove"
    rows_per_person: Annotated[
        int | None,
        option(
            "N",
            "Largest number of rows of one person; by default the limit that sketch applied with "
            "--person, or else 1, which you then assert.",
            min=1,
        ),
    ] = None
    share: Annotated[
        float | None,
        option(
            "S",
            "Share of the budget to use; by default .1 for marginals, .05 for ranges, .3 for "
            "relations, and the whole rest for tables.",
        ),
    ] = None

    def of_release(self, counted: Sketch) -> ReleaseTerms | None:
        """Return the terms of a release of counts; None without epsilon."""
        if self.epsilon is not None:
            most = self.rows_per_person or counted.rows_per_person or 1
            return ReleaseTerms(
                self.epsilon,
                self.delta,
                self.adjacency,
                most,
                self.share,
                mechanism=self.mechanism,
            )
        if (self.rows_per_person, self.delta, self.adjacency) != (None, 1e-6, "add-remove"):
            raise UsageError("--rows-per-person, --delta and --adjacency need --epsilon: give it")
        return None


@dataclass(frozen=True)
class InPeriods:
    """The file of periods that the sketch belongs to, and the number of its period."""

    periods: Annotated[
        Path | None,
        option(
            "FILE",
            "File of the site's periods, under a plan with a horizon: the sketch belongs to the "
            "next period. Created with the first period; it stays here.",
        ),
    ] = None
    period: Annotated[
        int | None,
        option(
            "N", "Number of the period; a period that was already released is written again.", min=1
        ),
    ] = None
    start: Annotated[int | None, option("N", "First period of a site that joins late.", min=1)] = (
        None
    )


def release(
    sketch: _Sketch,
    output: options.Output,
    after: _After = None,
    *,
    terms: NoiseTerms,
    among: InPeriods,
) -> CommandResult:
    """Add noise to a sketch: the result may leave the site.

    The ledger in the file states the privacy cost for one person. Send the release, never the
    sketch. Under a plan with a horizon, give --periods: the output is then an increment.

    Example:
      hushtable release site.sketch.hush --epsilon 1 -o site.hush
      hushtable release march.sketch.hush --periods site.periods.hush -o march.hush
    """
    target = Target(output, [sketch, *(after or []), among.periods])
    counted = read_sketch(sketch)
    given = terms.of_release(counted)
    earlier = [read_release(path) for path in after or []]
    if among.periods is not None:
        if terms.share is not None or terms.mechanism != DEFAULT:
            raise UsageError("--share and --mechanism cannot be combined with --periods")
        return _release_period(sketch, counted, given, among, earlier, target)
    checked = _checked(given, counted.plan, among)
    with bar_of("Adding noise", len(counted.counts), "cells") as advance:
        noised = counted.release(checked, after=earlier, progress=advance)
    target.save(noised)

    def blocks() -> Iterator[Block]:
        yield f"Added noise to each of {len(noised.counts):,} cells: {noised.ledger.noise_sd:,.1f}"
        yield "counts (standard deviation).\n"
        yield Paragraph(describe_ledger(noised.ledger))
        yield f"\nWrote {target}: this file may leave the site. {sketch} may not."

    return CommandResult(
        {"command": "release", "release": str(output)} | _facts(noised, counted), blocks()
    )


def _checked(terms: ReleaseTerms | None, plan: Plan, among: InPeriods) -> ReleaseTerms:
    if plan.horizon is not None:
        raise PrivacyError(
            f"the plan is for {plan.horizon.periods} periods at one budget: name the file that "
            "holds the periods of this site (--periods site.periods.hush)"
        )
    if among.period is not None or among.start is not None:
        raise UsageError("--period and --start need --periods: give it, too")
    if terms is None:
        raise UsageError("the release needs a budget: give --epsilon")
    return terms


def _release_period(
    path: Path,
    counted: Sketch,
    terms: ReleaseTerms | None,
    among: InPeriods,
    earlier: list[Release],
    target: Target,
) -> CommandResult:
    kept = among.periods
    assert kept is not None
    Target(kept, [path])
    increment, periods = release_period(
        kept, counted, terms, start=among.start, period=among.period, after=earlier
    )
    written.append(str(kept))
    target.save(increment)
    horizon = periods.horizon
    facts = {
        "command": "release", "increment": str(target.path), "periods": str(kept),
        "period": increment.period, "horizon": horizon.periods, **_facts(increment, counted),
    }  # fmt: skip

    def blocks() -> Iterator[Block]:
        yield Paragraph([
            f"Period {increment.period} of {horizon.periods}: its counts"
            f"{', mixed with those of the periods before,' if increment.period > 1 else ''} plus "
            f"noise of {increment.noise_sd:,.1f} (standard deviation) on each of "
            f"{len(increment.counts):,} cells."
        ])  # fmt: skip
        yield ""
        yield Paragraph(describe_ledger(increment.ledger))
        yield f"\nWrote {target}: this file may leave the site. {path} and"
        yield f"{kept} may not. The next period needs {kept}."

    return CommandResult(facts, blocks())


def _facts(noised: Noised, counted: Sketch) -> dict[str, Any]:
    return {
        "release_id": noised.ledger.shares[0].release,
        "plan_id": noised.plan.plan_id,
        "cells": len(noised.counts),
        **cost(noised),
        "words": describe_ledger(noised.ledger),
        "persons": "affirmed" if counted.rows_per_person is None else "column",
    }
