"""Sentences for people: ledgers, plans, and counts.

Text that a command prints or a report shows is worded here once; usual values
are described in `hushtable.scores.typical`. May import `streams` and the packages below it;
tested in ``tests/privacy/`` and ``tests/report/``.
"""

from hushtable.describe.ledger import describe_ledger

__all__ = ["describe_ledger"]
