"""Complaints about shares that were dealt: who is out, and who complained falsely.

A complaint holds the sealed row, which its dealer signed, and the key that opens it. If it opens
and is not what the dealer proved, the dealer did it. If it opens and is, the complaint is false. If
it does not open, one of the two did it, and nobody can tell which; but so many sites do not all
lie: then it was the dealer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hushtable.errors import RoundError
from hushtable_federation.masks import seal
from hushtable_federation.online.listed import opened
from hushtable_federation.online.messages import Message, unclosed
from hushtable_federation.online.shares import Dealt
from hushtable_federation.round import Round


@dataclass
class Judged:
    """Sites found out, by name, with words for people; and pairs of which one is."""

    dealers: dict[str, str] = field(default_factory=dict)
    liars: dict[str, str] = field(default_factory=dict)
    disputed: list[tuple[str, str]] = field(default_factory=list)


def judge(round_: Round, dealt: Mapping[str, Dealt], answers: Iterable[Message]) -> Judged:
    """Return who is found out by the complaints in signed answers to a list.

    ``dealt`` are the public parts that everybody signed; raises nothing over answers of any form.
    """
    judged, open_ = Judged(), dict[str, list[str]]()
    for message in answers:
        for dealer, true in _complaints(round_, dealt, message):
            if true is None:
                open_.setdefault(dealer, []).append(message.sender)
            elif true:
                judged.dealers[dealer] = f"dealt {message.sender!r} shares that are none"
            else:
                judged.liars[message.sender] = f"complained falsely about {dealer!r}"
    for dealer, those in open_.items():
        if len(those) >= enough(round_):
            judged.dealers[dealer] = f"dealt {len(those)} sites shares that do not open"
        elif dealer not in judged.dealers:
            judged.disputed += [(one, dealer) for one in those]
    return judged


def enough(round_: Round) -> int:
    """Return how many complaints without proof are believed: more than sites may lie."""
    terms = round_.terms
    both = round_.coordinator in round_.sites
    return max(len(round_.sites) - terms.least, terms.colluders + both) + 1


def _complaints(
    round_: Round, dealt: Mapping[str, Dealt], message: Message
) -> Iterable[tuple[str, bool | None]]:
    """Yield who is complained about, and whether rightly; None if nobody can tell."""
    said = message.body.get("complaints")
    rows = unclosed(message)
    for dealer, key in said.items() if isinstance(said, dict) else ():
        if dealer not in dealt or dealer not in rows:
            continue
        place = seal.place(round_, message.sender)
        if not dealt[dealer].is_row(place, rows[dealer]):
            yield dealer, False  # a row that the dealer did not sign
            continue
        yield dealer, _true(dealt[dealer], key, message.sender, place, rows[dealer])


def _true(dealt: Dealt, key: object, reader: str, place: int, sealed: bytes) -> bool | None:
    try:
        secret = bytes.fromhex(str(key))
        seal.opened(secret, dealt.message.sender, reader, sealed)
    except (RoundError, ValueError):
        return None
    return opened(dealt, secret, reader, place, sealed) is None
