"""A ledger in words: sentences that a privacy officer can sign, and tables of its parts."""

import math

from hushtable.describe.plan import n_tables
from hushtable.privacy.accounting import Horizon, rounded_up
from hushtable.privacy.ledger import Ledger
from hushtable.privacy.mechanisms import Cost, Sensitivity

LEDGER_HEADERS = ["release", "what", "noise scale", "rho"]


def describe_ledger(ledger: Ledger) -> list[str]:
    """Return the cost of a release to a person, in sentences that a privacy officer can sign.

    Examples
    --------
    >>> from hushtable import Feature, Plan, Schema, Sketch
    >>> from hushtable.describe import describe_ledger
    >>> plan = Plan.draw(Schema([Feature.numeric("age", low=0, high=120)]), random_state=0)
    >>> release = Sketch.from_data(plan, [[31.0], [58.0], [72.0]]).release(1.0)
    >>> print(describe_ledger(release.ledger)[1])
    That is the total over all 100 tables.
    """
    # (epsilon, delta): P[A] <= e^epsilon P'[A] + delta, for every set A of possible outputs.
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
    # A round whose noise was shared is a single release, whichever site names it.
    earlier = {s.pool or s.release: s for share in ledger.shares for s in share.earlier}
    before = [*ledger.behind_plan, *earlier.values()]
    if before:
        counted += " and the earlier releases on the same rows ("
        counted += ", ".join(f"{spent.what} {spent.release[:12]}" for spent in before) + ")"
    lines.append(counted + ".")
    if earlier:
        lines.append(
            "If its size was chosen with knowledge of earlier results, this is a running total: "
            "the guarantee is the cap that was fixed in advance."
        )
    if horizon is not None:
        more = "; those of the other periods cost nothing more" if horizon.periods > 1 else ""
        lines.append(f"This file holds {in_file(ledger)}{more}.")
    if len(ledger.shares) > 1:
        lines.append(_several_sites(ledger))
    return lines


def _several_sites(ledger: Ledger) -> str:
    """Describe the cost to a person whose rows are at several of the sites."""
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


def _records(unit: Sensitivity) -> str:
    """Describe whose rows may be added or removed: those of one person, in all periods."""
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


def in_file(ledger: Ledger) -> str:
    """Describe which periods are in a file, and of how many; empty if there are none."""
    last, window, horizon = ledger.period, ledger.window, ledger.sensitivity.horizon
    if last is None or horizon is None:
        return ""
    if window is None:
        return f"the increment of period {last} of {horizon.periods}"
    which = f"period {last}" if window == 1 else f"periods {last - window + 1} to {last}"
    return f"the decoded sum of {which} of {horizon.periods}"


def _merged(ledger: Ledger) -> int:
    """Describe how many releases are in the sum; a round whose sites share the noise is one."""
    own = sum(ledger.pool_of(share) is None for share in ledger.shares)
    return own + len(ledger.pools)


def _pooled(ledger: Ledger, merged: int) -> str:
    colluders = min(pool.colluders for pool in ledger.pools)
    if merged == 1:
        words = f"{len(ledger.shares)} sites share the noise, and only their sum was visible."
    else:
        rounds, own = len(ledger.pools), merged - len(ledger.pools)
        what = [f"{rounds} round{'s' * (rounds > 1)}"]
        if own:
            what.append(f"{own} release{'s' * (own > 1)}")
        words = (
            f"{' and '.join(what)} about different people are merged. The sites of a round share "
            "its noise, and only their sum was visible."
        )
    words += " The bound holds against everyone, each of these sites included"
    if colluders:
        others = "another" if colluders == 1 else f"{colluders} others"
        words += f", even if it learns the noise of {others}"
    return words + "."


def ledger_lines(ledger: Ledger, noise_sd: float) -> dict[str, str]:
    """Return the totals of a ledger."""
    sensitivity, horizon = ledger.sensitivity, ledger.sensitivity.horizon
    in_a_period = "" if horizon is None else horizon_words(horizon)
    periods = {} if horizon is None else {"Holds": in_file(ledger)}
    mixed = " as mixed" if horizon is not None and ledger.window is None else ""
    return {
        **periods,
        "Mechanism": f"{ledger.mechanism}, one scale for all cells of all tables",
        "Noise a cell": f"{noise_sd:,.4g} counts{mixed} (standard deviation)",
        "Neighbours": f"{sensitivity.adjacency}, at most {sensitivity.rows_per_person:,} a person"
        f"{in_a_period}",
        "Sensitivity": f"L1 {sensitivity.l1:,}, L2 {math.sqrt(sensitivity.l2_squared):.4g}, "
        f"over {n_tables(sensitivity.tables)}"
        + ("" if horizon is None or horizon.periods == 1 else f" of all {horizon.periods} periods"),
        "Total": f"rho {rounded_up(ledger.rho, 4):g}, epsilon {rounded_up(ledger.epsilon, 4):g}, "
        f"delta {rounded_up(ledger.delta):g}",
    }


def horizon_words(horizon: Horizon) -> str:
    """Describe in how many periods a person may have rows, if there are several periods."""
    if horizon.participations == 1:
        return "" if horizon.periods == 1 else f" in one of {horizon.periods} periods"
    apart = f", {horizon.apart} or more apart" if horizon.apart > 1 else ""
    return f" in each of {horizon.participations} of {horizon.periods} periods{apart}"


def ledger_rows(ledger: Ledger) -> list[list[str]]:
    """Return the releases that a ledger counts, one row each, under `LEDGER_HEADERS`."""
    all_periods = "" if ledger.period is None else ", all periods"
    rows = [
        [spent.release[:12], f"{spent.what}, behind the plan", "", _rho(spent.cost)]
        for spent in ledger.behind_plan
    ]
    for share in ledger.shares:
        rows += [
            [spent.release[:12], f"{spent.what}, earlier", "", _rho(spent.cost)]
            for spent in share.earlier
        ]
        own = ledger.cost_of(share)
        what = f"these tables{all_periods} ({share.library})"
        rows.append([share.release[:12], what, f"{share.scale:g}", _rho(own)])
    return rows


def _rho(cost: Cost) -> str:
    return f"{rounded_up(cost.rho, 4):g}"
