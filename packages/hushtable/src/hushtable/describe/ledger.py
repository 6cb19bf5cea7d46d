"""A ledger in words: sentences that a privacy officer can sign, and tables of its parts."""

import math

from hushtable.blocks import Block, LabelledValues, TextTable
from hushtable.counts.base import Counts
from hushtable.describe.plan import apart_words, n_periods, n_tables
from hushtable.language import N_, _, ngettext, numeral, numerals, percents
from hushtable.privacy.accounting import rounded_up
from hushtable.privacy.budget import suspicion
from hushtable.privacy.ledger import Ledger
from hushtable.privacy.mechanisms import Cost, Sensitivity

LEDGER_HEADERS = [N_("release"), N_("what"), N_("noise scale"), "rho"]


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
    horizon, tables = ledger.sensitivity.horizon, ledger.sensitivity.tables
    lines = [_bound(ledger)]
    what = ngettext("its one table", "all %(n)s tables", tables)
    counted = _("That is the total over %(what)s", what=what)
    if horizon is not None and horizon.periods > 1:
        counted += _(" of all %(periods)s periods", periods=horizon.periods)
    # A round whose noise was shared is a single release, whichever site names it.
    earlier = {s.pool or s.release: s for share in ledger.shares for s in share.earlier}
    before = [*ledger.behind_plan, *earlier.values()]
    if before:
        names = ", ".join(f"{_(spent.what)} {spent.release[:12]}" for spent in before)
        counted += _(" and the earlier releases on the same rows (%(names)s)", names=names)
    lines.append(counted + ".")
    if earlier:
        lines.append(
            _(
                "If its size was chosen with knowledge of earlier results, this is a running "
                "total: the guarantee is the cap that was fixed in advance."
            )
        )
    if horizon is not None:
        words = N_("This file holds %(what)s.")
        if horizon.periods > 1:
            words = N_("This file holds %(what)s; those of the other periods cost nothing more.")
        lines.append(_(words, what=in_file(ledger)))
    if len(ledger.shares) > 1:
        lines.append(_several_sites(ledger))
    return lines


def _bound(ledger: Ledger) -> str:
    horizon = ledger.sensitivity.horizon
    shows = _("this file shows")
    if horizon is not None and horizon.periods > 1:
        shows = _("the files of all %(periods)s periods show together", periods=horizon.periods)
    epsilon = numerals(f"{rounded_up(ledger.epsilon)}")
    values = {"rows": _records(ledger.sensitivity), "shows": shows, "epsilon": epsilon, "delta": ""}
    if ledger.delta:
        values["delta"] = _(", plus %(delta)s", delta=numerals(f"{rounded_up(ledger.delta):g}"))
    if ledger.sensitivity.adjacency == "add-remove":
        return _(
            "Adding or removing %(rows)s changes the probability of anything that %(shows)s by at "
            "most a factor e^%(epsilon)s%(delta)s.",
            **values,
        )
    return _(
        "Changing %(rows)s changes the probability of anything that %(shows)s by at most a factor "
        "e^%(epsilon)s%(delta)s.",
        **values,
    )


def suspicion_words(ledger: Ledger) -> str:
    """Return the bound in plain words: how sure anyone can become of a person, from even odds."""
    horizon, adjacency = ledger.sensitivity.horizon, ledger.sensitivity.adjacency
    what = _("the result")
    if horizon is not None and horizon.periods > 1:
        what = _("the results of all %(periods)s periods", periods=horizon.periods)
    sure = rounded_up(100.0 * suspicion(0.5, rounded_up(ledger.epsilon), ledger.delta))
    values = {
        "seen": what, "sure": percents(f"{sure:g}"), "rows": _records(ledger.sensitivity),
        "delta": numerals(f"{rounded_up(ledger.delta):g}"),
    }  # fmt: skip
    if adjacency == "add-remove":
        return _(
            "Anyone who suspects, at even odds, that a person is among the rows is at most "
            "%(sure)s sure of it after seeing %(seen)s, except with a probability of %(delta)s. "
            "This covers %(rows)s.",
            **values,
        )
    return _(
        "Anyone who suspects, at even odds, that a person's record has certain values is at most "
        "%(sure)s sure of it after seeing %(seen)s, except with a probability of %(delta)s. This "
        "covers %(rows)s.",
        **values,
    )


def _several_sites(ledger: Ledger) -> str:
    k = len(ledger.shares)
    # A round whose sites share the noise is one release.
    n_own = sum(ledger.pool_of(share) is None for share in ledger.shares)
    merged = n_own + len(ledger.pools)
    where, several, all_ = _("at one site"), _("at 2 sites"), _("at all %(k)s", k=k)
    if merged > 1 and ledger.pools:
        where, several = _("in one of them, at one site"), _("in 2 of them, or at 2 sites,")
        all_ = _("in all of them, at all sites,")
    how = _("%(k)s releases are merged.", k=k)
    if ledger.pools:
        how = _pooled(ledger, merged)
    values = {"how": how, "where": where, "several": several, "all": all_}
    values["two"] = numerals(f"{rounded_up(ledger.epsilon_at(2))}")
    values["every"] = numerals(f"{rounded_up(ledger.epsilon_at(k))}")
    if k > 2:
        return _(
            "%(how)s It holds for a person %(where)s; for one %(several)s the factor is "
            "e^%(two)s, for one %(all)s e^%(every)s.",
            **values,
        )
    return _(
        "%(how)s It holds for a person %(where)s; for one %(several)s the factor is e^%(two)s.",
        **values,
    )


