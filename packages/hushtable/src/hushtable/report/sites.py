"""The sites behind a sum, for a report: who is in, who is not, and whether it adds up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from hushtable.counts.base import Counts
from hushtable.errors import RoundError, UsageError


@dataclass(frozen=True)
class Site:
    """One of the sites, and whether what it sent is there."""

    name: str  # of the site, or of its file
    standing: str  # whether what it sent is in the sum
    rows: int | None  # that it counted; None where that cannot be seen
    fingerprint: str = ""  # of its keys, in a round


@dataclass(frozen=True)
class Check:
    """Something that was looked at, and whether it holds."""

    holds: bool
    words: str


@dataclass(frozen=True)
class Sites:
    """The sites behind a sum."""

    sites: Sequence[Site]  # all that were asked
    exact: bool  # whether their rows are exact counts; otherwise estimates from noised ones
    checks: Sequence[Check]  # of the sum
    terms: Mapping[str, str]  # of the round, if there was one
    asked: Sequence[str] = ()  # of each site by the round, in sentences that an officer signs
    refused: Sequence[tuple[str, str]] = ()  # files that do not count, and why
    repeated: Sequence[tuple[str, str]] = ()  # files that came again, and of which site

    @property
    def n_in(self) -> int:
        """Number of sites in the sum."""
        return sum(site.standing == "in" for site in self.sites)

    @property
    def missing(self) -> list[str]:
        """Names of the sites that are not in the sum."""
        return [site.name for site in self.sites if site.standing != "in"]

    @property
    def hidden(self) -> bool:
        """Whether the rows of some sites cannot be seen."""
        return any(site.standing == "in" and site.rows is None for site in self.sites)

    @property
    def headers(self) -> list[str]:
        """Of `table_rows`: numbers in the last column, unless they are hidden."""
        rows = "rows" if self.exact else "rows, estimated"
        fingerprint = ["fingerprint"] if self.terms else []
        return ["site", "part", *fingerprint, *([] if self.hidden else [rows])]

    @property
    def text_columns(self) -> int:
        """Number of columns that hold text; numbers follow."""
        return len(self.headers) - (not self.hidden)

    @property
    def table_rows(self) -> list[list[str]]:
        """A table row for each site."""
        table = []
        for site in self.sites:
            row = [site.name, site.standing]
            if self.terms:
                row.append(site.fingerprint)
            if not self.hidden:
                row.append("" if site.rows is None else f"{site.rows:,}")
            table.append(row)
        return table


def same_sum(equal: bool, name: str, what: str) -> Check:
    """Return the check whether what was sent adds up to a file."""
    if equal:
        return Check(True, f"The sum of the {what} is {name}, to the bit.")
    return Check(False, f"The sum of the {what} is not {name}: it was made of others.")


def sites_of_parts(parts: Mapping[str, Counts], total: Counts, name: str) -> Sites:
    """Return the sites whose sketches or releases, by name, were merged, and check their sum.

    ``name`` is that of the sum.
    """
    if not parts:
        raise RoundError("no parts were given: name what the sites sent")
    if any(part.kind != total.kind for part in parts.values()):
        raise UsageError(
            f"{name} and its parts are not of one kind: sketches add to a sketch, releases to a "
            "release"
        )
    again = reduce(add, parts.values())
    rows = [Site(part, "in", counted.n_rows) for part, counted in parts.items()]
    equal = again.plan_id == total.plan_id and np.array_equal(again.counts, total.counts)
    checks = [same_sum(bool(equal), name, "parts")]
    return Sites(rows, total.ledger is None, checks, {})
