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
    argument,
    option,
)
from hushtable.cli._output import Target, finish, print_sentences
from hushtable.cli._progress import cells_bar
from hushtable.counts.release import Release


class _Mechanism(StrEnum):
    DISCRETE_GAUSSIAN = "discrete-gaussian"
    DISCRETE_LAPLACE = "discrete-laplace"
    LAPLACE_PER_TABLE = "laplace-per-table"


_Sketch = Annotated[Path, argument("SKETCH", "Sketch of hushtable sketch.")]
_Total = Annotated[
    float, option("E", "Total for one person, over all tables and all that came before.")
]
_Noise = Annotated[
    _Mechanism,
    typer.Option(
        help="Noise. laplace-per-table is the paper's: there, E is that of one table alone."
    ),
]
_After = Annotated[
    list[Path] | None,
    option("FILE", "Earlier release about the same rows; counts towards E. May be given again."),
]
_Part = Annotated[
    float | None,
    option(
        "S",
        "Part of the budget to take; by default .1 for marginals, .05 for ranges, and all that is "
        "left for tables.",
    ),
]


def release(
    sketch: _Sketch,
    epsilon: _Total,
    output: Output,
    delta: Delta = 1e-6,
    mechanism: _Noise = _Mechanism.DISCRETE_GAUSSIAN,
    adjacency: AdjacencyOption = Adjacency.ADD_REMOVE,
    rows_per_person: RowsPerPerson = 1,
    after: _After = None,
    share: _Part = None,
    as_json: Json = False,
) -> None:
    """Add noise to a sketch: the result may leave the site.

    The ledger in the file says what it costs a person. Send the release, never the sketch.

    Example:
      hushtable release site.sketch.hush --epsilon 1 -o site.hush
    """
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
    target.save(noised)
    facts = {"command": "release", "release": str(output), **_facts(noised)}

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
