"""Comparison over labelled sets: means, ranks, intervals, tests; and what others published."""

import math
import re
import tomllib
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap, rankdata, studentized_range

from hushtable_bench.results import Results

Floats = NDArray[np.float64]
#: Resamples of the sets for an interval.
RESAMPLES = 9_999


@dataclass(frozen=True)
class SystemComparison:
    """One metric of several systems on several sets; NaN where a system failed."""

    sets: tuple[str, ...]
    systems: tuple[str, ...]
    values: Floats  # (n_sets, n_systems), mean over the seeds

    @classmethod
    def of(
        cls,
        results: Results,
        metric: str,
        sets: Sequence[str],
        systems: Sequence[str],
        experiment: str = "adbench",
    ) -> "SystemComparison":
        """Gather a metric, ``"auc"`` or ``"ap"``, from results."""
        seeds: dict[tuple[str, str], list[float]] = {}
        for row in sorted(results.select(experiment), key=lambda row: int(row["seed"])):
            seeds.setdefault((row["data"], row["system"]), []).append(row[metric])
        # For each system, sets by seeds; those of a run with fewer seeds count as far as they go.
        tables = []
        for system in systems:
            found = [seeds[data, system] for data in sets]
            tables.append(np.array([row[: min(map(len, found))] for row in found]))
        values = np.column_stack([table.mean(axis=1) for table in tables])
        return cls(tuple(sets), tuple(systems), values)

    def only(self, sets: Sequence[str]) -> "SystemComparison":
        """Return the same on some of the sets."""
        rows = [self.sets.index(name) for name in sets]
        return SystemComparison(tuple(sets), self.systems, self.values[rows])

    def of_system(self, system: str) -> Floats:
        """Return one system's figures (n_sets,)."""
        return np.asarray(self.values[:, self.systems.index(system)])

    def done(self) -> NDArray[np.int64]:
        """Count the sets that each system could do (n_systems,)."""
        return np.asarray(np.isfinite(self.values).sum(axis=0))

    def means(self) -> Floats:
        """Return the mean over the sets that a system could do (n_systems,)."""
        return _mean(self.values)

    def ranks(self) -> Floats:
        """Return the mean rank over the sets (n_systems,), 1 for the best, last for a failure."""
        values = np.where(np.isnan(self.values), -np.inf, self.values)
        return np.asarray(rankdata(-values, axis=1).mean(axis=0))

    def critical_difference(self, alpha: float = 0.05) -> float:
        """Return how far mean ranks must lie apart to differ (Nemenyi; Demsar, 2006, eq. 2)."""
        k, n = len(self.systems), len(self.sets)
        q = float(studentized_range.ppf(1 - alpha, k, math.inf)) / math.sqrt(2)
        return q * math.sqrt(k * (k + 1) / (6 * n))

    def differences(self, reference: str) -> dict[str, Floats]:
        """Return the others' figures minus those of ``reference``, on the sets of both."""
        differences = self.values - self.of_system(reference)[:, None]
        return {
            other: column[np.isfinite(column)]
            for other, column in zip(self.systems, differences.T, strict=True)
            if other != reference
        }

    def intervals(self, reference: str) -> dict[str, tuple[float, float, float]]:
        """Return mean differences from ``reference``, each with its 95% interval.

        By bootstrap over the sets (percentiles, seed 0); NaN for the ends of fewer than two sets.
        """
        found = {}
        for other, difference in self.differences(reference).items():
            low = high = math.nan
            if len(difference) > 1:
                sample = bootstrap(
                    (difference,), np.mean, n_resamples=RESAMPLES, method="percentile",
                    random_state=np.random.default_rng(0),
                )  # fmt: skip
                low, high = map(float, sample.confidence_interval)
            mean = float(difference.mean()) if len(difference) else math.nan
            found[other] = (mean, low, high)
        return found


def _mean(values: Floats) -> Floats:
    """Return the mean of the existing values over the first axis, NaN if there are none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of an empty slice
        return np.asarray(np.nanmean(values, axis=0))


KNOWN = tomllib.loads(Path(__file__).with_name("known.toml").read_text("utf-8"))


@dataclass(frozen=True)
class Published:
    """Means of one detector that someone else measured; NaN where none was published."""

    system: str
    auc: float
    ap: float
    over: str  # over which sets
    source: str


def plain(name: str) -> str:
    """Return the name of a set without number, capitals and marks: 31_satimage-2 is satimage2."""
    return re.sub(r"[^a-z0-9]", "", re.sub(r"^\d+_", "", name).lower())


def collection(sets: Collection[str]) -> str | None:
    """Return the collection that consists of exactly these sets."""
    found = (key for key, entry in KNOWN["collections"].items() if set(entry["sets"]) == set(sets))
    return next(found, None)


def sets_published(sets: Sequence[str]) -> list[str]:
    """Return the sets that have published figures by set (novelty only)."""
    names = {plain(name) for name in KNOWN["novelty"]["auc"]}
    return [name for name in sets if plain(name) in names]


def published(protocol: str, sets: Sequence[str]) -> list[Published]:
    """Return published means over the sets that are known; best first.

    Means that were published as such are there if at least half as many sets are known.
    """
    known = [plain(name) for name in sets_published(sets)]
    found = []
    if known and protocol == "novelty":
        table = KNOWN["novelty"]
        auc, ap = (
            np.array([row for name, row in table[metric].items() if plain(name) in known])
            for metric in ("auc", "ap")
        )
        for at, system in enumerate(table["systems"]):
            there = np.isfinite(auc[:, at])
            if there.any():
                means = [float(metric[there, at].mean()) for metric in (auc, ap)]
                over = f"{there.sum()} of these {len(sets)}"
                found.append(Published(system, means[0], means[1], over, table["source"]))
    others = KNOWN["means"][protocol]
    if 2 * len(known) >= others["sets"]:
        over = f"{others['sets']} of ADBench"
        for system, figure in others["auc"].items():
            found.append(Published(system, figure, np.nan, over, others["source"]))
    return sorted(found, key=lambda one: -one.auc)
