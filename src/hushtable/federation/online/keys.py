"""Step ``keys``: each site checks the round, counts its rows, and offers two public keys.

All that can fail for the sake of the rows fails here, before anybody spends. From then on a site
answers from its book alone.
"""

from collections.abc import Mapping

from hushtable.errors import RoundError
from hushtable.federation.keys import crypto
from hushtable.federation.masks.agree import public_key
from hushtable.federation.online.messages import Message
from hushtable.federation.online.state import Kept, SiteState
from hushtable.federation.refusals import Refusal, Refused
from hushtable.privacy.noise import library

#: Of the two keys: to seal shares, and for masks.
USES = ("encrypt", "mask")


def answer(site: SiteState, _: Kept) -> tuple[bytes, Kept]:
    """Check the round on every side, count the rows; draw keys for this round only."""
    reply = site.reply()
    if not site.round.terms.masked:
        raise Refused(Refusal.ROUND, "the online form is for masked rounds: ask for one")
    if reply.earlier is not None:
        raise Refused(
            Refusal.ANSWERED, "the round was answered before, by file: ask for a new round"
        )
    reply.check_known()
    library()  # without it there will be no noise, and no answer
    counts = reply.counted(site.count(reply.plan))
    seen = site.recognise()
    if seen is not None:
        site.book.check_people(reply.data_set, seen)
    drawn = {use: crypto().X25519PrivateKey.generate() for use in USES}
    site.keep_rows(counts, seen)
    public = {use: public_key(key) for use, key in drawn.items()}
    kept = {use: key.private_bytes_raw().hex() for use, key in drawn.items()}
    return site.sign("keys", public), kept


def check(message: Message) -> None:
    """Raise `RoundError` unless a site offers its two keys."""
    body = message.body
    if set(body) != set(USES) or not all(isinstance(key, str) for key in body.values()):
        raise RoundError(f"{message.sender!r} does not offer the keys of this step")


def handed_on(messages: Mapping[str, Message]) -> dict[str, str]:
    """Return messages as the coordinator hands them on to other sites, signatures and all."""
    return {name: message.content.hex() for name, message in messages.items()}
