"""Attack releases end to end, and compare the attacks with the best that epsilon allows."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse, stats

from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch
from hushtable.data.encoding import Encoder
from hushtable.plans.plan import Plan
from hushtable.privacy.accounting import GAUSSIAN, rho_bound
from hushtable.privacy.ledger import Ledger, Share
from hushtable.privacy.mechanisms import Sensitivity
from hushtable_bench.data import LabelledSet
from hushtable_bench.results import Page, Promise, ResultTable, judged
from hushtable_bench.systems.audit import audit_canaries, audit_neighbours
from hushtable_bench.systems.bounds import Outcome, area, canary_bound, judge, most_area, most_true

DELTA = 1e-6
#: Confidence of each bound: with thirty bounds, at most 3% of runs reject a correct release.
CONFIDENCE = 0.999
_ROWS, _TABLES, _CELLS = 100, 8, 4

Ints = NDArray[np.int64]
#: One trial of an attack with the row in or not: a statistic with mean 1, or 0.
Trial = Callable[[bool], float]


@dataclass(frozen=True)
class Scene:
    """Rows that the attacker knows, and the row that it looks for, which is an outlier."""

    data: LabelledSet

    @cached_property
    def others(self) -> NDArray[np.float64]:
        """The rows that are always counted."""
        return self.data.X[~self.data.y][:_ROWS]

    @cached_property
    def row(self) -> NDArray[np.float64]:
        """The row that the attack looks for: the outlier farthest from the mean."""
        outliers = self.data.X[self.data.y]
        spread = self.data.X.std(axis=0) + 1e-12
        away = np.abs((outliers - self.data.X.mean(axis=0)) / spread).sum(axis=1)
        return np.asarray(outliers[away.argmax()])

    def plan(self, seed: int = 0) -> Plan:
        """Return a plan with few small tables."""
        depth = _CELLS.bit_length() - 1
        return Plan.draw(
            self.data.schema(), random_state=seed, n_tables=_TABLES, n_cells=_CELLS,
            min_depth=depth, max_depth=depth,
        )  # fmt: skip

    def pair(self, plan: Plan) -> dict[bool, Sketch]:
        """Return the sketches of the rows without the attacked row, and with it."""
        without = Sketch.from_data(plan, self.others)
        return {False: without, True: without + Sketch.from_data(plan, self.row[None])}


def _exact(sketch: Sketch) -> Release:
    """Return exact counts under a ledger that claims noise."""
    sensitivity = Sensitivity(sketch.plan.family.n_tables)
    ledger = Ledger(
        "discrete-gaussian", sensitivity, DELTA, (Share(secrets.token_hex(32), 1.0, "none"),),
        sketch.plan.behind, accounting=GAUSSIAN,
    )  # fmt: skip
    return Release(sketch.plan, sketch.counts, ledger)


def _release(sketch: Sketch, epsilon: float | None, **terms: Any) -> Release:
    """Release as a site does; with None, exact counts in the form of a release."""
    if epsilon is None:
        return _exact(sketch)
    return sketch.release(epsilon, DELTA, **terms)


def _beyond(counts: Ints, pair: dict[bool, Sketch]) -> float:
    """Return the mean, over the row's cells, of their counts minus those of the other rows."""
    added = pair[True].counts - pair[False].counts
    return float((counts - pair[False].counts) @ added / (added @ added))


# --- one release ----------------------------------------------------------------------------------


def neighbours(scene: Scene, epsilon: float | None, trials: int) -> Outcome:
    """Release rows with a row and without it, all the way from the rows."""
    plan = scene.plan()
    return audit_neighbours(
        lambda rows: _release(Sketch.from_data(plan, rows), epsilon), scene.others, scene.row,
        epsilon=epsilon or 0.0, delta=DELTA, trials=trials, confidence=CONFIDENCE,
    )  # fmt: skip


def canaries(scene: Scene, epsilon: float | None, trials: int) -> Outcome:
    """Guess which of 1,000 random rows are in a single release of 100 deep tables."""
    plan = Plan.draw(scene.data.schema(), random_state=0)
    return audit_canaries(
        lambda sketch: _release(sketch, epsilon), plan, epsilon=epsilon or 0.0, delta=DELTA,
        canaries=1000, confidence=CONFIDENCE, random_state=0,
    )  # fmt: skip


# --- differences of releases ----------------------------------------------------------------------


def two_rounds(scene: Scene, epsilon: float | None) -> Trial:
    """Average two rounds about the same people; the second round names the first."""
    pairs = [scene.pair(scene.plan(seed)) for seed in (0, 1)]

    def trial(present: bool) -> float:
        first = _release(pairs[0][present], epsilon, share=0.5)
        second = _release(pairs[1][present], epsilon, after=first)
        weights = np.array([first.noise_sd, second.noise_sd]) ** -2.0
        beyond = [_beyond(r.counts, pair) for r, pair in zip((first, second), pairs, strict=True)]
        return float(weights @ beyond / weights.sum())

    return trial


