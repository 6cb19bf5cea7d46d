"""A site in the online form of a masked round, which recovers from sites that drop out.

Bonawitz et al., *Practical Secure Aggregation for Privacy-Preserving Machine Learning* (2017),
figure 4: every site masks its counts twice, with masks that cancel between pairs and with one of
its own; it deals shares of the secrets behind both to all others. Of a site that answered, the
others later give shares of its own mask; of one that dropped out, shares of its pairwise masks;
never both, and only after enough sites signed one and the same list of who is in. Five steps,
each asked once; what a site holds between them is in its book.
"""

import hashlib
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rfc8785

from hushtable import files
from hushtable.errors import HushTableError, PlanError, RoundError
from hushtable.federation.book import ALL_ROWS, Book
from hushtable.federation.keys import Keys, crypto
from hushtable.federation.masking import agreed_key, pairwise_mask, stream
from hushtable.federation.messages import STEPS, Message
from hushtable.federation.round import Round
from hushtable.federation.shamir import split
from hushtable.federation.site import Reply
from hushtable.federation.submission import Submission
from hushtable.plan import Plan

if TYPE_CHECKING:
    from hushtable.sketch import Sketch

__all__ = ["OnlineSite", "commitment", "mask_key"]

State = dict[str, Any]


class OnlineSite:
    """Answers what a coordinator asks, step by step, from any number of processes.

    Parameters
    ----------
    keys : Keys
        The site's.
    book : Book
        The site's; holds the state between steps.
    count : callable
        Takes a plan, returns the sketch of the site's rows under it.
    data_set, plan
        As in `Reply`.
    """

    def __init__(
        self,
        keys: Keys,
        book: Book,
        count: "Callable[[Plan], Sketch]",
        *,
        data_set: str = ALL_ROWS,
        plan: Plan | None = None,
    ) -> None:
        self._keys, self._book, self._count = keys, book, count
        self._data_set, self._plan = data_set, plan
        self._me = keys.card.name
        self._last: Round | None = None

    def answer(self, request: bytes) -> bytes:
        """Return the signed answer to a request, or the signed reason why there is none.

        The same request gets the same answer, also after a crash; another one for a step that
        was answered is refused: two answers would tell more than one.
        """
        round_ = self._round(request)
        try:
            asked = Message.read(request, round_.coordinator)
            return self._answer(round_, asked)
        except HushTableError as error:
            reason = {"reason": str(error)}
            return Message.make(round_, "refused", self._keys, reason).content

    def _answer(self, round_: Round, asked: Message) -> bytes:
        if asked.step not in STEPS or asked.round_id != round_.round_id:
            raise RoundError(f"step {asked.step!r} of round {asked.round_id[:12]} is unknown here")
        done = self._book.step(round_.round_id, asked.step)
        if done is not None:
            return _answered(asked, done[0], done[1])
        work = {
            "keys": self._offer_keys,
            "shares": self._deal_shares,
            "masked": self._mask,
            "survivors": self._sign_survivors,
            "unmask": self._unmask,
        }[asked.step]
        answer, kept = work(round_, asked.body)
        noted = self._book.note_step(round_.round_id, asked.step, asked.digest, answer, kept)
        if asked.step == "unmask":
            self._book.forget_steps(round_.round_id)  # keys and shares that served
        return _answered(asked, *noted)

    def _round(self, request: bytes) -> Round:
        """Return the round that travels with a request; checked once, not in every step."""
        array = files.unpack(request, "request").arrays.get("round")
        content = b"" if array is None else array.tobytes()
        if self._last is None or self._last.content != content:
            self._last = Round.from_bytes(content, "request")
        return self._last

    def _kept(self, round_: Round, step: str) -> State:
        done = self._book.step(round_.round_id, step)
        if done is None:
            raise RoundError(f"step {step!r} comes first, and was not asked")
        return done[2]

    def _sign(self, round_: Round, step: str, body: State) -> bytes:
        return Message.make(round_, step, self._keys, body).content

    # --- the steps --------------------------------------------------------------------------

    def _offer_keys(self, round_: Round, body: State) -> tuple[bytes, State]:
        """Check the round on every side; draw keys for this round only."""
        reply = self._reply(round_)
        if reply.earlier is not None or not round_.terms.masked:
            raise RoundError(
                "the online form is for masked rounds that were not answered before: ask for a new "
                "round"
            )
        reply.meet()
        c = crypto()
        kept = {use: c.X25519PrivateKey.generate() for use in ("encrypt", "mask")}
        public = {use: key.public_key().public_bytes_raw().hex() for use, key in kept.items()}
        private = {use: key.private_bytes_raw().hex() for use, key in kept.items()}
        return self._sign(round_, "keys", public), private

    def _deal_shares(self, round_: Round, body: State) -> tuple[bytes, State]:
        """Check everybody's keys; deal shares of my two secrets, each sealed for its reader."""
        offered = {}
        for name, content in _texts(body, "keys").items():
            message = Message.read(content, round_.card(name)).check(round_, "keys")
            offered[name] = {use: key.hex() for use, key in _texts(message.body).items()}
            if set(offered[name]) != {"encrypt", "mask"}:
                raise RoundError(f"{name!r} does not offer the keys of this step")
        self._enough(round_, offered, round_.names)
        used = [keys[use] for keys in offered.values() for use in ("encrypt", "mask")]
        if len(set(used)) < len(used):
            raise RoundError("two sites offer the same keys")
        private = self._kept(round_, "keys")
        own_mask = secrets.token_bytes(32)
        n, least = len(round_.sites), round_.terms.least
        dealt = [
            mask + own
            for mask, own in zip(
                split(bytes.fromhex(private["mask"]), least, n),
                split(own_mask, least, n),
                strict=True,
            )
        ]
        sealed = {
            name: self._seal(round_, offered, name)
            .encrypt(_nonce(round_, self._me), dealt[_place(round_, name) - 1], None)
            .hex()
            for name in offered
        }
        answer = {"shares": sealed, "commitment": commitment(round_, self._me, own_mask)}
        kept = {"offered": offered, "own_mask": own_mask.hex()}
        return self._sign(round_, "shares", answer), kept

    def _mask(self, round_: Round, body: State) -> tuple[bytes, State]:
        """Count, add noise, write it down, and mask among those who dealt shares."""
        before = self._kept(round_, "shares")
        sealed = _texts(body, "shares")
        self._enough(round_, sealed, before["offered"])
        for name, share in sealed.items():  # refused now, while dropping out is harmless
            self._open_share(round_, before["offered"], name, share)
        reply = self._reply(round_)
        part = reply.answer(self._count(reply.plan)).part(round_)
        mine = _private(self._kept(round_, "keys")["mask"])
        agreed = {
            name: mask_key(round_, mine, before["offered"][name]["mask"], self._me, name)
            for name in sealed
            if name != self._me
        }
        n_cells = round_.layout.n_cells
        masks = pairwise_mask(self._me, agreed, n_cells)
        masks += stream(bytes.fromhex(before["own_mask"]), n_cells)
        kept = {"shares": {name: share.hex() for name, share in sealed.items()}}
        return Submission.pack(round_, self._keys, part, masks), kept

    def _sign_survivors(self, round_: Round, body: State) -> tuple[bytes, State]:
        """Sign who is in the sum; of these, nobody's pairwise masks will be given away."""
        names = body.get("sites")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise PlanError("step 'survivors': the request is not of its form")
        self._enough(round_, names, self._kept(round_, "masked")["shares"])
        answer = {"sites": sorted(names)}
        return self._sign(round_, "survivors", answer), answer

    def _unmask(self, round_: Round, body: State) -> tuple[bytes, State]:
        """Give shares: of the survivors' own masks, and of the others' pairwise ones."""
        survivors = self._kept(round_, "survivors")["sites"]
        signed = 0
        for name, content in _texts(body, "signed").items():
            message = Message.read(content, round_.card(name))
            if message.check(round_, "survivors").body != {"sites": survivors}:
                raise RoundError(f"{name!r} signed another list of sites than this one did")
            signed += name in survivors
        if signed < round_.terms.least:
            raise RoundError(
                f"{signed} sites signed who is in, and {round_.terms.least} are needed: no share "
                "is given"
            )
        offered = self._kept(round_, "shares")["offered"]
        shares = {}
        for name, sealed in _texts(self._kept(round_, "masked"), "shares").items():
            share = self._open_share(round_, offered, name, sealed)
            half = len(share) // 2
            shares[name] = (share[half:] if name in survivors else share[:half]).hex()
        return self._sign(round_, "unmask", {"shares": shares}), {}

    # --- what the steps share ---------------------------------------------------------------

    def _reply(self, round_: Round) -> Reply:
        return Reply(round_, self._keys, self._book, data_set=self._data_set, plan=self._plan)

    def _enough(self, round_: Round, names: Any, among: Any) -> None:
        """Raise `RoundError` unless these are enough sites, this one and only known ones."""
        if len(set(names)) < len(names) or not set(names) <= set(among) or self._me not in names:
            raise RoundError("the list of sites is not one of those who took part so far")
        if len(names) < round_.terms.least:
            raise RoundError(f"{len(names)} sites are left, and {round_.terms.least} are needed")

    def _seal(self, round_: Round, offered: State, other: str) -> Any:
        mine = _private(self._kept(round_, "keys")["encrypt"])
        purpose = ("shares", round_.round_id, *sorted((self._me, other)))
        return crypto().ChaCha20Poly1305(agreed_key(mine, offered[other]["encrypt"], *purpose))

    def _open_share(self, round_: Round, offered: State, sender: str, sealed: bytes) -> bytes:
        c = crypto()
        cipher = self._seal(round_, offered, sender)
        try:
            share: bytes = cipher.decrypt(_nonce(round_, sender), sealed, None)
        except c.InvalidTag:
            raise RoundError(f"the share of {sender!r} was changed on its way") from None
        return share


