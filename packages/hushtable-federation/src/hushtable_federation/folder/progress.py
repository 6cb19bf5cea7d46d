"""How far a round in a folder is: who is in, who is awaited, who refused, as signatures show it.

Anyone who can read the folder sees the same; no key is needed, and no name of a file is believed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from hushtable.errors import HushTableError, RoundError
from hushtable_federation.clock import goes_on, now, shown_time, stamp
from hushtable_federation.folder.round_folder import ASK, ASKED, Amendment, RoundFolder
from hushtable_federation.online import shares
from hushtable_federation.online.messages import Message
from hushtable_federation.refusals import Refusal, Refused
from hushtable_federation.round import Round
from hushtable_federation.submission import Submission
from hushtable_federation.visit import State

Phase = Literal["stopped", "counting", "short", "closing", "unmasking", "done"]
#: Of a site: nothing is there yet; it refused; it signed two answers; its counts are there; it is
#: asked in a further step, or has answered the last one; it is in the result; the sum goes on
#: without it.
SiteState = Literal[
    "awaited", "refused", "twice", "in", "asked", "helped", "summed", "dropped", "out"
]
#: Of whom there is nothing that counts, and who are not left out.
MISSING: tuple[SiteState, ...] = "awaited", "refused", "twice"


@dataclass(frozen=True)
class Progress:
    """Where a round in a folder stands.

    Attributes
    ----------
    round : Round
        As amended.
    at : datetime
        When it was looked at.
    phase : {"stopped", "counting", "short", "closing", "unmasking", "done"}
        Amendments contradict each other; sites answer; too few did, and the time is over, or too
        few are left; the coordinator can go on; the sites take the masks off; the result is there.
    states : dict of str to str
        By site: ``"awaited"``, ``"refused"``, ``"twice"``, ``"in"``, ``"asked"``, ``"helped"``,
        ``"summed"``, ``"dropped"`` or ``"out"``.
    refused : dict of str to Refusal
        By site that refused, its word.
    asked : str
        In phase ``"unmasking"``, the furthest step that the coordinator has asked for.
    amendment : Amendment
        That holds; number 0 if there is none.
    odd : dict of str to str
        Files that do not count, with the reason.
    stopped : str
        In phase ``"stopped"``, why.
    """

    round: Round
    at: datetime
    phase: Phase
    states: dict[str, SiteState]
    refused: dict[str, Refusal]
    asked: str
    amendment: Amendment
    odd: dict[str, str]
    stopped: str

    @classmethod
    def of(cls, folder: RoundFolder) -> "Progress":
        """Look through the files of a round; raises `FileError` if the folder cannot be read.

        The sites' counts are read whole as long as they are awaited; from then on, the
        coordinator's signature says who is in.
        """
        look = _Look(folder)
        states, phase = look.states()
        refused = {name: word for name, word in look.refused.items() if states[name] == "refused"}
        return cls(
            folder.round, look.at, phase, states, refused, look.step, folder.amendment, folder.odd,
            folder.stopped,
        )  # fmt: skip

    def those(self, *states: SiteState) -> list[str]:
        """Return the sites in one of these states, sorted."""
        return [name for name, state in self.states.items() if state in states]

    @property
    def over(self) -> bool:
        """Whether the deadline has passed, whatever clock a site has."""
        return self.at > goes_on(self.round.deadline)

    @property
    def late(self) -> bool:
        """Whether the deadline has passed, by the clock here: no site may answer any more."""
        return self.at > self.round.deadline

    @property
    def left(self) -> int:
        """How many sites are not dropped."""
        return len(self.states) - len(self.those("dropped"))

    @property
    def waits_for(self) -> list[str]:
        """Who has to do something before the round goes on: sites, or the coordinator."""
        lead = self.round.coordinator.name
        if self.phase == "counting":
            return self.those(*MISSING)
        if self.phase == "unmasking":
            goes_on = len(self.those("helped")) >= self.round.needed or bool(self.those("in"))
            return [*self.those("asked"), *([lead] if goes_on else [])]
        return [] if self.phase == "done" else [lead]

    def facts(self) -> dict[str, Any]:
        """Return it for machines."""
        return {
            "phase": self.phase,
            "asked": self.asked,
            "at": stamp(self.at),
            "over": self.over,
            "goes_on": stamp(goes_on(self.round.deadline)),
            "waits_for": self.waits_for,
            "states": dict(self.states),
            "refusals": {name: str(word) for name, word in self.refused.items()},
            "amendments": self.amendment.number,
            "amended_because": self.amendment.why,
            "set_aside": dict(self.odd),
        }


def shortage(folder: RoundFolder) -> tuple[State, str] | None:
    """Return why a round has too few sites, for one that answered; None if it may go on.

    The files are looked through only after the deadline.
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

    def states(self) -> tuple[dict[str, SiteState], Phase]:
        """Return the state of each site, and how far the round is."""
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
        if self.folder.stopped:
            return states, "stopped"
        missing, needed = set(MISSING) & set(states.values()), self.folder.round.needed
        left = len(self.folder.left())
        if missing and left >= needed and self.at <= goes_on(self.folder.round.deadline):
            return states, "counting"
        enough = sum(state == "in" for state in states.values()) >= needed
        return states, "closing" if enough else "short"

    # --- when the list is out -----------------------------------------------------------------

    def _asked(self, site: str) -> Message | None:
        """Return what the coordinator asked a site last."""
        return next(
            (one for step in reversed(ASKED) for one in self._signed(ASK + step, site)), None
        )

    def _helped(self, site: str, asked: dict[str, Message]) -> SiteState:
        if site not in asked:
            return "dropped" if site in self.folder.amendment.dropped else "out"
        if site in asked[site].body.get("without", []):
            return "out"
        step = asked[site].step
        if not any(True for _ in self._signed(step, site)):
            return "asked"
        return "helped" if step == self.step else "in"

    def _signed(self, step: str, site: str) -> Iterator[Message]:
        """Yield the messages to a site, or of it, that carry the signature that they need."""
        round_, of = self.folder.round, step.removeprefix(ASK)
        sender = round_.coordinator if of != step else round_.card(site)
        for name, content in self.folder.of(step, site):
            try:
                yield Message.read(content, sender).check(round_, of)
            except HushTableError as error:
                self.folder.refuse(name, str(error))

    # --- before ---------------------------------------------------------------------------------

    def _answered(self, site: str) -> SiteState:
        if site in self.folder.amendment.dropped:
            return "dropped"
        steps = ("masked", "shares") if self.folder.round.terms.masked else ("submission",)
        found = [self._answers(step, site) for step in steps]
        if max(found) > 1:
            return "twice"
        if min(found) == 1:
            return "in"
        self._refused(site)
        return "refused" if site in self.refused else "awaited"

    def _answers(self, step: str, site: str) -> int:
        """Return how many different answers to a step a site signed: one is to count."""
        found = dict[str, str]()
        for name, content in self.folder.of(step, site):
            try:
                found[self._digest(step, site, name, content)] = name
            except HushTableError as error:
                self.folder.refuse(name, str(error))
        if len(found) > 1:
            for name in found.values():
                self.folder.odd[name] = f"{site!r} signed two different answers: neither counts"
        return len(found)

    def _digest(self, step: str, site: str, name: str, content: bytes) -> str:
        """Return the digest of an answer, once it is checked as the coordinator checks it."""
        round_ = self.folder.round
        if step == "shares":
            message = Message.read(content, round_.card(site)).check(round_, step)
            shares.read_dealt(round_, message)
            return message.digest
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
