"""A result, as a site checks it before it follows it: who made it, and that it is the sum."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from hushtable import files, signatures
from hushtable.counts.base import Noised
from hushtable.counts.periods import Increment
from hushtable.counts.release import Release
from hushtable.display import Displayed
from hushtable.errors import RoundError, UsageError
from hushtable.privacy.ledger import Share
from hushtable.privacy.seal import Seal
from hushtable_federation.collect import Collection
from hushtable_federation.keys import Card
from hushtable_federation.round import Round
from hushtable_federation.sealed import Sealed

#: Of a ledger, what the terms of a round determine.
_STATED = ("mechanism", "sensitivity", "delta", "behind_plan", "pool", "period", "window")


@dataclass(frozen=True, eq=False)
class Result(Displayed):
    """The signed result of a round, as a file carries it.

    Made by `load`, which refuses a file that was damaged, edited or forged. Each other check
    returns nothing, or raises `RoundError` with what was found.

    Attributes
    ----------
    path : str
        Of the file, in messages.
    counts : Release, Sealed or Increment
        What it holds.
    seal : Seal
        Round, submissions and signature.
    coordinator : Card
        Who signed.

    Examples
    --------
    >>> from hushtable_federation import Result, SecureSum
    >>> from hushtable_federation.rehearsal import Rehearsal
    >>> here = Rehearsal()
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
        """Read a result; raises `FileError` if it holds none, `RoundError` if nobody signed it."""
        return cls.of(files.read(path))

    @classmethod
    def of(cls, content: files.Content) -> "Result":
        """Return the result that was read; raises as `load` does."""
        path, counts = content.path, _noised(content)
        if counts.seal is None:
            raise RoundError(
                f"{path} is not signed: anybody may have made or changed it, and nothing of it can "
                "be verified. Ask the coordinator for the signed result (hushtable round collect "
                "--key)"
            )
        signer = Card.from_dict(dict(counts.seal.coordinator))
        return cls(str(path), counts, counts.seal, signer)

    @property
    def sites(self) -> list[str]:
        """Names of the sites whose submissions it names, sorted."""
        return sorted(self.seal.submissions)

    def check_round(self, round_: Round) -> None:
        """Check signer, sites, tables and ledger against the round that it has to end."""
        if self.seal.round_id != round_.round_id:
            raise RoundError(
                f"{self.path} ends round {self.seal.round_id[:12]}, not {round_.round_id[:12]}: "
                "it is the result of another round; get the one of this round from its coordinator"
            )
        if self.coordinator != round_.coordinator:
            raise RoundError(
                f"{self.path} was signed by {self.coordinator.name!r} with the keys "
                f"{self.coordinator.fingerprint}, and the round was opened by "
                f"{round_.coordinator.name!r} with {round_.coordinator.fingerprint}: it is forged; "
                "get the result from the coordinator itself"
            )
        strangers = [name for name in self.sites if name not in round_.names]
        if strangers or len(self.sites) < round_.needed:
            raise self._wrong(
                f"it names submissions of {self.sites}, and the round asks for at least "
                f"{round_.needed} of {round_.names}"
            )
        same = self.counts.counted_under(round_.layout)
        if not same or self.counts.hidden != (round_.plan is None):
            raise self._wrong("it counts under another plan than the round")
        self._check_ledger(round_)
        reason = round_.layout.implausible(self.counts.counts, self.counts.ledger.noise_sd)
        if reason is not None:
            raise self._wrong(f"its counts cannot be: {reason}")

    def _check_ledger(self, round_: Round) -> None:
        ledger = self.counts.ledger
        if len(ledger.shares) != len(self.sites):
            raise self._wrong(
                f"its ledger has {len(ledger.shares)} shares, and it names {len(self.sites)} "
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
                    "its ledger is not what the round's terms ask for: it states another "
                    + " and ".join(name.replace("_", " ") for name in differing)
                )

    def check_own(self, site: str, share: Share, content: bytes) -> None:
        """Check that what this site sent is in the result, under its name and unchanged.

        Parameters
        ----------
        site : str
            Name of the site.
        share : Share
            That its book holds of the round.
        content : bytes
            The submission that was sent; empty if the book has no copy.
        """
        if site not in self.seal.submissions:
            raise RoundError(
                f"{self.path} does not name {site!r}: what this site sent is not in the sum; ask "
                f"{self.coordinator.name!r} why"
            )
        if self.counts.ledger.shares[self.sites.index(site)] != share:
            raise self._wrong(
                f"its ledger does not hold the share of {site!r} ({share.release[:12]})"
            )
        if content:
            self._check_digest(site, files.unpack(content, "the book's copy").digest)

    def check_submissions(
        self, round_: Round, submissions: Mapping[str, bytes | Path], at: datetime
    ) -> bool:
        """Check that the result is the sum of these submissions.

        Parameters
        ----------
        round_ : Round
            That they answer.
        submissions : mapping of str to bytes or Path
            By name of the file: all that the result names, and no others.
        at : datetime
            The time now.

        Returns
        -------
        bool
            Whether the sum was computed again. Of a round that goes on without lost sites it
            cannot be: the masks of that form do not cancel in the submissions.
        """
        collection = Collection(round_)
        for name, content in submissions.items():
            collection.add(name, content, at)
        if collection.refused:
            name, reason = collection.refused[0]
            raise RoundError(f"{name} is no submission that {self.path} can hold: {reason}")
        for site, one in collection.accepted.items():
            if site not in self.seal.submissions:
                raise RoundError(
                    f"{one.name} is of {site!r}, whose submission {self.path} does not name: give "
                    "only those that it names"
                )
            self._check_digest(site, one.digest)
        missing = [name for name in self.sites if name not in collection.accepted]
        if missing:
            raise RoundError(
                f"the submissions of {', '.join(map(repr, missing))} are missing: give all that "
                f"{self.path} names, or none"
            )
        if round_.terms.masked and round_.needed < len(round_.sites):
            return False
        try:
            again = collection.result()
        except RoundError as error:
            raise self._wrong(
                f"its submissions add up to no result ({error}); if the round ran online its sum "
                "cannot be computed from them: verify without them"
            ) from None
        same = np.array_equal(again.counts, self.counts.counts)
        if not same or again.ledger != self.counts.ledger:
            raise self._wrong("its counts are not the sum of the submissions")
        return True

    def check_digest(self, digest: str) -> None:
        """Check the result's digest against the one that another site has, in hexadecimal."""
        text = "".join(digest.split()).lower()
        if len(text) != 64 or set(text) - set("0123456789abcdef"):
            raise UsageError(
                f"--digest {digest!r}: needs the 64 hexadecimal digits that hushtable round verify "
                "prints at another site, in quotes if there are spaces"
            )
        if text != self.seal.digest:
            raise RoundError(
                f"{self.path} has the digest {signatures.grouped(self.seal.digest)}, and another "
                f"site has {signatures.grouped(text)}: these are two different results. Follow "
                f"neither; ask {self.coordinator.name!r}"
            )

    def _check_digest(self, site: str, digest: str) -> None:
        named = self.seal.submissions[site]
        if digest != named:
            raise self._wrong(
                f"it names the submission {named[:12]} of {site!r}, and the one that was sent is "
                f"{digest[:12]}"
            )

    def _wrong(self, what: str) -> RoundError:
        return RoundError(
            f"{self.path} is not the result of round {self.seal.round_id[:12]}: {what}. Do not "
            f"follow it; show this to {self.coordinator.name!r} and to the other sites"
        )


def open_result(path: str | os.PathLike[str]) -> Noised:
    """Read the result of a round, signed or not.

    Raises `FileError` if it is no intact file of one, or its signature does not hold.
    """
    return _noised(files.read(path))


def _noised(content: files.Content) -> Noised:
    kinds: tuple[type[Noised], ...] = (Sealed, Release, Increment)
    made = {one.kind: one for one in kinds}
    return content.expect(*made).build(made[content.kind].from_file)
