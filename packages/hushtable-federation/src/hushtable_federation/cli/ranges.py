"""``hushtable round ranges``: plausible ranges from a result."""

import csv
import io
import math
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushtable import files
from hushtable.cli.options import READS, Language, Output, Reads, option
from hushtable.cli.result import (
    Block,
    CommandResult,
    LabelledValues,
    Paragraph,
    Target,
    TextTable,
    shown,
)
from hushtable.counts.base import Noised
from hushtable.data.spreadsheets import harmless
from hushtable.errors import UsageError
from hushtable.language import ENGLISH, N_, numerals, percents, speaking
from hushtable.report.page import Figures, Page, PageBlock, Section, check_extra, html
from hushtable_federation.cli.model import ResultFile, check_one_period
from hushtable_federation.language import _, ngettext
from hushtable_federation.ranges import (
    QUANTILES,
    SURE,
    TOLERATED,
    PlausibleRange,
    RangeLimit,
    ValueHistogram,
    category_counts,
    check_quantiles,
    histograms,
    schema_text,
)
from hushtable_federation.result import open_result

if TYPE_CHECKING:
    from markupsafe import Markup

_Quantiles = Annotated[
    str, option("LOW,HIGH", "Shares of all values that lie below each of the two limits.")
]
_Tolerated = Annotated[
    float,
    typer.Option(
        metavar="PERCENT",
        help="For the DataQualityDashboard: percentage of values that may lie beyond a limit.",
        min=0,
        max=100,
    ),
]

_USUAL = ",".join(map(str, QUANTILES))


@dataclass(frozen=True)
class _RangesFound:
    result: Noised
    quantiles: tuple[float, float]
    histograms: list[ValueHistogram]
    ranges: list[PlausibleRange]

    @property
    def lacking(self) -> list[PlausibleRange]:
        return [one for one in self.ranges if not one.limits]

    @property
    def about(self) -> str:
        ledger, n = self.result.ledger, len(self.result.ledger.shares)
        return f"{n} {'site' if n == 1 else 'sites'}, epsilon {ledger.epsilon:.3g} (hushtable)"


def ranges(
    result: ResultFile,
    output: Output,
    quantiles: _Quantiles = _USUAL,
    tolerated: _Tolerated = TOLERATED,
    language: Language = ENGLISH,
    reads: Reads = READS,
) -> CommandResult:
    """Read plausible ranges from a result, with their uncertainty.

    It also prints the mean and the median of each number, and the counts of each category.

    The file suffix of the output selects its form: .csv for data quality checks (with --read
    omop=person and the round's concept set, in the format of OHDSI's DataQualityDashboard), .toml
    for a schema for a later round, .html for a page with histograms.

    Example:
      hushtable round ranges result.hush --read omop=person -o thresholds.csv
      hushtable round ranges result.hush -o ranges.html
    """
    target = Target(output, [result])
    if target.path.suffix not in (".csv", ".toml", ".html"):
        raise UsageError(f"{output}: ranges go to .csv, .toml or .html")
    if target.path.suffix == ".html":
        check_extra()
    read = check_one_period(result, open_result(result))
    try:
        given = [float(one) for one in quantiles.split(",")]
    except ValueError:
        raise UsageError(
            f"--quantiles {quantiles}: needs two numbers, such as 0.005,0.995"
        ) from None
    limits = check_quantiles(given)
    drawn = histograms(read)
    found = _RangesFound(read, limits, drawn, [one.range(limits) for one in drawn])
    if target.path.suffix == ".html":
        with speaking(language):
            text = html(_page(found))
    elif target.path.suffix == ".toml":
        text = schema_text(read, found.ranges)
    elif reads.recipe is None:
        text = _plain(found)
    else:
        made = reads.recipe.thresholds
        text = made.text(made.ranges(drawn, limits), tolerated, found.about)
    with target.writing():
        files.write_bytes(target.path, text.encode(), private=False)
    facts = {
        "command": "round ranges", "output": str(output),
        "quantiles": list(limits), "sites": len(read.ledger.shares),
        "epsilon": read.ledger.epsilon, "noise_sd": read.noise_sd,
        "ranges": [one.to_dict() for one in found.ranges],
        "statistics": [_statistics(one) for one in drawn],
        "categories": category_counts(read),
    }  # fmt: skip
    return CommandResult(facts, [*_blocks(found), Paragraph([f"Wrote {target}."])])


