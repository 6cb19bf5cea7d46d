"""The coordinator in the online form of a masked round: five steps, over any transport."""

import contextlib
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

import numpy as np

from hushtable.counts.base import Noised
from hushtable.errors import HushTableError, RoundError
from hushtable.federation.collect import total, with_seal
from hushtable.federation.keys import Keys
from hushtable.federation.masks.unmask import Unmasking
from hushtable.federation.online import keys as keys_
from hushtable.federation.online import masked, shares, survivors, unmask
from hushtable.federation.online.memory import Exchange
from hushtable.federation.online.messages import Message, Step, ask
from hushtable.federation.online.state import Kept
from hushtable.federation.online.transport import Transport
from hushtable.federation.refusals import Refusal
from hushtable.federation.round import Round

T = TypeVar("T")


class SecureSum:
    """Runs a masked round online: the sum of the sites that stay, or none.

    Parameters
    ----------
    round_ : Round
        A masked round.
    keys : Keys
        The coordinator's, who opened it.
    transport : Transport or callable
        Carries requests and answers; closed when the round is over. A function of a step's
        requests to its answers, both by site, serves too.
    timeout : float, default=600
        Seconds after which a site that is silent in a step is asked again, or lost.
    tries : int, default=1
        How often a site is asked in a step; it answers the same request in the same words.

    Attributes
    ----------
    reached : dict of str to str
        By site, the last step that it answered.
    lost : dict of str to str
        By site that dropped out, in which step and why: one word of `Refusal`.

    Examples
    --------
    >>> from hushtable.federation import SecureSum
    >>> from hushtable.federation.rehearsal import Rehearsal
    >>> here = Rehearsal(("east", "north", "south"), least=2)
    >>> secure_sum = SecureSum(here.round, here.lead, here.transport())
    >>> result = secure_sum.run()
    >>> secure_sum.reached["east"]
    'unmask'
    """

    def __init__(
        self,
        round_: Round,
        keys: Keys,
        transport: Transport | Callable[[Mapping[str, bytes]], Mapping[str, bytes]],
        *,
        timeout: float = 600.0,
        tries: int = 1,
    ) -> None:
        if not round_.terms.masked:
            raise RoundError("a round without masks needs no secure sum: collect its submissions")
        if round_.period is not None:
            raise RoundError(
                "a round about a period goes by file (hushtable round submit, round collect): "
                "online, a site that drops out would end the stream"
            )
        if keys.card != round_.coordinator:
            raise RoundError(f"{round_.coordinator.name!r} opened the round, with other keys")
        self.round, self._keys = round_, keys
        self._transport = Exchange(transport) if callable(transport) else transport
        self._timeout, self._tries = timeout, tries
        self._heard: dict[str, bytes] = {}
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
        with contextlib.closing(self._transport):
            return self._run()

    def _run(self) -> Noised:
        round_ = self.round
        offered = self._step("keys", {name: {} for name in round_.names}, keys_.check)
        dealt = self._step(
            "shares", shares.requests(offered), partial(shares.check, names=offered.keys())
        )
        submitted = self._ask("masked", masked.requests(dealt), partial(masked.read, round_))
        signed = self._step("survivors", survivors.requests(submitted))
        given = self._step("unmask", unmask.requests(signed))
        unmasking = Unmasking(
            round_,
            {name: message.body["mask"] for name, message in offered.items()},
            {name: message.body["commitment"] for name, message in dealt.items()},
            sorted(submitted),
        )
        words = np.zeros(round_.layout.n_cells, np.uint64)
        for submission in submitted.values():
            words += submission.words
        words -= unmasking.masks(unmask.shares_of(given, list(dealt)))
        result = total(round_, words, {name: one.ledger for name, one in submitted.items()})
        digests = {name: one.digest for name, one in submitted.items()}
        return with_seal(round_, result, digests, self._keys)

    def _step(
        self,
        step: Step,
        bodies: Mapping[str, Kept],
        check: Callable[[Message], None] = lambda message: None,
    ) -> dict[str, Message]:
        def read(name: str, content: bytes) -> Message:
            message = Message.read(content, self.round.card(name)).check(self.round, step)
            check(message)
            return message

        return self._ask(step, bodies, read)

    def _ask(
        self, step: Step, bodies: Mapping[str, Kept], read: Callable[[str, bytes], T]
    ) -> dict[str, T]:
        """Ask sites in one step; note who is lost; raise if too few are left."""
        requests = {name: ask(self.round, step, self._keys, body) for name, body in bodies.items()}
        answers = self._answers(requests)
        found = {}
        for name in requests:
            if name not in answers:
                self.lost[name] = f"{step}: {Refusal.SILENT}"
                continue
            try:
                found[name] = read(name, answers[name])
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

    def _answers(self, requests: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the first answer of each site that gives one in time."""
        found: dict[str, bytes] = {}
        for _ in range(self._tries):
            waiting = set(requests) - set(found)
            for name in sorted(waiting):
                try:
                    self._transport.send(name, requests[name])
                except OSError:  # cannot be reached
                    waiting.remove(name)
            end = time.monotonic() + self._timeout
            while waiting:
                left = end - time.monotonic()
                came = self._transport.receive(max(left, 0.0))
                if came is None:
                    break
                name, answer = came
                if name in waiting and answer != self._heard.get(name):
                    waiting.remove(name)
                    if answer:  # empty: there will be none
                        found[name] = self._heard[name] = answer
                elif left < 0.0:  # whoever keeps talking does not keep the round open
                    break
        return found
