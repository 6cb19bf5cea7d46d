"""The paper's other systems, and what measures the project's claims.

`RSHash`, `RotatedRSHash` and `ACE` come from `systems`. The commands ``hushtable bench``
need the extra ``cases``. Names load on first use.
"""

from typing import TYPE_CHECKING

from hushtable.lazy import exports

if TYPE_CHECKING:
    from hushtable_bench.systems import ACE, RotatedRSHash, RSHash

__all__ = ["ACE", "RSHash", "RotatedRSHash"]

__getattr__, __dir__ = exports(__name__, dict.fromkeys(__all__, "systems"))

#: The commands that this package adds.
COMMANDS = """
bench           -                   Measure what the docs promise.
bench adbench   commands:adbench    Compare our detectors with PyOD's and scikit-learn's.
bench contexts  contexts            Measure what contexts and relations find.
bench explain   explanations:explain Measure whether explanations name what is unusual.
bench gaps      gaps                Measure what a missing value should count as.
bench joining   joining             Measure what a site gains by the counts of others.
bench paper     commands:paper      Run the paper's experiments, and print its figures beside ours.
bench privacy   commands:privacy    Measure what privacy costs, and what attackers and audits find.
bench rows      privacy:rows        Measure what noise costs by the number of rows.
bench speed     speed               Compare CPU seconds and memory with other tools.
bench verdicts  commands:verdicts   Measure what an analyst's verdicts on a few rows are worth.
bench oddbench  !                   call hushtable bench adbench --protocol published
bench sites     !                   hushtable bench privacy measures the noise that a sum has
bench advice    !                   it is no longer measured (docs/project/coming-from-rc1.md)
bench beyond    !                   it is no longer measured (docs/project/coming-from-rc1.md)
bench faults    !                   it is no longer measured (docs/project/coming-from-rc1.md)
bench ranks     !                   it is no longer measured (docs/project/coming-from-rc1.md)
bench reasons   !                   it is no longer measured (docs/project/coming-from-rc1.md)
"""
