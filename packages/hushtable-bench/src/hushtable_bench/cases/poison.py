"""Measure one site's invented rows in a masked round, and whether `round compare` finds them.

One site of five, or of twenty, sends copies of rows like another site's outliers instead of its own
rows, so that these outliers are no longer flagged. There are three questions: how much accuracy the
others lose, with and without a bound on the rows of a site; how often a comparison calls honest
sites strange if they differ in size and in kind; and how many poisonings it finds, and how many
sites that move counts between cells. --more names another folder of labelled sets, --first the
first seed of the splits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta
from sklearn.cluster import KMeans
from sklearn.metrics import roc_auc_score

from hushtable import HushTable, Plan, Sketch
from hushtable_bench.data import LabelledSet, load
from hushtable_bench.results import ResultTable
from hushtable_bench.runner import CaseRun, data_folder, progress
from hushtable_federation.comparison import ALIKE, LEAST_ROWS, LEVEL, SURE, strange_share

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Ways in which honest sites differ; for "alike" and "sizes", only in the number of rows.
WAYS = ("alike", "sizes", "mixture", "skewed", "shifted", "rare")
SITES = (3, 5, 10, 20)
#: Copies of each outlier, and the number of sites in the round.
COPIES, POISONED = (7, 20, 40, 400), (5, 20)
#: Share of the others' counts, as a site of five guesses them from its own rows, that it moves.
MOVED = (0.2, 0.8)
#: Bounds on the rows that a site may send, as multiples of its own rows.
BOUNDS = (1.0, 1.2, 2.0)
LARGEST, FEWEST, MOST_COLUMNS = 6_000, 600, 60
#: The others' promise (most_rows), as a multiple of their rows.
PROMISED = 1.25
#: Rows that are only scored, for sets of F_poison's kind.
SCORED = 572


@dataclass(frozen=True)
class PoisonWorld:
    """A labelled set with a plan for all of its rows, and the noise of a masked round."""

    rows: LabelledSet
    plan: Plan
    noise_sd: float

    @classmethod
    def of(cls, rows: LabelledSet, seed: int) -> "PoisonWorld":
        schema = rows.schema()
        plan = Plan.draw(schema, random_state=seed, epsilon=1.0, expected_rows=len(rows.X))
        one = Sketch.from_data(plan, rows.X[:10], n_jobs=1).release(epsilon=1.0)
        return cls(rows, plan, one.noise_sd)

    def counts(self, X: Floats) -> Ints:
        if not len(X):
            return Sketch.zero(self.plan).counts
        return Sketch.from_data(self.plan, X, n_jobs=1).counts


# --- sites ----------------------------------------------------------------------------------


def sizes(k: int, n: int, rng: np.random.Generator) -> list[Ints]:
    """Share n rows among k sites, the largest some fifty times the smallest."""
    weights = np.exp(rng.normal(0.0, 1.0, k))
    ends = np.cumsum(weights / weights.sum() * n).astype(int)
    return np.split(rng.permutation(n), ends[:-1])


def mixed(X: Floats, k: int, skew: float, rng: np.random.Generator) -> list[Ints]:
    """Give each site another mixture of five clusters: Dirichlet shares of each, times its size."""
    scaled = (X - X.mean(0)) / (X.std(0) + 1e-9)
    cluster = KMeans(5, n_init=1, random_state=int(rng.integers(1 << 31))).fit_predict(scaled)
    weights, site = np.exp(rng.normal(0.0, 1.0, k)), np.empty(len(X), int)
    for one in range(5):
        share = rng.dirichlet(np.full(k, skew)) * weights
        site[cluster == one] = rng.choice(k, (cluster == one).sum(), p=share / share.sum())
    return [np.flatnonzero(site == i) for i in range(k)]


def split(way: str, rows: LabelledSet, k: int, rng: np.random.Generator) -> list[Ints]:
    """Return the rows of each site."""
    n = len(rows.X)
    if way == "alike":
        return np.array_split(rng.permutation(n), k)
    if way in ("mixture", "skewed"):
        return mixed(rows.X, k, 1.0 if way == "mixture" else 0.3, rng)
    if way != "rare":
        return sizes(k, n, rng)
    common = np.flatnonzero(~rows.y)
    parts = [common[part] for part in sizes(k, len(common), rng)]
    special = int(rng.integers(k))  # the site that gets all rare rows
    parts[special] = np.concatenate([parts[special], np.flatnonzero(rows.y)])
    return parts


def site_rows(
    way: str, rows: LabelledSet, parts: list[Ints], rng: np.random.Generator
) -> Iterator[Floats]:
    """Yield the rows of each site, moved by the site's own shift if the way has shifts."""
    low, high, spread = rows.X.min(0), rows.X.max(0), rows.X.std(0)
    for part in parts:
        shift = rng.normal(0.0, 0.3, rows.X.shape[1]) * spread if way == "shifted" else 0.0
        yield np.clip(rows.X[part] + shift, low, high)


