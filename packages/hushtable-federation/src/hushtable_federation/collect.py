"""The coordinator's side of a round by file: verify, refuse with a reason, sum, unmask."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.counts.base import Noised
from hushtable.counts.periods import Increment
from hushtable.counts.release import Release
from hushtable.errors import HushTableError, RoundError
from hushtable.privacy.ledger import Ledger, check_parts
from hushtable.privacy.seal import Seal
from hushtable_federation.clock import now
from hushtable_federation.keys import Keys
from hushtable_federation.roster import check_coordinator
from hushtable_federation.round import Round
from hushtable_federation.sealed import Sealed
from hushtable_federation.submission import Submission


@dataclass
class Collection:
    """The submissions of a round, as they come in. Of files, one at a time is held.

    Attributes
    ----------
    round : Round
        What they answer.
    accepted : dict of str to Submission
        By site.
    refused : list of (str, str)
        File and reason.
    repeated : list of (str, str)
        File and site, of submissions that came again unchanged and count once.
    contradicted : set of str
        Sites of which two different submissions came: neither counts.

    Examples
    --------
    >>> from hushtable_federation import Collection, Reply
    >>> from hushtable_federation.rehearsal import Rehearsal
    >>> here = Rehearsal()
    >>> collection = Collection(here.round)
    >>> reply = Reply(here.round, here.keys["north"], here.books["north"])
    >>> collection.add("north.hush", reply.submission(here.sketches["north"]))
    >>> collection.missing
    ['south']
    """

    round: Round
    accepted: dict[str, Submission] = field(default_factory=dict)
    refused: list[tuple[str, str]] = field(default_factory=list)
    repeated: list[tuple[str, str]] = field(default_factory=list)
    contradicted: set[str] = field(default_factory=set)
    #: Sum of what is accepted; None where one has been taken back out of it.
    _sum: NDArray[np.uint64] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self._sum = np.zeros(self.round.layout.n_cells, np.uint64)

    @property
    def missing(self) -> list[str]:
        """Sites whose submission is not there, or does not count."""
        return [name for name in self.round.names if name not in self.accepted]

    def standing(self, site: str) -> str:
        """Return where a site's submission is: in, missing, or two different ones."""
        if site in self.accepted:
            return "in"
        return "two different submissions" if site in self.contradicted else "missing"

    def add(self, name: str, content: bytes | Path, at: datetime | None = None) -> None:
        """Take a submission in, or note why it is refused; the others are not touched.

        Parameters
        ----------
        name : str
            Of the file, in messages.
        content : bytes or Path
            What is in it, or where it lies, which takes no memory once it is added up.
        at : datetime, optional
            The time; now by default.
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
            self.repeated.append((name, site))
            return
        if other is not None or site in self.contradicted:
            if self.accepted.pop(site, None) is not None:
                self._sum = None
            self.contradicted.add(site)
            raise RoundError(
                f"{site!r} sent two different submissions to this round, which a site in order "
                "never does: neither counts. Ask it which one is its own, and what happened to its "
                "keys and book"
            )
        rows = None
        if not self.round.terms.masked:
            counts, layout = submission.words.view(np.int64), self.round.layout
            reason = layout.implausible(counts, submission.ledger.noise_sd)
            if reason is not None:
                raise RoundError(f"{site!r} sent counts that cannot be: {reason}")
            if self.round.period is None:  # else weighed, with those of the periods before
                rows = round(float(counts.sum()) / len(layout.cells))
        self.accepted[site] = submission.accepted(content, rows)
        if self._sum is not None:
            self._sum += submission.words

    def result(self, keys: Keys | None = None) -> Noised:
        """Return the sum of what was accepted.

        Parameters
        ----------
        keys : Keys, optional
            The coordinator's, to sign it; without them anybody may have made it.

        Raises
        ------
        RoundError
            If a site is missing that the round cannot do without, the sum cannot be, or the keys
            are not the coordinator's.
        """
        missing, terms = self.missing, self.round.terms
        if terms.masked and missing:
            raise RoundError(
                f"no result: {_named(missing)} missing, and a masked sum can only be read when all "
                f"{len(self.round.sites)} sites are in it. Ask for what is missing before "
                f"the deadline, or {self._or_else}"
            )
        if len(self.accepted) < terms.least:
            raise RoundError(
                f"no result: {len(self.accepted)} sites are in, and the round needs {terms.least}; "
                f"{_named(missing)} missing"
            )
        if self._sum is None:
            self._sum = self._added_again()
        ledgers = {site: one.ledger for site, one in self.accepted.items()}
        result = total(self.round, self._sum.copy(), ledgers)
        if keys is None:
            return result
        digests = {site: one.digest for site, one in self.accepted.items()}
        return with_seal(self.round, result, digests, keys)

    @property
    def _or_else(self) -> str:
        if self.round.period is None:
            return "open a new round without it"
        return "open the period again (hushtable round next --again)"

    def _added_again(self) -> NDArray[np.uint64]:
        words = np.zeros(self.round.layout.n_cells, np.uint64)
        for one in self.accepted.values():
            read = files.unpack(_bytes(one.content), one.name)
            if read.digest != one.digest:
                raise RoundError(f"{one.name} has changed since it was read: collect again")
            words += read.arrays["words"]
        return words


def total(round_: Round, words: NDArray[np.uint64], ledgers: Mapping[str, Ledger]) -> Noised:
    """Return the result of the sites whose ledgers are given, if their sum can be one.

    ``words`` are that sum, without masks, modulo 2^64: of shape (n_cells,). Raises `RoundError`.
    """
    first, *others = (ledgers[site] for site in sorted(ledgers))
    ledger = sum(others, start=first)
    counts = words.view(np.int64)
    reason = round_.layout.implausible(counts, ledger.noise_sd)
    if reason is not None:
        blame = (
            "Some site masked other numbers than its counts, or its keys differ from its card; "
            "under masks nobody can tell which"
            if round_.terms.masked
            else "Several sites together sent more than there can be"
        )
        raise RoundError(f"no result: the sum cannot be: {reason}. {blame}")
    if round_.plan is None:
        check_parts(ledger)
        return Sealed(round_.layout, counts, ledger)
    if round_.period is not None:
        return Increment(round_.plan, counts, ledger)
    return Release(round_.plan, counts, ledger)


def with_seal(round_: Round, result: Noised, submissions: Mapping[str, str], keys: Keys) -> Noised:
    """Return a result with the coordinator's seal, which its file then carries.

    ``submissions`` are the digests of those in the sum, by site. Raises `RoundError` if the keys
    are not the coordinator's.
    """
    check_coordinator(round_, keys)
    entries, arrays = result.entries()
    entries |= Seal.entry(round_.round_id, keys.card.to_dict(), submissions)
    content = files.unpack(files.pack(result.kind, entries, arrays, keys.sign), "the result")
    return content.build(type(result).from_file)


def _bytes(content: bytes | Path) -> bytes:
    return content.read_bytes() if isinstance(content, Path) else content


def _named(sites: list[str]) -> str:
    verb = "is" if len(sites) == 1 else "are"
    return f"{', '.join(map(repr, sites))} {verb}"
