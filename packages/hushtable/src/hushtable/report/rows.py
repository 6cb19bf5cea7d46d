"""Rows in a report: their scores, the lowest of them with reasons, and how far they drifted."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.sketch import count_here
from hushtable.data.readers import Reader
from hushtable.data.schema import Feature, value_words
from hushtable.describe.drift import of_all_rows, why_no_drift
from hushtable.errors import DataError, UsageError
from hushtable.language import N_, _, ngettext, numerals
from hushtable.plots import RankedOutliersDisplay, ScoreDisplay
from hushtable.scores.details import RowDetails
from hushtable.scores.explain import Explainer
from hushtable.scores.finding import Finding
from hushtable.scores.outliers import Lowest, explained_rows, repair_words
from hushtable.scores.reasons import Reason, Reasons
from hushtable.scores.scorer import Ranks, Scorer
from hushtable.scores.usual import PassingSample, Usual
from hushtable.streams import Drift, drift

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True)
class RowsToShow:
    """Which single rows a report shows, and how much of them."""

    n: int = 0  # so many, those with the lowest scores
    values: bool = False  # whether to show the values that lower their scores
    kept: tuple[str, ...] = ()  # columns of these rows to show, too
    id: str | None = None  # that one of these which names the rows


NO_ROWS = RowsToShow()


@dataclass(frozen=True)
class NamedFeature:
    """A feature that lowers a row's score, in words."""

    feature: str
    share: float  # bits
    beside: str = ""  # the value compared with what is usual; empty without values


@dataclass(frozen=True)
class ReasonedRow:
    """Reasons of a low score: features, their shares, and the values if the report has them."""

    row: str  # its number
    shortfall: float  # bits that its score falls short of a typical one
    crowding: str  # how many similar rows a typical row has; empty for counts with noise
    named: list[NamedFeature]
    repair: str  # which columns to repair so that the row is not listed, and how far
    pictures: list[tuple[str, "Markup"]]  # the columns that lower the score most, as they are drawn

    @classmethod
    def of(
        cls, row: Finding, typical: float, usual: Usual | None, draw: Callable[[Reason], "Markup"]
    ) -> "ReasonedRow":
        """Return why one of the lowest rows has its score; ``draw`` returns a reason's picture."""
        named = [
            NamedFeature(
                reason.named,
                reason.share,
                "" if reason.phrase is None else reason.words.removeprefix(reason.feature),
            )
            for reason in row.reasons
        ]
        return cls(
            numerals(f"{row.row:,}"),
            typical - row.score,
            row.crowding,
            named,
            repair_words(row.why, usual, row.score),
            [(reason.feature, picture) for reason in row.reasons if (picture := draw(reason))],
        )

    @property
    def largest(self) -> float:
        """The largest share of a feature: the longest bar."""
        return max((one.share for one in self.named), default=0.0)


