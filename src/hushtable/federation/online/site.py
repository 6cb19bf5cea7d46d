"""A site in the online form of a masked round, which recovers from sites that drop out.

Bonawitz et al., *Practical Secure Aggregation for Privacy-Preserving Machine Learning* (2017),
figure 4: every site masks its counts twice, with masks that cancel between pairs and with one of
its own; it deals shares of the secrets behind both to all others. Of a site that answered, the
others later give shares of its own mask; of one that dropped out, shares of its pairwise masks;
never both, and only after enough sites signed one and the same list of who is in. Five steps,
each asked once; what a site holds between them is in its book.

All that can fail for the sake of the rows fails in the first step, before anybody spends: there
the site opens, checks and counts them. From then on it answers from its book alone.
"""

import base64
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.errors import HushTableError
from hushtable.federation.approval import Approval
from hushtable.federation.book.book import ALL_ROWS, Book
from hushtable.federation.book.digests import RowDigests
from hushtable.federation.keys import Keys, crypto
from hushtable.federation.masks.masking import pairwise_mask, stream
from hushtable.federation.masks.sealing import (
    commitment,
    mask_key,
    opened_share,
    place,
    private_key,
    sealed_share,
)
from hushtable.federation.masks.shamir import split
from hushtable.federation.online.messages import STEPS, Message
from hushtable.federation.policy import Policy
from hushtable.federation.refusals import Refusal, Refused, SiteLog, refusing
from hushtable.federation.round import Round, now, stamp
from hushtable.federation.site import Reply
from hushtable.plans.plan import Plan
from hushtable.privacy.noise import library

if TYPE_CHECKING:
    from hushtable.counts.sketch import Sketch

__all__ = ["OnlineSite"]

State = dict[str, Any]
#: Name of the row of the book's steps that holds what was counted in the first one.
_ROWS = "rows"


