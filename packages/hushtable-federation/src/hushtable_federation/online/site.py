"""A site in a round: which step is requested, what it answered before, and its rows.

The steps of masked rounds are in `hushtable_federation.protocol`; the state between them is in the
site's book. Everything that can fail because of the rows fails in the first step. In between, the
book keeps the counts, and what recognises the rows and persons.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.counts.sketch import Sketch
from hushtable.errors import HushTableError, RoundError
from hushtable.privacy.mechanisms import library
from hushtable_federation.book.book import ALL_ROWS, Book
from hushtable_federation.book.digests import Recognised, RowDigests
from hushtable_federation.clock import forgotten, now, stamp
from hushtable_federation.keys import Keys
from hushtable_federation.policy import Approval, Policy
from hushtable_federation.protocol.messages import Message, Step
from hushtable_federation.protocol.site import MaskedSite
from hushtable_federation.refusals import Refusal, Refused, SiteLog, refusing
from hushtable_federation.reply import Reply
from hushtable_federation.round import Round, check_protocol

#: Steps that a coordinator waits for before it decides which sites are in the sum.
BEGINNING: tuple[Step, ...] = "keys", "shares", "masked"
#: Names of rows in the book's steps: the round of an online request, and the counts of the first
#: step.
_ROUND, _COUNTED = "round", "rows"


class Statement(NamedTuple):
    """A person's statements about the rows; as in `Reply.answer` and `Reply.counted`."""

    new_people: bool = False
    outside_too: bool = False


NOTHING_SAID = Statement()


