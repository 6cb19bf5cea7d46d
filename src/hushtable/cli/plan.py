"""``hushtable plan``: what several sites share, from a schema with public ranges."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable import files
from hushtable.cli._counts import read_counts, read_release
from hushtable.cli._options import (
    Delta,
    Detector,
    Epsilon,
    ExpectedRows,
    Json,
    Output,
    Seed,
    Sites,
)
from hushtable.cli._output import Target, finish, print_sentences
from hushtable.counts.local import LocalModel
from hushtable.counts.sketch import counts_from_file
from hushtable.data.schema import Schema
from hushtable.errors import FileError, PlanError, UsageError
from hushtable.federation.hidden import draw_hidden, read_secret
from hushtable.federation.layout import Layout
from hushtable.plans.plan import Plan
from hushtable.report.words import n_tables

__all__ = ["draw", "hide", "marginals", "ranges", "ranks", "read_schema"]

_SchemaFile = Annotated[
    Path, typer.Argument(metavar="SCHEMA", help="Schema in TOML, with its ranges filled in.")
]


_Ranges = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Merged release under hushtable plan ranges; narrows the ranges of SCHEMA.",
    ),
]


def draw(
    schema: _SchemaFile,
    output: Output,
    detector: Annotated[
        Detector, typer.Option(help="Detector whose tables to draw.")
    ] = Detector.HUSHTABLE,
    tables: Annotated[
        int | None,
        typer.Option(
            metavar="M",
            min=1,
            max=10_000,
            help="Number of tables; by default 100, or what suits --epsilon.",
        ),
    ] = None,
    seed: Seed = None,
    marginals: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Merged sketch or release under hushtable plan marginals; refines the plan "
            "(hushtable only).",
        ),
    ] = None,
    ranges: _Ranges = None,
    epsilon: Epsilon = None,
    delta: Delta = 1e-6,
    expected_rows: ExpectedRows = None,
    sites: Sites = 1,
    secret: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw from what the sites share (hushtable round secret): the coordinator then "
            "cannot know the hash functions.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw the hash functions that all sites share.

    Without --marginals, the plan depends on the schema, the seed and the other options only, not
    on any data. With --epsilon, the tables are laid out for the noise of a private release.

    \b
    Example:
      hushtable plan draw schema.toml --epsilon 1 --expected-rows 50000 -o plan.hush
    """  # noqa: D301 (\b keeps the lines of the example apart)
    target = Target(output, [p for p in (schema, marginals, ranges, secret) if p is not None])
    if seed is not None and secret is not None:
        raise UsageError("--seed and --secret exclude each other: give one of them")

    counts = None
    if marginals is not None:
        counts = read_counts(marginals)
    parameters = {"n_tables": 100} if epsilon is None else {}
    if tables is not None:
        parameters["n_tables"] = tables
    features = _schema(schema, ranges)
    terms: dict[str, Any] = {
        "detector": detector.recipe,
        "marginals": counts,
        "epsilon": epsilon,
        "delta": delta,
        "expected_rows": expected_rows,
        "sites": sites,
        **parameters,
    }
    if secret is None:
        plan = Plan.draw(features, random_state=seed, **terms)
    else:
        plan = draw_hidden(read_secret(secret), features, **terms)
    notes = []
    if plan.data_dependent and counts is not None:
        notes = [
            f"It depends on data: the merged marginals of {counts.n_rows:,} rows. No sketch",
            "under it can be released privately.",
        ]
    if plan.design is not None and counts is None and plan.design.pays_marginals(len(plan.schema)):
        notes = [
            "A first round for the marginals would pay: hushtable plan marginals with the same",
            "options, then sketch, release, merge, and give the sum to --marginals here.",
        ]
    _save(plan, target, "plan draw", as_json, notes)


def marginals(
    schema: _SchemaFile,
    output: Output,
    ranges: _Ranges = None,
    epsilon: Epsilon = None,
    delta: Delta = 1e-6,
    expected_rows: ExpectedRows = None,
    sites: Sites = 1,
    as_json: Json = False,
) -> None:
    """Make the plan of a first round: one histogram for each column.

    The round is optional. Sketch at each site, merge, give the sum to "hushtable plan draw
    --marginals": the tables then follow the data, and detect better. For a private plan, release
    each sketch before merging; give the same --epsilon and --expected-rows in both rounds.

    \b
    Example:
      hushtable plan marginals schema.toml -o marginals.plan.hush
    """  # noqa: D301 (\b keeps the lines of the example apart)
    target = Target(output, [p for p in (schema, ranges) if p is not None])

    terms: dict[str, Any] = {"delta": delta, "expected_rows": expected_rows, "sites": sites}
    plan = Plan.marginals(_schema(schema, ranges), epsilon=epsilon, **terms)
    _save(plan, target, "plan marginals", as_json)


