"""Step ``shares``: each site deals shares of its two secrets to all, sealed for each reader."""

import secrets
from collections.abc import Collection, Mapping

from hushtable.errors import RoundError
from hushtable.federation.masks import seal, shamir
from hushtable.federation.online.keys import USES, handed_on
from hushtable.federation.online.messages import Message
from hushtable.federation.online.state import Kept, SiteState, texts
from hushtable.federation.refusals import Refusal, Refused, refusing


def answer(site: SiteState, body: Kept) -> tuple[bytes, Kept]:
    """Check everybody's keys; deal shares of the masking key and of a mask of one's own."""
    offered = _offered(site, body)
    kept, round_ = site.kept("keys"), site.round
    own_mask = secrets.token_bytes(32)
    n, least = len(round_.sites), round_.terms.least
    halves = (shamir.split(secret, least, n) for secret in (bytes.fromhex(kept["mask"]), own_mask))
    dealt = [mask + own for mask, own in zip(*halves, strict=True)]
    mine = site.private("encrypt")
    with refusing(Refusal.SHARES):
        sealed = {
            name: seal.sealed_share(
                round_, mine, keys["encrypt"], site.me, name, dealt[seal.place(round_, name) - 1]
            ).hex()
            for name, keys in offered.items()
        }
    said = {"shares": sealed, "commitment": seal.commitment(round_, site.me, own_mask)}
    return site.sign("shares", said), {"offered": offered, "own_mask": own_mask.hex()}


def _offered(site: SiteState, body: Kept) -> dict[str, dict[str, str]]:
    """Return the public keys of every site, each signed by it, and no key twice."""
    offered = {}
    for name, message in site.signed(body, "keys", "keys").items():
        offered[name] = {use: key.hex() for use, key in texts(message.body).items()}
        if set(offered[name]) != set(USES):
            raise Refused(Refusal.SHARES, f"{name!r} does not offer the keys of this step")
    site.check_enough(offered, site.round.names)
    used = [key for keys in offered.values() for key in keys.values()]
    if len(set(used)) < len(used):
        raise Refused(Refusal.SHARES, "two sites offer the same keys")
    return offered


def requests(offered: Mapping[str, Message]) -> dict[str, Kept]:
    """Hand everybody's keys on to all."""
    keys = handed_on(offered)
    return {name: {"keys": keys} for name in offered}


def check(message: Message, names: Collection[str]) -> None:
    """Raise `RoundError` unless a site dealt a share to everybody, and a commitment."""
    shares = message.body.get("shares")
    if (
        not isinstance(shares, dict)
        or set(shares) != set(names)
        or not isinstance(message.body.get("commitment"), str)
    ):
        raise RoundError(f"{message.sender!r} did not deal its shares to all")
