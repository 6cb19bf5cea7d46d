"""``hushtable bench privacy --attacks``: what adversaries achieve against releases."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hushtable.cli.progress import bar_of_steps
from hushtable_bench import attacks, membership, privacy
from hushtable_bench.cli._bench import conclude, verdicts
from hushtable_bench.data import LabelledSet

#: Rows of a set that are solved for together.
_CANDIDATES = 2000
_PACKAGES = ("opendp", "numba", "numpy", "scipy")


def run_attacks(
    sets: Sequence[LabelledSet], epsilons: Sequence[float], quick: bool, output: Path, as_json: bool
) -> None:
    """Attack releases, exact counts and planted mistakes; print what came of it."""
    plays, halves, audits = (150, 2, (2000, 30)) if quick else (800, 5, (2000, 60))
    steps = attacks.outcomes(attacks.Scene(sets[0]), epsilons, plays)
    played = list(bar_of_steps(steps, attacks.n_outcomes(epsilons), "Attacks", as_json))
    halved = (
        found
        for one in sets
        for found in membership.attack(one.at_most(_CANDIDATES), epsilons, halves)
    )
    solving = bar_of_steps(halved, halves * len(sets), "Membership", as_json)
    solved = [one for found in solving for one in found]
    mistakes = privacy.audits(*audits, confidence=attacks.CONFIDENCE)
    planted = list(bar_of_steps(mistakes, privacy.N_AUDITED, "Planted mistakes", as_json))
    targets = [
        *attacks.targets(played), *membership.targets(solved), *privacy.audit_targets(planted),
    ]  # fmt: skip
    facts: dict[str, Any] = {
        "command": "bench privacy --attacks",
        "confidence": attacks.CONFIDENCE,
        "attacks": [dataclasses.asdict(one) | {"most": one.most} for one in played],
        "membership": [dataclasses.asdict(one) for one in solved],
        "planted": {name: [dataclasses.asdict(f) for f in found] for name, found in planted},
        "targets": verdicts(targets),
    }
    (output / "attacks.json").write_text(json.dumps(facts, indent=1) + "\n")
    sure = f"{100 * attacks.CONFIDENCE:.4g}%"
    page = "\n".join([
        f"# Attacks\n\nOne row of {sets[0].name}, in or not; {plays} plays of each. Lower",
        f"bounds on epsilon hold with {sure} confidence each. The standard error of an AUC",
        f"of chance is {(6 * plays) ** -0.5:.3f}.\n",
        attacks.table(played),
        "\n# Membership\n\nAll rows of a set solved for from one release; a coin decided which",
        f"are in it. Means of {halves} releases ± standard errors; the highest bound.\n",
        membership.table(solved),
        f"\n# Planted mistakes\n\nLower bounds on epsilon, {sure} confidence each:\n",
        privacy.table_of_audits(planted),
    ])  # fmt: skip
    conclude(facts, page, targets, [output / "attacks.json"], as_json, _PACKAGES)
