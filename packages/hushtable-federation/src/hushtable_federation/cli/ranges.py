"""``hushtable round ranges``: plausible ranges from a result, and a dry run on own rows."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from hushtable import files
from hushtable.cli.options import Language, Output, option
from hushtable.cli.output import Target, shown
from hushtable.cli.result import Block, CommandResult, Paragraph, TextTable
from hushtable.cli.rows import READS, Reads
from hushtable.counts.base import Counts, Noised
from hushtable.data.options import RowOptions
from hushtable.data.spreadsheets import harmless
from hushtable.errors import UsageError
from hushtable.language import ENGLISH, numerals, speaking
from hushtable.plans.draws import Purpose
from hushtable.report.page import check_report_extra, svg, template
from hushtable_federation.cli.model import ResultFile, check_one_period
from hushtable_federation.language import WORDS, _
from hushtable_federation.plausible_ranges import (
    QUANTILES,
    SURE,
    PlausibleRange,
    ValueHistogram,
    category_counts,
    check_quantiles,
    histograms,
)
from hushtable_federation.plots import RangeFigure
from hushtable_federation.ranges import TOLERATED, OwnValues, own_values, schema_text
from hushtable_federation.result import open_result
from hushtable_federation.site import Site

_Quantiles = Annotated[
    str, option("LOW,HIGH", "Shares of all values that lie below each of the two limits.")
]
_Data = Annotated[
    str | None, option("DATA", "Dry run: your own rows, to compare with the ranges.", "--data")
]
_Site = Annotated[
    Path | None,
    option(
        "FILE",
        "Dry run: this site's file, such as north.toml. Its rows are also compared with the "
        "ranges of the other sites alone.",
    ),
]
_Tolerated = Annotated[
    float,
    typer.Option(
        metavar="PERCENT",
        help="Percentage of own values that may lie beyond a limit.",
        min=0,
        max=100,
    ),
]

_USUAL = ",".join(map(str, QUANTILES))
#: On findings about own rows, on the screen and for machines.
_EXACT = "This output describes this site's rows exactly: do not send it to anyone."


@dataclass(frozen=True)
class _RangesRead:
    """A result with its ranges, how rows are read, and the findings of the dry run."""

    result: Noised
    quantiles: tuple[float, float]
    tolerated: float
    reads: RowOptions
    data: str | None
    site: Site | None

    @cached_property
    def histograms(self) -> list[ValueHistogram]:
        return histograms(self.result)

    @cached_property
    def ranges(self) -> list[PlausibleRange]:
        return [one.range(self.quantiles) for one in self.histograms]

    @cached_property
    def own(self) -> list[OwnValues]:
        """Return the site's own values next to the ranges; empty without own rows."""
        if self.data is None:
            return []
        plan = self.result.plan
        by: dict[str, Sequence[PlausibleRange]] = {"all": self.ranges}
        if self.site is not None:
            by["others"] = [one.range(self.quantiles) for one in histograms(self._others)]
        return own_values(self.reads.open_as(self.data, plan.schema), plan, by)

    @property
    def _others(self) -> Counts:
        from hushtable_federation.comparison import others_in

        assert self.site is not None
        with self.site.book() as book:
            return others_in(self.result, book, Purpose.MARGINALS)

    def failing(self, whose: str = "all") -> list[str]:
        """Return the columns with too many own values beyond a limit of all or of the others."""
        return [one.feature.name for one in self.own if one.fails(self.tolerated, whose)]

    @property
    def about(self) -> str:
        """Return where the ranges come from, for a note."""
        ledger, n = self.result.ledger, len(self.result.ledger.shares)
        return f"{n} {'site' if n == 1 else 'sites'}, epsilon {ledger.epsilon:.3g} (hushtable)"

    def text(self, ending: str) -> str:
        """Return the content of the file."""
        if ending == ".toml":
            return schema_text(self.result, self.ranges)
        if ending == ".html":
            own = {one.feature.name: one.cells for one in self.own}
            return _page(self.ranges, self.histograms, own, self._of_page)
        if self.reads.recipe is None:
            return _plain(self.ranges, self.about)
        made = self.reads.recipe.thresholds
        ranges = made.ranges(self.histograms, self.quantiles)
        text: str = made.text(ranges, self.tolerated, self.about)
        return text

    @property
    def _of_page(self) -> dict[str, Any]:
        return {
            **self.facts, "tolerated": self.tolerated, "dry_run": _dry_run(self),
            "failing": self.failing(), "failing_others": self.failing("others"),
            "fails": _("fails"),
            "rows_per_person": self.result.ledger.sensitivity.rows_per_person,
        }  # fmt: skip

    @property
    def facts(self) -> dict[str, Any]:
        """Facts for machines."""
        return {
            "quantiles": list(self.quantiles), "sites": len(self.result.ledger.shares),
            "epsilon": self.result.ledger.epsilon, "noise_sd": self.result.noise_sd,
            "ranges": [one.to_dict() for one in self.ranges],
            "statistics": [_statistics(one) for one in self.histograms],
            "categories": category_counts(self.result),
            **({"own_is": _EXACT} if self.own else {}),
            "own": [
                one.to_dict()
                | {"fails": one.fails(self.tolerated)}
                | {"fails_by_others": one.fails(self.tolerated, "others")} for one in self.own
            ],
        }  # fmt: skip


