"""The paper's systems and experiments, step by step."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from threadpoolctl import threadpool_limits

from hushtable.counts.sketch import Sketch
from hushtable.data.encoding import Encoder
from hushtable.detectors import HushTable, LSHiTables
from hushtable.plans.plan import Plan
from hushtable.privacy.mechanisms import add_noise
from hushtable_bench.baselines import LODA, LSHiForest, NeighbourEnsemble
from hushtable_bench.data import LabelledSet, auc, auc_and_ap
from hushtable_bench.results import Row, Step
from hushtable_bench.systems import ACE, RotatedRSHash, RSHash


def _neighbours(measure: Any, seed: int) -> NeighbourEnsemble:
    return NeighbourEnsemble(measure=measure, random_state=seed)


@dataclass(frozen=True)
class PaperSystem:
    """A detector with the paper's settings (section 4, Parameter settings)."""

    name: str
    make: Callable[[int], Any]
    #: Rows above which only `FEW` seeds are run: neighbours take minutes there, and the mean of
    #: 100 samples of 1,000 rows hardly varies.
    limit: int | None = None
    largest: int | None = None  # rows above which it does not run at all

    #: Seeds for sets above ``limit``.
    FEW = 2

    def seeds(self, rows: int, seeds: int) -> range:
        """Return the seeds to run on a set of ``rows`` rows."""
        if self.largest is not None and rows > self.largest:
            return range(0)
        return range(seeds if self.limit is None or rows <= self.limit else min(seeds, self.FEW))


#: The paper's eight systems, in its order; settings that it omits are those that reproduce it.
SYSTEMS = (
    PaperSystem("LSH iTables", lambda seed: LSHiTables(random_state=seed)),
    PaperSystem("RS-H", lambda seed: RSHash(random_state=seed)),
    PaperSystem("iForest", lambda seed: IsolationForest(random_state=seed)),
    PaperSystem("LSHiForest", lambda seed: LSHiForest(random_state=seed)),
    PaperSystem("EnsKNNW", partial(_neighbours, "distance"), limit=40_000),
    PaperSystem("EnsLOF", partial(_neighbours, "reachability"), limit=40_000),
    PaperSystem("LODA", lambda seed: LODA(max_features="all", random_state=seed)),
    PaperSystem("ACE", lambda seed: ACE(random_state=seed)),
)
#: Systems that this project adds, and two systems with the settings of their own papers.
OURS = (
    PaperSystem("HushTable", lambda seed: HushTable(random_state=seed)),
    PaperSystem("RotatedRSHash", lambda seed: RotatedRSHash(random_state=seed)),
    PaperSystem("LSHiForest, l1", lambda seed: LSHiForest(metric="l1", random_state=seed)),
    PaperSystem("LODA, sparse", lambda seed: LODA(random_state=seed)),
    PaperSystem("EnsLOF, relative", partial(_neighbours, "lof"), largest=10_000),
)


@cache
def _warm_up(system: PaperSystem) -> None:
    """Compile or load the system's kernels, so that this is in no run's time."""
    rows = np.random.default_rng(0).normal(size=(300, 3))
    system.make(0).fit(rows).score_samples(rows)


def run(system: PaperSystem, data: LabelledSet, seed: int) -> dict[str, float]:
    """Fit and score every row with one thread; return ROC-AUC, AP, and the seconds together."""
    _warm_up(system)
    model = system.make(seed)
    with threadpool_limits(limits=1):
        start = time.perf_counter()
        model.fit(data.X)
        # For their threshold, the baselines score the rows of fit in fit.
        scores = model.scores_ if hasattr(model, "scores_") else model.score_samples(data.X)
        seconds = time.perf_counter() - start
    return auc_and_ap(data.y, scores) | {"seconds": seconds}


#: Figure 1: medical sets, as in the paper; share of the outliers that the participant holds,
#: and of the inliers.
LOCAL_SETS = ("BreastW", "Cardio", "Thyroid")
SHARE_OF_OUTLIERS = 0.9
SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
#: Figure 2: per-table epsilons, and the sets; ACE is left out if the paper leaves it out.
EPSILONS = (0.001, 0.002, 0.003, 0.004, math.inf)
NOISE_SETS = ("BreastW", "Cardio", "Mnist", "Pendigits")
WITHOUT_ACE = ("BreastW", "Cardio")
#: Table 4.
PARTICIPANTS = (2, 4, 6, 8, 10)
EPSILON_OF_PARTICIPANTS = 0.01
PARTICIPANT_SETS = ("BreastW", "Cardio")

