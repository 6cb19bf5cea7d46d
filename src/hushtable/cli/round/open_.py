"""``hushtable round open``: a round that every site is to answer, signed."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable import files
from hushtable.cli._options import (
    Adjacency,
    AdjacencyOption,
    Delta,
    ExpectedRows,
    Json,
    Output,
    RowsPerPerson,
)
from hushtable.cli._output import Target, finish, print_sentences, print_table
from hushtable.cli.plan import read_schema
from hushtable.cli.round._common import Days, KeyFile, cards, days_on, read_round, roster_rows
from hushtable.errors import UsageError
from hushtable.federation.keys import Keys
from hushtable.federation.layout import Layout
from hushtable.federation.round import Round, shown_time, stamp
from hushtable.plans.plan import Plan
from hushtable.privacy.layout import Design

__all__ = ["open_", "tell"]


def open_(
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN",
            help="Plan, or layout of a hidden one; or a schema in TOML, with --expected-rows.",
        ),
    ],
    roster: Annotated[
        list[Path], typer.Argument(metavar="CARD...", help="Cards of the sites that take part.")
    ],
    key: KeyFile,
    epsilon: Annotated[
        float,
        typer.Option(metavar="E", help="Total for one person, with what the plan was drawn from."),
    ],
    output: Output,
    delta: Delta = 1e-6,
    days: Days = 14.0,
    title: Annotated[str, typer.Option(metavar="TEXT", help="For people.")] = "",
    expected_rows: ExpectedRows = None,
    masks: Annotated[
        bool,
        typer.Option(
            "--masks/--no-masks",
            help="Share the noise under masks (all sites take part, or there is no result), or "
            "let each site add the whole noise (a result without late sites too).",
        ),
    ] = True,
    least: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Sites without which there is no result."),
    ] = None,
    colluders: Annotated[
        int,
        typer.Option(
            metavar="C", min=0, help="Sites that may tell their noise without breaking the bound."
        ),
    ] = 0,
    adjacency: AdjacencyOption = Adjacency.ADD_REMOVE,
    rows_per_person: RowsPerPerson = 1,
    previous: Annotated[
        list[Path] | None,
        typer.Option(metavar="ROUND", help="Round that the plan was drawn from."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Open a round: sign what is counted, by whom, on which terms.

    With a schema in the place of a plan, the round is about the marginals if they pay for the
    rows expected, and "hushtable round next" goes on from there.

    \b
    Example:
      hushtable round open plan.hush north.card south.card --key lead.key --epsilon 1 -o round.hush
    """  # noqa: D301 (\b keeps the lines of the example apart)
    target = Target(output, [plan, *roster])

    sites = cards(roster)
    keys = Keys.load(key)
    adjacency_: Any = adjacency.value
    round_ = Round.open(
        _what(plan, expected_rows, epsilon, delta, 1 if masks else len(sites)),
        sites,
        keys,
        epsilon=epsilon,
        delta=delta,
        deadline=days_on(days),
        masked=masks,
        least=least,
        colluders=colluders,
        adjacency=adjacency_,
        rows_per_person=rows_per_person,
        title=title,
        previous=[read_round(path).round_id for path in previous or []],
    )
    tell(round_, target, "round open", as_json)


def _what(
    path: Path, expected_rows: int | None, epsilon: float, delta: float, releases: int
) -> Plan | Layout:
    """Return what is to be counted: as the file says, or as suits the schema."""
    if path.suffix != ".toml":
        if expected_rows is not None:
            raise UsageError("--expected-rows goes with a schema; a plan has its own layout")
        content = files.read(path)
        if content.kind == "layout":
            return content.build(Layout.from_file)
        return content.build(Plan.from_file)
    if expected_rows is None:
        raise UsageError(
            f"{path} is a schema: give --expected-rows, a public guess of the rows of all sites"
        )

    schema = read_schema(path)
    terms: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": delta,
        "expected_rows": expected_rows,
        "sites": releases,
    }
    if Design(epsilon, delta, expected_rows, releases).pays_marginals(len(schema)):
        return Plan.marginals(schema, **terms)
    return Plan.draw(schema, **terms)


def tell(round_: Round, target: Target, command: str, as_json: bool) -> None:
    """Write a round that was opened, and say so."""
    with target.writing():
        round_.save(target.path)
    terms = round_.terms
    facts = {
        "command": command,
        "round": str(target.path),
        "round_id": round_.round_id,
        "plan_id": round_.layout.plan_id,
        "detector": round_.layout.detector,
        "sites": round_.names,
        "terms": terms.to_dict(),
        "site_scale": round_.site_scale,
        "deadline": stamp(round_.deadline),
    }

    def text() -> None:
        print(f"Round {round_.round_id[:12]}, until {shown_time(round_.deadline)}.\n")
        print_table(["site", "fingerprint"], roster_rows(round_, None), left=2)
        print()
        sentences = [
            f"Epsilon {terms.epsilon:g} at delta {terms.delta:g} in all; this round takes "
            + ("all that is left." if terms.share is None else f"{terms.share:.0%} of it.")
        ]
        if terms.masked:
            who = "all" if terms.least == len(round_.sites) else f"at least {terms.least}"
            colluders = terms.least - 1 - terms.k_min
            sentences.append(
                f"Masked: each site adds noise of {round_.site_scale:,.1f}, and only the sum of "
                f"{who} can be read. The bound holds against each of the sites"
                + (f", also with {colluders} of the others." if colluders else ".")
            )
        else:
            sentences.append(
                f"Without masks: each site adds the whole noise, {round_.site_scale:,.1f}; the "
                f"result needs {terms.least} sites."
            )
        print_sentences(sentences)
        if round_.coordinator in round_.sites:
            print(f"\n{round_.coordinator.name} is a site, too: the others refuse that, unless")
            print("their policies allow it (coordinator_may_be_site).")
        print(f"\nWrote {target}. At each site:")
        print(f"  hushtable round show {target.path} --key SITE.key")
        print(f"  hushtable round submit {target.path} DATA --key SITE.key -o SITE.submission.hush")

    finish(as_json, facts, text)
