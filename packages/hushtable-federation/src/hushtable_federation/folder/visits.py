"""A visit to a round in a folder: all that a party does at a time, and what it then waits for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

State = Literal["open", "waiting", "failed", "done"]


@dataclass
class Visit:
    """How a visit went.

    Attributes
    ----------
    posted : list of str
        Steps that were put into the folder now.
    state : {"open", "waiting", "failed", "done"}
        Whether this party has something to do (``"open"``), waits for others, cannot go on, or is
        done with the round.
    waits_for : list of str
        Names of those whose files are awaited.
    words : list of str
        For people, in sentences.
    found_out : dict of str to str
        By site that lied, what it did.
    needs_person : bool
        Whether a person has to do something that no further call does by itself; always so if the
        state is ``"open"``.
    """

    posted: list[str] = field(default_factory=list)
    state: State = "waiting"
    waits_for: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    found_out: dict[str, str] = field(default_factory=dict)
    needs_person: bool = False

    def say(self, *words: str) -> "Visit":
        """Add sentences."""
        self.words += words
        return self

    def end(self, state: State, *words: str, waits_for: Sequence[str] = ()) -> "Visit":
        """Note how it stands at the end."""
        self.state, self.waits_for = state, list(waits_for)
        self.needs_person |= state == "open"
        return self.say(*words)

    def after(self, other: "Visit") -> "Visit":
        """Add what the same party did just before, in its other role."""
        self.posted, self.words = other.posted + self.posted, other.words + self.words
        self.needs_person |= other.needs_person or other.state == "failed"
        return self
