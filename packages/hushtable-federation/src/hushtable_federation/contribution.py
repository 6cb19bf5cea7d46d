"""A site's contribution to a round, from its counts with noise to the file that was sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.plans.plan import Plan
from hushtable.privacy import mechanisms
from hushtable.privacy.budget import Spent, split_history
from hushtable.privacy.ledger import Share
from hushtable_federation.book.registers import REGISTER, to_bytes
from hushtable_federation.clock import stamp
from hushtable_federation.keys import Keys
from hushtable_federation.round import Round
from hushtable_federation.submission import Submission


@dataclass(frozen=True, eq=False)
class Contribution:
    """Counts of a site's rows for one round: as secret as the rows, but for `content`.

    Its states: *noised* as it is made; *sealed*, once `content` is signed, and masked where the
    round says so; *recorded*, once the site's book has it, and not before that sent. What the
    coordinator reads and accepts is a `Submission`.
    """

    round_id: str
    title: str
    data_set: str
    made: datetime
    #: Of shape (n_cells,), as they are sent: the exact counts; and with the site's noise.
    counts: NDArray[np.int64]
    sent: NDArray[np.int64]
    #: The site's line of the ledger, and the cost to a person in the rows.
    share: Share
    spent: Spent
    #: The file of the round; empty in a book that was begun without.
    round: bytes = b""
    #: The file that was sent, bit for bit; empty where it is not sealed, or was sent in a form
    #: that an older book did not keep.
    content: bytes = b""
    #: Of a round about a period: the stream's id, and which one it is. What was sent then holds
    #: the periods before, too, and counts are those of this one.
    stream: str = ""
    period: int | None = None
    #: Whom it counted, as sorted digests of persons; None without, and where it was read back.
    register: NDArray[np.uint64] | None = None

    def sealed(self, round_: Round, keys: Keys, masks: NDArray[np.uint64] | None) -> "Contribution":
        """Return it with the file to send, under masks in a masked round; the same, if it has one.

        ``masks`` are of shape (n_cells,).
        """
        if self.content:
            return self
        content = Submission.pack(round_, keys, self.sent, self.share, self.made, masks)
        return replace(self, content=content)

    def under(self, plan: Plan) -> "Contribution":
        """Return it with counts in the order of a plan's cells, whatever order the round wanted."""
        if not self.round:
            return self
        layout = Round.from_bytes(self.round, "the book's copy").layout
        if not layout.shuffled:
            return self
        counts, sent = (layout.restored(one, plan) for one in (self.counts, self.sent))
        return replace(self, counts=counts, sent=sent)

    # --- in the book --------------------------------------------------------------------------

    def noted(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Return the content of its entry, and what lies beside."""
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
        """Read back what `noted` returned; raises `KeyError`, `TypeError` or `ValueError`."""
        return cls(
            content["round_id"],
            content["title"],
            content["data_set"],
            datetime.fromisoformat(content["made"]),
            np.frombuffer(blobs["counts"], "<i8").astype(np.int64, copy=False),
            np.frombuffer(blobs["sent"], "<i8").astype(np.int64, copy=False),
            Share.from_dict(content["share"]),
            Spent.from_dict(content["spent"]),
            blobs.get("round", b""),
            blobs.get("content", b""),
            content.get("stream", ""),
            content.get("period"),
        )


def charged(round_: Round, release: str, mine: Sequence[Spent]) -> tuple[Share, Spent]:
    """Return a site's line of the ledger of a round, and the cost to a person in its rows.

    What the plan was drawn from is counted with the plan, as far as its entries prove that they
    contain what the book says. What a coordinator says beside it proves nothing. Under a plan with
    a horizon, both are for all of its periods.

    Parameters
    ----------
    round_ : Round
        What is answered.
    release : str
        Random id of the answer.
    mine : sequence of Spent
        What the site's book says that earlier rounds about these rows cost.
    """
    earlier, apart = split_history(round_.layout.behind, mine)
    start = 1 if round_.period is None else round_.period
    share = Share(release, round_.site_scale, mechanisms.library(), earlier, apart, start=start)
    return share, cost(round_, release)


def cost(round_: Round, release: str) -> Spent:
    """Return what an answer to a round costs a person in a site's rows."""
    share = Share(release, round_.site_scale, "")
    terms, pool, unit = round_.terms, round_.pool, round_.sensitivity
    own = round_.ledger(share).cost_of(share)
    about = release, round_.layout.detector, own, terms.adjacency, terms.rows_per_person
    noise_of = None if pool is None else pool.round
    return Spent(*about, noise_of, (release,), unit.tables, unit.horizon)
