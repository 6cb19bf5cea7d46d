"""The paper's other systems, and what measures the project's claims.

`RSHash`, `RotatedRSHash` and `ACE` come from `systems`. The command ``hushtable bench``
needs the extra ``cases``. Names load on first use.
"""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable_bench.systems import ACE, RotatedRSHash, RSHash

__all__ = ["ACE", "RSHash", "RotatedRSHash"]

__getattr__, __dir__ = exports(__name__, dict.fromkeys(__all__, "systems"))

#: The command that this package adds.
COMMANDS = """
bench           runner              Measure what the docs promise.
"""
