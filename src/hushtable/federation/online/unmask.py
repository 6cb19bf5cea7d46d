"""Step ``unmask``: each site gives the shares that take the masks off the sum, and no others.

Of a site in the sum, those of its own mask; of a lost one, those of its pairwise masks; never
both of one site.
"""

from collections.abc import Mapping

from hushtable.federation.masks.seal import opened_share
from hushtable.federation.masks.shamir import SHARE_BYTES
from hushtable.federation.online.keys import handed_on
from hushtable.federation.online.messages import Message
from hushtable.federation.online.state import Kept, SiteState, texts
from hushtable.federation.refusals import Refusal, Refused, refusing


def answer(site: SiteState, body: Kept) -> tuple[bytes, Kept]:
    """Give shares, if enough sites signed the list that this one did."""
    survivors = site.kept("survivors")["sites"]
    signed = 0
    for name, message in site.signed(body, "signed", "survivors").items():
        if message.body != {"sites": survivors}:
            raise Refused(
                Refusal.SHARES, f"{name!r} signed another list of sites than this one did"
            )
        signed += name in survivors
    if signed < site.round.terms.least:
        raise Refused(
            Refusal.SITES,
            f"{signed} sites signed who is in, and {site.round.terms.least} are needed: no share "
            "is given",
        )
    offered, mine = site.kept("shares")["offered"], site.private("encrypt")
    shares = {}
    for name, sealed in texts(site.kept("masked"), "shares").items():
        with refusing(Refusal.SHARES):
            share = opened_share(site.round, mine, offered[name]["encrypt"], name, site.me, sealed)
        half = len(share) // 2
        shares[name] = (share[half:] if name in survivors else share[:half]).hex()
    return site.sign("unmask", {"shares": shares}), {}


def requests(signed: Mapping[str, Message]) -> dict[str, Kept]:
    """Hand the signed lists on to all who signed."""
    lists = handed_on(signed)
    return {name: {"signed": lists} for name in signed}


def shares_of(given: Mapping[str, Message], names: list[str]) -> dict[str, list[bytes]]:
    """Return the shares that sites give, in the order of names; of a site with odd ones, none."""
    found = {}
    for giver, message in given.items():
        said = message.body.get("shares")
        try:
            shares = [bytes.fromhex(said[name]) for name in names]  # type: ignore[index]
        except (KeyError, TypeError, ValueError):
            continue
        if all(len(share) == SHARE_BYTES for share in shares):
            found[giver] = shares
    return found
