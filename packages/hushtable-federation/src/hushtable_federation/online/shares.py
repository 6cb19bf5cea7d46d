"""Steps ``keys`` and ``shares``, and the list of sites in the sum: what a site deals and accepts.

Everything that can fail because of the rows fails in the first step, before any site spends; after
that, a site answers from its book alone. In that step, a site draws a key for this round, on which
its masks and seals depend. The secrets of a site are the key of its own mask, and the key of its
mask with each other site, in the order of the roster, its own at its own place. If a row of shares
is not what its dealer proved, the reader complains, and reveals the key that opens the row.
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
    agreed_key,
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
#: Name of the row in the book's steps that holds the counts of the first step.
_COUNTED = "rows"


class Statement(NamedTuple):
    """A person's statements about the rows; as in `Reply.answer` and `Reply.counted`."""

    new_people: bool = False
    outside_too: bool = False


class CountedRows(NamedTuple):
    """Counts of the rows, of shape (n_cells,), and the digests that identify rows and persons.

    ``new_people`` and ``attended`` are as at the time of counting: whether a person states that the
    rows are about different people, and whether a person reviewed the round. ``data_set`` is the
    name of the rows; None if an earlier version counted them.
    """

    counts: NDArray[np.int64]
    digests: RowDigests | None
    persons: PersonsSeen
    new_people: bool
    attended: bool
    data_set: str | None


NOTHING_SAID = Statement()


@dataclass(frozen=True)
class SiteState:
    """A site in a running round; its state between steps is in its book.

    ``reply`` checks every aspect of the round, again in each step that needs it; its argument is
    whether a person reviews it. ``count`` and ``recognise`` are those of `OnlineSite`.
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
        """Return the site's name."""
        return self.keys.card.name

    def sign(self, step: Step, body: Kept, arrays: files.Arrays | None = None) -> bytes:
        """Return the signed answer to a step."""
        return Message.make(self.round, step, self.keys, body, arrays).content

    def kept(self, step: Step) -> Kept:
        """Return the data kept from an earlier step; refuse if they are missing or forgotten."""
        kept = self._noted(step, step)[1]
        if not kept:
            raise Refused(
                Refusal.TIME,
                f"the data kept from step {step!r} are forgotten: the round has ended, its time "
                "is over, or a person here has refused it",
            )
        return kept

    def answered(self, step: Step) -> bytes:
        """Return the answer to an earlier step; refuse if there was none."""
        return self._noted(step, step)[0]

    def round_keys(self) -> RoundKeys:
        """Return the keys of this round; raise as `kept` after they are forgotten."""
        return self.keys_with(self.kept("shares")["keys"])

    def keys_with(self, public: Mapping[str, str]) -> RoundKeys:
        """Return this site's key for the round, with the public keys of the sites it masks with."""
        private = bytes.fromhex(self.kept("keys")["private"])
        return RoundKeys(
            self.round, self.me, crypto().X25519PrivateKey.from_private_bytes(private), public
        )

    # --- the rows -----------------------------------------------------------------------------

    def keep_rows(
        self,
        counts: NDArray[np.int64],
        data_set: str,
        digests: RowDigests | None,
        persons: PersonsCounted | None,
    ) -> None:
        """Keep the counts of the rows, the name of their data set, and what recognises them."""
        counted = PersonsSeen.of(persons)
        register = None if counted.register is None else to_bytes(counted.register)
        kept = {
            "digests": _text(None if digests is None else digests.to_bytes()),
            "sample": _text(None if counted.sample is None else counted.sample.to_bytes()),
            "register": _text(register),
            "new_people": self.statement.new_people,
            "attended": self.attended,
            "data_set": data_set,
        }
        content = counts.astype("<i8").tobytes()
        self.book.note_step(self.round.round_id, _COUNTED, "", content, kept)

    def rows(self) -> CountedRows:
        """Return the counts and digests that `keep_rows` stored."""
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
            kept.get("data_set"),
        )

    def _noted(self, name: str, step: str) -> tuple[bytes, Kept]:
        noted = self.book.step(self.round.round_id, name)
        if noted is None:
            raise Refused(Refusal.ORDER, f"step {step!r} has to come first")
        return noted[1:]


def _text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


