"""Ledgers that add up: under one set of terms, each share with the noise of its own round."""

from dataclasses import replace
from typing import TYPE_CHECKING

from hushtable.errors import PrivacyError
from hushtable.privacy.shares import Pool, Share

if TYPE_CHECKING:  # a ledger adds itself
    from hushtable.privacy.ledger import Ledger


def check_terms(one: "Ledger", other: "Ledger") -> None:
    """Raise `PrivacyError` unless both are of the same terms."""
    ours, others = one.sensitivity, other.sensitivity
    for name, mine, theirs in (
        ("mechanisms", one.mechanism, other.mechanism),
        ("adjacencies", ours.adjacency, others.adjacency),
        ("privacy units (rows_per_person)", ours.rows_per_person, others.rows_per_person),
        ("samplings", ours.sampled, others.sampled),
        ("horizons", ours.horizon, others.horizon),
        ("periods", one.period, other.period),
        ("windows", one.window, other.window),
    ):
        if mine != theirs:
            raise PrivacyError(
                f"releases of different {name} do not merge ({mine} and {theirs}): release "
                "again under the terms that all sites agreed on"
            )


def together(one: "Ledger", other: "Ledger") -> tuple[tuple[Share, ...], Pool | None]:
    """Return the shares of both, and their pool where it is the same; else each names its own."""
    if one.pool == other.pool:
        return one.shares + other.shares, one.pool
    named = [replace(share, pool=x.pool_of(share)) for x in (one, other) for share in x.shares]
    return tuple(named), None


def check_pools(ledger: "Ledger") -> None:
    """Raise `PrivacyError` if it is not clear whose noise a share is a part of."""
    if ledger.pool is not None and any(share.pool is not None for share in ledger.shares):
        raise PrivacyError("a share names a noise beside the one that all of them share")
    if len({pool.round for pool in ledger.pools}) < len(ledger.pools):
        raise PrivacyError("two shares of one round differ in how its noise was shared")


def check_parts(ledger: "Ledger") -> None:
    """Raise `PrivacyError` if a shared noise has fewer parts than its bound counts on."""
    for pool in ledger.pools:
        parts = sum(ledger.pool_of(share) == pool for share in ledger.shares)
        if parts < pool.least:
            raise PrivacyError(
                f"{parts} of at least {pool.least} parts of a shared noise: too little noise for "
                "a release"
            )
