"""Trials with rows that a site plants among its own: detection by own rows, a result, and both.

Two kinds of outliers are planted into copies of a site's rows, at the site:

mixed    one row in fifty has the values of other rows in half of its columns, each of another row
fault    in a third of the rows, one column of numbers is three spreads higher, as by a device

The site's own model and its home model are fitted to the copy, because a fault is not known in
advance; the result stays the same. ROC-AUC measures how well planted rows rank below the others.
Columns are chosen at random, and everything is drawn again in each of several trials.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushtable.counts.base import Noised
from hushtable.counts.release import LocalModel
from hushtable.data.columns import as_numbers
from hushtable.data.readers import Reader
from hushtable.errors import DataError

#: The most own rows that are used, the least that a trial needs, and the trials of each kind.
MOST_ROWS, LEAST_ROWS, TRIALS = 4_000, 100, 4
#: Share of mixed rows, and part of their columns; share of rows with a fault, and its size.
_MIXED, _COLUMNS, _FAULT, _SPREADS = 0.02, 0.5, 1.0 / 3.0, 3.0
#: Distance between the quartiles of a normal distribution, in standard deviations.
_QUARTILES = 1.349
#: Mean ROC-AUC by which another method must be better than a home model to be recommended.
_BETTER = 0.02
WAYS = ("own rows", "result", "both")


@dataclass(frozen=True)
class PlantedTrial:
    """How well each method finds planted rows; exact about a site's rows, so keep it there.

    Attributes
    ----------
    mixed, fault : tuple of float
        ROC-AUC by the site's own rows alone, by the result alone, and by a home model of both, if
        one row in fifty is mixed, and if a third of the rows have a fault; NaN if no column is
        numeric.
    """

    mixed: tuple[float, ...]
    fault: tuple[float, ...]

    @property
    def recommended(self) -> str:
        """Return the best method on average: both, unless another is better by two points."""
        means = np.nanmean([self.mixed, self.fault], axis=0)
        best = int(means.argmax())
        return WAYS[best] if means[best] > means[2] + _BETTER else WAYS[2]


def planted_trial(rows: Reader, result: Noised, others: LocalModel) -> PlantedTrial:
    """Plant rows into copies of a site's rows, and measure how well each method finds them.

    Parameters
    ----------
    rows : Reader
        The site's rows, under the plan of the result.
    result : Release
        The result of a round about a model's tables.
    others : LocalModel
        The counts of all others in it.

    Raises
    ------
    DataError
        If the site has fewer than 100 rows.
    """
    table = _sampled(rows, result.plan.schema.names)
    if len(table) < LEAST_ROWS:
        raise DataError(
            f"there are {len(table)} rows: a trial with planted rows needs {LEAST_ROWS}"
        )
    features = result.plan.schema.features
    numbers = [j for j, feature in enumerate(features) if feature.kind == "numeric"]
    numbers = [j for j in numbers if _spread(table, j) > 0.0]
    mixed, fault = [], []
    for seed in range(TRIALS):
        rng = np.random.default_rng(seed)
        mixed.append(_found(*_mix(table, rng), result, others))
        if numbers:
            fault.append(_found(*_break(table, int(rng.choice(numbers)), rng), result, others))
    missing = [(np.nan,) * len(WAYS)]
    means = (np.mean(kind or missing, axis=0).tolist() for kind in (mixed, fault))
    return PlantedTrial(*map(tuple, means))


def _sampled(rows: Reader, names: Sequence[str]) -> pa.Table:
    """Return at most some rows as a table."""
    batches = [_as_batch(batch, names) for batch in rows.read()]
    table = pa.Table.from_batches(batches).combine_chunks()
    if len(table) <= MOST_ROWS:
        return table
    return table.take(pa.array(np.arange(MOST_ROWS) * len(table) // MOST_ROWS))


def _as_batch(batch: Any, names: Sequence[str]) -> pa.RecordBatch:
    if isinstance(batch, pa.RecordBatch):
        return batch
    return pa.record_batch([pa.array(x) for x in batch.T], names=list(names))


def _numbers(table: pa.Table, j: int) -> NDArray[np.float64]:
    return np.asarray(as_numbers(table.column(j).combine_chunks(), table.column_names[j]))


def _spread(table: pa.Table, j: int) -> float:
    """Return the robust standard deviation of a column of numbers."""
    x = _numbers(table, j)
    x = x[np.isfinite(x)]
    return float(np.subtract(*np.quantile(x, [0.75, 0.25]))) / _QUARTILES if len(x) else 0.0


def _mix(table: pa.Table, rng: np.random.Generator) -> tuple[pa.Table, NDArray[np.bool_]]:
    """Give some rows the values of other rows in half of their columns."""
    n, d = len(table), table.num_columns
    planted = np.zeros(n, bool)
    planted[rng.choice(n, max(2, int(_MIXED * n)), replace=False)] = True
    for j in rng.choice(d, max(1, int(_COLUMNS * d)), replace=False).tolist():
        places = np.where(planted, rng.integers(n, size=n), np.arange(n))
        column = table.column(j).take(pa.array(places))
        table = table.set_column(j, table.column_names[j], column)
    return table, planted


def _break(table: pa.Table, j: int, rng: np.random.Generator) -> tuple[pa.Table, NDArray[np.bool_]]:
    """Raise a column of numbers in some rows."""
    wrong = rng.random(len(table)) < _FAULT
    x = _numbers(table, j) + wrong * _SPREADS * _spread(table, j)
    return table.set_column(j, table.column_names[j], pa.array(x, from_pandas=True)), wrong


def _found(
    table: pa.Table, planted: NDArray[np.bool_], result: Noised, others: LocalModel
) -> list[float]:
    """Return the ROC-AUC of planted rows by own rows, result and both."""
    from sklearn.metrics import roc_auc_score  # takes a second to import

    from hushtable import HushTable
    from hushtable_federation.home import HomeModel

    home = HomeModel.fit(table, others, random_state=0)
    scores = home.scores(table)
    by_result = HushTable.from_counts(result).score_samples(table)
    return [float(roc_auc_score(planted, -s)) for s in (scores.here, by_result, scores.score)]
