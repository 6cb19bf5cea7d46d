"""The other systems that the paper compares, and audits of releases.

`RSHash`, `RotatedRSHash` and `ACE` are estimators like those of the core: their counts add, and
their plans, sketches, releases and models are .hush files. `audit_canaries` attacks releases, to
prove how large their epsilon is at least. Needs the core alone; names load on first use.
"""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable_bench.systems.audit import audit_canaries
    from hushtable_bench.systems.detectors import ACE, RotatedRSHash, RSHash

__all__ = ["ACE", "RSHash", "RotatedRSHash", "audit_canaries"]

_HOMES = dict.fromkeys(("ACE", "RSHash", "RotatedRSHash"), "detectors")
__getattr__, __dir__ = exports(__name__, {**_HOMES, "audit_canaries": "audit"})
