"""``hushtable bench privacy``: what privacy costs, and what audits find."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.bench import figures
from hushtable.bench import outside as bench_outside
from hushtable.bench import privacy as bench
from hushtable.bench.data import data_folder, find_sets, load
from hushtable.bench.tables import print_environment, print_targets
from hushtable.cli._bench_attacks import run_attacks
from hushtable.cli._options import Json
from hushtable.cli._output import finish
from hushtable.cli._progress import bar_of_steps
from hushtable.errors import UsageError

__all__ = ["privacy"]

_FOLDER = Path("hushtable-bench")
#: Sets for `--quick`, and for the attack on membership.
_QUICK = ("6_cardio", "28_pendigits", "38_thyroid", "4_breastw")
_ATTACKED = ("4_breastw", "6_cardio", "38_thyroid", "47_yeast", "43_WDBC")
#: Ways, for each seed, to deal a set's rows into those that are counted and those that are not.
_HALVES = 5


def _epsilons(text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--epsilons {text}: needs numbers with commas, such as .1,1") from None
    return sorted(set(values))


def privacy(
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Labelled sets, .npz files with X and y; by default $HUSHTABLE_DATA.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Seeds of the plans.")] = 10,
    epsilons: Annotated[
        str | None,
        typer.Option(
            metavar="E,...",
            help="Total budgets to compare; by default .1,.3,1,3, with --attacks .1,1,4.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A glimpse in a minute: 2 seeds, 4 sets, 2 epsilons.")
    ] = False,
    attacks: Annotated[
        bool,
        typer.Option(
            "--attacks", help="Attack releases instead: neighbours, membership, differences, bugs."
        ),
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where results are kept.")
    ] = _FOLDER,
    as_json: Json = False,
) -> None:
    """Measure what privacy costs, and what adversaries and audits find.

    Tables are printed as Markdown; the folder receives them as JSON, and a figure as SVG and PNG.
    Audits look at the noise itself, and from outside at what is published and written to files;
    each also has to find planted mistakes, such as noise of a third of what is claimed.
    The whole takes about eight minutes on two cores; with --attacks, less than three. Exit code 1
    says that a promised figure was missed.

    \b
    Examples:
      hushtable bench privacy --data labelled-sets -o results
      hushtable bench privacy --data labelled-sets -o results --attacks
    """  # noqa: D301 (\b keeps the lines of the examples apart)
    budgets = [0.1, 1.0] if quick else _epsilons(epsilons or (".1,1,4" if attacks else ".1,.3,1,3"))
    seeds = 2 if quick else seeds
    files = find_sets(data_folder(data))
    if not attacks:
        figures.pyplot()  # what is missing is said now, not in eight minutes
    output.mkdir(parents=True, exist_ok=True)
    sets = [load(file).at_most(bench.MAX_ROWS) for file in files]
    chosen = [d for d in sets if len(d.X) >= bench.MIN_ROWS or d.name in bench.PAPER_SETS]
    # Without duplicates: a row that is in both halves tells nothing.
    attacked = [d.distinct() for d in sets if d.name in _ATTACKED] or sets[:3]
    if quick:
        chosen = [d for d in chosen if d.name in _QUICK] or chosen[:4]
        attacked = attacked[:2]
    if attacks:
        return run_attacks(attacked, budgets, quick, output, as_json)

    runs: list[bench.Run] = []
    steps = bench.accuracy(chosen, budgets, seeds)
    for more in bar_of_steps(steps, len(chosen) * seeds, "Accuracy", as_json):
        runs += more
    # Sets with a handful of outliers need more halves than seeds.
    trials = [(d, seed) for d in attacked for seed in range(_HALVES * seeds)]
    membership: dict[str, list[dict[str, float]]] = {}
    for one, seed in bar_of_steps(trials, len(trials), "Membership", as_json):
        membership.setdefault(one.name, []).append(bench.membership(one, (1.0, 0.1), seed))
    found = list(
        bar_of_steps(
            bench.audits(*((1000, 30) if quick else (10_000, 100))),
            bench.N_AUDITED,
            "Audits",
            as_json,
        )
    )
    steps_outside = bench_outside.audits(quick), bench_outside.n_audits(quick)
    outside = list(bar_of_steps(*steps_outside, "Audits from outside", as_json))
    drawn = figures.privacy_figure(runs, membership, output)
    targets = bench.audit_targets(found) + bench_outside.targets(outside)
    targets += [] if quick else bench.accuracy_targets(runs)
    facts: dict[str, Any] = {
        "command": "bench privacy",
        "runs": [dataclasses.asdict(run) for run in runs],
        "membership": membership,
        "audits": {
            name: [dataclasses.asdict(finding) for finding in findings] for name, findings in found
        },
        "audits_from_outside": {name: dataclasses.asdict(finding) for name, finding in outside},
        "targets": [dataclasses.asdict(t) | {"met": t.met} for t in targets],
    }
    (output / "privacy.json").write_text(json.dumps(facts, indent=1) + "\n")

    def text() -> None:

        large = len({run.data for run in runs if run.rows >= bench.MIN_ROWS})
        print(f"# Accuracy\n\nMean over {large} sets of 1,000 rows and more, {seeds} seeds ± their")
        print("standard deviation, x 100. Ranges are the data's own, taken as public.\n")
        print(bench.table_of_means(runs))
        print("\nROC-AUC x 100 of each set, HushTable / the paper's mechanism:\n")
        print(bench.table_of_sets(runs))
        print(
            "\n# Membership\n\nAUC of telling rows that were counted from rows that were not, mean"
        )
        print(f"over {_HALVES * seeds} ways to halve the rows:\n")
        print(bench.table_of_membership(membership))
        print("\n# Audits\n\nLower bounds on epsilon, each with 95% confidence:\n")
        print(bench.table_of_audits(found))
        sure = f"{100 * bench_outside.CONFIDENCE:.4g}%"
        print(f"\nThrough public calls and files only, with {sure} confidence each:\n")
        print(bench_outside.table(outside))
        print_environment(("opendp", "numba", "numpy", "scikit-learn"))
        print_targets(targets)
        print(f"\nWrote {output / 'privacy.json'} and {', '.join(str(file) for file in drawn)}.")

    finish(as_json, facts, text)
    if not all(target.met for target in targets):
        raise typer.Exit(1)
