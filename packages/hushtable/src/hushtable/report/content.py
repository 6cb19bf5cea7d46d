"""Gather the sections of a report: rows and features, privacy, and what must stay."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from hushtable.blocks import Block, Heading, Items, LabelledValues, Paragraph, TextTable
from hushtable.counts.base import Counts
from hushtable.counts.sketch import count_here
from hushtable.data.readers import Reader
from hushtable.data.schema import Feature
from hushtable.describe.ledger import describe_ledger, ledger_blocks
from hushtable.describe.plan import (
    counts_lines,
    n_tables,
    plan_lines,
    threshold_words,
    values,
    values_of_rows,
)
from hushtable.errors import RoundError, UsageError
from hushtable.language import N_, _, numeral, numerals
from hushtable.plans.draws import Purpose
from hushtable.plots import binned
from hushtable.privacy.accounting import rounded_up
from hushtable.privacy.ledger import Ledger
from hushtable.report.page import Figures, Page, PageBlock, RowList, Section
from hushtable.scores.outliers import Outliers, Search
from hushtable.scores.scorer import Ranks, Scorer
from hushtable.scores.typical import and_words
from hushtable.scores.usual import Usual
from hushtable.streams import Drift, drift, of_all_rows, why_no_drift

# --- rows: their scores, the lowest of them with reasons, and how far they drifted ---------------


@dataclass(frozen=True)
class RowsToShow:
    """Which single rows a report shows, and how much of them."""

    n: int = 0  # so many, those with the lowest scores
    values: bool = False  # whether to show the values that lower their scores
    kept: tuple[str, ...] = ()  # columns of these rows to show, too


NO_ROWS = RowsToShow()
#: Rows that show how far chance moves them.
_SAMPLED = 500
#: Features that are named as those that drifted most.
_FURTHEST = 5
#: Bars of the distribution, which are drawn unchanged.
_MOST_BARS = 38
#: Units of scores.
UNITS = N_("bits"), N_("rows")


@dataclass(frozen=True)
class Scores:
    """Rows, as a model scores them."""

    source: str  # where the rows are from
    scores: NDArray[np.float64]  # (n,)
    threshold: float  # NaN if there is none
    unit: str  # of the scores
    lowest: Outliers | None  # the lowest scores, where they were requested
    values: bool  # whether the report has the values that lower them
    tally: NDArray[np.int64]  # (n_features, 2): rows with a value missing, or outside the plan
    drift: Drift | None  # from the rows that the model counted
    no_drift: str  # why there is no drift

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.scores)

    @property
    def n_outliers(self) -> int | None:
        """Number of rows below the threshold; None where there is none."""
        return None if math.isnan(self.threshold) else int((self.scores < self.threshold).sum())

    @property
    def flagged_share(self) -> str:
        """The percentage of outliers among the rows."""
        return numerals(f"{100.0 * (self.n_outliers or 0) / self.n_rows:.2f}")

    @property
    def shows(self) -> list[str]:
        """Values of the listed rows that the report shows, in words."""
        if self.lowest is None:
            return []
        lowering = [_("the values that lower their scores")] if self.values else []
        return [*self.lowest.keep, *(lowering if self.lowest.explained else [])]


def score_rows(
    scorer: Scorer,
    threshold: float,
    reader: Reader,
    *,
    shown: RowsToShow = NO_ROWS,
    ranks: Ranks | None = None,
    usual: Usual | None = None,
    n_jobs: int | None = None,
) -> Scores:
    """Score rows and compare them with those that the model counted; holds 8 bytes a row.

    The rows have the plan's features as columns, then those to show. They are read once for the
    scores, and once for the drift. Rows below the model's threshold are outliers; it is NaN if
    there is none. The report lists the lowest rows that ``shown`` requests, with the reasons for
    their scores. ``ranks`` give how rare scores are among the rows of all sites. ``usual`` is what
    the model knows of the rows that it counted: values are compared with it, and with the rows
    scored if it knows nothing.
    """
    reader = replace(reader, keep=shown.kept)
    search = Search(
        scorer, max(shown.n, 1), keep=shown.kept, usual=usual, ranks=ranks, explain=shown.n > 0
    )
    parts, tally = [], np.zeros((len(scorer.plan.schema), 2), np.int64)
    for batch in search.of_files(reader, n_jobs=n_jobs):
        parts.append(batch.scores)
        tally += batch.tally
    scores = np.concatenate(parts)
    drifted, no_drift = _drift(scorer, reader, len(scores), n_jobs)
    return Scores(
        source=reader.source,
        scores=scores,
        threshold=threshold,
        unit=scorer.plan.score.unit,
        lowest=search.found() if shown.n else None,
        values=shown.values,
        tally=tally,
        drift=drifted,
        no_drift=no_drift,
    )


def _drift(
    scorer: Scorer, reader: Reader, n_rows: int, n_jobs: int | None
) -> tuple[Drift | None, str]:
    counted, reason = of_all_rows(scorer.sketch), why_no_drift(scorer.sketch)
    if reason:
        return None, reason
    try:
        sketch = count_here(counted.plan, reader, n_jobs=n_jobs)
        step = -(-n_rows // _SAMPLED)
        return drift(counted, sketch, rows=reader.take(np.arange(0, n_rows, step))), ""
    except UsageError as error:
        return None, str(error)


def scores_section(scores: Scores) -> Section:
    """Return the section on the scores."""
    if scores.n_outliers is None:
        threshold = _(
            "The noise in the counts is too large to derive a threshold from them, so the report "
            "calls no row an outlier."
        )
    else:
        threshold = _("The threshold is that of the model.")
    first = _(
        "The score of a row states how many other rows are similar to it: a low score is abnormal."
    )
    blocks: list[PageBlock] = [
        Paragraph([first, threshold]),
        Figures([_distribution(scores)]),
        LabelledValues(_totals(scores)),
        *_lowest_blocks(scores),
        *([] if scores.drift is None else _drift_blocks(scores.drift)),
    ]
    return Section("scores", _("Scores"), blocks, _("for the analyst"))


def _distribution(scores: Scores) -> tuple[str, str]:
    from hushtable.charts.values import ValueChart  # with Jinja's library for markup

    bins = min(max(10, round(scores.n_rows**0.5)), _MOST_BARS)
    counts, edges = binned(scores.scores, scores.threshold, bins)
    low, high = edges[0], edges[-1]
    ends = numerals(f"{low:.4g}"), numerals(f"{high:.4g}")
    values = {"n": numeral(scores.n_rows), "low": ends[0], "high": ends[1]}
    values["unit"] = _(scores.unit)
    words = _("Distribution of %(n)s scores from %(low)s to %(high)s %(unit)s.", **values)
    at, text = None, ""
    if scores.n_outliers is not None:
        at = (scores.threshold - low) / (high - low)
        text = _("threshold") + " " + numerals(f"{scores.threshold:.4g}")
        words = _(
            "Distribution of %(n)s scores from %(low)s to %(high)s %(unit)s; %(k)s are below the "
            "threshold.",
            k=numeral(scores.n_outliers),
            **values,
        )
    return ValueChart(counts, at, text, ends, words=words).svg, words


def _totals(scores: Scores) -> dict[str, str]:
    n, unit = numeral(scores.n_rows), _(scores.unit)
    lines = {_("Rows"): _("%(n)s rows of %(source)s", n=n, source=scores.source)}
    if scores.n_outliers is not None:
        flagged, share = numeral(scores.n_outliers), scores.flagged_share
        lines[_("Outliers")] = _("%(n)s (%(share)s%%)", n=flagged, share=share)
        lines[_("Threshold")] = threshold_words(scores.threshold, scores.unit)
    lines[_("Median score")] = f"{numerals(f'{np.median(scores.scores):.4g}')} {unit}"
    return lines


def _lowest_blocks(scores: Scores) -> Iterator[PageBlock]:
    lowest = scores.lowest
    if lowest is None:
        return
    words = [_("Rows are numbered from 0, in the order of %(source)s.", source=scores.source)]
    if lowest.explained and not scores.values:
        words.append(
            _(
                "The number next to a feature is the number of bits that the score would gain if "
                "that value alone were usual."
            )
        )
    if not scores.shows:
        words.append(_("The report does not show the values of these rows."))
    yield Heading(_("The most unusual rows"))
    yield Paragraph(words)
    yield RowList(lowest, scores.values)
    notes = lowest.notes("")
    named = ["severity", "score", "error", "reason", *(["usual"] if scores.values else [])]
    yield LabelledValues({_(name): notes[name] for name in named if name in notes})


def _drift_blocks(drift: Drift) -> Iterator[PageBlock]:
    yield Heading(_("Drift"))
    yield Paragraph(
        [
            _(
                "Drift is the distance between the distributions of these rows and of the counted "
                "rows: 0 means the same distribution, 1 means no cell in common."
            ),
            _(
                "If nothing has changed, it is close to 0, and chance, with the noise of the "
                "counts if they have any, exceeds the level in parentheses in at most one of "
                "twenty cases."
            ),
            _("For the rows that the model counted itself, it is below 0."),
        ]
    )
    words = [_("All features together, these rows drifted no more than chance explains.")]
    if drift.overall > drift.level:
        words = [_("All features together, these rows drifted more than chance explains.")]
    if n := len(drift.features):
        words.append(
            _(
                "Each feature alone, %(k)s of %(n)s drifted more; if nothing had changed, it would "
                "be about %(chance)s or fewer.",
                k=numeral(len(drift.beyond_chance)),
                n=numeral(n),
                # The share that a level leaves to chance.
                chance=numeral(math.ceil(n / 20)),
            )
        )
    yield Paragraph(words, look="strong")
    lines = {_("All features together"): _beside_chance(drift.overall, drift.level)}
    known = {name: x for name, x in drift.features.items() if not math.isnan(x)}
    if furthest := sorted(known, key=lambda name: known[name], reverse=True)[:_FURTHEST]:
        lines[_("Largest drift of one feature")] = "; ".join(
            f"{name} {_beside_chance(known[name], drift.feature_levels[name])}" for name in furthest
        )
    yield LabelledValues(lines)


def _beside_chance(drift: float, level: float) -> str:
    drifted, chance = numerals(f"{drift:z.4f}"), numerals(f"{level:.4f}")
    return _("%(drift)s (by chance up to %(level)s)", drift=drifted, level=chance)


# --- features: their ranges or categories, counts, and drift --------------------------------------


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
                columns[_(header)] = [numeral(n) for n in tally[:_MOST, which].tolist()]
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
        meant = [
            _("Outside: numbers beyond the range, and categories that the plan does not list.")
        ]
        if zeros:
            names_of_zeros = ", ".join(zeros)
            meant.append(
                _("All zero, and therefore not in the table: %(names)s.", names=names_of_zeros)
            )
        blocks += [*_doubtful_blocks(doubtful), Paragraph(meant)]
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
            n=numeral(len(schema)),
        )
        blocks.append(Paragraph([words], look="soft"))
    if counts.adds and counts.plan.purpose is Purpose.MARGINALS and schema.relations is None:
        blocks += _histogram_blocks(counts, shown)
    return Section("features", _("Features"), blocks, _("for the analyst"))


def _distances(shares: Mapping[str, float], names: Sequence[str]) -> list[str]:
    distances = [shares.get(name, math.nan) for name in names]
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


def _histogram_blocks(counts: Counts, shown: bool) -> Iterator[PageBlock]:
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
        n = numeral(len(features))
        words.append(_("The first %(k)s of %(n)s features.", k=_MOST_PICTURES, n=n))
    yield Heading(_("Histograms"))
    yield Paragraph(words)
    first = list(zip(features, cells, strict=False))[:_MOST_PICTURES]
    yield Figures([_histogram(feature, of[:-1], int(of[-1]), shown) for feature, of in first])


def _histogram(
    feature: Feature, cells: NDArray[np.int64], missing: int, shown: bool
) -> tuple[str, str]:
    from hushtable.charts.values import SharesChart, ValueChart  # with Jinja's library for markup

    numeric = feature.kind == "numeric"
    unit = f", {feature.unit}" if numeric and feature.unit else ""
    words = _(
        "%(name)s, %(range)s: the largest of %(cells)s counts is %(n)s; missing %(missing)s.",
        name=f"{feature.name}{unit}",
        range=values(feature, shown),
        cells=len(cells),
        n=numeral(cells.max()),
        missing=numeral(missing),
    )
    if shown and not numeric:
        positive = np.maximum(cells, 0)
        shares = positive / max(1, positive.sum())
        categories = [*feature.categories, _("(others)")]
        return SharesChart(categories, shares.tolist(), None, words).svg, words
    ends = ("", "")
    if shown:
        low, high = (numerals(f"{x:.4g}") for x in (feature.low, feature.high))
        ends = low, high
    return ValueChart(cells, None, "", ends, words=words).svg, words


# --- the report -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sites:
    """The sites behind a sum."""

    n: int
    exact: bool  # whether their rows are exact counts; otherwise estimates from noised ones
    blocks: Sequence[Block]


#: Kinds of files that a report is about.
KINDS = N_("sketch"), N_("release"), N_("local"), N_("detector")


def sites_of_parts(parts: Mapping[str, Counts], total: Counts, name: str) -> Sites:
    """Return the sites whose sketches or releases, by name, were merged, and check their sum.

    ``name`` is that of the sum.
    """
    if not parts:
        raise RoundError("no parts were given: name the files that the sites sent")
    if any(part.kind != total.kind for part in parts.values()):
        raise UsageError(
            f"{name} and its parts are of different kinds: sketches add up to a sketch, and "
            "releases to a release"
        )
    again = reduce(add, parts.values())
    equal = again.plan_id == total.plan_id and np.array_equal(again.counts, total.counts)
    exact = total.ledger is None
    headers = [_("site"), _("rows") if exact else _("rows, estimated")]
    rows = [[part, numeral(counted.n_rows)] for part, counted in parts.items()]
    words = _("The sum of the parts is not %(name)s, which has other parts.", name=name)
    mark = "✗ " + _("failed:")
    if equal:
        words = _("The sum of the parts is exactly %(name)s.", name=name)
        mark = "✓ " + _("passed:")
    checks = Items([f"{mark} {words}"])
    return Sites(len(parts), exact, [checks, TextTable(headers, rows, 1, _("Sites"))])


@dataclass(frozen=True)
class Subject:
    """A file that a report is about, or counts by themselves."""

    name: str
    kind: str  # sketch, release, local or detector
    counts: Counts
    size: str = ""  # of the file, for people; empty if there is none


@dataclass(frozen=True)
class Report:
    """A page about a model, and what it is about for machines."""

    page: Page
    sections: list[str]  # names of the sections that it has, without those of every report
    reasons_to_stay: list[str]  # why the report must not leave the site; empty if it may
    left_out: list[str]  # what the report has no section about, and why


def gather(
    model: Subject,
    *,
    threshold: float | None = None,
    scores: Scores | None = None,
    sites: Sites | None = None,
    values: bool = False,
) -> Report:
    """Gather the facts about a model, and about rows and sites where they are known.

    The texts are in the language of `hushtable.language.speaking`. The threshold is the model's:
    NaN if its noise leaves none, None if it does not score. ``values`` also shows ranges and
    categories that were read off rows; the page always shows public ones.
    """
    counts, of_rows = model.counts, values_of_rows(model.counts.plan.schema)
    shown = values or not of_rows
    reasons = _reasons_to_stay(model, scores, sites, of_rows if shown else "")
    shows = bool(of_rows and shown) or (scores is not None and bool(scores.shows))
    words = _("Values of rows.")
    if shows:
        words = _("Values of rows, except those that the top of this page names.")
    left_out = [words, *_left_out(model, threshold, scores, sites, shown)]
    sections = [features_section(counts, scores, shown)]
    if scores is not None:
        sections.insert(0, scores_section(scores))
    if counts.ledger is not None:
        blocks = _privacy_blocks(counts, counts.ledger)
        sections.append(Section("privacy", _("Privacy"), [*blocks], _("for the privacy officer")))
    if sites is not None:
        sections.append(Section("sites", _("Sites"), sites.blocks, _("for the coordinator")))
    names = [section.name for section in sections]
    size = {N_("File"): f"{model.name} ({numerals(model.size)})"} if model.size else {}
    lines = size | {N_("Kind"): _(model.kind)} | plan_lines(counts.plan)
    lines |= counts_lines(counts, model.kind, threshold)
    about = LabelledValues({_(label): line for label, line in lines.items()})
    sections.append(Section("file", _("The file"), [about]))
    sections.append(Section("left-out", _("Not in this report"), [Items(left_out)]))
    notice = _("Keep this report where the rows are.")
    if not reasons:
        notice = _(
            "This report may go wherever %(name)s may go. It is based on counts with noise, and "
            "reveals nothing about the rows beyond these counts.",
            name=model.name,
        )
    page = Page(
        title=model.name,
        made_by=_("hushtable report") + f", {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        notice=notice,
        reasons=reasons,
        may_leave=not reasons,
        glance=_glance(model, scores, sites),
        sections=sections,
    )
    return Report(page, names, reasons, left_out)


def _glance(model: Subject, scores: Scores | None, sites: Sites | None) -> dict[str, str]:
    ledger = model.counts.ledger
    label = _("rows counted") if ledger is None else _("rows counted, estimated")
    # A second pass leaves out rows that lie apart: the first counted all.
    glance = {label: numeral(model.counts.plan.first_rows or model.counts.n_rows)}
    if scores is not None:
        glance[_("rows scored")] = numeral(scores.n_rows)
        if scores.n_outliers is not None:
            label = _("outliers, %(share)s%% of the rows scored", share=scores.flagged_share)
            glance[label] = numeral(scores.n_outliers)
    if ledger is not None:
        label = _("total epsilon for one person")
        if ledger.delta:
            delta = numerals(f"{rounded_up(ledger.delta):g}")
            label = _("total epsilon for one person (delta %(delta)s)", delta=delta)
        glance[label] = numerals(str(rounded_up(ledger.epsilon)))
    if sites is not None:
        glance[_("sites in the sum")] = numeral(sites.n)
    return glance


# --- the privacy officer's section ----------------------------------------------------------------


_STAYED = [
    N_("The rows, their values, and their exact number (a reader sees an estimate with noise)."),
    N_("Exact counts."),
    N_("How many values were missing or outside the plan."),
    N_("Scores, outliers and thresholds."),
    N_("The noise itself: the system's random generator made it, and no seed exists."),
]


def _privacy_blocks(counts: Counts, ledger: Ledger) -> Iterator[PageBlock]:
    yield Paragraph(describe_ledger(ledger), look="signed")
    yield Heading(_("What left the site"))
    yield Items(_left(counts, ledger))
    yield Heading(_("What was not released"))
    yield Items([_(text) for text in _STAYED])
    yield Heading(_("The ledger in numbers"))
    yield from ledger_blocks(ledger, counts)
    yield Heading(_("Counts and their noise"))
    standing_out = np.mean(counts.counts > 2.0 * counts.noise_sd)
    values = {
        "n": numeral(len(counts.counts)),
        "most": numeral(int(counts.counts.max())),
        "least": numeral(int(counts.counts.min())),
        "sd": numerals(f"{counts.noise_sd:,.4g}"),
        "share": numerals(f"{100.0 * standing_out:.1f}"),
    }
    yield Paragraph(
        [
            _("The %(n)s counts are from %(least)s to %(most)s.", **values),
            _(
                "The standard deviation of the noise is %(sd)s: %(share)s%% of the counts are "
                "above twice as much. If all cells were empty, 2.3%% would be.",
                **values,
            ),
        ]
    )


def _left(counts: Counts, ledger: Ledger) -> list[str]:
    numbers = {"n": numeral(len(counts.counts)), "tables": n_tables(counts.n_tables)}
    cells = _("%(n)s whole numbers in %(tables)s", **numbers)
    if ledger.period is not None:
        numbers["periods"] = str(ledger.period)
        cells = _(
            "%(n)s whole numbers in %(tables)s for each of %(periods)s periods, mixed from the "
            "periods so far",
            **numbers,
        )
    unmasked = sum(ledger.pool_of(share) is None for share in ledger.shares)
    left = []
    if ledger.pools:
        words = N_(
            "From each of %(k)s sites: %(cells)s, with a part of the noise, under masks that "
            "cancel only in the sum of their round."
        )
        left.append(_(words, k=len(ledger.shares) - unmasked, cells=cells))
    if len(ledger.shares) == 1 and unmasked:
        left.append(_("From the site: %(cells)s, each with its own noise.", cells=cells))
    elif unmasked:
        words = N_("From each of %(k)s sites: %(cells)s, each with its own noise.")
        left.append(_(words, k=unmasked, cells=cells))
    left.append(_("The contents of the ledger below, with random ids of the releases."))
    left.append(
        _(
            "The plan: names of the features, their public ranges and categories, and hash "
            "functions."
        )
    )
    return left


# --- what must stay, and what is not there --------------------------------------------------------


def _reasons_to_stay(
    model: Subject, scores: Scores | None, sites: Sites | None, of_rows: str
) -> list[str]:
    reasons = [_("It shows values of rows: %(what)s.", what=of_rows)] if of_rows else []
    if scores is not None:
        exact = _(
            "It contains exact totals of %(n)s rows: of scores, of missing values, and of values "
            "outside the plan.",
            n=numeral(scores.n_rows),
        )
        if model.counts.ledger is not None:
            exact += " " + _("The privacy of the release does not cover them.")
        reasons.append(exact)
    if scores is not None and scores.lowest is not None:
        listed = _("It lists single rows by number, with their scores.")
        if scores.lowest.explained:
            listed = _(
                "It lists single rows by number, with their scores and the features that lower "
                "them."
            )
        reasons.append(listed)
        if shows := scores.shows:
            reasons.append(_("It shows values of these rows: %(names)s.", names=and_words(shows)))
        if scores.values:
            reasons.append(_("It shows how the values of single columns are distributed."))
    if not model.counts.may_leave:
        reasons.append(
            _("It is based on exact counts: %(name)s must not leave either.", name=model.name)
        )
    elif model.kind == "detector":
        reasons.append(
            _("The threshold of %(name)s may be derived from rows of the site.", name=model.name)
        )
    if sites is not None and sites.exact:
        reasons.append(_("It shows the exact number of rows of each site."))
    return reasons


def _left_out(
    model: Subject, threshold: float | None, scores: Scores | None, sites: Sites | None, shown: bool
) -> list[str]:
    left_out = []
    if scores is None or scores.lowest is None:
        left_out.append(_("Numbers of rows."))
    if not shown:
        left_out.append(
            _(
                "Ranges and categories: they were read off rows and are values of rows (--values "
                "shows them)."
            )
        )
    if scores is None:
        why = _("no rows were given (hushtable report MODEL DATA)")
        if threshold is None:
            why = _(
                "a %(detector)s plan counts each feature separately and scores no row",
                detector=model.counts.detector,
            )
        left_out.append(_("Scores, outliers and drift: %(why)s.", why=why))
    else:
        if scores.drift is None:
            left_out.append(_("Drift: %(why)s.", why=_(scores.no_drift)))
        elif not scores.drift.features:
            left_out.append(
                _("Drift by feature: the tables of this plan do not separate the features.")
            )
        if scores.lowest is None:
            left_out.append(_("Single rows: none were requested (--rows)."))
        elif not scores.lowest.explained:
            left_out.append(
                _(
                    "Reasons for the lowest scores: the detector gives none; HushTable and "
                    "LSHiTables do."
                )
            )
    if model.counts.ledger is None:
        left_out.append(
            _(
                "Privacy: the counts are exact, have no ledger, and must not leave. hushtable "
                "release makes a release of a sketch, which may leave."
            )
        )
    if sites is None:
        left_out.append(_("Sites: no parts were given (--parts)."))
    return left_out
