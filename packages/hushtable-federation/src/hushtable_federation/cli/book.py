"""``hushtable round keygen`` and ``book``: a party's files, and what a site answered and spent."""

from pathlib import Path
from typing import Annotated, Any

from hushtable import files
from hushtable.arguments import is_digest
from hushtable.cli.options import Delta, argument, flag, option
from hushtable.cli.result import Block, CommandResult, Target, TextTable, shown
from hushtable.errors import PrivacyError, RoundError, UsageError
from hushtable.privacy.accounting import rounded_up
from hushtable_federation.book.book import Book
from hushtable_federation.book.chain import ROLES, Entry
from hushtable_federation.book.chain import convert as convert_book
from hushtable_federation.cli import _common as common
from hushtable_federation.credentials import read_passphrase
from hushtable_federation.keys import Card, Keys, check_name
from hushtable_federation.permissions import fault_of_folder
from hushtable_federation.policy import Persons, policy_beside, write_policy
from hushtable_federation.refusals import raise_first
from hushtable_federation.settings import write_settings

_File = Annotated[Path, argument("BOOK", "Book written by hushtable round keygen.")]
_Cap = Annotated[float | None, option("E", "Change the epsilon that all rounds together may cost.")]
_Delta = Annotated[float | None, option("D", "Delta of the cap; unchanged by default.")]
_History = Annotated[bool, flag("--history", "List every entry, with its time and its link.")]
_Expect = Annotated[
    str | None,
    option(
        "HEAD",
        "A head that you kept elsewhere: check that the book still holds all entries up to it.",
    ),
]
_Convert = Annotated[
    bool,
    flag(
        "--convert",
        "First decrypt a book that hushtable round protect of 1.0.0rc1 encrypted, with the "
        "passphrase that the keys name.",
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
    faults = {
        "--delta changes a cap: give --cap, too": cap is None and delta is not None,
        "--expect checks the book as it is: leave out --cap": (
            cap is not None and expect is not None
        ),
        "--key is for --convert: leave it out, or give --convert, too": (
            key is not None and not convert
        ),
    }
    raise_first(UsageError, faults)
    if convert:
        convert_book(file, key)
    with Book.open(file) as notes:
        expected = None if expect is None else _expected(notes, expect)
        if cap is not None:
            notes.set_cap(cap, notes.delta if delta is None else delta)
        facts: dict[str, Any] = {
            "command": "round book",
            "site": notes.site,
            "cap": {"epsilon": notes.epsilon, "delta": notes.delta},
            "spent": {name: notes.total(name) for name in notes.data_sets()},
            "rounds": [_round(entry) for entry in notes.history() if entry.kind == "answer"],
            "known": {name: card.fingerprint for name, card in notes.known().items()},
            "roles": {role: sorted(notes.known(role)) for role in ROLES},
            "head": notes.head,
        }
        entries = notes.history()
    facts["entries"] = len(entries)
    blocks = _blocks(facts)
    if history:
        facts["history"] = [
            {
                "entry": one.n, "at": one.content["at"], "kind": one.kind, "what": _what(one),
                "link": one.link,
            }
            for one in entries
        ]  # fmt: skip
        lines = [
            [f"{e['entry']:,}", e["at"], e["kind"], shown(e["what"]), e["link"][:12]]
            for e in facts["history"]
        ]
        blocks += [
            "",
            TextTable(["entry", "when", "kind", "what", "link"], lines, left=5),
        ]
    blocks += [
        f"\n{len(entries):,} entries. Keep this head apart from the book:",
        f"  {facts['head']}",
    ]
    if expected is not None:
        since = len(entries) - expected
        facts["expected"] = {"entry": expected, "entries_since": since}
        blocks.append(
            f"The expected head is the link of entry {expected:,}; {since:,} entries follow it."
        )
    return CommandResult(facts, blocks)


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


def _round(entry: Entry) -> dict[str, Any]:
    record = entry.content
    names = "round_id", "title", "data_set", "made", "stream", "period"
    facts = {name: record[name] for name in names if name in record}
    return facts | {key: record["spent"][key] for key in ("what", "rho")}


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


def _blocks(facts: dict[str, Any]) -> list[Block]:
    most = facts["cap"]["epsilon"]
    head = (
        f"Book of {facts['site']}. Each set of rows may spend epsilon {most:g} in all, at\n"
        f"delta {facts['cap']['delta']:g}.\n"
    )
    if not facts["rounds"]:
        return [head, "This site has not answered a round yet."]
    rounds: dict[str, list[str]] = {}
    for paid in facts["rounds"]:  # list a stream once, because it is paid for once
        round_id, what = paid.get("stream", paid["round_id"]), paid["what"]
        if "period" in paid:
            periods = [paid["period"] for paid in facts["rounds"] if paid.get("stream") == round_id]
            first, last = min(periods), max(periods)
            what += f", period {first}" if first == last else f", periods {first} to {last}"
        names = [round_id[:12], shown(paid["title"]), shown(paid["data_set"])]
        rounds[round_id] = [*names, what, paid["made"], f"{rounded_up(paid['rho'], 4):g}"]
    headers = ["round", "title", "rows", "what", "answered", "rho"]
    spent = [
        [shown(name), f"{rounded_up(spent):g}", f"{most:g}"]
        for name, spent in facts["spent"].items()
    ]
    return [
        head,
        TextTable(headers, [*rounds.values()], left=5),
        "",
        TextTable(["rows", "epsilon spent", "of at most"], spent),
        "\nThe cap is the guarantee; the budget spent so far is a running total.",
    ]


# --- round keygen ---------------------------------------------------------------------------------

_Name = Annotated[str, argument("NAME", "Your name, as others see it.")]
_FirstCap = Annotated[
    float | None,
    option("E", "For a site: the epsilon that all rounds together may cost a person in its rows."),
]
_Passphrase = Annotated[
    str,
    option(
        "REF",
        (
            "Encrypt the keys with the passphrase that is there: env:NAME, keyring:SERVICE or "
            "file:PATH; never the passphrase itself."
        ),
    ),
]
_Folder = Annotated[Path, option("DIR", "Folder to write the files to.", "--folder")]


def keygen(
    name: _Name,
    cap: _FirstCap = None,
    delta: Delta = 1e-6,
    persons: common.PersonsOption = "column",
    folder: _Folder = Path(),
    passphrase: _Passphrase = "",
) -> CommandResult:
    """Make the keys of a site (with --cap) or of a coordinator.

    NAME.key is secret. NAME.card is its public half: give it to the coordinator, and read its
    fingerprint to them on the phone. With --cap: NAME.book records what the site answers and what
    that costs, and is as secret as the rows; NAME.policy.toml states whom the site answers, and
    about what: review it. NAME.toml states where the folder of rounds is, where the rows are, and
    how to read them: fill it in.

    With --passphrase, commands find the passphrase by this reference, which NAME.key holds. It has
    12 or more characters, and without it, the keys are lost. The book is not encrypted by it:
    encrypt the disk.

    Example:
      hushtable round keygen north --cap 2
    """
    check_name(name)
    paths = {kind: folder / f"{name}.{kind}" for kind in ("key", "card")}
    if cap is not None:
        paths["policy"] = policy_beside(paths["key"])
        paths["book"] = folder / f"{name}.book"
    paths["site"] = folder / f"{name}.toml"
    keys = _made(name, paths, cap, delta, common.stated_persons(persons), passphrase)
    facts = {
        "command": "round keygen",
        "name": name,
        "fingerprint": keys.card.fingerprint,
        "files": {kind: str(path) for kind, path in paths.items()},
    }
    what = "where the rounds are" + (", where the rows are" if cap is not None else "")
    lines = [
        f"Keys of {name}. Fingerprint: {keys.card.fingerprint}\n",
        f"  {paths['key']}   secret: back it up, and never share it",
    ]
    if cap is not None:
        lines += [
            f"  {paths['book']}  secret: back it up; cap: epsilon {cap:g}, delta {delta:g}",
            f"  {paths['policy']}  whom this site answers, and about what: review it",
        ]
    lines += [
        f"  {paths['site']}  {what}: fill it in",
        f"  {paths['card']}  give it to the coordinator",
    ]
    return CommandResult(facts, lines)


def _made(
    name: str,
    paths: dict[str, Path],
    cap: float | None,
    delta: float,
    persons: Persons,
    passphrase: str,
) -> Keys:
    folder = paths["key"].parent
    if folder.is_dir() and (fault := fault_of_folder(folder.resolve())):
        raise PrivacyError(f"{folder}: keys are not safe here: {fault}")
    targets = {kind: Target(path) for kind, path in paths.items()}
    with files.locked(paths["key"]):
        keys = _begun(paths, cap, delta)
        for kind, path in paths.items():
            taken = path.exists() and kind not in ("policy", "site")
            if taken and (keys is None or kind == "card"):
                raise UsageError(
                    f"{path} exists, and keys are never overwritten: use these keys, or give "
                    "another name"
                )
        if keys is None:
            keys = Keys.generate(name)
            if passphrase:
                read_passphrase(passphrase, folder.absolute())  # before anything is written
            if cap is not None:
                with targets["book"].writing():
                    Book.create(paths["book"], keys.card, epsilon=cap, delta=delta).close()
            with targets["key"].writing():
                keys.save(paths["key"], passphrase)
        if cap is not None and not paths["policy"].exists():
            with targets["policy"].writing():
                write_policy(paths["policy"], name, cap, delta, persons)
        if not paths["site"].exists():
            with targets["site"].writing():
                write_settings(paths["site"], name, site=cap is not None)
        targets["card"].save(keys.card)
    return keys


def _begun(paths: dict[str, Path], cap: float | None, delta: float) -> Keys | None:
    # A call may have been interrupted before it wrote its last file, the card.
    # The first file is the book. A book without keys beside it and without entries is useless, so
    # it is deleted.
    if paths["card"].exists() or (cap is not None and not paths["book"].exists()):
        return None
    keys = Keys.load(paths["key"]) if paths["key"].exists() else None
    if cap is None:
        return keys
    with Book.open(paths["book"], None if keys is None else keys.card) as book:
        unused, terms = book.unused, (book.epsilon, book.delta)
    if keys is None and unused:
        paths["book"].unlink()
    return keys if unused and terms == (cap, delta) else None
