"""All files of one round in a folder, read once: either signed, or ignored.

Nothing here depends on the order of files, on copies, or on who put a file there.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from hushtable import files
from hushtable.arguments import entries, translate_errors
from hushtable.errors import HushTableError, RoundError
from hushtable_federation.clock import parsed, stamp
from hushtable_federation.folder.mailbox import Store, name_of
from hushtable_federation.folder.mailbox import parsed as parsed_name
from hushtable_federation.keys import Card, Keys
from hushtable_federation.protocol.messages import Message, Step, is_signed
from hushtable_federation.refusals import Refused
from hushtable_federation.result import Result
from hushtable_federation.round import Round

T = TypeVar("T")

#: Prefix of a step's name, in the name of a file with a request to a site.
ASK = "ask-"
#: Steps in which the coordinator asks each site by a file of its own, once it is decided who is
#: in the sum.
ASKED: tuple[Step, ...] = "survivors", "unmask"
#: All in which it asks so: before, with whose keys the counts are masked.
REQUESTS: tuple[Step, ...] = "shares", *ASKED
#: Why a round can no longer be amended.
DECIDED = (
    "it is already decided which sites are in the sum, so the round can no longer be amended: the "
    "other sites make up for missing ones (hushtable round sync)"
)
#: Step of a file in which a site refuses to begin; also the prefix of a step that it refuses.
REFUSED = "refused"
#: Step of a file that shows that a site's book holds its answer.
HEAD = "head"


def rounds(store: Store) -> list[Round]:
    """Return the rounds in a folder, the oldest first; ignore other files."""
    by_id = {}
    for name in store.names():
        claims = parsed_name(name)
        if claims is None or claims.step != "round":
            continue
        try:
            content = store.read(name)
            if content is not None:
                made = Round.from_bytes(content, name)
                by_id[made.round_id] = made
        except HushTableError:  # a stranger's, or of another version
            continue
    return sorted(by_id.values(), key=lambda round_: (round_.opened, round_.round_id))


def post_round(store: Store, round_: Round) -> None:
    """Put a round into a folder, for all parties that it names."""
    name = name_of(round_.round_id, "round", round_.coordinator.name, round_.content)
    store.add(name, round_.content)


@dataclass(frozen=True)
class Amendment:
    """A change to a round by the coordinator: each one states everything that holds from then on.

    Attributes
    ----------
    number : int
        Counted from 1; the highest number holds.
    deadline : datetime
        When the round ends.
    dropped : tuple of str
        Sites that the round does not wait for, and that are not in the sum.
    why : str
        For people.
    """

    number: int
    deadline: datetime
    dropped: tuple[str, ...] = ()
    why: str = ""

    def message(self, round_: Round, keys: Keys) -> bytes:
        """Return the amendment as the coordinator signs it."""
        record = {
            "number": self.number, "deadline": stamp(self.deadline),
            "dropped": sorted(self.dropped), "why": self.why,
        }  # fmt: skip
        return Message.make(round_, "amend", keys, record).content

    @classmethod
    def of(cls, message: Message) -> "Amendment":
        """Read back what `message` wrote; raise `RoundError` on anything else."""
        kinds = {"number": int, "deadline": str, "dropped": list[str], "why": str}
        record = entries(message.body, "an amendment", kinds, error=RoundError)
        with translate_errors(RoundError, "an amendment"):
            deadline = parsed(record["deadline"])
        if record["number"] < 1:
            raise RoundError(f"an amendment: number {record['number']}: the first has number 1")
        return cls(record["number"], deadline, tuple(record["dropped"]), record["why"])


@dataclass
class RoundFolder:
    """The files of one round in a folder.

    Attributes
    ----------
    round : Round
        The round, as amended: its deadline is the current one.
    store : Store
        The folder.
    amendment : Amendment
        That holds; number 0 if there is none.
    stopped : str
        Why the round must stop, as a message: amendments that contradict each other. Empty if there
        are none.
    odd : dict of str to str
        Files that claim to belong to this round but do not, with the reasons.
    """

    round: Round
    store: Store
    amendment: Amendment = field(init=False)
    stopped: str = ""
    odd: dict[str, str] = field(default_factory=dict)
    _names: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    #: By sender, for all rounds in the folder.
    _heads: dict[str, list[str]] = field(default_factory=dict)
    #: Files that were read in this visit and are not valid; they are not read again.
    _refused: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for name in self.store.names():
            claims = parsed_name(name)
            if claims is None:
                continue
            if claims.round_id16 == self.round.round_id[:16]:
                self._names.setdefault((claims.step, claims.sender), []).append(name)
            if claims.step == HEAD:
                self._heads.setdefault(claims.sender, []).append(name)
        amendments: dict[int, Amendment] = {0: Amendment(0, self.round.deadline)}
        lead = self.round.coordinator.name
        for _, made in self.read("amend", lead, self._amendment):
            if amendments.setdefault(made.number, made) != made:
                self.stopped = (
                    f"{lead!r} signed two amendments of round {self.round.round_id[:12]} with "
                    f"number {made.number} that contradict each other: ask which one is valid, and "
                    "request a new round; nothing is answered until then"
                )
        self.amendment = amendments[max(amendments)]
        self.round = replace(self.round, deadline=self.amendment.deadline)

    def _amendment(self, _name: str, content: bytes) -> Amendment:
        message = Message.read(content, self.round.coordinator)
        return Amendment.of(message.check(self.round, "amend"))

    def read(
        self, step: str, sender: str, parse: Callable[[str, bytes], T], known: bytes = b""
    ) -> Iterator[tuple[str, T]]:
        """Yield the files of `of`, each as ``parse`` reads its name and content.

        A file for which it raises `HushTableError` is ignored.
        """
        for name, content in self.of(step, sender, known):
            try:
                message = parse(name, content)
            except HushTableError as error:
                self.refuse(name, str(error))
            else:
                yield name, message

    def messages(self, step: str, sender: str) -> Iterator[tuple[str, Message]]:
        """Yield the valid messages of a site in a step, by file name.

        With the prefix `ASK`, these are the coordinator's requests to the site.
        """
        lead, of = self.round.coordinator, step.removeprefix(ASK)
        writer = self.round.card(sender) if of == step else lead
        return self.read(
            step, sender, lambda _, content: Message.read(content, writer).check(self.round, of)
        )

    def of(self, step: str, sender: str, known: bytes = b"") -> Iterator[tuple[str, bytes]]:
        """Yield the files that claim to be from a step and sender, each with its content.

        The file with the content ``known`` is not read. If there are several files, those without
        the signature of the party that has to write them are left out, however many strangers add;
        all others are yielded, and have to be checked.
        """
        mine = name_of(self.round.round_id, step, sender, known)
        names = [name for name in self._names.get((step, sender), []) if name != mine]
        return self._signed(names, self._writer(step, sender), step)

    def heads(self, card: Card) -> Iterator[tuple[str, bytes]]:
        """Yield the files that claim to be heads of a site's book, for any round in this folder."""
        return self._signed(self._heads.get(card.name, []), card, HEAD)

    def refuse(self, name: str, why: str) -> None:
        """Ignore a file, and do not read it again in this visit."""
        self._refused.add(name)
        self.odd[name] = why

    def _writer(self, step: str, sender: str) -> Card | None:
        lead = self.round.coordinator
        if step.startswith(ASK) or (step in ("amend", "result") and sender == lead.name):
            return lead
        return self.round.card(sender) if sender in self.round.names else None

    def _signed(
        self, names: list[str], writer: Card | None, step: str
    ) -> Iterator[tuple[str, bytes]]:
        whose = "" if writer is None else writer.name
        for name in self.store.first_of(names, whose):
            if name in self._refused:
                continue
            content = self.store.read(name, writer=whose)
            if content is None:  # perhaps incomplete: the next visit may find all of it
                self._refused.add(name)
            elif writer is None:
                self.refuse(name, "it is not from a party of this round")
            elif len(names) > 1 and step != "result" and not is_signed(content, writer):
                self.refuse(name, f"it does not have the signature of {whose!r}")
            else:
                yield name, content

    def results(self) -> Iterator[tuple[str, tuple[bytes, Result]]]:
        """Yield the results of the round: file name, content, and the result read from it."""

        def checked(name: str, content: bytes) -> tuple[bytes, Result]:
            result = Result.of(files.unpack(content, name))
            result.check_round(self.round)
            return content, result

        return self.read("result", self.round.coordinator.name, checked)

    def asks(self, *steps: Step) -> bool:
        """Return whether the coordinator has signed a request in one of these steps."""
        return any(
            True for step in steps for name in self.round.names
            for _ in self.messages(ASK + step, name)
        )  # fmt: skip

    def left(self, also: Collection[str] = ()) -> list[str]:
        """Return the sites that are neither dropped nor in ``also``, in the order of the roster."""
        out = {*self.amendment.dropped, *also}
        return [name for name in self.round.names if name not in out]

    def refused(self, site: str, step: str = "") -> str:
        """Return the word with which a site refused a step, by default the first; empty if not."""
        for name, content in self.of(REFUSED + step, site):
            try:
                Message.read(content, self.round.card(site)).check(self.round, "refused")
            except Refused as error:
                return error.word
            except HushTableError as error:
                self.refuse(name, str(error))
        return ""

    def has(self, step: str, sender: str) -> bool:
        """Return whether a file claims to be from a step and sender, and was not refused here."""
        return not self._refused.issuperset(self._names.get((step, sender), []))

    def add(self, step: str, sender: str, content: bytes) -> bool:
        """Write a file; return whether it is new."""
        name = name_of(self.round.round_id, step, sender, content)
        known = self._names.setdefault((step, sender), [])
        if name not in known:
            known.append(name)
        self._refused.discard(name)
        return self.store.add(name, content)

    # --- amending -----------------------------------------------------------------------------

    def amend(
        self,
        keys: Keys,
        *,
        deadline: datetime | None = None,
        drop: tuple[str, ...] = (),
        why: str = "",
    ) -> Amendment:
        """Sign a further amendment, and put it into the folder.

        Raise `RoundError` if it is useless: sites would answer, and spend budget, without a result.
        """
        if self.stopped:
            raise RoundError(self.stopped)
        if self.asks(*ASKED):  # the first request about the list of sites
            raise RoundError(DECIDED)
        before, needed = self.amendment, self.round.needed
        for name in drop:
            self.round.card(name)  # raises if it does not take part
        left = len(self.left(drop))
        if left < needed:
            raise RoundError(
                f"{left} sites would be left, and {needed} are needed: drop fewer, or open another "
                "round"
            )
        dropped = tuple(sorted({*before.dropped, *drop}))
        made = Amendment(before.number + 1, deadline or before.deadline, dropped, why)
        self.put_again(made.message(self.round, keys))
        return made

    def put_again(self, content: bytes) -> None:
        """Put an amendment into the folder, and apply it unless there is a later one."""
        made = self._amendment("", content)
        self.add("amend", self.round.coordinator.name, content)
        if made.number > self.amendment.number:
            self.amendment, self.round = made, replace(self.round, deadline=made.deadline)
