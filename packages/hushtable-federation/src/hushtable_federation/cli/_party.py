"""A party in a folder of rounds, as the command line has it: coordinator, site, or both."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hushtable.counts.sketch import Sketch
from hushtable.errors import HushTableError, UsageError
from hushtable.plans.plan import Plan
from hushtable_federation import trusting
from hushtable_federation.approval import Approval
from hushtable_federation.book.book import Book
from hushtable_federation.cli import _common as common
from hushtable_federation.cli._answering import Answers, Counting, confirm
from hushtable_federation.clock import now, stamp
from hushtable_federation.folder.coordinator import CoordinatorVisit
from hushtable_federation.folder.posts import REFUSED, Posts
from hushtable_federation.folder.site import SiteVisit
from hushtable_federation.folder.store import Store
from hushtable_federation.folder.visits import Visit
from hushtable_federation.keys import Keys
from hushtable_federation.online.journal import path_of
from hushtable_federation.online.messages import Message
from hushtable_federation.online.site import OnlineSite
from hushtable_federation.refusals import Refusal, SiteLog
from hushtable_federation.round import Round
from hushtable_federation.site import Reply


@dataclass
class Party:
    """Whoever calls: coordinator, site, or both."""

    store: Store
    keys: Keys
    key: Path
    output: Path
    answers: Answers
    counting: Counting | None
    quiet: bool
    unattended: bool

    def takes_part(self, round_: Round, which: str | None) -> bool:
        """Whether this is one of this party's rounds, and the one that is asked for."""
        mine = self.keys.card == round_.coordinator or self.keys.card in round_.sites
        return mine and round_.round_id.startswith((which or "").lower())

    def visit(self, round_: Round, *, alone: bool = True) -> tuple[Posts, Visit]:
        """Do what is to be done in a round; unless it is ``alone``, it hinders no other by errors.

        What hinders a folder as a whole is raised all the same.
        """
        posts = Posts(round_, self.store)
        try:
            return posts, self._visit(posts)
        except HushTableError as error:
            if alone:
                raise
            return posts, Visit().end("failed", str(error))

    def _visit(self, posts: Posts) -> Visit:
        round_ = posts.round
        result = self.output / result_name(round_)
        visit = Visit()
        if self.keys.card in round_.sites:
            with Book.open(
                common.book_beside(self.key, self.answers.book), self.keys.card
            ) as notes:
                visit = self._as_site(posts, notes, result)
        if self.keys.card == round_.coordinator:
            journal = path_of(self.key, round_)
            before, visit = visit, CoordinatorVisit(posts, self.keys, journal, result).run()
            visit.posted, visit.words = before.posted + visit.posted, before.words + visit.words
            visit.needs_person |= before.needs_person or before.state == "failed"
        return visit

    # --- as a site ----------------------------------------------------------------------------

    def _as_site(self, posts: Posts, notes: Book, result: Path) -> Visit:
        if self.answers.trust:
            trusting.trust(notes, posts.round, common.cards(self.answers.trust), "card")
        about = self.answers.about(self.key, attended=not self.unattended)
        answering = _Answering(self, posts, notes, self.answers.approved, about)
        begin = None if self.counting is None else partial(answering.begin, self.counting)
        site = SiteVisit(posts, self.keys.card, notes, begin, answering.online(), result)
        try:
            return site.run()
        except HushTableError as error:
            if not self.unattended:
                raise
            word = Refusal(error.word or Refusal.UNAVAILABLE)
            posts.add(REFUSED, self.keys.card.name, answering.refusal(word, str(error)))
            return Visit().end("failed", f"Refused ({word}): {error}")


@dataclass
class _Answering:
    """A site that answers one round."""

    party: Party
    posts: Posts
    notes: Book
    approved: Approval | None
    about: dict[str, Any]

    def online(self, count: Any = None, recognise: Any = lambda: None) -> OnlineSite:
        """Return what answers steps; ``count`` and ``recognise`` where rows are given."""
        approvals = {} if self.approved is None else {self.approved.round_id: self.approved}
        return OnlineSite(
            self.party.keys, self.notes, count or _no_rows, recognise=recognise,
            approvals=approvals, said=self.party.answers.said, **self.about,
        )  # fmt: skip

    def begin(self, counting: Counting) -> dict[str, bytes]:
        """Show the round, ask whoever is here, count the rows; return what is sent, by step."""
        asked, said, party = self.posts.round, self.party.answers.said, self.party
        reply = Reply(asked, party.keys, self.notes, approval=self.approved, **self.about)
        counting.check(reply, said.new_people)
        reader = counting.open(reply.plan)
        if not self.party.unattended:
            confirm(reply, show=not party.quiet, ask=not party.answers.yes)
        if asked.in_steps:
            online = self.online(lambda _: counting.count(reply, reader), counting.seen)
            sent = {str(step): one for step, one in online.begin(asked).items()}
        else:
            counted = counting.count(reply, reader)
            for words in counted.unread:
                self._log.write(stamp(now()), asked.round_id, "submission", "unread", words)
            sent = {"submission": reply.submission(counted, rows=counting.seen(), **said._asdict())}
        if not party.quiet:
            counting.report(reply, counting.nameless(reply))
        return sent

    @property
    def _log(self) -> SiteLog:
        return SiteLog(Path(self.notes.path).with_suffix(".log"))

    def refusal(self, word: Refusal, words: str) -> bytes:
        """Return the one word that travels; the words go to the log beside the book."""
        round_id = self.posts.round.round_id
        self._log.write(stamp(now()), round_id, "begin", word, words)
        return Message.refuse(round_id, self.party.keys, word)


def result_name(round_: Round) -> str:
    """Return the name of the file of a round's result."""
    return f"{round_.round_id[:12]}.result.hush"


def _no_rows(_: Plan) -> Sketch:
    raise UsageError("no rows are given: name them (hushtable round sync FOLDER DATA)")
