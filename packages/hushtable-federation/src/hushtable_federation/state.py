"""How a round in a folder stands: one value, computed from its files and the time.

Signatures show this. Everyone who can read the folder computes the same; no key is needed.
`hushtable_federation.describe` renders the value in words, the commands as text, JSON, exit codes,
and a page.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Literal, NamedTuple

from hushtable_federation.clock import forgotten, goes_on, keys_until, now, stamp
from hushtable_federation.folder.round_folder import ASK, ASKED, Amendment, RoundFolder
from hushtable_federation.protocol.messages import Dealt, Message, RoundKeys
from hushtable_federation.refusals import Refusal
from hushtable_federation.round import Round
from hushtable_federation.submission import Submission

#: Phases of a round: sites are answering; too few sites answered in time; the coordinator can
#: continue; the sites remove the masks; the result is there; there will be no result.
Phase = Literal["counting", "short", "closing", "unmasking", "done", "failed"]
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
#: What a party can have to do.
Deed = Literal[
    "answer", "resolve", "send", "help", "find-book", "ask-time", "ask-lead", "settle", "remind",
    "ask-reason", "extend", "drop", "drop-twice", "continue", "remind-again", "reopen", "fetch",
    "wait", "left-out", "nothing",
]  # fmt: skip


class RoundTask(NamedTuple):
    """A task, and who has to do it."""

    deed: Deed
    who: list[str]
    #: Whether a person has to do it, because no run of ``round sync`` does it alone.
    needs_person: bool = False
    #: The sites that the task is about, if they are not those who do it.
    about: tuple[str, ...] = ()


@dataclass(frozen=True)
class RoundState:
    """How a round in a folder stands.

    Attributes
    ----------
    round : Round
        The round, as amended.
    at : datetime
        The time of this view.
    phase : {"counting", "short", "closing", "unmasking", "done", "failed"}
        Sites are answering; too few sites answered in time; the coordinator can continue; the sites
        remove the masks; the result is there; there will be none.
    states : dict of str to str
        By site: ``"awaited"``, ``"refused"``, ``"twice"``, ``"ready"``, ``"in"``, ``"asked"``,
        ``"helped"``, ``"summed"``, ``"dropped"`` or ``"out"``.
    settled : bool
        Whether it is known whose keys mask the counts, so that sites can send them.
    refused : dict of str to Refusal
        The word of each site that refused the step in which it is awaited.
    asked : str
        In phase ``"unmasking"``, the furthest step that the coordinator has asked for.
    amendment : Amendment
        The current amendment; number 0 if there is none.
    odd : dict of str to str
        Files that do not count, with the reasons.
    stopped : str
        Why the round must stop: amendments that contradict each other. Empty if there are none.
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
    def of(
        cls, folder: RoundFolder, visitor: str = "", liars: Collection[str] = ()
    ) -> "RoundState":
        """Read the files of a round; raise `FileError` if the folder cannot be read.

        The sites' counts are read completely while they are awaited; after that, the coordinator's
        signature states which sites are in the sum.

        A party that visits the round, ``visitor``, reads what is addressed to it. Large files of
        others then count by their names, so that a visit does not read all counts; ``liars`` are
        sites whose answers the visitor has found to contradict each other.
        """
        look = _Look(folder, visitor, liars)
        states, phase = look.states()
        return cls(
            folder.round, look.at, phase, states, look.settled, look.refusals(states), look.step,
            folder.amendment, folder.odd, folder.stopped,
        )  # fmt: skip

    def those(self, *states: SiteState) -> list[str]:
        """Return the sites in one of these states, sorted."""
        return [name for name, state in self.states.items() if state in states]

    @property
    def lead(self) -> str:
        """Return the coordinator's name."""
        return self.round.coordinator.name

    @property
    def late(self) -> bool:
        """Return whether the deadline has passed by the clock here, so that no site may answer."""
        return self.at > self.round.deadline

    @property
    def overdue(self) -> bool:
        """Return whether a person has to look after the round, because it has not ended.

        Sites remove the masks in visits after the deadline; they get the time of the whole round
        again.
        """
        return self.at - self.round.deadline > self.round.deadline - self.round.opened

    @property
    def left(self) -> int:
        """Return how many sites are not dropped."""
        return len(self.states) - len(self.those("dropped"))

    @property
    def settles(self) -> bool:
        """Return whether the coordinator's next visit decides whose keys mask the counts."""
        if self.settled or len(self.those("ready")) < self.round.needed:
            return False
        return not self.those(*ABSENT) or self.at > keys_until(
            self.round.opened, self.round.deadline
        )

    @property
    def waits_for(self) -> list[str]:
        """Return who has to act before the round continues: sites, or the coordinator."""
        if self.phase == "counting" and self.settled:
            return self.those(*MISSING)
        if self.phase == "counting":
            return [*self.those(*ABSENT), *([self.lead] if self.settles else [])]
        if self.phase == "unmasking":
            enough = len(self.those("helped")) >= self.round.needed or bool(self.those("in"))
            return [*self.those("asked"), *([self.lead] if enough else [])]
        return [] if self.phase == "done" else [self.lead]

    def may_answer(self, site: str) -> bool:
        """Return whether a site that has not answered can still do so, and be in the sum."""
        return self.phase == "counting" and not self.late and self.states[site] in MISSING

    # --- who has to do what -------------------------------------------------------------------

    @property
    def tasks(self) -> list[RoundTask]:
        """Return who has to do what now, the most urgent task first."""
        missing = tuple(self.those(*MISSING))
        match self.phase:
            case "counting" if not self.late:
                absent = missing if self.settled else tuple(self.those(*ABSENT))
                tasks = [
                    RoundTask("answer", self.those("awaited"), True),
                    RoundTask("resolve", self.those("refused"), True),
                    RoundTask("settle", [self.lead] if self.settles else []),
                    RoundTask("send" if self.settled else "wait", self.those("ready")),
                    *self._ask_reason(),
                    RoundTask("remind", [self.lead] if absent else [], about=absent),
                    *self._twice(),
                    *self._others("in"),
                ]
            case "counting":  # between the deadline and the time when the round continues
                enough = len(self.those("in")) >= self.round.needed
                tasks = [
                    RoundTask("drop" if enough else "extend", [self.lead], not enough, missing),
                    RoundTask("ask-time", [*missing], True),
                    *self._twice(),
                    *self._others("in"),
                ]
            case "short":
                tasks = [
                    RoundTask("extend", [self.lead], True, missing),
                    RoundTask("ask-time", [*missing], True),
                    *self._others("in"),
                ]
            case "closing":
                tasks = [
                    RoundTask("continue", [self.lead], self.overdue),
                    RoundTask("ask-time", [*missing]),
                    *self._others("in"),
                ]
            case "unmasking":
                asked, goes_on = self.those("asked"), self.lead in self.waits_for
                deed: Deed = "continue" if goes_on else "remind-again"
                tasks = [
                    RoundTask("help", asked, self.overdue),
                    *self._ask_reason(),
                    RoundTask(deed, [self.lead], self.overdue, tuple(asked)),
                    *self._others("in", "helped"),
                ]
            case "done":
                tasks = [RoundTask("fetch", [*dict.fromkeys([self.lead, *self.round.names])])]
            case "failed":
                others = [name for name in self.round.names if name != self.lead]
                tasks = [RoundTask("reopen", [self.lead], True), RoundTask("nothing", others)]
        return [task for task in tasks if task.who]

    def needs_person(self, name: str) -> bool:
        """Return whether a person has to act at a party."""
        return any(task.needs_person for task in self.tasks if name in task.who)

    def _others(self, *waiting: SiteState) -> list[RoundTask]:
        deed: Deed = "ask-lead" if self.overdue else "wait"
        return [
            RoundTask(deed, self.those(*waiting), self.overdue),
            RoundTask("left-out", self.those("dropped", "out")),
        ]

    def _ask_reason(self) -> list[RoundTask]:
        about = tuple(self.refused)
        return [RoundTask("ask-reason", [self.lead] if about else [], True, about)]

    def _twice(self) -> list[RoundTask]:
        names = self.those("twice")
        return [
            RoundTask("drop-twice", [self.lead] if names else [], True, tuple(names)),
            RoundTask("find-book", names, True),
        ]

    def facts(self) -> dict[str, Any]:
        """Return the state for machines."""
        return {
            "phase": self.phase,
            "asked": self.asked,
            "at": stamp(self.at),
            "over": self.at > goes_on(self.round.deadline),
            "keys_until": stamp(keys_until(self.round.opened, self.round.deadline)),
            "goes_on": stamp(goes_on(self.round.deadline)),
            "waits_for": self.waits_for,
            "states": dict(self.states),
            "refusals": {name: str(word) for name, word in self.refused.items()},
            "amendments": self.amendment.number,
            "amended_because": self.amendment.why,
            "set_aside": dict(self.odd),
        }


