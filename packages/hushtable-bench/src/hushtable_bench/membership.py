"""Solve for which of many real rows were counted, from one release, all rows at once.

A fair coin decides for each row of a labelled set whether it is counted. The attacker has the
plan, the release and all the rows. Counts are then linear in the unknown coins, c = A x + noise,
and the best linear guess of them is x = 1/2 + (A'A + 4 sigma^2)^-1 A'(c - A 1/2): a
reconstruction attack (Dinur and Nissim, 2003), which takes account of every other candidate in
a row's cells. A'A holds, for each two rows, the tables in which they share a cell.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from hushtable.audit.bounds import area, canary_bound, most_area, most_true
from hushtable.counts.sketch import Sketch
from hushtable.data.encoding import Encoder
from hushtable.plans.plan import Plan
from hushtable_bench.data import LabelledSet
from hushtable_bench.planted import EXACT
from hushtable_bench.tables import Target, markdown_table

DELTA = 1e-6
#: Of each bound.
CONFIDENCE = 0.999
#: Rate of false positives at which the true ones are counted.
FALSE = 0.01

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Attacked:
    """The success of an attack on one release, by solving for its rows."""

    data: str
    rows: int  # candidates
    epsilon: float | None  # total of the release; None is no noise
    auc: float  # how often a counted row is ranked above one that was not
    true: float  # share of the counted rows found when 1% of the others is taken for counted
    outliers: float  # the area among the outliers alone
    lower_bound: float  # epsilon is at least this, with probability `CONFIDENCE`


class Solver:
    """Solves for the coins of rows X under one plan, whatever the noise."""

    def __init__(self, plan: Plan, X: Floats) -> None:
        family, codes = plan.family, Encoder(plan.schema).encode(X)
        # The sum of cell numbers that are those of one table only, and 0 elsewhere.
        cells = []
        for first, last in zip(family.offsets[:-1], family.offsets[1:], strict=True):
            numbers = np.zeros(family.n_cells)
            numbers[first:last] = np.arange(first, last)
            cells.append(family.sum(codes, numbers).astype(np.int64))
        at = (np.repeat(np.arange(len(X)), len(cells)), np.stack(cells, axis=1).ravel())
        shape = (len(X), family.n_cells)
        self.incidence = sparse.csr_matrix((np.ones(at[0].size), at), shape=shape)
        shared = (self.incidence @ self.incidence.T).toarray()
        self._values, self._vectors = linalg.eigh(shared)

    def scores(self, counts: NDArray[np.int64], noise_sd: float) -> Floats:
        """Return the guess for each row: high if it was counted."""
        half = 0.5 * np.asarray(self.incidence.sum(axis=0)).ravel()
        seen = self.incidence @ (counts - half)
        # Without noise, rows that share all their cells need some.
        spread = np.maximum(self._values, 0.0) + max(4.0 * noise_sd**2, 1e-3)
        return np.asarray(self._vectors @ ((self._vectors.T @ seen) / spread), np.float64)


def attack(
    data: LabelledSet, epsilons: Sequence[float], trials: int, seed: int = 0
) -> Iterator[list[Attacked]]:
    """Yield the success against releases of random halves, trial after trial."""
    plan = Plan.draw(data.schema(), random_state=seed)
    solver = Solver(plan, data.X)
    rng = np.random.default_rng(seed)
    for _ in range(trials):
        counted = rng.random(len(data.X)) < 0.5
        sketch = Sketch.from_data(plan, data.X[counted])
        found = []
        for epsilon in (None, *sorted(epsilons, reverse=True)):
            release = EXACT.release(sketch) if epsilon is None else sketch.release(epsilon, DELTA)
            noise = 0.0 if epsilon is None else release.noise_sd
            found.append(_judged(data, epsilon, counted, solver.scores(release.counts, noise)))
        yield found


def _judged(
    data: LabelledSet, epsilon: float | None, counted: NDArray[np.bool_], scores: Floats
) -> Attacked:
    n, third = len(counted), len(counted) // 3
    order = np.argsort(scores, kind="stable")
    right = int(counted[order[-third:]].sum() + (~counted[order[:third]]).sum())
    threshold = np.quantile(scores[~counted], 1.0 - FALSE, method="higher")
    return Attacked(
        data.name, n, epsilon,
        auc=area(scores[~counted], scores[counted]),
        true=float((scores[counted] > threshold).mean()),
        outliers=area(scores[data.y & ~counted], scores[data.y & counted]),
        lower_bound=canary_bound(n, 2 * third, right, DELTA, 1.0 - CONFIDENCE),
    )  # fmt: skip


def _shown(trials: Sequence[Attacked], name: str) -> str:
    values = [getattr(trial, name) for trial in trials]
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}"


def table(found: Sequence[Attacked]) -> str:
    """Lay out means over the trials, with standard errors, beside what epsilon allows."""
    rows = []
    for name, epsilon in dict.fromkeys((one.data, one.epsilon) for one in found):
        trials = [one for one in found if (one.data, one.epsilon) == (name, epsilon)]
        label, most, true = "no noise", 1.0, 1.0
        if epsilon is not None:
            label, most = f"{epsilon:g}", most_area(epsilon, DELTA)
            true = float(most_true(epsilon, DELTA, FALSE))
        auc, share, odd = (_shown(trials, name) for name in ("auc", "true", "outliers"))
        bound = max(t.lower_bound for t in trials)
        figures = f"{most:.3f}", share, f"{true:.3f}", odd, f"{bound:.2f}"
        rows.append((name, f"{trials[0].rows:,}", label, auc, *figures))
    header = (
        "set", "rows", "total epsilon", "AUC", "at most", "TPR at 1% FPR", "at most",
        "AUC, outliers", "epsilon is at least",
    )  # fmt: skip
    return markdown_table(header, rows)


def targets(found: Sequence[Attacked]) -> list[Target]:
    """Hold releases to their epsilon, and the attack to work where there is no noise."""
    made = []
    for name in dict.fromkeys(one.data for one in found):
        those = [one for one in found if one.data == name]
        raw = float(np.mean([one.auc for one in those if one.epsilon is None]))
        made.append(Target(f"membership, {name}, no noise: AUC", raw, ">=", 0.9, ".3f"))
        worst = max(one.lower_bound / one.epsilon for one in those if one.epsilon)
        claim = f"membership, {name}: bound over epsilon, highest"
        made.append(Target(claim, worst, "<=", 1.0, ".2f"))
    return made
