"""``hushtable bench paper``: the paper's tables and figures again, beside its own figures."""

from typing import Annotated, Any

import typer

from hushtable.cli.options import Json, option
from hushtable.cli.progress import bar_of_steps
from hushtable.errors import UsageError
from hushtable_bench.cli._bench import (
    FOLDER,
    ResultFolder,
    SetsOrFetched,
    begin,
    conclude,
    verdicts,
)

#: Sets of a glimpse: the smallest.
_QUICK = ("BreastW", "Pima", "Cardio", "Thyroid")

_Seeds = Annotated[int, option("N", "Seeds of each system.", min=1)]
_Only = Annotated[
    str | None,
    option(
        "NAME,...",
        "Some experiments: central (Tables 2, 3), local (Figure 1), epsilon (Figure 2), "
        "participants (Table 4).",
    ),
]
_Quick = Annotated[
    bool, typer.Option("--quick", help="A glimpse in a minute: 2 seeds, 4 small sets.")
]


def paper(
    data: SetsOrFetched = None,
    seeds: _Seeds = 10,
    only: _Only = None,
    quick: _Quick = False,
    output: ResultFolder = FOLDER,
    as_json: Json = False,
) -> None:
    """Run the paper's experiments, and print its figures beside ours.

    Results are kept in FOLDER as Parquet while it runs: called again, it goes on where it
    stopped. Tables are written there as Markdown, figures as SVG and PNG. The whole takes about
    half an hour, on one core. Exit code 1 says that a set was left out or a promise missed.

    Example:
      hushtable bench paper --data labelled-sets -o results
    """
    # scikit-learn takes a second to import: not for --help.
    from hushtable_bench.paper import experiments, promises, report
    from hushtable_bench.paper.sets import SETS, load_sets

    names = list(experiments.EXPERIMENTS) if only is None else only.split(",")
    unknown = sorted(set(names) - set(experiments.EXPERIMENTS))
    if unknown:
        raise UsageError(f"--only {only}: {unknown} are none of {list(experiments.EXPERIMENTS)}")
    folder, results = begin(data, output, "paper.parquet")
    loaded, left_out = load_sets(_QUICK if quick else [one.name for one in SETS], folder)
    count = 2 if quick else seeds
    steps = [step for _, one, _ in loaded for step in experiments.steps(one, names, count)]
    for step in bar_of_steps(steps, len(steps), "Experiments", as_json):
        step.run(results)
    files = [output / "paper.parquet", *report.write(results, loaded, output)]
    targets = [] if quick else promises.targets(results)
    facts: dict[str, Any] = {
        "command": "bench paper",
        "sets": [one.name for _, one, _ in loaded],
        "left_out": left_out,
        "steps": len(steps),
        "targets": verdicts(targets),
        "files": [str(file) for file in files],
    }
    page = report.markdown(results, loaded)
    conclude(facts, page, targets, files, as_json, left_out=left_out)
