"""A site's visit to a round in a folder: whatever it has to do next, from its book alone."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hushtable import files
from hushtable.errors import HushTableError
from hushtable.federation.book.book import Book
from hushtable.federation.clock import now, shown_time
from hushtable.federation.folder.posts import REFUSED, Posts
from hushtable.federation.folder.visits import Visit
from hushtable.federation.keys import Card
from hushtable.federation.online.messages import Message, Step
from hushtable.federation.online.site import OnlineSite
from hushtable.federation.result import Result

#: Steps in which the coordinator asks each site by a file of its own.
ASKED: tuple[Step, ...] = "survivors", "unmask", "without"


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

    def run(self) -> Visit:
        """Do what is to be done; raises `HushTableError` over what hinders the site itself."""
        visit = Visit()
        if self._result(visit):
            return visit
        if self.posts.stopped:
            return visit.end("failed", self.posts.stopped)
        self._send_again(visit)
        if not self._has_answered:
            return self._first(visit)
        asked = self._asked(visit)
        lead = self.posts.round.coordinator.name
        if not asked and not visit.posted:
            visit.say("Nothing is asked of this site now.")
        return visit.end("waiting", waits_for=[lead])

    @property
    def _has_answered(self) -> bool:
        return self.book.answer(self.posts.round.round_id) is not None

    # --- the first step -----------------------------------------------------------------------

    def _first(self, visit: Visit) -> Visit:
        posts, at = self.posts, now()
        if self.me.name in posts.amendment.dropped:
            why = f": {posts.amendment.why}" if posts.amendment.why else ""
            return visit.end("failed", f"The coordinator has dropped this site{why}.")
        if at > posts.round.deadline:
            return visit.end(
                "failed",
                f"The round ended on {shown_time(posts.round.deadline)}, and this site has not "
                "answered: ask the coordinator to extend it (hushtable round amend).",
            )
        if self.begin is None:
            return visit.end(
                "open", f"The rows are asked for, until {shown_time(posts.round.deadline)}."
            )
        for step, content in self.begin().items():
            self._add(visit, step, content)
        return visit.end("waiting", waits_for=[posts.round.coordinator.name])

    def _send_again(self, visit: Visit) -> None:
        """Put there again what the book says was sent, if it is not there whole."""
        given = self.book.answer(self.posts.round.round_id)
        if given is None or not given.content:
            return
        noted = self.book.step(self.posts.round.round_id, "shares")
        if noted is not None:
            self._add(visit, "shares", noted[1])
        self._add(visit, "masked" if self.posts.round.in_steps else "submission", given.content)
        for step in ASKED:
            noted = self.book.step(self.posts.round.round_id, step)
            if noted is not None:
                self._add(visit, step, noted[1])

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
        visit.say(
            f"Refused what {self.posts.round.coordinator.name} asks in step {step!r} "
            f"({Message.read(answer, self.me).body.get('word')}): the log beside the book says why."
        )

    # --- the result ---------------------------------------------------------------------------

    def _result(self, visit: Visit) -> bool:
        """Take the result, if it is there and is what it has to be; return whether it is."""
        posts = self.posts
        for name, content in posts.of("result", posts.round.coordinator.name):
            try:
                result = Result.of(files.unpack(content, name))
                result.check_round(posts.round)
                given = self.book.answer(posts.round.round_id)
                if given is not None and self.me.name in result.sites:
                    result.check_own(self.me.name, given.share, given.content)
            except HushTableError as error:
                posts.odd[name] = str(error)
                continue
            if not self.output.exists() or self.output.read_bytes() != content:
                files.write_bytes(self.output, content, private=False)
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
