"""A visit to a round in a folder: all that a site or the coordinator does at a time.

A site does whatever is next from its book alone. All that a coordinator decides is written down
beside its keys before it is asked by. What lies in the folder is enough to go on from elsewhere:
the same messages are made of the same decisions.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hushtable import files
from hushtable.counts.base import Noised
from hushtable.errors import HushTableError, RoundError
from hushtable_federation.book.book import Book
from hushtable_federation.clock import goes_on, now, shown_time
from hushtable_federation.folder.progress import shortage
from hushtable_federation.folder.round_folder import ASK, ASKED, HEAD, REFUSED, RoundFolder
from hushtable_federation.keys import Card, Keys
from hushtable_federation.online.messages import Message, Step, unclosed
from hushtable_federation.online.site import BEGINNING, OnlineSite
from hushtable_federation.online.tally import Decisions, Tally, read_decided, write_decided
from hushtable_federation.refusals import Refusal
from hushtable_federation.result import Collection, Result
from hushtable_federation.submission import signed_digest
from hushtable_federation.visit import State, Visit

_HAVE: dict[Step, str] = {
    "survivors": "signed the list of who is in the sum",
    "unmask": "helped to take the masks off the sum",
    "without": "helped to leave out who was found out",
}


@dataclass
class CoordinatorVisit:
    """A coordinator in a folder.

    Parameters
    ----------
    folder : RoundFolder
        Of the round.
    keys : Keys
        The coordinator's.
    journal : Path
        Where its decisions are written down.
    output : Path
        Where the result goes.
    """

    folder: RoundFolder
    keys: Keys
    journal: Path
    output: Path

    def run(self) -> Visit:
        """Do what is to be done; raises `HushTableError` if another process is at it."""
        with files.locked(self.journal):
            visit = Visit()
            if self._done(visit):
                return visit
            if self.folder.stopped:
                return visit.end("failed", self.folder.stopped)
            self._keep_amendment()
            if not self.folder.round.terms.masked:
                return self._collect(visit)
            return self._steps(visit)

    # --- in steps -----------------------------------------------------------------------------

    def _steps(self, visit: Visit) -> Visit:
        tally = Tally(self.folder.round, self.keys, self._decided(), with_round=False)
        for step in (*BEGINNING, *ASKED):
            self._read(tally, step)
        tally.drop(self.folder.amendment.dropped)
        if not tally.listed and not self._closes(tally, visit):
            return visit
        lacking = sorted(set(tally.listed) - set(tally.present))
        if lacking:
            return self._wait(
                visit,
                lacking,
                "What these sites sent is decided to be in the sum, and is not in the folder (any "
                "more), or not whole: each puts it there again when it calls hushtable round sync.",
            )
        tally.go_on()
        write_decided(self.journal, self.folder.round, tally.decided)
        for step in ASKED:
            if step != "survivors" or not tally.whole:
                self._ask(step, tally, visit)
        return self._sum(tally, visit)

    def _ask(self, step: Step, tally: Tally, visit: Visit) -> None:
        """Ask whom nobody has asked yet: what others put there must not change what is asked."""
        for name, content in tally.requests(step).items():
            if not any(self.folder.requests(step, name)) and self.folder.add(
                ASK + step, name, content
            ):
                visit.posted.append(ASK + step)

    def _wait(self, visit: Visit, awaited: list[str], *words: str, step: str = "") -> Visit:
        """Wait for sites; say which of them refused a step, by default to begin."""
        for name in awaited:
            word = self.folder.refused(name, step and f"-{step}")
            if word:
                visit.needs_person = True
                visit.say(
                    f"{name} refused ({word}): its log says why. It may still answer; ask it."
                )
        return visit.end("waiting", *words, waits_for=awaited)

    def _await(self, visit: Visit, missing: list[str], n_in: int) -> Visit:
        """Wait for answers; too late for more, a person has to extend the round."""
        round_ = self.folder.round
        if now() > round_.deadline and n_in < round_.needed:
            visit.needs_person = True
            visit.say(
                f"{n_in} sites have answered, and {round_.needed} are needed: extend the round "
                "(hushtable round amend --days)."
            )
        return self._wait(visit, missing)

    def _read(self, tally: Tally, step: Step) -> None:
        for sender in self.folder.there(step):
            if sender not in self.folder.round.names:
                continue
            for name, content in self.folder.of(step, sender):
                try:
                    tally.add(step, sender, content)
                except HushTableError as error:
                    self.folder.refuse(name, str(error))

    def _closes(self, tally: Tally, visit: Visit) -> bool:
        """Decide who is in the sum if it is time; return whether that is decided."""
        round_, left = self.folder.round, self.folder.left()
        missing = [name for name in left if name not in tally.present]
        over, least = now() > goes_on(round_.deadline), round_.needed
        for name in sorted(set(tally.twice) & set(left)):
            visit.needs_person = True
            visit.say(
                f"{name} {tally.twice[name]}: neither counts. Go on without it (hushtable round "
                f"amend --drop {name}), and ask which of its books is the newest."
            )
        if missing and not over and len(tally.present) + len(missing) >= least:
            self._await(visit, missing, len(tally.present))
            return False
        if len(tally.present) < least:
            visit.end(
                "over" if len(left) >= least else "failed",
                f"{len(tally.present)} sites have answered, and {least} are needed: "
                "nothing can be read of what they sent. "
                + (
                    "Extend the round (hushtable round amend --days), or open another."
                    if len(left) >= least
                    else f"Only {len(left)} are left: open another round."
                ),
                waits_for=missing,
            )
            return False
        tally.close()
        return True

    def _sum(self, tally: Tally, visit: Visit) -> Visit:
        step: Step = "unmask" if tally.whole or tally.decided.signers else "survivors"
        step = "without" if tally.without else step
        awaited = sorted(set(tally.listed) - set(tally.answers[step]) - set(tally.without))
        visit.found_out = tally.found_out
        n, least = len(tally.answers[step]), self.folder.round.needed
        if step == "survivors" or n < least:
            words = f"{n} of at least {least} sites have {_HAVE[step]}."
            return self._wait(visit, awaited, words, step=step)
        try:
            result = tally.result()
        except RoundError as error:
            visit.found_out = tally.found_out
            return visit.end("waiting" if awaited else "failed", str(error), waits_for=awaited)
        visit.found_out = tally.found_out
        return self._publish(result, visit)

    # --- by submissions alone -----------------------------------------------------------------

    def _collect(self, visit: Visit) -> Visit:
        round_, collection = self.folder.round, Collection(self.folder.round)
        dropped = self.folder.amendment.dropped
        for sender in self.folder.there("submission"):
            for name, content in self.folder.of("submission", sender):
                if sender not in dropped:
                    collection.add(name, content)
        self.folder.odd |= dict(collection.refused)
        missing = [name for name in collection.missing if name not in dropped]
        over = now() > goes_on(round_.deadline)
        n_in = len(round_.names) - len(collection.missing)
        if missing and not over:
            return self._await(visit, missing, n_in)
        try:
            result = collection.result(self.keys)
        except RoundError as error:
            is_short = n_in < round_.needed <= len(self.folder.left())
            return visit.end("over" if is_short else "failed", str(error), waits_for=missing)
        return self._publish(result, visit)

    # --- the result ---------------------------------------------------------------------------

    def _publish(self, result: Noised, visit: Visit) -> Visit:
        result.save(self.output)
        content = self.output.read_bytes()
        self.folder.add("result", self.keys.card.name, content)
        visit.posted.append("result")
        return self._end(visit, Result.of(files.unpack(content, self.output)))

    def _done(self, visit: Visit) -> bool:
        if self.output.exists():  # what got lost in the folder is put there again
            with contextlib.suppress(HushTableError):  # another file of that name
                content = self.output.read_bytes()
                Result.of(files.unpack(content, self.output)).check_round(self.folder.round)
                self.folder.add("result", self.keys.card.name, content)
        for _, content, result in self.folder.results():
            if not self.output.exists():
                files.write_bytes(self.output, content, private=False)
            self._end(visit, result)
            return True
        return False

    def _end(self, visit: Visit, result: Result) -> Visit:
        out = [name for name in self.folder.round.names if name not in result.sites]
        without = f" Without {', '.join(out)}." if out else ""
        return visit.end(
            "done", f"The result of {len(result.sites)} sites is written as {self.output}.{without}"
        )

    # --- decisions ----------------------------------------------------------------------------

    def _decided(self) -> Decisions:
        """Return what was decided before: here, or as the requests in the folder show it."""
        noted = Decisions()
        if self.journal.exists():
            noted = read_decided(self.journal, self.folder.round)
        for step in ASKED:
            for site in self.folder.there(ASK + step):
                for name, message in self.folder.requests(step, site):
                    self._agree(noted, _decided_by(message), name)
        return noted

    def _agree(self, noted: Decisions, other: Decisions, name: str) -> None:
        """Take over what a request shows of decisions; raise if they are others."""
        for part, record in vars(other).items():
            mine = getattr(noted, part)
            if not mine:
                setattr(noted, part, record)
            elif record and record != mine and part in ("sites", "without"):
                raise RoundError(
                    f"{name} asks by other decisions than those of {self.journal}: two "
                    "coordinators are at work with one key. Sites answer the first alone; find the "
                    "other, and open a new round"
                )

    def _keep_amendment(self) -> None:
        """Keep what holds beside the decisions: without it, late answers would not count."""
        kept, made = self.journal.with_suffix(".amendment.hush"), self.folder.amendment
        if kept.exists():
            self.folder.put_again(kept.read_bytes())
        if made.number and made == self.folder.amendment:
            content = made.message(self.folder.round, self.keys)
            if not kept.exists() or kept.read_bytes() != content:
                files.write_bytes(kept, content)


def _decided_by(message: Message) -> Decisions:
    """Return what a request shows of decisions."""
    body, names = message.body, sorted(unclosed(message))
    if "sites" in body:
        return Decisions(sites=body["sites"])
    if message.step == "unmask":
        return Decisions(signers=names)
    return Decisions(without=body["without"], shown=[name for name in names if "/" not in name])


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
    folder : RoundFolder
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

    folder: RoundFolder
    me: Card
    book: Book
    begin: Callable[[], dict[str, bytes]] | None
    online: OnlineSite
    output: Path
    _has_head: bool = field(default=False, init=False)
    #: Whether something failed here, such as a full disk: the next visit may do better.
    _is_unavailable: bool = field(default=False, init=False)

    def run(self) -> Visit:
        """Do what is to be done; raises `HushTableError` over what hinders the site itself."""
        visit = Visit()
        if self._result(visit):
            return visit
        if self.folder.stopped:
            return visit.end("failed", self.folder.stopped)
        if self._is_old:
            return visit.end("failed", _OTHER)
        self._send_again(visit)
        if not self._has_answered:
            return self._first(visit)
        asked = self._asked(visit)
        lead = self.folder.round.coordinator.name
        if not self.folder.decided:
            if self._is_dropped:
                return visit.end("left-out", f"{lead} goes on without this site{self._why}.")
            if (short := shortage(self.folder)) is not None:
                return visit.end(*short, waits_for=[lead])
        if not asked and not visit.posted:
            visit.say("Nothing is asked of this site now.")
        return visit.end("failed" if self._is_unavailable else "waiting", waits_for=[lead])

    @property
    def _has_answered(self) -> bool:
        return self.book.answer(self.folder.round.round_id) is not None

    @property
    def _is_dropped(self) -> bool:
        return self.me.name in self.folder.amendment.dropped

    @property
    def _why(self) -> str:
        """Why it is dropped, as the end of a sentence."""
        return f": {self.folder.amendment.why}" if self.folder.amendment.why else ""

    @property
    def _step(self) -> str:
        """In whose files the counts lie."""
        return "masked" if self.folder.round.terms.masked else "submission"

    @cached_property
    def _is_old(self) -> bool:
        """Whether something lies there that this site signed, and its book does not know.

        That is a head of the book, with an answer to any round in this folder; or an answer to
        this one. It is looked for to the end, whatever strangers put beside it.
        """
        return self._lacks_head() or self._lacks_counts() or any(map(self._lacks, MESSAGES))

    def _lacks_head(self) -> bool:
        known = {entry.link for entry in self.book.history()}
        for _, content in self.folder.heads(self.me):
            with contextlib.suppress(HushTableError):
                record = Message.read(content, self.me)
                if record.step == HEAD and record.body.get("head") not in known:
                    return True
                self._has_head |= record.round_id == self.folder.round.round_id
        return False

    def _lacks_counts(self) -> bool:
        given = self.book.answer(self.folder.round.round_id)
        mine, round_ = b"" if given is None else given.content, self.folder.round
        known = "", signed_digest(mine, round_, self.me) if mine else ""
        found = self.folder.of(self._step, self.me.name, mine)
        return any(signed_digest(content, round_, self.me) not in known for _, content in found)

    def _lacks(self, step: Step) -> bool:
        round_ = self.folder.round
        noted = self.book.step(round_.round_id, step)
        mine = b"" if noted is None else noted[1]
        for _, content in self.folder.of(step, self.me.name, mine):
            with contextlib.suppress(HushTableError):
                digest = Message.read(content, self.me).check(round_, step).digest
                if not mine or digest != Message.read(mine, self.me).digest:
                    return True
        return False

    # --- the first step -----------------------------------------------------------------------

    def _hindered(self) -> tuple[State, str] | None:
        """Return why this site cannot begin, as a state and in a sentence; None if it can.

        What can be in no sum is not sent: it would be paid for all the same.
        """
        folder = self.folder
        if self._is_dropped:
            return "left-out", f"The coordinator has dropped this site{self._why}."
        if len(folder.left()) < folder.round.needed:
            return "failed", (
                f"Only {len(folder.left())} sites are left, and {folder.round.needed} are needed: "
                "nothing is sent. Ask the coordinator for another round."
            )
        if folder.decided:
            return "left-out", (
                "It is decided already who is in the sum, and this site is not: nothing was sent, "
                "and nothing spent. The result will be there for it as well."
            )
        if now() > folder.round.deadline:
            return "over", (
                f"The round ended on {shown_time(folder.round.deadline)}, and this site has not "
                f"answered; by this machine's clock, it is {shown_time(now())}. Check the clock, "
                "or ask the coordinator to extend the round (hushtable round amend)."
            )
        return None

    def _first(self, visit: Visit) -> Visit:
        folder, hindered = self.folder, self._hindered()
        if hindered is not None:
            return visit.end(*hindered)
        if self.begin is None:
            until = shown_time(folder.round.deadline)
            words = f"The rows are asked for, until {until}."
            return visit.end("act", words, waits_for=[self.me.name])
        sent = self.begin()
        self._add_head()
        for step, content in sent.items():
            self._add(visit, step, content)
        return visit.end("waiting", waits_for=[folder.round.coordinator.name])

    def _send_again(self, visit: Visit) -> None:
        """Put there again what the book says was sent, if it is not there whole."""
        given = self.book.answer(self.folder.round.round_id)
        if given is None:
            return
        self._add_head()
        noted = self.book.step(self.folder.round.round_id, "shares")
        if noted is not None:
            self._add(visit, "shares", noted[1])
        self._add(visit, self._step, given.content)
        for step in ASKED:
            noted = self.book.step(self.folder.round.round_id, step)
            if noted is not None:
                self._add(visit, step, noted[1])

    def _add_head(self) -> None:
        """Put there, before the answer, that the book holds it: an older copy shows by that."""
        if not self._has_head:
            self.folder.add(HEAD, self.me.name, self.online.head(self.folder.round))

    def _add(self, visit: Visit, step: str, content: bytes) -> None:
        if self.folder.add(step, self.me.name, content):
            visit.posted.append(step)

    # --- further steps ------------------------------------------------------------------------

    def _asked(self, visit: Visit) -> bool:
        """Answer what is asked of this site; return whether there was anything."""
        folder, answered, lists = self.folder, False, []
        for step in ASKED:
            refused = b""
            for _, message in folder.requests(step, self.me.name):
                lists += [message.body["sites"]] if "sites" in message.body else []
                if self.book.step(folder.round.round_id, step) is not None:
                    continue
                answer = self.online.answer(message.content, folder.round)
                if Message.read(answer, self.me).step == step:
                    self._add(visit, step, answer)
                    answered = True
                else:
                    refused = answer
            # Perhaps it was what another site is asked, under this one's name.
            if refused and self.book.step(folder.round.round_id, step) is None:
                self._refuse(visit, step, refused)
        if any(one != lists[0] for one in lists):
            visit.needs_person = True
            visit.say(
                f"{folder.round.coordinator.name} signed two different lists of who is in the sum: "
                "this site answers the first that it saw, and no other. Two coordinators may be at "
                "work with one key: the round needs to be opened anew."
            )
        return answered

    def _refuse(self, visit: Visit, step: Step, answer: bytes) -> None:
        self._add(visit, f"{REFUSED}-{step}", answer)
        word = Message.read(answer, self.me).body.get("word")
        self._is_unavailable |= word == Refusal.UNAVAILABLE
        visit.needs_person = True
        visit.say(
            f"Refused what {self.folder.round.coordinator.name} asks in step {step!r} "
            f"({word}): the log beside the book says why."
        )

    # --- the result ---------------------------------------------------------------------------

    def _result(self, visit: Visit) -> bool:
        """Take the result, if it is there and is what it has to be; return whether it is."""
        folder = self.folder
        for name, content, result in folder.results():
            given = self.book.answer(folder.round.round_id)
            try:
                if given is not None and self.me.name in result.sites:
                    result.check_own(self.me.name, given.share, given.content)
            except HushTableError as error:
                folder.refuse(name, _OTHER if self._is_old else str(error))
                continue
            if not self.output.exists() or self.output.read_bytes() != content:
                files.write_bytes(self.output, content, private=False)
            is_new = self.book.verified(result.seal.digest) is None
            is_in = self.me.name in result.sites
            self.book.note_verified(result.seal.digest, folder.round.round_id)
            self.book.forget_steps(folder.round.round_id)
            part = "with" if is_in else "without"
            visit.end(
                "done" if is_in else "left-out",
                f"The result of {len(result.sites)} sites is here, {part} this one: verified, and "
                f"written as {self.output}.",
            )
            visit.needs_person = is_new and not is_in
            return True
        return False
