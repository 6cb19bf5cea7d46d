"""Measure what a site gains by joining, forecasts of that gain, and which faults a site finds.

`joining` divides each labelled set (at most 6,000 of its rows) into a site and all others, without
noise: a site like the others (*alike*), a *referral* centre with three outliers in ten rows, a site
with one of three clusters of the inliers (*case mix*), and such a site with 12 *visitors* of
another cluster. Its rows are scored by its own model, by the others' counts, by the counts of all,
and by a home model. Figures are means of ROC-AUC and average precision minus those of the site's
own model.

`joining_released` does the same under noise, for one of 5 or 20 similar sites that share the noise
of a total epsilon. T is the number of rows of all divided by the noise of a count; below 28, noise
hides all thresholds. `advice` draws random rounds, and compares the gain that a plan is expected to
have with the actual gain; the table of expected gains was fitted to 600 other rounds (--first 1000
--rounds 600).

`faults` gives one column of a site a fault in a tenth to six tenths of its rows: another unit (x
1.8 + 32), a shifted device (plus two standard deviations), a wrong default (the largest value), or
two swapped codes. A fault is found if its column is named as systematic. A swap that moves the
shares of the codes by less than chance cannot be seen, so such swaps are counted separately. Honest
sites are random rows, and half of one cluster. The others' counts are exact or, for sets of 5,000
rows or more, released at a total epsilon of 1, histograms and tables together, with one noise for
all.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from hushtable import HushTable, Plan, Sketch
from hushtable.counts.base import Counts
from hushtable.privacy import Design
from hushtable_bench.data import LabelledSet, auc_and_ap, load
from hushtable_bench.results import ResultTable
from hushtable_bench.runner import CaseRun, data_folder, progress
from hushtable_federation import HomeModel

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


def complete(data: LabelledSet) -> LabelledSet:
    """Return the set without missing values, for splits by distances."""
    return LabelledSet(data.name, np.nan_to_num(data.X), data.y.astype(bool))


def clusters_of(X: Floats, number: int, among: Rows, seed: int = 0) -> Rows:
    """Return the cluster of some rows by their standardized columns."""
    Z = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    found: Rows = KMeans(number, n_init=2, random_state=seed).fit_predict(Z[among])
    return found


# --- joining --------------------------------------------------------------------------------------

#: Rows of a set at most.
ROWS, QUICK_SETS = 6_000, 3
#: Rows of a site that is like the others, outliers of the others; and outliers that a set has.
ALIKE, LEAST = (50, 100, 200, 500), 20
ELSEWHERE, POOLED, HOME = "elsewhere", "all sites", "home model"
WAYS = (ELSEWHERE, POOLED, HOME)
#: At least, for any kind of site; and for a referral centre: ROC-AUC and average precision.
NEVER, REFERRAL = (-0.01, -0.03), (0.12, 0.10)
#: Rows of all sites, sites, and totals of epsilon; the T from which on the others' counts are to
#: add something.
TOGETHER, SITES, EPSILONS, ENOUGH = (
    (500, 2_000, 6_000, 20_000, 50_000),
    (5, 20),
    (1.0, 0.3, 0.1),
    28,
)


class SiteSplit(NamedTuple):
    """A kind of site, and its rows."""

    kind: str
    own: Rows


def splits(data: LabelledSet, seed: int) -> Iterator[SiteSplit]:
    """Yield the sites that a set allows."""
    rng, n = np.random.default_rng(seed), len(data.X)
    order, odd, usual = rng.permutation(n), np.flatnonzero(data.y), np.flatnonzero(~data.y)
    for rows in ALIKE:
        if n >= 4 * rows:
            yield SiteSplit(f"alike, {rows} rows", order[:rows])
    cases = min(60, len(odd) // 2)
    others = min(len(usual) // 4, cases * 7 // 3)
    chosen = rng.choice(odd, cases, replace=False), rng.choice(usual, others, replace=False)
    yield SiteSplit("referral", np.concatenate(chosen))
    cluster = clusters_of(data.X, 3, usual, seed)
    largest = np.argsort(-np.bincount(cluster, minlength=3))
    own, other = (usual[cluster == kind] for kind in largest[:2])
    if len(own) > 200 and len(other) > 100:
        sizes = (own, min(400, len(own) // 2)), (other, 12), (odd, min(12, len(odd) // 2))
        parts = [rng.choice(rows, size, replace=False) for rows, size in sizes]
        yield SiteSplit("visitors", np.concatenate(parts))
        sizes = (own, len(own) // 2), (odd, len(odd) // 3), (odd, 0)
        parts = [rng.choice(rows, size, replace=False) for rows, size in sizes]
        yield SiteSplit("case mix", np.concatenate(parts))


def gains(data: LabelledSet, own: Rows) -> list[float]:
    """Return ROC-AUC and average precision of each way, minus those of the site's own model."""
    rest = np.setdiff1d(np.arange(len(data.X)), own)
    schema = data.schema()
    marginals = Sketch.from_data(Plan.marginals(schema), data.X)
    plan = Plan.draw(schema, marginals=marginals, random_state=0)
    others = Sketch.from_data(plan, data.X[rest])
    rows, y = data.X[own], data.y[own]
    home = HomeModel.fit(rows, others, random_state=0).scores(rows)
    pooled = HushTable.from_counts(others + Sketch.from_data(plan, rows)).score_samples(rows)
    return _less(y, home.here, home.elsewhere, pooled, home.score)


