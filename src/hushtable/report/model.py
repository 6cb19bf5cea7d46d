"""The file of counts that a report is about."""

from dataclasses import dataclass

from hushtable.counts.local import LocalModel
from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch
from hushtable.federation.collect import Sealed
from hushtable.plans.plan import Plan

__all__ = ["Model"]


@dataclass(frozen=True)
class Model:
    """A file that a report is about.

    Attributes
    ----------
    name : str
        Of the file, or of the counts.
    kind : {"sketch", "release", "local", "detector", "sealed"}
        What it holds.
    counts : Sketch, Release, LocalModel or Sealed
        The counts in it.
    size : str, default=""
        Of the file, for people; empty if there is none.
    """

    name: str
    kind: str
    counts: Sketch | Release | LocalModel | Sealed
    size: str = ""

    @property
    def plan(self) -> Plan | None:
        """What was counted under; None where the hash functions are hidden."""
        return None if isinstance(self.counts, Sealed) else self.counts.plan

    @property
    def n_tables(self) -> int:
        """Histograms of which each holds every row once."""
        if isinstance(self.counts, Sealed):
            return len(self.counts.layout.cells)
        return self.counts.plan.family.n_histograms

    @property
    def n_rows(self) -> int:
        """Rows counted; an estimate where there is noise."""
        return round(float(self.counts.counts.sum()) / self.n_tables)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise on a cell, in counts."""
        counts = self.counts
        return counts.ledger.noise_sd if isinstance(counts, Sealed) else counts.noise_sd