@dataclass(frozen=True)
class LowestRows:
    """The rows with the lowest scores, lowest first."""

    found: list[Finding]  # with their standard errors and ranks where these are known
    display: RankedOutliersDisplay  # their numbers, scores and standard errors
    reasons: list[ReasonedRow]  # why they have these scores; empty if the model gives no reasons
    no_reasons: str  # why it gives none
    values: bool = False  # whether the reasons show values
    among: str = ""  # the rows that values are compared with
    kept: Mapping[str, Sequence[str]] = field(default_factory=dict)  # further columns, as text
    id: str | None = None  # that one of these which names the rows

    @classmethod
    def of(
        cls,
        found: list[Finding],
        threshold: float,
        unit: str,
        shown: RowsToShow,
        reasons: Reasons | None,
        no_reasons: str,
    ) -> "LowestRows | None":
        """Return the rows with their picture; None if the report shows none."""
        if not shown.n:
            return None
        why = []
        if reasons is not None:
            typical, usual = reasons.explainer.typical, reasons.usual
            from hushtable.charts.reasons import Pictures  # with Jinja's library for markup

            draw = Pictures(reasons.features, usual).of
            why = [ReasonedRow.of(row, typical, usual, draw) for row in found]
        errors = np.array([math.nan if r.error is None else r.error for r in found])
        display = RankedOutliersDisplay(
            np.array([row.row for row in found]),
            np.array([row.score for row in found]),
            threshold=threshold,
            unit=unit,
            errors=None if np.isnan(errors).any() else errors,
        )
        kept = {name: [_text(row, name) for row in found] for name in shown.kept}
        usual = None if reasons is None else reasons.usual
        among = _("the counted rows") if usual is None else _(usual.among)
        return cls(found, display, why, no_reasons, shown.values, among, kept, shown.id)

    @property
    def ranked(self) -> bool:
        """Whether ranks are known."""
        return self.found[0].ranks is not None

    @property
    def crowded(self) -> bool:
        """Whether counts say how many more similar rows a typical row has."""
        return any(one.crowding for one in self.reasons)

    @property
    def shows(self) -> list[str]:
        """Values of these rows that the report shows, in words."""
        lowering = [_("the values that lower their scores")] if self.values and self.reasons else []
        return [*self._names, *self._others, *lowering]

    @property
    def _names(self) -> list[str]:
        return [] if self.id is None else [self.id]

    @property
    def _others(self) -> list[str]:
        return [name for name in self.kept if name != self.id]

    @property
    def headers(self) -> list[str]:
        """Of `rows`."""
        return [
            *self._names,
            _("row"),
            *self._others,
            _("score"),
            *([] if self.display.errors is None else [_("standard error")]),
            *([_("rank among all"), _("between")] if self.ranked else []),
            *([_("features that lower it most")] if self.reasons else []),
        ]

    @property
    def texts(self) -> tuple[int, ...]:
        """Columns, numbered from 1, that hold text."""
        first, others = len(self._names), len(self._others)
        kept = [*range(1, first + 1), *range(first + 2, first + 2 + others)]
        return (*kept, *([len(self.headers)] if self.reasons else []))

    @property
    def rows(self) -> list[list[str]]:
        """A table row for each of the rows, without its reasons."""
        return [
            [
                *(self.kept[name][k] for name in self._names),
                numerals(f"{row.row:,}"),
                *(self.kept[name][k] for name in self._others),
                numerals(f"{row.score:.4f}"),
                *([] if self.display.errors is None else [numerals(f"{row.error:.4f}")]),
                *row.rank_words,
            ]
            for k, row in enumerate(self.found)
        ]

    @property
    def lines(self) -> list[tuple[list[str], ReasonedRow | None]]:
        """The table rows, each with its reasons."""
        return list(itertools.zip_longest(self.rows, self.reasons))

    @property
    def scale(self) -> float:
        """Bits that the longest bar stands for: one scale for all rows."""
        return max((one.largest for one in self.reasons), default=0.0) or 1.0

    @property
    def words(self) -> str:
        """The scores, for those who do not see the figure."""
        return ngettext(
            "The score of this row; the table contains it.",
            "The scores of these %(n)s rows; the table contains them.",
            len(self.found),
        )


def _text(row: Finding, name: str) -> str:
    """Return the value of a further column of a row, as text; a dash where it is missing."""
    value = row.kept_values[name][0].as_py()
    # As it is in the data: no unit, and no number is shortened.
    return "\u2013" if value is None else value_words(Feature.categorical("text", ()), value)


#: Rows that show how far chance moves them.
_SAMPLED = 500
#: Features that are named as those that moved most.
_FURTHEST = 5


