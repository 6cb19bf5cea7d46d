"""A round for plausible ranges: its needs, its result, and a site's own values.

Such a round is about the marginals like others, but gets the whole budget, because its histograms
are its purpose. Nothing here changes what is counted, or what it costs. `own_values` compares a
site's rows with the ranges by the rule of OHDSI's DataQualityDashboard: a check fails if more than
a percentage of the values lies beyond a threshold.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Noised
from hushtable.data.columns import as_numbers
from hushtable.data.readers import Reader
from hushtable.data.schema import Feature
from hushtable.errors import PrivacyError
from hushtable.language import numerals
from hushtable.plans.draws import Purpose
from hushtable.plans.families import EquiWidth
from hushtable.plans.plan import Plan
from hushtable.privacy.accounting import rounded_up
from hushtable_federation.language import _
from hushtable_federation.plausible_ranges import QUANTILES, SURE, PlausibleRange, values_needed
from hushtable_federation.round import Round

#: Percentage of values that a site may have beyond a threshold: the DataQualityDashboard's default.
TOLERATED = 5.0
#: The largest share of values below a quantile that still defines a range.
_LARGEST_TAIL = 0.25


def is_for_ranges(round_: Round) -> bool:
    """Return whether a round is about histograms alone, which then get the whole budget."""
    return round_.plan.purpose is Purpose.MARGINALS and round_.terms.share == 1.0


def range_words(round_: Round) -> list[str]:
    """Return how many values a range needs under a round's noise, from its public terms alone.

    Empty for rounds that are not for ranges.
    """
    plan = round_.plan
    if not is_for_ranges(round_) or not isinstance(plan.family, EquiWidth):
        return []
    cells, noise_sd = plan.family.bins, round_.noise_sd
    needed = values_needed(noise_sd, cells, QUANTILES[0])
    words = _(
        "The round is for plausible ranges: a range from the quantile %(low)s to %(high)s needs "
        "about %(n)s rows with a value in the column, at all sites together; columns with fewer "
        "rows get no range.",
        low=numerals(f"{QUANTILES[0]:g}"), high=numerals(f"{QUANTILES[1]:g}"),
        n=numerals(f"{needed:,}"),
    )  # fmt: skip
    expected = plan.expected_rows
    if expected is None or expected >= needed:
        return [words]
    tail = rounded_up(_reached(noise_sd, cells, expected), 2)
    fewer = _(
        "The %(n)s expected rows are fewer: they are enough for the quantiles %(low)s and %(high)s "
        "(--quantiles).",
        n=numerals(f"{expected:,}"), low=numerals(f"{tail:g}"),
        high=numerals(f"{1.0 - tail:.10g}"),
    )  # fmt: skip
    return [f"{words} {fewer}"]


def check_expected(round_: Round) -> None:
    """Raise `PrivacyError` if the expected rows are too few for any range."""
    plan = round_.plan
    if plan.expected_rows is None or not is_for_ranges(round_):
        return
    assert isinstance(plan.family, EquiWidth)
    if _reached(round_.noise_sd, plan.family.bins, plan.expected_rows) > _LARGEST_TAIL:
        needed = values_needed(round_.noise_sd, plan.family.bins, QUANTILES[0])
        raise PrivacyError(
            f"{plan.expected_rows:,} rows are expected, but at this epsilon a plausible range "
            f"needs {needed:,} rows with a value: no round was opened. Use fewer columns, more "
            "sites, or a larger epsilon"
        )


def _reached(noise_sd: float, cells: int, rows: int) -> float:
    return SURE * noise_sd * float(np.sqrt(cells)) / rows


def schema_text(result: Noised, ranges: Sequence[PlausibleRange]) -> str:
    """Return a schema with these ranges as TOML, which states what they cost.

    Columns without a new range keep the public one.
    """
    found = {one.feature.name: one for one in ranges}
    sites = len(result.ledger.shares)
    lines = [
        f"# Plausible ranges from {sites} sites, from a private release: a round under this",
        "# schema includes the cost of that ([[paid]]) in its epsilon.",
    ]
    for feature in result.plan.schema.features:
        one = found.get(feature.name)
        if one is not None and one.limits and one.limits[0].value < one.limits[1].value:
            low, high = one.limits
            lines += ["", *(f"# {limit.words(feature.unit)}" for limit in one.limits)]
            feature = replace(feature, low=low.value, high=high.value)
        else:
            lines += ["", "# unchanged: no range was found for this column"]
        lines += ["[[feature]]", *_entries(feature.to_dict())]
    for spent in result.spent():
        lines += ["", "[[paid]]", *_entries(spent.to_dict())]
    return "\n".join(lines) + "\n"


def _entries(record: dict[str, Any]) -> list[str]:
    return [f"{key} = {_toml(value)}" for key, value in record.items() if value is not None]


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{key} = {_toml(one)}" for key, one in value.items() if one is not None)
        return f"{{ {inner} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    # As JSON, except for a character that TOML requires to be escaped.
    return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f")


@dataclass
class OwnValues:
    """A site's own values of a numeric column, compared with a range: exact, so keep them there.

    Attributes
    ----------
    feature : Feature
        The feature, with its public range.
    n : int
        Values.
    beyond : dict of str to (int, int)
        By source of the range (``"all"``, ``"others"``): numbers of values below its low limit, and
        above its high limit.
    cells : ndarray of shape (n_cells,), int64
        Numbers of values in equal parts of the public range.
    """

    feature: Feature
    cells: NDArray[np.int64]
    n: int = 0
    beyond: dict[str, tuple[int, int]] = field(default_factory=dict)

    def percent(self, whose: str = "all") -> tuple[float, float]:
        """Return the percentages of values below and above a range."""
        below, above = self.beyond[whose]
        return 100.0 * below / max(1, self.n), 100.0 * above / max(1, self.n)

    def fails(self, tolerated: float = TOLERATED, whose: str = "all") -> bool:
        """Return whether more than a percentage of the values lies beyond either limit."""
        return whose in self.beyond and max(self.percent(whose)) > tolerated

    def to_dict(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        percent = {whose: list(self.percent(whose)) for whose in self.beyond}
        return {"name": self.feature.name, "values": self.n, "percent_beyond": percent}


def own_values(
    rows: Reader, plan: Plan, ranges: dict[str, Sequence[PlausibleRange]]
) -> list[OwnValues]:
    """Compare a site's rows with ranges; nothing is sent.

    Parameters
    ----------
    rows : Reader
        Rows under the plan's schema.
    plan : Plan
        Of the round.
    ranges : dict of str to sequence of PlausibleRange
        Ranges by source: ``"all"`` and, without the site's own part, ``"others"``.

    Returns
    -------
    list of OwnValues
        One for each of ``ranges["all"]``, in order.
    """
    assert isinstance(plan.family, EquiWidth)
    names = plan.schema.names
    found = [OwnValues(one.feature, np.zeros(plan.family.bins, np.int64)) for one in ranges["all"]]
    limits = {
        whose: {one.feature.name: one.limits for one in some if one.limits}
        for whose, some in ranges.items()
    }
    for batch in rows.read():
        for one in found:
            j = names.index(one.feature.name)
            column: Any = batch[:, j] if isinstance(batch, np.ndarray) else batch.column(names[j])
            x = np.asarray(
                column if isinstance(batch, np.ndarray) else as_numbers(column, names[j]),
                np.float64,
            )
            x = x[~np.isnan(x)]
            one.n += len(x)
            low, high = one.feature.low, one.feature.high
            one.cells += np.histogram(np.clip(x, low, high), len(one.cells), (low, high))[0]
            for whose, some in limits.items():
                if pair := some.get(names[j]):
                    before = one.beyond.get(whose, (0, 0))
                    below, above = int((x < pair[0].value).sum()), int((x > pair[1].value).sum())
                    one.beyond[whose] = before[0] + below, before[1] + above
    return found
