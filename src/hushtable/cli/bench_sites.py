"""``hushtable bench sites``: accuracy as sites join a round."""

import dataclasses
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.bench import figures
from hushtable.bench import sites as bench
from hushtable.bench.data import VARIABLE, data_folder
from hushtable.bench.paper.sets import load_sets
from hushtable.bench.results import Results
from hushtable.bench.tables import print_environment, print_targets
from hushtable.cli._options import Json
from hushtable.cli._output import finish
from hushtable.cli._progress import bar_of_steps
from hushtable.privacy import noise as mechanism

__all__ = ["sites"]

_FOLDER = Path("hushtable-bench")
#: Sets of a glimpse: the smallest.
_QUICK = ("BreastW", "Cardio")


def sites(
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The sets as .npz files; by default $HUSHTABLE_DATA, else they are fetched once.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Seeds of the plans.")] = 30,
    quick: Annotated[
        bool, typer.Option("--quick", help="A glimpse in a minute: 1 seed, 2 small sets.")
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where results are kept.")
    ] = _FOLDER,
    as_json: Json = False,
) -> None:
    """Measure accuracy over 2 to 100 sites at a total epsilon of 1.

    Noise that the sites share under masks, noise of every site, and the paper's mechanism, on
    four of the paper's sets; and local models beside the shared one. Results are kept in FOLDER
    as Parquet while it runs: called again, it goes on where it stopped. The whole takes a quarter
    of an hour on two cores. Exit code 1 says that a set was left out or a promise missed.

    \b
    Example:
      hushtable bench sites --data labelled-sets -o results
    """  # noqa: D301 (\b keeps the lines of the example apart)
    named = data is not None or os.environ.get(VARIABLE)
    folder = data_folder(data) if named else None
    # What is missing is said now, not in ten minutes.
    figures.pyplot()
    mechanism.library()
    output.mkdir(parents=True, exist_ok=True)
    results = Results(output / "sites.parquet")

    found, left_out = load_sets(_QUICK if quick else bench.SETS, folder)
    loaded = [data for _, data, _ in found]
    steps = [step for one in loaded for step in bench.steps(one, 1 if quick else seeds)]
    for step in bar_of_steps(steps, len(steps), "Sites", as_json):
        step.run(results)

    names = [one.name for one in loaded]
    page = "\n".join([
        "## Accuracy as sites join\n",
        "ROC-AUC x 100 of all rows, mean ± standard deviation over the seeds; total epsilon 1.\n",
        bench.sites_table(results, names),
        "\n## Local models\n",
        "ROC-AUC x 100 of each site's own rows, mean over the sites; masked rounds.\n",
        bench.local_table(results, names),
    ])  # fmt: skip
    (output / "sites.md").write_text(page + "\n")
    drawn = figures.sites_figure(results, names, output)
    targets = [] if quick or not loaded else bench.targets(results, names)
    facts: dict[str, Any] = {
        "command": "bench sites",
        "sets": names,
        "left_out": left_out,
        "targets": [dataclasses.asdict(target) | {"met": target.met} for target in targets],
        "files": [str(f) for f in (output / "sites.parquet", output / "sites.md", *drawn)],
    }

    def text() -> None:

        print(page)
        print_environment(("opendp", "numba", "numpy", "scikit-learn"))
        if targets:
            print_targets(targets)
        for name, reason in left_out.items():
            print(f"\nLeft out: {name}. {reason}")
        print(f"\nWrote {', '.join(facts['files'])}.")

    finish(as_json, facts, text)
    if left_out or not all(target.met for target in targets):
        raise typer.Exit(1)