def joins(scene: Scene, epsilon: float | None, same_noise: bool = False) -> Trial:
    """Subtract one round from the next: all others are in both, and can even be unknown."""
    pair = scene.pair(scene.plan())
    added = pair[True].counts - pair[False].counts

    def trial(present: bool) -> float:
        first = _release(pair[False], epsilon, share=0.5)
        if same_noise:
            second = first.counts + present * added
        else:
            second = _release(pair[present], epsilon, after=first).counts
        return float((second - first.counts) @ added / (added @ added))

    return trial


def sum_minus_own(scene: Scene, epsilon: float | None) -> Trial:
    """Subtract one's own release from the merged one; the rest is the other site's."""
    plan = scene.plan()
    pair = scene.pair(plan)
    mine = _release(Sketch.from_data(plan, scene.data.X[: 2 * _ROWS]), epsilon)

    def trial(present: bool) -> float:
        merged = _release(pair[present], epsilon) + mine
        return _beyond(merged.counts - mine.counts, pair)

    return trial


# --- all of them ----------------------------------------------------------------------------------

#: Takes a scene, the total epsilon (None: no noise), and how often to play each case.
Attack = Callable[[Scene, float | None, int], Outcome]


def _played(prepare: Callable[[Scene, float | None], Trial]) -> Attack:
    """Return the attack that plays each case so many times, and compares."""

    def attack(scene: Scene, epsilon: float | None, trials: int) -> Outcome:
        trial = prepare(scene, epsilon)
        absent, present = (np.array([trial(case) for _ in range(trials)]) for case in (False, True))
        return judge(
            "one case distinguished from the other", [(absent, present)], epsilon=epsilon or 0.0,
            delta=DELTA, confidence=CONFIDENCE, middle=0.5,
        )  # fmt: skip

    return attack


ATTACKS: dict[str, Attack] = {
    "one release, a row more or less": neighbours,
    "one release, 1,000 canaries": canaries,
    "two rounds about the same people, averaged": _played(two_rounds),
    "two rounds, one person joins: their difference": _played(joins),
    "two sites' sum, less one's own release": _played(sum_minus_own),
}
#: A mistake that has to be found, besides those of `hushtable_bench.outside`.
PLANTED = "planted: the same noise in two rounds"


@dataclass(frozen=True, slots=True)
class AttackOutcome:
    """The success of an attack at a total epsilon; None means no noise."""

    attack: str
    epsilon: float | None
    finding: Outcome

    @property
    def most(self) -> float:
        """The largest area under the ROC curve that epsilon allows."""
        return 1.0 if self.epsilon is None else most_area(self.epsilon, DELTA)

    @property
    def best(self) -> float:
        """The same if the noise is Gaussian: the area of the likelihood ratio."""
        if self.epsilon is None:
            return 1.0
        return float(stats.norm.cdf(np.sqrt(rho_bound(self.epsilon, 0.0, DELTA))))

    @property
    def above_best(self) -> float | None:
        """By how many of its standard errors the area is above `best`, where both cases played."""
        if self.finding.auc is None or self.finding.gaussian_bound is None:
            return None
        return (self.finding.auc - self.best) * float(np.sqrt(6.0 * self.finding.trials))


def n_outcomes(epsilons: Sequence[float]) -> int:
    """Return the number of outcomes."""
    return len(ATTACKS) * (len(epsilons) + 1) + 1


def outcomes(scene: Scene, epsilons: Sequence[float], trials: int) -> Iterator[AttackOutcome]:
    """Yield what each attack achieves without noise and at each epsilon, and on a planted bug."""
    for name, attack in ATTACKS.items():
        for epsilon in (None, *sorted(epsilons, reverse=True)):
            yield AttackOutcome(name, epsilon, attack(scene, epsilon, trials))
    planted = _played(partial(joins, same_noise=True))
    yield AttackOutcome(PLANTED, 1.0, planted(scene, 1.0, trials))


def table(outcomes: Sequence[AttackOutcome]) -> ResultTable:
    """Lay out the attacks' results beside the results that epsilon allows."""
    rows = []
    for outcome in outcomes:
        auc = "" if outcome.finding.auc is None else f"{outcome.finding.auc:.3f}"
        bound, gaussian, verdict = judged(outcome.finding)
        if outcome.epsilon is None:
            gaussian, verdict = "", "none made"
        epsilon = "no noise" if outcome.epsilon is None else f"{outcome.epsilon:g}"
        allowed = f"{outcome.best:.3f}", f"{outcome.most:.3f}"
        rows.append((outcome.attack, epsilon, auc, *allowed, bound, gaussian, verdict))
    header = (
        "attack", "total epsilon", "AUC", "best against this noise", "epsilon allows",
        "epsilon is at least", "if Gaussian", "claim",
    )  # fmt: skip
    return ResultTable(header, rows, text=2)


