"""The coordinator's visit to a round in a folder: what came, what follows, the result.

All that it decides is written down beside its keys before it is asked by. What lies in the folder
is enough to go on from elsewhere: the same messages are made of the same decisions.
"""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from hushtable import files
from hushtable.counts.base import Noised
from hushtable.errors import HushTableError, RoundError
from hushtable_federation.clock import goes_on, now
from hushtable_federation.collect import Collection
from hushtable_federation.folder.posts import ASK, ASKED, Posts
from hushtable_federation.folder.visits import Visit
from hushtable_federation.keys import Keys
from hushtable_federation.online.journal import read_decided, write_decided
from hushtable_federation.online.messages import Message, Step, unclosed
from hushtable_federation.online.site import BEGINNING
from hushtable_federation.online.tally import Decided, Tally
from hushtable_federation.result import Result

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
            if self.posts.stopped:
                return visit.end("failed", self.posts.stopped)
            self._keep_amendment()
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
        lacking = sorted(set(tally.listed) - set(tally.present))
        if lacking:
            return self._wait(
                visit,
                lacking,
                "What these sites sent is decided to be in the sum, and is not in the folder (any "
                "more), or not whole: each puts it there again when it calls hushtable round sync.",
            )
        tally.go_on()
        write_decided(self.journal, self.posts.round, tally.decided)
        for step in ASKED:
            if step != "survivors" or not tally.whole:
                self._ask(step, tally, visit)
        return self._sum(tally, visit)

    def _ask(self, step: Step, tally: Tally, visit: Visit) -> None:
        """Ask whom nobody has asked yet: what others put there must not change what is asked."""
        for name, content in tally.requests(step).items():
            if not any(self.posts.asked(step, name)) and self.posts.add(ASK + step, name, content):
                visit.posted.append(ASK + step)

    def _wait(self, visit: Visit, awaited: list[str], *words: str, step: str = "") -> Visit:
        """Wait for sites; say which of them refused a step, by default to begin."""
        for name in awaited:
            word = self.posts.refused(name, step and f"-{step}")
            if word:
                visit.needs_person = True
                visit.say(
                    f"{name} refused ({word}): its log says why. It may still answer; ask it."
                )
        return visit.end("waiting", *words, waits_for=awaited)

    def _read(self, tally: Tally, step: Step) -> None:
        for sender in self.posts.there(step):
            if sender not in self.posts.round.names:
                continue
            for name, content in self.posts.of(step, sender):
                try:
                    tally.add(step, sender, content)
                except HushTableError as error:
                    self.posts.refuse(name, str(error))

    def _closes(self, tally: Tally, visit: Visit) -> bool:
        """Decide who is in the sum if it is time; return whether that is decided."""
        round_, left = self.posts.round, self.posts.left()
        missing = [name for name in left if name not in tally.present]
        over, least = now() > goes_on(round_.deadline), round_.terms.least
        for name in sorted(set(tally.twice) & set(left)):
            visit.needs_person = True
            visit.say(
                f"{name} {tally.twice[name]}: neither counts. Go on without it (hushtable round "
                f"amend --drop {name}), and ask which of its books is the newest."
            )
        if missing and not over and len(tally.present) + len(missing) >= least:
            self._wait(visit, missing)
            return False
        if len(tally.present) < least:
            visit.end(
                "failed",
                f"{len(tally.present)} sites have answered, and {least} are needed: "
                "nothing can be read of what they sent. "
                + (
                    "Extend the round (hushtable round amend --days), or open another."
                    if len(left) >= least
                    else f"Only {len(left)} are left: open another round."
                ),
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
            words = f"{n} of at least {least} sites have {_HAVE[step]}."
            return self._wait(visit, awaited, words, step=step)
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
        over = now() > goes_on(round_.deadline)
        if missing and not over:
            return self._wait(visit, missing)
        try:
            result = collection.result(self.keys)
        except RoundError as error:
            return visit.end("failed", str(error), waits_for=missing)
        return self._publish(result, visit)

    # --- the result ---------------------------------------------------------------------------

    def _publish(self, result: Noised, visit: Visit) -> Visit:
        result.save(self.output)
        content = self.output.read_bytes()
        self.posts.add("result", self.keys.card.name, content)
        visit.posted.append("result")
        return self._end(visit, Result.of(files.unpack(content, self.output)))

    def _done(self, visit: Visit) -> bool:
        if self.output.exists():  # what got lost in the folder is put there again
            with contextlib.suppress(HushTableError):  # another file of that name
                content = self.output.read_bytes()
                Result.of(files.unpack(content, self.output)).check_round(self.posts.round)
                self.posts.add("result", self.keys.card.name, content)
        for _, content, result in self.posts.results():
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
        noted = Decided()
        if self.journal.exists():
            noted = read_decided(self.journal, self.posts.round)
        for step in ASKED:
            for site in self.posts.there(ASK + step):
                for name, message in self.posts.asked(step, site):
                    self._agree(noted, _shown(message), name)
        return noted

    def _agree(self, noted: Decided, other: Decided, name: str) -> None:
        """Take over what a request shows of decisions; raise if they are others."""
        for part, said in vars(other).items():
            mine = getattr(noted, part)
            if not mine:
                setattr(noted, part, said)
            elif said and said != mine and part in ("sites", "without"):
                raise RoundError(
                    f"{name} asks by other decisions than those of {self.journal}: two "
                    "coordinators are at work with one key. Sites answer the first alone; find the "
                    "other, and open a new round"
                )

    def _keep_amendment(self) -> None:
        """Keep what holds beside the decisions: without it, late answers would not count."""
        kept, made = self.journal.with_suffix(".amendment.hush"), self.posts.amendment
        if kept.exists():
            self.posts.put_again(kept.read_bytes())
        if made.number and made == self.posts.amendment:
            content = made.message(self.posts.round, self.keys)
            if not kept.exists() or kept.read_bytes() != content:
                files.write_bytes(kept, content)


def _shown(message: Message) -> Decided:
    """Return what a request shows of decisions."""
    body, names = message.body, sorted(unclosed(message))
    if "sites" in body:
        return Decided(sites=body["sites"])
    if message.step == "unmask":
        return Decided(signers=names)
    return Decided(without=body["without"], shown=[name for name in names if "/" not in name])
