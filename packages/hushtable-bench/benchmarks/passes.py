"""What a second pass and novelty detection cost, out of one run's timings.

Novelty detection is held to k nearest neighbours as well, which detect as accurately among clean
rows: both score the same new rows, in turns.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from sklearn.neighbors import NearestNeighbors

import common
from common import Target
from contestants import DEFAULT, NOVELTY, ONE_PASS
from hushtable import HushTable

COLUMNS, NEIGHBOURS = 10, 5


class Timed(Protocol):
    """What is read of a timing: seconds of fit and score in each round, none if extrapolated."""

    data: str
    detector: str
    each: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Neighbours:
    """Median seconds to score a new row, after a fit of ``rows`` rows."""

    rows: int
    columns: int
    new: int
    neighbours: float
    novelty: float

    @property
    def ratio(self) -> float:
        return self.neighbours / self.novelty


def time_neighbours(new: int, repeats: int, rows: int) -> Neighbours:
    """Let k nearest neighbours and novelty detection score the same new rows, in turns."""
    common.progress(f"{rows:,} rows: {NEIGHBOURS} nearest neighbours of {new:,} new rows")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, COLUMNS), dtype=np.float32)
    unseen = rng.standard_normal((new, COLUMNS), dtype=np.float32)
    detector = HushTable(novelty=True, random_state=0, n_jobs=1).fit(X)
    nearest = NearestNeighbors(n_neighbors=NEIGHBOURS, n_jobs=1).fit(X)
    times = common.in_turns(
        {
            "neighbours": lambda: nearest.kneighbors(unseen)[0].mean(axis=1),
            "novelty": lambda: detector.score_samples(unseen),
        },
        repeats,
    )
    medians = {name: statistics.median(seconds) / new for name, seconds in times.items()}
    return Neighbours(rows, COLUMNS, new, **medians)


# --- tables and targets -----------------------------------------------------------------------


def _ratios(timings: Sequence[Timed], one: str, other: str, which: int) -> dict[str, float]:
    """Return, for each case that both were timed on, the time of one over the other's.

    It is the median over the rounds: in a round they are neighbours, so that what slows the
    machine for a while slows both alike. ``which`` is 0 for fit, 1 for score.
    """
    found = {
        # The first of several numbers of tables.
        name: {t.data: t.each for t in reversed(timings) if t.detector == name and t.each}
        for name in (one, other)
    }
    return {
        # Who has used up its time leaves, so that the rounds of both are the first ones.
        data: statistics.median(
            a[which] / b[which] for a, b in zip(each, found[other][data], strict=False)
        )
        for data, each in found[one].items()
        if data in found[other]
    }


def _comparisons(timings: Sequence[Timed]) -> Iterator[tuple[str, dict[str, float]]]:
    for which, method in enumerate(("fit", "score")):
        yield f"{method}, two passes, times one", _ratios(timings, DEFAULT, ONE_PASS, which)
    for which, method in enumerate(("fit", "score")):
        yield f"{method}, novelty, times two passes", _ratios(timings, NOVELTY, DEFAULT, which)


def table(timings: Sequence[Timed], nearest: Neighbours | None = None) -> str:
    """Lay out the ratios: a row a case, and a line on nearest neighbours below."""
    columns = dict(_comparisons(timings))
    cases = dict.fromkeys(data for ratios in columns.values() for data in ratios)
    rows = [
        (data, *(f"{ratios[data]:.2f}" if data in ratios else "" for ratios in columns.values()))
        for data in sorted(cases, key=list(dict.fromkeys(t.data for t in timings)).index)
    ]
    found = common.markdown_table(("data", *columns), rows)
    if nearest is None:
        return found
    return (
        f"{found}\n\nAfter {nearest.rows:,} rows of {nearest.columns}, a new row takes "
        f"{NEIGHBOURS} nearest neighbours (scikit-learn's, one thread) "
        f"{1e6 * nearest.neighbours:,.0f} µs, and novelty detection "
        f"{1e6 * nearest.novelty:.2f} µs, each of {nearest.new:,}."
    )


def targets(timings: Sequence[Timed], nearest: Neighbours | None = None) -> list[Target]:
    """Hold two passes to one, and novelty detection to two passes and to nearest neighbours."""
    found = []
    ratios = dict(_comparisons(timings))
    for what, bound in (
        ("fit, two passes, times one", 1.7),
        ("score, novelty, times two passes", 1.6),
    ):
        if cases := ratios[what]:
            worst = max(cases, key=cases.__getitem__)
            claim = f"HushTable: {what}, at most ({worst})"
            found.append(Target(claim, cases[worst], "<=", bound, ".2f"))
    if cases := ratios["score, two passes, times one"]:
        worst = max(cases, key=cases.__getitem__)
        claim = "HushTable: score, two passes, times one, median of the cases"
        claim += f" (at most {cases[worst]:.2f}, {worst})"
        found.append(Target(claim, statistics.median(cases.values()), "<=", 1.03, ".3f"))
    if nearest is not None:
        claim = f"HushTable, novelty: score after {nearest.rows:,} rows, times nearest neighbours"
        found.append(Target(claim, nearest.ratio, ">=", 20.0, ".0f"))
    return found
