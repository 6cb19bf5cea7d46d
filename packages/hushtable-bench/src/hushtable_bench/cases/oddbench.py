"""OddBench and OvRBench in both regimes, on the published split, beside published means.

Takes a folder of the published files (github.com/psorus/Outformer: ``benchmarks/oddbench`` and
``benchmarks/ovrbench``), or of the same sets as X, y and train in files ``odd_*.npz`` and
``ovr_*.npz``. Every detector judges the published test rows: fitted to the training rows, which are
all inliers, and fitted to training and test rows together without labels. A file is read, judged
and forgotten before the next. Sets that settings of HushTable were judged on are left out, unless
--seen counts them.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyod.models.knn import KNN
from sklearn.ensemble import IsolationForest
from sklearn.preprocessing import StandardScaler

from hushtable import HushTable
from hushtable.errors import DataError, HushTableError
from hushtable_bench.adbench import Contestant
from hushtable_bench.comparison import KNOWN, SystemComparison
from hushtable_bench.data import (
    LabelledSet,
    array_names,
    auc_and_ap,
    data_folder,
    labelled_set,
    read_arrays,
)
from hushtable_bench.results import ResultTable
from hushtable_bench.runner import CaseRun, progress

Floats: TypeAlias = NDArray[np.float64]
Split: TypeAlias = tuple[LabelledSet, NDArray[np.bool_]]

#: How the names of a benchmark's files begin where their folder does not name it.
PREFIXES = {"OddBench": "odd_", "OvRBench": "ovr_"}
SEEN = frozenset(KNOWN["collections"]["data-odd"]["sets"])
INLIERS, ALL_ROWS = "inliers", "all rows"
METRICS = {"ROC-AUC": "auc", "AP": "ap"}
#: Outliers that a figure needs.
FEWEST = 2


def contestants(regime: str) -> list[Contestant]:
    """Return HushTable as each regime asks for it, and its peers."""
    novelty = regime == INLIERS
    return [
        Contestant(
            "HushTable", lambda seed: HushTable(novelty=novelty, random_state=seed), ours=True
        ),
        Contestant("IsolationForest", lambda seed: IsolationForest(random_state=seed)),
        # By the distance to the fifth neighbour, as PyOD has it; and by the mean of all five.
        Contestant("5 nearest neighbours", lambda seed: KNN(), fixed=True, scale=StandardScaler),
        Contestant(
            "5 nearest neighbours, mean", lambda seed: KNN(method="mean"), fixed=True,
            scale=StandardScaler,
        ),
    ]  # fmt: skip


FIELDS = {regime: contestants(regime) for regime in (INLIERS, ALL_ROWS)}
SYSTEMS = tuple(one.name for one in FIELDS[INLIERS])


# --- files ----------------------------------------------------------------------------------------


def identify(path: Path) -> tuple[str, str]:
    """Return the benchmark of a file, and the set's name, which begins with the prefix."""
    for benchmark, prefix in PREFIXES.items():
        if path.name.startswith(prefix):
            return benchmark, path.stem
        if path.absolute().parent.name.lower() == benchmark.lower():
            return benchmark, prefix + path.stem
    raise DataError("neither OddBench nor OvRBench, by the name of the file or of its folder")


