"""The paper's experiments, step by step.

``central``: every system on every set (Tables 2 and 3). ``local``: iForest and LODA on a
participant's rows, which hold most of the outliers, beside merged LSH iTables (Figure 1).
``epsilon``: two participants and noise (Figure 2). ``participants``: two to ten of them
(Table 4). The epsilons are the paper's, for one table by itself; each result carries the total.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from hushtable.baselines import LODA
from hushtable.bench.data import LabelledSet
from hushtable.bench.paper.systems import OURS, SYSTEMS, System, run
from hushtable.bench.results import Results, Row
from hushtable.counts.sketch import Sketch
from hushtable.data.encoding import Encoder
from hushtable.plans.plan import Plan
from hushtable.privacy.noise import add_noise

__all__ = [
    "EPSILONS", "EPSILON_OF_PARTICIPANTS", "EXPERIMENTS", "LOCAL_SETS", "NOISE_SETS",
    "PARTICIPANTS", "PARTICIPANT_SETS", "SHARES", "SHARE_OF_OUTLIERS", "Step", "steps",
]  # fmt: skip

#: Figure 1: medical sets, as the paper says; share of the outliers that the participant holds,
#: and of the inliers.
LOCAL_SETS = ("BreastW", "Cardio", "Thyroid")
SHARE_OF_OUTLIERS = 0.9
SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
#: Figure 2: per-table epsilons, and the sets; ACE is left out where the paper leaves it out.
EPSILONS = (0.001, 0.002, 0.003, 0.004, math.inf)
NOISE_SETS = ("BreastW", "Cardio", "Mnist", "Pendigits")
WITHOUT_ACE = ("BreastW", "Cardio")
#: Table 4.
PARTICIPANTS = (2, 4, 6, 8, 10)
EPSILON_OF_PARTICIPANTS = 0.01
PARTICIPANT_SETS = ("BreastW", "Cardio")

#: The mergeable systems by the names of their recipes.
_RECIPES = {"LSH iTables": "lsh_itables", "RS-H": "rs_hash", "ACE": "ace"}
#: Rows that a participant samples for each table at most.
_SAMPLE = 1000


@dataclass(frozen=True)
class Step:
    """One step of the benchmark: what it is called, and how to do it."""

    experiment: str
    data: str
    step: str
    seed: int
    do: Callable[[], list[Row]]

    def run(self, results: Results) -> None:
        """Do it, unless it is done."""
        name = {k: getattr(self, k) for k in ("experiment", "data", "step", "seed")}
        if not results.done(name):
            results.add(name, self.do())


def steps(data: LabelledSet, experiments: Sequence[str], seeds: int) -> Iterator[Step]:
    """Yield the steps of the given experiments on one set."""
    for name in experiments:
        yield from EXPERIMENTS[name](data, seeds)


# --- Tables 2 and 3 -----------------------------------------------------------------------------


def _central(data: LabelledSet, seeds: int) -> Iterator[Step]:
    for system in (*SYSTEMS, *OURS):
        for seed in system.seeds(len(data.X), seeds):
            yield Step("central", data.name, system.name, seed, _run(system, data, seed))


def _run(system: System, data: LabelledSet, seed: int) -> Callable[[], list[Row]]:
    return lambda: [{"system": system.name} | run(system, data, seed)]


# --- Figure 1 -----------------------------------------------------------------------------------


def _local(data: LabelledSet, seeds: int) -> Iterator[Step]:
    if data.name in LOCAL_SETS:
        for seed in range(seeds):
            yield Step("local", data.name, "all", seed, _local_run(data, seed))


def _local_run(data: LabelledSet, seed: int) -> Callable[[], list[Row]]:
    def do() -> list[Row]:
        rows = []
        for share in SHARES:
            local = _participant(data, share, seed)
            rest = np.setdiff1d(np.arange(len(data.X)), local)
            scores = {
                "iForest": IsolationForest(random_state=seed)
                .fit(data.X[local])
                .score_samples(data.X),
                "LODA": LODA(max_features="all", random_state=seed)
                .fit(data.X[local])
                .score_samples(data.X),
                "LSH iTables": _merged(data, [local, rest], seed),
            }
            rows += [
                {"system": name, "setting": float(len(local)), "auc": _auc(data.y, values)}
                for name, values in scores.items()
            ]
        return rows

    return do


def _participant(data: LabelledSet, share: float, seed: int) -> NDArray[np.int64]:
    """Return the rows of a participant that has most of the outliers, and a share of the rest."""
    rng = np.random.default_rng(seed)
    outliers, inliers = np.flatnonzero(data.y), np.flatnonzero(~data.y)
    mine = rng.permutation(outliers)[: round(SHARE_OF_OUTLIERS * len(outliers))]
    # The same inliers and more at each share.
    others = rng.permutation(inliers)[: max(1, round(share * len(inliers)))]
    return np.sort(np.concatenate([mine, others]))


def _merged(data: LabelledSet, parts: list[NDArray[np.int64]], seed: int) -> NDArray[np.float64]:
    """Score all rows by the participants' merged LSH iTables."""
    plan = _plan(data, "LSH iTables", min(_SAMPLE, len(data.X)), seed)
    counts = sum(_local_counts(plan, data, parts, seed))
    codes = Encoder(plan.schema).encode(data.X)
    return plan.family.sum(codes, plan.cell_scores(np.asarray(counts)))


