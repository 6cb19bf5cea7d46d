"""Masks that cancel only in the sum, one file a step.

`agree` on keys, `mask` the counts, share a seed (`shamir`), `seal` each share for its reader, and
`unmask` the sum. Knows keys and rounds, but no transport and no book; no primitive is our own.
Tested by ``tests/test_masking.py``.
"""
