"""The terms of a round: what a person pays, and how the sites share the noise."""

from dataclasses import dataclass
from typing import Any

from hushtable.errors import PlanError, PrivacyError, UsageError
from hushtable.privacy.budget import Adjacency, Sensitivity, check_delta, check_epsilon, check_share
from hushtable.privacy.ledger import Pool

__all__ = ["Terms"]


@dataclass(frozen=True, slots=True)
class Terms:
    """What all sites agree on.

    Attributes
    ----------
    epsilon, delta : float
        Total for one person over this round and what its plan was drawn from.
    adjacency, rows_per_person
        As in `Sketch.release`.
    share : float or None
        Share of the budget that this round takes; None is all that is left.
    masked : bool
        Whether the sites share the noise under masks; otherwise each adds the whole noise.
    least : int
        Sites without which there is no result.
    k_min : int
        In a masked round: parts of the noise that the bound counts on.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    rows_per_person: int
    share: float | None
    masked: bool
    least: int
    k_min: int

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        check_share(self.share)
        if not isinstance(self.masked, bool):
            raise UsageError(f"masked={self.masked!r}: needs True or False")
        Sensitivity(1, self.adjacency, self.rows_per_person)
        if self.masked:
            Pool("", self.least, self.k_min)
        elif self.k_min != 1 or self.least < 1:
            raise UsageError(
                "in a round without masks each site adds the whole noise: needs k_min=1, and at "
                "least 1 site"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the terms as JSON carries them."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_dict(cls, content: Any) -> "Terms":
        """Read back what `to_dict` wrote; raises `PlanError` on anything else."""
        if (
            not isinstance(content, dict)
            or set(content) != set(cls.__slots__)
            or not all(type(content[key]) is int for key in ("least", "k_min"))
        ):
            raise PlanError(f"terms need the entries {sorted(cls.__slots__)}, each of its kind")
        try:
            return cls(**content)
        except (UsageError, PrivacyError) as error:
            raise PlanError(f"terms: {error}") from None
