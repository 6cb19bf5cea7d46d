"""The result of a round: collected from the sites' files, signed, and checked by every site."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.counts.base import Noised
from hushtable.counts.periods import Increment
from hushtable.counts.release import Release
from hushtable.errors import FileError, HushTableError, RoundError, UsageError
from hushtable.language import numerals
from hushtable.plans.plan import Plan
from hushtable.privacy.ledger import Ledger, Share
from hushtable_federation.clock import now
from hushtable_federation.keys import Card, Keys, grouped
from hushtable_federation.language import _
from hushtable_federation.refusals import raise_first
from hushtable_federation.round import Round, check_coordinator
from hushtable_federation.seal import Seal
from hushtable_federation.submission import Submission


def implausible(plan: Plan, counts: NDArray[np.int64], noise_sd: float) -> str | None:
    """Return why these cannot be honest counts with this noise; None if they can.

    All tables count the same rows, so their totals agree up to the noise; and no cell contains
    fewer than zero rows, or more than all rows. This also holds for rows of several periods
    that a horizon weights, because no weight is below 0. Chance exceeds a
    bound of 8 standard deviations once in 10^15 cells.

    Parameters
    ----------
    plan : Plan
        The plan that they are under.
    counts : ndarray of shape (n_cells,), int64
        Counts of one site or of all sites.
    noise_sd : float
        Standard deviation of the noise on a cell.
    """
    offsets = plan.family.offsets
    # Exact in whole numbers unless numbers are huge, which is checked first.
    if np.abs(counts, dtype=np.float64).max() > 2.0**52:
        return _("a count exceeds 2^52")
    rows = np.add.reduceat(counts, offsets[:-1]).astype(np.float64)
    spread = noise_sd * np.sqrt(np.diff(offsets))
    weights = 1.0 / spread**2
    mean = float(rows @ weights / weights.sum())
    off = np.abs(rows - mean) / spread
    worst = int(off.argmax())
    if off[worst] > 8.0:
        return _(
            "the tables hold different numbers of rows: table %(table)s about %(n)s, all "
            "tables on average %(mean)s: %(times)s times the noise apart",
            table=worst + 1, n=numerals(f"{rows[worst]:,.0f}"),
            mean=numerals(f"{mean:,.0f}"), times=f"{off[worst]:.0f}",
        )  # fmt: skip
    total = max(mean, 0.0)
    most = total + 8.0 * (noise_sd + spread.min())
    cell = int(counts.argmin())
    if counts[cell] < -8.0 * noise_sd:
        return _("cell %(cell)s holds %(n)s: negative by more than noise explains", cell=cell,
                 n=numerals(f"{counts[cell]:,}"))  # fmt: skip
    cell = int(counts.argmax())
    if counts[cell] > most:
        return _("cell %(cell)s holds %(n)s, more than the %(total)s rows in total", cell=cell,
                 n=numerals(f"{counts[cell]:,}"), total=numerals(f"{total:,.0f}"))  # fmt: skip
    return None


#: Parts of a ledger that the terms of a round determine.
_STATED = ("mechanism", "sensitivity", "delta", "behind_plan", "pool", "period", "window")


@dataclass(frozen=True, eq=False)
class Result:
    """The signed result of a round, as read from a file.

    Created by `load`, which refuses a damaged, edited or forged file. Each other check returns
    nothing, or raises `RoundError` with its finding.

    Attributes
    ----------
    path : str
        Path of the file, in messages.
    counts : Release or Increment
        The counts in it.
    seal : Seal
        Round, submissions and signature.
    coordinator : Card
        The signer's card.

    Examples
    --------
    >>> from hushtable_federation import Result, SecureSum
    >>> here = Rehearsal()  # made-up sites and an open round
    >>> SecureSum(here.round, here.lead, here.transport()).run().save("sum.hush")
    >>> result = Result.load("sum.hush")
    >>> result.check_round(here.round)
    >>> result.sites
    ['north', 'south']
    """

    path: str
    counts: Noised
    seal: Seal
    coordinator: Card

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Result":
        """Read a result; raise `FileError` if there is none, `RoundError` if it is not signed."""
        return cls.of(files.read(path))

    @classmethod
    def of(cls, content: files.Content) -> "Result":
        """Return the result from a file's content; raise as `load` does."""
        path, counts = content.path, _noised(content)
        if counts.seal is None:
            raise RoundError(
                f"{path} is not signed: anyone could have made or changed it, and it cannot be "
                "verified. Ask the coordinator for the signed result (hushtable round sync)"
            )
        return cls(str(path), counts, counts.seal, counts.seal.coordinator)

    @property
    def sites(self) -> list[str]:
        """Return the sorted names of the sites whose submissions it names."""
        return sorted(self.seal.submissions)

    def check_round(self, round_: Round) -> None:
        """Check signer, sites, tables and ledger against the round that it should belong to."""
        forged = {
            f"{self.path} ends round {self.seal.round_id[:12]}, not {round_.round_id[:12]}: it is "
            "the result of another round; get the one of this round from its coordinator": (
                self.seal.round_id != round_.round_id
            ),
            f"{self.path} was signed by {self.coordinator.name!r} with the keys "
            f"{self.coordinator.fingerprint}, but the round was opened by "
            f"{round_.coordinator.name!r} with {round_.coordinator.fingerprint}: it is forged; get "
            "the result directly from the coordinator": self.coordinator != round_.coordinator,
        }
        raise_first(RoundError, forged)
        strangers = [name for name in self.sites if name not in round_.names]
        wrong = {
            f"it names submissions of {self.sites}, but the round needs at least {round_.needed} "
            f"of {round_.names}": strangers or len(self.sites) < round_.needed,
            "it counts under a different plan than the round": (
                self.counts.plan_id != round_.plan.plan_id
            ),
        }
        raise_first(self._wrong, wrong)
        self._check_ledger(round_)
        reason = implausible(round_.plan, self.counts.counts, self.counts.ledger.noise_sd)
        if reason is not None:
            raise self._wrong(f"its counts are impossible: {reason}")

    def _check_ledger(self, round_: Round) -> None:
        ledger = self.counts.ledger
        if len(ledger.shares) != len(self.sites):
            raise self._wrong(
                f"its ledger has {len(ledger.shares)} shares, but it names {len(self.sites)} "
                "submissions"
            )
        for share in ledger.shares:
            try:
                asked = round_.ledger(share)
            except RoundError as error:
                raise self._wrong(f"its ledger: {error}") from None
            differing = [name for name in _STATED if getattr(asked, name) != getattr(ledger, name)]
            if differing:
                raise self._wrong(
                    "its ledger does not match the round's terms: it states a different "
                    + " and ".join(name.replace("_", " ") for name in differing)
                )

    def check_own(self, site: str, share: Share, content: bytes) -> None:
        """Check that this site's submission is in the result, under its name and unchanged.

        Parameters
        ----------
        site : str
            Name of the site.
        share : Share
            The share of the round in its book.
        content : bytes
            The submission that was sent.
        """
        if site not in self.seal.submissions:
            raise RoundError(
                f"{self.path} does not name {site!r}, so this site's counts are not in the sum: "
                f"ask {self.coordinator.name!r} why"
            )
        if self.counts.ledger.shares[self.sites.index(site)] != share:
            raise self._wrong(
                f"its ledger does not hold the share of {site!r} ({share.release[:12]})"
            )
        self._check_digest(site, files.unpack(content, "the book's copy").digest)

    def check_submissions(
        self, round_: Round, submissions: Mapping[str, bytes | Path], at: datetime
    ) -> bool:
        """Check that the result is the sum of these submissions.

        Parameters
        ----------
        round_ : Round
            The round that they answer.
        submissions : mapping of str to bytes or Path
            By file name: all submissions that the result names, and no others.
        at : datetime
            The current time.

        Returns
        -------
        bool
            Whether the sum was computed again. In a masked round this is not possible, because the
            masks are removed only in its last step.
        """
        collection = Collection(round_)
        for name, content in submissions.items():
            collection.add(name, content, at)
        if collection.refused:
            name, reason = collection.refused[0]
            raise RoundError(f"{name} is not a submission that {self.path} can contain: {reason}")
        for site, submission in collection.accepted.items():
            if site not in self.seal.submissions:
                raise RoundError(
                    f"{submission.name} is from {site!r}, whose submission {self.path} does not "
                    "name: give only those that it names"
                )
            self._check_digest(site, submission.digest)
        missing = [name for name in self.sites if name not in collection.accepted]
        if missing:
            raise RoundError(
                f"the submissions of {', '.join(map(repr, missing))} are missing: give all that "
                f"{self.path} names, or none"
            )
        if round_.terms.masked:
            return False
        try:
            again = collection.result()
        except RoundError as error:
            raise self._wrong(f"its submissions do not add up to a result ({error})") from None
        same = np.array_equal(again.counts, self.counts.counts)
        if not same or again.ledger != self.counts.ledger:
            raise self._wrong("its counts are not the sum of the submissions")
        return True

    def check_digest(self, digest: str) -> None:
        """Compare the result's digest with another site's, given in hexadecimal."""
        text = "".join(digest.split()).lower()
        if len(text) != 64 or set(text) - set("0123456789abcdef"):
            raise UsageError(
                f"--digest {digest!r}: needs the 64 hexadecimal digits that hushtable round verify "
                "prints at another site, in quotes if there are spaces"
            )
        if text != self.seal.digest:
            raise RoundError(
                f"{self.path} has the digest {grouped(self.seal.digest)}, but another "
                f"site has {grouped(text)}: these are two different results. Use "
                f"neither; ask {self.coordinator.name!r}"
            )

    def _check_digest(self, site: str, digest: str) -> None:
        named = self.seal.submissions[site]
        if digest != named:
            raise self._wrong(
                f"it names the submission {named[:12]} of {site!r}, but the one that was sent is "
                f"{digest[:12]}"
            )

    def _wrong(self, what: str) -> RoundError:
        return RoundError(
            f"{self.path} is not the result of round {self.seal.round_id[:12]}: {what}. Do not use "
            f"it; show this to {self.coordinator.name!r} and to the other sites"
        )


