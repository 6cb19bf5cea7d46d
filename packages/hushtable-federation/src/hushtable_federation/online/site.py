"""A site in an online round: which step is requested, and what it answered before.

The steps are in the files beside this one; the state between steps is in the site's book.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from hushtable import files
from hushtable.counts.sketch import Sketch
from hushtable.errors import HushTableError, RoundError
from hushtable.plans.plan import Plan
from hushtable_federation.book.book import ALL_ROWS, Book
from hushtable_federation.book.digests import RowDigests
from hushtable_federation.clock import now, stamp
from hushtable_federation.keys import Keys
from hushtable_federation.online import shares, steps
from hushtable_federation.online.messages import Message, Step, unclosed
from hushtable_federation.online.shares import Kept, SiteState, Statement
from hushtable_federation.policy import Approval, Policy
from hushtable_federation.refusals import Refusal, Refused, SiteLog, refusing
from hushtable_federation.reply import Reply
from hushtable_federation.round import Round

#: Steps that a coordinator waits for before it decides which sites are in the sum.
BEGINNING: tuple[Step, ...] = "keys", "shares", "masked"
#: In these steps, the coordinator has no choice: the answer is the same for any request.
_FIXED: tuple[Step, ...] = "keys", "masked"
_STEPS: dict[str, Callable[[SiteState, Any], tuple[bytes, Kept]]] = {
    "keys": shares.answer_keys, "shares": shares.answer_shares, "masked": steps.answer_masked,
    "survivors": steps.answer_survivors, "unmask": steps.answer_unmask,
    "without": steps.answer_without,
}  # fmt: skip


def over(round_: Round) -> datetime:
    """Return until when a site keeps the data of a round's steps, unless the round ends before.

    In a folder, sites may make their second visit long after the deadline.
    """
    return round_.deadline + timedelta(days=60)


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
        Takes a plan, and returns the sketch of the site's rows under it without asking, as
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
    statement : Statement, optional
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
        count: Callable[[Plan], Sketch],
        *,
        policy: Policy | None = None,
        recognise: Callable[[], RowDigests | None] = lambda: None,
        approvals: Mapping[str, Approval] | None = None,
        log: SiteLog | None = None,
        data_set: str = ALL_ROWS,
        attended: bool = False,
        statement: Statement | None = None,
    ) -> None:
        self._keys, self._book, self._count = keys, book, count
        self._recognise, self._approvals = recognise, approvals or {}
        self._log = SiteLog(Path(book.path).with_suffix(".log")) if log is None else log
        self._reply = partial(Reply, keys=keys, book=book, policy=policy, data_set=data_set)
        self._attended = attended
        self._statement = statement or Statement()
        self._last: Round | None = None

    @property
    def round(self) -> Round:
        """Return the round of the last request, for ``count``; raise `RoundError` before any."""
        if self._last is None:
            raise RoundError("there was no request about a round yet: answer a request first")
        return self._last

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
                about = self._last = self._round(request) if round_ is None else round_
                round_id = about.round_id
                asked = Message.read(request, about.coordinator)
            step = asked.step
            return self._answer(about, step, asked)
        except Exception as error:  # never send the message, because it may quote a row
            record = error.word if isinstance(error, HushTableError) else ""
            word = Refusal(record or Refusal.UNAVAILABLE)
            words = f"{type(error).__name__}: {error}"
        self._log.write(stamp(now()), round_id, step, word, words)
        return Message.refuse(round_id, self._keys, word)

    def begin(self, round_: Round) -> dict[str, bytes]:
        """Count the rows, and return the first answer, by its step.

        In a round without masks, it is the only answer. Errors are raised, for the person who is
        here.
        """
        self._last = round_
        if not round_.terms.masked:
            return {"submission": steps.answer_submission(self._state(round_))}
        return {"keys": self._answer(round_, "keys")}

    def send_counts(self, round_: Round, keys: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the answers with the counts, masked with the sites whose keys are given.

        If the site dealt its shares before a crash, return the same ones. Errors are raised.
        """
        self._last = round_
        noted = self._book.step(round_.round_id, "shares")
        dealt = self._answer(round_, "shares", keys=keys) if noted is None else noted[1]
        return {"shares": dealt, "masked": self._answer(round_, "masked")}

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

    def _answer(
        self,
        round_: Round,
        step: str,
        asked: Message | None = None,
        keys: Mapping[str, bytes] | None = None,
    ) -> bytes:
        work = _STEPS.get(step)
        about = round_.round_id if asked is None else asked.round_id
        if (work is None and step not in ("hello", "end")) or about != round_.round_id:
            raise Refused(Refusal.REQUEST, f"step {step!r} of round {about[:12]} is unknown here")
        if step == "end":
            self._book.forget_steps(round_.round_id)
            return Message.make(round_, step, self._keys, {}).content
        if work is None:
            assert asked is not None  # hello is a request
            return steps.answer_hello(self._state(round_), asked.digest)
        found: Any = asked
        digest = round_.round_id if asked is None or step in _FIXED else asked.digest
        if step == "shares":
            found = keys if asked is None else unclosed(asked)
            digest = shares.digest_of(found)
        noted = self._book.step(round_.round_id, step)
        if noted is None:
            record, kept = work(self._state(round_), found)
            with self._book.writing():
                given = self._book.note_step(round_.round_id, step, digest, record, kept)
                self._book.keep_steps(round_.round_id, over(round_))
            if step == "unmask":  # the key of the own mask and the counts are no longer needed
                self._book.forget_steps(round_.round_id, but="unmask")
        else:
            given = noted[:2]
        return self._noted(round_, step, digest, *given)

    def _state(self, round_: Round) -> SiteState:
        approval, count = self._approvals.get(round_.round_id), partial(self._counted, round_)

        def reply(attended: bool) -> Reply:
            return self._reply(round_, approval=approval, attended=attended)

        return SiteState(
            round_, self._keys, self._book, reply, count, self._recognise, self._statement,
            self._attended,
        )  # fmt: skip

    def _counted(self, round_: Round, plan: Plan) -> Sketch:
        sketch = self._count(plan)
        for words in sketch.unread:
            step = "keys" if round_.terms.masked else "submission"
            self._log.note(stamp(now()), round_.round_id, step, "unread", words)
        return sketch

    def _noted(self, round_: Round, step: str, asked: str, digest: str, answer: bytes) -> bytes:
        """Return the recorded answer to a step, if it answers this request."""
        if digest != asked:
            raise Refused(
                Refusal.ANSWERED,
                f"step {step!r} was already answered, to a different request, and each step is "
                "answered once: open a new round",
            )
        if answer:
            return answer
        given = self._book.answer(round_.round_id)
        assert given is not None  # of the step "masked", recorded before the step was
        return given.content

    def _round(self, request: bytes) -> Round:
        """Return the round in a request; it is checked once, not in every step."""
        array = files.unpack(request, "request").arrays.get("round")
        content = b"" if array is None else array.tobytes()
        if self._last is None or self._last.content != content:
            return Round.from_bytes(content, "request")
        return self._last
