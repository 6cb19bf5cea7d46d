"""``hushtable round show`` and ``approve``: what an officer reviews and signs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from hushtable.cli.options import Output, argument, option
from hushtable.cli.output import Target, shown, size
from hushtable.cli.result import Block, CommandResult, LabelledValues, Paragraph, TextTable
from hushtable.describe.plan import column_rows, values
from hushtable.errors import UsageError
from hushtable.files import Content
from hushtable.privacy.accounting import rounded_up
from hushtable_federation.cli import _common as common
from hushtable_federation.cli._common import RoundFile, read_round
from hushtable_federation.describe import officer_words, round_lines
from hushtable_federation.keys import Card, Keys
from hushtable_federation.language import _
from hushtable_federation.policy import Approval, Policy, load_policy
from hushtable_federation.round import Round
from hushtable_federation.site import Site
from hushtable_federation.standing import Standing, parties

_Key = Annotated[
    Path | None,
    option(
        "FILE",
        "This site's keys: also show who is known here, the costs, and what the policy allows.",
        "--key",
    ),
]


_Asked = Annotated[Path | None, argument("[ROUND]", "Round written by hushtable round open.")]


def show(
    round_: _Asked = None,
    key: _Key = None,
    book: common.BookFile = None,
    policy: common.PolicyFile = None,
) -> CommandResult:
    """Show what a round counts, who takes part, and what it costs.

    It lists the columns with their ranges and categories, the terms, the coordinator and the sites;
    with --key, also what further rounds like it would cost. Nothing is counted, recorded or sent.
    Without a round, --policy checks a site's policy, and shows what it allows.

    Example:
      hushtable round show round.hush --key north.key
      hushtable round show --policy north.policy.toml
    """
    if round_ is None:
        if policy is None or key is not None or book is not None:
            raise UsageError("give the file of a round, or a policy alone (--policy)")
        return _policy(policy)
    asked = common.read_round(round_)
    standing: dict[str, Any] = {"known": {}, "policy": None, "beside_cost": "", "further": []}
    if key is not None:
        found = Standing.of(Site.open(key, **common.given(book=book, policy=policy)), asked)
        if found.officer:
            found.words.append(f"The officer {found.officer} has to sign it (round approve).")
        policy_facts = {"allows": found.allows, "words": found.words}
        standing = {
            "known": found.known,
            "policy": policy_facts,
            "beside_cost": found.beside_cost,
            "further": found.further,
        }
    facts: dict[str, Any] = {
        "command": "round show",
        "round_id": asked.round_id,
        "fingerprint": asked.fingerprint,
        "title": asked.title,
        **common.period_facts(asked),
        "words": officer_words(asked),
        "features": [f.to_dict() for f in asked.plan.schema.features],
        "terms": asked.terms.to_dict(),
        "site_scale": asked.site_scale,
        "coordinator": asked.coordinator.to_dict(),
        "sites": [card.to_dict() for card in asked.sites],
        **standing,
    }

    def blocks() -> Iterator[Block]:
        yield from round_blocks(asked, standing["known"], standing["beside_cost"])
        if standing["policy"] is not None:
            yield "\nThis site\n"
            yield Paragraph(standing["policy"]["words"], indent="  ")
        if len(standing["further"]) > 1:
            headers = ["further rounds like this", "epsilon of all rounds"]
            yield ""
            yield TextTable(
                headers,
                [[f"{k}", f"{rounded_up(one):g}"] for k, one in enumerate(standing["further"])],
            )

    return CommandResult(facts, blocks())


def round_blocks(asked: Round, known: dict[str, str], beside_cost: str) -> Iterator[Block]:
    """Print what a round counts, what its cost does not contain here, and who takes part."""
    yield Paragraph(officer_words(asked))
    yield ""
    for label, value in round_lines(asked).items():
        yield f"{label:<13}{shown(value)}"
        if label == _("Cost") and beside_cost:
            yield f"{'':<13}{shown(beside_cost)}"
    yield ""
    rows = [[shown(cell) for cell in row] for row in column_rows(asked.plan)]
    yield TextTable(["column", "kind", "range or categories"], rows, left=3)
    yield ""
    headers = ["role", "name", "fingerprint of the card", *(["here"] if known else [])]
    rows = [[role, card.name, card.fingerprint] for role, card in parties(asked)]
    for row in rows if known else []:
        row.append(known[f"{row[0]} {row[1]}"])
    yield TextTable(headers, rows, left=len(headers))
    yield f"\nFingerprint of all cards: {asked.fingerprint}"


_OfficersKey = Annotated[
    Path, option("FILE", "The officer's keys, written by hushtable round keygen.", "--key")
]


def approve(round_: RoundFile, key: _OfficersKey, output: Output) -> CommandResult:
    """Sign a round as the officer whom a site's policy names.

    Review the round first: hushtable round show.

    Example:
      hushtable round approve round.hush --key officer.key -o round.approval
    """
    target = Target(output, [round_, key])
    asked, keys = read_round(round_), Keys.load(key)
    target.save(Approval.sign(asked, keys))
    facts = {
        "command": "round approve",
        "approval": str(output),
        "round_id": asked.round_id,
        "officer": keys.card.fingerprint,
    }

    def blocks() -> Iterator[Block]:
        yield f"{keys.card.name} ({keys.card.fingerprint}) approves round {asked.round_id[:12]}."
        yield f"Wrote {target}. At the site:"
        yield f"  hushtable round sync FOLDER DATA --key SITE.key --approval {output}"

    return CommandResult(facts, blocks())


def _policy(file: Path) -> CommandResult:
    read = load_policy(file)
    facts: dict[str, Any] = {
        "command": "round show",
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
        "independent": read.independent,
        "officer": read.officer or None,
        "plans": list(read.plans),
        "features": [feature.to_dict() for feature in read.features],
    }
    return CommandResult(facts, _blocks(file, read))


def _blocks(file: Path, read: Policy) -> Iterator[Block]:
    by_book = "those that the book knows"
    lines = {
        "Policy": f"{file}, {read.digest[:12]}",
        "Coordinators": shown(", ".join(read.coordinators)) or by_book,
        "Sites": shown(", ".join(read.sites)) or by_book,
        "A round": f"epsilon {read.epsilon:g} and delta {read.delta:g} at most",
        "All rounds": f"epsilon {read.total_epsilon:g} at most",
        "Masked": f"{read.known_sites} or more known sites, including this one",
        "Both roles": "allowed"
        if read.coordinator_may_be_site
        else "refused: no party may be coordinator and site",
        "Persons": "named by a column (person = ... in the site's file)"
        if read.persons == "column"
        else f"{read.persons:,} rows at most per person, as affirmed",
        "Queries": "each row depends on one person, as affirmed"
        if read.independent
        else "counted only if the site's file states that each row depends on one person",
        "No masks": "refused" if read.masks else "allowed",
        "Officer": read.officer or "no signature needed",
        "Unattended": "answers" if read.unattended else "answers nothing",
    }
    for label, value in lines.items():
        yield f"{label:<14}{value}"
    if read.plans:
        yield "\nPlans:"
        yield from (f"  {shown(plan)}" for plan in read.plans)
    if read.features:
        rows = [[shown(one.name), one.kind, shown(values(one))] for one in read.features]
        yield ""
        yield TextTable(["column", "kind", "at most"], rows, left=3)
    elif not read.plans:
        yield "\nColumns: a person reviews those of each round (hushtable round show)."


#: By kind of file, the next command that uses it.
_NEXT = {
    "round": "hushtable round status {file}",
    "submission": "hushtable round status ROUND {file}",
}


def inspect_card(file: Path) -> CommandResult:
    """Show whose a card is, and the fingerprint that two people compare."""
    card = Card.load(file)
    facts = {"command": "inspect", "file": str(file), "kind": "card", "name": card.name}
    facts["fingerprint"] = card.fingerprint
    lines = {"File": str(file), "Kind": "card", "Name": card.name, "Fingerprint": card.fingerprint}
    return CommandResult(facts, [LabelledValues(lines)])


def inspect_round(file: Path, content: Content) -> CommandResult:
    """Show a file of a round as it is written; nothing in it is secret."""
    entries = content.manifest
    facts: dict[str, Any] = {"command": "inspect", "file": str(file), "kind": content.kind}
    facts |= {key: entries[key] for key in entries if key not in ("plan", "arrays", "kind")}

    def blocks() -> Iterator[Block]:
        lines = {
            "File": f"{file} ({size(file)})",
            "Kind": f"{content.kind}, protocol {entries['protocol']}",
            "Id": content.digest,
            "Of round": entries.get("round_id"),
            "Of site": entries.get("site"),
            "Plan": entries.get("plan_id"),
        }
        for label, value in lines.items():
            if value is not None:
                yield f"{label:<17}{shown(str(value))}"
        if content.kind in _NEXT:
            yield f"\nMore: {_NEXT[content.kind].format(file=file)}"

    return CommandResult(facts, blocks())