def _texts(body: State, key: str | None = None) -> dict[str, bytes]:
    """Return the bytes that a body, or an entry of it, has in hexadecimal digits by name."""
    texts = body if key is None else body.get(key)
    try:
        return {name: bytes.fromhex(text) for name, text in texts.items()}  # type: ignore[union-attr]
    except (AttributeError, TypeError, ValueError):
        raise PlanError(f"step {key!r}: the request is not of its form") from None


def _answered(asked: Message, digest: str, answer: bytes) -> bytes:
    """Return an answer that was noted, if it is to this request."""
    if digest != asked.digest:
        raise RoundError(
            f"step {asked.step!r} was answered before, to another request: each is answered once; "
            "open a new round"
        )
    return answer


def commitment(round_: Round, site: str, own_mask: bytes) -> str:
    """Return what binds a site to its own mask, and tells nothing of it."""
    text = rfc8785.dumps(["hushtable mask", round_.round_id, site, own_mask.hex()])
    return hashlib.sha256(text).hexdigest()


def mask_key(round_: Round, mine: Any, theirs: str, me: str, other: str) -> bytes:
    """Return the key of the masks between two sites, from keys drawn for this round."""
    return agreed_key(mine, theirs, "online masks", round_.round_id, *sorted((me, other)))


def _private(text: str) -> Any:
    return crypto().X25519PrivateKey.from_private_bytes(bytes.fromhex(text))


def _place(round_: Round, name: str) -> int:
    """Place of a site's shares: from 1, in the order of the roster."""
    return round_.names.index(name) + 1


def _nonce(round_: Round, sender: str) -> bytes:
    """Return a number used once: the pair's key is for one round, and each of them seals once."""
    return _place(round_, sender).to_bytes(12)
