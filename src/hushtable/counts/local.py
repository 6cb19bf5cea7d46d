"""The local model: a site's exact counts with the others' noised ones. Never leaves the site."""

import math
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.counts.release import Release
from hushtable.errors import PlanError, PrivacyError
from hushtable.plans.plan import Plan
from hushtable.privacy.ledger import Ledger
from hushtable.privacy.noise import noise_sd

__all__ = ["LocalModel"]


@dataclass(frozen=True, eq=False)
class LocalModel:
    """What a site scores by if it puts its exact counts in the place of its own noised ones.

    Algorithm 2 of the paper: a site knows the noise that it drew, and takes it off the sum, in a
    round with masks too. What is left is the noise of the others. The counts then tell the
    site's own rows exactly: a local model is kept like the rows themselves, does not add, and
    cannot be released.

    Attributes
    ----------
    plan : Plan
        What was counted under.
    counts : ndarray of shape (n_cells,), int64
        Rows in each cell plus the others' noise.
    ledger : Ledger
        Of the sum that it was made from: what that cost.
    own : str
        Id of the site's own share in that ledger, whose noise is not in the counts.
    """

    plan: Plan
    counts: NDArray[np.int64]
    ledger: Ledger
    own: str

    def __post_init__(self) -> None:
        cells = (self.plan.family.n_cells,)
        if self.counts.dtype != np.int64 or self.counts.shape != cells:
            raise PlanError(f"local model: its plan needs counts of int64 {cells}")
        if self.own not in [share.release for share in self.ledger.shares]:
            raise PlanError("local model: the site has no share in this result")
        if len(self.ledger.shares) < 2:
            raise PlanError("local model: no other site is in this result; score by the sketch")

    @classmethod
    def of(
        cls, result: Release, own: str, sent: NDArray[np.int64], exact: NDArray[np.int64]
    ) -> "LocalModel":
        """Put exact counts in the place of those that the site sent.

        Parameters
        ----------
        result : Release
            The sum, in which the site's share is.
        own : str
            Id of that share.
        sent, exact : ndarray of shape (n_cells,), int64
            The site's counts with and without its noise.
        """
        return cls(result.plan, result.counts - sent + exact, result.ledger, own)

    @cached_property
    def noise_sd(self) -> float:
        """Standard deviation of the others' noise on a cell, in counts."""
        others = (share for share in self.ledger.shares if share.release != self.own)
        return math.hypot(*(noise_sd(self.ledger.mechanism, share.scale) for share in others))

    @property
    def n_rows(self) -> int:
        """Rows counted, as estimated from all tables."""
        return round(float(self.counts.sum()) / self.plan.family.n_histograms)

    def __add__(self, other: object) -> "LocalModel":
        raise PrivacyError("a local model holds exact counts of its site and adds to nothing")

    def release(self, *_: Any, **__: Any) -> Release:
        """Refuse: what may leave left in the round."""
        raise PrivacyError(
            "a local model holds exact counts of its site, and never leaves it: what may leave was "
            "sent in the round; send others its result"
        )

    # --- files --------------------------------------------------------------------------------

    def entries(self) -> tuple[dict[str, Any], files.Arrays]:
        """Return what a file carries of a local model: manifest entries and arrays."""
        entries, arrays = self.plan.entries()
        mine = {"ledger": self.ledger.to_dict(), "own": self.own}
        return entries | mine, arrays | {"counts": self.counts}

    @classmethod
    def from_file(cls, content: files.Content) -> "LocalModel":
        """Build the local model that a file carries; raises `PlanError` if it holds none."""
        own, counts = content.manifest.get("own"), content.arrays.get("counts")
        if not isinstance(own, str) or counts is None:
            raise PlanError(f"a file of kind {content.kind} holds no local model")
        ledger = Ledger.from_dict(content.manifest.get("ledger"))
        return cls(Plan.from_file(content), counts, ledger, own)

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the local model to a .hush file, atomically. This file must not leave the site.

        Parameters
        ----------
        path : path
            Where; an existing file is replaced only by a complete new one.
        """
        files.write(path, "local", *self.entries())
