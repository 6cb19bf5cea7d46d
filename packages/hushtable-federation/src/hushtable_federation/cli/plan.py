"""``hushtable plan``: the plans of rounds before, between and after those of a model's tables."""

from pathlib import Path
from typing import Annotated, Any

from hushtable import files
from hushtable.cli import options
from hushtable.cli.options import argument, option, read_counts
from hushtable.cli.plan import SchemaFile, save_plan
from hushtable.cli.result import CommandResult, Target
from hushtable.cli.schema import read_schema
from hushtable.counts import rounds
from hushtable.counts.kinds import counts_from_file
from hushtable.errors import FileError
from hushtable.plans.plan import Plan

_Merged = Annotated[Path, argument("MARGINALS", "Merged release under hushtable plan marginals.")]
_Model = Annotated[
    Path, argument("MODEL", "(Merged) sketch or release, or a model of hushtable fit.")
]
_First = Annotated[
    Path, argument("FIRST", "Merged sketch or release of all rows, under hushtable plan draw.")
]
_Gate = Annotated[
    Path, option("FILE", "Merged sketch or release under hushtable plan gate of FIRST.")
]


def marginals(
    schema: SchemaFile,
    output: options.Output,
    epsilon: options.Epsilon = None,
    delta: options.Delta = 1e-6,
    expected_rows: options.ExpectedRows = None,
    sites: options.Sites = 1,
    passes: options.PlanPasses = 1,
) -> CommandResult:
    """Make the plan of a first round: one histogram for each column.

    The round is optional. Sketch at each site, merge, and give the sum to "hushtable plan draw
    --marginals": the tables then fit the data, and detect better. For a private plan, release each
    sketch before merging; give the same --epsilon and --expected-rows in both rounds.

    Example:
      hushtable plan marginals schema.toml -o marginals.plan.hush
    """
    target = Target(output, [schema])
    terms: dict[str, Any] = {
        "delta": delta, "expected_rows": expected_rows, "sites": sites, "passes": passes,
    }  # fmt: skip
    plan = Plan.marginals(read_schema(schema), epsilon=epsilon, **terms)
    return save_plan(plan, target, "plan marginals")


def gate(first: _First, output: options.Output) -> CommandResult:
    """Make the plan between two passes, which finds dense regions.

    The second round is optional. Sketch under this plan at each site, merge, and give the sum to
    "hushtable plan second", which counts again without the isolated rows, and detects better.
    For a private plan, release each sketch before merging.

    Example:
      hushtable plan gate all.hush -o gate.plan.hush
    """
    target = Target(output, [first])
    plan = rounds.gate(read_counts(first))
    return save_plan(plan, target, "plan gate", _notes(plan))


def second(first: _First, gate: _Gate, output: options.Output) -> CommandResult:
    """Make the plan that counts rows in dense regions again.

    Sketch under it at each site and merge: the sum is the model. For a private plan, release each
    sketch before merging.

    Example:
      hushtable plan second all.hush --gate gate.hush -o second.plan.hush
    """
    target = Target(output, [first, gate])
    plan = rounds.second_pass(read_counts(first), read_counts(gate))
    return save_plan(plan, target, "plan second", _notes(plan))


def _notes(plan: Plan) -> list[str]:
    words = (
        "It depends on rows without noise: keep it where the rows may be. No sketch under it can\n"
        "be released privately."
    )
    return [words] if plan.data_dependent else []


def ranks(model: _Model, output: options.Output) -> CommandResult:
    """Make the plan of a last round: one histogram of a model's scores.

    Sketch it at each site, merge, and give the sum to "hushtable score --ranks": each row then
    gets its rank among the rows of all sites. For a private model, release each sketch before
    merging; the cost of the model is part of the epsilon.

    Example:
      hushtable plan ranks all.hush -o ranks.plan.hush
    """
    target = Target(output, [model])
    counts = files.read(model).expect("detector", "sketch", "release").build(counts_from_file)
    if not counts.adds:
        raise FileError(f"{model} is {counts.noun}: give the release that all sites hold")
    plan = rounds.ranks(counts)
    return save_plan(plan, target, "plan ranks", _notes(plan))
