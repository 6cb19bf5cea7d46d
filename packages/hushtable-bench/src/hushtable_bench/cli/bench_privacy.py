"""``hushtable bench privacy``: what privacy costs, and what audits find."""

from typing import Annotated

import typer

from hushtable.cli.options import Json, option
from hushtable.errors import UsageError
from hushtable_bench.cli._bench import FOLDER, ResultFolder, Sets
from hushtable_bench.data import data_folder, find_sets

_Seeds = Annotated[int, option("N", "Seeds of the plans.", min=1)]
_Epsilons = Annotated[
    str | None,
    option("E,...", "Total budgets to compare; by default .1,.3,1,3, with --attacks .1,1,4."),
]
_Quick = Annotated[
    bool, typer.Option("--quick", help="A glimpse in a minute: 2 seeds, 4 sets, 2 epsilons.")
]
_Attacks = Annotated[
    bool,
    typer.Option(
        "--attacks", help="Attack releases instead: neighbours, membership, differences, bugs."
    ),
]


def privacy(
    data: Sets = None,
    seeds: _Seeds = 10,
    epsilons: _Epsilons = None,
    quick: _Quick = False,
    attacks: _Attacks = False,
    output: ResultFolder = FOLDER,
    as_json: Json = False,
) -> None:
    """Measure what privacy costs, and what adversaries and audits find.

    Tables are printed as Markdown; the folder receives them as JSON, and a figure as SVG and PNG.
    Audits look at the noise itself, and from outside at what is published and written to files;
    each also has to find planted mistakes, such as noise of a third of what is claimed.
    The whole takes about eight minutes on two cores; with --attacks, less than three. Exit code 1
    says that a promised figure was missed.

    Example:
      hushtable bench privacy --data labelled-sets -o results
      hushtable bench privacy --data labelled-sets -o results --attacks
    """
    # scikit-learn and scipy take a second to import: not for --help.
    from hushtable_bench import figures
    from hushtable_bench.cli._bench_attacks import run_attacks
    from hushtable_bench.cli._bench_costs import chosen_sets, run_costs

    budgets = [0.1, 1.0] if quick else _epsilons(epsilons or (".1,1,4" if attacks else ".1,.3,1,3"))
    files = find_sets(data_folder(data))
    if not attacks:
        figures.pyplot()  # what is missing is named now, not in eight minutes
    output.mkdir(parents=True, exist_ok=True)
    chosen, attacked = chosen_sets(files, quick)
    if attacks:
        run_attacks(attacked, budgets, quick, output, as_json)
    else:
        run_costs(chosen, attacked, budgets, 2 if quick else seeds, quick, output, as_json)


def _epsilons(text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--epsilons {text}: needs numbers with commas, such as .1,1") from None
    return sorted(set(values))
