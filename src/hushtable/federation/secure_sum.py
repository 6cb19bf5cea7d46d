"""The coordinator in the online form of a masked round: five steps, over any transport."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.errors import HushTableError, RoundError
from hushtable.federation.collect import Sealed, total, with_seal
from hushtable.federation.keys import Keys, crypto
from hushtable.federation.masking import pairwise_mask, stream
from hushtable.federation.messages import Message, Step, ask
from hushtable.federation.online import commitment, mask_key
from hushtable.federation.refusals import Refusal
from hushtable.federation.round import Round, now
from hushtable.federation.shamir import SHARE_BYTES, combine
from hushtable.federation.submission import Submission
from hushtable.privacy.release import Release

__all__ = ["SecureSum", "Transport"]

#: Sends each site its request and returns the answers that came; a site that does not answer
#: is left out. All that another transport has to implement.
Transport = Callable[[Mapping[str, bytes]], Mapping[str, bytes]]


class SecureSum:
    """Runs a masked round online: the sum of the sites that stay, or none.

    Parameters
    ----------
    round_ : Round
        A masked round.
    keys : Keys
        The coordinator's, who opened it.
    transport : callable
        How sites are reached; see `Transport`.

    Attributes
    ----------
    reached : dict of str to str
        By site, the last step that it answered.
    lost : dict of str to str
        By site that dropped out, in which step and why: one word of `Refusal`.
    """

    def __init__(self, round_: Round, keys: Keys, transport: Transport) -> None:
        if not round_.terms.masked:
            raise RoundError("a round without masks needs no secure sum: collect its submissions")
        if keys.card != round_.coordinator:
            raise RoundError(f"{round_.coordinator.name!r} opened the round, with other keys")
        self.round, self._keys, self._transport = round_, keys, transport
        self.reached: dict[str, str] = {}
        self.lost: dict[str, str] = {}

    def run(self) -> Release | Sealed:
        """Run the round.

        Returns
        -------
        Release or Sealed
            The sum over the sites that stayed to the step ``"masked"``, signed.

        Raises
        ------
        RoundError
            If too few sites stay, or their shares do not give masks that fit: there is no sum,
            and nobody learned anything but who took part.
        """
        names = self.round.names
        offered = self._step("keys", {name: {} for name in names}, _check_keys)
        keys = {name: message.content.hex() for name, message in offered.items()}
        dealt = self._step(
            "shares", {name: {"keys": keys} for name in offered}, _CheckShares(set(offered))
        )
        requests = {
            name: {"shares": {other: dealt[other].body["shares"][name] for other in dealt}}
            for name in dealt
        }
        masked = self._ask("masked", requests, self._submission)
        survivors = sorted(masked)
        signed = self._step("survivors", {name: {"sites": survivors} for name in survivors})
        lists = {name: message.content.hex() for name, message in signed.items()}
        given = self._step("unmask", {name: {"signed": lists} for name in signed})
        words = np.zeros(self.round.layout.n_cells, np.uint64)
        for submission in masked.values():
            words += submission.words
        words -= self._masks(offered, dealt, survivors, given)
        result = total(self.round, words, {name: one.ledger for name, one in masked.items()})
        digests = {name: one.digest for name, one in masked.items()}
        return with_seal(self.round, result, digests, self._keys)

    # --- asking -----------------------------------------------------------------------------

    def _step(
        self,
        step: Step,
        bodies: Mapping[str, dict[str, Any]],
        check: Callable[[Message], None] = lambda message: None,
    ) -> dict[str, Message]:
        def read(name: str, content: bytes) -> Message:
            message = Message.read(content, self.round.card(name)).check(self.round, step)
            check(message)
            return message

        return self._ask(step, bodies, read)

    def _submission(self, name: str, content: bytes) -> Submission:
        try:
            submission = Submission.from_bytes(content, name, self.round, now())
        except HushTableError:
            # Perhaps it is the reason why there is none.
            Message.read(content, self.round.card(name)).check(self.round, "masked")
            raise
        if submission.site != name:
            raise RoundError(f"{name!r} answers for {submission.site!r}")
        return submission

    def _ask(
        self,
        step: Step,
        bodies: Mapping[str, dict[str, Any]],
        read: Callable[[str, bytes], Any],
    ) -> dict[str, Any]:
        """Ask sites in one step; note who is lost; raise if too few are left."""
        requests = {name: ask(self.round, step, self._keys, body) for name, body in bodies.items()}
        found = {}
        replies = self._transport(requests)
        for name in requests:
            if name not in replies:
                self.lost[name] = f"{step}: {Refusal.SILENT}"
                continue
            try:
                found[name] = read(name, replies[name])
                self.reached[name] = step
            except HushTableError as error:  # whose words may quote what came
                self.lost[name] = f"{step}: {error.word or Refusal.GARBLED}"
        least = self.round.terms.least
        if len(found) < least:
            lost = "; ".join(f"{name}: {why}" for name, why in sorted(self.lost.items()))
            raise RoundError(
                f"no sum: {len(found)} sites are left in step {step!r}, and {least} are needed "
                f"({lost}). Nothing can be read from what was sent; open a new round"
            )
        return found

    # --- unmasking --------------------------------------------------------------------------

    def _masks(
        self,
        offered: Mapping[str, Message],
        dealt: Mapping[str, Message],
        survivors: list[str],
        given: Mapping[str, Message],
    ) -> NDArray[np.uint64]:
        """Return all that masks the sum: the survivors' own masks, and pairs with lost sites."""
        secrets = self._secrets(dealt, given)
        n_cells = self.round.layout.n_cells
        total = np.zeros(n_cells, np.uint64)
        for name in dealt:
            secret = secrets[name]
            if name in survivors:
                if commitment(self.round, name, secret) != dealt[name].body["commitment"]:
                    raise _wrong_shares(name)
                total += stream(secret, n_cells)
                continue
            key = crypto().X25519PrivateKey.from_private_bytes(secret)
            if key.public_key().public_bytes_raw().hex() != offered[name].body["mask"]:
                raise _wrong_shares(name)
            agreed = {
                other: mask_key(self.round, key, offered[other].body["mask"], name, other)
                for other in survivors
            }
            # What the survivors added for this site is what it would have taken away.
            total -= pairwise_mask(name, agreed, n_cells)
        return total

    def _secrets(
        self, dealt: Mapping[str, Message], given: Mapping[str, Message]
    ) -> dict[str, bytes]:
        """Put together the secret of each site from as many shares as are needed."""
        names = list(dealt)
        givers = list(given)[: self.round.terms.least]
        shares = {}
        for giver in givers:
            place = self.round.names.index(giver) + 1
            try:
                texts = given[giver].body["shares"]
                shares[place] = [bytes.fromhex(texts[name]) for name in names]
            except (KeyError, TypeError, ValueError):
                raise _wrong_shares(giver) from None
            if any(len(share) != SHARE_BYTES for share in shares[place]):
                raise _wrong_shares(giver)
        try:
            return dict(zip(names, combine(shares, 32), strict=True))
        except ValueError:
            raise _wrong_shares(", ".join(givers)) from None


def _check_keys(message: Message) -> None:
    """Raise `RoundError` unless a site offers its two keys."""
    body = message.body
    if set(body) != {"encrypt", "mask"} or not all(isinstance(key, str) for key in body.values()):
        raise RoundError(f"{message.sender!r} does not offer the keys of this step")


@dataclass(frozen=True)
class _CheckShares:
    """Raises `RoundError` unless a site dealt a share to everybody, and a commitment."""

    names: set[str]

    def __call__(self, message: Message) -> None:
        shares = message.body.get("shares")
        if (
            not isinstance(shares, dict)
            or set(shares) != self.names
            or not isinstance(message.body.get("commitment"), str)
        ):
            raise RoundError(f"{message.sender!r} did not deal its shares to all")


def _wrong_shares(name: str) -> RoundError:
    return RoundError(
        f"no sum: the shares behind the masks of {name!r} do not fit: some site gave wrong ones; "
        "open a new round"
    )
