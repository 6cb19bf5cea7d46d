"""Mechanisms: one file for each form of noise, and the registry of them all.

A mechanism is added by one file here (or anywhere) that calls `register`; nothing else in the
package knows one by name. May import `zcdp`; tested in ``tests/privacy/test_mechanism.py`` and
``tests/toys``.
"""

from hushtable.privacy.mechanisms._discrete_gaussian import DiscreteGaussian
from hushtable.privacy.mechanisms._discrete_laplace import DiscreteLaplace, LaplacePerTable
from hushtable.privacy.mechanisms._mechanism import (
    MAX_SCALE,
    MECHANISMS,
    Adjacency,
    Cost,
    Mechanism,
    Sensitivity,
    named,
    register,
)

__all__ = [
    "DEFAULT", "MAX_SCALE", "MECHANISMS", "Adjacency", "Cost", "Mechanism", "Sensitivity",
    "named", "register",
]  # fmt: skip

for _one in (DiscreteGaussian(), DiscreteLaplace(), LaplacePerTable()):
    register(_one)

#: The mechanism of whoever names none, and of every round.
DEFAULT = DiscreteGaussian.name
