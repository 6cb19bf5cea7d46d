"""Time the hash families: RS-Hash beside LSH iTables, and projections beside a matrix product.

Everything runs with one thread. The product is that of BLAS, in float64, of all rows with all
weights: the least that hashing by projections can cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from hushtable import LSHiTables, Sketch
from hushtable_bench.results import Promise, ResultTable
from hushtable_bench.runner import CaseRun, RowSource, progress, seconds
from hushtable_bench.systems import ACE, RotatedRSHash, RSHash
from hushtable_bench.systems.families import RandomProjection, SimHash

CASES = (RowSource.normal(100_000, 10), RowSource.normal(100_000, 100))
DETECTORS = (LSHiTables, RSHash, RotatedRSHash, ACE)
PEER = "LSHiTables"
REPEATS = 5


@dataclass(frozen=True)
class FamilyTiming:
    """Median seconds of one detector on one case; ``product`` is 0 without projections."""

    case: str
    detector: str
    fit: float
    count: float
    score: float
    product: float


def time_all(cases: Sequence[RowSource], repeats: int = REPEATS) -> list[FamilyTiming]:
    timings = []
    for case in cases:
        X = case.load().astype(np.float64)
        for make in DETECTORS:
            detector = make(random_state=0).fit(X)
            family, plan = detector.plan_.family, detector.plan_
            product = 0.0
            if isinstance(family, RandomProjection | SimHash):
                weights, rows = family.weight.astype(np.float64), np.ascontiguousarray(X.T)
                out = np.empty((len(weights), len(X)))
                product = seconds(lambda w=weights, r=rows, o=out: np.matmul(w, r, out=o), repeats)
            timings.append(
                FamilyTiming(
                    case.name,
                    make.__name__,
                    seconds(lambda m=make, x=X: m(random_state=0).fit(x), repeats),
                    seconds(lambda p=plan, x=X: Sketch.from_data(p, x), repeats),
                    seconds(lambda d=detector, x=X: d.score_samples(x), repeats),
                    product,
                )
            )
            progress(f"{case.name}: {make.__name__}")
    return timings


def times_peer(timings: Sequence[FamilyTiming], timing: FamilyTiming) -> float:
    """Return fit and score together, in units of `PEER`'s."""
    (peer,) = [t for t in timings if (t.case, t.detector) == (timing.case, PEER)]
    return (timing.fit + timing.score) / (peer.fit + peer.score)


def targets(timings: Sequence[FamilyTiming]) -> list[Promise]:
    found = []
    for t in timings:
        if t.detector == "RSHash":
            claim = f"{t.case}: RSHash fits and scores, times {PEER}"
            found.append(Promise(claim, times_peer(timings, t), "<=", 4.0, ".1f"))
        elif t.product:  # of the same order as the target, with the noise of a run
            claim = f"{t.case}: {t.detector} scores, times the matrix product"
            found.append(Promise(claim, t.score / t.product, "<=", 2.0, ".2f"))
    return found


def families(run: CaseRun, *, rows: int = 100_000, repeats: int = REPEATS) -> None:
    """Time the hash families beside one another and a matrix product."""
    with threadpool_limits(limits=1):
        found = time_all([RowSource.normal(rows, 10), RowSource.normal(rows, 100)], repeats)
    lines = [
        (
            t.case, t.detector, *(f"{1000 * s:.0f}" for s in (t.fit, t.count, t.score)),
            f"{times_peer(found, t):.1f}",
            f"{1000 * t.product:.0f}" if t.product else "",
            f"{t.score / t.product:.2f}" if t.product else "",
        )
        for t in found
    ]  # fmt: skip
    header = (
        "rows", "detector", "fit, ms", "count all rows, ms", "score, ms",
        f"fit + score, times {PEER}", "product, ms", "score / product",
    )  # fmt: skip
    run.say(f"Medians of {repeats}, one thread.")
    run.say(ResultTable(header, lines, text=2))
    run.targets += targets(found)
