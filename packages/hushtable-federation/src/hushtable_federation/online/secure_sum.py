"""The coordinator of a masked round whose sites are reachable now, over any transport."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from hushtable.counts.base import Noised
from hushtable.errors import RoundError
from hushtable_federation.keys import Keys
from hushtable_federation.online.carriers import Transport
from hushtable_federation.online.messages import Step
from hushtable_federation.online.site import BEGINNING
from hushtable_federation.online.tally import Journal, Tally
from hushtable_federation.round import Round

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
        sites refuse a second list of the sites in the sum.

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
        if keys.card != round_.coordinator:
            raise RoundError(
                f"{round_.coordinator.name!r} opened the round, with different keys: give those "
                "keys"
            )
        self._transport = transport
        self._timeout, self._tries = timeout, tries
        self._heard: set[bytes] = (
            set()
        )  # a transport may deliver an answer twice, even some steps later
        self._there: set[tuple[Step, str]] = set()
        self._journal = None if journal is None else Journal(journal, round_)
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
            If too few sites stay, or their shares do not give matching masks: there is no sum, and
            no one learned anything except who took part.
        FileError
            If another process keeps using the same journal.
        """
        with contextlib.closing(self._transport):
            if self._journal is None:
                return self._run()
            with self._journal.alone(self._timeout):
                self._recall(self._journal)
                return self._run()

    def _run(self) -> Noised:
        tally = self.tally
        self._ask("keys")
        tally.close_keys()
        self._note()
        self._ask("shares")
        if not tally.listed:
            tally.check_enough(len(tally.dealt), "shares")  # before anyone spends
        self._ask("masked")
        self._close()
        if not tally.whole:
            self._ask("survivors")
            tally.check_enough(len(tally.answers["survivors"]), "survivors")
            self._go_on()
        self._ask("unmask")
        self._go_on()
        if tally.without:
            self._ask("without")
        result = tally.result()
        self._end()
        return result

    def _end(self) -> None:
        """Let the sites forget the data of the round; silent sites do so when its time is over."""
        requests = dict.fromkeys(self.tally.listed, self.tally.ending())
        for _ in self._answers(requests, min(self._timeout, _PARTING)):
            pass  # nothing depends on their answers

    # --- what is written down -----------------------------------------------------------------

    def _recall(self, journal: Journal) -> None:
        """Continue from where the previous process stopped."""
        self.tally.decided = journal.decided()
        for step, site, content in journal.kept():
            self._heard.add(content)
            if step not in BEGINNING and not self.tally.listed:
                continue  # about a list that was lost: no site answers about another list
            if not self.tally.take(step, site, content):
                self._there.add((step, site))

    def _close(self) -> None:
        tally = self.tally
        tally.close()
        gone = sorted(set(tally.listed) - set(tally.present))
        if gone:
            assert self._journal is not None  # the list is from an earlier process
            raise RoundError(
                f"{', '.join(gone)}: in the sum, but their answers are missing from the folder "
                f"beside {self._journal.path}, and they are silent: restore the answers, or run "
                "the round again when the sites are reachable"
            )
        for name in sorted(set(self.tally.round.names) - set(tally.listed)):
            # Lost in an earlier process, which alone knew why.
            step = next(one for one in BEGINNING if (one, name) not in self._there)
            tally.lost.setdefault(name, f"{step}: silent")
        self._note()

    def _go_on(self) -> None:
        self.tally.go_on()
        self._note()

    def _note(self) -> None:
        if self._journal is not None:
            self._journal.decide(self.tally.decided)

    # --- asking -------------------------------------------------------------------------------

    def _ask(self, step: Step) -> None:
        """Send the requests of one step, and take the answers; silent sites count as lost."""
        listed = self.tally.listed
        requests = {
            name: request
            for name, request in self.tally.requests(step).items()
            if (step, name) not in self._there and (not listed or name in listed)
        }
        silent = set(requests)
        for name, answer in self._answers(requests, self._timeout):
            silent.remove(name)
            if not self.tally.take(step, name, answer) and self._journal is not None:
                self._journal.keep(step, name, answer)
        for name in sorted(silent):
            self.tally.take(step, name, b"")

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
        """Return by site that gave or dealt wrong shares, or complained falsely, a message."""
        return self.tally.found_out

    def _answers(
        self, requests: Mapping[str, bytes], seconds: float
    ) -> Iterator[tuple[str, bytes]]:
        """Yield the first answer of each site that answers in time, as they arrive."""
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
                if name in waiting and answer not in self._heard:
                    waiting.remove(name)
                    if answer:  # empty: there will be no answer
                        silent.remove(name)
                        self._heard.add(answer)
                        yield name, answer
                elif left < 0.0:  # a site that keeps sending does not keep the round open
                    break