def _plain(found: _RangesFound) -> str:
    lines = io.StringIO()
    write = csv.writer(lines, lineterminator="\n").writerow
    write(["column", "unit", "low", "high", "lowNotes", "highNotes"])
    for one in found.ranges:
        if one.limits:
            about = f"about {one.values:,} values, {found.about}"
            write([
                harmless(one.feature.name),
                harmless(one.feature.unit),
                *(f"{limit.value:.10g}" for limit in one.limits),
                *(f"{limit.words(one.feature.unit)}; {about}" for limit in one.limits),
            ])  # fmt: skip
    return lines.getvalue()


def _blocks(found: _RangesFound) -> list[Block]:
    low, high = found.quantiles
    blocks: list[Block] = [f"Ranges from the quantile {low:g} to {high:g}, from {found.about}.\n"]
    if given := [one for one in found.ranges if one.limits]:
        lines = [
            [shown(one.feature.name), shown(one.feature.unit), *map(_limit_words, one.limits),
             f"{one.values:,}"]
            for one in given
        ]  # fmt: skip
        blocks += [
            TextTable(["column", "unit", "low", "high", "values"], lines, left=2),
            "\nIn parentheses: the 95% interval of the quantile, given the noise.",
        ]
    if lacking := found.lacking:
        blocks += [
            "\nLeft out, because these columns have too few values for a range:\n",
            _lacking_table(lacking),
            "\nQuantiles nearer to the middle need fewer values (--quantiles 0.025,0.975).",
        ]
    lines = []
    for one in found.histograms:
        mean, median = one.mean(), one.median()
        if mean is not None and median is not None:
            words = f"{mean[0]:.4g} (+/- {mean[1]:.2g})"
            lines.append([shown(one.feature.name), words, _limit_words(median)])
    if lines:
        blocks += ["", TextTable(["column", "mean", "median"], lines, left=1)]
    noise = f"{SURE * found.result.noise_sd:,.0f}"
    for name, counts in category_counts(found.result).items():
        words = ", ".join(f"{category} {n:,}" for category, n in counts.items())
        blocks.append(Paragraph([f"{shown(name)}: {shown(words)} (each +/- {noise})."]))
    return blocks


def _statistics(one: ValueHistogram) -> dict[str, Any]:
    mean, median = one.mean(), one.median()
    return {
        "name": one.feature.name, "values": max(0, round(one.values)),
        "mean": None if mean is None else mean[0], "off": None if mean is None else mean[1],
        "median": None if median is None else asdict(median),
    }  # fmt: skip


def _limit_words(limit: RangeLimit) -> str:
    low, high = limit.interval
    return f"{limit.value:.10g} ({low:.10g} to {high:.10g})"


# --- the page -------------------------------------------------------------------------------------


def _page(found: _RangesFound) -> Page:
    result, (low, high) = found.result, found.quantiles
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
    sections = [Section("ranges", _("Ranges"), _range_blocks(found))]
    if lacking := found.lacking:
        words = _("These columns have too few values for the noise that protects people.")
        blocks: list[PageBlock] = [words, _lacking_table(lacking)]
        sections.append(Section("lacking", _("Columns without a range"), blocks))
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
        may_leave=True,
        sections=sections,
    )


def _lacking_table(lacking: list[PlausibleRange]) -> TextTable:
    rows = [
        [shown(one.feature.name), numerals(f"{one.values:,}"), numerals(f"{one.needed:,}")]
        for one in lacking
    ]
    headers = [_("column"), _("values, about"), _("needed")]
    return TextTable(headers, rows, 1, _("Columns without a range"))


def _range_blocks(found: _RangesFound) -> list[PageBlock]:
    words = [
        _(
            "Bars: values of all sites together, with noise. The line under them: the values "
            "between the limits."
        )
    ]
    figures = [
        _figure(one, merged)
        for one, merged in zip(found.ranges, found.histograms, strict=True)
        if one.limits
    ]
    return [Paragraph(words), Figures(figures)]


#: Room beside the limits of a range, in widths of it; never less than so many cells.
_BESIDE, _CELLS_BESIDE = 0.35, 2


def _figure(one: PlausibleRange, merged: ValueHistogram) -> tuple["Markup", str]:
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
        words=words[0],
    )
    return chart.svg, " ".join(words)
