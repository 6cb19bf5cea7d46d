"""A site's contribution to a round: counts with noise, their cost, and the file to send."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.errors import FileError, HushTableError, PlanError, PrivacyError, RoundError
from hushtable.privacy import mechanisms
from hushtable.privacy.budget import Spent, split_history
from hushtable.privacy.ledger import Ledger, Share
from hushtable_federation.book.digests import REGISTER, to_bytes
from hushtable_federation.clock import CLOCKS, parsed, shown_time, stamp
from hushtable_federation.keys import Card, Keys
from hushtable_federation.round import Round


@dataclass(frozen=True, eq=False)
class Submission:
    """A site's contribution at the coordinator: *read* from a file, then *accepted*.

    Attributes
    ----------
    site : str
        Name of the site, whose signature was checked.
    words : ndarray of shape (n_cells,), uint64
        The counts with noise modulo 2^64, in a masked round plus masks. Empty after acceptance,
        when they are in the sum.
    ledger : Ledger
        The ledger with only the site's line.
    digest : str
        SHA-256 of the whole file.
    name : str
        Of the file.
    content : bytes or Path
        After acceptance, the content of the file, or its path.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> from hushtable_federation import Reply, Submission
    >>> here = Rehearsal(masked=False)  # made-up sites and an open round
    >>> reply = Reply(here.round, here.keys["north"], here.books["north"])
    >>> content = reply.answer(reply.counted(here.sketches["north"]), None).content
    >>> Submission.from_bytes(content, "north.hush", here.round, datetime.now(UTC)).site
    'north'
    """

    site: str
    words: NDArray[np.uint64]
    ledger: Ledger
    digest: str
    name: str = ""
    content: bytes | Path = b""

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
            The round that it answers.
        keys : Keys
            The site's.
        counts : ndarray of shape (n_cells,), int64
            Rows in each cell plus the site's noise, which are sent only under masks if noise is
            shared.
        share : Share
            The site's line of the ledger.
        made : datetime
            When.
        masks : ndarray of shape (n_cells,), uint64
            The masks of the counts, in a masked round.
        """
        round_.ledger(share)  # this refuses noise for other terms
        if round_.terms.masked != (masks is not None):
            raise PrivacyError("give masks in a masked round, and only there")
        words = counts.view(np.uint64)
        if masks is not None:
            words = words + masks
        entries = {
            "round_id": round_.round_id,
            "plan_id": round_.plan.plan_id,
            "site": keys.card.name,
            "made": stamp(made),
            "share": share.to_dict(),
        }
        return files.pack("submission", entries, {"words": words}, keys.sign)

    @classmethod
    def from_bytes(
        cls,
        content: bytes,
        path: "str | PathLike[str]",
        round_: Round,
        at: datetime,
        site: str | None = None,
    ) -> "Submission":
        """Check and build what a site sent.

        Parameters
        ----------
        content : bytes
            The file.
        path : path
            Its name in errors.
        round_ : Round
            The round that it has to answer.
        at : datetime
            The current time.
        site : str, optional
            Name of the site that it has to be from.

        Raises
        ------
        FileError
            If it is not an intact file of a submission.
        RoundError
            If it belongs to another round, or is not from the site that it names.
        """
        if not content:
            raise FileError(f"{path}: the file is empty: request it again")
        read = files.unpack(content, path).expect("submission")
        made = read.build(lambda read: cls._from_file(read, round_, at))
        if site not in (None, made.site):
            raise RoundError(f"{site!r} answers for {made.site!r}")
        return made

    @classmethod
    def _from_file(cls, read: files.Content, round_: Round, at: datetime) -> "Submission":
        entries = read.manifest
        site, words = entries.get("site"), read.arrays.get("words")
        # Check the signature first, so that errors name a site only if it signed.
        if not isinstance(site, str) or site not in round_.names:
            raise RoundError(
                f"{read.path}: site {site!r} does not take part in this round: its sites are "
                f"{round_.names}"
            )
        if not round_.card(site).signed(read):
            raise RoundError(
                f"{read.path}: the signature is not that of {site!r}: it was forged, edited, or "
                "made with keys that are not in the roster"
            )
        if entries.get("round_id") != round_.round_id:
            other = str(entries.get("round_id"))[:12]
            plan = str(entries.get("plan_id"))
            stale = "" if plan == round_.plan.plan_id else f", about another plan ({plan[:12]})"
            raise RoundError(
                f"{read.path}: {site!r} answers round {other}, not {round_.round_id[:12]}{stale}: "
                "request its submission to this round"
            )
        _check_made(entries.get("made"), round_, at, f"{read.path}: {site!r}")
        cells = (round_.plan.family.n_cells,)
        if words is None or words.dtype != np.uint64 or words.shape != cells:
            raise PlanError(f"the counts of {site!r} are not uint64 {cells}, as the plan needs")
        ledger = round_.ledger(Share.from_dict(entries.get("share")))
        return cls(site, words, ledger, read.digest, str(read.path))

    def accepted(self, content: bytes | Path) -> "Submission":
        """Return it without its counts, after they are in the sum."""
        return replace(self, words=np.empty(0, np.uint64), content=content)


