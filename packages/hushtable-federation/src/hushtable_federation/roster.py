"""The roster of a round: names, keys, and how many of its sites are enough."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hushtable.errors import PlanError, RoundError
from hushtable.plans.draws import Purpose
from hushtable_federation.keys import Card, Keys
from hushtable_federation.terms import MAX_SITES, Terms

if TYPE_CHECKING:  # a round checks its roster itself
    from hushtable_federation.round import Round

#: Noise of a site from which on sums of its whole numbers are as good as those of real ones: they
#: differ by less than exp(-2 pi^2 9) = 10^-77 in all probabilities.
_LEAST_SCALE = 3.0
#: What the eye passes over in a name.
_UNSEEN = str.maketrans("", "", " ._-")


def check_least(
    terms: Terms, sites: Sequence[Card], coordinator: Card, by_file: bool = False
) -> None:
    """Raise `PlanError` if two lists of who dropped out could each find enough signatures.

    The coordinator may show one list to some sites and another to others, and get both secrets of
    a site that is on one of them only. An honest site signs one list; a site in league with the
    coordinator signs both, and so does the coordinator itself where it is a site. Two lists then
    need ``2 least`` signatures of at most n + c (+ 1). A round that goes ``by_file`` alone knows no
    such lists.
    """
    n = len(sites)
    if terms.least > n:
        raise PlanError(f"{n} sites cannot be at least {terms.least}")
    if not terms.masked or by_file:
        return
    colluders = terms.colluders
    twice = colluders + (coordinator in sites)
    if 2 * terms.least <= n + twice:
        also = ", and the coordinator is a site itself" if coordinator in sites else ""
        raise PlanError(
            f"at least {terms.least} of {n} sites under masks, {colluders} colluding{also}: needs "
            f"{(n + twice) // 2 + 1} or more"
        )


def check_bound(round_: "Round") -> None:
    """Raise `PlanError` if a bound on the rows of sites cannot be checked, or is not paid for."""
    layout, terms = round_.layout, round_.terms
    if terms.max_rows is None:
        return
    if layout.horizon is not None or layout.purpose is Purpose.VERDICTS:
        raise PlanError(
            "max_rows bounds tables that count each row once: not verdicts, and no period of a "
            "stream, which goes by file"
        )
    terms.check_opened(layout.cells)
    if round_.site_scale < _LEAST_SCALE:
        raise PlanError(
            f"terms: noise of {round_.site_scale:.2g} a site is too little to open totals of "
            f"tables under (max_rows): needs {_LEAST_SCALE:g}"
        )


def check_roster(sites: Sequence[Card], coordinator: Card) -> None:
    """Raise `RoundError` if two sites share a name or keys, or there are too few or too many."""
    names = [card.name for card in sites]
    if names != sorted(set(names)):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise RoundError(
            f"several cards are those of {twice}: each site needs a name of its own"
            if twice
            else "the roster is not sorted by name"
        )
    if coordinator.name in names and coordinator not in sites:
        raise RoundError(
            f"the coordinator and a site are both named {coordinator.name!r}, with different keys: "
            "each needs a name of its own"
        )
    check_unlike(names)
    keys = {card.signing for card in sites}, {card.masking for card in sites}
    if min(map(len, keys)) < len(sites):
        raise RoundError(
            "two sites have the same keys: each needs its own (hushtable round keygen)"
        )
    if not 2 <= len(sites) <= MAX_SITES:
        raise RoundError(f"{len(sites)} sites: a round needs 2 to {MAX_SITES:,}")


def check_unlike(names: Sequence[str]) -> None:
    """Raise `RoundError` if two of these different names look alike."""
    alike = {name.casefold().translate(_UNSEEN): name for name in names}
    if len(alike) < len(names):
        one = next(name for name in names if alike[name.casefold().translate(_UNSEEN)] != name)
        raise RoundError(
            f"the site {one!r} has a name that looks like another's: names have to differ in more "
            "than spaces, dots, hyphens, underscores and capital letters"
        )


def check_coordinator(round_: "Round", keys: Keys) -> None:
    """Raise `RoundError` unless these are the keys that opened the round."""
    if keys.card != round_.coordinator:
        raise RoundError(
            f"these are the keys of {keys.card.name!r} ({keys.card.fingerprint}), and the round "
            f"was opened by {round_.coordinator.name!r} ({round_.coordinator.fingerprint}): the "
            "sites follow its coordinator alone; give --key of the one who opened it"
        )
