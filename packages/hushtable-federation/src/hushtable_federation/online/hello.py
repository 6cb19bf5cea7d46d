"""Step ``hello``: a site says whose keys it has. Only where the transport has to find out."""

import secrets

from hushtable.errors import HushTableError
from hushtable_federation.keys import Card, Keys
from hushtable_federation.online.messages import Message, ask
from hushtable_federation.online.state import SiteState
from hushtable_federation.refusals import Refused
from hushtable_federation.round import Round


def answer(site: SiteState, digest: str) -> bytes:
    """Sign the request, by its digest, for those whom the site knows."""
    site.reply().check_known()
    return site.sign("hello", {"asked": digest})


def request(round_: Round, keys: Keys) -> bytes:
    """Return a request for one node alone: whose answer to it is signed takes nobody's name."""
    return ask(round_, "hello", keys, {"node": secrets.token_hex(16)})


def caller(round_: Round, asked: bytes, content: bytes) -> tuple[Card | None, str]:
    """Return which site answered a request, and the word if it refused; None if it was none."""
    digest = Message.read(asked, round_.coordinator).digest
    for card in round_.sites:
        try:
            message = Message.read(content, card)
            if message.check(round_, "hello").body == {"asked": digest}:
                return card, ""
        except Refused as error:
            if message.round_id == round_.round_id:  # and not of another, sent again
                return card, error.word
        except HushTableError:
            continue
    return None, ""
