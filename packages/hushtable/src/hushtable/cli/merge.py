"""``hushtable merge``: add up sketches, or releases."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable import files
from hushtable.cli.counts import cost, read_counts, refuse_repeated, standing
from hushtable.cli.options import Output, option
from hushtable.cli.result import Block, CommandResult, Paragraph, Target, TextTable, shown
from hushtable.counts.base import Counts, Noised
from hushtable.counts.periods import Increment, decoded
from hushtable.describe import describe_ledger
from hushtable.describe.ledger import in_file
from hushtable.describe.plan import signed_by
from hushtable.errors import HushTableError, PlanError, PrivacyError, UsageError
from hushtable.privacy.accounting import rounded_up


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
        **_size(total),
        "inputs": inputs,
        "alike": alike,
        "plan_id": total.plan.plan_id,
    }
    if noised is not None:
        facts |= {"release_id": total.release_id} if total.release_id else {}
        facts |= {**cost(noised), "words": describe_ledger(noised.ledger)}
        facts |= {"signed_by": signed_by(total)}

    def blocks() -> Iterator[Block]:
        yield TextTable(*_table(inputs, total))
        for twin, path in alike:
            yield f"\n{path} holds the same counts as {twin}: are they the same rows?"
        if noised is not None:
            yield ""
            yield Paragraph([*describe_ledger(noised.ledger), standing(noised, "The sum")])
            yield f"\nWrote {target}."
        else:
            yield f"\nWrote {target}. It holds exact counts and is not private."

    return CommandResult(facts, blocks())


def _added(paths: list[Path]) -> tuple[Counts, list[dict[str, Any]], list[list[str]]]:
    """Return the sum, facts about its parts, and pairs of files with the same counts."""
    first, *others = paths
    total = read_counts(first, Increment.kind)
    seen = {hashlib.sha256(total.counts.data).digest(): first}
    # Keeps only one line per file: the sum of a hundred takes no more memory than that of two.
    inputs = [_facts(str(first), total)]
    alike = []
    for path in others:
        other = read_counts(path, Increment.kind)
        total = _add(total, first, other, path)
        inputs.append(_facts(str(path), other))
        twin = seen.setdefault(hashlib.sha256(other.counts.data).digest(), path)
        if twin is not path:
            alike.append([str(twin), str(path)])
    return total, inputs, alike


def _add(total: Counts, first: Path, other: Counts, path: Path) -> Counts:
    if isinstance(total, Increment) or isinstance(other, Increment):
        _check_period(total, first, other, path)
    elif total.kind != other.kind:
        raw, released = (first, path) if total.ledger is None else (path, first)
        raise PrivacyError(
            f"{raw} is a raw sketch, but {released} is a release: their sum would be neither exact "
            f"nor private; release the sketch first (hushtable release {raw} --epsilon 1 -o FILE)"
        )
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
        raise PrivacyError(f"{path} and the files before it: {error}") from None


def _check_period(total: Counts, first: Path, other: Counts, path: Path) -> None:
    if total.kind != other.kind:
        raise PrivacyError(
            f"{first} is {total.noun}, but {path} is {other.noun}: decode the increments of all "
            "periods first (hushtable decode), or release the sketch in its period"
        )
    assert isinstance(total, Increment)
    assert isinstance(other, Increment)
    if total.period != other.period:
        raise PrivacyError(
            f"{first} belongs to period {total.period}, but {path} belongs to period "
            f"{other.period}: increments of different periods cannot be added; give the increments "
            "of all periods to hushtable decode"
        )


def _size(counts: Counts) -> dict[str, int]:
    return {"period": counts.period} if isinstance(counts, Increment) else {"rows": counts.n_rows}


def _facts(name: str, counts: Counts) -> dict[str, Any]:
    facts: dict[str, Any] = {counts.kind: name, **_size(counts)}
    if counts.ledger is not None:
        facts |= {"epsilon": counts.ledger.epsilon, "noise_sd": counts.noise_sd}
    return facts


def _table(inputs: list[dict[str, Any]], total: Counts) -> tuple[list[str], list[list[str]]]:
    kind = total.kind
    lines = [(shown(one[kind]), one) for one in inputs] + [("sum", _facts("sum", total))]
    if total.ledger is None:
        return [kind, "rows"], [[name, f"{one['rows']:,}"] for name, one in lines]
    mixed = isinstance(total, Increment)
    size = "period" if mixed else "rows, estimated"
    return [kind, size, "epsilon, total", "noise per cell"], [
        [
            name,
            f"{one['period' if mixed else 'rows']:,}",
            f"{rounded_up(one['epsilon']):g}",
            f"{one['noise_sd']:,.1f}",
        ]
        for name, one in lines
    ]


_Increments = Annotated[
    list[Path],
    typer.Argument(
        metavar="INCREMENT",
        help=(
            "Increments of all periods so far: of one site, of all sites, or from hushtable merge."
        ),
    ),
]
_Window = Annotated[
    int | None, option("N", "Sum only the last N periods; this costs no further budget.", min=1)
]
_Period = Annotated[
    int | None, option("N", "Decode as of this period: leave out later ones.", min=1)
]


def decode(
    increments: _Increments,
    output: Output,
    window: _Window = None,
    period: _Period = None,
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
    """Read increments, and add up those of each period; leave out those after the last."""
    sums: dict[int, Any] = {}
    first: Increment | None = None
    for path in paths:
        one = files.read(path).expect(Increment.kind).build(Increment.from_file)
        first = first or one
        if one.plan_id != first.plan_id:
            raise PlanError(
                f"{path} was released under a different plan than {paths[0]}: "
                f"{one.plan.difference(first.plan)}; give increments of one plan"
            )
        if last is not None and one.period > last:
            continue
        try:
            sums[one.period] = sums[one.period] + one if one.period in sums else one
        except HushTableError as error:
            raise type(error)(f"{path} and the files before it: {error}") from None
    if last is not None and last not in sums:
        raise UsageError(f"--period {last}: no increment belongs to that period")
    return list(sums.values())
