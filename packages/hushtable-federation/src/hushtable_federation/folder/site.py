"""A site's visit to a round in a folder: whatever it has to do next, from its book alone."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hushtable import files
from hushtable.errors import HushTableError
from hushtable_federation.book.book import Book
from hushtable_federation.clock import now, shown_time
from hushtable_federation.folder.posts import ASKED, HEAD, REFUSED, Posts
from hushtable_federation.folder.visits import Visit
from hushtable_federation.keys import Card
from hushtable_federation.online.messages import Message, Step
from hushtable_federation.online.site import OnlineSite
from hushtable_federation.submission import signed_digest

#: Steps that a site answers by messages; its counts have a form of their own.
MESSAGES: tuple[Step, ...] = "shares", *ASKED
#: Of a book that was restored from a backup, or of a second computer.
_OTHER = (
    "An answer lies there that this site's keys signed, and this book does not know: the book is "
    "an old copy, or another computer answers with the same keys. Nothing is sent with this book. "
    "Go on with the newest one alone; if it is lost, make new keys, and ask for a new round."
)


@dataclass
class SiteVisit:
    """A site in a folder.

    Parameters
    ----------
    posts : Posts
        Of the round.
    me : Card
        The site's.
    book : Book
        The site's.
    begin : callable
        Returns the answers that need no request, by step, as `OnlineSite.begin`; called where the
        site has not answered yet. None where nobody gave rows.
    online : OnlineSite
        Answers what is asked.
    output : Path
        Where the result goes.
    """

    posts: Posts
    me: Card
    book: Book
    begin: Callable[[], dict[str, bytes]] | None
    online: OnlineSite
    output: Path
    _has_head: bool = field(default=False, init=False)

    def run(self) -> Visit:
        """Do what is to be done; raises `HushTableError` over what hinders the site itself."""
        visit = Visit()
        if self._result(visit):
            return visit
        if self.posts.stopped:
            return visit.end("failed", self.posts.stopped)
        if self._is_old:
            return visit.end("failed", _OTHER)
        self._send_again(visit)
        if not self._has_answered:
            return self._first(visit)
        asked = self._asked(visit)
        lead = self.posts.round.coordinator.name
        if self._is_dropped and not self.posts.decided:
            visit.say(f"{lead} goes on without this site{self._why}.")
        elif not asked and not visit.posted:
            visit.say("Nothing is asked of this site now.")
        return visit.end("waiting", waits_for=[lead])

    @property
    def _has_answered(self) -> bool:
        return self.book.answer(self.posts.round.round_id) is not None

    @property
    def _is_dropped(self) -> bool:
        return self.me.name in self.posts.amendment.dropped

    @property
    def _why(self) -> str:
        """Why it is dropped, as the end of a sentence."""
        return f": {self.posts.amendment.why}" if self.posts.amendment.why else ""

    @property
    def _step(self) -> str:
        """In whose files the counts lie."""
        return "masked" if self.posts.round.in_steps else "submission"

    @cached_property
    def _is_old(self) -> bool:
        """Whether something lies there that this site signed, and its book does not know.

        That is a head of the book, with an answer to any round in this folder; or an answer to
        this one. It is looked for to the end, whatever strangers put beside it.
        """
        return self._lacks_head() or self._lacks_counts() or any(map(self._lacks, MESSAGES))

    def _lacks_head(self) -> bool:
        known = {entry.link for entry in self.book.history()}
        for _, content in self.posts.heads(self.me):
            with contextlib.suppress(HushTableError):
                said = Message.read(content, self.me)
                if said.step == HEAD and said.body.get("head") not in known:
                    return True
                self._has_head |= said.round_id == self.posts.round.round_id
        return False

    def _lacks_counts(self) -> bool:
        given = self.book.answer(self.posts.round.round_id)
        if given is not None and not given.content:  # no copy is kept
            return False
        mine, round_ = b"" if given is None else given.content, self.posts.round
        known = "", signed_digest(mine, round_, self.me) if mine else ""
        found = self.posts.of(self._step, self.me.name, mine)
        return any(signed_digest(content, round_, self.me) not in known for _, content in found)

    def _lacks(self, step: Step) -> bool:
        round_ = self.posts.round
        noted = self.book.step(round_.round_id, step)
        mine = b"" if noted is None else noted[1]
        for _, content in self.posts.of(step, self.me.name, mine):
            with contextlib.suppress(HushTableError):
                digest = Message.read(content, self.me).check(round_, step).digest
                if not mine or digest != Message.read(mine, self.me).digest:
                    return True
        return False

    # --- the first step -----------------------------------------------------------------------

    def _hindered(self) -> str:
        """Return why this site cannot begin, in a sentence; empty if it can.

        What can be in no sum is not sent: it would be paid for all the same.
        """
        posts = self.posts
        if self._is_dropped:
            return f"The coordinator has dropped this site{self._why}."
        if len(posts.left()) < posts.round.needed:
            return (
                f"Only {len(posts.left())} sites are left, and {posts.round.needed} are needed: "
                "nothing is sent. Ask the coordinator for another round."
            )
        if posts.decided:
            return (
                "It is decided already who is in the sum, and this site is not: nothing was sent, "
                "and nothing spent. The result will be there for it as well."
            )
        if now() > posts.round.deadline:
            return (
                f"The round ended on {shown_time(posts.round.deadline)}, and this site has not "
                "answered: ask the coordinator to extend it (hushtable round amend)."
            )
        return ""

    def _first(self, visit: Visit) -> Visit:
        posts, why = self.posts, self._hindered()
        if why:
            return visit.end("failed", why)
        if self.begin is None:
            return visit.end(
                "open", f"The rows are asked for, until {shown_time(posts.round.deadline)}."
            )
        sent = self.begin()
        self._add_head()
        for step, content in sent.items():
            self._add(visit, step, content)
        return visit.end("waiting", waits_for=[posts.round.coordinator.name])

    def _send_again(self, visit: Visit) -> None:
        """Put there again what the book says was sent, if it is not there whole."""
        given = self.book.answer(self.posts.round.round_id)
        if given is None or not given.content:
            return
        self._add_head()
        noted = self.book.step(self.posts.round.round_id, "shares")
        if noted is not None:
            self._add(visit, "shares", noted[1])
        self._add(visit, self._step, given.content)
        for step in ASKED:
            noted = self.book.step(self.posts.round.round_id, step)
            if noted is not None:
                self._add(visit, step, noted[1])

    def _add_head(self) -> None:
        """Put there, before the answer, that the book holds it: an older copy shows by that."""
        if not self._has_head:
            self.posts.add(HEAD, self.me.name, self.online.head(self.posts.round))

    def _add(self, visit: Visit, step: str, content: bytes) -> None:
        if self.posts.add(step, self.me.name, content):
            visit.posted.append(step)

    # --- further steps ------------------------------------------------------------------------

    def _asked(self, visit: Visit) -> bool:
        """Answer what is asked of this site; return whether there was anything."""
        posts, answered, lists = self.posts, False, []
        for step in ASKED:
            refused = b""
            for _, message in posts.asked(step, self.me.name):
                lists += [message.body["sites"]] if "sites" in message.body else []
                if self.book.step(posts.round.round_id, step) is not None:
                    continue
                answer = self.online.answer(message.content, posts.round)
                if Message.read(answer, self.me).step == step:
                    self._add(visit, step, answer)
                    answered = True
                else:
                    refused = answer
            # Perhaps it was what another site is asked, under this one's name.
            if refused and self.book.step(posts.round.round_id, step) is None:
                self._refuse(visit, step, refused)
        if any(one != lists[0] for one in lists):
            visit.say(
                f"{posts.round.coordinator.name} signed two different lists of who is in the sum: "
                "this site answers the first that it saw, and no other. Two coordinators may be at "
                "work with one key: the round needs to be opened anew."
            )
        return answered

    def _refuse(self, visit: Visit, step: Step, answer: bytes) -> None:
        self._add(visit, f"{REFUSED}-{step}", answer)
        visit.needs_person = True
        visit.say(
            f"Refused what {self.posts.round.coordinator.name} asks in step {step!r} "
            f"({Message.read(answer, self.me).body.get('word')}): the log beside the book says why."
        )

    # --- the result ---------------------------------------------------------------------------

    def _result(self, visit: Visit) -> bool:
        """Take the result, if it is there and is what it has to be; return whether it is."""
        posts = self.posts
        for name, content, result in posts.results():
            given = self.book.answer(posts.round.round_id)
            try:
                if given is not None and self.me.name in result.sites:
                    result.check_own(self.me.name, given.share, given.content)
            except HushTableError as error:
                posts.refuse(name, _OTHER if self._is_old else str(error))
                continue
            if not self.output.exists() or self.output.read_bytes() != content:
                files.write_bytes(self.output, content, private=False)
            is_new = self.book.verified(result.seal.digest) is None
            visit.needs_person = is_new and self.me.name not in result.sites
            self.book.note_verified(result.seal.digest, posts.round.round_id)
            self.book.forget_steps(posts.round.round_id)
            part = "with" if self.me.name in result.sites else "without"
            visit.end(
                "done",
                f"The result of {len(result.sites)} sites is here, {part} this one: verified, and "
                f"written as {self.output}.",
            )
            return True
        return False
