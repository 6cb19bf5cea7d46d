"""The sites of a round, for a report, and whether its result is the sum of what they sent."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Counts, Noised
from hushtable.errors import HushTableError, UsageError
from hushtable.report.content import Check, Sites, same_sum
from hushtable.report.content import ReportedSite as Site
from hushtable_federation.cli._common import read_round
from hushtable_federation.collect import Collection
from hushtable_federation.describe import officer_words, round_lines


def of_files(round_: Path, parts: Sequence[Path], counts: Counts, name: str) -> Sites:
    """Return the sites of a round by its file and those of its submissions, for ``report``."""
    if not isinstance(counts, Noised):
        raise UsageError(f"{name} holds exact counts, and no round has such a result")
    collection = Collection(read_round(round_))
    for path in parts:
        # Names without folders: the report may go to people whom the folders are no concern of.
        collection.add(path.name, path)
    return sites_of_round(collection, counts, name)


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
    return same_sum(bool(np.array_equal(again.counts, counts)), name, "submissions that are in")


def _plausible(reason: str | None) -> Check:
    if reason is None:
        return Check(True, "All tables hold the same number of rows, up to the noise.")
    return Check(False, f"The counts cannot be: {reason}.")
