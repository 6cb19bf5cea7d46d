"""Audits of releases: attacks on them, and what these prove about epsilon.

May import `counts` and the packages below it; tested in ``tests/privacy/test_audit.py``
and ``tests/hardening/attacks``. The name loads on first use.
"""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable.audit.audit import audit_canaries

__all__ = ["audit_canaries"]

__getattr__, __dir__ = exports(__name__, {"audit_canaries": "audit"})
