"""``hushtable bench sites``: accuracy as sites join a round."""

from typing import Annotated, Any

import typer

from hushtable.cli.options import Json, option
from hushtable.cli.progress import bar_of_steps
from hushtable_bench.cli._bench import (
    FOLDER,
    ResultFolder,
    SetsOrFetched,
    begin,
    conclude,
    verdicts,
)

#: Sets of a glimpse: the smallest.
_QUICK = ("BreastW", "Cardio")

_Seeds = Annotated[int, option("N", "Seeds of the plans.", min=1)]
_Quick = Annotated[
    bool, typer.Option("--quick", help="A glimpse in a minute: 1 seed, 2 small sets.")
]


def sites(
    data: SetsOrFetched = None,
    seeds: _Seeds = 30,
    quick: _Quick = False,
    output: ResultFolder = FOLDER,
    as_json: Json = False,
) -> None:
    """Measure accuracy over 2 to 100 sites at a total epsilon of 1.

    Noise that the sites share under masks, noise of every site, and the paper's mechanism, on
    four of the paper's sets; and local models beside the shared one. Results are kept in FOLDER
    as Parquet while it runs: called again, it goes on where it stopped. The whole takes a quarter
    of an hour on two cores. Exit code 1 says that a set was left out or a promise missed.

    Example:
      hushtable bench sites --data labelled-sets -o results
    """
    # scikit-learn takes a second to import: not for --help.
    from hushtable_bench import figures
    from hushtable_bench import sites as bench
    from hushtable_bench.paper.sets import load_sets

    folder, results = begin(data, output, "sites.parquet")
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
    files = [output / "sites.parquet", output / "sites.md", *drawn]
    targets = [] if quick or not loaded else bench.targets(results, names)
    facts: dict[str, Any] = {
        "command": "bench sites",
        "sets": names,
        "left_out": left_out,
        "targets": verdicts(targets),
        "files": [str(file) for file in files],
    }
    conclude(facts, page, targets, files, as_json, left_out=left_out)