def ranges(
    schema: _SchemaFile,
    output: Output,
    epsilon: Annotated[float, typer.Option(metavar="E", help="Total of all rounds together.")],
    expected_rows: Annotated[
        int, typer.Option(metavar="N", help="Public guess of the rows of all sites together.")
    ],
    delta: Delta = 1e-6,
    sites: Sites = 1,
    as_json: Json = False,
) -> None:
    """Make the plan of a round that narrows ranges that are too wide.

    Sketch, release and merge under it, and give the sum to --ranges of "plan marginals" and "plan
    draw". It takes a twentieth of the budget, and needs many rows.

    \b
    Example:
      hushtable plan ranges schema.toml --epsilon 1 --expected-rows 50000 -o ranges.plan.hush
    """  # noqa: D301 (\b keeps the lines of the example apart)
    target = Target(output, [schema])

    terms: dict[str, Any] = {"delta": delta, "expected_rows": expected_rows, "sites": sites}
    plan = Plan.ranges(read_schema(schema), epsilon=epsilon, **terms)
    _save(plan, target, "plan ranges", as_json)


def ranks(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="(Merged) sketch or release, or a model of hushtable fit."
        ),
    ],
    output: Output,
    as_json: Json = False,
) -> None:
    """Make the plan of a last round: one histogram of a model's scores.

    Sketch it at each site, merge, and give the sum to "hushtable score --ranks": each row then
    gets its rank among the rows of all sites. For a private model, release each sketch before
    merging; what the model cost counts in the epsilon.

    \b
    Example:
      hushtable plan ranks all.hush -o ranks.plan.hush
    """  # noqa: D301 (\b keeps the lines of the example apart)
    target = Target(output, [model])

    content = files.read(model)
    if content.kind not in ("detector", "sketch", "release"):
        raise FileError(f"{model} holds a {content.kind}: give a model, a sketch or a release")
    counts = content.build(counts_from_file)
    if isinstance(counts, LocalModel):
        raise FileError(f"{model} is a local model: give the release that all sites have")
    plan = Plan.ranks(counts)
    notes = []
    if counts.ledger is None:
        notes = [
            "It holds the model's exact scores: keep it where the model may be. No sketch",
            "under it can be released privately.",
        ]
    _save(plan, target, "plan ranks", as_json, notes)


def hide(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="Plan of hushtable plan draw.")],
    output: Output,
    as_json: Json = False,
) -> None:
    """Take the hash functions off a plan, for the coordinator.

    With the layout, a coordinator opens rounds and adds up what the sites send, but can hash no
    row, and so score none.

    \b
    Example:
      hushtable plan hide plan.hush -o layout.hush
    """  # noqa: D301 (\b keeps the lines of the example apart)
    target = Target(output, [plan])

    content = files.read(plan)
    if content.kind != "plan":
        raise FileError(f"{plan} holds a {content.kind}: give a plan of hushtable plan draw")
    layout = Layout.of(content.build(Plan.from_file))
    with target.writing():
        layout.save(output)
    facts = {"command": "plan hide", "layout": str(output), "plan_id": layout.plan_id}

    def text() -> None:
        print(f"Wrote {target}: for the coordinator. {plan} is for the sites only: let nobody else")
        print("read it (chmod 600).")

    finish(as_json, facts, text)


def _schema(path: Path, ranges: Path | None) -> Schema:
    """Read a schema, and narrow its ranges by a release of them."""
    schema = read_schema(path)
    if ranges is None:
        return schema

    release = read_release(ranges)
    if release.plan.schema != schema:
        raise PlanError(
            f"{ranges} holds ranges of another schema than {path}: give the schema that hushtable "
            "plan ranges was given"
        )
    return release.ranges()


def read_schema(path: Path) -> Schema:
    """Read a schema; errors name the file."""
    try:
        return Schema.from_toml(path)
    except PlanError as error:
        # Most messages name the feature only.
        message = str(error)
        raise PlanError(message if str(path) in message else f"{path}: {message}") from None


def _save(
    plan: Plan, target: Target, command: str, as_json: bool, notes: Sequence[str] = ()
) -> None:
    with target.writing():
        plan.save(target.path)
    design = plan.design
    facts = {
        "command": command,
        "plan": str(target.path),
        "plan_id": plan.plan_id,
        "detector": plan.detector,
        "data_dependent": plan.data_dependent,
        "hidden": plan.hidden,
        "features": len(plan.schema),
        "tables": plan.family.n_tables,
        "cells": plan.family.n_cells,
        "behind": [spent.to_dict() for spent in plan.behind],
        "design": None if design is None else design.to_dict(),
        "expected_loss": None if design is None else design.expected_loss,
    }

    def text() -> None:
        print(
            f"Plan {plan.plan_id[:12]}: {plan.detector}, {len(plan.schema):,} features, "
            f"{n_tables(plan.family.n_tables)}, {plan.family.n_cells:,} cells."
        )
        if plan.behind:
            what = " and ".join(f"{spent.what} {spent.release[:12]}" for spent in plan.behind)
            print_sentences([
                f"It depends on data through private releases only ({what}), whose cost counts in "
                "every release under it."
            ])  # fmt: skip
        elif not plan.data_dependent:
            print("It depends on no data, only on the schema, the seed and public numbers.")
        if design is not None and plan.detector not in ("marginals", "ranges"):
            print_sentences([design.words()])
        for line in notes:
            print(line)
        if plan.hidden:
            print("Its hash functions are hidden: it is for the sites only. What the coordinator")
            print("gets is made of it by hushtable plan hide.")
        print(f"Wrote {target}. At each site:")
        print(f"  hushtable sketch DATA --plan {target.path} -o site.sketch.hush")
        if design is not None:
            print(f"  hushtable release site.sketch.hush --epsilon {design.epsilon:g} -o site.hush")

    finish(as_json, facts, text)
