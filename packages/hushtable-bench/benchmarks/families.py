"""Speed of the hash families: RS-Hash beside LSH iTables, projections beside a matrix product.

Everything with one thread. The product is that of BLAS, in float64, of all rows with all weights:
the least that hashing by projections can cost.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

import common
from common import Rows, Target, seconds
from hushtable import ACE, LSHiTables, RotatedRSHash, RSHash, Sketch
from hushtable.plans.families import RandomProjection, SimHash

CASES = (Rows.normal(100_000, 10), Rows.normal(100_000, 100))
DETECTORS = (LSHiTables, RSHash, RotatedRSHash, ACE)
PEER = "LSHiTables"
REPEATS = 5


@dataclass(frozen=True)
class Timing:
    """Median seconds of one detector on one case; ``product`` is 0 without projections."""

    case: str
    detector: str
    fit: float
    count: float
    score: float
    product: float


def time_all(cases: Sequence[Rows], repeats: int = REPEATS) -> list[Timing]:
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
                Timing(
                    case.name,
                    make.__name__,
                    seconds(lambda m=make, x=X: m(random_state=0).fit(x), repeats),
                    seconds(lambda p=plan, x=X: Sketch.from_data(p, x), repeats),
                    seconds(lambda d=detector, x=X: d.score_samples(x), repeats),
                    product,
                )
            )
            common.progress(f"{case.name}: {make.__name__}")
    return timings


def times_peer(timings: Sequence[Timing], timing: Timing) -> float:
    """Return fit and score together, in units of `PEER`'s."""
    (peer,) = [t for t in timings if (t.case, t.detector) == (timing.case, PEER)]
    return (timing.fit + timing.score) / (peer.fit + peer.score)


def table(timings: Sequence[Timing]) -> str:
    rows = [
        (
            t.case, t.detector, *(f"{1000 * s:.0f}" for s in (t.fit, t.count, t.score)),
            f"{times_peer(timings, t):.1f}",
            f"{1000 * t.product:.0f}" if t.product else "",
            f"{t.score / t.product:.2f}" if t.product else "",
        )
        for t in timings
    ]  # fmt: skip
    header = (
        "rows", "detector", "fit, ms", "count all rows, ms", "score, ms",
        f"fit + score, times {PEER}", "product, ms", "score / product",
    )  # fmt: skip
    return common.markdown_table(header, rows, text=2)


def targets(timings: Sequence[Timing]) -> list[Target]:
    found = []
    for t in timings:
        if t.detector == "RSHash":
            claim = f"{t.case}: RSHash fits and scores, times {PEER}"
            found.append(Target(claim, times_peer(timings, t), "<=", 4.0, ".1f"))
        elif t.product:  # near it: of the same order, whatever the noise of a run
            claim = f"{t.case}: {t.detector} scores, times the matrix product"
            found.append(Target(claim, t.score / t.product, "<=", 2.0, ".2f"))
    return found


def main(arguments: argparse.Namespace) -> int:
    with threadpool_limits(limits=1):
        timings = time_all(CASES)
    print(f"Medians of {REPEATS}, one thread.\n")
    print(table(timings))
    return common.finish(targets(timings))


if __name__ == "__main__":
    common.run(argparse.ArgumentParser(description=__doc__), main)
