"""Commands on counts: ``hushtable sketch``, ``release``, ``merge`` and ``decode``."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable import files
from hushtable.cli import options
from hushtable.cli.errors import written
from hushtable.cli.options import (
    READS,
    Data,
    Output,
    Person,
    Reads,
    argument,
    cost,
    option,
    person_facts,
    persons_blocks,
    read_counts,
    read_release,
    read_sketch,
    refuse_repeated,
    standing,
)
from hushtable.cli.result import (
    Block,
    CommandResult,
    Facts,
    Paragraph,
    Target,
    TextTable,
    shown,
    tally,
    tally_blocks,
)
from hushtable.counts.base import Counts, Noised
from hushtable.counts.periods import Increment, decoded, release_period
from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch
from hushtable.data.options import person_columns
from hushtable.describe import describe_ledger
from hushtable.describe.ledger import in_file
from hushtable.describe.plan import signed_by
from hushtable.errors import HushTableError, PlanError, PrivacyError, UsageError
from hushtable.plans.plan import Plan
from hushtable.privacy.accounting import rounded_up
from hushtable.privacy.budget import ReleaseTerms
from hushtable.progress import bar_of, watched


def sketch(
    data: Data,
    plan: Annotated[Path, option("FILE", "Plan of hushtable plan draw.")],
    output: Output,
    person: Person = None,
    rows_per_person: options.MostRows = None,
    reads: Reads = READS,
) -> CommandResult:
    """Count rows under a plan and write the counts as a sketch.

    A sketch holds exact counts, so it is not private: keep it, and send a release of it.

    Example:
      hushtable sketch patients.csv --drop id,name --plan plan.hush -o site.sketch.hush
    """
    persons = options.of_persons(person, rows_per_person)
    target = Target(output, [data, plan])
    drawn = files.read(plan).expect("plan").build(Plan.from_file)
    reader = reads.open_as(data, drawn.schema, keep=person_columns(person, drawn.schema))
    with watched(reader) as watch:
        counted = Sketch.from_data(drawn, watch.reader, n_jobs=-1, **persons)
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

    def of_release(self, counted: Sketch) -> ReleaseTerms | None:
        """Return the terms of a release of counts; None without epsilon."""
        if self.epsilon is not None:
            most = self.rows_per_person or counted.rows_per_person or 1
            return ReleaseTerms(self.epsilon, self.delta, self.adjacency, most)
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
    sketch: Annotated[Path, argument("SKETCH", "Sketch made by hushtable sketch.")],
    output: options.Output,
    after: Annotated[
        list[Path] | None,
        option(
            "FILE",
            "Earlier release about the same rows; counts towards E. May be repeated; with "
            "--periods, give it with the first period.",
        ),
    ] = None,
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
        return _release_period(sketch, counted, given, among, earlier, target)
    if counted.plan.horizon is not None:
        raise PrivacyError(
            f"the plan is for {counted.plan.horizon.periods} periods at one budget: name the file "
            "that holds the periods of this site (--periods site.periods.hush)"
        )
    if among.period is not None or among.start is not None:
        raise UsageError("--period and --start need --periods: give it, too")
    if given is None:
        raise UsageError("the release needs a budget: give --epsilon")
    with bar_of("Adding noise", len(counted.counts), "cells") as advance:
        noised = counted.release(given, after=earlier, progress=advance)
    target.save(noised)

    def blocks() -> Iterator[Block]:
        yield f"Added noise to each of {len(noised.counts):,} cells: {noised.ledger.noise_sd:,.1f}"
        yield "counts (standard deviation).\n"
        yield Paragraph(describe_ledger(noised.ledger))
        yield f"\nWrote {target}: this file may leave the site. {sketch} may not."

    return CommandResult(
        {"command": "release", "release": str(output)} | _facts(noised, counted), blocks()
    )


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


def _facts(noised: Noised, counted: Sketch) -> dict[str, object]:
    return {
        "release_id": noised.ledger.shares[0].release,
        "plan_id": noised.plan.plan_id,
        "cells": len(noised.counts),
        **cost(noised),
        "words": describe_ledger(noised.ledger),
        "persons": "affirmed" if counted.rows_per_person is None else "column",
    }


def merge(
    counts: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Sketches, releases, or increments, to add up."),
    ],
    output: Output,
) -> CommandResult:
    """Add up sketches, or releases, of the same plan.

    The sum of sketches is bit-identical to the sketch of all rows in one place. The sum of releases
    is a release: noise and ledgers add up too. A sum is not signed, so its recipients have to trust
    you. A round ends in a result that its coordinator signs (hushtable round sync). Increments add
    up if they belong to one period; for several periods, see hushtable decode.

    Example:
      hushtable merge north.hush south.hush -o all.hush
    """
    # A pattern such as *.hush may include the last sum, and so count its rows a second time.
    target = Target(output, counts)
    refuse_repeated(counts)
    total, inputs, alike = _added(counts)
    noised = total if isinstance(total, Noised) else None
    with target.writing():
        total.save(output)
    facts = {
        "command": "merge",
        total.kind: str(output),
        **_part_size(total),
        "inputs": inputs,
        "alike": alike,
        "plan_id": total.plan.plan_id,
    }
    if noised is not None:
        facts |= {"release_id": total.release_id} if total.release_id else {}
        facts |= {**cost(noised), "words": describe_ledger(noised.ledger)}
        facts |= {"signed_by": signed_by(total)}

    def blocks() -> Iterator[Block]:
        yield TextTable(*_part_table(inputs, total))
        for twin, path in alike:
            yield f"\n{path} holds the same counts as {twin}: are they the same rows?"
        if noised is not None:
            yield ""
            yield Paragraph([*describe_ledger(noised.ledger), standing(noised, "The sum")])
            yield f"\nWrote {target}."
        else:
            yield f"\nWrote {target}. It holds exact counts and is not private."

    return CommandResult(facts, blocks())


def _added(paths: list[Path]) -> tuple[Counts, list[Facts], list[list[str]]]:
    first, *others = paths
    total = read_counts(first, Increment.kind)
    digests = {hashlib.sha256(total.counts.data).digest(): first}
    # Keeps only one line per file: the sum of a hundred takes no more memory than that of two.
    inputs = [_part_facts(str(first), total)]
    alike = []
    for path in others:
        other = read_counts(path, Increment.kind)
        total = _add(total, first, other, path)
        inputs.append(_part_facts(str(path), other))
        twin = digests.setdefault(hashlib.sha256(other.counts.data).digest(), path)
        if twin is not path:
            alike.append([str(twin), str(path)])
    return total, inputs, alike


def _add(total: Counts, first: Path, other: Counts, path: Path) -> Counts:
    try:
        added: Counts = total + other
        return added
    except PlanError:
        again = "sketch" if total.ledger is None else "sketch and release"
        raise PlanError(
            f"{path} was counted under a different plan than {first}, so they cannot be added: "
            f"{other.plan.difference(total.plan)}; {again} the rows again under one plan"
        ) from None
    except PrivacyError as error:
        way = ""
        if Increment.kind in (total.kind, other.kind):
            way = " (hushtable decode adds up the increments of all periods)"
        raise PrivacyError(f"{path} and the files before it: {error}{way}") from None


def _part_size(counts: Counts) -> dict[str, int]:
    return {"period": counts.period} if isinstance(counts, Increment) else {"rows": counts.n_rows}


def _part_facts(name: str, counts: Counts) -> dict[str, object]:
    facts: dict[str, object] = {counts.kind: name, **_part_size(counts)}
    if counts.ledger is not None:
        facts |= {"epsilon": counts.ledger.epsilon, "noise_sd": counts.noise_sd}
    return facts


def _part_table(inputs: list[Facts], total: Counts) -> tuple[list[str], list[list[str]]]:
    kind = total.kind
    lines = [(shown(part[kind]), part) for part in inputs] + [("sum", _part_facts("sum", total))]
    if total.ledger is None:
        return [kind, "rows"], [[name, f"{part['rows']:,}"] for name, part in lines]
    amount = "period" if isinstance(total, Increment) else "rows"
    headers = [kind, "period" if amount == "period" else "rows, estimated"]
    rows = []
    for name, part in lines:
        epsilon, noise = f"{rounded_up(part['epsilon']):g}", f"{part['noise_sd']:,.1f}"
        rows.append([name, f"{part[amount]:,}", epsilon, noise])
    return [*headers, "epsilon, total", "noise per cell"], rows


def decode(
    increments: Annotated[
        list[Path],
        typer.Argument(
            metavar="INCREMENT",
            help=(
                "Increments of all periods so far: of one site, of all sites, or from hushtable "
                "merge."
            ),
        ),
    ],
    output: Output,
    window: Annotated[
        int | None, option("N", "Sum only the last N periods; this costs no further budget.", min=1)
    ] = None,
    period: Annotated[
        int | None, option("N", "Decode as of this period: leave out later ones.", min=1)
    ] = None,
) -> CommandResult:
    """Decode the increments of all periods so far into one model.

    Increments of several sites are added up. The sum of all periods, or of the last ones
    (--window), scores rows like any release; it costs no more budget than the increments already
    cost.

    Example:
      hushtable decode north-*.hush south-*.hush -o model.hush
      hushtable decode north-*.hush south-*.hush --window 12 -o year.hush
    """
    target = Target(output, increments)
    refuse_repeated(increments)
    total = decoded(_of_periods(increments, period), window)
    ledger = total.ledger
    assert ledger.window is not None
    assert ledger.period is not None
    assert ledger.sensitivity.horizon is not None
    target.save(total)
    facts = {
        "command": "decode", "release": str(output), "release_id": total.release_id,
        "plan_id": total.plan_id, "period": ledger.period, "window": ledger.window,
        "horizon": ledger.sensitivity.horizon.periods, "rows": total.n_rows, **cost(total),
        "words": describe_ledger(ledger),
    }  # fmt: skip

    def blocks() -> Iterator[Block]:
        yield Paragraph([
            f"Wrote {target}: {in_file(ledger)}. It has about {total.n_rows:,} rows, and noise of "
            f"{total.noise_sd:,.1f} on each count (standard deviation)."
        ])  # fmt: skip
        yield ""
        yield Paragraph(describe_ledger(ledger))

    return CommandResult(facts, blocks())


def _of_periods(paths: list[Path], last: int | None) -> list[Increment]:
    sums: dict[int, Any] = {}
    first: Increment | None = None
    for path in paths:
        part = files.read(path).expect(Increment.kind).build(Increment.from_file)
        first = first or part
        if part.plan_id != first.plan_id:
            raise PlanError(
                f"{path} was released under a different plan than {paths[0]}: "
                f"{part.plan.difference(first.plan)}; give increments of one plan"
            )
        if last is not None and part.period > last:
            continue
        try:
            sums[part.period] = sums[part.period] + part if part.period in sums else part
        except HushTableError as error:
            raise type(error)(f"{path} and the files before it: {error}") from None
    if last is not None and last not in sums:
        raise UsageError(f"--period {last}: no increment belongs to that period")
    return list(sums.values())
