"""From one round of a campaign to the next: the plan that follows, and the round about it."""

from datetime import datetime

from hushtable.counts.base import Noised
from hushtable.errors import RoundError
from hushtable.plans.draws import Purpose
from hushtable.plans.plan import Plan
from hushtable_federation.hidden import draw_hidden
from hushtable_federation.keys import Keys
from hushtable_federation.layout import Layout
from hushtable_federation.roster import check_coordinator
from hushtable_federation.round import Round


def tables_after(
    plan: Plan, result: Noised, *, seed: int | None = None, secret: bytes | None = None
) -> Plan:
    """Draw the tables that follow from the marginals of all sites.

    Parameters
    ----------
    plan : Plan
        Of the marginals.
    result : Release or Sealed
        The marginals of all sites.
    seed : int, optional
        Of the hash functions; fresh entropy by default.
    secret : bytes, optional
        What the sites share: the plan is then hidden, and each of them draws the same, to the bit.

    Raises
    ------
    RoundError, PlanError, UsageError
        If they are no marginals, of another plan, or were not laid out for a budget; or if the
        secret is short.
    """
    if plan.purpose is not Purpose.MARGINALS:
        raise RoundError(f"the plan is of {plan.detector}: tables are drawn from marginals")
    if plan.design is None:
        raise RoundError(
            "the marginals' plan was not laid out for a budget: open the first round with a schema "
            "and --expected-rows"
        )
    marginals, terms = result.open(plan), plan.design.to_dict()
    if secret is None:
        return Plan.draw(plan.schema, marginals=marginals, random_state=seed, **terms)
    return draw_hidden(secret, plan.schema, marginals=marginals, **terms)


def following(
    asked: Round, result: Noised, keys: Keys, deadline: datetime, ranks: float | None = None
) -> Round | None:
    """Sign the round that follows in a campaign whose plans are no secret; None at its end.

    Parameters
    ----------
    asked : Round
        About marginals, or about tables.
    result : Release or Sealed
        Of it.
    keys : Keys
        The coordinator's.
    deadline : datetime
        Of the round that follows.
    ranks : float, optional
        Total epsilon of the whole campaign, where the tables are followed by a round that gives
        rows ranks; it has to leave something for that.

    Raises
    ------
    RoundError, PlanError, UsageError, PrivacyError
        If nothing can be drawn from this result, or no budget is left.
    """
    plan = asked.plan
    if plan is None:
        raise RoundError(
            "the plan of this round is hidden: its sites draw what follows (hushtable round next "
            "ROUND RESULT --secret FILE)"
        )
    if plan.purpose is Purpose.MARGINALS:
        return round_after(asked, tables_after(plan, result), keys, deadline)
    if ranks is None or not plan.purpose.scores_rows:
        return None
    return round_after(asked, Plan.ranks(result.open(plan)), keys, deadline, epsilon=ranks)


def round_after(
    first: Round,
    what: Plan | Layout,
    keys: Keys,
    deadline: datetime,
    *,
    epsilon: float | None = None,
) -> Round:
    """Sign the round that follows in a campaign: of the same sites, on the same terms.

    ``epsilon`` is another total. Raises `RoundError` if the first was opened by others, and what
    `Round.open` raises.
    """
    check_coordinator(first, keys)
    terms = first.terms
    return Round.open(
        what,
        first.sites,
        keys,
        epsilon=terms.epsilon if epsilon is None else epsilon,
        delta=terms.delta,
        deadline=deadline,
        masked=terms.masked,
        least=terms.least,
        colluders=terms.colluders,
        max_rows=terms.max_rows,
        adjacency=terms.adjacency,
        rows_per_person=terms.rows_per_person,
        title=first.title,
        previous=(*first.previous, first.round_id),
    )


def check_drawn_from(layout: Layout, result: Noised) -> Layout:
    """Return a layout if it says that its plan was drawn from a result, at the cost of that.

    Raises `RoundError` otherwise: a round of it would not count what was spent before.
    """
    if not set(result.spent()) <= set(layout.behind):
        raise RoundError(
            f"the plan {layout.plan_id[:12]} was not drawn from this result: get the layout that a "
            "site makes of it (hushtable round next ROUND RESULT --secret FILE --layout FILE)"
        )
    return layout
