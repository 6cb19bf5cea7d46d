"""The progress of a round in a folder: who has answered, who is awaited, who refused.

Signatures show this. Everyone who can read the folder sees the same; no key is needed, and no file
name is trusted.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from hushtable.errors import HushTableError, RoundError
from hushtable_federation.clock import goes_on, keys_until, now, shown_time, stamp
from hushtable_federation.folder.round_folder import ASK, ASKED, Amendment, RoundFolder
from hushtable_federation.protocol.messages import Dealt, Message, RoundKeys
from hushtable_federation.refusals import Refusal, Refused
from hushtable_federation.round import Round
from hushtable_federation.submission import Submission
from hushtable_federation.visit import State

Phase = Literal["stopped", "counting", "short", "closing", "unmasking", "done"]
#: States of a site: nothing has arrived yet; it refused; it signed two answers; its key for the
#: round has arrived; its counts have arrived; it was asked in a further step, or has answered the
#: last one; it is in the result; the sum continues without it.
SiteState = Literal[
    "awaited", "refused", "twice", "ready", "in", "asked", "helped", "summed", "dropped", "out"
]
#: Sites without any valid file that are not left out.
ABSENT: tuple[SiteState, ...] = "awaited", "refused", "twice"
#: Sites without counts that are not left out.
MISSING: tuple[SiteState, ...] = "ready", *ABSENT


@dataclass(frozen=True)
class Progress:
    """The state of a round in a folder.

    Attributes
    ----------
    round : Round
        The round, as amended.
    at : datetime
        The time of this view.
    phase : {"stopped", "counting", "short", "closing", "unmasking", "done"}
        Amendments contradict each other; sites are answering; too few sites answered in time, or
        too few are left; the coordinator can continue; the sites remove the masks; the result is
        there.
    states : dict of str to str
        By site: ``"awaited"``, ``"refused"``, ``"twice"``, ``"ready"``, ``"in"``, ``"asked"``,
        ``"helped"``, ``"summed"``, ``"dropped"`` or ``"out"``.
    settled : bool
        Whether it is known whose keys mask the counts, so that sites can send them.
    refused : dict of str to Refusal
        The word of each site that refused.
    asked : str
        In phase ``"unmasking"``, the furthest step that the coordinator has asked for.
    amendment : Amendment
        The current amendment; number 0 if there is none.
    odd : dict of str to str
        Files that do not count, with the reasons.
    stopped : str
        In phase ``"stopped"``, the reason.
    """

    round: Round
    at: datetime
    phase: Phase
    states: dict[str, SiteState]
    settled: bool
    refused: dict[str, Refusal]
    asked: str
    amendment: Amendment
    odd: dict[str, str]
    stopped: str

    @classmethod
    def of(cls, folder: RoundFolder) -> "Progress":
        """Read the files of a round; raise `FileError` if the folder cannot be read.

        The sites' counts are read completely while they are awaited; after that, the coordinator's
        signature states which sites are in the sum.
        """
        look = _Look(folder)
        states, phase = look.states()
        refused = {name: word for name, word in look.refused.items() if states[name] == "refused"}
        return cls(
            folder.round, look.at, phase, states, look.settled, refused, look.step,
            folder.amendment, folder.odd, folder.stopped,
        )  # fmt: skip

    def those(self, *states: SiteState) -> list[str]:
        """Return the sites in one of these states, sorted."""
        return [name for name, state in self.states.items() if state in states]

    @property
    def over(self) -> bool:
        """Return whether the deadline has passed for every site, even if clocks differ."""
        return self.at > goes_on(self.round.deadline)

    @property
    def late(self) -> bool:
        """Return whether the deadline has passed by the clock here, so that no site may answer."""
        return self.at > self.round.deadline

    @property
    def left(self) -> int:
        """Return how many sites are not dropped."""
        return len(self.states) - len(self.those("dropped"))

    @property
    def lead_settles(self) -> bool:
        """Return whether the coordinator's next visit decides whose keys mask the counts."""
        if self.settled or len(self.those("ready")) < self.round.needed:
            return False
        return not self.those(*ABSENT) or self.at > keys_until(
            self.round.opened, self.round.deadline
        )

    @property
    def waits_for(self) -> list[str]:
        """Return who has to act before the round continues: sites, or the coordinator."""
        lead = self.round.coordinator.name
        if self.phase == "counting" and self.settled:
            return self.those(*MISSING)
        if self.phase == "counting":
            return [*self.those(*ABSENT), *([lead] if self.lead_settles else [])]
        if self.phase == "unmasking":
            goes_on = len(self.those("helped")) >= self.round.needed or bool(self.those("in"))
            return [*self.those("asked"), *([lead] if goes_on else [])]
        return [] if self.phase == "done" else [lead]

    def facts(self) -> dict[str, Any]:
        """Return the progress for machines."""
        return {
            "phase": self.phase,
            "asked": self.asked,
            "at": stamp(self.at),
            "over": self.over,
            "keys_until": stamp(keys_until(self.round.opened, self.round.deadline)),
            "goes_on": stamp(goes_on(self.round.deadline)),
            "waits_for": self.waits_for,
            "states": dict(self.states),
            "refusals": {name: str(word) for name, word in self.refused.items()},
            "amendments": self.amendment.number,
            "amended_because": self.amendment.why,
            "set_aside": dict(self.odd),
        }