# --- comparisons ----------------------------------------------------------------------------


@dataclass(frozen=True)
class SeenRound:
    """Findings of the honest sites of one round; ``copies`` is 0 if no site invents rows."""

    data: str
    way: str
    sites: int
    copies: int
    strange: list[float]
    #: Whether the others hold more rows than they promised, by more than noise explains.
    too_many: list[bool]


def compared(
    world: PoisonWorld, honest: list[Ints], copied: Ints, evil: int | None, rng: np.random.Generator
) -> tuple[list[float], list[bool]]:
    """Return the findings of each honest site in the sum of all, if it has enough rows."""
    parts = [copied if i == evil else one for i, one in enumerate(honest)]
    total, k = np.sum(parts, axis=0), len(parts)
    promised = np.sum(honest, axis=0)
    sd = world.noise_sd * np.sqrt((k - 1) / k)
    tables = world.plan.family.n_histograms
    strange, too_many = [], []
    for i, own in enumerate(parts):
        if i != evil and own.sum() >= LEAST_ROWS * tables:
            rest = total - own + np.rint(rng.normal(0.0, sd, len(own))).astype(np.int64)
            strange.append(strange_share(own, rest, sd, tables))
            surplus = rest.sum() - PROMISED * (promised - own).sum()
            too_many.append(bool(surplus > SURE * sd * np.sqrt(len(own))))
    return strange, too_many


def rounds(world: PoisonWorld, rng: np.random.Generator) -> Iterator[SeenRound]:
    """Yield rounds of honest sites, and the same rounds with one site's invented rows."""
    for way, k in product(WAYS, SITES):
        parts = split(way, world.rows, k, rng)
        counts = [world.counts(X) for X in site_rows(way, world.rows, parts, rng)]
        yield SeenRound(world.rows.name, way, k, 0, *compared(world, counts, counts[0], None, rng))
        victim = int(np.argmax([len(part) for part in parts]))
        odd = parts[victim][world.rows.y[parts[victim]]][:50]
        if k not in POISONED or len(odd) < 3:
            continue
        copied = world.counts(world.rows.X[odd])
        evil = int(rng.choice([i for i in range(k) if i != victim]))
        for copies in COPIES:
            yield SeenRound(
                world.rows.name,
                way,
                k,
                copies,
                *compared(world, counts, copies * copied, evil, rng),
            )


def moved(offsets: Ints, own: Ints, wanted: Ints, share: float) -> Ints:
    """Return counts with the same sum as a site's rows that move counts from all cells to a few."""
    made = np.empty_like(own)
    for a, b in pairwise(offsets):
        take = np.floor(share * 4 * own[a:b]).astype(np.int64)
        total = own[a:b].sum() + take.sum()
        give = np.floor(wanted[a:b] / wanted[a:b].sum() * total).astype(np.int64)
        give[wanted[a:b].argmax()] += total - give.sum()
        made[a:b] = give - take
    return made


def moves(world: PoisonWorld, seed: int) -> Iterator[tuple[str, float, list[float]]]:
    """Yield honest sites' findings in rounds in which one site of five, or none, moves counts."""
    rng = np.random.default_rng(seed)
    for way in WAYS:
        parts = split(way, world.rows, 5, rng)
        counts = [world.counts(X) for X in site_rows(way, world.rows, parts, rng)]
        yield way, 0.0, compared(world, counts, counts[0], None, rng)[0]
        evil = int(rng.integers(5))
        odd = parts[evil][world.rows.y[parts[evil]]][:50]
        wanted = world.counts(world.rows.X[odd if len(odd) else np.flatnonzero(world.rows.y)[:10]])
        for share in MOVED:
            made = moved(world.plan.family.offsets, counts[evil], wanted, share)
            yield way, share, compared(world, counts, made, evil, rng)[0]