def _records(unit: Sensitivity) -> str:
    rows, horizon = unit.rows_per_person, unit.horizon
    if horizon is None or horizon.participations == 1:
        if rows == 1:
            return _("one record")
        if horizon is None or horizon.periods == 1:
            return _("all records of one person (up to %(n)s)", n=rows)
        return _("all records of one person (up to %(n)s, in one period)", n=rows)
    each = _("one") if rows == 1 else _("up to %(n)s", n=rows)
    return _(
        "all records of one person (%(each)s in a period, in up to %(most)s periods%(apart)s)",
        each=each,
        most=horizon.participations,
        apart=apart_words(horizon),
    )


def in_file(ledger: Ledger) -> str:
    """Describe which periods are in a file, and of how many; empty if there are none."""
    last, window, horizon = ledger.period, ledger.window, ledger.sensitivity.horizon
    if last is None or horizon is None:
        return ""
    if window is None:
        return _("the increment of period %(n)s of %(periods)s", n=last, periods=horizon.periods)
    if window == 1:
        return _("the decoded sum of period %(n)s of %(periods)s", n=last, periods=horizon.periods)
    return _(
        "the decoded sum of periods %(first)s to %(n)s of %(periods)s",
        first=last - window + 1,
        n=last,
        periods=horizon.periods,
    )


def _pooled(ledger: Ledger, merged: int) -> str:
    colluders = min(pool.colluders for pool in ledger.pools)
    if merged == 1:
        words = _(
            "%(k)s sites share the noise, and only their sum was visible.",
            k=len(ledger.shares),
        )
    else:
        rounds, single = len(ledger.pools), merged - len(ledger.pools)
        what = [ngettext("%(n)s round", "%(n)s rounds", rounds)]
        if single:
            what.append(ngettext("%(n)s release", "%(n)s releases", single))
        words = _(
            "%(what)s about different people are merged. The sites of a round share its noise, and "
            "only their sum was visible.",
            what=_(" and ").join(what),
        )
    if colluders:
        return f"{words} " + ngettext(
            "The bound holds against everyone, each of these sites included, even if it learns "
            "the noise of another.",
            "The bound holds against everyone, each of these sites included, even if it learns "
            "the noise of %(n)s others.",
            colluders,
        )
    return words + " " + _("The bound holds against everyone, each of these sites included.")


def ledger_lines(ledger: Ledger, noise_sd: float) -> dict[str, str]:
    """Return the totals of a ledger."""
    sensitivity, horizon = ledger.sensitivity, ledger.sensitivity.horizon
    periods = {}
    if horizon is not None:
        periods = {_("Holds"): in_file(ledger), _("Periods"): n_periods(horizon)}
    tables = n_tables(sensitivity.tables)
    if horizon is not None and horizon.periods > 1:
        tables += _(" of all %(periods)s periods", periods=horizon.periods)
    return {
        **periods,
        _("Mechanism"): _(
            "%(name)s, one scale for all cells of all tables", name=str(ledger.mechanism)
        ),
        _("Noise per cell"): _(
            "%(sd)s counts (standard deviation)", sd=numerals(f"{noise_sd:,.4g}")
        ),
        _("Neighbours"): _(
            "%(adjacency)s, at most %(n)s per person",
            adjacency=sensitivity.adjacency,
            n=numeral(sensitivity.rows_per_person),
        ),
        _("Sensitivity"): _(
            "L1 %(l1)s, L2 %(l2)s, over %(tables)s",
            l1=numeral(sensitivity.l1),
            l2=numerals(f"{math.sqrt(sensitivity.l2_squared):.4g}"),
            tables=tables,
        ),
        _("Total"): _(
            "rho %(rho)s, epsilon %(epsilon)s, delta %(delta)s",
            rho=numerals(f"{rounded_up(ledger.rho, 4):g}"),
            epsilon=numerals(f"{rounded_up(ledger.epsilon, 4):g}"),
            delta=numerals(f"{rounded_up(ledger.delta):g}"),
        ),
    }


def ledger_rows(ledger: Ledger) -> list[list[str]]:
    """Return the releases that a ledger counts, one row each, under `LEDGER_HEADERS`."""
    rows = [
        [
            spent.release[:12],
            _("%(what)s, behind the plan", what=_(spent.what)),
            "",
            _rho(spent.cost),
        ]
        for spent in ledger.behind_plan
    ]
    for share in ledger.shares:
        rows += [
            [spent.release[:12], _("%(what)s, earlier", what=_(spent.what)), "", _rho(spent.cost)]
            for spent in share.earlier
        ]
        cost = ledger.cost_of(share)
        what = _("these tables (%(library)s)", library=share.library)
        rows.append([share.release[:12], what, numerals(f"{share.scale:g}"), _rho(cost)])
    return rows


def ledger_blocks(ledger: Ledger, counts: Counts, indent: str = "") -> list[Block]:
    """Return the totals of the ledger of counts, and the table of its releases."""
    lines = ledger_lines(ledger, counts.noise_sd)
    if not counts.mixed:
        lines[_("Rows, estimated")] = numeral(counts.n_rows)
    headers = [_(header) for header in LEDGER_HEADERS]
    table = TextTable(headers, ledger_rows(ledger), 2, _("Releases in the ledger"))
    return [LabelledValues(lines, indent), table]


def _rho(cost: Cost) -> str:
    return numerals(f"{rounded_up(cost.rho, 4):g}")
