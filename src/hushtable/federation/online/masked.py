"""Step ``masked``: each site adds its noise, writes that down, and sends masked counts."""

from collections.abc import Mapping

from hushtable.errors import HushTableError, RoundError
from hushtable.federation.clock import now
from hushtable.federation.masks import agree, mask, seal
from hushtable.federation.online.messages import Message
from hushtable.federation.online.state import Kept, SiteState, texts
from hushtable.federation.refusals import Refusal, refusing
from hushtable.federation.round import Round
from hushtable.federation.submission import Submission


def answer(site: SiteState, body: Kept) -> tuple[bytes, Kept]:
    """Add noise to the counts, write it down, and mask among those who dealt shares."""
    round_, before, reader = site.round, site.kept("shares"), site.private("encrypt")
    sealed, offered = texts(body, "shares"), before["offered"]
    site.check_enough(sealed, offered)
    with refusing(Refusal.SHARES):
        for name, share in sealed.items():  # refused now, while dropping out is harmless
            seal.opened_share(round_, reader, offered[name]["encrypt"], name, site.me, share)
    reply = site.reply()
    mine = site.private("mask")
    with refusing(Refusal.SHARES):
        agreed = {
            name: agree.mask_key(round_, mine, offered[name]["mask"], site.me, name)
            for name in sealed
            if name != site.me
        }
    n_cells = round_.layout.n_cells
    masks = mask.pairwise_mask(site.me, agreed, n_cells)
    masks += mask.stream(bytes.fromhex(before["own_mask"]), n_cells)
    counts, seen = site.rows()
    reply.answer(counts, masks, rows=seen)
    # What is sent lies with the contribution in the book, once.
    return b"", {"shares": {name: share.hex() for name, share in sealed.items()}}


def requests(dealt: Mapping[str, Message]) -> dict[str, Kept]:
    """Give each site the shares that are sealed for it."""
    return {
        name: {"shares": {other: dealt[other].body["shares"][name] for other in dealt}}
        for name in dealt
    }


def read(round_: Round, name: str, content: bytes) -> Submission:
    """Return what a site submits; raises `HushTableError`."""
    try:
        submission = Submission.from_bytes(content, name, round_, now())
    except HushTableError:
        # Perhaps it is the reason why there is none.
        Message.read(content, round_.card(name)).check(round_, "masked")
        raise
    if submission.site != name:
        raise RoundError(f"{name!r} answers for {submission.site!r}")
    return submission