def table_of_moves(found: list[tuple[str, float, list[float]]]) -> ResultTable:
    """Lay out the alarms when a site moves counts."""
    lines = []
    cases = [(f"all, level {level:g}", WAYS, level) for level in (0.1, 0.15, LEVEL)]
    for name, ways, level in (*cases, ("alike and sizes, with --alike", WAYS[:2], ALIKE)):
        each = [
            np.array([x > level for way, moved, some in found if (way in ways) and moved == share
                      for x in some])
            for share in (0.0, *MOVED)
        ]  # fmt: skip
        lines.append([name, len(each[0]), *(f"{one.mean():.2%}" for one in each)])
    head = ("five sites differ in", "comparisons", "alarms", *(f"moved {s:.0%}" for s in MOVED))
    return ResultTable(head, lines)


def upper(seen: list[SeenRound], ways: tuple[str, ...], level: float) -> float:
    """Return the upper end of the 95% interval of the rate of alarms.

    It is the larger of two limits: for independent comparisons (Clopper and Pearson), and by a
    bootstrap over the sets, because comparisons of one set are alike.
    """
    found, of = alarms(seen, ways, level)
    exact = float(beta.ppf(0.975, found + 1, of - found))
    names = sorted({one.data for one in seen})
    each = np.array([alarms([s for s in seen if s.data == n], ways, level) for n in names])
    drawn = np.random.default_rng(0).integers(len(names), size=(2_000, len(names)))
    sums = each[drawn].sum(axis=1)
    return max(exact, float(np.quantile(sums[:, 0] / sums[:, 1], 0.975)))


def alarms(seen: list[SeenRound], ways: tuple[str, ...], level: float) -> tuple[int, int]:
    """Return alarms and comparisons among honest sites."""
    found = [x for one in seen if one.copies == 0 and one.way in ways for x in one.strange]
    return sum(x > level for x in found), len(found)


def table_of_alarms(seen: list[SeenRound]) -> ResultTable:
    """Lay out the false alarms among honest sites."""
    lines = []
    for ways in (*((way,) for way in WAYS), WAYS, WAYS[:2]):
        level = ALIKE if ways == WAYS[:2] else LEVEL
        name = {WAYS: "all", WAYS[:2]: "alike and sizes, with --alike"}.get(ways, ways[0])
        of_ways = [x for s in seen if s.copies == 0 and s.way in ways for x in s.strange]
        n, of = alarms(seen, ways, level)
        quantiles = (f"{np.quantile(of_ways, q):.4f}" for q in (0.5, 0.99, 0.995))
        lines.append([name, of, n, f"{n / of:.2%}", f"{upper(seen, ways, level):.2%}", *quantiles])
    head = "comparisons", "alarms", "rate", "at most", "median", "99%", "99.5%"
    return ResultTable(("honest sites differ in", *head), lines)


def table_of_poisoned(seen: list[SeenRound]) -> ResultTable:
    """Lay out how often a poisoned round is noticed."""
    lines = []
    cases = (("all", WAYS, LEVEL), ("alike and sizes, with --alike", WAYS[:2], ALIKE))
    for (name, ways, level), k, copies in product(cases, POISONED, COPIES):
        those = [s for s in seen if s.way in ways and (s.sites, s.copies) == (k, copies)]
        each = np.array([x > level for s in those for x in s.strange])
        some = np.array([any(x > level for x in s.strange) for s in those])
        rows = np.mean([any(s.too_many) for s in those])
        figures = (f"{share:.0%}" for share in (some.mean(), each.mean(), rows))
        lines.append([name, k, copies, len(those), *figures])
    head = ("sites differ in", "sites", "copies", "rounds", "a site", "each site", "most_rows")
    return ResultTable(head, lines)


# --- accuracy -------------------------------------------------------------------------------


