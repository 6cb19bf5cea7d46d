"""A ledger in sentences that a privacy officer can sign."""

from typing import TYPE_CHECKING

from hushtable.privacy.rounding import rounded_up

if TYPE_CHECKING:  # a ledger says its words itself
    from hushtable.privacy.ledger import Ledger
    from hushtable.privacy.mechanisms import Sensitivity


def words(ledger: "Ledger") -> list[str]:
    """Return sentences that a privacy officer can sign."""
    # (epsilon, delta): P[A] <= e^epsilon P'[A] + delta, for all that may be shown.
    delta = f", plus {rounded_up(ledger.delta):g}" if ledger.delta else ""
    horizon, tables = ledger.sensitivity.horizon, ledger.sensitivity.tables
    verb = "Adding or removing" if ledger.sensitivity.adjacency == "add-remove" else "Changing"
    shows = "this file shows"
    if horizon is not None and horizon.periods > 1:
        shows = f"the files of all {horizon.periods} periods show together"
    lines = [
        f"{verb} {_records(ledger.sensitivity)} changes the probability of anything that {shows} "
        f"by at most a factor e^{rounded_up(ledger.epsilon)}{delta}."
    ]
    what = f"all {tables:,} tables" if tables > 1 else "its one table"
    counted = f"That is the total over {what}"
    if horizon is not None and horizon.periods > 1:
        counted += f" of all {horizon.periods} periods"
    # A round whose noise was shared is one release, whichever site names it.
    earlier = {s.pool or s.release: s for share in ledger.shares for s in share.earlier}
    before = [*ledger.behind_plan, *earlier.values()]
    if before:
        counted += " and the earlier releases on the same rows ("
        counted += ", ".join(f"{spent.what} {spent.release[:12]}" for spent in before) + ")"
    lines.append(counted + ".")
    if earlier:
        lines.append(
            "If its size was chosen in the light of earlier results, it is a running total: what "
            "is guaranteed is the cap that was fixed before."
        )
    if horizon is not None:
        more = "; those of the other periods cost nothing more" if horizon.periods > 1 else ""
        lines.append(f"This file holds {in_file(ledger)}{more}.")
    if len(ledger.shares) > 1:
        lines.append(_several_sites(ledger))
    return lines


def _several_sites(ledger: "Ledger") -> str:
    """Say what it costs a person whose rows are at several of the sites."""
    k = len(ledger.shares)
    merged = _merged(ledger)
    where, several, all_ = "at one site", "at 2 sites", f"at all {k}"
    if merged > 1 and ledger.pools:
        where, several = "in one of them, at one site", "in 2 of them, or at 2 sites,"
        all_ = "in all of them, at all sites,"
    factor = f"for one {several} the factor is e^{rounded_up(ledger.epsilon_at(2))}"
    if k > 2:
        factor += f", for one {all_} e^{rounded_up(ledger.epsilon_at(k))}"
    how = _pooled(ledger, merged) if ledger.pools else f"{k} releases are merged."
    return f"{how} It holds for a person {where}; {factor}."


def _records(unit: "Sensitivity") -> str:
    """Say whose rows may come or go: those of one person, in all their periods."""
    rows, horizon = unit.rows_per_person, unit.horizon
    if horizon is None or horizon.participations == 1:
        if rows == 1:
            return "one record"
        once = "" if horizon is None or horizon.periods == 1 else ", in one period"
        return f"all records of one person (up to {rows}{once})"
    apart = f", {horizon.apart} or more apart" if horizon.apart > 1 else ""
    each = "one" if rows == 1 else f"up to {rows}"
    return (
        f"all records of one person ({each} in a period, in up to {horizon.participations} "
        f"periods{apart})"
    )


def in_file(ledger: "Ledger") -> str:
    """Say which periods are in a file, of how many; empty if it is of none."""
    last, window, horizon = ledger.period, ledger.window, ledger.sensitivity.horizon
    if last is None or horizon is None:
        return ""
    if window is None:
        return f"the increment of period {last} of {horizon.periods}"
    which = f"period {last}" if window == 1 else f"periods {last - window + 1} to {last}"
    return f"the decoded sum of {which} of {horizon.periods}"


def _merged(ledger: "Ledger") -> int:
    """Return of how many releases it is the sum; a round whose sites share the noise is one."""
    own = sum(ledger.pool_of(share) is None for share in ledger.shares)
    return own + len(ledger.pools)


def _pooled(ledger: "Ledger", merged: int) -> str:
    colluders = min(pool.colluders for pool in ledger.pools)
    if merged == 1:
        words = f"{len(ledger.shares)} sites share the noise, and only their sum was to be seen."
    else:
        rounds, own = len(ledger.pools), merged - len(ledger.pools)
        what = [f"{rounds} round{'s' * (rounds > 1)}"]
        if own:
            what.append(f"{own} release{'s' * (own > 1)}")
        words = (
            f"{' and '.join(what)} about different people are merged. The sites of a round share "
            "its noise, and only their sum was to be seen."
        )
    words += " The bound holds against everybody, each of these sites included"
    if colluders:
        others = "another" if colluders == 1 else f"{colluders} others"
        words += f", also one that learns the noise of {others}"
    return words + "."
