"""The coordinator's visit to a round in a folder: what came, what follows, the result.

All that it decides is written down beside its keys before it is asked by. What lies in the folder
is enough to go on from elsewhere: the same messages are made of the same decisions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hushtable import files
from hushtable.counts.base import Noised
from hushtable.errors import HushTableError, RoundError
from hushtable.federation.clock import CLOCKS, now
from hushtable.federation.collect import Collection
from hushtable.federation.folder.posts import ASK, Posts
from hushtable.federation.folder.site import ASKED
from hushtable.federation.folder.visits import Visit
from hushtable.federation.keys import Keys
from hushtable.federation.online.journal import read_decided, write_decided
from hushtable.federation.online.messages import Message, Step, unclosed
from hushtable.federation.online.site import BEGINNING
from hushtable.federation.online.tally import Decided, Tally
from hushtable.federation.result import Result

_HAVE: dict[Step, str] = {
    "survivors": "signed the list of who is in the sum",
    "unmask": "helped to take the masks off the sum",
    "without": "helped to leave out who was found out",
}


@dataclass
class CoordinatorVisit:
    """A coordinator in a folder.

    Parameters
    ----------
    posts : Posts
        Of the round.
    keys : Keys
        The coordinator's.
    journal : Path
        Where its decisions are written down.
    output : Path
        Where the result goes.
    """

    posts: Posts
    keys: Keys
    journal: Path
    output: Path

    def run(self) -> Visit:
        """Do what is to be done; raises `HushTableError` if another process is at it."""
        with files.locked(self.journal):
            visit = Visit()
            if self._done(visit):
                return visit
            if not self.posts.round.in_steps:
                return self._collect(visit)
            return self._steps(visit)

    # --- in steps -----------------------------------------------------------------------------

    def _steps(self, visit: Visit) -> Visit:
        tally = Tally(self.posts.round, self.keys, self._decided(), with_round=False)
        for step in (*BEGINNING, *ASKED):
            self._read(tally, step)
        tally.drop(self.posts.amendment.dropped)
        if not tally.listed and not self._closes(tally, visit):
            return visit
        tally.go_on()
        write_decided(self.journal, self.posts.round, tally.decided)
        for step in ASKED:
            if step != "survivors" or not tally.whole:
                for name, content in tally.requests(step).items():
                    if self.posts.add(ASK + step, name, content):
                        visit.posted.append(ASK + step)
        return self._sum(tally, visit)

    def _read(self, tally: Tally, step: Step) -> None:
        for sender in self.posts.there(step):
            if sender not in self.posts.round.names:
                continue
            for name, content in self.posts.of(step, sender):
                word = tally.take(step, sender, content)
                if word:
                    self.posts.odd[name] = f"{word}: no answer of {sender!r} that counts"

    def _closes(self, tally: Tally, visit: Visit) -> bool:
        """Decide who is in the sum if it is time; return whether that is decided."""
        round_, dropped = self.posts.round, self.posts.amendment.dropped
        missing = [n for n in round_.names if n not in tally.present and n not in dropped]
        over = now() > round_.deadline + CLOCKS
        if missing and not over:
            visit.end("waiting", waits_for=missing)
            return False
        if len(tally.present) < round_.terms.least:
            visit.end(
                "failed",
                f"{len(tally.present)} sites have answered, and {round_.terms.least} are needed: "
                "nothing can be read of what they sent. Extend the round (hushtable round amend "
                "--days), or open another.",
                waits_for=missing,
            )
            return False
        tally.close()
        return True

    def _sum(self, tally: Tally, visit: Visit) -> Visit:
        step: Step = "unmask" if tally.whole or tally.decided.signers else "survivors"
        step = "without" if tally.without else step
        awaited = sorted(set(tally.listed) - set(tally.answers[step]) - set(tally.without))
        visit.found_out = tally.found_out
        n, least = len(tally.answers[step]), self.posts.round.terms.least
        if step == "survivors" or n < least:
            return visit.end(
                "waiting",
                f"{n} of at least {least} sites have {_HAVE[step]}.",
                waits_for=awaited,
            )
        try:
            result = tally.result()
        except RoundError as error:
            visit.found_out = tally.found_out
            return visit.end("waiting" if awaited else "failed", str(error), waits_for=awaited)
        visit.found_out = tally.found_out
        return self._publish(result, visit)

    # --- by submissions alone -----------------------------------------------------------------

    def _collect(self, visit: Visit) -> Visit:
        round_, collection = self.posts.round, Collection(self.posts.round)
        dropped = self.posts.amendment.dropped
        for sender in self.posts.there("submission"):
            for name, content in self.posts.of("submission", sender):
                if sender not in dropped:
                    collection.add(name, content)
        self.posts.odd |= dict(collection.refused)
        missing = [name for name in collection.missing if name not in dropped]
        over = now() > round_.deadline + CLOCKS
        if missing and not over:
            return visit.end("waiting", waits_for=missing)
        try:
            result = collection.result(self.keys)
        except RoundError as error:
            return visit.end("failed", str(error), waits_for=missing)
        return self._publish(result, visit)

    # --- the result ---------------------------------------------------------------------------

    def _publish(self, result: Noised, visit: Visit) -> Visit:
        with files.replacing(self.output, private=not files.travels(result.kind)) as temporary:
            result.save(temporary)
            content = temporary.read_bytes()
        self.posts.add("result", self.keys.card.name, content)
        visit.posted.append("result")
        return self._end(visit, Result.of(files.unpack(content, self.output)))

    def _done(self, visit: Visit) -> bool:
        for name, content in self.posts.of("result", self.keys.card.name):
            try:
                result = Result.of(files.unpack(content, name))
                result.check_round(self.posts.round)
            except HushTableError as error:
                self.posts.odd[name] = str(error)
                continue
            if not self.output.exists():
                files.write_bytes(self.output, content, private=False)
            self._end(visit, result)
            return True
        return False

    def _end(self, visit: Visit, result: Result) -> Visit:
        out = [name for name in self.posts.round.names if name not in result.sites]
        without = f" Without {', '.join(out)}." if out else ""
        return visit.end(
            "done", f"The result of {len(result.sites)} sites is written as {self.output}.{without}"
        )

    # --- decisions ----------------------------------------------------------------------------

    def _decided(self) -> Decided:
        """Return what was decided before: here, or as the requests in the folder show it."""
        asked = list(self._asked())
        if not self.journal.exists():
            noted = Decided()
            for _, message in asked:
                _learn(noted, message)
        else:
            noted = read_decided(self.journal, self.posts.round)
        for name, message in asked:
            other = Decided()
            _learn(other, message)
            if any(
                getattr(other, part) and getattr(other, part) != getattr(noted, part)
                for part in ("sites", "without")
            ):
                raise RoundError(
                    f"{name} asks by other decisions than those of {self.journal}: two "
                    "coordinators are at work with one key. Sites answer the first alone; find the "
                    "other, and open a new round"
                )
        return noted

    def _asked(self) -> Iterator[tuple[str, Message]]:
        for step in ASKED:
            for site in self.posts.there(ASK + step):
                for name, content in self.posts.of(ASK + step, site):
                    try:
                        message = Message.read(content, self.keys.card)
                        yield name, message.check(self.posts.round, step)
                    except HushTableError as error:
                        self.posts.odd[name] = str(error)


def _learn(decided: Decided, message: Message) -> None:
    """Take over what a request shows of decisions."""
    body = message.body
    if "sites" in body:
        decided.sites = body["sites"]
    elif message.step == "unmask":
        decided.signers = sorted(unclosed(message))
    elif message.step == "without":
        decided.without = body["without"]
        decided.shown = sorted(name for name in unclosed(message) if "/" not in name)
