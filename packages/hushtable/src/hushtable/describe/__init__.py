"""Sentences for people: ledgers, plans, counts, and views in a notebook.

Text that a command prints, a report shows or a notebook displays is worded here once; usual values
are described in `hushtable.scores.typical`. May import `streams` and the packages below it;
tested in ``tests/test_notebook.py``, ``tests/privacy/`` and ``tests/report/``.
"""

from hushtable.describe.ledger import describe_ledger

__all__ = ["describe_ledger"]