def accuracies(rows: LabelledSet, seed: int) -> dict[str, float]:
    """Return the AUC on rows of no site, by the counts that the fourth of five sites sends."""
    rows = rows.take(np.random.default_rng(seed).permutation(len(rows.X)))
    shared = len(rows.X) - SCORED
    ends = (np.array([0.56, 0.84, 1.0]) * shared).astype(int)
    odd = rows.X[: ends[0]][rows.y[: ends[0]]]
    own = rows.X[ends[1] : ends[2]][: (ends[2] - ends[1]) // 2]
    honest = np.concatenate([rows.X[: ends[1]], rows.X[ends[1] + len(own) : shared]])
    sent = {"its own rows": own}
    for bound in BOUNDS:
        sent[f"{bound:g} times as many rows as it has"] = np.resize(
            odd, (int(bound * len(own)), odd.shape[1])
        )
    for copies in COPIES:
        sent[f"{copies} copies, no bound"] = np.repeat(odd, copies, axis=0)
    plan = Plan.draw(rows.schema(), random_state=seed, epsilon=1.0, expected_rows=shared)
    base, found = Sketch.from_data(plan, honest), {}
    for name, X in sent.items():
        model = HushTable.from_counts((base + Sketch.from_data(plan, X)).release(epsilon=1.0))
        found[name] = roc_auc_score(rows.y[shared:], -model.score_samples(rows.X[shared:]))
    return found


def say_accuracy(run: CaseRun, rows: LabelledSet, seeds: int) -> None:
    """Measure what invented rows cost the others, and judge it where rows are bounded."""
    found = [accuracies(rows, seed) for seed in range(seeds)]
    mean = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
    honest = mean["its own rows"]
    lines = [[name, f"{auc:.3f}", f"{honest - auc:.3f}"] for name, auc in mean.items()]
    run.say(f"{rows.name}, mean of {seeds}:")
    run.say(ResultTable(("one site of five sends", "AUC of the others", "lost"), lines))
    bounded = honest - min(auc for name, auc in mean.items() if "times" in name)
    run.hold("AUC lost where rows are bounded to twice", bounded, "<=", 0.05)


def worlds(folders: list[Path], seeds: range) -> Iterator[tuple[PoisonWorld, np.random.Generator]]:
    """Yield the sets that are large enough, each under so many seeds."""
    for path in sorted(path for folder in folders for path in folder.glob("*.npz")):
        rows = load(path)
        keep = rows.X.max(0) > rows.X.min(0)
        X = rows.X[:, keep][:, :MOST_COLUMNS]
        if len(X) < FEWEST or rows.y.sum() < 10 or np.isnan(X).any():
            continue
        for seed in seeds:
            rng = np.random.default_rng(seed)
            some = rng.permutation(len(X))[:LARGEST]
            progress(f"{rows.name}, seed {seed}")
            yield PoisonWorld.of(LabelledSet(rows.name, X[some], rows.y[some]), seed), rng


def poison(
    run: CaseRun,
    *,
    data: Path | None = None,
    more: Path | None = None,
    seeds: int = 1,
    first: int = 0,
) -> None:
    """Poison masked rounds of the labelled sets, and compare."""
    folder = data_folder(data)
    say_accuracy(run, load(folder / "38_thyroid.npz"), 5)
    seen: list[SeenRound] = []
    counts_moved: list[tuple[str, float, list[float]]] = []
    for world, rng in worlds([folder, *([more] if more else [])], range(first, first + seeds)):
        seen += rounds(world, rng)
        counts_moved += moves(world, first)
    run.say(table_of_alarms(seen))
    many = [x for one in seen if one.copies == 0 for x in one.too_many]
    run.say(f"Alarms by most_rows: {sum(many)} of {len(many)}.")
    for claim, ways, level in (("all", WAYS, LEVEL), ("--alike", WAYS[:2], ALIKE)):
        most = upper(seen, ways, level)
        run.hold(f"false alarms, {claim}: end of the interval", most, "<=", 0.01)
    run.say(table_of_poisoned(seen))
    run.say("One site moves counts, with the right totals:", table_of_moves(counts_moved))
    run.figures["seen"] = seen