#: Signed within the answer, so that it can be passed on without the rows for others.
_PUBLIC = "dealing"
_DEALT = ("secrets", "readers", "proof", "rows")
_KEYS = "keys"


def answer_keys(site: SiteState, _: Message | None) -> tuple[bytes, Kept]:
    """Check every aspect of the round, and count the rows; draw the site's key for the round."""
    reply = site.reply(site.attended)
    if not site.round.terms.masked:
        raise Refused(Refusal.ROUND, "steps are only for masked rounds: request one")
    if reply.earlier is not None and reply.earlier.round_id == site.round.round_id:
        raise Refused(
            Refusal.ANSWERED, "the data kept for this answer's steps are gone: request a new round"
        )
    reply.check_known()
    library()  # without it, there will be no noise, and no answer
    sketch = site.count(reply.plan)
    counts = reply.counted(sketch, outside_too=site.statement.outside_too)
    digests = site.recognise()
    if digests is not None:
        site.book.check_people(reply.data_set, digests, site.statement.new_people)
    site.keep_rows(counts, reply.data_set, digests, sketch.persons)
    private = crypto().X25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw().hex()
    return site.sign("keys", {"public": public}), {"private": private.private_bytes_raw().hex()}


class NoKeyError(RoundError):
    """A site signed that its key for a round is something that is no key."""


class RoundKey(NamedTuple):
    """A site's key for a round: 64 hexadecimal digits, and the digest of its signed statement."""

    public: str
    digest: str

    @classmethod
    def read(cls, round_: Round, site: str, content: bytes) -> "RoundKey":
        """Check a signed statement of a site; raise `RoundError` if it is not valid.

        With some points, no site can agree on a mask, so one of them would stop all others.
        """
        message = Message.read(content, round_.card(site)).check(round_, "keys")
        public = message.body.get("public")
        if not is_digest(public):  # the same form: 32 bytes in hexadecimal digits
            raise NoKeyError(f"{site!r} sent no valid key for this round")
        try:
            agreed_key(crypto().X25519PrivateKey.generate(), str(public))
        except RoundError as error:
            raise NoKeyError(f"{site!r} sent no valid key for this round: {error}") from None
        return cls(str(public), message.digest)


def digest_of(contents: Mapping[str, bytes]) -> str:
    """Return the digest of the sites' signed statements about their keys."""
    each = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    return hashlib.sha256(rfc8785.dumps(each)).hexdigest()


def answer_shares(site: SiteState, contents: Mapping[str, bytes]) -> tuple[bytes, Kept]:
    """Deal shares of all mask keys, with the sites whose keys for the round are given."""
    with refusing(Refusal.SHARES):
        found = {name: RoundKey.read(site.round, name, one) for name, one in contents.items()}
    check_enough(site.round, found)
    if found.get(site.me) != RoundKey.read(site.round, site.me, site.answered("keys")):
        raise Refused(Refusal.SITES, "the keys for this round lack the one of this site")
    keys = site.keys_with({name: one.public for name, one in found.items()})
    with refusing(Refusal.SHARES):
        pairs = keys.pairs()
    own_mask = secrets.token_bytes(32)
    # There is no mask with a site without a key, and its placeholder is never requested.
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
    # If one of them signs a different key later, this proves it.
    signed = {name: _text(one) for name, one in contents.items()}
    return content, kept | {"digests": digests, "signed": signed}


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


#: Replaces the digest of a site's key, if there is no mask with it.
_NO_KEY = 64 * "0"


def bind_dealing(round_: Round, dealer: str) -> bytes:
    """Return the bytes that bind a site's dealing to the round and the site."""
    return f"{round_.round_id} {dealer}".encode()


# --- what was dealt, as others have it ------------------------------------------------------------


