"""The rows of a site in a round: counted in the first step, sent with noise in the second.

Everything that can fail because of the rows fails in the first step. In between, the site's book
keeps the counts, and what recognises the rows and persons.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.sketch import Sketch
from hushtable.data.persons import PersonsCounted
from hushtable.plans.plan import Plan
from hushtable.privacy.mechanisms import library
from hushtable_federation.book.book import Book
from hushtable_federation.book.digests import PersonsSeen, RowDigests, from_bytes, to_bytes
from hushtable_federation.refusals import Refusal, Refused
from hushtable_federation.reply import Reply
from hushtable_federation.round import Round

#: Name of the row in the book's steps that holds the counts of the first step.
_COUNTED = "rows"


class Statement(NamedTuple):
    """A person's statements about the rows; as in `Reply.answer` and `Reply.counted`."""

    new_people: bool = False
    outside_too: bool = False


NOTHING_SAID = Statement()


class CountedRows(NamedTuple):
    """Counts of the rows, of shape (n_cells,), and the digests that identify rows and persons.

    ``new_people`` and ``attended`` are as at the time of counting: whether a person states that the
    rows are about different people, and whether a person reviewed the round. ``data_set`` is the
    name of the rows; None if an earlier version counted them.
    """

    counts: NDArray[np.int64]
    digests: RowDigests | None
    persons: PersonsSeen
    new_people: bool
    attended: bool
    data_set: str | None


@dataclass(frozen=True)
class RoundRows:
    """The rows of a site in one round.

    ``reply`` checks every aspect of the round, again in each step that needs it; its argument is
    whether a person reviews it. ``count`` and ``recognise`` are those of `OnlineSite`.
    """

    round: Round
    book: Book
    reply: Callable[[bool], Reply]
    counted: Callable[[Plan], Sketch]
    recognise: Callable[[], RowDigests | None]
    statement: Statement = NOTHING_SAID
    attended: bool = False

    def count(self) -> None:
        """Check every aspect of the round, count the rows, and keep the counts."""
        reply = self.reply(self.attended)
        if not self.round.terms.masked:
            raise Refused(Refusal.ROUND, "steps are only for masked rounds: request one")
        if reply.earlier is not None and reply.earlier.round_id == self.round.round_id:
            raise Refused(
                Refusal.ANSWERED,
                "the data kept for this answer's steps are gone: request a new round",
            )
        reply.check_known()
        library()  # without it, there will be no noise, and no answer
        sketch = self.counted(reply.plan)
        counts = reply.counted(sketch, outside_too=self.statement.outside_too)
        digests = self.recognise()
        if digests is not None:
            self.book.check_people(reply.data_set, digests, self.statement.new_people)
        self._keep(counts, reply.data_set, digests, sketch.persons)

    def send(self, mask: NDArray[np.uint64]) -> bytes:
        """Add noise to the counts, record them, and return the submission under this mask."""
        rows = self._kept()
        reply = self.reply(rows.attended)  # a person reviewed the round before, if at all
        if rows.data_set not in (None, reply.data_set):
            raise Refused(
                Refusal.UNAVAILABLE,
                f"the rows of this round were counted as data_set {rows.data_set!r}, and this "
                f"visit is for data_set {reply.data_set!r}, which has a budget of its own: nothing "
                "was sent. Visit the round with the site's file that has data_set = "
                f"{rows.data_set!r}",
            )
        new = rows.new_people
        return reply.answer(
            rows.counts, mask, rows=rows.digests, persons=rows.persons, new_people=new
        ).content

    def sent(self) -> bytes:
        """Return the submission that the book has; empty if there is none."""
        given = self.book.answer(self.round.round_id)
        return b"" if given is None else given.content

    def submit(self) -> bytes:
        """Count the rows and add noise: everything that a round without masks needs."""
        reply = self.reply(self.attended)
        sketch = self.counted(reply.plan)
        counts = reply.counted(sketch, outside_too=self.statement.outside_too)
        rows, persons = self.recognise(), PersonsSeen.of(sketch.persons)
        new = self.statement.new_people
        return reply.answer(counts, None, rows=rows, persons=persons, new_people=new).content

    def _keep(
        self,
        counts: NDArray[np.int64],
        data_set: str,
        digests: RowDigests | None,
        persons: PersonsCounted | None,
    ) -> None:
        counted = PersonsSeen.of(persons)
        register = None if counted.register is None else to_bytes(counted.register)
        kept = {
            "digests": _text(None if digests is None else digests.to_bytes()),
            "sample": _text(None if counted.sample is None else counted.sample.to_bytes()),
            "register": _text(register),
            "new_people": self.statement.new_people,
            "attended": self.attended,
            "data_set": data_set,
        }
        content = counts.astype("<i8").tobytes()
        self.book.note_step(self.round.round_id, _COUNTED, "", content, kept)

    def _kept(self) -> CountedRows:
        noted = self.book.step(self.round.round_id, _COUNTED)
        if noted is None:
            raise Refused(Refusal.ORDER, "step 'keys' has to come first")
        _, counts, kept = noted
        digests, sample, register = (
            None if kept[name] is None else base64.b64decode(kept[name])
            for name in ("digests", "sample", "register")
        )
        persons = PersonsSeen(
            None if sample is None else RowDigests.from_bytes(sample),
            None if register is None else from_bytes(register),
        )
        return CountedRows(
            np.frombuffer(counts, "<i8").astype(np.int64),
            None if digests is None else RowDigests.from_bytes(digests),
            persons,
            kept["new_people"],
            kept["attended"],
            kept.get("data_set"),
        )


def _text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()
