"""The file of counts that a report is about."""

from dataclasses import dataclass

from hushtable.counts.base import Counts
from hushtable.plans.plan import Plan


@dataclass(frozen=True)
class Model:
    """A file that a report is about.

    Attributes
    ----------
    name : str
        Of the file, or of the counts.
    kind : {"sketch", "release", "local", "detector", "sealed"}
        Of the file.
    counts : Counts
        The counts in it.
    size : str, default=""
        Of the file, for people; empty if there is none.
    """

    name: str
    kind: str
    counts: Counts
    size: str = ""

    @property
    def plan(self) -> Plan | None:
        """What was counted under; None where the hash functions are hidden."""
        return None if self.counts.hidden else self.counts.plan
