"""What the detectors that count a sample in each table do alike."""

from typing import Any, Self

from hushtable.arguments import whole
from hushtable.counts.sketch import Sketch
from hushtable.data.readers import Reader
from hushtable.data.schema import Schema
from hushtable.detectors._base import TableDetector
from hushtable.plans.plan import Plan

__all__ = ["SampledDetector"]


class SampledDetector(TableDetector):
    """A detector of which each table counts a random sample of the rows (paper, Algorithm 1)."""

    def __init__(
        self,
        *,
        n_tables: int = 100,
        max_samples: int = 1000,
        contamination: str | float = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_tables = n_tables
        self.max_samples = max_samples
        self.contamination = contamination
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read ranges off the rows, draw the plan, count a sample in each table.

        Parameters
        ----------
        X : array, data frame, Arrow object or path
            Rows: NumPy, pandas, polars, pyarrow, or the path of a CSV or Parquet file, folder
            or glob pattern. Missing values, text and categorical columns are welcome.
        y : None
            Not used.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If there are fewer than 2 rows, or a column cannot be used; the message names it.
        """
        return self._fit(X, None)

    def _draw_plan(self, schema: Schema, reader: Reader, weights: Any, n_rows: int) -> Plan:
        return Plan.draw(
            schema,
            detector=self._detector,
            random_state=self._rng,
            n_tables=self.n_tables,
            max_samples=min(whole("max_samples", self.max_samples), n_rows),
        )

    def _sketch(self, plan: Plan, reader: Reader, weights: Any) -> Sketch:
        return Sketch.from_data(
            plan,
            reader,
            max_samples=self.max_samples,
            # What drew the plan's functions, which others see, draws no sample without a seed.
            random_state=None if self.random_state is None else self._rng,
            n_jobs=self.n_jobs,
        )
