"""``hushtable round ranges``: plausible ranges from a result."""

import csv
import io
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from hushtable import files
from hushtable.cli.options import READS, ModelReads, Output, option
from hushtable.cli.result import (
    Block,
    CommandResult,
    Paragraph,
    Target,
    TextTable,
    shown,
)
from hushtable.counts.base import Noised
from hushtable.data.spreadsheets import harmless
from hushtable.errors import UsageError
from hushtable_federation.cli.model import ResultFile, check_one_period
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
    def about(self) -> str:
        ledger, n = self.result.ledger, len(self.result.ledger.shares)
        return f"{n} {'site' if n == 1 else 'sites'}, epsilon {ledger.epsilon:.3g} (hushtable)"


def ranges(
    result: ResultFile,
    output: Output,
    quantiles: _Quantiles = _USUAL,
    tolerated: _Tolerated = TOLERATED,
    reads: ModelReads = READS,
) -> CommandResult:
    """Read plausible ranges from a result, with their uncertainty.

    It also prints the mean and the median of each number, and the counts of each category.

    The file suffix of the output selects its form: .csv for data quality checks (with --read
    omop=person and the round's concept set, in the format of OHDSI's DataQualityDashboard), .toml
    for a schema for a later round. "hushtable report" draws the histogram of each column.

    Example:
      hushtable round ranges result.hush --read omop=person -o thresholds.csv
      hushtable round ranges result.hush -o ranges.csv
    """
    target = Target(output, [result])
    if target.path.suffix not in (".csv", ".toml"):
        raise UsageError(
            f"{output}: ranges go to .csv or .toml; hushtable report {result} -o REPORT.html draws "
            "the histogram of each column"
        )
    read = check_one_period(result, open_result(result))
    try:
        given = [float(one) for one in quantiles.split(",")]
    except ValueError:
        raise UsageError(
            f"--quantiles {quantiles}: needs two numbers, such as 0.005,0.995"
        ) from None
    limits = check_quantiles(given)
    drawn = histograms(read)
    findings = _RangesFound(read, limits, drawn, [one.range(limits) for one in drawn])
    if target.path.suffix == ".toml":
        text = schema_text(read, findings.ranges)
    elif reads.recipe is None:
        text = _plain(findings)
    else:
        made = reads.recipe.thresholds
        text = made.text(made.ranges(drawn, limits), tolerated, findings.about)
    with target.writing():
        files.write_bytes(target.path, text.encode(), private=False)
    facts = {
        "command": "round ranges", "output": str(output),
        "quantiles": list(limits), "sites": len(read.ledger.shares),
        "epsilon": read.ledger.epsilon, "noise_sd": read.noise_sd,
        "ranges": [one.to_dict() for one in findings.ranges],
        "statistics": [_statistics(one) for one in drawn],
        "categories": category_counts(read),
    }  # fmt: skip
    return CommandResult(facts, [*_blocks(findings), Paragraph([f"Wrote {target}."])])


def _plain(findings: _RangesFound) -> str:
    lines = io.StringIO()
    write = csv.writer(lines, lineterminator="\n").writerow
    write(["column", "unit", "low", "high", "lowNotes", "highNotes"])
    for range_ in findings.ranges:
        if range_.limits:
            about = f"about {range_.values:,} values, {findings.about}"
            write([
                harmless(range_.feature.name),
                harmless(range_.feature.unit),
                *(f"{limit.value:.10g}" for limit in range_.limits),
                *(f"{limit.words(range_.feature.unit)}; {about}" for limit in range_.limits),
            ])  # fmt: skip
    return lines.getvalue()


def _blocks(findings: _RangesFound) -> list[Block]:
    low, high = findings.quantiles
    blocks: list[Block] = [
        f"Ranges from the quantile {low:g} to {high:g}, from {findings.about}.\n"
    ]
    if given := [one for one in findings.ranges if one.limits]:
        lines = [
            [shown(one.feature.name), shown(one.feature.unit), *map(_limit_words, one.limits),
             f"{one.values:,}"]
            for one in given
        ]  # fmt: skip
        blocks += [
            TextTable(["column", "unit", "low", "high", "values"], lines, left=2),
            "\nIn parentheses: the 95% interval of the quantile, given the noise.",
        ]
    lacking = [
        [shown(one.feature.name), f"{one.values:,}", f"{one.needed:,}"]
        for one in findings.ranges
        if not one.limits
    ]
    if lacking:
        blocks += [
            "\nLeft out, because these columns have too few values for a range:\n",
            TextTable(["column", "values, about", "needed"], lacking, left=1),
            "\nQuantiles nearer to the middle need fewer values (--quantiles 0.025,0.975).",
        ]
    lines = []
    for one in findings.histograms:
        mean, median = one.mean(), one.median()
        if mean is not None and median is not None:
            words = f"{mean[0]:.4g} (+/- {mean[1]:.2g})"
            lines.append([shown(one.feature.name), words, _limit_words(median)])
    if lines:
        blocks += ["", TextTable(["column", "mean", "median"], lines, left=1)]
    noise = f"{SURE * findings.result.noise_sd:,.0f}"
    for name, counts in category_counts(findings.result).items():
        words = ", ".join(f"{category} {n:,}" for category, n in counts.items())
        blocks.append(Paragraph([f"{shown(name)}: {shown(words)} (each +/- {noise})."]))
    return blocks


def _statistics(histogram: ValueHistogram) -> dict[str, Any]:
    mean, median = histogram.mean(), histogram.median()
    return {
        "name": histogram.feature.name, "values": max(0, round(histogram.values)),
        "mean": None if mean is None else mean[0], "off": None if mean is None else mean[1],
        "median": None if median is None else asdict(median),
    }  # fmt: skip


def _limit_words(limit: RangeLimit) -> str:
    low, high = limit.interval
    return f"{limit.value:.10g} ({low:.10g} to {high:.10g})"
