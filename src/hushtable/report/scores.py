"""What a report says of rows: their scores and reasons, what is missing, how far they drifted."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.encoding import Codes
from hushtable.errors import DataError, UsageError
from hushtable.plots import RankedOutliersDisplay, ScoreDisplay
from hushtable.privacy.local import LocalModel
from hushtable.privacy.release import Release
from hushtable.readers import Reader
from hushtable.report.reasons import Reasoned, explaining
from hushtable.scorer import Scorer
from hushtable.sketch import Sketch
from hushtable.streams import Drift, drift

__all__ = ["Scores", "score_rows", "why_no_drift"]

#: Features that are named as those that moved most.
_FURTHEST = 5
#: Rows of which a figure shows the reasons.
_PICTURED = 4


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
    ranked : RankedOutliersDisplay or None
        The lowest scores, where they were asked for.
    reasons : list of Reasoned
        Why these rows have them; empty if that cannot be told.
    no_reasons : str
        Why it cannot.
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
    ranked: RankedOutliersDisplay | None
    reasons: list[Reasoned]
    no_reasons: str
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
    def ranked_headers(self) -> list[str]:
        """Of `ranked_rows`."""
        return ["row", "score", *(["features that lower it most"] if self.reasons else [])]

    @property
    def ranked_rows(self) -> list[list[str]]:
        """A table row for each of the rows with the lowest scores, where they were asked for."""
        if self.ranked is None:
            return []
        pairs = zip(self.ranked.rows.tolist(), self.ranked.scores.tolist(), strict=True)
        table = [[f"{row:,}", f"{score:.4f}"] for row, score in pairs]
        for line, reasoned in zip(table, self.reasons, strict=False):
            line.append(reasoned.listed)
        return table

    @property
    def pictured(self) -> list[Reasoned]:
        """The first of the lowest rows, whose reasons a figure shows."""
        return [reasoned for reasoned in self.reasons if reasoned.display.features][:_PICTURED]

    @property
    def ranked_words(self) -> str:
        """The ranks, for those who do not see the figure."""
        return f"The {len(self.ranked_rows)} lowest scores; the table has them."

    @property
    def drift_lines(self) -> dict[str, str]:
        """The drift of all features together, and of those that moved most."""
        if self.drift is None:
            return {}
        lines = {"All together": f"{self.drift.overall:z.4f}"}
        known = {name: x for name, x in self.drift.features.items() if not math.isnan(x)}
        furthest = sorted(known, key=lambda name: known[name], reverse=True)[:_FURTHEST]
        if furthest:
            lines["Furthest by itself"] = ", ".join(
                f"{name} {known[name]:z.4f}" for name in furthest
            )
        return lines


def score_rows(
    scorer: Scorer,
    threshold: float,
    reader: Reader,
    *,
    contamination: float | None = None,
    n_shown: int = 0,
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
        The rows; read twice, unless `why_no_drift` has a reason.
    contamination : float, optional
        Flag this share of the rows instead of those below the model's threshold.
    n_shown : int, default=0
        How many of the lowest rows the report names, with the reasons for their scores.
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
    moved, reason = _drift(scorer, reader, n_jobs)
    return Scores(
        source=reader.source,
        n_rows=len(scores),
        n_outliers=None if math.isnan(threshold) else int((scores < threshold).sum()),
        threshold=threshold,
        chosen=contamination,
        unit=scorer.plan.score.unit,
        median=float(np.median(scores)),
        display=ScoreDisplay.of(scores, **look),
        ranked=RankedOutliersDisplay.of(scores, n_rows=n_shown, **look) if n_shown else None,
        reasons=[]
        if reasons is None
        else [Reasoned.of(low, reasons.typical, len(tally)) for low in reasons.lowest],
        no_reasons=no_reasons,
        tally=tally,
        drift=moved,
        no_drift=reason,
    )


def _scores_and_tally(codes: Codes, scores: NDArray[np.float64]) -> tuple[Any, Any]:
    return scores, codes.tally


def why_no_drift(counted: Sketch | Release | LocalModel) -> str:
    """Return why rows cannot be compared with these counts; empty if they can."""
    if isinstance(counted, LocalModel):
        return "a local model mixes exact counts with noised ones: compare with the result"
    if counted.plan.first_counts is not None:
        return "the model's second pass counts dense rows only"
    return ""


def _drift(scorer: Scorer, reader: Reader, n_jobs: int | None) -> tuple[Drift | None, str]:
    """Return how far the rows lie from those counted, or why that cannot be told."""
    counted, reason = scorer.sketch, why_no_drift(scorer.sketch)
    if reason or isinstance(counted, LocalModel):
        return None, reason
    try:
        return drift(counted, Sketch.from_data(counted.plan, reader, n_jobs=n_jobs)), ""
    except UsageError as error:
        return None, str(error)
