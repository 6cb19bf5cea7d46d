"""Differential privacy: terms, mechanisms, accounting, ledgers. Does not know rows or plans.

May import `files` and the modules below it. Names load on first use. Tested in ``tests/privacy``,
``tests/hardening/attacks`` and ``tests/toys``.
"""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable.privacy.accounting import Horizon
    from hushtable.privacy.budget import ReleaseTerms, Spent, suspicion
    from hushtable.privacy.layout import Design
    from hushtable.privacy.ledger import Ledger, Pool, Share
    from hushtable.privacy.mechanisms import Cost, Sensitivity

__all__ = [
    "Cost",
    "Design",
    "Horizon",
    "Ledger",
    "Pool",
    "ReleaseTerms",
    "Sensitivity",
    "Share",
    "Spent",
    "suspicion",
]  # fmt: skip

_HOMES = {
    "Cost": "mechanisms", "Design": "layout", "Horizon": "accounting", "Ledger": "ledger",
    "Pool": "ledger", "Sensitivity": "mechanisms", "Share": "ledger", "Spent": "budget",
    "ReleaseTerms": "budget", "suspicion": "budget",
}  # fmt: skip
__getattr__, __dir__ = exports(__name__, _HOMES)
