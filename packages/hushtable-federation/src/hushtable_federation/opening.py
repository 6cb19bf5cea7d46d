"""Rounds as a coordinator opens them: checked, put into entries, signed."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from hushtable import files
from hushtable.arguments import is_text
from hushtable.errors import PrivacyError, UsageError
from hushtable.plans.plan import Plan
from hushtable.privacy.accounting import Horizon
from hushtable_federation.clock import YEARS, stamp
from hushtable_federation.keys import Card, Keys
from hushtable_federation.layout import Layout
from hushtable_federation.stream import Place

HIDDEN_PERIODS = (
    "a round about a period needs the plan: the hash functions of a stream cannot be hidden from "
    "its coordinator, who decodes it"
)


def check_asked(
    plan: Plan | Layout, deadline: datetime, title: str, previous: Sequence[str]
) -> None:
    """Raise `UsageError` or `PrivacyError` if a round cannot be opened with these arguments."""
    if deadline.tzinfo is None:
        raise UsageError("the deadline needs a time zone")
    if deadline.year not in YEARS:
        raise UsageError(
            f"the deadline is in the year {deadline.year}: give one before {YEARS.stop}"
        )
    if not is_text(title):
        raise UsageError(f"title={title!r}: needs a text")
    several = isinstance(previous, Sequence) and not isinstance(previous, str)
    if not several or not all(map(is_text, previous)):
        raise UsageError(f"previous={previous!r}: needs a list of ids of rounds")
    if isinstance(plan, Layout) and plan.horizon is not None:
        raise UsageError(HIDDEN_PERIODS)
    if isinstance(plan, Plan) and plan.hidden:
        raise PrivacyError(
            "the plan's hash functions are hidden from the coordinator, and a round holds its "
            "plan: open it with the layout (hushtable plan hide PLAN -o layout.hush)"
        )


def following(
    place: Place | None, horizon: Horizon | None, stream: str, again: bool, joining: Sequence[Card]
) -> Place:
    """Return the place of the round after this one, or, ``again``, of the same period.

    Raises `UsageError` if there is none, or others would join a period that was asked for.
    """
    if horizon is None or place is None:
        raise UsageError("the round is about no period: its plan has no horizon")
    if again and joining:
        raise UsageError(
            "a period is asked for again of the same sites; others join with the next one"
        )
    return replace(place, stream=stream) if again else place.following(horizon, stream)


def signed_entries(
    title: str,
    opened: datetime,
    deadline: datetime,
    coordinator: Card,
    sites: Sequence[Card],
    terms: dict[str, Any],
    previous: Sequence[str],
    place: Place | None,
) -> dict[str, Any]:
    """Return what a round's file says beside its plan."""
    return {
        "title": title,
        "opened": stamp(opened),
        "deadline": stamp(deadline),
        "coordinator": coordinator.to_dict(),
        "sites": [card.to_dict() for card in sorted(sites, key=lambda card: card.name)],
        "terms": terms,
        "previous": list(previous),
        **({} if place is None else place.to_dict()),
    }


def pack(said: dict[str, Any], plan: Plan | Layout, keys: Keys) -> bytes:
    """Return the file of a round, signed."""
    if isinstance(plan, Plan):
        mine, arrays = plan.entries()
    else:
        mine, arrays = {"layout": plan.to_dict()}, {}
    return files.pack("round", {"round": said} | mine, arrays, keys.sign)
