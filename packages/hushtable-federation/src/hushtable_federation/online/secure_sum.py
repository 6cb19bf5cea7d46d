"""The coordinator of a masked round whose sites are reachable now, over any transport."""

import contextlib
import hashlib
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from hushtable.counts.base import Noised
from hushtable.errors import RoundError
from hushtable_federation.clock import now
from hushtable_federation.keys import Keys
from hushtable_federation.online.carriers import Transport
from hushtable_federation.online.journal import Journal
from hushtable_federation.online.site import BEGINNING
from hushtable_federation.protocol.messages import STEPS, Step
from hushtable_federation.protocol.tally import Tally
from hushtable_federation.round import Round, check_protocol

#: Seconds for the last message, which does not affect the result.
_PARTING = 10.0


class SecureSum:
    """Runs a masked round online: gives the sum of the sites that stay, or no sum.

    Parameters
    ----------
    round_ : Round
        A masked round.
    keys : Keys
        The keys of the coordinator, who opened it.
    transport : Transport
        Carries requests and answers; closed at the end of the round.
    timeout : float, default=600
        Seconds after which the request to a silent site is repeated, or the site is lost.
    tries : int, default=1
        How often a request is sent in a step; a site answers the same request with the same bytes.
    journal : Path, optional
        File to record decisions in; the answers are in a folder beside it. After a crash, or if too
        few sites stayed, running the same round with it again continues from there; without it,
        both are in a temporary folder, and sites refuse a second list of the sites in the sum.

    Examples
    --------
    >>> from hushtable_federation import SecureSum
    >>> here = Rehearsal(("east", "north", "south"), least=2)  # made-up sites and an open round
    >>> secure_sum = SecureSum(here.round, here.lead, here.transport())
    >>> result = secure_sum.run()
    >>> secure_sum.reached["east"]
    'unmask'
    """

    def __init__(
        self,
        round_: Round,
        keys: Keys,
        transport: Transport,
        *,
        timeout: float = 600.0,
        tries: int = 1,
        journal: Path | None = None,
    ) -> None:
        if not round_.terms.masked:
            raise RoundError("a round without masks needs no secure sum: collect its submissions")
        check_protocol(round_)
        if keys.card != round_.coordinator:
            raise RoundError(
                f"{round_.coordinator.name!r} opened the round, with different keys: give those "
                "keys"
            )
        self._transport, self._journal = transport, journal
        self._timeout, self._tries = timeout, tries
        #: A transport may deliver an answer twice, even some steps later.
        self._heard: set[bytes] = set()
        self._there: set[tuple[Step, str]] = set()
        self.tally = Tally(round_, keys)

    def run(self) -> Noised:
        """Run the round.

        Returns
        -------
        Release or Increment
            The signed sum over the sites that stayed until the step ``"masked"``.

        Raises
        ------
        RoundError
            If too few sites stay, or the shares of one are wrong: there is no sum, and no one
            learned anything except who took part. The message, and `found_out`, name a site that is
            proved to have cheated; if it is one of two sites, the message names both.
        FileError
            If another process keeps using the same journal.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.closing(self._transport))
            path = self._journal
            if path is None:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hushtable-"))
                path = Path(folder) / "round.json"
            journal = Journal(path, self.tally.round)
            stack.enter_context(journal.alone(self._timeout))
            return self._run(journal)

    def _run(self, journal: Journal) -> Noised:
        tally = self.tally
        self._recall(journal)
        for step in STEPS:
            requests = tally.advance((), now(), step)
            if step == "survivors":
                self._check_there(journal)
            journal.decide(tally.decided)
            self._ask(step, requests, journal)
        result = tally.result(lambda name: journal.answer("masked", name))
        self._end()
        return result

    def _end(self) -> None:
        # Nothing depends on the answers: silent sites forget when the round's time is over.
        requests = dict.fromkeys(self.tally.listed.sites, self.tally.ending())
        for _ in self._answers(requests, min(self._timeout, _PARTING)):
            pass  # nothing depends on their answers

    def _recall(self, journal: Journal) -> None:
        self.tally.decided = journal.decided()
        for step, site, content in journal.kept():
            self._heard.add(_digest(content))
            if step not in BEGINNING and not self.tally.listed.sites:
                continue  # about a list that was lost: no site answers about another list
            if not self.tally.take(step, site, content, now()):
                self._there.add((step, site))

    def _check_there(self, journal: Journal) -> None:
        tally = self.tally
        if tally.lacking:
            raise RoundError(
                f"{', '.join(tally.lacking)}: on the list of sites, but their answers are missing "
                f"from the folder beside {journal.path}, and they are silent: restore the answers, "
                "or run the round again when the sites are reachable"
            )
        for name in sorted(set(tally.round.names) - set(tally.listed.sites)):
            # Lost in an earlier process, which alone knew why.
            step = next((one for one in BEGINNING if (one, name) not in self._there), "masked")
            tally.lost.setdefault(name, f"{step}: silent")

    # --- asking -------------------------------------------------------------------------------

    def _ask(self, step: Step, requests: Mapping[str, bytes], journal: Journal) -> None:
        # Silent sites count as lost.
        listed = self.tally.listed.sites
        requests = {
            name: request
            for name, request in requests.items()
            if (step, name) not in self._there and (not listed or name in listed)
        }
        silent = set(requests)
        for name, answer in self._answers(requests, self._timeout):
            silent.remove(name)
            if not self.tally.take(step, name, answer, now()):
                self._there.add((step, name))
                journal.keep(step, name, answer)
        for name in sorted(silent):
            self.tally.take(step, name, b"", now())

    @property
    def reached(self) -> dict[str, str]:
        """Return by site the last step that it answered."""
        return self.tally.reached

    @property
    def lost(self) -> dict[str, str]:
        """Return by site that dropped out the step and the reason, one word of `Refusal`."""
        return self.tally.lost

    @property
    def found_out(self) -> dict[str, str]:
        """Return by site that is proved to have cheated a message about what it did."""
        return self.tally.found_out

    def _answers(
        self, requests: Mapping[str, bytes], seconds: float
    ) -> Iterator[tuple[str, bytes]]:
        silent = set(requests)
        for _ in range(self._tries):
            waiting = set(silent)
            for name in sorted(silent):
                try:
                    self._transport.send(name, requests[name])
                except OSError:  # cannot be reached
                    waiting.remove(name)
            end = time.monotonic() + seconds
            while waiting:
                left = end - time.monotonic()
                came = self._transport.receive(max(left, 0.0))
                if came is None:
                    break
                name, answer = came
                if name in waiting and _digest(answer) not in self._heard:
                    waiting.remove(name)
                    if answer:  # empty: there will be no answer
                        silent.remove(name)
                        self._heard.add(_digest(answer))
                        yield name, answer
                elif left < 0.0:  # a site that keeps sending does not keep the round open
                    break


def _digest(answer: bytes) -> bytes:
    return hashlib.sha256(answer).digest()
