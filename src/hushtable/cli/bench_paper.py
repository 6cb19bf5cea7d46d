"""``hushtable bench paper``: the paper's tables and figures again, beside its own figures."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.bench import figures
from hushtable.bench.data import VARIABLE, data_folder
from hushtable.bench.paper import experiments, promises, report
from hushtable.bench.paper.sets import SETS, load_sets
from hushtable.bench.results import Results
from hushtable.bench.tables import print_environment, print_targets
from hushtable.cli._options import Json
from hushtable.cli._output import finish
from hushtable.cli._progress import bar_of_steps
from hushtable.errors import UsageError
from hushtable.privacy import noise as mechanism

__all__ = ["paper"]

#: Sets of a glimpse: the smallest.
_QUICK = ("BreastW", "Pima", "Cardio", "Thyroid")
_FOLDER = Path("hushtable-bench")


def paper(
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The sets as .npz files; by default $HUSHTABLE_DATA, else they are fetched once.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Seeds of each system.")] = 10,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Some experiments: central (Tables 2, 3), local (Figure 1), epsilon (Figure 2), "
            "participants (Table 4).",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A glimpse in a minute: 2 seeds, 4 small sets.")
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where results are kept.")
    ] = _FOLDER,
    as_json: Json = False,
) -> None:
    """Run the paper's experiments, and print its figures beside ours.

    Results are kept in FOLDER as Parquet while it runs: called again, it goes on where it
    stopped. Tables are written there as Markdown, figures as SVG and PNG. The whole takes about
    half an hour, on one core. Exit code 1 says that a set was left out or a promise missed.

    \b
    Example:
      hushtable bench paper --data labelled-sets -o results
    """  # noqa: D301 (\b keeps the lines of the example apart)
    names = list(experiments.EXPERIMENTS) if only is None else only.split(",")
    unknown = sorted(set(names) - set(experiments.EXPERIMENTS))
    if unknown:
        raise UsageError(f"--only {only}: {unknown} are none of {list(experiments.EXPERIMENTS)}")
    named = data is not None or os.environ.get(VARIABLE)
    folder = data_folder(data) if named else None
    # What is missing is said now, not in half an hour.
    figures.pyplot()
    mechanism.library()
    output.mkdir(parents=True, exist_ok=True)
    results = Results(output / "paper.parquet")

    names_of_sets = _QUICK if quick else [one.name for one in SETS]
    loaded, left_out = load_sets(names_of_sets, folder)
    count = 2 if quick else seeds
    steps = [step for _, one, _ in loaded for step in experiments.steps(one, names, count)]
    for step in bar_of_steps(steps, len(steps), "Experiments", as_json):
        step.run(results)

    written = report.write(results, loaded, output)
    targets = [] if quick else promises.targets(results)
    facts: dict[str, Any] = {
        "command": "bench paper",
        "sets": [one.name for _, one, _ in loaded],
        "left_out": left_out,
        "steps": len(steps),
        "targets": [report.as_dict(target) for target in targets],
        "files": [str(file) for file in [output / "paper.parquet", *written]],
    }

    def text() -> None:

        print(report.markdown(results, loaded))
        print_environment(("opendp", "numba", "numpy", "scikit-learn"))
        if targets:
            print_targets(targets)
        for name, reason in left_out.items():
            print(f"\nLeft out: {name}. {reason}")
        print(f"\nWrote {', '.join(facts['files'])}.")

    finish(as_json, facts, text)
    if left_out or not all(target.met for target in targets):
        raise typer.Exit(1)
