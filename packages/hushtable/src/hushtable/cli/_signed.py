"""Whether a result is signed, and by whom: in words, and for machines."""

from typing import Any

from hushtable import signatures
from hushtable.cli._output import shown


def signed_by(counts: Any) -> dict[str, str] | None:
    """Return name and fingerprint of who signed counts; None if nobody did."""
    if counts.seal is None:
        return None
    card = counts.seal.coordinator
    fingerprint = signatures.fingerprint(card["signing"], card["masking"])
    return {"name": card["name"], "fingerprint": fingerprint}


def standing(counts: Any, what: str = "The result") -> str:
    """Say in one sentence whether counts are signed, and how that is checked."""
    who = signed_by(counts)
    if who is None:
        return f"{what} is not signed: anybody may have made or changed it."
    by = f"{what} is signed by {shown(who['name'])} ({who['fingerprint']})"
    return f"{by}: hushtable round verify checks it."


def signed_lines(counts: Any) -> dict[str, str]:
    """Return lines for a list of facts: who signed, which round, whose submissions."""
    who = signed_by(counts)
    if who is None:
        return {"Signed by": "nobody: anybody may have made or changed it"}
    names = ", ".join(shown(name) for name in sorted(counts.seal.submissions))
    return {
        "Signed by": f"{shown(who['name'])} ({who['fingerprint']})",
        "Round": counts.seal.round_id,
        "Submissions": f"{len(counts.seal.submissions)}: {names}",
    }
