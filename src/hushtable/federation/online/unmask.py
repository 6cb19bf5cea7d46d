"""Step ``unmask``: each site gives the shares that take the masks off the sum, and no others.

Of a site in the sum, those of its own mask and of its masks with sites that are not; never those
of the masks between two sites in the sum, and nothing of a site that is not. Where all sites of
the roster are in the sum, these are of own masks alone, and a site gives them at once; where some
are missing, only after enough others signed the same list.
"""

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.errors import RoundError
from hushtable.federation.masks.shamir import SHARE_BYTES
from hushtable.federation.online import listed, totals
from hushtable.federation.online.messages import Message, unclosed
from hushtable.federation.online.state import Kept, SiteState
from hushtable.federation.refusals import Refusal, Refused, refusing
from hushtable.federation.round import Round

_SHARES = "shares"
#: Of a row: what comes before the first share.
_HEAD = 32


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
    arrays[_SHARES] = shares(site.round, kept, names, wanted)
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


def shares(
    round_: Round, kept: Kept, dealers: list[str], wanted: list[list[str]]
) -> NDArray[np.uint8]:
    """Return shares of shape (n_dealers, n_wanted, 33); zeros of rows that were complained about.

    ``wanted`` are the secrets of each dealer, by the names that they go with.
    """
    found = np.zeros((len(dealers), len(wanted[0]) if wanted else 0, SHARE_BYTES), np.uint8)
    for i, dealer in enumerate(dealers):
        if dealer in kept["rows"]:
            row = np.frombuffer(bytes.fromhex(kept["rows"][dealer]), np.uint8)
            table = row[_HEAD:].reshape(-1, SHARE_BYTES)
            found[i] = table[[round_.names.index(name) for name in wanted[i]]]
    return found


def given(message: Message, shape: tuple[int, int]) -> NDArray[np.uint8]:
    """Return the shares that a site gives; raises `RoundError` if they are of another form."""
    found = message.arrays.get(_SHARES)
    if found is None or found.dtype != np.uint8 or found.shape != (*shape, SHARE_BYTES):
        raise RoundError(f"{message.sender!r} gave shares of another form")
    return found
