"""``hushtable merge``: sketches to their sum."""

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hushtable.cli._options import Json, Output
from hushtable.cli._output import Target, finish, print_table, shown
from hushtable.errors import FileError, PlanError, UsageError

if TYPE_CHECKING:
    from hushtable.sketch import Sketch

__all__ = ["merge", "read_sketch"]


def merge(
    sketches: Annotated[list[Path], typer.Argument(metavar="SKETCH", help="Files to add up.")],
    output: Output,
    as_json: Json = False,
) -> None:
    """Add up sketches of the same plan.

    The sum is, to the bit, the sketch of all rows in one place.

    \b
    Example:
      hushtable merge north.sketch.hush south.sketch.hush -o all.hush
    """  # noqa: D301 (\b keeps the lines of the example apart)
    # A pattern such as *.hush may take in the last sum, and count its rows a second time.
    target = Target(output, sketches)
    _refuse_repeated(sketches)

    first, *others = sketches
    total = read_sketch(first)
    rows = {str(first): total.n_rows}
    seen = {_digest(total): first}
    alike = []
    for path in others:
        other = read_sketch(path)
        try:
            total = total + other
        except PlanError:
            raise PlanError(
                f"{path} was counted under another plan than {first}, and does not add: "
                f"{other.plan.difference(total.plan)}; sketch the rows again under one plan"
            ) from None
        rows[str(path)] = other.n_rows
        twin = seen.setdefault(_digest(other), path)
        if twin is not path:
            alike.append([str(twin), str(path)])
    with target.writing():
        total.save(output)
    facts = {
        "command": "merge",
        "sketch": str(output),
        "rows": total.n_rows,
        "inputs": [{"sketch": name, "rows": n} for name, n in rows.items()],
        "alike": alike,
        "plan_id": total.plan.plan_id,
    }

    def text() -> None:
        lines = [(shown(name), f"{n:,}") for name, n in rows.items()]
        print_table(["sketch", "rows"], [*lines, ("sum", f"{total.n_rows:,}")])
        for twin, path in alike:
            print(f"\n{path} holds the same counts as {twin}: are they the same rows?")
        print(f"\nWrote {target}. It holds exact counts and is not private.")

    finish(as_json, facts, text)


def _refuse_repeated(paths: list[Path]) -> None:
    seen: dict[str, Path] = {}
    for path in paths:
        real = os.path.realpath(path)
        if real in seen:
            raise UsageError(f"{path} is given twice, and its rows would count twice: give it once")
        seen[real] = path


def _digest(sketch: "Sketch") -> bytes:
    return hashlib.sha256(sketch.counts.data).digest()


def read_sketch(path: Path) -> "Sketch":
    """Read a file that must hold a sketch."""
    from hushtable import files
    from hushtable.sketch import Sketch

    content = files.read(path)
    if content.kind != "sketch":
        raise FileError(f"{path} holds a {content.kind}: give a sketch of hushtable sketch")
    return content.build(Sketch.from_file)