def _less(y: NDArray[np.bool_], own: Floats, *others: Floats) -> list[float]:
    """Return ROC-AUC and average precision of each other model, minus those of its own."""
    before = auc_and_ap(y, own)
    found = (auc_and_ap(y, scores) for scores in others)
    return [one[key] - before[key] for one in found for key in ("auc", "ap")]


def joining(run: CaseRun, *, data: Path | None = None, seeds: int = 2, quick: bool = False) -> None:
    """Use all sets below the FOLDER of --data: three minutes; --quick, three sets and one seed."""
    files = sorted(data_folder(data).rglob("*.npz"))
    found: dict[str, list[list[float]]] = {}
    for path in files[:QUICK_SETS] if quick else files:
        rows = complete(load(path).at_most(ROWS))
        if rows.y.sum() < LEAST:
            continue
        progress(path.stem)
        for seed in range(1 if quick else seeds):
            for kind, own in splits(rows, seed):
                y = rows.y[own]
                if 3 <= y.sum() < len(y):
                    found.setdefault(kind, []).append(gains(rows, own))
    run.say("Minus the site's own model: ROC-AUC / average precision.")
    lines = []
    for kind in sorted(found):
        mean = np.mean(found[kind], axis=0).reshape(-1, 2)
        error = np.std(found[kind], axis=0).reshape(-1, 2) / np.sqrt(len(found[kind]))
        cells = [
            f"{a:+.3f} +- {b:.3f} / {c:+.3f} +- {d:.3f}"
            for (a, c), (b, d) in zip(mean, error, strict=True)
        ]
        lines.append((kind, str(len(found[kind])), *cells))
        if not quick:
            least = REFERRAL if kind == "referral" else NEVER
            for which, gain, bound in zip(("ROC-AUC", "AP"), mean[-1], least, strict=True):
                run.hold(f"{kind}, {HOME} less own: {which}", float(gain), ">=", bound)
    run.say(ResultTable(("site", "sites", *WAYS), lines))
    run.figures |= {"gains": found}


def released_gains(
    data: LabelledSet, own: Rows, epsilon: float, seed: int
) -> tuple[float, list[float]]:
    """Return T, and the gains of the result and of a home model by the others' release."""
    X, n, schema = data.X, len(data.X), data.schema()
    terms = {"epsilon": epsilon, "expected_rows": n}
    design, marginals = Design(epsilon, 1e-6, n), None
    if design.pays_marginals(len(schema)):
        marginals = Sketch.from_data(Plan.marginals(schema, **terms), X).release(epsilon)
    plan = Plan.draw(schema, marginals=marginals, random_state=seed, **terms)
    others = Sketch.from_data(plan, np.delete(X, own, axis=0)).release(epsilon)
    result = HushTable.from_counts(Sketch.from_data(plan, X).release(epsilon))
    rows = X[own]
    home = HomeModel.fit(rows, others, random_state=seed).scores(rows)
    return design.signal, _less(data.y[own], home.here, result.score_samples(rows), home.score)


