"""Sentences for people: ledgers, plans, counts, registry drafts, and views in a notebook.

What a command prints, a report shows and a notebook displays is worded here once; what is usual
of a value is worded in `hushtable.scores.typical`. May import `streams` and what lies below;
tested in ``tests/test_notebook.py``, ``tests/privacy/`` and ``tests/report/``.
"""

from hushtable.describe.ledger import describe_ledger

__all__ = ["describe_ledger"]
