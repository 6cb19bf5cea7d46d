"""Visits to a round in a folder: everything that a site or a coordinator can do at one time.

`Visit` is the outcome: a state of one word, its exit code, and messages. A site acts based only on
its book. The coordinator records each decision beside its keys before it sends requests based on
it, and keeps each valid answer until the result is there, so that no site can take one back. The
folder contains enough to continue on another machine: the same decisions give the same messages.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

from hushtable import files
from hushtable.counts.base import Noised
from hushtable.errors import HushTableError, RoundError
from hushtable_federation.book.book import Book
from hushtable_federation.clock import goes_on, keys_until, now
from hushtable_federation.describe import party_words
from hushtable_federation.folder.round_folder import (
    ASK,
    ASKED,
    HEAD,
    REFUSED,
    REQUESTS,
    RoundFolder,
)
from hushtable_federation.keys import Card, Keys
from hushtable_federation.online.secure_sum import Journal
from hushtable_federation.online.site import BEGINNING, OnlineSite
from hushtable_federation.protocol.messages import (
    Message,
    RoundKeys,
    Step,
    SumList,
    digest_of_content,
    read_passed_on,
)
from hushtable_federation.protocol.tally import Decisions, Tally, TooFewError
from hushtable_federation.refusals import Refusal
from hushtable_federation.result import Collection, Result
from hushtable_federation.round import Round, check_protocol
from hushtable_federation.state import MISSING, Phase, RoundState
from hushtable_federation.submission import signed_digest

State = Literal["waiting", "done", "act", "left-out", "over", "refused", "failed"]
#: States in which a party cannot continue a round, whatever command it runs.
STUCK: tuple[State, ...] = "over", "refused", "failed"
#: By phase, the state of a party that cannot do anything; in all others, it waits.
_OUTCOMES: dict[Phase, State] = {"failed": "failed", "short": "over"}


@dataclass
class Visit:
    """How a visit went.

    Attributes
    ----------
    posted : list of str
        Steps that this visit put into the folder.
    state : {"waiting", "done", "act", "left-out", "over", "refused", "failed"}
        Others have to act; the result is here; a person has to act; the result is, or will be,
        without this site; the deadline has passed, and it is too late or too few sites have
        answered; this site refused; the round cannot continue.
    waits_for : list of str
        Names of the parties whose files are awaited.
    words : list of str
        Messages for people of this party alone, in sentences, which may contain a value of a row.
    found_out : dict of str to str
        By site that cheated, what it did.
    needs_person : bool
        Whether a person has to do something that no further call does by itself. Always true in the
        state ``"act"``; in ``"left-out"``, until the site has seen the result.
    """

    posted: list[str] = field(default_factory=list)
    state: State = "waiting"
    waits_for: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    found_out: dict[str, str] = field(default_factory=dict)
    needs_person: bool = False
    _standing: list[str] = field(default_factory=list)

    def say(self, *words: str) -> "Visit":
        """Add sentences."""
        self.words += words
        return self

    def end(self, state: State, *words: str, waits_for: Sequence[str] = ()) -> "Visit":
        """Record the state at the end of the visit."""
        self.state = "act" if state == "waiting" and self.needs_person else state
        self.needs_person = self.state in ("act", "left-out")
        self.waits_for = list(waits_for)
        return self.say(*words)

    def conclude(
        self,
        state: RoundState,
        name: str,
        waits_for: Sequence[str],
        outcome: State | None = None,
    ) -> "Visit":
        """End the visit of a party as the round stands, in its words."""
        self.needs_person |= state.needs_person(name)
        self._standing = party_words(state, name)
        outcome = outcome or _OUTCOMES.get(state.phase, "waiting")
        return self.end(outcome, *self._standing, waits_for=waits_for)

    def after(self, other: "Visit") -> "Visit":
        """Add what the same party did just before, in its other role."""
        self.posted = other.posted + self.posted
        # How the round stands is stated once, as it is now.
        self.words = [word for word in other.words if word not in other._standing] + self.words
        if self.state in ("waiting", "done") and other.state not in ("waiting", "done"):
            self.state = "left-out" if other.state == "left-out" else "act"
            self.needs_person = other.needs_person or other.state in STUCK
        return self

    @property
    def exit_code(self) -> int:
        """Return the exit code of the command: 1 if stuck, 3 if a person has to act, else 0."""
        return 1 if self.state in STUCK else 3 if self.needs_person else 0


# --- of a site ------------------------------------------------------------------------------------

#: Steps that a site answers with messages; its counts have their own form.
MESSAGES: tuple[Step, ...] = "keys", "shares", *ASKED
#: Message about a book restored from a backup, or a second computer.
_OTHER = (
    "The folder has an answer that this site's keys signed, but this book does not know it: the "
    "book is an outdated copy, or another computer answers with the same keys. This command sends "
    "nothing with this book. Continue with the newest book only; if it is lost, make new keys, "
    "and ask for a new round."
)


@dataclass
class SiteVisit:
    """A site in a folder.

    Parameters
    ----------
    folder : RoundFolder
        The folder of the round.
    me : Card
        The site's.
    book : Book
        The site's.
    begin : callable
        Returns the first answer, by its step, as `OnlineSite.begin`; called if the site has not
        counted yet. None if no rows were given.
    online : OnlineSite
        Sends the counts, and answers requests.
    output : Path
        File to write the result to.
    """

    folder: RoundFolder
    me: Card
    book: Book
    begin: Callable[[], dict[str, bytes]] | None
    online: OnlineSite
    output: Path
    _has_head: bool = field(default=False, init=False)
    #: Whether something failed here, such as a full disk, so that the next visit may succeed.
    _is_unavailable: bool = field(default=False, init=False)

    def run(self) -> Visit:
        """Do the next steps; raise `HushTableError` for whatever stops the site itself."""
        visit = Visit()
        if self._result(visit):
            return visit
        if not self.folder.stopped:
            check_protocol(self.folder.round)
            if self._is_old:
                return visit.end("failed", _OTHER)
            self._send_again(visit)
            if self.book.answer(self.folder.round.round_id) is not None:
                self._help(visit)
            elif RoundState.of(self.folder, self.me.name).may_answer(self.me.name):
                self._answer(visit)
        self._conclude(visit)
        # The next visit may succeed.
        return visit.end("failed", waits_for=visit.waits_for) if self._is_unavailable else visit

    def _conclude(self, visit: Visit) -> None:
        state, name = RoundState.of(self.folder, self.me.name), self.me.name
        awaited = [site for site in state.waits_for if site != name]
        if any(name in task.who for task in state.tasks if task.deed in ("answer", "resolve")):
            awaited = [name]
        outcome: State | None = None
        if state.states[name] in ("dropped", "out"):
            outcome = "left-out"
        elif state.late and state.phase in ("counting", "closing"):
            outcome = "over" if state.states[name] in MISSING else None
        visit.conclude(state, name, awaited, outcome)

    @property
    def _counts(self) -> str:
        # The step of the counts, which have a form of their own.
        return "masked" if self.folder.round.terms.masked else "submission"

    @cached_property
    def _is_old(self) -> bool:
        # The folder has a file that this site signed and its book does not know: a head of the book
        # after an answer to any round in this folder, or an answer to
        # this round. All candidates are checked, whatever strangers add.
        return self._lacks_head() or any(map(self._lacks, (self._counts, *MESSAGES)))

    def _lacks_head(self) -> bool:
        known = {entry.link for entry in self.book.history()}
        for _, content in self.folder.heads(self.me):
            with contextlib.suppress(HushTableError):
                record = Message.read(content, self.me)
                if record.step == HEAD and record.body.get("head") not in known:
                    return True
                self._has_head |= record.round_id == self.folder.round.round_id
        return False

    def _lacks(self, step: str) -> bool:
        mine = self._noted(step)
        known = "", self._digest(step, mine)
        contents = self.folder.of(step, self.me.name, mine)
        return any(self._digest(step, content) not in known for _, content in contents)

    def _noted(self, step: str) -> bytes:
        """Return the answer to a step that is in the book; empty if there is none."""
        round_id = self.folder.round.round_id
        if step == self._counts:
            given = self.book.answer(round_id)
            return b"" if given is None else given.content
        noted = self.book.step(round_id, step)
        return b"" if noted is None else noted[1]

    def _digest(self, step: str, content: bytes) -> str:
        """Return the digest of an answer of this site to this step; empty for other files."""
        round_ = self.folder.round
        if step == self._counts:
            return signed_digest(content, round_, self.me)
        with contextlib.suppress(HushTableError):
            return Message.read(content, self.me).check(round_, step).digest
        return ""

    # --- the counts ---------------------------------------------------------------------------

    def _answer(self, visit: Visit) -> None:
        # Counts that cannot be in a sum are not sent, because they would cost budget anyway.
        round_ = self.folder.round
        if self.book.step(round_.round_id, "keys") is None:  # not counted yet
            if self.begin is None:
                return
            sent = self.begin()
            if not round_.terms.masked:
                self._send(visit, sent)
                return
            self._add(visit, "keys", sent["keys"])
        # The rows are not read again.
        if (keys := self._keys()) is not None:
            self._send(visit, self.online.send_counts(round_, keys))

    def _send(self, visit: Visit, sent: dict[str, bytes]) -> None:
        self._add_head()
        for step, content in sent.items():
            self._add(visit, step, content)

    def _keys(self) -> dict[str, bytes] | None:
        # These are the ones that the coordinator distributes, or those of all sites of the roster.
        folder, round_ = self.folder, self.folder.round

        def passed_on(_name: str, content: bytes) -> dict[str, bytes]:
            asked = Message.read(content, round_.coordinator).check(round_, "shares")
            return read_passed_on(round_, asked)

        for _, keys in folder.read(f"{ASK}shares", self.me.name, passed_on):
            return keys
        received = dict[str, bytes]()
        for name in round_.names:
            each = folder.read("keys", name, partial(_content_of_keys, round_, name))
            several = {digest: keys for _, (digest, keys) in each}
            if len(several) != 1:
                return None
            received[name] = several.popitem()[1]
        return received

    def _send_again(self, visit: Visit) -> None:
        has_answered = self.book.answer(self.folder.round.round_id) is not None
        if has_answered:
            self._add_head()
        for step in (*MESSAGES, self._counts):
            content = self._noted(step)
            if content and (has_answered or step == "keys"):
                self._add(visit, step, content)

    def _add_head(self) -> None:
        # This file, written before the answer, shows that the book holds it.
        if not self._has_head:
            self.folder.add(HEAD, self.me.name, self.online.head(self.folder.round))

    def _add(self, visit: Visit, step: str, content: bytes) -> None:
        if self.folder.add(step, self.me.name, content):
            visit.posted.append(step)

    # --- further steps ------------------------------------------------------------------------

    def _help(self, visit: Visit) -> None:
        folder, lists = self.folder, list[str]()
        for step in ASKED:
            refused = b""
            for _, message in folder.messages(ASK + step, self.me.name):
                lists += _listed(folder, message)
                if self.book.step(folder.round.round_id, step) is not None:
                    continue
                answer = self.online.answer(message.content, folder.round)
                if Message.read(answer, self.me).step == step:
                    self._add(visit, step, answer)
                else:
                    refused = answer
            # Perhaps it was a request to another site, under this one's name.
            if refused and self.book.step(folder.round.round_id, step) is None:
                self._refuse(visit, step, refused)
        if any(digests != lists[0] for digests in lists):
            visit.needs_person = True
            visit.say(
                f"{folder.round.coordinator.name} signed two different lists of the sites in the "
                "sum: this site answers only the first one that it saw. Two coordinators may be "
                "using one key: the round has to be opened again."
            )

    def _refuse(self, visit: Visit, step: Step, answer: bytes) -> None:
        self._add(visit, f"{REFUSED}-{step}", answer)
        word = Message.read(answer, self.me).body.get("word")
        self._is_unavailable |= word == Refusal.UNAVAILABLE
        visit.needs_person = True
        visit.say(
            f"Refused the request of {self.folder.round.coordinator.name} in step {step!r} "
            f"({word}): the log beside the book contains the reason."
        )

    # --- the result ---------------------------------------------------------------------------

    def _result(self, visit: Visit) -> bool:
        folder = self.folder
        for name, (content, result) in folder.results():
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
                f"The result of {len(result.sites)} sites, {part} this one, is verified and "
                f"written to {self.output}.",
            )
            visit.needs_person = is_new and not is_in
            return True
        return False


def _content_of_keys(round_: Round, site: str, _name: str, content: bytes) -> tuple[str, bytes]:
    keys = RoundKeys.read(round_, site, content)
    return keys.digest, keys.content


def _listed(folder: RoundFolder, message: Message) -> list[str]:
    record = {name: message.body[name] for name in ("sites", "others") if name in message.body}
    try:
        return [SumList.of(folder.round, record).digest(folder.round)] if record else []
    except HushTableError:  # the site refuses it
        return []


# --- of a coordinator -----------------------------------------------------------------------------


@dataclass
class CoordinatorVisit:
    """A coordinator in a folder.

    Parameters
    ----------
    folder : RoundFolder
        The folder of the round.
    keys : Keys
        The coordinator's.
    journal : Path
        File that records its decisions; answers are in the folder of its name without the suffix.
    output : Path
        File to write the result to.
    """

    folder: RoundFolder
    keys: Keys
    journal: Path
    output: Path

    @property
    def _journal(self) -> Journal:
        return Journal(self.journal, self.folder.round)

    def run(self) -> Visit:
        """Do the next steps; raise `HushTableError` if another process is doing so."""
        with files.locked(self.journal):
            visit = Visit()
            if self._done(visit):
                return visit
            if self.folder.stopped:
                return self._wait(visit)
            self._keep_amendment()
            if not self.folder.round.terms.masked:
                return self._collect(visit)
            check_protocol(self.folder.round)
            return self._steps(visit)

    # --- in steps -----------------------------------------------------------------------------

    def _steps(self, visit: Visit) -> Visit:
        tally = Tally(self.folder.round, self.keys, self._decided())
        for step in (*BEGINNING, *ASKED):
            self._read(tally, step)
        tally.drop(self.folder.amendment.dropped)
        visit.found_out = tally.found_out
        decided = bool(tally.listed.sites)
        if not decided and not (self._has_keys(tally, visit) and self._closes(tally, visit)):
            return visit
        if lacking := tally.lacking:
            words = (
                "These sites are in the sum, but their files are missing from the folder or "
                "incomplete. Each site writes its file again when it runs hushtable round sync."
            )
            if now() <= goes_on(self.folder.round.deadline):
                return self._wait(visit, lacking, words)
            words += " Otherwise open another round, without them."
            return visit.end("failed", words, waits_for=lacking)
        self._ask("survivors", tally, visit)
        return self._sum(tally, visit)

    def _ask(self, step: Step, tally: Tally, visit: Visit) -> None:
        # Files of others must not change a request.
        requests = tally.advance((), now(), step)
        self._journal.decide(tally.decided)
        for name, content in requests.items():
            if not any(self.folder.messages(ASK + step, name)) and self.folder.add(
                ASK + step, name, content
            ):
                visit.posted.append(ASK + step)

    def _wait(self, visit: Visit, awaited: Sequence[str] = (), *words: str) -> Visit:
        state = RoundState.of(self.folder, self.keys.card.name, visit.found_out)
        return visit.say(*words).conclude(state, state.lead, awaited)

    def _read(self, tally: Tally, step: Step) -> None:
        journal = self._journal
        for sender in self.folder.round.names:
            kept = journal.answer(step, sender)
            if kept and tally.take(step, sender, kept, now()):
                kept = b""

            def taken(_name: str, content: bytes, step: Step = step, site: str = sender) -> bytes:
                tally.add(step, site, content, now())
                return content

            for _, content in self.folder.read(step, sender, taken, kept):
                if not kept:
                    journal.keep(step, sender, content)
                    kept = content

    def _has_keys(self, tally: Tally, visit: Visit) -> bool:
        # If all sites have drawn a key, they notice that by themselves, and no request is needed,
        # unless a site has changed its key since.
        round_, left = self.folder.round, self.folder.left()
        if not tally.decided.keys:
            missing = [name for name in left if name not in tally.drawn]
            few = len(tally.drawn) < round_.needed
            early = now() <= keys_until(round_.opened, round_.deadline)
            over = now() > goes_on(round_.deadline) or len(left) < round_.needed
            if few or (missing and early and not over):
                self._wait(visit, missing)
                return False
            tally.close_keys()
            self._journal.decide(tally.decided)
        present = [name for name in round_.names if any(self.folder.of("keys", name))]
        if tally.found_out or not set(tally.decided.keys) == set(present) == set(round_.names):
            self._ask("shares", tally, visit)
        return True

    def _closes(self, tally: Tally, visit: Visit) -> bool:
        round_ = self.folder.round
        left = [name for name in self.folder.left() if name in tally.decided.keys]
        missing = [name for name in left if name not in tally.present]
        over, least = now() > goes_on(round_.deadline), round_.needed
        can_wait = missing and not over and len(tally.present) + len(missing) >= least
        if can_wait or len(tally.present) < least:
            self._wait(visit, missing)
            return False
        return True

    def _sum(self, tally: Tally, visit: Visit) -> Visit:
        n, least = len(tally.signed), self.folder.round.needed
        try:
            if not tally.whole and n < least and not tally.disputed:
                awaited = sorted(set(tally.listed.sites) - set(tally.signed))
                return self._wait(visit, awaited)
            self._ask("unmask", tally, visit)
            n = len(tally.helped)
            if n < least and not tally.disputed:
                return self._wait(visit, tally.awaited)
            result = tally.result(lambda name: self._journal.answer("masked", name))
        except TooFewError as error:
            if tally.awaited:
                return self._wait(visit, tally.awaited, str(error))
            return visit.end("failed", str(error))
        except RoundError as error:
            return visit.end("failed", str(error))
        return self._publish(result, visit)

    # --- by submissions alone -----------------------------------------------------------------

    def _collect(self, visit: Visit) -> Visit:
        round_, collection = self.folder.round, Collection(self.folder.round)
        for sender in self.folder.left():
            for name, content in self.folder.of("submission", sender):
                collection.add(name, content)
        for name, why in collection.refused:
            self.folder.refuse(name, why)
        missing = [name for name in collection.missing if name in self.folder.left()]
        over = now() > goes_on(round_.deadline)
        if len(collection.accepted) < round_.needed or (missing and not over):
            return self._wait(visit, missing)
        try:
            result = collection.result(self.keys)
        except RoundError as error:
            return visit.end("failed", str(error), waits_for=missing)
        return self._publish(result, visit)

    # --- the result ---------------------------------------------------------------------------

    def _publish(self, result: Noised, visit: Visit) -> Visit:
        result.save(self.output)
        content = self.output.read_bytes()
        self.folder.add("result", self.keys.card.name, content)
        visit.posted.append("result")
        return self._end(visit, Result.of(files.unpack(content, self.output)))

    def _done(self, visit: Visit) -> bool:
        if self.output.exists():  # write again what was lost from the folder
            with contextlib.suppress(HushTableError):  # another file of that name
                content = self.output.read_bytes()
                Result.of(files.unpack(content, self.output)).check_round(self.folder.round)
                self.folder.add("result", self.keys.card.name, content)
        for _, (content, result) in self.folder.results():
            if not self.output.exists():
                files.write_bytes(self.output, content, private=False)
            self._end(visit, result)
            return True
        return False

    def _end(self, visit: Visit, result: Result) -> Visit:
        self._journal.forget()
        out = [name for name in self.folder.round.names if name not in result.sites]
        without = f" Without {', '.join(out)}." if out else ""
        return visit.end(
            "done", f"Wrote the result of {len(result.sites)} sites to {self.output}.{without}"
        )

    # --- decisions ----------------------------------------------------------------------------

    def _decided(self) -> Decisions:
        noted = self._journal.decided()
        for step in REQUESTS:
            for site in self.folder.round.names:
                for name, message in self.folder.messages(ASK + step, site):
                    self._agree(noted, _decided_by(self.folder.round, message), name)
        return noted

    def _agree(self, noted: Decisions, other: Decisions, name: str) -> None:
        none = Decisions()
        for part in ("keys", "listed", "signed"):
            mine, theirs, empty = (getattr(decisions, part) for decisions in (noted, other, none))
            if part != "signed" and empty not in (mine, theirs) and mine != theirs:
                raise RoundError(
                    f"{name} is a request with decisions that differ from those in {self.journal}: "
                    "two coordinators are using one key. Sites answer only the first; find the "
                    "other one, and open a new round"
                )
            setattr(noted, part, theirs if mine == empty else mine)

    def _keep_amendment(self) -> None:
        # Without the amendment beside the decisions, late answers would not count.
        kept, made = self.journal.with_suffix(".amendment.hush"), self.folder.amendment
        if kept.exists():
            self.folder.put_again(kept.read_bytes())
        if made.number and made == self.folder.amendment:
            content = made.message(self.folder.round, self.keys)
            if not kept.exists() or kept.read_bytes() != content:
                files.write_bytes(kept, content)


def _decided_by(round_: Round, message: Message) -> Decisions:
    body = message.body
    if message.step == "shares":
        keys = read_passed_on(round_, message)
        return Decisions(keys={name: digest_of_content(content) for name, content in keys.items()})
    if "sites" in body:
        record = {name: body.get(name) for name in ("sites", "others")}
        return Decisions(listed=SumList.of(round_, record))
    return Decisions(signed=body.get("signed", {}))