@dataclass(frozen=True)
class Scores:
    """Rows, as a model scores them."""

    source: str  # where the rows are from
    n_rows: int
    n_outliers: int | None  # those below the threshold; None where there is none
    threshold: float  # NaN if there is none
    chosen: float | None  # share of the rows that it was set to flag; None if it is the model's
    unit: str  # of the scores
    median: float
    display: ScoreDisplay  # the distribution of the scores
    moved: list[tuple[str, float]]  # features whose contributions verdicts moved, in bits
    #: Share of the rows of all sites that score below the threshold, and two shares between which
    #: it lies (3,); None where no ranks were given.
    flagged: NDArray[np.float64] | None
    lowest: LowestRows | None  # the lowest scores, where they were requested
    tally: NDArray[np.int64]  # (n_features, 2): rows with a value missing, or outside the plan
    drift: Drift | None  # from the rows that the model counted
    no_drift: str  # why there is no drift

    @property
    def lines(self) -> dict[str, str]:
        """The scores in sum."""
        n, unit = numerals(f"{self.n_rows:,}"), _(self.unit)
        lines = {_("Rows"): _("%(n)s rows of %(source)s", n=n, source=self.source)}
        if self.n_outliers is not None:
            share = numerals(f"{100.0 * self.n_outliers / self.n_rows:.2f}")
            flagged = numerals(f"{self.n_outliers:,}")
            lines[_("Outliers")] = _("%(n)s (%(share)s%%)", n=flagged, share=share)
            lines[_("Threshold")] = threshold_words(self.threshold, self.unit)
        if self.flagged is not None:
            lines[_("Rows of all sites")] = _flagged_words(self.flagged)
        lines[_("Median score")] = f"{numerals(f'{self.median:.4g}')} {unit}"
        if self.moved:
            lines[_("Changed by verdicts")] = "; ".join(
                f"{name} {numerals(f'{bits:.2g}')} {unit}" for name, bits in self.moved
            )
        return lines

    @property
    def words(self) -> str:
        """The distribution, for those who do not see the figure."""
        low, high = (numerals(f"{self.display.edges[k]:.4g}") for k in (0, -1))
        n = numerals(f"{self.n_rows:,}")
        values = {"n": n, "low": low, "high": high, "unit": _(self.unit)}
        if self.n_outliers is None:
            return _("Distribution of %(n)s scores from %(low)s to %(high)s %(unit)s.", **values)
        return _(
            "Distribution of %(n)s scores from %(low)s to %(high)s %(unit)s; %(k)s are below the "
            "threshold.",
            k=numerals(f"{self.n_outliers:,}"),
            **values,
        )

    @property
    def bin_headers(self) -> list[str]:
        """Of `bin_rows`."""
        outliers = [] if self.n_outliers is None else [_("outliers")]
        return [_("score from"), _("to"), _("rows"), *outliers]

    @property
    def bin_rows(self) -> list[list[str]]:
        """A table row for each bar that holds rows."""
        table = []
        edges = itertools.pairwise(self.display.edges.tolist())
        for (low, high), n in zip(edges, self.display.counts.tolist(), strict=True):
            row = [f"{low:.4g}", f"{high:.4g}", f"{n:,}"]
            if self.n_outliers is not None:
                row.append(f"{n if low < self.threshold else 0:,}")
            if n:
                table.append([numerals(text) for text in row])
        return table

    @property
    def drift_lines(self) -> dict[str, str]:
        """The drift of all features together, and of those that moved most."""
        if self.drift is None:
            return {}
        found = self.drift
        lines = {_("All features together"): _beside_chance(found.overall, found.level)}
        known = {name: x for name, x in found.features.items() if not math.isnan(x)}
        furthest = sorted(known, key=lambda name: known[name], reverse=True)[:_FURTHEST]
        if furthest:
            lines[_("Largest drift of one feature")] = "; ".join(
                f"{name} {_beside_chance(known[name], found.feature_levels[name])}"
                for name in furthest
            )
        return lines

    @property
    def drift_words(self) -> str:
        """The drift in sentences."""
        if self.drift is None:
            return ""
        beyond, n = self.drift.beyond_chance, len(self.drift.features)
        if self.drift.overall > self.drift.level:
            words = _("All features together, these rows drifted more than chance explains.")
        else:
            words = _("All features together, these rows drifted no more than chance explains.")
        if not n:
            return words
        # The share that a level leaves to chance.
        by_chance = math.ceil(n / 20)
        single = _(
            "Each feature alone, %(k)s of %(n)s drifted more; if nothing had changed, it would be "
            "about %(chance)s or fewer.",
            k=numerals(f"{len(beyond):,}"),
            n=numerals(f"{n:,}"),
            chance=numerals(f"{by_chance:,}"),
        )
        return f"{words} {single}"


def threshold_words(threshold: float, unit: str) -> str:
    """Return a threshold with what it means; NaN if there is none."""
    if math.isnan(threshold):
        return _("none: the counts are too noisy to derive one")
    value = f"{numerals(f'{threshold:.4g}')} {_(unit)}"
    return _("%(value)s: rows with a lower score are outliers", value=value)


def _flagged_words(flagged: NDArray[np.float64]) -> str:
    """Return which share of all sites' rows is below the threshold."""
    share, low, high = (numerals(f"{100.0 * part:.3g}") for part in flagged)
    if low == high:
        return _("%(share)s%% are below the threshold", share=share)
    return _(
        "%(share)s%% are below the threshold (between %(low)s%% and %(high)s%%)",
        share=share,
        low=low,
        high=high,
    )


def _beside_chance(drift: float, level: float) -> str:
    drifted, chance = numerals(f"{drift:z.4f}"), numerals(f"{level:.4f}")
    return _("%(drift)s (by chance up to %(level)s)", drift=drifted, level=chance)


#: Units of scores.
UNITS = N_("bits"), N_("rows")


