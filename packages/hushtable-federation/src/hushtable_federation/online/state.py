"""The means of a site in a step: the round, its keys, and what its book kept from before."""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.counts.sketch import Sketch
from hushtable.data.known import PersonsCounted
from hushtable.plans.plan import Plan
from hushtable_federation.book.book import Book
from hushtable_federation.book.digests import RowDigests
from hushtable_federation.book.registers import Counted, from_bytes, to_bytes
from hushtable_federation.keys import Keys
from hushtable_federation.online.messages import Message, Step
from hushtable_federation.refusals import Refusal, Refused
from hushtable_federation.reply import Reply
from hushtable_federation.round import Round

#: As JSON has it.
Kept = dict[str, Any]
#: Name of the row of the book's steps that holds what was counted in the first one.
_ROWS = "rows"


class KeptRows(NamedTuple):
    """Counts of the rows, of shape (n_cells,), and by what rows and persons are known again."""

    counts: NDArray[np.int64]
    seen: RowDigests | None
    persons: Counted


class Said(NamedTuple):
    """Of a person who is here, about the rows; as in `Reply.submission`."""

    new_people: bool = False
    outside_too: bool = False


NOTHING_SAID = Said()


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
    said: Said = NOTHING_SAID

    @property
    def me(self) -> str:
        """The site's name."""
        return self.keys.card.name

    def sign(self, step: Step, body: Kept, arrays: files.Arrays | None = None) -> bytes:
        """Return the signed answer to a step."""
        return Message.make(self.round, step, self.keys, body, arrays).content

    def kept(self, step: Step) -> Kept:
        """Return what was kept of a step before; refuses if it was not asked, or is forgotten."""
        kept = self._noted(step, step)[1]
        if not kept:
            raise Refused(
                Refusal.TIME,
                f"what step {step!r} kept is forgotten: the round has ended, or its time is over",
            )
        return kept

    def answered(self, step: Step) -> bytes:
        """Return what was answered in a step before; refuses if it was not asked."""
        return self._noted(step, step)[0]

    # --- the rows -----------------------------------------------------------------------------

    def keep_rows(
        self,
        counts: NDArray[np.int64],
        seen: RowDigests | None,
        persons: PersonsCounted | None,
    ) -> None:
        """Keep the counts of the rows, and by what to recognise these."""
        counted = Counted.of(persons)
        register = None if counted.register is None else to_bytes(counted.register)
        kept = {
            "seen": _text(None if seen is None else seen.to_bytes()),
            "sample": _text(None if counted.sample is None else counted.sample.to_bytes()),
            "register": _text(register),
        }
        content = counts.astype("<i8").tobytes()
        self.book.note_step(self.round.round_id, _ROWS, "", content, kept)

    def rows(self) -> KeptRows:
        """Return what `keep_rows` was given."""
        counts, kept = self._noted(_ROWS, "shares")
        found = {name: None if one is None else base64.b64decode(one) for name, one in kept.items()}
        seen, sample, register = (found[name] for name in ("seen", "sample", "register"))
        persons = Counted(
            None if sample is None else RowDigests.from_bytes(sample),
            None if register is None else from_bytes(register),
        )
        return KeptRows(
            np.frombuffer(counts, "<i8").astype(np.int64),
            None if seen is None else RowDigests.from_bytes(seen),
            persons,
        )

    def _noted(self, name: str, step: str) -> tuple[bytes, Kept]:
        noted = self.book.step(self.round.round_id, name)
        if noted is None:
            raise Refused(Refusal.ORDER, f"step {step!r} comes first, and was not asked")
        return noted[1:]


def _text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()