def open_result(path: str | os.PathLike[str]) -> Noised:
    """Read the result of a round, signed or not.

    Raise `FileError` if it is not an intact file of a result, or its signature is not valid.
    """
    return _noised(files.read(path))


def _noised(content: files.Content) -> Noised:
    kinds: tuple[type[Noised], ...] = (Release, Increment)
    made = {kind.kind: kind for kind in kinds}
    if content.kind not in made:
        raise FileError(f"{content.path}: holds {content.held}: give the result of a round")
    return content.build(made[content.kind].from_file)


@dataclass
class Collection:
    """The submissions of a round, as they arrive. Only one file at a time is in memory.

    Attributes
    ----------
    round : Round
        The round that they answer.
    accepted : dict of str to Submission
        By site.
    refused : list of (str, str)
        File and reason.
    contradicted : set of str
        Sites that sent two different submissions: neither is valid.

    Examples
    --------
    >>> from hushtable_federation import Collection, Reply
    >>> here = Rehearsal(masked=False)  # made-up sites and an open round
    >>> collection = Collection(here.round)
    >>> reply = Reply(here.round, here.keys["north"], here.books["north"])
    >>> sent = reply.answer(reply.counted(here.sketches["north"]), None)
    >>> collection.add("north.hush", sent.content)
    >>> collection.missing
    ['south']
    """

    round: Round
    accepted: dict[str, Submission] = field(default_factory=dict)
    refused: list[tuple[str, str]] = field(default_factory=list)
    contradicted: set[str] = field(default_factory=set)

    @property
    def missing(self) -> list[str]:
        """Return the sites whose submission is missing or not valid."""
        return [name for name in self.round.names if name not in self.accepted]

    def add(self, name: str, content: bytes | Path, at: datetime | None = None) -> None:
        """Accept a submission, or record why it is refused; the others are not affected.

        Parameters
        ----------
        name : str
            Name of the file, in messages.
        content : bytes or Path
            Its content, or its path, which uses no memory after it is added up.
        at : datetime, optional
            The time; by default, now.
        """
        try:
            read = Submission.from_bytes(_bytes(content), name, self.round, at or now())
            self._add(name, content, read)
        except HushTableError as error:
            self.refused.append((name, str(error).removeprefix(f"{name}: ")))

    def _add(self, name: str, content: bytes | Path, submission: Submission) -> None:
        site = submission.site
        other = self.accepted.get(site)
        if other is not None and other.digest == submission.digest:
            return  # the same once more
        if other is not None or site in self.contradicted:
            self.accepted.pop(site, None)
            self.contradicted.add(site)
            raise RoundError(
                f"{site!r} sent two different submissions to this round, which a correct site "
                "never does: neither is valid. Ask it which one is its own, and what happened to "
                "its keys and book"
            )
        if not self.round.terms.masked:
            counts = submission.words.view(np.int64)
            reason = implausible(self.round.plan, counts, submission.ledger.noise_sd)
            if reason is not None:
                raise RoundError(f"{site!r} sent impossible counts: {reason}")
        self.accepted[site] = submission.accepted(content)

    def result(self, keys: Keys | None = None) -> Noised:
        """Return the sum of the accepted submissions.

        Parameters
        ----------
        keys : Keys, optional
            The coordinator's keys, to sign it; without a signature, anyone could have made it.

        Raises
        ------
        RoundError
            If the round is masked, too few sites have answered, the sum is impossible, or the keys
            are not the coordinator's.
        """
        faults = {
            "no result: the masks are removed in steps (hushtable round sync), not by adding up "
            "submissions": self.round.terms.masked,
            f"no result: {len(self.accepted)} sites have answered, and the round needs "
            f"{self.round.needed}; missing: {', '.join(map(repr, self.missing))}": (
                len(self.accepted) < self.round.needed
            ),
        }
        raise_first(RoundError, faults)
        digests = {site: submission.digest for site, submission in self.accepted.items()}
        words = add_up(self.round, digests, lambda site: _bytes(self.accepted[site].content))
        ledgers = {site: submission.ledger for site, submission in self.accepted.items()}
        result = total(self.round, words, ledgers)
        return result if keys is None else with_seal(self.round, result, digests, keys)


