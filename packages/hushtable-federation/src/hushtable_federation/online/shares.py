"""Steps ``keys`` and ``shares``, and the list of who is in the sum: what a site deals and takes.

All that can fail because of the rows fails in the first step, before anyone spends; from
then on a site answers from its book alone. In that step, a site draws a key for this round, on
which its masks and seals depend. The secrets of a site are the key of its own mask, and
that of its mask with each other site: in the order of the roster, its own at its own place. A row
of shares that is not what its dealer proved is complained about, with the key that opens it.
"""

import base64
import hashlib
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import rfc8785
from numpy.typing import NDArray

from hushtable import files
from hushtable.arguments import is_digest
from hushtable.counts.sketch import Sketch
from hushtable.data.persons import PersonsCounted
from hushtable.errors import RoundError
from hushtable.plans.plan import Plan
from hushtable.privacy.mechanisms import library
from hushtable_federation.book.book import Book
from hushtable_federation.book.digests import PersonsSeen, RowDigests, from_bytes, to_bytes
from hushtable_federation.keys import Keys, crypto
from hushtable_federation.masks import (
    SEAL_BYTES,
    Dealing,
    RoundKeys,
    place_of,
    seal_row,
    unseal_row,
)
from hushtable_federation.online.messages import Message, Step, enclosed, unclosed
from hushtable_federation.refusals import Refusal, Refused, refusing
from hushtable_federation.reply import Reply
from hushtable_federation.round import Round

#: As JSON has it.
Kept = dict[str, Any]
#: Name of the row of the book's steps that holds what was counted in the first one.
_COUNTED = "rows"


class Statement(NamedTuple):
    """Of a person who is here, about the rows; as in `Reply.answer` and `Reply.counted`."""

    new_people: bool = False
    outside_too: bool = False


class CountedRows(NamedTuple):
    """Counts of the rows, of shape (n_cells,), and by what rows and persons are known again.

    ``new_people`` and ``attended`` are as when they were counted: whether a person says that they
    are of other people, and whether one looked at the round.
    """

    counts: NDArray[np.int64]
    digests: RowDigests | None
    persons: PersonsSeen
    new_people: bool
    attended: bool


NOTHING_SAID = Statement()


@dataclass(frozen=True)
class SiteState:
    """A site in a round under way; what it holds between steps is in its book.

    ``reply`` checks the round on every side, again in each step that needs it; it takes whether a
    person looks at it. ``count`` and ``recognise`` are those of `OnlineSite`.
    """

    round: Round
    keys: Keys
    book: Book
    reply: Callable[[bool], Reply]
    count: Callable[[Plan], Sketch]
    recognise: Callable[[], RowDigests | None]
    statement: Statement = NOTHING_SAID
    attended: bool = False

    @property
    def me(self) -> str:
        """The site's name."""
        return self.keys.card.name

    def sign(self, step: Step, body: Kept, arrays: files.Arrays | None = None) -> bytes:
        """Return the signed answer to a step."""
        return Message.make(self.round, step, self.keys, body, arrays).content

    def kept(self, step: Step) -> Kept:
        """Return what was kept of a step before; refuses if it was not asked, or is forgotten."""
        kept = self._noted(step, step)[1]
        if not kept:
            raise Refused(
                Refusal.TIME,
                f"what step {step!r} kept is forgotten: the round has ended, its time is over, or "
                "someone here has refused it",
            )
        return kept

    def answered(self, step: Step) -> bytes:
        """Return what was answered in a step before; refuses if it was not asked."""
        return self._noted(step, step)[0]

    def round_keys(self) -> RoundKeys:
        """Return the keys of this round; raises as `kept` once they are forgotten."""
        return self.keys_with(self.kept("shares")["keys"])

    def keys_with(self, public: Mapping[str, str]) -> RoundKeys:
        """Return this site's key for the round, with the public ones of those it masks with."""
        private = bytes.fromhex(self.kept("keys")["private"])
        return RoundKeys(
            self.round, self.me, crypto().X25519PrivateKey.from_private_bytes(private), public
        )

    # --- the rows -----------------------------------------------------------------------------

    def keep_rows(
        self,
        counts: NDArray[np.int64],
        digests: RowDigests | None,
        persons: PersonsCounted | None,
    ) -> None:
        """Keep the counts of the rows, and by what to recognise these."""
        counted = PersonsSeen.of(persons)
        register = None if counted.register is None else to_bytes(counted.register)
        kept = {
            "digests": _text(None if digests is None else digests.to_bytes()),
            "sample": _text(None if counted.sample is None else counted.sample.to_bytes()),
            "register": _text(register),
            "new_people": self.statement.new_people,
            "attended": self.attended,
        }
        content = counts.astype("<i8").tobytes()
        self.book.note_step(self.round.round_id, _COUNTED, "", content, kept)

    def rows(self) -> CountedRows:
        """Return what `keep_rows` was given."""
        counts, kept = self._noted(_COUNTED, "keys")
        digests, sample, register = (
            None if kept[name] is None else base64.b64decode(kept[name])
            for name in ("digests", "sample", "register")
        )
        persons = PersonsSeen(
            None if sample is None else RowDigests.from_bytes(sample),
            None if register is None else from_bytes(register),
        )
        return CountedRows(
            np.frombuffer(counts, "<i8").astype(np.int64),
            None if digests is None else RowDigests.from_bytes(digests),
            persons,
            kept["new_people"],
            kept["attended"],
        )

    def _noted(self, name: str, step: str) -> tuple[bytes, Kept]:
        noted = self.book.step(self.round.round_id, name)
        if noted is None:
            raise Refused(Refusal.ORDER, f"step {step!r} comes first, and was not asked")
        return noted[1:]


