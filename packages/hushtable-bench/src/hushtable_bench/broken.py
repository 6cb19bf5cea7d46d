"""The package with one mistake in it, for as long as a ``with`` block runs.

Audits from outside have to find it: unlike the releases of `hushtable_bench.planted`, these
go through the package's own calls and files. Other threads of the process would see the
mistake, too: only a benchmark or a test has any use for it.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from hushtable.counts.periods import Increment, Periods
from hushtable.privacy.accounting import Horizon
from hushtable.privacy.budget import calibrated_scale, part_scale
from hushtable.privacy.mechanisms import Cost, Sensitivity, add_noise

Plant = Callable[[], AbstractContextManager[Any]]


def a_third_of_the_noise() -> AbstractContextManager[Any]:
    """Lose a factor of three on the way to the sampler."""

    def weak(counts: Any, mechanism: Any, scale: float, **options: Any) -> Any:
        return add_noise(counts, mechanism, scale / 3.0, **options)

    return patch("hushtable.privacy.mechanisms.add_noise", weak)


def _sensitivity(
    l1: Callable[[Sensitivity], int], l2_squared: Callable[[Sensitivity], int]
) -> AbstractContextManager[Any]:
    planted: AbstractContextManager[Any] = patch.multiple(
        Sensitivity, l1=property(l1), l2_squared=property(l2_squared)
    )
    return planted


def one_table() -> AbstractContextManager[Any]:
    """Take epsilon for that of one table: forget that a row is in all m."""
    return _sensitivity(
        lambda s: s.rows_per_person * s._cells, lambda s: s.rows_per_person**2 * s._cells
    )


def one_row() -> AbstractContextManager[Any]:
    """Forget that a person has several rows."""
    return _sensitivity(lambda s: s._cells * s.tables, lambda s: s._cells * s.tables)


def one_cell() -> AbstractContextManager[Any]:
    """Forget that a row whose values change leaves one cell and enters another."""
    return _sensitivity(
        lambda s: s.rows_per_person * s.tables, lambda s: s.rows_per_person**2 * s.tables
    )


def nothing_before() -> AbstractContextManager[Any]:
    """Leave out what the plan's marginals cost."""

    def forgetful(*given: Any, **terms: Any) -> float:
        return calibrated_scale(*given, **terms | {"before": Cost(0.0, 0.0, 0.0)})

    return patch("hushtable.privacy.budget.calibrated_scale", forgetful)


def all_sites_count() -> AbstractContextManager[Any]:
    """Divide a shared noise by the root of all six sites, not of those that nobody else knows."""
    return patch("hushtable_federation.round.part_scale", lambda scale, parts: part_scale(scale, 6))


def _columns(planted: Callable[[Horizon], Any]) -> AbstractContextManager[Any]:
    return patch.object(Horizon, "columns", property(planted))


def one_period() -> AbstractContextManager[Any]:
    """Charge once for all periods, with noise for one: forget that a row stays in later ones."""
    return _columns(lambda horizon: np.array(horizon.factor[:1]))


def one_period_less() -> AbstractContextManager[Any]:
    """Make the noise for a person in one period, where there are rows of two."""
    columns = Horizon.columns.fget  # type: ignore[attr-defined] # a property, as the class has it
    return _columns(lambda horizon: columns(replace(horizon, participations=1)))


@contextmanager
def noise_again() -> Iterator[None]:
    """Draw new noise each time that a period is asked for."""
    mixed, kept, latest = Horizon.mixed, Periods.increment, dict[int, Any]()

    def noted(horizon: Horizon, counts: Any) -> Any:
        latest[len(counts)] = mixed(horizon, counts)
        return latest[len(counts)]

    def increment(site: Periods, period: int) -> Increment:
        honest = kept(site, period)
        counts = add_noise(latest[period], honest.ledger.mechanism, site.share.scale)
        return replace(honest, counts=counts)

    with patch.object(Horizon, "mixed", noted), patch.object(Periods, "increment", increment):
        yield


#: Each mistake, the case of `hushtable_bench.outside` that has to show it, and how to make it.
BROKEN: dict[str, tuple[str, Plant]] = {
    "planted, epsilon of one table": ("one round", one_table),
    "planted, epsilon of one table, Laplace": ("discrete Laplace", one_table),
    "planted, marginals not counted": ("two rounds, marginals and tables", nothing_before),
    "planted, a replaced row counted as one more": ("values replaced", one_cell),
    "planted, several rows counted as one": ("three rows a person", one_row),
    "planted, noise shared by all sites": ("masked sum, all but two parts known", all_sites_count),
    "planted, noise for one period": ("twelve periods, a person in one", one_period),
    "planted, a person in a period more": ("twelve periods, a person in two", one_period_less),
    "planted, periods released twice": ("twelve periods, a person in one", noise_again),
}
