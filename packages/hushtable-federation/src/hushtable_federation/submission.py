"""The submission: what a site sends, signed, and masked where the round says so."""

from dataclasses import dataclass, replace
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.errors import FileError, HushTableError, PlanError, PrivacyError, RoundError
from hushtable.privacy.ledger import Ledger, Share
from hushtable_federation.clock import CLOCKS, parsed, shown_time, stamp
from hushtable_federation.keys import Card, Keys
from hushtable_federation.round import Round


@dataclass(frozen=True, eq=False)
class Submission:
    """A site's contribution as the coordinator has it: *read* from a file, then *accepted*.

    Attributes
    ----------
    site : str
        Name of the site, whose signature was checked.
    words : ndarray of shape (n_cells,), uint64
        The counts with noise modulo 2^64, and in a masked round plus masks. Of an accepted one
        empty: they are in the sum.
    ledger : Ledger
        With the site's line alone.
    digest : str
        SHA-256 of all of it.
    name : str
        Of the file.
    content : bytes or Path
        Of an accepted one, what is in the file, or where it lies.
    rows : int or None
        Of an accepted one, rows counted, as estimated; None under masks, and in a stream.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> from hushtable_federation import Reply, Submission
    >>> from hushtable_federation.rehearsal import Rehearsal
    >>> here = Rehearsal()
    >>> reply = Reply(here.round, here.keys["north"], here.books["north"])
    >>> content = reply.submission(here.sketches["north"])
    >>> Submission.from_bytes(content, "north.hush", here.round, datetime.now(UTC)).site
    'north'
    """

    site: str
    words: NDArray[np.uint64]
    ledger: Ledger
    digest: str
    name: str = ""
    content: bytes | Path = b""
    rows: int | None = None

    @staticmethod
    def pack(
        round_: Round,
        keys: Keys,
        counts: NDArray[np.int64],
        share: Share,
        made: datetime,
        masks: NDArray[np.uint64] | None = None,
    ) -> bytes:
        """Return the file of a submission.

        Parameters
        ----------
        round_ : Round
            What it answers.
        keys : Keys
            The site's.
        counts : ndarray of shape (n_cells,), int64
            Rows in each cell plus the site's noise: go out under masks only, if they are shared.
        share : Share
            The site's line of the ledger.
        made : datetime
            When.
        masks : ndarray of shape (n_cells,), uint64
            In a masked round: what hides the counts.
        """
        round_.ledger(share)  # refuses noise for other terms
        if round_.terms.masked != (masks is not None):
            raise PrivacyError("a masked round takes masked counts, any other plain ones")
        words = counts.view(np.uint64)
        if masks is not None:
            words = words + masks
        entries = {
            "round_id": round_.round_id,
            "plan_id": round_.layout.plan_id,
            "site": keys.card.name,
            "made": stamp(made),
            "share": share.to_dict(),
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
        return cls(site, words, ledger, read.digest, str(read.path))

    def accepted(self, content: bytes | Path, rows: int | None) -> "Submission":
        """Return it without its counts, once they are in the sum."""
        return replace(self, words=np.empty(0, np.uint64), content=content, rows=rows)


def signed_digest(content: bytes, round_: Round, card: Card) -> str:
    """Return the digest of what a card's owner submitted to a round; empty if it is no such file.

    Neither its time nor its counts are looked at.
    """
    try:
        read = files.unpack(content, "submission").expect("submission")
    except HushTableError:
        return ""
    is_signed = card.signed(read) and read.manifest.get("round_id") == round_.round_id
    return read.digest if is_signed else ""


def _check_made(made: Any, round_: Round, at: datetime, who: str) -> None:
    try:
        when = parsed(made)
    except ValueError:
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
