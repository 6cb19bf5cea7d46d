"""Audits of releases: attacks on them, and what they prove about epsilon.

May import `counts` and what lies below; tested in ``tests/privacy/test_audit.py``
and ``tests/hardening/attacks``.
"""