def load_split(path: Path, rows: int) -> Split:
    """Read a set of ``rows`` training and test rows at most, and which ones are for training."""
    if "X" in array_names(path):
        X, y, mask = read_arrays(path, ("X", "y"), optional="train")
        if mask is None or mask.dtype != np.bool_ or mask.shape != y.shape:
            raise DataError("the published split is missing: needs train, bool (n,)")
    else:
        needed = ("train", "test", "test_labels")
        train, test, labels, own = read_arrays(path, needed, optional="train_labels")
        if not train.ndim == test.ndim == 2 or train.shape[1] != test.shape[1]:
            raise DataError("needs train (n, d) and test (k, d) of the same columns")
        X, mask = np.vstack([train, test]), np.arange(len(train) + len(test)) < len(train)
        own = np.zeros(len(train)) if own is None else own
        y = np.concatenate([own.ravel(), labels.ravel()])
    data = labelled_set(path, X, y)
    if data.y[mask].any() or not mask.any():
        raise DataError(f"{data.y[mask].sum()} of its {mask.sum()} training rows are outliers")
    # With seeds of their own, so that all systems and all runs have the same rows.
    fitted, judged = data.take(mask).at_most(rows, 0), data.take(~mask).at_most(rows, 1)
    if judged.y.sum() < FEWEST or judged.y.all():
        raise DataError(
            f"{judged.y.sum()} of the {len(judged.y)} test rows are outliers; needs {FEWEST}, and "
            "an inlier"
        )
    both = LabelledSet(
        data.name, np.vstack([fitted.X, judged.X]), np.concatenate([fitted.y, judged.y])
    )
    return both, np.arange(len(both.y)) < len(fitted.y)


# --- figures --------------------------------------------------------------------------------------


def judge(data: LabelledSet, train: NDArray[np.bool_], seeds: int) -> Floats:
    """Return the figures of one set, mean over the seeds: (regimes, metrics, systems)."""
    return np.array([
        np.transpose([
            np.mean([
                [*auc_and_ap(data.y[~train], -scores).values()]
                for scores in _scores(one, data, train, regime, seeds)
            ], axis=0)
            for one in field
        ])
        for regime, field in FIELDS.items()
    ])  # fmt: skip


def _scores(
    one: Contestant, data: LabelledSet, train: NDArray[np.bool_], regime: str, seeds: int
) -> Iterator[Floats]:
    """Yield how outlying each test row is, seed by seed."""
    for seed in range(1 if one.fixed else seeds):
        if regime == INLIERS:
            yield one.outlying(data, seed, train)[0]
        else:
            yield one.outlying(data, seed)[0][~train]


def table_rows(benchmark: str, sets: Sequence[str], values: Floats) -> list[dict[str, str]]:
    """Return the table of one benchmark; ``values`` are (sets, regimes, metrics, systems)."""
    rows = []
    for at, regime in enumerate(FIELDS):
        known = KNOWN["oddbench"].get(benchmark, {}) if regime == INLIERS else {}
        published = {known["ours"].get(k, k): v for k, v in known["means"].items()} if known else {}
        spread = np.full(len(SYSTEMS), np.nan)
        metrics = {
            name: SystemComparison(tuple(sets), SYSTEMS, values[:, at, m], spread)
            for m, name in enumerate(METRICS)
        }
        for system in [*SYSTEMS, *(name for name in published if name not in SYSTEMS)]:
            row = {
                "benchmark": benchmark, "fitted to": regime, "detector": system,
                "sets": str(len(sets)) if system in SYSTEMS else "",
            }  # fmt: skip
            for name, metric in metrics.items():
                mine = float(metric.of_system(system).mean()) if system in SYSTEMS else math.nan
                row[name] = _figure(mine)
            for name, metric in metrics.items():
                row[f"{name}, less HushTable's"] = _difference(metric, system)
            for m, name in enumerate(METRICS):
                row[f"{name}, published"] = _figure(published.get(system, (math.nan,) * 2)[m])
            row["published in"] = (
                f"{known['source']}, {known['over']}" if system in published else ""
            )
            rows.append(row)
    return rows


def _figure(value: float, sign: str = "") -> str:
    return "" if math.isnan(value) else f"{value:{sign}.4f}"


def _difference(metric: SystemComparison, system: str) -> str:
    """Write the mean difference from HushTable over the sets, ± its standard error."""
    found = metric.differences(SYSTEMS[0]).get(system)
    if found is None:
        return ""
    error = found.std(ddof=1) / math.sqrt(len(found)) if len(found) > 1 else math.nan
    return f"{_figure(float(found.mean()), '+')} ± {_figure(float(error)) or '?'}"


