"""The submission: what a site sends, signed, and masked where the round says so."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.errors import FileError, PlanError, PrivacyError, RoundError
from hushtable.federation.keys import Keys
from hushtable.federation.masks.masking import agreed_key, pairwise_mask
from hushtable.federation.round import CLOCKS, Round, shown_time, stamp
from hushtable.privacy.ledger import Ledger, Share

__all__ = ["Part", "Submission", "masks_of"]


@dataclass(frozen=True, eq=False)
class Part:
    """A site's counts with its part of the noise. Goes out only under masks, if they are shared.

    Attributes
    ----------
    counts : ndarray of shape (n_cells,), int64
        Rows in each cell plus the site's noise.
    ledger : Ledger
        With the site's share alone.
    made : datetime
        When.
    """

    counts: NDArray[np.int64]
    ledger: Ledger
    made: datetime

    @property
    def share(self) -> Share:
        """The site's share of the ledger."""
        return self.ledger.shares[0]


@dataclass(frozen=True, eq=False)
class Submission:
    """A site's answer to a round, as it travels.

    Attributes
    ----------
    site : str
        Name of the site, whose signature was checked.
    words : ndarray of shape (n_cells,), uint64
        The counts with noise modulo 2^64, and in a masked round plus masks.
    ledger : Ledger
        With the site's share alone.
    digest : str
        SHA-256 of all of it.
    """

    site: str
    words: NDArray[np.uint64]
    ledger: Ledger
    digest: str

    @staticmethod
    def pack(
        round_: Round, keys: Keys, part: Part, masks: NDArray[np.uint64] | None = None
    ) -> bytes:
        """Return the file of a submission.

        Parameters
        ----------
        round_ : Round
            What it answers.
        keys : Keys
            The site's.
        part : Part
            What it says.
        masks : ndarray of shape (n_cells,), uint64
            In a masked round: what hides it.
        """
        if round_.terms.masked != (masks is not None):
            raise PrivacyError("a masked round takes masked counts, any other plain ones")
        words = part.counts.view(np.uint64)
        if masks is not None:
            words = words + masks
        entries = {
            "round_id": round_.round_id,
            "plan_id": round_.layout.plan_id,
            "site": keys.card.name,
            "made": stamp(part.made),
            "share": part.share.to_dict(),
        }
        return files.pack("submission", entries, {"words": words}, keys.sign)

    @classmethod
    def from_bytes(
        cls, content: bytes, path: "str | PathLike[str]", round_: Round, at: datetime
    ) -> "Submission":
        """Check and build what a site sent.

        Parameters
        ----------
        content : bytes
            The file.
        path : path
            Its name in errors.
        round_ : Round
            What it has to answer.
        at : datetime
            The time now.

        Raises
        ------
        FileError
            If it is no intact file of a submission.
        RoundError
            If it belongs to another round, or is not of the site that it names.
        """
        if not content:
            raise FileError(f"{path}: the file is empty: ask for it again")
        read = files.unpack(content, path).expect("submission")
        return read.build(lambda read: cls._from_file(read, round_, at))

    @classmethod
    def _from_file(cls, read: files.Content, round_: Round, at: datetime) -> "Submission":
        entries = read.manifest
        site, words = entries.get("site"), read.arrays.get("words")
        # Whom to blame comes first: without a signature that holds, nobody.
        if not isinstance(site, str) or site not in round_.names:
            raise RoundError(
                f"{read.path}: site {site!r} takes no part in this round: its sites are "
                f"{round_.names}"
            )
        if not round_.card(site).signed(read):
            raise RoundError(
                f"{read.path}: the signature is not that of {site!r}: forged, edited, or made "
                "with keys that are not in the roster"
            )
        if entries.get("round_id") != round_.round_id:
            other = str(entries.get("round_id"))[:12]
            plan = str(entries.get("plan_id"))
            stale = "" if plan == round_.layout.plan_id else f", about another plan ({plan[:12]})"
            raise RoundError(
                f"{read.path}: {site!r} answers round {other}, not {round_.round_id[:12]}{stale}: "
                "ask for its submission to this round"
            )
        _check_made(entries.get("made"), round_, at, f"{read.path}: {site!r}")
        cells = (round_.layout.n_cells,)
        if words is None or words.dtype != np.uint64 or words.shape != cells:
            raise PlanError(f"the counts of {site!r} are not uint64 {cells}, as the plan needs")
        ledger = round_.ledger(Share.from_dict(entries.get("share")))
        return cls(site, words, ledger, read.digest)


def _check_made(made: Any, round_: Round, at: datetime, who: str) -> None:
    try:
        when = datetime.fromisoformat(made)
        if stamp(when) != made:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise RoundError(f"{who} does not say when the submission was made") from None
    try:
        round_.check_time(when, "the site's clock")
    except RoundError as error:
        raise RoundError(f"{who}: {error}") from None
    if when > at + CLOCKS:
        raise RoundError(
            f"{who}: made on {shown_time(when)}, which is in the future ({shown_time(at)} here): "
            "one of the two clocks is wrong"
        )


def masks_of(round_: Round, keys: Keys) -> NDArray[np.uint64]:
    """Return the masks of a site in a round by file, from the keys of the roster.

    A key is bound to the round, and so to plan, terms and roster; the site's book sees to it
    that each is used for one vector only.
    """
    me = keys.card.name
    agreed: Mapping[str, bytes] = {
        card.name: agreed_key(
            keys.masking, card.masking, "masks", round_.round_id, *sorted((me, card.name))
        )
        for card in round_.sites
        if card.name != me
    }
    return pairwise_mask(me, agreed, round_.layout.n_cells)
