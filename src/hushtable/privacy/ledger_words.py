"""A ledger in sentences that a privacy officer can sign."""

import math
from typing import TYPE_CHECKING

from hushtable.privacy.shares import Pool

if TYPE_CHECKING:  # a ledger says its words itself
    from hushtable.privacy.ledger import Ledger


def words(ledger: "Ledger") -> list[str]:
    """Return sentences that a privacy officer can sign."""
    exception = f", except with probability {ledger.delta:g}" if ledger.delta else ""
    rows, tables = ledger.sensitivity.rows_per_person, ledger.sensitivity.tables
    verb = "Adding or removing" if ledger.sensitivity.adjacency == "add-remove" else "Changing"
    who = "one record" if rows == 1 else f"all records of one person (up to {rows})"
    lines = [
        f"{verb} {who} changes the probability of anything that this file shows by at "
        f"most a factor e^{rounded_up(ledger.epsilon)}{exception}."
    ]
    what = f"all {tables:,} tables" if tables > 1 else "its one table"
    counted = f"That is the total over {what}"
    # A round whose noise was shared is one release, whichever site names it.
    earlier = {s.pool or s.release: s for share in ledger.shares for s in share.earlier}
    before = [*ledger.behind_plan, *earlier.values()]
    if before:
        counted += " and the earlier releases on the same rows ("
        counted += ", ".join(f"{spent.what} {spent.release[:12]}" for spent in before) + ")"
    lines.append(counted + ".")
    if len(ledger.shares) > 1:
        k = len(ledger.shares)
        several = f"for one at 2 sites the factor is e^{rounded_up(ledger.epsilon_at(2))}"
        if k > 2:
            several += f", for one at all {k} e^{rounded_up(ledger.epsilon_at(k))}"
        merged = (
            f"{k} releases are merged." if ledger.pool is None else _pooled(ledger, ledger.pool)
        )
        lines.append(f"{merged} It holds for a person at one site; {several}.")
    return lines


def _pooled(ledger: "Ledger", pool: Pool) -> str:
    words = (
        f"{len(ledger.shares)} sites share the noise, and only their sum was to be seen. The "
        "bound holds against everybody, each of these sites included"
    )
    if pool.colluders:
        others = "another" if pool.colluders == 1 else f"{pool.colluders} others"
        words += f", also one that learns the noise of {others}"
    return words + "."


def rounded_up(epsilon: float, digits: int = 3) -> str:
    """Round up: what is signed must not be less than what is true."""
    if epsilon == 0.0:  # with a large delta
        return "0.0"
    unit = 10.0 ** (math.floor(math.log10(epsilon)) - digits + 1)
    # A billionth more is what adding up in floating point makes of 1.0.
    rounded = math.ceil(epsilon / unit - 1e-6) * unit
    text = f"{rounded:.{digits}g}"
    return text if any(c in text for c in ".e") else text + ".0"
