"""Entries of a ledger: each site's noise and history, and the noise that sites share."""

from dataclasses import dataclass
from typing import Any

from hushtable.entries import entries
from hushtable.errors import PlanError, UsageError
from hushtable.privacy.composition import Spent
from hushtable.privacy.mechanisms import MAX_SCALE

#: Scales of noise, in counts, between which costs are finite numbers. Real ones lie well within.
_SCALES = (1e-6, MAX_SCALE)


@dataclass(frozen=True, slots=True)
class Share:
    """One site's entry in a ledger: its noise, and what the site had released before.

    Attributes
    ----------
    release : str
        Random id, drawn when the noise was.
    scale : float
        Scale of the noise that the site added to each cell, in counts.
    library : str
        Name and version of the sampler's library.
    earlier : tuple of Spent
        Earlier releases of the site on the same rows, besides those behind the plan.
    apart : tuple of str
        Ids of the releases behind the plan that hold none of these rows.
    pool : Pool or None
        Where rounds about different people are merged: the round whose sites share this noise.
        None where the noise is the site's own, or the ledger names one pool for all.
    start : int
        Under a horizon: the first period that the site sends.

    Examples
    --------
    >>> from hushtable.privacy import Share
    >>> Share("5f3c", scale=45.3, library="opendp 0.14.2").to_dict()["scale"]
    45.3
    """

    release: str
    scale: float
    library: str
    earlier: tuple[Spent, ...] = ()
    apart: tuple[str, ...] = ()
    pool: "Pool | None" = None
    start: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return the share as JSON carries it."""
        return {
            "release": self.release,
            "scale": self.scale,
            "library": self.library,
            "earlier": [spent.to_dict() for spent in self.earlier],
            **({"apart": list(self.apart)} if self.apart else {}),
            **({} if self.pool is None else {"pool": self.pool.to_dict()}),
            **({} if self.start == 1 else {"start": self.start}),
        }

    @classmethod
    def from_dict(cls, content: Any) -> "Share":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        kinds = {"release": str, "scale": object, "library": str, "earlier": list[object]}
        optional = {"apart": list[str], "pool": object, "start": int}
        entries(content, "ledger: each share", kinds, optional)
        scale, apart = content["scale"], content.get("apart", ())
        if type(scale) not in (int, float) or not _SCALES[0] <= scale <= _SCALES[1]:
            raise PlanError(f"ledger: scale {scale!r} is no scale of noise")
        start = content.get("start", 1)
        if start < 1:
            raise PlanError(f"ledger: a share begins with period {start}: needs 1 or more")
        earlier = tuple(Spent.from_dict(entry) for entry in content["earlier"])
        pool = Pool.from_dict(content["pool"]) if "pool" in content else None
        about = content["release"], float(scale), content["library"], earlier, tuple(apart)
        return cls(*about, pool, start)


@dataclass(frozen=True, slots=True)
class Pool:
    """A round whose sites share the noise: each adds a part, and only the sum is ever seen.

    A site knows its own part, and may pass it on. The bound therefore counts on fewer parts
    than are in the sum: with k sites of which c may collude with the reader, on ``k - 1 - c``.

    Attributes
    ----------
    round : str
        Id of the round.
    least : int
        Parts that the sum has at least.
    counted : int
        Parts that the bound counts on, k_min.
    opened : int
        Parts that pay for what is opened of single sites: the totals of their tables.

    Examples
    --------
    >>> from hushtable.privacy import Pool
    >>> Pool.against(colluders=1, least=5, round="8e01").counted
    3
    """

    round: str
    least: int
    counted: int
    opened: int = 0

    def __post_init__(self) -> None:
        if self.opened < 0 or not 1 <= self.counted < self.least - self.opened:
            raise UsageError(
                f"k_min={self.counted} with {self.least} sites: the bound has to count on the "
                "noise of 1 site or more, and cannot count on that of the site that reads the sum: "
                f"needs 1 to {self.least - 1 - max(self.opened, 0)}"
            )

    @classmethod
    def against(cls, colluders: int, least: int, round: str = "") -> "Pool":
        """Return the pool whose bound holds if so many sites besides the reader collude."""
        return cls(round, least, least - 1 - colluders)

    @property
    def colluders(self) -> int:
        """Sites besides the reader that may pass their noise on without breaking the bound, c."""
        return self.least - 1 - self.counted - self.opened

    def to_dict(self) -> dict[str, Any]:
        """Return the pool as JSON carries it."""
        said = {"round": self.round, "least": self.least, "counted": self.counted}
        return said | {"opened": self.opened} if self.opened else said

    @classmethod
    def from_dict(cls, content: Any) -> "Pool":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        kinds = {"round": str, "least": int, "counted": int}
        return cls(**entries(content, "ledger: a pool", kinds, {"opened": int}))