# --- Figure 2 and Table 4 -----------------------------------------------------------------------


def _epsilon(data: LabelledSet, seeds: int) -> Iterator[Step]:
    if data.name in NOISE_SETS:
        for system in _RECIPES:
            if not (system == "ACE" and data.name in WITHOUT_ACE):
                for seed in range(seeds):
                    do = _noise_run(data, system, seed, 2, EPSILONS)
                    yield Step("epsilon", data.name, system, seed, do)


def _participants(data: LabelledSet, seeds: int) -> Iterator[Step]:
    if data.name in PARTICIPANT_SETS:
        for system in ("LSH iTables", "RS-H"):
            for k in PARTICIPANTS:
                for seed in range(seeds):
                    do = _noise_run(data, system, seed, k, (EPSILON_OF_PARTICIPANTS,))
                    yield Step("participants", data.name, f"{system}, {k}", seed, do)


def _noise_run(
    data: LabelledSet, system: str, seed: int, k: int, epsilons: Sequence[float]
) -> Callable[[], list[Row]]:
    def do() -> list[Row]:
        figures = shared_auc(data, system, k, epsilons, seed)
        by_epsilon = len(epsilons) > 1
        return [
            {
                "system": system,
                "setting": epsilon if by_epsilon else float(k),
                "auc": auc,
                "total_epsilon": total,
            }
            for epsilon, auc, total in figures
        ]

    return do


def shared_auc(
    data: LabelledSet, system: str, participants: int, epsilons: Sequence[float], seed: int
) -> list[tuple[float, float, float]]:
    """Release, merge and score as the paper does (Algorithms 1 and 2).

    Rows are dealt to the participants at random; each counts its own (a sample of at most
    1,000 for each table, all for ACE), adds Laplace noise of scale 1 / epsilon to every cell,
    and scores its own rows by the sum of all that was released. The seed draws hash functions
    and deals the rows; samples and noise are drawn anew each time, as the totals suppose.

    Returns
    -------
    list of (epsilon, auc, total)
        The paper's epsilon, for one table; the participants' mean ROC-AUC; and the true total
        of a row: every histogram counts (a CountMin sketch has four), twice where the sample's
        size is fixed, since a row more then pushes another out.
    """
    rng = np.random.default_rng(seed)
    parts = np.array_split(rng.permutation(len(data.X)), participants)
    largest = max(map(len, parts))
    plan = _plan(data, system, min(_SAMPLE, largest), seed)
    local = _local_counts(plan, data, parts, None, everything=system == "ACE")
    codes = Encoder(plan.schema)
    encoded = [codes.encode(data.X[rows]) for rows in parts]
    # Noise on a cell that no row falls into is never read: it is not drawn.
    read = np.flatnonzero(Sketch.from_data(plan, data.X).counts)
    sampled = system != "ACE" and largest > _SAMPLE
    sensitivity = plan.family.n_histograms * (2 if sampled else 1)
    figures = []
    for epsilon in epsilons:
        total = np.zeros(plan.family.n_cells, np.int64)
        for counts in local:
            private = math.isfinite(epsilon)
            mine = add_noise(counts[read], "laplace-per-table", 1 / epsilon) if private else None
            total[read] += counts[read] if mine is None else mine
        values = plan.score.noisy_values(total, 1.0)
        scores = [plan.family.sum(rows, values) for rows in encoded]
        aucs = [
            _auc(data.y[rows], s)
            for rows, s in zip(parts, scores, strict=True)
            if 0 < data.y[rows].sum() < len(rows)
        ]
        figures.append((epsilon, float(np.mean(aucs)), sensitivity * epsilon))
    return figures


def _plan(data: LabelledSet, system: str, sample: int, seed: int) -> Plan:
    settings: dict[str, Any] = {} if system == "ACE" else {"max_samples": sample}
    return Plan.draw(data.schema(), detector=_RECIPES[system], random_state=seed, **settings)


def _local_counts(
    plan: Plan,
    data: LabelledSet,
    parts: Sequence[NDArray[np.int64]],
    seed: int | None,
    *,
    everything: bool = False,
) -> list[NDArray[np.int64]]:
    """Count each participant's rows; without a seed, samples are drawn anew each time."""
    counts = []
    for number, rows in enumerate(parts):
        if len(rows) == 0:
            continue
        sample = None if everything or len(rows) <= _SAMPLE else _SAMPLE
        rng = None if seed is None else np.random.default_rng([seed, number])
        sketch = Sketch.from_data(plan, data.X[rows], max_samples=sample, random_state=rng)
        counts.append(sketch.counts)
    return counts


def _auc(y: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    return float(roc_auc_score(y, -scores))


EXPERIMENTS: dict[str, Callable[[LabelledSet, int], Iterator[Step]]] = {
    "central": _central,
    "local": _local,
    "epsilon": _epsilon,
    "participants": _participants,
}
