"""Features in a report: their ranges or categories, counts, and drift."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hushtable.blocks import Heading, Paragraph, TextTable
from hushtable.counts.base import Counts
from hushtable.data.schema import Feature
from hushtable.describe.plan import values
from hushtable.language import N_, _, numerals
from hushtable.plans.draws import Purpose
from hushtable.report.rows import Scores
from hushtable.report.sections import Figures, PageBlock, Section

if TYPE_CHECKING:
    from markupsafe import Markup

#: Features that the table lists, and features with a histogram; the JSON of ``hushtable inspect``
#: has them all.
_MOST, _MOST_PICTURES = 200, 48
#: Headers of missing values, and of those outside the plan: in the rows counted, and in those here.
_IN_COUNTED = N_("missing in rows counted"), N_("outside in rows counted")
_IN_THESE = N_("missing in these rows"), N_("outside in these rows")


def features_section(counts: Counts, scores: Scores | None, shown: bool) -> Section:
    """Return the section on the features of the plan of counts, beside rows that were scored.

    ``shown`` is whether to show ranges and categories.
    """
    schema = counts.plan.schema.of_rows
    names = schema.names[:_MOST]
    columns: dict[str, Sequence[str]] = {
        _("feature"): names,
        _("range or categories"): [values(f, shown) for f in schema.features[:_MOST]],
    }
    tallies = {}
    if counts.tally is not None:
        tallies[_IN_COUNTED] = counts.tally[: len(schema)]
    if scores is not None:
        tallies[_IN_THESE] = scores.tally[: len(schema)]
    zeros = []
    for headers, tally in tallies.items():
        for which, header in enumerate(headers):
            if tally[:, which].any():
                columns[_(header)] = [numerals(f"{n:,}") for n in tally[:_MOST, which].tolist()]
            else:
                zeros.append(_(header))
    if scores is not None and scores.drift is not None and scores.drift.features:
        columns[_("drift")] = _distances(scores.drift.features, names)
        columns[_("by chance up to")] = _distances(scores.drift.feature_levels, names)
    blocks: list[PageBlock] = []
    if tallies:
        newest = [*tallies.values()][-1]  # these rows, if there are any
        n_rows = scores.n_rows if scores is not None else counts.n_rows
        doubtful = [schema.names[j] for j in np.flatnonzero(2 * newest[:, 1] > n_rows)]
        blocks += [*_doubtful_blocks(doubtful), Paragraph(_tally_words(zeros))]
    if not shown:
        words = _(
            "Ranges and categories were read off rows and are values of these rows. The table "
            "therefore shows only the number of categories (--values shows them all)."
        )
        blocks.append(Paragraph([words]))
    rows = list(zip(*columns.values(), strict=True))
    blocks.append(TextTable([*columns], rows, 2, _("Features")))
    if len(schema) > len(names):
        words = _(
            "The first %(k)s of %(n)s features (hushtable inspect --json lists all).",
            k=len(names),
            n=numerals(f"{len(schema):,}"),
        )
        blocks.append(Paragraph([words], look="soft"))
    if counts.adds and counts.plan.purpose is Purpose.MARGINALS and schema.relations is None:
        blocks += _histogram_blocks(counts, shown)
    return Section("features", _("Features"), blocks, _("for the analyst"))


def _distances(found: Mapping[str, float], names: Sequence[str]) -> list[str]:
    """Return a distance of each column as text; empty where it is not known."""
    distances = [found.get(name, math.nan) for name in names]
    return ["" if math.isnan(x) else numerals(f"{x:z.4f}") for x in distances]


def _doubtful_blocks(doubtful: Sequence[str]) -> Iterator[PageBlock]:
    if not doubtful:
        return
    names = ", ".join(doubtful[:3])
    if len(doubtful) > 3:
        names = _("%(names)s and %(n)s more", names=names, n=len(doubtful) - 3)
    yield Paragraph([_("Most rows are outside the plan in %(names)s.", names=names)], look="strong")
    yield _(
        "Check whether the data use a different unit from the plan, or other names for the "
        "categories."
    )


def _tally_words(zeros: Sequence[str]) -> Iterator[str]:
    yield _("Outside: numbers beyond the range, and categories that the plan does not list.")
    if zeros:
        names = ", ".join(zeros)
        yield _("All zero, and therefore not in the table: %(names)s.", names=names)


def _histogram_blocks(counts: Counts, shown: bool) -> Iterator[PageBlock]:
    """Yield the histograms of the first features, from counts under `Plan.marginals`."""
    features = counts.plan.schema.of_rows.features
    ends = itertools.pairwise(counts.plan.family.offsets.tolist())
    cells = [counts.counts[first:last] for first, last in ends]
    words = [_("Rows counted in each cell of a feature, without its range and categories.")]
    if shown:
        words = [_("Rows counted in each cell of a feature.")]
    if counts.noise_sd:
        sd = numerals(f"{counts.noise_sd:,.4g}")
        words.append(
            _(
                "The counts have noise, whose standard deviation is %(sd)s; counts below 0 have no "
                "bar.",
                sd=sd,
            )
        )
    if len(features) > _MOST_PICTURES:
        n = numerals(f"{len(features):,}")
        words.append(_("The first %(k)s of %(n)s features.", k=_MOST_PICTURES, n=n))
    yield Heading(_("Histograms"))
    yield Paragraph(words)
    first = list(zip(features, cells, strict=False))[:_MOST_PICTURES]
    yield Figures([_histogram(feature, of[:-1], int(of[-1]), shown) for feature, of in first])


def _histogram(
    feature: Feature, cells: NDArray[np.int64], missing: int, shown: bool
) -> tuple["Markup", str]:
    """Return the picture of one feature's counts, of its range or categories, and its caption."""
    from hushtable.charts.values import SharesChart, ValueChart  # with Jinja's library for markup

    numeric, most, where = feature.kind == "numeric", int(cells.argmax()), ""
    # The last category is all others.
    categories = [*feature.categories, _("(others)")]
    if shown and numeric:
        edges = np.linspace(feature.low, feature.high, len(cells) + 1)
        low, high = (numerals(f"{x:.4g}") for x in edges[most : most + 2])
        where = _("from %(low)s to %(high)s", low=low, high=high)
    elif shown:
        where = categories[most]
    unit = f", {feature.unit}" if numeric and feature.unit else ""
    words = _(
        "%(name)s, %(range)s: the largest of %(cells)s counts is %(n)s%(where)s; missing "
        "%(missing)s.",
        name=f"{feature.name}{unit}",
        range=values(feature, shown),
        cells=len(cells),
        n=numerals(f"{cells[most]:,}"),
        where=where and f" ({where})",
        missing=numerals(f"{missing:,}"),
    )
    if shown and not numeric:
        positive = np.maximum(cells, 0)
        shares = positive / max(1, positive.sum())
        return SharesChart(categories, shares.tolist(), None, words).svg, words
    ends = ("", "")
    if shown:
        low, high = (numerals(f"{x:.4g}") for x in (feature.low, feature.high))
        ends = low, high
    return ValueChart(cells, None, "", ends, words=words).svg, words