@dataclass
class _Look:
    folder: RoundFolder
    visitor: str = ""
    liars: Collection[str] = ()
    at: datetime = field(default_factory=now)
    step: str = ""
    settled: bool = True

    def states(self) -> tuple[dict[str, SiteState], Phase]:
        names = self.folder.round.names
        for _, (_, result) in self.folder.results():
            return {name: "summed" if name in result.sites else "out" for name in names}, "done"
        states, phase = self._before_result(names)
        left = sum(state != "dropped" for state in states.values())
        if self.folder.stopped or (not self.step and left < self.folder.round.needed):
            phase = "failed"
        is_masked = phase in ("closing", "unmasking") and self.folder.round.terms.masked
        if is_masked and self.at > forgotten(self.folder.round.deadline):
            phase = "failed"
        return states, phase

    def refusals(self, states: dict[str, SiteState]) -> dict[str, Refusal]:
        steps = {"refused": "", "asked": f"-{self.step}"}
        words = {
            name: self.folder.refused(name, steps[state])
            for name, state in states.items()
            if state in steps
        }
        return {name: Refusal(word) for name, word in words.items() if word}

    def _before_result(self, names: list[str]) -> tuple[dict[str, SiteState], Phase]:
        asked = self._requests(names)
        if asked:
            self.step = next(step for step in reversed(ASKED) if step in asked.values())
            return {name: self._helped(name, asked) for name in names}, "unmasking"
        states = {name: self._answered(name) for name in names}
        if self.folder.round.terms.masked:
            self._settle(states)
        missing, needed = set(MISSING) & set(states.values()), self.folder.round.needed
        left = sum(state not in ("dropped", "out") for state in states.values())
        if missing and left >= needed and self.at <= goes_on(self.folder.round.deadline):
            return states, "counting"
        enough = sum(state == "in" for state in states.values()) >= needed
        return states, "closing" if enough else "short"

    # --- when the list is out -----------------------------------------------------------------

    def _requests(self, names: list[str]) -> dict[str, str]:
        if self.visitor and not self.folder.asks(*ASKED):
            return {}
        # The last step in which a site was asked counts.
        return {name: step for step in ASKED for name in names if self._has(ASK + step, name)}

    def _helped(self, site: str, asked: dict[str, str]) -> SiteState:
        if site not in asked:
            return "dropped" if site in self.folder.amendment.dropped else "out"
        if not self._has(asked[site], site):
            return "asked"
        return "helped" if asked[site] == self.step else "in"

    def _has(self, step: str, site: str) -> bool:
        if self.visitor not in ("", site):
            return self.folder.has(step, site)
        return any(True for _ in self.folder.messages(step, site))

    # --- before ---------------------------------------------------------------------------------

    def _settle(self, states: dict[str, SiteState]) -> None:
        asked = list[str]()
        if not self.visitor or self.folder.asks("shares"):
            asked = [name for name in states if self._has(ASK + "shares", name)]
        self.settled = bool(asked) or set(states.values()) <= {"ready", "in"}
        for name in states if asked else ():
            if name not in asked and states[name] != "dropped":
                states[name] = "out"

    def _answered(self, site: str) -> SiteState:
        if site in self.folder.amendment.dropped:
            return "dropped"
        masked = self.folder.round.terms.masked
        steps = ("masked", "shares") if masked else ("submission",)
        answers = [self._answers(step, site) for step in steps]
        keys = self._answers("keys", site) if masked else 0
        if max(*answers, keys) > 1 or site in self.liars:
            return "twice"
        if min(answers) == 1:
            return "in"
        # A visitor that has sent its key, and goes on, does not refuse any more.
        if not (keys and site == self.visitor) and self.folder.refused(site):
            return "refused"
        return "ready" if keys else "awaited"

    def _answers(self, step: str, site: str) -> int:
        # A valid site signs one answer to a step.
        if self.visitor and step != "keys" and (site != self.visitor or step == "masked"):
            return int(self.folder.has(step, site))
        read = self.folder.read(step, site, partial(self._digest, step, site))
        names = {digest: name for name, digest in read}
        if len(names) > 1:
            for name in names.values():
                self.folder.odd[name] = f"{site!r} signed two different answers: neither is valid"
        return len(names)

    def _digest(self, step: str, site: str, name: str, content: bytes) -> str:
        round_ = self.folder.round
        if step == "keys":
            return RoundKeys.read(round_, site, content).digest
        if step == "shares":
            message = Message.read(content, round_.card(site)).check(round_, step)
            return Dealt.of_message(round_, message).digest
        return Submission.from_bytes(content, name, round_, self.at, site).digest
