"""Compare the expected gain of a round for a site with the actual gain, in 200 random rounds.

Each round takes a random labelled set, 500 to 20,000 of its rows, 3 to 20 sites, and a total
epsilon of .1 to 3 (uniform on a logarithmic scale). It scores one site, which is like the others
(alike), or has three outliers in ten rows (many cases), or has one of three clusters of the inliers
and its share of the outliers (case mix). The sites share one noise. The gain is the ROC-AUC of the
site's home model minus that of a model of its own rows; the expected gain is `Expectation.gain` for
its number of rows and T. Its table was fitted to 600 other rounds (--first 1000 --rounds 600).
"""

import itertools
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from hushtable.privacy import Design
from hushtable_bench.cases.joining import released_gains
from hushtable_bench.data import LabelledSet, load
from hushtable_bench.results import ResultTable
from hushtable_bench.runner import CaseRun, data_folder, progress

KINDS = ("alike", "many cases", "case mix")
ROWS, SITES, EPSILONS = (500, 20_000), (3, 20), (0.1, 3.0)
#: Least rows of a site, most rows of a site that differs, and its share of outliers.
FEWEST, MOST, CASES = 25, 2_000, 0.3
#: Limits of the classes of gains in which rounds are compared, and the accepted mean error.
BINS, ERROR = (-1.0, 0.0025, 0.01, 0.03, 0.08, 1.0), 0.05

Rows = NDArray[np.intp]
#: Kind of site, its rows, T, expected gain and spread, gain of a home model, and of the result.
Found = tuple[str, int, float, float, float, float, float]


class RandomRound(NamedTuple):
    """A random round: its set, the rows of all sites and of the scored site, and its terms."""

    data: LabelledSet
    own: Rows
    kind: str
    epsilon: float


def random_round(files: list[Path], seed: int) -> RandomRound | None:
    """Draw a round; None if its set is too small, or its site has too few outliers."""
    rng = np.random.default_rng(seed)
    found = load(files[int(rng.integers(len(files)))])
    n, sites, epsilon = (
        float(np.exp(rng.uniform(*np.log(ends)))) for ends in (ROWS, SITES, EPSILONS)
    )
    kind = KINDS[int(rng.integers(len(KINDS)))]
    if len(found.X) < n:
        return None
    rows = rng.permutation(len(found.X))[: int(n)]
    data = LabelledSet(found.name, np.nan_to_num(found.X[rows]), found.y[rows].astype(bool))
    own = _site(data, int(n / sites), kind, rng)
    if len(own) < FEWEST or not 3 <= data.y[own].sum() < len(own):
        return None
    return RandomRound(data, own, kind, round(epsilon, 2))


def _site(data: LabelledSet, k: int, kind: str, rng: np.random.Generator) -> Rows:
    """Return the rows of the site."""
    odd, usual = np.flatnonzero(data.y), np.flatnonzero(~data.y)
    if kind == "alike":
        return np.arange(k)
    k = min(k, MOST)
    if kind == "many cases":
        k = min(k, int(len(odd) / 2 / CASES), len(usual) // 2)
        cases = int(CASES * k)
        return np.concatenate([odd[:cases], usual[: k - cases]])
    Z = (data.X - data.X.mean(axis=0)) / (data.X.std(axis=0) + 1e-9)
    cluster = KMeans(3, n_init=2, random_state=0).fit_predict(Z[usual])
    mine = usual[cluster == np.bincount(cluster).argmax()]
    k = min(k, len(mine) // 2)
    return np.concatenate([mine[:k], odd[: max(3, k * len(odd) // len(data.y))]])


def advice(
    run: CaseRun, *, data: Path | None = None, rounds: int = 200, first: int = 0,
    quick: bool = False,
) -> None:  # fmt: skip
    """Use all sets below the FOLDER of --data: five minutes; --quick, ten rounds."""
    files = sorted(data_folder(data).rglob("*.npz"))
    seed, found = first, list[Found]()
    while len(found) < (10 if quick else rounds):
        drawn = random_round(files, seed)
        seed += 1
        if drawn is None:
            continue
        progress(f"{len(found) + 1}: {drawn.data.name}, {drawn.kind}")
        signal, gain = released_gains(drawn.data, drawn.own, drawn.epsilon, seed)
        n, k = len(drawn.data.X), len(drawn.own)
        expected, spread = Design(drawn.epsilon, 1e-6, n).expectation().gain(k, drawn.kind)
        found.append((drawn.kind, k, signal, expected, spread, gain[2], gain[0]))
    _report(run, found)
    run.figures |= {"rounds": found}


def _report(run: CaseRun, found: list[Found]) -> None:
    expected, spread, actual, result = (np.array([one[j] for one in found]) for j in (3, 4, 5, 6))
    lines = []
    for low, high in itertools.pairwise(BINS):
        some = (expected >= low) & (expected < high)
        if some.any():
            error = actual[some].std() / np.sqrt(some.sum())
            lines.append((f"{max(low, 0.0):g} to {min(high, 1.0):g}", str(int(some.sum())),
                          f"{expected[some].mean():+.4f}",
                          f"{actual[some].mean():+.4f} +- {error:.4f}"))  # fmt: skip
    run.say(ResultTable(("expected gain", "rounds", "expected, mean", "actual, mean"), lines))
    for kind in KINDS:
        some = np.array([one[0] == kind for one in found])
        if some.any():
            run.say(
                f"{kind}: {some.sum()} rounds, home model {actual[some].mean():+.4f} (expected "
                f"{expected[some].mean():+.4f}), result alone {result[some].mean():+.4f}"
            )
    off = float(np.abs(actual - expected).mean())
    run.hold("mean absolute error of the expected gain in ROC-AUC", off, "<=", ERROR)
    within = float((np.abs(actual - expected) <= 2.0 * spread).mean())
    run.hold("rounds within two expected standard deviations", within, ">=", 0.9)
