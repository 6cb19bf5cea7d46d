"""Rows in a report: their scores, the lowest of them with reasons, and how far they drifted."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.sketch import count_here
from hushtable.data.readers import Reader, no_rows
from hushtable.describe.plan import threshold_words
from hushtable.display import Heading, LabelledValues, Paragraph
from hushtable.errors import UsageError
from hushtable.language import N_, _, numerals, percents
from hushtable.plots import binned
from hushtable.report.page import Figures, PageBlock, RowList, Section
from hushtable.scores.explain import Explainer
from hushtable.scores.outliers import Outliers, Search
from hushtable.scores.scorer import Ranks, Scorer
from hushtable.scores.usual import Usual
from hushtable.streams import Drift, drift, of_all_rows, why_no_drift

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True)
class RowsToShow:
    """Which single rows a report shows, and how much of them."""

    n: int = 0  # so many, those with the lowest scores
    values: bool = False  # whether to show the values that lower their scores
    kept: tuple[str, ...] = ()  # columns of these rows to show, too


NO_ROWS = RowsToShow()
#: Rows that show how far chance moves them.
_SAMPLED = 500
#: Features that are named as those that moved most.
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
    chosen: float | None  # share of the rows that it was set to flag; None if it is the model's
    unit: str  # of the scores
    moved: list[tuple[str, float]]  # features whose contributions verdicts moved, in bits
    #: Share of the rows of all sites that score below the threshold, and two shares between which
    #: it lies (3,); None where no ranks were given.
    flagged: NDArray[np.float64] | None
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
    reader = replace(reader, keep=shown.kept)
    parts, tally = [np.empty(0)], np.zeros((len(scorer.plan.schema), 2), np.int64)
    for codes, scores_of in scorer.mapped(reader, scorer.scored, n_jobs):
        parts.append(scores_of)
        tally += codes.tally
    scores = np.concatenate(parts)
    if not len(scores):
        raise no_rows(reader)
    lowest = None
    if shown.n:
        search = Search(scorer, shown.n, keep=shown.kept, usual=usual, ranks=ranks)
        lowest = search.find(reader, n_jobs=n_jobs)
    if contamination is not None:
        threshold = float(np.percentile(scores, 100.0 * contamination))
    flagged = None
    if ranks is not None and not math.isnan(threshold):
        at = np.array([threshold])
        flagged = np.append(ranks.of(at), ranks.between(at, np.zeros(1)))
    drifted, no_drift = _drift(scorer, reader, len(scores), n_jobs)
    return Scores(
        source=reader.source,
        scores=scores,
        threshold=threshold,
        chosen=contamination,
        unit=scorer.plan.score.unit,
        moved=_moved(scorer, reader, n_jobs),
        flagged=flagged,
        lowest=lowest,
        values=shown.values,
        tally=tally,
        drift=drifted,
        no_drift=no_drift,
    )


def _moved(scorer: Scorer, reader: Reader, n_jobs: int | None) -> list[tuple[str, float]]:
    if scorer.sketch.unlearned is scorer.sketch:
        return []
    learned, before = Explainer(scorer), Explainer(Scorer(scorer.sketch.unlearned))
    sizes = learned.moved_from(before, reader, n_jobs=n_jobs)
    most = np.argsort(-sizes, kind="stable")[:_FURTHEST]
    names = scorer.plan.schema.of_rows.names
    return [(names[j], float(sizes[j])) for j in most.tolist() if sizes[j] > 0.0]


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


# --- the section ----------------------------------------------------------------------------------


def scores_section(scores: Scores, noisy: bool) -> Section:
    """Return the section on the scores; ``noisy`` is whether the model's counts have noise."""
    if scores.n_outliers is None:
        threshold = _(
            "The noise in the counts is too large to derive a threshold from them, so the report "
            "calls no row an outlier; --contamination 0.05 flags the lowest 5%% of the rows."
        )
    elif scores.chosen is not None:
        share = percents(f"{round(100.0 * scores.chosen, 9):g}")
        threshold = _("The threshold is set to flag %(share)s of these rows.", share=share)
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
        *([] if scores.drift is None else _drift_blocks(scores.drift, noisy)),
    ]
    return Section("scores", _("Scores"), blocks, _("for the analyst"))


