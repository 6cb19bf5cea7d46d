"""``hushtable bench privacy``: what privacy costs, and what audits find."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hushtable.cli.progress import bar_of_steps
from hushtable_bench import figures, outside
from hushtable_bench import privacy as bench
from hushtable_bench.cli._bench import conclude, verdicts
from hushtable_bench.data import LabelledSet, load

#: Sets for `--quick`, and for the attack on membership.
_QUICK = ("6_cardio", "28_pendigits", "38_thyroid", "4_breastw")
_ATTACKED = ("4_breastw", "6_cardio", "38_thyroid", "47_yeast", "43_WDBC")
#: Ways, for each seed, to deal a set's rows into those that are counted and those that are not.
_HALVES = 5


def chosen_sets(files: Sequence[Path], quick: bool) -> tuple[list[LabelledSet], list[LabelledSet]]:
    """Return the sets for accuracy, and those for attacks on membership."""
    sets = [load(file).at_most(bench.MAX_ROWS) for file in files]
    chosen = [d for d in sets if len(d.X) >= bench.MIN_ROWS or d.name in bench.PAPER_SETS]
    # Without duplicates: a row that is in both halves shows nothing.
    attacked = [d.distinct() for d in sets if d.name in _ATTACKED] or sets[:3]
    if quick:
        return [d for d in chosen if d.name in _QUICK] or chosen[:4], attacked[:2]
    return chosen, attacked


def run_costs(
    chosen: Sequence[LabelledSet],
    attacked: Sequence[LabelledSet],
    budgets: Sequence[float],
    seeds: int,
    quick: bool,
    output: Path,
    as_json: bool,
) -> None:
    """Measure accuracy, membership and audits, one after the other; print what came of it."""
    runs: list[bench.Run] = []
    steps = bench.accuracy(chosen, budgets, seeds)
    for more in bar_of_steps(steps, len(chosen) * seeds, "Accuracy", as_json):
        runs += more
    # Sets with a handful of outliers need more halves than seeds.
    trials = [(d, seed) for d in attacked for seed in range(_HALVES * seeds)]
    membership: dict[str, list[dict[str, float]]] = {}
    for one, seed in bar_of_steps(trials, len(trials), "Membership", as_json):
        membership.setdefault(one.name, []).append(bench.membership(one, (1.0, 0.1), seed))
    planted = bench.audits(*((1000, 30) if quick else (10_000, 100)))
    audits = list(bar_of_steps(planted, bench.N_AUDITED, "Audits", as_json))
    outer = outside.audits(quick), outside.n_audits(quick)
    published = list(bar_of_steps(*outer, "Audits from outside", as_json))
    drawn = figures.privacy_figure(runs, membership, output)
    targets = bench.audit_targets(audits) + outside.targets(published)
    targets += [] if quick else bench.accuracy_targets(runs)
    facts: dict[str, Any] = {
        "command": "bench privacy",
        "runs": [asdict(run) for run in runs],
        "membership": membership,
        "audits": {name: [asdict(one) for one in findings] for name, findings in audits},
        "audits_from_outside": {name: asdict(finding) for name, finding in published},
        "targets": verdicts(targets),
    }
    (output / "privacy.json").write_text(json.dumps(facts, indent=1) + "\n")
    page = _page(runs, membership, audits, published, seeds)
    conclude(facts, page, targets, [output / "privacy.json", *drawn], as_json)


def _page(runs: list[bench.Run], membership: Any, audits: Any, published: Any, seeds: int) -> str:
    large = len({run.data for run in runs if run.rows >= bench.MIN_ROWS})
    return "\n".join([
        "# Accuracy\n",
        f"Mean over {large} sets of 1,000 rows and more, {seeds} seeds ± their",
        "standard deviation, x 100. Ranges are the data's own, taken as public.\n",
        bench.table_of_means(runs),
        "\nROC-AUC x 100 of each set, HushTable / the paper's mechanism:\n",
        bench.table_of_sets(runs),
        "\n# Membership\n",
        "AUC of separating rows that were counted from rows that were not, mean",
        f"over {_HALVES * seeds} ways to halve the rows:\n",
        bench.table_of_membership(membership),
        "\n# Audits\n\nLower bounds on epsilon, each with 95% confidence:\n",
        bench.table_of_audits(audits),
        "\nThrough public calls and files only, with "
        f"{100 * outside.CONFIDENCE:.4g}% confidence each:\n",
        outside.table(published),
    ])  # fmt: skip