def shortage(folder: RoundFolder) -> tuple[State, str] | None:
    """Return why a round has too few sites, for a site that answered; None if it may continue.

    The files are read only after the deadline.
    """
    round_, left, lead = folder.round, len(folder.left()), folder.round.coordinator.name
    if left < round_.needed:
        return "failed", (
            f"Only {left} sites are left, and {round_.needed} are needed: ask {lead} for another "
            "round."
        )
    if now() <= goes_on(round_.deadline) or Progress.of(folder).phase != "short":
        return None
    return "over", (
        f"The time to answer ended on {shown_time(round_.deadline)}, and too few sites have "
        f"answered ({round_.needed} are needed): {lead} can extend the round."
    )


@dataclass
class _Look:
    folder: RoundFolder
    at: datetime = field(default_factory=now)
    refused: dict[str, Refusal] = field(default_factory=dict)
    step: str = ""
    settled: bool = True

    def states(self) -> tuple[dict[str, SiteState], Phase]:
        """Return the state of each site, and the phase of the round."""
        names, found = self.folder.round.names, next(self.folder.results(), None)
        if found is not None:
            _, _, result = found
            return {name: "summed" if name in result.sites else "out" for name in names}, "done"
        asked = {name: message for name in names if (message := self._asked(name)) is not None}
        if asked:
            steps = {one.step for one in asked.values()}
            self.step = next(step for step in reversed(ASKED) if step in steps)
            return {name: self._helped(name, asked) for name in names}, "unmasking"
        states = {name: self._answered(name) for name in names}
        if self.folder.round.terms.masked:
            self._settle(states)
        if self.folder.stopped:
            return states, "stopped"
        missing, needed = set(MISSING) & set(states.values()), self.folder.round.needed
        left = sum(state not in ("dropped", "out") for state in states.values())
        if missing and left >= needed and self.at <= goes_on(self.folder.round.deadline):
            return states, "counting"
        enough = sum(state == "in" for state in states.values()) >= needed
        return states, "closing" if enough else "short"

    # --- when the list is out -----------------------------------------------------------------

    def _asked(self, site: str) -> Message | None:
        """Return the coordinator's last request to a site."""
        return next(
            (one for step in reversed(ASKED) for one in self._signed(ASK + step, site)), None
        )

    def _helped(self, site: str, asked: dict[str, Message]) -> SiteState:
        if site not in asked:
            return "dropped" if site in self.folder.amendment.dropped else "out"
        step = asked[site].step
        if not any(True for _ in self._signed(step, site)):
            return "asked"
        return "helped" if step == self.step else "in"

    def _signed(self, step: str, site: str) -> Iterator[Message]:
        """Yield the messages to or from a site that have the required signature."""
        round_, of = self.folder.round, step.removeprefix(ASK)
        sender = round_.coordinator if of != step else round_.card(site)
        for name, content in self.folder.of(step, site):
            try:
                yield Message.read(content, sender).check(round_, of)
            except HushTableError as error:
                self.folder.refuse(name, str(error))

    # --- before ---------------------------------------------------------------------------------

    def _settle(self, states: dict[str, SiteState]) -> None:
        """Determine whether it is known whose keys mask the counts; leave out later sites."""
        asked = [name for name in states if any(True for _ in self._signed(ASK + "shares", name))]
        self.settled = bool(asked) or set(states.values()) <= {"ready", "in"}
        for name in states if asked else ():
            if name not in asked and states[name] != "dropped":
                states[name] = "out"

    def _answered(self, site: str) -> SiteState:
        if site in self.folder.amendment.dropped:
            return "dropped"
        masked = self.folder.round.terms.masked
        steps = ("masked", "shares") if masked else ("submission",)
        found = [self._answers(step, site) for step in steps]
        keys = self._answers("keys", site) if masked else 0
        if max(*found, keys) > 1:
            return "twice"
        if min(found) == 1:
            return "in"
        self._refused(site)
        if site in self.refused:
            return "refused"
        return "ready" if keys else "awaited"

    def _answers(self, step: str, site: str) -> int:
        """Return how many different answers to a step a site signed; a valid site signed one."""
        found = dict[str, str]()
        for name, content in self.folder.of(step, site):
            try:
                found[self._digest(step, site, name, content)] = name
            except HushTableError as error:
                self.folder.refuse(name, str(error))
        if len(found) > 1:
            for name in found.values():
                self.folder.odd[name] = f"{site!r} signed two different answers: neither is valid"
        return len(found)

    def _digest(self, step: str, site: str, name: str, content: bytes) -> str:
        """Return the digest of an answer, after the same checks as the coordinator's."""
        round_ = self.folder.round
        if step == "keys":
            return RoundKeys.read(round_, site, content).digest
        if step == "shares":
            message = Message.read(content, round_.card(site)).check(round_, step)
            return Dealt.of_message(round_, message).digest
        read = Submission.from_bytes(content, name, round_, self.at)
        if read.site != site:
            raise RoundError(f"{site!r} answers for {read.site!r}")
        return read.digest

    def _refused(self, site: str) -> None:
        round_ = self.folder.round
        for name, content in self.folder.of("refused", site):
            try:
                Message.read(content, round_.card(site)).check(round_, "refused")
            except Refused as error:
                self.refused[site] = Refusal(error.word)
            except HushTableError as error:
                self.folder.refuse(name, str(error))
