"""The coordinator's side of a masked round: the answers, the next requests, and the sum.

It knows no carrier and no clock: the code that runs a round passes it the answers, and states when
the waiting ends. Decisions that requests were based on are never changed; the journal stores them
on disk before any request is sent.
"""

import contextlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from hushtable import files
from hushtable.arguments import entries
from hushtable.counts.base import Noised
from hushtable.errors import FileError, HushTableError, RoundError
from hushtable_federation.keys import Keys
from hushtable_federation.masks import Secret, Unmasking
from hushtable_federation.online import shares, steps, totals
from hushtable_federation.online.messages import STEPS, Message, Step, ask, enclosed
from hushtable_federation.refusals import Refusal
from hushtable_federation.result import total, with_seal
from hushtable_federation.round import Round
from hushtable_federation.submission import Submission

#: Steps whose answers are messages about the list.
_SIGNED: tuple[Step, ...] = "survivors", "unmask", "without"


@dataclass
class Decisions:
    """All decisions of a coordinator in a round; they are final after a request was based on them.

    Attributes
    ----------
    keys : dict of str to str
        By site whose key all sites mask with, the digest of its signed statement; empty before.
    sites : dict of str to dict
        The list of sites in the sum, with the digests of what they sent; empty before.
    signers : list of str
        Sites whose signatures on the list go to each site that is asked to give shares.
    without, shown : list of str
        Sites that were later left out of the list; and sites whose complaints show why.
    """

    keys: dict[str, str] = field(default_factory=dict)
    sites: shares.Sites = field(default_factory=dict)
    signers: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)


