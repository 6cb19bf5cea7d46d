"""Differential privacy: terms, mechanisms, accounting, ledgers. Knows no rows and no plan.

May import `files` and what lies below. Names load on first use. Tested in ``tests/privacy``,
``tests/hardening/attacks`` and ``tests/toys``.
"""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable.privacy.composition import Spent
    from hushtable.privacy.horizon import Horizon
    from hushtable.privacy.layout import Design
    from hushtable.privacy.ledger import Ledger
    from hushtable.privacy.mechanisms import Cost, Sensitivity
    from hushtable.privacy.shares import Pool, Share
    from hushtable.privacy.suspicion import suspicion
    from hushtable.privacy.terms import Terms

__all__ = [
    "Cost", "Design", "Horizon", "Ledger", "Pool", "Sensitivity", "Share", "Spent", "Terms",
    "suspicion",
]  # fmt: skip

_HOMES = {
    "Cost": "mechanisms", "Design": "layout", "Horizon": "horizon", "Ledger": "ledger",
    "Pool": "shares", "Sensitivity": "mechanisms", "Share": "shares", "Spent": "composition",
    "Terms": "terms", "suspicion": "suspicion",
}  # fmt: skip
__getattr__, __dir__ = exports(__name__, _HOMES)