#: The mergeable systems, and the detectors that plans are drawn for.
_DETECTORS = {"LSH iTables": "lsh_itables", "RS-H": "rs_hash", "ACE": "ace"}
#: Rows that a participant samples for each table at most.
_SAMPLE = 1000


def steps(data: LabelledSet, experiments: Sequence[str], seeds: int) -> Iterator[Step]:
    """Yield the steps of the given experiments on one set."""
    for name in experiments:
        yield from EXPERIMENTS[name](data, seeds)


# --- Tables 2 and 3 -----------------------------------------------------------------------------


def _central(data: LabelledSet, seeds: int) -> Iterator[Step]:
    for system in (*SYSTEMS, *OURS):
        for seed in system.seeds(len(data.X), seeds):
            yield Step("central", data.name, system.name, seed, partial(_run, system, data, seed))


def _run(system: PaperSystem, data: LabelledSet, seed: int) -> list[Row]:
    return [{"system": system.name} | run(system, data, seed)]


# --- Figure 1 -----------------------------------------------------------------------------------


def _local(data: LabelledSet, seeds: int) -> Iterator[Step]:
    if data.name in LOCAL_SETS:
        for seed in range(seeds):
            yield Step("local", data.name, "all", seed, partial(_local_rows, data, seed))


def _local_rows(data: LabelledSet, seed: int) -> list[Row]:
    rows: list[Row] = []
    for share in SHARES:
        local = _participant(data, share, seed)
        rest = np.setdiff1d(np.arange(len(data.X)), local)
        forest = IsolationForest(random_state=seed).fit(data.X[local])
        loda = LODA(max_features="all", random_state=seed).fit(data.X[local])
        scores = {
            "iForest": forest.score_samples(data.X),
            "LODA": loda.score_samples(data.X),
            "LSH iTables": _merged(data, [local, rest], seed),
        }
        rows += [
            {"system": name, "setting": float(len(local)), "auc": auc(data.y, values)}
            for name, values in scores.items()
        ]
    return rows


def _participant(data: LabelledSet, share: float, seed: int) -> NDArray[np.int64]:
    """Return the rows of a participant with most of the outliers and a share of the rest."""
    rng = np.random.default_rng(seed)
    outliers, inliers = np.flatnonzero(data.y), np.flatnonzero(~data.y)
    mine = rng.permutation(outliers)[: round(SHARE_OF_OUTLIERS * len(outliers))]
    # Each larger share has the same inliers and more.
    others = rng.permutation(inliers)[: max(1, round(share * len(inliers)))]
    return np.sort(np.concatenate([mine, others]))


def _merged(data: LabelledSet, parts: list[NDArray[np.int64]], seed: int) -> NDArray[np.float64]:
    """Score all rows by the participants' merged LSH iTables."""
    plan = papers_plan(data, "LSH iTables", len(data.X), seed)
    counts = sum(local_counts(plan, data, parts, seed))
    codes = Encoder(plan.schema).encode(data.X)
    return plan.family.sum(codes, plan.cell_scores(np.asarray(counts)))


# --- Figure 2 and Table 4 -----------------------------------------------------------------------


def _epsilon(data: LabelledSet, seeds: int) -> Iterator[Step]:
    if data.name in NOISE_SETS:
        for system in _DETECTORS:
            if not (system == "ACE" and data.name in WITHOUT_ACE):
                for seed in range(seeds):
                    do = partial(_noise_rows, data, system, seed, 2, EPSILONS)
                    yield Step("epsilon", data.name, system, seed, do)


def _participants(data: LabelledSet, seeds: int) -> Iterator[Step]:
    if data.name in PARTICIPANT_SETS:
        for system in ("LSH iTables", "RS-H"):
            for k in PARTICIPANTS:
                for seed in range(seeds):
                    do = partial(_noise_rows, data, system, seed, k, (EPSILON_OF_PARTICIPANTS,))
                    yield Step("participants", data.name, f"{system}, {k}", seed, do)


