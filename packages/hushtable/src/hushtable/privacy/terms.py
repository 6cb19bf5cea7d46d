"""Privacy terms: what calls, rounds and the command line take, in one class."""

from dataclasses import dataclass, field, fields
from typing import Any

from hushtable.errors import UsageError
from hushtable.privacy.budget import calibrated_scale, check_delta, check_epsilon, check_share
from hushtable.privacy.horizon import Horizon
from hushtable.privacy.mechanisms import DEFAULT, Adjacency, Cost, Sensitivity, named
from hushtable.privacy.rounding import rounded_up


@dataclass(frozen=True)
class Terms:
    """Terms of a release: the budget of one person, who is a neighbour, and the noise.

    Attributes
    ----------
    epsilon : float
        Total for one person, whose presence changes the probability of anything that the
        releases show by at most a factor e^epsilon, plus delta.
    delta : float
        The probability that is added to that bound; 0 under a mechanism of pure epsilon,
        whatever was given.
    adjacency, rows_per_person
        Neighbouring data, as in `Sensitivity`.
    share : float or None
        Share of the budget that the release takes; None is what suits the plan.
    mechanism : str
        Name of the noise, in `hushtable.privacy.mechanisms`.

    Examples
    --------
    >>> from hushtable.privacy import Terms
    >>> Terms(1.0, rows_per_person=4).words()
    'epsilon 1, delta 1e-06, add-remove, 4 rows a person at most'
    """

    epsilon: float
    delta: float = 1e-6
    adjacency: Adjacency = "add-remove"
    rows_per_person: int = 1
    share: float | None = None
    mechanism: str = field(default=DEFAULT, kw_only=True)

    def __post_init__(self) -> None:
        pure = named(self.mechanism).pure
        checked = {
            "epsilon": check_epsilon(self.epsilon),
            "delta": 0.0 if pure else check_delta(self.delta),
            "rows_per_person": self.sensitivity(1).rows_per_person,
        }
        check_share(self.share)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def given(cls, epsilon: "float | Terms", **others: Any) -> "Terms":
        """Return the terms that a call was given, as one object or one by one."""
        if not isinstance(epsilon, Terms):
            return cls(epsilon, **others)
        defaults = {one.name: one.default for one in fields(Terms)}
        if twice := [name for name, value in others.items() if value != defaults[name]]:
            raise UsageError(f"the terms hold {', '.join(twice)} already: give it there alone")
        return epsilon

    def sensitivity(
        self, tables: int, sampled: bool = False, horizon: Horizon | None = None
    ) -> Sensitivity:
        """Return by how much one person changes the counts of so many tables, in all periods."""
        return Sensitivity(tables, self.adjacency, self.rows_per_person, sampled, horizon)

    def scale(self, sensitivity: Sensitivity, before: Cost) -> float:
        """Return the scale of the noise, given what earlier releases cost."""
        return calibrated_scale(
            self.mechanism,
            sensitivity,
            epsilon=self.epsilon,
            delta=self.delta,
            before=before,
            share=self.share,
        )

    def words(self) -> str:
        """Say the terms in a few words."""
        return (
            f"epsilon {rounded_up(self.epsilon, 6):g}, delta {rounded_up(self.delta, 6):g}, "
            f"{self.adjacency}, "
            f"{self.rows_per_person:,} rows a person at most"
        )