def _text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


#: Signed within the answer, so that it can be handed on without the rows for others.
_PUBLIC = "dealing"
_DEALT = ("secrets", "readers", "proof", "rows")
_KEYS = "keys"


def answer_keys(site: SiteState, _: Message | None) -> tuple[bytes, Kept]:
    """Check the round on every side, and count the rows; draw the site's key for the round."""
    reply = site.reply(site.attended)
    if not site.round.terms.masked:
        raise Refused(Refusal.ROUND, "steps are for masked rounds: ask for one")
    if reply.earlier is not None and reply.earlier.round_id == site.round.round_id:
        raise Refused(
            Refusal.ANSWERED, "what this answer's steps kept is gone: ask for a new round"
        )
    reply.check_known()
    library()  # without it there will be no noise, and no answer
    sketch = site.count(reply.plan)
    counts = reply.counted(sketch, outside_too=site.statement.outside_too)
    digests = site.recognise()
    if digests is not None:
        site.book.check_people(reply.data_set, digests, site.statement.new_people)
    site.keep_rows(counts, digests, sketch.persons)
    private = crypto().X25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw().hex()
    return site.sign("keys", {"public": public}), {"private": private.private_bytes_raw().hex()}


class RoundKey(NamedTuple):
    """A site's key for a round: 64 hexadecimal digits, and the digest of what says so."""

    public: str
    digest: str

    @classmethod
    def read(cls, round_: Round, site: str, content: bytes) -> "RoundKey":
        """Check what a site signed; raises `RoundError`."""
        message = Message.read(content, round_.card(site)).check(round_, "keys")
        public = message.body.get("public")
        if not is_digest(public):  # of the same form: 32 bytes in hexadecimal digits
            raise RoundError(f"{site!r} drew no key for this round")
        return cls(str(public), message.digest)


def digest_of(contents: Mapping[str, bytes]) -> str:
    """Return the digest of what sites signed about their keys."""
    each = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    return hashlib.sha256(rfc8785.dumps(each)).hexdigest()


