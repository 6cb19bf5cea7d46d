"""Step ``unmask``: each site gives the shares that take the masks off the sum, and no others.

Of a site in the sum, those of its own mask and of its masks with sites that are not; never those
of the masks between two sites in the sum, and nothing of a site that is not. Where all sites of
the roster are in the sum, these are of own masks alone, and a site gives them at once; where some
are missing, only after enough others signed the same list.
"""

from collections.abc import Collection, Mapping

import numpy as np

from hushtable import files
from hushtable.errors import RoundError
from hushtable_federation.masks import seal
from hushtable_federation.masks.dealing import NONCE_BYTES, Bytes, opening_bytes
from hushtable_federation.masks.shamir import SHARE_BYTES
from hushtable_federation.masks.unmask import Secret
from hushtable_federation.online import listed, totals
from hushtable_federation.online.messages import Message, unclosed
from hushtable_federation.online.shares import Dealt
from hushtable_federation.online.state import Kept, SiteState
from hushtable_federation.refusals import Refusal, Refused, refusing
from hushtable_federation.round import Round

#: Of what a site gives: a dealer's shares, and the opening of the row that they are of.
_SHARES, _OPENINGS = "shares", "openings"


def answer(site: SiteState, asked: Message) -> tuple[bytes, Kept]:
    """Give shares: of a list of all sites at once, else if enough signed the list."""
    body: Kept = {}
    arrays: files.Arrays = {}
    if "sites" in asked.body:
        kept, body, arrays = _whole(site, asked)
    else:
        kept = site.kept("survivors")
        _check_signed(site, asked, kept["sites"])
    names = sorted(kept["sites"])
    out = [name for name in site.round.names if name not in kept["sites"]]
    wanted = [[name, *out] for name in names]
    arrays |= shares(site.round, kept, names, wanted)
    if site.round.terms.max_rows is not None:
        arrays[totals.NAME] = totals.of_masks(site.round, site.keys, names)
    return site.sign("unmask", body, arrays), kept


def _whole(site: SiteState, asked: Message) -> tuple[Kept, Kept, files.Arrays]:
    """Take a list of all sites: of it, nobody's masks with another can be asked for."""
    if site.book.step(site.round.round_id, "survivors") is not None:
        raise Refused(Refusal.ANSWERED, "this site signed another list of sites")
    taken = listed.take(site, asked)
    if set(taken.sites) != set(site.round.names):
        raise Refused(Refusal.SITES, "sites are missing: those in the sum have to sign first")
    body, arrays = taken.said()
    return taken.kept(), body, arrays


def _check_signed(site: SiteState, asked: Message, sites: listed.Sites) -> None:
    signed = 0
    with refusing(Refusal.SHARES):
        for name, content in unclosed(asked).items():
            message = Message.read(content, site.round.card(name)).check(site.round, "survivors")
            if message.body.get("sites") != sites:
                raise RoundError(f"{name!r} signed another list of sites than this one did")
            signed += name in sites
    if signed < site.round.terms.least:
        raise Refused(
            Refusal.SITES,
            f"{signed} sites signed who is in, and {site.round.terms.least} are needed: no share "
            "is given",
        )


def shares(round_: Round, kept: Kept, dealers: list[str], wanted: list[list[str]]) -> files.Arrays:
    """Return the shares that a site gives, and what shows that they are those it was dealt.

    ``wanted`` are the secrets of each dealer, by the names that they go with. All is zero of rows
    that were complained about.
    """
    n = len(round_.names)
    found = np.zeros((len(dealers), len(wanted[0]) if wanted else 0, SHARE_BYTES), np.uint8)
    openings = np.zeros((len(dealers), opening_bytes(n)), np.uint8)
    for i, dealer in enumerate(dealers):
        if dealer in kept["rows"]:
            row = np.frombuffer(bytes.fromhex(kept["rows"][dealer]), np.uint8)[NONCE_BYTES:]
            table, openings[i] = np.split(row, [n * SHARE_BYTES])
            places = [round_.names.index(name) for name in wanted[i]]
            found[i] = table.reshape(n, SHARE_BYTES)[places]
    return {_SHARES: found, _OPENINGS: openings}


def given(message: Message, shape: tuple[int, int], n_sites: int) -> tuple[Bytes, Bytes]:
    """Return the shares that a site gives, and their openings.

    Of shape (n_dealers, n_wanted, 33), and (n_dealers, 32 (n_sites + 1)). Raises `RoundError` if
    they are of another form.
    """
    shapes = {_SHARES: (*shape, SHARE_BYTES), _OPENINGS: (shape[0], opening_bytes(n_sites))}
    for name, wanted in shapes.items():
        found = message.arrays.get(name)
        if found is None or found.dtype != np.uint8 or found.shape != wanted:
            raise RoundError(f"{message.sender!r} gave {name} of another form")
    return message.arrays[_SHARES], message.arrays[_OPENINGS]


def shown(
    round_: Round,
    message: Message,
    wanted: Mapping[str, list[str]],
    dealt: Mapping[str, Dealt],
    lacking: Collection[str],
) -> tuple[dict[Secret, int], bool]:
    """Return the shares of which a site shows that it was dealt them, and whether it gave others.

    ``wanted`` are the secrets of each dealer, by the names that they go with; ``lacking`` are
    dealers of whose shares the site has none.
    """
    found: dict[Secret, int] = {}
    wrong, place = False, seal.place(round_, message.sender)
    shape = len(wanted), len(next(iter(wanted.values()), []))
    tables = given(message, shape, len(round_.names))
    for dealer, table, opening in zip(wanted, *tables, strict=True):
        if dealer in lacking:
            continue
        each = {name: one.tobytes() for name, one in zip(wanted[dealer], table, strict=True)}
        numbers = {round_.names.index(name): share for name, share in each.items()}
        if dealt[dealer].dealing.shows(place, opening.tobytes(), numbers):
            found |= {(dealer, name): int.from_bytes(share) for name, share in each.items()}
        else:
            wrong = True
    return found, wrong
