"""The paper's other systems, and what measures the project's claims.

`RSHash`, `RotatedRSHash` and `ACE` come from `systems`. The commands of ``hushtable bench`` and the
cases of `runner` need the extra ``cases``. Names load on first use.
"""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable_bench.systems import ACE, RotatedRSHash, RSHash

__all__ = ["ACE", "RSHash", "RotatedRSHash"]

__getattr__, __dir__ = exports(__name__, dict.fromkeys(__all__, "systems"))

#: The commands that this package adds.
COMMANDS = """
bench           -                  Measure what the docs promise.
bench adbench   commands:adbench   Compare our detectors with PyOD's and scikit-learn's.
bench paper     commands:paper     Run the paper's experiments, and print its figures beside ours.
bench privacy   commands:privacy   Measure what privacy costs, and what adversaries and audits find.
bench sites     commands:sites     Measure accuracy over 2 to 100 sites at a total epsilon of 1.
bench verdicts  commands:verdicts  Measure what an analyst's verdicts on a few rows are worth.
"""
