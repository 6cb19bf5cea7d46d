"""A release's ledger as a draft for the Differential Privacy Deployments Registry.

The registry and its schema: Nanayakkara, Ghazi and Vadhan, arXiv 2509.13509, and
registry.opendp.org. An entry contains nothing about rows, and no name of a column: only the ledger,
the size of the plan and ids. What a file cannot know is left to a person, marked by `TO_FILL_IN`.
"""

import json
import math
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from hushtable.counts.release import Release
from hushtable.describe import plan as words
from hushtable.describe.ledger import describe_ledger
from hushtable.privacy.ledger import Ledger
from hushtable.scores.typical import and_words

#: Prefix or suffix of everything that a person has to fill in. If the registry accepts only one of
#: a few words or a date, its check refuses the draft until that is done.
TO_FILL_IN = "TO FILL IN: "


def entry(release: Release) -> dict[str, Any]:
    """Return the draft of a release's entry, in the form stored in JSON.

    The registry's fields of all three tiers, in its order. Epsilon, delta and rho are the
    ledger's, over everything that it covers.
    """
    ledger = release.ledger
    # What an officer signs off: unit, totals, earlier releases, and how the sites share noise.
    stated = " ".join(describe_ledger(ledger))
    return {
        "url_slug": f"{TO_FILL_IN}name, curators and year, joined by hyphens",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": _basic(release),
            "dp_variant": {
                "variant_name": "Approximate DP" if ledger.delta else "Pure DP",
                "data_domain": _domain(release),
                "unprotected_quantities": _unprotected(ledger),
            },
            "privacy_loss": _privacy_loss(ledger, stated),
            "deployment_model": _model(ledger, stated),
            "accounting": {
                "post_processing": (
                    "Counts may be negative; numbers of rows and scores are estimated from them, "
                    "at no further cost."
                ),
                "composition": (
                    "All cells of all tables are one vector, to which noise is added once (L1 "
                    f"sensitivity {ledger.sensitivity.l1:,}, L2 "
                    f"{math.sqrt(ledger.sensitivity.l2_squared):.4g}). {stated}"
                ),
            },
            "implementation": _implementation(release),
            "administrative": {
                "sources": f"{TO_FILL_IN}links to descriptions of the release.",
                "notes": f"Release {release.release_id}, under plan {release.plan_id}.",
                "registry_authors": [f"{TO_FILL_IN}who filled this in"],
            },
        },
    }


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


def _basic(release: Release) -> dict[str, Any]:
    family = release.plan.family
    return {
        "name": f"{TO_FILL_IN}name of the data product",
        "data_curators": [f"{TO_FILL_IN}who publishes it"],
        "intended_use": f"{TO_FILL_IN}such as finding unusual rows among those of all sites",
        "data_product_type": "Summary statistics",
        "data_product_region": f"{TO_FILL_IN}where the people live, or whose law applies",
        "description": (
            f"Counts of rows in {family.n_cells:,} cells of {words.n_tables(release.n_tables)}, "
            "with noise on each count, for the detection of outliers "
            f"(hushtable, detector {release.detector})."
        ),
        "publication_date": f"{TO_FILL_IN}YYYY-MM-DD",
        "data_product_sector": (
            f"{TO_FILL_IN}Technology, Healthcare, Education, Government, Energy or Finance"
        ),
    }


def _domain(release: Release) -> str:
    schema = release.plan.schema
    numeric = sum(feature.kind == "numeric" for feature in schema.features)
    how = (
        "were found through earlier private releases, or are public; the releases are counted"
        if schema.paid
        else "are public, and were fixed without looking at the rows"
    )
    return (
        f"Data sets of any number of rows with {numeric:,} numeric and {len(schema) - numeric:,} "
        f"categorical columns, whose ranges and categories {how}. {TO_FILL_IN}whose rows, and "
        "which of them."
    )


def _unprotected(ledger: Ledger) -> str:
    plan = "The plan (ranges, categories, hash functions), when there are releases, and from whom."
    public = ledger.sensitivity.adjacency == "replace-one"
    return f"The number of rows, which is taken to be public. {plan}" if public else plan


def _privacy_loss(ledger: Ledger, stated: str) -> dict[str, Any]:
    unit = ledger.sensitivity
    rows, horizon = unit.rows_per_person, unit.horizon
    most = "1 record" if rows == 1 else f"{rows:,} records"
    if horizon is not None:
        most += f" in each of {horizon.participations} periods"
    parameters = {"epsilon": ledger.epsilon}
    if ledger.delta:
        parameters |= {"delta": ledger.delta, "rho": ledger.rho}
    return {
        "privacy_unit": "One record" if most == "1 record" else f"One person, with at most {most}",
        "privacy_unit_details": (
            f"Adjacency: {unit.adjacency}. {TO_FILL_IN}whether no one has more than {rows:,} of "
            "the rows, or rows in more periods, and how that is known."
        ),
        "privacy_parameters": parameters,
        "privacy_parameters_details": stated,
    }


def _model(ledger: Ledger, stated: str) -> dict[str, Any]:
    many = bool(ledger.period or ledger.behind_plan or any(s.earlier for s in ledger.shares))
    return {
        "model_name": "Central" if len(ledger.shares) == 1 else "Federated",
        "model_name_details": f"Each site counts its rows, and sends counts with noise. {stated}",
        "actors": (
            "Each site is trusted with its own rows, and no one else is trusted with them. "
            "Recipients may know anything else, and compute without limit. "
            f"{TO_FILL_IN}who they are."
        ),
        "release_type": "Many releases" if many else "One release",
        "release_type_details": (
            f"{TO_FILL_IN}whether these rows will be released again, and up to which total."
        ),
        "data_source_type": "Dynamic" if ledger.period else f"{TO_FILL_IN}Static or Dynamic",
        "access_type": "Non-interactive",
        "access_type_details": "Counts are sent as files. No further queries of rows are possible.",
    }


def _implementation(release: Release) -> dict[str, str]:
    ledger = release.ledger
    scales = and_words(sorted({f"{share.scale:.6g}" for share in ledger.shares}))
    libraries = and_words(sorted({share.library for share in ledger.shares}))
    return {
        "preprocessing_and_hyperparameter_tuning": (
            f"Whether the plan depends on rows: {words.dependence(release.plan)}. {TO_FILL_IN}"
            "whether anyone looked at the rows to choose the columns, the plan or the budget."
        ),
        "mechanisms": (
            f"{ledger.mechanism} of scale {scales} on each count, drawn exactly, as whole numbers "
            f"(no floating point), by {libraries} from the system's random generator; entry "
            f"written by hushtable {version('hushtable')}. {TO_FILL_IN}who can read the rows and "
            "the exact counts, and how they are kept."
        ),
        "justification": f"{TO_FILL_IN}who chose epsilon, delta and the unit, and why.",
    }
