"""The list of who is in the sum: what the coordinator asks by it, and what a site makes of it.

With the list come the public parts of what these sites dealt, and the rows that they sealed for
the reader. A row that is not what was proved is complained about: in the answer to the list.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushtable import files
from hushtable.arguments import is_digest
from hushtable.errors import RoundError
from hushtable_federation.masks import seal
from hushtable_federation.online.messages import Message, enclosed, unclosed
from hushtable_federation.online.shares import Dealt
from hushtable_federation.online.state import Kept, SiteState
from hushtable_federation.refusals import Refusal, Refused, refusing
from hushtable_federation.round import Round

#: By site, the digests of its submission and of the public part of what it dealt.
Sites = dict[str, dict[str, str]]
_DIGESTS = {"masked", "shares"}
_ROWS = "rows"


@dataclass(frozen=True)
class Complaint:
    """A row that does not open, or is not what its dealer proved: with the key of the two sites.

    Whoever has the row, which the dealer signed, and the key can see who is right. The key opens
    nothing but the two rows between these sites in this round.
    """

    key: bytes
    sealed: bytes


@dataclass(frozen=True)
class Taken:
    """A list as a site takes it: by dealer, its row with the opening, or the complaint about it."""

    sites: Sites
    rows: dict[str, bytes]
    complaints: dict[str, Complaint]

    def said(self) -> tuple[Kept, files.Arrays]:
        """Return what of it goes into the answer: body and arrays."""
        keys = {name: one.key.hex() for name, one in self.complaints.items()}
        arrays = enclosed({name: one.sealed for name, one in self.complaints.items()})
        return {"sites": self.sites, "complaints": keys}, arrays

    def kept(self) -> Kept:
        """Return what the site's book keeps of it."""
        return {"sites": self.sites, "rows": {name: row.hex() for name, row in self.rows.items()}}


def request(
    sites: Sites, dealt: Mapping[str, Dealt], sealed: Mapping[str, bytes]
) -> tuple[dict[str, Any], files.Arrays]:
    """Return body and arrays for one site; ``sealed`` are the rows for it, by dealer."""
    rows = b"".join(sealed[name] for name in sorted(sites))
    arrays = enclosed({name: dealt[name].message.content for name in sites})
    arrays[_ROWS] = np.frombuffer(rows, np.uint8).reshape(len(sites), -1)
    return {"sites": sites}, arrays


def take(site: SiteState, asked: Message) -> Taken:
    """Check a list and open the rows of shares that come with it.

    Raises `Refused` if it is not one of enough sites of the roster with this one as it answered,
    or what comes with it is not what these sites signed.
    """
    sites = _checked(site, asked.body.get("sites"))
    sealed, found = asked.arrays.get(_ROWS), unclosed(asked)
    if set(found) != set(sites) or sealed is None or sealed.shape[:1] != (len(sites),):
        raise Refused(Refusal.REQUEST, f"step {asked.step!r}: the request is not of its form")
    rows, complaints = dict[str, bytes](), dict[str, Complaint]()
    mine = seal.place(site.round, site.me)
    with refusing(Refusal.SHARES):
        for i, dealer in enumerate(sorted(sites)):
            dealt = Dealt.read(site.round, dealer, found[dealer])
            content = sealed[i].tobytes()
            if dealt.message.digest != sites[dealer]["shares"] or not dealt.is_row(mine, content):
                raise RoundError(f"the coordinator hands on other shares than {dealer!r} signed")
            key = seal.row_key(site.round, site.keys, dealer)
            row = opened(dealt, key, site.me, mine, content)
            if row is None:
                complaints[dealer] = Complaint(key, content)
            else:
                rows[dealer] = row
    return Taken(sites, rows, complaints)


def opened(dealt: Dealt, key: bytes, reader: str, place: int, sealed: bytes) -> bytes | None:
    """Return the row for a reader, and its opening; None if it is not what was proved."""
    try:
        row = seal.opened(key, dealt.message.sender, reader, sealed)
    except RoundError:
        return None
    opening = dealt.dealing.opening(row, place)
    return None if opening is None else row + opening


def _checked(site: SiteState, sites: Any) -> Sites:
    if not isinstance(sites, dict) or not all(map(_is_entry, sites.values())):
        raise Refused(Refusal.REQUEST, "the list of sites is not of its form")
    check_enough(site.round, sites)
    given = site.book.answer(site.round.round_id)
    if given is None:
        raise Refused(Refusal.ORDER, "step 'masked' comes first, and was not asked")
    mine = {
        "masked": files.unpack(given.content, "the book's copy").digest,
        "shares": site.kept("shares")["digest"],
    }
    if sites.get(site.me) != mine:
        raise Refused(Refusal.SITES, "the list of sites has not what this site answered")
    return sites


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or set(entry) != _DIGESTS:
        return False
    return all(map(is_digest, entry.values()))


def check_enough(round_: Round, names: Mapping[str, Any]) -> None:
    """Raise `Refused` unless these are enough sites, all of the roster."""
    if not set(names) <= set(round_.names):
        raise Refused(Refusal.SITES, "the list of sites is not one of those of the round")
    least = round_.terms.least
    if len(names) < least:
        raise Refused(Refusal.SITES, f"{len(names)} sites are left, and {least} are needed")
