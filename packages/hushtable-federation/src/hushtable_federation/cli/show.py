"""``hushtable round show``: a round in the words that an officer signs."""

from pathlib import Path
from typing import Annotated, Any

from hushtable.cli._options import Json, option
from hushtable.cli._output import finish, print_sentences, print_table, shown
from hushtable.errors import RoundError
from hushtable.plans.plan import Plan
from hushtable.report.words import column_rows
from hushtable_federation.cli import _common as common
from hushtable_federation.describe import officer_words, round_lines
from hushtable_federation.policy_file import load_policy
from hushtable_federation.round import Round
from hushtable_federation.site import Site

_Key = Annotated[
    Path | None,
    option("FILE", "This site's keys: show who is known here, costs and the policy.", "--key"),
]


def show(
    round_: common.RoundFile,
    key: _Key = None,
    book: common.BookFile = None,
    policy: common.PolicyFile = None,
    plan: common.HiddenPlan = None,
    as_json: Json = False,
) -> None:
    """Show what a round asks, of whom, and what it costs.

    Columns with ranges and categories, terms, coordinator and sites. Nothing is counted, recorded
    or sent.

    Example:
      hushtable round show round.hush --key north.key
    """
    asked = common.read_round(round_)
    shared = common.hidden_plan(plan)
    if shared is None and key is not None and asked.plan is None:
        shared = common.hidden_plan(Site.open(key).settings.plan)
    drawn = asked.plan if shared is None else asked.layout.check(shared)
    standing: dict[str, Any] = {"known": {}, "policy": None}
    if key is not None:
        standing = _standing(asked, key, book, policy, shared)
    facts: dict[str, Any] = {
        "command": "round show",
        "round_id": asked.round_id,
        "title": asked.title,
        **common.period_facts(asked),
        "words": officer_words(asked, drawn),
        "features": None if drawn is None else [f.to_dict() for f in drawn.schema.features],
        "terms": asked.terms.to_dict(),
        "site_scale": asked.site_scale,
        "coordinator": asked.coordinator.to_dict(),
        "sites": [card.to_dict() for card in asked.sites],
        **standing,
    }

    def text() -> None:
        print_round(asked, drawn, standing["known"])
        if standing["policy"] is not None:
            print("\nThis site\n")
            print_sentences(standing["policy"]["words"], indent="  ")

    finish(as_json, facts, text)


def _standing(
    asked: Round, key: Path, book: Path | None, policy: Path | None, plan: Plan | None
) -> dict[str, Any]:
    """Return who is known to a site, and what its policy and book say of the round."""
    site = Site.open(key, **common.given(book=book, policy=policy))
    keys, allowed = site.keys, load_policy(site.settings.policy)
    with site.book() as notes:
        known = {role: set(notes.known(role).values()) for role in ("coordinator", "site")}
        # An approval is asked for when the round is answered.
        others: dict[str, Any] = {"policy": allowed.without_officer()}
        others |= {} if plan is None else {"plan": plan}
        try:
            reply = site.reply(asked, notes, **others)
            reply.check_known()
        except RoundError as error:
            allows, words = False, [str(error)]
        else:
            allows, words = True, [reply.cost_words]
    if allowed.officer:
        words.append(f"The officer {allowed.officer} has to sign it (round approve).")
    standing = {}
    for role, card in common.roles(asked):
        pins = allowed.coordinators if role == "coordinator" else allowed.sites
        here = pins.get(card.name) == card.fingerprint if pins else card in known[role]
        words_here = "known" if here else "not known here"
        standing[f"{role} {card.name}"] = "this site" if card == keys.card else words_here
    return {"known": standing, "policy": {"allows": allows, "words": words}}


def print_round(asked: Round, drawn: Plan | None, known: dict[str, str]) -> None:
    """Print what a round asks, and of whom."""
    print_sentences(officer_words(asked, drawn))
    print()
    for label, value in round_lines(asked).items():
        print(f"{label:<13}{shown(value)}")
    if drawn is not None:
        print()
        rows = [[shown(cell) for cell in row] for row in column_rows(drawn)]
        print_table(["column", "kind", "range or categories"], rows, left=3)
    print()
    headers = ["role", "name", "fingerprint", *(["here"] if known else [])]
    rows = [[role, card.name, card.fingerprint] for role, card in common.roles(asked)]
    for row in rows if known else []:
        row.append(known[f"{row[0]} {row[1]}"])
    print_table(headers, rows, left=len(headers))
