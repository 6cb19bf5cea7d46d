"""The coordinator of a masked round whose sites can be reached now: over any transport."""

import contextlib
import time
from collections.abc import Callable, Mapping

from hushtable.counts.base import Noised
from hushtable.errors import RoundError
from hushtable.federation.keys import Keys
from hushtable.federation.online.memory import Exchange
from hushtable.federation.online.messages import Step
from hushtable.federation.online.tally import Tally
from hushtable.federation.online.transport import Transport
from hushtable.federation.round import Round


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
        self._transport = Exchange(transport) if callable(transport) else transport
        self._timeout, self._tries = timeout, tries
        self._heard: dict[str, bytes] = {}
        self.tally = Tally(round_, keys)

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
        tally = self.tally
        self._ask("shares")
        tally.check_enough(len(tally.dealt), "shares")  # before anybody spends
        self._ask("masked")
        tally.close()
        if not tally.whole:
            self._ask("survivors")
            tally.check_enough(len(tally.answers["survivors"]), "survivors")
            tally.go_on()
        self._ask("unmask")
        tally.go_on()
        if tally.without:
            self._ask("without")
        return tally.result()

    def _ask(self, step: Step) -> None:
        """Ask sites in one step, and hand on what comes; of who is silent, nothing."""
        requests = self.tally.requests(step)
        answers = self._answers(requests)
        for name in requests:
            self.tally.take(step, name, answers.get(name, b""))

    @property
    def reached(self) -> dict[str, str]:
        """By site, the last step that it answered."""
        return self.tally.reached

    @property
    def lost(self) -> dict[str, str]:
        """By site that dropped out, in which step and why: one word of `Refusal`."""
        return self.tally.lost

    @property
    def found_out(self) -> dict[str, str]:
        """By site that gave or dealt wrong shares, or complained falsely, words for people."""
        return self.tally.found_out

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
