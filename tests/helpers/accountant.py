"""An accountant of its own: what persons paid, from the noise that was drawn, and nothing else.

It knows events: who answered, with which noise, over how many tables. It shares no code with the
package; the conversion to epsilon is the published formula of Gaussian noise, solved by SciPy. The
noise being discrete may cost a little more, but no more than zCDP, minimised by SciPy, says.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm


@dataclass(frozen=True)
class Event:
    """Sites that answered one round: each adds noise of a scale to the counts of its rows."""

    round: str
    sites: frozenset
    pooled: bool
    scale: float
    #: Parts of pooled noise that someone who knows the others' still faces.
    counted: int
    tables: int
    rows_per_person: int = 1
    replaced: bool = False

    def rho(self, times):
        """Cost of all that is seen of the round to a person who is at so many of its sites."""
        cells = self.tables * (2 if self.replaced else 1)
        one_site = self.rows_per_person * math.sqrt(cells)
        if self.pooled:
            shift, variance = times * one_site, self.counted * self.scale**2
            return shift**2 / (2 * variance)
        return times * one_site**2 / (2 * self.scale**2)


def event(round_, sites):
    """Return what happened when these sites answered a round."""
    return Event(
        round_.round_id,
        frozenset(sites),
        round_.terms.masked,
        round_.site_scale,
        round_.terms.k_min,
        round_.plan.family.n_histograms,
        round_.terms.rows_per_person,
        round_.terms.adjacency == "replace-one",
    )


def epsilon(rho, delta):
    """Balle and Wang (2018), theorem 8: the least that Gaussian noise allows."""
    mu = math.sqrt(2.0 * rho)
    if norm.cdf(mu / 2.0) - norm.cdf(-mu / 2.0) <= delta:
        return 0.0

    def more(eps):
        outside = math.exp(eps + norm.logcdf(-mu / 2.0 - eps / mu))
        return norm.cdf(mu / 2.0 - eps / mu) - outside - delta

    return brentq(more, 0.0, by_zcdp(rho, delta), xtol=1e-13)


def by_zcdp(rho, delta):
    """Canonne, Kamath and Steinke (2020), corollary 13."""
    if rho == 0.0:
        return 0.0

    def bound(log_order):
        above = math.exp(log_order)  # alpha - 1
        order = 1.0 + above
        return rho * order - (math.log(order * delta)) / above + math.log(above / order)

    # One valley, in which the search begins at its lowest place of a coarse grid.
    grid = np.linspace(-8.0, 16.0, 97)
    best = grid[int(np.argmin([bound(place) for place in grid]))]
    found = minimize_scalar(bound, bounds=(best - 0.5, best + 0.5), method="bounded")
    return max(0.0, float(found.fun))


def paid(events_of, sites, delta, convert=epsilon):
    """Return the epsilon of the person at so many sites who paid most.

    ``events_of`` says, by site, which events tell of the rows there.
    """
    return max(
        convert(sum(one.rho(times) for one, times in _times(events_of, those)), delta)
        for those in itertools.combinations(sorted(events_of), min(sites, len(events_of)))
    )


def _times(events_of, sites):
    events = [one for site in sites for one in events_of[site]]
    return ((one, sum(one in events_of[site] for site in sites)) for one in set(events))