def answer_shares(site: SiteState, contents: Mapping[str, bytes]) -> tuple[bytes, Kept]:
    """Deal shares of all keys of masks, with those sites whose keys for the round these are."""
    with refusing(Refusal.SHARES):
        found = {name: RoundKey.read(site.round, name, one) for name, one in contents.items()}
    check_enough(site.round, found)
    if found.get(site.me) != RoundKey.read(site.round, site.me, site.answered("keys")):
        raise Refused(Refusal.SITES, "the keys for this round are without the one of this site")
    keys = site.keys_with({name: one.public for name, one in found.items()})
    with refusing(Refusal.SHARES):
        pairs = keys.pairs()
    own_mask = secrets.token_bytes(32)
    # Of a site without a key there is no mask, and no one is asked for what stands in its place.
    secret = {name: pairs.get(name, secrets.token_bytes(32)) for name in site.round.names}
    dealing, rows = Dealing.deal(
        bind_dealing(site.round, site.me),
        [*(secret | {site.me: own_mask}).values()],
        site.round.needed,
        len(site.round.names),
    )
    sealed = [
        seal_row(keys.seal(name) if name in found else secret[name], site.me, name, row)
        for name, row in zip(site.round.names, rows, strict=True)
    ]
    digests = {name: one.digest for name, one in found.items()}
    content, digest = _packed(site, dealing, sealed, digests)
    kept = {"own_mask": own_mask.hex(), "digest": digest, "keys": dict(keys.public)}
    return content, kept | {"digests": digests}


def _packed(
    site: SiteState, dealing: Dealing, sealed: list[bytes], keys: Mapping[str, str]
) -> tuple[bytes, str]:
    """Return the answer, and the digest of its public part."""
    digests = [hashlib.sha256(row).digest() for row in sealed]
    arrays = {name: getattr(dealing, name) for name in _DEALT[:-1]}
    arrays["rows"] = _table(digests)
    arrays[_KEYS] = _table([bytes.fromhex(keys.get(n, _NO_KEY)) for n in site.round.names])
    public = Message.make(site.round, _PUBLIC, site.keys, {}, arrays)
    whole = {_PUBLIC: _table([public.content])[0], "sealed": _table(sealed)}
    return site.sign("shares", {}, whole), public.digest


