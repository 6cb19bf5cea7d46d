"""``hushtable release``: a sketch to what may leave the site."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.cli import _options as options
from hushtable.cli._counts import cost, read_release, read_sketch
from hushtable.cli._options import argument, option
from hushtable.cli._output import Target, finish, print_sentences
from hushtable.cli._progress import cells_bar
from hushtable.counts.release import Release
from hushtable.privacy.mechanisms import DEFAULT, MECHANISMS
from hushtable.privacy.terms import Terms

_Sketch = Annotated[Path, argument("SKETCH", "Sketch of hushtable sketch.")]
_Total = Annotated[
    float, option("E", "Total for one person, over all tables and all that came before.")
]


def _known(name: str) -> str:
    if name not in MECHANISMS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(MECHANISMS)}.")
    return name


_Noise = Annotated[
    str,
    option(
        f"<{'|'.join(MECHANISMS)}>",
        "Noise. " + "; ".join(f"{one.name}: {one.words}" for one in MECHANISMS.values()) + ".",
        callback=_known,
    ),
]
_After = Annotated[
    list[Path] | None,
    option("FILE", "Earlier release about the same rows; counts towards E. May be given again."),
]
_Budget = Annotated[
    float | None,
    option(
        "S",
        "Share of the budget to take; by default .1 for marginals, .05 for ranges, and all that is "
        "left for tables.",
    ),
]
_Most = Annotated[
    int | None,
    option(
        "N",
        "Rows that one person has at most; by default what --person of sketch saw to, "
        "else 1: your word.",
        min=1,
    ),
]


def release(
    sketch: _Sketch,
    epsilon: _Total,
    output: options.Output,
    delta: options.Delta = 1e-6,
    mechanism: _Noise = DEFAULT,
    adjacency: options.AdjacencyOption = "add-remove",
    rows_per_person: _Most = None,
    after: _After = None,
    share: _Budget = None,
    as_json: options.Json = False,
) -> None:
    """Add noise to a sketch: the result may leave the site.

    The ledger in the file says what it costs a person. Send the release, never the sketch.

    Example:
      hushtable release site.sketch.hush --epsilon 1 -o site.hush
    """
    target = Target(output, [sketch, *(after or [])])
    counted = read_sketch(sketch)
    most = rows_per_person or counted.rows_per_person or 1
    terms = Terms(epsilon, delta, adjacency, most, share, mechanism=mechanism)
    earlier = [read_release(path) for path in after or []]
    with cells_bar(len(counted.counts), quiet=as_json) as advance:
        noised = counted.release(terms, after=earlier, progress=advance)
    target.save(noised)
    facts = {"command": "release", "release": str(output), **_facts(noised)}
    facts["persons"] = "affirmed" if counted.rows_per_person is None else "column"

    def text() -> None:
        print(f"Added noise to each of {len(noised.counts):,} cells: {noised.ledger.noise_sd:,.1f}")
        print("counts (standard deviation).\n")
        print_sentences(noised.ledger.words())
        print(f"\nWrote {target}: this file may leave the site. {sketch} may not.")

    finish(as_json, facts, text)


def _facts(noised: Release) -> dict[str, Any]:
    return {
        "release_id": noised.release_id,
        "plan_id": noised.plan.plan_id,
        "cells": len(noised.counts),
        **cost(noised),
        "words": noised.ledger.words(),
    }
