"""A visit of the coordinator to a round in a folder: everything that it can do at one time.

The coordinator records each decision beside its keys before it sends requests based on it, and
keeps each valid answer until the result is there, so that no site can take one back. The folder
contains enough to continue on another machine: the same decisions give the same messages.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hushtable import files
from hushtable.counts.base import Noised
from hushtable.errors import HushTableError, RoundError
from hushtable_federation.clock import goes_on, keys_until, now
from hushtable_federation.folder.round_folder import (
    ASK,
    ASKED,
    REQUESTS,
    RoundFolder,
)
from hushtable_federation.keys import Keys
from hushtable_federation.online.secure_sum import Journal
from hushtable_federation.online.site import BEGINNING
from hushtable_federation.protocol.messages import (
    Message,
    Step,
    SumList,
    digest_of_content,
    read_passed_on,
)
from hushtable_federation.protocol.tally import Decisions, Tally, TooFewError
from hushtable_federation.result import Collection, Result
from hushtable_federation.round import Round, check_protocol
from hushtable_federation.state import RoundState
from hushtable_federation.visits import Visit


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
            if not any(self.folder.requests(step, name)) and self.folder.add(
                ASK + step, name, content
            ):
                visit.posted.append(ASK + step)

    def _wait(self, visit: Visit, awaited: Sequence[str] = (), *words: str) -> Visit:
        state = RoundState.of(self.folder, self.keys.card.name, visit.found_out)
        return visit.say(*words).conclude_lead(state, awaited)

    def _read(self, tally: Tally, step: Step) -> None:
        journal = self._journal
        for sender in self.folder.round.names:
            kept = journal.answer(step, sender)
            if kept and tally.take(step, sender, kept, now()):
                kept = b""
            for name, content in self.folder.of(step, sender, kept):
                try:
                    tally.add(step, sender, content, now())
                except HushTableError as error:
                    self.folder.refuse(name, str(error))
                    continue
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
        there = [name for name in round_.names if any(self.folder.of("keys", name))]
        if tally.found_out or not set(tally.decided.keys) == set(there) == set(round_.names):
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
        finally:
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
        for name, why in collection.refused:
            self.folder.refuse(name, why)
        missing = [name for name in collection.missing if name not in dropped]
        over = now() > goes_on(round_.deadline)
        n_in = len(round_.names) - len(collection.missing)
        if n_in < round_.needed or (missing and not over):
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
        for _, content, result in self.folder.results():
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
            for site in self.folder.there(ASK + step):
                for name, message in self.folder.requests(step, site):
                    self._agree(noted, _decided_by(self.folder.round, message), name)
        return noted

    def _agree(self, noted: Decisions, other: Decisions, name: str) -> None:
        for part in ("keys", "listed"):
            mine, record = getattr(noted, part), getattr(other, part)
            if mine not in ({}, SumList(), record) and record not in ({}, SumList()):
                raise RoundError(
                    f"{name} is a request with decisions that differ from those in {self.journal}: "
                    "two coordinators are using one key. Sites answer only the first; find the "
                    "other one, and open a new round"
                )
        noted.keys = noted.keys or other.keys
        noted.listed = noted.listed if noted.listed.sites else other.listed
        noted.signed = noted.signed or other.signed

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
        return Decisions(keys={name: digest_of_content(one) for name, one in keys.items()})
    if "sites" in body:
        record = {name: body.get(name) for name in ("sites", "others")}
        return Decisions(listed=SumList.of(round_, record))
    return Decisions(signed=body.get("signed", {}))
