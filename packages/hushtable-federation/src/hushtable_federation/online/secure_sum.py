"""The coordinator of a masked round whose sites are reachable now, and its files of the round."""

import contextlib
import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from hushtable import files
from hushtable.arguments import entries
from hushtable.counts.base import Noised
from hushtable.errors import FileError, RoundError
from hushtable_federation.clock import now
from hushtable_federation.keys import Keys
from hushtable_federation.online.carriers import Transport
from hushtable_federation.online.site import BEGINNING
from hushtable_federation.protocol.messages import STEPS, Step, SumList
from hushtable_federation.protocol.tally import Decisions, Tally
from hushtable_federation.round import Round, check_coordinator, check_protocol

#: Seconds for the last message, which does not affect the result.
_PARTING = 10.0


def path_of(key: Path, round_: Round) -> Path:
    """Return the path of a coordinator's journal of a round, beside its keys.

    The folder is created if necessary.
    """
    folder = key.with_suffix(".rounds")
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"{round_.round_id[:16]}.json"


class Journal:
    """A coordinator's decisions in a round, and the answers that arrived.

    Parameters
    ----------
    path : Path
        File of the decisions; the answers are in the folder of the same name without its suffix.
    round_ : Round
        Which it is of.
    """

    def __init__(self, path: Path, round_: Round) -> None:
        self.path, self._round = path, round_
        self._folder = path.with_suffix("")

    def decided(self) -> Decisions:
        """Return the decisions so far; raise `HushTableError` if they are not of this round."""
        if not self.path.exists():
            return Decisions()
        try:
            record = json.loads(self.path.read_bytes())
        except ValueError:
            record = None
        kinds = {"hushtable": str, "round_id": str, "keys": dict, "listed": dict, "signed": dict}
        what = (
            f"{self.path}: this is not a coordinator's decisions, or it is damaged: in a round by "
            "folder, remove it and run the command again, which reads the decisions from the "
            "folder. Such a file"
        )
        record = entries(record, what, kinds, error=FileError)
        if record["round_id"] != self._round.round_id:
            raise RoundError(
                f"{self.path} holds the decisions of round {record['round_id'][:12]!a}, not those "
                f"of {self._round.round_id[:12]}: restore the right file, or remove it, and run "
                "the command again"
            )
        return Decisions(
            record["keys"], SumList.of(self._round, record["listed"]), record["signed"]
        )

    def decide(self, decided: Decisions) -> None:
        """Write the decisions, unless they are already there."""
        if decided != self.decided():
            record = {"hushtable": "decisions", "round_id": self._round.round_id, **asdict(decided)}
            files.write_bytes(self.path, json.dumps(record).encode())

    def keep(self, step: Step, site: str, content: bytes) -> None:
        """Keep an answer."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        files.write_bytes(self._file(step, site), content)

    def answer(self, step: Step, site: str) -> bytes:
        """Return a stored answer; empty if there is none."""
        path = self._file(step, site)
        return path.read_bytes() if path.exists() else b""

    def kept(self) -> Iterator[tuple[Step, str, bytes]]:
        """Yield the stored answers: step, site, content; the first step first."""
        for step in STEPS:
            for site in self._round.names:
                content = self.answer(step, site)
                if content:
                    yield step, site, content

    def forget(self) -> None:
        """Remove the stored answers, after the result is there."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _file(self, step: Step, site: str) -> Path:
        # Names may differ only in case, which some file systems do not distinguish.
        return self._folder / f"{step}.{self._round.names.index(site)}.hush"


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
        Seconds after which a silent site is lost.
    journal : Path, optional
        File to record decisions in; the answers are in a folder beside it. After a crash, or if too
        few sites stayed, running the same round with it again continues from there; without it,
        both are in a temporary folder, and sites refuse a second list of the sites in the sum.

    Attributes
    ----------
    reached : dict of str to str
        By site, the last step that it answered.
    lost : dict of str to str
        By site that dropped out, the step and the reason: one word of `Refusal`.
    found_out : dict of str to str
        By site that is proved to have cheated, a message about what it did.

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
        journal: Path | None = None,
    ) -> None:
        if not round_.terms.masked:
            raise RoundError("a round without masks needs no secure sum: collect its submissions")
        check_protocol(round_)
        check_coordinator(round_, keys)
        self._transport, self._journal = transport, journal
        self._timeout = timeout
        #: A transport may deliver an answer twice, even some steps later.
        self._heard: set[bytes] = set()
        self._there: set[tuple[Step, str]] = set()
        self.tally = Tally(round_, keys)
        self.reached, self.lost = self.tally.reached, self.tally.lost
        self.found_out = self.tally.found_out

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
            If another process is using the same journal.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.closing(self._transport))
            path = self._journal
            if path is None:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hushtable-"))
                path = Path(folder) / "round.json"
            journal = Journal(path, self.tally.round)
            stack.enter_context(files.locked(path))
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
            step = next((at for at in BEGINNING if (at, name) not in self._there), "masked")
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

    def _answers(
        self, requests: Mapping[str, bytes], seconds: float
    ) -> Iterator[tuple[str, bytes]]:
        waiting = set[str]()
        for name in sorted(requests):
            with contextlib.suppress(OSError):  # cannot be reached
                self._transport.send(name, requests[name])
                waiting.add(name)
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
                    self._heard.add(_digest(answer))
                    yield name, answer
            elif left < 0.0:  # a site that keeps sending does not keep the round open
                break


def _digest(answer: bytes) -> bytes:
    return hashlib.sha256(answer).digest()
