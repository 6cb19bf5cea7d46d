"""The page of ``hushtable round ranges``: a picture of each range, and a dry run on own rows."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hushtable.blocks import Block, LabelledValues, Paragraph, TextTable
from hushtable.counts.base import Noised
from hushtable.language import N_, numerals, percents
from hushtable.report.page import Figures, Page, PageBlock, Section
from hushtable_federation.language import _, ngettext
from hushtable_federation.ranges import OwnValues, PlausibleRange, ValueHistogram

if TYPE_CHECKING:
    from markupsafe import Markup


def ranges_page(
    result: Noised,
    limits: tuple[tuple[float, float], float],
    ranges: Sequence[PlausibleRange],
    histograms: Sequence[ValueHistogram],
    own: Sequence[OwnValues],
    dry_run: tuple[list[str], list[list[str]]],
) -> Page:
    """Return the ranges as a page, which must stay at the site if it has the site's own values.

    ``limits`` are the quantiles, and the percentage of own values that may lie beyond one;
    ``dry_run`` is the table of own values: its headers and rows.
    """
    (low, high), tolerated = limits
    share = percents(f"{round(100.0 * (high - low), 9):g}")
    intro = ngettext(
        "%(share)s of the values of %(n)s site lie between these limits.",
        "%(share)s of the values of all %(n)s sites lie between these limits.",
        len(result.ledger.shares),
        share=share,
    )
    if result.ledger.sensitivity.rows_per_person == 1:
        intro += " " + _("Each person contributes one value of each measurement.")
    reasons = [
        _(
            "The values are those of everyone who was measured, ill or well. A value beyond a "
            "limit is rare: look first for a wrong unit, a wrong sample, or a typing error."
        )
    ]
    notice = _("These limits are for checking data. They are not reference intervals for patients.")
    sections = []
    if own:
        notice = " ".join([_("Keep this page where the rows are."), notice])
        reasons.insert(0, _("It describes this site's own values exactly."))
        sections.append(
            Section("own", _("This site's own values"), _dry_run_blocks(own, tolerated, *dry_run))
        )
    sections.append(Section("ranges", _("Ranges"), _range_blocks(ranges, histograms, own)))
    if lacking := [one for one in ranges if not one.limits]:
        rows = [
            [one.feature.name, numerals(f"{one.values:,}"), numerals(f"{one.needed:,}")]
            for one in lacking
        ]
        title = _("Columns without a range")
        words = _("These columns have too few values for the noise that protects people.")
        table = TextTable([_("column"), _("values, about"), _("needed")], rows, 1, title)
        sections.append(Section("lacking", title, [words, table]))
    below, above = (percents(f"{round(100.0 * x, 9):g}") for x in (low, 1.0 - high))
    meanings = {
        _("limits"): _(
            "%(low)s of the values lie below the low limit, and %(high)s above the high limit.",
            low=below,
            high=above,
        ),
        _("noise"): _(
            "Random noise of %(sd)s (standard deviation) was added to each count. It limits what "
            "the ranges can reveal about any one person: epsilon %(epsilon)s per person. “Lies "
            "between” holds in 19 of 20 cases.",
            sd=numerals(f"{result.noise_sd:.1f}"),
            epsilon=numerals(f"{result.ledger.epsilon:.3g}"),
        ),
        _("bars"): _(
            "Equal parts of the public range of a measurement, which is fixed in advance. Values "
            "beyond that range count in its first or last part. Their heights are the square roots "
            "of the counts."
        ),
    }
    sections.append(Section("about", _("How to read this page"), [LabelledValues(meanings)]))
    return Page(
        title=_("Plausible ranges"),
        made_by=f"hushtable, {datetime.now(UTC):%Y-%m-%d}",
        intro=intro,
        notice=notice,
        reasons=reasons,
        may_leave=not own,
        sections=sections,
    )


def _dry_run_blocks(
    own: Sequence[OwnValues], tolerated: float, headers: list[str], rows: list[list[str]]
) -> list[Block]:
    failing, others = (
        [one.feature.name for one in own if one.fails(tolerated, whose)]
        for whose in ("all", "others")
    )
    words = [_("No measurement has too many values beyond a limit.")]
    if failing:
        words = [
            _(
                "%(k)s of %(n)s measurements have too many values beyond a limit: %(names)s.",
                k=len(failing),
                n=len(rows),
                names=", ".join(failing),
            )
        ]
    if others:
        words.append(
            _(
                "By the limits of the other sites alone, the following measurements do: %(names)s.",
                names=", ".join(others),
            )
        )
    checks = [
        _(
            "A check fails if more than %(share)s%% of the values lie below the low limit, or "
            "above the high limit.",
            share=numerals(f"{tolerated:g}"),
        )
    ]
    if len(headers) > 5:
        checks.append(
            _(
                "The last three columns compare with the limits of the other sites alone: they "
                "reveal an error of this site that has shifted the common limits."
            )
        )
    table = TextTable(headers, rows, 2, _("This site's own values"))
    return [Paragraph(words, look="strong"), Paragraph(checks), table]


def _range_blocks(
    ranges: Sequence[PlausibleRange],
    histograms: Sequence[ValueHistogram],
    own: Sequence[OwnValues],
) -> list[PageBlock]:
    words = [
        _(
            "Bars: values of all sites together, with noise. The line under them: the values "
            "between the limits."
        )
    ]
    if own:
        words.append(
            _("Bars in colour: this site's own values; all sites together are grey behind them.")
        )
    cells = {one.feature.name: one.cells for one in own}
    figures = [
        _figure(one, merged, cells.get(one.feature.name))
        for one, merged in zip(ranges, histograms, strict=True)
        if one.limits
    ]
    return [Paragraph(words), Figures(figures)]


#: Room beside the limits of a range, in widths of it; never less than so many cells.
_BESIDE, _CELLS_BESIDE = 0.35, 2


def _figure(
    one: PlausibleRange, merged: ValueHistogram, own: NDArray[np.int64] | None
) -> tuple["Markup", str]:
    """Return the values around a range as a picture, and its caption."""
    from hushtable.charts.values import ValueChart

    feature, width = merged.feature, merged.width
    low, high = (limit.value for limit in one.limits)
    room = max(_BESIDE * (high - low), _CELLS_BESIDE * width)
    first = max(0, math.floor((low - room - feature.low) / width))
    last = min(len(merged.counts), math.ceil((high + room - feature.low) / width))
    start, span = feature.low + first * width, (last - first) * width
    values = {
        "name": feature.name, "unit": feature.unit,
        "low": numerals(f"{low:.10g}"), "high": numerals(f"{high:.10g}"),
    }  # fmt: skip
    words = [
        _("%(name)s: %(low)s to %(high)s %(unit)s", **values) + ".",
        _("About %(n)s values.", n=numerals(f"{one.values:,}")),
    ]
    between = (
        N_("The low limit lies between %(low)s and %(high)s."),
        N_("The high limit lies between %(low)s and %(high)s."),
    )
    for limit, sentence in zip(one.limits, between, strict=True):
        least, most = (numerals(f"{end:.10g}") for end in limit.interval)
        words.append(_(sentence, low=least, high=most))
        if limit.at_end:
            words.append(
                _("It is set to the end of the public range, because many values lie close to it.")
            )
    chart = ValueChart(
        merged.counts[first:last],
        None,
        "",
        (numerals(f"{start:.4g}"), numerals(f"{start + span:.4g}")),
        usual=((low - start) / span, (high - start) / span),
        usual_name=_("limits"),
        within=None if own is None else own[first:last],
        words=words[0],
    )
    return chart.svg, " ".join(words)
