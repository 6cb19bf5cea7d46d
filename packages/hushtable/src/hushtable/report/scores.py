"""Rows in a report: their scores and reasons, what is missing, how far they drifted."""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Counts
from hushtable.counts.sketch import Sketch
from hushtable.data.readers import Reader
from hushtable.errors import DataError, UsageError
from hushtable.plots import ScoreDisplay
from hushtable.report.lowest import NO_ROWS, LowestRows, RowsToShow
from hushtable.scores.details import Details, Scored
from hushtable.scores.distributions import Distributions
from hushtable.scores.explain import Explainer
from hushtable.scores.outliers import Lowest
from hushtable.scores.ranks import Ranks
from hushtable.scores.reasons import Reasons
from hushtable.scores.scorer import Scorer
from hushtable.scores.typical import Usual
from hushtable.streams import Drift, drift

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
    lowest: LowestRows | None  # the lowest scores, where they were asked for
    tally: NDArray[np.int64]  # (n_features, 2): rows with a value missing, or outside the plan
    drift: Drift | None  # from the rows that the model counted
    no_drift: str  # why there is no drift

    @property
    def lines(self) -> dict[str, str]:
        """The scores in sum."""
        lines = {"Rows": f"{self.n_rows:,} of {self.source}"}
        if self.n_outliers is not None:
            lines["Outliers"] = f"{self.n_outliers:,} ({self.n_outliers / self.n_rows:.2%})"
            lines["Threshold"] = f"{self.threshold:.4g} {self.unit}: rows below are outliers"
        if self.flagged is not None:
            share, low, high = (f"{100.0 * part:.3g}%" for part in self.flagged)
            between = "" if low == high else f" (between {low} and {high})"
            lines["Of all sites' rows"] = f"{share} are below the threshold{between}"
        lines["Median score"] = f"{self.median:.4g} {self.unit}"
        if self.moved:
            lines["Moved by verdicts"] = "; ".join(
                f"{name} {bits:.2g} {self.unit}" for name, bits in self.moved
            )
        return lines

    @property
    def words(self) -> str:
        """The distribution, for those who do not see the figure."""
        edges = self.display.edges
        said = f"Distribution of {self.n_rows:,} scores from {edges[0]:.4g} to {edges[-1]:.4g}"
        if self.n_outliers is None:
            return f"{said} {self.unit}."
        return f"{said} {self.unit}; {self.n_outliers:,} are below the threshold."

    @property
    def bin_headers(self) -> list[str]:
        """Of `bin_rows`."""
        return ["score from", "to", "rows", *([] if self.n_outliers is None else ["outliers"])]

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
                table.append(row)
        return table

    @property
    def drift_lines(self) -> dict[str, str]:
        """The drift of all features together, and of those that moved most."""
        if self.drift is None:
            return {}
        found = self.drift
        lines = {"All together": _beside(found.overall, found.level)}
        known = {name: x for name, x in found.features.items() if not math.isnan(x)}
        furthest = sorted(known, key=lambda name: known[name], reverse=True)[:_FURTHEST]
        if furthest:
            lines["Furthest by itself"] = "; ".join(
                f"{name} {_beside(known[name], found.feature_levels[name])}" for name in furthest
            )
        return lines

    @property
    def drift_words(self) -> str:
        """The drift in sentences."""
        if self.drift is None:
            return ""
        beyond, n = self.drift.beyond_chance, len(self.drift.features)
        further = "further" if self.drift.overall > self.drift.level else "no further"
        words = f"All together, these rows lie {further} from those counted than chance explains."
        if not n:
            return words
        # The share that a level leaves to chance.
        by_chance = math.ceil(n / 20)
        return (
            f"{words} By themselves, {len(beyond):,} of {n:,} features lie further; where nothing "
            f"changed, about {by_chance:,} would, or fewer."
        )


