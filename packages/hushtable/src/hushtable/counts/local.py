"""The local model: a site's exact counts with the others' noised ones. Never leaves the site."""

import math
from collections.abc import Container
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushtable import files
from hushtable.counts.base import Counts, Noised
from hushtable.counts.release import Release
from hushtable.errors import PlanError, PrivacyError
from hushtable.plans.plan import Plan
from hushtable.privacy.ledger import Ledger
from hushtable.privacy.mechanisms import named


@dataclass(frozen=True, eq=False)
class LocalModel(Counts):
    """A site's exact counts with the noised counts of the other sites, to score its own rows by.

    Algorithm 2 of the paper: a site knows the noise that it drew, and takes it off the sum, in a
    round with masks too. What is left is the noise of the others, and the site's own rows are
    counted exactly: a local model is kept like the rows themselves, does not add, and cannot be
    released.

    Attributes
    ----------
    plan : Plan
        What was counted under.
    counts : ndarray of shape (n_cells,), int64
        Rows in each cell plus the others' noise.
    ledger : Ledger
        Of the sum that it was made from: what that cost.
    own : str
        Id of the site's own entry in that ledger, whose noise is not in the counts.

    Examples
    --------
    >>> import numpy as np
    >>> from hushtable import Feature, LocalModel, Plan, Schema, Sketch
    >>> plan = Plan.draw(Schema([Feature.numeric("age", low=0, high=99)]), random_state=0)
    >>> sketches = [Sketch.from_data(plan, np.full((500, 1), age)) for age in (30.0, 40.0)]
    >>> mine, theirs = (sketch.release(epsilon=1.0) for sketch in sketches)
    >>> local = LocalModel.of(mine + theirs, mine.release_id, mine.counts, sketches[0].counts)
    >>> bool(np.isclose(local.noise_sd, theirs.noise_sd))
    True
    """

    kind: ClassVar[str] = "local"
    noun: ClassVar[str] = "a local model"

    plan: Plan
    counts: NDArray[np.int64]
    ledger: Ledger
    own: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.own not in [share.release for share in self.ledger.shares]:
            raise PlanError("local model: the site has no share in this result")
        if len(self.ledger.shares) < 2:
            raise PlanError("local model: no other site is in this result; score by the sketch")

    @classmethod
    def of(
        cls, result: Noised, own: str, sent: NDArray[np.int64], exact: NDArray[np.int64]
    ) -> "LocalModel":
        """Put exact counts in the place of those that the site sent.

        Parameters
        ----------
        result : Release
            The sum, whose ledger has an entry of the site.
        own : str
            Id of that entry of the ledger.
        sent, exact : ndarray of shape (n_cells,), int64
            The site's counts with and without its noise.
        """
        return cls(result.plan, result.counts - sent + exact, result.ledger, own)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the others' noise on a cell, in counts."""
        return noise_of_others(self.ledger, {self.own})

    def __add__(self, other: object) -> "LocalModel":
        raise PrivacyError("a local model holds exact counts of its site and adds to nothing")

    def release(self, *_: Any, **__: Any) -> Release:
        """Refuse: what may leave left in the round."""
        raise PrivacyError(
            "a local model holds exact counts of its site, and never leaves it: what may leave was "
            "sent in the round; send others its result"
        )

    def entries(self) -> tuple[dict[str, Any], files.Arrays]:
        """Return what a file carries of a local model: manifest entries and arrays."""
        entries, arrays = super().entries()
        return entries | {"own": self.own}, arrays

    @classmethod
    def from_file(cls, content: files.Content) -> "LocalModel":
        """Build the local model that a file carries; raises `PlanError` if it holds none."""
        said = content.said("local model", {"own": str, "ledger": object})
        ledger = Ledger.from_dict(said["ledger"])
        return cls(Plan.from_file(content), content.array("counts"), ledger, said["own"])


def noise_of_others(ledger: Ledger, own: Container[str]) -> float:
    """Return the standard deviation, on a cell, of the noise of all but the releases ``own``."""
    others = (share.scale for share in ledger.shares if share.release not in own)
    return math.hypot(*map(named(ledger.mechanism).noise_sd, others))
