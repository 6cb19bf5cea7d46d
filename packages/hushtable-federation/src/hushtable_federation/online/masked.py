"""Step ``masked``: each site adds its noise, writes that down, and sends masked counts."""

from hushtable.errors import HushTableError, RoundError
from hushtable_federation.clock import now
from hushtable_federation.masks import agree, mask
from hushtable_federation.online.messages import Message
from hushtable_federation.online.state import Kept, SiteState
from hushtable_federation.refusals import Refused
from hushtable_federation.round import Round
from hushtable_federation.submission import Submission


def answer(site: SiteState, _: Message | None) -> tuple[bytes, Kept]:
    """Add noise to the counts, write it down, and mask among all sites of the roster.

    Whoever of them does not answer is left out later, by shares of the keys of its masks.
    """
    own_mask = bytes.fromhex(site.kept("shares")["own_mask"])
    reply = site.reply()
    n_cells = site.round.layout.n_cells
    masks = mask.pairwise_mask(
        site.me, agree.roster_keys(site.round, site.keys, agree.ONLINE), n_cells
    )
    masks += mask.stream(own_mask, n_cells)
    rows = site.rows()
    new = site.said.new_people
    reply.answer(rows.counts, masks, rows=rows.seen, persons=rows.persons, new_people=new)
    return b"", {}  # what is sent lies with the contribution in the book, once


def read(round_: Round, name: str, content: bytes) -> Submission:
    """Return what a site submits; raises `HushTableError`."""
    try:
        submission = Submission.from_bytes(content, name, round_, now())
    except HushTableError:
        try:
            Message.read(content, round_.card(name)).check(round_, "masked")
        except Refused:  # the reason why there is none
            raise
        except HushTableError:  # nor that: what was wrong first is what to say
            pass
        raise
    if submission.site != name:
        raise RoundError(f"{name!r} answers for {submission.site!r}")
    return submission