def signed_digest(content: bytes, round_: Round, card: Card) -> str:
    """Return the digest of a card owner's submission to a round; empty for other files.

    Neither its time nor its counts are checked.
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
        raise RoundError(f"{who} does not state when the submission was made") from None
    try:
        round_.check_time(when, "the site's clock")
    except RoundError as error:
        raise RoundError(f"{who}: {error}") from None
    if when > at + CLOCKS:
        raise RoundError(
            f"{who}: made on {shown_time(when)}, which is in the future ({shown_time(at)} here): "
            "one of the two clocks is wrong, so correct it"
        )


@dataclass(frozen=True, eq=False)
class Contribution:
    """Counts of a site's rows for one round: as secret as the rows, except for `content`.

    Its states are *noised* when created; *sealed* after `content` is signed, and masked if the
    round requires it; *recorded* after the site's book has it, and only then sent. The coordinator
    reads and accepts it as a `Submission`.
    """

    round_id: str
    title: str
    data_set: str
    made: datetime
    #: Counts of shape (n_cells,): exact, and with the site's noise.
    counts: NDArray[np.int64]
    sent: NDArray[np.int64]
    #: The site's line of the ledger, and the cost to a person in the rows.
    share: Share
    spent: Spent
    #: The content of the round's file.
    round: bytes = b""
    #: The sent file, bit for bit; empty until sealed.
    content: bytes = b""
    #: For a round about a period: the stream's id, and the period. The sent file then includes
    #: earlier periods, whereas the counts are those of this period.
    stream: str = ""
    period: int | None = None
    #: The persons counted, as sorted digests; None without persons, or if read back.
    register: NDArray[np.uint64] | None = None

    def sealed(self, round_: Round, keys: Keys, masks: NDArray[np.uint64] | None) -> "Contribution":
        """Return it with the file to send, masked in a masked round; unchanged if it has a file.

        ``masks`` are of shape (n_cells,).
        """
        if self.content:
            return self
        content = Submission.pack(round_, keys, self.sent, self.share, self.made, masks)
        return replace(self, content=content)

    # --- in the book --------------------------------------------------------------------------

    def noted(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Return the content of its entry, and the attachments."""
        content: dict[str, Any] = {
            "round_id": self.round_id,
            "title": self.title,
            "data_set": self.data_set,
            "made": stamp(self.made),
            "share": self.share.to_dict(),
            "spent": self.spent.to_dict(),
            **({} if self.period is None else {"stream": self.stream, "period": self.period}),
        }
        blobs = {
            "counts": self.counts.astype("<i8").tobytes(),
            "sent": self.sent.astype("<i8").tobytes(),
            "round": self.round,
            "content": self.content,
        }
        if self.register is not None:
            content[REGISTER] = len(self.register)
            blobs[REGISTER] = to_bytes(self.register)
        return content, blobs

    @classmethod
    def of(cls, content: Mapping[str, Any], blobs: Mapping[str, bytes]) -> "Contribution":
        """Read back what `noted` returned; raise `KeyError`, `TypeError` or `ValueError`."""
        return cls(
            content["round_id"],
            content["title"],
            content["data_set"],
            datetime.fromisoformat(content["made"]),
            np.frombuffer(blobs["counts"], "<i8").astype(np.int64, copy=False),
            np.frombuffer(blobs["sent"], "<i8").astype(np.int64, copy=False),
            Share.from_dict(content["share"]),
            Spent.from_dict(content["spent"]),
            blobs["round"],
            blobs["content"],
            content.get("stream", ""),
            content.get("period"),
        )


def charged(round_: Round, release: str, mine: Sequence[Spent]) -> tuple[Share, Spent]:
    """Return a site's line of the ledger of a round, and the cost to a person in its rows.

    The cost of the results that the plan was drawn from is counted with the plan, as far as its
    entries prove that they contain the answers in the book. Other statements by a coordinator prove
    nothing. Under a plan with a horizon, both are for all its periods.

    Parameters
    ----------
    round_ : Round
        The round to answer.
    release : str
        Random id of the answer.
    mine : sequence of Spent
        The costs of earlier rounds about these rows, from the site's book.
    """
    earlier, apart = split_history(round_.plan.behind, mine)
    start = 1 if round_.period is None else round_.period
    share = Share(release, round_.site_scale, mechanisms.library(), earlier, apart, start=start)
    return share, cost(round_, release)


def cost(round_: Round, release: str) -> Spent:
    """Return what an answer to a round costs a person in a site's rows."""
    share = Share(release, round_.site_scale, "")
    terms, pool, unit = round_.terms, round_.pool, round_.sensitivity
    return Spent(
        release=release,
        what=round_.plan.detector,
        cost=round_.ledger(share).cost_of(share),
        adjacency=terms.adjacency,
        rows_per_person=terms.rows_per_person,
        pool=None if pool is None else pool.round,
        parts=(release,),
        tables=unit.tables,
        horizon=unit.horizon,
    )