class Tally:
    """The answers of a round so far, and the conclusions from them.

    Parameters
    ----------
    round_ : Round
        A masked round.
    keys : Keys
        The coordinator's.
    decided : Decided, optional
        Decisions of an earlier process.
    with_round : bool
        Whether the first requests contain the round.

    Attributes
    ----------
    lost : dict of str to str
        By site that is out, the step and the reason: one word of `Refusal`.
    reached : dict of str to str
        By site, the last step that it answered.
    judged : Judged
        Sites that gave or dealt invalid shares, or complained falsely.
    """

    def __init__(
        self,
        round_: Round,
        keys: Keys,
        decided: Decisions | None = None,
        *,
        with_round: bool = True,
    ) -> None:
        self.round, self._keys, self._with_round = round_, keys, with_round
        self.decided = Decisions() if decided is None else decided
        self.lost: dict[str, str] = {}
        self.reached: dict[str, str] = {}
        self.judged = shares.Judgement()
        self.drawn: dict[str, Message] = {}
        self.dealt: dict[str, shares.Dealt] = {}
        self._sealed: dict[str, dict[str, bytes]] = {}
        self.submitted: dict[str, Submission] = {}
        self._digests: dict[tuple[Step, str], str] = {}
        self.twice: dict[str, str] = {}
        self.liars: dict[str, str] = {}
        self.answers: dict[Step, dict[str, Message]] = {step: {} for step in _SIGNED}

    # --- what comes ---------------------------------------------------------------------------

    def take(self, step: Step, site: str, content: bytes) -> str:
        """Take an answer; if it is not valid, record and return the word for the reason.

        ``content`` is empty for a silent site.
        """
        if not content:
            return self._lose(step, site, Refusal.SILENT)
        try:
            self.add(step, site, content)
        except HushTableError as error:  # whose message may quote what arrived
            return self._lose(step, site, error.word or Refusal.GARBLED)
        return ""

    def add(self, step: Step, site: str, content: bytes) -> None:
        """Take an answer; raise `HushTableError` with a message for the coordinator alone."""
        if step == "keys":
            self._take_key(site, content)
        elif step == "shares":
            self._take_shares(site, content)
        elif step == "masked":
            read = steps.read_masked(self.round, site, content)
            if self._is_first("masked", site, read.digest):
                self.submitted[site] = read
        else:
            self._take_signed(step, site, content)
        self.reached[site] = step

    def _lose(self, step: Step, site: str, word: str) -> str:
        self.lost.setdefault(site, f"{step}: {word}")
        return word

    def drop(self, names: Collection[str]) -> None:
        """Leave sites out before the list is decided, regardless of what they sent."""
        for name in names if not self.listed else ():
            if not self.decided.keys:
                self.drawn.pop(name, None)
            self.dealt.pop(name, None)
            self.submitted.pop(name, None)

    def _take_key(self, site: str, content: bytes) -> None:
        try:
            digest = shares.RoundKey.read(self.round, site, content).digest
        except shares.NoKeyError:
            self.liars[site] = "signed a key for this round that is no key"
            raise
        decided = self.decided.keys
        if digest == (decided.get(site) if decided else digest):
            self.drawn[site] = Message.read(content, self.round.card(site))
        self._is_first("keys", site, digest)

    def _take_shares(self, site: str, content: bytes) -> None:
        message = Message.read(content, self.round.card(site)).check(self.round, "shares")
        dealt, sealed = shares.read_dealt(self.round, message)
        if self._is_first("shares", site, dealt.message.digest):
            self.dealt[site], self._sealed[site] = dealt, sealed

    def _is_first(self, step: Step, site: str, digest: str) -> bool:
        """Return whether an answer counts; raise `RoundError` if a site gave two different ones.

        For a site on the list, the answer on the list counts, and any other proves cheating; so for
        a key that others were asked to mask with.
        """
        decided = self.listed.get(site, {}) | {"keys": self.decided.keys.get(site, digest)}
        known = self._digests.setdefault((step, site), decided.get(step, digest))
        if known != digest:
            self.twice[site] = f"signed two different answers to step {step!r}"
        if self.listed:
            return site in self.listed and known == digest
        if site in self.twice:
            self.drop([site])
            raise RoundError(f"{site!r} {self.twice[site]}")
        return True

    def _take_signed(self, step: Step, site: str, content: bytes) -> None:
        message = Message.read(content, self.round.card(site)).check(self.round, step)
        # Check which list a site signed, because others would refuse its answer if it differs.
        sites = message.body.get("sites", None if step == "survivors" else self.listed)
        if site not in self.listed or sites != self.listed:
            raise RoundError(f"{site!r} answers about a different list of sites")
        if not isinstance(message.body.get("complaints", {}), dict):
            raise RoundError(f"{site!r} sent a malformed complaint")
        if step != "survivors":
            steps.read_shares(message, self._shape(step), len(self.round.names))
        if step == "unmask" and self.round.terms.max_rows is not None:
            totals.given(message, self.round, len(self.listed))
        self.answers[step].setdefault(site, message)

    def _shape(self, step: Step) -> tuple[int, int]:
        if step == "without":
            return len(self.staying), len(self.without)
        return len(self.listed), 1 + len(self.round.names) - len(self.listed)

    # --- what is decided ----------------------------------------------------------------------

    @property
    def listed(self) -> shares.Sites:
        """Return the sites in the sum; empty until that is decided."""
        return self.decided.sites

    @property
    def without(self) -> list[str]:
        """Return the sites that were on the list, but are left out because of their dealing."""
        return self.decided.without

    @property
    def staying(self) -> list[str]:
        """Return the sites that the sum consists of."""
        return sorted(set(self.listed) - set(self.without))

    @property
    def whole(self) -> bool:
        """Return whether all sites of the roster are on the list."""
        return set(self.listed) == set(self.round.names)

    @property
    def present(self) -> list[str]:
        """Return the sites that dealt shares and sent counts, masked with all decided keys."""
        there = sorted(set(self.dealt) & set(self.submitted))
        if self.listed:  # which sites agreed was checked before that was decided
            return there
        keys = [self.dealt[name].keys for name in there if name in self.decided.keys]
        # A member may show some sites one key and others a different one. Then it is out, because
        # only what is agreed on by those on the list matters.
        own = {}
        for name in set(there) & set(self.decided.keys):
            (digest, _), *_ = Counter(one.get(name, "") for one in keys).most_common(1)
            if digest == self.dealt[name].keys.get(name):
                own[name] = digest
        return sorted(name for name in own if self.dealt[name].agrees(own))

    def close_keys(self) -> None:
        """Decide that all mask with the sites that have drawn keys; raise if they are too few."""
        if not self.decided.keys:
            self.check_enough(len(self.drawn), "keys")
            self.decided.keys = {name: self.drawn[name].digest for name in sorted(self.drawn)}

    def close(self) -> None:
        """Decide that the current sites form the sum; raise `RoundError` if they are too few."""
        if self.listed:
            return
        self.check_enough(len(self.present), "masked")
        self.decided.sites = {
            name: {
                "masked": self.submitted[name].digest,
                "shares": self.dealt[name].message.digest,
            }
            for name in self.present
        }

    def go_on(self) -> None:
        """Decide what follows from the answers to the list, if there are enough."""
        least = self.round.needed
        signed = self.answers["survivors"]
        if self.listed and not self.whole and not self.decided.signers and len(signed) >= least:
            self.decided.signers = sorted(signed)[:least]
        record = self._complaining()
        self.judged = shares.judge(self.round, self.dealt, record.values())
        out = sorted(set(self.judged.dealers) & set(self.listed))
        ready = len(self.answers["unmask"]) >= least
        if out and ready and not self.without:
            self.decided.without, self.decided.shown = out, sorted(record)

    def _complaining(self) -> dict[str, Message]:
        """Return the answers that contain a complaint, by site."""
        steps: tuple[Step, ...] = "survivors", "unmask"
        every = (item for step in steps for item in self.answers[step].items())
        return {name: one for name, one in every if one.body.get("complaints")}

    def check_enough(self, n: int, step: Step) -> None:
        """Raise `RoundError` unless that many sites are enough to continue."""
        least = self.round.needed
        if n < least:
            lost = "; ".join(f"{name}: {why}" for name, why in sorted(self.lost.items()))
            stream = self.round.period is not None
            remedy = "the period again (hushtable round next --again)" if stream else "a new round"
            raise RoundError(
                f"no sum: {n} sites are left in step {step!r}, and {least} are needed "
                f"({lost or 'no one is lost'}). Nothing can be read from what was sent; open "
                f"{remedy}"
            )

    @property
    def found_out(self) -> dict[str, str]:
        """Return by site that cheated a message about what it did."""
        return self.liars | self.judged.liars | self.judged.dealers | self.twice

    # --- what is asked ------------------------------------------------------------------------

    def requests(self, step: Step) -> dict[str, bytes]:
        """Return the requests of a step, by site; the same bytes each time."""
        if step == "keys":
            return dict.fromkeys(self.decided.keys or self.round.names, self._ask(step, {}, {}))
        if step == "shares":
            return self._with_keys()
        if step == "masked":
            return dict.fromkeys(sorted(self.dealt), self._ask(step, {}, {}))
        if step == "survivors" or (step == "unmask" and self.whole):
            return {name: self._listing(step, name) for name in sorted(self.listed)}
        if step == "unmask":
            signed = self.answers["survivors"]
            if not self.decided.signers or not set(self.decided.signers) <= set(signed):
                return {}
            contents = {name: signed[name].content for name in self.decided.signers}
            asked = self._ask(step, {}, enclosed(contents))
            return dict.fromkeys(sorted(signed), asked)
        shown = {
            name: one for name, one in self._complaining().items() if name in self.decided.shown
        }
        if not self.without or len(shown) < len(self.decided.shown):
            return {}
        body, contents = steps.ask_without(self.without, self.dealt, shown)
        return dict.fromkeys(
            sorted(self.answers["unmask"]), self._ask(step, body, enclosed(contents))
        )

    def ending(self) -> bytes:
        """Return the message that the round has ended, and that no more requests follow."""
        return self._ask("end", {}, {})

    def _with_keys(self) -> dict[str, bytes]:
        """Return the message that distributes the keys for the round; empty if one is missing."""
        keys = self.decided.keys
        if not set(keys) <= set(self.drawn):
            return {}
        contents = {name: self.drawn[name].content for name in keys}
        return dict.fromkeys(keys, self._ask("shares", {}, enclosed(contents)))

    def _listing(self, step: Step, name: str) -> bytes:
        sealed = {dealer: self._sealed[dealer][name] for dealer in self.listed}
        return self._ask(step, *shares.ask_about_list(self.listed, self.dealt, sealed))

    def _ask(self, step: Step, body: dict[str, Any], arrays: Any) -> bytes:
        return ask(self.round, step, self._keys, body, arrays, with_round=self._with_round)

    # --- the sum ------------------------------------------------------------------------------

    def result(self) -> Noised:
        """Return the signed sum; raise `RoundError` if there is none (yet)."""
        step: Step = "without" if self.without else "unmask"
        self.check_enough(len(self.staying), step)
        self.check_enough(len(self.answers[step]), step)
        words = np.zeros(self.round.plan.family.n_cells, np.uint64)
        for name in self.staying:
            words += self.submitted[name].words
        dealings = {name: one.dealing for name, one in self.dealt.items()}
        partners = {name: set(one.keys) - {name} for name, one in self.dealt.items()}
        unmasking = Unmasking(self.round, dealings, self._given(), partners, self.staying)
        try:
            words -= unmasking.masks()
        finally:
            self.liars |= unmasking.liars
        if self.round.terms.max_rows is not None:
            self._check_totals(unmasking)
        ledgers = {name: self.submitted[name].ledger for name in self.staying}
        digests = {name: self.submitted[name].digest for name in self.staying}
        return with_seal(self.round, total(self.round, words, ledgers), digests, self._keys)

    def _check_totals(self, unmasking: Unmasking) -> None:
        """Raise `RoundError` if a site counted more rows than it may, or sent impossible counts."""
        on_list = sorted(self.listed)
        places = [on_list.index(name) for name in self.staying]
        opened = totals.OpenedTotals.of(
            self.round,
            {name: self.submitted[name].words for name in self.staying},
            {name: unmasking.secret(name, name) for name in self.staying},
            {name: unmasking.outside(name) for name in self.staying},
            {
                name: message.arrays[totals.NAME][places]
                for name, message in self.answers["unmask"].items()
                if name in self.staying
            },
        )
        self.liars |= opened.liars
        if opened.stops:
            words = "; ".join(f"{name} {why}" for name, why in opened.stops.items())
            raise RoundError(
                f"no result: {words}. What was sent reveals nothing else; open a new round without "
                "the sites that caused this"
            )

    def _given(self) -> dict[str, dict[Secret, int]]:
        """Return the shares that sites give, by secret; record sites that give other shares."""
        found: dict[str, dict[Secret, int]] = {}
        out = sorted(set(self.round.names) - set(self.listed))
        asked: dict[Step, dict[str, list[str]]] = {
            "unmask": {name: [name, *out] for name in sorted(self.listed)},
            "without": dict.fromkeys(self.staying, self.without),
        }
        refused = self._complaining()
        for step, wanted in asked.items():
            for name, message in self.answers[step].items():
                lacking = refused[name].body["complaints"] if name in refused else {}
                given, wrong = steps.check_shares(self.round, message, wanted, self.dealt, lacking)
                found.setdefault(name, {}).update(given)
                if wrong:
                    self.liars[name] = "gave wrong shares"
        return found