def ranges(
    result: ResultFile,
    output: Output,
    quantiles: _Quantiles = _USUAL,
    data: _Data = None,
    site: _Site = None,
    tolerated: _Tolerated = TOLERATED,
    language: Language = ENGLISH,
    reads: Reads = READS,
) -> CommandResult:
    """Read plausible ranges from a result, with their uncertainty.

    It also prints the mean and the median of each number, and the counts of each category.

    The file suffix of the output selects its form: .csv for data quality checks (with --read
    omop=person and the round's concept set, in the format of OHDSI's DataQualityDashboard), .toml
    for a schema for a later round, .html for a page with histograms. With --data or --site, your
    own rows are compared with the ranges, to see which checks would fail. These findings appear
    only on the screen and on the page. Nothing is sent.

    Example:
      hushtable round ranges result.hush --read omop=person -o thresholds.csv
      hushtable round ranges result.hush --site north.toml -o ranges.html
    """
    target = Target(output, [result, data, site])
    if target.path.suffix not in (".csv", ".toml", ".html"):
        raise UsageError(f"{output}: ranges go to .csv, .toml or .html")
    if target.path.suffix == ".html":
        check_report_extra()
    place = None if site is None else Site.open(site)
    read = check_one_period(result, open_result(result))
    found = _RangesRead(read, _quantiles(quantiles), tolerated, *_rows(place, data, reads), place)
    with speaking(language if target.path.suffix == ".html" else ENGLISH):
        text = found.text(target.path.suffix)
    own = found.own
    with target.writing():
        files.write_bytes(
            target.path, text.encode(), private=bool(own) and output.suffix == ".html"
        )
    facts = {"command": "round ranges", "output": str(output), **found.facts}
    return CommandResult(facts, _blocks(found, target))


def _rows(place: Site | None, data: str | None, reads: RowOptions) -> tuple[RowOptions, str | None]:
    """Return how own rows are read, and which rows; by default, those of the site's file."""
    if place is None:
        return reads, data
    if reads != READS:
        raise UsageError("--site names how rows are read: leave out the other reading options")
    rows = place.settings.rows if data is None else data
    if rows is None:
        raise UsageError("the site's file names no rows (rows = ...): give them with --data")
    return RowOptions(**place.settings.reads), rows


def _quantiles(text: str) -> tuple[float, float]:
    try:
        given = [float(one) for one in text.split(",")]
    except ValueError:
        raise UsageError(f"--quantiles {text}: needs two numbers, such as 0.005,0.995") from None
    return check_quantiles(given)


def _page(
    ranges: Sequence[PlausibleRange],
    histograms: Sequence[ValueHistogram],
    own: Mapping[str, NDArray[np.int64]],
    facts: dict[str, Any],
) -> str:
    """Return ranges as HTML that needs nothing but itself; ``facts`` are names in the template.

    ``own`` are counts of a site's own values, by column: the page must then stay there.
    """
    drawn = []
    for one, merged in zip(ranges, histograms, strict=True):
        if one.limits:
            figure = RangeFigure(one, merged, own.get(one.feature.name))
            drawn.append((one, svg(figure, figure.words, 2.1)))
    made: str = template("ranges.html", "hushtable_federation", WORDS).render(
        drawn=drawn,
        lacking=[one for one in ranges if not one.limits],
        with_own=bool(own),
        made=f"{datetime.now(UTC):%Y-%m-%d}",
        version=version("hushtable"),
        **facts,
    )
    return made


def _plain(ranges: Sequence[PlausibleRange], about: str) -> str:
    """Return as CSV the ranges of columns that are not OMOP concepts."""
    lines = io.StringIO()
    write = csv.writer(lines, lineterminator="\n").writerow
    write(["column", "unit", "low", "high", "lowNotes", "highNotes"])
    for one in ranges:
        if one.limits:
            values = [f"{limit.value:.10g}" for limit in one.limits]
            said = f"about {one.values:,} values, {about}"
            notes = [f"{limit.words(one.feature.unit)}; {said}" for limit in one.limits]
            texts = one.feature.name, one.feature.unit
            write([*map(harmless, texts), *values, *notes])
    return lines.getvalue()