def joining_released(
    run: CaseRun, *, data: Path | None = None, seeds: int = 2, quick: bool = False
) -> None:
    """Use all sets below the FOLDER of --data: ten minutes; --quick, two sets and one epsilon."""
    files = sorted(data_folder(data).rglob("*.npz"))
    found: dict[tuple[float, int, int], list[list[float]]] = {}
    signal: dict[tuple[float, int, int], float] = {}
    for path in files[:2] if quick else files:
        whole = complete(load(path))
        progress(path.stem)
        for n, seed in itertools.product(TOGETHER, range(seeds)):
            if len(whole.X) < n or whole.y.sum() < LEAST:
                continue
            rows = np.random.default_rng((n, seed)).permutation(len(whole.X))[:n]
            some = whole.take(rows)
            for sites, epsilon in itertools.product(SITES, EPSILONS[: 1 if quick else None]):
                own, line = np.arange(n // sites), (epsilon, n, sites)
                if 2 <= some.y[own].sum() < len(own):
                    signal[line], gain = released_gains(some, own, epsilon, seed)
                    found.setdefault(line, []).append(gain)
    _report_released(run, found, signal)


def _report_released(
    run: CaseRun,
    found: dict[tuple[float, int, int], list[list[float]]],
    signal: dict[tuple[float, int, int], float],
) -> None:
    """Print a line for each size, and judge them."""
    run.say("Minus the site's own model: ROC-AUC / average precision.")
    lines, worst, means, sites_of_enough = [], 0.0, [], []
    for line, gain in sorted(found.items(), key=lambda one: (-one[0][0], *one[0][1:])):
        mean, error = np.mean(gain, axis=0), np.std(gain, axis=0) / np.sqrt(len(gain))
        epsilon, n, sites = line
        cells = [
            f"{a:+.4f} +- {b:.4f} / {c:+.4f} +- {d:.4f}"
            for (a, c), (b, d) in zip(mean.reshape(-1, 2), error.reshape(-1, 2), strict=True)
        ]
        lines.append((f"{epsilon:g}", f"{n:,}", str(sites), f"{signal[line]:.0f}",
                      str(len(gain)), *cells))  # fmt: skip
        worst = min(worst, float((mean + error)[2:].min()))
        if signal[line] >= ENOUGH:
            means.append(mean)
            sites_of_enough += gain
    run.say(ResultTable(("epsilon", "rows", "sites", "T", "sets", "result", HOME), lines, text=3))
    run.hold("any line, home model less own, plus a standard error", worst, ">=", -1e-4)
    for mean_over, gain in (("sites", sites_of_enough), ("lines", means)):
        if gain:
            result, home = np.mean(gain, axis=0).reshape(-1, 2)
            over = f"T of {ENOUGH} or more, mean over {mean_over}"
            for which, a, b in zip(("ROC-AUC", "AP"), home, result, strict=True):
                run.hold(f"{over}, home model less own: {which}", float(a), ">=", 0.0)
                run.hold(f"{over}, less the result: {which}", float(a - b), ">=", 0.0)
    run.figures |= {"gains": {str(line): gain for line, gain in found.items()}}


# --- expected gains -------------------------------------------------------------------------------

KINDS = ("alike", "many cases", "case mix")
ROUND_ROWS, ROUND_SITES, ROUND_EPSILONS = (500, 20_000), (3, 20), (0.1, 3.0)
#: Least rows of a site, most rows of a site that differs, and its share of outliers.
FEWEST, MOST, CASES = 25, 2_000, 0.3
#: Limits of the classes of gains in which rounds are compared, and the accepted mean error.
BINS, ERROR = (-1.0, 0.0025, 0.01, 0.03, 0.08, 1.0), 0.05


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
        float(np.exp(rng.uniform(*np.log(ends))))
        for ends in (ROUND_ROWS, ROUND_SITES, ROUND_EPSILONS)
    )
    kind = KINDS[int(rng.integers(len(KINDS)))]
    if len(found.X) < n:
        return None
    data = complete(found.take(rng.permutation(len(found.X))[: int(n)]))
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
    cluster = clusters_of(data.X, 3, usual)
    mine = usual[cluster == np.bincount(cluster).argmax()]
    k = min(k, len(mine) // 2)
    return np.concatenate([mine[:k], odd[: max(3, k * len(odd) // len(data.y))]])


def advice(
    run: CaseRun, *, data: Path | None = None, rounds: int = 200, first: int = 0,
    quick: bool = False,
) -> None:  # fmt: skip
    """Use all sets below the FOLDER of --data: five minutes; --quick, ten rounds."""
    files = sorted(data_folder(data).rglob("*.npz"))
    seed, found = first, list[tuple[str, float, float, float, float]]()
    while len(found) < (10 if quick else rounds):
        drawn = random_round(files, seed)
        seed += 1
        if drawn is None:
            continue
        progress(f"{len(found) + 1}: {drawn.data.name}, {drawn.kind}")
        _, gain = released_gains(drawn.data, drawn.own, drawn.epsilon, seed)
        n, k = len(drawn.data.X), len(drawn.own)
        expected, spread = Design(drawn.epsilon, 1e-6, n).expectation().gain(k, drawn.kind)
        found.append((drawn.kind, expected, spread, gain[2], gain[0]))
    _report_advice(run, found)


def _report_advice(run: CaseRun, found: list[tuple[str, float, float, float, float]]) -> None:
    expected, spread, actual, result = (np.array([one[j] for one in found]) for j in (1, 2, 3, 4))
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


# --- faults ---------------------------------------------------------------------------------------

#: Rows and columns of a set with faults, and sets with --quick.
FAULT_ROWS, FEWEST_ROWS, FEWEST_RELEASED, COLUMNS = 10_000, 2_500, 5_000, (3, 60)
QUICK_FAULT_SETS = 2
SHARES = (0.1, 0.2, 0.35, 0.6)
FAULTS, HONEST, HIDDEN = ("unit", "device", "default", "codes"), ("alike", "case mix"), "hidden"
EPSILON, PARTS = 1.0, 5
#: Least shares of named faults without noise and with it, and most false alarms.
NAMED, FALSE = {False: 0.9, True: 0.8}, 0.05


class TrialSite(NamedTuple):
    """A site's rows, the other rows of the set, and the site's fault, if it has one."""

    kind: str
    rows: Floats
    rest: Rows
    column: int | None = None
    share: float = 0.0


def honest(X: Floats, rng: np.random.Generator) -> Iterator[TrialSite]:
    """Yield sites without a fault."""
    everyone = np.arange(len(X))
    for part in (5, 5, 10, 20):
        own = rng.permutation(len(X))[: len(X) // part]
        yield TrialSite("alike", X[own], np.setdiff1d(everyone, own))
    for clusters in (2, 3, 5):
        of = clusters_of(X, clusters, everyone)
        for cluster in range(clusters):
            mine = np.flatnonzero(of == cluster)
            own = mine[: len(mine) // 2]
            if len(own) >= 100:
                yield TrialSite("case mix", X[own], np.setdiff1d(everyone, own))


def faulty(X: Floats, rng: np.random.Generator) -> Iterator[TrialSite]:
    """Yield sites of a fifth of the rows with each fault in each share of them, twice."""
    own, rest = np.split(np.arange(len(X)), [len(X) // PARTS])
    values = [len(np.unique(x)) for x in X.T]
    numbers = [j for j, k in enumerate(values) if k > 20]
    codes = [j for j, k in enumerate(values) if 2 <= k <= 12]
    columns = dict(zip(FAULTS, (numbers, numbers, numbers + codes, codes), strict=True))
    for fault, of in columns.items():
        for share in SHARES if of else ():
            for _ in range(2):
                j, rows = int(rng.choice(of)), X[own].copy()
                wrong = rng.choice(len(own), int(share * len(own)), replace=False)
                rows[wrong, j] = _wrong(fault, rows[wrong, j], X[:, j], rng)
                kind = HIDDEN if fault == "codes" and _hidden(X[own, j], rows[:, j]) else fault
                yield TrialSite(kind, rows, rest, j, share)


def _wrong(fault: str, x: Floats, column: Floats, rng: np.random.Generator) -> Floats:
    """Return values with a fault."""
    if fault == "unit":
        return x * 1.8 + 32.0
    if fault == "device":
        low, high = np.quantile(column, [0.25, 0.75])
        return x + 2.0 * ((high - low) / 1.349 or column.std())
    if fault == "default":
        return np.full(len(x), column.max())
    codes, counts = np.unique(column, return_counts=True)
    first, *others = codes[np.argsort(-counts, kind="stable")]
    other = rng.choice(others)
    return np.where(x == first, other, np.where(x == other, first, x))


def _hidden(before: Floats, after: Floats) -> bool:
    """Whether no code's share differs more than chance allows, at a level of 1 in 20."""
    moved = max(abs(float((before == code).mean() - (after == code).mean())) for code in before)
    return moved < 1.36 / np.sqrt(len(before))


def counted(plan: Plan, rows: Floats, released: bool) -> Counts:
    """Return the counts of rows, exact or released."""
    counts = Sketch.from_data(plan, rows)
    return counts.release(EPSILON, 1e-6) if released else counts


def named(data: LabelledSet, released: bool) -> Iterator[tuple[TrialSite, str | None]]:
    """Yield sites of a set, and the column that each finds to be systematic."""
    X, schema, rng = data.X, data.schema(), np.random.default_rng(0)
    terms = {"epsilon": EPSILON, "expected_rows": len(X), "sites": PARTS} if released else {}
    histograms = Plan.marginals(schema, **terms)
    plan = Plan.draw(schema, marginals=counted(histograms, X, released), random_state=0, **terms)
    for trials in (honest(X, rng), faulty(X, rng)):
        for site in trials:
            others, columns = (counted(one, X[site.rest], released) for one in (plan, histograms))
            home = HomeModel.fit(site.rows, others, marginals=columns, random_state=0)
            found = home.column_differences(site.rows).systematic
            yield site, None if found is None else found.name


def faults(run: CaseRun, *, data: Path | None = None, quick: bool = False) -> None:
    """Use all sets below the FOLDER of --data: ten minutes; --quick, two sets."""
    for released in (False, True):
        sets, found = 0, dict[tuple[str, float], list[bool]]()
        for one in _sets(data, FEWEST_RELEASED if released else FEWEST_ROWS):
            if quick and sets == QUICK_FAULT_SETS:
                break
            sets += 1
            for site, name in named(one, released):
                right = name is not None if site.column is None else name == f"x{site.column}"
                found.setdefault((site.kind, site.share), []).append(right)
        how = f"released at epsilon {EPSILON:g}" if released else "exact"
        _report_faults(run, found, f"{sets} sets, {how}", NAMED[released])


def _sets(data: Path | None, least: int) -> Iterator[LabelledSet]:
    """Yield the sets that are large enough, each with its first rows in a random order."""
    for path in sorted(data_folder(data).rglob("*.npz")):
        found = load(path)
        n, d = found.X.shape
        if n >= least and COLUMNS[0] <= d <= COLUMNS[1]:
            progress(path.stem)
            rows = np.random.default_rng(0).permutation(n)[:FAULT_ROWS]
            yield complete(found.take(rows))


def _report_faults(
    run: CaseRun, found: dict[tuple[str, float], list[bool]], how: str, least: float
) -> None:
    """Print the share of each fault that was found, and the false alarms, and judge them."""
    lines = []
    for kind in (*FAULTS, HIDDEN):
        some = [found.get((kind, share), []) for share in SHARES]
        cells = [f"{np.mean(one):.2f} of {len(one)}" if one else "" for one in some]
        mean = float(np.mean([np.mean(one) for one in some if one])) if any(some) else np.nan
        lines.append((kind, *cells, f"{mean:.3f}"))
        if kind != HIDDEN and any(some):
            run.hold(f"{how}: {kind}, named", mean, ">=", least)
    run.say(ResultTable((how, *(f"{share:.0%} of rows" for share in SHARES), "mean"), lines))
    for kind in HONEST:
        alarms = found.get((kind, 0.0), [])
        share = float(np.mean(alarms)) if alarms else np.nan
        run.hold(f"{how}: {kind}, {len(alarms)} sites, false alarms", share, "<=", FALSE)