def path_of(key: Path, round_: Round) -> Path:
    """Return the path of a coordinator's journal of a round, beside its keys.

    The folder is created if necessary.
    """
    folder = key.with_suffix(".rounds")
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"{round_.round_id[:16]}.json"


def write_decided(path: Path, round_: Round, decided: Decisions) -> None:
    """Write the decisions of a round."""
    record = {"hushtable": "decisions", "round_id": round_.round_id, **asdict(decided)}
    files.write_bytes(path, json.dumps(record).encode())


def read_decided(path: Path, round_: Round) -> Decisions:
    """Return what `write_decided` wrote; raise `HushTableError` if it is for a different round."""
    try:
        record = json.loads(path.read_bytes())
    except ValueError:
        record = None
    kinds = {"hushtable": str, "round_id": str, "keys": dict, "sites": dict, "signers": list[str]}
    kinds |= {"without": list[str], "shown": list[str]}
    what = (
        f"{path}: this is not a coordinator's decisions, or it is damaged: in a round by folder, "
        "remove it and run the command again, which reads the decisions from the folder. Such a "
        "file"
    )
    record = entries(record, what, kinds, error=FileError)
    if record["round_id"] != round_.round_id:
        raise RoundError(
            f"{path} holds the decisions of round {record['round_id'][:12]!a}, not those of "
            f"{round_.round_id[:12]}: restore the right file, or remove it, and run the command "
            "again"
        )
    return Decisions(**{field.name: record[field.name] for field in fields(Decisions)})


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

    @contextlib.contextmanager
    def alone(self, seconds: float) -> Iterator[None]:
        """Let one process at a time continue the round; raise `FileError` if another does not end.

        A process whose SuperLink was killed ends within seconds.
        """
        end = time.monotonic() + seconds
        with contextlib.ExitStack() as lock:
            while True:
                try:
                    lock.enter_context(files.locked(self.path))
                    break
                except FileError:
                    if time.monotonic() >= end:
                        raise
                    time.sleep(0.2)
            yield

    def decided(self) -> Decisions:
        """Return the decisions so far; raise `HushTableError` if they cannot be read."""
        return read_decided(self.path, self._round) if self.path.exists() else Decisions()

    def decide(self, decided: Decisions) -> None:
        """Write the decisions, unless they are already there."""
        if decided != self.decided():
            write_decided(self.path, self._round, decided)

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