def targets(outcomes: Sequence[AttackOutcome]) -> list[Promise]:
    """Require that releases resist the attacks, and that attacks succeed without noise."""
    made = []
    for name in dict.fromkeys(case.attack for case in outcomes):
        those = [case for case in outcomes if case.attack == name]
        bounds = {case.epsilon: case.finding.bound for case in those}
        if name == PLANTED:
            made.append(Promise(f"{name}: lower bound on epsilon", bounds[1.0], ">", 1.0, ".2f"))
            continue
        raw = min(case.finding.auc or 0.0 for case in those if case.epsilon is None)
        made.append(Promise(f"{name}, no noise: AUC", raw, ">=", 0.9, ".3f"))
        worst = max(bound / epsilon for epsilon, bound in bounds.items() if epsilon)
        made.append(Promise(f"{name}: bound over epsilon, highest", worst, "<=", 1.0, ".2f"))
        above = [case.above_best for case in those if case.epsilon and case.above_best is not None]
        if above:
            claim = f"{name}: standard errors above the best AUC"
            made.append(Promise(claim, max(above), "<=", 5.0, ".1f"))
    return made


# --- membership -----------------------------------------------------------------------------------

#: Rows of a set that the attack solves for together.
CANDIDATES = 2000
#: Rate of false positives at which the true ones are counted.
FALSE = 0.01

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Attacked:
    """The success of an attack on one release that solves for its rows."""

    data: str
    rows: int  # candidates
    epsilon: float | None  # total of the release; None is no noise
    auc: float  # how often a counted row is ranked above one that was not
    true: float  # share of the counted rows found when 1% of the others is taken for counted
    outliers: float  # the area among the outliers alone
    lower_bound: float  # epsilon is at least this, with probability `CONFIDENCE`


class Solver:
    """Solves for the coins of rows X under one plan, with any noise."""

    def __init__(self, plan: Plan, X: Floats) -> None:
        family, codes = plan.family, Encoder(plan.schema).encode(X)
        # The sum of cell numbers that are those of one membership_table only, and 0 elsewhere.
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
        sums = self.incidence @ (counts - half)
        # Without noise, rows that share all their cells need a small term.
        spread = np.maximum(self._values, 0.0) + max(4.0 * noise_sd**2, 1e-3)
        return np.asarray(self._vectors @ ((self._vectors.T @ sums) / spread), np.float64)


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
        attacked = []
        for epsilon in (None, *sorted(epsilons, reverse=True)):
            release = _exact(sketch) if epsilon is None else sketch.release(epsilon, DELTA)
            noise = 0.0 if epsilon is None else release.noise_sd
            attacked.append(_judged(data, epsilon, counted, solver.scores(release.counts, noise)))
        yield attacked


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


def membership_table(attacked: Sequence[Attacked]) -> ResultTable:
    """Lay out means over the trials, with standard errors, beside the limits from epsilon."""
    rows = []
    for name, epsilon in dict.fromkeys((trial.data, trial.epsilon) for trial in attacked):
        trials = [trial for trial in attacked if (trial.data, trial.epsilon) == (name, epsilon)]
        label, most, true = "no noise", 1.0, 1.0
        if epsilon is not None:
            label, most = f"{epsilon:g}", most_area(epsilon, DELTA)
            true = float(most_true(epsilon, DELTA, FALSE))
        auc, share, odd = (_shown(trials, name) for name in ("auc", "true", "outliers"))
        bound = max(t.lower_bound for t in trials)
        figures = f"{most:.3f}", share, f"{true:.3f}", odd, f"{bound:.2f}"
        rows.append((name, label, f"{trials[0].rows:,}", auc, *figures))
    header = (
        "set", "total epsilon", "rows", "AUC", "AUC allowed", "TPR at 1% FPR", "TPR allowed",
        "AUC, outliers", "epsilon is at least",
    )  # fmt: skip
    return ResultTable(header, rows, text=2)


def membership_targets(attacked: Sequence[Attacked]) -> list[Promise]:
    """Require that releases keep their epsilon, and that the attack succeeds without noise."""
    made = []
    for name in dict.fromkeys(trial.data for trial in attacked):
        those = [trial for trial in attacked if trial.data == name]
        raw = float(np.mean([trial.auc for trial in those if trial.epsilon is None]))
        made.append(Promise(f"membership, {name}, no noise: AUC", raw, ">=", 0.9, ".3f"))
        worst = max(trial.lower_bound / trial.epsilon for trial in those if trial.epsilon)
        claim = f"membership, {name}: bound over epsilon, highest"
        made.append(Promise(claim, worst, "<=", 1.0, ".2f"))
    return made


def page(
    name: str, plays: int, halves: int, played: Sequence[AttackOutcome], solved: Sequence[Attacked]
) -> Page:
    """Lay out the results of attacks on one row of a set, and on the membership of all rows."""
    sure = f"{100 * CONFIDENCE:.4g}%"
    return [
        f"# Attacks\n\nOne row of {name}, counted or not; {plays} plays of each. Lower",
        f"bounds on epsilon hold with {sure} confidence each. The standard error of an AUC",
        f"of chance is {(6 * plays) ** -0.5:.3f}.\n",
        table(played),
        "\n# Membership\n\nThe attack solves for all rows of a set from one release; a coin",
        f"decided which are in it. Means of {halves} releases ± standard errors; highest bound.\n",
        membership_table(solved),
    ]
