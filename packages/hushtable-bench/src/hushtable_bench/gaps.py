"""Measure what a missing value should count as.

With sides of its own in all tables (10 of 10), a gap is a rare value, and rows that lack one at
random come before rows with errors. With none, it is a usual value, and the information in gaps is
lost. For each number of tables in between: what is left of the average precision of complete sets,
and the ROC-AUC lost, if 5% of one column, or of every column, is missing at random; the ROC-AUC
lost against 10 of 10 if outliers lack a column three times as often, and on tables that come with
gaps (--gaps FOLDER); and what is left of the average precision if, of 1,200 patients, creatinine is
four times too high in 42, and missing in 5% of the others.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from hushtable import HushTable, Plan, Sketch
from hushtable.cli.result import CommandResult
from hushtable.counts.sketch import both_passes
from hushtable.data.readers import as_reader
from hushtable.data.understanding import schema_from_data
from hushtable_bench import figures
from hushtable_bench.data import data_folder, find_sets, load
from hushtable_bench.runner import FOLDER, CaseRun, progress

#: In how many of ten tables a gap has sides of its own.
SIDES = (0, 1, 2, 3, 4, 5, 7, 10)
GAPS = 0.05
GapRows: TypeAlias = "NDArray[np.float64] | pa.Table"
_GAP_KINDS = ("one column", "all columns")


def gap_scores(rows: GapRows, own_sides: int, seed: int) -> NDArray[np.float64]:
    """Return the scores by which a fit with a rule ranks its rows; high is abnormal."""
    reader = as_reader(rows).repeatable()
    inferred = schema_from_data(reader, None, 1)
    reader = inferred.rows
    marginals = Sketch.from_data(Plan.marginals(inferred.schema), reader)
    plan = Plan.draw(inferred.schema, marginals=marginals, own_sides=own_sides, random_state=seed)
    sketch = both_passes(plan, reader, None, 1)
    return -HushTable.from_counts(sketch).score_samples(rows)


def patients(seed: int, gaps: float) -> tuple[pa.Table, NDArray[np.bool_]]:
    """Return patients of whom 42 have a wrong creatinine, and others lack it."""
    rng, n = np.random.default_rng(seed), 1200
    creatinine = rng.lognormal(0, 0.3, n).round(2)
    wrong = np.isin(np.arange(n), rng.choice(n, 42, replace=False))
    creatinine[wrong] *= 4
    creatinine[(rng.random(n) < gaps) & ~wrong] = np.nan
    rows = {
        "age": rng.integers(18, 90, n).astype(float),
        "ward": rng.choice(["A", "B", "C"], n),
        "creatinine": pa.array(creatinine, from_pandas=True),
        "hb": rng.normal(13.5, 1.5, n).round(1),
    }
    return pa.table(rows), wrong


def spoiled(
    X: NDArray[np.float64], y: NDArray[np.bool_]
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield a complete set, and the set with each kind of gaps."""
    rng = np.random.default_rng(1)
    n, j = len(X), int(rng.integers(X.shape[1]))
    yield "complete", X
    yield "all columns", np.where(rng.random(X.shape) < GAPS, np.nan, X)
    shares = {"one column": np.full(n, GAPS), "informative": GAPS * (1 + 2.0 * y)}
    for name, share in shares.items():
        spoilt = X.copy()
        spoilt[rng.random(n) < share, j] = np.nan
        yield name, spoilt


def gaps(
    data: Path | None = None,
    gaps: Path | None = None,
    seeds: int = 2,
    max_rows: int = 3_000,
    output: Path = FOLDER,
) -> CommandResult:
    """Measure what a missing value should count as."""
    run = CaseRun("gaps", output)
    figures: dict[tuple[str, int], list[tuple[float, float]]] = {}

    def measure(kind: str, X: GapRows, y: NDArray[np.bool_], each: int = seeds) -> None:
        for k in SIDES:
            pairs = []
            for seed in range(each):
                s = gap_scores(X, k, seed)
                pairs.append((roc_auc_score(y, s), average_precision_score(y, s)))
            figures.setdefault((kind, k), []).append(tuple(np.mean(pairs, axis=0)))

    folder = data_folder(data)
    for path in [*find_sets(folder), *sorted((folder.parent / "data-odd").glob("*.npz"))]:
        one = load(path).at_most(max_rows)
        if one.y.sum() < 5 or one.X.shape[1] > 100:
            continue
        progress(one.name)
        for kind, X in spoiled(one.X, one.y):
            measure(kind, X, one.y)
    for path in find_sets(gaps or folder.parent / "data-missing"):
        one = load(path)
        measure("own", one.X, one.y, 3 * seeds)
    for seed in range(3):
        for kind, share in {"no gaps": 0.0, "errors": GAPS}.items():
            measure(kind, *patients(seed, share))
    means = {key: np.mean(pairs, axis=0) for key, pairs in figures.items()}
    lines = [_gap_line(means, k) for k in SIDES]
    run.table(
        {
            "tables of ten in which a gap has sides of its own": "{t[0]}",
            "one column: AP kept": "{t[1]:.3f}", "ROC-AUC lost": "{t[2]:.4f}",
            "all columns: AP kept": "{t[3]:.3f}", "lost": "{t[4]:.4f}",
            "informative gaps: lost": "{t[5]:.4f}", "gaps of their own: lost": "{t[6]:.4f}",
            "errors: AP kept": "{t[7]:.3f}",
        },
        lines,
    )  # fmt: skip
    _gaps_figure(lines, output)
    return run.finish()


def _gap_line(means: dict[tuple[str, int], NDArray[np.float64]], k: int) -> tuple[float, ...]:
    whole, (one, every) = means["complete", k], (means[kind, k] for kind in _GAP_KINDS)
    return (
        k, one[1] / whole[1], whole[0] - one[0], every[1] / whole[1], whole[0] - every[0],
        *(means[kind, 10][0] - means[kind, k][0] for kind in ("informative", "own")),
        means["errors", k][1] / means["no gaps", k][1],
    )  # fmt: skip


def _gaps_figure(lines: Sequence[tuple[float, ...]], folder: Path) -> None:
    """Draw what gaps at random cost against what gaps of their own lose, a point for each rule."""
    figure, (axes,) = figures.panels(["What a gap counts as"], 6.0, 3.6)
    at_random, own_share = ([line[at] for line in lines] for at in (4, 6))
    axes.plot(at_random, own_share, color=figures.ROWS, marker="o", ms=5)
    for line, x, y in zip(lines, at_random, own_share, strict=True):
        axes.annotate(f"{line[0]} of 10", (x, y), (5, 5), textcoords="offset points", fontsize=8)
    axes.set_xlabel("ROC-AUC lost if 5% of every column is missing at random", fontsize=9)
    axes.set_ylabel("ROC-AUC lost in tables\nwhose gaps are informative", fontsize=9)
    figures.save(figure, folder, "gaps")
