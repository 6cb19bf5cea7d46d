"""``hushtable bench privacy``: what privacy costs, and what audits find."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.bench import figures
from hushtable.bench import outside as bench_outside
from hushtable.bench import privacy as bench
from hushtable.bench.data import LabelledSet, data_folder, find_sets, load
from hushtable.cli._bench import FOLDER, ResultFolder, Sets, conclude, verdicts
from hushtable.cli._bench_attacks import run_attacks
from hushtable.cli._options import Json, option
from hushtable.cli._progress import bar_of_steps
from hushtable.errors import UsageError

#: Sets for `--quick`, and for the attack on membership.
_QUICK = ("6_cardio", "28_pendigits", "38_thyroid", "4_breastw")
_ATTACKED = ("4_breastw", "6_cardio", "38_thyroid", "47_yeast", "43_WDBC")
#: Ways, for each seed, to deal a set's rows into those that are counted and those that are not.
_HALVES = 5

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
    budgets = [0.1, 1.0] if quick else _epsilons(epsilons or (".1,1,4" if attacks else ".1,.3,1,3"))
    files = find_sets(data_folder(data))
    if not attacks:
        figures.pyplot()  # what is missing is named now, not in eight minutes
    output.mkdir(parents=True, exist_ok=True)
    chosen, attacked = _chosen(files, quick)
    if attacks:
        run_attacks(attacked, budgets, quick, output, as_json)
    else:
        _Costs(chosen, attacked, budgets, 2 if quick else seeds, quick, as_json).conclude(output)


def _epsilons(text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--epsilons {text}: needs numbers with commas, such as .1,1") from None
    return sorted(set(values))


def _chosen(files: Sequence[Path], quick: bool) -> tuple[list[LabelledSet], list[LabelledSet]]:
    """Return the sets for accuracy, and those for attacks on membership."""
    sets = [load(file).at_most(bench.MAX_ROWS) for file in files]
    chosen = [d for d in sets if len(d.X) >= bench.MIN_ROWS or d.name in bench.PAPER_SETS]
    # Without duplicates: a row that is in both halves shows nothing.
    attacked = [d.distinct() for d in sets if d.name in _ATTACKED] or sets[:3]
    if quick:
        return [d for d in chosen if d.name in _QUICK] or chosen[:4], attacked[:2]
    return chosen, attacked


class _Costs:
    """Accuracy, membership and audits, measured one after the other."""

    def __init__(
        self,
        chosen: list[LabelledSet],
        attacked: list[LabelledSet],
        budgets: list[float],
        seeds: int,
        quick: bool,
        as_json: bool,
    ) -> None:
        self.seeds, self.quick, self.as_json = seeds, quick, as_json
        self.runs: list[bench.Run] = []
        steps = bench.accuracy(chosen, budgets, seeds)
        for more in bar_of_steps(steps, len(chosen) * seeds, "Accuracy", as_json):
            self.runs += more
        # Sets with a handful of outliers need more halves than seeds.
        trials = [(d, seed) for d in attacked for seed in range(_HALVES * seeds)]
        self.membership: dict[str, list[dict[str, float]]] = {}
        for one, seed in bar_of_steps(trials, len(trials), "Membership", as_json):
            found = bench.membership(one, (1.0, 0.1), seed)
            self.membership.setdefault(one.name, []).append(found)
        audits = bench.audits(*((1000, 30) if quick else (10_000, 100)))
        self.audits = list(bar_of_steps(audits, bench.N_AUDITED, "Audits", as_json))
        outside = bench_outside.audits(quick), bench_outside.n_audits(quick)
        self.outside = list(bar_of_steps(*outside, "Audits from outside", as_json))

    def conclude(self, output: Path) -> None:
        """Write and print the outcome."""
        drawn = figures.privacy_figure(self.runs, self.membership, output)
        targets = bench.audit_targets(self.audits) + bench_outside.targets(self.outside)
        targets += [] if self.quick else bench.accuracy_targets(self.runs)
        facts: dict[str, Any] = {
            "command": "bench privacy",
            "runs": [dataclasses.asdict(run) for run in self.runs],
            "membership": self.membership,
            "audits": {
                name: [dataclasses.asdict(finding) for finding in findings]
                for name, findings in self.audits
            },
            "audits_from_outside": {
                name: dataclasses.asdict(finding) for name, finding in self.outside
            },
            "targets": verdicts(targets),
        }
        (output / "privacy.json").write_text(json.dumps(facts, indent=1) + "\n")
        files = [output / "privacy.json", *drawn]
        conclude(facts, self._page(), targets, files, self.as_json)

    def _page(self) -> str:
        large = len({run.data for run in self.runs if run.rows >= bench.MIN_ROWS})
        sure = f"{100 * bench_outside.CONFIDENCE:.4g}%"
        return "\n".join([
            "# Accuracy\n",
            f"Mean over {large} sets of 1,000 rows and more, {self.seeds} seeds ± their",
            "standard deviation, x 100. Ranges are the data's own, taken as public.\n",
            bench.table_of_means(self.runs),
            "\nROC-AUC x 100 of each set, HushTable / the paper's mechanism:\n",
            bench.table_of_sets(self.runs),
            "\n# Membership\n",
            "AUC of separating rows that were counted from rows that were not, mean",
            f"over {_HALVES * self.seeds} ways to halve the rows:\n",
            bench.table_of_membership(self.membership),
            "\n# Audits\n\nLower bounds on epsilon, each with 95% confidence:\n",
            bench.table_of_audits(self.audits),
            f"\nThrough public calls and files only, with {sure} confidence each:\n",
            bench_outside.table(self.outside),
        ])  # fmt: skip
