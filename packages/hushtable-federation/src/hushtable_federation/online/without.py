"""Step ``without``: sites whose shares do not count are left out of the sum after all.

Each site checks for itself that the complaints show it. Then it gives its shares of the others'
masks with those sites, which nobody else may see for the sake of them.
"""

from hushtable.errors import RoundError
from hushtable_federation.online import complaints, listed, unmask
from hushtable_federation.online.messages import Message, unclosed
from hushtable_federation.online.shares import Dealt
from hushtable_federation.online.state import Kept, SiteState
from hushtable_federation.refusals import Refusal, Refused, refusing

#: No name begins so.
_DEALING = "dealing/"


def request(
    names: list[str], dealt: dict[str, Dealt], answers: dict[str, Message]
) -> tuple[Kept, dict[str, bytes]]:
    """Return body and messages: who is to be left out, and what shows why."""
    shown = {f"{_DEALING}{name}": dealt[name].message.content for name in names}
    return {"without": names}, shown | {name: one.content for name, one in answers.items()}


def answer(site: SiteState, asked: Message) -> tuple[bytes, Kept]:
    """Give shares of the masks of those who stay with those who do not."""
    kept, names = site.kept("unmask"), asked.body.get("without")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Refused(Refusal.REQUEST, "step 'without': the request is not of its form")
    dealt, answers = dict[str, Dealt](), []
    with refusing(Refusal.SHARES):
        for name, content in unclosed(asked).items():
            dealer = name.removeprefix(_DEALING)
            if dealer != name:
                dealt[dealer] = Dealt.read(site.round, dealer, content)
            else:
                answers.append(_complaint(site, name, content))
        for name, one in dealt.items():
            if one.message.digest != kept["sites"].get(name, {}).get("shares"):
                raise RoundError(f"{name!r} dealt other shares than those on the list")
        guilty = complaints.judge(site.round, dealt, answers).dealers
        if not names or not set(names) <= set(guilty):
            raise RoundError("the complaints do not show that these sites are to be left out")
    stay = sorted(set(kept["sites"]) - set(names))
    listed.check_enough(site.round, dict.fromkeys(stay))
    given = unmask.shares(site.round, kept, stay, [sorted(names)] * len(stay))
    return site.sign("without", {}, given), {}


def _complaint(site: SiteState, name: str, content: bytes) -> Message:
    message = Message.read(content, site.round.card(name))
    step = message.step if message.step in ("survivors", "unmask") else "unmask"
    return message.check(site.round, step)