def _table(rows: list[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)


#: In place of the digest of a site's key, where there is no mask with it.
_NO_KEY = 64 * "0"


def bind_dealing(round_: Round, dealer: str) -> bytes:
    """Return what binds a site's dealing to the round and to the site."""
    return f"{round_.round_id} {dealer}".encode()


# --- what was dealt, as others have it ------------------------------------------------------------


@dataclass(frozen=True)
class Dealt:
    """The public part of what a site dealt: checked, but for the proof, which is for readers.

    ``message`` is as the site signed it; ``rows`` are the digests of the sealed rows, of shape
    (n_sites, 32). ``keys`` are, by site with which it has a mask, and of itself, the digests of
    the keys for the round that these agreed on.
    """

    message: Message
    dealing: Dealing
    rows: NDArray[np.uint8]
    keys: dict[str, str]

    @classmethod
    def read(cls, round_: Round, site: str, content: bytes) -> "Dealt":
        """Check what a site signed; raises `RoundError`."""
        message = Message.read(content, round_.card(site)).check(round_, _PUBLIC)
        n = len(round_.names)
        shapes = {"secrets": (n, 32), "readers": (n, 32), "rows": (n, 32)}
        shapes |= {"proof": (round_.needed, 33), _KEYS: (n, 32)}
        found = message.arrays
        if {name: found[name].shape for name in found} != shapes:
            raise RoundError(f"{site!r} did not deal its shares to all")
        dealing = Dealing(bind_dealing(round_, site), *(found[name] for name in _DEALT[:-1]))
        if found["rows"].dtype != np.uint8 or found[_KEYS].dtype != np.uint8:
            raise RoundError(f"{site!r} did not deal its shares to all")
        digests = [one.tobytes().hex() for one in found[_KEYS]]
        each = zip(round_.names, digests, strict=True)
        keys = {name: digest for name, digest in each if digest != _NO_KEY}
        return cls(message, dealing, found["rows"], keys)

    def agrees(self, keys: Mapping[str, str]) -> bool:
        """Whether it has masks with all of these sites, by these keys; and perhaps with others."""
        return all(self.keys.get(name) == digest for name, digest in keys.items())

    def is_row(self, place: int, sealed: bytes) -> bool:
        """Whether this is the sealed row for the reader at a place."""
        return hashlib.sha256(sealed).digest() == bytes(self.rows[place - 1])


def read_dealt(round_: Round, message: Message) -> tuple[Dealt, dict[str, bytes]]:
    """Return what a site dealt, and the sealed row of each reader; raises `RoundError`."""
    arrays, sender = message.arrays, message.sender
    if set(arrays) != {_PUBLIC, "sealed"} or any(a.dtype != np.uint8 for a in arrays.values()):
        raise RoundError(f"{sender!r} did not deal its shares to all")
    dealt = Dealt.read(round_, sender, arrays[_PUBLIC].tobytes())
    width = dealt.dealing.row_bytes + SEAL_BYTES
    if arrays["sealed"].shape != (len(round_.names), width):
        raise RoundError(f"{sender!r} did not deal its shares to all")
    rows = {name: arrays["sealed"][i].tobytes() for i, name in enumerate(round_.names)}
    if not all(dealt.is_row(place_of(round_, name), row) for name, row in rows.items()):
        raise RoundError(f"{sender!r} dealt other rows of shares than it signed")
    return dealt, rows


#: By site, the digests of its submission and of the public part of what it dealt.
Sites = dict[str, dict[str, str]]
_DIGESTS = {"masked", "shares"}
_ROWS = "rows"


@dataclass(frozen=True)
class Complaint:
    """A row that does not open, or is not what its dealer proved: with the key of the two sites.

    Anyone who has the row, which the dealer signed, and the key can see who is right. The key opens
    nothing but the two rows between these sites in this round.
    """

    key: bytes
    sealed: bytes


@dataclass(frozen=True)
class CheckedList:
    """A list as a site takes it: by dealer, its row with the opening, or the complaint about it."""

    sites: Sites
    rows: dict[str, bytes]
    complaints: dict[str, Complaint]

    def answer(self) -> tuple[Kept, files.Arrays]:
        """Return what of it goes into the answer: body and arrays."""
        keys = {name: one.key.hex() for name, one in self.complaints.items()}
        arrays = enclosed({name: one.sealed for name, one in self.complaints.items()})
        return {"sites": self.sites, "complaints": keys}, arrays

    def kept(self) -> Kept:
        """Return what the site's book keeps of it."""
        return {"sites": self.sites, "rows": {name: row.hex() for name, row in self.rows.items()}}


def ask_about_list(
    sites: Sites, dealt: Mapping[str, Dealt], sealed: Mapping[str, bytes]
) -> tuple[dict[str, Any], files.Arrays]:
    """Return body and arrays for one site; ``sealed`` are the rows for it, by dealer."""
    rows = b"".join(sealed[name] for name in sorted(sites))
    arrays = enclosed({name: dealt[name].message.content for name in sites})
    arrays[_ROWS] = np.frombuffer(rows, np.uint8).reshape(len(sites), -1)
    return {"sites": sites}, arrays


def take_list(site: SiteState, asked: Message) -> CheckedList:
    """Check a list and open the rows of shares that come with it.

    Raises `Refused` if it is not one of enough sites of the roster with this one as it answered,
    or what comes with it is not what these sites signed.
    """
    sites = _checked(site, asked.body.get("sites"))
    keys = site.kept("shares")["digests"]
    if not set(sites) <= set(keys):
        raise Refused(Refusal.SITES, "this site has no masks with some sites of the list")
    keys, mine = {name: keys[name] for name in sites}, site.round_keys()
    sealed, found = asked.arrays.get(_ROWS), unclosed(asked)
    if set(found) != set(sites) or sealed is None or sealed.shape[:1] != (len(sites),):
        raise Refused(Refusal.REQUEST, f"step {asked.step!r}: the request is not of its form")
    rows, complaints = dict[str, bytes](), dict[str, Complaint]()
    place = place_of(site.round, site.me)
    with refusing(Refusal.SHARES):
        for i, dealer in enumerate(sorted(sites)):
            dealt = Dealt.read(site.round, dealer, found[dealer])
            content = sealed[i].tobytes()
            if dealt.message.digest != sites[dealer]["shares"] or not dealt.is_row(place, content):
                raise RoundError(f"the coordinator hands on other shares than {dealer!r} signed")
            if not dealt.agrees(keys):
                raise RoundError(
                    f"{dealer!r} has no mask with a site of the list, or by other keys"
                )
            key = mine.seal(dealer)
            row = open_row(dealt, key, site.me, place, content)
            if row is None:
                complaints[dealer] = Complaint(key, content)
            else:
                rows[dealer] = row
    return CheckedList(sites, rows, complaints)


def open_row(dealt: Dealt, key: bytes, reader: str, place: int, sealed: bytes) -> bytes | None:
    """Return the row for a reader, and its opening; None if it is not what was proved."""
    try:
        row = unseal_row(key, dealt.message.sender, reader, sealed)
    except RoundError:
        return None
    opening = dealt.dealing.opening(row, place)
    return None if opening is None else row + opening


def _checked(site: SiteState, sites: Any) -> Sites:
    if not isinstance(sites, dict) or not all(map(_is_entry, sites.values())):
        raise Refused(Refusal.REQUEST, "the list of sites is not of its form")
    check_enough(site.round, sites)
    given = site.book.answer(site.round.round_id)
    if given is None:
        raise Refused(Refusal.ORDER, "step 'masked' comes first, and was not asked")
    mine = {
        "masked": files.unpack(given.content, "the book's copy").digest,
        "shares": site.kept("shares")["digest"],
    }
    if sites.get(site.me) != mine:
        raise Refused(Refusal.SITES, "the list of sites has not what this site answered")
    return sites


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or set(entry) != _DIGESTS:
        return False
    return all(map(is_digest, entry.values()))


def check_enough(round_: Round, names: Mapping[str, Any]) -> None:
    """Raise `Refused` unless these are enough sites, all of the roster."""
    if not set(names) <= set(round_.names):
        raise Refused(Refusal.SITES, "the list of sites is not one of those of the round")
    least = round_.needed
    if len(names) < least:
        raise Refused(Refusal.SITES, f"{len(names)} sites are left, and {least} are needed")


@dataclass
class Judgement:
    """Sites found out, by name, with words for people; and pairs of which one is."""

    dealers: dict[str, str] = field(default_factory=dict)
    liars: dict[str, str] = field(default_factory=dict)
    disputed: list[tuple[str, str]] = field(default_factory=list)


def judge(round_: Round, dealt: Mapping[str, Dealt], answers: Iterable[Message]) -> Judgement:
    """Return who is found out by the complaints in signed answers to a list.

    ``dealt`` are the public parts that everyone signed; raises nothing over answers of any form.
    """
    judged, open_ = Judgement(), dict[str, list[str]]()
    for message in answers:
        for dealer, true in _complaints(round_, dealt, message):
            if true is None:
                open_.setdefault(dealer, []).append(message.sender)
            elif true:
                judged.dealers[dealer] = f"dealt {message.sender!r} shares that are none"
            else:
                judged.liars[message.sender] = f"complained falsely about {dealer!r}"
    for dealer, those in open_.items():
        if len(those) >= enough(round_):
            judged.dealers[dealer] = f"dealt {len(those)} sites shares that do not open"
        elif dealer not in judged.dealers:
            judged.disputed += [(one, dealer) for one in those]
    return judged


def enough(round_: Round) -> int:
    """Return how many complaints without proof are believed: more than sites may lie."""
    terms = round_.terms
    both = round_.coordinator in round_.sites
    return max(len(round_.sites) - round_.needed, terms.colluders + both) + 1


def _complaints(
    round_: Round, dealt: Mapping[str, Dealt], message: Message
) -> Iterable[tuple[str, bool | None]]:
    """Yield who is complained about, and whether rightly; None if no one can tell."""
    record = message.body.get("complaints")
    rows = unclosed(message)
    for dealer, key in record.items() if isinstance(record, dict) else ():
        if dealer not in dealt or dealer not in rows:
            continue
        place = place_of(round_, message.sender)
        if not dealt[dealer].is_row(place, rows[dealer]):
            yield dealer, False  # a row that the dealer did not sign
            continue
        yield dealer, _holds(dealt[dealer], key, message.sender, place, rows[dealer])


def _holds(dealt: Dealt, key: object, reader: str, place: int, sealed: bytes) -> bool | None:
    try:
        secret = bytes.fromhex(str(key))
        unseal_row(secret, dealt.message.sender, reader, sealed)
    except (RoundError, ValueError):
        return None
    return open_row(dealt, secret, reader, place, sealed) is None
