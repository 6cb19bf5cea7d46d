"""The means of a site in a step: the round, its keys, and what its book kept from before."""

import base64
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.sketch import Sketch
from hushtable.federation.book.book import Book
from hushtable.federation.book.digests import RowDigests
from hushtable.federation.keys import Keys
from hushtable.federation.masks.agree import private_key
from hushtable.federation.online.messages import Message, Step
from hushtable.federation.refusals import Refusal, Refused, refusing
from hushtable.federation.round import Round
from hushtable.federation.site import Reply
from hushtable.plans.plan import Plan

#: As JSON has it.
Kept = dict[str, Any]
#: Name of the row of the book's steps that holds what was counted in the first one.
_ROWS = "rows"


@dataclass(frozen=True)
class SiteState:
    """A site in a round under way; what it holds between steps is in its book.

    ``reply`` checks the round on every side, anew in each step that needs it; ``count`` and
    ``recognise`` are those of `OnlineSite`.
    """

    round: Round
    keys: Keys
    book: Book
    reply: Callable[[], Reply]
    count: Callable[[Plan], Sketch]
    recognise: Callable[[], RowDigests | None]

    @property
    def me(self) -> str:
        """The site's name."""
        return self.keys.card.name

    def sign(self, step: Step, body: Kept) -> bytes:
        """Return the signed answer to a step."""
        return Message.make(self.round, step, self.keys, body).content

    def kept(self, step: Step) -> Kept:
        """Return what was kept of a step before; refuses if it was not asked."""
        return self._noted(step, step)[1]

    def private(self, use: str) -> Any:
        """Return the key that was drawn for this round, to ``"encrypt"`` or to ``"mask"``."""
        return private_key(bytes.fromhex(self.kept("keys")[use]))

    # --- the rows -----------------------------------------------------------------------------

    def keep_rows(self, counts: NDArray[np.int64], seen: RowDigests | None) -> None:
        """Keep the counts of the rows, and by what to recognise these."""
        digests = None if seen is None else base64.b64encode(seen.to_bytes()).decode()
        content = counts.astype("<i8").tobytes()
        self.book.note_step(self.round.round_id, _ROWS, "", content, {"digests": digests})

    def rows(self) -> tuple[NDArray[np.int64], RowDigests | None]:
        """Return what `keep_rows` was given."""
        counts, kept = self._noted(_ROWS, "keys")
        seen = kept["digests"]
        found = None if seen is None else RowDigests.from_bytes(base64.b64decode(seen))
        return np.frombuffer(counts, "<i8").astype(np.int64), found

    def _noted(self, name: str, step: str) -> tuple[bytes, Kept]:
        noted = self.book.step(self.round.round_id, name)
        if noted is None:
            raise Refused(Refusal.ORDER, f"step {step!r} comes first, and was not asked")
        return noted[1:]

    # --- checks -------------------------------------------------------------------------------

    def signed(self, body: Kept, key: str, step: Step) -> dict[str, Message]:
        """Return the messages of a step that the coordinator hands on, by site."""
        contents = texts(body, key)
        with refusing(Refusal.SHARES):
            return {
                name: Message.read(content, self.round.card(name)).check(self.round, step)
                for name, content in contents.items()
            }

    def check_enough(self, names: Collection[str], among: Collection[str]) -> None:
        """Refuse unless these are enough sites, this one and only those so far."""
        if len(set(names)) < len(names) or not set(names) <= set(among) or self.me not in names:
            raise Refused(
                Refusal.SITES, "the list of sites is not one of those who took part so far"
            )
        least = self.round.terms.least
        if len(names) < least:
            raise Refused(Refusal.SITES, f"{len(names)} sites are left, and {least} are needed")


def texts(body: Kept, key: str | None = None) -> dict[str, bytes]:
    """Return the bytes that a body, or an entry of it, has in hexadecimal digits by name."""
    found = body if key is None else body.get(key)
    try:  # what is not of this form raises one of the three, and is refused
        return {name: bytes.fromhex(text) for name, text in found.items()}  # type: ignore[union-attr]
    except (AttributeError, TypeError, ValueError):
        raise Refused(Refusal.REQUEST, f"step {key!r}: the request is not of its form") from None
