"""A visit of a site to a round in a folder: the next steps, based only on its book."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hushtable import files
from hushtable.errors import HushTableError
from hushtable_federation.book.book import Book
from hushtable_federation.folder.round_folder import (
    ASKED,
    HEAD,
    REFUSED,
    RoundFolder,
)
from hushtable_federation.keys import Card
from hushtable_federation.online.site import OnlineSite
from hushtable_federation.protocol.messages import Message, RoundKeys, Step, SumList, read_passed_on
from hushtable_federation.refusals import Refusal
from hushtable_federation.round import check_protocol
from hushtable_federation.state import RoundState
from hushtable_federation.submission import signed_digest
from hushtable_federation.visits import Visit

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
        visit.conclude(RoundState.of(self.folder, self.me.name), self.me.name)
        # The next visit may succeed.
        return visit.end("failed", waits_for=visit.waits_for) if self._is_unavailable else visit

    @property
    def _step(self) -> str:
        return "masked" if self.folder.round.terms.masked else "submission"

    @cached_property
    def _is_old(self) -> bool:
        # The folder has a file that this site signed and its book does not know: a head of the book
        # after an answer to any round in this folder, or an answer to
        # this round. All candidates are checked, whatever strangers add.
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
        folder = self.folder
        for name, message in folder.requests("shares", self.me.name):
            try:
                return read_passed_on(folder.round, message)
            except HushTableError as error:
                folder.refuse(name, str(error))
        found = dict[str, bytes]()
        for name in folder.round.names:
            several = dict[str, bytes]()
            for file, content in folder.of("keys", name):
                try:
                    keys = RoundKeys.read(folder.round, name, content)
                    several[keys.digest] = keys.content
                except HushTableError as error:
                    folder.refuse(file, str(error))
            if len(several) != 1:
                return None
            found[name] = several.popitem()[1]
        return found

    def _send_again(self, visit: Visit) -> None:
        given = self.book.answer(self.folder.round.round_id)
        noted = {step: self.book.step(self.folder.round.round_id, step) for step in MESSAGES}
        if given is not None:
            self._add_head()
        for step, one in noted.items():
            if one is not None and (given is not None or step == "keys"):
                self._add(visit, step, one[1])
        if given is not None:
            self._add(visit, self._step, given.content)

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
            for _, message in folder.requests(step, self.me.name):
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
        if any(one != lists[0] for one in lists):
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
                f"The result of {len(result.sites)} sites, {part} this one, is verified and "
                f"written to {self.output}.",
            )
            visit.needs_person = is_new and not is_in
            return True
        return False


def _listed(folder: RoundFolder, message: Message) -> list[str]:
    record = {name: message.body[name] for name in ("sites", "others") if name in message.body}
    try:
        return [SumList.of(folder.round, record).digest(folder.round)] if record else []
    except HushTableError:  # the site refuses it
        return []
