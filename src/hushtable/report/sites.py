"""The sites behind a sum, for a report: who is in, who is not, and whether it adds up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Counts, Noised
from hushtable.errors import HushTableError, RoundError, UsageError
from hushtable.federation.collect import Collection
from hushtable.report.words import officer_words, round_lines


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


def sites_of_round(collection: Collection, result: Noised, name: str) -> Sites:
    """Return the sites of a round, and check that its result is the sum of what they sent.

    ``name`` is that of the result's file.
    """
    asked = collection.round
    layout, pools = asked.layout, result.ledger.pools
    if result.plan_id != layout.plan_id or any(pool != asked.pool for pool in pools):
        raise UsageError(
            f"{name} is not the result of round {asked.round_id[:12]}: give the round that was "
            "collected"
        )
    sites = []
    for card in asked.sites:
        submission = collection.accepted.get(card.name)
        rows = None if submission is None else submission.rows
        standing = collection.standing(card.name)
        sites.append(Site(card.name, standing, rows, card.fingerprint))
    n_in = len(collection.accepted)
    signed = f"{n_in} of {len(asked.sites)} sites are in, each with a signature that is its own."
    checks = [
        Check(n_in > 0, signed),
        _same_sum(collection, result.counts, name),
        _plausible(layout.implausible(result.counts, result.ledger.noise_sd)),
    ]
    terms, asks = round_lines(asked, n_in), officer_words(asked, asked.plan)
    return Sites(sites, False, checks, terms, asks, collection.refused, collection.repeated)


def _same_sum(collection: Collection, counts: NDArray[np.int64], name: str) -> Check:
    try:
        again = collection.result()
    except HushTableError as error:
        return Check(False, f"The sum could not be made again: {error}.")
    return _equal(bool(np.array_equal(again.counts, counts)), name, "submissions that are in")


def _equal(equal: bool, name: str, what: str) -> Check:
    if equal:
        return Check(True, f"The sum of the {what} is {name}, to the bit.")
    return Check(False, f"The sum of the {what} is not {name}: it was made of others.")


def _plausible(reason: str | None) -> Check:
    if reason is None:
        return Check(True, "All tables hold the same number of rows, up to the noise.")
    return Check(False, f"The counts cannot be: {reason}.")


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
    checks = [_equal(bool(equal), name, "parts")]
    return Sites(rows, total.ledger is None, checks, {})
