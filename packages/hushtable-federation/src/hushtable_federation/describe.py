"""Rounds in the words that commands, pages and notebooks share."""

from collections.abc import Sequence

from hushtable.describe import describe_ledger
from hushtable.describe.plan import n_tables
from hushtable.describe.views import release_view
from hushtable.display import View
from hushtable.plans.plan import Plan
from hushtable.privacy.accounting import rounded_up
from hushtable.privacy.ledger import Share
from hushtable_federation.clock import now, shown_time
from hushtable_federation.result import Result
from hushtable_federation.round import Round


def officer_words(round_: Round, plan: Plan | None) -> list[str]:
    """Return what a round asks of each site, in sentences that an officer signs.

    The plan that would be counted by is None where its hash functions are hidden and not given.
    """
    layout, terms, k = round_.layout, round_.terms, len(round_.sites)
    what = "the columns of a plan that is hidden here"
    if plan is not None:
        names = plan.schema.names
        more = f" and {len(names) - 8:,} more" if len(names) > 8 else ""
        columns = "column" if len(names) == 1 else "columns"
        what = f"{len(names):,} {columns} ({', '.join(names[:8])}{more})"
    noise = f"noise of {round_.site_scale:,.1f} (standard deviation) is added to each"
    if terms.masked:
        least = "all" if round_.needed == k else f"at least {terms.least} of"
        noise += f", and a mask that only the sum of {least} {k} sites is free of"
    ledger = round_.ledger(Share("", round_.site_scale, ""))
    rows, mixed, nothing = "rows", "", "No row leaves, no number of rows and no score."
    if terms.max_rows is not None:
        nothing = (
            "No row and no score leaves; about how many rows a site has can be read (the totals of "
            "its tables, with its noise)."
        )
    if round_.place is not None:
        rows, mixed = "rows of this period", "; they mix those of its periods so far"
    return [
        *(f"{line}." for line in [period_words(round_)] if line),
        f"Until {shown_time(round_.deadline)}, {round_.coordinator.name} asks {k} sites to count "
        f"their {rows} by {what}.",
        f"From each site, {layout.n_cells:,} counts leave, in {n_tables(len(layout.cells))} "
        f"({layout.detector}){mixed}; {noise}. {nothing}",
        *describe_ledger(ledger)[:2],
        *([] if plan is None or plan.design is None else plan.design.peer_words()[1:]),
    ]


def period_words(round_: Round) -> str:
    """Return which period a round is about, and what all of them cost; empty outside a stream."""
    place, horizon, terms = round_.place, round_.layout.horizon, round_.terms
    if place is None or horizon is None:
        return ""
    one = terms.rows_per_person == 1 and horizon.participations == 1
    return (
        f"P{place.words(horizon)[1:]}; until {place.end(horizon)}, a total of "
        f"{rounded_up(terms.epsilon, 6):g} for one {'row' if one else 'person'}"
    )


def round_lines(round_: Round, n_accepted: int | None = None) -> dict[str, str]:
    """Return the terms of a round, and how many sites are in, where that is known."""
    terms = round_.terms
    hidden = ", hash functions hidden from the coordinator" if round_.plan is None else ""
    over = " (over)" if now() > round_.deadline else ""
    period = period_words(round_).removeprefix("Period ")
    return {
        "Round": f"{round_.round_id[:12]} {round_.title}".rstrip(),
        **({"Period": period} if period else {}),
        "Coordinator": f"{round_.coordinator.name}, {round_.coordinator.fingerprint}",
        "Open": f"{shown_time(round_.opened)} to {shown_time(round_.deadline)}{over}",
        "Plan": f"{round_.layout.plan_id[:12]}, {round_.layout.detector}{hidden}",
        "Cost": terms.words(),
        "Noise": f"{round_.site_scale:,.4g} a site{' on mixed counts' if period else ''}, "
        + (f"under masks, k_min {terms.k_min}" if terms.masked else "the whole, no masks"),
        "Needs": f"{round_.needed} of {len(round_.sites)} sites"
        + ("" if n_accepted is None else f"; {n_accepted} are in"),
    }


def round_view(asked: Round) -> View:
    """Return the view of a round in a notebook."""
    sites = [[card.name, card.fingerprint] for card in asked.sites]
    says, figures = officer_words(asked, asked.plan), round_lines(asked)
    return View("Round", says, figures, ("site", "fingerprint of its keys"), sites)


def result_view(result: Result) -> View:
    """Return the view of a result in a notebook."""
    made, signer = release_view(result.counts), result.coordinator
    signed = {
        "Round": result.seal.round_id[:12],
        "Signed by": f"{signer.name}, {signer.fingerprint}",
        "Sites": _listed(result.sites),
    }
    return View("Result", made.sentences, signed | dict(made.figures), made.headers, made.rows)


def _listed(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{len(names):,} ({', '.join(names[:most])}{more})"