@dataclass(frozen=True)
class Dealt:
    """The public part of a site's dealing: checked, except for the proof, which readers check.

    ``message`` is the one that the site signed; ``rows`` are the digests of the sealed rows, of
    shape (n_sites, 32). ``keys`` are the digests of the keys for the round, by site, for each site
    that it has a mask with, and for itself.
    """

    message: Message
    dealing: Dealing
    rows: NDArray[np.uint8]
    keys: dict[str, str]

    @classmethod
    def read(cls, round_: Round, site: str, content: bytes) -> "Dealt":
        """Check a signed statement of a site; raise `RoundError` if it is not valid."""
        message = Message.read(content, round_.card(site)).check(round_, _PUBLIC)
        n = len(round_.names)
        shapes = {"secrets": (n, 32), "readers": (n, 32), "rows": (n, 32)}
        shapes |= {"proof": (round_.needed, 33), _KEYS: (n, 32)}
        found = message.arrays
        if {name: found[name].shape for name in found} != shapes:
            raise RoundError(f"{site!r} did not deal its shares to all sites")
        dealing = Dealing(bind_dealing(round_, site), *(found[name] for name in _DEALT[:-1]))
        if found["rows"].dtype != np.uint8 or found[_KEYS].dtype != np.uint8:
            raise RoundError(f"{site!r} did not deal its shares to all sites")
        digests = [one.tobytes().hex() for one in found[_KEYS]]
        each = zip(round_.names, digests, strict=True)
        keys = {name: digest for name, digest in each if digest != _NO_KEY}
        return cls(message, dealing, found["rows"], keys)

    def agrees(self, keys: Mapping[str, str]) -> bool:
        """Return whether it has masks with at least these sites, by these keys."""
        return all(self.keys.get(name) == digest for name, digest in keys.items())

    def is_row(self, place: int, sealed: bytes) -> bool:
        """Return whether this is the sealed row for the reader at a place."""
        return hashlib.sha256(sealed).digest() == bytes(self.rows[place - 1])


def read_dealt(round_: Round, message: Message) -> tuple[Dealt, dict[str, bytes]]:
    """Return what a site dealt, and the sealed row of each reader, after checks."""
    arrays, sender = message.arrays, message.sender
    if set(arrays) != {_PUBLIC, "sealed"} or any(a.dtype != np.uint8 for a in arrays.values()):
        raise RoundError(f"{sender!r} did not deal its shares to all sites")
    dealt = Dealt.read(round_, sender, arrays[_PUBLIC].tobytes())
    width = dealt.dealing.row_bytes + SEAL_BYTES
    if arrays["sealed"].shape != (len(round_.names), width):
        raise RoundError(f"{sender!r} did not deal its shares to all sites")
    rows = {name: arrays["sealed"][i].tobytes() for i, name in enumerate(round_.names)}
    if not all(dealt.is_row(place_of(round_, name), row) for name, row in rows.items()):
        raise RoundError(f"{sender!r} dealt rows of shares that differ from those it signed")
    return dealt, rows


#: By site, the digests of its submission and of the public part of its dealing.
Sites = dict[str, dict[str, str]]
_DIGESTS = {"masked", "shares"}
_ROWS = "rows"


@dataclass(frozen=True)
class Complaint:
    """A complaint about a row that does not open, or is not what its dealer proved.

    Anyone who has the row, which the dealer signed, and the key can check who is right. The key
    opens only the two rows between these sites in this round.
    """

    key: bytes
    sealed: bytes


@dataclass(frozen=True)
class CheckedList:
    """A list as a site accepts it: by dealer, its row and opening, or the complaint."""

    sites: Sites
    rows: dict[str, bytes]
    complaints: dict[str, Complaint]

    def answer(self) -> tuple[Kept, files.Arrays]:
        """Return the parts for the answer: body and arrays."""
        keys = {name: one.key.hex() for name, one in self.complaints.items()}
        arrays = enclosed({name: one.sealed for name, one in self.complaints.items()})
        return {"sites": self.sites, "complaints": keys}, arrays

    def kept(self) -> Kept:
        """Return the parts that the site's book keeps."""
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
    """Check a list, and open the rows of shares that come with it.

    Raise `Refused` if it does not contain enough sites of the roster, or not this site as it
    answered, or if the rows are not those that these sites signed.
    """
    sites = _checked(site, asked.body.get("sites"))
    keys = site.kept("shares")["digests"]
    if not set(sites) <= set(keys):
        raise Refused(Refusal.SITES, "this site has no masks with some sites on the list")
    keys, mine = {name: keys[name] for name in sites}, site.round_keys()
    sealed, found = asked.arrays.get(_ROWS), unclosed(asked)
    if set(found) != set(sites) or sealed is None or sealed.shape[:1] != (len(sites),):
        raise Refused(Refusal.REQUEST, f"step {asked.step!r}: the request is malformed")
    rows, complaints = dict[str, bytes](), dict[str, Complaint]()
    place = place_of(site.round, site.me)
    with refusing(Refusal.SHARES):
        for i, dealer in enumerate(sorted(sites)):
            dealt = Dealt.read(site.round, dealer, found[dealer])
            content = sealed[i].tobytes()
            if dealt.message.digest != sites[dealer]["shares"] or not dealt.is_row(place, content):
                raise RoundError(f"the coordinator passes on shares that {dealer!r} did not sign")
            if not dealt.agrees(keys):
                raise RoundError(
                    f"{dealer!r} has no mask with a site on the list, or by different keys"
                )
            key = mine.seal(dealer)
            row = open_row(dealt, key, site.me, place, content)
            if row is None:
                complaints[dealer] = Complaint(key, content)
            else:
                rows[dealer] = row
    return CheckedList(sites, rows, complaints)


