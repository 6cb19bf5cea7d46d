"""``hushtable round book``: what a site has answered, and what that cost."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from hushtable.arguments import is_digest
from hushtable.cli.options import argument, option
from hushtable.cli.output import shown
from hushtable.cli.result import Block, CommandResult, TextTable
from hushtable.errors import RoundError, UsageError
from hushtable.privacy.accounting import rounded_up
from hushtable_federation.book.book import Book
from hushtable_federation.book.chain import Entry
from hushtable_federation.book.convert import convert as convert_book
from hushtable_federation.book.ledger import ROLES
from hushtable_federation.keys import Card

_File = Annotated[Path, argument("BOOK", "Book written by hushtable round keygen.")]
_Cap = Annotated[float | None, option("E", "Change the epsilon that all rounds together may cost.")]
_Delta = Annotated[float | None, option("D", "Delta of the cap; unchanged by default.")]
_History = Annotated[
    bool, typer.Option("--history", help="List every entry, with its time and its link.")
]
_Expect = Annotated[
    str | None,
    option(
        "HEAD",
        "A head that you kept elsewhere: check that the book still holds all entries up to it.",
    ),
]
_Convert = Annotated[
    bool,
    typer.Option(
        "--convert",
        help=(
            "First decrypt a book that hushtable round protect of 1.0.0rc1 encrypted, with the "
            "passphrase that the keys name."
        ),
    ),
]
_Key = Annotated[
    Path | None, option("FILE", "With --convert: the keys; by default, those beside the book.")
]
#: Words for how a card was verified.
WORDS = {
    "code": "by the code read in a call",
    "card": "by a card that its owner gave",
    "asked": "fingerprint compared",
}


def book(
    file: _File,
    cap: _Cap = None,
    delta: _Delta = None,
    history: _History = False,
    expect: _Expect = None,
    convert: _Convert = False,
    key: _Key = None,
) -> CommandResult:
    """Show a site's book: rounds answered, and the budget spent.

    The entries form a hash chain. The head is its last link, and depends on all of them: keep it
    apart from the book, and check with --expect that all entries up to it are still there.

    Example:
      hushtable round book north.book
    """
    if cap is None and delta is not None:
        raise UsageError("--delta changes a cap: give --cap, too")
    if cap is not None and expect is not None:
        raise UsageError("--expect checks the book as it is: leave out --cap")
    if key is not None and not convert:
        raise UsageError("--key is for --convert: leave it out, or give --convert, too")
    if convert:
        convert_book(file, key)
    with Book.open(file) as notes:
        expected = None if expect is None else _expected(notes, expect)
        if cap is not None:
            notes.set_cap(cap, notes.delta if delta is None else delta)
        facts = _facts(notes, history)
    if expected is not None:
        facts["expected"] = {"entry": expected, "entries_since": facts["entries"] - expected}

    return CommandResult(facts, _all_blocks(facts))


def _all_blocks(facts: dict[str, Any]) -> Iterator[Block]:
    yield from _blocks(facts)
    if "history" in facts:
        yield ""
        yield TextTable(["known", "as", "fingerprint", "verified"], _known(facts), left=4)
        yield ""
        yield TextTable(
            ["entry", "when", "kind", "what", "link"],
            [
                [f"{e['entry']:,}", e["at"], e["kind"], shown(e["what"]), e["link"][:12]]
                for e in facts["history"]
            ],
            left=5,
        )
    yield f"\n{facts['entries']:,} entries. Keep this head apart from the book:"
    yield f"  {facts['head']}"
    if "expected" in facts:
        expected, since = (facts["expected"][name] for name in ("entry", "entries_since"))
        yield f"The expected head is the link of entry {expected:,}; {since:,} entries follow it."


def _expected(notes: Book, head: str) -> int:
    link = head.strip().lower()
    if not is_digest(link):
        raise UsageError(
            f"--expect {head[:80]!r}: needs a head as hushtable round book prints it, 64 "
            "hexadecimal digits"
        )
    for entry in notes.history():
        if entry.link == link:
            return entry.n
    raise RoundError(
        f"{notes.path} does not hold the head {link[:12]}...: entries were removed from its end, "
        "or it is an old copy or a different book. Do not answer with it; restore the last backup "
        "that holds this head"
    )


def _facts(notes: Book, history: bool) -> dict[str, Any]:
    entries = notes.history()
    facts: dict[str, Any] = {
        "command": "round book",
        "site": notes.site,
        "cap": {"epsilon": notes.epsilon, "delta": notes.delta},
        "spent": {name: notes.total(name) for name in notes.data_sets()},
        "rounds": [_round(entry) for entry in entries if entry.kind == "answer"],
        "known": {name: card.fingerprint for name, card in notes.known().items()},
        "roles": {role: sorted(notes.known(role)) for role in ROLES},
        "verified": {
            role: {name: notes.ways(name, role) for name in notes.known(role)} for role in ROLES
        },
        "head": notes.head,
        "entries": len(entries),
    }
    if history:
        keys = ("entry", "at", "kind", "what", "link")
        facts["history"] = [
            dict(zip(keys, (e.n, e.content["at"], e.kind, _what(e), e.link), strict=True))
            for e in entries
        ]
    return facts


def _round(entry: Entry) -> dict[str, Any]:
    record = entry.content
    facts = {key: record[key] for key in ("round_id", "title", "data_set", "made")}
    facts |= {key: record["spent"][key] for key in ("what", "rho")}
    return facts | {key: record[key] for key in ("stream", "period") if key in record}


def _what(entry: Entry) -> str:
    record = entry.content
    if entry.kind in ("site", "cap"):
        words = f"cap: epsilon {record['epsilon']:g}, delta {record['delta']:g}"
        return f"{record['name']}, {words}" if entry.kind == "site" else words
    if entry.kind == "trust":
        card = Card.from_dict(record["card"])
        how = f", {WORDS.get(record['how'], record['how'])}" if "how" in record else ""
        return f"{card.name} as {record['role']}, {card.fingerprint}{how}"
    if entry.kind == "rows":
        said_so = ": about new people" if record["new_people"] else ""
        like = f", similar to those of {record['like']}" if record["like"] else ""
        return f"{record['data_set']}{said_so}{like}"
    if entry.kind == "answer":
        title = f" ({record['title']})" if record["title"] else ""
        period = f", period {record['period']}," if "period" in record else ""
        return f"round {record['round_id'][:12]}{title}{period} about {record['data_set']}"
    if entry.kind == "verified":
        return f"result {record['digest'][:12]} of round {record['round_id'][:12]}"
    return f"policy {record['digest'][:12]}"


def _known(facts: dict[str, Any]) -> list[list[str]]:
    rows = []
    for role, those in facts["verified"].items():
        for name, ways in those.items():
            words = [f"{WORDS.get(how, shown(how))}, {at}" for how, at in ways.items()]
            rows.append(
                [name, role, facts["known"][name], "; ".join(words) or "how is not recorded"]
            )
    return rows


def _periods(rounds: list[dict[str, Any]], stream: str) -> str:
    periods = {one["period"] for one in rounds if one.get("stream") == stream}
    first, last = min(periods), max(periods)
    return f"period {first}" if first == last else f"periods {first} to {last}"


def _blocks(facts: dict[str, Any]) -> Iterator[Block]:
    most = facts["cap"]["epsilon"]
    yield f"Book of {facts['site']}. Each set of rows may spend epsilon {most:g} in all, at"
    yield f"delta {facts['cap']['delta']:g}.\n"
    if not facts["rounds"]:
        yield "This site has not answered a round yet."
        return
    rounds: dict[str, list[str]] = {}
    for one in facts["rounds"]:  # list a stream once, because it is paid for once
        round_id, what = one.get("stream", one["round_id"]), one["what"]
        if "period" in one:
            what += f", {_periods(facts['rounds'], round_id)}"
        names = [round_id[:12], shown(one["title"]), shown(one["data_set"])]
        rounds[round_id] = [*names, what, one["made"], f"{rounded_up(one['rho'], 4):g}"]
    yield TextTable(
        ["round", "title", "rows", "what", "answered", "rho"], [*rounds.values()], left=5
    )
    yield ""
    rows = [
        [shown(name), f"{rounded_up(spent):g}", f"{most:g}"]
        for name, spent in facts["spent"].items()
    ]
    yield TextTable(["rows", "epsilon spent", "of at most"], rows)
    yield "\nThe cap is the guarantee; the budget spent so far is a running total."
