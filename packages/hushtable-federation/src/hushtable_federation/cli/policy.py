"""``hushtable round policy``: whom a site answers, with whom, for how much, about what."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.cli._options import Json, argument, option
from hushtable.cli._output import Target, finish, print_table, shown
from hushtable.errors import UsageError
from hushtable.report.words import values
from hushtable_federation.cli._common import PersonsOption, stated_persons
from hushtable_federation.policy import Policy
from hushtable_federation.policy_file import load_policy, write_policy

_File = Annotated[Path, argument("POLICY", "Policy of round keygen, NAME.policy.toml.")]
_Write = Annotated[
    bool, typer.Option("--write", help="Write a strict one first, where there is none.")
]
_Cap = Annotated[float | None, option("E", "With --write: the most that all rounds may cost.")]


def policy(
    file: _File,
    write: _Write = False,
    cap: _Cap = None,
    persons: PersonsOption = "column",
    as_json: Json = False,
) -> None:
    """Check the policy of a site, and show what it allows.

    Example:
      hushtable round policy north.policy.toml
    """
    if write != (cap is not None):
        raise UsageError("--write and --cap go together: a policy says what all rounds may cost")
    if cap is not None:
        target = Target(file)
        with target.writing():
            name = file.name.removesuffix(".policy.toml")
            write_policy(file, name, cap, 1e-6, stated_persons(persons))
    read = load_policy(file)
    facts: dict[str, Any] = {
        "command": "round policy",
        "policy": str(file),
        "digest": read.digest,
        "coordinators": dict(read.coordinators),
        "sites": dict(read.sites),
        "epsilon": read.epsilon,
        "total_epsilon": read.total_epsilon,
        "delta": read.delta,
        "known_sites": read.known_sites,
        "coordinator_may_be_site": read.coordinator_may_be_site,
        "unattended": read.unattended,
        "persons": read.persons,
        "masks": read.masks,
        "max_rows": read.max_rows,
        "officer": read.officer or None,
        "plans": list(read.plans),
        "features": [feature.to_dict() for feature in read.features],
    }
    finish(as_json, facts, lambda: _print(file, read))


def _print(file: Path, read: Policy) -> None:
    by_book = "those whom the book knows"
    lines = {
        "Policy": f"{file}, {read.digest[:12]}",
        "Coordinators": shown(", ".join(read.coordinators)) or by_book,
        "Sites": shown(", ".join(read.sites)) or by_book,
        "A round": f"epsilon {read.epsilon:g} and delta {read.delta:g} at most",
        "All rounds": f"epsilon {read.total_epsilon:g} at most",
        "Masked": f"{read.known_sites} known sites at least, this one included",
        "Both roles": "allowed"
        if read.coordinator_may_be_site
        else "refused: coordinator and site",
        "Persons": "told by a column (person = ... in the site's file)"
        if read.persons == "column"
        else f"{read.persons:,} rows at most of each, as affirmed",
        "No masks": "refused" if read.masks else "allowed",
        "Bounded rows": "allowed: about how many rows are here can then be read"
        if read.max_rows
        else "refused (max_rows)",
        "Officer": read.officer or "nobody has to sign",
        "Unattended": "answers" if read.unattended else "answers nothing",
    }
    for label, value in lines.items():
        print(f"{label:<14}{value}")
    if read.plans:
        print("\nPlans:", *(f"  {shown(plan)}" for plan in read.plans), sep="\n")
    if read.features:
        rows = [[shown(one.name), one.kind, shown(values(one))] for one in read.features]
        print()
        print_table(["column", "kind", "at most"], rows, left=3)
    elif not read.plans:
        print("\nColumns: a person looks at those of each round (hushtable round show).")
