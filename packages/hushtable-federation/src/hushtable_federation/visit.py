"""How a visit to a round went: a state of one word, its exit code, and words for people."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

State = Literal["waiting", "done", "act", "left-out", "over", "refused", "failed"]
#: States in which a round cannot go on for a party, whatever it calls.
STUCK: tuple[State, ...] = "over", "refused", "failed"


@dataclass
class Visit:
    """How a visit went.

    Attributes
    ----------
    posted : list of str
        Steps that were put into the folder now.
    state : {"waiting", "done", "act", "left-out", "over", "refused", "failed"}
        Others have to call; the result is here; a person has to act; the result is, or will be,
        without this site; the deadline has passed, and it is too late or too few have answered;
        this site refused; the round cannot go on.
    waits_for : list of str
        Names of those whose files are awaited.
    words : list of str
        For people, in sentences.
    found_out : dict of str to str
        By site that lied, what it did.
    needs_person : bool
        Whether a person has to do something that no further call does by itself. Always so if the
        state is ``"act"``; of ``"left-out"``, until the site has seen the result.
    is_private : bool
        Whether the words are for people of this site alone: they may hold a value of a row.
    """

    posted: list[str] = field(default_factory=list)
    state: State = "waiting"
    waits_for: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    found_out: dict[str, str] = field(default_factory=dict)
    needs_person: bool = False
    is_private: bool = False

    def say(self, *words: str) -> "Visit":
        """Add sentences."""
        self.words += words
        return self

    def end(self, state: State, *words: str, waits_for: Sequence[str] = ()) -> "Visit":
        """Note how it stands at the end."""
        self.state = "act" if state == "waiting" and self.needs_person else state
        self.needs_person = self.state in ("act", "left-out")
        self.waits_for = list(waits_for)
        return self.say(*words)

    def after(self, other: "Visit") -> "Visit":
        """Add what the same party did just before, in its other role."""
        self.posted, self.words = other.posted + self.posted, other.words + self.words
        self.is_private |= other.is_private
        if self.state in ("waiting", "done") and other.state not in ("waiting", "done"):
            self.state = "left-out" if other.state == "left-out" else "act"
            self.needs_person = other.needs_person or other.state in STUCK
        return self

    @property
    def exit_code(self) -> int:
        """The exit code of a command that made this visit: 1 if stuck, 3 for a person, else 0."""
        return 1 if self.state in STUCK else 3 if self.needs_person else 0
