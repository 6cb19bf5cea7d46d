"""The coordinator in the online form of a masked round: five steps, over any transport."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Noised
from hushtable.errors import HushTableError, RoundError
from hushtable.federation.collect import total, with_seal
from hushtable.federation.keys import Keys, crypto
from hushtable.federation.masks.masking import pairwise_mask, stream
from hushtable.federation.masks.sealing import commitment, mask_key, place
from hushtable.federation.masks.shamir import SHARE_BYTES, combine
from hushtable.federation.online.messages import Message, Step, ask
from hushtable.federation.refusals import Refusal
from hushtable.federation.round import Round, now
from hushtable.federation.submission import Submission

__all__ = ["SecureSum", "Transport"]

#: Sends each site its request and returns the answers that came; a site that does not answer
#: is left out. All that another transport has to implement.
Transport = Callable[[Mapping[str, bytes]], Mapping[str, bytes]]


#: Choices of who is believed: enough for 3 liars among 50.
_MOST_TRIES = 20_000


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

    def run(self) -> Noised:
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

        def fits(name: str, secret: bytes) -> bool:
            """Whether a secret is the one that the site itself stands by."""
            if name in survivors:
                return bool(commitment(self.round, name, secret) == dealt[name].body["commitment"])
            key = crypto().X25519PrivateKey.from_private_bytes(secret)
            return bool(key.public_key().public_bytes_raw().hex() == offered[name].body["mask"])

        secrets = self._secrets(list(dealt), given, fits)
        n_cells = self.round.layout.n_cells
        total = np.zeros(n_cells, np.uint64)
        for name, secret in secrets.items():
            if name in survivors:
                total += stream(secret, n_cells)
                continue
            key = crypto().X25519PrivateKey.from_private_bytes(secret)
            agreed = {
                other: mask_key(self.round, key, offered[other].body["mask"], name, other)
                for other in survivors
            }
            # What the survivors added for this site is what it would have taken away.
            total -= pairwise_mask(name, agreed, n_cells)
        return total

    def _secrets(
        self,
        names: list[str],
        given: Mapping[str, Message],
        fits: Callable[[str, bytes], bool],
    ) -> dict[str, bytes]:
        """Put together the secrets of the sites from as many shares as are needed.

        Some givers may lie: others are tried in their place, until each secret is the one that
        its site stands by. What was tried and did not fit tells nobody's secret.
        """
        shares = {giver: _shares(message, names) for giver, message in given.items()}
        right = [giver for giver, found in shares.items() if found]
        for givers in itertools.islice(_choices(right, self.round.terms.least), _MOST_TRIES):
            # One secret first: most wrong choices end there.
            for some in (names[:1], names):
                places = {place(self.round, giver): shares[giver][: len(some)] for giver in givers}
                try:
                    secrets = dict(zip(some, combine(places, 32), strict=True))
                except ValueError:
                    break
                if not all(fits(name, secret) for name, secret in secrets.items()):
                    break
            else:
                return secrets
        raise RoundError(
            "no sum: the shares behind the masks do not fit: too many sites gave wrong ones, or a "
            "site dealt wrong ones; open a new round"
        )


def _shares(message: Message, names: list[str]) -> list[bytes]:
    """Return the shares that a site gives, in the order of names; none if one is no share."""
    texts = message.body.get("shares")
    try:
        shares = [bytes.fromhex(texts[name]) for name in names]  # type: ignore[index]
    except (KeyError, TypeError, ValueError):
        return []
    return shares if all(len(share) == SHARE_BYTES for share in shares) else []


def _choices(givers: list[str], least: int) -> Iterator[tuple[str, ...]]:
    """Yield givers, as many as are needed: the first ones, then others with few left out."""
    seen = set()
    for n_out in range(len(givers) - least + 1):
        for out in itertools.combinations(givers, n_out):
            choice = tuple(itertools.islice((one for one in givers if one not in out), least))
            if choice not in seen:
                seen.add(choice)
                yield choice


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
