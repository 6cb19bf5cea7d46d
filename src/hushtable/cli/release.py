"""``hushtable release``: a sketch to what may leave the site."""

from pathlib import Path
from typing import Annotated

import typer

from hushtable.cli._counts import cost, read_release, read_sketch
from hushtable.cli._options import AdjacencyOption, Delta, Json, Output, RowsPerPerson
from hushtable.cli._output import Target, finish, print_sentences
from hushtable.cli._progress import cells_bar
from hushtable.privacy.mechanisms import DEFAULT, MECHANISMS
from hushtable.privacy.terms import Terms

__all__ = ["release"]


def release(
    sketch: Annotated[Path, typer.Argument(metavar="SKETCH", help="Sketch of hushtable sketch.")],
    epsilon: Annotated[
        float,
        typer.Option(
            metavar="E", help="Total for one person, over all tables and all that came before."
        ),
    ],
    output: Output,
    delta: Delta = 1e-6,
    mechanism: Annotated[
        str,
        typer.Option(
            metavar=f"<{'|'.join(MECHANISMS)}>",
            help="Noise. "
            + "; ".join(f"{one.name}: {one.words}" for one in MECHANISMS.values())
            + ".",
        ),
    ] = DEFAULT,
    adjacency: AdjacencyOption = "add-remove",
    rows_per_person: RowsPerPerson = 1,
    after: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Earlier release about the same rows; counts towards E. May be given again.",
        ),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="Share of the budget to take; by default .1 for marginals, .05 for ranges, and "
            "all that is left for tables.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Add noise to a sketch: the result may leave the site.

    The ledger in the file says what it costs a person. Send the release, never the sketch.

    \b
    Example:
      hushtable release site.sketch.hush --epsilon 1 -o site.hush
    """  # noqa: D301 (\b keeps the lines of the example apart)
    target = Target(output, [sketch, *(after or [])])
    terms = Terms(epsilon, delta, adjacency, rows_per_person, share, mechanism=mechanism)
    counted = read_sketch(sketch)
    earlier = [read_release(path) for path in after or []]
    with cells_bar(len(counted.counts), quiet=as_json) as advance:
        noised = counted.release(terms, after=earlier, progress=advance)
    with target.writing():
        noised.save(output)
    facts = {
        "command": "release",
        "release": str(output),
        "release_id": noised.release_id,
        "plan_id": noised.plan.plan_id,
        "cells": len(noised.counts),
        **cost(noised),
        "words": noised.ledger.words(),
    }

    def text() -> None:
        print(f"Added noise to each of {len(noised.counts):,} cells: {noised.ledger.noise_sd:,.1f}")
        print("counts (standard deviation).\n")
        print_sentences(noised.ledger.words())
        print(f"\nWrote {target}: this file may leave the site. {sketch} may not.")

    finish(as_json, facts, text)
