"""The runs of all systems on all sets, and their figures."""

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from hushtable.errors import HushTableError
from hushtable_bench.data import LabelledSet
from hushtable_bench.results import Results, Row, Step
from hushtable_bench.verdicts.learners import Floats, System, without_feedback
from hushtable_bench.verdicts.protocol import given, looked_at, of_rest, subset

#: Outliers, and other rows, that are given at once.
GIVEN = (5, 20)
#: What is measured of a system, by the names of the columns of `Results`.
FIGURES = ("found", "auc", "ap", "seconds")


@dataclass(frozen=True)
class Runs:
    """All runs: systems, sets, seeds; rows of a set at most, and rows that are looked at.

    ``wrong`` is the share of verdicts on these that are the other one.
    """

    systems: list[System]
    sets: list[LabelledSet]
    seeds: int = 3
    rows: int = 5_000
    budget: int = 60
    wrong: float = 0.0

    @property
    def budgets(self) -> list[int]:
        """Numbers of rows looked at of which figures are told: a sixth, a half, and all."""
        return sorted({max(1, self.budget // 6), max(1, self.budget // 2), self.budget})

    @property
    def looks(self) -> str:
        """The experiment's name in results: rows are looked at. auc and ap are gains."""
        wrong = f"-wrong-{self.wrong:g}" if self.wrong else ""
        return f"verdicts-{self.rows}-{self.budget}{wrong}"

    @property
    def gifts(self) -> str:
        """The experiment's name in results: verdicts are given."""
        return f"verdicts-{self.rows}-given"

    def steps(self) -> Iterator[Step]:
        """Yield two steps for each set, system and seed."""
        for data in self.sets:
            for one in self.systems:
                for seed in range(self.seeds):
                    for name, do in ((self.looks, self._look), (self.gifts, self._give)):
                        run = partial(_caught, one, partial(do, one, data, seed))
                        yield Step(name, data.name, one.name, seed, run)

    def run(self, results: Results) -> Iterator[None]:
        """Do what is not done; yield after each step."""
        for step in self.steps():
            step.run(results)
            yield

    def _look(self, system: System, data: LabelledSet, seed: int) -> Iterator[Row]:
        data = subset(data, self.rows, seed)
        before = without_feedback(data, seed)
        learner, start = system.make(data, seed), time.perf_counter()
        told = data.y ^ (np.random.default_rng((seed, 1)).random(len(data.y)) < self.wrong)
        for outcome in looked_at(learner, data.y, self.budgets, told):
            seconds = (time.perf_counter() - start) / outcome.n_verdicts
            auc, ap = of_rest(data.y, before, outcome.rest)
            yield {
                "setting": outcome.n_verdicts, "found": outcome.found, "seconds": seconds,
                "auc": outcome.auc - auc, "ap": outcome.ap - ap,
            }  # fmt: skip

    def _give(self, system: System, data: LabelledSet, seed: int) -> Iterator[Row]:
        data = subset(data, self.rows, seed)
        for k in GIVEN:
            outcome = given(system.make(data, seed), data.y, k, np.random.default_rng((seed, k)))
            yield {"setting": k, "found": outcome.found, "auc": outcome.auc, "ap": outcome.ap}

    def figures(self, results: Results) -> dict[tuple[str, float, str], Floats]:
        """Return means over the seeds (n_sets, n_systems), NaN where there are none.

        By experiment, number of verdicts (rows looked at, or outliers given), and figure.
        """
        place = {one.name: at for at, one in enumerate(self.systems)}
        of_set = {data.name: at for at, data in enumerate(self.sets)}
        shape, found = (len(of_set), len(place), self.seeds), dict[tuple[str, float, str], Floats]()
        for name in (self.looks, self.gifts):
            for row in results.select(name):
                cell = of_set.get(row["data"]), place.get(row["system"]), row["seed"]
                if None in cell or row["seed"] >= self.seeds or row["setting"] is None:
                    continue
                for figure in FIGURES:
                    key = name, row["setting"], figure
                    value = row[figure]
                    found.setdefault(key, np.full(shape, np.nan))[cell] = (
                        np.nan if value is None else value
                    )
        return {key: mean(values, -1) for key, values in found.items()}


def mean(values: Floats, axis: int = 0) -> Floats:
    """Return the mean of what is there over an axis, NaN where nothing is."""
    there = np.isfinite(values)
    total = np.where(there, values, 0.0).sum(axis=axis)
    count = there.sum(axis=axis)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def error(values: Floats) -> Floats:
    """Return the standard error of `mean` over the sets, NaN of fewer than two."""
    count = np.isfinite(values).sum(axis=0)
    square = mean((values - mean(values)) ** 2) / np.maximum(count - 1, 1)
    return np.asarray(np.where(count > 1, np.sqrt(square), np.nan))


def failures(results: Results, runs: Runs) -> dict[str, str]:
    """Return which systems failed on which sets, and why."""
    names = [data.name for data in runs.sets], [one.name for one in runs.systems]
    rows: Sequence[Row] = [*results.select(runs.looks), *results.select(runs.gifts)]
    return {
        f"{row['system']} on {row['data']}": row["note"]
        for row in rows
        if row["note"] and row["data"] in names[0] and row["system"] in names[1]
    }


def _caught(system: System, do: partial[Iterator[Row]]) -> list[Row]:
    """Return the rows of a step, or why there are none: a peer may raise anything."""
    caught: type[Exception] = HushTableError if system.ours else Exception
    try:
        with warnings.catch_warnings():
            if not system.ours:
                warnings.simplefilter("ignore")  # a peer's, on a set that does not suit it
            return [{"system": system.name} | row for row in do()]
    except caught as error:
        reason = str(error).strip().split("\n")[0][:200] or type(error).__name__
        return [{"system": system.name, "note": reason}]
