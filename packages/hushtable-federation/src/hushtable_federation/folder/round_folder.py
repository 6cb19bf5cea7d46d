"""All that lies in a folder about one round, read once: signed, or left aside.

Nothing here depends on the order of files, on how often one is there, or on who put it there.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from hushtable import files
from hushtable.arguments import entries
from hushtable.errors import HushTableError, RoundError
from hushtable_federation.clock import parsed, stamp
from hushtable_federation.folder.mailbox import Store, name_of
from hushtable_federation.folder.mailbox import parsed as parsed_name
from hushtable_federation.keys import Card, Keys
from hushtable_federation.online.messages import Message, Step, is_signed
from hushtable_federation.refusals import Refused
from hushtable_federation.result import Result
from hushtable_federation.round import Round

#: Before the name of a step, in the name of a file that asks a site.
ASK = "ask-"
#: Steps in which the coordinator asks each site by a file of its own, once it is decided who is
#: in the sum.
ASKED: tuple[Step, ...] = "survivors", "unmask", "without"
#: All in which it asks so: before, with whose keys the counts are masked.
REQUESTS: tuple[Step, ...] = "shares", *ASKED
#: Why a round cannot be amended any more.
DECIDED = (
    "it is decided already who is in the sum, and nothing can be amended: what is missing, the "
    "others make up for (hushtable round sync)"
)
#: Of a file in which a site refuses to begin; and before the name of a step that it refuses.
REFUSED = "refused"
#: Of a file by which a site's book is known to hold what it answered.
HEAD = "head"


def rounds(store: Store) -> list[Round]:
    """Return the rounds in a folder, the first opened first; what is none is left aside."""
    found = {}
    for name in store.names():
        claims = parsed_name(name)
        if claims is None or claims.step != "round":
            continue
        try:
            content = store.read(name)
            if content is not None:
                made = Round.from_bytes(content, name)
                found[made.round_id] = made
        except HushTableError:  # a stranger's, or of another version: `foreign` shows it
            continue
    return sorted(found.values(), key=lambda one: (one.opened, one.round_id))


def post_round(store: Store, round_: Round) -> None:
    """Put a round into a folder, for all whom it names."""
    name = name_of(round_.round_id, "round", round_.coordinator.name, round_.content)
    store.add(name, round_.content)


@dataclass(frozen=True)
class Amendment:
    """A change of the coordinator to a round: each one says all that holds from then on.

    Attributes
    ----------
    number : int
        From 1; the highest holds.
    deadline : datetime
        When the round ends.
    dropped : tuple of str
        Sites that are not waited for, and not in the sum.
    why : str
        For people.
    """

    number: int
    deadline: datetime
    dropped: tuple[str, ...] = ()
    why: str = ""

    def message(self, round_: Round, keys: Keys) -> bytes:
        """Return it as the coordinator signs it."""
        record = {
            "number": self.number, "deadline": stamp(self.deadline),
            "dropped": sorted(self.dropped), "why": self.why,
        }  # fmt: skip
        return Message.make(round_, "amend", keys, record).content

    @classmethod
    def of(cls, message: Message) -> "Amendment":
        """Read back what `message` wrote; raises `RoundError` on anything else."""
        kinds = {"number": int, "deadline": str, "dropped": list[str], "why": str}
        record = entries(message.body, "an amendment", kinds, error=RoundError)
        try:
            deadline = parsed(record["deadline"])
        except ValueError as error:
            raise RoundError(f"an amendment: {error}") from None
        if record["number"] < 1:
            raise RoundError(f"an amendment: number {record['number']}: the first has number 1")
        return cls(record["number"], deadline, tuple(record["dropped"]), record["why"])


@dataclass
class RoundFolder:
    """The files of one round in a folder.

    Attributes
    ----------
    round : Round
        As amended: its deadline is the one that holds.
    store : Store
        The folder.
    amendment : Amendment
        That holds; number 0 if there is none.
    stopped : str
        Why nothing may be answered or asked, for people: amendments that contradict each other.
        Empty if there is nothing.
    odd : dict of str to str
        Files that claim to be of this round and are not, with the reason.
    """

    round: Round
    store: Store
    amendment: Amendment = field(init=False)
    stopped: str = ""
    odd: dict[str, str] = field(default_factory=dict)
    _names: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    #: By sender, of all rounds in the folder.
    _heads: dict[str, list[str]] = field(default_factory=dict)
    #: Files that were read in this visit, and are none: not read again.
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
        self.amendment = self._amended()
        self.round = replace(self.round, deadline=self.amendment.deadline)

    def _amended(self) -> Amendment:
        found: dict[int, Amendment] = {0: Amendment(0, self.round.deadline)}
        card = self.round.coordinator
        for name, content in self.of("amend", card.name):
            try:
                made = Amendment.of(Message.read(content, card).check(self.round, "amend"))
            except HushTableError as error:
                self.refuse(name, str(error))
                continue
            if found.setdefault(made.number, made) != made:
                self.stopped = (
                    f"{card.name!r} signed two amendments of round {self.round.round_id[:12]} with "
                    f"number {made.number} that contradict each other: ask which one holds, and "
                    "for a new round; nothing is answered until then"
                )
        return found[max(found)]

    def of(self, step: str, sender: str, known: bytes = b"") -> Iterator[tuple[str, bytes]]:
        """Yield the files that claim to be of a step and sender, each with its content.

        The one with the content that is ``known`` is not read. If there are several, those without
        a signature of who has to write them are left out, however many strangers add; all others
        are yielded, and are to be checked.
        """
        mine = name_of(self.round.round_id, step, sender, known)
        names = [name for name in self._names.get((step, sender), []) if name != mine]
        return self._signed(names, self._writer(step, sender), step)

    def heads(self, card: Card) -> Iterator[tuple[str, bytes]]:
        """Yield what claims to be a head of a site's book, for any round in this folder."""
        return self._signed(self._heads.get(card.name, []), card, HEAD)

    def refuse(self, name: str, why: str) -> None:
        """Leave a file aside, and read it no more in this visit."""
        self._refused.add(name)
        self.odd[name] = why

    def _writer(self, step: str, sender: str) -> Card | None:
        """Return the card of who writes the files of a step; None if that is no party."""
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
            if content is None:  # cut off, perhaps: the next visit may find it whole
                self._refused.add(name)
            elif writer is None:
                self.refuse(name, "it is of no one who takes part in this round")
            elif len(names) > 1 and step != "result" and not is_signed(content, writer):
                self.refuse(name, f"it does not carry the signature of {whose!r}")
            else:
                yield name, content

    def requests(self, step: Step, site: str) -> Iterator[tuple[str, Message]]:
        """Yield what the coordinator asks a site in a step, by name of the file."""
        for name, content in self.of(ASK + step, site):
            try:
                message = Message.read(content, self.round.coordinator).check(self.round, step)
            except HushTableError as error:
                self.refuse(name, str(error))
                continue
            yield name, message

    def results(self) -> Iterator[tuple[str, bytes, Result]]:
        """Yield the results of the round: name of the file, its content, and what it holds."""
        for name, content in self.of("result", self.round.coordinator.name):
            try:
                result = Result.of(files.unpack(content, name))
                result.check_round(self.round)
            except HushTableError as error:
                self.refuse(name, str(error))
                continue
            yield name, content, result

    @property
    def decided(self) -> bool:
        """Whether the coordinator signed who is in the sum: the first request of all says so."""
        every = (self.requests(step, name) for step in ASKED for name in self.round.names)
        return any(True for found in every for _ in found)

    def left(self, also: Collection[str] = ()) -> list[str]:
        """Return the sites that are not dropped, nor ``also``, as in the roster."""
        out = {*self.amendment.dropped, *also}
        return [name for name in self.round.names if name not in out]

    def refused(self, site: str, step: str = "") -> str:
        """Return the word with which a site refused a step, if it did; by default to begin."""
        for name, content in self.of(REFUSED + step, site):
            try:
                Message.read(content, self.round.card(site)).check(self.round, "refused")
            except Refused as error:
                return error.word
            except HushTableError as error:
                self.refuse(name, str(error))
        return ""

    def there(self, step: str) -> list[str]:
        """Return the senders of whom something claims to be of a step, sorted."""
        return sorted(sender for of, sender in self._names if of == step)

    def add(self, step: str, sender: str, content: bytes) -> bool:
        """Put a file there; return whether it was not there before."""
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
        """Sign a further amendment, and put it there.

        Raises `RoundError` if it would help no one: sites would answer, and spend, for nothing.
        """
        if self.stopped:
            raise RoundError(self.stopped)
        if self.decided:
            raise RoundError(DECIDED)
        before, needed = self.amendment, self.round.needed
        for name in drop:
            self.round.card(name)  # raises if it takes no part
        left = len(self.left(drop))
        if left < needed:
            raise RoundError(
                f"{left} sites would be left, and {needed} are needed: drop fewer, or open another "
                "round"
            )
        made = Amendment(
            before.number + 1,
            before.deadline if deadline is None else deadline,
            tuple(sorted({*before.dropped, *drop})),
            why,
        )
        self.put_again(made.message(self.round, keys))
        return made

    def put_again(self, content: bytes) -> None:
        """Have an amendment lie there, and hold unless there is a later one."""
        card = self.round.coordinator
        made = Amendment.of(Message.read(content, card).check(self.round, "amend"))
        self.add("amend", card.name, content)
        if made.number > self.amendment.number:
            self.amendment, self.round = made, replace(self.round, deadline=made.deadline)