def open_row(dealt: Dealt, key: bytes, reader: str, place: int, sealed: bytes) -> bytes | None:
    """Return the row for a reader, and its opening; None if it is not what the dealer proved."""
    try:
        row = unseal_row(key, dealt.message.sender, reader, sealed)
    except RoundError:
        return None
    opening = dealt.dealing.opening(row, place)
    return None if opening is None else row + opening


def _checked(site: SiteState, sites: Any) -> Sites:
    if not isinstance(sites, dict) or not all(map(_is_entry, sites.values())):
        raise Refused(Refusal.REQUEST, "the list of sites is malformed")
    check_enough(site.round, sites)
    given = site.book.answer(site.round.round_id)
    if given is None:
        raise Refused(Refusal.ORDER, "step 'masked' has to come first")
    mine = {
        "masked": files.unpack(given.content, "the book's copy").digest,
        "shares": site.kept("shares")["digest"],
    }
    if sites.get(site.me) != mine:
        raise Refused(Refusal.SITES, "the list of sites does not have this site's answer")
    return sites


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or set(entry) != _DIGESTS:
        return False
    return all(map(is_digest, entry.values()))


def check_enough(round_: Round, names: Mapping[str, Any]) -> None:
    """Raise `Refused` unless these are enough sites, all from the roster."""
    if not set(names) <= set(round_.names):
        raise Refused(Refusal.SITES, "the list names sites that are not in the round")
    least = round_.needed
    if len(names) < least:
        raise Refused(Refusal.SITES, f"{len(names)} sites are left, and {least} are needed")


@dataclass
class Judgement:
    """Sites that cheated, by name, with messages; and pairs in which one of the two did."""

    dealers: dict[str, str] = field(default_factory=dict)
    liars: dict[str, str] = field(default_factory=dict)
    disputed: list[tuple[str, str]] = field(default_factory=list)


def judge(round_: Round, dealt: Mapping[str, Dealt], answers: Iterable[Message]) -> Judgement:
    """Return which sites the complaints in signed answers to a list expose.

    ``dealt`` are the signed public parts; malformed answers raise nothing.
    """
    judged, open_ = Judgement(), dict[str, list[str]]()
    for message in answers:
        for dealer, true in _complaints(round_, dealt, message):
            if true is None:
                open_.setdefault(dealer, []).append(message.sender)
            elif true:
                judged.dealers[dealer] = f"dealt invalid shares to {message.sender!r}"
            else:
                judged.liars[message.sender] = f"complained falsely about {dealer!r}"
    for dealer, those in open_.items():
        if len(those) >= enough(round_):
            judged.dealers[dealer] = f"dealt shares that do not open to {len(those)} sites"
        elif dealer not in judged.dealers:
            judged.disputed += [(one, dealer) for one in those]
    return judged


def enough(round_: Round) -> int:
    """Return how many complaints without proof are believed: more than the sites that may lie."""
    terms = round_.terms
    both = round_.coordinator in round_.sites
    return max(len(round_.sites) - round_.needed, terms.colluders + both) + 1


def _complaints(
    round_: Round, dealt: Mapping[str, Dealt], message: Message
) -> Iterable[tuple[str, bool | None]]:
    """Yield whom a message complains about, and whether rightly; None if that is unknown."""
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