def score_rows(
    scorer: Scorer,
    threshold: float,
    reader: Reader,
    *,
    contamination: float | None = None,
    shown: RowsToShow = NO_ROWS,
    ranks: Ranks | None = None,
    usual: Usual | None = None,
    n_jobs: int | None = None,
) -> Scores:
    """Score rows and compare them with those that the model counted; holds 8 bytes a row.

    The rows have the plan's features as columns, then those to show. They are read
    several times. Rows below the model's threshold, NaN if there is none, are flagged, or else the
    share ``contamination`` of the rows. The report lists the lowest rows that ``shown`` requests,
    with the reasons for their scores. ``ranks`` give how rare scores are among the rows of all
    sites. ``usual`` is what the model knows of the rows that it counted: values are compared with
    it, and with the rows scored if it knows nothing.
    """
    reasons, no_reasons = _reasons(scorer, shown, usual)
    details = _details(scorer, shown, ranks, reasons, usual)
    reader = replace(reader, keep=shown.kept)
    scores, tally, listed, reasons = _passed(details, reader, shown.n, n_jobs)
    if contamination is not None:
        threshold = float(np.percentile(scores, 100.0 * contamination))
    unit = scorer.plan.score.unit
    moved, reason = _drift(scorer, reader, len(scores), n_jobs)
    return Scores(
        source=reader.source,
        n_rows=len(scores),
        n_outliers=None if math.isnan(threshold) else int((scores < threshold).sum()),
        threshold=threshold,
        chosen=contamination,
        unit=unit,
        median=float(np.median(scores)),
        display=ScoreDisplay.of(scores, threshold=threshold, unit=unit),
        moved=_moved(scorer, reader, n_jobs),
        flagged=_flagged(details.ranks, threshold),
        lowest=LowestRows.of(listed, threshold, unit, shown, reasons, no_reasons),
        tally=tally,
        drift=moved,
        no_drift=reason,
    )


def _details(
    scorer: Scorer,
    shown: RowsToShow,
    ranks: Ranks | None,
    reasons: Reasons | None,
    usual: Usual | None,
) -> RowDetails:
    errors = scorer.plan.family.n_tables > 1  # one table gives none
    return RowDetails(
        scorer,
        shown.n + 1,
        errors=errors,
        ranks=ranks if errors else None,
        reasons=reasons,
        usual=usual,
        keep=shown.kept,
    )


def _passed(
    details: RowDetails, reader: Reader, n: int, n_jobs: int | None
) -> tuple[NDArray[np.float64], NDArray[np.int64], list[Finding], Reasons | None]:
    """Return all scores, the tally, the n lowest rows, and what found their reasons."""
    plan, reasons, lowest = details.scorer.plan, details.reasons, Lowest(n + 1)
    sample = PassingSample(len(plan.schema))
    unknown = reasons is not None and details.usual is None
    passing = sample.of(reader) if unknown else reader
    parts, tally, n_rows = [np.empty(0)], np.zeros(2, np.int64), 0
    for batch in details.batches(passing, lambda batch: batch, n_jobs=n_jobs):
        lowest.add(batch, n_rows)
        parts.append(batch.scores)
        tally = tally + batch.tally
        n_rows += len(batch.scores)
    if not n_rows:
        raise DataError(f"{reader.source} has no rows: there is nothing to report")
    if reasons is not None and unknown:
        reasons = reasons.beside(sample.usual(plan.schema, plan.context))
    return np.concatenate(parts), tally, explained_rows(lowest.rows, n, reasons), reasons


def _reasons(scorer: Scorer, shown: RowsToShow, usual: Usual | None) -> tuple[Reasons | None, str]:
    """Return what explains the lowest rows, or why nothing does."""
    if not shown.n:
        return None, N_("none were requested")
    try:
        return Reasons(scorer, values=shown.values, usual=usual), ""
    except UsageError as error:
        return None, str(error)


def _moved(scorer: Scorer, reader: Reader, n_jobs: int | None) -> list[tuple[str, float]]:
    """Return the features whose contributions to these rows' scores verdicts moved most."""
    if scorer.sketch.unlearned is scorer.sketch:
        return []
    learned, before = Explainer(scorer), Explainer(Scorer(scorer.sketch.unlearned))
    sizes = learned.moved_from(before, reader, n_jobs=n_jobs)
    most = np.argsort(-sizes, kind="stable")[:_FURTHEST]
    names = scorer.plan.schema.of_rows.names
    return [(names[j], float(sizes[j])) for j in most.tolist() if sizes[j] > 0.0]


def _flagged(ranks: Ranks | None, threshold: float) -> NDArray[np.float64] | None:
    """Return the rank of the threshold, and two that it lies between, where both are known."""
    if ranks is None or math.isnan(threshold):
        return None
    at = np.array([threshold])
    return np.append(ranks.of(at), ranks.between(at, np.zeros(1)))


def _drift(
    scorer: Scorer, reader: Reader, n_rows: int, n_jobs: int | None
) -> tuple[Drift | None, str]:
    """Return how far the rows lie from those counted, or why that is not known."""
    counted, reason = of_all_rows(scorer.sketch), why_no_drift(scorer.sketch)
    if reason:
        return None, reason
    try:
        sketch = count_here(counted.plan, reader, n_jobs=n_jobs)
        step = -(-n_rows // _SAMPLED)
        return drift(counted, sketch, rows=reader.take(np.arange(0, n_rows, step))), ""
    except UsageError as error:
        return None, str(error)
