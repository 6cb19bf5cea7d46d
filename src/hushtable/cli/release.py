"""``hushtable release``: a sketch to what may leave the site."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.cli._counts import cost, read_release, read_sketch
from hushtable.cli._options import (
    Adjacency,
    AdjacencyOption,
    Delta,
    Json,
    Output,
    RowsPerPerson,
)
from hushtable.cli._output import Target, finish, print_sentences
from hushtable.cli._progress import cells_bar

__all__ = ["release"]


class _Mechanism(StrEnum):
    DISCRETE_GAUSSIAN = "discrete-gaussian"
    DISCRETE_LAPLACE = "discrete-laplace"
    LAPLACE_PER_TABLE = "laplace-per-table"


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
        _Mechanism,
        typer.Option(
            help="Noise. laplace-per-table is the paper's: there, E is that of one table alone."
        ),
    ] = _Mechanism.DISCRETE_GAUSSIAN,
    adjacency: AdjacencyOption = Adjacency.ADD_REMOVE,
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
    counted = read_sketch(sketch)
    earlier = [read_release(path) for path in after or []]
    terms: dict[str, Any] = {"mechanism": mechanism.value, "adjacency": adjacency.value}
    with cells_bar(len(counted.counts), quiet=as_json) as advance:
        noised = counted.release(
            epsilon,
            delta,
            rows_per_person=rows_per_person,
            after=earlier,
            share=share,
            progress=advance,
            **terms,
        )
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
