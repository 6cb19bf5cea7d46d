"""``hushtable round show``, ``approve``, and ``verify``: what an officer reviews and signs."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

from hushtable.cli.options import Output, argument, option
from hushtable.cli.result import (
    Block,
    CommandResult,
    LabelledValues,
    Paragraph,
    Target,
    TextTable,
    count,
    shown,
    size,
)
from hushtable.describe.plan import column_rows, signed_by, values
from hushtable.errors import RoundError, UsageError
from hushtable.files import Content
from hushtable.privacy.accounting import rounded_up
from hushtable_federation.book.book import Book
from hushtable_federation.cli import _common as common
from hushtable_federation.clock import now
from hushtable_federation.describe import officer_words, round_lines
from hushtable_federation.keys import Card, Keys, grouped
from hushtable_federation.language import _
from hushtable_federation.policy import Approval, load_policy, parties
from hushtable_federation.result import Result
from hushtable_federation.round import Round
from hushtable_federation.site import Site, Standing

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
    known: dict[str, str] = {}
    policy_facts: dict[str, Any] | None = None
    beside_cost, further = "", list[float]()
    if key is not None:
        standing = Standing.of(Site.open(key, **common.given(book=book, policy=policy)), asked)
        if standing.officer:
            standing.words.append(f"The officer {standing.officer} has to sign it (round approve).")
        policy_facts = {"allows": standing.allows, "words": standing.words}
        known, beside_cost, further = standing.known, standing.beside_cost, standing.further
    facts = {
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
        "known": known,
        "policy": policy_facts,
        "beside_cost": beside_cost,
        "further": further,
    }
    blocks = round_blocks(asked, known, beside_cost)
    if policy_facts is not None:
        blocks += ["\nThis site\n", Paragraph(policy_facts["words"], indent="  ")]
    if len(further) > 1:
        rows = [[f"{k}", f"{rounded_up(total):g}"] for k, total in enumerate(further)]
        blocks += ["", TextTable(["further rounds like this", "epsilon of all rounds"], rows)]
    return CommandResult(facts, blocks)


def round_blocks(asked: Round, known: dict[str, str], beside_cost: str) -> list[Block]:
    """Return what a round counts, what its cost does not contain here, and who takes part."""
    lines = []
    for label, value in round_lines(asked).items():
        lines.append(f"{label:<13}{shown(value)}")
        if label == _("Cost") and beside_cost:
            lines.append(f"{'':<13}{shown(beside_cost)}")
    columns = [[shown(cell) for cell in row] for row in column_rows(asked.plan)]
    headers = ["role", "name", "fingerprint of the card", *(["here"] if known else [])]
    rows = [[role, card.name, card.fingerprint] for role, card in parties(asked)]
    for row in rows if known else []:
        row.append(known[f"{row[0]} {row[1]}"])
    return [
        Paragraph(officer_words(asked)),
        "",
        *lines,
        "",
        TextTable(["column", "kind", "range or categories"], columns, left=3),
        "",
        TextTable(headers, rows, left=len(headers)),
        f"\nFingerprint of all cards: {asked.fingerprint}",
    ]


_OfficersKey = Annotated[
    Path, option("FILE", "The officer's keys, written by hushtable round keygen.", "--key")
]


def approve(round_: common.RoundFile, key: _OfficersKey, output: Output) -> CommandResult:
    """Sign a round as the officer whom a site's policy names.

    Review the round first: hushtable round show.

    Example:
      hushtable round approve round.hush --key officer.key -o round.approval
    """
    target = Target(output, [round_, key])
    asked, keys = common.read_round(round_), Keys.load(key)
    target.save(Approval.sign(asked, keys))
    facts = {
        "command": "round approve",
        "approval": str(output),
        "round_id": asked.round_id,
        "officer": keys.card.fingerprint,
    }

    lines = [
        f"{keys.card.name} ({keys.card.fingerprint}) approves round {asked.round_id[:12]}.",
        f"Wrote {target}. At the site:",
        f"  hushtable round sync FOLDER DATA --key SITE.key --approval {output}",
    ]
    return CommandResult(facts, lines)


def _policy(file: Path) -> CommandResult:
    policy = load_policy(file)
    facts = {field.name: getattr(policy, field.name) for field in fields(policy)}
    facts |= {
        "command": "round show",
        "policy": str(file),
        "coordinators": dict(policy.coordinators),
        "sites": dict(policy.sites),
        "officer": policy.officer or None,
        "plans": list(policy.plans),
        "features": [feature.to_dict() for feature in policy.features],
    }
    by_book = "those that the book knows"
    lines = {
        "Policy": f"{file}, {policy.digest[:12]}",
        "Coordinators": shown(", ".join(policy.coordinators)) or by_book,
        "Sites": shown(", ".join(policy.sites)) or by_book,
        "A round": f"epsilon {policy.epsilon:g} and delta {policy.delta:g} at most",
        "All rounds": f"epsilon {policy.total_epsilon:g} at most",
        "Masked": f"{policy.known_sites} or more known sites, including this one",
        "Both roles": "allowed"
        if policy.coordinator_may_be_site
        else "refused: no party may be coordinator and site",
        "Persons": "named by a column (person = ... in the site's file)"
        if policy.persons == "column"
        else f"at most {count(policy.persons, 'row')} per person, as affirmed",
        "Queries": "each row depends on one person, as affirmed"
        if policy.independent
        else "counted only if the site's file states that each row depends on one person",
        "No masks": "refused" if policy.masks else "allowed",
        "Officer": policy.officer or "no signature needed",
        "Unattended": "answers" if policy.unattended else "answers nothing",
    }
    blocks: list[Block] = [f"{label:<14}{value}" for label, value in lines.items()]
    if policy.plans:
        blocks += ["\nPlans:", *(f"  {shown(plan)}" for plan in policy.plans)]
    if policy.features:
        rows = [[shown(one.name), one.kind, shown(values(one))] for one in policy.features]
        blocks += ["", TextTable(["column", "kind", "at most"], rows, left=3)]
    elif not policy.plans:
        blocks.append("\nColumns: a person reviews those of each round (hushtable round show).")
    return CommandResult(facts, blocks)


def inspect_card(file: Path) -> CommandResult:
    """Show whose a card is, and the fingerprint that two people compare."""
    card = Card.load(file)
    lines = {"File": str(file), "Kind": "card", "Name": card.name, "Fingerprint": card.fingerprint}
    facts = {"command": "inspect", **{label.lower(): value for label, value in lines.items()}}
    return CommandResult(facts, [LabelledValues(lines)])


def inspect_round(file: Path, content: Content) -> CommandResult:
    """Show a file of a round as it is written; nothing in it is secret."""
    entries = content.manifest
    facts: dict[str, Any] = {"command": "inspect", "file": str(file), "kind": content.kind}
    facts |= {key: entries[key] for key in entries if key not in ("plan", "arrays", "kind")}

    lines = {
        "File": f"{file} ({size(file)})",
        "Kind": f"{content.kind}, protocol {entries['protocol']}",
        "Id": content.digest,
        "Of round": entries.get("round_id"),
        "Of site": entries.get("site"),
        "Plan": entries.get("plan_id"),
    }
    known = {label: shown(str(value)) for label, value in lines.items() if value is not None}
    return CommandResult(facts, [LabelledValues(known)])


# --- round verify ---------------------------------------------------------------------------------

_Result = Annotated[Path, argument("RESULT", "Result written by hushtable round sync.")]
_Submissions = Annotated[
    list[Path] | None,
    argument(
        "SUBMISSION...", "The files that the sites sent: without masks, they are added up again."
    ),
]
_Round = Annotated[Path | None, option("ROUND", "The round, if no book holds it.", "--round")]
_Book = Annotated[
    Path | None, option("FILE", "This site's book: check that its own answer is in the result.")
]
_Digest = Annotated[
    list[str] | None, option("HEX", "The digest that another site reads aloud. May be repeated.")
]


def verify(
    result: _Result,
    submissions: _Submissions = None,
    round_: _Round = None,
    book: _Book = None,
    digest: _Digest = None,
) -> CommandResult:
    """Check who signed a result, and whether it is the sum.

    The command always checks the signature. With --book or --round, it checks that the round's
    coordinator made the result under the round's terms; with --book, that this site's own answer is
    in it; with all submissions, that the result names them and, in a round without masks, that they
    add up to it. It prints the digest of the result, which has to be the same at all sites. Exit
    code 1 means that a check failed: do not use the result.

    Example:
      hushtable round verify result.hush --book north.book
    """
    given = {str(path): path for path in common.present(submissions)}
    opened = Result.load(result)
    asked = None if round_ is None else common.read_round(round_)
    seal, card = opened.seal, opened.coordinator
    who = f"{shown(card.name)} ({card.fingerprint})"
    done, left = [f"Nothing in it has changed since {who} signed it."], list[str]()
    answer = site = None
    if book is not None:
        with Book.open(book) as notes:
            site, answer = notes.site, notes.answer(seal.round_id)
        if answer is None:
            raise RoundError(
                f"{opened.path} ends round {seal.round_id[:12]}, which {site!r} did not answer: it "
                "belongs to other sites, or to another round; check with hushtable round book"
            )
        noted = Round.from_bytes(answer.round, f"{book}: the round")
        if asked is not None and asked.round_id != noted.round_id:
            raise RoundError(
                f"--round is round {asked.round_id[:12]}, but this is the result of "
                f"{seal.round_id[:12]}, which {site!r} answered: leave out --round"
            )
        asked = noted
    if asked is None:
        left.append(
            f"Whose keys these are: without --book or --round, call {shown(card.name)}, and "
            "compare the fingerprint."
        )
    else:
        opened.check_round(asked)
        about = "" if asked.period is None else f" about period {asked.period}"
        done.append(
            f"It ends round {asked.round_id[:12]}{about}, which {shown(asked.coordinator.name)} "
            "opened; plan, sites, noise and ledger match its terms."
        )
    if answer is not None and site is not None:
        opened.check_own(site, answer.share, answer.content)
        done.append(f"The share of {shown(site)} is in its ledger.")
        done.append(f"What {shown(site)} sent is in it, unchanged.")
    elif asked is not None:
        left.append("Whether this site's answer is in it: give --book.")
    recomputed = _check_submissions(opened, asked, given, done, left)
    for other in digest or []:
        opened.check_digest(other)
        done.append("Another site has the same result.")
    if not digest:
        left.append("Whether the other sites have the same result: compare its digest.")
    if book is not None:
        with Book.open(book) as notes:
            notes.note_verified(seal.digest, seal.round_id)
    facts = {
        "command": "round verify",
        "result": str(result),
        "round_id": seal.round_id,
        **({} if asked is None else common.period_facts(asked)),
        "signed_by": signed_by(opened.counts),
        "submissions": dict(seal.submissions),
        "digest": seal.digest,
        "round_checked": asked is not None,
        "own_answer": book is not None,
        "recomputed": recomputed,
        "checked": done,
        "not_checked": left,
    }
    known = "Verified" if asked is not None else "Signed by unverified keys"
    blocks: list[Block] = [
        f"{known}: {result}, of round {seal.round_id[:12]}\n",
        Paragraph(done, indent="  "),
        "\nNot checked\n",
        Paragraph(left or ["Nothing is left to check."], indent="  "),
        "\nIts digest, to compare with the other sites (--digest):\n",
        *(f"  {grouped(half)}" for half in (seal.digest[:32], seal.digest[32:])),
    ]
    return CommandResult(facts, blocks)


def _check_submissions(
    result: Result, asked: Round | None, given: dict[str, Path], done: list[str], left: list[str]
) -> bool:
    if not given:
        left.append("Whether it is the sum of the submissions: give all of them.")
        return False
    if asked is None:
        raise UsageError("submissions are checked against their round: give --round or --book")
    recomputed = result.check_submissions(asked, given, now())
    done.append("It names the submissions given, unchanged, and no others.")
    if recomputed:
        done.append("They add up to its counts, to the bit.")
    else:
        left.append(
            "Whether the submissions add up to it: their masks are removed only in the last step "
            "of the round."
        )
    return recomputed
