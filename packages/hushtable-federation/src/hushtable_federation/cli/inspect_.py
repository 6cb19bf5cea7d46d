"""Cards, and files that belong to a round, as ``hushtable inspect`` shows them."""

from pathlib import Path
from typing import Any

from hushtable.cli.counts import signed_by, signed_lines
from hushtable.cli.output import finish, shown, size
from hushtable.files import Content
from hushtable_federation.keys import Card
from hushtable_federation.sealed import Sealed
from hushtable_federation.secret import SealedSecret

#: By kind of file, the command that goes on with it.
_NEXT = {
    "round": "hushtable round status {file}",
    "submission": "hushtable round status ROUND {file}",
    "sealed": "hushtable round model {file} --plan PLAN -o FILE",
    "secret": "hushtable plan draw SCHEMA --secret {file} --key KEY -o FILE",
    "layout": "hushtable round open {file} CARD... --key KEY --epsilon E -o FILE",
}


def inspect_card(file: Path, as_json: bool) -> None:
    """Show whose a card is, and the fingerprint that two people compare."""
    card = Card.load(file)
    facts = {"command": "inspect", "file": str(file), "kind": "card", "name": card.name}
    facts["fingerprint"] = card.fingerprint
    lines = {"File": file, "Kind": "card", "Name": card.name, "Fingerprint": card.fingerprint}
    finish(as_json, facts, lambda: print("\n".join(f"{k:<17}{v}" for k, v in lines.items())))


def inspect_round(file: Path, content: Content, as_json: bool) -> None:
    """Show what belongs to a round: as it is written, nothing of it is secret."""
    entries = content.manifest
    facts: dict[str, Any] = {"command": "inspect", "file": str(file), "kind": content.kind}
    sealed = content.build(Sealed.from_file) if content.kind == Sealed.kind else None
    secret = None
    if content.kind == "secret":
        secret = SealedSecret.from_bytes(file.read_bytes(), str(file))
    if sealed is not None:
        facts["signed_by"] = signed_by(sealed)
    facts |= {key: entries[key] for key in entries if key not in ("plan", "arrays", "kind")}

    def text() -> None:
        lines = {
            "File": f"{file} ({size(file)})",
            "Kind": f"{content.kind}, protocol {entries['protocol']}",
            "Id": content.digest,
            "Of round": entries.get("round_id"),
            "Of site": entries.get("site"),
            "Plan": entries.get("plan_id"),
        }
        lines |= {} if secret is None else _readers(secret)
        lines |= {} if sealed is None else signed_lines(sealed)
        for label, value in lines.items():
            if value is not None:
                print(f"{label:<17}{shown(str(value))}")
        if content.kind in _NEXT:
            print(f"\nMore: {_NEXT[content.kind].format(file=file)}")

    finish(as_json, facts, text)


def _readers(secret: SealedSecret) -> dict[str, str]:
    """Return lines for a list of facts: who sealed a secret, and who can read it."""
    names = ", ".join(f"{shown(card.name)} ({card.fingerprint})" for card in secret.readers)
    return {"Sealed by": shown(secret.sender.name), "Can be read by": names}