# --- the case -------------------------------------------------------------------------------------


def oddbench(
    run: CaseRun, *, data: Path | None = None, seeds: int = 1, rows: int = 5_000, seen: bool = False
) -> None:
    """--rows training rows and as many test rows of each set at most."""
    folder = data_folder(data)
    files = sorted(folder.rglob("*.npz"))
    if not files:
        raise DataError(
            f"{folder} holds no .npz file: needs those of OddBench or OvRBench "
            "(github.com/psorus/Outformer, benchmarks)"
        )
    found, left_out, judged_before = _judged(files, folder, seeds, rows, seen)
    sets = {benchmark: [*by_name] for benchmark, by_name in found.items()}
    run.say(_account(sets, len(files), judged_before, rows, seeds))
    for name, why in left_out.items():
        run.say(f"Left out: {name}: {why}.")
    table = [
        row
        for benchmark, by_name in found.items()
        for row in table_rows(benchmark, sets[benchmark], np.array([*by_name.values()]))
    ]
    run.say(ResultTable([*table[0]], [[cell or "-" for cell in row.values()] for row in table], 3))
    run.figures |= {
        "seeds": seeds, "rows": rows, "left_out": left_out, "table": table,
        "axes": {"regime": [*FIELDS], "metric": [*METRICS], "detector": SYSTEMS},
        "sets": {
            name: values.round(5).tolist()
            for by_name in found.values() for name, values in by_name.items()
        },
    }  # fmt: skip


def _judged(
    files: Sequence[Path], folder: Path, seeds: int, rows: int, seen: bool
) -> tuple[dict[str, dict[str, Floats]], dict[str, str], int]:
    """Return figures by benchmark and set, why other files do not count, and how many were seen."""
    found: dict[str, dict[str, Floats]] = defaultdict(dict)
    left_out: dict[str, str] = {}
    judged_before = 0
    for number, path in enumerate(files, 1):
        progress(f"{number} of {len(files)}: {path.stem}")
        try:
            benchmark, name = identify(path)
            if name in found[benchmark]:
                raise DataError("the same set in another file is counted")
            if name in SEEN and not seen:
                judged_before += 1
                continue
            found[benchmark][name] = judge(*load_split(path, rows), seeds)
        except (HushTableError, ValueError) as error:
            reason = str(error).removeprefix(f"{path}: ").splitlines()[0]
            left_out[str(path.relative_to(folder))] = reason
    found = {benchmark: found[benchmark] for benchmark in PREFIXES if found[benchmark]}
    if not found:
        reasons = "".join(f"{name}: {why}. " for name, why in left_out.items())
        if judged_before:
            reasons += f"Settings were judged on {_sets(judged_before)}: --seen counts them"
        raise DataError(f"{folder}: no set is left to count. {reasons}")
    return found, left_out, judged_before


def _account(
    sets: dict[str, list[str]], files: int, judged_before: int, rows: int, seeds: int
) -> str:
    """Say what was read and counted, and what was seen before."""
    counted = " and ".join(f"{_sets(len(names))} of {key}" for key, names in sets.items())
    again = sum(name in SEEN for names in sets.values() for name in names)
    parts = [
        f"{files} files, {counted} counted; at most {rows:,} training and {rows:,} test rows of a "
        f"set, {seeds} {'seeds' if seeds > 1 else 'seed'}; ± is the standard error over the sets."
    ]
    if judged_before:
        parts.append(
            f"Left out: {_sets(judged_before)} that settings of HushTable were judged on (--seen "
            "counts them)."
        )
    if again:
        parts.append(
            f"Settings of HushTable were judged on {again} of the counted sets, which flatters it."
        )
    return " ".join(parts)


def _sets(number: int) -> str:
    return f"{number} {'set' if number == 1 else 'sets'}"
