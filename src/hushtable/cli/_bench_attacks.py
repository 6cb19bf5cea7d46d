"""``hushtable bench privacy --attacks``: what adversaries achieve against releases."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from hushtable.bench import attacks, membership, privacy
from hushtable.bench.data import LabelledSet
from hushtable.bench.tables import print_environment, print_targets
from hushtable.cli._output import finish
from hushtable.cli._progress import bar_of_steps

__all__ = ["run_attacks"]

#: Rows of a set that are solved for together.
_CANDIDATES = 2000


def run_attacks(
    sets: Sequence[LabelledSet], epsilons: Sequence[float], quick: bool, output: Path, as_json: bool
) -> None:
    """Attack releases, exact counts and planted mistakes; print what came of it."""
    plays, halves, audits = (150, 2, (2000, 30)) if quick else (800, 5, (2000, 60))
    steps = attacks.outcomes(attacks.Scene(sets[0]), epsilons, plays)
    played = list(bar_of_steps(steps, attacks.n_outcomes(epsilons), "Attacks", as_json))
    solved: list[membership.Attacked] = []
    halved = (
        found
        for one in sets
        for found in membership.attack(one.at_most(_CANDIDATES), epsilons, halves)
    )
    for found in bar_of_steps(halved, halves * len(sets), "Membership", as_json):
        solved += found
    planted = list(
        bar_of_steps(
            privacy.audits(*audits, confidence=attacks.CONFIDENCE),
            privacy.N_AUDITED,
            "Planted mistakes",
            as_json,
        )
    )
    targets = [
        *attacks.targets(played), *membership.targets(solved), *privacy.audit_targets(planted),
    ]  # fmt: skip
    facts: dict[str, Any] = {
        "command": "bench privacy --attacks",
        "confidence": attacks.CONFIDENCE,
        "attacks": [dataclasses.asdict(one) | {"most": one.most} for one in played],
        "membership": [dataclasses.asdict(one) for one in solved],
        "planted": {name: [dataclasses.asdict(f) for f in found] for name, found in planted},
        "targets": [dataclasses.asdict(t) | {"met": t.met} for t in targets],
    }
    (output / "attacks.json").write_text(json.dumps(facts, indent=1) + "\n")

    def text() -> None:
        sure = f"{100 * attacks.CONFIDENCE:.4g}%"
        print(f"# Attacks\n\nOne row of {sets[0].name}, in or not; {plays} plays of each. Lower")
        print(f"bounds on epsilon hold with {sure} confidence each. The standard error of an AUC")
        print(f"of chance is {(6 * plays) ** -0.5:.3f}.\n")
        print(attacks.table(played))
        print(
            "\n# Membership\n\nAll rows of a set solved for from one release; a coin decided which"
        )
        print(f"are in it. Means of {halves} releases ± standard errors; the highest bound.\n")
        print(membership.table(solved))
        print(f"\n# Planted mistakes\n\nLower bounds on epsilon, {sure} confidence each:\n")
        print(privacy.table_of_audits(planted))
        print_environment(("opendp", "numba", "numpy", "scipy"))
        print_targets(targets)
        print(f"\nWrote {output / 'attacks.json'}.")

    finish(as_json, facts, text)
    if not all(target.met for target in targets):
        raise typer.Exit(1)
