"""A release's ledger as a draft for the Differential Privacy Deployments Registry.

The registry and its schema: Nanayakkara, Ghazi and Vadhan, arXiv 2509.13509, and
registry.opendp.org. An entry contains nothing about rows, and no name of a column: only the ledger,
the size of the plan and ids. What a file cannot know is left to a person, marked by `TO_FILL_IN`.
"""

import json
import math
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from string import Template
from typing import Any

from hushtable.counts.release import Release
from hushtable.describe import plan as words
from hushtable.describe.ledger import describe_ledger
from hushtable.scores.typical import and_words

#: Prefix or suffix of everything that a person has to fill in. If the registry accepts only one of
#: a few words or a date, its check refuses the draft until that is done.
TO_FILL_IN = "TO FILL IN: "
#: The registry's fields of all three tiers, in its order; the facts about a release begin with $.
_TEMPLATE = Path(__file__).with_name("registry.json")


def entry(release: Release) -> dict[str, Any]:
    """Return the draft of a release's entry, in the form stored in JSON.

    Epsilon, delta and rho are the ledger's, over everything that it covers.
    """
    ledger, plan, unit = release.ledger, release.plan, release.ledger.sensitivity
    numeric = sum(feature.kind == "numeric" for feature in plan.schema.features)
    most = "1 record" if unit.rows_per_person == 1 else f"{unit.rows_per_person:,} records"
    if unit.horizon is not None:
        most += f" in each of {unit.horizon.participations} periods"
    parameters = {"epsilon": ledger.epsilon}
    if ledger.delta:
        parameters |= {"delta": ledger.delta, "rho": ledger.rho}
    many = bool(ledger.period or ledger.behind_plan or any(s.earlier for s in ledger.shares))
    facts = {
        "cells": f"{plan.family.n_cells:,}",
        "tables": words.n_tables(release.n_tables),
        "detector": release.detector,
        "variant": "Approximate DP" if ledger.delta else "Pure DP",
        "numeric": f"{numeric:,}",
        "categorical": f"{len(plan.schema) - numeric:,}",
        "how": "were found through earlier private releases, or are public; the releases are "
        "counted"
        if plan.schema.paid
        else "are public, and were fixed without looking at the rows",
        "unprotected": "The number of rows, which is taken to be public. "
        if unit.adjacency == "replace-one"
        else "",
        "unit": "One record" if most == "1 record" else f"One person, with at most {most}",
        "adjacency": unit.adjacency,
        "rows": f"{unit.rows_per_person:,}",
        # What an officer signs off: unit, totals, earlier releases, and how the sites share noise.
        "stated": " ".join(describe_ledger(ledger)),
        "model": "Central" if len(ledger.shares) == 1 else "Federated",
        "releases": "Many releases" if many else "One release",
        "source": "Dynamic" if ledger.period else f"{TO_FILL_IN}Static or Dynamic",
        "l1": f"{unit.l1:,}",
        "l2": f"{math.sqrt(unit.l2_squared):.4g}",
        "dependence": words.dependence(plan),
        "mechanism": ledger.mechanism,
        "scales": and_words(sorted({f"{share.scale:.6g}" for share in ledger.shares})),
        "libraries": and_words(sorted({share.library for share in ledger.shares})),
        "version": version("hushtable"),
        "release": release.release_id,
        "plan": release.plan_id,
    }
    in_json = {name: json.dumps(fact)[1:-1] for name, fact in facts.items()}
    text = Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(in_json)
    draft: dict[str, Any] = json.loads(text)
    draft["deployment"]["privacy_loss"]["privacy_parameters"] = parameters
    return draft


def draft_file(release: Release) -> tuple[str, list[str]]:
    """Return the text of the draft's file, and the fields that a person has to fill in."""
    draft = entry(release)
    return json.dumps(draft, indent=2, ensure_ascii=False) + "\n", list(left_open(draft))


def left_open(draft: Any, place: str = "") -> Iterator[str]:
    """Yield the fields that a person has to fill in, such as ``deployment.basic.name``."""
    if isinstance(draft, dict):
        for key, value in draft.items():
            yield from left_open(value, f"{place}.{key}" if place else key)
    elif isinstance(draft, list):
        for value in draft:
            yield from left_open(value, place)
    elif isinstance(draft, str) and TO_FILL_IN in draft:
        yield place
