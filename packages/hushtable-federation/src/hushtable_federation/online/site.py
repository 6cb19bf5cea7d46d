"""A site in a round: which step is requested, and what it answered before.

The steps of masked rounds are in `hushtable_federation.protocol`; the state between them is in the
site's book.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from hushtable import files
from hushtable.counts.sketch import Sketch
from hushtable.errors import HushTableError, RoundError
from hushtable.plans.plan import Plan
from hushtable_federation.book.book import ALL_ROWS, Book
from hushtable_federation.book.digests import RowDigests
from hushtable_federation.clock import forgotten, now, stamp
from hushtable_federation.keys import Keys
from hushtable_federation.online.rows import NOTHING_SAID, RoundRows, Statement
from hushtable_federation.policy import Approval, Policy
from hushtable_federation.protocol.messages import Message, Step
from hushtable_federation.protocol.site import MaskedSite
from hushtable_federation.refusals import Refusal, Refused, SiteLog, refusing
from hushtable_federation.reply import Reply
from hushtable_federation.round import Round, check_protocol

#: Steps that a coordinator waits for before it decides which sites are in the sum.
BEGINNING: tuple[Step, ...] = "keys", "shares", "masked"
#: Name of the row in the book's steps that holds the round of an online request.
_ROUND = "round"


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
        self._statement = statement or NOTHING_SAID
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
                if asked.round_id != about.round_id:
                    raise RoundError(f"the request is about round {asked.round_id[:12]}")
            return self._answer(about, asked)
        except Exception as error:  # never send the message, because it may quote a row
            record = error.word if isinstance(error, HushTableError) else ""
            word = Refusal(record or Refusal.UNAVAILABLE)
            words = f"{type(error).__name__}: {error}"
        self._log.write(stamp(now()), round_id, step, word, words)
        return Message.refuse(round_id, self._keys, word)

    def reply(self, round_: Round) -> Reply:
        """Check every aspect of a round; nothing is counted, recorded or sent."""
        return self._reply_to(round_, self._attended)

    def begin(self, round_: Round) -> dict[str, bytes]:
        """Count the rows, and return the first answer, by its step.

        In a round without masks, it is the only answer. Errors are raised, for the person who is
        here.
        """
        self._last = round_
        check_protocol(round_)
        if not round_.terms.masked:
            return {"submission": self._rows(round_).submit()}
        keys = self._participant(round_).draw()
        self._keep_steps(round_)
        return {"keys": keys}

    def send_counts(self, round_: Round, keys: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the answers with the counts, masked with the sites whose keys are given.

        If the site dealt its shares before a crash, return the same ones. Errors are raised.
        """
        self._last, site = round_, self._participant(round_)
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
            self._reply_to(round_, self._attended).check_known()
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

    def _participant(self, round_: Round) -> MaskedSite:
        return MaskedSite(round_, self._keys, self._book, self._rows(round_))

    def _reply_to(self, round_: Round, attended: bool) -> Reply:
        # The officer's signature of another round gives a more precise refusal than none.
        another = next(iter(self._approvals.values()), None)
        approval = self._approvals.get(round_.round_id, another)
        return self._reply(round_, approval=approval, attended=attended)

    def _rows(self, round_: Round) -> RoundRows:
        return RoundRows(
            round_, self._book, partial(self._reply_to, round_), partial(self._counted, round_),
            self._recognise, self._statement, self._attended,
        )  # fmt: skip

    def _counted(self, round_: Round, plan: Plan) -> Sketch:
        sketch = self._count(plan)
        step = "keys" if round_.terms.masked else "submission"
        notes = [("unread", words) for words in sketch.unread]
        names, missing = plan.schema.of_rows.names, sketch.tally[:, 0]
        empty = [name for name, n in zip(names, missing, strict=False) if 0 < n == sketch.n_rows]
        if empty and not self._attended:
            notes.append(("empty", f"no row has a value in {', '.join(empty)}"))
        for word, words in notes:
            self._log.note(stamp(now()), round_.round_id, step, word, words)
        return sketch

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
            return Round.from_bytes(content, "request")
        return self._last