def _distribution(scores: Scores) -> tuple["Markup", str]:
    from hushtable.charts.values import ValueChart  # with Jinja's library for markup

    bins = min(max(10, round(scores.n_rows**0.5)), _MOST_BARS)
    counts, edges = binned(scores.scores, scores.threshold, bins)
    low, high = edges[0], edges[-1]
    ends = numerals(f"{low:.4g}"), numerals(f"{high:.4g}")
    values = {"n": numerals(f"{scores.n_rows:,}"), "low": ends[0], "high": ends[1]}
    values["unit"] = _(scores.unit)
    words = _("Distribution of %(n)s scores from %(low)s to %(high)s %(unit)s.", **values)
    at, text = None, ""
    if scores.n_outliers is not None:
        at = (scores.threshold - low) / (high - low)
        text = _("threshold") + " " + numerals(f"{scores.threshold:.4g}")
        words = _(
            "Distribution of %(n)s scores from %(low)s to %(high)s %(unit)s; %(k)s are below the "
            "threshold.",
            k=numerals(f"{scores.n_outliers:,}"),
            **values,
        )
    return ValueChart(counts, at, text, ends, words=words).svg, words


def _totals(scores: Scores) -> dict[str, str]:
    n, unit = numerals(f"{scores.n_rows:,}"), _(scores.unit)
    lines = {_("Rows"): _("%(n)s rows of %(source)s", n=n, source=scores.source)}
    if scores.n_outliers is not None:
        flagged, share = numerals(f"{scores.n_outliers:,}"), scores.flagged_share
        lines[_("Outliers")] = _("%(n)s (%(share)s%%)", n=flagged, share=share)
        lines[_("Threshold")] = threshold_words(scores.threshold, scores.unit)
    if scores.flagged is not None:
        lines[_("Rows of all sites")] = _flagged_words(scores.flagged)
    lines[_("Median score")] = f"{numerals(f'{np.median(scores.scores):.4g}')} {unit}"
    if scores.moved:
        lines[_("Changed by verdicts")] = "; ".join(
            f"{name} {numerals(f'{bits:.2g}')} {unit}" for name, bits in scores.moved
        )
    return lines


def _flagged_words(flagged: NDArray[np.float64]) -> str:
    share, low, high = (numerals(f"{100.0 * part:.3g}") for part in flagged)
    if low == high:
        return _("%(share)s%% are below the threshold", share=share)
    return _(
        "%(share)s%% are below the threshold (between %(low)s%% and %(high)s%%)",
        share=share,
        low=low,
        high=high,
    )


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


def _drift_blocks(found: Drift, noisy: bool) -> Iterator[PageBlock]:
    if noisy:
        chance = _(
            "If nothing has changed, it is close to 0, and chance and noise exceed the level in "
            "parentheses in at most one of twenty cases."
        )
    else:
        chance = _(
            "If nothing has changed, it is close to 0, and chance exceeds the level in parentheses "
            "in at most one of twenty cases."
        )
    yield Heading(_("Drift"))
    yield Paragraph(
        [
            _(
                "Drift is the distance between the distributions of these rows and of the counted "
                "rows: 0 means the same distribution, 1 means no cell in common."
            ),
            chance,
            _("For the rows that the model counted itself, it is below 0."),
        ]
    )
    words = [_("All features together, these rows drifted no more than chance explains.")]
    if found.overall > found.level:
        words = [_("All features together, these rows drifted more than chance explains.")]
    if n := len(found.features):
        words.append(
            _(
                "Each feature alone, %(k)s of %(n)s drifted more; if nothing had changed, it would "
                "be about %(chance)s or fewer.",
                k=numerals(f"{len(found.beyond_chance):,}"),
                n=numerals(f"{n:,}"),
                # The share that a level leaves to chance.
                chance=numerals(f"{math.ceil(n / 20):,}"),
            )
        )
    yield Paragraph(words, look="strong")
    lines = {_("All features together"): _beside_chance(found.overall, found.level)}
    known = {name: x for name, x in found.features.items() if not math.isnan(x)}
    if furthest := sorted(known, key=lambda name: known[name], reverse=True)[:_FURTHEST]:
        lines[_("Largest drift of one feature")] = "; ".join(
            f"{name} {_beside_chance(known[name], found.feature_levels[name])}" for name in furthest
        )
    yield LabelledValues(lines)


def _beside_chance(drift: float, level: float) -> str:
    drifted, chance = numerals(f"{drift:z.4f}"), numerals(f"{level:.4f}")
    return _("%(drift)s (by chance up to %(level)s)", drift=drifted, level=chance)