def _beside(drift: float, level: float) -> str:
    return f"{drift:z.4f} (by chance up to {level:.4f})"


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

    The rows have the plan's features as columns, then those to be ``shown``, too. They are read as
    often as `passes` says. Rows below the model's threshold, NaN if there is
    none, are flagged, or else the share ``contamination`` of the rows. The report names the lowest
    that are to be ``shown``, with the reasons for their scores. ``ranks`` give how rare scores are
    among the rows of all sites. ``usual`` is what the model knows of the rows that it counted:
    values are put beside it, and beside the rows scored if it knows nothing.
    """
    reasons, no_reasons = _reasons(scorer, shown, usual)
    details = _details(scorer, shown, ranks, reasons)
    reader, lowest = replace(reader, keep=shown.kept), Lowest(shown.n)
    scores, tally = _passed(details.batches(reader, lambda batch: batch, n_jobs=n_jobs), lowest)
    if not len(scores):
        raise DataError(f"{reader.source} has no rows: there is nothing to report")
    if contamination is not None:
        threshold = float(np.percentile(scores, 100.0 * contamination))
    unit, among = scorer.plan.score.unit, details.distributions
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
        lowest=LowestRows.of(lowest.rows, threshold, unit, shown, reasons, no_reasons, among),
        tally=tally,
        drift=moved,
        no_drift=reason,
    )


def _details(
    scorer: Scorer, shown: RowsToShow, ranks: Ranks | None, reasons: Reasons | None
) -> Details:
    errors = scorer.plan.family.n_tables > 1  # one table gives none
    among = Distributions(scorer.plan.schema) if reasons is not None and shown.values else None
    ranked = ranks if errors else None
    return Details(scorer, shown.n, False, errors, ranked, reasons, among, shown.kept)


def _passed(
    batches: Iterable[Scored], lowest: Lowest
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return all scores, and the tally; the lowest rows are kept."""
    parts, tally, n_rows = [np.empty(0)], np.zeros(2, np.int64), 0
    for batch in batches:
        lowest.add(batch, n_rows)
        parts.append(batch.scores)
        tally = tally + batch.tally
        n_rows += len(batch.scores)
    return np.concatenate(parts), tally


def _reasons(scorer: Scorer, shown: RowsToShow, usual: Usual | None) -> tuple[Reasons | None, str]:
    """Return what explains the lowest rows, or why nothing does."""
    if not shown.n:
        return None, "nobody asked for single rows"
    try:
        known = None if usual is None else usual.values
        return Reasons(scorer, values=shown.values, usual=known), ""
    except UsageError as error:
        return None, str(error)


def _moved(scorer: Scorer, reader: Reader, n_jobs: int | None) -> list[tuple[str, float]]:
    """Return the features whose contributions to these rows' scores verdicts moved most."""
    if scorer.sketch.unlearned is scorer.sketch:
        return []
    learned, before = Explainer(scorer), Explainer(Scorer(scorer.sketch.unlearned))
    sizes = learned.moved_from(before, reader, n_jobs=n_jobs)
    most = np.argsort(-sizes, kind="stable")[:_FURTHEST]
    names = scorer.plan.schema.names
    return [(names[j], float(sizes[j])) for j in most.tolist() if sizes[j] > 0.0]


def _flagged(ranks: Ranks | None, threshold: float) -> NDArray[np.float64] | None:
    """Return the rank of the threshold, and two that it lies between, where both are known."""
    if ranks is None or math.isnan(threshold):
        return None
    at = np.array([threshold])
    return np.append(ranks.of(at), ranks.between(at, np.zeros(1)))


def passes(counted: Counts) -> int:
    """Return how often `score_rows` reads the rows."""
    return (1 if why_no_drift(counted) else 3) + (counted.unlearned is not counted)


def why_no_drift(counted: Counts) -> str:
    """Return why rows cannot be compared with these counts; empty if they can."""
    if not counted.adds:
        return "a local model mixes exact counts with noised ones: compare with the result"
    if counted.plan.first_noise_sd is not None:
        return "the model's second pass counts dense rows only, and the first has noise"
    return ""


def of_all_rows(counted: Counts) -> Counts:
    """Return the counts to compare rows with: of two passes, the first."""
    counted = counted.unlearned
    return counted.first_pass() if isinstance(counted, Sketch) else counted


def _drift(
    scorer: Scorer, reader: Reader, n_rows: int, n_jobs: int | None
) -> tuple[Drift | None, str]:
    """Return how far the rows lie from those counted, or why that is not known."""
    counted, reason = of_all_rows(scorer.sketch), why_no_drift(scorer.sketch)
    if reason:
        return None, reason
    try:
        sketch = Sketch.from_data(counted.plan, reader, n_jobs=n_jobs)
        step = -(-n_rows // _SAMPLED)
        return drift(counted, sketch, rows=reader.take(np.arange(0, n_rows, step))), ""
    except UsageError as error:
        return None, str(error)