class OnlineSite:
    """Answers a coordinator's requests, step by step, from any number of processes.

    No person reviews the round: the policy has to allow that, and the coordinator and the sites
    have to be known.

    Parameters
    ----------
    keys : Keys
        The site's.
    book : Book
        The site's book, which holds the state between steps.
    count : callable
        Takes a round, and returns the sketch of the site's rows under its plan without asking, as
        `Sketch.from_data` with ``attended=False``. What it could not read is written to the log.
    policy : Policy, optional
        The site's policy; without one, the site answers nothing.
    recognise : callable, optional
        Returns, after `count`, the `RowDigests` by which the book recognises these rows; None for
        no rows.
    approvals : mapping of str to Approval
        The officer's approvals, by round id.
    log : SiteLog, optional
        The log of refusals; by default, a file beside the book.
    data_set, attended
        As in `Reply`.
    statement : Statement
        A statement of a person at the site about the rows.

    Examples
    --------
    >>> here = Rehearsal()  # made-up sites and an open round
    >>> site = here.site("north")  # an OnlineSite
    >>> word = site.answer(b"no request")  # one signed word
    """

    def __init__(
        self,
        keys: Keys,
        book: Book,
        count: Callable[[Round], Sketch],
        *,
        policy: Policy | None = None,
        recognise: Callable[[], RowDigests | None] = lambda: None,
        approvals: Mapping[str, Approval] | None = None,
        log: SiteLog | None = None,
        data_set: str = ALL_ROWS,
        attended: bool = False,
        statement: Statement = NOTHING_SAID,
    ) -> None:
        self._keys, self._book, self._count = keys, book, count
        self._recognise, self._approvals = recognise, approvals or {}
        self._log = SiteLog(Path(book.path).with_suffix(".log")) if log is None else log
        self._policy, self._data_set = policy, data_set
        self._attended, self._statement = attended, statement
        #: The round of the last request: to read it checks the card of each site.
        self._last: Round | None = None

    def answer(self, request: bytes, round_: Round | None = None) -> bytes:
        """Return the signed answer to a request, or a signed `Refusal`: one word.

        If something fails here, nothing else about it is sent; the details are in the log. The same
        request gets the same answer, even after a crash. A different request for an answered step
        is refused, because two answers would reveal more than one.

        Parameters
        ----------
        request : bytes
            The request that the coordinator signed.
        round_ : Round, optional
            The round of the request, if the request does not contain it.
        """
        round_id, step = "", ""
        try:
            with refusing(Refusal.REQUEST):
                about = self._round(request) if round_ is None else round_
                round_id = about.round_id
                asked = Message.read(request, about.coordinator)
                step = asked.step
                if asked.round_id != about.round_id:
                    raise RoundError(f"the request is about round {asked.round_id[:12]}")
            return self._answer(about, asked)
        except Exception as error:  # never send the message, because it may quote a row
            record = error.word if isinstance(error, HushTableError) else ""
            word = Refusal(record or Refusal.UNAVAILABLE)
            words = f"{type(error).__name__}: {error}"
        self._log.write(stamp(now()), round_id, step, word, words)
        return Message.refuse(round_id, self._keys, word)

    def reply(self, round_: Round, attended: bool | None = None) -> Reply:
        """Check every aspect of a round; nothing is counted, recorded or sent.

        ``attended`` states whether a person reviewed the round; by default, as for this object.
        """
        # The officer's signature of another round gives a more precise refusal than none.
        another = next(iter(self._approvals.values()), None)
        return Reply(
            round_,
            self._keys,
            self._book,
            policy=self._policy,
            data_set=self._data_set,
            approval=self._approvals.get(round_.round_id, another),
            attended=self._attended if attended is None else attended,
        )

    def begin(self, round_: Round, reply: Reply | None = None) -> dict[str, bytes]:
        """Count the rows, and return the first answer, by its step.

        In a round without masks, it is the only answer. ``reply`` is that of `reply`, if it was
        made. Errors are raised, for the person who is here.
        """
        check_protocol(round_)
        if round_.terms.masked:
            keys = self._participant(round_, reply).draw()
            self._keep_steps(round_)
            return {"keys": keys}
        reply = reply or self.reply(round_)
        counts, people, _ = self._counted(reply)
        given = reply.answer(counts, None, people=people, new_people=self._statement.new_people)
        return {"submission": given.content}

    def send_counts(self, round_: Round, keys: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the answers with the counts, masked with the sites whose keys are given.

        If the site dealt its shares before a crash, return the same ones. Errors are raised.
        """
        site = self._participant(round_)
        noted = self._book.step(round_.round_id, "shares")
        return {
            "shares": site.deal(keys) if noted is None else noted[1],
            "masked": self._masked(round_, site),
        }

    def head(self, round_: Round) -> bytes:
        """Return the signed link of the book's entry with the answer to a round.

        It is published with the answer: a book without this link is an older copy, or a different
        book. A link is a hash under the book's key, and reveals nothing to others; the number of an
        entry would reveal whether there are rows.
        """
        links = (
            entry.link
            for entry in self._book.history()
            if entry.kind == "answer" and entry.content["round_id"] == round_.round_id
        )
        return Message.make(round_, "head", self._keys, {"head": next(links)}).content

    def _answer(self, round_: Round, asked: Message) -> bytes:
        with refusing(Refusal.ROUND):
            check_protocol(round_)
        if asked.step == "hello":
            self.reply(round_).check_known()
            return Message.make(round_, "hello", self._keys, {"asked": asked.digest}).content
        if asked.step == "end":
            self._book.forget_steps(round_.round_id)
            return Message.make(round_, "end", self._keys, {}).content
        site = self._participant(round_)
        if asked.step == "masked":
            return self._masked(round_, site)
        answer = site.answer(asked)
        if asked.step == "keys":
            self._book.note_step(round_.round_id, _ROUND, "", round_.content, {})
        if asked.step == "unmask":  # nothing else is needed, or ever given
            self._book.forget_steps(round_.round_id)
        self._keep_steps(round_)
        return answer

    def _masked(self, round_: Round, site: MaskedSite) -> bytes:
        answer = site.mask()
        self._keep_steps(round_)
        return answer

    def _keep_steps(self, round_: Round) -> None:
        self._book.keep_steps(round_.round_id, forgotten(round_.deadline))

    def _participant(self, round_: Round, reply: Reply | None = None) -> MaskedSite:
        return MaskedSite(round_, self._keys, self._book, _MaskedRows(self, round_, reply))

    def _counted(self, reply: Reply) -> tuple[NDArray[np.int64], Recognised, bool]:
        # The counts, whose they are, and whether a column identified the persons.
        round_ = reply.round
        sketch = self._count(round_)
        step = "keys" if round_.terms.masked else "submission"
        notes = [("unread", words) for words in sketch.unread]
        names, missing = reply.plan.schema.of_rows.names, sketch.tally[:, 0]
        empty = [name for name, n in zip(names, missing, strict=False) if 0 < n == sketch.n_rows]
        if empty and not self._attended:
            notes.append(("empty", f"no row has a value in {', '.join(empty)}"))
        for word, words in notes:
            self._log.write(stamp(now()), round_.round_id, step, word, words)
        counts = reply.counted(sketch, outside_too=self._statement.outside_too)
        people = Recognised.of(self._recognise(), sketch.persons)
        return counts, people, sketch.rows_per_person is not None

    def _round(self, request: bytes) -> Round:
        read = files.unpack(request, "request")
        array = read.arrays.get("round", np.empty(0, np.uint8))
        content, round_id = array.tobytes(), str(read.manifest.get("round_id"))
        if not content:
            if self._last is not None and self._last.round_id == round_id:
                return self._last
            if given := self._book.answer(round_id):
                content = given.round
            elif noted := self._book.step(round_id, _ROUND):
                content = noted[1]
            else:
                raise Refused(Refusal.ORDER, "step 'keys' has to come first, with the round")
        if self._last is None or self._last.content != content:
            self._last = Round.from_bytes(content, "request")
        return self._last


@dataclass(frozen=True)
class _MaskedRows:
    # The rows of a site in a masked round. Each step that needs the reply checks the round again,
    # unless this visit has done so.
    site: OnlineSite
    round: Round
    reply: Reply | None

    def count(self) -> None:
        site = self.site
        reply = self.reply or site.reply(self.round)
        if not self.round.terms.masked:
            raise Refused(Refusal.ROUND, "steps are only for masked rounds: request one")
        if reply.earlier is not None and reply.earlier.round_id == self.round.round_id:
            raise Refused(
                Refusal.ANSWERED,
                "the data kept for this answer's steps are gone: request a new round",
            )
        reply.check_known()
        library()  # without it, there will be no noise, and no answer
        counts, people, identified = site._counted(reply)
        new_people = site._statement.new_people
        if people.rows is not None:
            site._book.check_people(reply.data_set, people.rows, new_people)
        kept: dict[str, Any] = people.kept() | {
            "new_people": new_people, "attended": site._attended, "data_set": reply.data_set,
            "identified": identified,
        }  # fmt: skip
        content = counts.astype("<i8").tobytes()
        site._book.note_step(self.round.round_id, _COUNTED, "", content, kept)

    def send(self, mask: NDArray[np.uint64]) -> bytes:
        noted = self.site._book.step(self.round.round_id, _COUNTED)
        if noted is None:
            raise Refused(Refusal.ORDER, "step 'keys' has to come first")
        _, counts, kept = noted
        # A person reviewed the round when the rows were counted, if at all.
        reply = self.site.reply(self.round, kept["attended"])
        # The policy may have changed since. An earlier version stored neither this nor the name.
        reply.check_persons(kept.get("identified", True))
        if kept.get("data_set") not in (None, reply.data_set):
            raise Refused(
                Refusal.UNAVAILABLE,
                f"the rows of this round were counted as data_set {kept['data_set']!r}, and this "
                f"visit is for data_set {reply.data_set!r}, which has a budget of its own: nothing "
                "was sent. Visit the round with the site's file that has data_set = "
                f"{kept['data_set']!r}",
            )
        return reply.answer(
            np.frombuffer(counts, "<i8").astype(np.int64), mask, people=Recognised.of_kept(kept),
            new_people=kept["new_people"],
        ).content  # fmt: skip

    def sent(self) -> bytes:
        given = self.site._book.answer(self.round.round_id)
        return b"" if given is None else given.content
