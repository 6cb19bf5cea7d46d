"""What a report says of rows: their scores and reasons, what is missing, how far they drifted."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.base import Counts
from hushtable.counts.sketch import Sketch
from hushtable.data.encoding import Codes
from hushtable.data.readers import Reader
from hushtable.errors import DataError, UsageError
from hushtable.plots import RankedOutliersDisplay, ScoreDisplay
from hushtable.report.lowest import LowestRows
from hushtable.report.reasons import Reasoned, explaining
from hushtable.scores.ranks import Ranks
from hushtable.scores.scorer import Scorer
from hushtable.streams import Drift, drift

__all__ = ["Scores", "passes", "score_rows"]

#: Rows that tell how far chance moves them.
_SAMPLED = 500
#: Features that are named as those that moved most.
_FURTHEST = 5


@dataclass(frozen=True)
class Scores:
    """Rows, as a model scores them.

    Attributes
    ----------
    source : str
        Where the rows are from.
    n_rows : int
        How many.
    n_outliers : int or None
        Those below the threshold; None where there is no threshold.
    threshold : float
        NaN if there is none.
    chosen : float or None
        Share of the rows that the threshold was set to flag; None if it is the model's.
    unit : str
        Of the scores.
    median : float
        Half of the rows score lower.
    display : ScoreDisplay
        Their distribution.
    flagged : ndarray of shape (3,), or None
        Share of the rows of all sites that score below the threshold, and two shares between
        which it lies; None where no ranks were given.
    lowest : LowestRows or None
        The lowest scores, where they were asked for.
    tally : ndarray of shape (n_features, 2), int64
        Rows in which a feature was missing; in which it was outside the plan.
    drift : Drift or None
        From the rows that the model counted.
    no_drift : str
        Why there is no drift.
    """

    source: str
    n_rows: int
    n_outliers: int | None
    threshold: float
    chosen: float | None
    unit: str
    median: float
    display: ScoreDisplay
    flagged: NDArray[np.float64] | None
    lowest: LowestRows | None
    tally: NDArray[np.int64]
    drift: Drift | None
    no_drift: str

    @property
    def lines(self) -> dict[str, str]:
        """What the scores come to."""
        lines = {"Rows": f"{self.n_rows:,} of {self.source}"}
        if self.n_outliers is not None:
            lines["Outliers"] = f"{self.n_outliers:,} ({self.n_outliers / self.n_rows:.2%})"
            lines["Threshold"] = f"{self.threshold:.4g} {self.unit}: rows below are outliers"
        if self.flagged is not None:
            share, low, high = (f"{100.0 * part:.3g}%" for part in self.flagged)
            between = "" if low == high else f" (between {low} and {high})"
            lines["Of all sites' rows"] = f"{share} are below the threshold{between}"
        lines["Median score"] = f"{self.median:.4g} {self.unit}"
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
        """What the drift comes to."""
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
    n_shown: int = 0,
    ranks: Ranks | None = None,
    n_jobs: int | None = None,
) -> Scores:
    """Score rows and compare them with those that the model counted; holds 8 bytes a row.

    Parameters
    ----------
    scorer : Scorer
        The model.
    threshold : float
        The model's; NaN if there is none.
    reader : Reader
        The rows; read as often as `passes` says.
    contamination : float, optional
        Flag this share of the rows instead of those below the model's threshold.
    n_shown : int, default=0
        How many of the lowest rows the report names, with the reasons for their scores.
    ranks : Ranks, optional
        How rare scores are among the rows of all sites.
    n_jobs : int, optional
        Threads.
    """
    parts = []
    tally = np.zeros((len(scorer.plan.schema), 2), np.int64)
    reasons, no_reasons = explaining(scorer, n_shown)
    batches: Iterator[tuple[Any, ...]] = (
        scorer.batches(reader, _scores_and_tally, n_jobs=n_jobs)
        if reasons is None
        else reasons.batches(reader, n_jobs=n_jobs)
    )
    for batch, counts, *_ in batches:
        parts.append(batch)
        tally += counts
    if not parts:
        raise DataError(f"{reader.source} has no rows: there is nothing to report")
    scores = np.concatenate(parts)
    if contamination is not None:
        threshold = float(np.percentile(scores, 100.0 * contamination))
    look: dict[str, Any] = {"threshold": threshold, "unit": scorer.plan.score.unit}
    lowest = None
    if n_shown:
        why = []
        if reasons is not None:
            why = [Reasoned.of(low, reasons.typical, len(tally)) for low in reasons.lowest]
        shown = RankedOutliersDisplay.of(scores, n_rows=n_shown, **look)
        lowest = LowestRows.of(shown, scorer, reader, ranks, why, no_reasons)
    flagged = None
    if ranks is not None and not math.isnan(threshold):
        at = np.array([threshold])
        flagged = np.append(ranks.of(at), ranks.between(at, np.zeros(1)))
    moved, reason = _drift(scorer, reader, len(scores), n_jobs)
    return Scores(
        source=reader.source,
        n_rows=len(scores),
        n_outliers=None if math.isnan(threshold) else int((scores < threshold).sum()),
        threshold=threshold,
        chosen=contamination,
        unit=scorer.plan.score.unit,
        median=float(np.median(scores)),
        display=ScoreDisplay.of(scores, **look),
        flagged=flagged,
        lowest=lowest,
        tally=tally,
        drift=moved,
        no_drift=reason,
    )


def _scores_and_tally(codes: Codes, scores: NDArray[np.float64]) -> tuple[Any, Any]:
    return scores, codes.tally


def passes(counted: Counts, n_shown: int) -> int:
    """Return how often `score_rows` reads the rows."""
    return 1 + (2 if not _why_no_drift(counted) else 0) + (n_shown > 0)


def _why_no_drift(counted: Counts) -> str:
    """Return why rows cannot be compared with these counts; empty if they can."""
    if not counted.adds:
        return "a local model mixes exact counts with noised ones: compare with the result"
    if counted.plan.first_counts is not None:
        return "the model's second pass counts dense rows only"
    return ""


def _drift(
    scorer: Scorer, reader: Reader, n_rows: int, n_jobs: int | None
) -> tuple[Drift | None, str]:
    """Return how far the rows lie from those counted, or why that cannot be told."""
    counted, reason = scorer.sketch, _why_no_drift(scorer.sketch)
    if reason:
        return None, reason
    try:
        sketch = Sketch.from_data(counted.plan, reader, n_jobs=n_jobs)
        step = -(-n_rows // _SAMPLED)
        return drift(counted, sketch, rows=reader.take(np.arange(0, n_rows, step))), ""
    except UsageError as error:
        return None, str(error)