class OnlineSite:
    """Answers what a coordinator asks, step by step, from any number of processes.

    Nobody is here to look at a round: the policy has to allow that, and the coordinator and the
    sites have to be known.

    Parameters
    ----------
    keys : Keys
        The site's.
    book : Book
        The site's; holds the state between steps.
    count : callable
        Takes a plan, returns the sketch of the site's rows under it; of no rows, too.
    policy : Policy, optional
        The site's; without one, nothing is answered.
    recognise : callable, optional
        Returns, after `count`, the `RowDigests` by which the book knows these rows again; None of
        no rows.
    approvals : mapping of str to Approval
        Of the officer, by round id.
    log : SiteLog, optional
        Where the words of refusals go; by default a file beside the book.
    data_set, plan
        As in `Reply`.
    """

    def __init__(
        self,
        keys: Keys,
        book: Book,
        count: "Callable[[Plan], Sketch]",
        *,
        policy: Policy | None = None,
        recognise: Callable[[], RowDigests | None] = lambda: None,
        approvals: Mapping[str, Approval] | None = None,
        log: SiteLog | None = None,
        data_set: str = ALL_ROWS,
        plan: Plan | None = None,
    ) -> None:
        self._keys, self._book, self._count = keys, book, count
        self._policy = Policy() if policy is None else policy
        self._recognise, self._approvals = recognise, approvals or {}
        self._log = SiteLog(Path(book.path).with_suffix(".log")) if log is None else log
        self._data_set, self._plan = data_set, plan
        self._me = keys.card.name
        self._last: Round | None = None

    def answer(self, request: bytes) -> bytes:
        """Return the signed answer to a request, or a signed `Refusal`: one word.

        Whatever goes wrong here, nothing else of it travels; the words are in the log. The same
        request gets the same answer, also after a crash; another one for a step that was answered
        is refused: two answers would tell more than one.
        """
        round_id, step = "", ""
        try:
            with refusing(Refusal.REQUEST):
                round_ = self._round(request)
                round_id = round_.round_id
                asked = Message.read(request, round_.coordinator)
            step = asked.step
            return self._answer(round_, asked)
        except Exception as error:  # whatever it is: it may quote a row
            said = error.word if isinstance(error, HushTableError) else ""
            word = Refusal(said or Refusal.UNAVAILABLE)
            words = f"{type(error).__name__}: {error}"
        self._log.write(stamp(now()), round_id, step, word, words)
        return Message.refuse(round_id, self._keys, word)

    def _answer(self, round_: Round, asked: Message) -> bytes:
        if asked.step not in ("hello", *STEPS) or asked.round_id != round_.round_id:
            raise Refused(
                Refusal.REQUEST,
                f"step {asked.step!r} of round {asked.round_id[:12]} is unknown here",
            )
        if asked.step == "hello":  # says whose keys these are, to those whom the site knows
            self._reply(round_).check_known()
            return self._sign(round_, "hello", {"asked": asked.digest})
        done = self._book.step(round_.round_id, asked.step)
        if done is not None:
            return self._noted(round_, asked, done[0], done[1])
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
            self._book.forget_steps(round_.round_id)  # keys, counts and shares that served
        return self._noted(round_, asked, *noted)

    def _noted(self, round_: Round, asked: Message, digest: str, answer: bytes) -> bytes:
        """Return the answer to a step that was noted, if it is to this request."""
        if digest != asked.digest:
            raise Refused(
                Refusal.ANSWERED,
                f"step {asked.step!r} was answered before, to another request: each is answered "
                "once; open a new round",
            )
        if answer:
            return answer
        given = self._book.answer(round_.round_id)
        assert given is not None  # of the step "masked", noted before the step was
        return given.content

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
            raise Refused(Refusal.ORDER, f"step {step!r} comes first, and was not asked")
        return done[2]

    def _sign(self, round_: Round, step: str, body: State) -> bytes:
        return Message.make(round_, step, self._keys, body).content

    # --- the steps --------------------------------------------------------------------------

    def _offer_keys(self, round_: Round, body: State) -> tuple[bytes, State]:
        """Check the round on every side, count the rows; draw keys for this round only."""
        reply = self._reply(round_)
        if not round_.terms.masked:
            raise Refused(Refusal.ROUND, "the online form is for masked rounds: ask for one")
        if reply.earlier is not None:
            raise Refused(
                Refusal.ANSWERED, "the round was answered before, by file: ask for a new round"
            )
        reply.check_known()
        library()  # without it there will be no noise, and no answer
        counts = reply.counted(self._count(reply.plan))
        seen = self._recognise()
        if seen is not None:
            self._book.check_people(self._data_set, seen)
        c = crypto()
        kept = {use: c.X25519PrivateKey.generate() for use in ("encrypt", "mask")}
        public = {use: key.public_key().public_bytes_raw().hex() for use, key in kept.items()}
        private: State = {use: key.private_bytes_raw().hex() for use, key in kept.items()}
        rows = {"digests": None if seen is None else base64.b64encode(seen.to_bytes()).decode()}
        self._book.note_step(round_.round_id, _ROWS, "", counts.astype("<i8").tobytes(), rows)
        return self._sign(round_, "keys", public), private

    def _deal_shares(self, round_: Round, body: State) -> tuple[bytes, State]:
        """Check everybody's keys; deal shares of my two secrets, each sealed for its reader."""
        offered = {}
        for name, message in self._signed_by_others(round_, body, "keys", "keys").items():
            offered[name] = {use: key.hex() for use, key in _texts(message.body).items()}
            if set(offered[name]) != {"encrypt", "mask"}:
                raise Refused(Refusal.SHARES, f"{name!r} does not offer the keys of this step")
        self._enough(round_, offered, round_.names)
        used = [keys[use] for keys in offered.values() for use in ("encrypt", "mask")]
        if len(set(used)) < len(used):
            raise Refused(Refusal.SHARES, "two sites offer the same keys")
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
        mine = private_key(private["encrypt"])
        with refusing(Refusal.SHARES):
            sealed = {
                name: sealed_share(
                    round_, mine, keys["encrypt"], self._me, name, dealt[place(round_, name) - 1]
                ).hex()
                for name, keys in offered.items()
            }
        answer = {"shares": sealed, "commitment": commitment(round_, self._me, own_mask)}
        kept = {"offered": offered, "own_mask": own_mask.hex()}
        return self._sign(round_, "shares", answer), kept

    def _mask(self, round_: Round, body: State) -> tuple[bytes, State]:
        """Add noise to the counts, write it down, and mask among those who dealt shares."""
        before, keys = self._kept(round_, "shares"), self._kept(round_, "keys")
        sealed = _texts(body, "shares")
        self._enough(round_, sealed, before["offered"])
        reader = private_key(keys["encrypt"])
        with refusing(Refusal.SHARES):
            for name, share in sealed.items():  # refused now, while dropping out is harmless
                opened_share(
                    round_, reader, before["offered"][name]["encrypt"], name, self._me, share
                )
        reply = self._reply(round_)
        mine = private_key(keys["mask"])
        with refusing(Refusal.SHARES):
            agreed = {
                name: mask_key(round_, mine, before["offered"][name]["mask"], self._me, name)
                for name in sealed
                if name != self._me
            }
        n_cells = round_.layout.n_cells
        masks = pairwise_mask(self._me, agreed, n_cells)
        masks += stream(bytes.fromhex(before["own_mask"]), n_cells)
        counts, seen = self._counted(round_)
        reply.answer(counts, masks, rows=seen)
        # What is sent lies with the answer in the book, once.
        return b"", {"shares": {name: share.hex() for name, share in sealed.items()}}

    def _counted(self, round_: Round) -> tuple[NDArray[np.int64], RowDigests | None]:
        """Return the counts of the first step, and by what to recognise their rows."""
        noted = self._book.step(round_.round_id, _ROWS)
        if noted is None:
            raise Refused(Refusal.ORDER, "step 'keys' comes first, and was not asked")
        _, counts, kept = noted
        seen = kept["digests"]
        found = None if seen is None else RowDigests.from_bytes(base64.b64decode(seen))
        return np.frombuffer(counts, "<i8").astype(np.int64), found

    def _sign_survivors(self, round_: Round, body: State) -> tuple[bytes, State]:
        """Sign who is in the sum; of these, nobody's pairwise masks will be given away."""
        names = body.get("sites")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise Refused(Refusal.REQUEST, "step 'survivors': the request is not of its form")
        self._enough(round_, names, self._kept(round_, "masked")["shares"])
        answer = {"sites": sorted(names)}
        return self._sign(round_, "survivors", answer), answer

    def _unmask(self, round_: Round, body: State) -> tuple[bytes, State]:
        """Give shares: of the survivors' own masks, and of the others' pairwise ones."""
        survivors = self._kept(round_, "survivors")["sites"]
        signed = 0
        for name, message in self._signed_by_others(round_, body, "signed", "survivors").items():
            if message.body != {"sites": survivors}:
                raise Refused(
                    Refusal.SHARES, f"{name!r} signed another list of sites than this one did"
                )
            signed += name in survivors
        if signed < round_.terms.least:
            raise Refused(
                Refusal.SITES,
                f"{signed} sites signed who is in, and {round_.terms.least} are needed: no share "
                "is given",
            )
        offered = self._kept(round_, "shares")["offered"]
        mine = private_key(self._kept(round_, "keys")["encrypt"])
        shares = {}
        for name, sealed in _texts(self._kept(round_, "masked"), "shares").items():
            theirs = offered[name]["encrypt"]
            with refusing(Refusal.SHARES):
                share = opened_share(round_, mine, theirs, name, self._me, sealed)
            half = len(share) // 2
            shares[name] = (share[half:] if name in survivors else share[:half]).hex()
        return self._sign(round_, "unmask", {"shares": shares}), {}

    # --- what the steps share ---------------------------------------------------------------

    def _reply(self, round_: Round) -> Reply:
        return Reply(
            round_,
            self._keys,
            self._book,
            policy=self._policy,
            data_set=self._data_set,
            plan=self._plan,
            approval=self._approvals.get(round_.round_id),
            attended=False,
        )

    def _signed_by_others(
        self, round_: Round, body: State, key: str, step: str
    ) -> dict[str, Message]:
        """Return the messages of a step that the coordinator hands on, by site."""
        contents = _texts(body, key)
        with refusing(Refusal.SHARES):
            return {
                name: Message.read(content, round_.card(name)).check(round_, step)
                for name, content in contents.items()
            }

    def _enough(self, round_: Round, names: Any, among: Any) -> None:
        """Raise `Refused` unless these are enough sites, this one and only those so far."""
        if len(set(names)) < len(names) or not set(names) <= set(among) or self._me not in names:
            raise Refused(
                Refusal.SITES, "the list of sites is not one of those who took part so far"
            )
        least = round_.terms.least
        if len(names) < least:
            raise Refused(Refusal.SITES, f"{len(names)} sites are left, and {least} are needed")


def _texts(body: State, key: str | None = None) -> dict[str, bytes]:
    """Return the bytes that a body, or an entry of it, has in hexadecimal digits by name."""
    texts = body if key is None else body.get(key)
    try:
        return {name: bytes.fromhex(text) for name, text in texts.items()}  # type: ignore[union-attr]
    except (AttributeError, TypeError, ValueError):
        raise Refused(Refusal.REQUEST, f"step {key!r}: the request is not of its form") from None
