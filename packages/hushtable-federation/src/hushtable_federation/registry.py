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
from hushtable.describe.ledger import describe_ledger, in_file
from hushtable.privacy.accounting import ZCDP, rounded_up
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
    return {
        "url_slug": f"{TO_FILL_IN}name, curators and year, joined by hyphens",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": _basic(release),
            "dp_variant": {
                "variant_name": "Approximate DP" if ledger.delta else "Pure DP",
                "data_domain": _domain(release) + f" {TO_FILL_IN}whose rows, and which of them.",
                "unprotected_quantities": _unprotected(ledger),
            },
            "privacy_loss": _privacy_loss(ledger),
            "deployment_model": _model(ledger),
            "accounting": _accounting(ledger),
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
        f"categorical columns, whose ranges and categories {how}."
    )


def _unprotected(ledger: Ledger) -> str:
    released = "is a release, when, and from which sites."
    if ledger.period is not None:
        released = "are releases, in which periods, and from which sites."
    plan = (
        "The plan (ranges, categories, hash functions) may be known to all, and so may that there "
        f"{released}"
    )
    if ledger.sensitivity.adjacency == "replace-one":
        return f"The number of rows, which is taken to be public. {plan}"
    return f"None in the file. {plan}"


def _privacy_loss(ledger: Ledger) -> dict[str, Any]:
    unit = ledger.sensitivity
    rows = unit.rows_per_person
    horizon = unit.horizon
    records = "record" if rows == 1 else f"{rows:,} records"
    unit_is_record = rows == 1 and (horizon is None or horizon.participations == 1)
    if horizon is not None and not unit_is_record:
        records = "one record" if rows == 1 else records
        records += f" in each of {horizon.participations} periods"
    differ = (
        f"one has the {records} of one person more than the other"
        if unit.adjacency == "add-remove"
        else f"they have equally many rows, and differ in the {records} of one person"
    )
    in_periods = ""
    if horizon is not None:
        more = "one" if horizon.participations == 1 else f"{horizon.participations}"
        in_periods = f" of a period, or rows in more periods than {more}"
    parameters = {"epsilon": ledger.epsilon}
    if ledger.delta:
        parameters |= {"delta": ledger.delta, "rho": ledger.rho}
    return {
        "privacy_unit": "One record" if unit_is_record else f"One person, with at most {records}",
        "privacy_unit_details": (
            f"Two data sets are adjacent if {differ} ({unit.adjacency}). {TO_FILL_IN}whether "
            f"no one has more than {rows:,} of the rows{in_periods}, and how that is known."
        ),
        "privacy_parameters": parameters,
        "privacy_parameters_details": " ".join(describe_ledger(ledger)),
    }


def _model(ledger: Ledger) -> dict[str, Any]:
    sites = len(ledger.shares)
    if len(ledger.pools) > 1 or (ledger.pools and ledger.pool is None):
        model = (
            "Releases about different people are summed. The sites of a masked round share its "
            "noise: each adds a part, and a secure sum reveals only the total. Other sites add the "
            "whole noise. No central party sees rows or exact counts."
        )
    elif ledger.pools:
        model = (
            f"{sites} sites share the noise: each adds a part, and a secure sum reveals "
            "only the total. No central party sees rows or exact counts."
        )
    elif sites > 1:
        model = f"Each of {sites} sites adds the full noise to its counts; then they are summed."
    else:
        model = "One site counts its own rows, adds the noise, and sends the result."
    many = bool(ledger.period or ledger.behind_plan or any(s.earlier for s in ledger.shares))
    again = f"{TO_FILL_IN}whether these rows will be released again, and up to which total."
    return {
        "model_name": "Central" if sites == 1 else "Federated",
        "model_name_details": model,
        "actors": (
            "Each site is trusted with its own rows, and no one else is trusted with them. "
            "Recipients may know anything else, and compute without limit. "
            f"{TO_FILL_IN}who they are."
        ),
        "release_type": "Many releases" if many else "One release",
        "release_type_details": f"{_periods(ledger)}{_before(ledger)} {again}",
        "data_source_type": "Dynamic" if ledger.period else f"{TO_FILL_IN}Static or Dynamic",
        "access_type": "Non-interactive",
        "access_type_details": (
            f"The counts are sent once{' in each period' if ledger.period else ''}, as a file. "
            "No further queries of the rows are possible."
        ),
    }


def _periods(ledger: Ledger) -> str:
    horizon = ledger.sensitivity.horizon
    if horizon is None:
        return ""
    k = horizon.participations
    person = "one of the periods"
    if k > 1:
        person = f"{k} of the periods at most (at least {horizon.apart} from one to the next)"
    return (
        f"New rows are released in each of {horizon.periods} periods, and the totals are those of "
        f"all of them. This is {in_file(ledger)}. A person has rows in {person}. "
    )


def _before(ledger: Ledger) -> str:
    earlier = {spent.release: spent for share in ledger.shares for spent in share.earlier}
    before = [*ledger.behind_plan, *earlier.values()]
    if not before:
        return "The ledger names no earlier release on the same rows."
    named = and_words([f"{spent.what} {spent.release[:12]}" for spent in before])
    return f"The totals count the earlier releases on the same rows: {named}."


def _accounting(ledger: Ledger) -> dict[str, str]:
    unit = ledger.sensitivity
    added = (
        "Releases on the same rows add up in zCDP (rho), converted to epsilon at delta once"
        + ("" if ledger.accounting == ZCDP else ", almost exactly if all noise is Gaussian")
        if ledger.delta
        else "Releases on the same rows add up in pure epsilon"
    )
    across = (
        f" Sites hold different people's rows; for a person at all {len(ledger.shares)} of them "
        f"epsilon is {rounded_up(ledger.epsilon_at(len(ledger.shares)))}."
        if len(ledger.shares) > 1
        else ""
    )
    vector = "All cells of all tables are one vector, to which noise is added once"
    decoding = "None in the file: counts may be negative."
    if ledger.period is not None:
        vector = (
            "All cells of all tables in all periods are one vector. A matrix of whole numbers "
            "mixes the periods (the matrix mechanism), and noise is added once to the product"
        )
        decoding = "The counts are a weighted sum of the periods' releases, and may be negative."
    return {
        "post_processing": (
            f"{decoding} Recipients estimate numbers of rows and "
            "scores from them, at no further cost."
        ),
        "composition": (
            f"{vector} (L1 sensitivity {unit.l1:,}, "
            f"L2 {math.sqrt(unit.l2_squared):.4g}). {added}. {_before(ledger)}{across}"
        ),
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