def _noise_rows(
    data: LabelledSet, system: str, seed: int, k: int, epsilons: Sequence[float]
) -> list[Row]:
    rows: list[Row] = []
    for epsilon, value, total in shared_auc(data, system, k, epsilons, seed):
        setting = epsilon if len(epsilons) > 1 else float(k)
        rows.append({"system": system, "setting": setting, "auc": value, "total_epsilon": total})
    return rows


def shared_auc(
    data: LabelledSet, system: str, participants: int, epsilons: Sequence[float], seed: int
) -> list[tuple[float, float, float]]:
    """Release, merge, and score like the paper (Algorithms 1 and 2).

    Rows are assigned to the participants at random. Each participant counts its own rows (a
    sample of at most 1,000 for each table, all for ACE), adds Laplace noise of scale 1 / epsilon
    to every cell, and scores its own rows by the sum of all releases. The seed draws hash
    functions and assigns the rows; samples and noise are drawn again each time, as the totals
    assume.

    Returns the paper's epsilons, for one table; the participants' mean ROC-AUC; and the true total
    of a row: every histogram counts (a CountMin sketch has four), and counts twice if the sample
    has a fixed size, because an additional row then displaces another.
    """
    rng = np.random.default_rng(seed)
    parts = np.array_split(rng.permutation(len(data.X)), participants)
    largest = max(map(len, parts))
    plan = papers_plan(data, system, largest, seed)
    local = list(local_counts(plan, data, parts, None, everything=system == "ACE"))
    encoder = Encoder(plan.schema)
    encoded = [encoder.encode(data.X[rows]) for rows in parts]
    sampled = system != "ACE" and largest > _SAMPLE
    sensitivity = plan.family.n_histograms * (2 if sampled else 1)
    figures = []
    for epsilon in epsilons:
        values = noised_values(plan, data, local, epsilon)
        scores = [plan.family.sum(rows, values) for rows in encoded]
        aucs = [
            auc(data.y[rows], s)
            for rows, s in zip(parts, scores, strict=True)
            if 0 < data.y[rows].sum() < len(rows)
        ]
        figures.append((epsilon, float(np.mean(aucs)), sensitivity * epsilon))
    return figures


def noised_values(
    plan: Plan, data: LabelledSet, local: Iterable[NDArray[np.int64]], epsilon: float
) -> NDArray[np.float64]:
    """Return the cells' scores by the sum of all counts, each with the paper's Laplace noise."""
    # Noise on a cell without rows is never read, so it is not drawn.
    read = np.flatnonzero(Sketch.from_data(plan, data.X).counts)
    total = np.zeros(plan.family.n_cells, np.int64)
    for counts in local:
        mine = counts[read]
        if math.isfinite(epsilon):
            mine = add_noise(mine, "laplace-per-table", 1 / epsilon)
        total[read] += mine
    return plan.score.noisy_values(total, 1.0)


def papers_plan(data: LabelledSet, system: str, rows: int, seed: int) -> Plan:
    """Draw a system's plan, for participants with at most this number of rows."""
    settings: dict[str, Any] = {} if system == "ACE" else {"max_samples": min(_SAMPLE, rows)}
    return Plan.draw(data.schema(), detector=_DETECTORS[system], random_state=seed, **settings)


def local_counts(
    plan: Plan,
    data: LabelledSet,
    parts: Iterable[NDArray[np.int64]],
    seed: int | None,
    *,
    everything: bool = False,
) -> Iterator[NDArray[np.int64]]:
    """Yield the counts of each participant's rows; without a seed, samples are drawn again."""
    for number, rows in enumerate(parts):
        if len(rows) > 0:
            sample = None if everything or len(rows) <= _SAMPLE else _SAMPLE
            rng = None if seed is None else np.random.default_rng([seed, number])
            sketch = Sketch.from_data(plan, data.X[rows], max_samples=sample, random_state=rng)
            yield sketch.counts


EXPERIMENTS: dict[str, Callable[[LabelledSet, int], Iterator[Step]]] = {
    "central": _central,
    "local": _local,
    "epsilon": _epsilon,
    "participants": _participants,
}