def _blocks(found: _RangesRead, target: Target) -> Iterator[Block]:
    given = [one for one in found.ranges if one.limits]
    low, high = found.quantiles
    yield f"Ranges from the quantile {low:g} to {high:g}, from {found.about}.\n"
    if given:
        lines = [
            [shown(one.feature.name), shown(one.feature.unit), *map(_limit_words, one.limits),
             f"{one.values:,}"]
            for one in given
        ]  # fmt: skip
        yield TextTable(["column", "unit", "low", "high", "values"], lines, left=2)
        yield "\nIn parentheses: the 95% interval of the quantile, given the noise."
    if lacking := [one for one in found.ranges if not one.limits]:
        yield "\nLeft out, because these columns have too few values for a range:\n"
        lines = [[shown(one.feature.name), f"{one.values:,}", f"{one.needed:,}"] for one in lacking]
        yield TextTable(["column", "values, about", "needed"], lines, left=1)
        yield "\nQuantiles nearer to the middle need fewer values (--quantiles 0.025,0.975)."
    yield from _statistics_blocks(found)
    yield from _own_blocks(found)
    private = found.own and target.path.suffix == ".html"
    keep = " Keep this file where the rows are: it describes them exactly." if private else ""
    yield Paragraph([f"Wrote {target}.{keep}"])


def _statistics(one: ValueHistogram) -> dict[str, Any]:
    """Return the mean and median of a column with their precision; None if they are noise."""
    mean, median = one.mean(), one.median()
    return {
        "name": one.feature.name, "values": max(0, round(one.values)),
        "mean": None if mean is None else mean[0], "off": None if mean is None else mean[1],
        "median": None if median is None else median.to_dict(),
    }  # fmt: skip


def _statistics_blocks(found: _RangesRead) -> Iterator[Block]:
    lines = []
    for one in found.histograms:
        mean, median = one.mean(), one.median()
        if mean is not None and median is not None:
            said = f"{mean[0]:.4g} (+/- {mean[1]:.2g})"
            lines.append([shown(one.feature.name), said, _limit_words(median)])
    if lines:
        yield ""
        yield TextTable(["column", "mean", "median"], lines, left=1)
    noise = f"{SURE * found.result.noise_sd:,.0f}"
    for name, counts in category_counts(found.result).items():
        said = ", ".join(f"{category} {n:,}" for category, n in counts.items())
        yield Paragraph([f"{shown(name)}: {shown(said)} (each +/- {noise})."])


def _limit_words(limit: Any) -> str:
    low, high = limit.interval
    return f"{limit.value:.10g} ({low:.10g} to {high:.10g})"


def _own_blocks(found: _RangesRead) -> Iterator[Block]:
    if not found.own:
        return
    yield "\nDry run: own values beyond the limits.\n"
    headers, rows = _dry_run(found)
    yield TextTable(headers, [[shown(cell) for cell in row] for row in rows], left=2)
    failing = found.failing()
    said = [
        f"{len(failing) or 'None'} of {len(rows)} would fail. A column fails if more than "
        f"{found.tolerated:g}% of its values lie beyond a limit."
    ]
    if others := found.failing("others"):
        said += [
            f"By the limits of the other sites alone, {len(others)} would fail: "
            f"{', '.join(others)}. An error at this site moves the common limits, but not these."
        ]
    said += [_EXACT]
    yield Paragraph(said)


def _dry_run(found: _RangesRead) -> tuple[list[str], list[list[str]]]:
    """Return the table of the dry run: headers, and a line for each column with a range."""
    headers = [_("column"), _("verdict"), _("% below"), _("% above"), _("values")]
    with_others = any("others" in one.beyond for one in found.own)
    if with_others:
        headers += [_("by others'"), _("% below others'"), _("% above others'")]
    lines = []
    for one in sorted(found.own, key=lambda one: not _fails_at_all(one, found.tolerated)):
        if not one.beyond:
            continue
        line = [one.feature.name, *_verdict(one, "all", found.tolerated), numerals(f"{one.n:,}")]
        lines.append(line + (_verdict(one, "others", found.tolerated) if with_others else []))
    return headers, lines


def _verdict(one: OwnValues, whose: str, tolerated: float) -> list[str]:
    if whose not in one.beyond:
        return [_("too few"), "-", "-"]
    if not one.n:
        return [_("no values"), "-", "-"]
    word = _("fails") if one.fails(tolerated, whose) else _("passes")
    return [word, *(numerals(f"{percent:.2f}") for percent in one.percent(whose))]


def _fails_at_all(one: OwnValues, tolerated: float) -> bool:
    return any(one.fails(tolerated, whose) for whose in one.beyond)