def add_up(
    round_: Round, digests: Mapping[str, str], content: Callable[[str], bytes]
) -> NDArray[np.uint64]:
    """Return the sum of submissions modulo 2^64, of shape (n_cells,); one at a time is in memory.

    ``digests`` are theirs, by site, and ``content`` returns the file of a site. Raise `RoundError`
    if a file has another digest.
    """
    words = np.zeros(round_.plan.family.n_cells, np.uint64)
    for site, digest in digests.items():
        read = files.unpack(content(site), f"the submission of {site!r}")
        if read.digest != digest:
            raise RoundError(f"{read.path} has changed since it was read: run the command again")
        words += read.arrays["words"]
    return words


def total(round_: Round, words: NDArray[np.uint64], ledgers: Mapping[str, Ledger]) -> Noised:
    """Return the result of the sites whose ledgers are given, if their sum is possible.

    ``words`` are that sum, without masks, modulo 2^64: of shape (n_cells,). Raise `RoundError`.
    """
    first, *others = (ledgers[site] for site in sorted(ledgers))
    ledger = sum(others, start=first)
    counts = words.view(np.int64)
    reason = implausible(round_.plan, counts, ledger.noise_sd)
    if reason is not None:
        blame = (
            "A site masked numbers that are not its counts, or its keys differ from its card; "
            "under masks, it is unknown which site"
            if round_.terms.masked
            else "Several sites together sent more than is possible"
        )
        raise RoundError(f"no result: the sum is impossible: {reason}. {blame}")
    if round_.period is not None:
        return Increment(round_.plan, counts, ledger)
    return Release(round_.plan, counts, ledger)


def with_seal(round_: Round, result: Noised, submissions: Mapping[str, str], keys: Keys) -> Noised:
    """Return a result with the coordinator's seal, which its file then contains.

    ``submissions`` are the digests of those in the sum, by site. Raise `RoundError` if the keys are
    not the coordinator's.
    """
    check_coordinator(round_, keys)
    entries, arrays = result.entries()
    entries |= Seal.entry(round_.round_id, keys.card, submissions)
    content = files.unpack(files.pack(result.kind, entries, arrays, keys.sign), "the result")
    return content.build(type(result).from_file)


def _bytes(content: bytes | Path) -> bytes:
    return content.read_bytes() if isinstance(content, Path) else content
