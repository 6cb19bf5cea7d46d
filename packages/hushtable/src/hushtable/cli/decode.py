"""``hushtable decode``: increments of all periods so far to a release that scores rows."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable import files
from hushtable.cli._counts import cost, refuse_repeated
from hushtable.cli._options import Json, Output, option
from hushtable.cli._output import Target, finish, print_sentences
from hushtable.counts.increments import Increment, decoded
from hushtable.describe import describe_ledger
from hushtable.describe.ledger import in_file
from hushtable.errors import HushTableError, PlanError, UsageError

_Increments = Annotated[
    list[Path],
    typer.Argument(
        metavar="INCREMENT",
        help="Increments of all periods so far, of one site or of all, or of hushtable merge.",
    ),
]
_Window = Annotated[
    int | None, option("N", "Sum the last N periods only; costs nothing more.", min=1)
]
_Period = Annotated[
    int | None, option("N", "Decode as of this period: leave later ones out.", min=1)
]


def decode(
    increments: _Increments,
    output: Output,
    window: _Window = None,
    period: _Period = None,
    as_json: Json = False,
) -> None:
    """Decode the increments of all periods so far: the sum is a model.

    Those of several sites are added up. The sum of all periods, or of the last ones (--window),
    scores rows as any release does; it costs nothing that the increments did not.

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

    def text() -> None:
        print_sentences([
            f"Wrote {target}: {in_file(ledger)}. It has about {total.n_rows:,} rows, and noise of "
            f"{total.noise_sd:,.1f} on each count (standard deviation)."
        ])  # fmt: skip
        print()
        print_sentences(describe_ledger(ledger))

    finish(as_json, facts, text)


def _of_periods(paths: list[Path], last: int | None) -> list[Increment]:
    """Read increments, and add up those of one period; leave out those after the last."""
    sums: dict[int, Any] = {}
    first: Increment | None = None
    for path in paths:
        one = files.read(path).expect(Increment.kind).build(Increment.from_file)
        first = first or one
        if one.plan_id != first.plan_id:
            raise PlanError(
                f"{path} was released under another plan than {paths[0]}: "
                f"{one.plan.difference(first.plan)}; give increments of one plan"
            )
        if last is not None and one.period > last:
            continue
        try:
            sums[one.period] = sums[one.period] + one if one.period in sums else one
        except HushTableError as error:
            raise type(error)(f"{path} and the files before it: {error}") from None
    if last is not None and last not in sums:
        raise UsageError(f"--period {last}: no increment is of that period")
    return list(sums.values())
