"""Step ``survivors``: where sites are missing, each signs who is in the sum, once.

Nobody signs two lists, and of those who are on it, nobody's masks with each other are given away.
"""

from hushtable_federation.online import listed
from hushtable_federation.online.messages import Message
from hushtable_federation.online.state import Kept, SiteState
from hushtable_federation.refusals import Refusal, Refused


def answer(site: SiteState, asked: Message) -> tuple[bytes, Kept]:
    """Sign who is in the sum; say whose shares are not what was proved."""
    if site.book.step(site.round.round_id, "unmask") is not None:
        raise Refused(Refusal.ANSWERED, "shares were given for another list of sites")
    taken = listed.take(site, asked)
    body, arrays = taken.said()
    return site.sign("survivors", body, arrays), taken.kept()
