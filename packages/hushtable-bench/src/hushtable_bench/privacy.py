"""Measure the cost of privacy in accuracy, an adversary's success, and what audits find.

Every epsilon is the total for one row. Ranges are the data's own minimum and maximum, as if they
were public, for all systems alike, which is slightly optimistic. A release has the whole noise
once, like the sum of all sites under a secure sum.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushtable.counts.release import Release
from hushtable.counts.sketch import Sketch
from hushtable.data.encoding import Encoder
from hushtable.data.schema import Schema
from hushtable.plans.plan import Plan
from hushtable.privacy.layout import Design
from hushtable.scores.scorer import Scorer
from hushtable_bench.data import LabelledSet, auc, auc_and_ap
from hushtable_bench.mistakes import MISTAKES, audit_all
from hushtable_bench.results import Page, Promise, ResultTable, judged, spread
from hushtable_bench.systems.bounds import Finding

DELTA = 1e-6
#: Rows that a set needs to count in the means, and rows taken from it at most.
MIN_ROWS, MAX_ROWS = 1000, 20_000
#: Random divisions, for each seed, of a set's rows into counted and uncounted ones.
HALVES = 5
#: The paper's data sets, by the names of their files.
PAPER_SETS = (
    "4_breastw", "29_Pima", "6_cardio", "24_mnist", "25_musk", "28_pendigits", "31_satimage-2",
    "38_thyroid", "32_shuttle", "10_cover", "kdd99",
)  # fmt: skip

PRIVATE, PAPERS = "private HushTable", "paper's mechanism"
OURS, THEIRS = "HushTable, not private", "LSH iTables, not private"

Floats = NDArray[np.float64]


# --- the systems --------------------------------------------------------------------------------


def private_scorer(X: Floats, schema: Schema, epsilon: float, seed: int) -> Scorer:
    """Count and release as a site does: marginals first if that pays, then the tables."""
    terms = {"epsilon": epsilon, "delta": DELTA, "expected_rows": len(X)}
    return Scorer(released(X, schema, seed, lambda sketch: sketch.release(epsilon, DELTA), **terms))


def released(
    X: Floats, schema: Schema, seed: int, release: Callable[[Sketch], Release], **terms: Any
) -> Release:
    """Release tables under these terms, drawn from marginals if those pay."""
    marginals = None
    if Design(**terms).pays_marginals(len(schema)):
        marginals = release(Sketch.from_data(Plan.marginals(schema, **terms), X))
    plan = Plan.draw(schema, marginals=marginals, random_state=seed, **terms)
    return release(Sketch.from_data(plan, X))


def papers_scorer(X: Floats, schema: Schema, epsilon: float, seed: int) -> Scorer:
    """Release like the paper: samples of 1,000 rows, and Laplace noise for each table by itself.

    The seed draws the plan; a release needs samples that no one can draw again.

    ``epsilon`` is divided by the number of tables. (The ledger counts twice as much, because an
    additional row displaces another from a sample of fixed size; this favours the paper.)
    """
    sketch = _lsh_itables(X, schema, seed, None)
    each = epsilon / sketch.plan.family.n_tables
    return Scorer(sketch.release(each, mechanism="laplace-per-table"))


def _lsh_itables(X: Floats, schema: Schema, seed: int, sample: int | None) -> Sketch:
    size = min(1000, len(X))
    plan = Plan.draw(schema, detector="lsh_itables", max_samples=size, random_state=seed)
    return Sketch.from_data(plan, X, max_samples=size, random_state=sample)


def _hushtable(X: Floats, schema: Schema, seed: int) -> Sketch:
    marginals = Sketch.from_data(Plan.marginals(schema), X)
    return Sketch.from_data(Plan.draw(schema, marginals=marginals, random_state=seed), X)


# --- accuracy -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AccuracyRun:
    """One system on one set with one seed; ``epsilon`` is 0 for counts without noise."""

    data: str
    rows: int
    features: int
    system: str
    epsilon: float
    seed: int
    auc: float
    ap: float


def accuracy(
    sets: Sequence[LabelledSet], epsilons: Sequence[float], seeds: int
) -> Iterator[list[AccuracyRun]]:
    """Yield the runs of each set and seed. Seeds draw plans and no noise."""
    for data in sets:
        X, schema = data.X, data.schema()
        for seed in range(seeds):
            scorers = [
                (OURS, 0.0, Scorer(_hushtable(X, schema, seed))),
                (THEIRS, 0.0, Scorer(_lsh_itables(X, schema, seed, seed))),
            ]
            for epsilon in epsilons:
                scorers += [
                    (PRIVATE, epsilon, private_scorer(X, schema, epsilon, seed)),
                    (PAPERS, epsilon, papers_scorer(X, schema, epsilon, seed)),
                ]
            yield [
                AccuracyRun(
                    data.name, len(X), X.shape[1], system, epsilon, seed,
                    *auc_and_ap(data.y, scorer.score(X, n_jobs=-1)).values(),
                )
                for system, epsilon, scorer in scorers
            ]  # fmt: skip


def _values(runs: Iterable[AccuracyRun], system: str, epsilon: float, metric: str) -> Floats:
    """Return a metric in points, sets by seeds."""
    found: dict[str, list[float]] = {}
    for run in runs:
        if (run.system, run.epsilon) == (system, epsilon):
            found.setdefault(run.data, []).append(100 * getattr(run, metric))
    return np.array(list(found.values()))


def means(runs: Sequence[AccuracyRun], metric: str) -> dict[tuple[str, float], Floats]:
    """Return, for each system and epsilon, the mean over the large sets for each seed."""
    large = [run for run in runs if run.rows >= MIN_ROWS]
    keys = dict.fromkeys((run.system, run.epsilon) for run in runs)
    return {key: _values(large, *key, metric).mean(axis=0) for key in keys}


def table_of_means(runs: Sequence[AccuracyRun]) -> ResultTable:
    """Lay out mean AUC and AP over the large sets against the total epsilon."""
    both = means(runs, "auc"), means(runs, "ap")
    rows = [
        (
            f"{epsilon:g}" if epsilon else "no noise",
            *(spread(found[key]) for key in _pair(epsilon) for found in both),
        )
        for epsilon in (*sorted({r.epsilon for r in runs if r.epsilon}), 0.0)
    ]
    systems = "HushTable", "the paper's mechanism"
    header = ["total epsilon", *(f"{one}: {m}" for one in systems for m in ("ROC-AUC", "AP"))]
    return ResultTable(header, rows)


def _pair(epsilon: float) -> tuple[tuple[str, float], tuple[str, float]]:
    ours, papers = (PRIVATE, PAPERS) if epsilon else (OURS, THEIRS)
    return (ours, epsilon), (papers, epsilon)


def _of_set(runs: Sequence[AccuracyRun], name: str, system: str, epsilon: float) -> Floats:
    values: Floats = _values((r for r in runs if r.data == name), system, epsilon, "auc")[0]
    return values


def accuracy_targets(runs: Sequence[AccuracyRun]) -> list[Promise]:
    """Compare the private detector with its promises, at epsilon 1 and 0.1."""
    found = []
    mean = {key: float(values.mean()) for key, values in means(runs, "auc").items()}
    for epsilon, loss in ((1.0, 0.5), (0.1, 2.5)):
        if (PRIVATE, epsilon) in mean:
            lost = mean[OURS, 0.0] - mean[PRIVATE, epsilon]
            claim = f"epsilon {epsilon:g}: AUC points lost to the noise"
            found.append(Promise(claim, lost, "<=", loss, ".2f"))
    if (PRIVATE, 0.1) in mean:
        ahead = mean[PRIVATE, 0.1] - mean[PAPERS, 0.1]
        claim = "epsilon 0.1: AUC points ahead of the paper's mechanism"
        found.append(Promise(claim, ahead, ">=", 5.0, ".2f"))
        for name in dict.fromkeys(r.data for r in runs if r.data in PAPER_SETS):
            ours, papers = (_of_set(runs, name, s, 0.1) for s in (PRIVATE, PAPERS))
            seeds = float(max(ours.std(), papers.std()))
            claim = f"epsilon 0.1, {name}: points ahead, within the spread between seeds"
            found.append(Promise(claim, float(ours.mean() - papers.mean()), ">=", -seeds, ".2f"))
    return found


# --- attacks ------------------------------------------------------------------------------------


def membership(data: LabelledSet, epsilons: Sequence[float], seed: int) -> dict[str, float]:
    """Separate counted rows from uncounted ones by their scores; return the AUCs.

    Half of the rows are counted. The adversary has the counts (raw or released), scores all rows,
    and takes rows with high scores for members, both among the outliers, which share their cells
    with few rows, and among all rows.
    """
    rng = np.random.default_rng(seed)
    member = np.zeros(len(data.X), bool)
    member[rng.permutation(len(data.X))[: len(data.X) // 2]] = True
    schema, X = data.schema(), data.X[member]
    plan = Plan.draw(schema, random_state=seed)
    # Does not use the detector's smooth score: one empty cell proves that a row was not counted.
    values = np.log2(Sketch.from_data(plan, X).counts + 1.0 / 16.0)
    attacks = {"raw": plan.family.sum(Encoder(schema).encode(data.X), values)}
    for epsilon in epsilons:
        attacks[f"{epsilon:g}"] = private_scorer(X, schema, epsilon, seed).score(data.X)
    found = {}
    for name, scores in attacks.items():
        found[f"outliers, {name}"] = auc(member[data.y], -scores[data.y])
        found[f"all rows, {name}"] = auc(member, -scores)
    return found


def table_of_membership(found: dict[str, list[dict[str, float]]]) -> ResultTable:
    """Lay out the mean over the seeds of each AUC, one row per set."""
    columns = list(next(iter(found.values()))[0])
    rows = [
        (name, *(f"{np.mean([f[column] for f in seeds]):.2f}" for column in columns))
        for name, seeds in found.items()
    ]
    return ResultTable(("set", *columns), rows)


#: The number of releases that `audits` tests: the correct one, and one for each mistake.
N_AUDITED = len(MISTAKES)


def audits(
    draws: int, trials: int, confidence: float = 0.95
) -> Iterator[tuple[str, list[Finding]]]:
    """Run all audits on the correct release and on every planted mistake."""
    for mistake in MISTAKES:
        found = audit_all(mistake, draws=draws, trials=trials, confidence=confidence)
        yield mistake.name, list(found)


def table_of_audits(found: Sequence[tuple[str, list[Finding]]]) -> ResultTable:
    """Lay out the lower bounds on epsilon, and which releases are rejected."""
    rows = []
    for name, findings in found:
        bounds, gaussian, verdicts = zip(*map(judged, findings), strict=True)
        p_noise = min(one.p_noise for one in findings if one.p_noise is not None)
        odd = f"{p_noise:.2g}" if p_noise >= 1e-3 else "< 0.001"
        rows.append(
            (name, *bounds, gaussian[0], odd, min(verdicts))
        )  # rejected if any audit rejects it
    header = (
        "planted mistake", "likelihood ratio", "canaries", "replay",
        "likelihood ratio, if Gaussian", "p of the noise",
        f"claim of epsilon {found[0][1][0].epsilon:g}",
    )  # fmt: skip
    return ResultTable(header, rows)


def audit_targets(found: Sequence[tuple[str, list[Finding]]]) -> list[Promise]:
    """Require that the correct release passes, and that some audit rejects every mistake."""
    targets = []
    for at, (name, findings) in enumerate(found):
        rejected = sum(finding.rejects for finding in findings)
        claim = f"audit, {name}: how many of {len(findings)} audits reject it"
        targets.append(Promise(claim, rejected, "<=" if at == 0 else ">=", int(at > 0), "d"))
    return targets


def page(runs: list[AccuracyRun], membership: Any, audits: Any, seeds: int) -> Page:
    """Lay out accuracy, membership and audits."""
    large = len({run.data for run in runs if run.rows >= MIN_ROWS})
    return [
        "# Accuracy\n",
        f"Mean over {large} sets of 1,000 rows and more, over {seeds} seeds ± their",
        "standard deviation, x 100. Ranges are the data's own, as if they were public.\n",
        table_of_means(runs),
        "\n# Membership\n",
        "AUC of separating counted rows from uncounted ones, mean over",
        f"{HALVES * seeds} random divisions of the rows into halves:\n",
        table_of_membership(membership),
        "\n# Audits\n\nLower bounds on epsilon, each with 95% confidence:\n",
        table_of_audits(audits),
    ]
