"""Visits to a round in a folder: everything that a site or a coordinator can do at one time.

`Visit` is the outcome: a state of one word, its exit code, and messages.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from hushtable_federation.describe import party_words
from hushtable_federation.state import MISSING, RoundState

State = Literal["waiting", "done", "act", "left-out", "over", "refused", "failed"]
#: States in which a party cannot continue a round, whatever command it runs.
STUCK: tuple[State, ...] = "over", "refused", "failed"


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
        Messages for people, in sentences.
    found_out : dict of str to str
        By site that cheated, what it did.
    needs_person : bool
        Whether a person has to do something that no further call does by itself. Always true in the
        state ``"act"``; in ``"left-out"``, until the site has seen the result.
    is_private : bool
        Whether the words are only for people of this site, because they may contain a value of a
        row.
    """

    posted: list[str] = field(default_factory=list)
    state: State = "waiting"
    waits_for: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    found_out: dict[str, str] = field(default_factory=dict)
    needs_person: bool = False
    is_private: bool = False
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

    def conclude(self, state: RoundState, name: str) -> "Visit":
        """End the visit of a site as the round stands, in its words."""
        awaited = [one for one in state.waits_for if one != name]
        if any(name in task.who for task in state.tasks if task.deed in ("answer", "resolve")):
            awaited = [name]
        mine = state.states[name]
        if mine in ("dropped", "out"):
            return self._conclude(state, name, "left-out", awaited)
        is_late = state.late and state.phase in ("counting", "closing") and mine in MISSING
        return self._conclude(state, name, "over" if is_late else _outcome(state), awaited)

    def conclude_lead(self, state: RoundState, waits_for: Sequence[str]) -> "Visit":
        """End the visit of the coordinator as the round stands, in its words."""
        return self._conclude(state, state.lead, _outcome(state), waits_for)

    def _conclude(
        self, state: RoundState, name: str, outcome: State, waits_for: Sequence[str]
    ) -> "Visit":
        self.needs_person |= state.needs_person(name)
        self._standing = party_words(state, name)
        return self.end(outcome, *self._standing, waits_for=waits_for)

    def after(self, other: "Visit") -> "Visit":
        """Add what the same party did just before, in its other role."""
        self.posted = other.posted + self.posted
        # How the round stands is stated once, as it is now.
        self.words = [one for one in other.words if one not in other._standing] + self.words
        self.is_private |= other.is_private
        if self.state in ("waiting", "done") and other.state not in ("waiting", "done"):
            self.state = "left-out" if other.state == "left-out" else "act"
            self.needs_person = other.needs_person or other.state in STUCK
        return self

    @property
    def exit_code(self) -> int:
        """Return the exit code of the command: 1 if stuck, 3 if a person has to act, else 0."""
        return 1 if self.state in STUCK else 3 if self.needs_person else 0


def _outcome(state: RoundState) -> State:
    if state.phase == "failed":
        return "failed"
    return "over" if state.phase == "short" else "waiting"
